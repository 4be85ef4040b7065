//! Files in, one report out.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::content::{Content, Incoming, MAX_HELD, Room, Unpack, Wanted};
use super::manifest::Seal;
use super::tar::{Item, TarError, Untar};
use super::{compose, path, view};
use crate::anchor::ObjectId;
use crate::chain::LastLine;
use crate::compare::Stamp;
use crate::id::RunId;
use crate::json::Value;
use crate::ledger::Expect;
use crate::receipt::Trust;
use crate::report::{Report, Requirement};
use crate::table::Table;
use crate::tag::MasterKey;

/// How many files may be given, those in archives among them.
pub const MAX_FILES: usize = 100_000;

/// What is known from elsewhere, and what is wanted.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// A folder was given, by the session's name; otherwise files, each by itself.
    pub folder: bool,
    /// More than one file will come: ledgers of one run are compared.
    pub several: bool,
    /// Hashes of entries of the ledgers, or of the one event journal.
    pub expect: Expect,
    /// The commit of the one anchor.
    pub commit: Option<ObjectId>,
    /// Whom the reader trusts.
    pub trust: Trust,
    /// Assurances without which the verdict is `failed`.
    pub requirements: Vec<Requirement>,
    /// The report is one of several subjects, even if there is only one.
    pub together: bool,
    /// A [`Session::finish`] also gives what a page shows: states, last entries, forks.
    pub shown: bool,
}

/// A check of some files under way: [`Session::open`] a file, [`Session::push`] its bytes,
/// [`Session::close`] it, and so on with the next; then [`Session::finish`].
pub struct Session {
    pub(super) name: String,
    pub(super) options: Options,
    pub(super) key: Option<MasterKey>,
    pub(super) files: Table<Content>,
    pub(super) archives: Vec<Archive>,
    /// The sizes and hashes of a folder's files: an unpacked archive has a manifest of them.
    pub(super) seals: Table<Seal>,
    /// Why a file was not taken.
    pub(super) refused: Vec<(String, String)>,
    pub(super) anchors: Vec<Anchor>,
    under_way: Option<Incoming>,
    room: Room,
}

/// An anchor that was verified elsewhere.
pub(super) struct Anchor {
    pub(super) run: String,
    pub(super) name: String,
    pub(super) report: Report,
    pub(super) stamps: Vec<Stamp>,
}

/// An archive that is, or was, unpacked.
pub(super) struct Archive {
    /// Its path.
    pub(super) path: String,
    /// What stands before the paths of its files.
    pub(super) root: String,
    pub(super) seals: Table<Seal>,
    pub(super) fault: Option<TarError>,
    /// What is wanted of each of its files.
    wanted: Wanted,
    untar: Untar,
    member: Option<Incoming>,
}

impl core::fmt::Debug for Session {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Session").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Session {
    /// A check of what reports call `name`.
    #[must_use]
    pub fn new(name: &str, options: Options) -> Session {
        Session {
            name: name.to_string(),
            options,
            key: None,
            files: Table::new(),
            archives: Vec::new(),
            seals: Table::new(),
            refused: Vec::new(),
            anchors: Vec::new(),
            under_way: None,
            room: Room(MAX_HELD),
        }
    }

    /// Takes the HMAC key, with which tags are checked.
    pub fn key(&mut self, key: MasterKey) {
        self.key = Some(key);
    }

    /// Starts a file, by its path relative to what was given. A file that was not closed is.
    ///
    /// A path that could name something else, or that is there already, is a fault of the report.
    pub fn open(&mut self, path: &str) {
        self.close(LastLine::Settled);
        match self.takes(path) {
            Ok(()) => self.under_way = Some(Incoming::new(path, self.wanted(self.options.folder))),
            Err(why) => self.refused.push((path.to_string(), why)),
        }
    }

    /// Takes the next bytes of the file, in pieces of any size.
    pub fn push(&mut self, bytes: &[u8]) {
        let Some(file) = &mut self.under_way else { return };
        match file.push(bytes, &mut self.room) {
            Unpack::Nothing => {}
            Unpack::Started(start) => {
                let path = file.path.clone();
                self.start_archive(&path, &start);
            }
            Unpack::More(bytes) => self.unpack(bytes),
        }
    }

