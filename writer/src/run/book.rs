//! A run's ledger and journal, open together for as long as it is supervised.

use std::time::Duration;

use waybill_verifier::chain::{FaultKind, Unseen};
use waybill_verifier::hash::Digest;
use waybill_verifier::id::{Kind, RunId, TaskId};
use waybill_verifier::journal::Profile;
use waybill_verifier::json::{Object, Value};
use waybill_verifier::ledger::{LedgerRows, Row, State};
use waybill_verifier::report::counted;

use super::Error;
use crate::anchoring;
use crate::durable::{self, Sync};
use crate::journal::{self, Journal};
use crate::lock::{LockError, Wait};
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
pub struct Found {
    /// The run's state.
    pub state: State,
    /// Why nothing goes on from it, if so.
    pub against: Option<Against>,
}

/// Why nothing goes on from a ledger.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Against {
    /// It does not hold.
    Damaged,
    /// It lacks this entry, the last that the resume point knows, or has another in its place.
    Lacks(u64),
    /// The anchor here has more entries than it, or others: the run went on elsewhere. The line
    /// says what and the way on.
    Anchor(String),
}

/// Replays a run's ledger, if there is one.
///
/// # Errors
///
/// If it can't be read.
pub fn replay(project: &Project, run: &RunId) -> Result<Option<State>, durable::Error> {
    Ok(walk(project, run, &[])?.map(|(state, ..)| state))
}

/// Replays a run's ledger, if there is one, and looks whether the run can go on from it: whether
/// it holds, with the resume point in it, and with all of what the run's anchor here knows.
///
/// # Errors
///
/// If it can't be read.
pub fn find(
    project: &Project,
    run: &RunId,
    point: Option<&ResumePoint>,
) -> Result<Option<Found>, durable::Error> {
    let point = point.map(|point| (point.entries, point.head));
    let anchor = anchoring::claimed_here(project, run);
    let known: Vec<_> = point.into_iter().chain(anchor).collect();
    let Some((state, holds, has)) = walk(project, run, &known)? else { return Ok(None) };
    let lacks = |known: Option<(u64, Digest)>| known.filter(|known| !has.contains(known));
    let against = if !holds {
        Some(Against::Damaged)
    } else if let Some((entries, _)) = lacks(point) {
        Some(Against::Lacks(entries.saturating_sub(1)))
    } else if let Some((entries, _)) = lacks(anchor) {
        let has = counted(state.entries, "entry");
        let line = if entries > state.entries {
            format!(
                "the anchor of run {run} claims {}, the ledger here has {has}: the run went on elsewhere; \
                 'waybill ledger verify {run} --anchored' checks that, 'waybill ledger resume {run}' takes the rest over",
                counted(entries, "entry")
            )
        } else {
            format!(
                "the anchor of run {run} is of another lineage than the ledger here, which has {has}: \
                 'waybill ledger diff {run}' shows where they part"
            )
        };
        Some(Against::Anchor(line))
    } else {
        None
    };
    Ok(Some(Found { state, against }))
}

/// A run's state, whether its chain holds but for a torn tail, and which of the `known` counts and
/// heads it has at their place.
type Walked = (State, bool, Vec<(u64, Digest)>);

fn walk(project: &Project, run: &RunId, known: &[(u64, Digest)]) -> Result<Option<Walked>, durable::Error> {
    let mut state = State::default();
    let rows = LedgerRows::new(Some(run), |row: &Row<'_>, _| state.apply(row))
        .looking_for(known.iter().map(|(_, head)| *head));
    let Some(outcome) = read::walk_run(project, run, rows)? else { return Ok(None) };
    let is_there = |(entries, head): &&(u64, Digest)| {
        outcome.rows.found(*head).is_some_and(|place| place.entry + 1 == *entries)
    };
    let has = known.iter().filter(is_there).copied().collect();
    let holds = outcome.faults.iter().all(|fault| fault.kind == FaultKind::TornTail);
    drop(outcome);
    Ok(Some((state, holds, has)))
}

/// The command line as it is recorded.
#[must_use]
pub fn command_value(scrubbed: &[String]) -> Value {
    Value::from(scrubbed.iter().map(|argument| Value::from(argument.as_str())).collect::<Vec<_>>())
}
