//! `waybill run`: a command, supervised and recorded.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use clap::ValueEnum;
use waybill_verifier::id::RunId;
use waybill_verifier::json::{self, Object, Value};

use super::Global;
use super::exit::{Exit, Failure};
use super::out::{self, Form};
use super::recording::{Scrubbing, waiting};
use crate::git::Store;
use crate::redact::Scrubber;
use crate::registry::{Record, Registry, Status};
use crate::run::policy::{OnStall, Policy, parse_time};
use crate::run::start::{By, Io, Start, What, supervise};
use crate::{anchoring, clock};

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(super) struct Args {
    /// The run's name [default: made of the command's]
    #[arg(long, value_name = "RUN")]
    id: Option<RunId>,
    /// Start the command on this run's ledger, which is here already (fetched, or only anchored)
    #[arg(long, value_name = "RUN", conflicts_with = "id")]
    resume: Option<RunId>,
    /// Return once it is started; its output goes to the console log
    #[arg(long)]
    detach: bool,
    /// Let no boot continue it
    #[arg(long)]
    no_boot: bool,
    /// An environment variable that a resume at boot must have; its value is never stored
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    require_env: Vec<String>,
    #[command(flatten)]
    limits: Limits,
    #[command(flatten)]
    scrubbing: Scrubbing,
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "CMD")]
    command: Vec<String>,
}

/// What the run is held to.
#[derive(Clone, Debug, clap::Args)]
struct Limits {
    /// Silence of the run or of one worker that counts as a stall
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = parse_time)]
    stall_after: Duration,
    /// What happens then
    #[arg(long, value_enum, default_value_t = Stalled::Report)]
    on_stall: Stalled,
    /// How often the command may be started again by itself (--on-stall auto)
    #[arg(long, value_name = "N", default_value_t = 2)]
    respawns: u64,
    /// How long the command has to end by itself before it is killed
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_time)]
    grace: Duration,
    /// Stop the run after this time
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    ceiling: Option<Duration>,
    /// Stop the run once the `cost` of what it recorded is above this
    #[arg(long, value_name = "AMOUNT", value_parser = amount)]
    budget: Option<f64>,
    /// How many MiB of output are kept, twice
    #[arg(long, value_name = "MIB", default_value_t = 10)]
    console_limit: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Stalled {
    /// Sign a receipt, and harm nothing
    Report,
    /// End the run, and sign a receipt
    Stop,
    /// Sign a receipt, and do what it recommends
    Auto,
}

const HELP: &str = "\
This resume (run --resume RUN -- CMD) starts a command on a ledger that is here; 'ledger resume' only
records and signals; 'jobs resume' starts a recorded command again.

The command gets WAYBILL_RUN_ID and WAYBILL_SOCKET: 'waybill record' and 'waybill ask' in it speak to the
recorder, or any JSON line on the socket does. A command that is started again gets WAYBILL_RESUME=1 and
WAYBILL_STATE, a file with the ledger's state ('waybill ledger state --json').

Examples:
  waybill run -- make all
  waybill run --id nightly --detach --on-stall auto -- ./agent --all
  waybill ledger fetch nightly && waybill run --resume nightly -- ./agent --all

Exit codes: the command's own; 128+n if signal n ended it; 130 after Ctrl-C, 143 after 'jobs stop',
'pause' or TERM, 3 if a limit stopped it; 125 if waybill failed, 126 if the command can't be executed,
127 if it was not found. With --detach: 0 started, 125 to 127 not";

fn amount(text: &str) -> Result<f64, String> {
    let amount: f64 = text.parse().map_err(|_| String::from("an amount is a number"))?;
    if amount.is_finite() && amount >= 0.0 {
        Ok(amount)
    } else {
        Err(String::from("an amount is not negative"))
    }
}

/// Says to a detached run's supervisor under which name it runs.
const SUPERVISE: &str = "WAYBILL_SUPERVISE";
/// What a detached supervisor says on its standard output once the run is started.
const STARTED: &str = "started";

pub(super) fn run(global: &Global, args: &Args) -> Result<Exit, Failure> {
    let registry = global.registry()?;
    let detached = std::env::var(SUPERVISE).ok().and_then(|run| RunId::new(&run).ok());
    let record = record(global, args, detached.as_ref())?;
    if let Some(run) = args.resume.as_ref().filter(|_| detached.is_none()) {
        prepare(global, run)?;
    }
    if args.detach && detached.is_none() {
        let mut command = Command::new("/proc/self/exe");
        command.args(std::env::args_os().skip(1)).env(SUPERVISE, record.run.as_str());
        start_detached(command, None)?;
        say_started(global, &record.run)?;
        return Ok(Exit::Done);
    }
    let io = if detached.is_some() { Io::Detached } else { Io::Foreground };
    if io == Io::Foreground && args.resume.is_none() && args.id.is_none() && !global.quiet {
        out::say(&format!("run {}", record.run));
    }
    let command = args.command.clone();
    let what = match &args.resume {
        Some(_) => What::On(Box::new(record), command),
        None => What::New(Box::new(record), command),
    };
    supervised(&registry, what, io)
}

