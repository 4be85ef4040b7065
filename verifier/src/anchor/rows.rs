//! The rows of an anchor's chunks: the ledger's own walk, and what is asked of chunks on top of
//! it: one text a row, and a fixed number of rows a chunk.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::finding::Finding;
use super::layout::CHUNK_ROWS;
use super::tree::chunk_name;
use crate::chain::{Fault, FaultKind, LastLine, Line, Outcome, Place, Rows, Walk};
use crate::hash::Digest;
use crate::id::RunId;
use crate::json;
use crate::ledger::{LedgerRows, Row, Visitor};
use crate::report::counted;

/// Where the rows stand at the end of a chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct End {
    pub(super) entries: u64,
    pub(super) head: Digest,
}

impl End {
    pub(super) const GENESIS: End = End { entries: 0, head: Digest::ZERO };
}

/// What the rows of some chunks turned out to be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct RowsRead {
    /// Where they end.
    pub(super) end: End,
    /// Where each chunk ends.
    pub(super) ends: Vec<End>,
    /// The run that they were checked against, or that they name.
    pub(super) run: Option<String>,
    /// Whether a `run.open` names it.
    pub(super) named: bool,
    pub(super) not_canonical: Option<Finding>,
    pub(super) of_run: Option<Finding>,
    pub(super) chunk_size: Option<Finding>,
    pub(super) chain: Option<Finding>,
    /// Where the entries that were looked for are.
    pub(super) found: Vec<(Digest, String, Place)>,
}

impl RowsRead {
    /// Whether nothing is wrong with them.
    pub(super) fn clean(&self) -> bool {
        let faults = [&self.not_canonical, &self.of_run, &self.chunk_size, &self.chain];
        faults.iter().all(|fault| fault.is_none())
    }
}

/// A walk over chunks, one pushed after the other.
pub(super) struct ChunkWalk<'a> {
    walk: Walk<ChunkRows<'a>>,
    first_chunk: usize,
    /// Where each chunk starts.
    starts: Vec<Place>,
    ends: Vec<End>,
    /// The lines of the last chunk.
    lines: u64,
    chunk_size: Option<Finding>,
    not_canonical: Option<(Place, &'static str)>,
    wanted: Vec<Digest>,
}

