//! The report on one ledger.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use super::row::Row;
use super::walk::LedgerRows;
use crate::chain::{FaultKind, Outcome, Place};
use crate::hash::Digest;
use crate::json::{Object, Value};
use crate::report::{Check, Report, Status, Verdict, Voucher, counted, hold};

/// What a caller knows of the ledger from elsewhere.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Expect {
    /// The last entry's hash.
    pub head: Option<Digest>,
    /// Some entry's hash.
    pub contains: Option<Digest>,
}

impl Expect {
    /// The hashes that the walk must look for ([`LedgerRows::looking_for`]).
    pub fn hashes(&self) -> impl Iterator<Item = Digest> + use<> {
        self.head.into_iter().chain(self.contains)
    }
}

/// The report on a ledger that was walked to its end.
///
/// `file` is its path relative to the root that was given, `name` the subject's name.
pub fn report<F: FnMut(&Row<'_>, Place)>(
    name: &str,
    file: &str,
    outcome: &Outcome<LedgerRows<F>>,
    expect: &Expect,
) -> Report {
    let rows = &outcome.rows;
    let mut checks = vec![chain_check(file, outcome), run_check(file, outcome), canonical_check(file, rows)];
    let mut voucher = Voucher::None;
    for check in [expected_head_check(file, outcome, expect), contains_check(file, rows, expect)] {
        let Some(check) = check else { continue };
        if check.status == Status::Pass {
            voucher = Voucher::Outside;
        }
        checks.push(check);
    }
    let mut verdict = Report::judge(&checks, voucher);
    if outcome.end.entry == 0 && verdict != Verdict::Failed {
        verdict = Verdict::Empty;
    }
    Report {
        subject: ("ledger", name.to_string()),
        verdict,
        summary: summary(outcome, verdict, &checks),
        checks,
        facts: facts(outcome),
        does_not_establish: does_not_establish(expect, verdict),
        parts: Vec::new(),
    }
}

fn chain_check<F: FnMut(&Row<'_>, Place)>(file: &str, outcome: &Outcome<LedgerRows<F>>) -> Check {
    const ID: &str = "ledger.chain";
    let first = outcome.faults.iter().find(|fault| fault.kind != FaultKind::RunIdMismatch);
    let of_run = of_run_count(outcome);
    match first {
        Some(first) => Check::failed(ID, file, first, outcome.fault_count - of_run),
        None if outcome.end.entry == 0 => {
            Check::new(ID, Status::NotApplicable, "the ledger has no entries").at(file, None)
        }
        None => {
            let head = outcome.rows.head();
            let sentence = format!(
                "{} hashed and linked from genesis to head {head}",
                counted(outcome.end.entry, "entry")
            );
            Check::new(ID, Status::Pass, sentence).at(file, None)
        }
    }
}

fn of_run_count<R>(outcome: &Outcome<R>) -> u64 {
    let of_run = |fault: &&crate::chain::Fault| fault.kind == FaultKind::RunIdMismatch;
    u64::try_from(outcome.faults.iter().filter(of_run).count()).unwrap_or(0)
}

fn run_check<F: FnMut(&Row<'_>, Place)>(file: &str, outcome: &Outcome<LedgerRows<F>>) -> Check {
    const ID: &str = "ledger.run";
    let rows = &outcome.rows;
    if let Some(fault) = outcome.faults.iter().find(|fault| fault.kind == FaultKind::RunIdMismatch) {
        return Check::failed(ID, file, fault, of_run_count(outcome));
    }
    match rows.run() {
        Some(run) if rows.named() => Check::new(ID, Status::Pass, format!("run.open names run {run}")),
        _ if outcome.end.entry == 0 => Check::new(ID, Status::NotApplicable, "the ledger has no entries"),
        _ => Check::new(
            ID,
            Status::Warn,
            "nothing in the chain names its run: it could be another run's ledger",
        ),
    }
    .at(file, None)
}

fn canonical_check<F: FnMut(&Row<'_>, Place)>(file: &str, rows: &LedgerRows<F>) -> Check {
    canonical("ledger.canonical", file, rows.not_canonical(), rows.not_canonical_count())
}

/// Whether all rows are written in canonical form, or which is the first that is not.
pub(crate) fn canonical(id: &'static str, file: &str, first: Option<Place>, count: u64) -> Check {
    match first {
        None => Check::new(id, Status::Pass, "every row that holds is in canonical form").at(file, None),
        Some(place) => {
            let sentence = format!(
                "{count} of the rows {} not in canonical form, the first at {place}: somebody rewrote \
                 the text, the values still hash the same",
                if count == 1 { "is" } else { "are" }
            );
            Check::new(id, Status::Warn, sentence).at(file, Some(place))
        }
    }
}

