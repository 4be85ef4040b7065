//! The end-to-end tests: the binary as its users run it.
#![allow(clippy::unwrap_used, unreachable_pub, clippy::print_stderr, clippy::print_stdout, reason = "tests")]

mod anchors;
mod audit;
mod boot;
mod cli;
mod crash;
mod escalation;
mod evidence;
mod faults;
mod flips;
mod gate;
mod help;
mod keys;
mod load;
mod mutation;
mod questions;
mod receipts;
mod runs;
mod secrets;
mod snapshots;
mod stalls;
mod status;
mod top;
mod vectors;
