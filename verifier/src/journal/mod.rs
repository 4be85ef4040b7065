//! The event journal of one run: what happened in it, as a hash chain.
//!
//! `journal.jsonl`, a JSON object a line, in any order and spacing:
//!
//! ```text
//! {"ts":1795976964.49,"elapsed_s":1.234,"index":0,"event":"run_started","prev_hash":"",
//!  "payload_hash":"<64 hex>","event_hash":"<64 hex>","goal":"…"}
//! ```
//! (one line). `payload_hash` is SHA-256 over the canonical text of all fields but the envelope
//! (`ts`, `elapsed_s`, `index`, `prev_hash`, `payload_hash`, `event_hash`); `event_hash` over that
//! of `{"event_type": <the row's event>, "index", "payload_hash", "prev_hash"}`. `index` counts
//! from 0; `prev_hash` is the event before's `event_hash`, empty first. The canonical text is
//! `ascii`, or RFC 8785 where the first row's `hash_profile` is `jcs-v2` (`py-json-v1` names
//! `ascii`; anything else can't be checked). Lines and torn tails are as in the ledger.
//!
//! Two events tie a journal to a working tree: `snapshot` (`snapshot_sha`, `step_index`) and, as a
//! fork's first, `fork` (`parent_run_id`, `fork_step`, `snapshot_sha`).
//!
//! Does not prove when anything happened: `ts` and `elapsed_s` are covered by no hash.

mod event;
mod verify;
mod walk;

pub use event::{BadDraft, Draft, Event, Fork, Profile, Snapshot, next};
pub use verify::report;
pub use walk::{EventRows, Visitor};
