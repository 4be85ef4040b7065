//! The audit log: who did what when, as a chain of tagged rows over one file a day.
//!
//! `YYYY-MM-DD.jsonl` (UTC), older days packed as `archive/YYYY-MM-DD.jsonl.gz`; all are one
//! chain, archived days first, by date. A row is a line of `ascii-spaced` canonical JSON:
//!
//! ```text
//! {"actor": "work_ledger", "details": {…}, "event_type": "work_ledger.anchor",
//!  "hmac": "<64 hex>", "prev_hmac": "<64 hex>", "resource_id": "goal-42",
//!  "resource_type": "work_ledger", "scheme": 2, "timestamp": "2026-11-27T19:00:00.699226Z"}
//! ```
//! (one line). `hmac` is the tag of `bernstein:audit:v2` ‖ `prev_hmac` ‖ the row's text without
//! `hmac`, under the key derived for `audit`; in scheme 1 (`"scheme": 1`, or no `scheme`) there is
//! no prefix and the key is the master key itself. `prev_hmac` is the row before's `hmac`, 64
//! zeros first. `details.prev_chain_digest`, where it is, is the same again.
//!
//! A line is its canonical bytes and ends with `\n`: no blank lines, no `\r`, a newline at the end
//! of each file. No field that is not listed, no file that is not a day, no day twice. A torn last
//! line is what a crash leaves, as in `chain`, and what a writer sets aside.
//!
//! The reference (3.23.0) leaves torn bytes where they are. Its next append writes
//! `chain.torn_record` behind them (details: `segment`, the day's file; `verified_prefix_offset`
//! and `byte_offset`, where they begin and end; `torn_bytes_sha256` over them; `tear_class`), and
//! its verifier fails until an operator's `chain.tear_acknowledged` names `segment` and
//! `byte_offset`. From then on it passes, whatever stands in that range: other bytes, more of
//! them, or none. Here a line that is no row stays a fault (`interior_corruption`) also then, and
//! such a log is not extended. Both accept it once the torn line is taken out, for no row links to
//! it.
//!
//! Does not prove where the log ends: a log whose last days are gone still verifies.

mod event;
mod folder;
mod log;
mod mirror;
mod verify;

pub use event::{Draft, Event, Query, Scheme, next};
pub(crate) use folder::arrange_days;
pub use folder::{DayFile, FileFault, Folder, MAX_DAY, arrange};
pub use log::{Log, Mend, Outcome, Start, TagsChecked};
pub use mirror::{Anchored, Escalated};
pub use verify::report;
