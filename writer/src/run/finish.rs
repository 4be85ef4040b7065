//! Writing down how a run ended: journal, ledger, resume point, record, in this order, so that what
//! a crash leaves is read rightly. A ledger that is closed counts as an end, whatever the record says;
//! an intent is forgotten last.

use waybill_verifier::json::{Object, Value};

use super::Error;
use super::book::{Book, MAIN};
use super::ending::{Cause, Outcome, Point, outcome};
use crate::clock;
use crate::log::Missing;
use crate::process::{Table, number};
use crate::project::Project;
use crate::registry::record::Ending;
use crate::registry::{Intention, Questions, Record, RunFolder, Status};

/// How a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct End {
    /// How its command did.
    pub ending: Ending,
    /// Why.
    pub cause: Cause,
    /// Whether it had to be killed.
    pub forced: bool,
}

/// Writes down how a run ended; the caller holds its lock. What can't be written is in the second
/// part, and does not keep the rest from being written.
pub fn finish(
    folder: &RunFolder,
    record: &mut Record,
    book: Result<&mut Book, Error>,
    questions: &mut Questions,
    end: &End,
) -> (Outcome, Vec<Error>) {
    let parked = questions.open().next().is_some();
    let outcome = outcome(end.ending, end.cause, parked);
    let mut problems = Vec::new();
    let mut point = None;
    match book {
        Err(error) => problems.push(error),
        Ok(book) => {
            problems.extend(write_book(book, end, &outcome).err());
            point = Some(book.point());
        }
    }
    let ended = outcome.point == Point::Deleted;
    let kept = match (ended, point) {
        (true, _) => folder.remove_resume_point(),
        (false, Some(point)) if folder.resume_point().is_ok_and(|old| old.is_some()) => {
            folder.write_resume_point(&point)
        }
        _ => Ok(()),
    };
    problems.extend(kept.err().map(Error::Registry));
    if ended && parked {
        for question in &mut questions.list {
            question.settled = true;
        }
        problems.extend(folder.write_questions(questions).err().map(Error::Registry));
    }
    record.status = outcome.status;
    record.ended = Some(clock::micros() / 1_000_000);
    record.ending = Some(end.ending);
    record.forced = end.forced;
    record.supervisor = None;
    record.socket = None;
    // What is left of the group may still be asked for.
    if record.child.as_ref().is_some_and(|child| Table::read().group_of(child).is_empty()) {
        record.child = None;
    }
    // A run that ended on purpose starts with fresh attempts, if it is ever resumed.
    if !matches!(outcome.status, Status::InProgress | Status::NeedsInput | Status::Error) {
        problems.extend(folder.write_attempts(0).err().map(Error::Registry));
    }
    problems.extend(folder.write_record(record).err().map(Error::Registry));
    problems.extend(folder.remove_intention().err().map(Error::Registry));
    (outcome, problems)
}

fn write_book(book: &mut Book, end: &End, outcome: &Outcome) -> Result<(), Error> {
    let mut fields = Object::default();
    let small = |number: i32| Value::from(u64::try_from(number).ok());
    match end.ending {
        Ending::Exited(code) => drop(fields.insert("exit_code".into(), small(code))),
        Ending::Killed(signal) => drop(fields.insert("signal".into(), small(signal))),
        Ending::Unseen => drop(fields.insert("unseen".into(), Value::from(true))),
    }
    match end.cause {
        Cause::Itself => {}
        Cause::Intent(intent) => drop(fields.insert("intent".into(), Value::from(intent.name()))),
        Cause::Asked(signal) => {
            drop(fields.insert("supervisor_signal".into(), small(number(signal))));
        }
    }
    fields.insert("forced".into(), Value::from(end.forced));
    fields.insert("status".into(), Value::from(outcome.status.name()));
    book.event("run.exit", &fields)?;
    fields.remove("status");
    if let Some(kind) = outcome.main {
        book.transition(kind, MAIN, fields)?;
    }
    if outcome.closes && !book.ledger.closed() {
        let reason = Object::of([("reason", Value::from(outcome.status.name()))]);
        book.transition("run.closed", "", reason)?;
    }
    Ok(())
}

/// Carries out, for a run of which nothing is alive, an intent that was recorded and whose end nobody
/// wrote down; the caller holds its lock.
///
/// # Errors
///
/// If the record can't be written.
pub fn settle(
    folder: &RunFolder,
    record: &mut Record,
    intention: &Intention,
    forced: bool,
) -> Result<Outcome, Error> {
    let project = Project::at(&record.project);
    let mut questions = folder.questions().unwrap_or_default();
    let mut book = match project.ledger(&record.run).exists() {
        true => Book::open(&project, &record.run, Missing::Refuse, |_| true),
        false => Err(Error::Refused(String::from("it has no ledger"))),
    };
    let ending = record.ending.unwrap_or(Ending::Unseen);
    let end = End { ending, cause: Cause::Intent(intention.intent), forced };
    let book = book.as_mut().map_err(|error| Error::Refused(error.to_string()));
    let (outcome, problems) = finish(folder, record, book, &mut questions, &end);
    let essential = problems.into_iter().find(|problem| matches!(problem, Error::Registry(_)));
    essential.map_or(Ok(outcome), Err)
}
