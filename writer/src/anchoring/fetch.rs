//! `fetch`: a remote's anchor, verified in quarantine, then imported; `push`: ours to a remote,
//! under a lease.

use std::collections::BTreeSet;
use std::io::Write;

use waybill_verifier::anchor::{Found, MAX_CHUNK, MAX_COMMIT, MAX_TREE, ObjectId, ObjectKind};
use waybill_verifier::id::RunId;
use waybill_verifier::ledger::Row;

use super::diff::aside_ref;
use super::{Anchor, Chain, Error, Standing, anchored, local, read_anchor, report_anchor, standing};
use crate::durable::{self, AppendFile, Sync};
use crate::git::network::{self, Quarantine};
use crate::git::{Store, anchor_ref};
use crate::lock::{Lock, Wait};
use crate::project::Project;

/// What a fetch, or a resume, did to the ledger's file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Materialized {
    /// It was there with all entries.
    Unchanged,
    /// It was made.
    Created,
    /// It got this many entries more.
    FastForwarded(usize),
}

/// What a fetch did.
#[derive(Clone, Debug)]
pub struct Fetched {
    /// The anchor.
    pub anchor: Anchor,
    /// What became of the ledger's file.
    pub materialized: Materialized,
}

/// Fetches a remote's anchor of a run: verified in a temporary repository, compared with the
/// ledger and the anchor here, and only then imported. Nothing is overwritten, and a remote that
/// was rolled back takes nothing away.
///
/// # Errors
///
/// If the remote has none, it does not hold, it diverged from what is here, or what is here is
/// ahead of it.
pub fn fetch(
    project: &Project,
    store: &Store,
    run: &RunId,
    remote: &str,
    waiting: impl FnOnce(&str),
) -> Result<Fetched, Error> {
    let Some(quarantine) = network::fetch(store, remote, run)? else {
        return Err(Error::NoAnchor { run: run.clone(), remote: Some(remote.to_owned()) });
    };
    let theirs = read_anchor(&quarantine.store, run, quarantine.commit, Some(remote))?;
    let behind = |ours: &Chain| -> Result<(), Error> {
        match standing(run, Some(remote), ours, &theirs.chain)? {
            Standing::LocalAhead(more) => {
                let anchored = theirs.chain.stamps.len();
                Err(Error::Ahead {
                    run: run.clone(),
                    remote: Some(remote.to_owned()),
                    local: anchored + more,
                    anchored,
                })
            }
            Standing::Same | Standing::AnchorAhead(_) => Ok(()),
        }
    };
    if let Some(ours) = local(project, run)? {
        behind(&ours.chain)?;
    }
    let reference = anchor_ref(run);
    let before = store.reference(&reference)?;
    if let Some(ours) = anchored(store, run)? {
        behind(&ours.chain)?;
    }
    import(&quarantine, store)?;
    if before != Some(theirs.commit) {
        store.update(&reference, before.as_ref(), &theirs.commit)?;
    }
    let materialized = materialize(project, store, run, &theirs, waiting)?;
    Ok(Fetched { anchor: theirs, materialized })
}

/// Copies a verified anchor and all before it, parents last, so that no commit is there without
/// what it names.
pub(super) fn import(quarantine: &Quarantine, store: &Store) -> Result<(), Error> {
    let mut commits = Vec::new();
    let mut next = Some(quarantine.commit);
    while let Some(id) = next.filter(|id| !store.has(id)) {
        let Found::Object(kind, bytes) = quarantine.store.object(&id, MAX_COMMIT)? else { break };
        let header = |name: &[u8]| {
            let line = bytes.split(|&byte| byte == b'\n').find(|line| line.starts_with(name))?;
            ObjectId::from_hex(&line[name.len()..])
        };
        let (tree, parent) = (header(b"tree "), header(b"parent "));
        commits.push((kind, id, tree, bytes));
        next = parent;
    }
    let mut copied = BTreeSet::new();
    for (kind, id, tree, bytes) in commits.into_iter().rev() {
        if let Some(tree) = tree {
            copy_tree(quarantine, store, &tree, &mut copied)?;
        }
        store.write(kind, &id, &bytes)?;
    }
    Ok(store.sync_objects()?)
}

fn copy_tree(
    quarantine: &Quarantine,
    store: &Store,
    tree: &ObjectId,
    copied: &mut BTreeSet<ObjectId>,
) -> Result<(), Error> {
    let Found::Object(kind, bytes) = quarantine.store.object(tree, MAX_TREE)? else { return Ok(()) };
    let mut rest = bytes.as_slice();
    // A tree entry is `<mode> <name>\0` and the 20 bytes of an id; the tree was verified.
    while let Some(end) = rest.iter().position(|&byte| byte == 0) {
        let Some(id) = rest.get(end + 1..end + 21).and_then(|id| <[u8; 20]>::try_from(id).ok()) else {
            break;
        };
        let id = ObjectId::from_bytes(id);
        rest = &rest[end + 21..];
        if copied.insert(id)
            && !store.has(&id)
            && let Found::Object(kind, bytes) = quarantine.store.object(&id, MAX_CHUNK)?
        {
            store.write(kind, &id, &bytes)?;
        }
    }
    if copied.insert(*tree) {
        debug_assert_eq!(kind, ObjectKind::Tree);
        store.write(kind, tree, &bytes)?;
    }
    Ok(())
}

