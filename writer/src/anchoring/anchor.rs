//! `anchor`: the ledger becomes a tree and a commit under the run's ref; `gc`: its history
//! becomes one commit.

use waybill_verifier::anchor::{Builder, Chunk, Layout, ObjectId, ObjectKind, squash_commit};
use waybill_verifier::audit::Anchored as Mirror;
use waybill_verifier::hash::Digest;
use waybill_verifier::id::RunId;

use super::{Anchor, Error, Standing, anchored, both, standing, walk_local};
use crate::audit;
use crate::clock::Moment;
use crate::git::{self, Store, anchor_ref};
use crate::master::KeyFile;
use crate::project::Project;

/// An anchor that was made, or was there already.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Anchored {
    /// The commit.
    pub commit: ObjectId,
    /// Its tree.
    pub tree: ObjectId,
    /// The last entry's hash.
    pub head: Digest,
    /// How many entries it has.
    pub entries: u64,
    /// In how many chunks.
    pub chunks: u64,
    /// How many blobs were written for it.
    pub blobs_written: u64,
    /// Whether the ref moved.
    pub moved: bool,
    /// Whether the audit log got an event for it now.
    pub mirrored: Option<audit::Recorded>,
}

/// Anchors a run's ledger. If the anchor there is the same, nothing is written but what an
/// interrupted earlier call left undone.
///
/// The order is: verify, objects, sync, ref, mirror; killed in between, one more call does the
/// rest.
///
/// # Errors
///
/// If the ledger or the anchor there does not hold, the two diverged, the anchor is ahead, or
/// something can't be written.
pub fn anchor(
    project: &Project,
    store: &Store,
    key: &KeyFile,
    run: &RunId,
    now: Moment,
) -> Result<Anchored, Error> {
    let mut attempts = 0;
    loop {
        match try_anchor(project, store, key, run, now) {
            // Another process anchored the run meanwhile: look again at what it made.
            Err(Error::Git(git::Error::Moved { .. })) if attempts < 10 => attempts += 1,
            other => return other,
        }
    }
}

fn try_anchor(
    project: &Project,
    store: &Store,
    key: &KeyFile,
    run: &RunId,
    now: Moment,
) -> Result<Anchored, Error> {
    let (ours, there) = both(project, store, run)?;
    let ours = ours.ok_or_else(|| crate::log::Error::Absent(run.clone()))?.chain;
    let mut same = false;
    if let Some(there) = &there {
        match standing(run, None, &ours, &there.chain)? {
            Standing::Same => same = true,
            Standing::LocalAhead(_) => {}
            Standing::AnchorAhead(more) => {
                let local = ours.stamps.len();
                return Err(Error::Behind { run: run.clone(), remote: None, local, anchored: local + more });
            }
        }
    }
    let entries = ours.stamps.len();
    drop(ours);
    let parent = there.as_ref().map(|there| there.commit);
    match parent.filter(|_| same) {
        Some(commit) => {
            let Written { layout, .. } = write_rows(project, store, run, entries)?;
            let mirrored = mirror(project, key, &layout, now)?;
            Ok(made(&layout, commit, 0, false, mirrored))
        }
        None => anchor_entries(project, store, key, run, now, entries, (parent, parent)),
    }
}

/// Anchors the first `entries` entries of the ledger: the ref goes from `refs.0` to a commit
/// whose parent is `refs.1`.
pub(super) fn anchor_entries(
    project: &Project,
    store: &Store,
    key: &KeyFile,
    run: &RunId,
    now: Moment,
    entries: usize,
    (before, parent): (Option<ObjectId>, Option<ObjectId>),
) -> Result<Anchored, Error> {
    let Written { layout, chunks, mut blobs_written } = write_rows(project, store, run, entries)?;
    blobs_written += u64::from(store.write(ObjectKind::Blob, &layout.meta_id, &layout.meta)?);
    store.write(ObjectKind::Tree, &layout.tree_id, &layout.tree)?;
    let bytes = layout.commit(parent.as_ref(), now.seconds());
    let commit = ObjectId::of(ObjectKind::Commit, &bytes).map_err(|_| collision())?;
    store.write(ObjectKind::Commit, &commit, &bytes)?;
    store.sync_objects()?;
    store.update(&anchor_ref(run), before.as_ref(), &commit)?;
    // A `git gc --prune=now` at the same time may have taken what no ref named yet for rubbish.
    let kept = [commit, layout.tree_id, layout.meta_id];
    if !kept.iter().chain(&chunks).all(|id| store.has(id)) {
        write_rows(project, store, run, entries)?;
        store.write(ObjectKind::Blob, &layout.meta_id, &layout.meta)?;
        store.write(ObjectKind::Tree, &layout.tree_id, &layout.tree)?;
        store.write(ObjectKind::Commit, &commit, &bytes)?;
        store.sync_objects()?;
    }
    let mirrored = mirror(project, key, &layout, now)?;
    Ok(made(&layout, commit, blobs_written, true, mirrored))
}

