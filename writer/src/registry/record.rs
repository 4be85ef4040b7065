//! A run's record: what runs, where, under which rules, and how it stands.
//!
//! The record is local, owner-only, and the only place that a command to start is ever read from.
//! It has the names of the environment variables that the command needs, never their values; a
//! command line that holds a secret is kept scrubbed, and is not started again.

use std::path::PathBuf;

use waybill_verifier::id::RunId;
use waybill_verifier::json::{Object, Value};

use super::Intent;
use crate::process::Process;
use crate::run::policy::Policy;

/// How a run stands, as its record says.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Status {
    /// It runs, or was interrupted.
    InProgress,
    /// It waits for an answer.
    NeedsInput,
    /// It ended well.
    Complete,
    /// It ended with an error.
    Error,
    /// Somebody ended it.
    Cancelled,
    /// A limit ended it.
    Stopped,
    /// Somebody ended it for now.
    Paused,
    /// It is kept for the record.
    Archived,
}

impl Status {
    /// All of them.
    pub const ALL: [Status; 8] = [
        Status::InProgress,
        Status::NeedsInput,
        Status::Complete,
        Status::Error,
        Status::Cancelled,
        Status::Stopped,
        Status::Paused,
        Status::Archived,
    ];

    /// As it is written.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Status::InProgress => "in_progress",
            Status::NeedsInput => "needs_input",
            Status::Complete => "complete",
            Status::Error => "error",
            Status::Cancelled => "cancelled",
            Status::Stopped => "stopped",
            Status::Paused => "paused",
            Status::Archived => "archived",
        }
    }

    /// Whether a run that stands so has, or had, a process.
    #[must_use]
    pub const fn is_live(self) -> bool {
        matches!(self, Status::InProgress | Status::NeedsInput)
    }

    /// How a run stands once an intent was carried out.
    #[must_use]
    pub const fn after(intent: Intent) -> Status {
        match intent {
            Intent::Stop | Intent::Interrupt => Status::Cancelled,
            Intent::Pause => Status::Paused,
            Intent::Archive => Status::Archived,
            Intent::Policy => Status::Stopped,
        }
    }
}

/// How a run is shown: a record that says "in progress" is only believed while something lives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shown {
    /// As the record says.
    Stored(Status),
    /// The supervisor is gone, and what it watched is not: still running, not watched.
    Orphaned,
    /// Nothing of it is alive, and it did not end.
    Interrupted,
}

impl Shown {
    /// As it is shown.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Shown::Stored(status) => status.name(),
            Shown::Orphaned => "orphaned",
            Shown::Interrupted => "interrupted",
        }
    }
}

/// How a run is shown, by the facts.
#[must_use]
pub const fn shown(stored: Status, supervised: bool, alive: bool, intent: Option<Intent>) -> Shown {
    match (stored, supervised, alive, intent) {
        (_, false, true, _) if stored.is_live() => Shown::Orphaned,
        (_, false, false, Some(intent)) if stored.is_live() => Shown::Stored(Status::after(intent)),
        (Status::InProgress, false, false, None) => Shown::Interrupted,
        _ => Shown::Stored(stored),
    }
}

/// How a run's command ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// By itself, with a code.
    Exited(i32),
    /// By a signal.
    Killed(i32),
    /// Nobody saw it.
    Unseen,
}

/// A run's record.
#[derive(Clone, PartialEq, Debug)]
pub struct Record {
    /// The run.
    pub run: RunId,
    /// The folder that has its `.sdd`.
    pub project: PathBuf,
    /// Where its command runs.
    pub folder: PathBuf,
    /// The command and its arguments.
    pub command: Vec<String>,
    /// Whether the arguments were scrubbed, so that they can't be started again.
    pub holds_secret: bool,
    /// Whether a boot may continue it.
    pub at_boot: bool,
    /// The environment variables that it needs: their names.
    pub needs: Vec<String>,
    /// What it is held to.
    pub policy: Policy,
    /// How it stands.
    pub status: Status,
    /// When it was recorded, in seconds since 1970 UTC.
    pub created: u64,
    /// When its command was last started.
    pub started: u64,
    /// When it ended.
    pub ended: Option<u64>,
    /// How its command ended last.
    pub ending: Option<Ending>,
    /// Whether it had to be killed when it was to end.
    pub forced: bool,
    /// Who watches it.
    pub supervisor: Option<Process>,
    /// What it watches: the founder of session and group.
    pub child: Option<Process>,
    /// Where it listens.
    pub socket: Option<PathBuf>,
}

