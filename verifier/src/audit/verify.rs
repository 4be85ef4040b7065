//! The report on one audit log.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use super::log::{Mend, Outcome, Start, TagsChecked};
use crate::chain::{Fault, FaultKind};
use crate::json::{Object, Value};
use crate::report::{Check, Report, Status, Verdict, Voucher, counted, hold};

/// The report on an audit log that was read to its end.
///
/// `root` stands before the names of its files: their folder, relative to the root that was given,
/// with a final `/`, or empty.
#[must_use]
pub fn report<V>(name: &str, root: &str, outcome: &Outcome<V>) -> Report {
    let checks = vec![files_check(root, outcome), chain_check(root, outcome), tags_check(root, outcome)];
    let mut verdict = Report::judge(&checks, Voucher::None);
    if outcome.events == 0 && verdict != Verdict::Failed {
        verdict = Verdict::Empty;
    }
    Report {
        subject: ("audit", name.to_string()),
        verdict,
        summary: summary(outcome, verdict, &checks),
        facts: facts(root, outcome),
        checks,
        does_not_establish: does_not_establish(outcome),
        parts: Vec::new(),
    }
}

fn files_check<V>(root: &str, outcome: &Outcome<V>) -> Check {
    const ID: &str = "audit.files";
    match outcome.file_faults.first() {
        Some(first) => {
            let more = match outcome.file_faults.len() {
                1 => String::new(),
                count => format!(" ({count} such files in all)"),
            };
            let sentence = format!("{}: {}: {}{more}", first.name, first.fault, first.detail);
            Check {
                fault: Some(first.fault),
                ..Check::new(ID, Status::Fail, sentence).at(&format!("{root}{}", first.name), None)
            }
        }
        None if outcome.days.is_empty() => Check::new(ID, Status::NotApplicable, "there is no day's file"),
        None => {
            let days = outcome.days.len();
            Check::new(ID, Status::Pass, format!("{}, each one day's, no day twice", counted(days, "file")))
        }
    }
}

fn chain_check<V>(root: &str, outcome: &Outcome<V>) -> Check {
    const ID: &str = "audit.chain";
    let first = outcome.faults.iter().find(|(_, fault)| fault.kind != FaultKind::HmacMismatch);
    match first {
        Some((name, fault)) => failed(ID, root, name, fault, outcome.fault_count - outcome.tag_faults),
        None if outcome.events == 0 => Check::new(ID, Status::NotApplicable, "the log has no events"),
        None => {
            let from = match outcome.start {
                Start::Genesis => String::from("the first row"),
                Start::After(link) => format!("the row behind {link}"),
            };
            let sentence = format!(
                "{} in canonical form and linked from {from} to {}",
                counted(outcome.events, "event"),
                outcome.head
            );
            Check::new(ID, Status::Pass, sentence)
        }
    }
}

fn tags_check<V>(root: &str, outcome: &Outcome<V>) -> Check {
    const ID: &str = "audit.hmac";
    let first = outcome.faults.iter().find(|(_, fault)| fault.kind == FaultKind::HmacMismatch);
    match (outcome.tags, first) {
        (TagsChecked::NoKey, _) if outcome.events == 0 => {
            Check::new(ID, Status::NotApplicable, "the log has no events")
        }
        (TagsChecked::NoKey, _) => Check::new(
            ID,
            Status::NotChecked,
            "the HMAC key is missing, so anybody could have written what the events say",
        ),
        (TagsChecked::Yes, Some((name, fault))) => failed(ID, root, name, fault, outcome.tag_faults),
        (TagsChecked::Yes, None) if outcome.tag_faults > 0 => {
            Check::new(ID, Status::Fail, format!("{} tags do not fit", outcome.tag_faults))
        }
        (TagsChecked::Yes, None) if outcome.events == 0 => {
            Check::new(ID, Status::NotApplicable, "the log has no events")
        }
        (TagsChecked::Yes, None) => {
            Check::new(ID, Status::Pass, "the tag of every row that could be read fits the key")
        }
    }
}

