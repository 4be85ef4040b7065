//! The audit log's writer: one row behind another, under the lock that the reference takes too.
//!
//! Appending reads the whole log first: nothing goes behind rows that do not hold. What a crash
//! leaves is set aside as `.torn-<entry>` beside the day's file. A row stands in the file of its
//! day, or in the newest one if the clock was set back: files are read by date, so a row in an
//! earlier one would break the chain for ever.

mod archive;
mod read;

use std::fmt;
use std::path::{Path, PathBuf};

use waybill_verifier::audit::{self, DayFile, Draft, Event, FileFault, Mend, Outcome};
use waybill_verifier::chain::{Fault, LastLine, Place};
use waybill_verifier::hash::Digest;
use waybill_verifier::tag::MasterKey;

use crate::durable::{self, AppendFile, Sync};
use crate::lock::{FileLock, LockError, Wait};
use crate::log::recover;
use crate::master::{self, KeyFile, Tagged};
use crate::project::Project;
pub use archive::{Archived, archive};
pub use read::{LOCK, names, push_day, read};

/// Why an audit log can't be extended, read or packed.
#[derive(Debug)]
pub enum Error {
    /// A line does not hold.
    Damaged {
        /// The file, relative to the audit folder.
        name: String,
        /// The first fault.
        fault: Fault,
    },
    /// A file as such does not hold.
    BadFile(FileFault),
    /// The clock is behind days that are packed already.
    ClockBehind {
        /// The last packed day.
        archived: String,
    },
    /// There is no audit log.
    Absent,
    /// A file that was packed does not unpack to what it was.
    NotPacked(PathBuf),
    /// The key.
    Key(master::Error),
    /// The lock.
    Lock(LockError),
    /// A file.
    File(durable::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Damaged { name, fault } => {
                write!(f, "the audit log is damaged, and not extended: {name}: {fault}")
            }
            Error::BadFile(FileFault { name, fault, detail }) => {
                write!(f, "the audit log is damaged, and not extended: {name}: {fault}: {detail}")
            }
            Error::ClockBehind { archived } => write!(
                f,
                "the clock is not past {archived}, whose audit rows are packed already: set it right"
            ),
            Error::Absent => f.write_str("there is no audit log here"),
            Error::NotPacked(path) => {
                write!(f, "{} does not unpack to what it was made of; the day was kept", path.display())
            }
            Error::Key(error) => error.fmt(f),
            Error::Lock(error) => error.fmt(f),
            Error::File(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Key(error) => error.source(),
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

impl From<master::Error> for Error {
    fn from(error: master::Error) -> Error {
        Error::Key(error)
    }
}

impl From<LockError> for Error {
    fn from(error: LockError) -> Error {
        Error::Lock(error)
    }
}

/// A row that was recorded, and what recording it had to do first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recorded {
    /// Its tag.
    pub hmac: Digest,
    /// Its file.
    pub path: PathBuf,
    /// The HMAC key's file, if it was made for this row: whoever records should say so.
    pub key_made: Option<PathBuf>,
    /// Where the bytes of a row that was never acknowledged are now.
    pub set_aside: Option<PathBuf>,
}

/// Appends the row of a draft, durably; `draft.timestamp` is the time now.
///
/// # Errors
///
/// If the log does not hold, the key is missing or refused, or a file can't be written. Nothing
/// was then recorded.
pub fn record(project: &Project, key: &KeyFile, draft: &Draft) -> Result<Recorded, Error> {
    let recorded = record_unless(project, key, draft, |_| false)?;
    Ok(recorded.expect("nothing was looked for"))
}

/// Appends the row of a draft unless one is there already, as `there` tells; both under one lock,
/// so that two who record the same thing at once record it once. Gives none if it was there.
///
/// # Errors
///
/// As [`record`].
pub fn record_unless(
    project: &Project,
    key: &KeyFile,
    draft: &Draft,
    mut there: impl FnMut(&Event) -> bool,
) -> Result<Option<Recorded>, Error> {
    let folder = project.audit();
    durable::create_private_folders(project.root(), &folder)?;
    let _lock = FileLock::take(&folder.join(LOCK), Wait::Yes, || {})?;
    archive::finish_interrupted(&folder)?;
    let master::Found { key, made } = key.read_or_make(tagged(project)?)?;
    let mut found = false;
    let visit = |event: &Event, _: Place| found = found || there(event);
    let outcome = read::walk(&folder, Some(&key), LastLine::Settled, visit)?;
    let set_aside = mend(&folder, holds(&outcome)?)?;
    let (head, path) = (outcome.head, day_file(&folder, &outcome.days, draft.timestamp.day())?);
    if found {
        return Ok(None);
    }
    let (mut row, hmac) = audit::next(&key, &head, draft);
    row.push(b'\n');
    AppendFile::open(&path)?.append(&row, Sync::Data)?;
    Ok(Some(Recorded { hmac, path, key_made: made, set_aside }))
}

/// Whether the log has an event as `is` tells, among those that hold. Without the key, what
/// events say is not checked.
///
/// # Errors
///
/// If a file can't be read. That there is no log is no error: it has no event.
pub fn has(
    project: &Project,
    key: Option<&MasterKey>,
    is: impl Fn(&Event) -> bool,
) -> Result<bool, durable::Error> {
    let folder = project.audit();
    durable::refuse_links(project.root(), &folder)?;
    if !folder.exists() {
        return Ok(false);
    }
    let found = std::cell::Cell::new(false);
    read(&folder, key, || |event: &Event, _: Place| found.set(found.get() || is(event)))?;
    Ok(found.get())
}

/// What has to be mended in a log that may be extended.
fn holds<V>(outcome: &Outcome<V>) -> Result<Option<&Mend>, Error> {
    if let Some(fault) = outcome.file_faults.first() {
        return Err(Error::BadFile(fault.clone()));
    }
    match (&outcome.mend, outcome.faults.first()) {
        (Some(mend), _) => Ok(Some(mend)),
        (None, None) => Ok(None),
        (None, Some((name, fault))) => Err(Error::Damaged { name: name.clone(), fault: fault.clone() }),
    }
}

/// Mends what a crash left at the end of a log.
fn mend(folder: &Path, mend: Option<&Mend>) -> Result<Option<PathBuf>, Error> {
    match mend {
        None => Ok(None),
        Some(Mend::AddNewline { name }) => {
            AppendFile::open(&folder.join(name))?.append(b"\n", Sync::Data)?;
            Ok(None)
        }
        Some(Mend::SetAside { name, recovery }) => {
            let path = folder.join(name);
            let plan = recover::Plan::SetAside {
                from: recovery.place.byte,
                length: recovery.torn_bytes,
                entry: recovery.place.entry,
            };
            let torn = recover::execute(&plan, &path, &mut AppendFile::open(&path)?)?;
            Ok(torn.map(|torn| torn.path))
        }
    }
}

/// The file that the next row belongs in.
fn day_file(folder: &Path, days: &[String], today: &str) -> Result<PathBuf, Error> {
    let last = days.last().and_then(|name| DayFile::of(name));
    let date = match last {
        Some(day) if day.archived() && today <= day.date => {
            return Err(Error::ClockBehind { archived: day.date.to_owned() });
        }
        Some(day) => today.max(day.date),
        None => today,
    };
    Ok(folder.join(format!("{date}.jsonl")))
}

/// Whether rows in a project are tagged already, in its audit log or in a spine.
///
/// # Errors
///
/// If a folder can't be listed.
pub fn tagged(project: &Project) -> Result<Tagged, durable::Error> {
    let is_row_file = |name: &str| name.ends_with(".jsonl") || name.ends_with(".jsonl.gz");
    let audit = project.audit();
    let mut folders = vec![audit.join("archive"), audit];
    folders.extend(list(&project.lineage())?);
    for folder in folders {
        for path in list(&folder)? {
            let named = path.file_name().and_then(|name| name.to_str()).is_some_and(is_row_file);
            if named && path.metadata().is_ok_and(|metadata| metadata.len() > 0) {
                return Ok(Tagged::Rows);
            }
        }
    }
    Ok(Tagged::Nothing)
}

/// What is in a folder, if it is one.
fn list(folder: &Path) -> Result<Vec<PathBuf>, durable::Error> {
    let failed = |source| durable::Error::new("can't list", folder, source);
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let entries = std::fs::read_dir(folder).map_err(failed)?;
    entries.map(|entry| Ok(entry.map_err(failed)?.path())).collect()
}

#[cfg(test)]
mod tests;
