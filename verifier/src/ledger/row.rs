//! One ledger row: its canonical text, where its fields stand in it, and what its hash covers.
//!
//! ```text
//! {"entry_hash":"<64 hex>","kind":"task.started","payload":{…},"prev_hash":"<64 hex>",
//!  "redactions":0,"schema_version":1,"seq":7,"task_id":"t1","ts":1795975362.737611}
//! ```
//! (one line, no spaces). `entry_hash` is SHA-256 over
//! `{"kind":…,"payload":…,"prev_hash":…,"task_id":…}`: in a canonical row two slices of it, so
//! a row is hashed from the file's own bytes. `seq`, `ts`, `redactions` and `schema_version` are
//! not covered by any hash.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::Range;

use crate::chain::FaultKind;
use crate::hash::{Digest, HEX_LEN, Hasher};
use crate::id::{is_kind, is_task_id};
use crate::json::{self, Object, Value, excerpt};

/// The fields of a row, in the order in which they stand.
pub(crate) const FIELDS: [&str; 9] =
    ["entry_hash", "kind", "payload", "prev_hash", "redactions", "schema_version", "seq", "task_id", "ts"];

/// A canonical row, by its parts: slices of its text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Row<'a> {
    /// The whole row, canonical, without line end.
    pub text: &'a str,
    /// Its stated hash, 64 hex digits.
    pub entry_hash: &'a str,
    /// What it records.
    pub kind: &'a str,
    /// The canonical JSON object that goes with it.
    pub payload: &'a str,
    /// Its stated predecessor's hash.
    pub prev_hash: &'a str,
    /// How many secrets were scrubbed out of it, as a decimal (not hashed).
    pub redactions: &'a str,
    /// Its stated number, as a decimal (not hashed).
    pub seq: &'a str,
    /// The task; empty for the run itself.
    pub task_id: &'a str,
    /// When it was written, seconds since 1970 UTC, a number (not hashed).
    pub ts: &'a str,
    pub(super) covered: (&'a str, &'a str),
}

impl Row<'_> {
    /// The hash of what the row's hash covers.
    #[must_use]
    pub fn computed_hash(&self) -> Digest {
        hash_covered(self.covered.0.as_bytes(), self.covered.1.as_bytes())
    }

    /// The bytes that the row's hash covers, for a reader who wants to hash them elsewhere.
    #[must_use]
    pub fn preimage(&self) -> String {
        format!("{{{},{}}}", self.covered.0, self.covered.1)
    }
}

fn hash_covered(first: &[u8], second: &[u8]) -> Digest {
    let mut hasher = Hasher::new();
    hasher.update(b"{");
    hasher.update(first);
    hasher.update(b",");
    hasher.update(second);
    hasher.update(b"}");
    hasher.finish()
}

/// A row's canonical text, built from values: what the writer writes, and what a row in any
/// other form is compared with.
#[derive(Clone, Debug)]
pub struct RowText {
    text: Vec<u8>,
    places: Places,
}

/// Where the parts stand in a row's text.
#[derive(Clone, Debug)]
pub(super) struct Places {
    pub(super) entry_hash: Range<usize>,
    pub(super) kind: Range<usize>,
    pub(super) payload: Range<usize>,
    pub(super) prev_hash: Range<usize>,
    pub(super) redactions: Range<usize>,
    pub(super) seq: Range<usize>,
    pub(super) task_id: Range<usize>,
    pub(super) ts: Range<usize>,
    pub(super) covered: (Range<usize>, Range<usize>),
}

impl Places {
    /// The row that has this text, which is ASCII.
    pub(super) fn row<'a>(&self, text: &'a [u8]) -> Row<'a> {
        // As a whole: taking parts of a text does not look at it again.
        let text = core::str::from_utf8(text).unwrap_or_default();
        let part = |place: &Range<usize>| text.get(place.clone()).unwrap_or_default();
        Row {
            text,
            entry_hash: part(&self.entry_hash),
            kind: part(&self.kind),
            payload: part(&self.payload),
            prev_hash: part(&self.prev_hash),
            redactions: part(&self.redactions),
            seq: part(&self.seq),
            task_id: part(&self.task_id),
            ts: part(&self.ts),
            covered: (part(&self.covered.0), part(&self.covered.1)),
        }
    }
}

impl RowText {
    /// Builds the row that records `payload` as entry `seq` after the entry with `prev_hash`.
    ///
    /// `ts` is in seconds since 1970 UTC and must be finite.
    #[must_use]
    pub fn next(
        kind: &crate::id::Kind,
        task_id: &crate::id::TaskId,
        payload: &Object,
        link: (u64, &Digest),
        redactions: u64,
        ts: f64,
    ) -> (RowText, Digest) {
        let (seq, prev_hash) = link;
        let mut payload_text = Vec::new();
        json::push_ascii(&mut payload_text, &Value::Object(payload.clone()));
        let mut parts = Parts {
            entry_hash: Digest::ZERO.to_hex(),
            kind: kind.as_str().to_string(),
            payload: payload_text,
            prev_hash: prev_hash.to_hex(),
            redactions: redactions.to_string(),
            seq: seq.to_string(),
            task_id: task_id.as_str().to_string(),
            ts: json::ascii(&Value::Float(ts)),
        };
        let digest = parts.text().row().computed_hash();
        parts.entry_hash = digest.to_hex();
        (parts.text(), digest)
    }

    /// The row's bytes, without line end.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.text
    }

    /// The row by its parts.
    #[must_use]
    pub fn row(&self) -> Row<'_> {
        // It was encoded, so it is ASCII.
        self.places.row(&self.text)
    }
}

