//! Git packs: many objects in one file, some as deltas against others.
//!
//! ```text
//! "PACK", version 2, object count      4 bytes each, big-endian
//! objects                              header, [base], zlib stream
//! SHA-1 of all before                  20 bytes
//! ```
//! An object's header is a size in groups of seven bits, lowest first: the first byte holds three
//! bits of type (1 commit, 2 tree, 3 blob, 4 tag, 6 delta by offset, 7 delta by id) and four of
//! the size. A delta's base is either how many bytes before its own header it starts (groups of
//! seven bits, highest first, each but the last one less), or an id. See `delta` for what a delta
//! inflates to.
//!
//! Every base must be in the pack itself. Offsets point backwards and ids are found from whole
//! objects outwards, so a cycle is a delta without a base. All sizes are capped, and each
//! object's stated size must be its size.
//!
//! Source: gitformat-pack(5).

use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::inflate_flags::{
    TINFL_FLAG_PARSE_ZLIB_HEADER, TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF,
};
use miniz_oxide::inflate::core::{DecompressorOxide, decompress};

use super::delta::apply;
use super::object::{Collision, Found, ID_LEN, ObjectId, ObjectKind, sha1};
use crate::order;

/// The most objects in a pack.
pub const MAX_OBJECTS: usize = 1 << 20;

/// The largest object that is inflated: 256 MiB.
pub const MAX_OBJECT: usize = 256 << 20;

/// The most bytes that all objects of a pack, and its deltas, have together: 8 GiB.
pub const MAX_TOTAL: u64 = 8 << 30;

/// The longest chain of deltas; git makes 50 and never more than is configured.
pub const MAX_DELTAS: usize = 256;

/// The most bytes that deltas are resolved to, over all objects that are asked for: 64 GiB.
const MAX_WORK: u64 = 64 << 30;

/// The most bytes of a delta chain that are held while a pack is opened: 512 MiB.
const MAX_HELD: usize = 512 << 20;

/// Why a pack can't be read, and where.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PackError {
    /// The offset in the pack.
    pub byte: usize,
    /// What is wrong there.
    pub said: &'static str,
}

impl fmt::Display for PackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {} of the pack: {}", self.byte, self.said)
    }
}

impl core::error::Error for PackError {}

#[derive(Clone, Copy, Debug)]
enum Base {
    Whole(ObjectKind),
    Index(usize),
    Id(ObjectId),
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Where its header starts.
    start: usize,
    /// Where its zlib stream starts.
    data: usize,
    /// What that inflates to.
    inflated: usize,
    /// The object's size, once it is known.
    size: usize,
    base: Base,
}

/// A pack whose objects all have their ids.
#[derive(Clone, Debug)]
pub struct Pack<'a> {
    bytes: &'a [u8],
    entries: Vec<Entry>,
    /// By id.
    index: Vec<(ObjectId, usize)>,
    total: u64,
    work: u64,
}

/// The checksum that ends a pack.
///
/// # Errors
///
/// The bytes were made to collide.
pub fn checksum(body: &[u8]) -> Result<[u8; ID_LEN], Collision> {
    sha1(&[body])
}

impl<'a> Pack<'a> {
    /// Reads a whole pack, and finds the id of every object in it.
    ///
    /// # Errors
    ///
    /// It is damaged, beyond a limit, or needs objects that are not in it.
    pub fn open(bytes: &'a [u8]) -> Result<Pack<'a>, PackError> {
        let Some((body, trailer)) = bytes.split_last_chunk::<ID_LEN>() else {
            return Err(PackError { byte: bytes.len(), said: "it is shorter than its checksum" });
        };
        let mut pack = Pack { bytes: body, entries: Vec::new(), index: Vec::new(), total: 0, work: 0 };
        let end = pack.read_entries()?;
        if end != body.len() {
            return Err(PackError { byte: end, said: "there are bytes behind the last object" });
        }
        if sha1(&[body]) != Ok(*trailer) {
            return Err(PackError { byte: end, said: "the checksum is not that of the bytes" });
        }
        pack.resolve()?;
        order::sort(&mut pack.index);
        match pack.index.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            Some(pair) => Err(pack.error(pair[1].1, "the object is there twice")),
            None => Ok(pack),
        }
    }

