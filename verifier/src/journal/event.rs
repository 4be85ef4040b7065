//! One event: its envelope, its fields, its hashes, and the bytes of the next one.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::chain::FaultKind;
use crate::hash::Digest;
use crate::json::{self, Encoding, LoneSurrogate, Object, Text, Value};
use crate::ledger::row::malformed;

/// The fields that are no part of the payload.
const ENVELOPE: [&str; 6] = ["ts", "elapsed_s", "index", "prev_hash", "payload_hash", "event_hash"];

/// What hashes are taken over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Profile {
    /// CPython's `json`, ASCII only: `py-json-v1`, and where nothing is named.
    PyJsonV1,
    /// RFC 8785: `jcs-v2`.
    JcsV2,
}

impl Profile {
    /// The name in a row's `hash_profile`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Profile::PyJsonV1 => "py-json-v1",
            Profile::JcsV2 => "jcs-v2",
        }
    }

    /// The profile that a journal's first row names; `None` for a name that is not known.
    pub(super) fn named_by(first_row: &Object) -> Option<Profile> {
        match first_row.get("hash_profile") {
            None => Some(Profile::PyJsonV1),
            Some(name) => match name.as_str() {
                Some("py-json-v1") => Some(Profile::PyJsonV1),
                Some("jcs-v2") => Some(Profile::JcsV2),
                _ => None,
            },
        }
    }

    fn hash(self, value: Object) -> Result<Digest, LoneSurrogate> {
        let encoding = match self {
            Profile::PyJsonV1 => Encoding::Ascii,
            Profile::JcsV2 => Encoding::JcsV2,
        };
        Ok(Digest::of(&json::encode(encoding, &Value::Object(value))?))
    }

    /// The hash of an event's fields, the envelope aside.
    pub(super) fn payload_hash(self, fields: &Object) -> Result<Digest, LoneSurrogate> {
        self.hash(fields.clone())
    }

    /// The hash of an event at its place in the chain.
    pub(super) fn event_hash(
        self,
        event: &Text,
        index: u64,
        payload_hash: &Digest,
        prev_hash: Option<&Digest>,
    ) -> Result<Digest, LoneSurrogate> {
        self.hash(Object::of([
            ("event_type", Value::String(event.clone())),
            ("index", Value::from(index)),
            ("payload_hash", Value::from(payload_hash.to_hex())),
            ("prev_hash", Value::from(prev_hash.map(Digest::to_hex).unwrap_or_default())),
        ]))
    }
}

/// An event by its parts.
#[derive(Clone, PartialEq, Debug)]
pub struct Event {
    /// Its number, from 0.
    pub index: u64,
    /// Its type.
    pub event: Text,
    /// All that its payload hash covers, `event` among it.
    pub fields: Object,
    /// When it was recorded, as stated: covered by no hash.
    pub ts: Option<Value>,
    /// The event before, as stated; none for the first.
    pub prev_hash: Option<Digest>,
    /// Its stated payload hash.
    pub payload_hash: Digest,
    /// Its stated hash.
    pub event_hash: Digest,
}

/// A working tree that an event names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Snapshot<'a> {
    /// The commit.
    pub sha: &'a str,
    /// The step at which it was taken.
    pub step: u64,
}

/// The run that a journal goes on from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fork<'a> {
    /// The run.
    pub parent_run_id: &'a str,
    /// At which of its steps.
    pub fork_step: u64,
    /// The commit of its working tree there.
    pub snapshot_sha: &'a str,
}

impl Snapshot<'_> {
    /// The type of the event that records one.
    pub const EVENT: &'static str = "snapshot";

    /// The fields of the event that records it.
    #[must_use]
    pub fn fields(&self) -> Object {
        Object::of([("snapshot_sha", Value::from(self.sha)), ("step_index", Value::from(self.step))])
    }
}

impl Fork<'_> {
    /// The type of the event that records one.
    pub const EVENT: &'static str = "fork";

    /// The fields of the event that records it.
    #[must_use]
    pub fn fields(&self) -> Object {
        Object::of([
            ("parent_run_id", Value::from(self.parent_run_id)),
            ("fork_step", Value::from(self.fork_step)),
            ("snapshot_sha", Value::from(self.snapshot_sha)),
        ])
    }
}

