//! A run's anchors as a git bundle: `git fetch FILE <ref>` takes them over anywhere.
//!
//! The same anchors give the same bytes. Rows are only ever appended, so an earlier anchor's last
//! chunk is the beginning of a later one's: it is packed as a delta that copies it.

use std::collections::{BTreeMap, BTreeSet};

use miniz_oxide::deflate::compress_to_vec_zlib;
use waybill_verifier::anchor::{
    Found, HISTORY_LIMIT, MAX_CHUNK, MAX_COMMIT, MAX_TREE, ObjectId, ObjectKind, checksum, files_of, links_of,
};
use waybill_verifier::id::RunId;

use super::Error;
use crate::git::{Store, anchor_ref};

/// How much time is spent on packing: as much as git does.
const LEVEL: u8 = 6;
/// The longest piece that one step of a delta copies.
const LONGEST_COPY: usize = 0xff_ffff;

/// The bundle of a run's anchors, as far as their objects are there; `None` if there is none.
///
/// # Errors
///
/// If the repository can't be read.
pub fn bundle(store: &Store, run: &RunId) -> Result<Option<Vec<u8>>, Error> {
    let name = anchor_ref(run);
    let Some(tip) = store.reference(&name)? else { return Ok(None) };
    let mut packing =
        Packing { store, body: Vec::new(), count: 0, seen: BTreeSet::new(), chunks: BTreeMap::new() };
    let mut next = Some(tip);
    let mut anchors = 0;
    while let Some(commit) = next.take().filter(|_| anchors < HISTORY_LIMIT) {
        anchors += 1;
        next = packing.anchor(&commit)?;
    }
    let mut pack = b"PACK\0\0\0\x02".to_vec();
    pack.extend_from_slice(&packing.count.to_be_bytes());
    pack.extend_from_slice(&packing.body);
    let Ok(checksum) = checksum(&pack) else { return Ok(None) };
    let mut bundle = format!("# v2 git bundle\n{} {name}\n\n", tip.to_hex()).into_bytes();
    bundle.extend_from_slice(&pack);
    bundle.extend_from_slice(&checksum);
    Ok(Some(bundle))
}

/// A pack that is being made.
struct Packing<'a> {
    store: &'a Store,
    /// The objects, behind a header of 12 bytes.
    body: Vec<u8>,
    count: u32,
    seen: BTreeSet<ObjectId>,
    /// The newest chunk of each name, and where it is in `body`.
    chunks: BTreeMap<Vec<u8>, (ObjectId, usize)>,
}

impl Packing<'_> {
    /// Packs an anchor, and gives back the one before it.
    fn anchor(&mut self, commit: &ObjectId) -> Result<Option<ObjectId>, Error> {
        let Some(bytes) = self.read(commit, MAX_COMMIT)? else { return Ok(None) };
        self.whole(ObjectKind::Commit, commit, &bytes);
        let Some((tree, parents)) = links_of(&bytes) else { return Ok(None) };
        if !self.seen.contains(&tree)
            && let Some(bytes) = self.read(&tree, MAX_TREE)?
        {
            self.whole(ObjectKind::Tree, &tree, &bytes);
            for (name, id) in files_of(&bytes) {
                self.file(name, &id)?;
            }
        }
        Ok(parents.first().copied().filter(|parent| !self.seen.contains(parent)))
    }

    fn file(&mut self, name: &[u8], id: &ObjectId) -> Result<(), Error> {
        if self.seen.contains(id) {
            return Ok(());
        }
        let Some(bytes) = self.read(id, MAX_CHUNK)? else { return Ok(()) };
        if let Some((base, at)) = self.chunks.get(name).copied() {
            let later = self.read(&base, MAX_CHUNK)?.unwrap_or_default();
            if !bytes.is_empty() && later.starts_with(&bytes) {
                self.copied(id, &bytes, later.len(), at);
                return Ok(());
            }
        }
        let at = self.body.len();
        self.whole(ObjectKind::Blob, id, &bytes);
        self.chunks.entry(name.to_vec()).or_insert((*id, at));
        Ok(())
    }

    fn read(&self, id: &ObjectId, limit: usize) -> Result<Option<Vec<u8>>, Error> {
        Ok(match self.store.object(id, limit)? {
            Found::Object(_, bytes) => Some(bytes),
            Found::Missing | Found::TooLarge => None,
        })
    }

    fn whole(&mut self, kind: ObjectKind, id: &ObjectId, bytes: &[u8]) {
        if !self.seen.insert(*id) {
            return;
        }
        let number = match kind {
            ObjectKind::Commit => 1,
            ObjectKind::Tree => 2,
            ObjectKind::Blob => 3,
            ObjectKind::Tag => 4,
        };
        self.header(number, bytes.len());
        self.body.extend_from_slice(&compress_to_vec_zlib(bytes, LEVEL));
        self.count += 1;
    }

    /// Packs an object that is the beginning of another, which is `base` bytes long and at `at`.
    fn copied(&mut self, id: &ObjectId, bytes: &[u8], base: usize, at: usize) {
        self.seen.insert(*id);
        let delta = prefix(base, bytes.len());
        let back = self.body.len() - at;
        self.header(6, delta.len());
        self.body.extend_from_slice(&offset(back));
        self.body.extend_from_slice(&compress_to_vec_zlib(&delta, LEVEL));
        self.count += 1;
    }

    fn header(&mut self, kind: u8, size: usize) {
        let mut byte = (kind << 4) | low(size, 0x0f);
        let mut rest = size >> 4;
        while rest > 0 {
            self.body.push(byte | 0x80);
            byte = low(rest, 0x7f);
            rest >>= 7;
        }
        self.body.push(byte);
    }
}

fn low(value: usize, mask: u8) -> u8 {
    u8::try_from(value & usize::from(mask)).unwrap_or(0)
}

/// The delta that makes the first `length` bytes of a base.
fn prefix(base: usize, length: usize) -> Vec<u8> {
    let mut delta = Vec::new();
    for mut size in [base, length] {
        while size > 0x7f {
            delta.push(low(size, 0x7f) | 0x80);
            size >>= 7;
        }
        delta.push(low(size, 0x7f));
    }
    let mut at = 0;
    while at < length {
        let size = LONGEST_COPY.min(length - at);
        let (offset, size_bytes) = (at.to_le_bytes(), size.to_le_bytes());
        delta.push(0xff);
        delta.extend_from_slice(&offset[..4]);
        delta.extend_from_slice(&size_bytes[..3]);
        at += size;
    }
    delta
}

/// How far back a delta's base is: seven bits a byte, highest first, each further byte one less.
fn offset(mut back: usize) -> Vec<u8> {
    let mut bytes = vec![low(back, 0x7f)];
    while back > 0x7f {
        back = (back >> 7) - 1;
        bytes.push(low(back, 0x7f) | 0x80);
    }
    bytes.reverse();
    bytes
}