    /// How many objects there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// An object, unless it has more than `limit` bytes.
    ///
    /// # Errors
    ///
    /// More was asked for, over all calls, than any honest history takes.
    pub fn object(&mut self, id: &ObjectId, limit: usize) -> Result<Found, PackError> {
        let Ok(found) = self.index.binary_search_by(|(other, _)| other.cmp(id)) else {
            return Ok(Found::Missing);
        };
        let mut at = self.index[found].1;
        if self.entries[at].size > limit {
            return Ok(Found::TooLarge);
        }
        let mut deltas = Vec::new();
        let kind = loop {
            self.work = self.work.saturating_add(length(self.entries[at].size));
            match self.entries[at].base {
                Base::Whole(kind) => break kind,
                Base::Index(base) => {
                    deltas.push(at);
                    at = base;
                }
                Base::Id(_) => return Err(self.error(at, "the delta's base is not known")),
            }
        };
        if self.work > MAX_WORK {
            return Err(self.error(at, "more bytes were asked for than any honest history takes"));
        }
        let mut bytes = self.inflate(at)?;
        for &delta in deltas.iter().rev() {
            bytes = self.apply(&bytes, delta)?;
        }
        Ok(Found::Object(kind, bytes))
    }

    fn error(&self, entry: usize, said: &'static str) -> PackError {
        PackError { byte: self.entries[entry].start, said }
    }

    /// Reads the headers, and the ids of the objects that are whole; gives the end.
    fn read_entries(&mut self) -> Result<usize, PackError> {
        let error = |byte, said| Err(PackError { byte, said });
        if self.bytes.get(..4) != Some(b"PACK") {
            return error(0, "it does not start with PACK");
        }
        let word = |from: usize| Some(u32::from_be_bytes(*self.bytes.get(from..)?.first_chunk()?));
        if word(4) != Some(2) {
            return error(4, "it is not of version 2");
        }
        let count = word(8).and_then(|count| usize::try_from(count).ok()).unwrap_or(usize::MAX);
        if count > MAX_OBJECTS {
            return error(8, "it has more objects than are read");
        }
        let mut at = 12;
        for _ in 0..count {
            let entry = self.read_header(at)?;
            let (bytes, used) = self.inflate_at(entry.data, entry.inflated)?;
            at = entry.data + used;
            self.count(entry.start, bytes.len())?;
            if let Base::Whole(kind) = entry.base {
                self.name(self.entries.len(), entry.start, kind, &bytes)?;
            }
            self.entries.push(entry);
        }
        Ok(at)
    }

    fn read_header(&self, start: usize) -> Result<Entry, PackError> {
        let error = |said| PackError { byte: start, said };
        let cut = || error("it breaks off in an object's header");
        let mut at = start;
        let mut next = || {
            at += 1;
            self.bytes.get(at - 1).copied().map(usize::from).ok_or_else(cut)
        };
        let first = next()?;
        let (mut size, mut shift, mut byte) = (first & 15, 4, first);
        while byte & 0x80 != 0 {
            byte = next()?;
            if shift > 25 {
                return Err(error("the object's size is beyond the limit"));
            }
            size |= (byte & 0x7f) << shift;
            shift += 7;
        }
        if size > MAX_OBJECT {
            return Err(error("the object's size is beyond the limit"));
        }
        let base = match first >> 4 & 7 {
            1 => Base::Whole(ObjectKind::Commit),
            2 => Base::Whole(ObjectKind::Tree),
            3 => Base::Whole(ObjectKind::Blob),
            4 => Base::Whole(ObjectKind::Tag),
            6 => {
                let mut byte = next()?;
                let mut back = byte & 0x7f;
                while byte & 0x80 != 0 {
                    byte = next()?;
                    if back > self.bytes.len() >> 7 {
                        return Err(error("the delta's base is before the pack"));
                    }
                    back = (back + 1) << 7 | byte & 0x7f;
                }
                let base = start.checked_sub(back);
                let found =
                    base.and_then(|base| self.entries.binary_search_by(|entry| entry.start.cmp(&base)).ok());
                Base::Index(found.ok_or(error("the delta's base is no object before it"))?)
            }
            7 => {
                let id = self.bytes.get(at..).and_then(|rest| rest.first_chunk()).ok_or_else(cut)?;
                at += ID_LEN;
                Base::Id(ObjectId::from_bytes(*id))
            }
            _ => return Err(error("the object is of no known type")),
        };
        Ok(Entry { start, data: at, inflated: size, size, base })
    }

