//! The assurances that a policy insists on, for a repository as a whole.
//!
//! Each is asked of what it can be asked of: a signer of receipts, an anchor of ledgers, tags of
//! the spine and the audit log. Where there is nothing of the kind, nothing lacks it, and the
//! check says `not_applicable`.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::Chain;
use crate::json::Value;
use crate::report::{Check, Report, Requirement, Status, Verdict};

/// Who signed the receipts, by fingerprint; sorted, each once.
pub(super) fn signers(report: &Report) -> Vec<Value> {
    let named = report.parts.iter().filter_map(|part| part.facts.get("signer"));
    let all: BTreeSet<_> = named.filter_map(Value::as_str).map(ToString::to_string).collect();
    all.into_iter().map(Value::from).collect()
}

/// The check that an assurance is there.
pub(super) fn check(
    requirement: Requirement,
    (checks, report): (&[Check], &Report),
    chains: &BTreeMap<String, Chain>,
    anchored: &BTreeSet<String>,
) -> Check {
    let id = requirement.check_id();
    let (asked, lacking) = match requirement {
        Requirement::Pinned => of_checks(report, &["receipt.signer"]),
        Requirement::Hmac => of_checks(report, &["spine.hmac", "audit.hmac"]),
        Requirement::Anchored => {
            let lacks = |(run, chain): &(&String, &Chain)| !chain.holds || !anchored.contains(*run);
            (chains.len(), chains.iter().find(lacks).map(|(run, _)| format!("run {run}")))
        }
        Requirement::Complete => {
            let open = |checks: &[Check]| checks.iter().any(|check| check.status == Status::NotChecked);
            let part = report.parts.iter().find(|part| open(&part.checks) || part.verdict == Verdict::Empty);
            let whole = open(checks) || open(&report.checks);
            let lacking = part.map(named).or_else(|| whole.then(|| String::from("the repository")));
            (report.parts.len(), lacking)
        }
    };
    match lacking {
        Some(subject) => Check::new(id, Status::Fail, format!("{subject}: {}", requirement.lack())),
        None if asked == 0 => {
            Check::new(id, Status::NotApplicable, "there is nothing here that it is asked of")
        }
        None => Check::new(id, Status::Pass, "the required assurance is there"),
    }
}

/// How many subjects have one of these checks, and the first for which it did not pass.
fn of_checks(report: &Report, ids: &[&str]) -> (usize, Option<String>) {
    let asked = report.parts.iter().filter_map(|part| {
        let mut found = part.checks.iter().filter(|check| ids.contains(&check.id)).peekable();
        found.peek()?;
        Some((part, found.all(|check| check.status == Status::Pass)))
    });
    let asked: Vec<_> = asked.collect();
    let lacking = asked.iter().find(|(_, passed)| !passed).map(|(part, _)| named(part));
    (asked.len(), lacking)
}

fn named(part: &Report) -> String {
    format!("{} {}", part.subject.0, part.subject.1)
}
