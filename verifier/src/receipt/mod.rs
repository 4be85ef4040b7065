//! Escalation receipts: what a worker did last before it stalled, and what to do, signed.
//!
//! `.sdd/escalation/receipts/<receipt-id>.json`, exactly the `utf8` canonical bytes, no newline:
//!
//! ```text
//! {"fork_ref":{"fork_step":3,"run_id":"run-7","snapshot_sha":"a103…"},"from_step":16,
//!  "install_rev":"…","journal_entry_hash":"sha256:<64 hex>","journal_head_at_stall":"<64 hex>",
//!  "recommended_action":"respawn","respawn_budget_remaining":2,"run_id":"run-7",
//!  "session_id":"…","signature":"<86 base64url>","signer_public_key_pem":"-----BEGIN…",
//!  "stall_reason":"heartbeat_stale","timestamp":1795977009,"v":1,
//!  "window_entry_hashes":["<64 hex>",…],"worker_id":"worker-1","worktree_id":"wt-1"}
//! ```
//! (one line). The **binding** is all of it but `journal_entry_hash`, `signature` and
//! `signer_public_key_pem`, plus `journal_state` (`missing` or `empty`) where there was no journal
//! to look at, plus `extra_binding` (an object) where one was given; nothing else. Its bytes are
//! what is signed (Ed25519), what the lineage spine holds the hash of (`journal_entry_hash` names
//! the entry), and what the receipt id is from: the first 32 hex digits of their SHA-256.
//!
//! The **window** is the last 16 events of the run's journal by their hashes, from `from_step` on;
//! it stays checkable however long the journal grows. The **recommended action** is a pure
//! function of the reason, the budget and the window's event types.
//!
//! Does not prove when the events happened (no hash covers their times), that the signer's clock
//! was right, or that anybody did what is recommended.

mod action;
mod anchor;
mod binding;
mod checks;
mod draft;
mod form;
mod project;
mod trust;
mod verify;
mod window;

pub use action::{Action, EventType, Reading, StallReason, recommend};
pub use anchor::{Audit, AuditIndex, Spine, SpineIndex};
pub use binding::{Binding, FOLDER, ForkRef, JournalState, ReceiptId};
pub use draft::{AtStall, Draft, LastEvents, Unsigned};
pub use form::{File, MAX_FILE};
pub use project::{Files, Together};
pub use trust::{Pin, Trust, TrustEntry};
pub use verify::{Evidence, ForkCommit, Scope, report};
pub use window::{Journal, JournalView, WINDOW};
