//! What every surface shows of a check: the terminal, the page, the CI action. The same evidence
//! gives the same bytes: no time, host or absolute path is in a report.
//!
//! A finding is a value here. That something could not be judged at all (a file that can't be
//! read) is an error of the caller's, not a report.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use crate::chain::{Fault, Place};
use crate::json::{Object, Value, ascii_indented};

/// The name and version of the report's form.
pub const SCHEMA: &str = "waybill.report/1";

/// How one check came out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// It was checked and holds.
    Pass,
    /// It was checked and does not hold.
    Fail,
    /// It holds, and a reader should know something about it.
    Warn,
    /// Something that it needs is missing; the sentence names it.
    NotChecked,
    /// There is nothing of the kind to check.
    NotApplicable,
}

impl Status {
    /// The name, as in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Status::Pass => "pass",
            Status::Fail => "fail",
            Status::Warn => "warn",
            Status::NotChecked => "not_checked",
            Status::NotApplicable => "not_applicable",
        }
    }

    /// The word on a terminal.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Status::Pass => "PASS",
            Status::Fail => "FAIL",
            Status::Warn => "WARN",
            Status::NotChecked => "NOT CHECKED",
            Status::NotApplicable => "N/A",
        }
    }
}

/// What the whole evidence amounts to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// All passed, and something outside the evidence vouches for it.
    Verified,
    /// All recomputes; nothing outside the evidence vouches for it.
    Consistent,
    /// Something could not be checked.
    Incomplete,
    /// A degraded receipt: made where there was no journal.
    Degraded,
    /// There is nothing in it.
    Empty,
    /// There is no such thing.
    Absent,
    /// A check failed.
    Failed,
    /// Two lineages of one run.
    Diverged,
}

impl Verdict {
    /// The name, as in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Verdict::Verified => "verified",
            Verdict::Consistent => "consistent",
            Verdict::Incomplete => "incomplete",
            Verdict::Degraded => "degraded",
            Verdict::Empty => "empty",
            Verdict::Absent => "absent",
            Verdict::Failed => "failed",
            Verdict::Diverged => "diverged",
        }
    }

    /// The process exit code that goes with it.
    #[must_use]
    pub const fn exit_code(self) -> u8 {
        match self {
            Verdict::Verified
            | Verdict::Consistent
            | Verdict::Incomplete
            | Verdict::Degraded
            | Verdict::Empty => 0,
            Verdict::Absent => 1,
            Verdict::Failed => 2,
            Verdict::Diverged => 3,
        }
    }

    /// How much worse than the others, among several subjects.
    #[must_use]
    pub const fn badness(self) -> u8 {
        match self {
            Verdict::Failed => 7,
            Verdict::Diverged => 6,
            Verdict::Absent => 5,
            Verdict::Incomplete => 4,
            Verdict::Degraded => 3,
            Verdict::Empty => 2,
            Verdict::Consistent => 1,
            Verdict::Verified => 0,
        }
    }
}

/// Where in the evidence a check speaks of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct At {
    /// The file, relative to the root that was given.
    pub file: String,
    /// The place in it.
    pub place: Option<Place>,
}

/// One check.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Check {
    /// The stable id, as `ledger.chain`.
    pub id: &'static str,
    /// How it came out.
    pub status: Status,
    /// One plain sentence.
    pub sentence: String,
    /// The fault's stable name, where the check failed over one.
    pub fault: Option<&'static str>,
    /// Where.
    pub at: Option<At>,
}

impl Check {
    /// A check without a place.
    pub fn new(id: &'static str, status: Status, sentence: impl Into<String>) -> Check {
        Check { id, status, sentence: sentence.into(), fault: None, at: None }
    }

    /// The same check, about a place.
    #[must_use]
    pub fn at(mut self, file: &str, place: Option<Place>) -> Check {
        self.at = Some(At { file: file.to_string(), place });
        self
    }

    /// A check that failed over faults, of which the first is the headline.
    #[must_use]
    pub fn failed(id: &'static str, file: &str, first: &Fault, count: u64) -> Check {
        let more = match count {
            0 | 1 => String::new(),
            _ => format!(" ({count} faults in all)"),
        };
        Check {
            fault: Some(first.kind.name()),
            ..Check::new(id, Status::Fail, format!("{first}{more}")).at(file, Some(first.place))
        }
    }

