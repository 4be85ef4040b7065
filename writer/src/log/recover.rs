//! What to do with a ledger that a crash interrupted: a pure plan, then its execution.

use std::path::{Path, PathBuf};

use waybill_verifier::chain::{FaultKind, Outcome};

use super::Error;
use crate::durable::{self, AppendFile};

/// What opening a ledger has to do first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Plan {
    /// Nothing: it holds.
    Extend,
    /// Set the bytes from `from` on aside, as what was torn at entry `entry`.
    SetAside {
        /// The first torn byte.
        from: u64,
        /// How many bytes are torn.
        length: u64,
        /// The number of the entry that was being written.
        entry: u64,
    },
}

/// A torn tail that was set aside.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TornTail {
    /// The file that has the bytes now, beside the ledger.
    pub path: PathBuf,
    /// How many they are.
    pub length: u64,
    /// The number of the entry that was being written, and was never acknowledged.
    pub entry: u64,
}

/// Plans the recovery of a walked ledger.
///
/// # Errors
///
/// If it has any fault but a torn tail.
pub fn plan<R>(outcome: &Outcome<R>) -> Result<Plan, Error> {
    match (&outcome.recovery, outcome.faults.first()) {
        (_, None) => Ok(Plan::Extend),
        (Some(recovery), Some(fault)) if fault.kind == FaultKind::TornTail => Ok(Plan::SetAside {
            from: recovery.place.byte,
            length: recovery.torn_bytes,
            entry: recovery.place.entry,
        }),
        (_, Some(fault)) => Err(Error::Damaged { fault: fault.clone(), count: outcome.fault_count }),
    }
}

/// Executes a plan. The torn bytes are on disk under their new name before they are cut, so a
/// crash in between only makes the next open do it again.
///
/// # Errors
///
/// If a file can't be written; the ledger is then as it was, or cut with its tail set aside.
pub fn execute(plan: &Plan, path: &Path, file: &mut AppendFile) -> Result<Option<TornTail>, Error> {
    let Plan::SetAside { from, length, entry } = *plan else { return Ok(None) };
    let torn = file.read_at(from, length)?;
    let aside = set_aside(path, &format!(".torn-{entry}"), &torn)?;
    file.truncate(from)?;
    Ok(Some(TornTail { path: aside, length, entry }))
}

/// Writes bytes to a file of their own beside the ledger: `name`, or `name-2`, `name-3`, … where
/// that has other bytes; a file that already has these very bytes is taken as it is.
pub(super) fn set_aside(path: &Path, name: &str, bytes: &[u8]) -> Result<PathBuf, durable::Error> {
    let mut number = 1;
    loop {
        let aside = match number {
            1 => path.with_file_name(name),
            _ => path.with_file_name(format!("{name}-{number}")),
        };
        match durable::create(&aside, bytes) {
            Ok(()) => return Ok(aside),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                if std::fs::read(&aside).is_ok_and(|there| there == bytes) {
                    return Ok(aside);
                }
                number += 1;
            }
            Err(error) => return Err(error),
        }
    }
}
