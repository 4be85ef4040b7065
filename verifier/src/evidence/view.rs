//! What a page shows besides the report: states, last entries, the two sides of a fork.
//!
//! Nothing in it is a finding: whatever counts is in the report.

use alloc::string::String;
use alloc::vec::Vec;

use super::compose::{Composed, around};
use super::content::{Content, Entry, Journal, Ledger};
use super::project;
use super::session::Session;
use crate::json::{Object, Value};
use crate::ledger::{State, TaskState};

/// How many tasks are shown of a state.
const TASKS: usize = 500;

const STATES: [TaskState; 6] = [
    TaskState::Started,
    TaskState::Scheduled,
    TaskState::Suspended,
    TaskState::Failed,
    TaskState::Completed,
    TaskState::Abandoned,
];

/// The document: `ledgers`, `journals`, `forks`.
pub(super) fn document(session: &Session, composed: &Composed<'_>) -> Value {
    let (mut ledgers, mut journals) = (Vec::new(), Vec::new());
    for (path, content) in &session.files {
        match content {
            Content::Ledger(ledger) => ledgers.push(of_ledger(path, ledger)),
            Content::Journal(journal) => journals.push(of_journal(path, journal)),
            _ => {}
        }
    }
    let forks = composed.forks.iter().map(|fork| {
        let sides = fork.sides.iter().map(|side| {
            let entries = around(side, fork.entry, &fork.run);
            Value::from(Object::of([
                ("name", Value::from(side.name.as_str())),
                ("entry_count", Value::from(side.entries)),
                ("entries", Value::from(entries.iter().map(of_entry).collect::<Vec<_>>())),
            ]))
        });
        Value::from(Object::of([
            ("run_id", Value::from(fork.run.as_str())),
            ("entry", Value::from(fork.entry)),
            ("sides", Value::from(sides.collect::<Vec<_>>())),
        ]))
    });
    Value::from(Object::of([
        ("forks", Value::from(forks.collect::<Vec<_>>())),
        ("journals", Value::from(journals)),
        ("ledgers", Value::from(ledgers)),
    ]))
}

fn of_ledger(path: &str, ledger: &Ledger) -> Value {
    let name =
        project::run_of_ledger(path).map_or_else(|| String::from(path), |run| String::from(run.as_str()));
    Value::from(Object::of([
        ("name", Value::from(name)),
        ("file", Value::from(path)),
        ("run_id", Value::from(ledger.run())),
        ("holds", Value::from(ledger.holds())),
        ("resumes", Value::from(ledger.state.resumes)),
        ("run_closed", Value::from(ledger.state.run_closed)),
        ("board", board(&ledger.state)),
        ("entries", Value::from(ledger.recent.iter().map(of_entry).collect::<Vec<_>>())),
    ]))
}

fn board(state: &State) -> Value {
    let columns = STATES.map(|wanted| {
        let of_state = || state.tasks.iter().filter(|(_, task)| task.state == wanted);
        let tasks = of_state().take(TASKS).map(|(id, task)| {
            Value::from(Object::of([
                ("attempts", Value::from(task.attempts)),
                ("last_seq", Value::from(task.last_seq)),
                ("task_id", Value::from(id)),
            ]))
        });
        Value::from(Object::of([
            ("state", Value::from(wanted.name())),
            ("count", Value::from(u64::try_from(of_state().count()).unwrap_or(u64::MAX))),
            ("tasks", Value::from(tasks.collect::<Vec<_>>())),
        ]))
    });
    Value::from(Vec::from(columns))
}

fn of_journal(path: &str, journal: &Journal) -> Value {
    let events = journal.recent.iter().map(|(index, event, ts, hash)| {
        Value::from(Object::of([
            ("index", Value::from(*index)),
            ("event", Value::String(event.clone())),
            ("ts", ts.clone().unwrap_or(Value::Null)),
            ("event_hash", Value::from(hash.to_hex())),
        ]))
    });
    Value::from(Object::of([
        ("file", Value::from(path)),
        ("events", Value::from(events.collect::<Vec<_>>())),
    ]))
}

fn of_entry(entry: &Entry) -> Value {
    Value::from(Object::of([
        ("entry", Value::from(entry.entry)),
        ("entry_hash", Value::from(entry.hash.as_str())),
        ("kind", Value::from(entry.kind.as_str())),
        ("task_id", Value::from(entry.task.as_str())),
        ("ts", Value::from(entry.ts.as_str())),
    ]))
}
