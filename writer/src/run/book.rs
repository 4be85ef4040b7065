//! A run's ledger and journal, open together for as long as it is supervised.

use std::time::Duration;

use waybill_verifier::chain::{FaultKind, LastLine, Unseen};
use waybill_verifier::id::{Kind, RunId, TaskId};
use waybill_verifier::journal::Profile;
use waybill_verifier::json::{Object, Value};
use waybill_verifier::ledger::{LedgerRows, Row, State};

use super::Error;
use crate::durable::{self, Sync, open_regular};
use crate::journal::{self, Journal};
use crate::lock::{Lock, LockError, Wait};
use crate::log::{self, Ledger, Missing, Recorded, Transition};
use crate::project::Project;
use crate::registry::ResumePoint;
use crate::{clock, read};

/// The root task of a supervised run: its command.
pub const MAIN: &str = "main";

/// The two, under their locks.
#[derive(Debug)]
pub struct Book {
    /// The task graph.
    pub ledger: Ledger,
    /// The events.
    pub journal: Journal,
    /// The recovery that opening made, to be said.
    pub notes: Vec<String>,
}

impl Book {
    /// Opens both; where another process records, waits until `gives_up` says otherwise.
    ///
    /// # Errors
    ///
    /// If one is damaged, or can't be read or written.
    pub fn open(
        project: &Project,
        run: &RunId,
        missing: Missing,
        mut gives_up: impl FnMut(&str) -> bool,
    ) -> Result<Book, Error> {
        let ledger = loop {
            match Ledger::open(project, run, missing, Wait::No, |_| ()) {
                Err(log::Error::Lock(LockError::Held { path, holder })) => {
                    if gives_up(&holder) {
                        return Err(log::Error::Lock(LockError::Held { path, holder }).into());
                    }
                }
                opened => break opened?,
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        let journal = loop {
            match Journal::open(project, run, Profile::PyJsonV1, Wait::No, Unseen, |_| ()) {
                Err(journal::Error::Lock(LockError::Held { path, holder })) => {
                    if gives_up(&holder) {
                        return Err(journal::Error::Lock(LockError::Held { path, holder }).into());
                    }
                }
                opened => break opened?,
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        let torn =
            [ledger.set_aside().map(|torn| ("entry", torn)), journal.set_aside().map(|torn| ("event", torn))];
        let notes = torn.into_iter().flatten().map(|(what, torn)| {
            format!(
                "{what} {} was being written when a crash came, and was never acknowledged: its {} bytes were \
                 set aside as {}",
                torn.entry,
                torn.length,
                torn.path.display()
            )
        });
        Ok(Book { notes: notes.collect(), ledger, journal })
    }

    /// Records the supervisor's own transition.
    ///
    /// # Errors
    ///
    /// If it can't be recorded.
    pub fn transition(&mut self, kind: &str, task: &str, payload: Object) -> Result<Recorded, Error> {
        Ok(self.ledger.append(&[own(kind, task, payload)], Sync::Data)?.remove(0))
    }

    /// Records the supervisor's own event.
    ///
    /// # Errors
    ///
    /// If it can't be recorded.
    pub fn event(&mut self, name: &str, fields: &Object) -> Result<journal::Recorded, Error> {
        Ok(self.journal.append(name, fields, clock::seconds(), Sync::Data)?)
    }

    /// The point that a resume would go on from now.
    #[must_use]
    pub fn point(&self) -> ResumePoint {
        ResumePoint { entries: self.ledger.entries(), head: self.ledger.head() }
    }
}

/// The supervisor's own transition; its payload is scrubbed already.
#[must_use]
pub fn own(kind: &str, task: &str, payload: Object) -> Transition {
    let kind = Kind::new(kind).expect("the program's own kinds fit the pattern");
    let task_id = TaskId::new(task).expect("the program's own tasks fit the pattern");
    Transition { kind, task_id, payload, redactions: 0 }
}

/// A ledger as it is found, read without a lock.
#[derive(Clone, Debug)]
pub struct Replayed {
    /// The run's state.
    pub state: State,
    /// Whether the chain holds, but for a torn tail.
    pub holds: bool,
    /// Whether the entry that was looked for is where it should be.
    pub has_point: bool,
}

/// Replays a run's ledger, if there is one, and looks for a resume point in it.
///
/// # Errors
///
/// If it can't be read.
pub fn replay(
    project: &Project,
    run: &RunId,
    point: Option<&ResumePoint>,
) -> Result<Option<Replayed>, durable::Error> {
    durable::refuse_links(project.root(), &project.ledger_folder(run))?;
    let held = Lock::is_held(&project.ledger_lock(run));
    let path = project.ledger(run);
    let file = match open_regular(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let unreadable = |source| durable::Error::new("can't read", &path, source);
    let size = read::size(&file).map_err(unreadable)?;
    let mut state = State::default();
    let last_line = if held { LastLine::InFlight } else { LastLine::Settled };
    let rows = LedgerRows::new(Some(run), |row: &Row<'_>, _| state.apply(row))
        .looking_for(point.map(|point| point.head));
    let outcome = read::walk(&file, size, rows, last_line).map_err(unreadable)?;
    let found = point.map(|point| (outcome.rows.found(point.head), point.entries));
    let has_point = match found {
        Some((Some(place), entries)) => place.entry + 1 == entries,
        Some((None, _)) => false,
        None => true,
    };
    let holds = outcome.faults.iter().all(|fault| fault.kind == FaultKind::TornTail);
    drop(outcome);
    Ok(Some(Replayed { state, holds, has_point }))
}

/// The command line as it is recorded.
#[must_use]
pub fn command_value(scrubbed: &[String]) -> Value {
    Value::from(scrubbed.iter().map(|argument| Value::from(argument.as_str())).collect::<Vec<_>>())
}
