//! Unpacking gzip files as they arrive: archived days of the audit log.
//!
//! ```text
//! 1f 8b 08 FLG MTIME*4 XFL OS [EXTRA] [NAME 00] [COMMENT 00] [HCRC*2]  DEFLATE…  CRC32*4 ISIZE*4
//! ```
//! (little endian). Exactly one member, its checksum and length right, and nothing behind it:
//! bytes that another reader would skip or would read on are no part of an archive. What was
//! unpacked before an error was found has been handed on already; the error says that it does
//! not stand.
//!
//! Source: RFC 1952. Does not prove who packed it: the checksum has no key.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::inflate_flags::TINFL_FLAG_HAS_MORE_INPUT;
use miniz_oxide::inflate::core::{DecompressorOxide, TINFL_LZ_DICT_SIZE, decompress};

/// The longest header that is read: names and comments are not what archives are for.
const MAX_HEADER: usize = 64 << 10;

/// The header of the files that we pack: no name, no time, best compression, no system named.
pub const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 0xff];

/// What stands behind the compressed bytes: the checksum and the length of what they unpack to.
#[derive(Clone, Copy, Debug)]
pub struct Trailer {
    crc: u32,
    size: u64,
}

impl Default for Trailer {
    fn default() -> Trailer {
        Trailer { crc: !0, size: 0 }
    }
}

impl Trailer {
    /// Takes the next bytes that are packed.
    pub fn push(&mut self, bytes: &[u8]) {
        self.crc = crc32(self.crc, bytes);
        self.size = self.size.wrapping_add(crate::chain::length(bytes));
    }

    /// The eight bytes.
    #[must_use]
    pub fn bytes(&self) -> [u8; 8] {
        let [a, b, c, d] = (!self.crc).to_le_bytes();
        let [e, f, g, h, ..] = self.size.to_le_bytes();
        [a, b, c, d, e, f, g, h]
    }
}

/// Why a file is not one whole gzip member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GzipError {
    /// It does not start as gzip, or uses what RFC 1952 reserves.
    NotGzip,
    /// The compressed bytes are damaged.
    Damaged,
    /// It ends before its end.
    Truncated,
    /// The unpacked bytes have another checksum or length than stated.
    Mismatch,
    /// Something stands behind the member.
    Trailing,
    /// It unpacks to more than the cap.
    TooLarge {
        /// The cap, in bytes.
        cap: u64,
    },
}

impl fmt::Display for GzipError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GzipError::NotGzip => f.write_str("it is not gzip"),
            GzipError::Damaged => f.write_str("its compressed bytes are damaged"),
            GzipError::Truncated => f.write_str("it is cut off before its end"),
            GzipError::Mismatch => f.write_str("what it unpacks to has another checksum or length"),
            GzipError::Trailing => f.write_str("something stands behind its end"),
            GzipError::TooLarge { cap } => write!(f, "it unpacks to more than {cap} bytes"),
        }
    }
}

impl core::error::Error for GzipError {}

/// A gzip file that is unpacked while its bytes arrive.
pub struct Gunzip {
    stage: Stage,
    /// Bytes of the header or the trailer that are not complete yet.
    held: Vec<u8>,
    inflate: Box<DecompressorOxide>,
    /// The last 32 KiB, which the compressed bytes refer back to.
    window: Vec<u8>,
    out: usize,
    crc: u32,
    size: u64,
    cap: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Header,
    Body,
    Trailer,
    Done,
    Failed(GzipError),
}

impl Gunzip {
    /// A file that may unpack to at most `cap` bytes.
    #[must_use]
    pub fn new(cap: u64) -> Gunzip {
        Gunzip {
            stage: Stage::Header,
            held: Vec::new(),
            inflate: Box::new(DecompressorOxide::new()),
            window: vec![0; TINFL_LZ_DICT_SIZE],
            out: 0,
            crc: !0,
            size: 0,
            cap,
        }
    }

    /// Takes the next bytes of the file, and hands on what they unpack to.
    ///
    /// # Errors
    ///
    /// What is wrong with the file; the same again for whatever follows.
    pub fn push(&mut self, bytes: &[u8], mut unpacked: impl FnMut(&[u8])) -> Result<(), GzipError> {
        let pushed = self.take(bytes, &mut unpacked);
        if let Err(error) = pushed {
            self.stage = Stage::Failed(error);
        }
        pushed
    }

