//! Reading chains from files: in one thread piece by piece, or on several in blocks that are
//! verified on their own and joined.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use waybill_verifier::chain::{LastLine, MAX_LINE, Outcome, Place, Rows, Walk};
use waybill_verifier::hash::Digest;
use waybill_verifier::id::RunId;
use waybill_verifier::ledger::{Ignore, LedgerRows, Row};

use crate::durable;
use crate::lock::Lock;
use crate::project::Project;

/// How much is read at once.
const PIECE: usize = 256 << 10;

/// How much one thread verifies at a time; with two threads and a summary each in flight, this
/// is what memory use comes to.
const BLOCK: u64 = 4 << 20;

/// How many bytes a file has now.
///
/// # Errors
///
/// If the system can't tell.
pub fn size(file: &File) -> io::Result<u64> {
    Ok(file.metadata()?.len())
}

/// How many threads a ledger of this size is worth.
#[must_use]
pub fn threads(size: u64) -> usize {
    if size < 4 * BLOCK { 1 } else { thread::available_parallelism().map_or(1, |count| count.get().min(8)) }
}

/// Walks the first `size` bytes of a file.
///
/// # Errors
///
/// If they can't be read.
pub fn walk<R: Rows>(file: &File, size: u64, rows: R, last_line: LastLine) -> io::Result<Outcome<R>> {
    let mut walk = Walk::new(rows);
    push_range(&mut walk, file, 0, size)?;
    Ok(walk.finish(last_line))
}

/// Walks a run's ledger, without waiting for its writer; `None` if there is none.
///
/// # Errors
///
/// If it can't be read.
pub fn walk_run<F: FnMut(&Row<'_>, Place)>(
    project: &Project,
    run: &RunId,
    rows: LedgerRows<F>,
) -> Result<Option<Outcome<LedgerRows<F>>>, durable::Error> {
    durable::refuse_links(project.root(), &project.ledger_folder(run))?;
    // The lock is looked at first: a writer that ends in between leaves settled bytes.
    let last_line = Lock::last_line(&project.ledger_lock(run));
    let path = project.ledger(run);
    let Some(file) = durable::open_if_there(&path)? else { return Ok(None) };
    let walked = size(&file).and_then(|size| walk(&file, size, rows, last_line));
    walked.map(Some).map_err(|source| durable::Error::new("can't read", &path, source))
}

/// Walks the first `size` bytes of a ledger on up to `threads` threads; the outcome is that of
/// one walk on one.
///
/// # Errors
///
/// If they can't be read.
pub fn walk_ledger(
    file: &File,
    size: u64,
    rows: LedgerRows<Ignore>,
    last_line: LastLine,
    threads: usize,
) -> io::Result<Outcome<LedgerRows<Ignore>>> {
    let blocks = size.div_ceil(BLOCK);
    if threads < 2 || blocks < 4 {
        return walk(file, size, rows, last_line);
    }
    let wanted = rows.wanted();
    let mut walk = Walk::new(rows);
    thread::scope(|scope| {
        let queues: Vec<Receiver<io::Result<Piece>>> = (0..threads)
            .map(|first| {
                let (sender, receiver) = sync_channel(2);
                let wanted = wanted.clone();
                let step = u64::try_from(threads).unwrap_or(1);
                let first = u64::try_from(first).unwrap_or(0);
                scope.spawn(move || {
                    let mut bytes = Vec::new();
                    let mut block = first;
                    while block < blocks {
                        let piece = Piece::verify(file, size, block, &wanted, &mut bytes);
                        // The receiver is gone only if reading failed elsewhere.
                        if sender.send(piece).is_err() {
                            return;
                        }
                        block += step;
                    }
                });
                receiver
            })
            .collect();
        for queue in queues.iter().cycle() {
            let Ok(piece) = queue.recv() else { break };
            let piece = piece?;
            if !walk.absorb(&piece.walk) {
                push_range(&mut walk, file, piece.from, piece.to)?;
            }
        }
        Ok(walk.finish(last_line))
    })
}

/// A block of a ledger, from the line that starts in it to the one that ends behind it.
struct Piece {
    walk: Walk<LedgerRows<Ignore>>,
    from: u64,
    to: u64,
}

