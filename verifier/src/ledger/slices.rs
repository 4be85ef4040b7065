//! Reading a row that is in canonical form, as nearly every row is: its parts, as slices of the line,
//! and the hash of what its hash covers, in one go.

use core::ops::Range;

use super::row::{Places, Row};
use crate::find::same;
use crate::hash::{BLOCK_LEN, Blocks, Digest, Ending, HEX_LEN};
use crate::json::prove;

/// A canonical row's parts as bytes: what verifying needs of it.
pub(super) struct Slices<'a> {
    text: &'a [u8],
    pub(super) entry_hash: &'a [u8; HEX_LEN],
    pub(super) kind: &'a [u8],
    pub(super) prev_hash: &'a [u8; HEX_LEN],
    pub(super) seq: &'a [u8],
    places: Places,
    /// The hash of what the row's hash covers.
    pub(super) computed: Digest,
}

impl<'a> Slices<'a> {
    /// The row's parts, if the line is shown to be canonical; `None` says nothing about it. Its two
    /// stated hashes may be any bytes: who uses them compares them with computed ones.
    #[inline]
    pub(super) fn prove(line: &'a [u8]) -> Option<Slices<'a>> {
        let mut scan = Scan { line, at: 0 };
        let entry_hash = scan.hash(b"{\"entry_hash\":\"", b"\",\"kind\":\"")?;
        let kind = scan.name(class::KIND)?;
        if !kind.first()?.is_ascii_lowercase() {
            return None;
        }
        scan.literal(b"\",\"payload\":")?;
        let payload_from = scan.at;
        if *line.get(payload_from)? != b'{' {
            return None;
        }
        let mut covered = Covered::start(line)?;
        scan.at = prove::object(line, payload_from, 2, &mut |to| covered.extend(to))?;
        let payload = payload_from..scan.at;
        let prev_hash = scan.hash(b",\"prev_hash\":\"", b"\",\"redactions\":")?;
        let covered_to = scan.at - b",\"redactions\":".len();
        let redactions = scan.natural()?;
        scan.literal(b",\"schema_version\":1,\"seq\":")?;
        let seq = scan.natural()?;
        let task_from = scan.at + 1;
        scan.literal(b",\"task_id\":\"")?;
        let task_id = scan.name(class::TASK_ID)?;
        let task_to = scan.at + 1;
        scan.literal(b"\",\"ts\":")?;
        let computed = covered.finish(covered_to, task_from - 1..task_to)?;
        let ts_from = scan.at;
        scan.at = prove::number(line, ts_from)?;
        let ts = ts_from..scan.at;
        scan.literal(b"}")?;
        if scan.at != line.len() {
            return None;
        }
        let back = |to: usize, part: &[u8]| to - part.len()..to;
        let seq_to = task_from - 1;
        let redactions_to = seq_to - seq.len() - b",\"schema_version\":1,\"seq\":".len();
        let prev_to = covered_to - 1;
        let places = Places {
            entry_hash: COVERED_FROM - b"\",".len() - HEX_LEN..COVERED_FROM - b"\",".len(),
            kind: back(payload.start - b"\",\"payload\":".len(), kind),
            payload,
            prev_hash: back(prev_to, prev_hash),
            redactions: back(redactions_to, redactions),
            seq: back(seq_to, seq),
            task_id: back(task_to - 1, task_id),
            ts,
            covered: (COVERED_FROM..covered_to, task_from..task_to),
        };
        Some(Slices { text: line, entry_hash, kind, prev_hash, seq, places, computed })
    }

    /// The row with its parts as text. All of it is ASCII: it was proven so.
    pub(super) fn row(&self) -> Row<'a> {
        self.places.row(self.text)
    }
}

/// Where `"kind"` stands in every row.
const COVERED_FROM: usize = br#"{"entry_hash":"","#.len() + HEX_LEN;

/// The hash of what a row's hash covers, taken while the row is read.
struct Covered<'a> {
    line: &'a [u8],
    blocks: Blocks,
    /// Up to where the line is hashed.
    to: usize,
}

