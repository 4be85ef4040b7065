//! What `top` shows, read anew each time; what did not change since is not read again.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use waybill_verifier::json::{self, Object, Value};
use waybill_verifier::ledger::{State, TaskState};
use waybill_verifier::receipt::{File, ReceiptId};
use waybill_verifier::spine::prefixed;

use super::super::exit::Failure;
use super::super::jobs::{Look, look};
use crate::durable::open_regular;
use crate::process::Table;
use crate::project::Project;
use crate::registry::{Entry, Record, Registry, Status};
use crate::run::book::replay;
use crate::{clock, receipt};

/// More receipts of a project than this are not looked at: the newest count.
const MAX_RECEIPTS: usize = 200;

/// A run, as it is shown.
pub(super) struct Row {
    pub(super) look: Look,
    /// Milliseconds since something was recorded, and since something was printed.
    pub(super) recorded: Option<u64>,
    pub(super) printed: Option<u64>,
    pub(super) workers: Vec<WorkerRow>,
    pub(super) state: Option<State>,
    pub(super) stalls: Vec<StallRow>,
}

/// A worker, as it is shown.
pub(super) struct WorkerRow {
    pub(super) name: String,
    /// Milliseconds since its last sign of life.
    pub(super) silent: u64,
    pub(super) stalled: bool,
    pub(super) done: bool,
}

/// A receipt, as it is shown.
#[derive(Clone)]
pub(super) struct StallRow {
    pub(super) id: ReceiptId,
    pub(super) worker: String,
    pub(super) reason: &'static str,
    pub(super) action: &'static str,
    pub(super) fork_step: Option<u64>,
    pub(super) anchor: String,
    pub(super) timestamp: u64,
    pub(super) projection: Object,
}

/// All of it.
pub(super) struct View {
    pub(super) rows: Vec<Row>,
    pub(super) damaged: Vec<(String, String)>,
}

/// What a file was when it was read: its place, length and time.
type Stamp = (u64, u64, i64, i64);

/// Reads, and remembers.
pub(super) struct Gather {
    pub(super) registry: Registry,
    all: bool,
    states: HashMap<PathBuf, (Stamp, State)>,
    receipts: HashMap<PathBuf, (Stamp, Option<(String, StallRow)>)>,
}

impl Gather {
    pub(super) fn new(registry: Registry, all: bool) -> Gather {
        Gather { registry, all, states: HashMap::new(), receipts: HashMap::new() }
    }

    pub(super) fn look(&mut self) -> Result<View, Failure> {
        let table = Table::read();
        let mut view = View { rows: Vec::new(), damaged: Vec::new() };
        for entry in self.registry.list()? {
            match entry {
                Entry::Run(record) if !self.all && record.status == Status::Archived => {}
                Entry::Run(record) => {
                    let row = self.row(&table, *record);
                    view.rows.push(row);
                }
                Entry::Damaged { name, reason } => view.damaged.push((name, reason)),
            }
        }
        // What lives comes first, then what ended last.
        view.rows.sort_by_key(|row| {
            let live = row.look.record.status.is_live();
            (!live, std::cmp::Reverse(row.look.record.ended.unwrap_or(row.look.record.created)))
        });
        Ok(view)
    }

    fn row(&mut self, table: &Table, record: Record) -> Row {
        let project = Project::at(&record.project);
        let folder = self.registry.run(&record.run);
        let ledger = project.ledger(&record.run);
        let ages = [&ledger, &project.journal(&record.run)].map(|path| age(path));
        Row {
            recorded: ages.into_iter().flatten().min(),
            printed: age(&folder.file("console.log")),
            // Of a run that ended, the file is the last that was heard, and worries nobody.
            workers: match record.status.is_live() {
                true => workers(&folder.file("liveness.json")),
                false => Vec::new(),
            },
            state: self.state(&project, &record, &ledger),
            stalls: self.stalls(&project, &record),
            look: look(&self.registry, table, record),
        }
    }

    fn state(&mut self, project: &Project, record: &Record, ledger: &Path) -> Option<State> {
        let stamp = stamp(ledger)?;
        if let Some((before, state)) = self.states.get(ledger)
            && *before == stamp
        {
            return Some(state.clone());
        }
        let state = replay(project, &record.run).ok().flatten()?;
        self.states.insert(ledger.to_owned(), (stamp, state.clone()));
        Some(state)
    }

