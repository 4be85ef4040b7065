//! The binding: what is signed.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use super::action::{Action, StallReason};
use crate::hash::Digest;
use crate::id::RunId;
use crate::json::{self, Encoding, LoneSurrogate, Object, Value};

/// Where receipts are, relative to the project.
pub const FOLDER: &str = ".sdd/escalation/receipts/";

/// A receipt's id: the first 32 hex digits of the hash of its binding.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ReceiptId(String);

impl ReceiptId {
    /// The id of the binding with this hash.
    #[must_use]
    pub fn of(binding: &Digest) -> ReceiptId {
        let mut id = binding.to_hex();
        id.truncate(32);
        ReceiptId(id)
    }

    /// Reads an id as a person gives it.
    #[must_use]
    pub fn parse(text: &str) -> Option<ReceiptId> {
        let hex = text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        hex.then(|| ReceiptId(text.to_string()))
    }

    /// The id.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The receipt's file, relative to the project.
    #[must_use]
    pub fn path(&self) -> String {
        format!("{FOLDER}{}.json", self.0)
    }
}

impl fmt::Display for ReceiptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What there was of the run's journal when the receipt was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JournalState {
    /// Events.
    Present,
    /// No file.
    Missing,
    /// A file without events.
    Empty,
}

impl JournalState {
    /// The name, as in receipts and projections.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            JournalState::Present => "present",
            JournalState::Missing => "missing",
            JournalState::Empty => "empty",
        }
    }

    /// What a receipt says of it: nothing where there were events.
    #[must_use]
    pub fn stated(self) -> Option<&'static str> {
        (self != JournalState::Present).then(|| self.name())
    }
}

/// Where to fork the run from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ForkRef {
    /// The step at which the snapshot was taken.
    pub fork_step: u64,
    /// The run.
    pub run_id: String,
    /// The snapshot's commit.
    pub snapshot_sha: String,
}

/// What is signed.
#[derive(Clone, PartialEq, Debug)]
pub struct Binding {
    /// Where to fork the run from, if there is a snapshot to.
    pub fork_ref: Option<ForkRef>,
    /// The index of the window's first event.
    pub from_step: u64,
    /// Which installation made it, in its own words.
    pub install_rev: String,
    /// The window's last event; none where there was no journal.
    pub journal_head_at_stall: Option<Digest>,
    /// What to do.
    pub recommended_action: Action,
    /// How often the worker may still be started again.
    pub respawn_budget_remaining: u64,
    /// The run.
    pub run_id: RunId,
    /// The worker's session.
    pub session_id: String,
    /// Why the worker counts as stalled.
    pub stall_reason: StallReason,
    /// When, in seconds since 1970 UTC, by the signer's clock.
    pub timestamp: u64,
    /// The window's events by their hashes.
    pub window: Vec<Digest>,
    /// The worker.
    pub worker_id: String,
    /// Its working tree.
    pub worktree_id: String,
    /// What there was of the journal.
    pub journal_state: JournalState,
    /// What else was to be signed.
    pub extra: Option<Object>,
}

impl Binding {
    /// The index behind the window's last event, if there can be one.
    #[must_use]
    pub fn end(&self) -> Option<u64> {
        self.from_step.checked_add(self.window_size())
    }

    /// How many events the window has.
    #[must_use]
    pub fn window_size(&self) -> u64 {
        u64::try_from(self.window.len()).unwrap_or(u64::MAX)
    }

    /// The window's last event as receipts write it: empty where there was no journal.
    #[must_use]
    pub fn head_text(&self) -> String {
        self.journal_head_at_stall.map(|head| head.to_hex()).unwrap_or_default()
    }

    /// The binding as a value.
    #[must_use]
    pub fn document(&self) -> Object {
        let hashes = self.window.iter().map(|hash| Value::from(hash.to_hex()));
        let fork = self.fork_ref.as_ref().map(|fork| {
            Object::of([
                ("fork_step", Value::from(fork.fork_step)),
                ("run_id", Value::from(fork.run_id.as_str())),
                ("snapshot_sha", Value::from(fork.snapshot_sha.as_str())),
            ])
        });
        let mut object = Object::of([
            ("fork_ref", Value::from(fork)),
            ("from_step", Value::from(self.from_step)),
            ("install_rev", Value::from(self.install_rev.as_str())),
            ("journal_head_at_stall", Value::from(self.head_text())),
            ("recommended_action", Value::from(self.recommended_action.name())),
            ("respawn_budget_remaining", Value::from(self.respawn_budget_remaining)),
            ("run_id", Value::from(self.run_id.as_str())),
            ("session_id", Value::from(self.session_id.as_str())),
            ("stall_reason", Value::from(self.stall_reason.name())),
            ("timestamp", Value::from(self.timestamp)),
            ("v", Value::from(1)),
            ("window_entry_hashes", Value::from(hashes.collect::<Vec<_>>())),
            ("worker_id", Value::from(self.worker_id.as_str())),
            ("worktree_id", Value::from(self.worktree_id.as_str())),
        ]);
        if let Some(state) = self.journal_state.stated() {
            object.insert("journal_state".into(), Value::from(state));
        }
        if let Some(extra) = &self.extra {
            object.insert("extra_binding".into(), Value::from(extra.clone()));
        }
        object
    }

    /// The bytes that are signed.
    ///
    /// # Errors
    ///
    /// A lone surrogate in `extra` has no form in them.
    pub fn bytes(&self) -> Result<Vec<u8>, LoneSurrogate> {
        json::encode(Encoding::Utf8, &Value::Object(self.document()))
    }

    /// What is shown of a receipt: all that a reader decides by, neither hashes nor signature.
    #[must_use]
    pub fn projection(&self, id: &ReceiptId, journal_entry_hash: &str) -> Object {
        let fork = self.fork_ref.as_ref();
        Object::of([
            ("fork_snapshot_sha", Value::from(fork.map(|fork| fork.snapshot_sha.as_str()))),
            ("fork_step", Value::from(fork.map(|fork| fork.fork_step))),
            ("from_step", Value::from(self.from_step)),
            ("journal_entry_hash", Value::from(journal_entry_hash)),
            ("journal_head_at_stall", Value::from(self.head_text())),
            ("journal_state", Value::from(self.journal_state.name())),
            ("receipt_id", Value::from(id.as_str())),
            ("recommended_action", Value::from(self.recommended_action.name())),
            ("run_id", Value::from(self.run_id.as_str())),
            ("session_id", Value::from(self.session_id.as_str())),
            ("stall_reason", Value::from(self.stall_reason.name())),
            ("window_size", Value::from(self.window_size())),
            ("worker_id", Value::from(self.worker_id.as_str())),
        ])
    }
}