    /// Finds the ids of deltas, from whole objects outwards.
    fn resolve(&mut self) -> Result<(), PackError> {
        let mut by_index = Vec::new();
        let mut by_id = Vec::new();
        for (child, entry) in self.entries.iter().enumerate() {
            match entry.base {
                Base::Whole(_) => {}
                Base::Index(base) => by_index.push((base, child)),
                Base::Id(base) => by_id.push((base, child)),
            }
        }
        order::sort(&mut by_index);
        order::sort(&mut by_id);
        let children = |entry, id| {
            let mut found = children_of(&by_index, &entry);
            found.extend(children_of(&by_id, &id));
            found
        };
        let roots = self.index.clone();
        for (id, root) in roots {
            let first = children(root, id);
            let (Base::Whole(kind), false) = (self.entries[root].base, first.is_empty()) else {
                continue;
            };
            let bytes = self.inflate(root)?;
            let mut held = bytes.len();
            let mut path = vec![(root, bytes, first)];
            while let Some((base, bytes, left)) = path.last_mut() {
                let Some(child) = left.pop() else {
                    held -= bytes.len();
                    path.pop();
                    continue;
                };
                let result = self.apply(bytes, child)?;
                self.entries[child].size = result.len();
                self.entries[child].base = Base::Index(*base);
                let id = self.name(child, self.entries[child].start, kind, &result)?;
                self.count(self.entries[child].start, result.len())?;
                let next = children(child, id);
                if next.is_empty() {
                    continue;
                }
                held += result.len();
                if path.len() >= MAX_DELTAS || held > MAX_HELD {
                    return Err(self.error(child, "the chain of deltas is beyond the limit"));
                }
                path.push((child, result, next));
            }
        }
        match self.entries.iter().position(|entry| matches!(entry.base, Base::Id(_))) {
            Some(entry) => Err(self.error(
                entry,
                "the delta's base is not in the pack: make a bundle of the whole history, without exclusions",
            )),
            None if self.index.len() == self.entries.len() => Ok(()),
            None => Err(PackError { byte: 0, said: "a delta's base is not in the pack" }),
        }
    }

    fn name(
        &mut self,
        entry: usize,
        start: usize,
        kind: ObjectKind,
        bytes: &[u8],
    ) -> Result<ObjectId, PackError> {
        let said = "the object was made to collide under SHA-1";
        let id = ObjectId::of(kind, bytes).map_err(|_| PackError { byte: start, said })?;
        self.index.push((id, entry));
        Ok(id)
    }

    fn count(&mut self, byte: usize, bytes: usize) -> Result<(), PackError> {
        self.total = self.total.saturating_add(length(bytes));
        if self.total > MAX_TOTAL {
            return Err(PackError { byte, said: "the objects are larger together than is read" });
        }
        Ok(())
    }

    fn inflate(&self, entry: usize) -> Result<Vec<u8>, PackError> {
        let Entry { data, inflated, .. } = self.entries[entry];
        self.inflate_at(data, inflated).map(|(bytes, _)| bytes)
    }

    /// Inflates a zlib stream of a stated size; gives how long it is itself.
    fn inflate_at(&self, from: usize, size: usize) -> Result<(Vec<u8>, usize), PackError> {
        let error = |said| PackError { byte: from, said };
        let input = self.bytes.get(from..).ok_or(error("it breaks off before an object"))?;
        // Deflate makes at most 1032 bytes of one: a size that can't be true reserves no memory.
        if size / 1032 > input.len() {
            return Err(error("the object's size is not what is stated"));
        }
        let mut out = vec![0; size];
        let flags = TINFL_FLAG_PARSE_ZLIB_HEADER | TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF;
        let (status, used, written) = decompress(&mut DecompressorOxide::new(), input, &mut out, 0, flags);
        match status {
            TINFLStatus::Done if written == size => Ok((out, used)),
            TINFLStatus::Done | TINFLStatus::HasMoreOutput => {
                Err(error("the object's size is not what is stated"))
            }
            _ => Err(error("the object's zlib stream is damaged")),
        }
    }

