//! Exit codes: the one place where an outcome becomes a number.

use std::process::ExitCode;

use waybill_verifier::report::Verdict;

use crate::lock::LockError;
use crate::{anchoring, audit, git, log, master};

/// How the program ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    /// It did what was asked.
    Done,
    /// A check came to a verdict.
    Verdict(Verdict),
    /// The call's words are wrong.
    Usage,
    /// A fault of this program.
    Internal,
    /// A file can't be read or written.
    Io,
    /// Another process holds the lock.
    Locked,
    /// What was asked for is not there.
    Absent,
    /// The evidence does not allow what was asked.
    Failed,
    /// A supervised command's own code, or one that stands for it.
    Code(u8),
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(match exit {
            Exit::Done => 0,
            Exit::Verdict(verdict) => verdict.exit_code(),
            Exit::Absent => 1,
            Exit::Failed => 2,
            Exit::Usage => 64,
            Exit::Internal => 70,
            Exit::Io => 74,
            Exit::Locked => 75,
            Exit::Code(code) => code,
        })
    }
}

/// Why a command could not do what was asked: a line for people, and the code.
#[derive(Debug)]
pub struct Failure {
    /// The code.
    pub exit: Exit,
    /// What, where, and what to do; one line.
    pub message: String,
}

impl Failure {
    pub(crate) fn usage(message: impl Into<String>) -> Failure {
        Failure { exit: Exit::Usage, message: message.into() }
    }

    pub(crate) fn io(error: &dyn std::error::Error) -> Failure {
        Failure { exit: Exit::Io, message: chain(error) }
    }
}

impl From<crate::durable::Error> for Failure {
    fn from(error: crate::durable::Error) -> Failure {
        let mut failure = Failure::io(&error);
        match error.kind() {
            std::io::ErrorKind::NotFound => failure.exit = Exit::Absent,
            std::io::ErrorKind::PermissionDenied => {
                failure.message.push_str("; run as the user who owns it, or mend its mode");
            }
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
                failure.message.push_str("; free some space, then try again");
            }
            _ => {}
        }
        failure
    }
}

impl From<log::Error> for Failure {
    fn from(error: log::Error) -> Failure {
        let message = chain(&error);
        let (exit, advice) = match &error {
            log::Error::Absent(run) => (Exit::Absent, format!("; 'waybill ledger open {run}' starts one")),
            log::Error::Damaged { run, fault, .. } => (
                Exit::Failed,
                format!(
                    "; 'waybill ledger repair {run} --from-line {}' sets that line and the rest aside",
                    fault.place.line
                ),
            ),
            log::Error::NotDamaged { .. } => (
                Exit::Usage,
                String::from("; give the line that verify names, or --accept-loss to cut good entries off"),
            ),
            log::Error::Lock(LockError::Held { .. }) => {
                (Exit::Locked, String::from("; wait for it to end, or leave --no-wait out"))
            }
            log::Error::TooLong(_) => {
                (Exit::Usage, String::from("; record a path or a hash instead of the content"))
            }
            log::Error::NoSuchLine { .. } | log::Error::StillDamaged(_) => (Exit::Usage, String::new()),
            log::Error::NotRecorded { .. } | log::Error::Lock(_) | log::Error::File(_) => {
                (Exit::Io, String::new())
            }
        };
        Failure { exit, message: message + &advice }
    }
}

impl From<master::Error> for Failure {
    fn from(error: master::Error) -> Failure {
        match error {
            master::Error::File(error) => error.into(),
            error => Failure::io(&error),
        }
    }
}

impl From<audit::Error> for Failure {
    fn from(error: audit::Error) -> Failure {
        let (exit, advice) = match error {
            audit::Error::Key(error) => return error.into(),
            audit::Error::File(error) => return error.into(),
            audit::Error::Damaged { .. } | audit::Error::BadFile(_) => {
                (Exit::Failed, "; 'waybill audit verify' says all of it; get the file back from a copy")
            }
            audit::Error::Absent => (Exit::Absent, ""),
            audit::Error::Lock(LockError::Held { .. }) => (Exit::Locked, "; wait for it to end"),
            audit::Error::ClockBehind { .. } | audit::Error::NotPacked(_) | audit::Error::Lock(_) => {
                (Exit::Io, "")
            }
        };
        Failure { exit, message: chain(&error) + advice }
    }
}

impl From<anchoring::Error> for Failure {
    fn from(error: anchoring::Error) -> Failure {
        use anchoring::Error;
        let message = chain(&error);
        let (exit, advice) = match error {
            Error::Log(error) => return error.into(),
            Error::File(error) => return error.into(),
            Error::NoRepository => (Exit::Absent, String::from("; 'git init' makes one")),
            Error::NoAnchor { .. } => (Exit::Absent, String::new()),
            Error::NothingToAnchor(_) => (Exit::Absent, String::new()),
            Error::BadAnchor { remote: None, .. } => {
                (Exit::Failed, String::from("; fetch it from a remote that has it whole"))
            }
            Error::BadAnchor { .. } => (Exit::Failed, String::from("; nothing was taken")),
            Error::Behind { run, remote: None, .. } => {
                (Exit::Failed, format!("; 'waybill ledger resume {run}' takes them over first"))
            }
            Error::Behind { run, remote: Some(remote), .. } => (
                Exit::Failed,
                format!("; 'waybill ledger fetch {run} --remote {remote}' takes them over first"),
            ),
            Error::Ahead { run, .. } => {
                (Exit::Failed, format!("; 'waybill ledger anchor {run}' and push carry them there instead"))
            }
            Error::Diverged { run, remote, .. } => {
                let remote = remote.map(|remote| format!(" --remote {remote}")).unwrap_or_default();
                let advice =
                    format!("; 'waybill ledger diff {run}{remote}' shows both, and --keep settles it");
                (Exit::Verdict(Verdict::Diverged), advice)
            }
            Error::UnhashedFieldsDiffer { run, .. } => {
                (Exit::Failed, format!("; 'waybill ledger diff {run}' shows both"))
            }
            Error::NotDiverged(_) => (Exit::Usage, String::from(": there is nothing to settle")),
            Error::Layout(_) => (Exit::Failed, String::new()),
            Error::Audit(error) => {
                let inner = Failure::from(error);
                let message = format!("it is anchored, but not in the audit log: {}", inner.message);
                return Failure { exit: inner.exit, message: message + "; then anchor once more" };
            }
            Error::Git(git::Error::File(_)) => (Exit::Io, String::new()),
            Error::Git(_) => (Exit::Io, String::new()),
        };
        Failure { exit, message: message + &advice }
    }
}

impl From<git::Error> for Failure {
    fn from(error: git::Error) -> Failure {
        anchoring::Error::from(error).into()
    }
}

/// An error and its sources, each said once.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut message = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let text = error.to_string();
        if !message.ends_with(&text) {
            message.push_str(": ");
            message.push_str(&text);
        }
        source = error.source();
    }
    message
}
