//! One file of the evidence: told by content, then walked as it arrives, or held.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cell::RefCell;

use super::kind::{ENOUGH, Kind, tell};
use super::manifest::Seal;
use super::project;
use crate::chain::{LastLine, Outcome, Place, Walk, length};
use crate::compare::Stamp;
use crate::hash::{Digest, Hasher};
use crate::journal::{self, Event, EventRows};
use crate::json::{Text, Value};
use crate::ledger::{self, LedgerRows, Row, State};
use crate::step::StepRows;

/// How many bytes all files that are held may have together: 256 MiB. Ledgers and step journals
/// are not held; event journals are, for the receipts that speak of them.
pub const MAX_HELD: usize = 256 << 20;

/// A ledger's text is kept to show entries of it, up to this many bytes.
const MAX_SHOWN: usize = 16 << 20;

/// How many of the last entries or events are shown.
pub(super) const RECENT: usize = 100;

/// A file that was read to its end.
pub(super) enum Content {
    Ledger(Box<Ledger>),
    Steps(Outcome<StepRows>),
    Journal(Journal),
    /// Of a kind that is read as a whole, with others.
    Held(Kind, Vec<u8>),
    /// It would be held, and there was no room.
    TooLarge,
    /// An archive, which was unpacked as it came.
    Unpacked,
}

/// A ledger that was walked.
pub(super) struct Ledger {
    pub(super) outcome: Outcome<LedgerRows<ledger::Visitor<'static>>>,
    /// Its entries, where others are compared with it.
    pub(super) stamps: Vec<Stamp>,
    /// What they come to, where it is shown.
    pub(super) state: State,
    pub(super) recent: VecDeque<Entry>,
    /// Its text, where it is shown and not too long.
    pub(super) text: Option<Vec<u8>>,
}

impl Ledger {
    /// The run that it is of, as far as anything says so.
    pub(super) fn run(&self) -> Option<&str> {
        self.outcome.rows.run()
    }

    pub(super) fn holds(&self) -> bool {
        self.outcome.fault_count == 0 || self.outcome.recovery.is_some()
    }
}

/// An entry, to be shown.
#[derive(Clone, Debug, Default)]
pub(super) struct Entry {
    pub(super) entry: u64,
    pub(super) kind: String,
    pub(super) task: String,
    pub(super) ts: String,
    pub(super) hash: String,
}

impl Entry {
    pub(super) fn of(row: &Row<'_>, place: Place) -> Entry {
        let mut entry = Entry::default();
        entry.set(row, place);
        entry
    }

    /// Makes it another row's, in the memory that it has.
    fn set(&mut self, row: &Row<'_>, place: Place) {
        self.entry = place.entry;
        let parts = [
            (&mut self.kind, row.kind),
            (&mut self.task, row.task_id),
            (&mut self.ts, row.ts),
            (&mut self.hash, row.entry_hash),
        ];
        for (part, text) in parts {
            part.clear();
            part.push_str(text);
        }
    }
}

/// An event journal that was walked.
pub(super) struct Journal {
    pub(super) outcome: Outcome<EventRows<journal::Visitor<'static>>>,
    pub(super) recent: Recent,
    /// Its bytes, for receipts.
    pub(super) bytes: Option<Vec<u8>>,
}

/// The last events.
pub(super) type Recent = VecDeque<(u64, Text, Option<Value>, Digest)>;

/// What is wanted of a file besides its check.
#[derive(Clone, Debug, Default)]
pub(super) struct Wanted {
    /// Ledgers are compared.
    pub(super) stamps: bool,
    /// Things are shown.
    pub(super) shown: bool,
    /// Hashes that are looked for in ledgers.
    pub(super) hashes: Vec<Digest>,
    /// An SHA-256 of the file is held against a manifest.
    pub(super) sealed: bool,
}

