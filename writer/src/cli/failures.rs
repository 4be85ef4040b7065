//! Exit codes of what journals, keys, receipts and snapshots can fail with.

use super::exit::{Exit, Failure, chain};
use crate::lock::LockError;
use crate::{identity, journal, receipt, registry, run, snapshot, spine, trust, worktree};

fn failure(exit: Exit, error: &dyn std::error::Error, advice: &str) -> Failure {
    Failure { exit, message: chain(error) + advice }
}

impl From<journal::Error> for Failure {
    fn from(error: journal::Error) -> Failure {
        match error {
            journal::Error::File(error) => error.into(),
            journal::Error::Absent(_) => {
                failure(Exit::Absent, &error, "; 'waybill journal record' starts one")
            }
            journal::Error::Damaged { .. } => {
                failure(Exit::Failed, &error, "; get it back from a copy: nothing goes behind it")
            }
            journal::Error::Draft(_) => failure(Exit::Usage, &error, ""),
            journal::Error::TooLong(_) => {
                failure(Exit::Usage, &error, "; record a path or a hash instead of the content")
            }
            journal::Error::Lock(LockError::Held { .. }) => {
                failure(Exit::Locked, &error, "; wait for it to end, or leave --no-wait out")
            }
            journal::Error::Lock(_) => failure(Exit::Io, &error, ""),
        }
    }
}

impl From<spine::Error> for Failure {
    fn from(error: spine::Error) -> Failure {
        match error {
            spine::Error::File(error) => error.into(),
            spine::Error::Damaged(_) => {
                failure(Exit::Failed, &error, "; 'waybill verify .sdd/lineage/escalations' says all of it")
            }
            spine::Error::Lock(_) => failure(Exit::Io, &error, ""),
        }
    }
}

impl From<identity::Error> for Failure {
    fn from(error: identity::Error) -> Failure {
        match error {
            identity::Error::File(error) => error.into(),
            error => failure(Exit::Io, &error, ""),
        }
    }
}

impl From<trust::Error> for Failure {
    fn from(error: trust::Error) -> Failure {
        match error {
            trust::Error::File(error) => error.into(),
            trust::Error::Malformed { .. } => failure(Exit::Usage, &error, "; mend it by hand"),
            error => failure(Exit::Io, &error, ""),
        }
    }
}

impl From<worktree::Error> for Failure {
    fn from(error: worktree::Error) -> Failure {
        let exit = match error {
            worktree::Error::NoGit(_) | worktree::Error::Git { .. } => Exit::Io,
            worktree::Error::NoWorktree(_) | worktree::Error::NoCommit => Exit::Absent,
            worktree::Error::Taken { .. } => Exit::Failed,
        };
        failure(exit, &error, "")
    }
}

impl From<receipt::Error> for Failure {
    fn from(error: receipt::Error) -> Failure {
        use receipt::Error;
        let exit = match error {
            Error::Identity(error) => return error.into(),
            Error::Key(error) => return error.into(),
            Error::Spine(error) => return error.into(),
            Error::Git(error) => return error.into(),
            Error::File(error) => return error.into(),
            Error::Audit(error) => {
                let mut failure = Failure::from(error);
                failure.message.insert_str(0, "the receipt's mirror in the audit log: ");
                return failure;
            }
            Error::NoIdentity | Error::NoSnapshot { .. } => Exit::Absent,
            Error::Journal { .. } | Error::OtherSnapshot { .. } | Error::Occupied(_) => Exit::Failed,
            Error::Text(_) => Exit::Usage,
        };
        failure(exit, &error, "")
    }
}

impl From<registry::Error> for Failure {
    fn from(error: registry::Error) -> Failure {
        use registry::Error;
        match error {
            Error::File(error) => error.into(),
            Error::NoFolder => failure(Exit::Usage, &error, ""),
            Error::Absent(_) => failure(Exit::Absent, &error, ""),
            Error::Taken(_) | Error::Damaged { .. } => failure(Exit::Failed, &error, ""),
            Error::Lock(LockError::Held { .. }) => failure(Exit::Locked, &error, ""),
            Error::Lock(_) => failure(Exit::Io, &error, ""),
        }
    }
}

impl From<run::Error> for Failure {
    fn from(error: run::Error) -> Failure {
        use run::Error;
        match error {
            Error::Registry(error) => error.into(),
            Error::Log(error) => error.into(),
            Error::Journal(error) => error.into(),
            Error::Anchoring(error) => error.into(),
            Error::File(error) => error.into(),
            Error::Refused(_) => failure(Exit::Failed, &error, ""),
            Error::Command { code, .. } => failure(Exit::Code(code), &error, ""),
            Error::System { .. } => failure(Exit::Io, &error, ""),
        }
    }
}

impl From<snapshot::Error> for Failure {
    fn from(error: snapshot::Error) -> Failure {
        match error {
            snapshot::Error::Journal(error) => error.into(),
            snapshot::Error::Git(error) => error.into(),
        }
    }
}
