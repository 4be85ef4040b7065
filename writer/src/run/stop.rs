//! Ending a child: a signal to its group, some grace, then KILL. Its group is signalled only before
//! the child is waited for, while the number can't be another's.

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use waybill_verifier::json::{Object, Value};

use super::ending::Cause;
use super::policy::{millis, show_time};
use super::stall::Stall;
use super::supervisor::Supervisor;
use crate::process::{Process, Table};

/// A child that is being ended.
#[derive(Debug)]
pub(super) struct Stopping {
    pub(super) cause: Cause,
    pub(super) then: Then,
    deadline: u64,
    forced: bool,
    /// Since when nothing of the child itself is left, and only its group is waited for.
    lingers: bool,
}

/// What comes after the child's end.
#[derive(Debug)]
pub(super) enum Then {
    /// The run's.
    End,
    /// The run's, after the receipts of these stalls.
    EndWithReceipts(Vec<(Stall, u64)>),
    /// Another start of the command.
    Respawn,
}

/// How often the remains of a group are looked for, in milliseconds.
const LOOK: u64 = 20;

impl Stopping {
    /// When there is something to do.
    pub(super) fn due(&self, now: u64) -> u64 {
        if self.forced || self.lingers { now + LOOK } else { self.deadline }
    }
}

impl Supervisor<'_> {
    /// Begins to end the child, or ends it for another cause than before.
    pub(super) fn stop(&mut self, cause: Cause, signal: Signal, then: Then) {
        if let Some(stopping) = &mut self.stopping {
            // Somebody's word counts more than a reboot's, or than another start.
            if matches!(cause, Cause::Intent(_)) {
                stopping.cause = cause;
                if !matches!(stopping.then, Then::EndWithReceipts(_)) {
                    stopping.then = then;
                }
            } else if matches!(stopping.then, Then::Respawn) {
                (stopping.cause, stopping.then) = (cause, then);
            }
            return;
        }
        let deadline = self.now().saturating_add(millis(self.record.policy.grace));
        self.stopping = Some(Stopping { cause, then, deadline, forced: false, lingers: false });
        self.signal_group(signal);
    }

    /// Ends the grace.
    pub(super) fn hurry(&mut self) {
        let now = self.now();
        if let Some(stopping) = &mut self.stopping {
            stopping.deadline = now;
        }
    }

    /// Goes on with ending the child; gives what was begun, once nothing of it is left.
    pub(super) fn proceed_stopping(&mut self, now: u64) -> Option<Stopping> {
        let exited = self.running.as_ref().is_none_or(|running| running.exited);
        let left = match (&self.running, exited) {
            (Some(running), true) => !Table::read().group_of(&running.process).is_empty(),
            (Some(_), false) => true,
            (None, _) => false,
        };
        if !left {
            return self.stopping.take();
        }
        let stopping = self.stopping.as_mut()?;
        stopping.lingers = exited;
        if now >= stopping.deadline {
            stopping.forced = true;
            self.signal_group(Signal::SIGKILL);
        }
        None
    }

    /// After the child's end: the run's, or another start. Gives the exit code of an end.
    pub(super) fn conclude(&mut self, stopping: Stopping) -> Option<u8> {
        if stopping.forced {
            (self.say)(&format!(
                "run {}: forced: it did not end within {}, and was killed",
                self.record.run,
                show_time(self.record.policy.grace)
            ));
        }
        match stopping.then {
            Then::End => Some(self.end(stopping.cause, stopping.forced)),
            Then::EndWithReceipts(stalls) => {
                for (stall, events) in &stalls {
                    self.receipt(stall, *events);
                }
                Some(self.end(stopping.cause, stopping.forced))
            }
            Then::Respawn => {
                self.reap();
                let fields = Object::of([("respawns_left", Value::from(self.respawns))]);
                if let Err(error) = self.book.event("run.respawned", &fields) {
                    self.tell_problems(&[error]);
                }
                let now = self.now();
                self.watch.restart(now);
                self.dirty = true;
                match self.spawn() {
                    Ok(()) => None,
                    Err((code, reason)) => {
                        (self.say)(&reason);
                        self.fail_to_start(code, &reason);
                        Some(code.unwrap_or(125))
                    }
                }
            }
        }
    }

    /// Signals all of the child's session.
    fn signal_group(&self, signal: Signal) {
        let Some(running) = &self.running else { return };
        signal_all(&running.process, signal, Unwaited::Yes);
    }

    /// Ends a child whose start could not be recorded.
    pub(super) fn kill_unrecorded(&mut self) {
        self.signal_group(Signal::SIGKILL);
        self.reap();
    }
}

/// Whether a founder is certainly not waited for yet, so that its number is its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unwaited {
    /// It is this process's child.
    Yes,
    /// It may be gone.
    Unknown,
}

/// Signals the session and group that a process founded. Only a child that was not waited for is
/// signalled by its group's number; everything else by descriptor and start time, one by one.
pub(crate) fn signal_all(founder: &Process, signal: Signal, unwaited: Unwaited) {
    if let (Unwaited::Yes, Ok(pid)) = (unwaited, i32::try_from(founder.pid)) {
        // Whoever is gone meanwhile needs no signal.
        let _gone_meanwhile = killpg(Pid::from_raw(pid), signal);
    }
    // What left the group (a shell's jobs do) and stayed in the session.
    for process in Table::read().group_of(founder) {
        let grouped = unwaited == Unwaited::Yes && is_grouped(&process, founder);
        if !grouped {
            let _gone_meanwhile = process.signal(signal);
        }
    }
}

fn is_grouped(process: &Process, founder: &Process) -> bool {
    let pid = i32::try_from(process.pid).ok().map(Pid::from_raw);
    let group = nix::unistd::getpgid(pid).ok().and_then(|group| u32::try_from(group.as_raw()).ok());
    group == Some(founder.pid)
}