fn made(
    layout: &Layout,
    commit: ObjectId,
    blobs_written: u64,
    moved: bool,
    mirrored: Option<audit::Recorded>,
) -> Anchored {
    Anchored {
        commit,
        tree: layout.tree_id,
        head: layout.head,
        entries: layout.entries,
        chunks: layout.chunk_count,
        blobs_written,
        moved,
        mirrored,
    }
}

fn collision() -> Error {
    Error::Layout(waybill_verifier::anchor::LayoutError::Collision)
}

/// Rows that were laid out and written.
struct Written {
    layout: Layout,
    chunks: Vec<ObjectId>,
    blobs_written: u64,
}

/// Lays the first `entries` rows out, and writes the chunks that are not there yet. The ledger is
/// verified once more on the way: it may have changed since it was compared.
fn write_rows(project: &Project, store: &Store, run: &RunId, entries: usize) -> Result<Written, Error> {
    if entries == 0 {
        return Err(Error::NothingToAnchor(run.clone()));
    }
    let mut builder = Builder::new(run);
    let mut chunks = Vec::new();
    let mut blobs_written = 0;
    let mut failed: Option<Error> = None;
    let mut left = entries;
    let mut put = |chunk: Chunk| -> Result<(), Error> {
        blobs_written += u64::from(store.write(ObjectKind::Blob, &chunk.id, &chunk.bytes)?);
        chunks.push(chunk.id);
        Ok(())
    };
    walk_local(project, run, |row, _| {
        if failed.is_some() || left == 0 {
            return;
        }
        left -= 1;
        let pushed = builder.push(row).map_err(Error::from);
        if let Err(error) = pushed.and_then(|chunk| chunk.map_or(Ok(()), &mut put)) {
            failed = Some(error);
        }
    })?;
    if let Some(error) = failed {
        return Err(error);
    }
    let (last, layout) = builder.finish()?;
    last.map_or(Ok(()), put)?;
    Ok(Written { layout, chunks, blobs_written })
}

/// Records the anchor in the audit log, unless that has it already.
fn mirror(
    project: &Project,
    key: &KeyFile,
    layout: &Layout,
    now: Moment,
) -> Result<Option<audit::Recorded>, Error> {
    let (reference, tree) = (anchor_ref(&layout.run), layout.tree_id.to_hex());
    let event = Mirror {
        run_id: layout.run.as_str(),
        head_hash: layout.head,
        entry_count: layout.entries,
        chunk_count: layout.chunk_count,
        reference: &reference,
        tree_sha: &tree,
    };
    let draft = event.draft(now.timestamp());
    let recorded = audit::record_unless(project, key, &draft, |event| {
        let said = |name: &str| event.details.get(name).cloned();
        event.event_type == *draft.event_type
            && event.resource_id == *draft.resource_id
            && ["head_hash", "tree_sha", "ref"]
                .iter()
                .all(|name| said(name).as_ref() == draft.details.get(name))
    })?;
    Ok(recorded)
}

/// What a gc did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Squashed {
    /// The commit that the ref names now.
    pub commit: ObjectId,
    /// How many commits the ref led to before.
    pub commits_before: u64,
}

/// Replaces a run's anchors by one commit without a parent, of the same tree.
///
/// # Errors
///
/// If there is no anchor, it does not hold, or something can't be written.
pub fn gc(store: &Store, run: &RunId, now: Moment) -> Result<Squashed, Error> {
    let Some(Anchor { commit, report, .. }) = anchored(store, run)? else {
        return Err(Error::NoAnchor { run: run.clone(), remote: None });
    };
    let fact = |name: &str| report.facts.get(name);
    let before = fact("history_length").and_then(|length| length.as_u64()).unwrap_or(1);
    let has_parent = fact("parent").and_then(|parent| parent.as_str()).is_some();
    if !has_parent {
        return Ok(Squashed { commit, commits_before: before });
    }
    let tree =
        fact("tree").and_then(|tree| tree.as_str()).and_then(|tree| ObjectId::from_hex(tree.as_bytes()));
    let tree = tree.expect("the report on an anchor that holds names its tree");
    let bytes = squash_commit(run, &tree, now.seconds());
    let squashed = ObjectId::of(ObjectKind::Commit, &bytes).map_err(|_| collision())?;
    store.write(ObjectKind::Commit, &squashed, &bytes)?;
    store.sync_objects()?;
    store.update(&anchor_ref(run), Some(&commit), &squashed)?;
    Ok(Squashed { commit: squashed, commits_before: before })
}
