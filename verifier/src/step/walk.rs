//! A step journal's rows, and how they link.

use alloc::string::String;

use crate::chain::{FaultKind, Line, Place, Rows, read_object};
use crate::hash::Digest;
use crate::json::{self, Object, Value};
use crate::ledger::row::{is_hex, known_fields, malformed};
use crate::ledger::walk::Link;

const COVERED: [&str; 6] = ["input_hash", "model", "prev_hash", "prompt", "tool_call", "tool_result"];
const FIELDS: [&str; 12] = [
    "blob_refs",
    "effort",
    "input_hash",
    "model",
    "prev_hash",
    "prompt",
    "schema_version",
    "seq",
    "step_hash",
    "tool_call",
    "tool_result",
    "ts",
];

/// The rows of a step journal.
#[derive(Clone, Debug)]
pub struct StepRows {
    link: Link,
    not_canonical: Option<Place>,
    not_canonical_count: u64,
}

impl Default for StepRows {
    fn default() -> StepRows {
        StepRows { link: Link::genesis(), not_canonical: None, not_canonical_count: 0 }
    }
}

impl StepRows {
    /// The hash of the last row; 64 zeros before the first.
    #[must_use]
    pub fn head(&self) -> Digest {
        self.link.head
    }

    /// The first row that holds but is not in canonical form, and how many there are.
    #[must_use]
    pub fn not_canonical(&self) -> (Option<Place>, u64) {
        (self.not_canonical, self.not_canonical_count)
    }

    fn judge(&mut self, line: &[u8], place: Place) -> Result<(), Line> {
        let object = read_object(line)?;
        let row = StepRow::read(&object)?;
        let computed = Digest::of(&json::ascii(&Value::Object(row.covered)));
        let checked = self.check(row.seq, &row.seq_text, &row.prev_hash, (row.step_hash, computed), place);
        self.link.faulty |= checked.is_err();
        self.link.after(row.seq, row.step_hash);
        checked?;
        if json::ascii(&Value::Object(object)) != line {
            self.not_canonical = self.not_canonical.or(Some(place));
            self.not_canonical_count += 1;
        }
        Ok(())
    }

    fn check(
        &self,
        seq: Option<u64>,
        seq_text: &str,
        prev_hash: &str,
        (stored, computed): (Digest, Digest),
        place: Place,
    ) -> Result<(), Line> {
        self.link.check_seq(seq, seq_text, place)?;
        self.link.check_prev(prev_hash)?;
        if stored != computed {
            let detail = alloc::format!("stored {stored}, computed {computed}");
            return Err(Line::Fault(FaultKind::StepHashMismatch, detail));
        }
        Ok(())
    }
}

impl Rows for StepRows {
    fn line(&mut self, line: &[u8], place: Place) -> Line {
        match self.judge(line, place) {
            Ok(()) => Line::Row,
            Err(
                fault @ Line::Fault(
                    FaultKind::SeqMismatch | FaultKind::PrevHashMismatch | FaultKind::StepHashMismatch,
                    _,
                ),
            ) => fault,
            Err(unread) => {
                self.link.lose();
                unread
            }
        }
    }

    fn lost(&mut self) {
        self.link.lose();
    }
}

struct StepRow {
    covered: Object,
    prev_hash: String,
    seq: Option<u64>,
    seq_text: String,
    step_hash: Digest,
}

impl StepRow {
    fn read(object: &Object) -> Result<StepRow, (FaultKind, String)> {
        let field = |name| object.get(name).ok_or_else(|| malformed(name, "is missing", None));
        let hex = |name| {
            let value = field(name)?;
            match value.as_str() {
                Some(text) if is_hex(text.as_bytes()) => Ok(String::from(text)),
                _ => Err(malformed(name, "is not 64 lowercase hex digits", Some(value))),
            }
        };
        let is = |name, fits: fn(&Value) -> bool, rule| {
            let value = field(name)?;
            if fits(value) { Ok(()) } else { Err(malformed(name, rule, Some(value))) }
        };
        let seq = match field("seq")? {
            Value::Int(int) if !int.is_negative() => int,
            other => {
                return Err(malformed("seq", "is not an integer of 0 or more", Some(other)));
            }
        };
        is("ts", |ts| matches!(ts, Value::Int(_) | Value::Float(_)), "is not a number")?;
        is("blob_refs", |refs| matches!(refs, Value::Array(_)), "is not an array")?;
        is("schema_version", |version| matches!(version.as_u64(), Some(1 | 2)), "is not 1 or 2")?;
        is("input_hash", |hash| matches!(hash, Value::String(_)), "is not a string")?;
        let mut covered = Object::default();
        for name in COVERED {
            covered.insert(name.into(), field(name)?.clone());
        }
        match object.get("effort") {
            None | Some(Value::Null) => {}
            Some(effort) => drop(covered.insert("effort".into(), effort.clone())),
        }
        let step_hash = hex("step_hash")?;
        let row = StepRow {
            covered,
            prev_hash: hex("prev_hash")?,
            seq: seq.to_u64(),
            seq_text: String::from(seq.as_str()),
            step_hash: Digest::from_hex(step_hash.as_bytes()).unwrap_or(Digest::ZERO),
        };
        known_fields(object, &FIELDS)?;
        Ok(row)
    }
}
