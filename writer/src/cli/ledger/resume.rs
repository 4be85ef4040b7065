//! `waybill ledger resume`: records and signals; it starts no process.

use waybill_verifier::id::RunId;
use waybill_verifier::json::{Object, Value};
use waybill_verifier::report::counted;

use super::super::Global;
use super::super::exit::{Exit, Failure};
use super::super::out::{self, Form};
use super::super::recording::{acknowledgement, waiting};
use crate::anchoring::{self, Materialized, Projection, Resumed, project_resume};
use crate::git::Store;
use crate::lock::Wait;

pub(super) const HELP: &str = "\
This resume records that the run goes on (run.resumed) and writes .sdd/runtime/resume/TASK.signal for
each task of the frontier; it starts no process. A run that is only anchored here is brought to disk
first. A closed run has nothing to resume. 'waybill run --resume RUN -- CMD' starts a command on the
ledger, too; 'waybill jobs resume RUN' starts a recorded command again.

Examples:
  waybill ledger fetch goal-42 && waybill ledger resume goal-42
  waybill ledger resume goal-42 --dry-run --json

Exit codes: 0 resumed, or nothing to resume; 1 no such run, 2 ledger or anchor does not hold,
3 diverged, 74 I/O, 75 lock held (--no-wait)";

pub(super) fn run(global: &Global, run: &RunId, dry_run: bool, no_wait: bool) -> Result<Exit, Failure> {
    let project = global.project()?;
    let store = Store::discover(project.root()).unwrap_or_else(|error| {
        out::say(&format!("{error}; going on without its anchors"));
        None
    });
    if dry_run {
        let projection = project_resume(&project, store.as_ref(), run)?;
        return show(global, run, &projection, &Done::DryRun);
    }
    let wait = if no_wait { Wait::No } else { Wait::Yes };
    let waiting = waiting(run);
    match anchoring::resume(&project, store.as_ref(), run, wait, waiting)? {
        Resumed::Nothing(projection) => show(global, run, &projection, &Done::Nothing),
        Resumed::Resumed { projection, entry } => show(global, run, &projection, &Done::Resumed(entry)),
    }
}

enum Done {
    DryRun,
    Nothing,
    Resumed(crate::log::Recorded),
}

fn show(global: &Global, run: &RunId, projection: &Projection, done: &Done) -> Result<Exit, Failure> {
    match global.form() {
        Form::Quiet => {}
        Form::Json => super::super::put_document(document(run, projection, done))?,
        Form::Text => super::super::put(text(run, projection, done).as_bytes())?,
    }
    for signal in &projection.signals {
        if let Some(other) = &signal.blocked_by {
            out::say(&format!(
                "no signal for task {}: run {} has one there that nobody claimed",
                signal.task_id,
                out::escape(other)
            ));
        }
    }
    Ok(Exit::Done)
}

fn document(run: &RunId, projection: &Projection, done: &Done) -> Value {
    let (materialized, more) = match projection.materialized {
        Materialized::Unchanged => ("none", 0),
        Materialized::Created => ("created", projection.state.entries),
        Materialized::FastForwarded(more) => ("fast-forwarded", u64::try_from(more).unwrap_or(0)),
    };
    let signals = projection.signals.iter().map(|signal| {
        Value::from(Object::of([
            ("task_id", Value::from(signal.task_id.as_str())),
            ("file", Value::from(format!(".sdd/runtime/resume/{}.signal", signal.task_id))),
            ("blocked_by", Value::from(signal.blocked_by.as_deref())),
        ]))
    });
    Value::from(Object::of([
        ("run_id", Value::from(run.as_str())),
        ("dry_run", Value::from(matches!(done, Done::DryRun))),
        ("materialized", Value::from(materialized)),
        ("entries_materialized", Value::from(more)),
        ("from_head", Value::from(projection.state.head().to_hex())),
        ("resume_count", Value::from(projection.state.resumes)),
        ("state", projection.state.document(run.as_str())),
        ("signals", Value::from(signals.collect::<Vec<_>>())),
        (
            "recorded",
            match done {
                Done::Resumed(entry) => acknowledgement(entry),
                Done::DryRun | Done::Nothing => Value::Null,
            },
        ),
    ]))
}

fn text(run: &RunId, projection: &Projection, done: &Done) -> String {
    let mut text = String::new();
    let would = if matches!(done, Done::DryRun) { "would be " } else { "" };
    match projection.materialized {
        Materialized::Unchanged => {}
        Materialized::Created => {
            text.push_str(&format!(
                "the ledger {would}made from the anchor: {}\n",
                counted(projection.state.entries, "entry")
            ));
        }
        Materialized::FastForwarded(more) => {
            text.push_str(&format!(
                "the ledger {would}brought {} further by the anchor\n",
                counted(more, "entry")
            ));
        }
    }
    let tasks: Vec<&str> = projection.state.frontier().collect();
    if projection.state.run_closed {
        text.push_str(&format!("run {run} is closed: there is nothing to resume\n"));
    } else if tasks.is_empty() {
        text.push_str(&format!("run {run} has nothing started or scheduled: there is nothing to resume\n"));
    } else {
        match done {
            Done::Resumed(entry) => text.push_str(&format!(
                "run {run} resumed from {}\nrecorded as entry {} ({})\n",
                projection.state.head(),
                entry.seq,
                entry.entry_hash
            )),
            Done::DryRun | Done::Nothing => {
                text.push_str(&format!("run {run} would be resumed from {}\n", projection.state.head()));
            }
        }
        let lead = if matches!(done, Done::DryRun) { "would signal" } else { "signalled" };
        for signal in projection.signals.iter().filter(|signal| signal.blocked_by.is_none()) {
            text.push_str(&format!("{lead} {} (.sdd/runtime/resume/{0}.signal)\n", signal.task_id));
        }
    }
    text
}
