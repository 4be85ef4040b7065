//! The event journal's writer: one row behind another, under one lock, recovered as the ledger is.
//!
//! The lock is ours alone (`.journal.lock`): the reference takes none, so one journal must not be
//! written by both programs at once.

use std::fmt;

use waybill_verifier::chain::{Fault, LastLine, Outcome, Place, Visit};
use waybill_verifier::hash::Digest;
use waybill_verifier::id::RunId;
use waybill_verifier::journal::{self, BadDraft, Draft, Event, EventRows, Profile};
use waybill_verifier::json::{Object, Value};

use crate::durable::{self, AppendFile, Sync};
use crate::lock::{Lock, LockError, Wait};
use crate::log::TooLong;
use crate::log::recover::{self, TornTail};
use crate::project::Project;
use crate::read as files;

/// Why a journal can't be read or extended.
#[derive(Debug)]
pub enum Error {
    /// The run has no journal here.
    Absent(RunId),
    /// The journal is damaged: nothing goes behind it.
    Damaged {
        /// Whose it is.
        run: RunId,
        /// The first fault.
        fault: Fault,
    },
    /// It can't be recorded as an event.
    Draft(BadDraft),
    /// A row would be longer than readers read.
    TooLong(TooLong),
    /// The lock.
    Lock(LockError),
    /// A file.
    File(durable::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Absent(run) => write!(f, "there is no journal of run {run} here"),
            Error::Damaged { run, fault } => write!(f, "the journal of run {run} is damaged: {fault}"),
            Error::Draft(error) => error.fmt(f),
            Error::TooLong(error) => error.fmt(f),
            Error::Lock(error) => error.fmt(f),
            Error::File(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Lock(error) => error.source(),
            Error::File(error) => error.source(),
            _ => None,
        }
    }
}

impl From<durable::Error> for Error {
    fn from(error: durable::Error) -> Error {
        Error::File(error)
    }
}

impl From<LockError> for Error {
    fn from(error: LockError) -> Error {
        Error::Lock(error)
    }
}

/// The receipt for an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Recorded {
    /// Its number.
    pub index: u64,
    /// Its hash.
    pub event_hash: Digest,
}

/// A run's journal, open for appending under its lock.
#[derive(Debug)]
pub struct Journal {
    file: AppendFile,
    _lock: Lock,
    profile: Profile,
    events: u64,
    head: Option<Digest>,
    began: Option<f64>,
    lacks_newline: bool,
    set_aside: Option<TornTail>,
}

/// The first event's time, and what else a caller wants to see of the events.
struct Began<V> {
    at: Option<f64>,
    visitor: V,
}

impl<V: Visit<Event>> Visit<Event> for Began<V> {
    fn visit(&mut self, event: &Event, place: Place) {
        if event.index == 0 {
            self.at = match &event.ts {
                Some(Value::Float(ts)) => Some(*ts),
                Some(Value::Int(ts)) => ts.as_str().parse().ok(),
                _ => None,
            };
        }
        self.visitor.visit(event, place);
    }
}

impl Journal {
    /// Opens a run's journal, and makes it if there is none: takes the lock, revalidates from the
    /// first event, and sets a torn tail aside. `profile` is for a journal without events; one
    /// that has some keeps its own. `visitor` sees all events; `waiting` is told who holds the
    /// lock before a wait begins.
    ///
    /// # Errors
    ///
    /// If it is damaged, locked, or can't be read or written.
    pub fn open(
        project: &Project,
        run: &RunId,
        profile: Profile,
        wait: Wait,
        visitor: impl Visit<Event>,
        waiting: impl FnOnce(&str),
    ) -> Result<Journal, Error> {
        durable::create_private_folders(project.root(), &project.journal_folder(run))?;
        let lock = Lock::take(&project.journal_lock(run), wait, waiting)?;
        let path = project.journal(run);
        let mut file = AppendFile::open(&path)?;
        let rows = EventRows::new(Began { at: None, visitor });
        let outcome = files::walk(file.file(), file.length(), rows, LastLine::Settled)
            .map_err(|source| durable::Error::new("can't read", &path, source))?;
        let damaged = |fault: &Fault| Error::Damaged { run: run.clone(), fault: fault.clone() };
        let plan = recover::plan_of(&outcome).map_err(damaged)?;
        let set_aside = recover::execute(&plan, &path, &mut file)?;
        Ok(Journal {
            file,
            _lock: lock,
            profile: outcome.rows.profile().unwrap_or(profile),
            events: outcome.end.entry,
            head: outcome.rows.head(),
            began: outcome.rows.visitor.at,
            lacks_newline: outcome.unterminated,
            set_aside,
        })
    }