/// A file whose bytes arrive.
pub(super) struct Incoming {
    pub(super) path: String,
    wanted: Wanted,
    size: u64,
    seal: Option<Hasher>,
    start: Vec<u8>,
    stage: Stage,
}

enum Stage {
    /// Its kind is not told yet.
    Untold,
    Ledger(Box<LedgerWalk>),
    Steps(Box<Walk<StepRows>>),
    Journal(Box<JournalWalk>),
    Held(Kind, Vec<u8>),
    TooLarge,
    Archive,
}

struct LedgerWalk {
    walk: Walk<LedgerRows<ledger::Visitor<'static>>>,
    taken: Rc<RefCell<Taken>>,
    text: Option<Vec<u8>>,
}

struct JournalWalk {
    walk: Walk<EventRows<journal::Visitor<'static>>>,
    recent: Rc<RefCell<Recent>>,
    bytes: Option<Vec<u8>>,
}

#[derive(Default)]
struct Taken {
    stamps: Vec<Stamp>,
    state: State,
    recent: VecDeque<Entry>,
}

/// Room for what is held.
#[derive(Debug)]
pub(super) struct Room(pub(super) usize);

impl Room {
    fn take(&mut self, held: &mut Vec<u8>, bytes: &[u8]) -> bool {
        if bytes.len() > self.0 {
            return false;
        }
        self.0 -= bytes.len();
        held.extend_from_slice(bytes);
        true
    }

    fn give_back(&mut self, held: &[u8]) {
        self.0 += held.len();
    }
}

impl Incoming {
    pub(super) fn new(path: &str, wanted: Wanted) -> Incoming {
        let seal = wanted.sealed.then(Hasher::new);
        Incoming { path: path.to_string(), wanted, size: 0, seal, start: Vec::new(), stage: Stage::Untold }
    }

    /// Takes the next bytes. Those of an archive are given back, to be unpacked.
    pub(super) fn push<'b>(&mut self, bytes: &'b [u8], room: &mut Room) -> Unpack<'b> {
        self.size += length(bytes);
        if let Some(seal) = &mut self.seal {
            seal.update(bytes);
        }
        if let Stage::Untold = self.stage {
            self.start.extend_from_slice(bytes);
            if length(&self.start) < ENOUGH {
                return Unpack::Nothing;
            }
            return self.told(room);
        }
        self.feed(bytes, room)
    }

    /// Ends the file.
    pub(super) fn finish(mut self, last_line: LastLine, room: &mut Room) -> (Content, Seal, Option<Vec<u8>>) {
        let mut unpack = None;
        if let Stage::Untold = self.stage
            && let Unpack::Started(bytes) = self.told(room)
        {
            unpack = Some(bytes);
        }
        let sha256 = self.seal.map_or(Digest::ZERO, Hasher::finish);
        let content = match self.stage {
            Stage::Ledger(ledger) => ledger.finish(last_line),
            Stage::Steps(walk) => Content::Steps(walk.finish(last_line)),
            Stage::Journal(journal) => {
                let JournalWalk { walk, recent, bytes } = *journal;
                Content::Journal(Journal { outcome: walk.finish(last_line), recent: recent.take(), bytes })
            }
            Stage::Held(kind, bytes) => Content::Held(kind, bytes),
            Stage::TooLarge => Content::TooLarge,
            Stage::Archive => Content::Unpacked,
            Stage::Untold => Content::Held(Kind::Unknown, Vec::new()),
        };
        (content, Seal { bytes: self.size, sha256 }, unpack)
    }

    fn told(&mut self, room: &mut Room) -> Unpack<'static> {
        let start = core::mem::take(&mut self.start);
        self.stage = match tell(&self.path, &start) {
            Kind::Ledger | Kind::Empty => Stage::Ledger(Box::new(self.ledger())),
            Kind::StepJournal => Stage::Steps(Box::new(Walk::new(StepRows::default()))),
            Kind::EventJournal => Stage::Journal(Box::new(JournalWalk::new())),
            Kind::Archive => Stage::Archive,
            kind => Stage::Held(kind, Vec::new()),
        };
        match self.stage {
            Stage::Archive => Unpack::Started(start),
            _ => {
                self.feed(&start, room);
                Unpack::Nothing
            }
        }
    }

    fn feed<'b>(&mut self, bytes: &'b [u8], room: &mut Room) -> Unpack<'b> {
        match &mut self.stage {
            Stage::Ledger(ledger) => ledger.push(bytes),
            Stage::Steps(walk) => walk.push(bytes),
            Stage::Journal(journal) => {
                journal.walk.push(bytes);
                if let Some(kept) = &mut journal.bytes
                    && !room.take(kept, bytes)
                {
                    room.give_back(kept);
                    journal.bytes = None;
                }
            }
            // Nobody looks into these.
            Stage::Held(Kind::Unknown | Kind::PrivateKey, _) => {}
            Stage::Held(_, held) => {
                if !room.take(held, bytes) {
                    room.give_back(held);
                    self.stage = Stage::TooLarge;
                }
            }
            Stage::Archive => return Unpack::More(bytes),
            Stage::TooLarge | Stage::Untold => {}
        }
        Unpack::Nothing
    }

    fn ledger(&self) -> LedgerWalk {
        let taken = Rc::<RefCell<Taken>>::default();
        let run = project::run_of_ledger(&self.path);
        let (stamps, shown) = (self.wanted.stamps, self.wanted.shown);
        let visit = (stamps || shown).then(|| {
            let taken = Rc::clone(&taken);
            let visit: ledger::Visitor<'static> = Box::new(move |row: &Row<'_>, place: Place| {
                taken.borrow_mut().take(row, place, stamps, shown);
            });
            visit
        });
        let rows = LedgerRows::visited_by(run.as_ref(), visit).looking_for(self.wanted.hashes.clone());
        LedgerWalk { walk: Walk::new(rows), taken, text: shown.then(Vec::new) }
    }
}

