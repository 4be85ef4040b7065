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

mod format;
mod heads;
mod policy;

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

pub use format::{Annotations, codequality, github, junit, markdown, plain, sarif};
pub use heads::{Head, Heads};
pub use policy::{Lack, Policy};

use crate::anchor::{self, Completeness, Found, ObjectId, Target};
use crate::compare::Stamp;
use crate::evidence::{Options, Session};
use crate::id::RunId;
use crate::report::{Check, Report, Status, Verdict, counted};

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
    now: Option<Heads>,
    checks: Vec<Check>,
    anchors: BTreeMap<String, Chain>,
    aside: BTreeMap<String, Vec<Chain>>,
}

impl Gate {
    /// A check under the base's policy. What can't be read of the files is a failed check.
    #[must_use]
    pub fn new(files: &Files<'_>) -> Gate {
        let mut checks = Vec::new();
        let policy = read_policy(files, &mut checks);
        let mut heads = |bytes: Option<&[u8]>, id, whose: &str| match bytes.map(Heads::read)? {
            Ok(heads) => Some(heads),
            Err(why) => {
                let check = Check::new(id, Status::Fail, format!("{whose} {HEADS} can't be read: {why}"));
                checks.push(check.at(HEADS, None));
                None
            }
        };
        let base = heads(files.base_heads, "gate.base", "the base's").unwrap_or_default();
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

    /// The session that takes the files below `.sdd/`.
    pub fn session(&mut self) -> &mut Session {
        &mut self.session
    }

    /// Looks at what is there only, not at what the base names: to write new heads.
    pub fn only_what_is_there(&mut self) {
        self.base = Heads::default();
        self.now = None;
        self.checks.retain(|check| check.id != "gate.base" && check.id != "gate.heads");
    }

    /// Whether the policy wants a run to be looked at.
    #[must_use]
    pub fn wants(&self, run: &RunId) -> bool {
        self.policy.wants(run.as_str())
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
        let chains = self.chains();
        let mut checks = core::mem::take(&mut self.checks);
        self.against_base(&chains, &mut checks);
        self.against_own(&chains, &mut checks);
        self.named_runs(&chains, &mut checks);
        let nothing = chains.is_empty() && self.session.is_empty();
        if nothing && checks.iter().all(|check| check.status != Status::Fail) {
            let sentence = "there is no ledger in this repository, and none is expected";
            checks.push(Check::new("gate.runs", lack(self.policy.missing), sentence));
        }
        let now = chains
            .iter()
            .filter(|(_, chain)| chain.holds)
            .filter_map(|(run, chain)| Some((run.clone(), Head::of(&chain.stamps)?)))
            .collect();
        let requirements = self.policy.require.clone();
        let mut report = self.session.finish().report;
        report.subject = ("gate", String::from("repository"));
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
        } else if report.verdict.exit_code() == 0 {
            report.summary = format!("{} held, none rewritten", counted(report.parts.len(), "subject"));
        }
        checks.append(&mut report.checks);
        report.checks = checks;
        report.require(requirements);
        (report, Heads(now))
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

    /// Every head that the base names is still an entry.
    fn against_base(&self, chains: &BTreeMap<String, Chain>, checks: &mut Vec<Check>) {
        const ID: &str = "gate.base";
        for (run, head) in self.base.0.iter().filter(|(run, _)| self.policy.wants(run)) {
            let check = match chains.get(run) {
                None => {
                    let sentence = format!(
                        "run {run} has {} on the base, and no ledger here: fetch its ref, or it was taken away",
                        counted(head.entries, "entry")
                    );
                    Check::new(ID, lack(self.policy.missing), sentence)
                }
                Some(chain) if !chain.holds => {
                    let sentence =
                        format!("run {run}: {} does not hold, so nothing was compared", chain.name);
                    Check::new(ID, Status::NotChecked, sentence)
                }
                Some(chain) if head.is_in(&chain.stamps) => {
                    let more = chain.entries().saturating_sub(head.entries);
                    let sentence = match more {
                        0 => format!("run {run} is as the base has it: {}", counted(head.entries, "entry")),
                        _ => format!(
                            "run {run} went on from the base's {}, by {more}",
                            counted(head.entries, "entry")
                        ),
                    };
                    Check::new(ID, Status::Pass, sentence)
                }
                Some(_) => self.rewritten(run, head),
            };
            checks.push(check.at(HEADS, None));
        }
    }

    fn rewritten(&self, run: &str, head: &Head) -> Check {
        const ID: &str = "gate.base";
        let kept = self
            .aside
            .get(run)
            .and_then(|chains| chains.iter().find(|chain| chain.holds && head.is_in(&chain.stamps)));
        match kept {
            Some(chain) => {
                let sentence = format!(
                    "run {run} was settled: the base's entry {} is not in it any more, and kept in {}",
                    head.entries.saturating_sub(1),
                    chain.name
                );
                Check::new(ID, lack(self.policy.settled), sentence)
            }
            None => {
                let sentence = format!(
                    "run {run} was rewritten: the base's head {} (entry {}) is no entry of it any more",
                    head.hash,
                    head.entries.saturating_sub(1)
                );
                let mut check = Check::new(ID, Status::Fail, sentence);
                check.fault = Some("history_rewritten");
                check
            }
        }
    }

    /// The heads that ask to be merged are those of the ledgers.
    fn against_own(&self, chains: &BTreeMap<String, Chain>, checks: &mut Vec<Check>) {
        const ID: &str = "gate.heads";
        let Some(now) = &self.now else {
            if !self.base.0.is_empty() {
                let sentence = format!("the base has a {HEADS}, and this takes it away");
                checks.push(Check::new(ID, Status::Fail, sentence));
            }
            return;
        };
        for (run, head) in now.0.iter().filter(|(run, _)| self.policy.wants(run)) {
            let check = match chains.get(run) {
                None if self.base.0.contains_key(run) => continue,
                None => Check::new(
                    ID,
                    lack(self.policy.missing),
                    format!("run {run} is named, and has no ledger here"),
                ),
                Some(chain) if !chain.holds => continue,
                Some(chain) if !head.is_in(&chain.stamps) => {
                    let sentence = format!(
                        "run {run} is named with head {} at {}, which its ledger does not have: 'waybill check --update'",
                        head.hash,
                        counted(head.entries, "entry")
                    );
                    Check::new(ID, Status::Fail, sentence)
                }
                Some(_) if self.base.0.get(run).is_some_and(|base| base.entries > head.entries) => {
                    let sentence = format!("run {run} is named with fewer entries than the base names");
                    Check::new(ID, Status::Fail, sentence)
                }
                Some(chain) if chain.entries() > head.entries => {
                    let more = chain.entries().saturating_sub(head.entries);
                    let sentence = format!(
                        "run {run} has {more} more than is named: 'waybill check --update' takes them in"
                    );
                    Check::new(ID, Status::Warn, sentence)
                }
                Some(_) => Check::new(ID, Status::Pass, format!("run {run} is named as it is")),
            };
            checks.push(check.at(HEADS, None));
        }
        for run in self.base.0.keys().filter(|run| !now.0.contains_key(*run) && self.policy.wants(run)) {
            let check = Check::new(ID, Status::Fail, format!("the base names run {run}, and this does not"));
            checks.push(check.at(HEADS, None));
        }
        for run in chains.keys().filter(|run| !now.0.contains_key(*run)) {
            let sentence = format!("run {run} is not named: 'waybill check --update' takes it in");
            checks.push(Check::new(ID, Status::Warn, sentence).at(HEADS, None));
        }
    }

    /// The runs that the policy names are there.
    fn named_runs(&self, chains: &BTreeMap<String, Chain>, checks: &mut Vec<Check>) {
        for run in self.policy.named_runs() {
            if !chains.contains_key(run) && !self.base.0.contains_key(run) {
                let sentence = format!("the policy names run {run}, and there is no ledger of it");
                checks.push(Check::new("gate.runs", lack(self.policy.missing), sentence).at(POLICY, None));
            }
        }
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
        let sentence = match files.new_policy.map(Policy::read) {
            None => String::from("this takes the policy away; the base's was applied"),
            Some(Ok(_)) => {
                String::from("this changes the policy; the base's was applied, look at the change")
            }
            Some(Err(why)) => format!("this changes the policy to one that can't be read: {why}"),
        };
        let status = match files.new_policy.map(Policy::read) {
            Some(Err(_)) => Status::Fail,
            _ => Status::Warn,
        };
        checks.push(Check::new(ID, status, sentence).at(POLICY, None));
    }
    policy
}

const fn lack(what: Lack) -> Status {
    match what {
        Lack::Fail => Status::Fail,
        Lack::Warn => Status::Warn,
        Lack::Pass => Status::Pass,
    }
}
