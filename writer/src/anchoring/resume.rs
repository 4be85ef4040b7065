//! `resume`: a run goes on, on this machine or another, from what is verified.
//!
//! It appends `run.resumed` with the head it goes on from and a fresh nonce, then writes a signal
//! for each task of the frontier. Killed in between, one more resume gives the right signals.

use std::io::Write;
use std::path::PathBuf;

use waybill_verifier::hash::Digest;
use waybill_verifier::id::{Kind, RunId, TaskId};
use waybill_verifier::json::{self, Object, Value};
use waybill_verifier::ledger::State;

use super::fetch::{Materialized, materialize};
use super::{Anchor, Chain, Error, Standing, both, local, standing};
use crate::durable::{self, Sync};
use crate::git::Store;
use crate::lock::Wait;
use crate::log::{Ledger, Missing, Recorded, Transition};
use crate::project::Project;

/// What a resume would do, or did.
#[derive(Clone, Debug)]
pub struct Projection {
    /// The run's state before it.
    pub state: State,
    /// What becomes of the ledger's file first.
    pub materialized: Materialized,
    /// The signals, in the frontier's order.
    pub signals: Vec<Signal>,
    /// The anchor that has more than the ledger here, if it is to be taken over first.
    anchor: Option<Anchor>,
}

/// A signal to whoever runs a task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Signal {
    /// The task.
    pub task_id: String,
    /// Its file.
    pub path: PathBuf,
    /// Another run's signal that stands there unclaimed, and is left.
    pub blocked_by: Option<String>,
}

/// What a resume did.
#[derive(Clone, Debug)]
pub enum Resumed {
    /// There was nothing to do: the run is closed, or nothing is started or scheduled.
    Nothing(Projection),
    /// It goes on.
    Resumed {
        /// What was projected.
        projection: Projection,
        /// The entry that records it.
        entry: Recorded,
    },
}

/// Says what a resume would do, and changes nothing.
///
/// # Errors
///
/// If there is neither ledger nor anchor, one of them does not hold, or they diverged.
pub fn project(project: &Project, store: Option<&Store>, run: &RunId) -> Result<Projection, Error> {
    let (ours, anchor) = match store {
        Some(store) => both(project, store, run)?,
        None => (local(project, run)?, None),
    };
    let ours = ours.filter(|ours| !ours.chain.stamps.is_empty() || ours.torn.is_some());
    let (chain, materialized, anchor) = match (ours, anchor) {
        (None, None) => return Err(crate::log::Error::Absent(run.clone()).into()),
        (None, Some(anchor)) => (anchor.chain.clone(), Materialized::Created, Some(anchor)),
        (Some(ours), None) => (ours.chain, Materialized::Unchanged, None),
        (Some(ours), Some(anchor)) => match standing(run, None, &ours.chain, &anchor.chain)? {
            Standing::AnchorAhead(more) => {
                (anchor.chain.clone(), Materialized::FastForwarded(more), Some(anchor))
            }
            Standing::Same | Standing::LocalAhead(_) => (ours.chain, Materialized::Unchanged, None),
        },
    };
    let Chain { state, .. } = chain;
    let signals = if state.run_closed { Vec::new() } else { signals(project, run, &state) };
    Ok(Projection { state, materialized, signals, anchor })
}

/// The signals for a state's frontier. There is none for the run itself, nor for a task whose
/// name is a folder's.
fn signals(project: &Project, run: &RunId, state: &State) -> Vec<Signal> {
    let tasks = state.frontier().filter(|task| !matches!(*task, "" | "." | ".."));
    tasks
        .map(|task| {
            let path = project.resume_signals().join(format!("{task}.signal"));
            let blocked_by = run_of_signal(&path).filter(|other| other != run.as_str());
            Signal { task_id: task.to_owned(), path, blocked_by }
        })
        .collect()
}

fn run_of_signal(path: &std::path::Path) -> Option<String> {
    let mut bytes = Vec::new();
    let file = durable::open_regular(path).ok()?;
    std::io::Read::read_to_end(&mut std::io::Read::take(file, 64 << 10), &mut bytes).ok()?;
    let document = json::parse(&bytes).ok();
    let named = document.as_ref().and_then(Value::as_object).and_then(|signal| signal.get("run_id"));
    // What can't be read may be somebody's.
    Some(named.and_then(Value::as_str).unwrap_or("?").to_owned())
}

