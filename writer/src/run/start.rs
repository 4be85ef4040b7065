//! The start of a run: its lock, its records, its child; then the supervisor takes over.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use waybill_verifier::id::RunId;
use waybill_verifier::json::{Object, Value};

use super::book::{Against, Book, Found, MAIN, command_value, find, replay};
use super::console::{Console, Output};
use super::finish::settle;
use super::policy::millis;
use super::server::Server;
use super::stall::Watch;
use super::supervisor::Supervisor;
use super::{Error, runtime, system};
use crate::lock::Lock;
use crate::log::Missing;
use crate::process::{Process, Table};
use crate::project::Project;
use crate::redact::Scrubber;
use crate::registry::{self, Intent, Record, Registry, ResumePoint, RunFolder, Status};
use crate::{anchoring, clock};

/// What is to be started.
#[derive(Debug)]
pub enum What {
    /// A new run: its record, and the command as it was given; the record may have less of it.
    New(Box<Record>, Vec<String>),
    /// A command on a ledger that is here already.
    On(Box<Record>, Vec<String>),
    /// A recorded command again.
    Again(RunId, By),
}

/// Who starts a recorded command again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum By {
    /// Somebody.
    Hand,
    /// A sweep, which has decided that it may.
    Boot,
}

/// Where a run's command reads and prints.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Io {
    /// Where the supervisor does, too.
    Foreground,
    /// Nowhere but in the console log.
    Detached,
}

/// A start.
pub struct Start<'a> {
    /// The user's records.
    pub registry: &'a Registry,
    /// What.
    pub what: What,
    /// Where it reads and prints.
    pub io: Io,
    /// Where lines for people go.
    pub say: &'a dyn Fn(&str),
    /// Told once the run has made its first durable transition.
    pub ready: &'a dyn Fn(),
    /// Makes the scrubber, with the run's own patterns.
    pub scrubber: &'a dyn Fn(&[String]) -> Result<Scrubber, String>,
}

impl fmt::Debug for Start<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Start").field("what", &self.what).field("io", &self.io).finish_non_exhaustive()
    }
}

/// Supervises a run from its start to its end; gives the exit code.
///
/// # Errors
///
/// If it can't be started. What goes wrong later is said, and recorded as far as it can be.
pub fn supervise(start: &Start<'_>) -> Result<u8, Error> {
    // Before any thread is made, and before anybody can know whom to signal.
    let signals = block_signals()?;
    let (folder, lock, mut record, from) = match &start.what {
        What::New(record, _) => fresh(start.registry, record)?,
        What::On(record, _) => on_ledger(start.registry, record)?,
        What::Again(run, by) => again(start.registry, run, *by)?,
    };
    let scrubber = (start.scrubber)(&record.policy.patterns).map_err(Error::Refused)?;
    let run = record.run.clone();
    let project = Project::at(&record.project);
    let runtime = runtime::folder(start.registry, &run)?;
    let socket = runtime.join("s");
    let server = Server::bind(&socket)?;
    let mut waited = false;
    let opened = Book::open(&project, &run, Missing::Create, |holder| {
        if !std::mem::replace(&mut waited, true) {
            (start.say)(&format!("waiting for the records of run {run}, held by {holder}"));
        }
        signals.read_signal().ok().flatten().is_some()
    });
    let mut book = match opened {
        Ok(book) => book,
        Err(error) => {
            runtime::remove(&runtime);
            if let What::New(..) = start.what {
                record.status = Status::Error;
                folder.write_record(&record)?;
            }
            return Err(error);
        }
    };
    for note in &book.notes {
        (start.say)(note);
    }
    record.status = Status::InProgress;
    record.supervisor = Process::own();
    record.socket = Some(socket.clone());
    record.started = clock::micros() / 1_000_000;
    (record.ended, record.ending, record.forced, record.child) = (None, None, false, None);
    folder.write_record(&record)?;
    begin(&project, &record, &mut book, from, &scrubber)?;

    let zero = Instant::now();
    let scrubber = Arc::new(scrubber);
    let console = Console::open(&folder.file("console.log"), record.policy.console_limit);
    let mut supervisor = Supervisor {
        command: match &start.what {
            What::New(_, command) | What::On(_, command) => command.clone(),
            What::Again(..) => record.command.clone(),
        },
        watch: Watch::new(millis(record.policy.stall_after), 0),
        questions: folder.questions().unwrap_or_default(),
        output: Output::new(console, Arc::clone(&scrubber), zero),
        respawns: record.policy.respawns,
        io: start.io,
        say: start.say,
        running: None,
        stopping: None,
        askers: Vec::new(),
        lone: Vec::new(),
        spent: 0.0,
        dirty: false,
        written: 0,
        looked: 0,
        refreshed: 0,
        resumes: from == From::Resume,
        folder,
        _lock: lock,
        record,
        project,
        book,
        scrubber,
        server,
        runtime,
        signals,
        zero,
    };
    if let Err((code, error)) = supervisor.spawn() {
        supervisor.fail_to_start(code, &error);
        return Err(match code {
            Some(code) => Error::Command { code, reason: error },
            None => Error::Refused(error),
        });
    }
    (start.ready)();
    Ok(supervisor.watch())
}

