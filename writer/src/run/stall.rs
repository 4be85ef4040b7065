//! When a run or a worker counts as stalled: a pure function of signs of life and time.
//!
//! Times are milliseconds on one clock that does not count the machine's sleep. A worker is known
//! from its first line on, until it says that it is done. While workers are known, the run is as
//! alive as they are; a run without any has its output, events and heartbeats.

use std::collections::BTreeMap;

use waybill_verifier::receipt::StallReason;

/// A worker's signs of life.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Worker {
    /// Its session.
    pub session: String,
    /// Its working tree.
    pub worktree: String,
    /// When it last gave one.
    pub last: u64,
    /// When it last sent a heartbeat, if ever.
    pub beat: Option<u64>,
    /// When it last recorded something, if ever.
    pub event: Option<u64>,
    /// Whether this silence was reported.
    pub reported: bool,
    /// Whether it said that it is done.
    pub done: bool,
}

/// What is watched.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Watch {
    /// Silence of this length is a stall.
    pub limit: u64,
    /// The run itself: any sign of life counts.
    pub run: Worker,
    /// The workers by name.
    pub workers: BTreeMap<String, Worker>,
    /// Whether a question is not answered: who waits does not stall.
    pub parked: bool,
}

/// A sign of life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sign {
    /// It printed something.
    Output,
    /// It recorded something.
    Event,
    /// It said that it is there.
    Heartbeat,
}

/// Somebody stalled.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stall {
    /// The worker; none for the run.
    pub worker: Option<String>,
    /// How long it has been silent.
    pub silent: u64,
    /// Why it counts as stalled: it used to send heartbeats, or made no progress.
    pub reason: StallReason,
}

/// More names than this are not told apart.
pub const MAX_WORKERS: usize = 10_000;

impl Worker {
    fn new(now: u64) -> Worker {
        Worker {
            session: String::new(),
            worktree: String::new(),
            last: now,
            beat: None,
            event: None,
            reported: false,
            done: false,
        }
    }

    fn sign(&mut self, sign: Sign, now: u64) {
        self.last = self.last.max(now);
        self.reported = false;
        self.done = false;
        match sign {
            Sign::Output => {}
            Sign::Event => self.event = Some(now),
            Sign::Heartbeat => self.beat = Some(now),
        }
    }
}

impl Watch {
    /// A run that starts now.
    #[must_use]
    pub fn new(limit: u64, now: u64) -> Watch {
        Watch { limit, run: Worker::new(now), workers: BTreeMap::new(), parked: false }
    }

    /// Takes a sign of life of a worker, or of nobody in particular.
    pub fn sign(&mut self, worker: Option<&str>, sign: Sign, now: u64) {
        self.run.sign(sign, now);
        let Some(name) = worker else { return };
        if let Some(worker) = self.workers.get_mut(name) {
            worker.sign(sign, now);
        } else if self.workers.len() < MAX_WORKERS {
            let mut worker = Worker::new(now);
            worker.sign(sign, now);
            self.workers.insert(name.to_owned(), worker);
        }
    }

    /// Whoever waits for an answer is not silent: it all begins anew when the last one came.
    pub fn park(&mut self, parked: bool, now: u64) {
        if self.parked && !parked {
            self.forgive(now);
        }
        self.parked = parked;
    }

    /// Begins anew for everybody, as after the watcher itself was held up.
    pub fn forgive(&mut self, now: u64) {
        for worker in self.workers.values_mut().chain([&mut self.run]) {
            worker.last = worker.last.max(now);
        }
    }

    /// A fresh start of the command: its workers are gone.
    pub fn restart(&mut self, now: u64) {
        *self = Watch::new(self.limit, now);
    }

    /// Who is watched by itself: the workers that are not done, or the run if there is none.
    fn subjects(&self) -> impl Iterator<Item = (Option<&str>, &Worker)> {
        let alone = self.workers.values().all(|worker| worker.done);
        let workers = self.workers.iter().filter(|(_, worker)| !worker.done);
        let workers = workers.map(|(name, worker)| (Some(name.as_str()), worker));
        workers.chain(alone.then_some((None, &self.run)))
    }

