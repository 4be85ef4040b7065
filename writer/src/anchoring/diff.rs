//! `diff`: two lineages side by side from their fork; `diff --keep`: one of them is set aside,
//! never deleted, and that is recorded.

use waybill_verifier::anchor::ObjectId;
use waybill_verifier::audit::Draft;
use waybill_verifier::compare::{Comparison, compare};
use waybill_verifier::hash::Digest;
use waybill_verifier::id::RunId;
use waybill_verifier::json::{Object, Value};
use waybill_verifier::ledger::Row;

use super::anchor::{anchor, anchor_entries};
use super::fetch::{import, materialize};
use super::{Anchor, Error, anchored, local, read_anchor, report_anchor, walk_local};
use crate::audit;
use crate::clock::Moment;
use crate::durable;
use crate::git::network::{self, Quarantine};
use crate::git::{Store, anchor_ref};
use crate::lock::{Lock, Wait};
use crate::master::KeyFile;
use crate::project::Project;

/// One entry behind a fork, as a reader sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Side {
    /// Its number.
    pub entry: usize,
    /// Its hash.
    pub entry_hash: String,
    /// What it records.
    pub kind: String,
    /// Of which task.
    pub task_id: String,
    /// What goes with it, canonical JSON.
    pub payload: String,
    /// When it says that it was written.
    pub ts: String,
}

impl Side {
    fn of(entry: usize, row: &Row<'_>) -> Side {
        Side {
            entry,
            entry_hash: row.entry_hash.to_owned(),
            kind: row.kind.to_owned(),
            task_id: row.task_id.to_owned(),
            payload: row.payload.to_owned(),
            ts: row.ts.to_owned(),
        }
    }
}

/// Where two lineages part.
#[derive(Clone, Debug)]
pub struct Fork {
    /// How they stand to each other.
    pub comparison: Comparison,
    /// The number of entries that they share.
    pub common: usize,
    /// The local entries behind them.
    pub local: Vec<Side>,
    /// The anchored entries behind them.
    pub anchored: Vec<Side>,
    /// The two heads.
    pub heads: (Digest, Digest),
    /// The anchor's commit.
    pub commit: ObjectId,
}

/// The anchored lineage that a ledger is held against: the one here, or a remote's.
#[derive(Debug)]
pub struct Other<'a> {
    store: &'a Store,
    quarantine: Option<Quarantine>,
    remote: Option<&'a str>,
}

impl<'a> Other<'a> {
    /// The anchor here, or the one that a remote has now, fetched into a temporary repository.
    ///
    /// # Errors
    ///
    /// If the remote can't be asked, or has no anchor of the run.
    pub fn of(store: &'a Store, run: &RunId, remote: Option<&'a str>) -> Result<Other<'a>, Error> {
        let quarantine = match remote {
            None => None,
            Some(name) => Some(
                network::fetch(store, name, run)?
                    .ok_or_else(|| Error::NoAnchor { run: run.clone(), remote: Some(name.to_owned()) })?,
            ),
        };
        Ok(Other { store, quarantine, remote })
    }

    fn store(&self) -> &Store {
        self.quarantine.as_ref().map_or(self.store, |quarantine| &quarantine.store)
    }

    fn anchor(&self, run: &RunId) -> Result<Anchor, Error> {
        match &self.quarantine {
            Some(quarantine) => read_anchor(&quarantine.store, run, quarantine.commit, self.remote),
            None => {
                anchored(self.store, run)?.ok_or_else(|| Error::NoAnchor { run: run.clone(), remote: None })
            }
        }
    }
}

/// Compares a run's ledger with an anchor, and gives what each has behind their fork.
///
/// # Errors
///
/// If one of them is not there or does not hold.
pub fn diff(project: &Project, other: &Other<'_>, run: &RunId) -> Result<Fork, Error> {
    let ours = local(project, run)?.ok_or_else(|| crate::log::Error::Absent(run.clone()))?.chain;
    let theirs = other.anchor(run)?;
    let comparison = compare(&ours.stamps, &theirs.chain.stamps);
    let common = match comparison {
        Comparison::Diverged { entry, .. } | Comparison::UnhashedFieldsDiffer { entry } => entry,
        _ => ours.stamps.len().min(theirs.chain.stamps.len()),
    };
    let (mut here, mut there) = (Vec::new(), Vec::new());
    let mut entry = 0;
    walk_local(project, run, |row, _| {
        if entry >= common {
            here.push(Side::of(entry, row));
        }
        entry += 1;
    })?;
    let mut entry = 0;
    report_anchor(other.store(), run, theirs.commit, Default::default(), |row, _| {
        if entry >= common {
            there.push(Side::of(entry, row));
        }
        entry += 1;
    })?;
    Ok(Fork {
        comparison,
        common,
        local: here,
        anchored: there,
        heads: (ours.head(), theirs.chain.head()),
        commit: theirs.commit,
    })
}

/// Which of two lineages is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Keep {
    /// The ledger here; the anchored one is set aside.
    Local,
    /// The anchored one; the ledger here is set aside.
    Anchored,
}

/// What became of two lineages.
#[derive(Clone, Debug)]
pub struct Kept {
    /// Where the other one is now: a ref, or a file beside the ledger.
    pub aside: String,
    /// The anchor of the one that was kept.
    pub commit: ObjectId,
    /// The audit event that records it.
    pub recorded: Option<audit::Recorded>,
}