/// What a start goes on from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum From {
    Nothing,
    Resume,
}

type Begun = (RunFolder, Lock, Record, From);

fn fresh(registry: &Registry, record: &Record) -> Result<Begun, Error> {
    let project = Project::at(&record.project);
    if project.ledger(&record.run).symlink_metadata().is_ok() {
        let run = &record.run;
        return Err(Error::Refused(format!(
            "there is a ledger of run {run} here: 'waybill run --resume {run} -- CMD' goes on with it"
        )));
    }
    let (folder, lock) = registry.create(record)?;
    Ok((folder, lock, record.clone(), From::Nothing))
}

fn on_ledger(registry: &Registry, new: &Record) -> Result<Begun, Error> {
    let run = &new.run;
    let folder = registry.run(run);
    let (folder, lock, record) = match folder.record() {
        Err(registry::Error::Absent(_)) => {
            let (folder, lock) = registry.create(new)?;
            (folder, lock, new.clone())
        }
        Err(error) => return Err(error.into()),
        Ok(_) => {
            let lock = take(&folder, run)?;
            let mut old = folder.record()?;
            if old.project != new.project {
                let place = old.project.display();
                return Err(Error::Refused(format!("run {run} is recorded for {place}: resume it there")));
            }
            nothing_alive(&old)?;
            carry_out(&folder, &mut old)?;
            (folder, lock, Record { created: old.created, ..new.clone() })
        }
    };
    let project = Project::at(&record.project);
    let found = find(&project, run, None)?;
    let Some(found) = found.filter(|found| found.state.entries > 0) else {
        return Err(Error::Log(crate::log::Error::Absent(run.clone())));
    };
    if found.state.run_closed {
        return Err(closed(run));
    }
    if let Some(Against::Anchor(line)) = found.against {
        return Err(Error::Refused(line));
    }
    Ok((folder, lock, record, From::Resume))
}

fn again(registry: &Registry, run: &RunId, by: By) -> Result<Begun, Error> {
    let folder = registry.run(run);
    folder.record()?;
    let lock = take(&folder, run)?;
    // Under the lock: what was decided on may have changed.
    let mut record = folder.record()?;
    nothing_alive(&record)?;
    if by == By::Hand {
        carry_out(&folder, &mut record)?;
    } else if folder.intention().is_some() {
        return Err(Error::Refused(format!("somebody ended run {run} meanwhile")));
    }
    let may = match by {
        // Its question was answered, and a crash kept that out of the record.
        By::Boot if record.status == Status::NeedsInput => folder.questions()?.open().next().is_none(),
        By::Boot => matches!(record.status, Status::InProgress | Status::Error),
        By::Hand => !matches!(record.status, Status::Complete | Status::Cancelled | Status::Stopped),
    };
    if !may {
        let name = record.status.name();
        return Err(Error::Refused(format!(
            "run {run} ended deliberately ({name}): start a new one ('waybill run')"
        )));
    }
    if record.holds_secret {
        return Err(Error::Refused(format!(
            "the command line of run {run} holds a secret, which is not stored: give it again with 'waybill \
             run --resume {run} -- CMD', or in a variable named by --require-env"
        )));
    }
    let project = Project::at(&record.project);
    let point = folder.resume_point()?;
    match (&point, find(&project, run, point.as_ref())?) {
        (Some(_), Some(Found { state, against: None })) => {
            if state.run_closed {
                return Err(closed(run));
            }
        }
        (Some(_), Some(Found { against: Some(Against::Anchor(line)), .. })) => {
            return Err(Error::Refused(line));
        }
        (Some(ResumePoint { entries, head }), _) => {
            return Err(Error::Refused(format!(
                "the ledger of run {run} does not hold up to its resume point, {entries} entries and head {head}: \
                 'waybill ledger verify {run}' says why"
            )));
        }
        (None, _) => {
            return Err(Error::Refused(format!(
                "run {run} has no resume point: it never got to its first transition; start a new one"
            )));
        }
    }
    Ok((folder, lock, record, From::Resume))
}

