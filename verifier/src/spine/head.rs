//! `spine.head`: how many rows there are, and which is the last.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::row::{Tags, prefixed, unprefixed};
use crate::hash::Digest;
use crate::json::{self, Encoding, Object, Value};
use crate::ledger::row::{known_fields, malformed};
use crate::tag::MasterKey;

const FIELDS: [&str; 4] = ["count", "hash_profile", "head_hash", "hmac"];

/// What a head file says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Head {
    count: u64,
    hash: Option<Digest>,
    hmac: Digest,
    tagged: Vec<u8>,
    canonical: bool,
}

/// A head file, as it was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HeadFile {
    /// There is none.
    Missing,
    /// It can't be read as one; the sentence says why.
    Malformed(String),
    /// It is one.
    Read(Head),
}

impl HeadFile {
    /// Reads a head file's bytes, if there is one.
    #[must_use]
    pub fn read(bytes: Option<&[u8]>) -> HeadFile {
        let Some(bytes) = bytes else {
            return HeadFile::Missing;
        };
        match json::parse(bytes) {
            Ok(Value::Object(object)) => {
                Head::read(bytes, object).map_or_else(HeadFile::Malformed, HeadFile::Read)
            }
            Ok(_) => HeadFile::Malformed(String::from("it is no JSON object")),
            Err(error) => HeadFile::Malformed(error.to_string()),
        }
    }

    pub(super) fn head(&self) -> Option<&Head> {
        match self {
            HeadFile::Read(head) => Some(head),
            _ => None,
        }
    }
}

impl Head {
    fn read(bytes: &[u8], mut object: Object) -> Result<Head, String> {
        let field = |name| object.get(name).ok_or_else(|| malformed(name, "is missing", None).1);
        let wrong = |name, rule, value| malformed(name, rule, Some(value)).1;
        let count = field("count")?;
        let count = count.as_u64().ok_or_else(|| wrong("count", "is not an integer of 0 or more", count))?;
        let hash = field("head_hash")?;
        let hash = match hash.as_str() {
            Some("") => None,
            text => {
                let digest = text.and_then(unprefixed);
                Some(digest.ok_or_else(|| wrong("head_hash", "is not sha256: and 64 hex digits", hash))?)
            }
        };
        let hmac = field("hmac")?;
        let digest = hmac.as_str().and_then(|text| Digest::from_hex(text.as_bytes()));
        let hmac = digest.ok_or_else(|| wrong("hmac", "is not 64 lowercase hex digits", hmac))?;
        if let Some(profile) = object.get("hash_profile").filter(|profile| profile.as_str().is_none()) {
            return Err(wrong("hash_profile", "is not a string", profile));
        }
        known_fields(&object, &FIELDS).map_err(|(_, detail)| detail)?;
        let canonical = text(&object) == bytes;
        object.remove("hmac");
        Ok(Head { count, hash, hmac, tagged: text(&object), canonical })
    }

    /// How many rows there are, it says.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Which is the last; none where there are none.
    #[must_use]
    pub fn hash(&self) -> Option<Digest> {
        self.hash
    }

    pub(super) fn is_canonical(&self) -> bool {
        self.canonical
    }

    pub(super) fn is_tagged_by(&self, tags: &Tags) -> bool {
        tags.v2.fits(&[&self.tagged], &self.hmac)
    }
}

/// The bytes of the head file that goes with so many rows, of which the last has this hash.
#[must_use]
pub fn head(key: &MasterKey, count: u64, hash: Option<&Digest>) -> Vec<u8> {
    let mut object = Object::of([
        ("count", Value::from(count)),
        ("head_hash", Value::from(hash.map(prefixed).unwrap_or_default())),
    ]);
    let hmac = Tags::new(key).v2.tag(&[&text(&object)]);
    object.insert("hmac".into(), Value::from(hmac.to_hex()));
    text(&object)
}

/// All its strings are Rust's, so the encoder has a form for them.
fn text(object: &Object) -> Vec<u8> {
    json::encode(Encoding::Utf8, &Value::Object(object.clone())).unwrap_or_default()
}
