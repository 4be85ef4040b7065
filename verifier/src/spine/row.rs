//! One spine row, how rows link, and the bytes of the next one.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::head::{Head, HeadFile};
use crate::chain::{FaultKind, Line, Lines, Place, Rows, Visit, read_object};
use crate::hash::Digest;
use crate::json::{self, Encoding, Int, LoneSurrogate, Object, Value};
use crate::ledger::row::{known_fields, malformed};
use crate::tag::{MasterKey, TagKey};

const FIELDS: [&str; 13] = [
    "actor",
    "artifact_path",
    "baggage",
    "content_hash",
    "entry_hash",
    "hmac",
    "model",
    "prev_hash",
    "step_id",
    "timestamp",
    "traceparent",
    "tracestate",
    "v",
];
const PREFIX_V2: &[u8] = b"bernstein:lineage:v2";

/// How a row is hashed and tagged: its `v`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scheme {
    /// Without a prefix, tagged with the master key.
    V1,
    /// With a prefix, tagged with the key derived for spines.
    V2,
}

/// A row by its fields.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Who made the artifact.
    pub actor: String,
    /// Where it is, relative to the project.
    pub artifact_path: String,
    /// The hash of what is in it.
    pub content_hash: Digest,
    /// Of which step it is.
    pub step_id: String,
    /// Which model made it.
    pub model: String,
    /// When, in seconds since 1970 UTC.
    pub timestamp: Int,
    /// The row before, as stated; none for the first.
    pub prev_hash: Option<Digest>,
    /// Its stated hash.
    pub entry_hash: Digest,
    /// Its stated tag.
    pub hmac: Digest,
    /// Its `v`.
    pub scheme: Scheme,
}

/// What a writer wants to record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Draft {
    /// Who made the artifact.
    pub actor: String,
    /// Where it is, relative to the project.
    pub artifact_path: String,
    /// The hash of what is in it.
    pub content_hash: Digest,
    /// Of which step it is.
    pub step_id: String,
    /// Which model made it.
    pub model: String,
    /// When, in seconds since 1970 UTC.
    pub timestamp: u64,
}

/// The row that records a draft behind the row with the hash `prev` (none: the first one),
/// without its newline, and its own hash.
#[must_use]
pub fn next(key: &MasterKey, prev: Option<&Digest>, draft: &Draft) -> (Vec<u8>, Digest) {
    let mut row = Object::of([
        ("actor", Value::from(draft.actor.as_str())),
        ("artifact_path", Value::from(draft.artifact_path.as_str())),
        ("content_hash", Value::from(prefixed(&draft.content_hash))),
        ("model", Value::from(draft.model.as_str())),
        ("prev_hash", Value::from(prev.map(prefixed).unwrap_or_default())),
        ("step_id", Value::from(draft.step_id.as_str())),
        ("timestamp", Value::from(draft.timestamp)),
    ]);
    let entry_hash = Digest::of_parts(&[PREFIX_V2, &text(&row)]);
    row.insert("entry_hash".into(), Value::from(prefixed(&entry_hash)));
    row.insert("v".into(), Value::from(2));
    let hmac = Tags::new(key).v2.tag(&[&text(&row)]);
    row.insert("hmac".into(), Value::from(hmac.to_hex()));
    (text(&row), entry_hash)
}

/// `utf8` text of an object made of Rust strings, which have no lone surrogates.
fn text(row: &Object) -> Vec<u8> {
    json::encode(Encoding::Utf8, &Value::Object(row.clone())).unwrap_or_default()
}

/// A digest as the spine writes it: `sha256:` and hex.
#[must_use]
pub fn prefixed(digest: &Digest) -> String {
    format!("sha256:{digest}")
}

/// Reads `sha256:` and 64 lowercase hex digits.
pub(crate) fn unprefixed(text: &str) -> Option<Digest> {
    Digest::from_hex(text.strip_prefix("sha256:")?.as_bytes())
}

/// The keys of both schemes.
#[derive(Clone, Debug)]
pub(super) struct Tags {
    v1: TagKey,
    pub(super) v2: TagKey,
}

impl Tags {
    pub(super) fn new(key: &MasterKey) -> Tags {
        Tags { v1: key.itself(), v2: key.derived("lineage") }
    }
}

/// A row, and the bytes that its hash and its tag cover.
struct Read {
    entry: Entry,
    hashed: Vec<u8>,
    tagged: Vec<u8>,
    canonical: Vec<u8>,
}

impl Read {
    fn of(mut object: Object) -> Result<Read, (FaultKind, String)> {
        let entry = Entry::read(&object)?;
        known_fields(&object, &FIELDS)?;
        let text = |object: &Object| {
            json::encode(Encoding::Utf8, &Value::Object(object.clone()))
                .map_err(|error: LoneSurrogate| (FaultKind::MalformedRow, error.to_string()))
        };
        let canonical = text(&object)?;
        object.remove("hmac");
        let tagged = text(&object)?;
        object.remove("entry_hash");
        object.remove("v");
        Ok(Read { entry, hashed: text(&object)?, tagged, canonical })
    }

    fn computed_hash(&self) -> Digest {
        let prefix = match self.entry.scheme {
            Scheme::V1 => &b""[..],
            Scheme::V2 => PREFIX_V2,
        };
        Digest::of_parts(&[prefix, &self.hashed])
    }
}

