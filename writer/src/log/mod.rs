//! The ledger's writer: opened under its lock, revalidated from genesis, recovered after a
//! crash, and extended durably.
//!
//! Opening plans first ([`recover`]), then does. What is torn is set aside, never deleted; what
//! is damaged is refused, with its place, and only [`repair`] goes on from before it.

pub mod recover;
mod repair;

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use waybill_verifier::chain::{Fault, LastLine, MAX_LINE};
use waybill_verifier::hash::Digest;
use waybill_verifier::id::{Kind, RunId, TaskId};
use waybill_verifier::json::Object;
use waybill_verifier::ledger::{LedgerRows, RowText};

use crate::durable::{self, AppendFile, Sync};
use crate::lock::{Lock, LockError, Wait};
use crate::project::Project;
use crate::read;
pub use recover::{Plan, TornTail};
pub use repair::{Loss, Repaired, repair};

/// Why a ledger can't be opened or extended.
#[derive(Debug)]
pub enum Error {
    /// The run has no ledger here.
    Absent(RunId),
    /// The ledger is damaged: nothing opens it before somebody repairs it.
    Damaged {
        /// The run.
        run: RunId,
        /// The first fault.
        fault: Fault,
        /// How many there are.
        count: u64,
    },
    /// A row would be longer than readers read.
    TooLong(TooLong),
    /// The entries from `first` on were not recorded.
    NotRecorded {
        /// The number of the first entry that was not recorded.
        first: u64,
        /// How many were not.
        count: usize,
        /// Why.
        source: durable::Error,
    },
    /// The lock.
    Lock(LockError),
    /// A file.
    File(durable::Error),
    /// The line that a repair was to start from does not exist.
    NoSuchLine {
        /// The line, from 1.
        line: u64,
        /// How many lines there are.
        lines: u64,
    },
    /// The line that a repair was to start from, and all behind it, holds.
    NotDamaged {
        /// The line, from 1.
        line: u64,
    },
    /// What stands before the line that a repair was to start from does not hold.
    StillDamaged(Fault),
}

/// A row would be longer than readers read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooLong {
    /// The row's length in bytes.
    pub length: usize,
}

impl TooLong {
    /// Refuses a row that no reader would read.
    pub(crate) fn refuse(row: &[u8]) -> Result<(), TooLong> {
        if row.len() > MAX_LINE { Err(TooLong { length: row.len() }) } else { Ok(()) }
    }
}

impl fmt::Display for TooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the row would have {} bytes; a line has at most {MAX_LINE}", self.length)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Absent(run) => write!(f, "there is no ledger of run {run} here"),
            Error::Damaged { fault, count, .. } => {
                write!(f, "the ledger is damaged: {fault}")?;
                if *count > 1 {
                    write!(f, " ({count} faults in all)")?;
                }
                Ok(())
            }
            Error::TooLong(error) => error.fmt(f),
            Error::NotRecorded { first, count: 1, .. } => write!(f, "entry {first} was not recorded"),
            Error::NotRecorded { first, count, .. } => {
                let last = first + u64::try_from(*count).unwrap_or(0) - 1;
                write!(f, "entries {first} to {last} were not recorded")
            }
            Error::Lock(error) => error.fmt(f),
            Error::File(error) => error.fmt(f),
            Error::NoSuchLine { line, lines } => {
                write!(f, "there is no line {line}: the ledger has {lines}")
            }
            Error::NotDamaged { line } => {
                write!(f, "line {line} and what follows hold: nothing there needs a repair")
            }
            Error::StillDamaged(fault) => write!(f, "what stands before that line does not hold: {fault}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::NotRecorded { source, .. } => Some(source),
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

/// What to record: already scrubbed.
#[derive(Clone, Debug)]
pub struct Transition {
    /// What kind.
    pub kind: Kind,
    /// Of which task; empty for the run itself.
    pub task_id: TaskId,
    /// What goes with it.
    pub payload: Object,
    /// How many secrets were scrubbed out of it.
    pub redactions: u64,
}

/// The receipt for an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Recorded {
    /// Its number.
    pub seq: u64,
    /// Its hash.
    pub entry_hash: Digest,
}

