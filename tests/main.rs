//! The end-to-end tests: the binary as its users run it.
#![allow(clippy::unwrap_used, unreachable_pub, clippy::print_stderr, clippy::print_stdout, reason = "tests")]

mod anchors;
mod cli;
mod crash;
mod faults;
mod flips;
mod help;
mod secrets;
mod vectors;
