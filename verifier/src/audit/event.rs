//! One audit row: its fields, what its tag covers, and the bytes of the next one.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::chain::FaultKind;
use crate::hash::Digest;
use crate::json::{self, Encoding, Object, Text, Value};
use crate::ledger::row::{known_fields, malformed, shown};
use crate::tag::{MasterKey, TagKey};
use crate::time::Timestamp;

const FIELDS: [&str; 9] = [
    "actor",
    "details",
    "event_type",
    "hmac",
    "prev_hmac",
    "resource_id",
    "resource_type",
    "scheme",
    "timestamp",
];
const PREFIX_V2: &[u8] = b"bernstein:audit:v2";

/// How a row's tag is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scheme {
    /// With the master key, without a prefix.
    V1,
    /// With the key derived for audit logs, behind a prefix.
    V2,
}

/// A row by its fields.
#[derive(Clone, PartialEq, Debug)]
pub struct Event {
    /// When it happened, by the writer's clock.
    pub timestamp: Timestamp,
    /// What happened, as `work_ledger.anchor`.
    pub event_type: Text,
    /// Who did it.
    pub actor: Text,
    /// What kind of thing it was done to.
    pub resource_type: Text,
    /// Which one.
    pub resource_id: Text,
    /// What else is recorded of it.
    pub details: Object,
    /// How it is tagged.
    pub scheme: Scheme,
    /// The scheme's number as the row has it: none in rows of scheme 1 that leave it out.
    pub scheme_stated: Option<u64>,
    /// Its stated tag.
    pub hmac: Digest,
    /// The tag of the row before, as stated.
    pub prev_hmac: Digest,
}

/// Which events a reader wants to see; what is not given matches all.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Query<'a> {
    /// The event type.
    pub event_type: Option<&'a str>,
    /// The actor.
    pub actor: Option<&'a str>,
    /// The first time, or as much of its text as is known: `2026-11`, `2026-11-27T19`.
    pub since: Option<&'a str>,
    /// The first time that is too late, likewise.
    pub until: Option<&'a str>,
}

impl Query<'_> {
    /// Whether an event is wanted.
    #[must_use]
    pub fn matches(&self, event: &Event) -> bool {
        let time = event.timestamp.as_str();
        self.event_type.is_none_or(|wanted| event.event_type == *wanted)
            && self.actor.is_none_or(|wanted| event.actor == *wanted)
            && self.since.is_none_or(|since| time >= since)
            && self.until.is_none_or(|until| time < until)
    }
}

/// What a writer wants to record.
#[derive(Clone, PartialEq, Debug)]
pub struct Draft {
    /// When it happened.
    pub timestamp: Timestamp,
    /// What happened.
    pub event_type: String,
    /// Who did it.
    pub actor: String,
    /// What kind of thing it was done to.
    pub resource_type: String,
    /// Which one.
    pub resource_id: String,
    /// What else is to be said; `prev_chain_digest` is added to it.
    pub details: Object,
}

/// The row that records a draft after the row with the tag `prev_hmac` (64 zeros: the first one),
/// without its newline, and its own tag.
#[must_use]
pub fn next(key: &MasterKey, prev_hmac: &Digest, draft: &Draft) -> (Vec<u8>, Digest) {
    let prev = prev_hmac.to_hex();
    let mut details = draft.details.clone();
    details.insert("prev_chain_digest".into(), Value::from(prev.as_str()));
    let mut row = Object::of([
        ("actor", Value::from(draft.actor.as_str())),
        ("details", Value::from(details)),
        ("event_type", Value::from(draft.event_type.as_str())),
        ("prev_hmac", Value::from(prev)),
        ("resource_id", Value::from(draft.resource_id.as_str())),
        ("resource_type", Value::from(draft.resource_type.as_str())),
        ("scheme", Value::from(2)),
        ("timestamp", Value::from(draft.timestamp.as_str())),
    ]);
    let hmac = Tags::new(key).of(Scheme::V2, prev_hmac, &text(&row));
    row.insert("hmac".into(), Value::from(hmac.to_hex()));
    (text(&row), hmac)
}

/// The keys of both schemes.
#[derive(Clone, Debug)]
pub(super) struct Tags {
    v1: TagKey,
    v2: TagKey,
}

impl Tags {
    pub(super) fn new(key: &MasterKey) -> Tags {
        Tags { v1: key.itself(), v2: key.derived("audit") }
    }

