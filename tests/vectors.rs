//! The binary gives what the vectors' `strict` says, and recovers what they say it recovers.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::help::{Project, RUN, Report, Said, report, waybill};

fn cases(kind: &str) -> Vec<(PathBuf, Value)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/vectors").join(kind);
    let cases: Vec<_> = fs::read_dir(root)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let expected = fs::read(path.join("expected.json")).unwrap();
            (path, serde_json::from_slice(&expected).unwrap())
        })
        .collect();
    assert!(cases.len() > 1);
    cases
}

#[track_caller]
fn check(path: &Path, strict: &Value, said: &Said) -> Report {
    let name = path.display();
    assert_eq!(said.code.map(i64::from), strict["exit"].as_i64(), "{name}: {said:?}");
    let report = report(said);
    let failure = report.first_failure().cloned().unwrap_or_default();
    for key in ["entry", "line"] {
        if strict[key].is_u64() {
            assert_eq!(failure["at"][key], strict[key], "{name}: {key}");
        }
    }
    if strict["fault"].is_string() {
        assert_eq!(failure["fault"], strict["fault"], "{name}");
    }
    for key in ["entries", "head_hash"] {
        if !strict[key].is_null() {
            assert_eq!(report.0["facts"][key], strict[key], "{name}: {key}");
        }
    }
    if strict["exit"] == 0 {
        let warned = report.0["checks"].as_array().unwrap().iter().any(|check| check["status"] == "warn");
        assert_eq!(warned, !strict["warn"].is_null(), "{name}");
    }
    report
}

fn verify(path: &Path, more: &[&str]) -> Said {
    waybill(path).args(["verify", "000000.jsonl", "--json"]).args(more).output().unwrap().into()
}

#[test]
fn every_ledger_and_step_journal_gives_what_strict_says() {
    for kind in ["ledger", "step-journal"] {
        for (path, expected) in cases(kind) {
            let strict = &expected["strict"];
            let report = check(&path, strict, &verify(&path, &[]));
            if kind == "ledger" && path.ends_with("empty-file") {
                assert_eq!(report.verdict(), "empty");
            }
            let with = &strict["with_expected_head"];
            if let Some(head) = with["head"].as_str() {
                check(&path, with, &verify(&path, &["--expected-head", head]));
            }
        }
    }
}

/// A project that has the vector as its ledger.
fn project_of(path: &Path, run: &str) -> Project {
    let project = Project::new();
    let folder = project.path().join(".sdd/runtime/ledger").join(run);
    fs::create_dir_all(&folder).unwrap();
    fs::copy(path.join("000000.jsonl"), folder.join("000000.jsonl")).unwrap();
    project
}

#[test]
fn every_state_is_the_document_that_the_vector_has() {
    let mut seen = 0;
    for (path, expected) in cases("ledger") {
        let (Some(run), true) = (expected["run_id"].as_str(), expected["state"].is_object()) else {
            continue;
        };
        let said = project_of(&path, run).ok(["ledger", "state", run, "--json"]);
        let state: Value = serde_json::from_str(&said.out).unwrap();
        assert_eq!(state, expected["state"], "{}", path.display());
        seen += 1;
    }
    assert!(seen >= 5);
}

#[test]
fn a_torn_vector_is_set_aside_and_appended_to_twice() {
    let mut seen = 0;
    for (path, expected) in cases("ledger") {
        let recover = &expected["strict"]["recover"];
        if recover.is_null() {
            continue;
        }
        seen += 1;
        let project = project_of(&path, RUN);
        let whole = project.bytes();
        for task in ["a", "b"] {
            project.append("task.scheduled", task);
        }
        let entries = recover["entries"].as_u64().unwrap();
        let report = project.report();
        assert_eq!((report.verdict(), report.entries()), ("consistent", entries + 2), "{}", path.display());
        let torn = fs::read(project.folder().join(format!(".torn-{entries}"))).unwrap();
        assert!(!torn.is_empty() && whole.ends_with(&torn));
        assert!(project.bytes().starts_with(&whole[..whole.len() - torn.len()]));
    }
    assert!(seen >= 5);
}

#[test]
fn what_is_damaged_inside_is_refused_with_its_place_and_nothing_changes() {
    for case in ["bad-interior-corrupt", "bad-two-rows-fused-at-end", "bad-payload-edit", "bad-unknown-field"]
    {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/vectors/ledger").join(case);
        let project = project_of(&path, RUN);
        let before = project.bytes();
        project.fails(
            2,
            &["damaged", "entry", "line", "byte", "--from-line"],
            ["ledger", "append", RUN, "--kind", "task.started", "--task", "x"],
        );
        project.fails(2, &["damaged"], ["ledger", "open", RUN]);
        project.fails(2, &["damaged"], ["ledger", "state", RUN]);
        assert_eq!(project.bytes(), before);
    }
}

#[test]
fn two_lineages_of_one_run_are_a_divergence_at_their_fork() {
    for (path, expected) in cases("ledger") {
        let pair = &expected["pair"];
        let Some(other) = pair["with"].as_str() else { continue };
        let ours = path.join("000000.jsonl");
        let theirs = path.parent().unwrap().join(other).join("000000.jsonl");
        let said: Said =
            waybill(&path).arg("verify").args([&ours, &theirs]).arg("--json").output().unwrap().into();
        assert_eq!(said.code.map(i64::from), pair["exit"].as_i64(), "{said:?}");
        let report = report(&said);
        let sentence = report.check("ledger.compare")["sentence"].as_str().unwrap();
        assert!(sentence.contains(&format!("diverged at entry {}", pair["fork_entry"])), "{sentence}");
    }
}

#[test]
fn a_ledger_whose_time_stamps_were_edited_is_no_copy() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/vectors/ledger");
    let said: Said = waybill(&root)
        .args(["verify", "ok-small/000000.jsonl", "ok-ts-edited/000000.jsonl", "--json"])
        .output()
        .unwrap()
        .into();
    assert_eq!(said.code, Some(2));
    assert_eq!(report(&said).check("ledger.compare")["fault"], "unhashed_fields_differ");
}

#[test]
fn a_last_row_without_newline_is_completed_before_the_next() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/vectors/ledger/ok-no-final-newline");
    let project = project_of(&path, RUN);
    project.append("task.scheduled", "x");
    assert_eq!((project.report().verdict(), project.report().entries()), ("consistent", 12));
}

#[test]
fn verifying_twice_gives_the_same_and_writes_nothing() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/vectors/ledger/torn-tail");
    let project = project_of(&path, RUN);
    let list = || {
        let mut names: Vec<_> =
            fs::read_dir(project.folder()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        (names, project.bytes())
    };
    let before = list();
    let first = project.run(["verify", RUN, "--json"]);
    let second = project.run(["verify", RUN, "--json"]);
    assert_eq!((first.code, &first.out), (second.code, &second.out));
    assert_eq!(list(), before);
}