/// Starts a recorded command again, as a process of its own; `patience` bounds the wait for it.
pub(super) fn start_again(
    registry: &Registry,
    record: &Record,
    by: By,
    patience: Option<Duration>,
) -> Result<Started, Failure> {
    let mut command = Command::new("/proc/self/exe");
    command.arg(super::SUPERVISE).arg(registry.folder()).arg(record.run.as_str());
    command.arg(if by == By::Boot { "boot" } else { "hand" });
    if record.folder.is_dir() {
        command.current_dir(&record.folder);
    }
    start_detached(command, patience)
}

/// The hidden command of [`start_again`].
pub(super) fn supervise_again(arguments: &[std::ffi::OsString]) -> Result<Exit, Failure> {
    let [data_dir, run, by] = arguments else { return Err(Failure::usage("not for people")) };
    let registry = Registry::of_environment(Some(Path::new(data_dir)))?;
    let run = RunId::new(&run.to_string_lossy()).map_err(|error| Failure::usage(error.to_string()))?;
    let by = if by == "boot" { By::Boot } else { By::Hand };
    supervised(&registry, What::Again(run, by), Io::Detached)
}

fn supervised(registry: &Registry, what: What, io: Io) -> Result<Exit, Failure> {
    let run = match &what {
        What::New(record, _) | What::On(record, _) => record.run.clone(),
        What::Again(run, _) => run.clone(),
    };
    let log = registry.run(&run).file("supervisor.log");
    let say = |line: &str| {
        out::say(line);
        if io == Io::Detached {
            note(&log, line);
        }
    };
    if io == Io::Detached {
        // A terminal's hang-up, and a sweep's end, are not this run's.
        nix::unistd::setsid().map_err(|error| Failure::io(&error))?;
    }
    let ready = || {
        if io == Io::Detached {
            // Whoever started it may be gone.
            drop(out::put(format!("{STARTED}\n").as_bytes()));
        }
    };
    let start = Start { registry, what, io, say: &say, ready: &ready, scrubber: &scrubber };
    Ok(Exit::Code(supervise(&start)?))
}

/// The scrubber of a run: this process's variables, and the run's own patterns.
fn scrubber(patterns: &[String]) -> Result<Scrubber, String> {
    Scrubbing::of(patterns).scrubber().map_err(|failure| failure.message)
}

/// A line in the supervisor's own log; it stops growing at a MiB.
fn note(path: &Path, line: &str) {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = std::fs::OpenOptions::new();
    options.append(true).create(true).mode(0o600).custom_flags(nix::fcntl::OFlag::O_NOFOLLOW.bits());
    if let Ok(mut file) = options.open(path)
        && file.metadata().is_ok_and(|found| found.len() < 1 << 20)
    {
        drop(writeln!(file, "{} {}", clock::timestamp(), out::escape(line)));
    }
}

/// What became of a start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Started {
    /// It made its first durable transition.
    Yes,
    /// It has not yet, and goes on.
    NotYet,
}

/// Starts a supervisor of its own, and waits until its run is started.
fn start_detached(mut command: Command, patience: Option<Duration>) -> Result<Started, Failure> {
    let failed =
        |what: &str, error: std::io::Error| Failure { exit: Exit::Io, message: format!("{what}: {error}") };
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| failed("can't start a supervisor", error))?;
    let (Some(stdout), Some(mut stderr)) = (child.stdout.take(), child.stderr.take()) else {
        return Err(Failure { exit: Exit::Io, message: String::from("the supervisor has no pipes") });
    };
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        let read = BufReader::new(stdout).read_line(&mut line);
        // Nobody waits any more once the ceiling passed.
        let _too_late = sender.send(read.is_ok() && line.trim_end() == STARTED);
    });
    let started = match patience {
        None => receiver.recv().unwrap_or(false),
        Some(patience) => match receiver.recv_timeout(patience) {
            Ok(started) => started,
            Err(RecvTimeoutError::Timeout) => return Ok(Started::NotYet),
            Err(RecvTimeoutError::Disconnected) => false,
        },
    };
    if started {
        return Ok(Started::Yes);
    }
    let mut said = String::new();
    let _why_is_second = stderr.read_to_string(&mut said);
    let status = child.wait().map_err(|error| failed("can't wait for the supervisor", error))?;
    let lines: Vec<&str> = said.lines().map(|line| line.trim_start_matches("waybill: ")).collect();
    let message = if lines.is_empty() {
        String::from("the supervisor ended and said nothing")
    } else {
        lines.join("; ")
    };
    let code = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(125);
    Err(Failure { exit: Exit::Code(code), message })
}

