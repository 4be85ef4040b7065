//! The command line as a new user meets it.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use serde_json::Value;

use crate::help::{Project, RUN, Said, waybill};

#[test]
fn a_run_is_recorded_and_read_back() {
    let project = Project::new();
    let said = project.ok(["ledger", "open", RUN, "--goal", "nightly"]);
    assert!(said.out.starts_with("recorded entry 0"));
    project.append("task.scheduled", "t0");
    project.append("task.started", "t0");
    fs::write(
        project.path().join("result.json"),
        "{\"commit\":\"4efbc8d60b21fbac78255d6807923986bb968a43\"}",
    )
    .unwrap();
    project.ok([
        "ledger",
        "append",
        RUN,
        "--kind",
        "task.completed",
        "--task",
        "t0",
        "--payload",
        "@result.json",
    ]);
    let log = project.ok(["ledger", "log", RUN]).out;
    assert_eq!(log.lines().count(), 4);
    for word in ["nightly", "task.completed", "t0", "4efbc8d60b"] {
        assert!(log.contains(word), "{log}");
    }
    let last = project.ok(["ledger", "log", RUN, "--last", "1", "--json"]).out;
    let row: Value = serde_json::from_str(&last).unwrap();
    assert_eq!((&row["kind"], &row["seq"]), (&Value::from("task.completed"), &Value::from(3)));
    let state = project.ok(["ledger", "state", RUN]).out;
    assert!(state.contains("completed") && state.contains("nothing to do"), "{state}");
    project.ok(["ledger", "close", RUN, "--reason", "done"]);
    assert!(project.ok(["ledger", "state", RUN]).out.contains("closed"));
    assert!(project.ok(["ledger", "close", RUN]).err.contains("closed already"));
    assert_eq!(project.report().entries(), 5);
    assert!(project.ok(["status"]).out.contains("closed"));
    assert!(project.ok(["ledger", "open", RUN]).out.contains("closed"));
    assert_eq!(project.report().entries(), 5);
}

#[test]
fn standard_input_is_answered_line_by_line_and_refused_lines_are_not_recorded() {
    let project = Project::opened();
    let lines = "{\"kind\":\"task.started\",\"task_id\":\"a\",\"payload\":{\"x\":1.50}}\n\n{\"kind\":\"Bad\"}\n\
                 {\"kind\":\"a.b\",\"extra\":1}\nnot json\n{\"kind\":\"a.b\",\"payload\":[]}\n{\"kind\":\"task.failed\",\"task_id\":\"a\"}";
    for durability in ["entry", "group", "os"] {
        let said = project.feed(lines, durability);
        assert_eq!(said.code, Some(64), "{said:?}");
        let answers: Vec<Value> = said.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let kinds: Vec<bool> = answers.iter().map(|answer| answer["entry_hash"].is_string()).collect();
        assert_eq!(kinds, [true, false, false, false, false, true], "{said:?}");
        assert!(said.err.contains("4 lines were refused"), "{said:?}");
    }
    assert_eq!(project.report().entries(), 7);
}

