//! `.waybill/heads.json`: how far each ledger was when it was last looked at, as a lockfile.
//!
//! ```text
//! {
//!   "runs": {
//!     "goal-42": {
//!       "entries": 1201,
//!       "head": "<64 hex>"
//!     }
//!   },
//!   "schema": "waybill.heads/1"
//! }
//! ```
//! Written with sorted keys, two spaces a level and a final newline; read in any spacing, so that
//! people may merge it by hand, but without a key twice or one that is not known.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::compare::Stamp;
use crate::hash::Digest;
use crate::id::RunId;
use crate::json::{self, Object, Value, ascii_indented};

const SCHEMA: &str = "waybill.heads/1";
/// A longer file is not read.
const MAX_FILE: usize = 16 << 20;

/// How far one ledger was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Head {
    /// How many entries it had, at least one.
    pub entries: u64,
    /// The hash of the last.
    pub hash: Digest,
}

impl Head {
    /// The head of a chain; `None` if it has no entries.
    #[must_use]
    pub fn of(stamps: &[Stamp]) -> Option<Head> {
        Some(Head { entries: u64::try_from(stamps.len()).ok()?, hash: stamps.last()?.entry_hash })
    }

    /// Whether it is an entry of a chain, at its number.
    #[must_use]
    pub fn is_in(&self, stamps: &[Stamp]) -> bool {
        let index = self.entries.checked_sub(1).and_then(|index| usize::try_from(index).ok());
        index.and_then(|index| stamps.get(index)).is_some_and(|stamp| stamp.entry_hash == self.hash)
    }

    /// Whether it is an entry of a chain, behind another head.
    pub(super) fn passes(&self, other: &Head, stamps: &[Stamp]) -> bool {
        self.entries > other.entries && self.is_in(stamps)
    }
}

/// The heads of a repository's ledgers, by run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Heads(pub BTreeMap<String, Head>);

impl Heads {
    /// Reads a heads file.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn read(bytes: &[u8]) -> Result<Heads, String> {
        if bytes.len() > MAX_FILE {
            return Err(format!("it has more than {MAX_FILE} bytes"));
        }
        let value = json::parse(bytes.trim_ascii()).map_err(|error| error.to_string())?;
        let object = value.as_object().ok_or("it is no JSON object")?;
        if object.get("schema").and_then(Value::as_str) != Some(SCHEMA) {
            return Err(format!("its schema is not {SCHEMA}"));
        }
        known(object, &["runs", "schema"])?;
        let runs = object.get("runs").and_then(Value::as_object).ok_or("runs is no object")?;
        let mut heads = BTreeMap::new();
        for (run, head) in runs.iter() {
            let run = run.as_str().ok_or("a run id is no text")?;
            RunId::new(run).map_err(|error| error.to_string())?;
            let wrong = || format!("run {run}: not {{\"entries\": 1 or more, \"head\": 64 hex digits}}");
            let head = head.as_object().ok_or_else(wrong)?;
            known(head, &["entries", "head"])?;
            let entries = head.get("entries").and_then(Value::as_u64).filter(|&entries| entries > 0);
            let hash =
                head.get("head").and_then(Value::as_str).and_then(|hash| Digest::from_hex(hash.as_bytes()));
            let (Some(entries), Some(hash)) = (entries, hash) else { return Err(wrong()) };
            heads.insert(run.to_string(), Head { entries, hash });
        }
        Ok(Heads(heads))
    }

    /// Its bytes.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        let runs = self.0.iter().map(|(run, head)| {
            let head = Object::of([
                ("entries", Value::from(head.entries)),
                ("head", Value::from(head.hash.to_hex())),
            ]);
            (run.as_str(), Value::from(head))
        });
        let mut text = ascii_indented(&Value::from(Object::of([
            ("runs", Value::from(Object::of(runs))),
            ("schema", Value::from(SCHEMA)),
        ])));
        text.push(b'\n');
        text
    }
}

fn known(object: &Object, names: &[&str]) -> Result<(), String> {
    match object.iter().find(|(name, _)| !name.as_str().is_some_and(|name| names.contains(&name))) {
        None => Ok(()),
        Some((name, _)) => {
            let shown = json::ascii(&Value::String(name.clone()));
            Err(format!("{} is no field of it", String::from_utf8_lossy(&shown)))
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn it_is_read_back_and_in_any_spacing() {
        let head = Head { entries: 3, hash: Digest::of(b"x") };
        let heads = Heads([(String::from("goal-42"), head)].into());
        assert_eq!(Heads::read(&heads.to_json()).unwrap(), heads);
        let text = String::from_utf8(heads.to_json()).unwrap();
        let packed: String = text.split_whitespace().collect();
        assert_eq!(Heads::read(packed.as_bytes()).unwrap(), heads);
    }

    #[test]
    fn what_is_not_known_is_refused() {
        let hash = Digest::ZERO.to_hex();
        for text in [
            "[]",
            "{}",
            "{\"schema\":\"waybill.heads/2\",\"runs\":{}}",
            "{\"schema\":\"waybill.heads/1\",\"runs\":{},\"more\":1}",
            "{\"schema\":\"waybill.heads/1\",\"runs\":{},\"runs\":{}}",
            &format!(
                "{{\"schema\":\"waybill.heads/1\",\"runs\":{{\"r\":{{\"entries\":0,\"head\":\"{hash}\"}}}}}}"
            ),
            &format!(
                "{{\"schema\":\"waybill.heads/1\",\"runs\":{{\"../r\":{{\"entries\":1,\"head\":\"{hash}\"}}}}}}"
            ),
            "{\"schema\":\"waybill.heads/1\",\"runs\":{\"r\":{\"entries\":1,\"head\":\"00\"}}}",
        ] {
            assert!(Heads::read(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn an_entry_is_looked_for_at_its_number() {
        let stamp = |hash: &[u8]| Stamp { entry_hash: Digest::of(hash), unhashed: Digest::ZERO };
        let chain = [stamp(b"0"), stamp(b"1")];
        assert_eq!(Head::of(&chain), Some(Head { entries: 2, hash: Digest::of(b"1") }));
        assert!(Head { entries: 1, hash: Digest::of(b"0") }.is_in(&chain));
        assert!(!Head { entries: 2, hash: Digest::of(b"0") }.is_in(&chain));
        assert!(!Head { entries: 3, hash: Digest::of(b"1") }.is_in(&chain));
        assert!(!Head { entries: 0, hash: Digest::ZERO }.is_in(&chain));
        assert_eq!(Head::of(&[]), None);
    }
}