    /// The run's receipts, the newest first.
    fn stalls(&mut self, project: &Project, record: &Record) -> Vec<StallRow> {
        let entries = fs::read_dir(project.receipts()).into_iter().flatten().flatten();
        let mut paths: Vec<_> = entries
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
            .filter_map(|path| Some((stamp(&path)?, path)))
            .collect();
        paths.sort_by_key(|(stamp, _)| std::cmp::Reverse((stamp.2, stamp.3)));
        let mut stalls: Vec<StallRow> = Vec::new();
        for (stamp, path) in paths.into_iter().take(MAX_RECEIPTS) {
            let known = self.receipts.get(&path).is_some_and(|(before, _)| *before == stamp);
            if !known {
                let read = stall(&path);
                self.receipts.insert(path.clone(), (stamp, read));
            }
            if let Some((_, Some((run, stall)))) = self.receipts.get(&path)
                && run == record.run.as_str()
            {
                stalls.push(stall.clone());
            }
        }
        stalls.sort_by_key(|stall| std::cmp::Reverse(stall.timestamp));
        stalls
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let found = fs::symlink_metadata(path).ok()?;
    Some((found.ino(), found.len(), found.mtime(), found.mtime_nsec()))
}

/// Milliseconds since a file was written.
fn age(path: &Path) -> Option<u64> {
    let found = fs::symlink_metadata(path).ok()?;
    let written = i128::from(found.mtime()) * 1000 + i128::from(found.mtime_nsec()) / 1_000_000;
    u64::try_from(i128::from(clock::micros() / 1000) - written).ok().or(Some(0))
}

fn stall(path: &Path) -> Option<(String, StallRow)> {
    let file = File::read(&receipt::read_file(path).ok()?);
    let (binding, id) = (file.binding.as_ref()?, file.id()?);
    let anchor = file.entry_hash.as_ref().map(prefixed).unwrap_or_default();
    let row = StallRow {
        worker: binding.worker_id.clone(),
        reason: binding.stall_reason.name(),
        action: binding.recommended_action.name(),
        fork_step: binding.fork_ref.as_ref().map(|fork| fork.fork_step),
        timestamp: binding.timestamp,
        projection: binding.projection(&id, &anchor),
        anchor,
        id,
    };
    Some((binding.run_id.as_str().to_owned(), row))
}

fn workers(path: &Path) -> Vec<WorkerRow> {
    let now = clock::micros() / 1000;
    let read = || {
        let mut bytes = Vec::new();
        let file = open_regular(path).ok()?;
        std::io::Read::read_to_end(&mut std::io::Read::take(file, 16 << 20), &mut bytes).ok()?;
        let document = json::parse(&bytes).ok()?;
        let Value::Array(workers) = document.as_object()?.get("workers")?.clone() else { return None };
        let truth = |worker: &Object, name: &str| worker.get(name) == Some(&Value::Bool(true));
        let worker = |value: &Value| {
            let worker = value.as_object()?;
            Some(WorkerRow {
                name: worker.get("worker")?.as_str()?.to_owned(),
                silent: now.saturating_sub(worker.get("last_ms")?.as_u64()?),
                stalled: truth(worker, "stalled"),
                done: truth(worker, "done"),
            })
        };
        workers.iter().map(worker).collect::<Option<Vec<_>>>()
    };
    read().unwrap_or_default()
}

impl Row {
    /// How many tasks are in a state.
    pub(super) fn count(&self, wanted: TaskState) -> u64 {
        let count = self.state.as_ref().map_or(0, |state| state.tasks_in(wanted).count());
        u64::try_from(count).unwrap_or(u64::MAX)
    }

    fn document(&self) -> Value {
        let mut document = self.look.document();
        let workers = self.workers.iter().map(|worker| {
            Value::from(Object::of([
                ("worker", Value::from(worker.name.as_str())),
                ("silent_ms", Value::from(worker.silent)),
                ("stalled", Value::from(worker.stalled)),
                ("done", Value::from(worker.done)),
            ]))
        });
        let tasks = [
            ("started", TaskState::Started),
            ("scheduled", TaskState::Scheduled),
            ("completed", TaskState::Completed),
            ("failed", TaskState::Failed),
            ("suspended", TaskState::Suspended),
            ("abandoned", TaskState::Abandoned),
        ];
        let tasks = Object::of(tasks.map(|(name, state)| (name, Value::from(self.count(state)))));
        let stalls = self.stalls.iter().map(|stall| Value::from(stall.projection.clone()));
        for (name, value) in [
            ("recorded_ms_ago", Value::from(self.recorded)),
            ("printed_ms_ago", Value::from(self.printed)),
            ("workers", Value::from(workers.collect::<Vec<_>>())),
            ("tasks", Value::from(tasks)),
            ("stalls", Value::from(stalls.collect::<Vec<_>>())),
        ] {
            document.insert(name.into(), value);
        }
        Value::from(document)
    }
}

impl View {
    pub(super) fn document(&self) -> Value {
        let damaged = self.damaged.iter().map(|(name, reason)| {
            Value::from(Object::of([
                ("run_id", Value::from(name.as_str())),
                ("reason", Value::from(reason.as_str())),
            ]))
        });
        let runs = self.rows.iter().map(Row::document);
        Value::from(Object::of([
            ("runs", Value::from(runs.collect::<Vec<_>>())),
            ("damaged", Value::from(damaged.collect::<Vec<_>>())),
        ]))
    }
}