/// Whether a ledger that is not there is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Missing {
    /// Make it.
    Create,
    /// It is an error.
    Refuse,
}

/// A run's ledger, open for appending under its lock.
#[derive(Debug)]
pub struct Ledger {
    file: AppendFile,
    _lock: Lock,
    entries: u64,
    head: Digest,
    closed: bool,
    lacks_newline: bool,
    set_aside: Option<TornTail>,
}

impl Ledger {
    /// Opens a run's ledger to extend it: takes the lock, revalidates from genesis, and sets a
    /// torn tail aside. `waiting` is told who holds the lock before a wait begins.
    ///
    /// # Errors
    ///
    /// If it is absent, damaged, locked, or can't be read or written.
    pub fn open(
        project: &Project,
        run: &RunId,
        missing: Missing,
        wait: Wait,
        waiting: impl FnOnce(&str),
    ) -> Result<Ledger, Error> {
        let folder = project.ledger_folder(run);
        let path = project.ledger(run);
        match missing {
            Missing::Create => durable::create_private_folders(project.root(), &folder)?,
            Missing::Refuse => {
                durable::refuse_links(project.root(), &folder)?;
                if !path.exists() {
                    return Err(Error::Absent(run.clone()));
                }
            }
        }
        let lock = Lock::take(&project.ledger_lock(run), wait, waiting)?;
        let mut file = AppendFile::open(&path)?;
        let unreadable = |source| durable::Error::new("can't read", &path, source);
        let outcome = read::walk_ledger(
            file.file(),
            file.length(),
            LedgerRows::unvisited(Some(run)),
            LastLine::Settled,
            read::threads(file.length()),
        )
        .map_err(unreadable)?;
        let plan = recover::plan(run, &outcome)?;
        let set_aside = recover::execute(&plan, &path, &mut file)?;
        Ok(Ledger {
            file,
            _lock: lock,
            entries: outcome.end.entry,
            head: outcome.rows.head(),
            closed: outcome.rows.closed(),
            lacks_newline: outcome.unterminated,
            set_aside,
        })
    }

    /// How many entries there are.
    #[must_use]
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// The last entry's hash; 64 zeros if there is none.
    #[must_use]
    pub fn head(&self) -> Digest {
        self.head
    }

    /// Whether a `run.closed` was recorded.
    #[must_use]
    pub fn closed(&self) -> bool {
        self.closed
    }

    /// The torn tail that opening set aside.
    #[must_use]
    pub fn set_aside(&self) -> Option<&TornTail> {
        self.set_aside.as_ref()
    }

    /// Appends transitions with one write and, for [`Sync::Data`], one sync.
    ///
    /// # Errors
    ///
    /// If they can't be recorded: then none of them is, and this handle records nothing more.
    pub fn append(&mut self, transitions: &[Transition], sync: Sync) -> Result<Vec<Recorded>, Error> {
        let mut bytes = Vec::new();
        if self.lacks_newline {
            bytes.push(b'\n');
        }
        let mut recorded = Vec::with_capacity(transitions.len());
        let (mut seq, mut head, mut closed) = (self.entries, self.head, self.closed);
        for transition in transitions {
            let Transition { kind, task_id, payload, redactions } = transition;
            let (row, hash) = RowText::next(kind, task_id, payload, (seq, &head), *redactions, now());
            TooLong::refuse(row.as_bytes()).map_err(Error::TooLong)?;
            bytes.extend_from_slice(row.as_bytes());
            bytes.push(b'\n');
            recorded.push(Recorded { seq, entry_hash: hash });
            closed |= kind.as_str() == "run.closed";
            head = hash;
            seq += 1;
        }
        self.file.append(&bytes, sync).map_err(|source| Error::NotRecorded {
            first: self.entries,
            count: transitions.len(),
            source,
        })?;
        (self.entries, self.head, self.closed) = (seq, head, closed);
        self.lacks_newline = false;
        Ok(recorded)
    }
}

/// Seconds since 1970 UTC, to the microsecond.
fn now() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (since.as_secs_f64() * 1e6).round() / 1e6
}
