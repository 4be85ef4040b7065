//! The gate: whether a repository's ledgers and receipts hold, and whether history was only
//! appended to since a base.
//!
//! ```text
//! base:  .waybill/policy.toml, .waybill/heads.json ──┐
//! now:   .waybill/heads.json                         ├─► Gate ──► Report ──► text, SARIF, JUnit, …
//!        refs/bernstein/work-ledger/*, .sdd/         ┘
//! ```
//! Policy and heads come from the base, never from what asks to be merged: a change that loosens
//! its own gate passes nothing. Every entry that the base's heads name must still be an entry of
//! the run's ledger now. An entry that is not there any more passes only if a lineage that was set
//! aside in the repository still has it, and the policy allows that.
//!
//! Does not prove that the refs that were read are all that a remote has.

mod assurances;
mod compared;
mod format;
mod heads;
mod policy;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

pub use format::{Annotations, codequality, github, github_log, junit, markdown, plain, sarif};
pub use heads::{Head, Heads};
pub use policy::{Lack, Policy};

use crate::anchor::{self, Completeness, Found, ObjectId, Target};
use crate::compare::Stamp;
use crate::evidence::{Options, Session, is_evidence};
use crate::id::RunId;
use crate::json::{Object, Value};
use crate::report::{Check, Report, Requirement, Status, Verdict, counted};

/// Where the policy lies in a repository.
pub const POLICY: &str = ".waybill/policy.toml";
/// Where the heads lie.
pub const HEADS: &str = ".waybill/heads.json";

/// What was read from the base, and from what asks to be merged.
#[derive(Clone, Copy, Debug, Default)]
pub struct Files<'a> {
    /// The base's policy.
    pub policy: Option<&'a [u8]>,
    /// The base's heads.
    pub base_heads: Option<&'a [u8]>,
    /// What asks to be merged has this policy.
    pub new_policy: Option<&'a [u8]>,
    /// What asks to be merged has these heads.
    pub new_heads: Option<&'a [u8]>,
}

/// A chain that was read, and where.
#[derive(Debug)]
struct Chain {
    name: String,
    holds: bool,
    stamps: Vec<Stamp>,
}

impl Chain {
    fn entries(&self) -> u64 {
        u64::try_from(self.stamps.len()).unwrap_or(u64::MAX)
    }
}

/// A check of a repository under way.
#[derive(Debug)]
pub struct Gate {
    session: Session,
    policy: Policy,
    base: Heads,
    now: Named,
    checks: Vec<Check>,
    anchors: BTreeMap<String, Chain>,
    aside: BTreeMap<String, Vec<Chain>>,
}

/// The heads of what asks to be merged.
#[derive(Debug)]
enum Named {
    /// There is no such file.
    Nothing,
    /// There is one that can't be read, which was said.
    Unreadable,
    Heads(Heads),
    /// They are about to be written again, from these.
    Updated(Heads),
}

impl Gate {
    /// A check under the base's policy. What can't be read of the files is a failed check.
    #[must_use]
    pub fn new(files: &Files<'_>) -> Gate {
        let mut checks = Vec::new();
        let policy = read_policy(files, &mut checks);
        let mut heads = |bytes: Option<&[u8]>, id, whose: &str| match bytes.map(Heads::read) {
            None => Named::Nothing,
            Some(Ok(heads)) => Named::Heads(heads),
            Some(Err(why)) => {
                let check = Check::new(id, Status::Fail, format!("{whose} {HEADS} can't be read: {why}"));
                checks.push(check.at(HEADS, None));
                Named::Unreadable
            }
        };
        let base = match heads(files.base_heads, "gate.base", "the base's") {
            Named::Heads(heads) => heads,
            _ => Heads::default(),
        };
        let now = heads(files.new_heads, "gate.heads", "the");
        let options = Options {
            folder: true,
            several: true,
            together: true,
            trust: policy.trust.clone(),
            ..Options::default()
        };
        let session = Session::new("repository", options);
        Gate { session, policy, base, now, checks, anchors: BTreeMap::new(), aside: BTreeMap::new() }
    }

    /// The session that takes the files below `.sdd/`: those that [`Gate::takes`] names.
    pub fn session(&mut self) -> &mut Session {
        &mut self.session
    }

    /// Insists on assurances besides the policy's.
    pub fn require(&mut self, more: impl IntoIterator<Item = Requirement>) {
        for requirement in more {
            if !self.policy.require.contains(&requirement) {
                self.policy.require.push(requirement);
            }
        }
    }

