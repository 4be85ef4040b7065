//! How ledger rows link: `seq` counts from 0, `prev_hash` is the row before's `entry_hash` (64
//! zeros first), and `run.open` names the run.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::row::{self, Row, is_hex, shown};
use super::slices::Slices;
use crate::chain::{FaultKind, Join, Line, Place, Rows, read_object, shifted};
use crate::find::same;
use crate::hash::{Digest, GENESIS, HEX_LEN};
use crate::id::RunId;
use crate::json::{self, Value};

/// A visitor of rows, whatever it does: all walks that have one are the same code.
pub type Visitor<'a> = Box<dyn FnMut(&Row<'_>, Place) + 'a>;

/// A visitor of rows that does nothing.
pub type Ignore = fn(&Row<'_>, Place);

/// The rows of a ledger, and what they must link to.
///
/// `F` is called with each row that holds, in order.
#[derive(Clone, Debug)]
pub struct LedgerRows<F> {
    link: Link,
    first: Option<(u64, [u8; HEX_LEN])>,
    run: Option<String>,
    not_canonical: Option<Place>,
    not_canonical_count: u64,
    wanted: Vec<Wanted>,
    closed: bool,
    visit: Option<F>,
}

/// A hash that is looked for among the entries.
#[derive(Clone, Debug)]
struct Wanted {
    hash: [u8; HEX_LEN],
    found: Option<Place>,
}

impl Wanted {
    fn see(&mut self, hash: &[u8], place: Place) {
        if hash == self.hash {
            self.found = self.found.or(Some(place));
        }
    }
}

impl<F: FnMut(&Row<'_>, Place)> LedgerRows<F> {
    /// The rows of a whole ledger: of the named run, or of whichever its first `run.open` names.
    pub fn new(run: Option<&RunId>, visit: F) -> LedgerRows<F> {
        LedgerRows::visited_by(run, Some(visit))
    }

    /// The rows of a whole ledger, as [`LedgerRows::new`]; faster if nobody looks at each.
    pub fn visited_by(run: Option<&RunId>, visit: Option<F>) -> LedgerRows<F> {
        LedgerRows {
            link: Link::genesis(),
            first: None,
            run: run.map(|run| run.as_str().to_string()),
            not_canonical: None,
            not_canonical_count: 0,
            wanted: Vec::new(),
            closed: false,
            visit,
        }
    }

    /// The rows that go on behind `entries` rows that hold, of which the last has the hash `head`.
    pub(crate) fn after(run: Option<&RunId>, entries: u64, head: Digest, visit: F) -> LedgerRows<F> {
        let link = Link { seq: Some(entries), prev: Some(head.hex()), head, ..Link::default() };
        LedgerRows { link, ..LedgerRows::new(run, visit) }
    }

    /// Looks for the entries with these hashes on the way.
    #[must_use]
    pub fn looking_for(mut self, hashes: impl IntoIterator<Item = Digest>) -> Self {
        let wanted = |hash: Digest| Wanted { hash: hash.hex(), found: None };
        self.wanted = hashes.into_iter().map(wanted).collect();
        self
    }

    /// The hashes that are looked for.
    #[must_use]
    pub fn wanted(&self) -> Vec<Digest> {
        self.wanted.iter().filter_map(|wanted| Digest::from_hex(&wanted.hash)).collect()
    }

    /// Whether a `run.closed` stands among the rows.
    #[must_use]
    pub fn closed(&self) -> bool {
        self.closed
    }

    /// Where the entry with a hash that was looked for stands.
    #[must_use]
    pub fn found(&self, hash: Digest) -> Option<Place> {
        self.wanted.iter().find(|wanted| wanted.hash == hash.hex()).and_then(|wanted| wanted.found)
    }

    /// The hash of the last row; 64 zeros before the first.
    #[must_use]
    pub fn head(&self) -> Digest {
        self.link.head
    }

    /// The first row that holds but is not in canonical form.
    #[must_use]
    pub fn not_canonical(&self) -> Option<Place> {
        self.not_canonical
    }

    /// How many rows hold but are not in canonical form.
    #[must_use]
    pub fn not_canonical_count(&self) -> u64 {
        self.not_canonical_count
    }

    /// The run that the rows were checked against, or that they name.
    #[must_use]
    pub fn run(&self) -> Option<&str> {
        self.run.as_deref()
    }

    /// Whether a `run.open` of the chain names its run.
    #[must_use]
    pub fn named(&self) -> bool {
        self.link.named
    }

    /// The way of nearly every row: canonical, and everything about it holds. Anything else
    /// takes the slow way, which says what is wrong; so the two can't disagree.
    fn fast(&mut self, line: &[u8], place: Place) -> bool {
        let Some(row) = Slices::prove(line) else { return false };
        let (Some(prev), Some(seq)) = (self.link.prev, self.link.seq) else { return false };
        if !same(row.prev_hash, &prev) || decimal(row.seq) != seq || row.kind == b"run.open" {
            return false;
        }
        let hex = row.computed.hex();
        if !same(row.entry_hash, &hex) {
            return false;
        }
        let Some(next) = seq.checked_add(1) else { return false };
        self.link.seq = Some(next);
        self.link.prev = Some(hex);
        self.link.head = row.computed;
        self.closed |= row.kind == b"run.closed";
        for wanted in &mut self.wanted {
            wanted.see(row.entry_hash, place);
        }
        if let Some(visit) = &mut self.visit {
            visit(&row.row(), place);
        }
        true
    }

    fn slow(&mut self, line: &[u8], place: Place) -> Result<(), Line> {
        let object = read_object(line)?;
        let text = row::read(&object)?;
        let row = text.row();
        let seq: Option<u64> = row.seq.parse().ok();
        let stated = Digest::from_hex(row.entry_hash.as_bytes());
        let checked = self.check(&row, seq, place);
        let prev: [u8; HEX_LEN] = row.prev_hash.as_bytes().try_into().unwrap_or(GENESIS);
        if let (None, Some(seq)) = (self.first, seq) {
            self.first = Some((seq, prev));
        }
        self.link.faulty |= checked.is_err();
        self.link.after(seq, stated.unwrap_or(Digest::ZERO));
        checked?;
        if text.as_bytes() != line {
            self.not_canonical = self.not_canonical.or(Some(place));
            self.not_canonical_count += 1;
        }
        self.holds(&row, place);
        Ok(())
    }

    fn holds(&mut self, row: &Row<'_>, place: Place) {
        for wanted in &mut self.wanted {
            wanted.see(row.entry_hash.as_bytes(), place);
        }
        self.closed |= row.kind == "run.closed";
        if let Some(visit) = &mut self.visit {
            visit(row, place);
        }
    }

    fn check(&mut self, row: &Row<'_>, seq: Option<u64>, place: Place) -> Result<(), Line> {
        self.link.check_seq(seq, row.seq, place)?;
        self.link.check_prev(row.prev_hash)?;
        let computed = row.computed_hash();
        if row.entry_hash.as_bytes() != computed.hex() {
            let detail = format!("stored {}, computed {computed}", row.entry_hash);
            return Err(Line::Fault(FaultKind::EntryHashMismatch, detail));
        }
        if row.kind == "run.open" {
            self.check_run(row)?;
        }
        Ok(())
    }

    fn check_run(&mut self, row: &Row<'_>) -> Result<(), Line> {
        let payload = json::parse(row.payload.as_bytes()).unwrap_or(Value::Null);
        let Some(stated) = payload.as_object().and_then(|payload| payload.get("run_id")) else {
            return Ok(());
        };
        let mismatch = |detail| Err(Line::Fault(FaultKind::RunIdMismatch, detail));
        let Some(id) = stated.as_str().and_then(|id| RunId::new(id).ok()) else {
            return mismatch(format!("run.open names {}, which is no run id", shown(stated)));
        };
        match &self.run {
            Some(run) if run != id.as_str() => {
                return mismatch(format!("run.open names {id}, expected {run}"));
            }
            Some(_) => {}
            None => self.run = Some(id.as_str().to_string()),
        }
        self.link.named = true;
        Ok(())
    }
}

impl LedgerRows<Ignore> {
    /// The rows of a whole ledger, as [`LedgerRows::new`], with nobody looking at each: faster.
    #[must_use]
    pub fn unvisited(run: Option<&RunId>) -> LedgerRows<Ignore> {
        LedgerRows::visited_by(run, None)
    }

    /// The rows of a piece of a ledger, which will be joined to what stands before it.
    #[must_use]
    pub fn piece() -> LedgerRows<Ignore> {
        LedgerRows { link: Link::default(), ..LedgerRows::unvisited(None) }
    }
}

impl<F: FnMut(&Row<'_>, Place)> Rows for LedgerRows<F> {
    fn line(&mut self, line: &[u8], place: Place) -> Line {
        if self.fast(line, place) {
            return Line::Row;
        }
        match self.slow(line, place) {
            Ok(()) => Line::Row,
            Err(line) => {
                // What a row that can't be read stood for is not known, so what follows it is
                // compared with itself only.
                if !matches!(
                    line,
                    Line::Fault(
                        FaultKind::SeqMismatch
                            | FaultKind::PrevHashMismatch
                            | FaultKind::EntryHashMismatch
                            | FaultKind::RunIdMismatch,
                        _
                    )
                ) {
                    self.link.lose();
                }
                line
            }
        }
    }

    fn lost(&mut self) {
        self.link.lose();
    }
}

impl<F: FnMut(&Row<'_>, Place)> Join for LedgerRows<F> {
    fn join(&mut self, next: &Self, from: Place) -> bool {
        let Some((seq, prev)) = next.first else {
            return next.link.seq.is_none();
        };
        let follows = self.link.seq == Some(seq) && self.link.prev == Some(prev);
        let same_run = match (&self.run, &next.run) {
            (Some(run), Some(named)) => run == named,
            _ => true,
        };
        if !follows || !same_run {
            return false;
        }
        let named = self.link.named || next.link.named;
        self.link = Link { named, ..next.link.clone() };
        self.run = self.run.take().or_else(|| next.run.clone());
        let not_canonical = next.not_canonical.map(|place| shifted(from, place));
        self.not_canonical = self.not_canonical.or(not_canonical);
        self.not_canonical_count += next.not_canonical_count;
        self.closed |= next.closed;
        for (wanted, next) in self.wanted.iter_mut().zip(&next.wanted) {
            wanted.found = wanted.found.or(next.found.map(|place| shifted(from, place)));
        }
        true
    }
}

/// The value of at most 19 digits.
fn decimal(digits: &[u8]) -> u64 {
    digits.iter().fold(0, |value, digit| value * 10 + u64::from(digit - b'0'))
}

/// What the next row must say: shared by the chains whose rows have `seq` and a bare hex
/// `prev_hash`.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    /// The next row's number; not known at the start of a piece and behind a lost row.
    pub(crate) seq: Option<u64>,
    /// The next row's `prev_hash`.
    pub(crate) prev: Option<[u8; HEX_LEN]>,
    pub(crate) head: Digest,
    pub(crate) faulty: bool,
    pub(crate) named: bool,
}

