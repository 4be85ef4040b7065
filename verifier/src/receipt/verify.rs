//! A receipt with what belongs to it, and the report on both.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use super::anchor::{Audit, Spine};
use super::binding::{Binding, JournalState};
use super::checks;
use super::form::File;
use super::trust::Trust;
use super::window::Journal;
use crate::json::{Object, Value};
use crate::key::PublicKey;
use crate::report::{Check, Report, Status, Verdict, Voucher};
use crate::spine;

/// What a receipt was given with: whether what is missing could have been there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    /// The receipt alone: what is missing is not checked.
    Alone,
    /// A project folder or an archive: a missing journal or spine is a fault.
    Project,
}

/// What the repository says of the fork point.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum ForkCommit {
    /// There is no repository to look at.
    #[default]
    NotLookedAt,
    /// It has no such snapshot ref.
    Missing,
    /// The snapshot ref names this commit.
    At(String),
}

/// A receipt, and all that it can be checked with.
#[derive(Clone, Debug)]
pub struct Evidence<'a> {
    /// The path of its file, relative to the root that was given; `-` if it has no name.
    pub file: &'a str,
    /// What is in it.
    pub receipt: &'a File,
    /// What it was given with.
    pub scope: Scope,
    /// The journal of its run, walked for it.
    pub journal: Option<&'a Journal>,
    /// The spine of receipts.
    pub spine: Option<&'a Spine>,
    /// The audit log.
    pub audit: Option<&'a Audit>,
    /// The public key file of the project's identity.
    pub identity: Option<&'a [u8]>,
    /// What the repository says of the fork point.
    pub fork_commit: ForkCommit,
    /// Whom the reader trusts.
    pub trust: &'a Trust,
}

impl Evidence<'_> {
    pub(super) fn binding(&self) -> Option<&Binding> {
        self.receipt.binding.as_ref()
    }

    pub(super) fn degraded(&self) -> bool {
        self.binding().is_some_and(|binding| binding.journal_state != JournalState::Present)
    }

    /// What stands for something that was not given.
    pub(super) fn missing(&self, id: &'static str, what: &str) -> Check {
        match self.scope {
            Scope::Alone => not_checked(id, &format!("{what} was not given")),
            Scope::Project => Check::new(id, Status::Fail, format!("{what} is missing")),
        }
    }
}

pub(super) fn not_checked(id: &'static str, why: &str) -> Check {
    Check::new(id, Status::NotChecked, why)
}

/// The report on a receipt.
#[must_use]
pub fn report(evidence: &Evidence<'_>) -> Report {
    let receipt = evidence.receipt;
    let signature = checks::signature(evidence);
    let (signer, standing) = checks::signer(evidence);
    let vouched = signature.status == Status::Pass && standing.1 == Voucher::Outside;
    let mut all = vec![checks::form(evidence), signature, signer, checks::id(evidence)];
    all.extend(checks::spine(evidence));
    let window = checks::window(evidence);
    let (action, reading) = checks::action(evidence, &window);
    all.extend([
        checks::anchor(evidence),
        checks::journal(evidence),
        window,
        checks::fork(evidence),
        action,
        checks::mirror(evidence),
    ]);
    let voucher = if vouched { Voucher::Outside } else { Voucher::None };
    let mut verdict = Report::judge(&all, voucher);
    if evidence.degraded() && matches!(verdict, Verdict::Verified | Verdict::Consistent) {
        verdict = Verdict::Degraded;
    }
    let id = receipt.id().map(|id| id.as_str().to_string());
    let mut facts = facts(evidence);
    facts.insert("action_reading".into(), Value::from(reading));
    facts.insert("signer_standing".into(), Value::from(standing.0));
    Report {
        subject: ("receipt", id.unwrap_or_else(|| evidence.file.to_string())),
        verdict,
        summary: summary(evidence, verdict, &all),
        checks: all,
        facts,
        does_not_establish: does_not_establish(evidence, voucher),
        parts: Vec::new(),
    }
}

fn summary(evidence: &Evidence<'_>, verdict: Verdict, checks: &[Check]) -> String {
    if let Some(check) = checks.iter().find(|check| check.status == Status::Fail) {
        return format!("{}: {}", check.id, check.sentence);
    }
    let said = evidence.binding().map_or_else(String::new, |binding| {
        format!("{}: {}, {}", binding.run_id, binding.stall_reason, binding.recommended_action)
    });
    let open: Vec<String> = checks
        .iter()
        .filter(|check| check.status == Status::NotChecked)
        .map(|check| check.id.into())
        .collect();
    match verdict {
        Verdict::Verified => format!("{said}; all recomputes, and the signer is one you named"),
        Verdict::Incomplete => format!("{said}; not checked: {}", open.join(", ")),
        Verdict::Degraded => format!("{said}; made where there was no journal, so it shows no window"),
        _ => format!("{said}; all recomputes, and nothing outside the evidence vouches for the signer"),
    }
}

fn facts(evidence: &Evidence<'_>) -> Object {
    let receipt = evidence.receipt;
    let entry = receipt.entry_hash.as_ref().map(spine::prefixed);
    let mut facts = match (&receipt.binding, receipt.id(), &entry) {
        (Some(binding), Some(id), entry) => binding.projection(&id, entry.as_deref().unwrap_or_default()),
        _ => Object::default(),
    };
    if let Some(binding) = &receipt.binding {
        for (name, value) in [
            ("install_rev", Value::from(binding.install_rev.as_str())),
            ("respawn_budget_remaining", Value::from(binding.respawn_budget_remaining)),
            ("timestamp", Value::from(binding.timestamp)),
            ("worktree_id", Value::from(binding.worktree_id.as_str())),
        ] {
            facts.insert(name.into(), value);
        }
        if let Some(extra) = &binding.extra {
            facts.insert("extra_binding".into(), Value::from(extra.clone()));
        }
    }
    let signer = receipt.signer.as_ref().map(PublicKey::fingerprint);
    facts.insert("signer".into(), Value::from(signer.map(|signer| signer.to_string())));
    if let Some(journal) = evidence.journal {
        let events = journal.view.events.iter().map(super::window::WindowEvent::document);
        facts.insert("window".into(), Value::from(events.collect::<Vec<_>>()));
        facts.insert("journal_entries".into(), Value::from(journal.outcome.end.entry));
    }
    if let Some(spine) = evidence.spine {
        facts.insert("spine_head_file".into(), Value::from(spine.head_file));
    }
    if !receipt.faults.is_empty() {
        let faults = receipt.faults.iter().map(|fault| Value::from(fault.as_str()));
        facts.insert("form_faults".into(), Value::from(faults.collect::<Vec<_>>()));
    }
    facts
}

fn does_not_establish(evidence: &Evidence<'_>, voucher: Voucher) -> Vec<String> {
    let mut lines = Vec::new();
    if voucher == Voucher::None {
        lines.push(String::from("who signed it: the key came with the evidence; pin the signer to know"));
    }
    lines.push(String::from("when it was signed: the receipt's time is the signer's word"));
    if evidence.journal.is_some() {
        lines.push(String::from(
            "when the window's events happened: `ts` and `elapsed_s` are not covered by any hash",
        ));
    }
    lines.push(String::from(
        "that the worker did what the journal says, or that anybody did what is recommended",
    ));
    if evidence.fork_commit == ForkCommit::NotLookedAt
        && evidence.binding().is_some_and(|binding| binding.fork_ref.is_some())
    {
        lines.push(String::from("that the fork's commit exists: no repository was looked at"));
    }
    if evidence.degraded() {
        lines.push(String::from("what the worker did before: there was no journal to sign a window of"));
    }
    lines
}
