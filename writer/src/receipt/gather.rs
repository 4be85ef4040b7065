//! What a receipt is checked with: its run's journal, the spine, the audit log, the identity
//! beside it, the repository. Everything is read once, and nothing is written.

use std::io::Read;
use std::path::Path;

use waybill_verifier::receipt::{
    Audit, AuditIndex, Evidence, File, ForkCommit, Journal, JournalView, MAX_FILE, Scope, Spine, SpineIndex,
    Trust, report,
};
use waybill_verifier::report::Report;
use waybill_verifier::tag::MasterKey;

use super::Error;
use crate::durable::{self, open_regular};
use crate::project::Project;
use crate::worktree::Worktree;
use crate::{audit, identity, journal, spine};

/// What belongs to the receipts of a project.
#[derive(Debug)]
pub struct Gathered {
    project: Project,
    /// The spine of receipts.
    pub spine: Option<Spine>,
    audit: Option<Audit>,
    identity: Option<Vec<u8>>,
    worktree: Option<Worktree>,
}

impl Gathered {
    /// Reads what all receipts of a project share. Without the key, tags are not checked.
    ///
    /// # Errors
    ///
    /// If something that is there can't be read.
    pub fn of(project: &Project, key: Option<&MasterKey>) -> Result<Gathered, Error> {
        let folder = project.receipt_spine();
        durable::refuse_links(project.root(), &folder)?;
        let named = (".sdd/lineage/escalations/spine.jsonl", ".sdd/lineage/escalations/spine.head");
        let spine = spine::walk(&folder, key, SpineIndex::default())?
            .map(|(outcome, head)| Spine::of(named, outcome, &head));
        let folder = project.audit();
        durable::refuse_links(project.root(), &folder)?;
        let audit = match folder.is_dir() {
            true => Some(Audit::of(audit::read(&folder, key, AuditIndex::default)?)),
            false => None,
        };
        Ok(Gathered {
            spine,
            audit,
            identity: identity::public_bytes(project)?,
            worktree: repository(project)?,
            project: project.clone(),
        })
    }

    /// The report on one receipt of the project; `file` is its path, relative to the project.
    ///
    /// # Errors
    ///
    /// If the journal can't be read.
    pub fn report(&self, file: &str, receipt: &File, trust: &Trust) -> Result<Report, Error> {
        let binding = receipt.binding.as_ref();
        let journal = match binding {
            None => None,
            Some(binding) => {
                let run = &binding.run_id;
                let outcome = journal::walk(&self.project, run, JournalView::of(Some(binding)))?;
                outcome.map(|outcome| Journal::of(&format!(".sdd/runs/{run}/journal.jsonl"), outcome))
            }
        };
        let fork = binding.and_then(|binding| Some((&binding.run_id, binding.fork_ref.as_ref()?)));
        let fork_commit = match (fork, &self.worktree) {
            (Some((run, fork)), Some(worktree)) => match worktree.snapshot(run, fork.fork_step)? {
                Some(commit) => ForkCommit::At(commit),
                None => ForkCommit::Missing,
            },
            _ => ForkCommit::NotLookedAt,
        };
        Ok(report(&Evidence {
            file,
            receipt,
            scope: Scope::Project,
            journal: journal.as_ref(),
            spine: self.spine.as_ref(),
            audit: self.audit.as_ref(),
            identity: self.identity.as_deref(),
            fork_commit,
            trust,
        }))
    }
}

/// The project's repository: the one whose top folder it is, or that keeps records of runs. One
/// that merely lies around an unpacked copy says nothing of it.
pub(super) fn repository(project: &Project) -> Result<Option<Worktree>, Error> {
    let worktree = match Worktree::find(project.root()) {
        Ok(Some(worktree)) => worktree,
        // Without git there is nothing to look at.
        Ok(None) | Err(crate::worktree::Error::NoGit(_)) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let same = |path: &Path| path.canonicalize().ok();
    let is_top = same(worktree.top()).is_some_and(|top| same(project.root()) == Some(top));
    Ok((is_top || worktree.has_records()?).then_some(worktree))
}

/// Reads a receipt's file.
///
/// # Errors
///
/// If it can't be read.
pub fn read_file(path: &Path) -> Result<Vec<u8>, durable::Error> {
    let limit = u64::try_from(MAX_FILE).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    open_regular(path)?
        .take(limit + 1)
        .read_to_end(&mut bytes)
        .map_err(|source| durable::Error::new("can't read", path, source))?;
    Ok(bytes)
}
