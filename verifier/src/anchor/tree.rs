//! Git trees, and the one shape that an anchor's tree has.
//!
//! A tree is a sequence of `<mode> SP <name> NUL <20-byte id>`, without separators. The mode is
//! octal without leading zeros (`100644` a file, `40000` a folder). Names are in byte order, a
//! folder's as if it ended with `/`, and none is there twice.
//!
//! An anchor's tree is flat and holds nothing but the ledger: `LEDGER.json`, then
//! `chunk-000000.jsonl`, `chunk-000001.jsonl` and so on without a gap, all `100644`.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Ordering;

use super::object::{ID_LEN, ObjectId};
use crate::json::{Value, excerpt};
use crate::table::Table;

/// The longest tree that is read: 64 MiB, which holds over a million chunks.
pub const MAX_TREE: usize = 64 << 20;

/// The most chunks that a tree may have: what six digits can name.
pub const MAX_CHUNKS: usize = 1_000_000;

/// The name of the file that says what the tree holds.
pub const META_NAME: &str = "LEDGER.json";

const FILE_MODE: &[u8] = b"100644";
const FOLDER_MODE: &[u8] = b"40000";

/// The name of a chunk.
#[must_use]
pub fn chunk_name(index: usize) -> String {
    format!("chunk-{index:06}.jsonl")
}

/// One entry of a tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Entry<'a> {
    pub(super) mode: &'a [u8],
    pub(super) name: &'a [u8],
    pub(super) id: ObjectId,
}

/// What an anchor's tree holds.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Shape {
    /// `LEDGER.json`, if it is there.
    pub(super) meta: Option<ObjectId>,
    /// The chunks, from the first to where a name or mode is not as it must be.
    pub(super) chunks: Vec<ObjectId>,
    /// What is wrong with the tree first.
    pub(super) unexpected: Option<String>,
}

impl Shape {
    pub(super) fn of(bytes: &[u8]) -> Shape {
        let mut shape = Shape::default();
        let mut whole = true;
        for entry in Entries::new(bytes) {
            let said = match entry {
                Ok(entry) => shape.take(&entry, &mut whole),
                Err(said) => Err(said),
            };
            if let (Err(said), None) = (said, &shape.unexpected) {
                shape.unexpected = Some(said);
            }
        }
        shape
    }

    /// Goes on behind an unexpected entry, so that the rest is judged too; but never across a
    /// gap, nor with what is no file.
    fn take(&mut self, entry: &Entry<'_>, whole: &mut bool) -> Result<(), String> {
        let name = shown(entry.name);
        let wanted = chunk_name(self.chunks.len());
        let is_chunk = entry.name == wanted.as_bytes() && self.chunks.len() < MAX_CHUNKS;
        if entry.mode != FILE_MODE {
            *whole &= !is_chunk;
            let mode = shown(entry.mode);
            return Err(format!("the entry {name} has mode {mode}, expected \"100644\""));
        }
        if entry.name == META_NAME.as_bytes() {
            self.meta = Some(entry.id);
        } else if is_chunk && *whole {
            self.chunks.push(entry.id);
        } else {
            return Err(format!("the entry {name} does not belong there: expected \"{wanted}\" or no more"));
        }
        Ok(())
    }
}

/// The bytes of an anchor's tree.
#[must_use]
pub(super) fn encode(meta: &ObjectId, chunks: &[ObjectId]) -> Vec<u8> {
    let mut out = Vec::with_capacity((chunks.len() + 1) * 46);
    // Upper case sorts before lower case, and six digits in their order.
    push(&mut out, META_NAME, meta);
    for (index, chunk) in chunks.iter().enumerate() {
        push(&mut out, &chunk_name(index), chunk);
    }
    out
}

/// The bytes of a tree of files.
#[must_use]
pub(super) fn of_files(files: &Table<ObjectId>) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, id) in files {
        push(&mut out, name, id);
    }
    out
}

fn push(out: &mut Vec<u8>, name: &str, id: &ObjectId) {
    out.extend_from_slice(FILE_MODE);
    out.push(b' ');
    out.extend_from_slice(name.as_bytes());
    out.push(0);
    out.extend_from_slice(id.as_bytes());
}

/// The files that a tree names directly, up to where it can't be read.
#[must_use]
pub fn files_of(tree: &[u8]) -> Vec<(&[u8], ObjectId)> {
    let files = Entries::new(tree).map_while(Result::ok).filter(|entry| entry.mode != FOLDER_MODE);
    files.map(|entry| (entry.name, entry.id)).collect()
}

/// The entries of a tree; an error is the last thing that it gives.
#[derive(Clone, Debug)]
pub(super) struct Entries<'a> {
    rest: &'a [u8],
    last: Option<Entry<'a>>,
}

