//! What a run's processes say, recorded and answered: all that has arrived, with one sync.

use waybill_verifier::chain::MAX_LINE;
use waybill_verifier::json::{self, Object, Value};
use waybill_verifier::receipt::LastEvents;

use super::server::Line;
use super::stall::Sign;
use super::supervisor::{LONE, Supervisor};
use super::wire::{self, Message, Said, Who};
use crate::durable::{self, Sync};
use crate::registry::{Question, Status};
use crate::{clock, journal, snapshot, worktree};

/// What is answered to a line once the batch is on disk.
enum Reply {
    Now(Object),
    Transition(usize),
    Event(usize),
}

/// The lines of one turn.
#[derive(Default)]
struct Batch {
    replies: Vec<(u64, Reply)>,
    transitions: Vec<crate::log::Transition>,
    events: Vec<(String, Object)>,
}

impl Supervisor<'_> {
    /// Hears these clients; gives how many lines they sent.
    pub(super) fn serve(&mut self, ids: &[u64]) -> usize {
        let mut batch = Batch::default();
        let now = self.now();
        let mut beats = false;
        for &id in ids {
            for line in self.server.read(id) {
                let said = match line {
                    Line::TooLong => Err(format!("longer than {MAX_LINE} bytes")),
                    Line::Text(text) => wire::read(&self.scrubber, &self.record.run, &text),
                };
                match said {
                    Err(reason) => batch.replies.push((id, Reply::Now(error(reason)))),
                    Ok(said) => {
                        beats |= matches!(said.message, Message::Heartbeat { .. });
                        self.take(id, said, &mut batch, now);
                    }
                }
            }
        }
        self.forget_askers(now);
        if beats {
            self.write_liveness(now);
        }
        let lines = batch.replies.len();
        self.commit(batch);
        lines
    }

    fn take(&mut self, id: u64, said: Said, batch: &mut Batch, now: u64) {
        let Said { who, message, cost } = said;
        self.spent += cost;
        let reply = match message {
            Message::Transition(transition) => {
                self.alive(&who, Sign::Event, now);
                batch.transitions.push(transition);
                Reply::Transition(batch.transitions.len() - 1)
            }
            Message::Event { name, fields } => {
                self.alive(&who, Sign::Event, now);
                batch.events.push((name, fields));
                Reply::Event(batch.events.len() - 1)
            }
            Message::Heartbeat { done } => {
                self.alive(&who, Sign::Heartbeat, now);
                if let (true, Some(worker)) = (done, &who.worker)
                    && let Some(worker) = self.watch.workers.get_mut(worker)
                {
                    worker.done = true;
                }
                Reply::Now(Object::of([("heartbeat", Value::from(true))]))
            }
            Message::Ask(text) => {
                self.alive(&who, Sign::Event, now);
                Reply::Now(self.ask(id, &text, &who).unwrap_or_else(error))
            }
            Message::Answer { question, text } => {
                Reply::Now(self.answer(&question, &text, now).unwrap_or_else(error))
            }
            Message::Snapshot { step } => {
                self.alive(&who, Sign::Event, now);
                Reply::Now(self.snapshot(step).unwrap_or_else(error))
            }
            Message::Decision(fields) => {
                let recorded = self.book.event("boot.decision", &fields);
                Reply::Now(
                    recorded.map_or_else(|problem| error(problem.to_string()), |event| acknowledged(&event)),
                )
            }
        };
        batch.replies.push((id, reply));
    }

    fn alive(&mut self, who: &Who, sign: Sign, now: u64) {
        self.watch.sign(who.worker.as_deref(), sign, now);
        if let Some(worker) = who.worker.as_ref().and_then(|name| self.watch.workers.get_mut(name)) {
            if let Some(session) = &who.session {
                worker.session.clone_from(session);
            }
            if let Some(worktree) = &who.worktree {
                worker.worktree.clone_from(worktree);
            }
            self.dirty = true;
        }
    }

    /// Records a turn's lines, then answers them.
    fn commit(&mut self, batch: Batch) {
        let transitions = match batch.transitions.is_empty() {
            true => Ok(Vec::new()),
            false => self
                .book
                .ledger
                .append(&batch.transitions, Sync::Data)
                .map_err(|e| crate::cli::exit::chain(&e)),
        };
        let drafts = batch.events.iter().map(|(name, fields)| (name.as_str(), fields));
        let events = match batch.events.is_empty() {
            true => Ok(Vec::new()),
            false => self
                .book
                .journal
                .append_all(drafts, clock::seconds(), Sync::Data)
                .map_err(|problem| crate::cli::exit::chain(&problem)),
        };
        for (id, reply) in batch.replies {
            let answer = match reply {
                Reply::Now(answer) => answer,
                Reply::Transition(at) => match &transitions {
                    Ok(recorded) => Object::of([
                        ("seq", Value::from(recorded[at].seq)),
                        ("entry_hash", Value::from(recorded[at].entry_hash.to_hex())),
                    ]),
                    Err(reason) => error(reason.clone()),
                },
                Reply::Event(at) => match &events {
                    Ok(recorded) => match &recorded[at] {
                        Ok(event) => acknowledged(event),
                        Err(refused) => error(refused.to_string()),
                    },
                    Err(reason) => error(reason.clone()),
                },
            };
            self.server.answer(id, &Value::from(answer));
        }
    }

    /// Parks the run on a question. One that was asked before its asker died is the same question:
    /// its answer, if it came meanwhile, is given at once, and once only.
    fn ask(&mut self, id: u64, text: &str, who: &Who) -> Result<Object, String> {
        let worker = who.worker.clone().unwrap_or_default();
        let waiting =
            |question: &str, askers: &[(u64, String)]| askers.iter().any(|(_, other)| other == question);
        let before = self.questions.list.iter().position(|question| {
            !question.settled
                && question.text == text
                && question.worker == worker
                && !waiting(&question.id, &self.askers)
        });
        let question = match before {
            Some(at) => self.questions.list[at].id.clone(),
            None => {
                let question = Question {
                    id: self.questions.next_id(),
                    text: text.to_owned(),
                    worker,
                    asked: clock::micros() / 1_000_000,
                    answer: None,
                    settled: false,
                };
                let fields = Object::of([
                    ("question", Value::from(question.id.as_str())),
                    ("text", Value::from(text)),
                    ("worker", Value::from(question.worker.as_str())),
                ]);
                self.book.event("run.asked", &fields).map_err(|problem| problem.to_string())?;
                self.questions.list.push(question.clone());
                question.id
            }
        };
        self.lone.retain(|(lone, _)| *lone != question);
        self.askers.push((id, question.clone()));
        self.park()?;
        self.deliver();
        Ok(Object::of([("question", Value::from(question))]))
    }

    /// Takes an answer to an open question.
    fn answer(&mut self, id: &str, text: &str, now: u64) -> Result<Object, String> {
        let open = self.questions.list.iter_mut().find(|question| question.id == id);
        let Some(question) = open else { return Err(format!("there is no question {id}")) };
        if question.answer.is_some() || question.settled {
            return Err(format!("question {id} is not open any more: the answer came too late"));
        }
        question.answer = Some(text.to_owned());
        let fields = Object::of([("question", Value::from(id)), ("answer", Value::from(text))]);
        self.book.event("run.answered", &fields).map_err(|problem| problem.to_string())?;
        self.park()?;
        self.watch.sign(None, Sign::Event, now);
        self.deliver();
        Ok(Object::of([("answered", Value::from(id))]))
    }

    /// Writes down what is open, and whether the run waits for it.
    fn park(&mut self) -> Result<(), String> {
        let parked = self.questions.open().next().is_some();
        let status = if parked { Status::NeedsInput } else { Status::InProgress };
        let written = self.folder.write_questions(&self.questions).and_then(|()| {
            if self.record.status == status {
                return Ok(());
            }
            self.record.status = status;
            self.folder.write_record(&self.record)
        });
        self.watch.park(parked, self.now());
        written.map_err(|problem| problem.to_string())
    }

    /// Hands answers to who waits for them.
    fn deliver(&mut self) {
        let mut delivered = false;
        for question in self.questions.list.iter_mut().filter(|question| !question.settled) {
            let Some(answer) = &question.answer else { continue };
            let Some(at) = self.askers.iter().position(|(_, id)| *id == question.id) else { continue };
            let (client, id) = self.askers.remove(at);
            let value = Object::of([("answer", Value::from(answer.as_str())), ("question", Value::from(id))]);
            self.server.answer(client, &Value::from(value));
            question.settled = true;
            delivered = true;
        }
        if delivered {
            drop(self.folder.write_questions(&self.questions));
        }
    }

    /// Notes which askers are gone.
    fn forget_askers(&mut self, now: u64) {
        let server = &self.server;
        let (there, gone): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.askers).into_iter().partition(|(id, _)| server.is_there(*id));
        self.askers = there;
        self.lone.extend(gone.into_iter().map(|(_, question)| (question, now)));
    }

    /// A question whose asker is gone while the run goes on is nobody's any more.
    pub(super) fn withdraw_lone(&mut self, now: u64) {
        if self.stopping.is_some() {
            return;
        }
        let (old, young): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.lone).into_iter().partition(|(_, since)| now >= since + LONE);
        self.lone = young;
        let mut withdrawn = false;
        for (id, _) in old {
            if let Some(question) = self.questions.list.iter_mut().find(|question| question.id == id) {
                question.settled = true;
                withdrawn = true;
                let fields = Object::of([("question", Value::from(id))]);
                drop(self.book.event("run.question_withdrawn", &fields));
            }
        }
        if withdrawn {
            drop(self.park());
        }
    }

    fn snapshot(&mut self, step: Option<u64>) -> Result<Object, String> {
        let taken = journal::walk(&self.project, &self.record.run, LastEvents::default());
        let taken = taken.map_err(|problem| problem.to_string())?;
        let taken = taken.map(|outcome| outcome.rows.visitor).unwrap_or_default();
        let run = &self.record.run;
        let done = snapshot::take(&self.project, run, &mut self.book.journal, &taken, step, clock::seconds());
        let done = done.map_err(|problem| match problem {
            snapshot::Error::Journal(problem) => problem.to_string(),
            snapshot::Error::Git(problem) => problem.to_string(),
        })?;
        Ok(Object::of([
            ("snapshot_sha", Value::from(done.commit.as_str())),
            ("step_index", Value::from(done.step)),
            ("ref", Value::from(worktree::reference(run, done.step))),
            ("index", Value::from(done.event.map(|event| event.index))),
        ]))
    }

    /// Writes the workers' last signs of life, for who looks from outside.
    pub(super) fn write_liveness(&mut self, now: u64) {
        let wall = clock::micros() / 1000;
        let at = |then: u64| wall.saturating_sub(now.saturating_sub(then));
        let workers = self.watch.workers.iter().map(|(name, worker)| {
            Value::from(Object::of([
                ("worker", Value::from(name.as_str())),
                ("session", Value::from(worker.session.as_str())),
                ("worktree", Value::from(worker.worktree.as_str())),
                ("last_ms", Value::from(at(worker.last))),
                ("heartbeat_ms", Value::from(worker.beat.map(at))),
                ("stalled", Value::from(worker.reported)),
                ("done", Value::from(worker.done)),
            ]))
        });
        let document = Object::of([
            ("workers", Value::from(workers.collect::<Vec<_>>())),
            ("last_ms", Value::from(at(self.watch.run.last))),
            ("heartbeat_ms", Value::from(self.watch.run.beat.map(at))),
            ("stalled", Value::from(self.watch.run.reported)),
        ]);
        // A sign of life that can't be written down is still one.
        drop(durable::replace_lightly(
            &self.folder.file("liveness.json"),
            &json::ascii(&Value::from(document)),
        ));
        (self.dirty, self.written) = (false, now);
    }
}

fn acknowledged(event: &journal::Recorded) -> Object {
    Object::of([("event_hash", Value::from(event.event_hash.to_hex())), ("index", Value::from(event.index))])
}

fn error(reason: impl Into<String>) -> Object {
    Object::of([("error", Value::from(reason.into()))])
}
