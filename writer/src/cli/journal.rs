//! `waybill journal`: what happened in a run, event by event.

use std::cell::RefCell;
use std::collections::VecDeque;

use clap::{Subcommand, ValueEnum};
use waybill_verifier::chain::{Place, Unseen, Visit};
use waybill_verifier::hash::Digest;
use waybill_verifier::id::RunId;
use waybill_verifier::journal::{self as format, Event, Profile};
use waybill_verifier::json::{self, Object, Value};

use super::Global;
use super::exit::{Exit, Failure};
use super::out::{self, Form, cut, escape};
use super::recording::{self, Durability, Scrubbing, event_name, named_payload};
use super::verify::{self, Assurance};
use crate::journal::{self, Journal, Recorded};
use crate::lock::Wait;
use crate::project::Project;
use crate::scrub;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Record events of a run: one, or a line each from standard input
    #[command(after_help = RECORD_HELP)]
    Record {
        /// The run
        run: RunId,
        /// What happened, as tool.called
        #[arg(long, required_unless_present = "stdin", value_parser = event_name)]
        event: Option<String>,
        /// What else is to be said: a JSON object, @FILE, or - for standard input
        #[arg(long, value_name = "JSON|@FILE|-", conflicts_with = "stdin")]
        data: Option<String>,
        /// Read one JSON event a line, acknowledge each on standard output
        #[arg(long, conflicts_with = "event")]
        stdin: bool,
        /// What a new journal's hashes are taken over
        #[arg(long, value_enum, default_value_t = HashProfile::PyJsonV1)]
        hash_profile: HashProfile,
        #[command(flatten)]
        options: Writing,
    },
    /// Show the events, a line each
    Log {
        /// The run
        run: RunId,
        /// Only the last N events
        #[arg(long, value_name = "N")]
        last: Option<usize>,
    },
    /// Check a journal: hashes, links, numbers, and the head if you know it
    #[command(after_help = VERIFY_HELP)]
    Verify {
        /// The run
        run: RunId,
        /// The last event's hash, known from elsewhere
        #[arg(long, value_name = "HASH", value_parser = verify::digest)]
        expected_head: Option<Digest>,
        /// Fail unless the report has these assurances
        #[arg(long, value_delimiter = ',', value_enum)]
        require: Vec<Assurance>,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum HashProfile {
    /// CPython's JSON, ASCII only
    PyJsonV1,
    /// RFC 8785
    JcsV2,
}

impl HashProfile {
    fn profile(self) -> Profile {
        match self {
            HashProfile::PyJsonV1 => Profile::PyJsonV1,
            HashProfile::JcsV2 => Profile::JcsV2,
        }
    }
}

/// Options of every command that writes to a journal.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Writing {
    /// When an event counts as recorded
    #[arg(long, value_enum, default_value_t = Durability::Entry)]
    durability: Durability,
    #[command(flatten)]
    scrubbing: Scrubbing,
    /// Fail with code 75 if another process writes to this journal
    #[arg(long)]
    no_wait: bool,
}

impl Writing {
    fn wait(&self) -> Wait {
        if self.no_wait { Wait::No } else { Wait::Yes }
    }
}

