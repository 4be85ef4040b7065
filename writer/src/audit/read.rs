//! Reading an audit folder: its files in the order of the chain, each once.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use waybill_verifier::audit::{Event, Log, Outcome, Start, arrange};
use waybill_verifier::chain::{LastLine, Visit};
use waybill_verifier::tag::MasterKey;

use crate::durable::{self, Error, open_regular};
use crate::lock::FileLock;

/// The lock that writers of an audit log take, with `flock`.
pub const LOCK: &str = ".chain.lock";

/// Reads a whole log, for who checks: without its lock, and without a trace. Without the key,
/// tags are not checked.
///
/// What stands behind the last newline while a writer is at work is in flight, not torn.
///
/// # Errors
///
/// If a file can't be read.
pub fn read<V: Visit<Event>>(
    folder: &Path,
    key: Option<&MasterKey>,
    visitor: impl Fn() -> V,
) -> Result<Outcome<V>, Error> {
    let held = || FileLock::is_held(&folder.join(LOCK));
    let last_line = if held() { LastLine::InFlight } else { LastLine::Settled };
    let outcome = walk(folder, key, last_line, visitor())?;
    // A writer that began meanwhile left half a line, or moved a day while it was read.
    let disturbed = outcome.fault_count > 0 || !outcome.file_faults.is_empty();
    if disturbed && last_line == LastLine::Settled && held() {
        return walk(folder, key, LastLine::InFlight, visitor());
    }
    Ok(outcome)
}

/// Reads a whole log, for who holds its lock.
///
/// # Errors
///
/// If a file can't be read.
pub(super) fn walk<V: Visit<Event>>(
    folder: &Path,
    key: Option<&MasterKey>,
    last_line: LastLine,
    visitor: V,
) -> Result<Outcome<V>, Error> {
    let names = names(folder)?;
    let arranged = arrange(names.iter().map(String::as_str));
    let mut log = Log::new(key, Start::Genesis, visitor).in_folder(&arranged);
    for day in &arranged.days {
        log.open(day);
        push_day(&mut log, &folder.join(day.name))?;
    }
    Ok(log.finish(last_line))
}

/// Pushes the bytes of a day's file into a log that has opened it.
///
/// # Errors
///
/// If the file can't be read.
pub fn push_day<V: Visit<Event>>(log: &mut Log<V>, path: &Path) -> Result<(), Error> {
    let mut file = open_regular(path)?;
    let mut piece = vec![0; 256 << 10];
    loop {
        match file.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(length) => log.push(&piece[..length]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(source) => return Err(Error::new("can't read", path, source)),
        }
    }
}

/// The names of the files in an audit folder and in its archive, relative to it.
///
/// # Errors
///
/// If a folder can't be listed.
pub fn names(folder: &Path) -> Result<Vec<String>, Error> {
    let mut names = list(folder)?;
    let archive = folder.join("archive");
    if archive.is_dir() {
        durable::refuse_links(folder, &archive)?;
        names.extend(list(&archive)?.into_iter().map(|name| format!("archive/{name}")));
    }
    Ok(names)
}

fn list(folder: &Path) -> Result<Vec<String>, Error> {
    let failed = |source| Error::new("can't list", folder, source);
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if !entry.file_type().map_err(failed)?.is_dir() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    Ok(names)
}