    /// The tag that a row should have.
    pub(super) fn of(&self, scheme: Scheme, prev_hmac: &Digest, covered: &[u8]) -> Digest {
        let (key, prefix) = self.by(scheme);
        key.tag(&[prefix, &prev_hmac.hex(), covered])
    }

    /// Whether a row's stated tag is its own.
    pub(super) fn fit(&self, event: &Event, covered: &[u8]) -> bool {
        let (key, prefix) = self.by(event.scheme);
        key.fits(&[prefix, &event.prev_hmac.hex(), covered], &event.hmac)
    }

    fn by(&self, scheme: Scheme) -> (&TagKey, &[u8]) {
        match scheme {
            Scheme::V1 => (&self.v1, b""),
            Scheme::V2 => (&self.v2, PREFIX_V2),
        }
    }
}

impl Event {
    /// Reads a line's object; gives the row, and the bytes that its tag covers besides the
    /// predecessor's.
    ///
    /// # Errors
    ///
    /// `malformed_row`, `unknown_field`, `not_canonical` or `unknown_scheme`, and which field.
    pub(super) fn read(line: &[u8], mut object: Object) -> Result<(Event, Vec<u8>), (FaultKind, String)> {
        let event = Event::fields(&object)?;
        known_fields(&object, &FIELDS)?;
        let canonical = text(&object);
        if canonical != line {
            let at = canonical.iter().zip(line).take_while(|(left, right)| left == right).count();
            let detail = format!("the line is not its canonical bytes, from byte {at} of it on");
            return Err((FaultKind::NotCanonical, detail));
        }
        let scheme = match object.get("scheme") {
            None => Scheme::V1,
            Some(scheme) => match scheme.as_u64() {
                Some(1) => Scheme::V1,
                Some(2) => Scheme::V2,
                _ => {
                    let detail = format!("scheme {} is none that this reader knows (1, 2)", shown(scheme));
                    return Err((FaultKind::UnknownScheme, detail));
                }
            },
        };
        let scheme_stated = object.get("scheme").and_then(Value::as_u64);
        object.remove("hmac");
        Ok((Event { scheme, scheme_stated, ..event }, text(&object)))
    }

    fn fields(object: &Object) -> Result<Event, (FaultKind, String)> {
        let field = |name| object.get(name).ok_or_else(|| malformed(name, "is missing", None));
        let string = |name| match field(name)? {
            Value::String(text) => Ok(text.clone()),
            other => Err(malformed(name, "is not a string", Some(other))),
        };
        let tag = |name| {
            let value = field(name)?;
            let digest = value.as_str().and_then(|text| Digest::from_hex(text.as_bytes()));
            digest.ok_or_else(|| malformed(name, "is not 64 lowercase hex digits", Some(value)))
        };
        let time = field("timestamp")?;
        Ok(Event {
            actor: string("actor")?,
            details: match field("details")? {
                Value::Object(details) => details.clone(),
                other => return Err(malformed("details", "is not an object", Some(other))),
            },
            event_type: string("event_type")?,
            hmac: tag("hmac")?,
            prev_hmac: tag("prev_hmac")?,
            resource_id: string("resource_id")?,
            resource_type: string("resource_type")?,
            scheme: Scheme::V1,
            scheme_stated: None,
            timestamp: time.as_str().and_then(Timestamp::parse).ok_or_else(|| {
                malformed("timestamp", "is not a time as 2026-11-27T19:00:00.699226Z", Some(time))
            })?,
        })
    }

    /// The event as a value, for a listing: all that its row has.
    #[must_use]
    pub fn document(&self) -> Value {
        let mut document = Object::of([
            ("actor", Value::String(self.actor.clone())),
            ("details", Value::from(self.details.clone())),
            ("event_type", Value::String(self.event_type.clone())),
            ("hmac", Value::from(self.hmac.to_hex())),
            ("prev_hmac", Value::from(self.prev_hmac.to_hex())),
            ("resource_id", Value::String(self.resource_id.clone())),
            ("resource_type", Value::String(self.resource_type.clone())),
            ("timestamp", Value::from(self.timestamp.as_str())),
        ]);
        if let Some(scheme) = self.scheme_stated {
            document.insert("scheme".into(), Value::from(scheme));
        }
        Value::from(document)
    }
}

fn text(row: &Object) -> Vec<u8> {
    // Only a lone surrogate can fail, and `ascii-spaced` escapes it.
    json::encode(Encoding::AsciiSpaced, &Value::Object(row.clone())).unwrap_or_default()
}