    /// Ends the file; `last_line` says what bytes behind its last newline are.
    pub fn close(&mut self, last_line: LastLine) {
        let Some(file) = self.under_way.take() else { return };
        let path = file.path.clone();
        let (content, seal, start) = file.finish(last_line, &mut self.room);
        if let Some(start) = start {
            self.start_archive(&path, &start);
        }
        if let (Content::Unpacked, Some(archive)) = (&content, self.archives.last_mut()) {
            if archive.fault.is_none() {
                archive.fault = archive.untar.finish().err();
            }
            archive.member = None;
        }
        if self.options.folder {
            self.seals.insert(&path, seal);
        }
        self.files.insert(&path, content);
    }

    /// Takes an anchor that was verified elsewhere: the report on it and its entries. `name` says
    /// which it is, as `its anchor`.
    pub fn anchor(&mut self, run: &RunId, name: &str, report: Report, stamps: Vec<Stamp>) {
        self.anchors.push(Anchor { run: run.to_string(), name: name.to_string(), report, stamps });
    }

    /// Whether nothing was given.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.anchors.is_empty()
    }

    /// The ledgers that were given: the run, whether it holds, its entries.
    pub fn ledgers(&self) -> impl Iterator<Item = (&str, bool, &[Stamp])> {
        self.files.iter().filter_map(|(_, content)| match content {
            Content::Ledger(ledger) => Some((ledger.run()?, ledger.holds(), ledger.stamps.as_slice())),
            _ => None,
        })
    }

    /// Ends the check: the report on everything.
    #[must_use]
    pub fn finish(mut self) -> Finished {
        self.close(LastLine::Settled);
        let mut composed = compose::compose(&self);
        composed.report.require(self.options.requirements.iter().copied());
        let view = self.options.shown.then(|| view::document(&self, &composed));
        Finished { report: composed.report, view }
    }

    fn takes(&self, path: &str) -> Result<(), String> {
        path::check(path)?;
        if self.files.contains(path) {
            return Err("a file of this path is there already".to_string());
        }
        if self.files.len() >= MAX_FILES {
            return Err(format!("there are more than {MAX_FILES} files"));
        }
        Ok(())
    }

    fn wanted(&self, sealed: bool) -> Wanted {
        Wanted {
            stamps: self.options.several || sealed,
            shown: self.options.shown,
            hashes: self.options.expect.hashes().collect(),
            sealed,
        }
    }

    /// Starts to unpack the archive at a path, which begins so.
    fn start_archive(&mut self, path: &str, start: &[u8]) {
        let root = if self.options.several { format!("{path}/") } else { String::new() };
        self.archives.push(Archive {
            path: path.to_string(),
            root,
            seals: Table::new(),
            fault: None,
            wanted: self.wanted(true),
            untar: Untar::default(),
            member: None,
        });
        self.unpack(start);
    }

    /// Takes bytes of the archive that came last.
    fn unpack(&mut self, bytes: &[u8]) {
        let Some(archive) = self.archives.last_mut().filter(|archive| archive.fault.is_none()) else {
            return;
        };
        let Archive { root, seals, wanted, untar, member, fault, .. } = archive;
        let (files, room) = (&mut self.files, &mut self.room);
        let taken = untar.push(bytes, |item| match item {
            Item::Open(path) => {
                if files.len() >= MAX_FILES {
                    return Err(format!("there are more than {MAX_FILES} files"));
                }
                *member = Some(Incoming::new(&format!("{root}{path}"), wanted.clone()));
                Ok(())
            }
            Item::Bytes(bytes) => match member.as_mut().map(|file| file.push(bytes, room)) {
                Some(Unpack::Started(_)) => Err("an archive in an archive is not opened".to_string()),
                _ => Ok(()),
            },
            Item::Close => {
                let Some(file) = member.take() else { return Ok(()) };
                let path = file.path.clone();
                let (content, seal, start) = file.finish(LastLine::Settled, room);
                if start.is_some() {
                    return Err("an archive in an archive is not opened".to_string());
                }
                seals.insert(path.strip_prefix(root.as_str()).unwrap_or(&path), seal);
                match files.insert(&path, content) {
                    None => Ok(()),
                    Some(_) => Err(format!("{path} is there already")),
                }
            }
        });
        *fault = taken.err();
    }
}

/// What a session came to.
#[derive(Clone, Debug)]
pub struct Finished {
    /// The report on everything.
    pub report: Report,
    /// What a page shows besides, where it was asked for.
    pub view: Option<Value>,
}
