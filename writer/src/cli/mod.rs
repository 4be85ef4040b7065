//! The command line: arguments in, one of [`exit::Exit`] out. One file a command group.

mod ask;
mod audit;
mod boot;
mod check;
mod completions;
mod doctor;
mod escalation;
mod evidence;
pub mod exit;
mod explain;
mod failures;
mod jobs;
mod journal;
mod keys;
mod ledger;
mod out;
mod page;
mod record;
mod recording;
mod run;
mod snapshot;
mod status;
mod table;
mod top;
mod verify;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use waybill_verifier::json::{self, Value};

use crate::project::Project;
use crate::registry::Registry;
use crate::run::launch;
use exit::{Exit, Failure};
use out::Form;

const EXIT_CODES: &str = "\
Exit codes:
  0  done; or verified, consistent, incomplete, degraded, empty
  1  absent: there is no such run, file or receipt
  2  failed: the evidence does not hold
  3  diverged: two lineages of one run
  64 wrong arguments   70 internal   74 I/O   75 lock held";

const EXAMPLES: &str = "\
Examples:
  waybill ledger open goal-42
  waybill ledger append goal-42 --kind task.scheduled --task t0 --payload '{\"why\":\"nightly\"}'
  waybill ledger state goal-42
  waybill verify goal-42
  waybill verify ./evidence/000000.jsonl --json";

/// A flight recorder for long runs: record, recover, verify.
#[derive(Debug, Parser)]
#[command(
    name = "waybill",
    version,
    about = "A flight recorder for long runs of agents and jobs: record, recover, verify",
    after_help = format!("{EXAMPLES}\n\n{EXIT_CODES}"),
    propagate_version = true,
    disable_help_subcommand = true
)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

/// The hidden command that supervises a recorded run again.
const SUPERVISE: &str = "__supervise";

/// The help heading of what every command takes.
const EVERYWHERE: &str = "Options of every command";

#[derive(Clone, Debug, Args)]
struct Global {
    /// The project's folder; its records are in .sdd below it
    #[arg(long, global = true, value_name = "DIR", default_value = ".", help_heading = EVERYWHERE)]
    workdir: PathBuf,
    /// The folder for this user's own records of supervised runs
    /// [default: $WAYBILL_DATA_DIR, else $XDG_STATE_HOME/waybill, else ~/.local/state/waybill]
    #[arg(long, global = true, value_name = "DIR", help_heading = EVERYWHERE)]
    data_dir: Option<PathBuf>,
    /// Print JSON
    #[arg(long, global = true, help_heading = EVERYWHERE)]
    json: bool,
    /// Print nothing on success
    #[arg(long, short, global = true, conflicts_with = "json", help_heading = EVERYWHERE)]
    quiet: bool,
}

impl Global {
    fn form(&self) -> Form {
        match (self.json, self.quiet) {
            (true, _) => Form::Json,
            (_, true) => Form::Quiet,
            _ => Form::Text,
        }
    }

    fn data_folder(&self) -> Option<PathBuf> {
        data_folder(self.data_dir.as_deref(), |name| std::env::var_os(name))
    }

    /// This user's own records.
    fn registry(&self) -> Result<Registry, Failure> {
        Ok(Registry::of_environment(self.data_dir.as_deref())?)
    }

    fn project(&self) -> Result<Project, Failure> {
        if self.workdir.is_dir() {
            Ok(Project::at(&self.workdir))
        } else {
            let shown = self.workdir.display();
            Err(Failure::usage(format!("--workdir {shown} is no folder: give an existing one")))
        }
    }
}

/// The folder for a user's own records; none if no variable says where it is. A variable that is
/// empty counts as unset.
fn data_folder(given: Option<&Path>, variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let set = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    given
        .map(Path::to_owned)
        .or_else(|| set("WAYBILL_DATA_DIR"))
        .or_else(|| Some(set("XDG_STATE_HOME")?.join("waybill")))
        .or_else(|| Some(set("HOME")?.join(".local/state/waybill")))
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a command as a supervised, recorded run
    Run(Box<run::Args>),
    /// List, watch, end, answer and resume supervised runs
    #[command(subcommand, alias = "daemon")]
    Jobs(jobs::Command),
    /// Resume runs after a boot, and have that done
    #[command(subcommand)]
    Boot(boot::Command),
    /// Watch the runs of this machine live
    Top(top::Args),
    /// Inside a run: record a transition, an event or a heartbeat
    Record(record::Args),
    /// Inside a run: ask a question and wait for its answer
    Ask(ask::Args),
    /// Record a run's task graph, and read it back
    #[command(subcommand)]
    Ledger(ledger::Command),
    /// Record what happens in a run, event by event, and check it
    #[command(subcommand)]
    Journal(journal::Command),
    /// Keep the working tree as a step of a run
    Snapshot(snapshot::SnapshotArgs),
    /// Go on from a snapshot, as a run of its own
    Fork(snapshot::ForkArgs),
    /// Sign what a stalled worker did last; list, show and check such receipts
    #[command(subcommand)]
    Escalation(escalation::Command),
    /// Who signs here, and whom you trust
    #[command(subcommand)]
    Keys(keys::Command),
    /// Check, read and pack the audit log
    #[command(subcommand)]
    Audit(audit::Command),
    /// Put a run's evidence into one file to hand on
    #[command(subcommand)]
    Evidence(evidence::Command),
    /// Check evidence: a run's name, or files and folders, each told by its content
    Verify(verify::Args),
    /// The gate for CI: all ledgers and receipts hold, and none was rewritten since the base
    Check(check::Args),
    /// Print the page that checks evidence in a browser, as one HTML file
    #[command(after_help = page::HELP)]
    Page,
    /// Say what a check or a fault means, and what to do
    Explain(explain::Args),
    /// Show the runs of this project at a glance, with anchors, keys, trust and stalls
    #[command(after_help = status::HELP)]
    Status,
    /// Look for what on this machine would break recording, and how to mend it
    Doctor,
    /// Print a completion script for a shell
    Completions(completions::Args),
}

