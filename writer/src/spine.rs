//! The lineage spine's writer: a row, on disk, and then the head file that counts it.
//!
//! Both under `flock` on `.spine.lock`, which the reference takes too. A crash between the two
//! leaves the head file behind, which readers know. Nothing goes behind rows that do not hold, or
//! that the head file says were cut.

use std::fmt;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use waybill_verifier::chain::{LastLine, Outcome, Visit};
use waybill_verifier::hash::Digest;
use waybill_verifier::report::Status;
use waybill_verifier::spine::{self, Draft, Entry, HeadFile, SpineRows};
use waybill_verifier::tag::MasterKey;

use crate::durable::{self, AppendFile, Sync};
use crate::lock::{FileLock, LockError, Wait};
use crate::log::recover::{self, TornTail};
use crate::project::Project;
use crate::read as files;

/// The rows.
pub const FILE: &str = "spine.jsonl";
/// How many there are.
pub const HEAD: &str = "spine.head";
/// The lock that writers take, with `flock`.
pub const LOCK: &str = ".spine.lock";

/// A longer head file is none.
const MAX_HEAD: u64 = 1 << 20;

/// Why a spine can't be extended.
#[derive(Debug)]
pub enum Error {
    /// It does not hold; the sentence says how.
    Damaged(String),
    /// The lock.
    Lock(LockError),
    /// A file.
    File(durable::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Damaged(sentence) => write!(f, "the spine is damaged, and not extended: {sentence}"),
            Error::Lock(error) => error.fmt(f),
            Error::File(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Damaged(_) => None,
            Error::Lock(error) => error.source(),
            Error::File(error) => error.source(),
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

/// A row that is in the spine now.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Appended {
    /// Its hash.
    pub entry_hash: Digest,
    /// The torn tail that opening set aside.
    pub set_aside: Option<TornTail>,
}

/// Appends the row of a draft, unless one of the same artifact with the same content is there
/// already: then it is that one's hash. `folder` is the spine's, below the project's.
///
/// # Errors
///
/// If the spine does not hold, or can't be written.
pub fn append(project: &Project, folder: &Path, key: &MasterKey, draft: &Draft) -> Result<Appended, Error> {
    durable::create_private_folders(project.root(), folder)?;
    let _lock = FileLock::take(&folder.join(LOCK), Wait::Yes, || {})?;
    let path = folder.join(FILE);
    let mut file = AppendFile::open(&path)?;
    let head = read_head(folder)?;
    let mut there = None;
    let look = |entry: &Entry, _| {
        if entry.artifact_path == draft.artifact_path && entry.content_hash == draft.content_hash {
            there = there.or(Some(entry.entry_hash));
        }
    };
    let unreadable = |source| durable::Error::new("can't read", &path, source);
    let rows = SpineRows::new(Some(key), &head, look);
    let outcome = files::walk(file.file(), file.length(), rows, LastLine::Settled).map_err(unreadable)?;
    let damaged = |sentence: String| Error::Damaged(sentence);
    let plan = recover::plan_of(&outcome).map_err(|fault| damaged(fault.to_string()))?;
    let [_, _, of_head] = spine::checks((FILE, HEAD), &outcome, &head);
    if of_head.status == Status::Fail {
        return Err(damaged(of_head.sentence));
    }
    let set_aside = recover::execute(&plan, &path, &mut file)?;
    let (count, prev, unterminated) = (outcome.end.entry, outcome.rows.head(), outcome.unterminated);
    if let Some(entry_hash) = there {
        // What a crash left behind is caught up with.
        write_head(folder, key, count, prev.as_ref())?;
        return Ok(Appended { entry_hash, set_aside });
    }
    let (row, entry_hash) = spine::next(key, prev.as_ref(), draft);
    let mut bytes = if unterminated { vec![b'\n'] } else { Vec::new() };
    bytes.extend_from_slice(&row);
    bytes.push(b'\n');
    file.append(&bytes, Sync::Data)?;
    write_head(folder, key, count + 1, Some(&entry_hash))?;
    Ok(Appended { entry_hash, set_aside })
}

fn write_head(
    folder: &Path,
    key: &MasterKey,
    count: u64,
    hash: Option<&Digest>,
) -> Result<(), durable::Error> {
    let bytes = spine::head(key, count, hash);
    let path = folder.join(HEAD);
    if std::fs::read(&path).is_ok_and(|there| there == bytes) {
        return Ok(());
    }
    durable::replace(&path, |file: &mut File| file.write_all(&bytes))
}

/// A walk, and the head file beside the rows.
pub type Walked<V> = (Outcome<SpineRows<V>>, HeadFile);

/// Walks the spine in a folder, for who checks: no lock, no trace. Gives none if there are no rows'
/// file.
///
/// # Errors
///
/// If it can't be read.
pub fn walk<V: Visit<Entry>>(
    folder: &Path,
    key: Option<&MasterKey>,
    visitor: V,
) -> Result<Option<Walked<V>>, durable::Error> {
    walk_file(&folder.join(FILE), key, visitor)
}

/// The same, of a rows' file with any name; the head file is beside it.
///
/// # Errors
///
/// If it can't be read.
pub fn walk_file<V: Visit<Entry>>(
    path: &Path,
    key: Option<&MasterKey>,
    visitor: V,
) -> Result<Option<Walked<V>>, durable::Error> {
    let folder = durable::folder_of(path);
    let last_line = FileLock::last_line(&folder.join(LOCK));
    // The head first: rows that come meanwhile leave it behind, never ahead.
    let head = read_head(folder)?;
    let Some(file) = durable::open_if_there(path)? else { return Ok(None) };
    let unreadable = |source| durable::Error::new("can't read", path, source);
    let size = files::size(&file).map_err(unreadable)?;
    let rows = SpineRows::new(key, &head, visitor);
    let outcome = files::walk(&file, size, rows, last_line).map_err(unreadable)?;
    Ok(Some((outcome, head)))
}

fn read_head(folder: &Path) -> Result<HeadFile, durable::Error> {
    let path = folder.join(HEAD);
    let Some(file) = durable::open_if_there(&path)? else { return Ok(HeadFile::Missing) };
    let mut bytes = Vec::new();
    file.take(MAX_HEAD)
        .read_to_end(&mut bytes)
        .map_err(|source| durable::Error::new("can't read", &path, source))?;
    Ok(HeadFile::read(Some(&bytes)))
}
