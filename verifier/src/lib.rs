//! Checks of hash-chained run records. Bytes and values in, values out: no files, clock,
//! environment, randomness or threads.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
