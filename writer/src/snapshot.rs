//! Snapshots: the working tree of a run at a step, as a commit and the event that names it.
//!
//! The ref comes first, then the event: what a crash leaves is a ref that no event names, and the
//! next snapshot of that step takes its place. A ref that an event names is never moved.

use waybill_verifier::id::RunId;
use waybill_verifier::journal::Snapshot;
use waybill_verifier::receipt::LastEvents;

use crate::project::Project;
use crate::worktree::{self, Worktree};
use crate::{durable, journal};

/// Takes a snapshot of the working tree as an event of a run: gives the step and the commit.
///
/// # Errors
///
/// If the journal does not hold, the step has a snapshot of another tree, or git can't.
pub fn take(
    project: &Project,
    run: &RunId,
    journal: &mut journal::Journal,
    taken: &LastEvents,
    step: Option<u64>,
    now: f64,
) -> Result<Taken, Error> {
    let worktree = Worktree::at(project.root())?;
    let step = step.unwrap_or(journal.events());
    let commit = worktree.commit(run, step)?;
    let recorded = taken.fork(run, step).map(|fork| fork.snapshot_sha);
    let there = worktree.snapshot(run, step)?;
    match &recorded {
        Some(recorded) if *recorded == commit => {
            worktree.keep(run, step, &commit, there.as_deref())?;
            return Ok(Taken { step, commit, event: None });
        }
        Some(recorded) => {
            let reference = worktree::reference(run, step);
            return Err(worktree::Error::Taken { reference, commit: recorded.clone() }.into());
        }
        // A ref that no event names is what a crash left between the two.
        None => worktree.keep(run, step, &commit, there.as_deref())?,
    }
    let fields = Snapshot { sha: &commit, step }.fields();
    let event = journal.append(Snapshot::EVENT, &fields, now, durable::Sync::Data)?;
    Ok(Taken { step, commit, event: Some(event) })
}

/// A snapshot that was taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Taken {
    /// The step.
    pub step: u64,
    /// The commit.
    pub commit: String,
    /// The event that records it; none if it was recorded before.
    pub event: Option<journal::Recorded>,
}

/// Why a snapshot or a fork can't be made.
#[derive(Debug)]
pub enum Error {
    /// The journal.
    Journal(journal::Error),
    /// Git.
    Git(worktree::Error),
}

impl From<journal::Error> for Error {
    fn from(error: journal::Error) -> Error {
        Error::Journal(error)
    }
}

impl From<worktree::Error> for Error {
    fn from(error: worktree::Error) -> Error {
        Error::Git(error)
    }
}
