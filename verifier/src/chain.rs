//! One walk over any chain of rows: where each line is, what is wrong with it, and up to where
//! an interrupted write can be undone.
//!
//! A chain is a file of lines, each a JSON object, that name their predecessor's hash. Lines end
//! with `\n` only (a `\r` before it is allowed); U+2028, `\v` and the like are text. Lines of
//! spaces, tabs and CR alone are skipped, and count as lines. Positions are: `line` from 1,
//! `byte` = offset of the line's first byte, `entry` = rows before it.
//!
//! A **torn tail** is what a crash leaves: lines from the first one that is not one complete
//! JSON text, if none behind it is complete and none begins with a complete row. Everything
//! before it stands. Any other such line is `interior_corruption`: rows that were acknowledged
//! are damaged, and nobody may go on from there.
//!
//! Does not prove that rows are missing behind the end: an end is only established from outside.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use crate::json::{self, Object, ParseError, Value};

/// The longest line that is read: 64 MiB. A longer one is a malformed row.
pub const MAX_LINE: usize = 64 << 20;

/// How many faults are kept; all are counted.
pub const MAX_FAULTS: usize = 100;

/// Where a line stands in its file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Place {
    /// How many rows stand before it: the entry's number, from 0.
    pub entry: u64,
    /// Its number, from 1.
    pub line: u64,
    /// The offset of its first byte.
    pub byte: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "entry {} (line {}, byte {})", self.entry, self.line, self.byte)
    }
}

/// What is wrong with a line. The order is the order in which faults of one line are looked for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum FaultKind {
    /// An interrupted last write.
    TornTail,
    /// A damaged line with acknowledged rows in or behind it.
    InteriorCorruption,
    /// An object names a key twice: two readers may see two values.
    DuplicateKey,
    /// Complete JSON that is no row: a limit, a missing field, a type, a pattern.
    MalformedRow,
    /// A field that no hash covers and nobody reads.
    UnknownField,
    /// The stated number is not the row's place.
    SeqMismatch,
    /// The stated predecessor is not the row before.
    PrevHashMismatch,
    /// The stated hash is not the content's.
    EntryHashMismatch,
    /// The same, in a step journal.
    StepHashMismatch,
    /// The stated payload hash is not the payload's.
    PayloadHashMismatch,
    /// The stated event hash is not the event's.
    EventHashMismatch,
    /// The stated index is not the event's place.
    IndexMismatch,
    /// A hash profile that this reader does not know.
    UnknownProfile,
    /// `run.open` names another run.
    RunIdMismatch,
    /// An anchor's tree has an entry, a mode or a gap that it must not have.
    UnexpectedTreeEntry,
    /// An anchor's tree has no `LEDGER.json`.
    MetaMissing,
    /// A text that must be in its one form is not.
    NotCanonical,
    /// A chunk has more or fewer rows than its place asks for.
    ChunkSize,
    /// `LEDGER.json` says something else than the chunks hold.
    MetaMismatch,
    /// A commit is not what the writer of anchors makes.
    CommitMismatch,
    /// An anchor does not go on from its parent.
    HistoryRewritten,
    /// A git object that must be there is not.
    ObjectMissing,
    /// A git object's bytes do not have the id that names it, or it is of another kind.
    ObjectMismatch,
    /// A git object is larger than anything that belongs there.
    ObjectLimit,
    /// A tag scheme that this reader does not know.
    UnknownScheme,
    /// The stated predecessor's tag is not the row before's.
    PrevHmacMismatch,
    /// The stated tag is not the content's under the key.
    HmacMismatch,
    /// The predecessor that the details state is not the row's own.
    PrevChainDigestMismatch,
    /// A last row that is whole and lacks the newline that its format asks for.
    NoFinalNewline,
}

