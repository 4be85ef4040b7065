//! Receipts, which are checked with all of the project that they lie in.

use std::path::{Path, PathBuf};

use waybill_verifier::id::RunId;
use waybill_verifier::receipt::{self as receipt_format, File, Trust};
use waybill_verifier::report::Report;

use super::super::exit::Failure;
use super::Subject;
use crate::master::KeyFile;
use crate::project::Project;
use crate::receipt::{Gathered, read_file};

/// The check of a receipt's file with all of its project; `None` if it lies in none.
pub(super) fn receipt(subject: &Subject, trust: &Trust) -> Result<Option<Report>, Failure> {
    let Some(project) = project_of(&subject.path) else { return Ok(None) };
    let file = File::read(&read_file(&subject.path)?);
    let key = KeyFile::of_environment().read()?;
    let path = format!("{}{}", receipt_format::FOLDER, subject.file);
    Ok(Some(Gathered::of(&project, key.as_ref())?.report(&path, &file, trust)?))
}

/// The checks of all receipts of a run.
pub(super) fn receipts_of(project: &Project, run: &RunId, trust: &Trust) -> Result<Vec<Report>, Failure> {
    let found = crate::receipt::of_run(project, run)?;
    if found.is_empty() {
        return Ok(Vec::new());
    }
    let key = KeyFile::of_environment().read()?;
    let gathered = Gathered::of(project, key.as_ref())?;
    found.iter().map(|(id, file)| Ok(gathered.report(&id.path(), file, trust)?)).collect()
}

/// The project that a receipt lies in: the folder above `.sdd/escalation/receipts`.
fn project_of(path: &Path) -> Option<Project> {
    let path = path.canonicalize().unwrap_or_else(|_| PathBuf::from(path));
    let root = path.ancestors().nth(4)?;
    let below = path.parent()?.strip_prefix(root).ok()?;
    (below == Path::new(receipt_format::FOLDER)).then(|| Project::at(root))
}
