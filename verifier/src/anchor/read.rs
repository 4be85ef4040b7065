//! Reading one anchor's objects out of a store that nobody vouches for: each is asked for by id,
//! with the most bytes it may have, and its bytes are hashed again before they are looked at.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::commit::{Commit, MAX_COMMIT};
use super::finding::Finding;
use super::layout::MAX_CHUNK;
use super::meta::{MAX_META, Meta};
use super::object::{Found, ObjectId, ObjectKind};
use super::rows::{ChunkWalk, End, RowsRead};
use super::tree::{MAX_TREE, META_NAME, Shape, chunk_name};
use crate::chain::{FaultKind, Place};
use crate::hash::Digest;
use crate::id::RunId;
use crate::ledger::Row;
use crate::table::Table;

/// What a store is known to lack. A missing object is a fault, unless it is known to be missing:
/// then what needs it is not checked.
#[derive(Clone, Copy, Debug, Default)]
pub enum Completeness<'a> {
    /// Everything that is named must be there.
    #[default]
    Whole,
    /// A shallow clone: the parents of these commits are not there.
    Shallow(&'a BTreeSet<ObjectId>),
    /// Any commit's parents may be missing, nothing else: a bundle, whose maker may have had a
    /// shallow clone and had no way to say so.
    Cut,
    /// Anything may be missing: a partial clone, a bundle on top of what its reader should have.
    Partial,
}

/// A store, and what is known of it.
pub(super) struct Store<'a> {
    pub(super) source: &'a mut dyn FnMut(&ObjectId, usize) -> Result<Found, Unread>,
    pub(super) completeness: Completeness<'a>,
}

/// The store could not be read; whoever gave its source knows why.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unread;

impl Store<'_> {
    /// The bytes of an object, or why it can't be had. `child` is the commit that names a commit.
    pub(super) fn load(
        &mut self,
        id: &ObjectId,
        kind: ObjectKind,
        limit: usize,
        child: Option<&ObjectId>,
    ) -> Result<Result<Vec<u8>, Finding>, Unread> {
        let fault = |fault, said: &str| Finding::fault(fault, format!("{} {id} {said}", kind.name()));
        Ok(match (self.source)(id, limit)? {
            Found::Missing if self.may_lack(child) => {
                Err(Finding::not_checked(format!("{} {id} is not in this store", kind.name())))
            }
            Found::Missing => Err(fault(FaultKind::ObjectMissing, "is missing")),
            Found::TooLarge => Err(fault(
                FaultKind::ObjectLimit,
                &format!("is larger than the {limit} bytes that belong there"),
            )),
            Found::Object(_, bytes) if bytes.len() > limit => Err(fault(
                FaultKind::ObjectLimit,
                &format!("is larger than the {limit} bytes that belong there"),
            )),
            Found::Object(found, _) if found != kind => {
                Err(fault(FaultKind::ObjectMismatch, &format!("is a {}", found.name())))
            }
            Found::Object(_, bytes) => match ObjectId::of(kind, &bytes) {
                Ok(computed) if computed == *id => Ok(bytes),
                Ok(computed) => {
                    Err(fault(FaultKind::ObjectMismatch, &format!("has bytes of the id {computed}")))
                }
                Err(collision) => {
                    Err(fault(FaultKind::ObjectMismatch, &format!("can't be told apart: {collision}")))
                }
            },
        })
    }

    fn may_lack(&self, child: Option<&ObjectId>) -> bool {
        match (self.completeness, child) {
            (Completeness::Partial, _) => true,
            (Completeness::Cut, child) => child.is_some(),
            (Completeness::Shallow(cut), Some(child)) => cut.contains(child),
            (Completeness::Whole | Completeness::Shallow(_), _) => false,
        }
    }
}

/// A commit's bytes, read as far as they can be.
#[derive(Clone, Debug)]
pub(super) struct CommitRead {
    pub(super) id: ObjectId,
    pub(super) bytes: Vec<u8>,
    pub(super) tree: ObjectId,
    pub(super) parents: Vec<ObjectId>,
}

impl CommitRead {
    pub(super) fn of(id: ObjectId, bytes: Vec<u8>) -> Result<CommitRead, Finding> {
        match Commit::parse(&bytes) {
            Ok(Commit { tree, parents, .. }) => Ok(CommitRead { id, tree, parents, bytes }),
            Err(said) => Err(Finding::fault(
                FaultKind::CommitMismatch,
                format!("{id} is not a commit as git writes one: {said}"),
            )),
        }
    }

