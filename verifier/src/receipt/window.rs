//! The window, looked for in the run's journal.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::action::EventType;
use super::binding::{Binding, ForkRef};
use crate::chain::{Outcome, Place, Visit};
use crate::hash::Digest;
use crate::journal::{Event, EventRows};
use crate::json::{Object, Text, Value};

/// How many events a window has, where the journal has so many.
pub const WINDOW: u64 = 16;

/// What one receipt needs to see of a journal; a visitor of its events.
#[derive(Clone, Debug)]
pub struct JournalView {
    from: u64,
    end: u64,
    fork: Option<ForkRef>,
    pub(super) events: Vec<WindowEvent>,
    /// The first snapshot that is the fork point.
    pub(super) fork_at: Option<u64>,
    /// Another commit that the journal names at the fork's step.
    pub(super) other_sha: Option<String>,
}

/// An event of the window.
#[derive(Clone, Debug)]
pub(super) struct WindowEvent {
    pub(super) index: u64,
    pub(super) place: Place,
    pub(super) hash: Digest,
    pub(super) event: Text,
    pub(super) event_type: EventType,
    ts: Option<Value>,
}

impl WindowEvent {
    /// For a timeline. `ts` is what the row states: no hash covers it.
    pub(super) fn document(&self) -> Value {
        Value::from(Object::of([
            ("event", Value::String(self.event.clone())),
            ("event_hash", Value::from(self.hash.to_hex())),
            ("index", Value::from(self.index)),
            ("ts", self.ts.clone().unwrap_or(Value::Null)),
        ]))
    }
}

impl JournalView {
    /// What a binding speaks of; of a receipt that has none, nothing.
    #[must_use]
    pub fn of(binding: Option<&Binding>) -> JournalView {
        JournalView {
            from: binding.map_or(0, |binding| binding.from_step),
            end: binding.and_then(Binding::end).unwrap_or(0),
            fork: binding.and_then(|binding| binding.fork_ref.clone()),
            events: Vec::new(),
            fork_at: None,
            other_sha: None,
        }
    }
}

impl Visit<Event> for JournalView {
    fn visit(&mut self, event: &Event, place: Place) {
        if (self.from..self.end).contains(&event.index) {
            self.events.push(WindowEvent {
                index: event.index,
                place,
                hash: event.event_hash,
                event: event.event.clone(),
                event_type: EventType::of(event),
                ts: event.ts.clone(),
            });
        }
        let (Some(fork), Some(snapshot)) = (&self.fork, event.snapshot()) else {
            return;
        };
        if snapshot.step == fork.fork_step {
            if snapshot.sha == fork.snapshot_sha {
                self.fork_at = self.fork_at.or(Some(event.index));
            } else if self.other_sha.is_none() {
                self.other_sha = Some(snapshot.sha.to_string());
            }
        }
    }
}

/// A run's journal, walked to its end for one receipt.
#[derive(Clone, Debug)]
pub struct Journal {
    /// Its path, relative to the root that was given.
    pub file: String,
    /// What the walk found.
    pub outcome: Outcome<()>,
    /// What the receipt needed to see.
    pub view: JournalView,
}

impl Journal {
    /// Of a walk for one receipt.
    #[must_use]
    pub fn of(file: &str, outcome: Outcome<EventRows<JournalView>>) -> Journal {
        let mut view = None;
        let outcome = outcome.map(|rows| view = Some(rows.visitor));
        let view = view.unwrap_or_else(|| JournalView::of(None));
        Journal { file: file.to_string(), outcome, view }
    }

    /// Of a walk for several receipts, in their order.
    #[must_use]
    pub fn of_each(file: &str, outcome: Outcome<EventRows<Vec<JournalView>>>) -> Vec<Journal> {
        let mut views = Vec::new();
        let outcome = outcome.map(|rows| views = rows.visitor);
        views
            .into_iter()
            .map(|view| Journal { file: file.to_string(), outcome: outcome.clone(), view })
            .collect()
    }
}
