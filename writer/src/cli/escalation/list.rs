//! `waybill escalation list`: a table of the receipts, and of those whose file is gone.

use jiff::Timestamp;
use waybill_verifier::json::{Object, Value};
use waybill_verifier::receipt::{Binding, File, ReceiptId};
use waybill_verifier::report::Report;

use super::super::Global;
use super::super::exit::{Exit, Failure};
use super::super::out::{self, Form, escape};
use super::super::table::lay_out;
use super::{SignerArgs, read};
use crate::master::KeyFile;
use crate::project::Project;
use crate::receipt::{Gathered, ids};

pub(super) fn run(global: &Global, project: &Project, signer: &SignerArgs) -> Result<Exit, Failure> {
    let trust = signer.trust()?;
    let key = KeyFile::of_environment().read()?;
    let gathered = Gathered::of(project, key.as_ref())?;
    let ids = ids(project)?;
    let mut found = Vec::new();
    for id in &ids {
        let file = File::read(&read(project, id)?);
        let report = gathered.report(&id.path(), &file, &trust)?;
        found.push((id, file.binding, report));
    }
    found.sort_by_key(|(id, binding, _)| (binding.as_ref().map(|binding| binding.timestamp), *id));
    let exists = |id: &str| ids.iter().any(|there| there.as_str() == id);
    let gone = gathered.spine.as_ref().map(|spine| spine.index.receipts_gone(exists)).unwrap_or_default();
    match global.form() {
        Form::Quiet => {}
        Form::Json => {
            let receipts = found.iter().map(|(id, binding, report)| document(id, binding.as_ref(), report));
            let gone = gone.iter().map(|id| Value::from(id.as_str()));
            super::super::put_document(Object::of([
                ("receipts", Value::from(receipts.collect::<Vec<_>>())),
                ("gone", Value::from(gone.collect::<Vec<_>>())),
            ]))?;
        }
        Form::Text if found.is_empty() && gone.is_empty() => {
            super::super::put(b"no receipts are here\n")?;
        }
        Form::Text => {
            let mut rows = vec![
                ["when", "run", "worker", "reason", "action", "verdict", "id"].map(String::from).to_vec(),
            ];
            for (id, binding, report) in &found {
                rows.push(row(id, binding.as_ref(), report));
            }
            let mut text =
                if found.is_empty() { String::new() } else { lay_out(&rows, out::width().max(140)) };
            for id in &gone {
                text.push_str(&format!("{id} is in the spine, and its file is gone\n"));
            }
            super::super::put(text.as_bytes())?;
        }
    }
    Ok(Exit::Done)
}

pub(super) fn when(binding: &Binding) -> String {
    let seconds = i64::try_from(binding.timestamp).ok();
    let time = seconds.and_then(|seconds| Timestamp::from_second(seconds).ok());
    time.map_or_else(|| binding.timestamp.to_string(), |time| time.to_string())
}

fn row(id: &ReceiptId, binding: Option<&Binding>, report: &Report) -> Vec<String> {
    let verdict = report.verdict.name().to_owned();
    match binding {
        None => {
            let mut row = vec![String::from("?"); 5];
            row.extend([verdict, id.to_string()]);
            row
        }
        Some(binding) => vec![
            when(binding),
            binding.run_id.to_string(),
            out::cut(&escape(&binding.worker_id), 24),
            binding.stall_reason.to_string(),
            binding.recommended_action.to_string(),
            verdict,
            id.to_string(),
        ],
    }
}

fn document(id: &ReceiptId, binding: Option<&Binding>, report: &Report) -> Value {
    let text = |value: Option<&str>| Value::from(value);
    Value::from(Object::of([
        ("receipt_id", Value::from(id.as_str())),
        ("timestamp", Value::from(binding.map(|binding| binding.timestamp))),
        ("run_id", text(binding.map(|binding| binding.run_id.as_str()))),
        ("worker_id", text(binding.map(|binding| binding.worker_id.as_str()))),
        ("stall_reason", text(binding.map(|binding| binding.stall_reason.name()))),
        ("recommended_action", text(binding.map(|binding| binding.recommended_action.name()))),
        ("verdict", Value::from(report.verdict.name())),
    ]))
}
