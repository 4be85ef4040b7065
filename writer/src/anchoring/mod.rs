//! Anchors: a run's ledger in a git repository, and the ways between the two.
//!
//! Everything is verified before it reaches a ref or the disk. Two chains of one run are never
//! merged: they are the same, one goes on from the other, or they diverged, which is an error
//! that names the fork.

mod anchor;
mod bundle;
mod diff;
mod fetch;
mod resume;

use std::collections::BTreeSet;
use std::fmt;

use waybill_verifier::anchor::{self as format, Completeness, Found, LayoutError, ObjectId, Target};
use waybill_verifier::chain::{Place, Recovery};
use waybill_verifier::compare::{Comparison, Stamp, compare};
use waybill_verifier::hash::Digest;
use waybill_verifier::id::RunId;
use waybill_verifier::json::{self, Value};
use waybill_verifier::ledger::{LedgerRows, Row, State};
use waybill_verifier::report::{Report, Verdict, counted};

use crate::audit;
use crate::durable;
use crate::git::{self, Store, anchor_ref};
use crate::log::{self, recover};
use crate::project::Project;
use crate::read;

pub use anchor::{Anchored, Squashed, anchor, gc};
pub use bundle::bundle;
pub use diff::{Fork, Keep, Kept, Other, Side, diff, keep};
pub use fetch::{Fetched, Materialized, Pushed, fetch, push};
pub use resume::{
    Projection, Resumed, Signal, prepare as prepare_resume, project as project_resume,
    record as record_resume, resume,
};

/// Why it was not done.
#[derive(Debug)]
pub enum Error {
    /// The folder is in no git repository.
    NoRepository,
    /// There is no anchor of the run.
    NoAnchor {
        /// The run.
        run: RunId,
        /// Where it was looked for: a remote's name, or here.
        remote: Option<String>,
    },
    /// There are no entries yet.
    NothingToAnchor(RunId),
    /// An anchor does not hold.
    BadAnchor {
        /// Where it is from: a remote's name, or here.
        remote: Option<String>,
        /// The report on it.
        report: Box<Report>,
    },
    /// The anchored chain goes on from the local one.
    Behind {
        /// The run.
        run: RunId,
        /// The remote whose anchor it is; none: the one here.
        remote: Option<String>,
        /// How many entries are here.
        local: usize,
        /// How many there.
        anchored: usize,
    },
    /// The local chain goes on from the anchored one.
    Ahead {
        /// The run.
        run: RunId,
        /// The remote whose anchor it is; none: the one here.
        remote: Option<String>,
        /// How many entries are here.
        local: usize,
        /// How many there.
        anchored: usize,
    },
    /// Two lineages of one run.
    Diverged {
        /// The run.
        run: RunId,
        /// The remote whose anchor it is; none: the one here.
        remote: Option<String>,
        /// The first entry whose hashes differ.
        entry: usize,
        /// The local head.
        local: Digest,
        /// The anchored head.
        anchored: Digest,
    },
    /// The hashes agree, and fields that no hash covers differ.
    UnhashedFieldsDiffer {
        /// The run.
        run: RunId,
        /// The first such entry.
        entry: usize,
    },
    /// The two lineages that were to be told apart are one.
    NotDiverged(RunId),
    /// A chain can't be anchored.
    Layout(LayoutError),
    /// The ledger.
    Log(log::Error),
    /// The repository.
    Git(git::Error),
    /// The anchor was made, and its mirror in the audit log was not.
    Audit(audit::Error),
    /// A file.
    File(durable::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let from = |remote: &Option<String>| match remote {
            Some(remote) => format!(" at {}", remote.escape_debug()),
            None => String::from(" here"),
        };
        match self {
            Error::NoRepository => {
                f.write_str("this folder is in no git repository, and anchors live in one")
            }
            Error::NoAnchor { run, remote } => write!(f, "there is no anchor of run {run}{}", from(remote)),
            Error::NothingToAnchor(run) => write!(f, "the ledger of run {run} has no entries to anchor"),
            Error::BadAnchor { remote, report } => {
                write!(f, "the anchor{} does not hold: {}", from(remote), report.summary)
            }
            Error::Behind { run, remote, local, anchored } => {
                let at = from(remote);
                write!(
                    f,
                    "the anchor of run {run}{at} has {}, the ledger here has {local}",
                    counted(*anchored, "entry")
                )
            }
            Error::Ahead { run, remote, local, anchored } => {
                let at = from(remote);
                write!(
                    f,
                    "the ledger of run {run} here has {}, the anchor{at} has {anchored}",
                    counted(*local, "entry")
                )
            }
            Error::Diverged { run, entry, local, anchored, .. } => write!(
                f,
                "run {run} diverged at entry {entry}: the head here is {local}, the anchored one is {anchored}; \
                 two went on with the run, and nothing is merged"
            ),
            Error::UnhashedFieldsDiffer { run, entry } => write!(
                f,
                "the ledger of run {run} and its anchor have the same hashes, but the fields of entry {entry} \
                 that no hash covers (`ts`, `redactions`) differ: one of them was edited"
            ),
            Error::NotDiverged(run) => write!(f, "the ledger of run {run} and its anchor did not diverge"),
            Error::Layout(error) => write!(f, "the ledger can't be anchored: {error}"),
            Error::Log(error) => error.fmt(f),
            Error::Git(error) => error.fmt(f),
            Error::Audit(error) => write!(f, "it is anchored, but not mirrored into the audit log: {error}"),
            Error::File(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Log(error) => error.source(),
            Error::Git(error) => error.source(),
            Error::Audit(error) => error.source(),
            Error::File(error) => error.source(),
            _ => None,
        }
    }
}

macro_rules! from {
    ($($source:ty => $variant:ident),*) => {$(
        impl From<$source> for Error {
            fn from(error: $source) -> Error {
                Error::$variant(error)
            }
        }
    )*};
}

from!(LayoutError => Layout, log::Error => Log, git::Error => Git, audit::Error => Audit, durable::Error => File);

/// A chain that holds, in memory: what comparing and resuming need of it.
#[derive(Clone, Debug, Default)]
pub struct Chain {
    /// Its entries.
    pub stamps: Vec<Stamp>,
    /// What they come to.
    pub state: State,
}

impl Chain {
    fn take(&mut self, row: &Row<'_>) {
        self.stamps.push(Stamp::of(row));
        self.state.apply(row);
    }

