//! Two chains of one run: the same, one ahead, or diverged, and where.
//!
//! A divergence is neither malformed input nor a failed check: both lineages hold, and somebody
//! has to choose.

use crate::hash::{Digest, Hasher};
use crate::ledger::Row;

/// One entry of a chain, as far as comparing needs it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stamp {
    /// The entry's hash.
    pub entry_hash: Digest,
    /// A digest of what the entry's hash does not cover (`ts`, `redactions`).
    pub unhashed: Digest,
}

impl Stamp {
    /// The stamp of a row that holds.
    #[must_use]
    pub fn of(row: &Row<'_>) -> Stamp {
        let mut unhashed = Hasher::new();
        unhashed.update(row.redactions.as_bytes());
        unhashed.update(b",");
        unhashed.update(row.ts.as_bytes());
        Stamp {
            entry_hash: Digest::from_hex(row.entry_hash.as_bytes()).unwrap_or(Digest::ZERO),
            unhashed: unhashed.finish(),
        }
    }
}

/// How two chains stand to each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Comparison {
    /// Entry for entry the same.
    Identical,
    /// The local chain has this many entries more.
    LocalAhead(usize),
    /// The remote chain has this many entries more.
    RemoteAhead(usize),
    /// They part at this entry, the first whose hashes differ.
    Diverged {
        /// The entry's number.
        entry: usize,
        /// Its hash here.
        local: Digest,
        /// Its hash there.
        remote: Digest,
    },
    /// The hashes agree as far as both go, but this entry's unhashed fields were edited.
    UnhashedFieldsDiffer {
        /// The entry's number.
        entry: usize,
    },
}

/// Compares two chains that hold. Where both a divergence and an edit are there, it is the
/// divergence that is said.
#[must_use]
pub fn compare(local: &[Stamp], remote: &[Stamp]) -> Comparison {
    let mut edited = None;
    for (entry, (ours, theirs)) in local.iter().zip(remote).enumerate() {
        if ours.entry_hash != theirs.entry_hash {
            return Comparison::Diverged { entry, local: ours.entry_hash, remote: theirs.entry_hash };
        }
        if ours.unhashed != theirs.unhashed && edited.is_none() {
            edited = Some(entry);
        }
    }
    match edited {
        Some(entry) => Comparison::UnhashedFieldsDiffer { entry },
        None if local.len() > remote.len() => Comparison::LocalAhead(local.len() - remote.len()),
        None if remote.len() > local.len() => Comparison::RemoteAhead(remote.len() - local.len()),
        None => Comparison::Identical,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(spec: &[(u8, u8)]) -> alloc::vec::Vec<Stamp> {
        spec.iter()
            .map(|&(hash, rest)| Stamp { entry_hash: Digest::of(&[hash]), unhashed: Digest::of(&[rest]) })
            .collect()
    }

    #[test]
    fn every_relation_is_told_apart() {
        let base = chain(&[(0, 0), (1, 0)]);
        let check = |other: &[(u8, u8)]| compare(&base, &chain(other));
        assert_eq!(check(&[(0, 0), (1, 0)]), Comparison::Identical);
        assert_eq!(check(&[(0, 0)]), Comparison::LocalAhead(1));
        assert_eq!(check(&[(0, 0), (1, 0), (2, 0)]), Comparison::RemoteAhead(1));
        assert_eq!(check(&[(0, 9), (1, 0), (2, 0)]), Comparison::UnhashedFieldsDiffer { entry: 0 });
        assert!(matches!(check(&[(0, 9), (7, 0)]), Comparison::Diverged { entry: 1, .. }));
        assert!(matches!(check(&[(7, 0)]), Comparison::Diverged { entry: 0, .. }));
    }
}