fn closed(run: &RunId) -> Error {
    Error::Refused(format!("run {run} is closed in its ledger, and stays so: start a new one"))
}

fn take(folder: &RunFolder, run: &RunId) -> Result<Lock, Error> {
    folder.lock().map_err(|error| match error {
        registry::Error::Lock(crate::lock::LockError::Held { holder, .. }) => {
            Error::Refused(format!("run {run} is supervised already, by {holder}"))
        }
        error => error.into(),
    })
}

/// Refuses a second copy beside an orphan.
fn nothing_alive(record: &Record) -> Result<(), Error> {
    let group = record.child.as_ref().map(|child| Table::read().group_of(child)).unwrap_or_default();
    match group.first() {
        None => Ok(()),
        Some(process) => Err(Error::Refused(format!(
            "run {} is still running without its supervisor, as process {}: 'waybill jobs stop {0}' ends it",
            record.run, process.pid
        ))),
    }
}

/// Carries out an intent that was recorded before a crash.
fn carry_out(folder: &RunFolder, record: &mut Record) -> Result<(), Error> {
    match folder.intention() {
        Some(intention) if record.status.is_live() => settle(folder, record, &intention, false).map(drop),
        Some(_) => Ok(folder.remove_intention()?),
        None => Ok(()),
    }
}

/// The first entries and events of a start.
fn begin(
    project: &Project,
    record: &Record,
    book: &mut Book,
    from: From,
    scrubber: &Scrubber,
) -> Result<(), Error> {
    let run = &record.run;
    let (scrubbed, _) = scrubber.scrub_args(&record.command);
    let command = Object::of([("command", command_value(&scrubbed))]);
    if from == From::Nothing {
        book.transition("run.open", "", Object::of([("run_id", Value::from(run.as_str()))]))?;
        book.transition("task.scheduled", MAIN, command.clone())?;
    } else {
        let state = replay(project, run)?.unwrap_or_default();
        anchoring::record_resume(project, run, &mut book.ledger, &state, MAIN)?;
        if !state.tasks.contains(MAIN) {
            book.transition("task.scheduled", MAIN, command.clone())?;
        }
    }
    let mut fields = command;
    fields.insert("resumed".into(), Value::from(from == From::Resume));
    book.event("run.started", &fields)?;
    Ok(())
}

/// The signals that mean something here, as a descriptor. Children get none of them blocked.
fn block_signals() -> Result<SignalFd, Error> {
    let mut set = SigSet::empty();
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGQUIT, Signal::SIGUSR1] {
        set.add(signal);
    }
    // Under nohup a hang-up is ignored, and stays so.
    if !hang_up_is_ignored() {
        set.add(Signal::SIGHUP);
    }
    set.thread_block().map_err(system("can't block signals"))?;
    SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)
        .map_err(system("can't wait for signals"))
}

fn hang_up_is_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

/// The intent that a signal to the supervisor stands for: Ctrl-C is somebody's word, the rest is not.
pub(super) fn intent_of(signal: Signal) -> Option<Intent> {
    (signal == Signal::SIGINT).then_some(Intent::Interrupt)
}
