//! Building an anchor: rows in, the bytes and ids of git objects out.
//!
//! The rows go into chunks of [`CHUNK_ROWS`], the last with fewer, each row in canonical form
//! and a newline. Nothing else enters the tree, so the same rows give the same tree id. One
//! chunk is held at a time: a caller takes each as it fills, and writes it if its id is new.

use alloc::vec::Vec;
use core::fmt;

use super::commit;
use super::meta::{self, Totals};
use super::object::{Collision, ObjectId, ObjectKind};
use super::tree::{self, MAX_CHUNKS};
use crate::hash::Digest;
use crate::id::RunId;
use crate::ledger::Row;

/// How many rows a chunk has; only the last may have fewer.
pub const CHUNK_ROWS: u64 = 1000;

/// The largest chunk: 256 MiB. A thousand rows of the longest would be 64 GiB, which no git host
/// takes and no reader can hold; a ledger of such rows can be kept and verified, not anchored.
pub const MAX_CHUNK: usize = 256 << 20;

/// Why rows can't be anchored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LayoutError {
    /// There are no rows: an empty ledger is not anchored.
    Empty,
    /// The rows of this chunk have more than [`MAX_CHUNK`] bytes together.
    ChunkTooLarge(usize),
    /// There are more rows than chunks can be named for.
    TooManyRows,
    /// The rows were made to collide under SHA-1.
    Collision,
}

impl fmt::Display for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LayoutError::Empty => f.write_str("a ledger without entries is not anchored"),
            LayoutError::ChunkTooLarge(index) => {
                write!(f, "the rows of {} have more than {MAX_CHUNK} bytes", tree::chunk_name(*index))
            }
            LayoutError::TooManyRows => write!(f, "more than {MAX_CHUNKS} chunks of {CHUNK_ROWS} rows"),
            LayoutError::Collision => Collision.fmt(f),
        }
    }
}

impl core::error::Error for LayoutError {}

impl From<Collision> for LayoutError {
    fn from(_: Collision) -> LayoutError {
        LayoutError::Collision
    }
}

/// A chunk that is full, or the last.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Chunk {
    /// Its number, from 0.
    pub index: usize,
    /// The id of its blob.
    pub id: ObjectId,
    /// The blob's bytes.
    pub bytes: Vec<u8>,
}

/// Rows on their way into a tree.
#[derive(Clone, Debug)]
pub struct Builder {
    run: RunId,
    chunk: Vec<u8>,
    chunks: Vec<ObjectId>,
    entries: u64,
    head: Digest,
}

impl Builder {
    /// A tree without rows yet.
    #[must_use]
    pub fn new(run: &RunId) -> Builder {
        Builder { run: run.clone(), chunk: Vec::new(), chunks: Vec::new(), entries: 0, head: Digest::ZERO }
    }

    /// Takes the next row of a chain that holds, and gives the chunk that it fills.
    ///
    /// # Errors
    ///
    /// The rows can't be anchored.
    pub fn push(&mut self, row: &Row<'_>) -> Result<Option<Chunk>, LayoutError> {
        self.chunk.extend_from_slice(row.text.as_bytes());
        self.chunk.push(b'\n');
        if self.chunk.len() > MAX_CHUNK {
            return Err(LayoutError::ChunkTooLarge(self.chunks.len()));
        }
        self.entries += 1;
        self.head = Digest::from_hex(row.entry_hash.as_bytes()).unwrap_or(Digest::ZERO);
        if self.entries.is_multiple_of(CHUNK_ROWS) { self.close().map(Some) } else { Ok(None) }
    }

    /// Ends the rows: the last chunk, unless it was full and given already, and the rest of the
    /// tree.
    ///
    /// # Errors
    ///
    /// There were no rows, or they can't be anchored.
    pub fn finish(mut self) -> Result<(Option<Chunk>, Layout), LayoutError> {
        if self.entries == 0 {
            return Err(LayoutError::Empty);
        }
        let last = if self.chunk.is_empty() { None } else { Some(self.close()?) };
        let chunk_count = u64::try_from(self.chunks.len()).map_err(|_| LayoutError::TooManyRows)?;
        let totals = Totals { chunks: chunk_count, entries: self.entries, head: self.head };
        let meta = meta::encode(&self.run, &totals);
        let meta_id = ObjectId::of(ObjectKind::Blob, &meta)?;
        let tree = tree::encode(&meta_id, &self.chunks);
        let tree_id = ObjectId::of(ObjectKind::Tree, &tree)?;
        let (run, entries, head) = (self.run, self.entries, self.head);
        Ok((last, Layout { run, entries, head, chunk_count, meta, meta_id, tree, tree_id }))
    }

    fn close(&mut self) -> Result<Chunk, LayoutError> {
        let index = self.chunks.len();
        if index >= MAX_CHUNKS {
            return Err(LayoutError::TooManyRows);
        }
        let room = self.chunk.len();
        let bytes = core::mem::replace(&mut self.chunk, Vec::with_capacity(room));
        let id = ObjectId::of(ObjectKind::Blob, &bytes)?;
        self.chunks.push(id);
        Ok(Chunk { index, id, bytes })
    }
}

/// A tree whose chunks were all given: what is left to write.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Layout {
    /// The run.
    pub run: RunId,
    /// How many rows the chunks hold.
    pub entries: u64,
    /// The last row's hash.
    pub head: Digest,
    /// How many chunks there are.
    pub chunk_count: u64,
    /// The bytes of the blob `LEDGER.json`.
    pub meta: Vec<u8>,
    /// Its id.
    pub meta_id: ObjectId,
    /// The bytes of the tree.
    pub tree: Vec<u8>,
    /// Its id.
    pub tree_id: ObjectId,
}

impl Layout {
    /// The bytes of the commit that anchors the tree after `parent`, the previous anchor.
    #[must_use]
    pub fn commit(&self, parent: Option<&ObjectId>, seconds: u64) -> Vec<u8> {
        let message = commit::anchor_message(&self.run, &self.head, self.entries);
        commit::commit(&self.tree_id, parent, &message, seconds)
    }
}

/// The bytes of the commit that a gc leaves of a run's anchors, of the last one's tree.
#[must_use]
pub fn squash_commit(run: &RunId, tree: &ObjectId, seconds: u64) -> Vec<u8> {
    commit::commit(tree, None, &commit::squash_message(run), seconds)
}
