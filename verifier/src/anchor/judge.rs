//! One anchor that was read, as checks: in the order in which its faults are named.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::commit::{Commit, Form};
use super::finding::Finding;
use super::meta::{Meta, Totals};
use super::read::{Body, CommitRead};
use super::rows::RowsRead;
use super::tree::META_NAME;
use crate::chain::FaultKind;
use crate::id::RunId;
use crate::report::{Check, Status, counted};

/// What one check of an anchor says.
pub(super) type Judgement = (&'static str, Result<Passed, Finding>);

/// A check that did not fail.
pub(super) enum Passed {
    Holds(String),
    Warns(String),
}

/// An anchor that was read.
pub(super) struct Anchored<'a> {
    /// The commit; none where only its tree was given.
    pub(super) commit: Option<&'a CommitRead>,
    pub(super) body: &'a Body,
    /// The run of the ref that led here.
    pub(super) run: Option<&'a RunId>,
}

impl Anchored<'_> {
    pub(super) fn judge(&self) -> Vec<Judgement> {
        [
            ("anchor.objects", self.objects()),
            ("anchor.tree", self.tree()),
            ("anchor.form", self.form()),
            ("anchor.run", self.run()),
            ("anchor.chunks", self.chunks()),
            ("anchor.chain", self.chain()),
            ("anchor.meta", self.meta()),
            ("anchor.commit", self.commit().map(|_| Passed::Holds(String::from(COMMIT_HOLDS)))),
        ]
        .into_iter()
        .map(|(id, found)| (id, found.or_else(|finding| finding.map_or_else(not_read, Err))))
        .collect()
    }

    /// The run that the anchor is of, as far as anything says so.
    pub(super) fn run_id(&self) -> Option<RunId> {
        let stated = || self.read_meta()?.run().ok();
        let named = || self.body.rows.as_ref()?.run.as_deref().and_then(|run| RunId::new(run).ok());
        self.run.cloned().or_else(stated).or_else(named)
    }

    /// What the chunks hold, if all were read.
    pub(super) fn totals(&self) -> Option<Totals> {
        let (shape, rows) = (self.body.shape.as_ref()?, self.body.rows.as_ref()?);
        let chunks = u64::try_from(shape.chunks.len()).ok()?;
        self.body.whole.then_some(Totals { chunks, entries: rows.end.entries, head: rows.end.head })
    }

    fn objects(&self) -> Result<Passed, Option<Finding>> {
        if let Some(gap) = &self.body.gap {
            return Err(Some(gap.clone()));
        }
        let blobs = self.body.shape.as_ref().map_or(0, |shape| shape.chunks.len() + 1);
        Ok(Passed::Holds(format!(
            "the commit, its tree and {} have the ids by which they are named",
            counted(blobs, "blob")
        )))
    }

    fn tree(&self) -> Result<Passed, Option<Finding>> {
        let shape = self.body.shape.as_ref().ok_or(None)?;
        if let Some(said) = &shape.unexpected {
            return Err(Some(Finding::fault(FaultKind::UnexpectedTreeEntry, said.clone())));
        }
        if shape.meta.is_none() {
            let sentence = format!("the tree has no {META_NAME}");
            return Err(Some(Finding::fault(FaultKind::MetaMissing, sentence).at(META_NAME, None)));
        }
        Ok(Passed::Holds(format!(
            "the tree holds {META_NAME} and {}, nothing else",
            counted(shape.chunks.len(), "chunk")
        )))
    }

    fn form(&self) -> Result<Passed, Option<Finding>> {
        let of_meta =
            |kind, said: &str| Some(Finding::fault(kind, format!("{META_NAME}: {said}")).at(META_NAME, None));
        if let Some(Err(said)) = &self.body.meta {
            return Err(of_meta(FaultKind::NotCanonical, said));
        }
        let rows = self.body.rows.as_ref().ok_or(None)?;
        if let Some(finding) = &rows.not_canonical {
            return Err(Some(finding.clone()));
        }
        if let Some(key) = self.read_meta().and_then(Meta::unknown_field) {
            return Err(of_meta(FaultKind::UnknownField, &format!("{key} is no field of it")));
        }
        self.all_read()?;
        Ok(Passed::Holds(String::from("everything is written in its one form")))
    }

    fn run(&self) -> Result<Passed, Option<Finding>> {
        if let Some(meta) = self.read_meta() {
            let expected = self.run.map(RunId::as_str);
            let said = match (meta.run(), expected) {
                (Ok(stated), Some(run)) if stated.as_str() != run => {
                    Some(format!("{META_NAME} names run {stated}, the ref {run}"))
                }
                (Err(shown), _) => Some(format!("{META_NAME} names {shown}, which is no run id")),
                (Ok(_), _) => None,
            };
            if let Some(said) = said {
                return Err(Some(Finding::fault(FaultKind::RunIdMismatch, said).at(META_NAME, None)));
            }
        }
        let rows = self.body.rows.as_ref().ok_or(None)?;
        if let Some(finding) = &rows.of_run {
            return Err(Some(finding.clone()));
        }
        self.all_read()?;
        match self.run_id() {
            Some(run) if rows.named => {
                let by = if self.run.is_some() { "the ref, " } else { "" };
                Ok(Passed::Holds(format!("{by}{META_NAME} and run.open name run {run}")))
            }
            _ => Ok(Passed::Warns(String::from(
                "nothing in the chain names its run: it could be another run's ledger",
            ))),
        }
    }

    fn chunks(&self) -> Result<Passed, Option<Finding>> {
        let rows = self.whole_rows(|rows| &rows.chunk_size)?;
        Ok(Passed::Holds(format!("{} in chunks of 1000", counted(rows.end.entries, "entry"))))
    }

    fn chain(&self) -> Result<Passed, Option<Finding>> {
        let rows = self.whole_rows(|rows| &rows.chain)?;
        let count = counted(rows.end.entries, "entry");
        Ok(Passed::Holds(format!("{count} hashed and linked from genesis to head {}", rows.end.head)))
    }

    fn meta(&self) -> Result<Passed, Option<Finding>> {
        let meta = self.read_meta().ok_or(None)?;
        let totals = self.totals().ok_or(None)?;
        let said = match meta.mismatch(&totals) {
            Some(said) => said,
            None if totals.entries == 0 => String::from("an anchor without entries"),
            None => return Ok(Passed::Holds(format!("{META_NAME} says what the chunks hold"))),
        };
        let finding = Finding::fault(FaultKind::MetaMismatch, format!("{META_NAME}: {said}"));
        Err(Some(finding.at(META_NAME, None)))
    }

    /// Which form the commit has.
    pub(super) fn commit(&self) -> Result<Form, Option<Finding>> {
        let totals = self.totals().ok_or(None)?;
        let fault = |said: String| Some(Finding::fault(FaultKind::CommitMismatch, said));
        let read = self.commit.ok_or_else(|| {
            Some(Finding::not_checked(String::from("no commit was given: only the tree that it names")))
        })?;
        let commit = Commit::parse(&read.bytes).map_err(|said| fault(said.to_string()))?;
        commit.form(self.run_id().as_ref(), &totals.head, totals.entries).map_err(fault)
    }

    fn whole_rows(&self, of: fn(&RowsRead) -> &Option<Finding>) -> Result<&RowsRead, Option<Finding>> {
        let rows = self.body.rows.as_ref().ok_or(None)?;
        match of(rows) {
            Some(finding) => Err(Some(finding.clone())),
            None => self.all_read().map(|()| rows),
        }
    }

    fn all_read(&self) -> Result<(), Option<Finding>> {
        if self.body.whole { Ok(()) } else { Err(None) }
    }

    fn read_meta(&self) -> Option<&Meta> {
        self.body.meta.as_ref()?.as_ref().ok()
    }
}

const COMMIT_HOLDS: &str = "author, committer, message and parents are as the writer of anchors makes them";

fn not_read<T>() -> Result<T, Finding> {
    Err(Finding::not_checked(String::from(
        "what it needs could not be read: see the first check that did not pass",
    )))
}

/// The judgement as a check of a report.
pub(super) fn check((id, found): Judgement) -> Check {
    match found {
        Ok(Passed::Holds(sentence)) => Check::new(id, Status::Pass, sentence),
        Ok(Passed::Warns(sentence)) => Check::new(id, Status::Warn, sentence),
        Err(finding) => finding.check(id),
    }
}

/// The first finding of all judgements: a fault, or else what could not be looked at.
pub(super) fn worst(judgements: Vec<Judgement>) -> Option<Finding> {
    let mut findings: Vec<_> = judgements.into_iter().filter_map(|(_, found)| found.err()).collect();
    let first = findings.iter().position(|finding| finding.fault.is_some()).unwrap_or(0);
    (!findings.is_empty()).then(|| findings.swap_remove(first))
}