    pub(super) fn load(
        store: &mut Store<'_>,
        id: ObjectId,
        child: Option<&ObjectId>,
    ) -> Result<Result<CommitRead, Finding>, Unread> {
        let loaded = store.load(&id, ObjectKind::Commit, MAX_COMMIT, child)?;
        Ok(loaded.and_then(|bytes| CommitRead::of(id, bytes)))
    }
}

/// A tree and what is in it, read as far as it can be.
#[derive(Clone, Debug, Default)]
pub(super) struct Body {
    /// The first object that could not be had: what comes behind it was not read.
    pub(super) gap: Option<Finding>,
    pub(super) shape: Option<Shape>,
    pub(super) meta: Option<Result<Meta, String>>,
    pub(super) rows: Option<RowsRead>,
    /// Whether the rows are those of all chunks.
    pub(super) whole: bool,
    /// The bytes of the last chunk, if they were read.
    pub(super) last: Option<Vec<u8>>,
}

/// What is known before a tree is read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known<'a> {
    /// The run that it must be of.
    pub(super) run: Option<&'a RunId>,
    /// A tree whose chunks need not be read again.
    pub(super) like: Option<&'a Body>,
    /// Hashes that are looked for.
    pub(super) wanted: [Option<Digest>; 2],
}

impl Body {
    pub(super) fn load(
        store: &mut Store<'_>,
        tree: &ObjectId,
        known: Known<'_>,
        visit: &mut dyn FnMut(&Row<'_>, Place),
    ) -> Result<Body, Unread> {
        let mut body = Body::default();
        let shape = match store.load(tree, ObjectKind::Tree, MAX_TREE, None)? {
            Ok(bytes) => Shape::of(&bytes),
            Err(gap) => return Ok(Body { gap: Some(gap), ..body }),
        };
        if let Some(meta) = &shape.meta {
            match store.load(meta, ObjectKind::Blob, MAX_META, None)? {
                Ok(bytes) => body.meta = Some(Meta::read(&bytes)),
                Err(gap) => body.gap = Some(gap.at(META_NAME, None)),
            }
        }
        let stated = body.meta.as_ref().and_then(|meta| meta.as_ref().ok()?.run().ok());
        let run = known.run.or(stated.as_ref());
        let (shared, ends) = shared(&shape, known.like);
        let from = ends.last().copied().unwrap_or(End::GENESIS);
        let wanted = known.wanted.into_iter().flatten().collect();
        let mut walk = ChunkWalk::new(run, (shared, from), wanted, visit);
        body.whole = true;
        let mut seen: Table<()> = shape.chunks[..shared].iter().map(|id| (id.to_hex(), ())).collect();
        for (index, chunk) in shape.chunks.iter().enumerate().skip(shared) {
            match store.load(chunk, ObjectKind::Blob, MAX_CHUNK, None)? {
                Ok(bytes) => {
                    walk.push(&bytes);
                    body.last = Some(bytes);
                    // No chain has the same rows twice, so this is a fault by now; and a small
                    // tree could otherwise ask for the same bytes a million times.
                    if seen.insert(&chunk.to_hex(), ()).is_some() {
                        body.whole = false;
                        break;
                    }
                }
                Err(gap) => {
                    body.gap = body.gap.or(Some(gap.at(&chunk_name(index), None)));
                    body.whole = false;
                    body.last = None;
                    break;
                }
            }
        }
        let mut rows = walk.finish();
        rows.ends.splice(0..0, ends.iter().copied());
        body.rows = Some(rows);
        body.shape = Some(shape);
        Ok(body)
    }

    /// Whether the rows are all there and nothing is wrong with them.
    pub(super) fn clean_rows(&self) -> bool {
        self.whole && self.rows.as_ref().is_some_and(RowsRead::clean)
    }
}

/// The chunks at the start that another tree has too, and that were read there and hold. A last
/// chunk may be short in one and must be full in the other: it is always read again.
fn shared<'a>(shape: &Shape, like: Option<&'a Body>) -> (usize, &'a [End]) {
    let Some(like) = like.filter(|like| like.clean_rows()) else {
        return (0, &[]);
    };
    let (Some(rows), Some(known)) = (&like.rows, &like.shape) else {
        return (0, &[]);
    };
    let same = shape.chunks.iter().zip(&known.chunks).take_while(|(left, right)| left == right).count();
    let short = known.chunks.len().saturating_sub(1);
    let shared = same.min(short);
    (shared, rows.ends.get(..shared).unwrap_or_default())
}
