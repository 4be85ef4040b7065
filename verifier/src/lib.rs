//! Checks of hash-chained run records. Bytes and values in, values out: no files, clock,
//! environment, randomness or threads.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod anchor;
pub mod audit;
pub mod chain;
pub mod compare;
pub mod evidence;
mod find;
#[cfg(feature = "gate")]
pub mod gate;
pub mod gzip;
pub mod hash;
pub mod id;
pub mod journal;
pub mod json;
pub mod key;
pub mod ledger;
mod order;
pub mod receipt;
pub mod report;
pub mod spine;
pub mod step;
pub mod table;
pub mod tag;
pub mod time;
