//! Where a project's records are: `.sdd` below its folder.

use std::fs;
use std::path::{Path, PathBuf};

use waybill_verifier::id::RunId;

use crate::durable::{self, Error};

/// A project's folder.
#[derive(Clone, Debug)]
pub struct Project {
    root: PathBuf,
}

impl Project {
    /// The project whose records are in `root/.sdd`.
    #[must_use]
    pub fn at(root: impl Into<PathBuf>) -> Project {
        Project { root: root.into() }
    }

    /// The project's folder.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The ledgers' folder.
    #[must_use]
    pub fn ledgers(&self) -> PathBuf {
        self.root.join(".sdd/runtime/ledger")
    }

    /// The folder of a run's ledger.
    #[must_use]
    pub fn ledger_folder(&self, run: &RunId) -> PathBuf {
        self.ledgers().join(run.as_str())
    }

    /// A run's ledger.
    #[must_use]
    pub fn ledger(&self, run: &RunId) -> PathBuf {
        self.ledger_folder(run).join("000000.jsonl")
    }

    /// The folder of the signals to whoever runs a task.
    #[must_use]
    pub fn resume_signals(&self) -> PathBuf {
        self.root.join(".sdd/runtime/resume")
    }

    /// The lock of a run's ledger.
    #[must_use]
    pub fn ledger_lock(&self, run: &RunId) -> PathBuf {
        self.ledger_folder(run).join(".ledger.lock")
    }

    /// The folder of a run's event journal.
    #[must_use]
    pub fn journal_folder(&self, run: &RunId) -> PathBuf {
        self.root.join(".sdd/runs").join(run.as_str())
    }

    /// A run's event journal.
    #[must_use]
    pub fn journal(&self, run: &RunId) -> PathBuf {
        self.journal_folder(run).join("journal.jsonl")
    }

    /// The lock of a run's event journal.
    #[must_use]
    pub fn journal_lock(&self, run: &RunId) -> PathBuf {
        self.journal_folder(run).join(".journal.lock")
    }

    /// The folder of the spine that anchors receipts.
    #[must_use]
    pub fn receipt_spine(&self) -> PathBuf {
        self.lineage().join("escalations")
    }

    /// The receipts' folder.
    #[must_use]
    pub fn receipts(&self) -> PathBuf {
        self.root.join(".sdd/escalation/receipts")
    }

    /// The folder of the signing identity.
    #[must_use]
    pub fn identity(&self) -> PathBuf {
        self.root.join(".sdd/identity")
    }

    /// The audit log's folder.
    #[must_use]
    pub fn audit(&self) -> PathBuf {
        self.root.join(".sdd/audit")
    }

    /// The lineage spines' folder.
    #[must_use]
    pub fn lineage(&self) -> PathBuf {
        self.root.join(".sdd/lineage")
    }

    /// The runs that have a ledger folder here, sorted; folders with unsafe names are left out.
    ///
    /// # Errors
    ///
    /// If the ledgers' folder is there and can't be listed.
    pub fn runs(&self) -> Result<Vec<RunId>, Error> {
        let folder = self.ledgers();
        durable::refuse_links(&self.root, &folder)?;
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(Error::new("can't list", &folder, source)),
        };
        let mut runs = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|source| Error::new("can't list", &folder, source))?;
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let name = entry.file_name();
            if let (true, Some(Ok(run))) = (is_folder, name.to_str().map(RunId::new)) {
                runs.push(run);
            }
        }
        runs.sort();
        Ok(runs)
    }
}
