//! What is done to a run from outside: ending it, and answering it.
//!
//! Who wants a run to end records the intent, durably, and only then makes its supervisor look. Where
//! there is no supervisor any more, whoever takes the run's lock ends what is left and writes it down.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use waybill_verifier::chain::Unseen;
use waybill_verifier::journal::Profile;
use waybill_verifier::json::{Object, Value};

use super::Error;
use super::client::Client;
use super::finish::settle;
use super::stop::{Unwaited, signal_all};
use crate::clock;
use crate::durable::Sync;
use crate::journal::Journal;
use crate::lock::Wait;
use crate::process::{Process, Table};
use crate::project::Project;
use crate::registry::{self, Intent, Intention, Questions, Record, Registry, RunFolder, Status};

/// How a run was when somebody ended it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Was {
    /// Supervised.
    Running,
    /// Running, without a supervisor.
    Orphaned,
    /// Not running, and not ended either.
    Fallen,
    /// Ended before.
    Ended,
}

/// How a run stands now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ended {
    /// Its status.
    pub status: Status,
    /// Whether it had to be killed.
    pub forced: bool,
    /// How it was.
    pub was: Was,
}

/// How long a supervisor has for what is not the child's grace.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(20);

/// Ends a run: records the intent, and waits until it was carried out.
///
/// # Errors
///
/// If a file can't be written, or the supervisor does not answer.
pub fn end(registry: &Registry, record: &Record, intention: &Intention) -> Result<Ended, Error> {
    let folder = registry.run(&record.run);
    let deadline = Instant::now() + record.policy.grace + PATIENCE;
    let mut was = Was::Fallen;
    let mut asked = false;
    loop {
        let now = folder.record()?;
        let locked = folder.is_locked();
        if !now.status.is_live() && !locked {
            match ended(&folder, intention, was) {
                // Somebody starts it again at this moment.
                Err(Error::Registry(registry::Error::Lock(_))) => {
                    std::thread::sleep(LOOK);
                    continue;
                }
                done => return done,
            }
        }
        if !std::mem::replace(&mut asked, true) {
            folder.write_intention(intention)?;
        }
        match folder.lock() {
            Ok(_lock) => {
                let mut now = folder.record()?;
                if !now.status.is_live() {
                    continue;
                }
                let left = now.child.clone().filter(|child| !Table::read().group_of(child).is_empty());
                let forced = left.as_ref().is_some_and(|child| end_orphan(child, now.policy.grace));
                let was = if left.is_some() { Was::Orphaned } else { Was::Fallen };
                let outcome = settle(&folder, &mut now, intention, forced)?;
                return Ok(Ended { status: outcome.status, forced, was });
            }
            Err(registry::Error::Lock(crate::lock::LockError::Held { holder, .. })) => {
                was = Was::Running;
                if let Some(supervisor) = &now.supervisor {
                    // It may be stopped, by Ctrl-Z.
                    let _either = (supervisor.signal(Signal::SIGUSR1), supervisor.signal(Signal::SIGCONT));
                }
                if Instant::now() >= deadline {
                    return Err(Error::Refused(format!(
                        "the supervisor of run {}, {holder}, does not answer; the intent is recorded: it is carried \
                         out once that ends",
                        record.run
                    )));
                }
            }
            Err(error) => return Err(error.into()),
        }
        std::thread::sleep(LOOK);
    }
}

/// A run that is not live: it ended before, or just now; or it failed or was paused, and is to stay
/// down.
fn ended(folder: &RunFolder, intention: &Intention, was: Was) -> Result<Ended, Error> {
    let _lock = folder.lock()?;
    let mut record = folder.record()?;
    if record.status.is_live() {
        // It was started again before the lock was taken, and fell over since.
        folder.write_intention(intention)?;
        let outcome = settle(folder, &mut record, intention, false)?;
        return Ok(Ended { status: outcome.status, forced: false, was: Was::Fallen });
    }
    let wanted = Status::after(intention.intent);
    let again = match (record.status, intention.intent) {
        // A failed run would be resumed at the next boot, a paused one by hand.
        (Status::Error | Status::Paused, Intent::Stop | Intent::Interrupt | Intent::Policy) => true,
        (Status::Error, Intent::Pause) => true,
        (status, Intent::Archive) => status != Status::Archived && was != Was::Running,
        _ => false,
    };
    if !again || record.status == wanted {
        let was = if was == Was::Running { was } else { Was::Ended };
        if folder.intention().is_some() && !record.status.is_live() {
            folder.remove_intention()?;
        }
        return Ok(Ended { status: record.status, forced: record.forced && was == Was::Running, was });
    }
    if intention.intent == Intent::Archive && !matches!(record.status, Status::Error | Status::Paused) {
        // It is over: only its place in the list changes.
        record.status = Status::Archived;
        folder.write_record(&record)?;
        return Ok(Ended { status: Status::Archived, forced: false, was: Was::Ended });
    }
    folder.write_intention(intention)?;
    let outcome = settle(folder, &mut record, intention, false)?;
    Ok(Ended { status: outcome.status, forced: false, was: Was::Ended })
}