impl<'a> Covered<'a> {
    /// Takes the first block; no row is so short that it covers less.
    #[inline]
    fn start(line: &'a [u8]) -> Option<Covered<'a>> {
        let to = COVERED_FROM + BLOCK_LEN - 1;
        let first = opened(line.get(COVERED_FROM - 1..)?.first_chunk()?);
        let mut blocks = Blocks::new();
        blocks.update(&[first]);
        Some(Covered { line, blocks, to })
    }

    /// Takes the whole blocks of the line up to `to`.
    #[inline]
    fn extend(&mut self, to: usize) {
        let known = self.line.get(self.to..to).unwrap_or_default().as_chunks().0;
        if !known.is_empty() {
            self.blocks.update(known);
            self.to += known.len() * BLOCK_LEN;
        }
    }

    /// The hash: what is covered goes on up to `to`, and then with the task from the comma on.
    #[inline]
    fn finish(self, to: usize, task: Range<usize>) -> Option<Digest> {
        let (known, rest) = self.line.get(self.to..to)?.as_chunks();
        let mut ending = Ending::new();
        ending.push::<BLOCK_LEN>(self.line.get(to - rest.len()..)?, rest.len());
        ending.push::<32>(self.line.get(task.start..)?, task.len());
        ending.push::<1>(b"}", 1);
        Some(self.blocks.finish(known, &mut ending))
    }
}

/// The block with the brace that the message has where the row has a comma. Word by word: a byte
/// that is written alone would be waited for.
#[inline]
fn opened(block: &[u8; BLOCK_LEN]) -> [u8; BLOCK_LEN] {
    let mut change = [0; BLOCK_LEN];
    change[0] = b',' ^ b'{';
    let mut opened = [0; BLOCK_LEN];
    let words = block.as_chunks::<8>().0.iter().zip(change.as_chunks::<8>().0);
    for (opened, (word, change)) in opened.as_chunks_mut::<8>().0.iter_mut().zip(words) {
        *opened = (u64::from_ne_bytes(*word) ^ u64::from_ne_bytes(*change)).to_ne_bytes();
    }
    opened
}

/// Which bytes a name may have, as bits of a table.
mod class {
    pub(super) const TASK_ID: u8 = 1;
    pub(super) const KIND: u8 = 2;

    pub(super) static OF: [u8; 256] = {
        let mut table = [0; 256];
        let mut byte = 0u8;
        while byte < 128 {
            let common =
                byte.is_ascii_digit() || byte.is_ascii_lowercase() || matches!(byte, b'_' | b'.' | b'-');
            #[allow(clippy::as_conversions, reason = "widening, in a constant")]
            let index = byte as usize;
            if common {
                table[index] = TASK_ID | KIND;
            } else if byte.is_ascii_uppercase() {
                table[index] = TASK_ID;
            }
            byte += 1;
        }
        table
    };
}

struct Scan<'a> {
    line: &'a [u8],
    at: usize,
}

impl<'a> Scan<'a> {
    #[inline]
    fn literal<const N: usize>(&mut self, literal: &[u8; N]) -> Option<()> {
        let found = self.line.get(self.at..)?.first_chunk()?;
        self.at += N;
        same(found, literal).then_some(())
    }

