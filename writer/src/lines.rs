//! What recorders read a line at a time: transitions and events as JSON, checked and scrubbed.

use waybill_verifier::chain::MAX_LINE;
use waybill_verifier::id::{Kind, RunId, TaskId};
use waybill_verifier::json::{self, MAX_DEPTH, Object, Value};

use crate::log::Transition;
use crate::redact::Scrubber;
use crate::scrub;

/// A JSON object, as deep and long as a row can hold.
///
/// # Errors
///
/// Says why it is none; never what it holds.
pub fn object(bytes: &[u8]) -> Result<Object, String> {
    if bytes.len() > MAX_LINE {
        return Err(format!("longer than {MAX_LINE} bytes"));
    }
    match json::parse(bytes) {
        Ok(value @ Value::Object(_)) if depth(&value) >= MAX_DEPTH => {
            Err(format!("nested deeper than {} levels", MAX_DEPTH - 1))
        }
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(String::from("not a JSON object, as {\"why\":\"nightly\"}")),
        // The text itself may hold a secret, so only its place is said.
        Err(error) => Err(error.to_string()),
    }
}

/// How deep a value nests; the parser's limit bounds the recursion.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(object) => 1 + object.iter().map(|(_, value)| depth(value)).max().unwrap_or(0),
        _ => 0,
    }
}

/// Refuses names that look like secrets: they can't be scrubbed and still be names.
///
/// # Errors
///
/// Names what holds one.
pub fn clean_names<'a>(
    scrubber: &Scrubber,
    names: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<(), String> {
    for (what, name) in names {
        if scrubber.scrub(name).1 > 0 {
            return Err(format!(
                "the {what} holds what looks like a secret, and names are recorded as they are"
            ));
        }
    }
    Ok(())
}

/// A transition as `append` takes it, scrubbed; `run` is the run it is for.
///
/// # Errors
///
/// If a name holds a secret, or a `run.open` names another run.
pub fn transition(
    scrubber: &Scrubber,
    run: &RunId,
    kind: Kind,
    task_id: TaskId,
    payload: Object,
) -> Result<Transition, String> {
    clean_names(
        scrubber,
        [("kind", kind.as_str()), ("task id", task_id.as_str()), ("run id", run.as_str())],
    )?;
    if kind.as_str() == "run.open" {
        match payload.get("run_id") {
            Some(id) if id.as_str() == Some(run.as_str()) => {}
            _ => return Err(format!("run.open must have \"run_id\":\"{run}\" in its payload")),
        }
    }
    let (payload, redactions) = scrub::object(scrubber, payload);
    Ok(Transition { kind, task_id, payload, redactions })
}

/// An object with `kind`, and `task_id` and `payload` if any, as a transition.
///
/// # Errors
///
/// If it has anything else, or something of it is not what it should be.
pub fn transition_of(scrubber: &Scrubber, run: &RunId, mut object: Object) -> Result<Transition, String> {
    let kind = text(&mut object, "kind")?.ok_or("`kind` is missing")?;
    let task_id = text(&mut object, "task_id")?.unwrap_or_default();
    let payload = match object.remove("payload") {
        None => Object::default(),
        Some(Value::Object(payload)) => payload,
        Some(_) => return Err(String::from("`payload` is not an object")),
    };
    if !object.is_empty() {
        return Err(String::from("a transition has `kind`, `task_id` and `payload`, and no other field"));
    }
    let kind = Kind::new(&kind).map_err(|error| error.to_string())?;
    let task_id = TaskId::new(&task_id).map_err(|error| error.to_string())?;
    transition(scrubber, run, kind, task_id, payload)
}

/// Takes a string out of an object.
///
/// # Errors
///
/// If it is something else.
pub fn text(object: &mut Object, name: &str) -> Result<Option<String>, String> {
    match object.remove(name) {
        None => Ok(None),
        Some(value) => match value.as_str() {
            Some(text) => Ok(Some(text.to_owned())),
            None => Err(format!("`{name}` is not a string")),
        },
    }
}

/// An event's type: what rules and people read, so nothing invisible.
///
/// # Errors
///
/// Says what one looks like.
pub fn event_name(name: &str) -> Result<String, String> {
    let fits = (1..=128).contains(&name.len()) && name.chars().all(|c| c.is_ascii_graphic());
    if fits {
        Ok(name.to_owned())
    } else {
        Err(String::from("an event's type is 1 to 128 visible ASCII characters, as tool.called"))
    }
}
