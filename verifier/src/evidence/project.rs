//! Where a project keeps its evidence, below `.sdd/`.

use alloc::string::String;

use crate::find::{find, has};
use crate::id::RunId;

const FOLDER: &str = ".sdd/";

/// The parts of `.sdd/` that are evidence, or public keys to read it with.
const KEPT: [&str; 7] = [
    ".sdd/runtime/ledger/",
    ".sdd/runtime/journal/",
    ".sdd/runs/",
    ".sdd/lineage/",
    ".sdd/escalation/receipts/",
    ".sdd/audit/",
    ".sdd/identity/escalation-identity-public.pem",
];

/// Splits a path of a project into the project's folder (empty, or with a final `/`) and the
/// path in it, which starts with `.sdd/`.
pub(super) fn split(path: &str) -> Option<(&str, &str)> {
    if path.starts_with(FOLDER) {
        return Some(("", path));
    }
    let at = find(path.as_bytes(), b"/.sdd/")?;
    path.split_at_checked(at + 1)
}

/// Whether a file of a folder that was given is worth reading: of a project its evidence, of
/// another folder all but hidden files. Locks and what was set aside are no evidence.
#[must_use]
pub fn is_evidence(path: &str) -> bool {
    let aside = |name: &str| {
        (name.starts_with('.') && name != ".sdd")
            || name.ends_with(".lock")
            || name.ends_with(".tmp")
            || has(name, ".torn-")
    };
    let kept = |(_, below): (&str, &str)| KEPT.iter().any(|kept| below.starts_with(kept));
    !path.split('/').any(aside) && split(path).is_none_or(kept)
}

/// The run whose ledger lies at a path, by the path.
pub(super) fn run_of_ledger(path: &str) -> Option<RunId> {
    let (_, below) = split(path)?;
    let rest = below.strip_prefix(".sdd/runtime/ledger/")?.strip_suffix("/000000.jsonl")?;
    RunId::new(rest).ok()
}

/// The folder that a file lies in: empty, or with a final `/`.
pub(super) fn folder(path: &str) -> &str {
    path.rfind('/').map_or("", |at| path.get(..=at).unwrap_or_default())
}

/// The name of a folder, without its final `/`; `whole` if it is all that was given.
pub(super) fn folder_name(folder: &str, whole: &str) -> String {
    String::from(if folder.is_empty() { whole } else { folder.trim_end_matches('/') })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_is_told_by_its_folder() {
        assert_eq!(split("a/.sdd/audit/x"), Some(("a/", ".sdd/audit/x")));
        assert_eq!(split(".sdd/audit/x"), Some(("", ".sdd/audit/x")));
        assert_eq!(split("a.sdd/x"), None);
        assert!(is_evidence("p/.sdd/audit/2026-11-29.jsonl"));
        assert!(is_evidence("loose.jsonl"));
        assert!(!is_evidence("p/.sdd/audit/.chain.lock"));
        assert!(!is_evidence(".git/config") && !is_evidence("a/.key"));
        assert!(!is_evidence("p/.sdd/audit/2026-11-29.jsonl.torn-4"));
        assert!(!is_evidence("p/.sdd/identity/escalation-identity-private.pem"));
        assert!(!is_evidence("p/.sdd/runtime/signals/x.json"));
        let run = run_of_ledger("p/.sdd/runtime/ledger/goal-42/000000.jsonl");
        assert_eq!(run.as_ref().map(RunId::as_str), Some("goal-42"));
        assert_eq!(run_of_ledger("000000.jsonl"), None);
    }
}
