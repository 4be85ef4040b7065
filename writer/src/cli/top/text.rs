//! What `top` shows, as lines of text: printed once, and the parts of the live screen.

use std::time::Duration;

use waybill_verifier::json::{self, Value};
use waybill_verifier::ledger::TaskState;

use super::super::out::{cut, escape};
use super::super::table::lay_out;
use super::gather::{Row, StallRow, View};
use crate::run::policy::show_time;

pub(super) const HEAD: [&str; 9] =
    ["run", "status", "event", "output", "workers", "open", "done", "failed", "stalls"];

/// A time since something happened.
fn ago(millis: Option<u64>) -> String {
    // Whole seconds: tenths only flicker.
    let seconds = |millis: u64| Duration::from_secs(millis / 1000);
    millis.map_or_else(|| String::from("-"), |millis| show_time(seconds(millis)))
}

/// A run's line, in columns.
pub(super) fn cells(row: &Row) -> [String; 9] {
    let working = row.workers.iter().filter(|worker| !worker.done).count();
    let stalled = row.workers.iter().filter(|worker| worker.stalled).count();
    let workers = match (row.workers.is_empty(), stalled) {
        (true, _) => String::from("-"),
        (false, 0) => working.to_string(),
        (false, stalled) => format!("{working} ({stalled} stalled)"),
    };
    let open = row.count(TaskState::Started) + row.count(TaskState::Scheduled);
    [
        row.look.record.run.to_string(),
        row.look.shown.name().to_owned(),
        ago(row.recorded),
        ago(row.printed),
        workers,
        open.to_string(),
        row.count(TaskState::Completed).to_string(),
        row.count(TaskState::Failed).to_string(),
        row.stalls.len().to_string(),
    ]
}

/// What is to be said of a run besides: its questions, its workers, its latest stalls.
pub(super) fn details(row: &Row, stalls: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for (id, question) in &row.look.questions {
        lines.push(format!("asks ({id}): {}", escape(question)));
    }
    for worker in row.workers.iter().filter(|worker| !worker.done) {
        let word = if worker.stalled { "STALLED, silent for" } else { "last heard" };
        lines.push(format!("worker {}: {word} {}", escape(&worker.name), ago(Some(worker.silent))));
    }
    for stall in row.stalls.iter().take(stalls) {
        lines.push(stall_line(stall));
    }
    lines
}

fn stall_line(stall: &StallRow) -> String {
    let fork = stall
        .fork_step
        .map_or_else(|| String::from("no fork point"), |step| format!("fork from step {step}"));
    let anchor = stall.anchor.strip_prefix("sha256:").unwrap_or(&stall.anchor);
    format!(
        "stall of {}: {} -> {}, {fork}, receipt {}, spine {}",
        escape(&stall.worker),
        stall.reason,
        stall.action,
        stall.id,
        cut(anchor, 13)
    )
}

/// A receipt's projection, a line a field.
pub(super) fn projection(stall: &StallRow) -> Vec<String> {
    let shown = |value: &Value| match value {
        Value::Null => String::from("-"),
        Value::String(text) => escape(&String::from_utf8_lossy(text.as_wtf8())),
        other => String::from_utf8_lossy(&json::ascii(other)).into_owned(),
    };
    let fields = stall.projection.iter();
    fields.map(|(name, value)| format!("{:<26}{}", name.as_str().unwrap_or_default(), shown(value))).collect()
}

/// Everything, printed once.
pub(super) fn of(view: &View, width: usize) -> String {
    if view.rows.is_empty() && view.damaged.is_empty() {
        return String::from("no runs are recorded on this machine: 'waybill run -- CMD' starts one\n");
    }
    let mut rows = vec![HEAD.map(String::from).to_vec()];
    rows.extend(view.rows.iter().map(|row| cells(row).to_vec()));
    let mut text = lay_out(&rows, width);
    for row in &view.rows {
        let details = details(row, 3);
        if !details.is_empty() {
            text.push_str(&format!("\n{}\n", row.look.record.run));
            for line in details {
                text.push_str(&format!("  {line}\n"));
            }
        }
    }
    for (name, reason) in &view.damaged {
        text.push_str(&format!("{}  damaged  {}\n", escape(name), escape(reason)));
    }
    text
}
