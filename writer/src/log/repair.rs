//! The explicit way out of a damaged ledger: everything from a line on is set aside, and that
//! this was done is recorded as an entry.

use std::io::{self, BufRead, BufReader, Write};
use std::path::PathBuf;

use waybill_verifier::chain::LastLine;
use waybill_verifier::hash::Hasher;
use waybill_verifier::id::{Kind, RunId, TaskId};
use waybill_verifier::json::{Object, Value};
use waybill_verifier::ledger::{LedgerRows, RowText};

use super::recover::set_aside;
use super::{Error, Recorded, now};
use crate::durable::{self, AppendFile};
use crate::lock::{Lock, Wait};
use crate::project::Project;
use crate::read;

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

/// Whether entries that hold may be set aside.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Loss {
    /// They may.
    Accept,
    /// Only what is damaged, and what stands behind it.
    Refuse,
}

/// Sets everything from line `from_line` (from 1) aside, into `.aside-<entry>` beside the
/// ledger, and records that with the rest's length and SHA-256.
///
/// The shorter ledger, with its new entry, replaces the old one at once: a crash leaves either.
///
/// # Errors
///
/// If there is no such line, what stands before it does not hold, what follows holds and no loss
/// is accepted, or a file can't be written.
pub fn repair(
    project: &Project,
    run: &RunId,
    from_line: u64,
    loss: Loss,
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
    let unreadable = |source| durable::Error::new("can't read", &path, source);
    let split = line_offset(&file, from_line).map_err(unreadable)??;

    let walk = |to| read::walk(file.file(), to, LedgerRows::unvisited(Some(run)), LastLine::Settled);
    let outcome = walk(split).map_err(unreadable)?;
    if let Some(fault) = outcome.faults.first() {
        return Err(Error::StillDamaged(fault.clone()));
    }
    if loss == Loss::Refuse && walk(file.length()).map_err(unreadable)?.fault_count == 0 {
        return Err(Error::NotDamaged { line: from_line });
    }
    let entries = outcome.end.entry;
    let length = file.length() - split;
    let mut rest = Hasher::new();
    io::copy(&mut file.from(split), &mut Hashing(&mut rest)).map_err(unreadable)?;
    let aside = set_aside(&path, &format!(".aside-{entries}"), &file, split)?;
    let name = aside.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let payload = Object::of([
        ("from_line", Value::from(from_line)),
        ("set_aside", Value::from(name)),
        ("bytes", Value::from(length)),
        ("sha256", Value::from(rest.finish().to_hex())),
    ]);
    let kind = Kind::new("ledger.repaired").expect("it fits the pattern");
    let task_id = TaskId::new("").expect("the run itself");
    let (row, entry_hash) =
        RowText::next(&kind, &task_id, &payload, (entries, &outcome.rows.head()), 0, now());
    durable::replace(&path, |new| {
        io::copy(&mut file.from(0).to(split), new)?;
        new.write_all(row.as_bytes())?;
        new.write_all(b"\n")
    })?;
    Ok(Repaired { aside, length, entries, entry: Recorded { seq: entries, entry_hash } })
}

/// Hashes what is written to it.
struct Hashing<'a>(&'a mut Hasher);

impl Write for Hashing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The offset of a line's first byte.
fn line_offset(file: &AppendFile, line: u64) -> io::Result<Result<u64, Error>> {
    let mut reader = BufReader::with_capacity(256 << 10, file.from(0));
    let (mut at, mut lines) = (0, 0);
    while lines + 1 < line || line == 0 {
        let length = reader.skip_until(b'\n')?;
        if length == 0 {
            return Ok(Err(Error::NoSuchLine { line, lines }));
        }
        at += u64::try_from(length).unwrap_or(0);
        lines += 1;
    }
    Ok(if at < file.length() { Ok(at) } else { Err(Error::NoSuchLine { line, lines }) })
}
