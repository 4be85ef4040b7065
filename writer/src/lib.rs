//! The native half of waybill: durable logs, recovery, redaction, and the command line.
#![forbid(unsafe_code)]

pub mod redact;