/// Settles a divergence: keeps one lineage and sets the other aside.
///
/// # Errors
///
/// If the two did not diverge, or something can't be written; nothing is ever deleted.
pub fn keep(
    project: &Project,
    other: &Other<'_>,
    key: &KeyFile,
    run: &RunId,
    keep: Keep,
    now: Moment,
    waiting: impl Fn(&str),
) -> Result<Kept, Error> {
    let store = other.store;
    let fork = diff(project, other, run)?;
    let settles =
        matches!(fork.comparison, Comparison::Diverged { .. } | Comparison::UnhashedFieldsDiffer { .. });
    if !settles {
        return Err(Error::NotDiverged(run.clone()));
    }
    if let Some(quarantine) = &other.quarantine {
        import(quarantine, store)?;
    }
    let reference = anchor_ref(run);
    let here = store.reference(&reference)?;
    let (aside, commit) = match keep {
        Keep::Local => {
            let aside = set_commit_aside(store, run, fork.heads.1, &fork.commit)?;
            let entries = fork.common + fork.local.len();
            let commit = match here.filter(|here| *here != fork.commit) {
                // The ref here has the local lineage already, or an earlier part of it.
                Some(_) => anchor(project, store, key, run, now)?.commit,
                None => {
                    let refs = (here, last_shared(store, run, &fork)?);
                    anchor_entries(project, store, key, run, now, entries, refs)?.commit
                }
            };
            (aside, commit)
        }
        Keep::Anchored => {
            let lock = project.ledger_lock(run);
            let name = {
                let _lock = Lock::take(&lock, Wait::Yes, &waiting).map_err(crate::log::Error::from)?;
                set_ledger_aside(project, run, fork.heads.0)?
            };
            if let Some(here) = here.filter(|here| *here != fork.commit) {
                if let Some(anchor) = anchored(store, run)? {
                    set_commit_aside(store, run, anchor.chain.head(), &here)?;
                }
                store.update(&reference, Some(&here), &fork.commit)?;
            } else if here.is_none() {
                store.update(&reference, None, &fork.commit)?;
            }
            if let Some(anchor) = anchored(store, run)? {
                materialize(project, store, run, &anchor, &waiting)?;
            }
            (name, fork.commit)
        }
    };
    super::resume::take_signals_back(project, run)?;
    let draft = settled(run, keep, &fork, &aside, now);
    let recorded = audit::record(project, key, &draft)?;
    Ok(Kept { aside, commit, recorded: Some(recorded) })
}

/// Keeps a commit under `refs/waybill/aside/<run>/<head>`.
fn set_commit_aside(store: &Store, run: &RunId, head: Digest, commit: &ObjectId) -> Result<String, Error> {
    let aside = aside_ref(run, head);
    if store.reference(&aside)?.is_none() {
        store.update(&aside, None, commit)?;
    }
    Ok(aside)
}

/// Where a lineage that was not kept is.
pub(super) fn aside_ref(run: &RunId, head: Digest) -> String {
    format!("refs/waybill/aside/{run}/{head}")
}

/// Renames the ledger's file to `.aside-<head>` beside it.
fn set_ledger_aside(project: &Project, run: &RunId, head: Digest) -> Result<String, Error> {
    let path = project.ledger(run);
    let mut name = format!(".aside-{head}");
    let mut number = 1;
    while path.with_file_name(&name).exists() {
        number += 1;
        name = format!(".aside-{head}-{number}");
    }
    durable::rename(&path, &path.with_file_name(&name))?;
    Ok(name)
}

/// The latest anchor in the anchored lineage's history that the local lineage goes on from.
fn last_shared(store: &Store, run: &RunId, fork: &Fork) -> Result<Option<ObjectId>, Error> {
    let mut commit = Some(fork.commit);
    while let Some(id) = commit {
        let report = report_anchor(store, run, id, Default::default(), |_, _| {})?;
        let entries = report.facts.get("entries").and_then(Value::as_u64);
        let shared = u64::try_from(fork.common).unwrap_or(u64::MAX);
        if entries.is_some_and(|entries| entries <= shared) {
            return Ok(Some(id));
        }
        let parent = report.facts.get("parent").and_then(Value::as_str);
        commit = parent.and_then(|parent| ObjectId::from_hex(parent.as_bytes()));
    }
    Ok(None)
}

/// The audit event of a settled divergence.
fn settled(run: &RunId, keep: Keep, fork: &Fork, aside: &str, now: Moment) -> Draft {
    let (kept, set_aside) = match keep {
        Keep::Local => fork.heads,
        Keep::Anchored => (fork.heads.1, fork.heads.0),
    };
    Draft {
        timestamp: now.timestamp(),
        event_type: String::from("work_ledger.diverged_settled"),
        actor: String::from("work_ledger"),
        resource_type: String::from("work_ledger"),
        resource_id: run.to_string(),
        details: Object::of([
            ("run_id", Value::from(run.as_str())),
            ("fork_entry", Value::from(u64::try_from(fork.common).unwrap_or(u64::MAX))),
            ("kept", Value::from(if keep == Keep::Local { "local" } else { "anchored" })),
            ("kept_head", Value::from(kept.to_hex())),
            ("aside_head", Value::from(set_aside.to_hex())),
            ("aside", Value::from(aside)),
        ]),
    }
}
