//! Evidence of any kind, one file or many: told by content, checked together, one report.
//!
//! ```text
//! files, in pieces ──► Session ──► kind::tell ──► a walk (ledgers, journals)   ──┐
//!                        ▲  └────► Untar ──┐      or held (what is small)        ├──► compose ──► Report
//!                        └─────────────────┘      and the manifest's hashes    ──┘         └────► View
//! ```
//! Every surface gives its files to the same [`Session`], so the same files give the same bytes:
//! a terminal, a page, a CI action. What is read is read once; ledgers stream, everything else is
//! held, at most [`MAX_HELD`] bytes together.
//!
//! Paths are relative to what was given, with `/`. A path that has `.sdd/` in it is of a project,
//! whose folder is what stands before: its files are held against each other. Files that lie
//! loose in one folder are held against each other as far as their content says that they belong
//! together.

mod compose;
mod content;
mod held;
mod kind;
pub mod manifest;
mod path;
mod project;
mod session;
pub mod tar;
mod view;

pub use content::MAX_HELD;
pub use held::{Held, compared, held_against};
pub use kind::{ENOUGH, Kind, tell};
pub use path::MAX_PATH;
pub use project::is_evidence;
pub use session::{Finished, MAX_FILES, Options, Session};
