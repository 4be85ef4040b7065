//! `waybill boot`: resuming after a reboot.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command as Process, Stdio};
use std::time::Duration;

use clap::{Subcommand, ValueEnum};
use waybill_verifier::json::{Object, Value};

use super::Global;
use super::exit::{Exit, Failure};
use super::out::{self, Form};
use super::run::{Started, start_again};
use crate::boot::decide::Decision;
use crate::boot::sweep::{Candidate, Done, note, plan, proceed};
use crate::boot::unit;
use crate::durable;
use crate::lock::{Lock, LockError, Wait};
use crate::registry::{Record, Registry};
use crate::run::policy::parse_time;
use crate::run::start::By;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Continue the runs that a crash or a reboot interrupted
    #[command(after_help = RESUME_HELP)]
    ResumeAll {
        /// Show what it would do, and write nothing
        #[arg(long)]
        dry_run: bool,
        /// How long the sweep waits for a run's first transition before it goes on to the next
        #[arg(long, value_name = "TIME", default_value = "30m", value_parser = parse_time)]
        ceiling: Duration,
        /// A variable that every run needs here, besides its own
        #[arg(long, value_name = "NAME", value_delimiter = ',')]
        require_env: Vec<String>,
    },
    /// Have that done at boot: a systemd user unit, or a launchd job
    #[command(after_help = INSTALL_HELP)]
    Install {
        #[command(flatten)]
        place: Place,
        /// Print what would be written
        #[arg(long)]
        dry_run: bool,
        /// A variable that every run needs at boot
        #[arg(long, value_name = "NAME", value_delimiter = ',')]
        require_env: Vec<String>,
    },
    /// Have it no longer done
    Uninstall {
        #[command(flatten)]
        place: Place,
    },
}

/// Where a boot looks.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Place {
    /// What starts things at boot [default: this system's]
    #[arg(long, value_enum)]
    kind: Option<Kind>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Kind {
    Systemd,
    Launchd,
}

const RESUME_HELP: &str = "\
A line a run says what is done with it, and why. A run goes on if nothing of it is alive, it did not end
on purpose, no question of it is open, its ledger holds up to its resume point, and its anchor, if it has
one here, has no other entries; at most three times until it ends on purpose. Runs are started one after
the other, each detached. Ending the sweep ends no run.

Exit codes: 0 done, 1 a run could not be started (the others were), 74 I/O, 75 another sweep is at work";

const INSTALL_HELP: &str = "\
Variables that runs need at boot can be put into ~/.config/waybill/boot.env (NAME=value lines, mode 600),
which the systemd unit reads.

Exit codes: 0 written, 64 wrong arguments, 74 I/O";

pub(super) fn run(global: &Global, command: &Command) -> Result<Exit, Failure> {
    match command {
        Command::ResumeAll { dry_run, ceiling, require_env } => {
            let registry = global.registry()?;
            if *dry_run {
                let plan = plan(&registry, require_env)?;
                let lines: Vec<Line> = plan.iter().map(line).collect();
                return show(global, &lines, true);
            }
            sweep(global, &registry, *ceiling, require_env)
        }
        Command::Install { place, dry_run, require_env } => install(global, place, *dry_run, require_env),
        Command::Uninstall { place } => uninstall(global, place),
    }
}

/// What is said of a candidate.
struct Line {
    run: String,
    decision: String,
    reason: String,
}

fn line(candidate: &Candidate) -> Line {
    let (decision, reason) = match candidate {
        Candidate::Run { decision, reason, .. } => (decision.name(), reason),
        Candidate::Damaged { reason, .. } => ("damaged", reason),
    };
    Line { run: candidate.name().to_owned(), decision: decision.to_owned(), reason: reason.clone() }
}

fn text(line: &Line) -> String {
    let Line { run, decision, reason } = line;
    format!("{:<18}  {}  {}\n", decision, out::escape(run), out::escape(reason))
}

fn show(global: &Global, lines: &[Line], dry_run: bool) -> Result<Exit, Failure> {
    match global.form() {
        Form::Quiet => {}
        Form::Text => super::put(lines.iter().map(text).collect::<String>().as_bytes())?,
        Form::Json => {
            let list = lines.iter().map(|Line { run, decision, reason }| {
                Value::from(Object::of([
                    ("run_id", Value::from(run.as_str())),
                    ("decision", Value::from(decision.as_str())),
                    ("reason", Value::from(reason.as_str())),
                ]))
            });
            let list = Value::from(list.collect::<Vec<_>>());
            super::put_document(Object::of([("dry_run", Value::from(dry_run)), ("decisions", list)]))?;
        }
    }
    Ok(Exit::Done)
}