    fn document(&self) -> Value {
        let mut object = Object::of([
            ("id", Value::from(self.id)),
            ("status", Value::from(self.status.name())),
            ("sentence", Value::from(self.sentence.as_str())),
        ]);
        if let Some(fault) = self.fault {
            object.insert("fault".into(), Value::from(fault));
        }
        if let Some(at) = &self.at {
            let mut place = Object::of([("file", Value::from(at.file.as_str()))]);
            if let Some(Place { entry, line, byte }) = at.place {
                for (key, value) in [("entry", entry), ("line", line), ("byte", byte)] {
                    place.insert(key.into(), Value::from(value));
                }
            }
            object.insert("at".into(), Value::from(place));
        }
        Value::from(object)
    }
}

/// An assurance that a caller insists on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Requirement {
    /// Something outside the evidence vouches for it.
    Pinned,
    /// An anchor vouches for it.
    Anchored,
    /// The authentication tags were checked with the key.
    Hmac,
    /// Nothing is `not_checked`.
    Complete,
}

impl Requirement {
    pub(crate) const fn check_id(self) -> &'static str {
        match self {
            Requirement::Pinned => "require.pinned",
            Requirement::Anchored => "require.anchored",
            Requirement::Hmac => "require.hmac",
            Requirement::Complete => "require.complete",
        }
    }

    fn met_by(self, report: &Report) -> bool {
        let passed = |wanted: &[&str]| {
            report.checks.iter().any(|check| check.status == Status::Pass && wanted.contains(&check.id))
        };
        match self {
            Requirement::Pinned => {
                passed(&["ledger.expected_head", "ledger.contains", "anchor.expected_commit"])
                    || report
                        .checks
                        .iter()
                        .any(|check| check.id == "receipt.signer" && check.status == Status::Pass)
            }
            Requirement::Anchored => passed(&["ledger.anchored"]),
            Requirement::Hmac => passed(&["spine.hmac", "audit.hmac"]),
            Requirement::Complete => {
                report.verdict != Verdict::Empty
                    && report.checks.iter().all(|check| check.status != Status::NotChecked)
            }
        }
    }

    pub(crate) const fn lack(self) -> &'static str {
        match self {
            Requirement::Pinned => {
                "nothing outside the evidence vouches for it: give an expected head or commit, or pin a signer"
            }
            Requirement::Anchored => "no anchor vouches for it",
            Requirement::Hmac => "no authentication tag was checked: give the key",
            Requirement::Complete => "something was not checked, or there is nothing in it",
        }
    }
}

/// A count with its noun, as `1 entry` and `2 entries`; `one` is a regular noun's singular.
#[must_use]
pub fn counted<N: fmt::Display + PartialEq + From<u8>>(count: N, one: &str) -> String {
    match one.strip_suffix('y') {
        _ if count == N::from(1) => format!("1 {one}"),
        Some(stem) if !stem.ends_with(['a', 'e', 'o']) => format!("{count} {stem}ies"),
        _ => format!("{count} {one}s"),
    }
}

/// What holds, with its count: `1 entry holds` and `2 entries hold`.
pub(crate) fn hold(count: u64, one: &str) -> String {
    format!("{} {}", counted(count, one), if count == 1 { "holds" } else { "hold" })
}

/// Whether a character could steer a terminal, or reorder or hide text: no surface shows it raw.
#[must_use]
pub fn is_hidden(character: char) -> bool {
    let hides = matches!(character,
        '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}');
    hides || character.is_control()
}

/// What vouches for the evidence from outside of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Voucher {
    /// Nothing: all that could be compared came with it.
    None,
    /// An expected head or commit, a ref just read from a remote, a pinned signer.
    Outside,
}

/// The report of one check run.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    /// What was checked: its kind and its name.
    pub subject: (&'static str, String),
    /// The verdict.
    pub verdict: Verdict,
    /// One sentence that says it.
    pub summary: String,
    /// The checks, in their order.
    pub checks: Vec<Check>,
    /// What was found, by name.
    pub facts: Object,
    /// What no check of these establishes.
    pub does_not_establish: Vec<String>,
    /// The reports of the parts, where several subjects were checked.
    pub parts: Vec<Report>,
}

impl Report {
    /// The verdict that the checks amount to, for evidence that has something in it.
    #[must_use]
    pub fn judge(checks: &[Check], voucher: Voucher) -> Verdict {
        let any = |status| checks.iter().any(|check| check.status == status);
        if any(Status::Fail) {
            Verdict::Failed
        } else if any(Status::NotChecked) {
            Verdict::Incomplete
        } else if voucher == Voucher::Outside {
            Verdict::Verified
        } else {
            Verdict::Consistent
        }
    }

