//! The explicit way out of a damaged ledger: everything from a line on is set aside, and that
//! this was done is recorded as an entry.

use std::io::Write;
use std::path::PathBuf;

use waybill_verifier::chain::{LastLine, Walk};
use waybill_verifier::hash::Digest;
use waybill_verifier::id::{Kind, RunId, TaskId};
use waybill_verifier::json::{Object, Value};
use waybill_verifier::ledger::{LedgerRows, RowText};

use super::recover::set_aside;
use super::{Error, Recorded, now};
use crate::durable::{self, AppendFile};
use crate::lock::{Lock, Wait};
use crate::project::Project;

/// What a repair did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Repaired {
    /// The file that has the rest now, beside the ledger.
    pub aside: PathBuf,
    /// How many bytes that is.
    pub length: u64,
    /// How many entries stand before it.
    pub entries: u64,
    /// The entry that records the repair (kind `ledger.repaired`).
    pub entry: Recorded,
}

/// Sets everything from line `from_line` (from 1) aside, into `.aside-<entry>` beside the
/// ledger, and records that with the rest's length and SHA-256.
///
/// The shorter ledger, with its new entry, replaces the old one at once: a crash leaves either.
///
/// # Errors
///
/// If there is no such line, what stands before it does not hold, or a file can't be written.
pub fn repair(
    project: &Project,
    run: &RunId,
    from_line: u64,
    wait: Wait,
    waiting: impl FnOnce(&str),
) -> Result<Repaired, Error> {
    let path = project.ledger(run);
    durable::refuse_links(project.root(), &project.ledger_folder(run))?;
    if !path.exists() {
        return Err(Error::Absent(run.clone()));
    }
    let _lock = Lock::take(&project.ledger_lock(run), wait, waiting)?;
    let file = AppendFile::open(&path)?;
    let bytes = file.read_at(0, file.length())?;
    let split = line_offset(&bytes, from_line)?;
    let (kept, rest) = bytes.split_at(split);

    let mut walk = Walk::new(LedgerRows::unvisited(Some(run)));
    walk.push(kept);
    let outcome = walk.finish(LastLine::Settled);
    if let Some(fault) = outcome.faults.first() {
        return Err(Error::StillDamaged(fault.clone()));
    }
    let entries = outcome.end.entry;
    let length = u64::try_from(rest.len()).unwrap_or(u64::MAX);
    let aside = set_aside(&path, &format!(".aside-{entries}"), rest)?;
    let name = aside.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let payload = Object::of([
        ("from_line", Value::from(from_line)),
        ("set_aside", Value::from(name)),
        ("bytes", Value::from(length)),
        ("sha256", Value::from(Digest::of(rest).to_hex())),
    ]);
    let kind = Kind::new("ledger.repaired").expect("it fits the pattern");
    let task_id = TaskId::new("").expect("the run itself");
    let (row, entry_hash) =
        RowText::next(&kind, &task_id, &payload, (entries, &outcome.rows.head()), 0, now());
    durable::replace(&path, |file| {
        file.write_all(kept)?;
        file.write_all(row.as_bytes())?;
        file.write_all(b"\n")
    })?;
    Ok(Repaired { aside, length, entries, entry: Recorded { seq: entries, entry_hash } })
}

fn line_offset(bytes: &[u8], line: u64) -> Result<usize, Error> {
    let mut at = 0;
    let mut number = 1;
    while number < line {
        match memchr::memchr(b'\n', &bytes[at..]) {
            Some(end) => at += end + 1,
            None => return Err(Error::NoSuchLine { line, lines: number }),
        }
        number += 1;
    }
    if at >= bytes.len() || line == 0 {
        let lines = number.saturating_sub(1);
        return Err(Error::NoSuchLine { line, lines });
    }
    Ok(at)
}
