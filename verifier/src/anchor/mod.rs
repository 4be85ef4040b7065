//! Anchors: a ledger inside a git repository, verified from the objects' own bytes.
//!
//! ```text
//! refs/bernstein/work-ledger/<run-id> → commit → tree
//!   LEDGER.json          {"chunk_count","entry_count","format_version":1,"head_hash","run_id"}
//!   chunk-000000.jsonl   rows 0 to 999, each in canonical form and a newline
//!   chunk-000001.jsonl   rows 1000 to 1999, and so on; only the last has fewer
//! ```
//!
//! Nothing but the ledger enters the tree: the same rows give the same tree id. A commit's parent
//! is the previous anchor, whose rows are a prefix of its own; a gc leaves one commit without a
//! parent. See `commit`, `meta`, `tree` and `object` for the bytes of each.
//!
//! Every object is hashed again, so a replaced, grafted or damaged one can't pass for another.
//!
//! | check | holds if | faults |
//! | --- | --- | --- |
//! | `anchor.objects` | all objects are there and have the ids that name them | `object_missing`, `object_mismatch`, `object_limit` |
//! | `anchor.tree` | the tree has exactly these entries, all of mode 100644 | `unexpected_tree_entry`, `meta_missing` |
//! | `anchor.form` | `LEDGER.json` and every row are written in their one form | `not_canonical`, `unknown_field` |
//! | `anchor.run` | ref, `LEDGER.json` and each `run.open` name one run | `run_id_mismatch` |
//! | `anchor.chunks` | 1000 rows a chunk, the last 1 to 1000 | `chunk_size` |
//! | `anchor.chain` | the ledger's chain holds | those of the ledger |
//! | `anchor.meta` | each field of `LEDGER.json` is what the chunks hold, at least one entry | `meta_mismatch` |
//! | `anchor.commit` | idents, message and number of parents are one of the two forms | `commit_mismatch` |
//! | `anchor.history` | each earlier anchor holds, and is a byte prefix of the next | `history_rewritten`, and all of the above at `<commit>:<file>` |
//! | `anchor.expected_commit`, `anchor.expected_head`, `anchor.contains` | a caller's expectation, where there is one | |
//!
//! The order is the order in which faults are named: the first failing check is the headline.
//!
//! A missing object is a fault where the store should have it, and `not_checked` where the store
//! is known to lack it ([`Completeness`]).
//!
//! Does not prove that the anchor is the latest one, nor who made it or when.

pub mod bundle;
mod commit;
mod delta;
mod finding;
mod history;
mod judge;
mod layout;
mod meta;
mod object;
mod pack;
mod read;
mod rows;
mod tree;
mod verify;

pub use commit::{IDENT, MAX_COMMIT, anchor_message, links_of, squash_message};
pub use layout::{Builder, CHUNK_ROWS, Chunk, Layout, LayoutError, MAX_CHUNK, squash_commit};
pub use meta::MAX_META;
pub use object::{Collision, Found, ID_LEN, ObjectId, ObjectKind};
pub use pack::{MAX_DELTAS, MAX_OBJECT, MAX_OBJECTS, MAX_TOTAL, Pack, PackError, checksum};
pub use read::Completeness;
pub use tree::{MAX_CHUNKS, MAX_TREE, META_NAME, chunk_name, files_of};
pub use verify::{Expect, HISTORY_LIMIT, Target, report_tree, verify};

/// The ref under which a run's anchors are found, without the run id.
pub const REF_PREFIX: &str = "refs/bernstein/work-ledger/";

/// The checks that every anchor is put to, in their order.
pub const CHECKS: [&str; 9] = [
    "anchor.objects",
    "anchor.tree",
    "anchor.form",
    "anchor.run",
    "anchor.chunks",
    "anchor.chain",
    "anchor.meta",
    "anchor.commit",
    "anchor.history",
];