impl FaultKind {
    /// The stable name, as in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            FaultKind::TornTail => "torn_tail",
            FaultKind::InteriorCorruption => "interior_corruption",
            FaultKind::DuplicateKey => "duplicate_key",
            FaultKind::MalformedRow => "malformed_row",
            FaultKind::UnknownField => "unknown_field",
            FaultKind::SeqMismatch => "seq_mismatch",
            FaultKind::PrevHashMismatch => "prev_hash_mismatch",
            FaultKind::EntryHashMismatch => "entry_hash_mismatch",
            FaultKind::StepHashMismatch => "step_hash_mismatch",
            FaultKind::PayloadHashMismatch => "payload_hash_mismatch",
            FaultKind::EventHashMismatch => "event_hash_mismatch",
            FaultKind::IndexMismatch => "index_mismatch",
            FaultKind::UnknownProfile => "unknown_profile",
            FaultKind::RunIdMismatch => "run_id_mismatch",
            FaultKind::UnexpectedTreeEntry => "unexpected_tree_entry",
            FaultKind::MetaMissing => "meta_missing",
            FaultKind::NotCanonical => "not_canonical",
            FaultKind::ChunkSize => "chunk_size",
            FaultKind::MetaMismatch => "meta_mismatch",
            FaultKind::CommitMismatch => "commit_mismatch",
            FaultKind::HistoryRewritten => "history_rewritten",
            FaultKind::ObjectMissing => "object_missing",
            FaultKind::ObjectMismatch => "object_mismatch",
            FaultKind::ObjectLimit => "object_limit",
            FaultKind::UnknownScheme => "unknown_scheme",
            FaultKind::PrevHmacMismatch => "prev_hmac_mismatch",
            FaultKind::HmacMismatch => "hmac_mismatch",
            FaultKind::PrevChainDigestMismatch => "prev_chain_digest_mismatch",
            FaultKind::NoFinalNewline => "no_final_newline",
        }
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One thing wrong at one place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// What.
    pub kind: FaultKind,
    /// Where.
    pub place: Place,
    /// The compared values, or what else a reader needs; evidence text in it is JSON-escaped.
    pub detail: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.place, self.kind, self.detail)
    }
}

/// What one line turned out to be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Line {
    /// A row that holds.
    Row,
    /// A complete JSON object with a fault; it counts as a row.
    Fault(FaultKind, String),
    /// Complete JSON that is no object; it does not count as a row.
    NotARow(String),
    /// Not one complete JSON text.
    NotJson {
        /// The offset in the line where it stops being JSON.
        at: usize,
        /// Whether a complete row stands at its start.
        begins_with_row: bool,
    },
}

impl From<(FaultKind, String)> for Line {
    fn from((kind, detail): (FaultKind, String)) -> Line {
        Line::Fault(kind, detail)
    }
}

/// What a row of one kind of chain is, and how one links to the next.
pub trait Rows {
    /// What may stand between rows.
    fn lines(&self) -> Lines {
        Lines::Lenient
    }

    /// Judges one line that is not blank, without its `\n`.
    fn line(&mut self, line: &[u8], place: Place) -> Line;

    /// A line was passed over unread: the next row's predecessor is not known.
    fn lost(&mut self);
}

/// What a file may hold besides its rows' own bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lines {
    /// A `\r` before the `\n`, and lines of white space: both are passed over.
    Lenient,
    /// Nothing: a blank line is a fault, and a `\r` reaches [`Rows::line`].
    Exact,
}

/// What is done with each row that holds.
pub trait Visit<T> {
    /// Takes the next row, in order.
    fn visit(&mut self, row: &T, place: Place);
}

impl<T, F: FnMut(&T, Place)> Visit<T> for F {
    fn visit(&mut self, row: &T, place: Place) {
        self(row, place);
    }
}

/// A visitor that does nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unseen;

impl<T> Visit<T> for Unseen {
    fn visit(&mut self, _: &T, _: Place) {}
}

/// Several visitors of one walk: one read of a file serves all that ask about it.
impl<T, V: Visit<T>> Visit<T> for Vec<V> {
    fn visit(&mut self, row: &T, place: Place) {
        for visitor in self {
            visitor.visit(row, place);
        }
    }
}

