//! A canonical row's parts, as slices of the line that it was read from.

use super::row::{Row, hash_covered};
use crate::hash::{Digest, HEX_LEN};
use crate::json::prove;

/// A canonical row's parts as bytes: what verifying needs of it.
#[derive(Clone, Copy)]
pub(crate) struct Slices<'a> {
    text: &'a [u8],
    pub(crate) entry_hash: &'a [u8],
    pub(crate) kind: &'a [u8],
    payload: &'a [u8],
    pub(crate) prev_hash: &'a [u8],
    redactions: &'a [u8],
    pub(crate) seq: &'a [u8],
    task_id: &'a [u8],
    ts: &'a [u8],
    covered: (&'a [u8], &'a [u8]),
}

impl<'a> Slices<'a> {
    /// The row's parts, if the line is shown to be canonical; `None` says nothing about it.
    #[inline]
    pub(crate) fn prove(line: &'a [u8]) -> Option<Slices<'a>> {
        Slices::split(line, |line, at| prove::object(line, at, 2))
    }

    /// The parts of a canonical text whose payload ends where `payload_end` says.
    #[inline]
    pub(super) fn split(
        line: &'a [u8],
        payload_end: impl FnOnce(&[u8], usize) -> Option<usize>,
    ) -> Option<Slices<'a>> {
        let mut scan = Scan { line, at: 0 };
        scan.literal(b"{\"entry_hash\":\"")?;
        let entry_hash = scan.take(HEX_LEN)?;
        scan.literal(b"\",")?;
        let covered_from = scan.at;
        scan.literal(b"\"kind\":\"")?;
        let kind = scan.name(class::KIND)?;
        if !kind.first()?.is_ascii_lowercase() {
            return None;
        }
        scan.literal(b"\",\"payload\":")?;
        let payload_from = scan.at;
        if *line.get(payload_from)? != b'{' {
            return None;
        }
        scan.at = payload_end(line, payload_from)?;
        let payload = line.get(payload_from..scan.at)?;
        scan.literal(b",\"prev_hash\":\"")?;
        let prev_hash = scan.take(HEX_LEN)?;
        scan.literal(b"\"")?;
        let covered_to = scan.at;
        scan.literal(b",\"redactions\":")?;
        let redactions = scan.natural()?;
        scan.literal(b",\"schema_version\":1,\"seq\":")?;
        let seq = scan.natural()?;
        scan.literal(b",")?;
        let task_from = scan.at;
        scan.literal(b"\"task_id\":\"")?;
        let task_id = scan.name(class::TASK_ID)?;
        scan.literal(b"\"")?;
        let task_to = scan.at;
        scan.literal(b",\"ts\":")?;
        let ts_from = scan.at;
        scan.at = prove::number(line, ts_from)?;
        let ts = &line[ts_from..scan.at];
        scan.literal(b"}")?;
        if scan.at != line.len() {
            return None;
        }
        let covered = (&line[covered_from..covered_to], &line[task_from..task_to]);
        Some(Slices {
            text: line,
            entry_hash,
            kind,
            payload,
            prev_hash,
            redactions,
            seq,
            task_id,
            ts,
            covered,
        })
    }

    /// The hash of what the row's hash covers.
    pub(crate) fn computed_hash(&self) -> Digest {
        hash_covered(self.covered.0, self.covered.1)
    }

    /// The parts as text. All of it is ASCII: it was proven, or encoded, so.
    pub(crate) fn row(&self) -> Row<'a> {
        let text = |bytes| core::str::from_utf8(bytes).unwrap_or_default();
        Row {
            text: text(self.text),
            entry_hash: text(self.entry_hash),
            kind: text(self.kind),
            payload: text(self.payload),
            prev_hash: text(self.prev_hash),
            redactions: text(self.redactions),
            seq: text(self.seq),
            task_id: text(self.task_id),
            ts: text(self.ts),
            covered: (text(self.covered.0), text(self.covered.1)),
        }
    }
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
    fn literal(&mut self, literal: &[u8]) -> Option<()> {
        let found = self.line.get(self.at..)?.starts_with(literal);
        self.at += literal.len();
        found.then_some(())
    }

    #[inline]
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let taken = self.line.get(self.at..self.at + count)?;
        self.at += count;
        Some(taken)
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
