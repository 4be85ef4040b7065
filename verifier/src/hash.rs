//! SHA-256 digests as the formats write them: 64 lowercase hex digits.
//!
//! Source: FIPS 180-4. The genesis value of the ledger, the step journal and the audit log is
//! 64 zeros; the event journal and the lineage spine start from the empty string instead.

use alloc::string::String;
use core::fmt;

use sha2::block_api::compress256;
use sha2::{Digest as _, Sha256};

/// How many hex digits a digest has.
pub const HEX_LEN: usize = 64;

/// What the first row of a ledger, step journal or audit log names as its predecessor.
pub const GENESIS: [u8; HEX_LEN] = [b'0'; HEX_LEN];

/// A SHA-256 digest: 32 bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// 64 zeros in hex: the head of an empty chain.
    pub const ZERO: Digest = Digest([0; 32]);

    /// The digest of one message.
    #[must_use]
    pub fn of(message: &[u8]) -> Digest {
        Digest::of_parts(&[message])
    }

    /// The digest of a message that is the concatenation of `parts`.
    #[must_use]
    pub fn of_parts(parts: &[&[u8]]) -> Digest {
        let mut hasher = Sha256::new();
        for part in parts {
            hasher.update(part);
        }
        Digest(hasher.finalize().into())
    }

    /// Wraps 32 bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Digest {
        Digest(bytes)
    }

    /// Reads exactly 64 lowercase hex digits; anything else is `None`.
    #[must_use]
    pub fn from_hex(text: &[u8]) -> Option<Digest> {
        let text: &[u8; HEX_LEN] = text.try_into().ok()?;
        let mut bytes = [0; 32];
        // Looked at all together in the end: comparing chains reads a hash of every row.
        let mut all = 0;
        for (byte, pair) in bytes.iter_mut().zip(text.as_chunks::<2>().0) {
            let [high, low] = pair.map(|digit| NIBBLES[usize::from(digit)]);
            all |= high | low;
            *byte = high << 4 | low;
        }
        (all != NO_NIBBLE).then_some(Digest(bytes))
    }

    /// The 32 bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The 64 lowercase hex digits, as ASCII bytes.
    #[must_use]
    pub fn hex(&self) -> [u8; HEX_LEN] {
        let mut out = [0; HEX_LEN];
        for (digits, bytes) in out.as_chunks_mut().0.iter_mut().zip(self.0.as_chunks().0) {
            *digits = eight_digits(*bytes);
        }
        out
    }

    /// The 64 lowercase hex digits, as an owned string.
    #[must_use]
    pub fn to_hex(&self) -> String {
        self.hex().iter().map(|&byte| char::from(byte)).collect()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.hex().iter().try_for_each(|&byte| fmt::Write::write_char(f, char::from(byte)))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

/// A running SHA-256, for what arrives in pieces.
#[derive(Clone, Default)]
pub struct Hasher(Sha256);

impl Hasher {
    /// A hasher that has seen nothing.
    #[must_use]
    pub fn new() -> Hasher {
        Hasher::default()
    }

    /// Takes more of the message.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of all that was taken.
    #[must_use]
    pub fn finish(self) -> Digest {
        Digest(self.0.finalize().into())
    }
}

impl fmt::Debug for Hasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hasher")
    }
}

/// How many bytes SHA-256 takes at a time.
pub(crate) const BLOCK_LEN: usize = 64;

/// SHA-256 by whole blocks, for a message that is hashed while it is read for something else.
///
/// Each round waits for the one before; a processor does other work meanwhile, if it finds any
/// among the next few hundred instructions.
#[derive(Clone, Debug)]
pub(crate) struct Blocks {
    state: [u32; 8],
    hashed: usize,
}

impl Blocks {
    /// A hasher that has seen nothing. The words are those of FIPS 180-4 5.3.3.
    pub(crate) fn new() -> Blocks {
        let state = [
            0x6a09_e667,
            0xbb67_ae85,
            0x3c6e_f372,
            0xa54f_f53a,
            0x510e_527f,
            0x9b05_688c,
            0x1f83_d9ab,
            0x5be0_cd19,
        ];
        Blocks { state, hashed: 0 }
    }

    /// Takes the message's next blocks.
    #[inline]
    pub(crate) fn update(&mut self, blocks: &[[u8; BLOCK_LEN]]) {
        compress256(&mut self.state, blocks);
        self.hashed += blocks.len() * BLOCK_LEN;
    }

    /// The digest of the message that goes on with `blocks` and ends with `ending`.
    #[inline]
    pub(crate) fn finish(mut self, blocks: &[[u8; BLOCK_LEN]], ending: &mut Ending) -> Digest {
        let hashed = self.hashed + blocks.len() * BLOCK_LEN;
        let padded = ending.pad(hashed);
        // Behind the padding: what was just written is ready when these blocks are done.
        self.update(blocks);
        self.update(padded);
        let mut digest = [0; 32];
        for (bytes, word) in digest.as_chunks_mut().0.iter_mut().zip(self.state) {
            *bytes = word.to_be_bytes();
        }
        Digest(digest)
    }
}

/// The end of a message, behind its whole blocks.
pub(crate) struct Ending {
    bytes: [u8; ENDING_LEN + PADDING_LEN],
    length: usize,
}

/// How long an [`Ending`] may be.
pub(crate) const ENDING_LEN: usize = 184;