    /// How many events there are: the next one's number.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.events
    }

    /// What its hashes are taken over.
    #[must_use]
    pub fn profile(&self) -> Profile {
        self.profile
    }

    /// The torn tail that opening set aside.
    #[must_use]
    pub fn set_aside(&self) -> Option<&TornTail> {
        self.set_aside.as_ref()
    }

    /// Appends an event, already scrubbed, that happens at `now` (seconds since 1970 UTC).
    ///
    /// # Errors
    ///
    /// If it can't be recorded: then it is not, and this handle may record nothing more.
    pub fn append(&mut self, event: &str, fields: &Object, now: f64, sync: Sync) -> Result<Recorded, Error> {
        self.append_all([(event, fields)], now, sync)?.remove(0)
    }

    /// Appends events, already scrubbed, with one write and one sync. What can't be an event is
    /// refused by itself; the others are recorded.
    ///
    /// # Errors
    ///
    /// If they can't be recorded: then none of them is, and this handle records nothing more.
    pub fn append_all<'a>(
        &mut self,
        drafts: impl IntoIterator<Item = (&'a str, &'a Object)>,
        now: f64,
        sync: Sync,
    ) -> Result<Vec<Result<Recorded, Error>>, Error> {
        let elapsed_s = ((now - self.began.unwrap_or(now)).max(0.0) * 1e3).round() / 1e3;
        let (mut events, mut head) = (self.events, self.head);
        let mut bytes = Vec::new();
        if self.lacks_newline {
            bytes.push(b'\n');
        }
        let mut recorded = Vec::new();
        for (event, fields) in drafts {
            let draft = Draft { event, fields, ts: now, elapsed_s };
            let row = journal::next(self.profile, (events, head.as_ref()), &draft).map_err(Error::Draft);
            let row = row.and_then(|(row, hash)| {
                TooLong::refuse(&row).map_err(Error::TooLong)?;
                Ok((row, hash))
            });
            recorded.push(match row {
                Ok((row, hash)) => {
                    bytes.extend_from_slice(&row);
                    bytes.push(b'\n');
                    let recorded = Recorded { index: events, event_hash: hash };
                    (events, head) = (events + 1, Some(hash));
                    Ok(recorded)
                }
                Err(error) => Err(error),
            });
        }
        if events > self.events {
            self.file.append(&bytes, sync)?;
            self.began = self.began.or(Some(now));
            self.lacks_newline = false;
            (self.events, self.head) = (events, head);
        }
        Ok(recorded)
    }
}

/// Walks a run's journal, for who checks or reads: no lock, no trace. What is being written is
/// in flight. Gives none if there is no journal.
///
/// # Errors
///
/// If it can't be read.
pub fn walk<V: Visit<Event>>(
    project: &Project,
    run: &RunId,
    visitor: V,
) -> Result<Option<Outcome<EventRows<V>>>, durable::Error> {
    durable::refuse_links(project.root(), &project.journal_folder(run))?;
    let last_line = Lock::last_line(&project.journal_lock(run));
    let path = project.journal(run);
    let unreadable = |source| durable::Error::new("can't read", &path, source);
    let Some(file) = durable::open_if_there(&path)? else { return Ok(None) };
    let size = files::size(&file).map_err(unreadable)?;
    files::walk(&file, size, EventRows::new(visitor), last_line).map_err(unreadable).map(Some)
}