impl Entry {
    fn read(object: &Object) -> Result<Entry, (FaultKind, String)> {
        let field = |name| object.get(name).ok_or_else(|| malformed(name, "is missing", None));
        let string = |name| {
            let value = field(name)?;
            let text = value.as_str().map(ToString::to_string);
            text.ok_or_else(|| malformed(name, "is not a string", Some(value)))
        };
        let hash = |name| {
            let value = field(name)?;
            let digest = value.as_str().and_then(unprefixed);
            digest.ok_or_else(|| malformed(name, "is not sha256: and 64 lowercase hex digits", Some(value)))
        };
        for name in ["traceparent", "tracestate", "baggage"] {
            if object.get(name).is_some() {
                string(name)?;
            }
        }
        let tag = field("hmac")?;
        let version = field("v")?;
        Ok(Entry {
            actor: string("actor")?,
            artifact_path: string("artifact_path")?,
            content_hash: hash("content_hash")?,
            entry_hash: hash("entry_hash")?,
            hmac: tag
                .as_str()
                .and_then(|text| Digest::from_hex(text.as_bytes()))
                .ok_or_else(|| malformed("hmac", "is not 64 lowercase hex digits", Some(tag)))?,
            model: string("model")?,
            prev_hash: match string("prev_hash")?.as_str() {
                "" => None,
                _ => Some(hash("prev_hash")?),
            },
            scheme: match version.as_u64() {
                Some(1) => Scheme::V1,
                Some(2) => Scheme::V2,
                _ => return Err(malformed("v", "is not 1 or 2", Some(version))),
            },
            step_id: string("step_id")?,
            timestamp: match field("timestamp")? {
                Value::Int(int) => int.clone(),
                other => return Err(malformed("timestamp", "is not an integer", Some(other))),
            },
        })
    }
}

/// The rows of a spine.
#[derive(Clone, Debug)]
pub struct SpineRows<V> {
    pub(super) tags: Option<Tags>,
    /// The next row's `prev_hash`; not known behind a row that could not be read.
    prev: Option<Option<Digest>>,
    pub(super) head: Option<Digest>,
    head_count: Option<u64>,
    /// The hash of the row that the head file names as the last.
    pub(super) at_head: Option<Digest>,
    pub(super) not_canonical: Option<Place>,
    pub(super) not_canonical_count: u64,
    pub(super) tag_faults: u64,
    /// What saw each row that holds.
    pub visitor: V,
}

impl<V> SpineRows<V> {
    /// The rows beside a head file. Without the key, tags are not checked.
    pub fn new(key: Option<&MasterKey>, head: &HeadFile, visitor: V) -> SpineRows<V> {
        SpineRows {
            tags: key.map(Tags::new),
            prev: Some(None),
            head: None,
            head_count: head.head().map(Head::count),
            at_head: None,
            not_canonical: None,
            not_canonical_count: 0,
            tag_faults: 0,
            visitor,
        }
    }

    /// The hash of the last row; none before the first.
    #[must_use]
    pub fn head(&self) -> Option<Digest> {
        self.head
    }
}

impl<V: Visit<Entry>> SpineRows<V> {
    fn judge(&mut self, line: &[u8], place: Place) -> Result<(), Line> {
        let read = read_object(line).and_then(|object| Ok(Read::of(object)?));
        let row = read.inspect_err(|_| self.prev = None)?;
        let stated = row.entry.entry_hash;
        let expected = self.prev.replace(Some(stated));
        self.head = Some(stated);
        if self.head_count == place.entry.checked_add(1) {
            self.at_head = Some(stated);
        }
        self.check(&row, expected)?;
        if row.canonical != line {
            self.not_canonical = self.not_canonical.or(Some(place));
            self.not_canonical_count += 1;
        }
        self.visitor.visit(&row.entry, place);
        Ok(())
    }

    fn check(&mut self, row: &Read, expected: Option<Option<Digest>>) -> Result<(), Line> {
        let entry = &row.entry;
        if let Some(expected) = expected.filter(|expected| *expected != entry.prev_hash) {
            let shown = |hash: Option<Digest>| hash.as_ref().map_or(String::from("\"\""), prefixed);
            let detail = format!("stored {}, expected {}", shown(entry.prev_hash), shown(expected));
            return Err(Line::Fault(FaultKind::PrevHashMismatch, detail));
        }
        let computed = row.computed_hash();
        if entry.entry_hash != computed {
            let detail = format!("stored {}, computed {}", prefixed(&entry.entry_hash), prefixed(&computed));
            return Err(Line::Fault(FaultKind::EntryHashMismatch, detail));
        }
        let fits = self.tags.as_ref().is_none_or(|tags| {
            let key = match entry.scheme {
                Scheme::V1 => &tags.v1,
                Scheme::V2 => &tags.v2,
            };
            key.fits(&[&row.tagged], &entry.hmac)
        });
        if !fits {
            self.tag_faults += 1;
            let detail = format!("the tag {} is not this row's under the key", entry.hmac);
            return Err(Line::Fault(FaultKind::HmacMismatch, detail));
        }
        Ok(())
    }
}

impl<V: Visit<Entry>> Rows for SpineRows<V> {
    fn lines(&self) -> Lines {
        Lines::Exact
    }

    fn line(&mut self, line: &[u8], place: Place) -> Line {
        self.judge(line, place).map_or_else(|line| line, |()| Line::Row)
    }

    fn lost(&mut self) {
        self.prev = None;
    }
}
