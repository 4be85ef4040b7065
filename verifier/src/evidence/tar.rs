//! Tar archives, read as they arrive: `ustar` with regular files and folders, nothing else.
//!
//! ```text
//! name*100 mode*8 uid*8 gid*8 size*12 mtime*12 checksum*8 type link*100 "ustar\0" "00"
//! uname*32 gname*32 major*8 minor*8 prefix*155 0*12      then the bytes, filled up to 512
//! ```
//! Two blocks of zeros end it, and only zeros follow. Anything that two programs could unpack
//! differently is refused: links, devices, sparse and overlong names, a path twice, a path that
//! leaves the folder, sizes that are not plain octal, fields with something behind their end,
//! filling that is not zeros, extended headers that change a path or a size.
//!
//! Source: POSIX.1-2017 pax, "ustar Interchange Format". Does not prove who packed it.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use super::compose::shown;
use super::path;
use crate::table::Table;

const BLOCK: usize = 512;

/// How many files and folders an archive may have.
pub const MAX_MEMBERS: usize = 100_000;

/// The largest extended header that is read.
const MAX_EXTENDED: u64 = 64 << 10;

/// Why an archive is refused, and at which of its bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TarError {
    /// Where the block starts that is wrong.
    pub byte: u64,
    /// What is wrong.
    pub said: String,
}

impl fmt::Display for TarError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (byte {})", self.said, self.byte)
    }
}

impl core::error::Error for TarError {}