/// Reads a line as an object, or says which other thing it is.
///
/// # Errors
///
/// The line that it is instead.
pub fn read_object(line: &[u8]) -> Result<Object, Line> {
    match json::parse(line) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(Line::NotARow("complete JSON, but not an object".to_string())),
        Err(ParseError::NotJson { at }) => {
            Err(Line::NotJson { at, begins_with_row: json::begins_with_object(line) })
        }
        Err(error @ ParseError::DuplicateKey { .. }) => {
            Err(Line::Fault(FaultKind::DuplicateKey, error.to_string()))
        }
        Err(error @ ParseError::Limit { .. }) => Err(Line::Fault(FaultKind::MalformedRow, error.to_string())),
    }
}

/// Where to go on after a crash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Recovery {
    /// The first torn line: everything before it stands.
    pub place: Place,
    /// How many bytes are torn, to the end of the file.
    pub torn_bytes: u64,
}

/// What bytes behind the last newline are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LastLine {
    /// The writer is gone: they are a row that lacks its newline, or torn.
    #[default]
    Settled,
    /// The writer's lock is held: they are being written, and are left out.
    InFlight,
}

/// A walk over the lines of a chain, pushed in pieces of any size.
#[derive(Clone, Debug)]
pub struct Walk<R> {
    rows: R,
    read: Read,
}

/// What was read of a chain, and how its lines are. It is not generic, so that there is one copy
/// of the walk, whatever the rows are.
#[derive(Clone, Debug)]
struct Read {
    partial: Vec<u8>,
    /// Bytes of the current line beyond [`MAX_LINE`], which were not kept.
    overlong: u64,
    at: Place,
    last: Option<Place>,
    faults: Vec<Fault>,
    fault_count: u64,
    suspects: Vec<Fault>,
    suspect_count: u64,
}

/// What a whole walk found.
#[derive(Clone, Debug)]
pub struct Outcome<R> {
    /// The kind's own findings.
    pub rows: R,
    /// The end: `entry` rows, `line - 1` lines, `byte` bytes were read.
    pub end: Place,
    /// The place of the last row, if there is one.
    pub last: Option<Place>,
    /// The faults by place, at most [`MAX_FAULTS`].
    pub faults: Vec<Fault>,
    /// How many there are in all.
    pub fault_count: u64,
    /// Set if the one fault is a torn tail.
    pub recovery: Option<Recovery>,
    /// Whether the last row lacks its newline.
    pub unterminated: bool,
    /// Bytes left out because they are being written.
    pub in_flight: u64,
}

impl<R> Outcome<R> {
    /// The outcome without the kind's own findings.
    pub(crate) fn of_any_kind(&self) -> Outcome<()> {
        Outcome {
            rows: (),
            end: self.end,
            last: self.last,
            faults: self.faults.clone(),
            fault_count: self.fault_count,
            recovery: self.recovery,
            unterminated: self.unterminated,
            in_flight: self.in_flight,
        }
    }

    /// The same outcome, with other findings of the kind's own.
    pub fn map<S>(self, change: impl FnOnce(R) -> S) -> Outcome<S> {
        Outcome {
            rows: change(self.rows),
            end: self.end,
            last: self.last,
            faults: self.faults,
            fault_count: self.fault_count,
            recovery: self.recovery,
            unterminated: self.unterminated,
            in_flight: self.in_flight,
        }
    }
}

impl<R: Rows> Walk<R> {
    /// A walk that starts at a file's first byte.
    pub fn new(rows: R) -> Walk<R> {
        Walk::starting_at(rows, Place { entry: 0, line: 1, byte: 0 })
    }

    /// A walk that goes on from a place up to which others have read.
    pub(crate) fn starting_at(rows: R, at: Place) -> Walk<R> {
        Walk { rows, read: Read::from(at) }
    }

    /// Takes the next bytes of the file.
    pub fn push(&mut self, bytes: &[u8]) {
        self.read.push(&mut self.rows, bytes);
    }

