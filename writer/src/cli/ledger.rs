//! `waybill ledger`: record a run's task graph, and read it back.

mod anchors;
mod log;
mod record;
mod resume;
mod runs;

use std::path::PathBuf;

use clap::Subcommand;
use waybill_verifier::id::{Kind, RunId, TaskId};
use waybill_verifier::json::{self, Object, Value};
use waybill_verifier::ledger::{State, TaskState};
use waybill_verifier::report::counted;

use super::exit::{Exit, Failure};
use super::out::{self, Form, escape};
use super::recording::{Options, acknowledgement, waiting};
use super::table::lay_out;
use super::{Global, verify};
pub(super) use anchors::add_anchored;
pub(super) use runs::{Known, counts, known};

use crate::{anchoring, log as ledger_log};

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Start a run's ledger (run.open)
    #[command(after_help = OPEN_HELP)]
    Open {
        /// The run
        run: RunId,
        /// What the run is for
        #[arg(long)]
        goal: Option<String>,
        /// More to record with it: JSON, @FILE, or - for standard input
        #[arg(long, value_name = "JSON|@FILE|-")]
        payload: Option<String>,
        #[command(flatten)]
        options: Options,
    },
    /// Record transitions: one, or a line each from standard input
    #[command(after_help = APPEND_HELP)]
    Append {
        /// The run
        run: RunId,
        /// What kind of transition, as task.started
        #[arg(long, required_unless_present = "stdin")]
        kind: Option<Kind>,
        /// The task it is of [default: the run itself]
        #[arg(long, conflicts_with = "stdin")]
        task: Option<TaskId>,
        /// What goes with it: a JSON object, @FILE, or - for standard input
        #[arg(long, value_name = "JSON|@FILE|-", conflicts_with = "stdin")]
        payload: Option<String>,
        /// Read one JSON transition a line, acknowledge each on standard output
        #[arg(long, conflicts_with = "kind")]
        stdin: bool,
        #[command(flatten)]
        options: Options,
    },
    /// End a run deliberately (run.closed)
    Close {
        /// The run
        run: RunId,
        /// Why
        #[arg(long)]
        reason: Option<String>,
        #[command(flatten)]
        options: Options,
    },
    /// Show the entries, a line each
    #[command(after_help = LOG_HELP)]
    Log {
        /// The run
        run: RunId,
        /// Go on showing what is recorded, until Ctrl-C
        #[arg(long, short)]
        follow: bool,
        /// Only the last N entries
        #[arg(long, value_name = "N")]
        last: Option<usize>,
    },
    /// Show where each task stands, and where a resume would go on
    State {
        /// The run
        run: RunId,
    },
    /// Check a ledger: hashes, links, form, and the head if you know it
    #[command(after_help = VERIFY_HELP)]
    Verify {
        /// The run
        #[arg(required_unless_present = "file")]
        run: Option<RunId>,
        /// A ledger file instead; with a run, it must be that run's
        #[arg(long, value_name = "PATH", conflicts_with_all = ["anchored", "remote"])]
        file: Option<PathBuf>,
        /// The run's anchor instead
        #[arg(long)]
        anchored: bool,
        /// The anchor's commit, known from elsewhere
        #[arg(long, value_name = "COMMIT", requires = "anchored")]
        expected_commit: Option<String>,
        /// Read the anchor's ref from this remote now, and hold what is here against it
        #[arg(long, value_name = "NAME")]
        remote: Option<String>,
        #[command(flatten)]
        expect: verify::ExpectArgs,
    },
    /// Put the ledger into the repository, under refs/bernstein/work-ledger/RUN
    #[command(after_help = anchors::ANCHOR_HELP)]
    Anchor {
        /// The run
        run: RunId,
    },
    /// Take a remote's anchor over: verified first, nothing overwritten
    #[command(after_help = anchors::FETCH_HELP)]
    Fetch {
        /// The run
        run: RunId,
        /// The remote, by name or address
        #[arg(long, value_name = "NAME", default_value = "origin")]
        remote: String,
    },
    /// Carry the anchor to a remote, if the remote's own is what it goes on from
    #[command(after_help = anchors::PUSH_HELP)]
    Push {
        /// The run
        run: RunId,
        /// The remote, by name or address
        #[arg(long, value_name = "NAME", default_value = "origin")]
        remote: String,
    },
    /// Go on with a run from its ledger: record it (run.resumed) and signal its tasks
    #[command(after_help = resume::HELP)]
    Resume {
        /// The run
        run: RunId,
        /// Show what it would do, and change nothing
        #[arg(long)]
        dry_run: bool,
        /// Fail with code 75 if another process records this run
        #[arg(long)]
        no_wait: bool,
    },
    /// List the runs that are here and anchored, and whether the two agree
    #[command(after_help = runs::HELP)]
    Runs {
        /// Ask this remote, too
        #[arg(long, value_name = "NAME")]
        remote: Option<String>,
    },
    /// Show two lineages of a run side by side from their fork, or settle it
    #[command(after_help = anchors::DIFF_HELP)]
    Diff {
        /// The run
        run: RunId,
        /// Keep this one, and set the other aside
        #[arg(long, value_enum)]
        keep: Option<anchors::Lineage>,
        /// Hold the ledger against this remote's anchor instead of the one here
        #[arg(long, value_name = "NAME")]
        remote: Option<String>,
    },
    /// Replace a run's anchors by one commit of the same tree
    #[command(after_help = anchors::GC_HELP)]
    Gc {
        /// The run
        run: RunId,
    },
    /// Set everything from a damaged line on aside, and record that
    #[command(after_help = REPAIR_HELP)]
    Repair {
        /// The run
        run: RunId,
        /// The first line to set aside, from 1, as verify names it
        #[arg(long, value_name = "N")]
        from_line: u64,
        /// Set entries aside that hold, too
        #[arg(long)]
        accept_loss: bool,
        /// Fail with code 75 if another process records this run
        #[arg(long)]
        no_wait: bool,
    },
}