    /// When somebody would count as stalled next, if nothing more is heard.
    #[must_use]
    pub fn deadline(&self) -> Option<u64> {
        if self.parked {
            return None;
        }
        let waiting = self.subjects().filter(|(_, worker)| !worker.reported);
        waiting.map(|(_, worker)| worker.last.saturating_add(self.limit)).min()
    }
}

/// Who counts as stalled now, and was not reported yet.
#[must_use]
pub fn decide(watch: &Watch, now: u64) -> Vec<Stall> {
    if watch.parked {
        return Vec::new();
    }
    let stalled = watch
        .subjects()
        .filter(|(_, worker)| !worker.reported && now.saturating_sub(worker.last) >= watch.limit);
    stalled
        .map(|(name, worker)| Stall {
            worker: name.map(str::to_owned),
            silent: now.saturating_sub(worker.last),
            reason: match worker.beat {
                Some(_) => StallReason::HeartbeatStale,
                None => StallReason::NoProgress,
            },
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(watch: &Watch, now: u64) -> Vec<String> {
        decide(watch, now).into_iter().map(|stall| stall.worker.unwrap_or_default()).collect()
    }

    #[test]
    fn silence_is_a_stall_at_the_limit_and_not_before() {
        let mut watch = Watch::new(100, 0);
        assert_eq!(watch.deadline(), Some(100));
        assert!(decide(&watch, 99).is_empty());
        assert_eq!(names(&watch, 100), [""]);
        for sign in [Sign::Output, Sign::Event, Sign::Heartbeat] {
            watch.sign(None, sign, 100);
            assert!(decide(&watch, 199).is_empty(), "{sign:?}");
        }
        assert_eq!(names(&watch, 200), [""]);
    }

    #[test]
    fn one_worker_s_silence_is_not_hidden_by_the_other_s_noise_nor_by_output() {
        let mut watch = Watch::new(100, 0);
        watch.sign(Some("a"), Sign::Event, 10);
        watch.sign(Some("b"), Sign::Heartbeat, 10);
        for now in [50, 100, 150] {
            watch.sign(Some("a"), Sign::Event, now);
            watch.sign(None, Sign::Output, now);
        }
        assert_eq!(watch.deadline(), Some(110));
        let stalls = decide(&watch, 160);
        assert_eq!(stalls.len(), 1);
        assert_eq!(stalls[0].worker.as_deref(), Some("b"));
        assert_eq!((stalls[0].silent, stalls[0].reason), (150, StallReason::HeartbeatStale));
    }

    #[test]
    fn a_silence_is_reported_once_and_again_after_a_sign_of_life() {
        let mut watch = Watch::new(100, 0);
        watch.run.reported = true;
        assert!(decide(&watch, 500).is_empty());
        assert_eq!(watch.deadline(), None);
        watch.sign(None, Sign::Output, 600);
        assert_eq!(names(&watch, 700), [""]);
        assert_eq!(decide(&watch, 700)[0].reason, StallReason::NoProgress);
    }

    #[test]
    fn who_waits_for_an_answer_or_is_done_does_not_stall() {
        let mut watch = Watch::new(100, 0);
        watch.park(true, 50);
        assert!(decide(&watch, 1000).is_empty());
        assert_eq!(watch.deadline(), None);
        watch.park(false, 1000);
        assert!(decide(&watch, 1099).is_empty());
        assert_eq!(names(&watch, 1100), [""]);
        watch.sign(Some("a"), Sign::Event, 1100);
        if let Some(worker) = watch.workers.get_mut("a") {
            worker.done = true;
        }
        // With every worker done, the run is watched by itself.
        assert_eq!(names(&watch, 1200), [""]);
    }
}