impl Record {
    pub(super) fn to_document(&self) -> Object {
        let texts =
            |list: &[String]| Value::from(list.iter().map(|t| Value::from(t.as_str())).collect::<Vec<_>>());
        let path = |path: &PathBuf| Value::from(path.to_string_lossy().into_owned());
        let (code, signal) = match self.ending {
            Some(Ending::Exited(code)) => (u64::try_from(code).ok(), None),
            Some(Ending::Killed(signal)) => (None, u64::try_from(signal).ok()),
            Some(Ending::Unseen) | None => (None, None),
        };
        Object::of([
            ("v", Value::from(1)),
            ("run_id", Value::from(self.run.as_str())),
            ("project", path(&self.project)),
            ("folder", path(&self.folder)),
            ("command", texts(&self.command)),
            ("holds_secret", Value::from(self.holds_secret)),
            ("at_boot", Value::from(self.at_boot)),
            ("needs", texts(&self.needs)),
            ("policy", Value::from(self.policy.to_document())),
            ("status", Value::from(self.status.name())),
            ("created", Value::from(self.created)),
            ("started", Value::from(self.started)),
            ("ended", Value::from(self.ended)),
            ("exit_code", Value::from(code)),
            ("exit_signal", Value::from(signal)),
            ("ending_unseen", Value::from(self.ending == Some(Ending::Unseen))),
            ("forced", Value::from(self.forced)),
            ("supervisor", Value::from(self.supervisor.as_ref().map(Process::to_value))),
            ("child", Value::from(self.child.as_ref().map(Process::to_value))),
            ("socket", Value::from(self.socket.as_ref().map(path))),
        ])
    }

    /// Reads a record of the run `name`; says what is wrong.
    pub(super) fn from_document(object: &Object, name: &str) -> Result<Record, String> {
        let field = |name: &str| object.get(name).ok_or_else(|| format!("`{name}` is missing"));
        let wrong = |name: &str| format!("`{name}` is not what it should be");
        let text = |name: &str| field(name)?.as_str().map(str::to_owned).ok_or_else(|| wrong(name));
        let truth = |name: &str| match field(name)? {
            Value::Bool(truth) => Ok(*truth),
            _ => Err(wrong(name)),
        };
        let texts = |name: &str| match field(name)? {
            Value::Array(items) => items
                .iter()
                .map(|item| item.as_str().map(str::to_owned).ok_or_else(|| wrong(name)))
                .collect::<Result<Vec<_>, _>>(),
            _ => Err(wrong(name)),
        };
        let number = |name: &str| field(name)?.as_u64().ok_or_else(|| wrong(name));
        let folder = |name: &str| {
            let path = PathBuf::from(text(name)?);
            if path.is_absolute() { Ok(path) } else { Err(wrong(name)) }
        };
        let process = |name: &str| match field(name)? {
            Value::Null => Ok(None),
            value => Process::from_value(value).map(Some).ok_or_else(|| wrong(name)),
        };
        if field("v")?.as_u64() != Some(1) {
            return Err(String::from("a record of a version that this program does not know"));
        }
        let run = RunId::new(&text("run_id")?).map_err(|error| error.to_string())?;
        // A folder that is being made has another name.
        if run.as_str() != name && !name.starts_with(".new-") {
            return Err(format!("it is the record of run {run}"));
        }
        let status = text("status")?;
        let status = Status::ALL.into_iter().find(|known| known.name() == status);
        let ending = |name: &str| Ok::<_, String>(field(name)?.as_u64().and_then(|n| i32::try_from(n).ok()));
        let record = Record {
            run,
            project: folder("project")?,
            folder: folder("folder")?,
            command: texts("command")?,
            holds_secret: truth("holds_secret")?,
            at_boot: truth("at_boot")?,
            needs: texts("needs")?,
            policy: field("policy")?
                .as_object()
                .and_then(Policy::from_document)
                .ok_or_else(|| wrong("policy"))?,
            status: status.ok_or_else(|| wrong("status"))?,
            created: number("created")?,
            started: number("started")?,
            ended: field("ended")?.as_u64(),
            ending: match (ending("exit_code")?, ending("exit_signal")?, truth("ending_unseen")?) {
                (Some(code), ..) => Some(Ending::Exited(code)),
                (_, Some(signal), _) => Some(Ending::Killed(signal)),
                (_, _, true) => Some(Ending::Unseen),
                _ => None,
            },
            forced: truth("forced")?,
            supervisor: process("supervisor")?,
            child: process("child")?,
            socket: match field("socket")? {
                Value::Null => None,
                _ => Some(folder("socket")?),
            },
        };
        if record.command.first().is_none_or(String::is_empty) {
            return Err(wrong("command"));
        }
        Ok(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_live_record_without_a_live_process_is_shown_as_what_it_is() {
        for status in Status::ALL {
            for (supervised, alive) in [(true, true), (true, false), (false, true), (false, false)] {
                for intent in [None, Some(Intent::Stop), Some(Intent::Pause)] {
                    let shown = shown(status, supervised, alive, intent);
                    let expect = if !status.is_live() || supervised {
                        Shown::Stored(status)
                    } else if alive {
                        Shown::Orphaned
                    } else if let Some(intent) = intent {
                        Shown::Stored(Status::after(intent))
                    } else if status == Status::NeedsInput {
                        Shown::Stored(Status::NeedsInput)
                    } else {
                        Shown::Interrupted
                    };
                    assert_eq!(shown, expect, "{status:?} {supervised} {alive} {intent:?}");
                }
            }
        }
    }
}