const OPEN_HELP: &str = "\
Opening a run that is there is no error: its ledger is checked, and a torn tail set aside.

Examples:
  waybill ledger open goal-42 --goal 'nightly build'

Exit codes: 0 open, 2 the ledger is damaged, 64 wrong arguments, 74 I/O, 75 lock held (--no-wait)";

const APPEND_HELP: &str = "\
With --stdin, a line is {\"kind\":…,\"task_id\":…,\"payload\":{…}} (the last two may be left out), and
its acknowledgement {\"entry_hash\":…,\"seq\":…}, or {\"error\":…} if it was not recorded.

Examples:
  waybill ledger append goal-42 --kind task.started --task t0
  waybill ledger append goal-42 --kind task.completed --task t0 --payload @result.json
  my-job | waybill ledger append goal-42 --stdin --durability group

Exit codes: 0 recorded, 1 no such run, 2 the ledger is damaged, or its anchor knows more entries
(--accept-loss goes on all the same), 64 wrong arguments or a refused line, 74 I/O (the message names what was not recorded), 75 lock held (--no-wait)";

const LOG_HELP: &str = "\
Examples:
  waybill ledger log goal-42 --last 20
  waybill ledger log goal-42 --follow
  waybill ledger log goal-42 --json | jq .kind

Exit codes: 0 shown, 1 no such run, 2 the ledger is damaged: what holds before it was shown";

const VERIFY_HELP: &str = "\
Examples:
  waybill ledger verify goal-42
  waybill ledger verify --file 000000.jsonl --expected-head 73888fa5… --json
  waybill ledger verify goal-42 --remote origin
  waybill ledger verify goal-42 --anchored --expected-commit 28717687…

Exit codes: 0 holds (or empty), 1 no such run, 2 failed, 3 diverged from an anchor, 64 wrong
arguments, 74 I/O";

const REPAIR_HELP: &str = "\
A torn tail needs no repair: opening the run sets it aside. This is for damage in the middle, which
nothing else goes on from: the rest stays in .aside-<entry> beside the ledger.

Example:
  waybill ledger repair goal-42 --from-line 7

Exit codes: 0 repaired, 1 no such run, 64 no such line or damage before it, 74 I/O, 75 lock held";

pub(super) fn run(global: &Global, command: &Command) -> Result<Exit, Failure> {
    match command {
        Command::Open { run, goal, payload, options } => {
            record::open(global, run, goal.as_deref(), payload.as_deref(), options)
        }
        Command::Append { run, kind, task, payload, stdin, options } => match kind {
            Some(kind) if !stdin => {
                record::append(global, run, kind, task.as_ref(), payload.as_deref(), options)
            }
            _ => record::append_lines(global, run, options),
        },
        Command::Close { run, reason, options } => record::close(global, run, reason.as_deref(), options),
        Command::Log { run, follow, last } => log::show(global, run, *follow, *last),
        Command::State { run } => state(global, run),
        Command::Verify { run: Some(run), anchored: true, expected_commit, remote, expect, .. } => {
            anchors::verify(global, run, expected_commit.as_deref(), remote.as_deref(), expect)
        }
        Command::Verify { run, file, remote, expect, .. } => {
            verify::run_ledger(global, run.as_ref(), file.as_deref(), remote.as_deref(), expect)
        }
        Command::Anchor { run } => anchors::anchor(global, run),
        Command::Fetch { run, remote } => anchors::fetch(global, run, remote),
        Command::Push { run, remote } => anchors::push(global, run, remote),
        Command::Resume { run, dry_run, no_wait } => resume::run(global, run, *dry_run, *no_wait),
        Command::Runs { remote } => runs::run(global, remote.as_deref()),
        Command::Diff { run, keep, remote } => anchors::diff(global, run, *keep, remote.as_deref()),
        Command::Gc { run } => anchors::gc(global, run),
        Command::Repair { run, from_line, accept_loss, no_wait } => {
            let loss = if *accept_loss { ledger_log::Loss::Accept } else { ledger_log::Loss::Refuse };
            repair(global, run, *from_line, loss, *no_wait)
        }
    }
}

/// Replays a run's ledger.
fn replay(global: &Global, run: &RunId) -> Result<State, Failure> {
    replay_seeing(global, run, |_| {})
}

/// Replays a run's ledger; `see` is shown the state after each entry.
fn replay_seeing(global: &Global, run: &RunId, mut see: impl FnMut(&State)) -> Result<State, Failure> {
    let mut state = State::default();
    let walked = anchoring::walk_local(&global.project()?, run, |row, _| {
        state.apply(row);
        see(&state);
    })?;
    match walked {
        Some(_) => Ok(state),
        None => Err(ledger_log::Error::Absent(run.clone()).into()),
    }
}

fn state(global: &Global, run: &RunId) -> Result<Exit, Failure> {
    let state = replay(global, run)?;
    match global.form() {
        Form::Quiet => {}
        Form::Json => super::put_document(state.document(run.as_str()))?,
        Form::Text => super::put(state_text(run, &state).as_bytes())?,
    }
    Ok(Exit::Done)
}

fn state_text(run: &RunId, state: &State) -> String {
    let standing = match (state.run_closed, state.run_open) {
        (true, _) => "closed",
        (false, true) => "open",
        (false, false) => "not opened",
    };
    let resumed = match state.resumes {
        0 => String::new(),
        1 => String::from(", resumed once"),
        times => format!(", resumed {times} times"),
    };
    let mut text = format!(
        "run {run}: {standing}, {}{resumed}\nhead {}\n",
        counted(state.entries, "entry"),
        state.head()
    );
    let mut rows = vec![["task", "state", "attempts", "last entry"].map(String::from).to_vec()];
    for order in [
        TaskState::Started,
        TaskState::Scheduled,
        TaskState::Suspended,
        TaskState::Failed,
        TaskState::Abandoned,
        TaskState::Completed,
    ] {
        for id in state.tasks_in(order) {
            let task = &state.tasks[id];
            let name = if id.is_empty() { "(the run)".to_owned() } else { escape(id) };
            rows.push(vec![
                name,
                order.name().to_owned(),
                task.attempts.to_string(),
                task.last_seq.to_string(),
            ]);
        }
    }
    if rows.len() > 1 {
        text.push('\n');
        text.push_str(&lay_out(&rows, out::width()));
    }
    let frontier: Vec<&str> = state.frontier().collect();
    text.push_str(&match (frontier.as_slice(), state.run_closed) {
        (_, true) => String::from("\nThe run is closed: there is nothing to resume.\n"),
        ([], false) => String::from("\nNothing is started or scheduled: a resume has nothing to do.\n"),
        (tasks, false) => format!("\nA resume goes on with: {}\n", tasks.join(", ")),
    });
    text
}

fn repair(
    global: &Global,
    run: &RunId,
    from_line: u64,
    loss: ledger_log::Loss,
    no_wait: bool,
) -> Result<Exit, Failure> {
    let project = global.project()?;
    let wait = if no_wait { crate::lock::Wait::No } else { crate::lock::Wait::Yes };
    let waiting = waiting(run);
    let repaired = ledger_log::repair(&project, run, from_line, loss, wait, waiting)?;
    match global.form() {
        Form::Quiet => {}
        Form::Json => {
            let name = repaired.aside.file_name().unwrap_or_default().to_string_lossy();
            let document = Object::of([
                ("run_id", Value::from(run.as_str())),
                ("set_aside", Value::from(name.as_ref())),
                ("bytes", Value::from(repaired.length)),
                ("entries_kept", Value::from(repaired.entries)),
                ("recorded", acknowledgement(&repaired.entry)),
            ]);
            put_line(&Value::from(document))?;
        }
        Form::Text => {
            let text = format!(
                "{} kept; {} from line {from_line} on are now in {}\nrecorded as entry {} ({})\n",
                counted(repaired.entries, "entry"),
                counted(repaired.length, "byte"),
                repaired.aside.display(),
                repaired.entry.seq,
                repaired.entry.entry_hash
            );
            super::put(text.as_bytes())?;
        }
    }
    Ok(Exit::Done)
}

/// Prints a value as one line of canonical JSON.
fn put_line(value: &Value) -> Result<(), Failure> {
    let mut line = json::ascii(value);
    line.push(b'\n');
    super::put(&line)
}