    /// The last entry's hash; 64 zeros if there is none.
    #[must_use]
    pub fn head(&self) -> Digest {
        self.state.head()
    }
}

/// A run's ledger on disk, as far as it holds.
#[derive(Clone, Debug, Default)]
pub struct Local {
    /// Its chain.
    pub chain: Chain,
    /// Its torn tail, which the chain is without.
    pub torn: Option<Recovery>,
}

/// Reads a run's ledger, without waiting for its writer; `None` if there is none.
///
/// # Errors
///
/// If it is damaged, or can't be read.
pub fn local(project: &Project, run: &RunId) -> Result<Option<Local>, Error> {
    let mut chain = Chain::default();
    let torn = walk_local(project, run, |row, _| chain.take(row))?;
    Ok(torn.map(|torn| Local { chain, torn }))
}

/// Walks a run's ledger row by row, without waiting for its writer, and gives its torn tail;
/// `None` if there is no ledger.
///
/// # Errors
///
/// As [`local`].
pub fn walk_local(
    project: &Project,
    run: &RunId,
    visit: impl FnMut(&Row<'_>, Place),
) -> Result<Option<Option<Recovery>>, Error> {
    let rows = LedgerRows::new(Some(run), visit);
    let Some(outcome) = read::walk_run(project, run, rows)? else { return Ok(None) };
    recover::plan(run, &outcome)?;
    Ok(Some(outcome.recovery))
}

/// An anchor that holds.
#[derive(Clone, Debug)]
pub struct Anchor {
    /// Its commit.
    pub commit: ObjectId,
    /// Its chain.
    pub chain: Chain,
    /// The report on it.
    pub report: Report,
}

/// Reads and verifies the anchor that a commit is.
///
/// # Errors
///
/// If it does not hold, or the store can't be read.
pub fn read_anchor(
    store: &Store,
    run: &RunId,
    commit: ObjectId,
    remote: Option<&str>,
) -> Result<Anchor, Error> {
    let mut chain = Chain::default();
    let report = report_anchor(store, run, commit, format::Expect::default(), |row, _| chain.take(row))?;
    if report.verdict == Verdict::Failed {
        return Err(Error::BadAnchor { remote: remote.map(str::to_owned), report: Box::new(report) });
    }
    Ok(Anchor { commit, chain, report })
}

/// The report on the anchor that a commit is.
///
/// # Errors
///
/// If the store can't be read.
pub fn report_anchor(
    store: &Store,
    run: &RunId,
    commit: ObjectId,
    expect: format::Expect,
    visit: impl FnMut(&Row<'_>, Place),
) -> Result<Report, Error> {
    let name = anchor_ref(run);
    let shallow: Option<BTreeSet<ObjectId>> = store.shallow()?;
    let completeness = shallow.as_ref().map_or(Completeness::Whole, Completeness::Shallow);
    let target = Target { completeness, expect, ..Target::new(&name, commit, Some(run)) };
    Ok(format::verify(&target, |id, limit| store.object(id, limit), visit)?)
}

/// The run's anchor in the repository here; `None` if there is none.
///
/// # Errors
///
/// If it does not hold, or the repository can't be read.
pub fn anchored(store: &Store, run: &RunId) -> Result<Option<Anchor>, Error> {
    match store.reference(&anchor_ref(run))? {
        Some(commit) => read_anchor(store, run, commit, None).map(Some),
        None => Ok(None),
    }
}

/// A run's ledger and its anchor here, read and verified at the same time; `None` for what is not
/// there.
///
/// # Errors
///
/// As [`anchored`], else as [`local`].
pub fn both(project: &Project, store: &Store, run: &RunId) -> Result<(Option<Local>, Option<Anchor>), Error> {
    // The ref first: an anchor that somebody makes meanwhile would be ahead of a ledger read before.
    let Some(commit) = store.reference(&anchor_ref(run))? else { return Ok((local(project, run)?, None)) };
    std::thread::scope(|scope| {
        let ours = scope.spawn(|| local(project, run));
        let there = read_anchor(store, run, commit, None);
        let ours = ours.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        there.and_then(|there| Ok((ours?, Some(there))))
    })
}

/// How many entries the anchor here says that it has, and its head: read, not verified.
///
/// # Errors
///
/// If the repository can't be read.
pub fn claimed(store: &Store, run: &RunId) -> Result<Option<(u64, Digest)>, Error> {
    let Some(commit) = store.reference(&anchor_ref(run))? else { return Ok(None) };
    let read = |id: &ObjectId, limit| match store.object(id, limit)? {
        Found::Object(_, bytes) => Ok::<_, Error>(Some(bytes)),
        Found::Missing | Found::TooLarge => Ok(None),
    };
    let Some(commit) = read(&commit, format::MAX_COMMIT)? else { return Ok(None) };
    let Some(tree) = commit.get(5..45).and_then(ObjectId::from_hex) else { return Ok(None) };
    let Some(tree) = read(&tree, format::MAX_TREE)? else { return Ok(None) };
    let entry = format!("100644 {}\0", format::META_NAME);
    let meta = memchr::memmem::find(&tree, entry.as_bytes()).and_then(|at| {
        let from = at + entry.len();
        <[u8; 20]>::try_from(tree.get(from..from + 20)?).ok().map(ObjectId::from_bytes)
    });
    let Some(meta) = meta else { return Ok(None) };
    let Some(meta) = read(&meta, format::MAX_META)? else { return Ok(None) };
    let Ok(Value::Object(meta)) = json::parse(&meta) else { return Ok(None) };
    let entries = meta.get("entry_count").and_then(Value::as_u64);
    let head =
        meta.get("head_hash").and_then(Value::as_str).and_then(|head| Digest::from_hex(head.as_bytes()));
    Ok(entries.zip(head))
}

/// As [`claimed`], of the repository that a project lies in. Recording needs none, so one that
/// can't be used claims nothing.
#[must_use]
pub fn claimed_here(project: &Project, run: &RunId) -> Option<(u64, Digest)> {
    let store = Store::discover(project.root()).ok().flatten()?;
    claimed(&store, run).ok().flatten()
}

/// How a local chain stands to an anchored one, where neither goes against the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// Entry for entry the same.
    Same,
    /// The local chain goes on, by this many entries.
    LocalAhead(usize),
    /// The anchored chain goes on, by this many entries.
    AnchorAhead(usize),
}

/// Compares a local chain with an anchored one.
///
/// # Errors
///
/// If they diverged, or fields that no hash covers differ.
pub fn standing(
    run: &RunId,
    remote: Option<&str>,
    local: &Chain,
    anchored: &Chain,
) -> Result<Standing, Error> {
    match compare(&local.stamps, &anchored.stamps) {
        Comparison::Identical => Ok(Standing::Same),
        Comparison::LocalAhead(more) => Ok(Standing::LocalAhead(more)),
        Comparison::RemoteAhead(more) => Ok(Standing::AnchorAhead(more)),
        Comparison::Diverged { entry, .. } => Err(Error::Diverged {
            run: run.clone(),
            remote: remote.map(str::to_owned),
            entry,
            local: local.head(),
            anchored: anchored.head(),
        }),
        Comparison::UnhashedFieldsDiffer { entry } => {
            Err(Error::UnhashedFieldsDiffer { run: run.clone(), entry })
        }
    }
}