    fn apply(&self, base: &[u8], entry: usize) -> Result<Vec<u8>, PackError> {
        let delta = self.inflate(entry)?;
        apply(base, &delta).ok_or_else(|| self.error(entry, "the delta is damaged"))
    }
}

fn children_of<K: Ord>(pairs: &[(K, usize)], base: &K) -> Vec<usize> {
    let from = pairs.partition_point(|(key, _)| key < base);
    pairs[from..].iter().take_while(|(key, _)| key == base).map(|(_, child)| *child).collect()
}

fn length(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A zlib stream of one stored block.
    fn zlib(bytes: &[u8]) -> Vec<u8> {
        let size = u16::try_from(bytes.len()).expect("a short test");
        let (mut low, mut high) = (1u32, 0u32);
        for &byte in bytes {
            low = (low + u32::from(byte)) % 65521;
            high = (high + low) % 65521;
        }
        let sizes = [size.to_le_bytes(), (!size).to_le_bytes()].concat();
        [&[0x78, 1, 1], &sizes[..], bytes, &(high << 16 | low).to_be_bytes()].concat()
    }

    /// An object's header of one or two bytes.
    fn header(kind: u8, size: usize) -> Vec<u8> {
        let low = u8::try_from(size & 15).expect("four bits");
        let high = u8::try_from(size >> 4).expect("a short test");
        if high == 0 { vec![kind << 4 | low] } else { vec![0x80 | kind << 4 | low, high] }
    }

    fn object(kind: u8, base: &[u8], bytes: &[u8]) -> Vec<u8> {
        [header(kind, bytes.len()), base.to_vec(), zlib(bytes)].concat()
    }

    fn pack_of(count: u32, body: &[u8]) -> Vec<u8> {
        let whole = [b"PACK\0\0\0\x02", &count.to_be_bytes()[..], body].concat();
        let sum = sha1(&[&whole]).expect("no collision");
        [whole, sum.to_vec()].concat()
    }

    fn pack(objects: &[Vec<u8>]) -> Vec<u8> {
        pack_of(u32::try_from(objects.len()).expect("few"), &objects.concat())
    }

    fn blob(bytes: &[u8]) -> ObjectId {
        ObjectId::of(ObjectKind::Blob, bytes).expect("no collision")
    }

    /// `abcdef` to `abcXdef`.
    const DELTA: &[u8] = &[6, 7, 0x90, 3, 1, b'X', 0x91, 3, 3];

    #[test]
    fn whole_objects_and_both_kinds_of_delta_are_read() {
        let base = object(3, &[], b"abcdef");
        let back = u8::try_from(base.len()).expect("short");
        // A delta against the delta, by an id that stands behind it.
        let second = [7, 4, 0x90, 4].to_vec();
        let chain = object(7, blob(b"abcXdef").as_bytes(), &second);
        let empty = object(3, &[], b"");
        let bytes = pack(&[base, object(6, &[back], DELTA), chain, empty]);
        let mut read = Pack::open(&bytes).expect("a pack");
        for text in [&b"abcdef"[..], b"abcXdef", b"abcX", b""] {
            let found = read.object(&blob(text), 10);
            assert_eq!(found, Ok(Found::Object(ObjectKind::Blob, text.to_vec())));
        }
        assert_eq!(read.object(&blob(b"abcXdef"), 6), Ok(Found::TooLarge));
        assert_eq!(read.object(&blob(b"other"), 6), Ok(Found::Missing));
        // The same with the chain first: ids are found from whole objects outwards.
        let chain = object(7, blob(b"abcXdef").as_bytes(), &second);
        let delta = object(7, blob(b"abcdef").as_bytes(), DELTA);
        let bytes = pack(&[chain, delta, object(3, &[], b"abcdef")]);
        let mut read = Pack::open(&bytes).expect("a pack");
        assert!(matches!(read.object(&blob(b"abcX"), 10), Ok(Found::Object(..))));
    }

    #[track_caller]
    fn refused(bytes: &[u8], expect: &str) {
        let error = Pack::open(bytes).expect_err(expect);
        assert!(error.said.contains(expect), "{error}");
    }

    #[test]
    fn every_cut_and_every_flipped_bit_is_refused() {
        let base = object(3, &[], b"abcdef");
        let back = u8::try_from(base.len()).expect("short");
        let bytes = pack(&[base, object(6, &[back], DELTA)]);
        for cut in 0..bytes.len() {
            assert!(Pack::open(&bytes[..cut]).is_err(), "{cut}");
        }
        for bit in 0..8 * bytes.len() {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(Pack::open(&bytes).is_err(), "{bit}");
        }
    }

    #[test]
    fn no_bytes_under_a_right_checksum_panic() {
        let base = object(3, &[], b"abcdef");
        let back = u8::try_from(base.len()).expect("short");
        let last = object(7, blob(b"abcXdef").as_bytes(), &[7, 4, 0x90, 4]);
        let body = [base, object(6, &[back], DELTA), last].concat();
        for byte in 0..body.len() {
            for value in 0..=255 {
                let mut body = body.clone();
                body[byte] = value;
                if let Ok(mut read) = Pack::open(&pack_of(3, &body)) {
                    let _ = read.object(&blob(b"abcX"), 10);
                }
            }
        }
    }

    #[test]
    fn hostile_packs_are_refused_for_what_they_are() {
        let base = object(3, &[], b"abcdef");
        refused(&pack_of(2, &base), "breaks off");
        refused(&pack_of(0, &base), "behind the last");
        refused(&pack_of(u32::MAX, &base), "more objects");
        refused(&pack(&[base.clone(), base.clone()]), "there twice");
        refused(&pack(&[object(5, &[], b"abc")]), "no known type");
        refused(&pack(&[object(0, &[], b"abc")]), "no known type");
        refused(&pack(&[object(7, &[9; 20], DELTA)]), "not in the pack");
        refused(&pack(&[base.clone(), object(6, &[1], DELTA)]), "no object before it");
        refused(&pack(&[object(6, &[0], DELTA)]), "no object before it");
        refused(&pack(&[object(6, &[0xff; 9], DELTA)]), "before the pack");
        refused(&pack(&[object(6, &[0xfe, 0xfe, 0xfe, 0xfe, 0x7f], DELTA)]), "before the pack");
        // Two deltas that name each other.
        let one = object(7, blob(b"abcX").as_bytes(), DELTA);
        let two = object(7, blob(b"abcXdef").as_bytes(), &[7, 4, 0x90, 4]);
        refused(&pack(&[one, two]), "not in the pack");
        // Sizes that lie.
        refused(&pack(&[[header(3, 5), zlib(b"abcdef")].concat()]), "not what is stated");
        refused(&pack(&[[header(3, 7), zlib(b"abcdef")].concat()]), "not what is stated");
        refused(&pack(&[[vec![0xbf, 0xff, 0xff, 0x3f], zlib(b"a")].concat()]), "not what is stated");
        refused(&pack(&[[vec![0xbf, 0xff, 0xff, 0xff, 0x7f], zlib(b"a")].concat()]), "beyond the limit");
        refused(
            &pack(&[[vec![0xbf, 0xff, 0xff, 0xff, 0xff, 0xff], zlib(b"a")].concat()]),
            "beyond the limit",
        );
        refused(&pack(&[[header(3, 3), vec![0x78, 1, 7, 7, 7]].concat()]), "damaged");
    }

    #[test]
    fn a_chain_beyond_the_limit_is_refused() {
        let mut text = vec![b'a'];
        let mut objects = vec![object(3, &[], &text)];
        for length in 1..200 {
            let id = blob(&text);
            text.push(b'a');
            let short = [length, length + 1, 0x90, length, 1, b'a'];
            let delta = if length < 127 {
                short.to_vec()
            } else {
                let next = length + 1;
                let size = |of: u8| [of & 0x7f | 0x80, of >> 7];
                [&size(length)[..], &size(next), &[0x90, length, 1, b'a']].concat()
            };
            objects.push(object(7, id.as_bytes(), &delta));
        }
        let bytes = pack(&objects);
        assert!(Pack::open(&bytes).is_ok());
        // Another hundred that each go back to the same length.
        for number in 0..100u8 {
            let id = blob(&text);
            let last = text.len();
            text[last - 1] = number;
            let (length, keep) = (200, 199);
            let delta = [length & 0x7f | 0x80, 1, length & 0x7f | 0x80, 1, 0x90, keep, 1, number];
            objects.push(object(7, id.as_bytes(), &delta));
        }
        refused(&pack(&objects), "chain of deltas");
    }
}