fn say_started(global: &Global, run: &RunId) -> Result<(), Failure> {
    let text = match global.form() {
        Form::Quiet => String::new(),
        Form::Text => format!("{run}\n"),
        Form::Json => {
            let document = Value::from(Object::of([("run_id", Value::from(run.as_str()))]));
            format!("{}\n", String::from_utf8_lossy(&json::ascii(&document)))
        }
    };
    super::put(text.as_bytes())
}

/// A ledger that is only anchored, or behind its anchor, is brought up to it first.
fn prepare(global: &Global, run: &RunId) -> Result<(), Failure> {
    let project = global.project()?;
    let store = Store::discover(project.root()).unwrap_or_else(|error| {
        out::say(&format!("{error}; going on without its anchors"));
        None
    });
    let projection = anchoring::prepare_resume(&project, store.as_ref(), run, waiting(run))?;
    if projection.state.run_closed {
        return Err(Failure {
            exit: Exit::Failed,
            message: format!("run {run} is closed: there is nothing to resume"),
        });
    }
    Ok(())
}

/// The record of what the arguments ask for.
fn record(global: &Global, args: &Args, detached: Option<&RunId>) -> Result<Record, Failure> {
    let absolute = |path: &Path| -> Result<PathBuf, Failure> {
        let absolute =
            path.canonicalize().map_err(|source| crate::durable::Error::new("can't use", path, source))?;
        match absolute.to_str() {
            Some(_) => Ok(absolute),
            None => {
                Err(Failure::usage(format!("{} is not UTF-8, and could not be recorded", path.display())))
            }
        }
    };
    let project = absolute(global.project()?.root())?;
    let folder = absolute(Path::new("."))?;
    for name in &args.require_env {
        let fits = !name.is_empty() && !name.contains(['=', '\0']);
        if !fits {
            return Err(Failure::usage(format!(
                "--require-env {name}: give a variable's name, not its value"
            )));
        }
        if std::env::var_os(name).is_none() {
            return Err(Failure::usage(format!("--require-env {name}: it is not set here either")));
        }
    }
    let run = match (detached, &args.resume, &args.id) {
        (Some(run), ..) | (None, Some(run), _) | (None, None, Some(run)) => run.clone(),
        (None, None, None) => name_of(&args.command)?,
    };
    // The home folder stays as it is: these arguments are started again.
    let bare = args.scrubbing.without_home()?;
    super::recording::clean_names(&args.scrubbing.scrubber()?, [("run id", run.as_str())])
        .map_err(Failure::usage)?;
    let (scrubbed, secrets) = bare.scrub_args(&args.command);
    if secrets > 0 && detached.is_none() {
        out::say(
            "the command line holds what looks like a secret: it is not stored, so no resume can start this command; \
             pass it in an environment variable (--require-env)",
        );
    }
    let limits = &args.limits;
    Ok(Record {
        run,
        project,
        folder,
        holds_secret: secrets > 0,
        command: scrubbed,
        at_boot: !args.no_boot,
        needs: args.require_env.clone(),
        policy: Policy {
            stall_after: limits.stall_after,
            on_stall: match limits.on_stall {
                Stalled::Report => OnStall::Report,
                Stalled::Stop => OnStall::Stop,
                Stalled::Auto => OnStall::Auto,
            },
            respawns: limits.respawns,
            grace: limits.grace,
            ceiling: limits.ceiling,
            budget: limits.budget,
            console_limit: u64::from(limits.console_limit) << 20,
            patterns: args.scrubbing.patterns().to_vec(),
        },
        status: Status::InProgress,
        created: clock::micros() / 1_000_000,
        started: 0,
        ended: None,
        ending: None,
        forced: false,
        supervisor: None,
        child: None,
        socket: None,
    })
}

/// A name for a run of a command: the program's, and some randomness.
fn name_of(command: &[String]) -> Result<RunId, Failure> {
    let mut seed = [0; 4];
    getrandom::fill(&mut seed).map_err(|_| Failure {
        exit: Exit::Io,
        message: String::from("the operating system gave no randomness for a run's name"),
    })?;
    let tail: String = seed.iter().map(|byte| format!("{byte:02x}")).collect();
    let program = command.first().map(Path::new).and_then(Path::file_name).unwrap_or_default();
    let name: String = program
        .to_string_lossy()
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || *c == '-' || *c == '_')
        .take(24)
        .collect();
    let name = name.trim_start_matches('-');
    let name = if name.is_empty() { "run" } else { name };
    RunId::new(&format!("{name}-{tail}")).map_err(|error| Failure::usage(error.to_string()))
}