/// What comes out of an archive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Item<'a> {
    /// A file begins.
    Open(&'a str),
    /// Its next bytes.
    Bytes(&'a [u8]),
    /// It is whole.
    Close,
}

/// An archive that is unpacked while its bytes arrive.
#[derive(Debug)]
pub struct Untar {
    at: u64,
    stage: Stage,
    block: Vec<u8>,
    names: Table<()>,
}

#[derive(Debug)]
enum Stage {
    Header,
    File { left: u64, size: u64 },
    Extended { left: u64, size: u64, global: bool, text: Vec<u8> },
    Filling { left: u64 },
    End { blocks: u64 },
}

/// Whether bytes start as an archive does.
#[must_use]
pub fn is_one(beginning: &[u8]) -> bool {
    beginning.get(257..262) == Some(b"ustar")
}

impl Default for Untar {
    fn default() -> Untar {
        Untar { at: 0, stage: Stage::Header, block: Vec::with_capacity(BLOCK), names: Table::new() }
    }
}

impl Untar {
    /// Takes the next bytes. What came out before an error was found does not stand.
    ///
    /// # Errors
    ///
    /// It is not an archive of the one form that is read, or `out` refused something.
    pub fn push(
        &mut self,
        mut bytes: &[u8],
        mut out: impl FnMut(Item<'_>) -> Result<(), String>,
    ) -> Result<(), TarError> {
        while !bytes.is_empty() {
            let start = self.at;
            let fail = |said| TarError { byte: start, said };
            let taken = match &mut self.stage {
                Stage::Header | Stage::End { .. } => self.push_block(bytes, &mut out)?,
                Stage::File { left, size } => {
                    let (piece, size) = (&bytes[..at_most(*left, bytes.len())], *size);
                    out(Item::Bytes(piece)).map_err(fail)?;
                    *left -= length(piece);
                    if *left == 0 {
                        out(Item::Close).map_err(fail)?;
                        self.stage = after(size);
                    }
                    piece.len()
                }
                Stage::Extended { left, size, global, text } => {
                    let piece = &bytes[..at_most(*left, bytes.len())];
                    text.extend_from_slice(piece);
                    *left -= length(piece);
                    if *left == 0 {
                        harmless(text, *global).map_err(fail)?;
                        self.stage = after(*size);
                    }
                    piece.len()
                }
                Stage::Filling { left } => {
                    let piece = &bytes[..at_most(*left, bytes.len())];
                    if piece.iter().any(|&byte| byte != 0) {
                        return Err(fail("something is hidden behind a file's end".to_string()));
                    }
                    *left -= length(piece);
                    if *left == 0 {
                        self.stage = Stage::Header;
                    }
                    piece.len()
                }
            };
            self.at += length(&bytes[..taken]);
            bytes = &bytes[taken..];
        }
        Ok(())
    }

    /// Ends the archive.
    ///
    /// # Errors
    ///
    /// It is cut off.
    pub fn finish(&self) -> Result<(), TarError> {
        match self.stage {
            Stage::End { blocks: 2.. } if self.block.is_empty() => Ok(()),
            _ => Err(TarError { byte: self.at, said: String::from("the archive is cut off before its end") }),
        }
    }

    /// How many files and folders came out.
    #[must_use]
    pub fn members(&self) -> usize {
        self.names.len()
    }

    fn push_block(
        &mut self,
        bytes: &[u8],
        out: &mut impl FnMut(Item<'_>) -> Result<(), String>,
    ) -> Result<usize, TarError> {
        let taken = bytes.len().min(BLOCK - self.block.len());
        self.block.extend_from_slice(&bytes[..taken]);
        if self.block.len() < BLOCK {
            return Ok(taken);
        }
        let byte = (self.at + length(&bytes[..taken])).saturating_sub(length(&self.block));
        let block = core::mem::take(&mut self.block);
        let stage = self.next_stage(&block, out).map_err(|said| TarError { byte, said })?;
        self.stage = stage;
        self.block = block;
        self.block.clear();
        Ok(taken)
    }

    fn next_stage(
        &mut self,
        block: &[u8],
        out: &mut impl FnMut(Item<'_>) -> Result<(), String>,
    ) -> Result<Stage, String> {
        let zeros = block.iter().all(|&byte| byte == 0);
        if let Stage::End { blocks } = self.stage {
            return match zeros {
                true => Ok(Stage::End { blocks: blocks + 1 }),
                false => Err("something is hidden behind the archive's end".to_string()),
            };
        }
        if zeros {
            return Ok(Stage::End { blocks: 1 });
        }
        let header = Header::read(block)?;
        match header.kind {
            b'x' | b'g' if header.size > MAX_EXTENDED => {
                Err(format!("an extended header of {} bytes", header.size))
            }
            b'x' | b'g' if header.size == 0 => Ok(Stage::Header),
            kind @ (b'x' | b'g') => Ok(Stage::Extended {
                left: header.size,
                size: header.size,
                global: kind == b'g',
                text: Vec::new(),
            }),
            kind @ (b'0' | 0 | b'5') => {
                let folder = kind == b'5';
                let name = header.path(folder)?;
                if folder && header.size != 0 {
                    return Err(format!("the folder {name} has bytes"));
                }
                if self.names.len() == MAX_MEMBERS {
                    return Err(format!("more than {MAX_MEMBERS} members"));
                }
                if name.is_empty() {
                    return Ok(Stage::Header);
                }
                if self.names.insert(&name, ()).is_some() {
                    return Err(format!("{name} is there twice"));
                }
                if folder {
                    return Ok(Stage::Header);
                }
                out(Item::Open(&name))?;
                if header.size == 0 {
                    out(Item::Close)?;
                    return Ok(Stage::Header);
                }
                Ok(Stage::File { left: header.size, size: header.size })
            }
            kind => Err(refused(kind)),
        }
    }
}

fn refused(kind: u8) -> String {
    let what = match kind {
        b'1' => "a hard link",
        b'2' => "a symbolic link",
        b'3' | b'4' => "a device",
        b'6' => "a pipe",
        b'L' | b'K' => "a name too long for the form; pack it with 'tar --format=ustar'",
        b'S' => "a sparse file",
        _ => "of a kind that is not read",
    };
    format!("a member is {what}")
}

/// The stage behind `size` bytes.
fn after(size: u64) -> Stage {
    match size.next_multiple_of(512) - size {
        0 => Stage::Header,
        left => Stage::Filling { left },
    }
}

struct Header<'a> {
    block: &'a [u8],
    kind: u8,
    size: u64,
    gnu: bool,
}

impl<'a> Header<'a> {
    fn read(block: &'a [u8]) -> Result<Header<'a>, String> {
        let sum: u64 = block
            .iter()
            .enumerate()
            .map(|(at, &byte)| u64::from(if (148..156).contains(&at) { b' ' } else { byte }))
            .sum();
        if octal(&block[148..156]) != Some(sum) {
            return Err("a header's checksum is wrong".to_string());
        }
        let gnu = match &block[257..265] {
            b"ustar\x0000" => false,
            b"ustar  \0" => true,
            _ => return Err("a header is not of the form 'ustar'".to_string()),
        };
        let size = octal(&block[124..136]).ok_or("a size is not a plain octal number")?;
        Ok(Header { block, kind: block[156], size, gnu })
    }

    fn path(&self, folder: bool) -> Result<String, String> {
        let name = field(&self.block[..100])?;
        if !self.block[157..257].iter().all(|&byte| byte == 0) {
            return Err("a member names a link".to_string());
        }
        let prefix = match self.gnu {
            // The fields of an old extension stand there.
            true if self.block[345..].iter().all(|&byte| byte == 0) => "",
            true => return Err("a header uses extensions of its own".to_string()),
            false => field(&self.block[345..500])?,
        };
        let whole = if prefix.is_empty() { name.to_string() } else { format!("{prefix}/{name}") };
        let path = whole.strip_prefix("./").unwrap_or(&whole);
        let path = if folder { path.strip_suffix('/').unwrap_or(path) } else { path };
        if folder && (path.is_empty() || path == ".") {
            return Ok(String::new());
        }
        path::check(path)?;
        Ok(path.to_string())
    }
}

/// The text of a field: to its first NUL, behind which there must be nothing.
fn field(bytes: &[u8]) -> Result<&str, String> {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    if bytes[end..].iter().any(|&byte| byte != 0) {
        return Err("something is hidden behind a name's end".to_string());
    }
    core::str::from_utf8(&bytes[..end]).map_err(|_| "a name is not UTF-8".to_string())
}

fn octal(bytes: &[u8]) -> Option<u64> {
    let digits = bytes.trim_ascii_start();
    let end = digits.iter().position(|&byte| matches!(byte, 0 | b' ')).unwrap_or(digits.len());
    let (digits, rest) = digits.split_at(end);
    if digits.is_empty() || rest.iter().any(|&byte| !matches!(byte, 0 | b' ')) {
        return None;
    }
    digits.iter().try_fold(0_u64, |value, &digit| match digit {
        b'0'..=b'7' => value.checked_mul(8)?.checked_add(u64::from(digit - b'0')),
        _ => None,
    })
}

/// Refuses an extended header that changes what a file is called or how long it is.
fn harmless(mut text: &[u8], global: bool) -> Result<(), String> {
    let wrong = || "an extended header can't be read".to_string();
    while !text.is_empty() {
        let space = text.iter().take(8).position(|&byte| byte == b' ').ok_or_else(wrong)?;
        let stated: usize = core::str::from_utf8(&text[..space])
            .ok()
            .and_then(|digits| digits.parse().ok())
            .ok_or_else(wrong)?;
        let record = text.get(space + 1..stated).and_then(|record| record.strip_suffix(b"\n"));
        let record = record.and_then(|record| core::str::from_utf8(record).ok()).ok_or_else(wrong)?;
        let key = record.split_once('=').ok_or_else(wrong)?.0;
        let known = match key {
            "comment" => true,
            "mtime" | "atime" | "ctime" | "uid" | "gid" | "uname" | "gname" => !global,
            _ => !global && (key.starts_with("LIBARCHIVE.") || key.starts_with("SCHILY.")),
        };
        if !known {
            return Err(format!("an extended header sets {}; pack it with 'tar --format=ustar'", shown(key)));
        }
        text = &text[stated..];
    }
    Ok(())
}

fn length(bytes: &[u8]) -> u64 {
    crate::chain::length(bytes)
}

fn at_most(left: u64, available: usize) -> usize {
    usize::try_from(left).map_or(available, |left| left.min(available))
}

/// The header of a regular file with mode 0644 and no time, owner or group.
///
/// `None` if the path does not fit: more than 100 bytes in its last part or 155 before it.
#[must_use]
pub fn header(path: &str, size: u64) -> Option<[u8; BLOCK]> {
    let (prefix, name) = split(path)?;
    let mut block = [0; BLOCK];
    let mut put = |at: usize, bytes: &[u8]| block[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, name.as_bytes());
    put(100, b"0000644\0");
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    put(124, format!("{size:011o}\0").get(..12).filter(|_| size < 1 << 33)?.as_bytes());
    put(136, b"00000000000\0");
    put(148, b"        ");
    put(156, b"0");
    put(257, b"ustar\x0000");
    put(345, prefix.as_bytes());
    let sum: u64 = block.iter().map(|&byte| u64::from(byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    Some(block)
}

fn split(path: &str) -> Option<(&str, &str)> {
    path::check(path).ok()?;
    if path.len() <= 100 {
        return Some(("", path));
    }
    path.match_indices('/')
        .map(|(at, _)| (&path[..at], &path[at + 1..]))
        .find(|(prefix, name)| prefix.len() <= 155 && name.len() <= 100)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use alloc::vec;

    use super::*;

    fn member(path: &str, bytes: &[u8]) -> Vec<u8> {
        let mut all = header(path, length(bytes)).unwrap().to_vec();
        all.extend_from_slice(bytes);
        all.resize(all.len().next_multiple_of(BLOCK), 0);
        all
    }

    fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
        let mut all: Vec<u8> = members.iter().flat_map(|(path, bytes)| member(path, bytes)).collect();
        all.resize(all.len() + 2 * BLOCK, 0);
        all
    }

    fn unpack(bytes: &[u8], step: usize) -> Result<Vec<(String, Vec<u8>)>, String> {
        let mut untar = Untar::default();
        let mut files: Vec<(String, Vec<u8>)> = Vec::new();
        for piece in bytes.chunks(step) {
            let taken = untar.push(piece, |item| {
                match item {
                    Item::Open(path) => files.push((path.to_string(), Vec::new())),
                    Item::Bytes(bytes) => files.last_mut().unwrap().1.extend_from_slice(bytes),
                    Item::Close => {}
                }
                Ok(())
            });
            taken.map_err(|error| error.said)?;
        }
        untar.finish().map_err(|error| error.said)?;
        Ok(files)
    }

    /// Changes the first header and mends its checksum.
    fn edited(edit: impl FnOnce(&mut [u8])) -> Vec<u8> {
        let mut all = archive(&[("a/b.jsonl", b"hello")]);
        edit(&mut all);
        all[148..156].copy_from_slice(b"        ");
        let sum: u64 = all[..BLOCK].iter().map(|&byte| u64::from(byte)).sum();
        all[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        all
    }

    #[test]
    fn what_was_packed_comes_out_in_pieces_of_any_size() {
        let long = format!("{}/{}", "p".repeat(120), "n".repeat(90));
        let block = vec![7; 512];
        let members: [(&str, &[u8]); 4] = [("a", b""), ("b/c", b"xyz"), (&long, &block), ("z", b"1")];
        let all = archive(&members);
        for step in [1, 7, 511, 512, 513, 1 << 20] {
            let files = unpack(&all, step).unwrap();
            let seen: Vec<_> = files.iter().map(|(path, bytes)| (path.as_str(), bytes.as_slice())).collect();
            assert_eq!(seen, members);
        }
        assert_eq!(header(&"x".repeat(101), 0), None);
        assert_eq!(header("../x", 0), None);
        assert_eq!(header("x", 1 << 33), None);
    }

    #[test]
    fn every_cut_is_found() {
        let all = archive(&[("a", b"hello"), ("b", b"")]);
        for end in 0..all.len() {
            assert!(unpack(&all[..end], 512).is_err(), "{end}");
        }
        assert!(unpack(&all, 512).is_ok());
    }

    #[test]
    fn every_changed_byte_of_a_header_is_found() {
        let all = archive(&[("a", b"hello")]);
        for at in (0..512).chain(517..all.len()) {
            let mut changed = all.clone();
            changed[at] ^= 0x40;
            assert!(unpack(&changed, 512).is_err(), "{at}");
        }
    }

    #[test]
    fn what_two_programs_could_see_differently_is_refused() {
        let refused = |all: Vec<u8>, why: &str| {
            let said = unpack(&all, 512).unwrap_err();
            assert!(said.contains(why), "{said:?} should say {why:?}");
        };
        for (kind, why) in
            [(b'1', "hard link"), (b'2', "symbolic"), (b'3', "device"), (b'S', "sparse"), (b'7', "kind")]
        {
            refused(edited(|all| all[156] = kind), why);
        }
        refused(edited(|all| all[157] = b'x'), "names a link");
        refused(edited(|all| all[20] = b'x'), "behind a name");
        refused(edited(|all| all[124] = 0x80), "octal");
        refused(edited(|all| all[..9].copy_from_slice(b"../b.json")), "leaves");
        refused(edited(|all| all[..9].copy_from_slice(b"/a/b.json")), "absolute");
        refused(edited(|all| all[..9].copy_from_slice(b"a//b.json")), "part");
        refused(edited(|all| all[1] = b'\\'), "backslash");
        refused(edited(|all| all[1] = 0xff), "UTF-8");
        refused(edited(|all| all[257] = b'U'), "form");
        refused(archive(&[("a", b"1"), ("a", b"2")]), "twice");
        let mut hidden = archive(&[("a", b"1")]);
        hidden[600] = 1;
        refused(hidden, "behind a file's end");
        let mut trailing = archive(&[("a", b"1")]);
        trailing.extend_from_slice(&member("b", b""));
        refused(trailing, "behind the archive's end");
    }

    #[test]
    fn extended_headers_may_say_when_and_not_what() {
        let with = |text: &str| {
            let mut all = member("PaxHeader/a", text.as_bytes());
            all[156] = b'x';
            all[148..156].copy_from_slice(b"        ");
            let sum: u64 = all[..BLOCK].iter().map(|&byte| u64::from(byte)).sum();
            all[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
            all.extend(archive(&[("a", b"1")]));
            unpack(&all, 512)
        };
        assert!(with("20 mtime=1795977009\n").is_ok());
        assert!(with("12 path=x/y\n").unwrap_err().contains("path"));
        assert!(with("9 size=3\n").unwrap_err().contains("size"));
        assert!(with("99 mtime=1\n").is_err());
        assert!(with("mtime=1\n").is_err());
    }
}
