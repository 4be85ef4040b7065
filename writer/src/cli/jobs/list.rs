//! `waybill jobs list`.

use waybill_verifier::json::{Object, Value};

use super::super::Global;
use super::super::exit::{Exit, Failure};
use super::super::out::{self, Form};
use super::super::table::lay_out;
use crate::clock;
use crate::process::{Process, Table};
use crate::registry::record::{Ending, Shown, shown};
use crate::registry::{Attempts, Entry, Record, Registry, Status};
use crate::run::policy::show_time;

pub(super) const HELP: &str = "\
A run that its record calls in_progress, and of which nothing is alive, is shown as interrupted; one that
runs without its supervisor as orphaned. A record that can't be read is shown as damaged, and kept.

Exit codes: 0, 74 I/O";

/// A run as it is looked at now.
pub(in super::super) struct Look {
    pub(in super::super) record: Record,
    pub(in super::super) shown: Shown,
    pub(in super::super) attempts: Attempts,
    pub(in super::super) questions: Vec<(String, String)>,
}

/// Looks at a run; nothing is written.
pub(in super::super) fn look(registry: &Registry, table: &Table, record: Record) -> Look {
    let folder = registry.run(&record.run);
    let alive = record.child.as_ref().is_some_and(|child| !table.group_of(child).is_empty());
    let intent = folder.intention().map(|intention| intention.intent);
    let shown = shown(record.status, folder.is_locked(), alive, intent);
    let questions = folder.questions().unwrap_or_default();
    let questions = questions.open().map(|question| (question.id.clone(), question.text.clone())).collect();
    Look { shown, attempts: folder.attempts(), questions, record }
}

impl Look {
    pub(in super::super) fn document(&self) -> Object {
        let record = &self.record;
        let pid = record.child.as_ref().filter(|child| child.is_alive()).map(|child| u64::from(child.pid));
        let command = record.command.iter().map(|argument| Value::from(argument.as_str()));
        let questions = self.questions.iter().map(|(id, text)| {
            Value::from(Object::of([
                ("question", Value::from(id.as_str())),
                ("text", Value::from(text.as_str())),
            ]))
        });
        let (code, signal) = match record.ending {
            Some(Ending::Exited(code)) => (u64::try_from(code).ok(), None),
            Some(Ending::Killed(signal)) => (None, u64::try_from(signal).ok()),
            _ => (None, None),
        };
        Object::of([
            ("run_id", Value::from(record.run.as_str())),
            ("shown", Value::from(self.shown.name())),
            ("status", Value::from(record.status.name())),
            ("pid", Value::from(pid)),
            ("project", Value::from(record.project.to_string_lossy().into_owned())),
            ("command", Value::from(command.collect::<Vec<_>>())),
            ("created", Value::from(record.created)),
            ("started", Value::from(record.started)),
            ("ended", Value::from(record.ended)),
            ("exit_code", Value::from(code)),
            ("exit_signal", Value::from(signal)),
            ("forced", Value::from(record.forced)),
            (
                "attempts",
                match self.attempts {
                    Attempts::Spent(count) => Value::from(count),
                    Attempts::Lost => Value::Null,
                },
            ),
            ("questions", Value::from(questions.collect::<Vec<_>>())),
        ])
    }

    /// How long it has been running, or since when it has not.
    fn since(&self) -> String {
        let now = clock::micros() / 1_000_000;
        let time = |then: u64| show_time(std::time::Duration::from_secs(now.saturating_sub(then)));
        match (self.record.ended, self.record.started) {
            (Some(ended), _) => format!("{} ago", time(ended)),
            (None, 0) => String::from("-"),
            (None, started) => time(started),
        }
    }
}

pub(super) fn run(global: &Global, registry: &Registry, all: bool) -> Result<Exit, Failure> {
    let table = Table::read();
    let mut looks = Vec::new();
    let mut damaged = Vec::new();
    for entry in registry.list()? {
        match entry {
            Entry::Run(record) if !all && record.status == Status::Archived => {}
            Entry::Run(record) => looks.push(look(registry, &table, *record)),
            Entry::Damaged { name, reason } => damaged.push((name, reason)),
        }
    }
    match global.form() {
        Form::Quiet => {}
        Form::Json => {
            let mut runs: Vec<Value> = looks.iter().map(|look| Value::from(look.document())).collect();
            runs.extend(damaged.iter().map(|(name, reason)| {
                Value::from(Object::of([
                    ("run_id", Value::from(name.as_str())),
                    ("shown", Value::from("damaged")),
                    ("reason", Value::from(reason.as_str())),
                ]))
            }));
            super::super::put_document(Object::of([("runs", Value::from(runs))]))?;
        }
        Form::Text if looks.is_empty() && damaged.is_empty() => {
            super::super::put(b"no runs are recorded on this machine: 'waybill run -- CMD' starts one\n")?;
        }
        Form::Text => super::super::put(text(&looks, &damaged).as_bytes())?,
    }
    Ok(Exit::Done)
}

fn text(looks: &[Look], damaged: &[(String, String)]) -> String {
    let mut rows = vec![["run", "status", "pid", "since", "attempts", "command"].map(String::from).to_vec()];
    for look in looks {
        let record = &look.record;
        let pid = record.child.as_ref().filter(|child| Process::is_alive(child));
        rows.push(vec![
            record.run.to_string(),
            look.shown.name().to_owned(),
            pid.map_or_else(|| String::from("-"), |child| child.pid.to_string()),
            look.since(),
            match look.attempts {
                Attempts::Spent(count) => count.to_string(),
                Attempts::Lost => String::from("lost"),
            },
            out::escape(&record.command.join(" ")),
        ]);
    }
    let mut text = if looks.is_empty() { String::new() } else { lay_out(&rows, out::width()) };
    for look in looks {
        for (id, question) in &look.questions {
            text.push_str(&format!("{} asks ({id}): {}\n", look.record.run, out::escape(question)));
        }
    }
    for (name, reason) in damaged {
        text.push_str(&format!("{}  damaged  {}\n", out::escape(name), out::escape(reason)));
    }
    text
}