    /// The hash that stands between two literals.
    #[inline]
    fn hash<const N: usize, const M: usize>(
        &mut self,
        before: &[u8; N],
        behind: &[u8; M],
    ) -> Option<&'a [u8; HEX_LEN]> {
        let (found, rest) = self.line.get(self.at..)?.split_first_chunk::<N>()?;
        let (hash, rest) = rest.split_first_chunk()?;
        self.at += N + HEX_LEN + M;
        (same(found, before) && same(rest.first_chunk()?, behind)).then_some(hash)
    }

    /// A name of at most 64 bytes of a class.
    #[inline]
    fn name(&mut self, class: u8) -> Option<&'a [u8]> {
        let rest = self.line.get(self.at..)?;
        let length = rest.iter().position(|&byte| class::OF[usize::from(byte)] & class == 0)?;
        self.at += length;
        (length <= 64).then(|| &rest[..length])
    }

    /// A decimal without leading zeros that surely fits 64 bits.
    #[inline]
    fn natural(&mut self) -> Option<&'a [u8]> {
        let rest = self.line.get(self.at..)?;
        let digits = rest.iter().position(|byte| !byte.is_ascii_digit())?;
        self.at += digits;
        let canonical = (1..=19).contains(&digits) && (digits == 1 || rest[0] != b'0');
        canonical.then(|| &rest[..digits])
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::String;
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::super::row::{RowText, is_hex, read};
    use super::*;
    use crate::id::{Kind, TaskId};
    use crate::json::{self, Object, Value};

    fn row(kind: &str, task: &str, payload: &Object, seq: u64, ts: f64) -> Vec<u8> {
        let kind = Kind::new(kind).expect("a kind");
        let task = TaskId::new(task).expect("a task id");
        let prev = Digest::of(&seq.to_le_bytes());
        RowText::next(&kind, &task, payload, (seq, &prev), seq % 7, ts).0.as_bytes().to_vec()
    }

    /// Holds this against parsing, encoding and hashing; says whether the line was proven.
    fn check(line: &[u8]) -> bool {
        let Some(slices) = Slices::prove(line) else { return false };
        // Whoever proves a row compares its hashes with ones that were computed.
        if is_hex(slices.entry_hash) && is_hex(slices.prev_hash) {
            let Ok(Value::Object(object)) = json::parse(line) else { panic!("proven, and not an object") };
            let text = read(&object).expect("proven, so it is a row");
            assert_eq!(text.as_bytes(), line);
            assert_eq!(text.row(), slices.row());
            assert_eq!(text.row().computed_hash(), slices.computed);
        }
        true
    }

    #[test]
    fn every_length_of_every_part_is_hashed_as_the_slow_way_hashes_it() {
        for length in 0..300 {
            let text = "x".repeat(length);
            let name = &"abc_"[..].repeat(20)[..1 + length % 64];
            let task = &"T-1."[..].repeat(20)[..length % 65];
            for payload in [Object::of([("a", Value::from(&*text))]), Object::of([(&*text, Value::Null)])] {
                let line = row(name, task, &payload, 7, 1.5);
                assert!(check(&line), "{length}");
            }
        }
        assert!(check(&row("k", "", &Object::of([]), 0, 0.0)));
    }

    proptest! {
        #[test]
        fn a_row_is_read_and_hashed_as_the_slow_way_does(
            kind in "[a-z][a-z0-9_.-]{0,63}",
            task in "[A-Za-z0-9_.-]{0,64}",
            payload in prop::collection::vec(("[a-z]{0,9}", ".{0,90}"), 0..6),
            seq: u64,
            seconds in 0u32..=u32::MAX,
            part in 0.0..1.0f64,
        ) {
            let payload = Object::of(payload.iter().map(|(key, text)| (&**key, Value::from(&**text))));
            let line = row(&kind, &task, &payload, seq % 10_000_000_000_000_000_000, f64::from(seconds) + part);
            prop_assert!(check(&line), "{}", String::from_utf8_lossy(&line));
        }

        #[test]
        fn a_row_that_is_changed_anywhere_is_read_as_the_slow_way_does(
            text in "[ -~]{0,40}",
            place: prop::sample::Index,
            with in "[ -~\u{e9}]{0,3}",
            cut in 0usize..3,
        ) {
            let payload = Object::of([("a", Value::from(1u64)), ("b", Value::from(&*text))]);
            let mut line = row("task.started", "t1", &payload, 12, 1_795_975_359.921_363_8);
            let from = place.index(line.len());
            line.splice(from..(from + cut).min(line.len()), with.bytes());
            check(&line);
        }
    }
}
