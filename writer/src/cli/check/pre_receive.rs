//! The same rules at a server: a push may append to a ledger's anchor, and pack it, and nothing
//! else.
//!
//! git gives a `pre-receive` hook a line `<old> <new> <ref>` for each ref of a push, with zeros
//! where there is none, and holds the push's objects apart until the hook has ended well. A push
//! is taken or refused as a whole.

use std::io::BufRead;
use std::path::Path;

use waybill_verifier::anchor::{self, Completeness, ObjectId, REF_PREFIX, Target};
use waybill_verifier::compare::{Comparison, Stamp, compare};
use waybill_verifier::id::RunId;
use waybill_verifier::report::{Verdict, counted};

use super::super::Global;
use super::super::exit::{Exit, Failure};
use super::super::out;
use super::base::is_none;
use crate::git::{ASIDE, Store};

/// A push of more refs than this is not looked at.
const MAX_REFS: usize = 100_000;

pub(super) fn run(global: &Global, mut store: Store, allow_settled: bool) -> Result<Exit, Failure> {
    if let Some(folder) = std::env::var_os("GIT_OBJECT_DIRECTORY") {
        store = store.with_incoming(Path::new(&folder))?;
    }
    let unreadable = |error: std::io::Error| Failure::io(&error);
    let lines: Vec<String> =
        std::io::stdin().lock().lines().take(MAX_REFS + 1).collect::<Result<_, _>>().map_err(unreadable)?;
    if lines.len() > MAX_REFS {
        return Err(Failure::usage(format!("a push of more than {MAX_REFS} refs is not taken")));
    }
    let moves = lines.iter().map(|line| Move::read(line)).collect::<Result<Vec<_>, _>>()?;
    let mut exit = Exit::Done;
    for moved in &moves {
        let (word, said) = match moved.judge(&store, &moves, allow_settled)? {
            None => continue,
            Some(Ok(said)) if global.form() == out::Form::Quiet => {
                drop(said);
                continue;
            }
            Some(Ok(said)) => ("taken", said),
            Some(Err(said)) => {
                exit = Exit::Failed;
                ("refused", said)
            }
        };
        out::say(&format!("{word}: {}: {said}", moved.name));
    }
    Ok(exit)
}

/// A ref that a push moves.
struct Move {
    old: Option<ObjectId>,
    new: Option<ObjectId>,
    name: String,
}

/// What is said of a move: that it is taken, or why it is not.
type Said = Result<String, String>;

/// The lineage at a commit.
struct Lineage {
    stamps: Vec<Stamp>,
    fault: Option<String>,
}

impl Move {
    fn read(line: &str) -> Result<Move, Failure> {
        let id = |text: &str| match ObjectId::from_hex(text.as_bytes()) {
            Some(id) => Ok((!is_none(text)).then_some(id)),
            None => {
                Err(Failure::usage("a line is not 'old new ref': this reads what a pre-receive hook gets"))
            }
        };
        let mut words = line.splitn(3, ' ');
        let (old, new) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        Ok(Move { old: id(old)?, new: id(new)?, name: words.next().unwrap_or_default().to_owned() })
    }

    /// `None` where it is no ledger's.
    fn judge(&self, store: &Store, push: &[Move], allow_settled: bool) -> Result<Option<Said>, Failure> {
        if let Some(rest) = self.name.strip_prefix(REF_PREFIX) {
            return Ok(Some(match RunId::new(rest) {
                Ok(run) => self.anchor(store, &run, push, allow_settled)?,
                Err(error) => Err(format!("{error}")),
            }));
        }
        let Some(rest) = self.name.strip_prefix(ASIDE) else { return Ok(None) };
        let run = rest.split_once('/').and_then(|(run, _)| RunId::new(run).ok());
        Ok(Some(match (run, self.old, self.new) {
            (None, ..) => Err(String::from("it does not name a run and a head")),
            (_, Some(_), _) => Err(String::from("what was set aside stays as it is")),
            (Some(run), None, Some(new)) => {
                let lineage = Lineage::at(store, &self.name, &run, new)?;
                match lineage.fault {
                    Some(fault) => Err(fault),
                    None => Ok(format!("{} set aside", counted(lineage.stamps.len(), "entry"))),
                }
            }
            (_, None, None) => return Ok(None),
        }))
    }

    fn anchor(
        &self,
        store: &Store,
        run: &RunId,
        push: &[Move],
        allow_settled: bool,
    ) -> Result<Said, Failure> {
        let Some(new) = self.new else {
            return Ok(Err(String::from("a ledger's anchor is not deleted")));
        };
        let ours = Lineage::at(store, &self.name, run, new)?;
        if let Some(fault) = ours.fault {
            return Ok(Err(fault));
        }
        let count = counted(ours.stamps.len(), "entry");
        let Some(old) = self.old else { return Ok(Ok(format!("{count}, a new ledger"))) };
        let theirs = Lineage::at(store, &self.name, run, old)?;
        if let Some(fault) = theirs.fault {
            return Ok(Err(format!("the anchor here does not hold, so nothing was compared: {fault}")));
        }
        let rewritten = match compare(&ours.stamps, &theirs.stamps) {
            Comparison::Identical => return Ok(Ok(format!("the same {count}"))),
            Comparison::LocalAhead(more) => {
                return Ok(Ok(format!("{count}, {} of them new", u64::try_from(more).unwrap_or(u64::MAX))));
            }
            Comparison::RemoteAhead(more) => {
                format!("{} would be lost: fetch first", counted(more, "entry"))
            }
            Comparison::Diverged { entry, .. } => format!(
                "it rewrites history from entry {entry} on: 'waybill ledger diff {run} --remote' shows both"
            ),
            Comparison::UnhashedFieldsDiffer { entry } => {
                format!("`ts` or `redactions` of entry {entry} were edited")
            }
        };
        let settled = allow_settled && is_kept(store, run, &theirs.stamps, push)?;
        Ok(if settled { Ok(format!("{count}; what they replace is kept aside")) } else { Err(rewritten) })
    }
}

/// Whether a lineage is kept aside, here already or by the same push.
fn is_kept(store: &Store, run: &RunId, stamps: &[Stamp], push: &[Move]) -> Result<bool, Failure> {
    let Some(head) = stamps.last() else { return Ok(false) };
    let name = format!("{ASIDE}{run}/{}", head.entry_hash);
    let pushed = push.iter().find(|moved| moved.name == name).and_then(|moved| moved.new);
    let Some(commit) = pushed.map_or_else(|| store.reference(&name), |commit| Ok(Some(commit)))? else {
        return Ok(false);
    };
    let aside = Lineage::at(store, &name, run, commit)?;
    let kept = matches!(compare(&aside.stamps, stamps), Comparison::Identical | Comparison::LocalAhead(_));
    Ok(aside.fault.is_none() && kept)
}

impl Lineage {
    fn at(store: &Store, name: &str, run: &RunId, commit: ObjectId) -> Result<Lineage, Failure> {
        let shallow = store.shallow()?;
        let completeness = shallow.as_ref().map_or(Completeness::Whole, Completeness::Shallow);
        let target = Target { completeness, ..Target::new(name, commit, Some(run)) };
        let mut stamps = Vec::new();
        let source = |id: &ObjectId, limit| store.object(id, limit);
        let report = anchor::verify(&target, source, |row, _| stamps.push(Stamp::of(row)))?;
        let fault = (report.verdict == Verdict::Failed).then_some(report.summary);
        Ok(Lineage { stamps, fault })
    }
}
