//! The checks of one spine, and the report on it.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use super::head::{Head, HeadFile};
use super::row::{SpineRows, prefixed};
use crate::chain::{FaultKind, Outcome};
use crate::json::Value;
use crate::ledger::verify::chain_facts;
use crate::report::{Check, Report, Status, Verdict, Voucher, counted, hold};

/// The report on a spine that was walked to its end; `file` and `head_file` are the paths of
/// `spine.jsonl` and `spine.head`, relative to the root that was given.
#[must_use]
pub fn report<V>(
    name: &str,
    (file, head_file): (&str, &str),
    outcome: &Outcome<SpineRows<V>>,
    head: &HeadFile,
) -> Report {
    let checks = Vec::from(checks((file, head_file), outcome, head));
    let mut verdict = Report::judge(&checks, Voucher::None);
    let count = outcome.end.entry;
    if count == 0 && verdict != Verdict::Failed {
        verdict = Verdict::Empty;
    }
    let summary = match checks.iter().find(|check| check.status == Status::Fail) {
        Some(check) => check.sentence.clone(),
        None => match verdict {
            Verdict::Empty => String::from("no entries: nothing was recorded"),
            Verdict::Incomplete => {
                format!(
                    "{} hashed and linked; tags were not checked: the HMAC key is missing",
                    counted(count, "entry")
                )
            }
            _ => hold(count, "entry"),
        },
    };
    let rows = &outcome.rows;
    let whole = outcome.fault_count == 0 || outcome.recovery.is_some();
    let mut facts = chain_facts(&outcome.of_any_kind(), crate::hash::Digest::ZERO, rows.not_canonical_count);
    facts.insert("head_hash".into(), Value::from(rows.head.filter(|_| whole).as_ref().map(prefixed)));
    facts.insert("head_file".into(), Value::from(head_standing(outcome, head)));
    Report {
        subject: ("spine", name.to_string()),
        verdict,
        summary,
        checks,
        facts,
        does_not_establish: does_not_establish(outcome, head),
        parts: Vec::new(),
    }
}

/// `spine.chain`, `spine.hmac` and `spine.head`, in this order.
#[must_use]
pub fn checks<V>(
    (file, head_file): (&str, &str),
    outcome: &Outcome<SpineRows<V>>,
    head: &HeadFile,
) -> [Check; 3] {
    [chain_check(file, outcome), tags_check(file, outcome), head_check(head_file, outcome, head)]
}

fn chain_check<V>(file: &str, outcome: &Outcome<SpineRows<V>>) -> Check {
    const ID: &str = "spine.chain";
    let rows = &outcome.rows;
    let first = outcome.faults.iter().find(|fault| fault.kind != FaultKind::HmacMismatch);
    match (first, rows.not_canonical) {
        (Some(first), _) => Check::failed(ID, file, first, outcome.fault_count - rows.tag_faults),
        (None, Some(place)) => {
            let sentence = format!(
                "{} of the rows not in canonical form, the first at {place}: somebody rewrote the text, \
                 the values still hash the same",
                rows.not_canonical_count
            );
            Check::new(ID, Status::Warn, sentence).at(file, Some(place))
        }
        (None, None) => match rows.head {
            None => Check::new(ID, Status::NotApplicable, "the spine has no entries").at(file, None),
            Some(head) => {
                let count = counted(outcome.end.entry, "entry");
                let sentence = format!("{count} hashed and linked from the first to {}", prefixed(&head));
                Check::new(ID, Status::Pass, sentence).at(file, None)
            }
        },
    }
}

fn tags_check<V>(file: &str, outcome: &Outcome<SpineRows<V>>) -> Check {
    const ID: &str = "spine.hmac";
    let rows = &outcome.rows;
    let first = outcome.faults.iter().find(|fault| fault.kind == FaultKind::HmacMismatch);
    if let Some(first) = first {
        return Check::failed(ID, file, first, rows.tag_faults);
    }
    let (status, sentence) = match &rows.tags {
        _ if outcome.end.entry == 0 => (Status::NotApplicable, String::from("the spine has no entries")),
        None => (
            Status::NotChecked,
            String::from("the HMAC key is missing, and somebody who has none could have rewritten all of it"),
        ),
        Some(_) if rows.tag_faults > 0 => (Status::Fail, format!("{} tags do not fit", rows.tag_faults)),
        Some(_) => (Status::Pass, String::from("the tag of every row that could be read fits the key")),
    };
    Check::new(ID, status, sentence).at(file, None)
}