    /// Looks at what is there only, not at what the base names: to write new heads. Those of runs
    /// that have no ledger here are kept.
    pub fn only_what_is_there(&mut self) {
        self.base = Heads::default();
        self.now = match core::mem::replace(&mut self.now, Named::Nothing) {
            Named::Heads(heads) => Named::Updated(heads),
            _ => Named::Updated(Heads::default()),
        };
        self.checks.retain(|check| check.id != "gate.base" && check.id != "gate.heads");
    }

    /// Whether the policy wants a run to be looked at.
    #[must_use]
    pub fn wants(&self, run: &RunId) -> bool {
        self.policy.wants(run.as_str())
    }

    /// Whether a file of the project, by its path in it, is to be given to the session: evidence,
    /// and no ledger of a run that the policy does not want.
    #[must_use]
    pub fn takes(&self, path: &str) -> bool {
        let run = path.strip_prefix(".sdd/runtime/ledger/").and_then(|rest| rest.split('/').next());
        is_evidence(path) && run.is_none_or(|run| self.policy.wants(run))
    }

    /// Says that a run has an anchor, and that its ref names no commit that could be read.
    pub fn unreadable(&mut self, run: &RunId) {
        if self.wants(run) {
            let sentence = format!("the anchor of run {run} can't be read: its ref names no commit");
            self.checks.push(Check::new("gate.runs", Status::Fail, sentence));
        }
    }

    /// Takes the anchor of a run.
    ///
    /// # Errors
    ///
    /// The source's own: it could not be read.
    pub fn anchor<E>(
        &mut self,
        (name, run, commit): (&str, &RunId, ObjectId),
        completeness: Completeness<'_>,
        source: impl FnMut(&ObjectId, usize) -> Result<Found, E>,
    ) -> Result<(), E> {
        if !self.wants(run) {
            return Ok(());
        }
        let (report, chain) = read((name, run, commit), completeness, source)?;
        self.session.anchor(run, "its anchor", report, chain.stamps.clone());
        self.anchors.insert(run.to_string(), chain);
        Ok(())
    }

    /// Takes a lineage of a run that was set aside (`refs/waybill/aside/<run>/<head>`).
    ///
    /// # Errors
    ///
    /// The source's own: it could not be read.
    pub fn aside<E>(
        &mut self,
        (name, run, commit): (&str, &RunId, ObjectId),
        completeness: Completeness<'_>,
        source: impl FnMut(&ObjectId, usize) -> Result<Found, E>,
    ) -> Result<(), E> {
        if self.wants(run) {
            let (_, chain) = read((name, run, commit), completeness, source)?;
            self.aside.entry(run.to_string()).or_default().push(chain);
        }
        Ok(())
    }

    /// Ends the check: the report, and the heads that the ledgers have now, for `--update`.
    #[must_use]
    pub fn finish(mut self) -> (Report, Heads) {
        self.session.close(crate::chain::LastLine::Settled);
        let anchored: BTreeSet<_> = self.anchors.keys().cloned().collect();
        let chains = self.chains();
        let mut checks = core::mem::take(&mut self.checks);
        self.against_base(&chains, &mut checks);
        self.against_own(&chains, &mut checks);
        self.named_runs(&chains, &mut checks);
        if chains.is_empty() && checks.iter().all(|check| check.status != Status::Fail) {
            let sentence = "there is no ledger here: fetch refs/bernstein/work-ledger/*, or let the policy \
                            say that none is needed (missing)";
            checks.push(Check::new("gate.runs", lack(self.policy.missing), sentence));
        }
        let heads = self.heads(&chains, &mut checks);
        let facts = facts(&chains);
        let requirements = core::mem::take(&mut self.policy.require);
        let mut report = self.session.finish().report;
        report.subject = ("gate", String::from("repository"));
        let signers = assurances::signers(&report);
        let files = report.facts.get("files").cloned().unwrap_or(Value::Null);
        report.facts = facts;
        report.facts.insert("files".into(), files);
        report.facts.insert("signers".into(), Value::from(signers));
        for requirement in requirements {
            checks.push(assurances::check(requirement, (&checks, &report), &chains, &anchored));
        }
        let first = checks.iter().find(|check| check.status == Status::Fail).cloned();
        if first.is_some() && Verdict::Failed.badness() > report.verdict.badness() {
            report.verdict = Verdict::Failed;
        }
        let open = checks.iter().any(|check| check.status == Status::NotChecked);
        if open && Verdict::Incomplete.badness() > report.verdict.badness() {
            report.verdict = Verdict::Incomplete;
        }
        if let Some(check) = first {
            report.summary = check.sentence;
        } else if report.verdict == Verdict::Absent {
            // What is missing was judged by the policy.
            report.verdict = Verdict::Empty;
        } else if report.verdict == Verdict::Incomplete {
            let of = counted(report.parts.len(), "subject");
            report.summary = format!("{of}, none failed, and not all could be checked");
        } else if report.verdict.exit_code() == 0 {
            report.summary = format!("{} held, none rewritten", counted(report.parts.len(), "subject"));
        }
        checks.append(&mut report.checks);
        report.checks = checks;
        report.does_not_establish = [
            "that the refs here are all that a remote has, or the latest",
            "who wrote the ledgers, or when: the chains have no key, and no hash covers `ts`",
            "that what the entries say happened",
        ]
        .map(String::from)
        .into();
        (report, heads)
    }