/// Resumes a run.
///
/// # Errors
///
/// As [`project`]; or if it can't be recorded or a signal can't be written: one more resume then
/// does it.
pub fn resume(
    project: &Project,
    store: Option<&Store>,
    run: &RunId,
    wait: Wait,
    waiting: impl Fn(&str),
) -> Result<Resumed, Error> {
    let before = prepare(project, store, run, &waiting)?;
    let is_nothing =
        |projection: &Projection| projection.state.run_closed || projection.state.frontier().next().is_none();
    if is_nothing(&before) {
        return Ok(Resumed::Nothing(before));
    }
    let mut ledger = Ledger::open(project, run, Missing::Refuse, wait, &waiting)?;
    // Under the lock the ledger may hold more than before, or another lineage may be anchored.
    let projection = self::project(project, store, run)?;
    let projection = Projection { materialized: before.materialized, ..projection };
    if is_nothing(&projection) {
        return Ok(Resumed::Nothing(projection));
    }
    let entry = ledger.append(&[resumed(&projection.state)?], Sync::Data)?.remove(0);
    write_signals(project, run, &projection.state, &projection.signals)?;
    Ok(Resumed::Resumed { projection, entry })
}

fn resumed(state: &State) -> Result<Transition, Error> {
    let mut nonce = [0; 16];
    getrandom::fill(&mut nonce).map_err(|error| {
        durable::Error::new(
            "can't read",
            std::path::Path::new("the system's randomness"),
            std::io::Error::other(error.to_string()),
        )
    })?;
    let nonce: String = nonce.iter().map(|byte| format!("{byte:02x}")).collect();
    let payload = Object::of([
        ("from_head", Value::from(state.head().to_hex())),
        ("resume_nonce", Value::from(nonce)),
        // The reference writes it, too.
        ("state", Value::from("resumed")),
    ]);
    let kind = Kind::new("run.resumed").expect("it fits the pattern");
    let task_id = TaskId::new("").expect("the run itself");
    Ok(Transition { kind, task_id, payload, redactions: 0 })
}

/// Removes this run's unclaimed signals: they speak of a lineage that may not be the one kept.
pub(super) fn take_signals_back(project: &Project, run: &RunId) -> Result<(), Error> {
    let folder = project.resume_signals();
    for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_signal = path.extension().is_some_and(|extension| extension == "signal");
        if is_signal && run_of_signal(&path).as_deref() == Some(run.as_str()) {
            durable::remove(&path)?;
        }
    }
    Ok(())
}

/// Records in an open ledger that a run goes on from a state, and signals its frontier; `quiet`
/// is a task whose runner needs none.
///
/// # Errors
///
/// If it can't be recorded or a signal can't be written.
pub fn record(
    project: &Project,
    run: &RunId,
    ledger: &mut Ledger,
    state: &State,
    quiet: &str,
) -> Result<Recorded, Error> {
    let entry = ledger.append(&[resumed(state)?], Sync::Data)?.remove(0);
    let mut signals = signals(project, run, state);
    signals.retain(|signal| signal.task_id != quiet);
    if !signals.is_empty() {
        write_signals(project, run, state, &signals)?;
    }
    Ok(entry)
}

/// Brings a run's ledger to disk, or up to its anchor, as a resume does first; gives what it
/// would go on from.
///
/// # Errors
///
/// As [`project`], or if the ledger can't be written.
pub fn prepare(
    project: &Project,
    store: Option<&Store>,
    run: &RunId,
    waiting: impl Fn(&str),
) -> Result<Projection, Error> {
    let projection = self::project(project, store, run)?;
    if let (Some(store), Some(anchor)) = (store, &projection.anchor) {
        materialize(project, store, run, anchor, &waiting)?;
    }
    Ok(projection)
}

fn write_signals(project: &Project, run: &RunId, state: &State, signals: &[Signal]) -> Result<(), Error> {
    durable::create_private_folders(project.root(), &project.resume_signals())?;
    for signal in signals.iter().filter(|signal| signal.blocked_by.is_none()) {
        let text = signal_text(&signal.task_id, run, state.head(), state.resumes);
        durable::replace(&signal.path, |file| file.write_all(text.as_bytes()))?;
    }
    Ok(())
}

/// A signal's bytes: this order, two spaces, no final newline, as the reference writes it. Head
/// and count are those before the resume.
fn signal_text(task: &str, run: &RunId, head: Digest, resumes: u64) -> String {
    format!(
        "{{\n  \"task_id\": \"{task}\",\n  \"run_id\": \"{run}\",\n  \"source\": \"work_ledger\",\n  \
         \"ledger_head\": \"{head}\",\n  \"resume_count\": {resumes}\n}}"
    )
}
