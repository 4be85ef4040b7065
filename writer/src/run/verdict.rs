//! What happens to a stalled run or worker: a verdict in the journal, a signed receipt, then what
//! `--on-stall` says.
//!
//! The window of the receipt ends with the verdict, whatever is recorded while the child is ended.

use nix::sys::signal::Signal;
use waybill_verifier::json::{Object, Value};
use waybill_verifier::receipt::{Action, StallReason};

use super::ending::Cause;
use super::policy::{OnStall, show_time};
use super::stall::{Stall, decide};
use super::stop::Then;
use super::supervisor::Supervisor;
use crate::cli::exit::chain;
use crate::clock;
use crate::master::KeyFile;
use crate::receipt::{self, Request};
use crate::registry::{Intent, Intention};

impl Supervisor<'_> {
    /// Judges who has been silent for too long.
    pub(super) fn judge(&mut self, now: u64) {
        let mut stalls = decide(&self.watch, now);
        if stalls.is_empty() {
            return;
        }
        let auto = self.record.policy.on_stall == OnStall::Auto;
        for stall in &mut stalls {
            if auto && self.respawns == 0 {
                stall.reason = StallReason::RespawnBudgetExhausted;
            }
        }
        let mut judged = Vec::new();
        for stall in stalls {
            let subject = match &stall.worker {
                Some(name) => self.watch.workers.get_mut(name),
                None => Some(&mut self.watch.run),
            };
            if let Some(subject) = subject {
                subject.reported = true;
            }
            self.dirty = true;
            let who = stall.worker.as_deref().map_or(String::from("it"), |name| format!("worker {name}"));
            let silent = show_time(std::time::Duration::from_millis(stall.silent));
            (self.say)(&format!("run {}: stalled: {who} has been silent for {silent}", self.record.run));
            match self.verdict(&stall) {
                Ok(events) => judged.push((stall, events)),
                Err(error) => self.tell_problems(&[error]),
            }
        }
        match self.record.policy.on_stall {
            OnStall::Report => {
                for (stall, events) in &judged {
                    self.receipt(stall, *events);
                }
            }
            OnStall::Stop => {
                let intention = Intention { intent: Intent::Policy, reason: String::from("a stall") };
                if let Err(error) = self.folder.write_intention(&intention) {
                    self.tell_problems(&[error.into()]);
                }
                self.stop(Cause::Intent(Intent::Policy), Signal::SIGTERM, Then::EndWithReceipts(judged));
            }
            OnStall::Auto => {
                let actions: Vec<_> =
                    judged.iter().filter_map(|(stall, events)| self.receipt(stall, *events)).collect();
                self.act(&actions);
            }
        }
    }

    /// Takes the recommended action, as far as it is a supervisor's.
    fn act(&mut self, actions: &[Action]) {
        if actions.contains(&Action::Park) {
            (self.say)(&format!("run {}: no respawns are left; it is paused", self.record.run));
            self.intend(Intent::Pause, "no respawns are left", Signal::SIGTERM);
        } else if actions.contains(&Action::Respawn) && self.respawns > 0 {
            self.respawns -= 1;
            (self.say)(&format!("run {}: its command is started again", self.record.run));
            self.stop(Cause::Itself, Signal::SIGTERM, Then::Respawn);
        }
    }

    /// Records the verdict, and the last heartbeat before it; gives how many events there are then.
    fn verdict(&mut self, stall: &Stall) -> Result<u64, super::Error> {
        let now = self.now();
        let subject =
            stall.worker.as_ref().and_then(|name| self.watch.workers.get(name)).unwrap_or(&self.watch.run);
        let name = stall.worker.as_deref().unwrap_or_default();
        let (session, worktree) = (subject.session.clone(), subject.worktree.clone());
        let seconds = |millis: u64| Value::Float((std::time::Duration::from_millis(millis)).as_secs_f64());
        let beat = subject.beat.filter(|beat| subject.event.is_none_or(|event| event <= *beat));
        if let Some(beat) = beat {
            let fields =
                Object::of([("worker", Value::from(name)), ("before_s", seconds(now.saturating_sub(beat)))]);
            self.book.event("worker.heartbeat", &fields)?;
        }
        let fields = Object::of([
            ("worker", Value::from(name)),
            ("session", Value::from(session)),
            ("worktree", Value::from(worktree)),
            ("reason", Value::from(stall.reason.name())),
            ("silent_s", seconds(stall.silent)),
            ("limit_s", seconds(self.watch.limit)),
            ("on_stall", Value::from(self.record.policy.on_stall.name())),
        ]);
        let event = self.book.event("stall.verdict", &fields)?;
        Ok(event.index + 1)
    }

    /// Signs the receipt of a stall; gives its recommended action.
    pub(super) fn receipt(&mut self, stall: &Stall, events: u64) -> Option<Action> {
        let subject =
            stall.worker.as_ref().and_then(|name| self.watch.workers.get(name)).unwrap_or(&self.watch.run);
        let request = Request {
            run: self.record.run.clone(),
            worker: stall.worker.clone().unwrap_or_else(|| String::from(super::book::MAIN)),
            session: subject.session.clone(),
            worktree: subject.worktree.clone(),
            reason: stall.reason,
            budget: self.respawns,
            timestamp: clock::micros() / 1_000_000,
            fork_step: self.last_snapshot(events),
            extra: None,
            events: Some(events),
        };
        match receipt::emit(&self.project, &KeyFile::of_environment(), &request, clock::timestamp()) {
            Ok(emitted) => {
                if let Some(path) = &emitted.key_made {
                    (self.say)(&format!("made the HMAC key {}: back it up", path.display()));
                }
                (self.say)(&format!(
                    "run {}: receipt {}: {}, {}",
                    self.record.run,
                    emitted.id,
                    emitted.binding.stall_reason.name(),
                    emitted.binding.recommended_action.name()
                ));
                Some(emitted.binding.recommended_action)
            }
            Err(error) => {
                (self.say)(&format!("run {}: no receipt: {}", self.record.run, chain(&error)));
                None
            }
        }
    }

    /// The last snapshot's step, if one was taken before the stall and its ref is there.
    fn last_snapshot(&self, events: u64) -> Option<u64> {
        let mut last = None;
        let visit = |event: &waybill_verifier::journal::Event, _| {
            if event.index < events
                && let Some(snapshot) = event.snapshot()
            {
                last = Some((snapshot.step, snapshot.sha.to_owned()));
            }
        };
        crate::journal::walk(&self.project, &self.record.run, visit).ok()??;
        let (step, sha) = last?;
        let worktree = crate::worktree::Worktree::at(self.project.root()).ok()?;
        (worktree.snapshot(&self.record.run, step).ok()?.as_deref() == Some(sha.as_str())).then_some(step)
    }
}
