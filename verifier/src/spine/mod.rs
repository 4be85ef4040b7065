//! The lineage spine: which artifact came from whom, as a chain of tagged rows, and a head file
//! that says how many there are.
//!
//! `spine.jsonl`, a line of `utf8` canonical JSON a row:
//!
//! ```text
//! {"actor":"agent","artifact_path":"src/a.py","content_hash":"sha256:<64 hex>",
//!  "entry_hash":"sha256:<64 hex>","hmac":"<64 hex>","model":"m","prev_hash":"sha256:<64 hex>",
//!  "step_id":"s0","timestamp":1795977106,"v":2}
//! ```
//! (one line), and optionally `traceparent`, `tracestate`, `baggage`; nothing else. `prev_hash`
//! of the first row is empty. `entry_hash` is SHA-256 over `bernstein:lineage:v2` (nothing in
//! rows of `v` 1) ‖ the `utf8` text of the row without `entry_hash`, `hmac` and `v`. `hmac` is the
//! tag of the `utf8` text of the row without `hmac`, under the key derived for `lineage` (`v` 1:
//! the master key). Blank lines are faults; a row in another form warns.
//!
//! `spine.head` is `{"count":6,"hash_profile":…,"head_hash":"sha256:…","hmac":"…"}`
//! (`hash_profile` only where it was given), the tag over the same without `hmac`, always under
//! the derived key. It is replaced after the row is on disk, so a crash leaves it behind.
//!
//! Does not prove that both files were not put back to an earlier state together; without the
//! key, nothing against a full rewrite.

mod head;
mod row;
mod verify;

pub use head::{Head, HeadFile, head};
pub(crate) use row::unprefixed;
pub use row::{Draft, Entry, Scheme, SpineRows, next, prefixed};
pub use verify::{checks, head_standing, report};
