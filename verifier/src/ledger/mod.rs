//! The work ledger: a run's task graph as a hash chain.
//!
//! See [`row`](Row) for a row's bytes and hash, and `chain` for lines, faults and torn tails.

mod replay;
pub(crate) mod row;
mod slices;
pub(crate) mod verify;
pub(crate) mod walk;

pub use replay::{State, Task, TaskState};
pub use row::{Row, RowText};
pub use verify::{Expect, report};
pub use walk::{Ignore, LedgerRows, Visitor};