/// Ends what a dead supervisor left; says whether it had to be killed.
fn end_orphan(child: &Process, grace: Duration) -> bool {
    let gone = || Table::read().group_of(child).is_empty();
    signal_all(child, Signal::SIGTERM, Unwaited::Unknown);
    let deadline = Instant::now() + grace;
    while Instant::now() < deadline {
        if gone() {
            return false;
        }
        std::thread::sleep(LOOK);
    }
    let deadline = Instant::now() + PATIENCE;
    while !gone() && Instant::now() < deadline {
        signal_all(child, Signal::SIGKILL, Unwaited::Unknown);
        std::thread::sleep(LOOK);
    }
    true
}

/// Answers an open question of a run, alive or not; gives the question's id and whether the run is
/// alive to hear it.
///
/// # Errors
///
/// If there is no such open question, or it can't be written.
pub fn answer(
    registry: &Registry,
    record: &Record,
    question: Option<&str>,
    text: &str,
) -> Result<(String, bool), Error> {
    let folder = registry.run(&record.run);
    let deadline = Instant::now() + PATIENCE;
    loop {
        let id = which(&folder.questions()?, record, question)?;
        match folder.lock() {
            Ok(_lock) => {
                answer_dead(&folder, &id, text)?;
                return Ok((id, false));
            }
            Err(registry::Error::Lock(_)) => {
                let socket = folder.record()?.socket;
                if let Some(mut client) = socket.and_then(|path| Client::connect(&path).ok()) {
                    let line =
                        Object::of([("answer", Value::from(text)), ("question", Value::from(id.as_str()))]);
                    let answered =
                        client.patience(Some(PATIENCE)).and_then(|()| client.call(&Value::from(line)));
                    let said =
                        answered.map_err(super::system("the run's supervisor did not take the answer"))?;
                    return match said.get("error").and_then(Value::as_str) {
                        Some(reason) => Err(Error::Refused(reason.to_owned())),
                        None => Ok((id, true)),
                    };
                }
                if Instant::now() >= deadline {
                    return Err(Error::Refused(String::from("the run's supervisor does not answer")));
                }
            }
            Err(error) => return Err(error.into()),
        }
        std::thread::sleep(LOOK);
    }
}

/// Which open question is meant.
fn which(questions: &Questions, record: &Record, given: Option<&str>) -> Result<String, Error> {
    let run = &record.run;
    let open: Vec<_> = questions.open().collect();
    match (given, open.as_slice()) {
        (Some(id), open) if open.iter().any(|question| question.id == id) => Ok(id.to_owned()),
        (Some(id), _) => Err(Error::Refused(format!("question {id} of run {run} is not open (any more)"))),
        (None, [question]) => Ok(question.id.clone()),
        (None, []) => Err(Error::Refused(format!("run {run} has no open question"))),
        (None, open) => {
            let list: Vec<_> =
                open.iter().map(|question| format!("{} ({})", question.id, question.text)).collect();
            Err(Error::Refused(format!(
                "run {run} has several open questions: name one of {}",
                list.join(", ")
            )))
        }
    }
}

fn answer_dead(folder: &RunFolder, id: &str, text: &str) -> Result<(), Error> {
    let mut record = folder.record()?;
    let mut questions = folder.questions()?;
    let question = questions.list.iter_mut().find(|question| question.id == id);
    let Some(question) = question.filter(|question| question.answer.is_none() && !question.settled) else {
        return Err(Error::Refused(format!("question {id} is not open any more: the answer came too late")));
    };
    question.answer = Some(text.to_owned());
    let project = Project::at(&record.project);
    let mut journal = Journal::open(&project, &record.run, Profile::PyJsonV1, Wait::Yes, Unseen, |_| ())?;
    let fields = Object::of([("question", Value::from(id)), ("answer", Value::from(text))]);
    journal.append("run.answered", &fields, clock::seconds(), Sync::Data)?;
    folder.write_questions(&questions)?;
    if record.status == Status::NeedsInput && questions.open().next().is_none() {
        record.status = Status::InProgress;
        folder.write_record(&record)?;
    }
    Ok(())
}
