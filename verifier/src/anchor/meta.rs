//! `LEDGER.json`: what an anchor's tree says of itself.
//!
//! ```text
//! {"chunk_count":1,"entry_count":11,"format_version":1,"head_hash":"<64 hex>","run_id":"goal-42"}
//! ```
//! in `ascii` canonical form, and a newline. Every field is compared with what the chunks hold:
//! nothing here is believed.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::hash::Digest;
use crate::id::RunId;
use crate::json::{self, Object, Value};
use crate::ledger::row::shown;

/// The longest `LEDGER.json` that is read: 64 KiB.
pub const MAX_META: usize = 64 << 10;

const FIELDS: [&str; 5] = ["chunk_count", "entry_count", "format_version", "head_hash", "run_id"];

/// The version of the layout.
const VERSION: u64 = 1;

/// What the chunks of an anchor hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Totals {
    pub(super) chunks: u64,
    pub(super) entries: u64,
    pub(super) head: Digest,
}

/// The bytes of `LEDGER.json`.
#[must_use]
pub(super) fn encode(run: &RunId, totals: &Totals) -> Vec<u8> {
    let mut bytes = json::ascii(&Value::from(Object::of([
        ("chunk_count", Value::from(totals.chunks)),
        ("entry_count", Value::from(totals.entries)),
        ("format_version", Value::from(VERSION)),
        ("head_hash", Value::from(totals.head.to_hex())),
        ("run_id", Value::from(run.as_str())),
    ])));
    bytes.push(b'\n');
    bytes
}

/// `LEDGER.json` as it was read.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Meta(Object);

impl Meta {
    /// # Errors
    ///
    /// Says why it is not the canonical text of an object: `not_canonical`.
    pub(super) fn read(bytes: &[u8]) -> Result<Meta, String> {
        let Some(line) = bytes.strip_suffix(b"\n") else {
            return Err(String::from("it does not end with a newline"));
        };
        let value = json::parse(line).map_err(|error| format!("{error}"))?;
        if json::ascii(&value) != line {
            return Err(String::from("it is not in canonical form"));
        }
        match value {
            Value::Object(object) => Ok(Meta(object)),
            _ => Err(String::from("it is no object")),
        }
    }

    /// The first field that nobody reads.
    pub(super) fn unknown_field(&self) -> Option<String> {
        let (key, _) = self.0.iter().find(|(key, _)| !FIELDS.iter().any(|name| **key == **name))?;
        Some(shown(&Value::String(key.clone())))
    }

    /// The run that it names.
    ///
    /// # Errors
    ///
    /// Shows what stands there, if it is no run id.
    pub(super) fn run(&self) -> Result<RunId, String> {
        let stated = self.0.get("run_id");
        let run = stated.and_then(Value::as_str).and_then(|run| RunId::new(run).ok());
        run.ok_or_else(|| stated.map_or_else(|| String::from("nothing"), shown))
    }

    /// The first field that is not what the chunks hold.
    pub(super) fn mismatch(&self, totals: &Totals) -> Option<String> {
        let head = totals.head.to_hex();
        let expected = [
            ("chunk_count", Value::from(totals.chunks)),
            ("entry_count", Value::from(totals.entries)),
            ("format_version", Value::from(VERSION)),
            ("head_hash", Value::from(head)),
        ];
        for (name, expected) in expected {
            let expected_text = shown(&expected);
            match self.0.get(name) {
                Some(stated) if *stated == expected => {}
                Some(stated) => {
                    return Some(format!("`{name}` is {}, expected {expected_text}", shown(stated)));
                }
                None => return Some(format!("`{name}` is missing, expected {expected_text}")),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals() -> Totals {
        Totals { chunks: 1, entries: 11, head: Digest::ZERO }
    }

    fn text() -> String {
        let run = RunId::new("goal-42").expect("a run id");
        String::from_utf8(encode(&run, &totals())).expect("ASCII")
    }

    #[test]
    fn what_is_written_is_read() {
        let meta = Meta::read(text().as_bytes()).expect("canonical");
        assert_eq!((meta.unknown_field(), meta.mismatch(&totals())), (None, None));
        assert_eq!(meta.run().expect("a run id").as_str(), "goal-42");
    }

    #[test]
    fn only_one_text_is_canonical() {
        for (from, to) in [
            ("\n", ""),
            ("\n", "\n\n"),
            (",", ", "),
            ("11", "11e0"),
            ("11", "11,\"entry_count\":11"),
            ("{", "[{"),
        ] {
            assert!(Meta::read(text().replacen(from, to, 1).as_bytes()).is_err(), "{from:?} {to:?}");
        }
        assert!(
            Meta::read(b"[]\n").is_err()
                && Meta::read(b"").is_err()
                && Meta::read(b"\xef\xbb\xbf{}\n").is_err()
        );
    }

    #[test]
    fn every_field_is_compared() {
        let edits = [
            ("\"chunk_count\":1", "\"chunk_count\":2", "chunk_count"),
            ("\"chunk_count\":1,", "", "chunk_count"),
            ("11", "12", "entry_count"),
            ("11", "11.0", "entry_count"),
            ("11", "true", "entry_count"),
            ("\"format_version\":1", "\"format_version\":2", "format_version"),
            ("\"head_hash\":\"0", "\"head_hash\":\"1", "head_hash"),
        ];
        for (from, to, expect) in edits {
            let meta = Meta::read(text().replacen(from, to, 1).as_bytes()).expect("canonical");
            let said = meta.mismatch(&totals()).expect(expect);
            assert!(said.contains(expect), "{said}");
        }
        for (from, to) in [("goal-42", "../x"), ("\"goal-42\"", "7")] {
            assert!(Meta::read(text().replacen(from, to, 1).as_bytes()).expect("canonical").run().is_err());
        }
    }
}