impl<'a> ChunkWalk<'a> {
    /// A walk that starts with chunk `first_chunk`, before which the rows stand at `from`.
    pub(super) fn new(
        run: Option<&RunId>,
        (first_chunk, from): (usize, End),
        wanted: Vec<Digest>,
        visit: &'a mut dyn FnMut(&Row<'_>, Place),
    ) -> ChunkWalk<'a> {
        let visit: Visitor<'a> = Box::new(visit);
        let ledger =
            LedgerRows::after(run, from.entries, from.head, visit).looking_for(wanted.iter().copied());
        let at = Place { entry: from.entries, line: 1, byte: 0 };
        ChunkWalk {
            walk: Walk::starting_at(ChunkRows { ledger, not_canonical: None }, at),
            first_chunk,
            starts: Vec::new(),
            ends: Vec::new(),
            lines: CHUNK_ROWS,
            chunk_size: None,
            not_canonical: None,
            wanted,
        }
    }

    /// Takes the next chunk, whole.
    pub(super) fn push(&mut self, chunk: &[u8]) {
        if self.lines != CHUNK_ROWS {
            self.wrong_size("expected 1000, since it is not the last");
        }
        let start = self.walk.at();
        self.starts.push(start);
        self.lines = self.look_at_lines(chunk, start);
        self.walk.push(chunk);
        if !chunk.is_empty() && !chunk.ends_with(b"\n") {
            // So that the next chunk's first row is not taken for the rest of this line.
            self.walk.push(b"\n");
        }
        self.ends.push(End { entries: self.walk.at().entry, head: self.walk.rows().ledger.head() });
    }

    /// Ends the walk at the end of the last chunk.
    pub(super) fn finish(mut self) -> RowsRead {
        if !self.starts.is_empty() && !(1..=CHUNK_ROWS).contains(&self.lines) {
            self.wrong_size("expected 1 to 1000");
        }
        let ChunkWalk { walk, first_chunk, starts, ends, chunk_size, mut not_canonical, wanted, .. } = self;
        let Outcome { rows: ChunkRows { ledger, not_canonical: faulty }, end, faults, fault_count, .. } =
            walk.finish(LastLine::Settled);
        let places = Places { first_chunk, starts };
        for place in [ledger.not_canonical(), faulty].into_iter().flatten() {
            if not_canonical.is_none_or(|(first, _)| place.byte < first.byte) {
                not_canonical = Some((place, "the line is not the canonical text of its value"));
            }
        }
        let of_run = |fault: &&Fault| fault.kind == FaultKind::RunIdMismatch;
        let of_run_count = u64::try_from(faults.iter().filter(of_run).count()).unwrap_or(0);
        let found = wanted.into_iter().filter_map(|hash| {
            let (file, place) = places.locate(ledger.found(hash)?);
            Some((hash, file, place))
        });
        RowsRead {
            end: End { entries: end.entry, head: ledger.head() },
            ends,
            run: ledger.run().map(String::from),
            named: ledger.named(),
            not_canonical: not_canonical.map(|(place, detail)| {
                places.finding(&Fault { kind: FaultKind::NotCanonical, place, detail: detail.into() }, 1)
            }),
            of_run: faults.iter().find(of_run).map(|fault| places.finding(fault, of_run_count)),
            chunk_size,
            chain: faults
                .iter()
                .find(|fault| fault.kind != FaultKind::RunIdMismatch)
                .map(|fault| places.finding(fault, fault_count - of_run_count)),
            found: found.collect(),
        }
    }

    fn wrong_size(&mut self, expected: &str) {
        if self.chunk_size.is_none() && !self.starts.is_empty() {
            let name = chunk_name(self.first_chunk + self.starts.len() - 1);
            let sentence = format!("{name} has {}, {expected}", counted(self.lines, "row"));
            self.chunk_size = Some(Finding::fault(FaultKind::ChunkSize, sentence).at(&name, None));
        }
    }

    /// How many lines there are; and what the walk passes over but is no canonical text: blank
    /// lines, leading blanks, carriage returns, a last line without its end.
    fn look_at_lines(&mut self, chunk: &[u8], start: Place) -> u64 {
        let (mut lines, mut from) = (0, 0);
        while from < chunk.len() {
            let end = memchr::memchr(b'\n', &chunk[from..]).map(|length| from + length);
            let line = &chunk[from..end.unwrap_or(chunk.len())];
            let said = match (line.first(), end) {
                (None | Some(b' ' | b'\t'), _) => Some("the line is blank, or begins with a blank"),
                (_, None) => Some("the last line has no newline"),
                _ if line.ends_with(b"\r") => Some("the line ends with a carriage return"),
                _ => None,
            };
            if let (Some(said), None) = (said, self.not_canonical) {
                let byte = start.byte + u64::try_from(from).unwrap_or(u64::MAX);
                let place = Place { entry: start.entry + lines, line: start.line + lines, byte };
                self.not_canonical = Some((place, said));
            }
            lines += 1;
            from = end.map_or(chunk.len(), |end| end + 1);
        }
        lines
    }
}

/// Ledger rows that are also asked for their one form where they do not hold.
struct ChunkRows<'a> {
    ledger: LedgerRows<Visitor<'a>>,
    not_canonical: Option<Place>,
}

impl Rows for ChunkRows<'_> {
    fn line(&mut self, line: &[u8], place: Place) -> Line {
        let found = self.ledger.line(line, place);
        if found != Line::Row && self.not_canonical.is_none() {
            let canonical = json::parse(line).is_ok_and(|value| json::ascii(&value) == line);
            self.not_canonical = (!canonical).then_some(place);
        }
        found
    }

    fn lost(&mut self) {
        self.ledger.lost();
    }
}

/// Turns places in the whole into places in a chunk; the entry's number stays the ledger's.
struct Places {
    first_chunk: usize,
    starts: Vec<Place>,
}

impl Places {
    fn locate(&self, place: Place) -> (String, Place) {
        let index = self.starts.partition_point(|start| start.byte <= place.byte).saturating_sub(1);
        let name = chunk_name(self.first_chunk + index);
        match self.starts.get(index) {
            Some(start) => {
                (name, Place { line: place.line - start.line + 1, byte: place.byte - start.byte, ..place })
            }
            None => (name, place),
        }
    }

