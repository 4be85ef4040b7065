//! Nothing of a caught secret survives: not in the file, not in output, not in an error.

use std::fs;
use std::path::Path;

use crate::help::{Project, RUN, Said, waybill};

/// A token of a real shape, made up, and not written out as one in this file.
fn token() -> String {
    ["ghp", "_", "16C7e42F292c6912E7710c838347Ae178B4a"].concat()
}

#[track_caller]
fn is_nowhere(secret: &str, folder: &Path, said: &Said) {
    for text in [&said.out, &said.err] {
        assert!(!text.contains(secret), "{said:?}");
    }
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let bytes = fs::read(&path).unwrap();
            let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
            assert!(!found, "{} has the secret", path.display());
        }
    }
}

#[test]
fn a_secret_in_a_value_a_key_an_array_or_an_argument_is_scrubbed_before_it_is_hashed() {
    let token = token();
    for payload in [
        format!("{{\"log\":\"pushed with {token} today\"}}"),
        format!("{{\"{token}\":1}}"),
        format!("{{\"a\":[[\"x\",[\"{token}\"]]]}}"),
        format!("{{\"argv\":[\"login\",\"--token\",\"{token}\"]}}"),
        format!("{{\"remote\":\"https://ann:{token}@example.org/x.git\"}}"),
    ] {
        let project = Project::opened();
        let said = project.ok(["ledger", "append", RUN, "--kind", "a.b", "--payload", &payload]);
        is_nowhere(&token, &project.path().join(".sdd"), &said);
        is_nowhere(&token, &project.path().join(".sdd"), &project.ok(["ledger", "log", RUN]));
        let row: serde_json::Value =
            serde_json::from_str(&project.ok(["ledger", "log", RUN, "--last", "1", "--json"]).out).unwrap();
        assert_eq!(row["redactions"], 1, "{payload}: {row}");
        assert_eq!(project.report().verdict(), "consistent");
    }
}

#[test]
fn the_value_of_a_variable_named_like_a_secret_is_scrubbed() {
    let project = Project::opened();
    let run = |arguments: &[&str]| -> Said {
        waybill(project.path())
            .env("DEPLOY_TOKEN", "plain-Words-9")
            .env("HOME", "/home/ann")
            .args(arguments)
            .output()
            .unwrap()
            .into()
    };
    let payload = "{\"note\":\"used plain-Words-9 in /home/ann/x, not /home/anna\"}";
    let said = run(&["ledger", "append", RUN, "--kind", "a.b", "--payload", payload]);
    assert_eq!(said.code, Some(0), "{said:?}");
    is_nowhere("plain-Words-9", &project.path().join(".sdd"), &said);
    let text = String::from_utf8(project.bytes()).unwrap();
    assert!(text.contains("in ~/x, not /home/anna"), "{text}");
}

#[test]
fn a_pattern_of_the_user_s_own_is_scrubbed_whole_and_its_groups_are_not_echoed() {
    let project = Project::opened();
    let said = project.ok([
        "ledger",
        "append",
        RUN,
        "--kind",
        "a.b",
        "--payload",
        "{\"note\":\"badge AB-1234-77 seen\"}",
        "--redact-pattern",
        "AB-([0-9]{4})-[0-9]+",
    ]);
    is_nowhere("1234", &project.path().join(".sdd/runtime/ledger").join(RUN), &said);
    assert!(String::from_utf8(project.bytes()).unwrap().contains("badge ***REDACTED*** seen"));
}

#[test]
fn a_secret_in_a_payload_that_is_refused_is_not_echoed() {
    let project = Project::opened();
    let token = token();
    let broken = format!("{{\"a\":\"{token}\"");
    let said = project.run(["ledger", "append", RUN, "--kind", "a.b", "--payload", &broken]);
    assert_eq!(said.code, Some(64));
    is_nowhere(&token, &project.path().join(".sdd"), &said);
    let said = project
        .feed(&format!("{broken}\n{{\"kind\":\"{token}\"}}\n{{\"{token}\":1,\"kind\":\"a.b\"}}\n"), "entry");
    assert_eq!(said.code, Some(64));
    is_nowhere(&token, &project.path().join(".sdd"), &said);
}

#[test]
fn a_secret_in_a_name_is_refused_since_names_are_recorded_as_they_are() {
    let project = Project::opened();
    let token = token();
    let said = project.run(["ledger", "append", RUN, "--kind", "a.b", "--task", &token]);
    assert_eq!(said.code, Some(64), "{said:?}");
    assert!(said.err.contains("task id"));
    is_nowhere(&token, &project.path().join(".sdd"), &said);
    assert_eq!(project.run(["ledger", "open", &token]).code, Some(64));
    is_nowhere(&token, &project.path().join(".sdd"), &said);
    assert!(!project.path().join(".sdd/runtime/ledger").join(&token).exists());
}

#[test]
fn the_lock_s_note_has_no_arguments_that_could_be_secret() {
    let project = Project::opened();
    let token = token();
    project.ok(["ledger", "append", RUN, "--payload", &format!("{{\"a\":\"{token}\"}}"), "--kind", "a.b"]);
    project.ok(["ledger", "append", &format!("--payload={{\"a\":\"{token}\"}}"), RUN, "--kind", "a.b"]);
    let note = fs::read_to_string(project.folder().join(".ledger.lock")).unwrap();
    assert!(note.contains("pid ") && !note.contains(&token), "{note}");
}

#[test]
fn hashes_are_left_alone() {
    let project = Project::opened();
    let payload =
        "{\"commit\":\"4efbc8d60b21fbac78255d6807923986bb968a43\",\"task\":\"task-9f86d081884c7d65\"}";
    project.ok(["ledger", "append", RUN, "--kind", "a.b", "--payload", payload]);
    assert!(String::from_utf8(project.bytes()).unwrap().contains(payload));
}
