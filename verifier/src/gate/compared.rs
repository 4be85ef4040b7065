//! The ledgers that are here, held against the heads of the base and of what asks to be merged.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::{Chain, Gate, HEADS, Head, Named, POLICY, lack};
use crate::report::{Check, Status, counted};

const UPDATE: &str = "'waybill check --update'";

impl Gate {
    /// Every head that the base names is still an entry.
    pub(super) fn against_base(&self, chains: &BTreeMap<String, Chain>, checks: &mut Vec<Check>) {
        const ID: &str = "gate.base";
        if self.base.0.is_empty() && checks.iter().all(|check| check.id != ID) && self.is_compared() {
            let sentence =
                format!("the base names no heads, so no history was compared: {UPDATE} names them");
            checks.push(Check::new(ID, Status::NotApplicable, sentence).at(HEADS, None));
        }
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

    const fn is_compared(&self) -> bool {
        !matches!(self.now, Named::Updated(_))
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
    pub(super) fn against_own(&self, chains: &BTreeMap<String, Chain>, checks: &mut Vec<Check>) {
        const ID: &str = "gate.heads";
        let now = match &self.now {
            Named::Heads(now) => now,
            Named::Nothing if !self.base.0.is_empty() => {
                let sentence = format!("the base has a {HEADS}, and this takes it away");
                checks.push(Check::new(ID, Status::Fail, sentence).at(HEADS, None));
                return;
            }
            Named::Nothing | Named::Unreadable | Named::Updated(_) => return,
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
                        "run {run} is named with head {} at {}, which its ledger does not have: {UPDATE}",
                        head.hash,
                        counted(head.entries, "entry")
                    );
                    Check::new(ID, Status::Fail, sentence)
                }
                // A base's head that is not in it any more was judged above.
                Some(chain) if self.base.0.get(run).is_some_and(|base| base.passes(head, &chain.stamps)) => {
                    let sentence = format!("run {run} is named with fewer entries than the base names");
                    Check::new(ID, Status::Fail, sentence)
                }
                Some(chain) if chain.entries() > head.entries => {
                    let more = chain.entries().saturating_sub(head.entries);
                    let sentence = format!("run {run} has {more} more than is named: {UPDATE} takes them in");
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
            let sentence = format!("run {run} is not named: {UPDATE} takes it in");
            checks.push(Check::new(ID, Status::Warn, sentence).at(HEADS, None));
        }
    }

    /// The runs that the policy names are there.
    pub(super) fn named_runs(&self, chains: &BTreeMap<String, Chain>, checks: &mut Vec<Check>) {
        for run in self.policy.named_runs() {
            if !chains.contains_key(run) && !self.base.0.contains_key(run) {
                let sentence = format!("the policy names run {run}, and there is no ledger of it");
                checks.push(Check::new("gate.runs", lack(self.policy.missing), sentence).at(POLICY, None));
            }
        }
    }
}
