//! What to do with a ledger that a crash interrupted: a pure plan, then its execution.

use std::path::{Path, PathBuf};

use waybill_verifier::chain::{Fault, FaultKind, Outcome};
use waybill_verifier::hash::Hasher;
use waybill_verifier::id::RunId;

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
pub fn plan<R>(run: &RunId, outcome: &Outcome<R>) -> Result<Plan, Error> {
    plan_of(outcome).map_err(|fault| Error::Damaged {
        run: run.clone(),
        fault: fault.clone(),
        count: outcome.fault_count,
    })
}

/// Plans the recovery of any walked chain.
///
/// # Errors
///
/// The first fault, if it has any but a torn tail.
pub fn plan_of<R>(outcome: &Outcome<R>) -> Result<Plan, &Fault> {
    match (&outcome.recovery, outcome.faults.first()) {
        (_, None) => Ok(Plan::Extend),
        (Some(recovery), Some(fault)) if fault.kind == FaultKind::TornTail => Ok(Plan::SetAside {
            from: recovery.place.byte,
            length: recovery.torn_bytes,
            entry: recovery.place.entry,
        }),
        (_, Some(fault)) => Err(fault),
    }
}

/// Executes a plan. The torn bytes are on disk under their new name before they are cut, so a
/// crash in between only makes the next open do it again.
///
/// # Errors
///
/// If a file can't be written; the ledger is then as it was, or cut with its tail set aside.
pub fn execute(plan: &Plan, path: &Path, file: &mut AppendFile) -> Result<Option<TornTail>, durable::Error> {
    let Plan::SetAside { from, length, entry } = *plan else { return Ok(None) };
    let aside = set_aside(path, &format!(".torn-{entry}"), file, from)?;
    file.truncate(from)?;
    Ok(Some(TornTail { path: aside, length, entry }))
}

/// Copies a ledger's bytes from `from` on to a file of their own beside it: `name`, or `name-2`,
/// `name-3`, … where that has other bytes; a file that already has these very bytes is taken as
/// it is.
pub(super) fn set_aside(
    path: &Path,
    name: &str,
    file: &AppendFile,
    from: u64,
) -> Result<PathBuf, durable::Error> {
    let mut number = 1;
    loop {
        let aside = match number {
            1 => path.with_file_name(name),
            _ => path.with_file_name(format!("{name}-{number}")),
        };
        match durable::create_with(&aside, |aside| std::io::copy(&mut file.from(from), aside).map(drop)) {
            Ok(()) => return Ok(aside),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                if has_same(&aside, file, from) {
                    return Ok(aside);
                }
                number += 1;
            }
            Err(error) => return Err(error),
        }
    }
}

fn has_same(aside: &Path, file: &AppendFile, from: u64) -> bool {
    let Ok(there) = durable::open_regular(aside) else { return false };
    let digest = |reader: &mut dyn std::io::Read| {
        let mut hasher = Hasher::new();
        let mut piece = vec![0; 64 << 10];
        loop {
            match reader.read(&mut piece) {
                Ok(0) => return Some(hasher.finish()),
                Ok(count) => hasher.update(&piece[..count]),
                Err(_) => return None,
            }
        }
    };
    let ours = digest(&mut file.from(from));
    ours.is_some() && ours == digest(&mut &there)
}