    /// A report on several subjects: the worst of theirs.
    #[must_use]
    pub fn of_parts(name: String, checks: Vec<Check>, parts: Vec<Report>, verdict: Verdict) -> Report {
        let verdict = parts
            .iter()
            .map(|part| part.verdict)
            .chain([verdict])
            .max_by_key(|verdict| verdict.badness())
            .unwrap_or(verdict);
        let said = checks
            .iter()
            .find(|check| check.status == Status::Fail)
            .or_else(|| checks.iter().find(|_| verdict.exit_code() == 0));
        let worst = parts.iter().find(|part| part.verdict == verdict);
        let summary = match (said, worst) {
            (Some(check), _) => check.sentence.clone(),
            (None, Some(part)) => format!("{}: {}", part.subject.1, part.summary),
            (None, None) => String::from("nothing was checked"),
        };
        Report {
            subject: ("set", name),
            verdict,
            summary,
            checks,
            facts: Object::default(),
            does_not_establish: Vec::new(),
            parts,
        }
    }

    /// Adds a check that something else was held against: what it forces, and what it vouches for.
    pub fn add(&mut self, (check, verdict, voucher): (Check, Option<Verdict>, Voucher)) {
        let vouched = check.status == Status::Pass && voucher == Voucher::Outside;
        if vouched && self.verdict == Verdict::Consistent {
            self.verdict = Verdict::Verified;
            self.summary = format!("the entries hold, and {}", check.sentence);
            self.does_not_establish
                .retain(|line| !line.starts_with("that no entries were cut off at the end"));
        }
        if let Some(verdict) = verdict.filter(|verdict| verdict.badness() > self.verdict.badness()) {
            self.verdict = verdict;
            self.summary.clone_from(&check.sentence);
        }
        if check.status == Status::NotChecked && self.verdict.badness() < Verdict::Incomplete.badness() {
            self.verdict = Verdict::Incomplete;
        }
        self.checks.push(check);
    }

    /// Whether the report, and each of its parts, has an assurance.
    fn meets(&self, requirement: Requirement) -> bool {
        if self.parts.is_empty() {
            requirement.met_by(self)
        } else {
            self.parts.iter().all(|part| part.meets(requirement))
        }
    }

    /// Insists on assurances: a missing one is a failed check, and the verdict.
    pub fn require(&mut self, requirements: impl IntoIterator<Item = Requirement>) {
        for requirement in requirements {
            let (status, sentence) = if self.meets(requirement) {
                (Status::Pass, "the required assurance is there")
            } else {
                (Status::Fail, requirement.lack())
            };
            self.checks.push(Check::new(requirement.check_id(), status, sentence));
            if status == Status::Fail && self.verdict != Verdict::Failed {
                self.summary = String::from(sentence);
                self.verdict = Verdict::Failed;
            }
        }
    }

    /// The report as JSON: keys sorted, two spaces a level, ASCII only, a final newline.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        let mut text = ascii_indented(&self.document());
        text.push(b'\n');
        text
    }

    /// The report as a value.
    #[must_use]
    pub fn document(&self) -> Value {
        let sentences = self.does_not_establish.iter().map(|line| Value::from(line.as_str()));
        let subject = Object::of([
            ("kind", Value::from(self.subject.0)),
            ("name", Value::from(self.subject.1.as_str())),
        ]);
        let mut object = Object::of([
            ("schema", Value::from(SCHEMA)),
            ("subject", Value::from(subject)),
            ("verdict", Value::from(self.verdict.name())),
            ("exit_code", Value::from(u64::from(self.verdict.exit_code()))),
            ("summary", Value::from(self.summary.as_str())),
            ("checks", Value::from(self.checks.iter().map(Check::document).collect::<Vec<_>>())),
            ("facts", Value::from(self.facts.clone())),
            ("does_not_establish", Value::from(sentences.collect::<Vec<_>>())),
        ]);
        if !self.parts.is_empty() {
            let parts = self.parts.iter().map(Report::document).collect::<Vec<_>>();
            object.insert("subjects".into(), Value::from(parts));
        }
        Value::from(object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_their_noun_s_number() {
        for (count, one, expect) in [
            (0, "entry", "0 entries"),
            (1, "entry", "1 entry"),
            (2, "entry", "2 entries"),
            (1, "chunk", "1 chunk"),
        ] {
            assert_eq!(counted(count, one), expect);
        }
        assert_eq!(counted(300_usize, "byte"), "300 bytes");
        assert_eq!((hold(1, "step"), hold(2, "step")), ("1 step holds".into(), "2 steps hold".into()));
    }
}