/// How the head file stands to the rows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    Agrees,
    Stale,
    Ahead,
    Differs,
    Missing,
    Malformed,
}

impl Standing {
    fn name(self) -> &'static str {
        match self {
            Standing::Agrees => "agrees",
            Standing::Stale => "stale",
            Standing::Ahead => "ahead",
            Standing::Differs => "differs",
            Standing::Missing => "missing",
            Standing::Malformed => "malformed",
        }
    }
}

/// How a head file stands to the rows, by name: `agrees`, `stale`, `ahead`, `differs`, `missing` or
/// `malformed`.
#[must_use]
pub fn head_standing<V>(outcome: &Outcome<SpineRows<V>>, head: &HeadFile) -> &'static str {
    standing(outcome, head).name()
}

fn standing<V>(outcome: &Outcome<SpineRows<V>>, head: &HeadFile) -> Standing {
    let head = match head {
        HeadFile::Missing => return Standing::Missing,
        HeadFile::Malformed(_) => return Standing::Malformed,
        HeadFile::Read(head) => head,
    };
    let rows = outcome.end.entry;
    let of_count = if head.count() == 0 { None } else { outcome.rows.at_head };
    if head.count() > rows {
        Standing::Ahead
    } else if head.hash() != of_count {
        Standing::Differs
    } else if head.count() < rows {
        Standing::Stale
    } else {
        Standing::Agrees
    }
}

fn head_check<V>(file: &str, outcome: &Outcome<SpineRows<V>>, head: &HeadFile) -> Check {
    const ID: &str = "spine.head";
    let rows = outcome.end.entry;
    let key = outcome.rows.tags.as_ref();
    let read = head.head();
    let tagged = read.zip(key).map(|(head, tags)| head.is_tagged_by(tags));
    let says = read.map(says).unwrap_or_default();
    let untagged = if key.is_none() { "; its tag needs the HMAC key, which is missing" } else { "" };
    let (status, sentence) = match (standing(outcome, head), head) {
        (_, HeadFile::Malformed(why)) => (Status::Fail, format!("the head file can't be read: {why}")),
        _ if tagged == Some(false) => {
            (Status::Fail, String::from("the tag of the head file is not its own under the key"))
        }
        (Standing::Missing, _) if rows == 0 => {
            (Status::NotApplicable, String::from("there are no entries, and no head file"))
        }
        (Standing::Missing, _) => {
            let sentence = "there is no head file: nothing says that no entries were cut off at the end";
            (Status::Warn, String::from(sentence))
        }
        (Standing::Ahead, _) => {
            (Status::Fail, format!("the head file says {says}, the spine holds {rows}: entries are missing"))
        }
        (Standing::Differs, _) => {
            (Status::Fail, format!("the head file says {says}, which is not what the spine holds there"))
        }
        (Standing::Stale, _) => {
            let sentence = format!(
                "the head file says {says}, the spine holds {rows}: what a crash between row and head \
                 leaves{untagged}"
            );
            (Status::Warn, sentence)
        }
        (_, HeadFile::Read(head)) if !head.is_canonical() => {
            (Status::Warn, format!("the head file is not in canonical form; it says {says}{untagged}"))
        }
        _ if key.is_none() => (Status::NotChecked, format!("the head file says {says}{untagged}")),
        _ => (Status::Pass, format!("the head file says {says}, and so does the spine")),
    };
    let fault = (tagged == Some(false)).then(|| FaultKind::HmacMismatch.name());
    Check { fault, ..Check::new(ID, status, sentence).at(file, None) }
}

fn says(head: &Head) -> String {
    match head.hash() {
        Some(hash) => format!("{} up to {}", counted(head.count(), "entry"), prefixed(&hash)),
        None => counted(head.count(), "entry"),
    }
}

fn does_not_establish<V>(outcome: &Outcome<SpineRows<V>>, head: &HeadFile) -> Vec<String> {
    let mut lines = vec![match standing(outcome, head) {
        Standing::Agrees | Standing::Stale => {
            String::from("that spine and head file were not put back to an earlier state together")
        }
        _ => String::from("that no entries were cut off at the end"),
    }];
    if outcome.rows.tags.is_none() {
        lines.push(String::from(
            "who wrote it: without the HMAC key a full rewrite by somebody who has none can't be seen",
        ));
    } else {
        lines.push(String::from("which holder of the HMAC key wrote it"));
    }
    lines.push(String::from("that the artifacts are what the entries say: they were not read"));
    lines
}
