//! Making a receipt: pure, so that two operators who look at the same journal make the same one.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::action::{EventType, Reading, StallReason, recommend};
use super::binding::{Binding, ForkRef, JournalState, ReceiptId};
use super::checks::{ACTOR, MODEL};
use super::window::WINDOW;
use crate::audit::Escalated;
use crate::chain::{Place, Visit};
use crate::hash::Digest;
use crate::id::RunId;
use crate::journal::Event;
use crate::json::{self, Encoding, LoneSurrogate, Object, Value};
use crate::key::{PublicKey, base64};
use crate::spine;

/// The end of a journal and its snapshots; a visitor of its events.
#[derive(Clone, Debug, Default)]
pub struct LastEvents {
    last: VecDeque<(Digest, EventType)>,
    count: u64,
    snapshots: BTreeMap<u64, String>,
}

impl Visit<Event> for LastEvents {
    fn visit(&mut self, event: &Event, _: Place) {
        if self.count >= WINDOW {
            self.last.pop_front();
        }
        self.last.push_back((event.event_hash, EventType::of(event)));
        self.count += 1;
        if let Some(snapshot) = event.snapshot() {
            self.snapshots.insert(snapshot.step, snapshot.sha.to_string());
        }
    }
}

impl LastEvents {
    /// How many events there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The fork point at a step, if the journal has a snapshot of it.
    #[must_use]
    pub fn fork(&self, run_id: &RunId, step: u64) -> Option<ForkRef> {
        let snapshot_sha = self.snapshots.get(&step)?.clone();
        Some(ForkRef { fork_step: step, run_id: run_id.as_str().to_string(), snapshot_sha })
    }
}

/// What there is of the run's journal.
#[derive(Clone, Copy, Debug)]
pub enum AtStall<'a> {
    /// No file.
    Missing,
    /// A file; without events, it is an empty journal.
    Journal(&'a LastEvents),
}

/// What a receipt is made of.
#[derive(Clone, Debug)]
pub struct Draft<'a> {
    /// The run.
    pub run_id: &'a RunId,
    /// The worker.
    pub worker_id: &'a str,
    /// Its session.
    pub session_id: &'a str,
    /// Its working tree.
    pub worktree_id: &'a str,
    /// Which installation makes it.
    pub install_rev: &'a str,
    /// Why the worker counts as stalled.
    pub stall_reason: StallReason,
    /// How often it may still be started again.
    pub respawn_budget_remaining: u64,
    /// When, in seconds since 1970 UTC.
    pub timestamp: u64,
    /// Where to fork the run from; left out where there is no journal.
    pub fork_ref: Option<ForkRef>,
    /// What else is to be signed.
    pub extra: Option<Object>,
    /// The journal.
    pub journal: AtStall<'a>,
}

impl Draft<'_> {
    /// The binding: the window that ends where the journal ends now, and what is recommended.
    #[must_use]
    pub fn binding(self) -> Binding {
        let none = LastEvents::default();
        let (events, journal_state) = match self.journal {
            AtStall::Missing => (&none, JournalState::Missing),
            AtStall::Journal(events) if events.count == 0 => (events, JournalState::Empty),
            AtStall::Journal(events) => (events, JournalState::Present),
        };
        let types: Vec<_> = events.last.iter().map(|(_, event_type)| *event_type).collect();
        Binding {
            fork_ref: self.fork_ref.filter(|_| journal_state == JournalState::Present),
            from_step: events.count.saturating_sub(WINDOW),
            install_rev: self.install_rev.to_string(),
            journal_head_at_stall: events.last.back().map(|(hash, _)| *hash),
            recommended_action: recommend(
                self.stall_reason,
                self.respawn_budget_remaining,
                &types,
                Reading::Ours,
            ),
            respawn_budget_remaining: self.respawn_budget_remaining,
            run_id: self.run_id.clone(),
            session_id: self.session_id.to_string(),
            stall_reason: self.stall_reason,
            timestamp: self.timestamp,
            window: events.last.iter().map(|(hash, _)| *hash).collect(),
            worker_id: self.worker_id.to_string(),
            worktree_id: self.worktree_id.to_string(),
            journal_state,
            extra: self.extra,
        }
    }
}

/// A binding ready to be signed and anchored: sign [`Unsigned::bytes`], append
/// [`Unsigned::spine_draft`] to the spine, write [`Unsigned::file`].
#[derive(Clone, PartialEq, Debug)]
pub struct Unsigned {
    binding: Binding,
    bytes: Vec<u8>,
    content_hash: Digest,
}

impl Unsigned {
    /// Takes a binding.
    ///
    /// # Errors
    ///
    /// A lone surrogate in its `extra` has no form in a receipt.
    pub fn new(binding: Binding) -> Result<Unsigned, LoneSurrogate> {
        let bytes = binding.bytes()?;
        let content_hash = Digest::of(&bytes);
        Ok(Unsigned { binding, bytes, content_hash })
    }

    /// The binding.
    #[must_use]
    pub fn binding(&self) -> &Binding {
        &self.binding
    }

    /// What is to be signed.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The receipt's id.
    #[must_use]
    pub fn id(&self) -> ReceiptId {
        ReceiptId::of(&self.content_hash)
    }

    /// The spine entry that anchors it.
    #[must_use]
    pub fn spine_draft(&self) -> spine::Draft {
        spine::Draft {
            actor: String::from(ACTOR),
            artifact_path: self.id().path(),
            content_hash: self.content_hash,
            step_id: self.binding.head_text(),
            model: String::from(MODEL),
            timestamp: self.binding.timestamp,
        }
    }

    /// The receipt's file: `entry_hash` is that of the spine entry.
    #[must_use]
    pub fn file(&self, key: &PublicKey, signature: &[u8; 64], entry_hash: &Digest) -> Vec<u8> {
        let mut object = self.binding.document();
        for (name, text) in [
            ("journal_entry_hash", spine::prefixed(entry_hash)),
            ("signature", base64::encode(base64::Form::Url, signature)),
            ("signer_public_key_pem", key.to_pem()),
        ] {
            object.insert(name.into(), Value::from(text));
        }
        // The binding had a form, and these three are ASCII.
        json::encode(Encoding::Utf8, &Value::Object(object)).unwrap_or_default()
    }

    /// What the audit log says of it.
    #[must_use]
    pub fn mirror(&self, entry_hash: &Digest) -> Escalated<'_> {
        mirror(&self.binding, entry_hash)
    }
}

/// What the audit log says of a receipt.
pub(super) fn mirror<'a>(binding: &'a Binding, entry_hash: &Digest) -> Escalated<'a> {
    Escalated {
        journal_entry_hash: spine::prefixed(entry_hash),
        run_id: binding.run_id.as_str(),
        worker_id: &binding.worker_id,
        session_id: &binding.session_id,
        stall_reason: binding.stall_reason.name(),
        recommended_action: binding.recommended_action.name(),
        journal_head_at_stall: binding.head_text(),
        window_size: binding.window_size(),
        fork_snapshot_sha: binding.fork_ref.as_ref().map(|fork| fork.snapshot_sha.as_str()),
        journal_state: binding.journal_state.stated(),
    }
}
