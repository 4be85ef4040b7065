//! The step journal of one agent: what it asked, called and got, as a hash chain.
//!
//! ```text
//! {"blob_refs":[],"effort":"high","input_hash":"<64 hex>","model":"m-1","prev_hash":"<64 hex>",
//!  "prompt":…,"schema_version":2,"seq":0,"step_hash":"<64 hex>","tool_call":…,
//!  "tool_result":…,"ts":1795976955.927228}
//! ```
//! `step_hash` is SHA-256 over the `ascii` text of `input_hash`, `model`, `prev_hash`, `prompt`,
//! `tool_call`, `tool_result`, and `effort` where it is there and not null. `seq`, `ts`,
//! `blob_refs` and `schema_version` (1 or 2) are not covered. Genesis is 64 zeros; lines, torn
//! tails and faults are as in the ledger.

mod verify;
mod walk;

pub use verify::report;
pub use walk::StepRows;