/// The most that padding takes: a bit that is set, zeros, and the length in eight bytes.
const PADDING_LEN: usize = BLOCK_LEN + 8;

impl Ending {
    pub(crate) fn new() -> Ending {
        Ending { bytes: [0; ENDING_LEN + PADDING_LEN], length: 0 }
    }

    /// Appends the first `length` of `bytes`. Up to `N` are copied, if there are so many, because a
    /// copy of one size for all is quicker; the next one, or the padding, overwrites the rest.
    ///
    /// # Panics
    ///
    /// Beyond [`ENDING_LEN`] bytes, or where `bytes` is shorter than `length`.
    #[inline]
    pub(crate) fn push<const N: usize>(&mut self, bytes: &[u8], length: usize) {
        const { assert!(N <= BLOCK_LEN, "what padding clears") }
        let room = &mut self.bytes[self.length..ENDING_LEN];
        match (room.first_chunk_mut::<N>(), bytes.first_chunk()) {
            (Some(room), Some(chunk)) if length <= N => *room = *chunk,
            _ => room[..length].copy_from_slice(&bytes[..length]),
        }
        self.length += length;
    }

    /// Clears what is left behind the end, and pads.
    #[inline]
    fn pad(&mut self, hashed: usize) -> &[[u8; BLOCK_LEN]] {
        let mut padding = [0; BLOCK_LEN];
        padding[0] = 0x80;
        self.bytes[self.length..self.length + BLOCK_LEN].copy_from_slice(&padding);
        let end = (self.length + 9).next_multiple_of(BLOCK_LEN);
        let bits = u64::try_from(hashed + self.length).unwrap_or(u64::MAX) * 8;
        self.bytes[end - 8..end].copy_from_slice(&bits.to_be_bytes());
        self.bytes[..end].as_chunks().0
    }
}

pub(crate) fn nibble(digit: u8) -> Option<u8> {
    let nibble = NIBBLES[usize::from(digit)];
    (nibble != NO_NIBBLE).then_some(nibble)
}

const NO_NIBBLE: u8 = 0xff;

/// What each byte is worth as a lowercase hex digit.
static NIBBLES: [u8; 256] = {
    let digits = b"0123456789abcdef";
    let mut table = [NO_NIBBLE; 256];
    let mut nibble = 0;
    while nibble < 16 {
        #[allow(clippy::as_conversions, reason = "widening, in a constant")]
        let (digit, index) = (digits[nibble as usize] as usize, nibble);
        table[digit] = index;
        nibble += 1;
    }
    table
};

/// The digits of four bytes, all at once: each half of a byte gets a byte of its own, and those
/// above nine are moved on to the letters.
pub(crate) fn eight_digits(bytes: [u8; 4]) -> [u8; 8] {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let mut halves = u64::from(u32::from_be_bytes(bytes));
    halves = (halves | halves << 16) & 0x0000_ffff_0000_ffff;
    halves = (halves | halves << 8) & 0x00ff_00ff_00ff_00ff;
    halves = (halves | halves << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    let above_nine = (halves + ONES * 6) >> 4 & ONES;
    let digits = halves + ONES * u64::from(b'0') + above_nine * u64::from(b'a' - b'0' - 10);
    digits.to_be_bytes()
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn hex_round_trips_and_is_lowercase_only() {
        let digest = Digest::of(b"abc");
        let hex = digest.to_hex();
        assert_eq!(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(Digest::from_hex(hex.as_bytes()), Some(digest));
        assert_eq!(Digest::from_hex(hex.to_uppercase().as_bytes()), None);
        assert_eq!(Digest::from_hex(&hex.as_bytes()[1..]), None);
        assert_eq!(Digest::of_parts(&[b"a", b"", b"bc"]), digest);
        assert_eq!(Digest::ZERO.hex(), GENESIS);
    }

    #[test]
    fn every_byte_has_its_two_digits_and_no_other_text_has_a_value() {
        for byte in 0..=255u8 {
            let digest = Digest([byte; 32]);
            assert_eq!(digest.to_hex(), alloc::format!("{byte:02x}").repeat(32));
            assert_eq!(Digest::from_hex(&digest.hex()), Some(digest));
            for at in [0, 1, 62, 63] {
                let mut text = GENESIS;
                text[at] = byte;
                let is_digit = matches!(byte, b'0'..=b'9' | b'a'..=b'f');
                assert_eq!(Digest::from_hex(&text).is_some(), is_digit, "{byte} at {at}");
            }
        }
    }

    #[test]
    fn a_message_hashed_by_blocks_has_the_digest_of_the_whole() {
        let message: Vec<u8> = (0..=255).cycle().take(400).collect();
        for length in 0..message.len() {
            for last in (length.saturating_sub(ENDING_LEN)..=length).filter(|last| last % 64 == 0) {
                let (first, second) = message[..last].split_at(last.min(64));
                let mut blocks = Blocks::new();
                blocks.update(first.as_chunks().0);
                let mut ending = Ending::new();
                let middle = last + (length - last) / 3;
                ending.push::<BLOCK_LEN>(&message[last..], middle - last);
                ending.push::<32>(&message[middle..], length - middle);
                let digest = blocks.finish(second.as_chunks().0, &mut ending);
                assert_eq!(digest, Digest::of(&message[..length]), "{last} of {length}");
            }
        }
    }
}
