//! What a user gets wrong, or a machine: one line, the right code, nothing half-written.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use crate::help::{Project, RUN, verify};

#[test]
fn wrong_arguments_exit_64_in_one_line_that_says_what_to_do() {
    let project = Project::new();
    for (words, arguments) in [
        (&["--help"][..], &["frobnicate"][..]),
        (&["RUN"], &["ledger", "verify"]),
        (&["--kind"], &["ledger", "append", RUN]),
        (&["kind", "task.started"], &["ledger", "append", RUN, "--kind", "Task Started"]),
        (&["task id"], &["ledger", "append", RUN, "--kind", "a.b", "--task", "a b"]),
        (&["64 lowercase hex"], &["ledger", "verify", RUN, "--expected-head", "ABC"]),
        (&["--workdir", "no folder"], &["--workdir", "nowhere", "ledger", "open", RUN]),
        (&["--redact-pattern"], &["ledger", "open", RUN, "--redact-pattern", "("]),
        (&["--stdin"], &["ledger", "append", RUN, "--kind", "a.b", "--stdin"]),
        (&["waybill explain"], &["explain", "nonsense"]),
        (&["--help"], &[]),
        (&["--help"], &["ledger"]),
    ] {
        let said = project.run(arguments);
        assert_eq!(said.code, Some(64), "{arguments:?}: {said:?}");
        for word in words {
            assert!(said.err.contains(word), "{word:?} of {arguments:?}: {said:?}");
        }
        assert!(said.out.is_empty(), "{said:?}");
    }
    assert!(!project.path().join(".sdd").exists());
}

#[test]
fn a_run_id_that_is_not_safe_reaches_no_path() {
    let project = Project::new();
    for id in [
        "a.lock",
        "a..b",
        "abc.",
        "abc\n",
        "../x",
        "-x",
        "",
        ".hidden",
        "a/b",
        "a\0b".trim_end_matches("\0b"),
    ] {
        if id == "a" {
            continue;
        }
        let said = project.run(["ledger", "open", "--", id]);
        assert_eq!(said.code, Some(64), "{id:?}: {said:?}");
        assert_eq!(said.err.lines().count(), 1, "{id:?}: {said:?}");
    }
    assert_eq!(fs::read_dir(project.path()).unwrap().count(), 0);
}

#[test]
fn what_is_not_there_exits_1_and_says_what_would_make_it() {
    let project = Project::new();
    let append = ["ledger", "append", RUN, "--kind", "a.b"];
    project.fails(1, &["no ledger of run goal-42", "waybill ledger open goal-42"], append);
    project.fails(1, &["no ledger"], ["ledger", "state", RUN]);
    project.fails(1, &["no ledger"], ["ledger", "log", RUN]);
    project.fails(1, &["no ledger"], ["ledger", "verify", RUN]);
    project.fails(1, &["no ledger"], ["ledger", "repair", RUN, "--from-line", "1"]);
    project.fails(1, &["nothing.jsonl"], ["ledger", "verify", "--file", "nothing.jsonl"]);
    project.fails(1, &["nor/here"], ["verify", "nor/here"]);
    assert!(!project.path().join(".sdd").exists());
}

#[test]
fn a_folder_that_can_not_be_written_is_named_with_the_reason() {
    let project = Project::new();
    fs::write(project.path().join(".sdd"), "a file").unwrap();
    project.fails(74, &[".sdd", "Not a directory"], ["ledger", "open", RUN]);
    project.fails(74, &["can't"], ["--workdir", "/proc", "ledger", "open", RUN]);
}

#[test]
fn links_and_special_files_are_not_followed() {
    let project = Project::opened();
    let elsewhere = Project::opened();
    symlink(
        elsewhere.path().join(".sdd/runtime/ledger").join(RUN),
        project.folder().with_file_name("linked"),
    )
    .unwrap();
    for arguments in [
        &["ledger", "open", "linked"][..],
        &["ledger", "append", "linked", "--kind", "a.b"],
        &["ledger", "verify", "linked"],
        &["ledger", "state", "linked"],
        &["ledger", "repair", "linked", "--from-line", "1"],
    ] {
        project.fails(74, &["link"], arguments);
    }
    let file = project.path().join("link.jsonl");
    symlink(project.ledger(), &file).unwrap();
    let said = project.run(["verify", "link.jsonl"]);
    assert_eq!(said.code, Some(74), "{said:?}");
    project.fails(74, &["not a regular file"], ["ledger", "verify", "--file", "/dev/zero"]);
    fs::remove_file(project.ledger()).unwrap();
    symlink(elsewhere.ledger(), project.ledger()).unwrap();
    let before = elsewhere.bytes();
    let said = project.run(["ledger", "append", RUN, "--kind", "a.b"]);
    assert_eq!(said.code, Some(74), "{said:?}");
    assert_eq!(elsewhere.bytes(), before);
}

