//! How events link.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;

use super::event::{Event, Profile, unencodable};
use crate::chain::{FaultKind, Line, Place, Rows, Visit, read_object};
use crate::hash::Digest;
use crate::ledger::row::shown;

/// A visitor of events, whatever it does: all walks that have one are the same code.
pub type Visitor<'a> = Box<dyn FnMut(&Event, Place) + 'a>;

/// The rows of an event journal.
#[derive(Clone, Debug)]
pub struct EventRows<V> {
    /// What the first row names; `None` behind it if it is not known.
    profile: Option<Profile>,
    begun: bool,
    /// The next event's index; not known behind a row that could not be read.
    index: Option<u64>,
    /// The next event's `prev_hash`, likewise.
    prev: Option<Option<Digest>>,
    head: Option<Digest>,
    faulty: bool,
    /// What saw each event that holds.
    pub visitor: V,
}

impl<V> EventRows<V> {
    /// The rows of a whole journal.
    pub fn new(visitor: V) -> EventRows<V> {
        EventRows {
            profile: None,
            begun: false,
            index: Some(0),
            prev: Some(None),
            head: None,
            faulty: false,
            visitor,
        }
    }

    /// The hash of the last event; none before the first.
    #[must_use]
    pub fn head(&self) -> Option<Digest> {
        self.head
    }

    /// What its hashes are taken over; none before the first event, or if it is not known.
    #[must_use]
    pub fn profile(&self) -> Option<Profile> {
        self.profile
    }

    fn lose(&mut self) {
        self.index = None;
        self.prev = None;
        self.faulty = true;
    }
}

impl<V: Visit<Event>> EventRows<V> {
    fn judge(&mut self, line: &[u8], place: Place) -> Result<(), Line> {
        let object = read_object(line)?;
        let first = !core::mem::replace(&mut self.begun, true);
        let named = object.get("hash_profile").map(shown);
        if first {
            self.profile = Profile::named_by(&object);
        }
        let event = Event::read(object)?;
        let checked = self.check(&event, first, named);
        let next = match &checked {
            Ok(index) => *index,
            Err(_) => self.index.unwrap_or(event.index),
        };
        self.index = next.checked_add(1);
        self.prev = Some(Some(event.event_hash));
        self.head = Some(event.event_hash);
        self.faulty |= checked.is_err();
        checked?;
        if self.profile.is_some() {
            self.visitor.visit(&event, place);
        }
        Ok(())
    }

    /// Gives the index at which the event's hash holds.
    fn check(&self, event: &Event, first: bool, named: Option<String>) -> Result<u64, Line> {
        let fault = |kind, detail| Err(Line::Fault(kind, detail));
        if let Some(expected) = self.prev.filter(|expected| *expected != event.prev_hash) {
            let shown = |hash: Option<Digest>| hash.map_or(String::from("\"\""), |hash| hash.to_hex());
            let detail = format!("stored {}, expected {}", shown(event.prev_hash), shown(expected));
            return fault(FaultKind::PrevHashMismatch, detail);
        }
        let Some(profile) = self.profile else {
            // Said once: what follows can't be hashed, and links as it may.
            if !first {
                return Ok(event.index);
            }
            let detail = format!("the journal's hash profile is {}", named.unwrap_or_default());
            return fault(FaultKind::UnknownProfile, detail);
        };
        let computed = profile.payload_hash(&event.fields).map_err(unencodable)?;
        if event.payload_hash != computed {
            let detail = format!("stored {}, computed {computed}", event.payload_hash);
            return fault(FaultKind::PayloadHashMismatch, detail);
        }
        let at = |index| {
            profile.event_hash(&event.event, index, &computed, event.prev_hash.as_ref()).map_err(unencodable)
        };
        let expected = self.index.unwrap_or(event.index);
        let here = at(expected)?;
        if event.event_hash != here {
            // Behind a missing row, events still stand where they say.
            if self.faulty && event.event_hash == at(event.index)? {
                return Ok(event.index);
            }
            let detail = format!("stored {}, computed {here}", event.event_hash);
            return fault(FaultKind::EventHashMismatch, detail);
        }
        if event.index != expected {
            let detail = format!("stored {}, expected {expected}", event.index);
            return fault(FaultKind::IndexMismatch, detail);
        }
        Ok(expected)
    }
}

impl<V: Visit<Event>> Rows for EventRows<V> {
    fn line(&mut self, line: &[u8], place: Place) -> Line {
        match self.judge(line, place) {
            Ok(()) => Line::Row,
            Err(line) => {
                let linked = matches!(
                    line,
                    Line::Fault(
                        FaultKind::PrevHashMismatch
                            | FaultKind::PayloadHashMismatch
                            | FaultKind::EventHashMismatch
                            | FaultKind::IndexMismatch
                            | FaultKind::UnknownProfile,
                        _
                    )
                );
                if !linked {
                    self.lose();
                }
                line
            }
        }
    }

    fn lost(&mut self) {
        self.lose();
    }
}
