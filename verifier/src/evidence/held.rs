//! Two ledgers of one run held against each other, as checks.

use alloc::format;
use alloc::string::String;

use crate::compare::{Comparison, Stamp};
use crate::hash::Digest;
use crate::report::{Check, Status, Verdict, Voucher, counted};

/// A check, the verdict that it forces, and what it vouches for.
pub type Held = (Check, Option<Verdict>, Voucher);

/// How one chain stands to another that vouches for it, such as its anchor: what [`compare`] said
/// of the two.
///
/// [`compare`]: crate::compare::compare
#[must_use]
pub fn held_against(
    id: &'static str,
    comparison: Comparison,
    (what, ours): (&str, &[Stamp]),
    (whose, theirs): (&str, &[Stamp]),
    voucher: Voucher,
) -> Held {
    let head = |stamps: &[Stamp]| stamps.last().map_or(Digest::ZERO, |stamp| stamp.entry_hash);
    let entries = counted(theirs.len(), "entry");
    let pass = |sentence: String| (Check::new(id, Status::Pass, sentence), None, voucher);
    let fail = |sentence: String, fault, verdict| {
        let mut check = Check::new(id, Status::Fail, sentence);
        check.fault = fault;
        (check, Some(verdict), Voucher::None)
    };
    match comparison {
        Comparison::Identical => pass(format!("{whose} holds the same {entries}")),
        Comparison::LocalAhead(more) => pass(format!(
            "{whose} holds {entries}, the first of {what}; not there yet: {}",
            counted(more, "entry")
        )),
        Comparison::RemoteAhead(more) => fail(
            format!("{whose} holds {entries}, {more} more than {what}: its end is missing here"),
            None,
            Verdict::Failed,
        ),
        Comparison::Diverged { entry, .. } => fail(
            format!(
                "diverged at entry {entry}: the head of {what} is {}, that of {whose} is {}",
                head(ours),
                head(theirs)
            ),
            Some("diverged"),
            Verdict::Diverged,
        ),
        Comparison::UnhashedFieldsDiffer { entry } => fail(
            format!(
                "`ts` or `redactions` of entry {entry} differ between {what} and {whose}: one was edited"
            ),
            Some("unhashed_fields_differ"),
            Verdict::Failed,
        ),
    }
}

/// How two ledgers of one run stand to each other, neither of which vouches for the other.
#[must_use]
pub fn compared((first, second): (&str, &str), run: &str, comparison: Comparison) -> (Check, Verdict) {
    const ID: &str = "ledger.compare";
    let ahead = |longer: &str, shorter: &str, more: usize| {
        let sentence =
            format!("{longer} goes on from {shorter}, by {}, as run {run}", counted(more, "entry"));
        (Check::new(ID, Status::Pass, sentence), Verdict::Verified)
    };
    match comparison {
        Comparison::Identical => {
            let sentence = format!("{first} and {second} are the same ledger of run {run}");
            (Check::new(ID, Status::Pass, sentence), Verdict::Verified)
        }
        Comparison::LocalAhead(more) => ahead(first, second, more),
        Comparison::RemoteAhead(more) => ahead(second, first, more),
        Comparison::Diverged { entry, local, remote } => {
            let sentence = format!(
                "run {run} diverged at entry {entry}: {first} has {local}, {second} has {remote}; nothing \
                 is merged, somebody has to keep one"
            );
            (failed(ID, sentence, "diverged"), Verdict::Diverged)
        }
        Comparison::UnhashedFieldsDiffer { entry } => {
            let sentence = format!(
                "{first} and {second} have the same hashes, but the unhashed fields of entry {entry} (`ts`, \
                 `redactions`) differ: one of them was edited"
            );
            (failed(ID, sentence, "unhashed_fields_differ"), Verdict::Failed)
        }
    }
}

fn failed(id: &'static str, sentence: String, fault: &'static str) -> Check {
    Check { fault: Some(fault), ..Check::new(id, Status::Fail, sentence) }
}
