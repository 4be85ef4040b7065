//! What may be said on a run's socket: a JSON object a line, answered by one line each.
//!
//! | line | is | answer |
//! | --- | --- | --- |
//! | `{"kind":"task.started","task_id":"t","payload":{…}}` | a transition | `{"entry_hash":…,"seq":…}` |
//! | `{"event":"tool.called",…}` | an event | `{"event_hash":…,"index":…}` |
//! | `{"heartbeat":true}` | a sign of life; with `"done":true` the last | `{"heartbeat":true}` |
//! | `{"snapshot":null}` | a snapshot, of the step that is given, if any | `{"snapshot_sha":…,"step_index":…}` |
//! | `{"ask":"deploy?"}` | a question | `{"question":"q1"}`, later `{"answer":"yes","question":"q1"}` |
//! | `{"answer":"yes","question":"q1"}` | an answer to it | `{"answered":"q1"}` |
//!
//! A sweep says `{"decision":{…}}`, which becomes the event `boot.decision`.
//!
//! Each may name its `worker`, `session` and `worktree`. What was not done is answered by
//! `{"error":…}`. An answer comes once the line is on disk; a heartbeat's once the liveness file has
//! it. Transitions and events named `run.*`, `boot.*`, `stall.*`, `snapshot` and `fork` are the
//! supervisor's to write. Lines have at most 64 MiB.

use waybill_verifier::id::RunId;
use waybill_verifier::json::{Int, Object, Value};

use crate::lines;
use crate::log::Transition;
use crate::redact::Scrubber;
use crate::scrub;

/// Who says something.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Who {
    /// The worker; none is named where a run has but one.
    pub worker: Option<String>,
    /// Its session.
    pub session: Option<String>,
    /// Its working tree.
    pub worktree: Option<String>,
}

/// Something said, checked and scrubbed.
#[derive(Clone, Debug)]
pub enum Message {
    /// To record in the ledger.
    Transition(Transition),
    /// To record in the journal.
    Event {
        /// Its type.
        name: String,
        /// What else is said of it.
        fields: Object,
    },
    /// A sign of life, perhaps the last.
    Heartbeat {
        /// Whether the worker is done.
        done: bool,
    },
    /// To take a snapshot.
    Snapshot {
        /// Of which step.
        step: Option<u64>,
    },
    /// A question.
    Ask(String),
    /// An answer.
    Answer {
        /// To which question.
        question: String,
        /// What.
        text: String,
    },
    /// What a boot decided about the run, to be recorded in its journal.
    Decision(Object),
}

/// A line that was understood.
#[derive(Clone, Debug)]
pub struct Said {
    /// Who.
    pub who: Who,
    /// What.
    pub message: Message,
    /// What it cost, as it says.
    pub cost: f64,
}

/// Whether only the supervisor may write what is so called.
#[must_use]
pub fn is_reserved(name: &str) -> bool {
    name == "snapshot"
        || name == "fork"
        || ["run.", "stall.", "boot."].iter().any(|own| name.starts_with(own))
}

/// Reads a line.
///
/// # Errors
///
/// Says why it is not taken; never what it holds.
pub fn read(scrubber: &Scrubber, run: &RunId, line: &[u8]) -> Result<Said, String> {
    let mut object = lines::object(line)?;
    if object.get("event").is_some() {
        return event(scrubber, object);
    }
    let who = who(scrubber, &mut object)?;
    if object.get("kind").is_some() {
        return transition(scrubber, run, object, who);
    }
    let message = if let Some(heartbeat) = object.remove("heartbeat") {
        let done = object.remove("done");
        let truth = |value: &Value| matches!(value, Value::Bool(_));
        if heartbeat != Value::Bool(true) || !done.as_ref().is_none_or(truth) {
            return Err(String::from("a heartbeat is {\"heartbeat\":true}, the last with \"done\":true"));
        }
        Message::Heartbeat { done: done == Some(Value::Bool(true)) }
    } else if let Some(step) = object.remove("snapshot") {
        match (&step, step.as_u64()) {
            (Value::Null, _) => Message::Snapshot { step: None },
            (_, Some(step)) => Message::Snapshot { step: Some(step) },
            _ => return Err(String::from("`snapshot` is a step's number or null")),
        }
    } else if let Some(question) = lines::text(&mut object, "ask")? {
        let (text, _) = scrubber.scrub(question.trim());
        if text.is_empty() || text.len() > 4096 {
            return Err(String::from("a question has 1 to 4096 bytes"));
        }
        Message::Ask(text.into_owned())
    } else if let Some(answer) = lines::text(&mut object, "answer")? {
        let question = lines::text(&mut object, "question")?.ok_or("an answer names its `question`")?;
        Message::Answer { question, text: scrubber.scrub(&answer).0.into_owned() }
    } else if let Some(Value::Object(decision)) = object.remove("decision") {
        Message::Decision(scrub::object(scrubber, decision).0)
    } else {
        return Err(String::from(
            "a line has `kind`, `event`, `heartbeat`, `snapshot`, `ask` or `answer`: see 'waybill record --help'",
        ));
    };
    if !object.is_empty() {
        return Err(String::from("the line has a field that does not belong to it"));
    }
    Ok(Said { who, message, cost: 0.0 })
}

