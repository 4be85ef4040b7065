//! The report on one event journal.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use super::walk::EventRows;
use crate::chain::Outcome;
use crate::hash::Digest;
use crate::json::Value;
use crate::ledger::verify::chain_facts;
use crate::report::{Check, Report, Status, Verdict, Voucher, counted, hold};

/// The report on an event journal that was walked to its end; `expected_head` is what the caller
/// knows from elsewhere of its last event's hash.
#[must_use]
pub fn report<V>(
    name: &str,
    file: &str,
    outcome: &Outcome<EventRows<V>>,
    expected_head: Option<Digest>,
) -> Report {
    let mut checks = vec![chain_check(file, outcome)];
    let mut voucher = Voucher::None;
    if let Some(expected) = expected_head {
        let check = expected_head_check(file, outcome.rows.head(), expected);
        if check.status == Status::Pass {
            voucher = Voucher::Outside;
        }
        checks.push(check);
    }
    let mut verdict = Report::judge(&checks, voucher);
    let count = outcome.end.entry;
    if count == 0 && verdict != Verdict::Failed {
        verdict = Verdict::Empty;
    }
    let summary = match (checks.iter().find(|check| check.status == Status::Fail), &outcome.recovery) {
        (Some(check), Some(recovery)) => format!(
            "{}; before it {}, and the next append sets the torn {} aside",
            check.sentence,
            hold(recovery.place.entry, "event"),
            counted(recovery.torn_bytes, "byte")
        ),
        (Some(check), None) => check.sentence.clone(),
        (None, _) => match verdict {
            Verdict::Empty => String::from("no events: nothing was recorded"),
            Verdict::Verified => format!("{}, and match what was expected", hold(count, "event")),
            _ => format!("{}; nothing outside the evidence vouches for the end", hold(count, "event")),
        },
    };
    let whole = outcome.fault_count == 0 || outcome.recovery.is_some();
    let mut facts = chain_facts(&outcome.of_any_kind(), Digest::ZERO, 0);
    facts.remove("rows_not_canonical");
    let head = outcome.rows.head().map(|head| head.to_hex());
    facts.insert("head_hash".into(), Value::from(head.filter(|_| whole)));
    facts.insert("hash_profile".into(), Value::from(outcome.rows.profile().map(super::Profile::name)));
    Report {
        subject: ("journal", name.to_string()),
        verdict,
        summary,
        checks,
        facts,
        does_not_establish: does_not_establish(verdict),
        parts: Vec::new(),
    }
}

/// Whether all of a journal holds.
fn chain_check<V>(file: &str, outcome: &Outcome<EventRows<V>>) -> Check {
    const ID: &str = "journal.chain";
    match (outcome.faults.first(), outcome.rows.head()) {
        (Some(first), _) => Check::failed(ID, file, first, outcome.fault_count),
        (None, None) => Check::new(ID, Status::NotApplicable, "the journal has no events").at(file, None),
        (None, Some(head)) => {
            let count = counted(outcome.end.entry, "event");
            let sentence = format!("{count} hashed and linked from the first to head {head}");
            Check::new(ID, Status::Pass, sentence).at(file, None)
        }
    }
}

fn expected_head_check(file: &str, head: Option<Digest>, expected: Digest) -> Check {
    const ID: &str = "journal.expected_head";
    if head == Some(expected) {
        return Check::new(ID, Status::Pass, format!("the head is the expected {expected}")).at(file, None);
    }
    let head = head.map_or(String::from("none"), |head| head.to_hex());
    let sentence = format!("the expected head is {expected}, the journal's is {head}");
    Check::new(ID, Status::Fail, sentence).at(file, None)
}

fn does_not_establish(verdict: Verdict) -> Vec<String> {
    let mut lines = vec![
        String::from("when events happened: `ts` and `elapsed_s` are not covered by any hash"),
        String::from("who wrote it: the chain has no key, so whoever has the file can write another"),
        String::from("that what the events say happened"),
        String::from("which run it is of: nothing in a journal names its run"),
    ];
    if verdict != Verdict::Verified {
        lines.insert(
            0,
            String::from("that no events were cut off at the end: give --expected-head where it is known"),
        );
    }
    lines
}
