//! Git objects: their kinds, and their ids recomputed from their bytes.
//!
//! An id is `SHA-1("<kind> <length>\0" ‖ bytes)`: the kind's name, a space, the length in bytes
//! as a decimal, a zero byte. The empty blob is `e69de29bb2d1d6434b8b29ae775ad8c2e48c5391`.
//!
//! SHA-1 is computed with collision detection (Stevens, "Counter-cryptanalysis", 2013): bytes
//! that were made to share an id with others are refused, as git itself refuses them.
//!
//! Source: gitformat-pack(5), "Git Internals: Git Objects".

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::hash::{eight_digits, nibble};

/// How many bytes an id has.
pub const ID_LEN: usize = 20;

/// A git object's id: 20 bytes, written as 40 lowercase hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId([u8; ID_LEN]);

/// What kind of thing a git object is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ObjectKind {
    /// A file's bytes.
    Blob,
    /// A folder: names, modes and ids.
    Tree,
    /// A commit.
    Commit,
    /// An annotated tag; nothing here reads one.
    Tag,
}

impl ObjectKind {
    /// The name, as in the header that is hashed.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            ObjectKind::Blob => "blob",
            ObjectKind::Tree => "tree",
            ObjectKind::Commit => "commit",
            ObjectKind::Tag => "tag",
        }
    }
}

/// Bytes that were made to collide with others under SHA-1: no id can be given to them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Collision;

impl fmt::Display for Collision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the bytes were made to collide under SHA-1")
    }
}

impl core::error::Error for Collision {}

impl ObjectId {
    /// The id of an object.
    ///
    /// # Errors
    ///
    /// The bytes carry a SHA-1 collision attack.
    pub fn of(kind: ObjectKind, bytes: &[u8]) -> Result<ObjectId, Collision> {
        let header = alloc::format!("{} {}\0", kind.name(), bytes.len());
        sha1(&[header.as_bytes(), bytes]).map(ObjectId)
    }

    /// Wraps 20 bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; ID_LEN]) -> ObjectId {
        ObjectId(bytes)
    }

    /// Reads exactly 40 lowercase hex digits; anything else is `None`.
    #[must_use]
    pub fn from_hex(text: &[u8]) -> Option<ObjectId> {
        if text.len() != 2 * ID_LEN {
            return None;
        }
        let mut bytes = [0; ID_LEN];
        for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
            *byte = nibble(pair[0])? << 4 | nibble(pair[1])?;
        }
        Some(ObjectId(bytes))
    }

    /// The 20 bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; ID_LEN] {
        &self.0
    }

    /// The 40 lowercase hex digits.
    #[must_use]
    pub fn to_hex(&self) -> String {
        self.0.as_chunks().0.iter().flat_map(|bytes| eight_digits(*bytes)).map(char::from).collect()
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_hex())
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectId({self})")
    }
}

/// What a store answers when it is asked for an object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Found {
    /// The object, its kind and its bytes as they are stored under the id. Nobody needs to have
    /// checked them: the verifier does.
    Object(ObjectKind, Vec<u8>),
    /// There is no object of that id.
    Missing,
    /// It has more bytes than were asked for at most.
    TooLarge,
}

/// The SHA-1 of a message that is the concatenation of `parts`.
#[cfg(not(all(any(target_arch = "x86", target_arch = "x86_64"), not(target_feature = "sse2"))))]
pub(super) fn sha1(parts: &[&[u8]]) -> Result<[u8; ID_LEN], Collision> {
    let mut hasher = sha1dc::Hasher::new();
    for part in parts {
        hasher.update(part);
    }
    hasher.finalize().map(Into::into).map_err(|_| Collision)
}

/// The same where there are no vector registers, and in tests.
#[cfg(any(test, all(any(target_arch = "x86", target_arch = "x86_64"), not(target_feature = "sse2"))))]
mod portable {
    use sha1_checked::{CollisionResult, Digest as _, Sha1};

    use super::{Collision, ID_LEN};

    pub(in super::super) fn sha1(parts: &[&[u8]]) -> Result<[u8; ID_LEN], Collision> {
        let mut hasher = Sha1::new();
        for part in parts {
            hasher.update(part);
        }
        match hasher.try_finalize() {
            CollisionResult::Ok(hash) => Ok(hash.into()),
            CollisionResult::Mitigated(_) | CollisionResult::Collision(_) => Err(Collision),
        }
    }
}

#[cfg(all(any(target_arch = "x86", target_arch = "x86_64"), not(target_feature = "sse2")))]
pub(super) use portable::sha1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_gits() {
        let id = |kind, bytes| ObjectId::of(kind, bytes).expect("no collision").to_hex();
        assert_eq!(id(ObjectKind::Blob, b""), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
        assert_eq!(id(ObjectKind::Tree, b""), "4b825dc642cb6eb9a060e54bf8d69288fbee4904");
        assert_eq!(id(ObjectKind::Blob, b"hello\n"), "ce013625030ba8dba906f756967f9e9ca394464a");
    }

    #[test]
    fn hex_round_trips_and_is_lowercase_only() {
        let hex = "ce013625030ba8dba906f756967f9e9ca394464a";
        assert_eq!(ObjectId::from_hex(hex.as_bytes()).map(|id| id.to_hex()).as_deref(), Some(hex));
        for bad in [&hex[1..], &hex.to_uppercase(), &alloc::format!("{hex}0"), ""] {
            assert_eq!(ObjectId::from_hex(bad.as_bytes()), None, "{bad}");
        }
    }

    /// The first 320 bytes of one of the two files of shattered.io.
    const SHATTERED: &[u8] = b"255044462d312e330a25e2e3cfd30a0a0a312030206f626a0a3c3c2f57696474682032203020522f48656967687\
        42033203020522f547970652034203020522f537562747970652035203020522f46696c7465722036203020522f436f6c6f725370616365\
        2037203020522f4c656e6774682038203020522f42697473506572436f6d706f6e656e7420383e3e0a73747265616d0affd8fffe002453\
        48412d3120697320646561642121212121852fec092339759c39b1a1c63c4c97e1fffe017f46dc93a6b67e013b029aaa1db2560b45ca67d\
        688c7f84b8c4c791fe02b3df614f86db1690901c56b45c1530afedfb76038e972722fe7ad728f0e4904e046c230570fe9d41398abe12ef5\
        bc942be33542a4802d98b5d70f2a332ec37fac3514e74ddc0f2cc1a874cd0c78305a21566461309789606bd0bf3f98cda8044629a1";

    #[test]
    fn bytes_made_to_collide_are_refused() {
        let bytes: Vec<u8> = SHATTERED
            .chunks_exact(2)
            .map(|pair| nibble(pair[0]).expect("hex") << 4 | nibble(pair[1]).expect("hex"))
            .collect();
        assert_eq!(bytes.len(), 320);
        assert_eq!(sha1(&[&bytes]), Err(Collision));
        assert_eq!(portable::sha1(&[&bytes]), Err(Collision));
        assert!(sha1(&[&bytes[..319]]).is_ok());
    }

    #[test]
    fn both_libraries_give_the_same_hashes() {
        let bytes: Vec<u8> = (0..2000u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
        for length in (0..300).chain([4095, 4096, 8000]) {
            let (first, second) = bytes[..length].split_at(length / 3);
            assert_eq!(sha1(&[first, second]), portable::sha1(&[&bytes[..length]]), "{length}");
        }
    }
}
