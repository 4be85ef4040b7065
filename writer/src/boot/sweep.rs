//! A sweep over the runs of this machine: everything is decided first, then done one by one.

use std::time::Duration;

use waybill_verifier::chain::Unseen;
use waybill_verifier::journal::Profile;
use waybill_verifier::json::{Object, Value};

use super::decide::{Decision, decide, reason};
use super::facts::gather;
use crate::clock;
use crate::durable::Sync;
use crate::journal::Journal;
use crate::lock::Wait;
use crate::process::Table;
use crate::project::Project;
use crate::registry::{self, Entry, Record, Registry};
use crate::run::client::Client;

/// What is decided on a candidate.
#[derive(Clone, PartialEq, Debug)]
pub enum Candidate {
    /// A run.
    Run {
        /// Its record.
        record: Box<Record>,
        /// What becomes of it.
        decision: Decision,
        /// Why.
        reason: String,
    },
    /// A folder whose record can't be believed; it is kept.
    Damaged {
        /// Its name.
        name: String,
        /// What is wrong.
        reason: String,
    },
}

impl Candidate {
    /// The run's name.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Candidate::Run { record, .. } => record.run.as_str(),
            Candidate::Damaged { name, .. } => name,
        }
    }
}

/// Decides on all candidates; writes nothing. `needs` are variables that every run needs.
///
/// # Errors
///
/// If the runs can't be listed.
pub fn plan(registry: &Registry, needs: &[String]) -> Result<Vec<Candidate>, registry::Error> {
    let table = Table::read();
    let entries = registry.list()?.into_iter();
    Ok(entries
        .map(|entry| match entry {
            Entry::Run(record) => {
                let facts = gather(registry, &table, &record, needs);
                let decision = decide(&facts);
                let reason = reason(&facts, &decision);
                Candidate::Run { record, decision, reason }
            }
            Entry::Damaged { name, reason } => Candidate::Damaged { name, reason },
        })
        .collect())
}

/// What became of a run that was to go on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Done {
    /// It made its first durable transition.
    Started,
    /// It has not yet, and goes on: the sweep does not wait any longer.
    NotYet,
    /// It could not be started.
    Failed(String),
    /// Its facts changed meanwhile.
    Changed(Decision, String),
}

/// Continues one run: reads its facts again, spends an attempt, and only then starts it.
pub fn proceed(
    registry: &Registry,
    record: &Record,
    needs: &[String],
    start: impl FnOnce(&Record) -> Result<Done, String>,
) -> Done {
    let folder = registry.run(&record.run);
    let record = match folder.record() {
        Ok(record) => record,
        Err(error) => return Done::Failed(error.to_string()),
    };
    let facts = gather(registry, &Table::read(), &record, needs);
    let decision = decide(&facts);
    let Decision::Continue(attempt) = decision else {
        let reason = reason(&facts, &decision);
        return Done::Changed(decision, reason);
    };
    if let Err(error) = folder.write_attempts(attempt) {
        return Done::Failed(error.to_string());
    }
    start(&record).unwrap_or_else(Done::Failed)
}

/// Notes a decision in the run's journal, by its supervisor where there is one: a resume is
/// evidence, and so is that there was none.
///
/// # Errors
///
/// Says why it can't be noted.
pub fn note(registry: &Registry, record: &Record, decision: &Decision, reason: &str) -> Result<(), String> {
    let mut fields =
        Object::of([("decision", Value::from(decision.name())), ("reason", Value::from(reason))]);
    if let Decision::Continue(attempt) = decision {
        fields.insert("attempt".into(), Value::from(*attempt));
    }
    let folder = registry.run(&record.run);
    let project = Project::at(&record.project);
    if !project.journal(&record.run).is_file() {
        // Without a workspace there is no journal to write to.
        return Ok(());
    }
    let socket = record.socket.as_ref().filter(|_| folder.is_locked());
    if let Some(mut client) = socket.and_then(|socket| Client::connect(socket).ok()) {
        let line = Value::from(Object::of([("decision", Value::from(fields))]));
        let said = client.patience(Some(Duration::from_secs(10))).and_then(|()| client.call(&line));
        return match said {
            Ok(answer) => {
                answer.get("error").and_then(Value::as_str).map_or(Ok(()), |why| Err(why.to_owned()))
            }
            Err(error) => Err(error.to_string()),
        };
    }
    let mut journal = Journal::open(&project, &record.run, Profile::PyJsonV1, Wait::No, Unseen, |_| ())
        .map_err(|error| error.to_string())?;
    journal
        .append("boot.decision", &fields, clock::seconds(), Sync::Data)
        .map_err(|error| error.to_string())?;
    Ok(())
}
