//! Replay: the run's state, a pure function of its chain.
//!
//! Task states follow the last known transition; `attempts` counts `task.started` only; unknown
//! kinds are counted and do nothing else. The frontier, where a resume goes on, is what was
//! started (sorted), then what was scheduled (sorted), never what was suspended.

use alloc::vec::Vec;

use super::row::Row;
use crate::hash::{Digest, GENESIS, HEX_LEN};
use crate::json::{Object, Value};
use crate::table::Table;

/// Where a task stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TaskState {
    /// `task.scheduled`
    Scheduled,
    /// `task.started` or `task.resumed`
    Started,
    /// `task.completed`
    Completed,
    /// `task.failed`
    Failed,
    /// `task.abandoned`
    Abandoned,
    /// `task.suspended`
    Suspended,
}

impl TaskState {
    /// The name, as in the state document.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            TaskState::Scheduled => "scheduled",
            TaskState::Started => "started",
            TaskState::Completed => "completed",
            TaskState::Failed => "failed",
            TaskState::Abandoned => "abandoned",
            TaskState::Suspended => "suspended",
        }
    }

    fn after(kind: &str) -> Option<TaskState> {
        Some(match kind {
            "task.scheduled" => TaskState::Scheduled,
            "task.started" | "task.resumed" => TaskState::Started,
            "task.completed" => TaskState::Completed,
            "task.failed" => TaskState::Failed,
            "task.abandoned" => TaskState::Abandoned,
            "task.suspended" => TaskState::Suspended,
            _ => return None,
        })
    }
}

/// One task of the run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Task {
    /// Where it stands.
    pub state: TaskState,
    /// How often it was started.
    pub attempts: u64,
    /// The entry of its last known transition.
    pub last_seq: u64,
}

/// The state of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct State {
    /// How many entries were replayed.
    pub entries: u64,
    head: [u8; HEX_LEN],
    /// Whether there was a `run.open`.
    pub run_open: bool,
    /// Whether there was a `run.closed`.
    pub run_closed: bool,
    /// How many `run.resumed` there were.
    pub resumes: u64,
    /// How many entries were of no known kind.
    pub unknown_kinds: u64,
    /// The tasks by id.
    pub tasks: Table<Task>,
}

impl Default for State {
    fn default() -> State {
        State {
            entries: 0,
            head: GENESIS,
            run_open: false,
            run_closed: false,
            resumes: 0,
            unknown_kinds: 0,
            tasks: Table::new(),
        }
    }
}

impl State {
    /// Takes the next row of a chain that holds.
    pub fn apply(&mut self, row: &Row<'_>) {
        let seq = self.entries;
        self.entries += 1;
        self.head = row.entry_hash.as_bytes().try_into().unwrap_or(GENESIS);
        match row.kind {
            "run.open" => self.run_open = true,
            "run.closed" => self.run_closed = true,
            "run.resumed" => self.resumes += 1,
            kind => match TaskState::after(kind) {
                None => self.unknown_kinds += 1,
                Some(state) => {
                    let started = u64::from(kind == "task.started");
                    let task = self.tasks.again(row.task_id, Task { state, attempts: 0, last_seq: seq });
                    task.state = state;
                    task.attempts += started;
                    task.last_seq = seq;
                }
            },
        }
    }

    /// The last entry's hash; 64 zeros if there is none.
    #[must_use]
    pub fn head(&self) -> Digest {
        // Not at each row: most replays ask for the last one's only.
        Digest::from_hex(&self.head).unwrap_or(Digest::ZERO)
    }

    /// The tasks in a state, sorted.
    pub fn tasks_in(&self, state: TaskState) -> impl Iterator<Item = &str> {
        self.tasks.iter().filter(move |(_, task)| task.state == state).map(|(id, _)| id)
    }

    /// Where a resume goes on: what was started, then what was scheduled, each sorted.
    pub fn frontier(&self) -> impl Iterator<Item = &str> {
        self.tasks_in(TaskState::Started).chain(self.tasks_in(TaskState::Scheduled))
    }

    /// The state document: the same chain, the same bytes.
    #[must_use]
    pub fn document(&self, run_id: &str) -> Value {
        let list = |state| ids(self.tasks_in(state));
        let tasks = self.tasks.iter().map(|(id, task)| {
            let document = Object::of([
                ("attempts", Value::from(task.attempts)),
                ("last_seq", Value::from(task.last_seq)),
                ("state", Value::from(task.state.name())),
                ("task_id", Value::from(id)),
            ]);
            (id, Value::from(document))
        });
        Value::from(Object::of([
            ("completed_tasks", list(TaskState::Completed)),
            ("entries", Value::from(self.entries)),
            ("failed_tasks", list(TaskState::Failed)),
            ("head_hash", Value::from(self.head().to_hex())),
            ("in_flight_tasks", list(TaskState::Started)),
            ("resume_frontier", ids(self.frontier())),
            ("resumes", Value::from(self.resumes)),
            ("run_closed", Value::from(self.run_closed)),
            ("run_id", Value::from(run_id)),
            ("run_open", Value::from(self.run_open)),
            ("scheduled_tasks", list(TaskState::Scheduled)),
            ("suspended_tasks", list(TaskState::Suspended)),
            ("tasks", Value::from(Object::of(tasks))),
            ("unknown_kinds", Value::from(self.unknown_kinds)),
        ]))
    }
}

fn ids<'a>(ids: impl Iterator<Item = &'a str>) -> Value {
    Value::from(ids.map(Value::from).collect::<Vec<_>>())
}