    /// Says whether the file is whole.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn finish(self) -> Result<(), GzipError> {
        match self.stage {
            Stage::Done => Ok(()),
            Stage::Failed(error) => Err(error),
            _ => Err(GzipError::Truncated),
        }
    }

    fn take(&mut self, bytes: &[u8], unpacked: &mut impl FnMut(&[u8])) -> Result<(), GzipError> {
        let mut rest = bytes;
        if self.stage == Stage::Header {
            self.held.extend_from_slice(rest);
            let Some(length) = header_length(&self.held)? else {
                return Ok(());
            };
            let held = core::mem::take(&mut self.held);
            self.stage = Stage::Body;
            return self.take(&held[length..], unpacked);
        }
        if self.stage == Stage::Body {
            rest = self.inflate(rest, unpacked)?;
        }
        if self.stage == Stage::Trailer {
            let (mine, behind) = rest.split_at(rest.len().min(8 - self.held.len()));
            self.held.extend_from_slice(mine);
            rest = behind;
            if let Ok(trailer) = <[u8; 8]>::try_from(self.held.as_slice()) {
                self.check(trailer)?;
                self.stage = Stage::Done;
            }
        }
        match self.stage {
            Stage::Done if !rest.is_empty() => Err(GzipError::Trailing),
            Stage::Failed(error) => Err(error),
            _ => Ok(()),
        }
    }

    fn inflate<'a>(
        &mut self,
        mut rest: &'a [u8],
        unpacked: &mut impl FnMut(&[u8]),
    ) -> Result<&'a [u8], GzipError> {
        loop {
            let (status, read, written) =
                decompress(&mut self.inflate, rest, &mut self.window, self.out, TINFL_FLAG_HAS_MORE_INPUT);
            rest = &rest[read..];
            let piece = &self.window[self.out..self.out + written];
            self.size = self.size.saturating_add(crate::chain::length(piece));
            if self.size > self.cap {
                return Err(GzipError::TooLarge { cap: self.cap });
            }
            self.crc = crc32(self.crc, piece);
            unpacked(piece);
            self.out = (self.out + written) % TINFL_LZ_DICT_SIZE;
            match status {
                TINFLStatus::Done => {
                    self.stage = Stage::Trailer;
                    return Ok(rest);
                }
                TINFLStatus::HasMoreOutput => {}
                TINFLStatus::NeedsMoreInput if rest.is_empty() => return Ok(rest),
                _ => return Err(GzipError::Damaged),
            }
        }
    }

    fn check(&self, trailer: [u8; 8]) -> Result<(), GzipError> {
        let [a, b, c, d, size @ ..] = trailer;
        let length = u64::from(u32::from_le_bytes(size));
        let fits = u32::from_le_bytes([a, b, c, d]) == !self.crc && length == self.size & 0xffff_ffff;
        if fits { Ok(()) } else { Err(GzipError::Mismatch) }
    }
}

impl fmt::Debug for Gunzip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gunzip").field("unpacked", &self.size).field("cap", &self.cap).finish()
    }
}

/// How long the header is, once all of it is there.
fn header_length(bytes: &[u8]) -> Result<Option<usize>, GzipError> {
    const MAGIC: [u8; 3] = [0x1f, 0x8b, 8];
    let magic = bytes.len().min(MAGIC.len());
    if bytes[..magic] != MAGIC[..magic] {
        return Err(GzipError::NotGzip);
    }
    let Some(&flags) = bytes.get(3) else {
        return Ok(None);
    };
    if flags & 0b1110_0000 != 0 {
        return Err(GzipError::NotGzip);
    }
    let length = header_fields(bytes, flags);
    if length.unwrap_or(bytes.len()) > MAX_HEADER {
        return Err(GzipError::NotGzip);
    }
    Ok(length.filter(|&length| length <= bytes.len()))
}