fn sweep(global: &Global, registry: &Registry, ceiling: Duration, needs: &[String]) -> Result<Exit, Failure> {
    registry.prepare()?;
    let _lock = Lock::take(&registry.sweep_lock(), Wait::No, |_| ()).map_err(|error| match error {
        LockError::Held { holder, .. } => {
            Failure { exit: Exit::Locked, message: format!("another sweep is at work: {holder}") }
        }
        error => Failure::io(&error),
    })?;
    let plan = plan(registry, needs)?;
    // Everything is decided, and said, before anything is done.
    for candidate in &plan {
        if let Candidate::Run { record, decision, reason } = candidate
            && !matches!(decision, Decision::Continue(_))
        {
            tell(registry, record, decision, reason);
        }
    }
    let mut lines = Vec::new();
    let mut failed = false;
    for candidate in &plan {
        let mut line = line(candidate);
        if let Candidate::Run { record, decision: decision @ Decision::Continue(_), reason } = candidate {
            let done = proceed(registry, record, needs, |record| {
                // Whoever reads the run's journal sees why it goes on before it does.
                tell(registry, record, decision, reason);
                match start_again(registry, record, By::Boot, Some(ceiling)) {
                    Ok(Started::Yes) => Ok(Done::Started),
                    Ok(Started::NotYet) => Ok(Done::NotYet),
                    Err(failure) => Err(failure.message),
                }
            });
            match done {
                Done::Started => {}
                Done::NotYet => {
                    line.reason.push_str("; no transition before the ceiling, and not waited for")
                }
                Done::Changed(decision, why) => {
                    line.decision = decision.name().to_owned();
                    line.reason = format!("{why}, since it was decided on");
                    tell(registry, record, &decision, &line.reason);
                }
                Done::Failed(why) => {
                    failed = true;
                    line.decision = String::from("failed");
                    line.reason = format!("{reason}: {why}");
                }
            }
        }
        if global.form() == Form::Text {
            super::put(text(&line).as_bytes())?;
        }
        lines.push(line);
    }
    if global.form() == Form::Json {
        show(global, &lines, false)?;
    }
    Ok(if failed { Exit::Absent } else { Exit::Done })
}

/// Notes a decision as evidence; that it can't be noted strands no run.
fn tell(registry: &Registry, record: &Record, decision: &Decision, reason: &str) {
    if let Err(why) = note(registry, record, decision, reason) {
        out::say(&format!("run {}: the decision is not in its journal: {why}", record.run));
    }
}

fn command(registry: &Registry, needs: &[String]) -> Result<Vec<String>, Failure> {
    let program = std::env::current_exe().map_err(|error| Failure::io(&error))?;
    let mut command = vec![program.display().to_string()];
    command.extend([String::from("--data-dir"), registry.folder().display().to_string()]);
    command.extend([String::from("boot"), String::from("resume-all")]);
    if !needs.is_empty() {
        command.extend([String::from("--require-env"), needs.join(",")]);
    }
    Ok(command)
}

impl Place {
    fn kind(&self) -> Kind {
        self.kind.unwrap_or(if cfg!(target_os = "macos") { Kind::Launchd } else { Kind::Systemd })
    }

    /// The file that a boot reads.
    fn path(&self) -> Result<PathBuf, Failure> {
        let variable =
            |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let home = variable("HOME");
        let path = match self.kind() {
            Kind::Systemd => variable("XDG_CONFIG_HOME")
                .or_else(|| home.map(|home| home.join(".config")))
                .map(|config| config.join("systemd/user").join(unit::UNIT)),
            Kind::Launchd => {
                home.map(|home| home.join(format!("Library/LaunchAgents/{}.plist", unit::LABEL)))
            }
        };
        path.ok_or_else(|| Failure::usage("there is no home folder: set HOME"))
    }

    /// Calls systemd, where it is there; says what it said.
    fn systemctl(&self, arguments: &[&str]) -> Option<String> {
        if self.kind() != Kind::Systemd || !Path::new("/run/systemd/system").is_dir() {
            return Some(String::from("systemd does not run here"));
        }
        let output = Process::new("systemctl").arg("--user").args(arguments).stdin(Stdio::null()).output();
        match output {
            Ok(output) if output.status.success() => None,
            Ok(output) => Some(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
            Err(error) => Some(error.to_string()),
        }
    }
}

fn install(global: &Global, place: &Place, dry_run: bool, needs: &[String]) -> Result<Exit, Failure> {
    let command = command(&global.registry()?, needs)?;
    let text = match place.kind() {
        Kind::Systemd => unit::systemd(&command),
        Kind::Launchd => unit::launchd(&command),
    };
    if dry_run {
        super::put(text.as_bytes())?;
        return Ok(Exit::Done);
    }
    let path = place.path()?;
    let folder = durable::folder_of(&path);
    std::fs::create_dir_all(folder)
        .map_err(|source| durable::Error::new("can't make the folder", folder, source))?;
    durable::replace(&path, |file| file.write_all(text.as_bytes()))?;
    if place.kind() == Kind::Systemd {
        let enabled =
            place.systemctl(&["daemon-reload"]).or_else(|| place.systemctl(&["enable", unit::UNIT]));
        if let Some(why) = enabled {
            out::say(&format!(
                "written, and not enabled ({why}): 'systemctl --user enable {}' does",
                unit::UNIT
            ));
        }
        if !super::doctor::lingers() {
            out::say(
                "linger is off: the unit starts at login, not at boot; 'loginctl enable-linger' mends that",
            );
        }
    } else {
        out::say(&format!("'launchctl load {}' starts it now; it starts at login", path.display()));
    }
    if global.form() == Form::Text {
        super::put(format!("wrote {}\n", path.display()).as_bytes())?;
    }
    Ok(Exit::Done)
}

fn uninstall(global: &Global, place: &Place) -> Result<Exit, Failure> {
    let path = place.path()?;
    let there = path.symlink_metadata().is_ok();
    if there {
        if place.kind() == Kind::Systemd {
            // What systemd does not know needs no disabling.
            let _unknown = place.systemctl(&["disable", unit::UNIT]);
        }
        durable::remove(&path)?;
    }
    if global.form() == Form::Text {
        let text = if there {
            format!("removed {}\n", path.display())
        } else {
            String::from("nothing is installed\n")
        };
        super::put(text.as_bytes())?;
    }
    Ok(Exit::Done)
}
