//! A receipt checked with the files of its project, held in memory: for readers who have no
//! folder to look into, such as a page or an archive.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::{
    Audit, AuditIndex, Evidence, File, ForkCommit, Journal, JournalView, Scope, Spine, SpineIndex, Trust,
    report,
};
use crate::audit::{Log, Start, arrange};
use crate::chain::{LastLine, Walk};
use crate::journal::EventRows;
use crate::report::Report;
use crate::spine::{HeadFile, SpineRows};
use crate::tag::MasterKey;

const AUDIT: &str = ".sdd/audit/";
const SPINE: &str = ".sdd/lineage/escalations/spine.jsonl";
const HEAD: &str = ".sdd/lineage/escalations/spine.head";
const IDENTITY: &str = ".sdd/identity/escalation-identity-public.pem";

/// The files of a project, by their paths relative to its folder, as `.sdd/audit/2026-11-29.jsonl`.
pub type Files = BTreeMap<String, Vec<u8>>;

/// The report on the receipt at `path`, with what of its project is among `files`: its run's
/// journal, the spine of receipts, the audit log, the identity. No repository is looked at.
///
/// The same files give the report that the command gives of their folder.
#[must_use]
pub fn report_files(
    path: &str,
    files: &Files,
    scope: Scope,
    key: Option<&MasterKey>,
    trust: &Trust,
) -> Report {
    let receipt = File::read(files.get(path).map(Vec::as_slice).unwrap_or_default());
    let journal = receipt.binding.as_ref().and_then(|binding| {
        let name = format!(".sdd/runs/{}/journal.jsonl", binding.run_id);
        let mut walk = Walk::new(EventRows::new(JournalView::of(Some(binding))));
        walk.push(files.get(&name)?);
        Some(Journal::of(&name, walk.finish(LastLine::Settled)))
    });
    let spine = files.get(SPINE).map(|rows| {
        let head = HeadFile::read(files.get(HEAD).map(Vec::as_slice));
        let mut walk = Walk::new(SpineRows::new(key, &head, SpineIndex::default()));
        walk.push(rows);
        Spine::of((SPINE, HEAD), walk.finish(LastLine::Settled), &head)
    });
    report(&Evidence {
        file: path,
        receipt: &receipt,
        scope,
        journal: journal.as_ref(),
        spine: spine.as_ref(),
        audit: audit(files, key).as_ref(),
        identity: files.get(IDENTITY).map(Vec::as_slice),
        fork_commit: ForkCommit::NotLookedAt,
        trust,
    })
}

fn audit(files: &Files, key: Option<&MasterKey>) -> Option<Audit> {
    let names: Vec<&str> = files.keys().filter_map(|path| path.strip_prefix(AUDIT)).collect();
    if names.is_empty() {
        return None;
    }
    let folder = arrange(names);
    let mut log = Log::new(key, Start::Genesis, AuditIndex::default()).in_folder(&folder);
    for day in &folder.days {
        log.open(day);
        log.push(files.get(&format!("{AUDIT}{}", day.name)).map(Vec::as_slice).unwrap_or_default());
    }
    Some(Audit::of(log.finish(LastLine::Settled)))
}