    /// The heads that the ledgers have now, and those of runs that have none here.
    fn heads(&self, chains: &BTreeMap<String, Chain>, checks: &mut Vec<Check>) -> Heads {
        let now = chains.iter().filter(|(_, chain)| chain.holds);
        let mut heads: BTreeMap<_, _> =
            now.filter_map(|(run, chain)| Some((run.clone(), Head::of(&chain.stamps)?))).collect();
        if let Named::Updated(old) = &self.now {
            for (run, head) in old.0.iter().filter(|(run, _)| !chains.contains_key(*run)) {
                heads.insert(run.clone(), *head);
                if self.policy.wants(run) {
                    let sentence = format!("run {run} has no ledger here: its head stays as it was named");
                    checks.push(Check::new("gate.heads", Status::Warn, sentence).at(HEADS, None));
                }
            }
        }
        Heads(heads)
    }

    /// The chain of each run: its anchor's, or else its ledger's.
    fn chains(&mut self) -> BTreeMap<String, Chain> {
        let mut chains = core::mem::take(&mut self.anchors);
        for (run, holds, stamps) in self.session.ledgers() {
            if self.policy.wants(run) && !chains.contains_key(run) {
                let chain = Chain { name: String::from("its ledger"), holds, stamps: stamps.to_vec() };
                chains.insert(run.to_string(), chain);
            }
        }
        chains
    }
}

fn read<E>(
    (name, run, commit): (&str, &RunId, ObjectId),
    completeness: Completeness<'_>,
    source: impl FnMut(&ObjectId, usize) -> Result<Found, E>,
) -> Result<(Report, Chain), E> {
    let target = Target { completeness, ..Target::new(name, commit, Some(run)) };
    let mut stamps = Vec::new();
    let report = anchor::verify(&target, source, |row, _| stamps.push(Stamp::of(row)))?;
    let holds = report.verdict != Verdict::Failed;
    Ok((report, Chain { name: name.to_string(), holds, stamps }))
}

fn read_policy(files: &Files<'_>, checks: &mut Vec<Check>) -> Policy {
    const ID: &str = "gate.policy";
    let policy = match files.policy.map(Policy::read) {
        None => {
            let sentence = format!("the base has no {POLICY}: ledgers must hold, and must not be rewritten");
            checks.push(Check::new(ID, Status::NotApplicable, sentence));
            Policy::default()
        }
        Some(Ok(policy)) => {
            checks.push(Check::new(ID, Status::Pass, "checked under the base's policy").at(POLICY, None));
            policy
        }
        Some(Err(why)) => {
            let sentence = format!("the base's {POLICY} can't be read: {why}");
            checks.push(Check::new(ID, Status::Fail, sentence).at(POLICY, None));
            Policy::default()
        }
    };
    if files.new_policy != files.policy {
        let (status, sentence) = match files.new_policy.map(Policy::read) {
            None => (Status::Warn, String::from("this takes the policy away; the base's was applied")),
            Some(Ok(_)) => {
                let said = "this changes the policy; the base's was applied, look at the change";
                (Status::Warn, String::from(said))
            }
            Some(Err(why)) => {
                (Status::Fail, format!("this changes the policy to one that can't be read: {why}"))
            }
        };
        checks.push(Check::new(ID, status, sentence).at(POLICY, None));
    }
    policy
}

/// What a program that reads the report asks for first: how many runs and entries there are, and
/// the head, where there is one run.
fn facts(chains: &BTreeMap<String, Chain>) -> Object {
    let entries: u64 = chains.values().map(|chain| chain.entries()).sum();
    let only = (chains.len() == 1).then(|| chains.values().next()).flatten();
    let head = only.filter(|chain| chain.holds).and_then(|chain| chain.stamps.last());
    Object::of([
        ("runs", Value::from(u64::try_from(chains.len()).unwrap_or(u64::MAX))),
        ("entries", Value::from(entries)),
        ("head_hash", Value::from(head.map(|stamp| stamp.entry_hash.to_hex()))),
    ])
}

const fn lack(what: Lack) -> Status {
    match what {
        Lack::Fail => Status::Fail,
        Lack::Warn => Status::Warn,
        Lack::Pass => Status::Pass,
    }
}
