//! The end-to-end tests: the binary as its users run it.
#![allow(clippy::unwrap_used, unreachable_pub, clippy::print_stderr, clippy::print_stdout, reason = "tests")]

mod anchors;
mod audit;
mod cli;
mod crash;
mod escalation;
mod evidence;
mod faults;
mod flips;
mod help;
mod keys;
mod mutation;
mod receipts;
mod secrets;
mod snapshots;
mod status;
mod vectors;