fn event(scrubber: &Scrubber, mut object: Object) -> Result<Said, String> {
    let name = lines::event_name(&lines::text(&mut object, "event")?.unwrap_or_default())?;
    lines::clean_names(scrubber, [("event", name.as_str())])?;
    refuse_reserved(&name)?;
    // Who it was is part of what happened, and stays.
    let who = who(scrubber, &mut object.clone())?;
    let cost = cost(&object);
    Ok(Said { who, cost, message: Message::Event { name, fields: scrub::object(scrubber, object).0 } })
}

fn transition(scrubber: &Scrubber, run: &RunId, mut object: Object, who: Who) -> Result<Said, String> {
    let mut cost = 0.0;
    if let Some(Value::Object(mut payload)) = object.remove("payload") {
        cost = self::cost(&payload);
        name_worker(&mut payload, &who);
        object.insert("payload".into(), Value::Object(payload));
    } else if who.worker.is_some() {
        let mut payload = Object::default();
        name_worker(&mut payload, &who);
        object.insert("payload".into(), Value::Object(payload));
    }
    let transition = lines::transition_of(scrubber, run, object)?;
    refuse_reserved(transition.kind.as_str())?;
    Ok(Said { who, cost, message: Message::Transition(transition) })
}

fn name_worker(payload: &mut Object, who: &Who) {
    if let (Some(worker), None) = (&who.worker, payload.get("worker")) {
        payload.insert("worker".into(), Value::from(worker.as_str()));
    }
}

fn refuse_reserved(name: &str) -> Result<(), String> {
    if is_reserved(name) {
        return Err(String::from("run.*, boot.*, stall.*, snapshot and fork are written by the supervisor"));
    }
    Ok(())
}

fn who(scrubber: &Scrubber, object: &mut Object) -> Result<Who, String> {
    let mut name = |what: &'static str| -> Result<Option<String>, String> {
        let Some(name) = lines::text(object, what)? else { return Ok(None) };
        if name.is_empty() || name.len() > 256 || name.chars().any(char::is_control) {
            return Err(format!("`{what}` is a name of 1 to 256 bytes without control characters"));
        }
        lines::clean_names(scrubber, [(what, name.as_str())])?;
        Ok(Some(name))
    };
    Ok(Who { worker: name("worker")?, session: name("session")?, worktree: name("worktree")? })
}

/// What something says that it cost; what is no amount is nothing.
fn cost(object: &Object) -> f64 {
    let amount = match object.get("cost") {
        Some(Value::Float(amount)) => *amount,
        Some(Value::Int(amount)) => Int::as_str(amount).parse().unwrap_or(0.0),
        _ => 0.0,
    };
    if amount.is_finite() && amount > 0.0 { amount } else { 0.0 }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn said(line: &str) -> Result<Said, String> {
        let scrubber = Scrubber::builder().build();
        read(&scrubber, &RunId::new("r").unwrap(), line.as_bytes())
    }

    #[test]
    fn each_kind_of_line_is_understood() {
        let transition = said(r#"{"kind":"task.started","task_id":"t","worker":"w","payload":{"cost":2}}"#);
        let Said { who, message: Message::Transition(transition), cost } = transition.unwrap() else {
            panic!()
        };
        assert_eq!((who.worker.as_deref(), cost), (Some("w"), 2.0));
        assert_eq!(transition.payload.get("worker").and_then(Value::as_str), Some("w"));
        let event = said(r#"{"event":"tool.called","worker":"w","n":1}"#).unwrap();
        assert!(matches!(event.message, Message::Event { fields, .. } if fields.len() == 2));
        for (line, done) in [(r#"{"heartbeat":true}"#, false), (r#"{"heartbeat":true,"done":true}"#, true)] {
            assert!(matches!(said(line).unwrap().message, Message::Heartbeat { done: d } if d == done));
        }
        assert!(matches!(said(r#"{"ask":"go?"}"#).unwrap().message, Message::Ask(_)));
        assert!(matches!(said(r#"{"answer":"y","question":"q1"}"#).unwrap().message, Message::Answer { .. }));
        assert!(matches!(said(r#"{"snapshot":null}"#).unwrap().message, Message::Snapshot { step: None }));
    }

    #[test]
    fn what_is_the_supervisor_s_and_what_is_malformed_is_refused() {
        for line in [
            r#"{"kind":"run.closed"}"#,
            r#"{"event":"stall.verdict"}"#,
            r#"{"event":"run.exit"}"#,
            r#"{"event":"boot.decision"}"#,
            r#"{"event":"snapshot","snapshot_sha":"0","step_index":1}"#,
            r#"{"event":"fork"}"#,
            r#"{"heartbeat":1}"#,
            r#"{"heartbeat":true,"x":1}"#,
            r#"{"kind":"a.b","x":1}"#,
            r#"{"worker":"w"}"#,
            r#"{"event":"a","worker":""}"#,
            r#"{"event":"a","worker":"a\u0007"}"#,
            r#"{"answer":"y"}"#,
            r#"{"ask":""}"#,
            "[]",
            "{",
        ] {
            assert!(said(line).is_err(), "{line}");
        }
    }

    #[test]
    fn secrets_are_scrubbed_from_questions_and_events() {
        let secret = format!("{}{}", "ghp", "_16C7e42F292c6912E7710c838347Ae178B4a");
        let ask = said(&format!(r#"{{"ask":"use {secret}?"}}"#)).unwrap();
        assert!(matches!(ask.message, Message::Ask(text) if text == "use ***REDACTED***?"));
        assert!(said(&format!(r#"{{"event":"a","worker":"{secret}"}}"#)).is_err());
    }
}
