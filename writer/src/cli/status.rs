//! `waybill status`: the runs of this project at a glance.

use waybill_verifier::json::{self, Object, Value};
use waybill_verifier::ledger::TaskState;

use super::Global;
use super::exit::{Exit, Failure};
use super::out::{self, Form};
use super::table::lay_out;
use crate::lock::Lock;

pub(super) fn run(global: &Global) -> Result<Exit, Failure> {
    let project = global.project()?;
    let mut rows = vec![
        ["run", "standing", "entries", "started", "scheduled", "done", "failed", "head"]
            .map(String::from)
            .to_vec(),
    ];
    let mut documents = Vec::new();
    for run in project.runs()? {
        let writer = Lock::holder_of(&project.ledger_lock(&run));
        match super::ledger::replay(global, &run) {
            Ok(state) => {
                let count = |wanted| state.tasks_in(wanted).count().to_string();
                let standing = match (state.run_closed, &writer) {
                    (true, _) => "closed",
                    (false, Some(_)) => "recording",
                    (false, None) => "open",
                };
                let head = state.head.to_hex();
                rows.push(vec![
                    run.to_string(),
                    standing.to_owned(),
                    state.entries.to_string(),
                    count(TaskState::Started),
                    count(TaskState::Scheduled),
                    count(TaskState::Completed),
                    count(TaskState::Failed),
                    head[..12].to_owned(),
                ]);
                documents.push(Value::from(Object::of([
                    ("run_id", Value::from(run.as_str())),
                    ("standing", Value::from(standing)),
                    ("writer", Value::from(writer)),
                    ("state", state.document(run.as_str())),
                ])));
            }
            Err(failure) => {
                rows.push(vec![run.to_string(), format!("! {}", out::escape(&failure.message))]);
                documents.push(Value::from(Object::of([
                    ("run_id", Value::from(run.as_str())),
                    ("standing", Value::from("damaged")),
                    ("reason", Value::from(failure.message)),
                ])));
            }
        }
    }
    match global.form() {
        Form::Quiet => {}
        Form::Json => {
            let mut text = json::ascii_indented(&Value::from(Object::of([("runs", Value::from(documents))])));
            text.push(b'\n');
            super::put(&text)?;
        }
        Form::Text if rows.len() == 1 => {
            super::put(b"no runs are recorded here: 'waybill ledger open RUN' starts one\n")?;
        }
        Form::Text => super::put(status_text(rows).as_bytes())?,
    }
    Ok(Exit::Done)
}

/// The table; what could not be read comes below it, since a reason has no columns.
fn status_text(rows: Vec<Vec<String>>) -> String {
    let (damaged, good): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| row.len() == 2);
    let mut text = lay_out(&good, out::width());
    for row in damaged {
        text.push_str(&format!("{}  {}\n", row[0], row[1]));
    }
    text
}