/// Brings the ledger's file to an anchor that goes on from it.
///
/// # Errors
///
/// If the file does not hold, goes another way, or can't be written.
pub(super) fn materialize(
    project: &Project,
    store: &Store,
    run: &RunId,
    anchor: &Anchor,
    waiting: impl FnOnce(&str),
) -> Result<Materialized, Error> {
    let path = project.ledger(run);
    durable::create_private_folders(project.root(), &project.ledger_folder(run))?;
    let _lock = Lock::take(&project.ledger_lock(run), Wait::Yes, waiting).map_err(crate::log::Error::from)?;
    // Under the lock, so that nobody extends what was compared.
    let ours = local(project, run)?;
    let exists = ours.as_ref().is_some_and(|ours| !ours.chain.stamps.is_empty() || ours.torn.is_some());
    let ours = ours.unwrap_or_default();
    let more = match standing(run, None, &ours.chain, &anchor.chain)? {
        Standing::AnchorAhead(more) => more,
        Standing::Same | Standing::LocalAhead(_) => return Ok(Materialized::Unchanged),
    };
    let have = ours.chain.stamps.len();
    if !exists {
        durable::replace(&path, |file| {
            let mut file = std::io::BufWriter::with_capacity(1 << 20, file);
            write_rows(store, run, anchor, 0, |row| file.write_all(row))?;
            file.flush()
        })?;
        return Ok(Materialized::Created);
    }
    let mut file = AppendFile::open(&path)?;
    if let Some(torn) = ours.torn {
        let plan = crate::log::Plan::SetAside {
            from: torn.place.byte,
            length: torn.torn_bytes,
            entry: torn.place.entry,
        };
        crate::log::recover::execute(&plan, &path, &mut file)?;
    }
    let mut rows = Vec::new();
    if !file.ends_with_newline()? {
        rows.push(b'\n');
    }
    let unreadable = |source| durable::Error::new("can't read the anchor for", &path, source);
    write_rows(store, run, anchor, have, |row| {
        rows.extend_from_slice(row);
        Ok(())
    })
    .map_err(unreadable)?;
    file.append(&rows, Sync::Data)?;
    Ok(Materialized::FastForwarded(more))
}

/// Gives the rows of an anchor from entry `from` on, each with its newline.
fn write_rows(
    store: &Store,
    run: &RunId,
    anchor: &Anchor,
    from: usize,
    mut put: impl FnMut(&[u8]) -> std::io::Result<()>,
) -> std::io::Result<()> {
    let mut seen = 0;
    let mut put_all = Ok(());
    let mut line = Vec::new();
    let visit = |row: &Row<'_>, _| {
        if seen >= from && put_all.is_ok() {
            line.clear();
            line.extend_from_slice(row.text.as_bytes());
            line.push(b'\n');
            put_all = put(&line);
        }
        seen += 1;
    };
    let expect = waybill_verifier::anchor::Expect { commit: Some(anchor.commit), ..Default::default() };
    let report = report_anchor(store, run, anchor.commit, expect, visit);
    let report = report.map_err(|error| std::io::Error::other(error.to_string()))?;
    if report.verdict == waybill_verifier::report::Verdict::Failed {
        return Err(std::io::Error::other(report.summary));
    }
    put_all
}

/// What a push did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pushed {
    /// The remote had it.
    UpToDate,
    /// The remote's ref was made or moved.
    Moved,
}

/// Pushes the run's anchor to a remote. The remote's own is looked at first: only what ours goes
/// on from is replaced, and only if it is still there (a lease).
///
/// # Errors
///
/// If there is no anchor here, the remote's diverged or is ahead, or git can't push.
pub fn push(store: &Store, run: &RunId, remote: &str) -> Result<(ObjectId, Pushed), Error> {
    let Some(ours) = anchored(store, run)? else {
        return Err(Error::NoAnchor { run: run.clone(), remote: None });
    };
    let theirs = network::remote_anchor(store, remote, run)?;
    if theirs == Some(ours.commit) {
        return Ok((ours.commit, Pushed::UpToDate));
    }
    if theirs.is_some() {
        let Some(quarantine) = network::fetch(store, remote, run)? else {
            return Err(Error::NoAnchor { run: run.clone(), remote: Some(remote.to_owned()) });
        };
        let theirs = read_anchor(&quarantine.store, run, quarantine.commit, Some(remote))?;
        match standing(run, Some(remote), &ours.chain, &theirs.chain) {
            Ok(Standing::AnchorAhead(more)) => {
                let local = ours.chain.stamps.len();
                return Err(Error::Behind {
                    run: run.clone(),
                    remote: Some(remote.to_owned()),
                    local,
                    anchored: local + more,
                });
            }
            Ok(Standing::Same | Standing::LocalAhead(_)) => {
                network::push(store, remote, run, Some(&quarantine.commit), &ours.commit)?;
            }
            // What `diff --keep` set aside here goes there, too, before its place is taken.
            Err(error) => {
                let aside = aside_ref(run, theirs.chain.head());
                if store.reference(&aside)? != Some(theirs.commit) {
                    return Err(error);
                }
                network::push_settled(store, remote, run, &aside, &theirs.commit, &ours.commit)?;
            }
        }
    } else {
        network::push(store, remote, run, None, &ours.commit)?;
    }
    Ok((ours.commit, Pushed::Moved))
}