/// Runs the program on the process's arguments.
#[must_use]
pub fn main() -> ExitCode {
    std::panic::set_hook(Box::new(|panic| {
        // The message may hold evidence or a secret; the place is enough to find the fault.
        let place = panic.location().map(|at| format!(" at {}:{}", at.file(), at.line()));
        out::say(&format!("internal error{}: please report it", place.unwrap_or_default()));
        std::process::exit(if is_run() { 125 } else { 70 });
    }));
    let mut arguments = std::env::args_os().skip(1);
    match arguments.next().as_deref().and_then(std::ffi::OsStr::to_str) {
        Some(launch::EXEC) => return launch::exec(&arguments.collect::<Vec<_>>()),
        Some(SUPERVISE) => return end(run::supervise_again(&arguments.collect::<Vec<_>>())),
        _ => {}
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    end(run(&cli))
}

fn end(result: Result<Exit, Failure>) -> ExitCode {
    match result {
        Ok(exit) => exit.into(),
        Err(failure) => {
            out::say(&failure.message);
            failure.exit.into()
        }
    }
}

/// Help and version go to standard output and are a success; anything else is one line that
/// says what to do.
fn usage(error: &clap::Error) -> ExitCode {
    use clap::error::ErrorKind;
    let wrong = || ExitCode::from(if is_run() { Exit::Code(125) } else { Exit::Usage });
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let text = error.render().ansi().to_string();
            match out::put(text.as_bytes()) {
                Ok(()) => Exit::Done.into(),
                Err(_) => Exit::Io.into(),
            }
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            out::say("a command is missing: 'waybill --help' lists them");
            drop(error.print());
            wrong()
        }
        _ => {
            let text = error.render().to_string();
            let said: Vec<&str> = text
                .lines()
                .map(str::trim)
                .filter(|line| {
                    !line.is_empty() && !line.starts_with("Usage:") && !line.starts_with("For more")
                })
                .collect();
            let line = said.join("; ").replace(":; ", ": ");
            out::say(&format!("{} (see --help)", line.trim_start_matches("error: ")));
            wrong()
        }
    }
}

/// `waybill run` passes its command's code on, so its own failures have codes that few commands do.
fn as_own_failure(failure: Failure) -> Failure {
    match failure.exit {
        Exit::Code(_) => failure,
        _ => Failure { exit: Exit::Code(125), ..failure },
    }
}

/// Whether the arguments are those of `waybill run`, as far as can be told without reading them all.
fn is_run() -> bool {
    let mut arguments = std::env::args_os().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.to_str() {
            Some("--workdir" | "--data-dir") => drop(arguments.next()),
            Some(option) if option.starts_with('-') => {}
            other => return other == Some("run"),
        }
    }
    false
}

fn run(cli: &Cli) -> Result<Exit, Failure> {
    match &cli.command {
        Command::Run(args) => run::run(&cli.global, args).map_err(as_own_failure),
        Command::Jobs(command) => jobs::run(&cli.global, command),
        Command::Boot(command) => boot::run(&cli.global, command),
        Command::Top(args) => top::run(&cli.global, args),
        Command::Record(args) => record::run(&cli.global, args),
        Command::Ask(args) => ask::run(&cli.global, args),
        Command::Ledger(command) => ledger::run(&cli.global, command),
        Command::Journal(command) => journal::run(&cli.global, command),
        Command::Snapshot(args) => snapshot::take(&cli.global, args),
        Command::Fork(args) => snapshot::fork(&cli.global, args),
        Command::Escalation(command) => escalation::run(&cli.global, command),
        Command::Keys(command) => keys::run(&cli.global, command),
        Command::Audit(command) => audit::run(&cli.global, command),
        Command::Evidence(command) => evidence::run(&cli.global, command),
        Command::Verify(args) => verify::run(&cli.global, args),
        Command::Check(args) => check::run(&cli.global, args),
        Command::Page => page::run(),
        Command::Explain(args) => explain::run(&cli.global, args),
        Command::Status => status::run(&cli.global),
        Command::Doctor => doctor::run(&cli.global),
        Command::Completions(args) => completions::run(args),
    }
}

fn put(bytes: &[u8]) -> Result<(), Failure> {
    out::put(bytes).map_err(|error| Failure {
        exit: Exit::Io,
        message: format!("can't write to standard output: {error}"),
    })
}

/// Prints a value as indented JSON, ASCII only, with a final newline.
fn put_document(value: impl Into<Value>) -> Result<(), Failure> {
    let mut text = json::ascii_indented(&value.into());
    text.push(b'\n');
    put(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_folder_is_the_first_that_is_named() {
        let home = ("HOME", "/h");
        let named = ("WAYBILL_DATA_DIR", "/d");
        for (given, variables, expect) in [
            (Some("/g"), vec![named, home], Some("/g")),
            (None, vec![named, ("XDG_STATE_HOME", "/s"), home], Some("/d")),
            (None, vec![("WAYBILL_DATA_DIR", ""), ("XDG_STATE_HOME", "/s"), home], Some("/s/waybill")),
            (None, vec![home], Some("/h/.local/state/waybill")),
            (None, vec![], None),
        ] {
            let variable = |name: &str| {
                variables.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value))
            };
            assert_eq!(data_folder(given.map(Path::new), variable), expect.map(PathBuf::from));
        }
    }
}
