//! Watching a run: one loop that waits for whatever comes first.
//!
//! Nothing else touches the run's records while it lives. All lines that have arrived are recorded
//! with one sync; only then are they answered.

use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::process::Child;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use nix::sys::signalfd::SignalFd;

use super::book::Book;
use super::console::{self, Output};
use super::ending::Cause;
use super::finish::{End, finish};
use super::policy::millis;
use super::runtime;
use super::server::Server;
use super::stall::{Sign, Watch};
use super::start::{Io, intent_of};
use super::stop::{Stopping, Then};
use crate::lock::Lock;
use crate::process::Process;
use crate::project::Project;
use crate::redact::Scrubber;
use crate::registry::record::Ending;
use crate::registry::{Intent, Intention, Questions, Record, RunFolder};

/// A run that is watched.
pub(crate) struct Supervisor<'a> {
    pub(super) folder: RunFolder,
    pub(super) _lock: Lock,
    pub(super) record: Record,
    /// What is started: the record may have less of it.
    pub(super) command: Vec<String>,
    pub(super) project: Project,
    pub(super) book: Book,
    pub(super) scrubber: Arc<Scrubber>,
    pub(super) server: Server,
    pub(super) runtime: PathBuf,
    pub(super) signals: SignalFd,
    pub(super) running: Option<Running>,
    pub(super) watch: Watch,
    pub(super) questions: Questions,
    /// Who waits for which answer.
    pub(super) askers: Vec<(u64, String)>,
    /// Questions whose asker is gone, and since when.
    pub(super) lone: Vec<(String, u64)>,
    pub(super) stopping: Option<Stopping>,
    pub(super) output: Output,
    pub(super) zero: Instant,
    pub(super) spent: f64,
    /// How often the command may still be started again.
    pub(super) respawns: u64,
    /// Whether the next start of the command is not its first.
    pub(super) resumes: bool,
    /// Whether the liveness file is behind, and when it was written.
    pub(super) dirty: bool,
    pub(super) written: u64,
    /// When the loop last looked at all that waits.
    pub(super) looked: u64,
    /// When the resume point was last brought up to date.
    pub(super) refreshed: u64,
    pub(super) io: Io,
    pub(super) say: &'a dyn Fn(&str),
}

/// A child that was started.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) child: Child,
    pub(super) process: Process,
    pub(super) pidfd: OwnedFd,
    pub(super) readers: Vec<JoinHandle<()>>,
    /// Whether it ended; it is not waited for yet, so its number is still its own.
    pub(super) exited: bool,
}

/// How often the resume point follows the ledger's head, in milliseconds.
const REFRESH: u64 = 30_000;
/// The liveness file is at most this far behind, in milliseconds.
const BEHIND: u64 = 1000;
/// A loop that comes this much too late, in milliseconds, was held up itself and judges nobody.
const HELD_UP: u64 = 2000;
/// How long what an ended child left in its pipes is waited for.
const DRAIN: Duration = Duration::from_secs(2);
/// Who asked and is gone has this long to be gone because the whole run is, in milliseconds.
pub(super) const LONE: u64 = 2000;

/// What woke the loop.
#[derive(Default)]
struct Woken {
    signal: bool,
    exited: bool,
    connects: bool,
    readable: Vec<u64>,
}