impl Default for Link {
    fn default() -> Link {
        Link { seq: None, prev: None, head: Digest::ZERO, faulty: false, named: false }
    }
}

impl Link {
    pub(crate) fn genesis() -> Link {
        Link { seq: Some(0), prev: Some(GENESIS), ..Link::default() }
    }

    /// Goes on behind a row with the stated number and hash.
    pub(crate) fn after(&mut self, seq: Option<u64>, hash: Digest) {
        self.seq = seq.and_then(|seq| seq.checked_add(1));
        self.prev = Some(hash.hex());
        self.head = hash;
    }

    pub(crate) fn lose(&mut self) {
        self.seq = None;
        self.prev = None;
        self.faulty = true;
    }

    /// Behind a fault, a row may either count on from the row before or stand at its own place:
    /// so one wrong number is one fault, and so is one missing row.
    pub(crate) fn check_seq(&self, seq: Option<u64>, stated: &str, place: Place) -> Result<(), Line> {
        let fits = match self.seq {
            None => seq.is_some(),
            Some(_) if seq.is_none() => false,
            expected => seq == expected || (self.faulty && seq == Some(place.entry)),
        };
        if fits {
            return Ok(());
        }
        let expected = self.seq.unwrap_or(place.entry);
        let stated: String = stated.chars().take(24).collect();
        Err(Line::Fault(FaultKind::SeqMismatch, format!("stored {stated}, expected {expected}")))
    }

    pub(crate) fn check_prev(&self, stated: &str) -> Result<(), Line> {
        debug_assert!(is_hex(stated.as_bytes()));
        match &self.prev {
            Some(expected) if stated.as_bytes() != expected => {
                let expected = String::from_utf8_lossy(expected);
                let detail = format!("stored {stated}, expected {expected}");
                Err(Line::Fault(FaultKind::PrevHashMismatch, detail))
            }
            _ => Ok(()),
        }
    }
}