#[test]
fn json_has_no_other_words_and_quiet_has_none() {
    let project = Project::new();
    assert_eq!(project.ok(["--quiet", "ledger", "open", RUN]).out, "");
    let said = project.ok(["ledger", "append", RUN, "--kind", "a.b", "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&said.out).unwrap()["seq"], 1);
    for command in ["status", "doctor"] {
        serde_json::from_str::<Value>(&project.ok([command, "--json"]).out).unwrap();
    }
    serde_json::from_str::<Value>(&project.ok(["explain", "torn_tail", "--json"]).out).unwrap();
    assert_eq!(project.ok(["--quiet", "verify", RUN]).out, "");
    let mut bytes = project.bytes();
    bytes.truncate(bytes.len() - 5);
    fs::write(project.ledger(), bytes).unwrap();
    let said = project.run(["--quiet", "verify", RUN]);
    assert_eq!((said.code, said.out.as_str()), (Some(2), ""));
    assert!(said.err.contains("torn_tail"));
}

#[test]
fn the_report_names_no_time_host_or_absolute_path() {
    let project = Project::opened();
    let by_run = project.ok(["verify", RUN, "--json"]).out;
    let by_path = project.ok(["verify", project.ledger().to_str().unwrap(), "--json"]).out;
    for text in [by_run, by_path] {
        assert!(!text.contains(project.path().to_str().unwrap()), "{text}");
    }
}

#[test]
fn require_turns_a_missing_assurance_into_a_failure() {
    let project = Project::opened();
    let head = project.report().head().to_owned();
    let require = |what: &str, more: &[&str]| {
        project.run(["verify", RUN, "--require", what].iter().copied().chain(more.iter().copied())).code
    };
    assert_eq!(require("complete", &[]), Some(0));
    assert_eq!(require("pinned", &[]), Some(2));
    assert_eq!(require("pinned", &["--expected-head", &head]), Some(0));
    assert_eq!(require("pinned,complete", &["--contains", &head]), Some(0));
    assert_eq!(require("anchored", &["--expected-head", &head]), Some(2));
    assert_eq!(require("hmac", &[]), Some(2));
    let report = crate::help::report(&project.run(["verify", RUN, "--expected-head", &head, "--json"]));
    assert_eq!(report.verdict(), "verified");
    project.append("task.started", "x");
    let said = project.run(["verify", RUN, "--expected-head", &head, "--json"]);
    assert!(said.out.contains("1 entry follows"), "{said:?}");
    assert_eq!(said.code, Some(2));
}

#[test]
fn a_closed_pipe_keeps_the_verdict_s_code() {
    let project = Project::opened();
    let lines = "{\"kind\":\"task.started\",\"task_id\":\"t\"}\n".repeat(20_000);
    project.feed(&lines, "os");
    let mut bytes = project.bytes();
    let end = bytes.len() - 5;
    bytes.truncate(end);
    fs::write(project.ledger(), bytes).unwrap();
    for arguments in [&["verify", RUN, "--json"][..], &["ledger", "log", RUN]] {
        let mut child = waybill(project.path())
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(2), "{said}");
        assert!(!said.contains("pipe"), "{said}");
    }
}

#[test]
fn an_unread_acknowledgement_does_not_stop_recording() {
    let project = Project::opened();
    let mut child = project.recorder("group");
    drop(child.stdout.take());
    let lines = "{\"kind\":\"task.started\",\"task_id\":\"t\"}\n".repeat(5000);
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(project.report().entries(), 5001);
}

#[test]
fn follow_shows_what_is_recorded_later() {
    let project = Project::opened();
    let mut child = waybill(project.path())
        .args(["ledger", "log", RUN, "--follow", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut next = || {
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        serde_json::from_str::<Value>(&line).unwrap()["kind"].as_str().unwrap().to_owned()
    };
    assert_eq!(next(), "run.open");
    project.append("task.started", "a");
    assert_eq!(next(), "task.started");
    project.append("task.failed", "a");
    assert_eq!(next(), "task.failed");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn colour_is_for_terminals_and_words_stand_without_it() {
    let project = Project::opened();
    for arguments in
        [&["verify", RUN][..], &["ledger", "log", RUN], &["--help"], &["ledger", "append", "--help"]]
    {
        let plain = project.ok(arguments);
        assert!(!plain.out.contains('\x1b'), "{arguments:?}");
        let coloured = waybill(project.path()).env("CLICOLOR_FORCE", "1").args(arguments).output().unwrap();
        assert!(coloured.stdout.contains(&0x1b), "{arguments:?}");
        let asked_not = waybill(project.path()).env("NO_COLOR", "1").args(arguments).output().unwrap();
        assert!(!asked_not.stdout.contains(&0x1b), "{arguments:?}");
    }
    assert!(project.ok(["verify", RUN]).out.contains("PASS"));
}

#[test]
fn a_narrow_terminal_cuts_lines_and_not_characters() {
    let project = Project::opened();
    let payload = format!("{{\"text\":\"{}\"}}", "日本語".repeat(100));
    project.ok(["ledger", "append", RUN, "--kind", "a.b", "--payload", &payload]);
    for columns in [40, 60, 90, 200] {
        let mut command = waybill(project.path());
        let output =
            command.env("COLUMNS", columns.to_string()).args(["ledger", "log", RUN]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(text.lines().count(), 2);
        assert!(text.lines().all(|line| line.chars().count() <= columns), "{columns}: {text}");
    }
}

#[test]
fn help_shows_examples_and_exit_codes() {
    let project = Project::new();
    for arguments in [
        &["--help"][..],
        &["ledger", "open", "--help"],
        &["ledger", "append", "--help"],
        &["ledger", "log", "--help"],
        &["ledger", "verify", "--help"],
        &["ledger", "repair", "--help"],
        &["verify", "--help"],
    ] {
        let text = project.ok(arguments).out;
        assert!(text.contains("Example") && text.contains("Exit codes"), "{arguments:?}: {text}");
    }
}

#[test]
fn every_check_of_a_report_is_explained() {
    let project = Project::opened();
    let head = project.report().head().to_owned();
    let said = project.run([
        "verify",
        RUN,
        "--json",
        "--expected-head",
        &head,
        "--contains",
        &head,
        "--require",
        "complete,pinned,hmac,anchored",
    ]);
    let report = crate::help::report(&said);
    for check in report.0["checks"].as_array().unwrap() {
        project.ok(["explain", check["id"].as_str().unwrap()]);
    }
    let listed = project.ok(["explain"]).out;
    assert!(listed.lines().count() > 25);
    for name in listed.lines() {
        assert!(project.ok(["explain", name]).out.contains("means"));
    }
}

#[test]
fn the_page_is_printed_where_it_is_built_in_only() {
    let said = Project::new().run(["page"]);
    if cfg!(feature = "page") {
        assert!(said.code == Some(0) && said.out.starts_with("<!doctype html>"));
    } else {
        assert_eq!((said.code, said.out.as_str()), (Some(1), ""));
        assert!(said.err.contains("'make page'") && said.err.lines().count() == 1, "{said:?}");
    }
}

#[test]
fn completions_are_printed_for_each_shell() {
    let project = Project::new();
    for shell in ["bash", "zsh", "fish", "elvish"] {
        assert!(project.ok(["completions", shell]).out.contains("waybill"));
    }
}

#[test]
fn evidence_can_not_steer_the_terminal() {
    let project = Project::opened();
    // A row written by somebody else, raw: the field's name and value carry escapes.
    let text = String::from_utf8(project.bytes()).unwrap();
    let row =
        text.trim_end().replace("\"redactions\"", "\"\u{1b}[31m\u{202e}x\":\"::error\u{9b}\",\"redactions\"");
    fs::write(project.ledger(), format!("{row}\n")).unwrap();
    for arguments in [&["verify", RUN][..], &["verify", RUN, "--json"], &["ledger", "log", RUN], &["status"]]
    {
        let said = project.run(arguments);
        for text in [said.out, said.err] {
            assert!(!text.contains(['\u{1b}', '\u{202e}', '\u{9b}']), "{arguments:?}: {text:?}");
        }
    }
}

#[test]
fn doctor_says_how_the_data_folder_stands() {
    let project = Project::new();
    let folder = project.path().join("data");
    let shown = folder.to_str().unwrap();
    let doctor = |code: i32, words: &str| {
        for (variable, arguments) in [("", &["--data-dir", shown, "doctor"][..]), (shown, &["doctor"])] {
            let mut command = waybill(project.path());
            let said: Said =
                command.env("WAYBILL_DATA_DIR", variable).args(arguments).output().unwrap().into();
            assert_eq!(said.code, Some(code), "{said:?}");
            let line = said.out.lines().find(|line| line.contains("data_folder")).unwrap();
            assert!(line.contains(shown) && line.contains(words), "{line}");
        }
    };
    doctor(0, "is not there");
    fs::create_dir(&folder).unwrap();
    for (mode, code, words) in [(0o700, 0, "yours alone"), (0o755, 2, "chmod 700"), (0o500, 2, "0500")] {
        fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).unwrap();
        doctor(code, words);
    }
    fs::remove_dir(&folder).unwrap();
    fs::write(&folder, "").unwrap();
    doctor(2, "is no folder");
}