impl Supervisor<'_> {
    /// Milliseconds on the run's clock.
    pub(super) fn now(&self) -> u64 {
        millis(self.zero.elapsed())
    }

    /// Watches the run to its end; gives the exit code.
    pub(super) fn watch(mut self) -> u8 {
        // An intent that was recorded before this process could be signalled.
        self.look_for_intent();
        self.looked = self.now();
        loop {
            let due = self.due();
            let woken = self.wait(due);
            let now = self.now();
            if now > due.saturating_add(HELD_UP) {
                // This process was held up: everybody gets some more time to be heard.
                let more = HELD_UP.min(self.watch.limit);
                self.watch.forgive((now + more).saturating_sub(self.watch.limit));
            }
            // What was said before this moment is heard before anybody is judged by it.
            self.looked = now;
            if woken.signal {
                self.take_signals();
            }
            let mut readable = woken.readable;
            if woken.connects {
                readable.extend(self.server.accept());
            }
            self.serve(&readable);
            if woken.exited
                && let Some(running) = &mut self.running
            {
                running.exited = true;
                // What it said last is heard to the end.
                loop {
                    self.server.accept();
                    let all: Vec<u64> = self.server.clients().map(|(id, ..)| id).collect();
                    if self.serve(&all) == 0 {
                        break;
                    }
                }
            }
            if let Some(code) = self.proceed() {
                return code;
            }
            self.server.flush();
        }
    }

    /// Does what is due; the exit code, once the run has ended.
    fn proceed(&mut self) -> Option<u8> {
        let now = self.now();
        let printed = self.output.last();
        if printed > self.watch.run.last {
            self.watch.sign(None, Sign::Output, printed);
        }
        let exited = self.running.as_ref().is_none_or(|running| running.exited);
        if self.stopping.is_some() {
            if let Some(stopping) = self.proceed_stopping(now) {
                return self.conclude(stopping);
            }
        } else if exited {
            return Some(self.end(Cause::Itself, false));
        } else {
            self.hold_to_policy(now);
            self.judge(self.looked);
        }
        self.withdraw_lone(now);
        if self.dirty && now >= self.written.saturating_add(BEHIND) {
            self.write_liveness(now);
        }
        if now >= self.refreshed.saturating_add(REFRESH) {
            self.refreshed = now;
            let point = self.book.point();
            if self.folder.resume_point().is_ok_and(|old| old != Some(point)) {
                drop(self.folder.write_resume_point(&point));
            }
        }
        None
    }

    /// When the loop has to look again by itself.
    fn due(&self) -> u64 {
        let now = self.now();
        let ceiling = self.record.policy.ceiling.filter(|_| self.stopping.is_none()).map(millis);
        let lone = self.lone.iter().map(|(_, since)| since + LONE).min();
        let stall = if self.stopping.is_none() { self.watch.deadline() } else { None };
        // Output is noticed when the loop looks, so a silence is only judged with the latest of it.
        let stall = stall.map(|at| at.max(self.stall_after_output(at)));
        [
            stall,
            ceiling,
            lone,
            self.stopping.as_ref().map(|stopping| stopping.due(now)),
            self.dirty.then_some(self.written + BEHIND),
            (self.book.point().entries > 0).then_some(self.refreshed + REFRESH),
            // Output does not wake the loop: where it would end a silence, it is looked for.
            (self.watch.run.reported && self.stopping.is_none())
                .then_some(now + (self.watch.limit / 4).clamp(10, 1000)),
        ]
        .into_iter()
        .flatten()
        .min()
        .unwrap_or(now + REFRESH)
    }

    fn stall_after_output(&self, at: u64) -> u64 {
        let alone = self.watch.workers.values().all(|worker| worker.done);
        if alone { self.output.last().saturating_add(self.watch.limit) } else { at }
    }

    /// Waits for something, at most until `due`.
    fn wait(&self, due: u64) -> Woken {
        let left = due.saturating_sub(self.now()).min(u64::from(u16::MAX));
        let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
        let mut fds = vec![
            PollFd::new(self.signals.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.server.listener(), PollFlags::POLLIN),
        ];
        let pidfd = self.running.as_ref().filter(|running| !running.exited).map(|running| &running.pidfd);
        if let Some(pidfd) = pidfd {
            fds.push(PollFd::new(pidfd.as_fd(), PollFlags::POLLIN));
        }
        let first = fds.len();
        let mut ids = Vec::new();
        for (id, fd, reads, writes) in self.server.clients() {
            let mut flags = PollFlags::empty();
            flags.set(PollFlags::POLLIN, reads);
            flags.set(PollFlags::POLLOUT, writes);
            ids.push(id);
            fds.push(PollFd::new(fd, flags));
        }
        // An interrupted wait is one that found nothing.
        let _interrupted = poll(&mut fds, timeout);
        let ready = |fd: &PollFd<'_>| fd.any().unwrap_or(false);
        Woken {
            signal: ready(&fds[0]),
            connects: ready(&fds[1]),
            exited: pidfd.is_some() && ready(&fds[2]),
            readable: ids
                .into_iter()
                .zip(&fds[first..])
                .filter(|(_, fd)| ready(fd))
                .map(|(id, _)| id)
                .collect(),
        }
    }

    fn take_signals(&mut self) {
        while let Ok(Some(signal)) = self.signals.read_signal() {
            let number = i32::try_from(signal.ssi_signo).unwrap_or(0);
            let Ok(signal) = Signal::try_from(number) else { continue };
            if signal == Signal::SIGUSR1 {
                self.look_for_intent();
            } else if self
                .stopping
                .as_ref()
                .is_some_and(|stopping| stopping.cause == Cause::Intent(Intent::Interrupt))
                && signal == Signal::SIGINT
            {
                // The second Ctrl-C does not wait.
                self.hurry();
            } else if let Some(intent) = intent_of(signal) {
                self.intend(intent, "Ctrl-C", Signal::SIGINT);
            } else {
                self.stop(Cause::Asked(signal), Signal::SIGTERM, Then::End);
            }
        }
    }

    /// Records an intent of this process's own, and carries it out.
    pub(super) fn intend(&mut self, intent: Intent, reason: &str, signal: Signal) {
        let intention = Intention { intent, reason: reason.to_owned() };
        if let Err(error) = self.folder.write_intention(&intention) {
            self.tell_problems(&[error.into()]);
        }
        self.stop(Cause::Intent(intent), signal, Then::End);
    }

    fn look_for_intent(&mut self) {
        if let Some(intention) = self.folder.intention() {
            self.stop(Cause::Intent(intention.intent), Signal::SIGTERM, Then::End);
        }
    }

    fn hold_to_policy(&mut self, now: u64) {
        if self.record.policy.ceiling.is_some_and(|ceiling| now >= millis(ceiling)) {
            (self.say)(&format!("run {} reached its ceiling, and is stopped", self.record.run));
            self.intend(Intent::Policy, "ceiling", Signal::SIGTERM);
        } else if self.record.policy.budget.is_some_and(|budget| self.spent > budget) {
            (self.say)(&format!("run {} went over its budget, and is stopped", self.record.run));
            self.intend(Intent::Policy, "budget", Signal::SIGTERM);
        }
    }

    /// Waits for the ended child, and writes down how the run ended.
    pub(super) fn end(&mut self, cause: Cause, forced: bool) -> u8 {
        let ending = self.reap();
        // What was to end and ended by itself before the signal: a good end is one, any other was meant.
        let cause = match (cause, ending, self.folder.intention()) {
            (Cause::Itself, Ending::Exited(0), _) | (_, _, None) => cause,
            (_, _, Some(intention)) => Cause::Intent(intention.intent),
        };
        let end = End { ending, cause, forced };
        let (outcome, problems) =
            finish(&self.folder, &mut self.record, Ok(&mut self.book), &mut self.questions, &end);
        self.tell_problems(&problems);
        self.server.flush();
        runtime::remove(&self.runtime);
        if self.dirty {
            self.write_liveness(self.now());
        }
        outcome.exit
    }

    /// Waits for the ended child: from here on its number may be another's.
    pub(super) fn reap(&mut self) -> Ending {
        use std::os::unix::process::ExitStatusExt;
        let Some(mut running) = self.running.take() else { return Ending::Unseen };
        console::drain(std::mem::take(&mut running.readers), DRAIN);
        match running.child.wait() {
            Ok(status) => match (status.code(), status.signal()) {
                (Some(code), _) => Ending::Exited(code),
                (None, Some(signal)) => Ending::Killed(signal),
                (None, None) => Ending::Unseen,
            },
            Err(_) => Ending::Unseen,
        }
    }
}
