//! The events that mirror what happened elsewhere: an anchor that was made, a receipt that was
//! written. Their shape is what our writer writes; a verifier does not insist on it.

use alloc::string::{String, ToString};

use super::event::Draft;
use crate::hash::Digest;
use crate::json::{Object, Value};
use crate::time::Timestamp;

/// An anchor that was made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Anchored<'a> {
    /// The run.
    pub run_id: &'a str,
    /// The hash of its last entry.
    pub head_hash: Digest,
    /// How many entries it has.
    pub entry_count: u64,
    /// In how many chunks they stand.
    pub chunk_count: u64,
    /// The ref.
    pub reference: &'a str,
    /// The id of the anchor's tree.
    pub tree_sha: &'a str,
}

impl Anchored<'_> {
    /// The `work_ledger.anchor` event.
    #[must_use]
    pub fn draft(&self, timestamp: Timestamp) -> Draft {
        Draft {
            timestamp,
            event_type: String::from("work_ledger.anchor"),
            actor: String::from("work_ledger"),
            resource_type: String::from("work_ledger"),
            resource_id: self.run_id.to_string(),
            details: Object::of([
                ("run_id", Value::from(self.run_id)),
                ("head_hash", Value::from(self.head_hash.to_hex())),
                ("entry_count", Value::from(self.entry_count)),
                ("chunk_count", Value::from(self.chunk_count)),
                ("ref", Value::from(self.reference)),
                ("tree_sha", Value::from(self.tree_sha)),
            ]),
        }
    }
}

/// A receipt that was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Escalated<'a> {
    /// The spine entry of the receipt, `sha256:` and hex: what the event is found by.
    pub journal_entry_hash: String,
    /// The run.
    pub run_id: &'a str,
    /// The worker that stalled.
    pub worker_id: &'a str,
    /// Its session, where it has one.
    pub session_id: &'a str,
    /// Why it counts as stalled.
    pub stall_reason: &'a str,
    /// What the receipt recommends.
    pub recommended_action: &'a str,
    /// The last event of the window, empty if there was no journal.
    pub journal_head_at_stall: String,
    /// How many events the window has.
    pub window_size: u64,
    /// The commit to fork from, if there is one.
    pub fork_snapshot_sha: Option<&'a str>,
    /// `missing` or `empty`, where there was no journal to look at.
    pub journal_state: Option<&'a str>,
}

impl Escalated<'_> {
    /// The type of the event.
    pub const EVENT_TYPE: &'static str = "escalation.receipt";

    /// The `escalation.receipt` event.
    #[must_use]
    pub fn draft(&self, timestamp: Timestamp) -> Draft {
        Draft {
            timestamp,
            event_type: String::from(Self::EVENT_TYPE),
            actor: String::from("escalation_receipt"),
            resource_type: String::from("escalation_receipt"),
            resource_id: self.journal_entry_hash.clone(),
            details: self.details(),
        }
    }

    /// What the event says of the receipt.
    #[must_use]
    pub fn details(&self) -> Object {
        let mut details = Object::of([
            ("run_id", Value::from(self.run_id)),
            ("worker_id", Value::from(self.worker_id)),
            ("stall_reason", Value::from(self.stall_reason)),
            ("recommended_action", Value::from(self.recommended_action)),
            ("journal_head_at_stall", Value::from(self.journal_head_at_stall.as_str())),
            ("window_size", Value::from(self.window_size)),
            ("fork_snapshot_sha", Value::from(self.fork_snapshot_sha.unwrap_or_default())),
            ("journal_entry_hash", Value::from(self.journal_entry_hash.as_str())),
        ]);
        if !self.session_id.is_empty() {
            details.insert("session_id".into(), Value::from(self.session_id));
        }
        if let Some(state) = self.journal_state {
            details.insert("journal_state".into(), Value::from(state));
        }
        details
    }
}
