//! The native half of waybill: durable logs, recovery, redaction, and the command line.
#![forbid(unsafe_code)]

pub mod cli;
pub mod durable;
pub mod git;
pub mod lock;
pub mod log;
pub mod project;
pub mod read;
pub mod redact;
pub mod scrub;