    /// Ends the walk at the end of the file.
    pub fn finish(mut self, last_line: LastLine) -> Outcome<R> {
        let outcome = self.next_file(last_line);
        outcome.map(|()| self.rows)
    }

    /// Ends one file of a chain that goes on in another: lines and bytes count anew, entries and
    /// the rows' links go on.
    pub fn next_file(&mut self, last_line: LastLine) -> Outcome<()> {
        self.read.next_file(&mut self.rows, last_line)
    }

    /// What arrived of the current line can't be read on: it is dropped, with what links to it.
    pub(crate) fn break_off(&mut self) {
        self.read.partial.clear();
        self.read.overlong = 0;
        self.rows.lost();
    }

    /// How far the walk has come.
    #[must_use]
    pub fn at(&self) -> Place {
        self.read.at
    }

    /// The kind's own findings so far.
    #[must_use]
    pub fn rows(&self) -> &R {
        &self.rows
    }
}

impl Read {
    fn from(at: Place) -> Read {
        Read {
            partial: Vec::new(),
            overlong: 0,
            at,
            last: None,
            faults: Vec::new(),
            fault_count: 0,
            suspects: Vec::new(),
            suspect_count: 0,
        }
    }

    fn push(&mut self, rows: &mut dyn Rows, bytes: &[u8]) {
        let mut rest = bytes;
        if !self.partial.is_empty() || self.overlong > 0 {
            let Some(end) = memchr::memchr(b'\n', rest) else {
                return self.keep(rest);
            };
            self.keep(&rest[..end]);
            rest = &rest[end + 1..];
            let mut line = core::mem::take(&mut self.partial);
            self.line(rows, &line, 1);
            // Keep the allocation, unless a single huge line made it huge.
            line.clear();
            line.shrink_to(1 << 20);
            self.partial = line;
        }
        while let Some(end) = memchr::memchr(b'\n', rest) {
            self.line(rows, &rest[..end], 1);
            rest = &rest[end + 1..];
        }
        self.keep(rest);
    }

    fn next_file(&mut self, rows: &mut dyn Rows, last_line: LastLine) -> Outcome<()> {
        let mut in_flight = 0;
        let mut unterminated = false;
        if !self.partial.is_empty() || self.overlong > 0 {
            let line = core::mem::take(&mut self.partial);
            if last_line == LastLine::InFlight {
                in_flight = length(&line).saturating_add(self.overlong);
            } else {
                let before = self.at.entry;
                self.line(rows, &line, 0);
                unterminated = self.at.entry > before;
            }
        }
        let mut recovery = None;
        if let Some(torn) = self.suspects.first().cloned() {
            if self.fault_count == 0 {
                let torn_bytes = self.at.byte.saturating_sub(torn.place.byte);
                recovery = Some(Recovery { place: torn.place, torn_bytes });
            }
            self.fault(Fault { kind: FaultKind::TornTail, ..torn });
        }
        let outcome = Outcome {
            rows: (),
            end: self.at,
            last: self.last.take(),
            faults: core::mem::take(&mut self.faults),
            fault_count: self.fault_count,
            recovery,
            unterminated,
            in_flight,
        };
        self.at = Place { line: 1, byte: 0, ..self.at };
        self.overlong = 0;
        self.fault_count = 0;
        self.suspects.clear();
        self.suspect_count = 0;
        outcome
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = MAX_LINE.saturating_sub(self.partial.len());
        let (kept, over) = bytes.split_at(room.min(bytes.len()));
        self.partial.extend_from_slice(kept);
        self.overlong = self.overlong.saturating_add(length(over));
    }

