//! What a boot has to know of a run. Reading it takes no lock and writes nothing.

use super::decide::{Facts, Point};
use crate::process::Table;
use crate::project::Project;
use crate::registry::{Record, Registry, Status};
use crate::run::book::{Against, Found, find};

/// Gathers the facts of a run; `needs` are variables that every run needs here.
#[must_use]
pub fn gather(registry: &Registry, table: &Table, record: &Record, needs: &[String]) -> Facts {
    let folder = registry.run(&record.run);
    let intent = folder.intention().map(|intention| intention.intent);
    let status = match intent {
        Some(intent) if record.status.is_live() || record.status == Status::Error => Status::after(intent),
        _ => record.status,
    };
    let project = Project::at(&record.project);
    let mut closed = false;
    let point = match folder.resume_point() {
        Ok(None) => Point::None,
        Err(error) => Point::Broken(error.to_string()),
        Ok(Some(point)) => match find(&project, &record.run, Some(&point)) {
            Ok(Some(Found { state, against: None })) => {
                closed = state.run_closed;
                Point::Holds
            }
            Ok(Some(Found { against: Some(against), .. })) => match against {
                Against::Damaged => Point::Broken(String::from("it is damaged")),
                Against::Lacks(entry) => Point::Broken(format!("entry {entry} is not there")),
                Against::Anchor(line) => Point::Elsewhere(line),
            },
            Ok(None) => Point::Broken(String::from("it is gone")),
            Err(error) => Point::Broken(error.to_string()),
        },
    };
    // A crash between the ledger's last entry and the record leaves a live record of a closed run.
    let status =
        if closed && (status.is_live() || status == Status::Error) { Status::Complete } else { status };
    let gone = [&record.project, &record.folder].into_iter().find(|path| !path.is_dir());
    let needed = record.needs.iter().chain(needs);
    let mut missing: Vec<String> =
        needed.filter(|name| std::env::var_os(name).is_none_or(|value| value.is_empty())).cloned().collect();
    if record.holds_secret {
        missing.push(String::from("a secret on its command line, which is never stored"));
    }
    missing.dedup();
    Facts {
        supervised: record.at_boot,
        locked: folder.is_locked(),
        alive: record.child.as_ref().is_some_and(|child| !table.group_of(child).is_empty()),
        status,
        // What can't be read may be a question.
        parked: folder.questions().map_or(true, |questions| questions.open().next().is_some()),
        point,
        gone: gone.map(|path| path.display().to_string()),
        missing,
        attempts: folder.attempts(),
    }
}
