//! `MANIFEST.json` of an evidence archive: which files it holds, and the SHA-256 of each.
//!
//! ```text
//! {
//!   "audit_starts_after": "<64 hex>" or null,
//!   "files": {".sdd/runs/run-7/journal.jsonl": {"bytes": 4711, "sha256": "<64 hex>"}, …},
//!   "schema": "waybill.evidence/1",
//!   "subject": {"id": "run-7", "kind": "run"}
//! }
//! ```
//! Keys sorted, two spaces a level, ASCII, a final newline: exactly these bytes. It names every
//! other file of the archive. `audit_starts_after` is the tag of the audit row before the first
//! day that was taken along; null if the log is there from its first row.
//!
//! Does not prove who made the archive, or that it is all there was: whoever changes a file can
//! change this one too.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::hash::Digest;
use crate::json::{self, Object, Value, ascii_indented};
use crate::table::Table;

/// Its path in the archive.
pub const NAME: &str = "MANIFEST.json";

/// The name and version of its form.
pub const SCHEMA: &str = "waybill.evidence/1";

/// What the evidence is of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Subject {
    /// A run, by its id.
    Run(String),
    /// A receipt, by its id.
    Receipt(String),
}

/// What a manifest says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Manifest {
    /// What the evidence is of.
    pub subject: Subject,
    /// Where the audit log that is in it goes on from.
    pub audit_starts_after: Option<Digest>,
    /// The files: how many bytes, and their SHA-256.
    pub files: Table<Seal>,
}

/// The size and hash of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seal {
    /// How many bytes it has.
    pub bytes: u64,
    /// Their SHA-256.
    pub sha256: Digest,
}

impl Manifest {
    /// Reads a manifest.
    ///
    /// # Errors
    ///
    /// What is wrong with it; also if it is not written in its one form.
    pub fn read(bytes: &[u8]) -> Result<Manifest, String> {
        let value = json::parse(bytes.trim_ascii_end()).map_err(|error| error.to_string())?;
        let object = value.as_object().ok_or("it is no JSON object")?;
        if object.get("schema").and_then(Value::as_str) != Some(SCHEMA) {
            return Err(format!("its schema is not {SCHEMA}"));
        }
        let manifest = Manifest {
            subject: subject(object.get("subject")).ok_or("its subject is neither a run nor a receipt")?,
            audit_starts_after: starts_after(object.get("audit_starts_after"))?,
            files: files(object.get("files")).ok_or("its list of files can't be read")?,
        };
        if manifest.to_json() != bytes {
            return Err(String::from("it is not written in its one form"));
        }
        Ok(manifest)
    }

    /// Its bytes.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        let files = self.files.iter().map(|(path, seal)| {
            let seal = Object::of([
                ("bytes", Value::from(seal.bytes)),
                ("sha256", Value::from(seal.sha256.to_hex())),
            ]);
            (path, Value::from(seal))
        });
        let (kind, id) = match &self.subject {
            Subject::Run(id) => ("run", id),
            Subject::Receipt(id) => ("receipt", id),
        };
        let subject = Object::of([("id", Value::from(id.as_str())), ("kind", Value::from(kind))]);
        let mut text = ascii_indented(&Value::from(Object::of([
            ("audit_starts_after", Value::from(self.audit_starts_after.map(|link| link.to_hex()))),
            ("files", Value::from(Object::of(files))),
            ("schema", Value::from(SCHEMA)),
            ("subject", Value::from(subject)),
        ])));
        text.push(b'\n');
        text
    }

    /// What is wrong with the files of an archive, by this manifest; `None` if nothing is.
    #[must_use]
    pub fn mismatch(&self, found: &Table<Seal>) -> Option<(String, &'static str)> {
        for (path, stated) in &self.files {
            match found.get(path) {
                None => return Some((path.to_string(), "is named and not there")),
                Some(seal) if seal.bytes != stated.bytes => {
                    return Some((path.to_string(), "has another size than stated"));
                }
                Some(seal) if seal != stated => {
                    return Some((path.to_string(), "has another SHA-256 than stated"));
                }
                Some(_) => {}
            }
        }
        let extra = found.names().find(|path| *path != NAME && !self.files.contains(path))?;
        Some((extra.to_string(), "is there and not named"))
    }
}

fn subject(value: Option<&Value>) -> Option<Subject> {
    let object = value?.as_object()?;
    let id = object.get("id")?.as_str()?.to_string();
    match object.get("kind")?.as_str()? {
        "run" => Some(Subject::Run(id)),
        "receipt" => Some(Subject::Receipt(id)),
        _ => None,
    }
}

fn starts_after(value: Option<&Value>) -> Result<Option<Digest>, &'static str> {
    let wrong = "audit_starts_after is neither null nor 64 hex digits";
    match value.ok_or(wrong)? {
        Value::Null => Ok(None),
        value => match value.as_str().and_then(|text| Digest::from_hex(text.as_bytes())) {
            Some(digest) => Ok(Some(digest)),
            None => Err(wrong),
        },
    }
}

fn files(value: Option<&Value>) -> Option<Table<Seal>> {
    let object = value?.as_object()?;
    object
        .iter()
        .map(|(path, seal)| {
            let seal = seal.as_object()?;
            let bytes = seal.get("bytes")?.as_u64()?;
            let sha256 = Digest::from_hex(seal.get("sha256")?.as_str()?.as_bytes())?;
            Some((path.as_str()?, Seal { bytes, sha256 }))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn manifest() -> Manifest {
        let seal = |text: &[u8]| Seal { bytes: crate::chain::length(text), sha256: Digest::of(text) };
        Manifest {
            subject: Subject::Run(String::from("run-7")),
            audit_starts_after: Some(Digest::of(b"x")),
            files: [(String::from("a"), seal(b"1")), (String::from("b/c"), seal(b"22"))].into(),
        }
    }

    #[test]
    fn it_is_read_back_and_every_changed_byte_is_seen() {
        let bytes = manifest().to_json();
        assert_eq!(Manifest::read(&bytes).unwrap(), manifest());
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert_ne!(Manifest::read(&changed), Ok(manifest()), "{at}");
        }
        let mut spaced = bytes.clone();
        spaced.push(b'\n');
        assert!(Manifest::read(&spaced).is_err());
    }

    #[test]
    fn files_are_held_against_it_both_ways() {
        let manifest = manifest();
        let found = manifest.files.clone();
        assert_eq!(manifest.mismatch(&found), None);
        let mut fewer = found.clone();
        fewer = fewer.iter().filter(|(path, _)| *path != "a").map(|(path, seal)| (path, *seal)).collect();
        assert_eq!(manifest.mismatch(&fewer).unwrap().1, "is named and not there");
        let mut more = found.clone();
        more.insert("z", found["a"]);
        assert_eq!(manifest.mismatch(&more).unwrap().1, "is there and not named");
        let mut other = found.clone();
        other.insert("a", found["b/c"]);
        assert!(manifest.mismatch(&other).is_some());
        let mut own = found;
        own.insert(NAME, manifest.files["a"]);
        assert_eq!(manifest.mismatch(&own), None);
    }
}
