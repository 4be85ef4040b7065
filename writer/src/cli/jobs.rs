//! `waybill jobs`: the supervised runs of this machine.

mod attach;
mod list;
mod logs;

use clap::Subcommand;
use waybill_verifier::json::{self, Object, Value};

use super::Global;
use super::exit::{Exit, Failure};
use super::out::{self, Form};
use super::run::start_again;
use crate::process::Process;
use crate::registry::{Entry, Intent, Intention, Record, Registry, Status, address};
use crate::run::control::{self, Was};
use crate::run::policy::show_time;
use crate::run::start::By;
pub(super) use list::{Look, look};

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// List the runs, and how each stands
    #[command(after_help = list::HELP)]
    List {
        /// Archived ones, too
        #[arg(long)]
        all: bool,
    },
    /// Follow a run: what it prints, what it asks; a line typed answers it
    #[command(after_help = ATTACH_HELP)]
    Attach {
        /// The run: its id, a process's number, or the beginning of its id
        run: String,
    },
    /// Show what a run printed
    Logs {
        /// The run
        run: String,
        /// Go on showing it until the run ends
        #[arg(long, short)]
        follow: bool,
        /// Only the last N lines
        #[arg(long, value_name = "N")]
        last: Option<usize>,
    },
    /// End a run for good: TERM, some grace, KILL
    #[command(after_help = END_HELP)]
    Stop {
        /// The run
        run: String,
    },
    /// End a run's command for now: only 'jobs resume' goes on with it
    #[command(after_help = END_HELP)]
    Pause {
        /// The run
        run: String,
    },
    /// End a run's command, and keep it out of the list
    #[command(after_help = END_HELP)]
    Archive {
        /// The run
        run: String,
    },
    /// Answer a question of a run, alive or not
    #[command(after_help = ANSWER_HELP)]
    Answer {
        /// The run
        run: String,
        /// yes, no, or any text
        answer: String,
        /// Which question, if there are several
        #[arg(long, value_name = "Q")]
        question: Option<String>,
    },
    /// Start a recorded command again, from its run's resume point
    #[command(after_help = RESUME_HELP)]
    Resume {
        /// The run
        run: String,
    },
}

const ATTACH_HELP: &str = "\
Ctrl-C ends the watching, and harms no run.

Exit codes: 0 the run ended or you left, 1 no such run";

const END_HELP: &str = "\
The intent is recorded before any signal, so that a boot does not resume what was ended on purpose. A
run that fell over before is ended all the same.

Exit codes: 0 done, or done before, 1 no such run, 2 its supervisor does not answer, 74 I/O";

const ANSWER_HELP: &str = "\
A run that is dead can be answered, too; the next boot or 'jobs resume' then goes on with it.

Examples:
  waybill jobs answer nightly yes
  waybill jobs answer nightly --question q2 'use the second one'

Exit codes: 0 answered, 1 no such run, 2 no such open question, 74 I/O";

const RESUME_HELP: &str = "\
This resume starts a recorded command again; 'ledger resume' only records and signals; 'run --resume RUN
-- CMD' starts a command on a ledger that is here.

Exit codes: 0 started, 1 no such run, 2 it can't be resumed (it ended deliberately, it still runs, or its
ledger does not hold, or its anchor says that it went on elsewhere), 74 I/O, 126, 127 its command can't
be started";

pub(super) fn run(global: &Global, command: &Command) -> Result<Exit, Failure> {
    let registry = global.registry()?;
    match command {
        Command::List { all } => list::run(global, &registry, *all),
        Command::Attach { run } => attach::run(&registry, &find(&registry, run)?),
        Command::Logs { run, follow, last } => logs::run(&registry, &find(&registry, run)?, *follow, *last),
        Command::Stop { run } => end(global, &registry, run, Intent::Stop),
        Command::Pause { run } => end(global, &registry, run, Intent::Pause),
        Command::Archive { run } => end(global, &registry, run, Intent::Archive),
        Command::Answer { run, answer, question } => {
            let record = find(&registry, run)?;
            let answer = super::recording::Scrubbing::of(&[]).scrubber()?.scrub(answer).0.into_owned();
            let (id, alive) = control::answer(&registry, &record, question.as_deref(), &answer)?;
            let rest =
                if alive { "" } else { "; the run is not running: a boot or 'jobs resume' goes on with it" };
            let document = Object::of([
                ("run_id", Value::from(record.run.as_str())),
                ("question", Value::from(id.as_str())),
                ("alive", Value::from(alive)),
            ]);
            show(global, &format!("answered {id} of run {}{rest}", record.run), document)
        }
        Command::Resume { run } => {
            let record = find(&registry, run)?;
            start_again(&registry, &record, By::Hand, None)?;
            let document =
                Object::of([("run_id", Value::from(record.run.as_str())), ("started", Value::from(true))]);
            show(
                global,
                &format!("run {} goes on: 'waybill jobs attach {0}' follows it", record.run),
                document,
            )
        }
    }
}

/// The run that somebody means.
pub(super) fn find(registry: &Registry, given: &str) -> Result<Record, Failure> {
    let entries = registry.list()?;
    let mut records = Vec::new();
    for entry in entries {
        match entry {
            Entry::Run(record) => records.push(*record),
            Entry::Damaged { name, reason } if name == given => {
                let message = format!("the record of run {name} can't be used: {reason}");
                return Err(Failure { exit: Exit::Failed, message });
            }
            Entry::Damaged { .. } => {}
        }
    }
    let found = address::find(given, &records, Process::fate);
    found.cloned().map_err(|error| {
        let exit = match error {
            address::NotMeant::Nothing(_) => Exit::Absent,
            _ => Exit::Usage,
        };
        Failure { exit, message: error.to_string() }
    })
}

pub(super) fn end(
    global: &Global,
    registry: &Registry,
    given: &str,
    intent: Intent,
) -> Result<Exit, Failure> {
    let record = find(registry, given)?;
    let intention = Intention { intent, reason: format!("jobs {}", intent.name()) };
    let ended = control::end(registry, &record, &intention)?;
    let wanted = ended.status == Status::after(intent);
    let name = ended.status.name();
    let mut line = match (ended.was, wanted) {
        (Was::Running, true) => format!("run {}: {name}", record.run),
        (Was::Orphaned, true) => format!("run {}: {name}; its supervisor was gone", record.run),
        (Was::Fallen, true) => {
            format!("run {}: {name}; it had fallen over before, and stays down", record.run)
        }
        (Was::Ended, true) => format!("run {}: {name}; it was not running", record.run),
        (_, false) => format!("run {} had ended before: {name}", record.run),
    };
    if ended.forced {
        let grace = show_time(record.policy.grace);
        line.push_str(&format!("; forced: it did not end within {grace}, and was killed"));
    }
    let document = Object::of([
        ("run_id", Value::from(record.run.as_str())),
        ("status", Value::from(name)),
        ("forced", Value::from(ended.forced)),
    ]);
    show(global, &line, document)
}

fn show(global: &Global, line: &str, document: Object) -> Result<Exit, Failure> {
    let text = match global.form() {
        Form::Quiet => String::new(),
        Form::Text => format!("{}\n", out::escape(line)),
        Form::Json => format!("{}\n", String::from_utf8_lossy(&json::ascii(&Value::from(document)))),
    };
    super::put(text.as_bytes())?;
    Ok(Exit::Done)
}
