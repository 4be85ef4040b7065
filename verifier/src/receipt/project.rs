//! Receipts checked with the files of their project, held in memory: for readers who have no
//! folder to look into, such as a page or an archive.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

use super::{
    Audit, AuditIndex, Evidence, File, ForkCommit, Journal, JournalView, Scope, Spine, SpineIndex, Trust,
    report,
};
use crate::audit::{Log, Start, arrange};
use crate::chain::{LastLine, Visit, Walk};
use crate::journal::{self, Event, EventRows};
use crate::report::Report;
use crate::spine::{HeadFile, SpineRows};
use crate::table::Table;
use crate::tag::MasterKey;

const AUDIT: &str = ".sdd/audit/";
const SPINE: &str = ".sdd/lineage/escalations/spine.jsonl";
const HEAD: &str = ".sdd/lineage/escalations/spine.head";
const IDENTITY: &str = ".sdd/identity/escalation-identity-public.pem";

/// The files of a project, by their paths relative to its folder, as `.sdd/audit/2026-11-29.jsonl`.
pub type Files<'a> = Table<&'a [u8]>;

/// The files of a project, and what all of its receipts share of them.
#[derive(Debug)]
pub struct Together<'a> {
    files: Files<'a>,
    spine: Option<Spine>,
    audit: Option<Audit>,
}

impl<'a> Together<'a> {
    /// Reads what the receipts share: the spine of receipts and the audit log, which begins at
    /// `start`. Without the key, tags are not checked.
    #[must_use]
    pub fn of(files: Files<'a>, start: Start, key: Option<&MasterKey>) -> Together<'a> {
        let spine = files.get(SPINE).map(|rows| {
            let head = HeadFile::read(files.get(HEAD).copied());
            let mut walk = Walk::new(SpineRows::new(key, &head, SpineIndex::default()));
            walk.push(rows);
            Spine::of((SPINE, HEAD), walk.finish(LastLine::Settled), &head)
        });
        let audit = audit(&files, start, key);
        Together { files, spine, audit }
    }

    /// The report on the receipt at `path`, with its run's journal. No repository is looked at.
    ///
    /// The same files give the report that the command gives of their folder.
    #[must_use]
    pub fn report(&self, path: &str, scope: Scope, trust: &Trust) -> Report {
        let receipt = File::read(self.files.get(path).copied().unwrap_or_default());
        let journal = receipt.binding.as_ref().and_then(|binding| {
            let name = format!(".sdd/runs/{}/journal.jsonl", binding.run_id);
            let mut view = JournalView::of(Some(binding));
            let visit: journal::Visitor<'_> = Box::new(|event: &Event, place| view.visit(event, place));
            let mut walk = Walk::new(EventRows::new(visit));
            walk.push(self.files.get(&name)?);
            let outcome = walk.finish(LastLine::Settled).map(drop);
            Some(Journal { file: name, outcome, view })
        });
        report(&Evidence {
            file: path,
            receipt: &receipt,
            scope,
            journal: journal.as_ref(),
            spine: self.spine.as_ref(),
            audit: self.audit.as_ref(),
            identity: self.files.get(IDENTITY).copied(),
            fork_commit: ForkCommit::NotLookedAt,
            trust,
        })
    }
}

fn audit(files: &Files<'_>, start: Start, key: Option<&MasterKey>) -> Option<Audit> {
    let names: Vec<&str> = files.names().filter_map(|path| path.strip_prefix(AUDIT)).collect();
    if names.is_empty() {
        return None;
    }
    let folder = arrange(names);
    let mut log = Log::new(key, start, AuditIndex::default()).in_folder(&folder);
    for day in &folder.days {
        log.open(day);
        log.push(files.get(&format!("{AUDIT}{}", day.name)).copied().unwrap_or_default());
    }
    Some(Audit::of(log.finish(LastLine::Settled)))
}