impl<'a> Entries<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Entries<'a> {
        Entries { rest: bytes, last: None }
    }

    fn read(&mut self) -> Result<Entry<'a>, String> {
        let broken = || String::from("the tree breaks off in an entry");
        let space = self.rest.iter().take(8).position(|&byte| byte == b' ').ok_or_else(broken)?;
        let (mode, rest) = (&self.rest[..space], &self.rest[space + 1..]);
        if mode.is_empty() || mode[0] == b'0' || mode.iter().any(|digit| !matches!(digit, b'0'..=b'7')) {
            return Err(format!("{} is no mode of a tree entry", shown(mode)));
        }
        let zero = memchr::memchr(0, rest).ok_or_else(broken)?;
        let (name, rest) = (&rest[..zero], &rest[zero + 1..]);
        if name.is_empty() || name.contains(&b'/') {
            return Err(format!("{} is no name of a tree entry", shown(name)));
        }
        let (id, rest) = rest.split_first_chunk::<ID_LEN>().ok_or_else(broken)?;
        let entry = Entry { mode, name, id: ObjectId::from_bytes(*id) };
        match self.last.map(|last| order(&last, &entry)) {
            None | Some(Ordering::Less) => {}
            Some(_) => return Err(format!("the entry {} is out of order or there twice", shown(name))),
        }
        self.last = Some(entry);
        self.rest = rest;
        Ok(entry)
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Result<Entry<'a>, String>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let read = self.read();
        if read.is_err() {
            self.rest = &[];
        }
        Some(read)
    }
}

/// The order of names in a tree. The same name as file and as folder is the same name.
fn order(left: &Entry<'_>, right: &Entry<'_>) -> Ordering {
    if left.name == right.name {
        return Ordering::Equal;
    }
    let key = |entry: &Entry<'_>| {
        let end: &[u8] = if entry.mode == FOLDER_MODE { b"/" } else { b"" };
        [entry.name, end].concat()
    };
    key(left).cmp(&key(right))
}

/// Bytes as a message shows them: a JSON string, ASCII only, cut short.
pub(super) fn shown(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(200)]);
    excerpt(&String::from_utf8_lossy(&crate::json::ascii(&Value::from(&*text))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(entries: &[(&str, &str)]) -> Vec<u8> {
        let entry = |(mode, name): &(&str, &str)| [mode.as_bytes(), b" ", name.as_bytes(), &[0; 21]].concat();
        entries.iter().flat_map(entry).collect()
    }

    const META: (&str, &str) = ("100644", META_NAME);
    const FIRST: (&str, &str) = ("100644", "chunk-000000.jsonl");
    const SECOND: (&str, &str) = ("100644", "chunk-000001.jsonl");

    #[test]
    fn an_anchors_tree_is_read_as_it_is_written() {
        let ids: Vec<_> = (0..3).map(|byte| ObjectId::from_bytes([byte; 20])).collect();
        let shape = Shape::of(&encode(&ids[0], &ids[1..]));
        assert_eq!(shape, Shape { meta: Some(ids[0]), chunks: ids[1..].to_vec(), unexpected: None });
        assert_eq!(encode(&ids[0], &ids[1..]).len(), 7 + 11 + 1 + 20 + 2 * 46);
    }

    #[track_caller]
    fn check(bytes: &[u8], expect: &str, chunks: usize) {
        let shape = Shape::of(bytes);
        let said = shape.unexpected.unwrap_or_default();
        assert!(said.contains(expect), "{said}");
        assert_eq!(shape.chunks.len(), chunks);
    }

    #[test]
    fn what_does_not_belong_is_named() {
        check(&tree(&[META, FIRST, ("100644", "chunk-000002.jsonl")]), "chunk-000002.jsonl", 1);
        check(&tree(&[META, SECOND]), "chunk-000001.jsonl", 0);
        check(&tree(&[META, ("100644", "README"), FIRST]), "README", 1);
        check(&tree(&[META, ("100755", "chunk-000000.jsonl"), SECOND]), "has mode \"100755\"", 0);
        check(&tree(&[META, ("120000", "chunk-000000.jsonl")]), "has mode \"120000\"", 0);
        check(&tree(&[META, FIRST, ("40000", "sub")]), "has mode \"40000\"", 1);
        check(&tree(&[("160000", META_NAME), FIRST]), "has mode \"160000\"", 1);
        check(&tree(&[META, ("100644", "chunk-000000.jsonl\n")]), "chunk-000000.jsonl\\n", 0);
    }

    #[test]
    fn hostile_bytes_are_an_error_and_end_the_tree() {
        check(&tree(&[META, SECOND, FIRST]), "chunk-000001.jsonl", 0);
        check(&tree(&[META, FIRST, FIRST]), "there twice", 1);
        check(&tree(&[FIRST, META]), "out of order", 1);
        check(&tree(&[("100644", "a"), ("40000", "a")]), "does not belong", 0);
        check(&tree(&[META, ("0100644", "chunk-000000.jsonl")]), "is no mode", 0);
        check(&tree(&[META, ("", "chunk-000000.jsonl")]), "is no mode", 0);
        check(&tree(&[META, ("100644", "a/b")]), "is no name", 0);
        check(&tree(&[META, ("100644", "")]), "is no name", 0);
        check(&tree(&[META, ("99999999999", "x")]), "breaks off", 0);
        let whole = tree(&[META, FIRST]);
        for cut in 1..whole.len() {
            if cut != 39 {
                check(&whole[..cut], "breaks off", 0);
            }
        }
    }

    #[test]
    fn folders_sort_as_if_they_ended_with_a_slash() {
        let entry = |mode: &'static str, name: &'static str| Entry {
            mode: mode.as_bytes(),
            name: name.as_bytes(),
            id: ObjectId::from_bytes([0; 20]),
        };
        assert_eq!(order(&entry("40000", "a"), &entry("100644", "a.b")), Ordering::Greater);
        assert_eq!(order(&entry("100644", "a"), &entry("100644", "a.b")), Ordering::Less);
        assert_eq!(order(&entry("100644", "a"), &entry("40000", "a")), Ordering::Equal);
    }
}
