//! The walk over a log: day after day, one chain.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::event::{Event, Scheme, Tags};
use super::folder::{DayFile, FileFault, Folder, MAX_DAY};
use crate::chain::{
    Fault, FaultKind, LastLine, Line, Lines, MAX_FAULTS, Place, Recovery, Rows, Visit, Walk, read_object,
};
use crate::gzip::Gunzip;
use crate::hash::Digest;
use crate::json::Value;
use crate::ledger::row::shown;
use crate::order;
use crate::tag::MasterKey;

/// Where the chain that is read begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Start {
    /// With its first row.
    #[default]
    Genesis,
    /// Behind a row with this tag: earlier days were left out.
    After(Digest),
}

/// What a writer does before it goes on with a log that a crash left.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Mend {
    /// Set these bytes of the last file aside.
    SetAside {
        /// The file, relative to the audit folder.
        name: String,
        /// From where on.
        recovery: Recovery,
    },
    /// Write the newline that the last row of the last file lacks.
    AddNewline {
        /// The file, relative to the audit folder.
        name: String,
    },
}

/// What a whole log holds.
#[derive(Clone, Debug)]
pub struct Outcome<V> {
    /// The visitor, who saw each event that holds.
    pub visitor: V,
    /// How many rows there are.
    pub events: u64,
    /// How many of them are tagged by scheme 1.
    pub events_v1: u64,
    /// The last row's tag; where the chain begins, if there is none.
    pub head: Digest,
    /// Where it begins.
    pub start: Start,
    /// The days that were read, in order, by their file's name.
    pub days: Vec<String>,
    /// What is wrong with files as such.
    pub file_faults: Vec<FileFault>,
    /// What is wrong with lines, by file, at most [`MAX_FAULTS`].
    pub faults: Vec<(String, Fault)>,
    /// How many faults of lines there are in all.
    pub fault_count: u64,
    /// How many of them are tags that do not fit.
    pub tag_faults: u64,
    /// Whether they were checked.
    pub tags: TagsChecked,
    /// Set if what a crash leaves is all that is wrong.
    pub mend: Option<Mend>,
    /// Bytes left out because they are being written.
    pub in_flight: u64,
}

/// Whether there was a key to check tags with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TagsChecked {
    /// There was.
    Yes,
    /// There was none: form and links only.
    NoKey,
}

/// A log that is read day by day: [`Log::open`] a file, [`Log::push`] its bytes, and so on with
/// the next.
#[derive(Debug)]
pub struct Log<V> {
    walk: Walk<AuditRows<V>>,
    start: Start,
    packed: Option<Gunzip>,
    days: Vec<String>,
    file_faults: Vec<FileFault>,
    faults: Vec<(String, Fault)>,
    fault_count: u64,
    mend: Option<Mend>,
    entries_at_mend: u64,
    in_flight: u64,
}

impl<V: Visit<Event>> Log<V> {
    /// A log before its first day. Without the key, tags are not checked.
    pub fn new(key: Option<&MasterKey>, start: Start, visitor: V) -> Log<V> {
        let head = match start {
            Start::Genesis => Digest::ZERO,
            Start::After(head) => head,
        };
        let rows = AuditRows {
            tags: key.map(Tags::new),
            prev: Some(head),
            or_prev: None,
            head,
            events_v1: 0,
            tag_faults: 0,
            visitor,
        };
        Log {
            walk: Walk::new(rows),
            start,
            packed: None,
            days: Vec::new(),
            file_faults: Vec::new(),
            faults: Vec::new(),
            fault_count: 0,
            mend: None,
            entries_at_mend: 0,
            in_flight: 0,
        }
    }

    /// Takes over what is wrong with the folder's files.
    #[must_use]
    pub fn in_folder(mut self, folder: &Folder<'_>) -> Log<V> {
        self.file_faults.extend(folder.faults.iter().cloned());
        self
    }

    /// Ends the file before, if there is one, and begins the next day's.
    pub fn open(&mut self, day: &DayFile<'_>) {
        self.close(LastLine::Settled);
        self.packed = day.archived().then(|| Gunzip::new(MAX_DAY));
        self.days.push(day.name.to_string());
    }

    /// Takes the next bytes of the day's file, as they are in it: packed ones are unpacked here.
    pub fn push(&mut self, bytes: &[u8]) {
        match &mut self.packed {
            // The error comes again at the end of the file.
            Some(packed) => drop(packed.push(bytes, |piece| self.walk.push(piece))),
            None => self.walk.push(bytes),
        }
    }

    /// Ends the log. While the writer's lock is held, bytes behind the last newline are in flight.
    pub fn finish(mut self, last_line: LastLine) -> Outcome<V> {
        self.close(last_line);
        let whole = self.walk.next_file(LastLine::Settled);
        let only_mend = self.fault_count == 1 && self.file_faults.is_empty();
        let rows = self.walk.finish(LastLine::Settled).rows;
        order::sort_by(&mut self.file_faults, |left, right| left.name.cmp(&right.name));
        Outcome {
            tags: if rows.tags.is_some() { TagsChecked::Yes } else { TagsChecked::NoKey },
            visitor: rows.visitor,
            events: whole.end.entry,
            events_v1: rows.events_v1,
            head: rows.head,
            start: self.start,
            days: self.days,
            file_faults: self.file_faults,
            faults: self.faults,
            fault_count: self.fault_count,
            tag_faults: rows.tag_faults,
            mend: self.mend.filter(|_| only_mend),
            in_flight: self.in_flight,
        }
    }

