//! The native half of waybill: durable logs, recovery, redaction, and the command line.
#![forbid(unsafe_code)]

pub mod anchoring;
pub mod audit;
pub mod boot;
pub mod cli;
pub mod clock;
pub mod durable;
pub mod evidence;
pub mod git;
pub mod identity;
pub mod journal;
pub mod lines;
pub mod lock;
pub mod log;
pub mod master;
pub mod owner;
pub mod process;
pub mod project;
pub mod read;
pub mod receipt;
pub mod redact;
pub mod registry;
pub mod run;
pub mod scrub;
pub mod snapshot;
pub mod spine;
pub mod trust;
pub mod worktree;