const RECORD_HELP: &str = "\
With --stdin, a line is {\"event\":…, …}: all other members are what is to be said of it. Its
acknowledgement is {\"event_hash\":…,\"index\":…}, or {\"error\":…} if it was not recorded.

Examples:
  waybill journal record goal-42 --event tool.called --data '{\"tool\":\"make\"}'
  my-agent | waybill journal record goal-42 --stdin

Exit codes: 0 recorded, 2 the journal is damaged, 64 wrong arguments or a refused line, 74 I/O,
75 lock held (--no-wait)";

const VERIFY_HELP: &str = "\
Examples:
  waybill journal verify goal-42
  waybill journal verify goal-42 --expected-head 0ad3792b… --json

Exit codes: 0 holds (or empty), 1 no such journal, 2 failed, 64 wrong arguments, 74 I/O";

pub(super) fn run(global: &Global, command: &Command) -> Result<Exit, Failure> {
    let project = global.project()?;
    match command {
        Command::Record { run, event, data, stdin: _, hash_profile, options } => {
            let profile = hash_profile.profile();
            match event {
                Some(event) => record(global, &project, run, (event, data.as_deref()), profile, options),
                None => record_lines(&project, run, profile, options),
            }
        }
        Command::Log { run, last } => log(global, &project, run, *last),
        Command::Verify { run, expected_head, require } => {
            let Some(outcome) = journal::walk(&project, run, Unseen)? else {
                return Err(journal::Error::Absent(run.clone()).into());
            };
            let file = format!(".sdd/runs/{run}/journal.jsonl");
            let mut report = format::report(run.as_str(), &file, &outcome, *expected_head);
            verify::require(&mut report, require);
            verify::show(global, &report)
        }
    }
}

/// Opens a run's journal, and says what opening had to do.
pub(super) fn open(
    project: &Project,
    run: &RunId,
    profile: Profile,
    options: &Writing,
    visitor: impl Visit<Event>,
) -> Result<Journal, Failure> {
    let waiting = |holder: &str| out::say(&format!("waiting for the journal of run {run}, held by {holder}"));
    let journal = Journal::open(project, run, profile, options.wait(), visitor, waiting)?;
    if let Some(torn) = journal.set_aside() {
        recording::say_set_aside("event", torn);
    }
    Ok(journal)
}

fn record(
    global: &Global,
    project: &Project,
    run: &RunId,
    (event, data): (&str, Option<&str>),
    profile: Profile,
    options: &Writing,
) -> Result<Exit, Failure> {
    let scrubber = options.scrubbing.scrubber()?;
    let fields = data.map_or_else(|| Ok(Object::default()), |data| named_payload("--data", data))?;
    recording::clean_names(&scrubber, [("event", event), ("run id", run.as_str())])
        .map_err(Failure::usage)?;
    if let Some(socket) = recording::own_socket(run) {
        let mut line = fields;
        line.insert("event".into(), Value::from(event));
        let answer = recording::say_to_own(&socket, &Value::from(line))?;
        let text = match global.form() {
            Form::Quiet => Vec::new(),
            Form::Text => super::record::text(&answer).into_bytes(),
            Form::Json => line_of(&Value::from(answer)),
        };
        super::put(&text)?;
        return Ok(Exit::Done);
    }
    let (fields, _) = scrub::object(&scrubber, fields);
    let mut journal = open(project, run, profile, options, Unseen)?;
    let recorded = journal.append(event, &fields, crate::clock::seconds(), options.durability.sync())?;
    let text = match global.form() {
        Form::Quiet => Vec::new(),
        Form::Text => format!("recorded event {} ({})\n", recorded.index, recorded.event_hash).into_bytes(),
        Form::Json => acknowledgement(&recorded),
    };
    super::put(&text)?;
    Ok(Exit::Done)
}

fn record_lines(
    project: &Project,
    run: &RunId,
    profile: Profile,
    options: &Writing,
) -> Result<Exit, Failure> {
    if let Some(socket) = recording::own_socket(run) {
        return super::record::lines(&socket);
    }
    let scrubber = options.scrubbing.scrubber()?;
    let mut journal = open(project, run, profile, options, Unseen)?;
    let mut refused: u64 = 0;
    recording::each_line(|line| {
        let read = recording::object(line).and_then(|mut object| {
            let name = object.remove("event");
            let name = name.as_ref().and_then(Value::as_str).ok_or("`event` is missing, or no string")?;
            let name = event_name(name)?;
            recording::clean_names(&scrubber, [("event", name.as_str())])?;
            Ok((name, scrub::object(&scrubber, object).0))
        });
        let recorded = match read {
            Err(reason) => Err(reason),
            Ok((name, fields)) => {
                match journal.append(&name, &fields, crate::clock::seconds(), options.durability.sync()) {
                    Ok(recorded) => Ok(recorded),
                    Err(journal::Error::Draft(error)) => Err(error.to_string()),
                    Err(error @ journal::Error::TooLong(_)) => Err(error.to_string()),
                    Err(error) => return Err(error.into()),
                }
            }
        };
        Ok(match recorded {
            Ok(recorded) => acknowledgement(&recorded),
            Err(reason) => {
                refused += 1;
                line_of(&Value::from(Object::of([("error", Value::from(reason))])))
            }
        })
    })?;
    if refused > 0 {
        return Err(recording::refused(refused));
    }
    Ok(Exit::Done)
}

fn acknowledgement(recorded: &Recorded) -> Vec<u8> {
    line_of(&Value::from(Object::of([
        ("event_hash", Value::from(recorded.event_hash.to_hex())),
        ("index", Value::from(recorded.index)),
    ])))
}

fn line_of(value: &Value) -> Vec<u8> {
    let mut line = json::ascii(value);
    line.push(b'\n');
    line
}

fn log(global: &Global, project: &Project, run: &RunId, last: Option<usize>) -> Result<Exit, Failure> {
    let form = global.form();
    let lines = RefCell::new(VecDeque::new());
    let visit = |event: &Event, _: Place| {
        let mut lines = lines.borrow_mut();
        if last.is_some_and(|last| lines.len() >= last) {
            lines.pop_front();
        }
        if last != Some(0) {
            lines.push_back(line(event, form));
        }
    };
    let Some(outcome) = journal::walk(project, run, visit)? else {
        return Err(journal::Error::Absent(run.clone()).into());
    };
    super::put(&lines.take().into_iter().flatten().collect::<Vec<u8>>())?;
    match outcome.faults.first() {
        None => Ok(Exit::Done),
        Some(fault) => {
            let message = format!("{fault}; only events that hold were shown: see 'waybill journal verify'");
            Err(Failure { exit: Exit::Failed, message })
        }
    }
}

fn line(event: &Event, form: Form) -> Vec<u8> {
    let mut fields = event.fields.clone();
    match form {
        Form::Quiet => Vec::new(),
        Form::Json => {
            for (name, value) in [
                ("index", Value::from(event.index)),
                ("event_hash", Value::from(event.event_hash.to_hex())),
                ("ts", event.ts.clone().unwrap_or(Value::Null)),
            ] {
                fields.insert(name.into(), value);
            }
            line_of(&Value::Object(fields))
        }
        Form::Text => {
            fields.remove("event");
            let name = escape(&String::from_utf8_lossy(event.event.as_wtf8()));
            let rest = match fields.is_empty() {
                true => String::new(),
                false => String::from_utf8_lossy(&json::ascii(&Value::Object(fields))).into_owned(),
            };
            let hash = event.event_hash.to_hex();
            let text = format!("{:>6}  {}  {name:<20}  {rest}", event.index, &hash[..12]);
            format!("{}\n", cut(text.trim_end(), out::width())).into_bytes()
        }
    }
}
