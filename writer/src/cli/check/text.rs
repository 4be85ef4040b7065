//! The gate's report for people: what did not pass, then a line a subject that holds.

use waybill_verifier::report::{Check, Report, Status};

use super::super::out;

/// The report as text.
pub(super) fn of(report: &Report) -> String {
    let mut text = out::headline(report);
    let mut block = |lines: Vec<String>| {
        if !lines.is_empty() {
            text.push('\n');
            text.extend(lines);
        }
    };
    // Of the gate's own, also what there was nothing to check of: that it stood open is to be seen.
    let idle = |check: &Check| check.status == Status::NotApplicable && check.id.starts_with("gate.");
    let shown = |check: &&Check| is_open(check) || idle(check);
    block(report.checks.iter().filter(shown).map(line).collect());
    let (held, open): (Vec<_>, Vec<_>) =
        report.parts.iter().partition(|part| part.checks.iter().all(|check| !is_open(check)));
    for part in open {
        let mut lines = vec![subject(part)];
        lines.extend(part.checks.iter().filter(|check| is_open(check)).map(line));
        block(lines);
    }
    block(held.into_iter().map(|part| format!("{}: {}\n", subject(part).trim_end(), said(part))).collect());
    block(report.does_not_establish.iter().map(|line| format!("Not established: {line}\n")).collect());
    text
}

const fn is_open(check: &Check) -> bool {
    matches!(check.status, Status::Fail | Status::Warn | Status::NotChecked)
}

fn subject(part: &Report) -> String {
    let style = out::verdict_style(part.verdict);
    let (kind, name) = &part.subject;
    let verdict = part.verdict.name().to_uppercase();
    format!("{style}{verdict:<11}{style:#}  {kind} {}\n", out::escape(name))
}

fn said(part: &Report) -> String {
    // What no report of one subject can leave out is said once, below.
    let summary = part.summary.split("; nothing ").next().unwrap_or_default();
    out::escape(summary)
}

fn line(check: &Check) -> String {
    let style = out::status_style(check.status);
    let word = check.status.word();
    let place = check.at.as_ref().map_or_else(String::new, |at| match at.place {
        Some(place) => format!("  ({}:{})", out::escape(&at.file), place.line),
        None => format!("  ({})", out::escape(&at.file)),
    });
    format!("{style}{word:<11}{style:#}  {}: {}{place}\n", check.id, out::escape(&check.sentence))
}