fn failed(id: &'static str, root: &str, name: &str, fault: &Fault, count: u64) -> Check {
    let check = Check::failed(id, &format!("{root}{name}"), fault, count);
    Check { sentence: format!("{name}: {}", check.sentence), ..check }
}

fn summary<V>(outcome: &Outcome<V>, verdict: Verdict, checks: &[Check]) -> String {
    if let Some(check) = checks.iter().find(|check| check.status == Status::Fail) {
        let mend = match &outcome.mend {
            Some(Mend::SetAside { recovery, .. }) => format!(
                "; before it {}, and the next append sets the torn {} aside",
                hold(recovery.place.entry, "event"),
                counted(recovery.torn_bytes, "byte")
            ),
            Some(Mend::AddNewline { .. }) => String::from("; the next append ends it"),
            None => String::new(),
        };
        return format!("{}{mend}", check.sentence);
    }
    match verdict {
        Verdict::Empty => String::from("no events: nothing was recorded"),
        Verdict::Incomplete => format!(
            "{} in form and linked; what they say was not checked: the HMAC key is missing",
            counted(outcome.events, "event")
        ),
        _ => format!("{}; nothing establishes that there were no more", hold(outcome.events, "event")),
    }
}

fn facts<V>(root: &str, outcome: &Outcome<V>) -> Object {
    let day = |name: Option<&String>| Value::from(name.map(|name| date(name)));
    let archived = outcome.days.iter().filter(|name| name.starts_with("archive/"));
    let count = |count: usize| Value::from(u64::try_from(count).unwrap_or(u64::MAX));
    let mut facts = Object::of([
        ("entries", Value::from(outcome.events)),
        ("entries_scheme_1", Value::from(outcome.events_v1)),
        ("fault_count", Value::from(outcome.fault_count)),
        ("files", count(outcome.days.len())),
        ("files_archived", count(archived.count())),
        ("first_day", day(outcome.days.first())),
        ("last_day", day(outcome.days.last())),
        ("head_hmac", Value::from((outcome.fault_count == 0).then(|| outcome.head.to_hex()))),
    ]);
    if let Start::After(link) = outcome.start {
        facts.insert("starts_after".into(), Value::from(link.to_hex()));
    }
    if outcome.in_flight > 0 {
        facts.insert("bytes_in_flight".into(), Value::from(outcome.in_flight));
    }
    if let Some(Mend::SetAside { name, recovery }) = &outcome.mend {
        let recovery = Object::of([
            ("file", Value::from(format!("{root}{name}"))),
            ("entries", Value::from(recovery.place.entry)),
            ("line", Value::from(recovery.place.line)),
            ("byte", Value::from(recovery.place.byte)),
            ("torn_bytes", Value::from(recovery.torn_bytes)),
            ("head_hmac", Value::from(outcome.head.to_hex())),
        ]);
        facts.insert("recovery".into(), Value::from(recovery));
    }
    if !outcome.faults.is_empty() {
        let faults = outcome.faults.iter().map(|(name, fault)| {
            Value::from(Object::of([
                ("fault", Value::from(fault.kind.name())),
                ("file", Value::from(format!("{root}{name}"))),
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

fn date(name: &str) -> &str {
    let name = name.strip_prefix("archive/").unwrap_or(name);
    name.split('.').next().unwrap_or(name)
}

fn does_not_establish<V>(outcome: &Outcome<V>) -> Vec<String> {
    let mut lines = vec![
        String::from("that no events were cut off at the end: a log without its last days still verifies"),
        String::from("who wrote it: every holder of the HMAC key can write another"),
        String::from("that what the events say happened"),
        String::from("that the writer's clock was right, or that an event stands in the file of its day"),
    ];
    if let Start::After(link) = outcome.start {
        lines.insert(0, format!("what the days before say, or that there were any: it starts behind {link}"));
    }
    if outcome.tags == TagsChecked::NoKey {
        lines.insert(
            0,
            String::from("what any event says: without the HMAC key only form and links are checked"),
        );
    }
    lines
}