impl Piece {
    fn verify(
        file: &File,
        size: u64,
        block: u64,
        wanted: &[Digest],
        bytes: &mut Vec<u8>,
    ) -> io::Result<Piece> {
        let from = line_start(file, size, block * BLOCK)?;
        let to = line_start(file, size, (block + 1) * BLOCK)?;
        let mut walk = Walk::new(LedgerRows::piece().looking_for(wanted.iter().copied()));
        let length = usize::try_from(to - from).unwrap_or(usize::MAX);
        if length <= MAX_LINE {
            bytes.resize(length, 0);
            file.read_exact_at(bytes, from)?;
            walk.push(bytes);
            bytes.shrink_to(2 << 20);
        } else {
            push_range(&mut walk, file, from, to)?;
        }
        Ok(Piece { walk, from, to })
    }
}

/// Where the first line starts at or behind an offset.
fn line_start(file: &File, size: u64, offset: u64) -> io::Result<u64> {
    if offset == 0 || offset >= size {
        return Ok(offset.min(size));
    }
    let mut at = offset - 1;
    let mut piece = vec![0; 4 << 10];
    while at < size {
        let length = piece.len().min(usize::try_from(size - at).unwrap_or(usize::MAX));
        file.read_exact_at(&mut piece[..length], at)?;
        if let Some(end) = memchr::memchr(b'\n', &piece[..length]) {
            return Ok(at + u64::try_from(end).unwrap_or(0) + 1);
        }
        at += u64::try_from(length).unwrap_or(0);
        piece.resize(PIECE, 0);
    }
    Ok(size)
}

fn push_range<R: Rows>(walk: &mut Walk<R>, file: &File, from: u64, to: u64) -> io::Result<()> {
    let mut piece = vec![0; PIECE];
    let mut at = from;
    while at < to {
        let length = piece.len().min(usize::try_from(to - at).unwrap_or(usize::MAX));
        file.read_exact_at(&mut piece[..length], at)?;
        walk.push(&piece[..length]);
        at += u64::try_from(length).unwrap_or(0);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::io::Write;

    use waybill_verifier::id::{Kind, TaskId};
    use waybill_verifier::json::{Object, Value};
    use waybill_verifier::ledger::RowText;

    use super::*;

    fn ledger(rows: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut head = Digest::ZERO;
        for seq in 0..rows {
            let payload = Object::of([("text", Value::from("x".repeat(400)))]);
            let kind = Kind::new("task.started").unwrap();
            let task = TaskId::new("t").unwrap();
            let (row, hash) = RowText::next(&kind, &task, &payload, (seq, &head), 0, 1.5);
            head = hash;
            bytes.extend_from_slice(row.as_bytes());
            bytes.push(b'\n');
        }
        bytes
    }

    fn both(bytes: &[u8]) -> Outcome<LedgerRows<Ignore>> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        let size = size(&file).unwrap();
        let walk = |threads| {
            let rows = LedgerRows::unvisited(None);
            walk_ledger(&file, size, rows, LastLine::Settled, threads).unwrap()
        };
        let one = walk(1);
        for threads in [2, 3] {
            let many = walk(threads);
            assert_eq!(many.faults, one.faults);
            assert_eq!((many.end, many.last, many.fault_count), (one.end, one.last, one.fault_count));
            assert_eq!(many.rows.head(), one.rows.head());
            assert_eq!(many.rows.not_canonical(), one.rows.not_canonical());
            assert_eq!((many.recovery, many.unterminated), (one.recovery, one.unterminated));
        }
        one
    }

    #[test]
    fn several_threads_find_what_one_finds() {
        let good = ledger(40_000);
        assert_eq!(both(&good).fault_count, 0);
        let middle = good.len() / 2;
        let line = |from: usize| from + memchr::memchr(b'\n', &good[from..]).unwrap();

        let mut flipped = good.clone();
        flipped[middle] ^= 1;
        assert!(both(&flipped).fault_count > 0);

        let mut without = good[..=line(middle)].to_vec();
        without.extend_from_slice(&good[line(line(middle) + 1)..]);
        assert!(both(&without).fault_count > 0);

        let mut spaced = good.clone();
        spaced.insert(line(middle) + 2, b' ');
        assert_eq!(both(&spaced).rows.not_canonical_count(), 1);

        let mut broken = good.clone();
        broken[line(middle) + 1] = b'x';
        assert!(both(&broken).fault_count > 0);

        assert!(both(&good[..good.len() - 9]).recovery.is_some());
        assert!(both(&good[..good.len() - 1]).unterminated);

        let mut long = good[..=line(middle)].to_vec();
        long.extend(std::iter::repeat_n(b' ', 9 << 20));
        long.extend_from_slice(&good[line(middle)..]);
        assert_eq!(both(&long).fault_count, 0);
    }
}