fn expected_head_check<F: FnMut(&Row<'_>, Place)>(
    file: &str,
    outcome: &Outcome<LedgerRows<F>>,
    expect: &Expect,
) -> Option<Check> {
    const ID: &str = "ledger.expected_head";
    let expected = expect.head?;
    let head = outcome.rows.head();
    if head == expected {
        return Some(
            Check::new(ID, Status::Pass, format!("the head is the expected {expected}")).at(file, None),
        );
    }
    let (sentence, place) = match outcome.rows.found(expected) {
        Some(place) => {
            let more = outcome.end.entry - place.entry - 1;
            (
                format!("the expected head {expected} is entry {}, and {} it", place.entry, follow(more)),
                Some(place),
            )
        }
        None => (
            format!(
                "the expected head {expected} is no entry of this ledger, whose head is {head}: \
                 entries are missing, or it is another lineage"
            ),
            None,
        ),
    };
    Some(Check::new(ID, Status::Fail, sentence).at(file, place))
}

fn follow(count: u64) -> String {
    match count {
        1 => String::from("1 entry follows"),
        _ => format!("{} follow", counted(count, "entry")),
    }
}

fn contains_check<F: FnMut(&Row<'_>, Place)>(
    file: &str,
    rows: &LedgerRows<F>,
    expect: &Expect,
) -> Option<Check> {
    const ID: &str = "ledger.contains";
    let wanted = expect.contains?;
    Some(match rows.found(wanted) {
        Some(place) => {
            Check::new(ID, Status::Pass, format!("{wanted} is entry {}", place.entry)).at(file, Some(place))
        }
        None => Check::new(ID, Status::Fail, format!("{wanted} is no entry of this ledger")).at(file, None),
    })
}

fn summary<R>(outcome: &Outcome<R>, verdict: Verdict, checks: &[Check]) -> String {
    match outcome.faults.first() {
        Some(fault) => match &outcome.recovery {
            Some(recovery) => format!(
                "{fault}; before it {}, and opening the run sets the torn {} aside",
                hold(recovery.place.entry, "entry"),
                counted(recovery.torn_bytes, "byte")
            ),
            None => fault.to_string(),
        },
        None => match checks.iter().find(|check| check.status == Status::Fail) {
            Some(check) => check.sentence.clone(),
            None if verdict == Verdict::Empty => String::from("no entries: nothing was recorded"),
            None if verdict == Verdict::Verified => {
                format!("{}, and match what was expected", hold(outcome.end.entry, "entry"))
            }
            None => format!(
                "{}; nothing outside the evidence vouches for the end",
                hold(outcome.end.entry, "entry")
            ),
        },
    }
}

fn facts<F: FnMut(&Row<'_>, Place)>(outcome: &Outcome<LedgerRows<F>>) -> Object {
    let rows = &outcome.rows;
    let mut facts = chain_facts(&outcome.of_any_kind(), rows.head(), rows.not_canonical_count());
    facts.insert("run_id".into(), Value::from(rows.run()));
    facts
}

/// The facts of any chain: what was read, what holds, what is wrong, where to go on.
pub(crate) fn chain_facts(outcome: &Outcome<()>, head: Digest, not_canonical: u64) -> Object {
    let end = outcome.end;
    let holding = outcome.faults.first().map_or(end.entry, |fault| fault.place.entry);
    let whole = outcome.fault_count == 0 || outcome.recovery.is_some();
    let mut facts = Object::of([
        ("entries", Value::from(end.entry)),
        ("entries_before_first_fault", Value::from(holding)),
        ("lines", Value::from(end.line - 1)),
        ("bytes", Value::from(end.byte)),
        ("head_hash", Value::from(whole.then(|| head.to_hex()))),
        ("rows_not_canonical", Value::from(not_canonical)),
        ("fault_count", Value::from(outcome.fault_count)),
        ("last_row_lacks_newline", Value::from(outcome.unterminated)),
    ]);
    if outcome.in_flight > 0 {
        facts.insert("bytes_in_flight".into(), Value::from(outcome.in_flight));
    }
    if let Some(recovery) = &outcome.recovery {
        let recovery = Object::of([
            ("entries", Value::from(recovery.place.entry)),
            ("line", Value::from(recovery.place.line)),
            ("byte", Value::from(recovery.place.byte)),
            ("torn_bytes", Value::from(recovery.torn_bytes)),
            ("head_hash", Value::from(head.to_hex())),
        ]);
        facts.insert("recovery".into(), Value::from(recovery));
    }
    if !outcome.faults.is_empty() {
        let faults = outcome.faults.iter().map(|fault| {
            Value::from(Object::of([
                ("fault", Value::from(fault.kind.name())),
                ("entry", Value::from(fault.place.entry)),
                ("line", Value::from(fault.place.line)),
                ("byte", Value::from(fault.place.byte)),
                ("detail", Value::from(fault.detail.as_str())),
            ]))
        });
        facts.insert("faults".into(), Value::from(faults.collect::<Vec<_>>()));
    }
    facts
}

fn does_not_establish(expect: &Expect, verdict: Verdict) -> Vec<String> {
    let mut lines = vec![
        String::from("when entries were written: `ts` is not covered by any hash"),
        String::from("how many secrets were scrubbed: `redactions` is not covered by any hash"),
        String::from("who wrote it: the chain has no key, so whoever has the file can write another"),
        String::from("that what the entries say happened"),
    ];
    if expect.head.is_none() || verdict == Verdict::Failed {
        lines.insert(0, String::from("that no entries were cut off at the end: give --expected-head"));
    }
    lines
}