fn header_fields(bytes: &[u8], flags: u8) -> Option<usize> {
    let mut at = 10;
    if flags & 4 != 0 {
        let length = bytes.get(at..at + 2)?;
        at += 2 + usize::from(u16::from_le_bytes([length[0], length[1]]));
    }
    for text in [8, 16] {
        if flags & text != 0 {
            at += 1 + bytes.get(at..)?.iter().position(|&byte| byte == 0)?;
        }
    }
    Some(at + if flags & 2 != 0 { 2 } else { 0 })
}

fn crc32(crc: u32, bytes: &[u8]) -> u32 {
    bytes.iter().fold(crc, |crc, &byte| {
        let [low, ..] = crc.to_le_bytes();
        TABLE[usize::from(low ^ byte)] ^ crc >> 8
    })
}

const TABLE: [u32; 256] = table();

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut index = 0;
    let mut entry: u32 = 0;
    while index < 256 {
        let mut crc = entry;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { 0xedb8_8320 ^ crc >> 1 } else { crc >> 1 };
            bit += 1;
        }
        table[index] = crc;
        index += 1;
        entry += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text() -> Vec<u8> {
        (0..30_000u32).map(|at| if at % 7 == 0 { b'\n' } else { at.to_le_bytes()[0] % 23 + b'a' }).collect()
    }

    fn sample() -> Vec<u8> {
        let text = text();
        let mut packed = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 255];
        packed.extend(miniz_oxide::deflate::compress_to_vec(&text, 6));
        packed.extend_from_slice(&(!crc32(!0, &text)).to_le_bytes());
        packed.extend_from_slice(&30_000u32.to_le_bytes());
        packed
    }

    #[test]
    fn the_checksum_is_that_of_rfc_1952() {
        assert_eq!(!crc32(!0, b"123456789"), 0xcbf4_3926);
    }

    fn unpack(bytes: &[u8], size: usize, cap: u64) -> Result<Vec<u8>, GzipError> {
        let mut gunzip = Gunzip::new(cap);
        let mut out = Vec::new();
        for piece in bytes.chunks(size) {
            gunzip.push(piece, |piece| out.extend_from_slice(piece))?;
        }
        gunzip.finish()?;
        Ok(out)
    }

    #[test]
    fn a_member_unpacks_whatever_pieces_it_comes_in() {
        let packed = sample();
        for size in [1, 2, 3, 7, 4096] {
            assert_eq!(unpack(&packed, size, 1 << 20), Ok(text()));
        }
    }

    #[test]
    fn header_fields_are_skipped() {
        let mut packed = sample();
        let fields = [&[4u8, 0][..], b"abcd", b"name\0", b"comment\0", &[1, 2]].concat();
        packed[3] = 4 | 8 | 16 | 2;
        packed.splice(10..10, fields);
        for size in [1, 5, 4096] {
            assert_eq!(unpack(&packed, size, 1 << 20), Ok(text()));
        }
        packed[3] = 0x20;
        assert_eq!(unpack(&packed, 9, 1 << 20), Err(GzipError::NotGzip));
    }

    #[test]
    fn every_cut_and_every_addition_is_refused() {
        let packed = sample();
        for length in 0..packed.len() {
            assert_eq!(unpack(&packed[..length], 5, 1 << 20), Err(GzipError::Truncated), "{length}");
        }
        let mut longer = packed.clone();
        longer.push(0);
        assert_eq!(unpack(&longer, 5, 1 << 20), Err(GzipError::Trailing));
        assert_eq!(unpack(&[packed.clone(), packed].concat(), 5, 1 << 20), Err(GzipError::Trailing));
    }

    #[test]
    fn no_changed_byte_that_changes_the_text_passes() {
        let packed = sample();
        for at in 0..packed.len() {
            for flip in [1, 0x80] {
                let mut changed = packed.clone();
                changed[at] ^= flip;
                if let Ok(unpacked) = unpack(&changed, 4096, 1 << 20) {
                    assert_eq!(unpacked, text(), "byte {at}");
                }
            }
        }
    }

    #[test]
    fn what_unpacks_to_more_than_the_cap_is_refused() {
        assert_eq!(unpack(&sample(), 4096, 30_000), Ok(text()));
        assert_eq!(unpack(&sample(), 4096, 29_999), Err(GzipError::TooLarge { cap: 29_999 }));
    }
}