    fn line(&mut self, rows: &mut dyn Rows, raw: &[u8], newline: u64) {
        let place = self.at;
        let over = core::mem::take(&mut self.overlong);
        self.at.line += 1;
        self.at.byte = self.at.byte.saturating_add(length(raw) + over + newline);
        let line = match rows.lines() {
            Lines::Lenient => raw.strip_suffix(b"\r").unwrap_or(raw),
            Lines::Exact => raw,
        };
        if over == 0 && line.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r')) {
            if rows.lines() == Lines::Exact {
                self.promote();
                let detail = "a blank line".to_string();
                self.fault(Fault { kind: FaultKind::MalformedRow, place, detail });
            }
            return;
        }
        let found = if over > 0 || raw.len() > MAX_LINE {
            rows.lost();
            Line::Fault(FaultKind::MalformedRow, alloc::format!("a line longer than {MAX_LINE} bytes"))
        } else {
            rows.line(line, place)
        };
        match found {
            Line::Row => self.row(place),
            Line::Fault(kind, detail) => {
                self.row(place);
                self.fault(Fault { kind, place, detail });
            }
            Line::NotARow(detail) => {
                self.promote();
                self.fault(Fault { kind: FaultKind::MalformedRow, place, detail });
            }
            Line::NotJson { at, begins_with_row } => {
                let detail =
                    alloc::format!("not one complete JSON text: it breaks off at byte {at} of the line");
                self.suspect_count += 1;
                if self.suspects.len() < MAX_FAULTS {
                    self.suspects.push(Fault { kind: FaultKind::InteriorCorruption, place, detail });
                }
                if begins_with_row {
                    self.promote();
                }
            }
        }
    }

    fn row(&mut self, place: Place) {
        self.promote();
        self.last = Some(place);
        self.at.entry += 1;
    }

    /// Something complete stands here, so what was broken before it is no torn tail.
    fn promote(&mut self) {
        if self.suspect_count > 0 {
            let unkept = self.suspect_count - length_of(&self.suspects);
            for suspect in core::mem::take(&mut self.suspects) {
                self.fault(suspect);
            }
            self.fault_count += unkept;
            self.suspect_count = 0;
        }
    }

    fn fault(&mut self, fault: Fault) {
        self.fault_count += 1;
        if self.faults.len() < MAX_FAULTS {
            self.faults.push(fault);
        }
    }
}

/// Rows of a piece of a chain that were judged on their own, and can be joined to the rows
/// before them.
pub trait Join: Rows + Sized {
    /// Takes over the rows that follow, which start at `from`; `false` (and no change) if they
    /// do not follow from these without a fault.
    fn join(&mut self, next: &Self, from: Place) -> bool;
}

impl<R: Join> Walk<R> {
    /// Takes over a walk of the bytes that follow, which ended at a line end and whose rows were
    /// started without a predecessor; `false` (and no change) if anything about it is not plain:
    /// then push its bytes instead, and the outcome is that of one walk over all.
    pub fn absorb(&mut self, next: &Walk<R>) -> bool {
        let (read, next_read) = (&mut self.read, &next.read);
        let plain = |read: &Read| {
            read.partial.is_empty() && read.overlong == 0 && read.fault_count + read.suspect_count == 0
        };
        if !plain(read) || !plain(next_read) || !self.rows.join(&next.rows, read.at) {
            return false;
        }
        read.last = next_read.last.map(|last| shifted(read.at, last)).or(read.last);
        read.at = shifted(read.at, next_read.at);
        true
    }
}

/// A place in a piece that starts at `from`, as a place in the whole.
#[must_use]
pub fn shifted(from: Place, place: Place) -> Place {
    Place { entry: from.entry + place.entry, line: from.line + place.line - 1, byte: from.byte + place.byte }
}

pub(crate) fn length(bytes: &[u8]) -> u64 {
    length_of(bytes)
}

