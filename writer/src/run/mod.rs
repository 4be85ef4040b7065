//! Supervised runs: a command, recorded from its start to its end.
//!
//! Who calls whom: the command line makes a [`start::Start`]; `start` takes the run's lock, opens
//! its records and launches the child; `supervisor` then waits for whatever comes first (signals,
//! the child's end, lines on the socket, a deadline), and `finish` writes down how it ended.
//! Decisions are pure and apart: [`stall`] and [`ending`].
//!
//! The child is the founder of a session and group of its own. It gets `WAYBILL_RUN_ID` and
//! `WAYBILL_SOCKET`; after a resume also `WAYBILL_RESUME=1` and `WAYBILL_STATE`, a file with the
//! ledger's state. What it may say on the socket is in [`wire`].

pub mod book;
pub mod client;
pub mod console;
pub mod control;
pub mod ending;
pub mod finish;
pub mod launch;
pub mod policy;
pub mod runtime;
mod serve;
pub mod server;
mod spawn;
pub mod stall;
pub mod start;
mod stop;
pub mod supervisor;
mod verdict;
pub mod wire;

use std::fmt;

use crate::registry;
use crate::{anchoring, durable, journal, log};

/// Why a run can't be started or recorded.
#[derive(Debug)]
pub enum Error {
    /// The registry.
    Registry(registry::Error),
    /// The ledger.
    Log(log::Error),
    /// The journal.
    Journal(journal::Error),
    /// An anchor.
    Anchoring(anchoring::Error),
    /// A file.
    File(durable::Error),
    /// The run stands so that it can't be started: what, and what to do.
    Refused(String),
    /// The command was not found (127), or can't be executed (126).
    Command {
        /// 126 or 127.
        code: u8,
        /// Why.
        reason: String,
    },
    /// The operating system said no.
    System {
        /// What was tried.
        action: &'static str,
        /// Its reason.
        source: std::io::Error,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Registry(error) => error.fmt(f),
            Error::Log(error) => error.fmt(f),
            Error::Journal(error) => error.fmt(f),
            Error::Anchoring(error) => error.fmt(f),
            Error::File(error) => error.fmt(f),
            Error::Refused(reason) | Error::Command { reason, .. } => f.write_str(reason),
            Error::System { action, .. } => f.write_str(action),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Registry(error) => error.source(),
            Error::Log(error) => error.source(),
            Error::Journal(error) => error.source(),
            Error::Anchoring(error) => error.source(),
            Error::File(error) => error.source(),
            Error::System { source, .. } => Some(source),
            Error::Refused(_) | Error::Command { .. } => None,
        }
    }
}

macro_rules! from {
    ($($variant:ident($error:ty)),*) => {$(
        impl From<$error> for Error {
            fn from(error: $error) -> Error {
                Error::$variant(error)
            }
        }
    )*};
}

from!(
    Registry(registry::Error),
    Log(log::Error),
    Journal(journal::Error),
    Anchoring(anchoring::Error),
    File(durable::Error)
);

/// Wraps a system call's failure.
pub(crate) fn system<E: Into<std::io::Error>>(action: &'static str) -> impl FnOnce(E) -> Error {
    move |source| Error::System { action, source: source.into() }
}