/// What of a file's bytes is to be unpacked.
pub(super) enum Unpack<'b> {
    Nothing,
    /// It is an archive, which begins so.
    Started(Vec<u8>),
    /// Its next bytes.
    More(&'b [u8]),
}

impl LedgerWalk {
    fn push(&mut self, bytes: &[u8]) {
        self.walk.push(bytes);
        if let Some(text) = &mut self.text {
            if text.len() + bytes.len() > MAX_SHOWN {
                self.text = None;
            } else {
                text.extend_from_slice(bytes);
            }
        }
    }

    fn finish(self, last_line: LastLine) -> Content {
        let outcome = self.walk.finish(last_line);
        let Taken { stamps, state, recent } = self.taken.take();
        Content::Ledger(Box::new(Ledger { outcome, stamps, state, recent, text: self.text }))
    }
}

impl JournalWalk {
    fn new() -> JournalWalk {
        let recent = Rc::<RefCell<Recent>>::default();
        let taken = Rc::clone(&recent);
        let visit: journal::Visitor<'static> = Box::new(move |event: &Event, _| {
            let mut taken = taken.borrow_mut();
            if taken.len() == RECENT {
                taken.pop_front();
            }
            taken.push_back((event.index, event.event.clone(), event.ts.clone(), event.event_hash));
        });
        JournalWalk { walk: Walk::new(EventRows::new(visit)), recent, bytes: Some(Vec::new()) }
    }
}

impl Taken {
    fn take(&mut self, row: &Row<'_>, place: Place, stamps: bool, shown: bool) {
        if stamps {
            self.stamps.push(Stamp::of(row));
        }
        if shown {
            self.state.apply(row);
            let oldest = if self.recent.len() == RECENT { self.recent.pop_front() } else { None };
            let mut entry = oldest.unwrap_or_default();
            entry.set(row, place);
            self.recent.push_back(entry);
        }
    }
}