#[test]
fn payloads_that_can_not_be_recorded_are_refused_before_anything_is_written() {
    let project = Project::opened();
    let before = project.bytes();
    let nested = |depth: usize| format!("{{\"a\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
    for (payload, word) in [
        ("[]", "not a JSON object"),
        ("{", "not one complete JSON text"),
        ("{\"a\":1,\"a\":2}", "stands twice"),
        ("{\"a\":NaN}", "not finite"),
        ("{\"a\":1e999}", "not finite"),
        (&nested(127), "nested deeper"),
        ("@missing.json", "missing.json"),
    ] {
        let said = project.run(["ledger", "append", RUN, "--kind", "a.b", "--payload", payload]);
        assert!(matches!(said.code, Some(64 | 1)), "{payload}: {said:?}");
        assert!(said.err.contains(word), "{payload}: {said:?}");
    }
    assert_eq!(project.bytes(), before);
    project.ok(["ledger", "append", RUN, "--kind", "a.b", "--payload", &nested(126)]);
    assert_eq!(project.report().verdict(), "consistent");
    project.fails(64, &["run_id"], ["ledger", "append", RUN, "--kind", "run.open"]);
    project.fails(64, &["run_id"], ["ledger", "open", "other", "--payload", "{\"run_id\":\"another\"}"]);
}

#[test]
fn repair_sets_the_rest_aside_and_records_it() {
    let project = Project::opened();
    for task in ["a", "b", "c"] {
        project.append("task.started", task);
    }
    let whole = project.bytes();
    let mut damaged = whole.clone();
    let second = whole.iter().position(|&byte| byte == b'\n').unwrap() + 1;
    damaged[second] = b'x';
    fs::write(project.ledger(), &damaged).unwrap();
    project.fails(64, &["no line 9"], ["ledger", "repair", RUN, "--from-line", "9"]);
    project.fails(64, &["no line 0"], ["ledger", "repair", RUN, "--from-line", "0"]);
    project.fails(64, &["does not hold", "line 2"], ["ledger", "repair", RUN, "--from-line", "3"]);
    fs::write(project.ledger(), &whole).unwrap();
    project.fails(
        64,
        &["nothing there needs a repair", "--accept-loss"],
        ["ledger", "repair", RUN, "--from-line", "2"],
    );
    project.fails(64, &["no line 5: the ledger has 4"], ["ledger", "repair", RUN, "--from-line", "5"]);
    assert_eq!(project.bytes(), whole);
    fs::write(project.ledger(), &damaged).unwrap();
    let said = project.ok(["ledger", "repair", RUN, "--from-line", "2", "--json"]);
    let answer: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(answer["entries_kept"], 1);
    assert_eq!(fs::read(project.folder().join(".aside-1")).unwrap(), &damaged[second..]);
    project.append("task.started", "d");
    let report = project.report();
    assert_eq!((report.verdict(), report.entries()), ("consistent", 3));
    let rows = String::from_utf8(project.bytes()).unwrap();
    let row: serde_json::Value = serde_json::from_str(rows.lines().nth(1).unwrap()).unwrap();
    assert_eq!(row["kind"], "ledger.repaired");
    assert_eq!(row["payload"]["from_line"], 2);
    assert_eq!(row["payload"]["bytes"], damaged.len() - second);
    assert_eq!(fs::metadata(project.ledger()).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn folders_and_files_are_the_owner_s_alone() {
    let project = Project::opened();
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&project.folder()), mode(&project.ledger())), (0o700, 0o600));
    fs::set_permissions(project.ledger(), fs::Permissions::from_mode(0o644)).unwrap();
    let said = project.run(["doctor"]);
    assert_eq!(said.code, Some(2));
    assert!(said.out.contains("chmod 600"), "{said:?}");
}

#[test]
fn a_file_that_begins_with_nul_bytes_is_damage() {
    let project = Project::opened();
    project.append("task.started", "a");
    let mut bytes = vec![0; 4096];
    bytes.extend_from_slice(&project.bytes());
    fs::write(project.ledger(), &bytes).unwrap();
    let report = verify(&project.ledger());
    assert_eq!(report.first_failure().unwrap()["fault"], "interior_corruption");
    project.fails(2, &["line 1"], ["ledger", "append", RUN, "--kind", "a.b"]);
}

#[test]
fn a_last_row_with_a_wrong_hash_is_refused_and_not_recovered_to() {
    let project = Project::opened();
    project.append("task.started", "aaaa");
    let text = String::from_utf8(project.bytes()).unwrap().replace("aaaa", "bbbb");
    fs::write(project.ledger(), &text).unwrap();
    project.fails(2, &["entry 1", "entry_hash_mismatch"], ["ledger", "append", RUN, "--kind", "a.b"]);
    assert_eq!(project.bytes(), text.as_bytes());
}
