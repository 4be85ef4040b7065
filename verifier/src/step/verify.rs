//! The report on one step journal.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use super::StepRows;
use crate::chain::Outcome;
use crate::ledger::verify::{canonical, chain_facts};
use crate::report::{Check, Report, Status, Verdict, Voucher, counted, hold};

/// The report on a step journal that was walked to its end.
#[must_use]
pub fn report(name: &str, file: &str, outcome: &Outcome<StepRows>) -> Report {
    const ID: &str = "step_journal.chain";
    let rows = &outcome.rows;
    let steps = outcome.end.entry;
    let chain = match outcome.faults.first() {
        Some(first) => Check::failed(ID, file, first, outcome.fault_count),
        None if steps == 0 => {
            Check::new(ID, Status::NotApplicable, "the journal has no steps").at(file, None)
        }
        None => {
            let sentence =
                format!("{} hashed and linked from genesis to head {}", counted(steps, "step"), rows.head());
            Check::new(ID, Status::Pass, sentence).at(file, None)
        }
    };
    let (first, count) = rows.not_canonical();
    let checks = vec![chain, canonical("step_journal.canonical", file, first, count)];
    let mut verdict = Report::judge(&checks, Voucher::None);
    if steps == 0 && verdict != Verdict::Failed {
        verdict = Verdict::Empty;
    }
    Report {
        subject: ("step-journal", name.to_string()),
        verdict,
        summary: match (outcome.faults.first(), steps) {
            (Some(fault), _) => fault.to_string(),
            (None, 0) => String::from("no steps: nothing was recorded"),
            (None, _) => {
                format!("{}; nothing outside the evidence vouches for the end", hold(steps, "step"))
            }
        },
        checks,
        facts: chain_facts(&outcome.of_any_kind(), rows.head(), count),
        does_not_establish: does_not_establish(),
        parts: Vec::new(),
    }
}

fn does_not_establish() -> Vec<String> {
    [
        "that no steps were cut off at the end",
        "when steps were taken: `ts` is not covered by any hash",
        "what `blob_refs` name: they are not covered by any hash",
        "who wrote it: the chain has no key, so whoever has the file can write another",
    ]
    .map(String::from)
    .into()
}
