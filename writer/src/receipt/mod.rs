//! Receipts: making them, and gathering what one is checked with.
//!
//! A receipt is made in four steps, each durable before the next: the spine's row, the head file,
//! the receipt's file, the audit log's mirror of it. Making the same one again (the same binding)
//! ends what was interrupted, and changes nothing where all is there.

mod gather;

use std::fmt;
use std::path::PathBuf;

use waybill_verifier::chain::{Fault, FaultKind, Place, Visit};
use waybill_verifier::id::RunId;
use waybill_verifier::journal::Event;
use waybill_verifier::json::{LoneSurrogate, Object};
use waybill_verifier::key::PrivateKey;
use waybill_verifier::receipt::{
    AtStall, Binding, Draft, File, ForkRef, LastEvents, ReceiptId, StallReason, Unsigned,
};
use waybill_verifier::spine::prefixed;
use waybill_verifier::time::Timestamp;

use crate::durable;
use crate::master::{self, KeyFile};
use crate::project::Project;
use crate::worktree;
use crate::{audit, identity, journal, spine};
pub use gather::{Gathered, read_file};

/// Why a receipt can't be made.
#[derive(Debug)]
pub enum Error {
    /// There is no identity to sign with.
    NoIdentity,
    /// The run's journal does not hold, so no window of it can be signed.
    Journal {
        /// The run.
        run: RunId,
        /// The first fault.
        fault: Fault,
    },
    /// The journal has no snapshot of the step.
    NoSnapshot {
        /// The run.
        run: RunId,
        /// The step.
        step: u64,
    },
    /// The repository's snapshot ref is not what the journal names.
    OtherSnapshot {
        /// The ref.
        reference: String,
        /// What it names, if it is there.
        found: Option<String>,
        /// What the journal names.
        wanted: String,
    },
    /// A text has no form in a receipt.
    Text(LoneSurrogate),
    /// A file stands under the receipt's name that is not it.
    Occupied(PathBuf),
    /// The identity.
    Identity(identity::Error),
    /// The HMAC key.
    Key(master::Error),
    /// The spine.
    Spine(spine::Error),
    /// The audit log; the receipt itself was written.
    Audit(audit::Error),
    /// Git.
    Git(worktree::Error),
    /// A file.
    File(durable::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NoIdentity => {
                f.write_str("there is no identity to sign with: 'waybill keys init' makes one")
            }
            Error::Journal { run, fault } => {
                write!(f, "the journal of run {run} is damaged, and no window of it is signed: {fault}")
            }
            Error::NoSnapshot { run, step } => write!(
                f,
                "the journal of run {run} has no snapshot of step {step}: 'waybill snapshot {run}' takes one"
            ),
            Error::OtherSnapshot { reference, found: Some(found), wanted } => {
                write!(f, "{reference} is {found}, the journal names {wanted}: one of the two was changed")
            }
            Error::OtherSnapshot { reference, found: None, wanted } => {
                write!(f, "the repository has no {reference}, the journal names {wanted}: fetch that ref")
            }
            Error::Text(error) => error.fmt(f),
            Error::Occupied(path) => write!(
                f,
                "{} is there, and is not this receipt: 'waybill escalation verify' says what it is",
                path.display()
            ),
            Error::Identity(error) => error.fmt(f),
            Error::Key(error) => error.fmt(f),
            Error::Spine(error) => error.fmt(f),
            Error::Audit(error) => write!(f, "the receipt is written, and not mirrored: {error}"),
            Error::Git(error) => error.fmt(f),
            Error::File(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Identity(error) => error.source(),
            Error::Key(error) => error.source(),
            Error::Spine(error) => error.source(),
            Error::Audit(error) => error.source(),
            Error::Git(error) => error.source(),
            Error::File(error) => error.source(),
            _ => None,
        }
    }
}

macro_rules! from {
    ($($variant:ident($error:ty)),*) => {$(
        impl From<$error> for Error {
            fn from(error: $error) -> Error {
                Error::$variant(error)
            }
        }
    )*};
}

from!(
    Text(LoneSurrogate),
    Identity(identity::Error),
    Key(master::Error),
    Spine(spine::Error),
    Audit(audit::Error),
    Git(worktree::Error),
    File(durable::Error)
);

/// What a receipt is asked to say, already scrubbed.
#[derive(Clone, Debug)]
pub struct Request {
    /// The run.
    pub run: RunId,
    /// The worker.
    pub worker: String,
    /// Its session.
    pub session: String,
    /// Its working tree.
    pub worktree: String,
    /// Why the worker counts as stalled.
    pub reason: StallReason,
    /// How often it may still be started again.
    pub budget: u64,
    /// When, in seconds since 1970 UTC.
    pub timestamp: u64,
    /// The step of the snapshot to fork from.
    pub fork_step: Option<u64>,
    /// What else is to be signed.
    pub extra: Option<Object>,
    /// How many of the journal's events there were at the stall; none: all that are there now.
    pub events: Option<u64>,
}

/// A receipt that is there now.
#[derive(Clone, Debug)]
pub struct Emitted {
    /// Its id.
    pub id: ReceiptId,
    /// What it says.
    pub binding: Binding,
    /// The spine entry that anchors it, `sha256:` and hex.
    pub entry_hash: String,
    /// Its file.
    pub path: PathBuf,
    /// Whether all of it was there before.
    pub there: bool,
    /// The HMAC key's file, if it was made for this receipt.
    pub key_made: Option<PathBuf>,
    /// Where the bytes of rows that were never acknowledged are now.
    pub set_aside: Vec<PathBuf>,
}