    fn close(&mut self, last_line: LastLine) {
        let Some(name) = self.days.last().cloned() else {
            return;
        };
        let live = self.packed.is_none();
        if let Some(Err(error)) = self.packed.take().map(Gunzip::finish) {
            self.walk.break_off();
            let detail = format!("{error}; what it held is not established");
            self.file_faults.push(FileFault { name: name.clone(), fault: "archive_corrupt", detail });
        }
        let outcome = self.walk.next_file(last_line);
        self.in_flight = outcome.in_flight;
        if outcome.end.entry > self.entries_at_mend {
            self.behind_the_mend();
        }
        let mut mend = outcome.recovery.map(|recovery| Mend::SetAside { name: name.clone(), recovery });
        self.fault_count += outcome.fault_count;
        self.keep(&name, outcome.faults);
        if let (true, Some(place)) = (outcome.unterminated, outcome.last) {
            let detail = String::from("the last row is whole, and lacks its newline");
            self.fault_count += 1;
            self.keep(&name, [Fault { kind: FaultKind::NoFinalNewline, place, detail }]);
            mend = Some(Mend::AddNewline { name });
        }
        // A writer appends to live days only.
        self.mend = mend.filter(|_| live).or(self.mend.take());
        self.entries_at_mend = outcome.end.entry;
    }

    /// Rows follow in a later file, so what was broken before them is no crash's torn end.
    fn behind_the_mend(&mut self) {
        if self.mend.take().is_none() {
            return;
        }
        for (_, fault) in &mut self.faults {
            if fault.kind == FaultKind::TornTail {
                fault.kind = FaultKind::InteriorCorruption;
            }
        }
    }

    fn keep(&mut self, name: &str, faults: impl IntoIterator<Item = Fault>) {
        let room = MAX_FAULTS - self.faults.len();
        self.faults.extend(faults.into_iter().take(room).map(|fault| (name.to_string(), fault)));
    }
}

/// How audit rows link.
#[derive(Clone, Debug)]
struct AuditRows<V> {
    tags: Option<Tags>,
    /// The next row's `prev_hmac`; not known behind a row that could not be read.
    prev: Option<Digest>,
    /// The right tag of a row whose stated one does not fit: the next row may name either, so
    /// that one altered tag is one fault.
    or_prev: Option<Digest>,
    head: Digest,
    events_v1: u64,
    tag_faults: u64,
    visitor: V,
}

impl<V: Visit<Event>> AuditRows<V> {
    fn judge(&mut self, line: &[u8], place: Place) -> Result<(), Line> {
        let read = read_object(line).and_then(|object| Ok(Event::read(line, object)?));
        let (event, covered) = read.inspect_err(|_| self.prev = None)?;
        let expected = self.prev.replace(event.hmac).filter(|_| self.or_prev != Some(event.prev_hmac));
        self.or_prev = None;
        self.head = event.hmac;
        self.events_v1 += u64::from(event.scheme == Scheme::V1);
        self.check(&event, &covered, expected)?;
        self.visitor.visit(&event, place);
        Ok(())
    }

    fn check(&mut self, event: &Event, covered: &[u8], expected: Option<Digest>) -> Result<(), Line> {
        let prev = event.prev_hmac;
        if let Some(expected) = expected.filter(|expected| *expected != prev) {
            let detail = format!("stored {prev}, expected {expected}");
            return Err(Line::Fault(FaultKind::PrevHmacMismatch, detail));
        }
        if let Some(tags) = self.tags.as_ref().filter(|tags| !tags.fit(event, covered)) {
            self.tag_faults += 1;
            self.or_prev = Some(tags.of(event.scheme, &event.prev_hmac, covered));
            let detail = format!("the tag {} is not this row's under the key", event.hmac);
            return Err(Line::Fault(FaultKind::HmacMismatch, detail));
        }
        match event.details.get("prev_chain_digest") {
            Some(stated) if *stated != Value::from(prev.to_hex()) => {
                let detail = format!("the details name {}, the row's own is {prev}", shown(stated));
                Err(Line::Fault(FaultKind::PrevChainDigestMismatch, detail))
            }
            _ => Ok(()),
        }
    }
}

impl<V: Visit<Event>> Rows for AuditRows<V> {
    fn lines(&self) -> Lines {
        Lines::Exact
    }

    fn line(&mut self, line: &[u8], place: Place) -> Line {
        self.judge(line, place).map_or_else(|line| line, |()| Line::Row)
    }

    fn lost(&mut self) {
        self.prev = None;
    }
}