impl Event {
    /// The working tree that it names, if it is a snapshot.
    #[must_use]
    pub fn snapshot(&self) -> Option<Snapshot<'_>> {
        let field = |name| self.fields.get(name).filter(|_| self.event == *Snapshot::EVENT);
        Some(Snapshot { sha: field("snapshot_sha")?.as_str()?, step: field("step_index")?.as_u64()? })
    }

    /// The run that it goes on from, if it is a fork.
    #[must_use]
    pub fn fork(&self) -> Option<Fork<'_>> {
        let field = |name| self.fields.get(name).filter(|_| self.event == *Fork::EVENT);
        Some(Fork {
            parent_run_id: field("parent_run_id")?.as_str()?,
            fork_step: field("fork_step")?.as_u64()?,
            snapshot_sha: field("snapshot_sha")?.as_str()?,
        })
    }

    /// Reads a line's object.
    ///
    /// # Errors
    ///
    /// `malformed_row`, and which field.
    pub(super) fn read(mut object: Object) -> Result<Event, (FaultKind, String)> {
        let field = |name| object.get(name).ok_or_else(|| malformed(name, "is missing", None));
        let hash = |name| {
            let value = field(name)?;
            let digest = value.as_str().and_then(|text| Digest::from_hex(text.as_bytes()));
            digest.ok_or_else(|| malformed(name, "is not 64 lowercase hex digits", Some(value)))
        };
        for name in ["ts", "elapsed_s"] {
            if let Some(value) = object.get(name).filter(|value| !is_number(value)) {
                return Err(malformed(name, "is not a number", Some(value)));
            }
        }
        let index = field("index")?;
        let event = match field("event")? {
            Value::String(event) => event.clone(),
            other => return Err(malformed("event", "is not a string", Some(other))),
        };
        let prev_hash = match field("prev_hash")?.as_str() {
            Some("") => None,
            _ => Some(hash("prev_hash")?),
        };
        let index = index
            .as_u64()
            .ok_or_else(|| malformed("index", "is not an integer of 0 or more", Some(index)))?;
        let (payload_hash, event_hash) = (hash("payload_hash")?, hash("event_hash")?);
        let ts = object.get("ts").cloned();
        for name in ENVELOPE {
            object.remove(name);
        }
        Ok(Event { index, event, fields: object, ts, prev_hash, payload_hash, event_hash })
    }
}

fn is_number(value: &Value) -> bool {
    matches!(value, Value::Int(_) | Value::Float(_))
}

/// What a writer wants to record.
#[derive(Clone, Copy, Debug)]
pub struct Draft<'a> {
    /// Its type.
    pub event: &'a str,
    /// What else is to be said.
    pub fields: &'a Object,
    /// When, in seconds since 1970 UTC.
    pub ts: f64,
    /// How long after the start of the run, in seconds.
    pub elapsed_s: f64,
}

/// Why something can't be recorded as an event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BadDraft {
    /// A field has the name of one that the journal itself writes.
    Reserved(&'static str),
    /// A time is not finite.
    NotFinite,
    /// A text has no form in the journal's profile.
    Text(LoneSurrogate),
}

impl fmt::Display for BadDraft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadDraft::Reserved(name) => write!(f, "`{name}` is a field that the journal writes itself"),
            BadDraft::NotFinite => f.write_str("a time that is not finite"),
            BadDraft::Text(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for BadDraft {}

/// The row that records a draft as event `index` behind the one with the hash `prev` (none: the
/// first), without its newline, and its own hash.
///
/// # Errors
///
/// Says why it can't be recorded.
pub fn next(
    profile: Profile,
    (index, prev): (u64, Option<&Digest>),
    draft: &Draft<'_>,
) -> Result<(Vec<u8>, Digest), BadDraft> {
    if !draft.ts.is_finite() || !draft.elapsed_s.is_finite() {
        return Err(BadDraft::NotFinite);
    }
    let reserved = ENVELOPE.into_iter().chain(["event", "hash_profile"]);
    if let Some(name) = reserved.into_iter().find(|name| draft.fields.get(name).is_some()) {
        return Err(BadDraft::Reserved(name));
    }
    let mut row = draft.fields.clone();
    let event = Text::from(draft.event);
    row.insert("event".into(), Value::String(event.clone()));
    if profile != Profile::PyJsonV1 {
        row.insert("hash_profile".into(), Value::from(profile.name()));
    }
    let payload_hash = profile.payload_hash(&row).map_err(BadDraft::Text)?;
    let event_hash = profile.event_hash(&event, index, &payload_hash, prev).map_err(BadDraft::Text)?;
    for (name, value) in [
        ("ts", Value::Float(draft.ts)),
        ("elapsed_s", Value::Float(draft.elapsed_s)),
        ("index", Value::from(index)),
        ("prev_hash", Value::from(prev.map(Digest::to_hex).unwrap_or_default())),
        ("payload_hash", Value::from(payload_hash.to_hex())),
        ("event_hash", Value::from(event_hash.to_hex())),
    ] {
        row.insert(name.into(), value);
    }
    Ok((json::ascii(&Value::Object(row)), event_hash))
}

/// A text that has no form in the profile is a row that nobody could have hashed.
pub(super) fn unencodable(error: LoneSurrogate) -> (FaultKind, String) {
    (FaultKind::MalformedRow, format!("{error}, which the journal's profile asks for"))
}