    fn finding(&self, fault: &Fault, count: u64) -> Finding {
        let (file, place) = self.locate(fault.place);
        let more = if count > 1 { format!(" ({count} faults in all)") } else { String::new() };
        let sentence = format!("{file}: {}{more}", Fault { place, ..fault.clone() });
        Finding::fault(fault.kind, sentence).at(&file, Some(place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{Kind, TaskId};
    use crate::json::Object;
    use crate::ledger::RowText;

    fn rows(count: u64) -> Vec<Vec<u8>> {
        let (kind, task) = (Kind::new("task.started").expect("a kind"), TaskId::new("t").expect("an id"));
        let mut prev = Digest::ZERO;
        let mut row = |seq| {
            let (text, hash) = RowText::next(&kind, &task, &Object::default(), (seq, &prev), 0, 0.5);
            prev = hash;
            [text.as_bytes(), b"\n"].concat()
        };
        (0..count).map(&mut row).collect()
    }

    fn read(chunks: &[Vec<u8>]) -> RowsRead {
        let mut unseen = |_: &Row<'_>, _: Place| {};
        let mut walk = ChunkWalk::new(None, (0, End::GENESIS), Vec::new(), &mut unseen);
        chunks.iter().for_each(|chunk| walk.push(chunk));
        walk.finish()
    }

    #[test]
    fn chunks_of_a_thousand_hold() {
        let rows = rows(2001);
        let chunks: Vec<_> = rows.chunks(1000).map(<[_]>::concat).collect();
        let whole = read(&chunks);
        assert!(whole.clean());
        assert_eq!(whole.ends.iter().map(|end| end.entries).collect::<Vec<_>>(), [1000, 2000, 2001]);
        // The same from the second chunk on.
        let mut unseen = |_: &Row<'_>, _: Place| {};
        let mut walk = ChunkWalk::new(None, (1, whole.ends[0]), Vec::new(), &mut unseen);
        chunks[1..].iter().for_each(|chunk| walk.push(chunk));
        let rest = walk.finish();
        assert!(rest.clean());
        assert_eq!((rest.end, &rest.ends[..]), (whole.end, &whole.ends[1..]));
    }

    #[track_caller]
    fn check(chunks: &[Vec<u8>], of: fn(&RowsRead) -> &Option<Finding>, file: &str, line: Option<u64>) {
        let read = read(chunks);
        let at = of(&read).as_ref().and_then(|finding| finding.at.clone()).expect("a finding");
        assert_eq!((at.file.as_str(), at.place.map(|place| place.line)), (file, line));
    }

    #[test]
    fn chunks_of_another_size_are_named() {
        let rows = rows(1002);
        let size: fn(&RowsRead) -> &Option<Finding> = |read| &read.chunk_size;
        check(&[rows[..999].concat(), rows[999..].concat()], size, "chunk-000000.jsonl", None);
        check(&[rows[..1001].concat()], size, "chunk-000000.jsonl", None);
        check(&[rows[..1000].concat(), Vec::new()], size, "chunk-000001.jsonl", None);
        check(&[Vec::new(), rows.concat()], size, "chunk-000000.jsonl", None);
    }

    #[test]
    fn faults_are_placed_in_their_chunk() {
        let mut rows = rows(1003);
        let edited =
            String::from_utf8(rows[1001].clone()).expect("ASCII").replace("\"payload\":{}", "\"payload\":[]");
        rows[1001] = edited.into_bytes();
        let chunks: Vec<_> = rows.chunks(1000).map(<[_]>::concat).collect();
        check(&chunks, |read| &read.chain, "chunk-000001.jsonl", Some(2));
        assert_eq!(read(&chunks).not_canonical, None);
    }

    #[test]
    fn text_that_is_not_the_one_form_is_named_first() {
        let good = rows(3);
        let canonical: fn(&RowsRead) -> &Option<Finding> = |read| &read.not_canonical;
        let variants: [(&[u8], u64); 8] = [
            (b"\n", 2),
            (b" \n", 2),
            (b"\r\n", 2),
            (b" {}\n", 2),
            (b"{ }\n", 2),
            (b"{\"a\":1,\"a\":1}\n", 2),
            (b"{\"a\n", 2),
            (b"{\"a\":1E5}\n", 2),
        ];
        for (line, at) in variants {
            let mut rows = good.clone();
            rows.insert(1, line.to_vec());
            check(&[rows.concat()], canonical, "chunk-000000.jsonl", Some(at));
        }
        let whole = good.concat();
        check(&[whole[..whole.len() - 1].to_vec()], canonical, "chunk-000000.jsonl", Some(3));
        let crlf = String::from_utf8(whole).expect("ASCII").replace('\n', "\r\n").into_bytes();
        check(&[crlf], canonical, "chunk-000000.jsonl", Some(1));
    }
}