/// The receipts that have a file, by name; other files are none.
///
/// # Errors
///
/// If the folder can't be listed.
pub fn ids(project: &Project) -> Result<Vec<ReceiptId>, durable::Error> {
    let folder = project.receipts();
    durable::refuse_links(project.root(), &folder)?;
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let failed = |source| durable::Error::new("can't list", &folder, source);
    let mut ids = Vec::new();
    for entry in std::fs::read_dir(&folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        let id = name.to_str().and_then(|name| ReceiptId::parse(name.strip_suffix(".json")?));
        if entry.file_type().map_err(failed)?.is_file() {
            ids.extend(id);
        }
    }
    ids.sort_unstable();
    Ok(ids)
}

/// A receipt of the project, by its id.
///
/// # Errors
///
/// If its file can't be read.
pub fn read(project: &Project, id: &ReceiptId) -> Result<File, durable::Error> {
    Ok(File::read(&read_file(&project.root().join(id.path()))?))
}

/// The receipts of a run, by id.
///
/// # Errors
///
/// If the folder can't be listed, or a file can't be read.
pub fn of_run(project: &Project, run: &RunId) -> Result<Vec<(ReceiptId, File)>, durable::Error> {
    let mut found = Vec::new();
    for id in ids(project)? {
        let file = read(project, &id)?;
        if file.binding.as_ref().is_some_and(|binding| binding.run_id == *run) {
            found.push((id, file));
        }
    }
    Ok(found)
}

/// Makes a receipt on a run's journal as it is now; `now` is the audit log's time.
///
/// # Errors
///
/// If there is no identity or key, the journal or the spine does not hold, or something can't be
/// written.
pub fn emit(project: &Project, key: &KeyFile, request: &Request, now: Timestamp) -> Result<Emitted, Error> {
    let signer = identity::private(project)?.ok_or(Error::NoIdentity)?;
    identity::complete(project, &signer)?;
    let unsigned = assemble(project, request, &signer)?;
    let master::Found { key: master, made } = key.read_or_make(audit::tagged(project)?)?;
    let id = unsigned.id();
    let path = project.root().join(id.path());
    let was_there = path.symlink_metadata().is_ok();
    let folder = project.receipt_spine();
    let appended = spine::append(project, &folder, &master, &unsigned.spine_draft())?;
    let bytes = unsigned.file(&signer.public(), &signer.sign(unsigned.bytes()), &appended.entry_hash);
    durable::create_private_folders(project.root(), &project.receipts())?;
    match durable::create_whole(&path, &bytes) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            if read_file(&path)? != bytes {
                return Err(Error::Occupied(path));
            }
        }
        Err(error) => return Err(error.into()),
    }
    let entry_hash = prefixed(&appended.entry_hash);
    let mirror = unsigned.mirror(&appended.entry_hash).draft(now);
    let mirrored = audit::record_unless(project, key, &mirror, |event| {
        event.event_type == *mirror.event_type.as_str() && event.resource_id == *entry_hash.as_str()
    })?;
    Ok(Emitted {
        id,
        binding: unsigned.binding().clone(),
        entry_hash,
        path,
        there: was_there && mirrored.is_none(),
        set_aside: [appended.set_aside.map(|torn| torn.path), mirrored.and_then(|row| row.set_aside)]
            .into_iter()
            .flatten()
            .collect(),
        key_made: made,
    })
}

/// The events that were there at a stall: later ones don't belong to its window.
struct Until {
    events: LastEvents,
    until: u64,
}

impl Visit<Event> for Until {
    fn visit(&mut self, event: &Event, place: Place) {
        if event.index < self.until {
            self.events.visit(event, place);
        }
    }
}

fn assemble(project: &Project, request: &Request, signer: &PrivateKey) -> Result<Unsigned, Error> {
    let until = request.events.unwrap_or(u64::MAX);
    let outcome = journal::walk(project, &request.run, Until { events: LastEvents::default(), until })?;
    // What a crash tore off behind the last event is no part of the window.
    if let Some(outcome) = &outcome
        && let Some(fault) = outcome.faults.iter().find(|fault| fault.kind != FaultKind::TornTail)
    {
        return Err(Error::Journal { run: request.run.clone(), fault: fault.clone() });
    }
    let events = outcome.as_ref().map(|outcome| &outcome.rows.visitor.events);
    let fork_ref = match request.fork_step {
        None => None,
        Some(step) => Some(fork_point(project, &request.run, step, events)?),
    };
    let install_rev = signer.public().fingerprint().install_rev();
    let binding = Draft {
        run_id: &request.run,
        worker_id: &request.worker,
        session_id: &request.session,
        worktree_id: &request.worktree,
        install_rev: &install_rev,
        stall_reason: request.reason,
        respawn_budget_remaining: request.budget,
        timestamp: request.timestamp,
        fork_ref,
        extra: request.extra.clone(),
        journal: events.map_or(AtStall::Missing, AtStall::Journal),
    }
    .binding();
    Ok(Unsigned::new(binding)?)
}

/// The fork point at a step: what the journal names, and the repository has.
fn fork_point(
    project: &Project,
    run: &RunId,
    step: u64,
    events: Option<&LastEvents>,
) -> Result<ForkRef, Error> {
    let fork = events.and_then(|events| events.fork(run, step));
    let fork = fork.ok_or_else(|| Error::NoSnapshot { run: run.clone(), step })?;
    if let Some(worktree) = gather::repository(project)? {
        let found = worktree.snapshot(run, step)?;
        if found.as_deref() != Some(fork.snapshot_sha.as_str()) {
            let reference = worktree::reference(run, step);
            return Err(Error::OtherSnapshot { reference, found, wanted: fork.snapshot_sha });
        }
    }
    Ok(fork)
}