/// A row's fields, each as its canonical text.
struct Parts {
    entry_hash: String,
    kind: String,
    payload: Vec<u8>,
    prev_hash: String,
    redactions: String,
    seq: String,
    task_id: String,
    ts: Vec<u8>,
}

impl Parts {
    fn text(&self) -> RowText {
        let mut text = Vec::with_capacity(self.payload.len() + 360);
        let mut push = |before: &[u8], part: &[u8]| {
            text.extend_from_slice(before);
            let from = text.len();
            text.extend_from_slice(part);
            from..text.len()
        };
        let entry_hash = push(b"{\"entry_hash\":\"", self.entry_hash.as_bytes());
        let kind = push(b"\",\"kind\":\"", self.kind.as_bytes());
        let payload = push(b"\",\"payload\":", &self.payload);
        let prev_hash = push(b",\"prev_hash\":\"", self.prev_hash.as_bytes());
        let redactions = push(b"\",\"redactions\":", self.redactions.as_bytes());
        let seq = push(b",\"schema_version\":1,\"seq\":", self.seq.as_bytes());
        let task_id = push(b",\"task_id\":\"", self.task_id.as_bytes());
        let ts = push(b"\",\"ts\":", &self.ts);
        text.push(b'}');
        let covered = (entry_hash.end + "\",".len()..prev_hash.end + 1, seq.end + ",".len()..task_id.end + 1);
        let places = Places { entry_hash, kind, payload, prev_hash, redactions, seq, task_id, ts, covered };
        RowText { text, places }
    }
}

/// Reads an object as a ledger row: all nine fields, their types and patterns, no other field.
///
/// # Errors
///
/// `malformed_row` or `unknown_field`, and which field it is.
pub(crate) fn read(object: &Object) -> Result<RowText, (FaultKind, String)> {
    let field = |name| object.get(name).ok_or_else(|| malformed(name, "is missing", None));
    for name in FIELDS {
        field(name)?;
    }
    let string = |name, fits: fn(&[u8]) -> bool, rule| {
        let value = field(name)?;
        match value.as_str() {
            Some(text) if fits(text.as_bytes()) => Ok(text.to_string()),
            _ => Err(malformed(name, rule, Some(value))),
        }
    };
    let hex = |name| string(name, is_hex, "is not 64 lowercase hex digits");
    let natural = |name| match field(name)? {
        Value::Int(int) if !int.is_negative() => Ok(int.as_str().to_string()),
        other => Err(malformed(name, "is not an integer of 0 or more", Some(other))),
    };
    let payload = match field("payload")? {
        payload @ Value::Object(_) => json::ascii(payload),
        other => return Err(malformed("payload", "is not an object", Some(other))),
    };
    let ts = match field("ts")? {
        ts @ (Value::Int(_) | Value::Float(_)) => json::ascii(ts),
        other => return Err(malformed("ts", "is not a number", Some(other))),
    };
    if natural("schema_version")? != "1" {
        return Err(malformed(
            "schema_version",
            "is not 1, the version this reader knows",
            object.get("schema_version"),
        ));
    }
    let parts = Parts {
        entry_hash: hex("entry_hash")?,
        kind: string("kind", is_kind, "does not match ^[a-z][a-z0-9_.-]{0,63}$")?,
        payload,
        prev_hash: hex("prev_hash")?,
        redactions: natural("redactions")?,
        seq: natural("seq")?,
        task_id: string("task_id", is_task_id, "does not match ^[A-Za-z0-9_.-]{0,64}$")?,
        ts,
    };
    known_fields(object, &FIELDS)?;
    Ok(parts.text())
}

/// # Errors
///
/// `unknown_field`, naming the first that is not in `known`.
pub(crate) fn known_fields(object: &Object, known: &[&str]) -> Result<(), (FaultKind, String)> {
    match object.iter().find(|(key, _)| !known.iter().any(|name| **key == **name)) {
        None => Ok(()),
        Some((key, _)) => {
            let key = shown(&Value::String(key.clone()));
            Err((FaultKind::UnknownField, format!("{key} is no field of this row")))
        }
    }
}

pub(crate) fn malformed(name: &str, rule: &str, value: Option<&Value>) -> (FaultKind, String) {
    let found = value.map(|value| format!(": {}", shown(value))).unwrap_or_default();
    (FaultKind::MalformedRow, format!("`{name}` {rule}{found}"))
}

/// A value as a message shows it: its canonical text, which is ASCII without control
/// characters, cut after 120 bytes.
pub(crate) fn shown(value: &Value) -> String {
    excerpt(&String::from_utf8_lossy(&json::ascii(value)))
}

pub(crate) fn is_hex(text: &[u8]) -> bool {
    text.len() == HEX_LEN && text.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_whose_numbers_exceed_64_bits_is_split_into_its_parts() {
        let long = "12345678901234567890123456789";
        let text = format!(
            "{{\"entry_hash\":\"{0}\",\"kind\":\"k\",\"payload\":{{\"a\":1}},\"prev_hash\":\"{0}\",\
             \"redactions\":{long},\"schema_version\":1,\"seq\":{long},\"task_id\":\"t\",\"ts\":{long}}}",
            "0".repeat(HEX_LEN)
        );
        let Ok(Value::Object(object)) = json::parse(text.as_bytes()) else { panic!("an object") };
        let built = read(&object).expect("nothing limits these numbers");
        let row = built.row();
        assert_eq!((row.text, row.payload), (&*text, "{\"a\":1}"));
        assert_eq!((row.redactions, row.seq, row.ts), (long, long, long));
        let covered = format!("\"kind\":\"k\",\"payload\":{{\"a\":1}},\"prev_hash\":\"{}\"", row.prev_hash);
        assert_eq!(row.preimage(), format!("{{{covered},\"task_id\":\"t\"}}"));
    }
}