fn length_of<T>(items: &[T]) -> u64 {
    u64::try_from(items.len()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows that are any object.
    #[derive(Clone, Debug, Default)]
    struct Objects;

    impl Rows for Objects {
        fn line(&mut self, line: &[u8], _: Place) -> Line {
            read_object(line).map_or_else(|line| line, |_| Line::Row)
        }

        fn lost(&mut self) {}
    }

    fn walk(bytes: &[u8]) -> Outcome<Objects> {
        let mut walk = Walk::new(Objects);
        walk.push(bytes);
        walk.finish(LastLine::Settled)
    }

    #[track_caller]
    fn check(bytes: &[u8], entries: u64, expect: &[(FaultKind, u64)]) -> Outcome<Objects> {
        let outcome = walk(bytes);
        let found: Vec<_> = outcome.faults.iter().map(|fault| (fault.kind, fault.place.line)).collect();
        assert_eq!(found, expect);
        assert_eq!(outcome.end.entry, entries);
        for size in 1..7 {
            let mut pieces = Walk::new(Objects);
            bytes.chunks(size).for_each(|piece| pieces.push(piece));
            let pieces = pieces.finish(LastLine::Settled);
            assert_eq!((pieces.end, &pieces.faults), (outcome.end, &outcome.faults));
        }
        outcome
    }

    #[test]
    fn blank_lines_count_as_lines_and_not_as_rows() {
        check(b"{}\n \t\r\n\n{}\r\n{}", 3, &[]);
        assert!(walk(b"{}\n{}").unterminated);
        assert!(!walk(b"{}\n{}\n \t").unterminated);
    }

    #[test]
    fn a_torn_tail_is_where_nothing_complete_follows() {
        let outcome = check(b"{}\n{\"a\n\0\0\n", 1, &[(FaultKind::TornTail, 2)]);
        let recovery = outcome.recovery.expect("a torn tail alone can be undone");
        assert_eq!((recovery.place.byte, recovery.torn_bytes), (3, 7));
    }

    #[test]
    fn anything_complete_behind_a_broken_line_makes_it_corruption() {
        for behind in [&b"{}"[..], b"7", b"NaN", b"{\"a\":1,\"a\":1}", b"{}{}"] {
            let mut bytes = b"{}\n{\"a\n".to_vec();
            bytes.extend_from_slice(behind);
            let outcome = walk(&bytes);
            assert_eq!(outcome.faults[0].kind, FaultKind::InteriorCorruption);
            assert_eq!(outcome.faults[0].place.line, 2);
            assert_eq!(outcome.recovery, None);
        }
    }

    #[test]
    fn a_last_line_that_begins_with_a_row_is_corruption() {
        check(b"{}\n{}{}\n", 1, &[(FaultKind::InteriorCorruption, 2)]);
        check(b"{}\x0b{}\n", 0, &[(FaultKind::InteriorCorruption, 1)]);
    }

    #[test]
    fn a_separator_that_is_not_a_newline_is_text() {
        check("{\"a\":\"x\u{2028}y\u{85}z\"}\n{}".as_bytes(), 2, &[]);
    }

    #[test]
    fn bytes_in_flight_are_left_out() {
        let mut walk = Walk::new(Objects);
        walk.push(b"{}\n{\"half");
        let outcome = walk.finish(LastLine::InFlight);
        assert_eq!((outcome.end.entry, outcome.fault_count, outcome.in_flight), (1, 0, 6));
    }

    #[test]
    fn faults_are_kept_to_a_hundred_and_all_counted() {
        let outcome = walk("7\n".repeat(250).as_bytes());
        assert_eq!((outcome.faults.len(), outcome.fault_count), (100, 250));
        let mut broken = "x\n".repeat(250);
        broken.push_str("{}\n");
        let outcome = walk(broken.as_bytes());
        assert_eq!((outcome.faults.len(), outcome.fault_count), (100, 250));
    }

    #[test]
    fn a_line_beyond_the_limit_is_malformed_and_not_kept() {
        let mut walk = Walk::new(Objects);
        let piece = alloc::vec![b'x'; 1 << 20];
        for _ in 0..66 {
            walk.push(&piece);
        }
        assert!(walk.read.partial.len() <= MAX_LINE);
        walk.push(b"\n{}\n");
        let outcome = walk.finish(LastLine::Settled);
        assert_eq!(outcome.faults[0].kind, FaultKind::MalformedRow);
        assert_eq!((outcome.end.entry, outcome.end.byte), (2, (66 << 20) + 4));
    }
}
