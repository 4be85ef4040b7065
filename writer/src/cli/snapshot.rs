//! `waybill snapshot` and `waybill fork`: a run's working tree, kept and gone on from.

use std::path::PathBuf;

use waybill_verifier::chain::{FaultKind, Unseen};
use waybill_verifier::hash::Digest;
use waybill_verifier::id::RunId;
use waybill_verifier::journal::{Fork, Profile};
use waybill_verifier::json::{self, Object, Value};
use waybill_verifier::receipt::LastEvents;

use super::Global;
use super::exit::{Exit, Failure};
use super::journal::{Writing, open};
use super::out::Form;
use super::recording::{own_socket, say_to_own};
use crate::worktree::{self, Worktree};
use crate::{clock, durable, journal, receipt, snapshot};

#[derive(Debug, clap::Args)]
#[command(after_help = SNAPSHOT_HELP)]
pub(super) struct SnapshotArgs {
    /// The run
    run: RunId,
    /// The step it is of [default: the number of the event that records it]
    #[arg(long, value_name = "N")]
    step: Option<u64>,
    #[command(flatten)]
    options: Writing,
}

#[derive(Debug, clap::Args)]
#[command(after_help = FORK_HELP)]
pub(super) struct ForkArgs {
    /// The run
    #[arg(long)]
    run: RunId,
    /// The step of the snapshot to go on from
    #[arg(long, value_name = "N")]
    from_step: u64,
    /// Where the new working tree goes [default: .sdd/worktrees/<child run>]
    #[arg(long, value_name = "DIR")]
    worktree: Option<PathBuf>,
    #[command(flatten)]
    options: Writing,
}

const SNAPSHOT_HELP: &str = "\
All that git does not ignore is committed, without .sdd, to refs/bernstein/snapshots/<run>/<step>.
Your index, your HEAD and your files are not touched.

Exit codes: 0 taken or there, 1 no repository or no commit in it, 2 the step has another snapshot or
the journal is damaged, 74 I/O, 75 lock held (--no-wait)";

const FORK_HELP: &str = "\
The snapshot ref is checked against the journal; then a child run gets a working tree of its own and
a journal that names its parent.

Exit codes: 0 forked, 1 no such snapshot, 2 ref and journal differ, 74 I/O";

pub(super) fn take(global: &Global, args: &SnapshotArgs) -> Result<Exit, Failure> {
    let project = global.project()?;
    let run = &args.run;
    if let Some(socket) = own_socket(run) {
        return take_by(global, &socket, args.step);
    }
    // Without a repository no journal is made either.
    Worktree::at(project.root())?;
    let mut taken = LastEvents::default();
    let mut journal = open(&project, run, Profile::PyJsonV1, &args.options, |event: &_, place| {
        waybill_verifier::chain::Visit::visit(&mut taken, event, place);
    })?;
    let done = snapshot::take(&project, run, &mut journal, &taken, args.step, clock::seconds())?;
    let reference = worktree::reference(run, done.step);
    let text = match global.form() {
        Form::Quiet => String::new(),
        Form::Text => match done.event {
            Some(event) => format!("{reference} is {}\nrecorded as event {}\n", done.commit, event.index),
            None => format!("{reference} is {} already\n", done.commit),
        },
        Form::Json => line(Object::of([
            ("snapshot_sha", Value::from(done.commit.as_str())),
            ("step_index", Value::from(done.step)),
            ("ref", Value::from(reference.as_str())),
            ("index", Value::from(done.event.map(|event| event.index))),
        ])),
    };
    super::put(text.as_bytes())?;
    Ok(Exit::Done)
}

/// The recorder of the run that this process is in takes it.
fn take_by(global: &Global, socket: &std::path::Path, step: Option<u64>) -> Result<Exit, Failure> {
    let answer = say_to_own(socket, &Value::from(Object::of([("snapshot", Value::from(step))])))?;
    let field = |name: &str| answer.get(name).and_then(Value::as_str).unwrap_or_default();
    let text = match global.form() {
        Form::Quiet => String::new(),
        Form::Text => format!("{} is {}\n", field("ref"), field("snapshot_sha")),
        Form::Json => line(answer),
    };
    super::put(text.as_bytes())?;
    Ok(Exit::Done)
}

pub(super) fn fork(global: &Global, args: &ForkArgs) -> Result<Exit, Failure> {
    let project = global.project()?;
    let (run, step) = (&args.run, args.from_step);
    let Some(outcome) = journal::walk(&project, run, LastEvents::default())? else {
        return Err(journal::Error::Absent(run.clone()).into());
    };
    if let Some(fault) = outcome.faults.iter().find(|fault| fault.kind != FaultKind::TornTail) {
        return Err(journal::Error::Damaged { run: run.clone(), fault: fault.clone() }.into());
    }
    let Some(fork) = outcome.rows.visitor.fork(run, step) else {
        return Err(receipt::Error::NoSnapshot { run: run.clone(), step }.into());
    };
    let repository = Worktree::at(project.root())?;
    let found = repository.snapshot(run, step)?;
    if found.as_deref() != Some(fork.snapshot_sha.as_str()) {
        let reference = worktree::reference(run, step);
        return Err(receipt::Error::OtherSnapshot { reference, found, wanted: fork.snapshot_sha }.into());
    }
    let child = child_of(run, step)?;
    let folder = match &args.worktree {
        Some(folder) => folder.clone(),
        None => {
            let trees = project.root().join(".sdd/worktrees");
            durable::create_private_folders(project.root(), &trees)?;
            trees.join(child.as_str())
        }
    };
    let absolute =
        std::path::absolute(&folder).map_err(|source| durable::Error::new("can't use", &folder, source))?;
    repository.add(&absolute, &fork.snapshot_sha)?;
    let profile = outcome.rows.profile().unwrap_or(Profile::PyJsonV1);
    let mut journal = open(&project, &child, profile, &args.options, Unseen)?;
    let event =
        Fork { parent_run_id: run.as_str(), fork_step: step, snapshot_sha: fork.snapshot_sha.as_str() };
    journal.append(Fork::EVENT, &event.fields(), clock::seconds(), durable::Sync::Data)?;
    let text = match global.form() {
        Form::Quiet => String::new(),
        Form::Text => format!("run {child} goes on from step {step} of {run}, in {}\n", folder.display()),
        Form::Json => line(Object::of([
            ("run_id", Value::from(child.as_str())),
            ("parent_run_id", Value::from(run.as_str())),
            ("fork_step", Value::from(step)),
            ("snapshot_sha", Value::from(fork.snapshot_sha.as_str())),
            ("worktree", Value::from(folder.to_string_lossy().as_ref())),
        ])),
    };
    super::put(text.as_bytes())?;
    Ok(Exit::Done)
}

/// A new run's name: its parent's, as much of it as there is room for, the step, and randomness.
fn child_of(run: &RunId, step: u64) -> Result<RunId, Failure> {
    let mut seed = [0; 4];
    getrandom::fill(&mut seed).map_err(|_| Failure {
        exit: Exit::Io,
        message: String::from("the operating system gave no randomness for a run's name"),
    })?;
    let tail = format!("-s{step}-{}", &Digest::of(&seed).to_hex()[..8]);
    let room = 64 - "fork-".len() - tail.len();
    let parent: String = run.as_str().chars().take(room).collect();
    Ok(RunId::new(&format!("fork-{}{tail}", parent.trim_end_matches('.'))).expect("a run id and safe text"))
}

fn line(object: Object) -> String {
    format!("{}\n", String::from_utf8_lossy(&json::ascii(&Value::from(object))))
}
