//! `status`: runs, anchors, keys, trust and stalls at a glance, for people and for programs.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::help::{Home, RUN, git};

const PUBLIC: &str = ".sdd/identity/escalation-identity-public.pem";

fn document(home: &Home) -> Value {
    serde_json::from_str(&home.ok(["status", "--json"]).out).unwrap()
}

/// A run that is recorded in a repository.
fn in_a_repository() -> Home {
    let home = Home::new();
    git(home.path(), &["init", "-q"]);
    home.ok(["ledger", "open", RUN]);
    home
}

fn append(home: &Home) {
    home.ok(["ledger", "append", RUN, "--kind", "task.started", "--task", "t"]);
}

#[test]
fn an_anchor_is_held_against_the_ledger_here() {
    let home = in_a_repository();
    let agreement = |expect: &str, anchored: Option<u64>| {
        let run = document(&home)["runs"][0].clone();
        assert_eq!((&run["agreement"], &run["anchor"]["entries"]), (&expect.into(), &anchored.into()));
        run
    };
    agreement("not anchored", None);
    assert!(!home.ok(["status"]).out.contains("anchored head"));
    home.ok(["ledger", "anchor", RUN]);
    let one = fs::read(home.project.ledger()).unwrap();
    let run = agreement("agree", Some(1));
    let head = run["state"]["head_hash"].as_str().unwrap();
    assert_eq!(run["anchor"]["head_hash"], head);
    assert_eq!(home.ok(["status"]).out.matches(&head[..12]).count(), 2);
    append(&home);
    agreement("ledger ahead", Some(1));
    home.ok(["ledger", "anchor", RUN]);
    fs::write(home.project.ledger(), one).unwrap();
    agreement("anchor ahead", Some(2));
    home.ok(["ledger", "append", RUN, "--kind", "task.failed", "--accept-loss"]);
    agreement("DIVERGED", Some(2));
    home.ok(["ledger", "append", RUN, "--kind", "task.failed", "--accept-loss"]);
    agreement("DIVERGED", Some(2));
    let text = home.ok(["status"]).out;
    assert!(text.lines().any(|line| line.starts_with(RUN) && line.contains("DIVERGED")), "{text}");
    fs::remove_dir_all(home.project.folder()).unwrap();
    assert_eq!(agreement("only anchored", Some(2))["standing"], "not here");
}

#[test]
fn keys_trust_and_stalls_are_there_or_said_to_be_missing() {
    let home = Home::new();
    let text = home.ok(["status"]).out;
    for words in ["no runs are recorded", "no identity", "no HMAC key", "0 signers trusted, 0 revoked"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let empty = document(&home);
    assert_eq!(empty["keys"]["identity"]["fingerprint"], Value::Null);
    assert_eq!(empty["stalls"], serde_json::json!({ "receipts": 0, "latest": null }));
    assert!(!home.key().exists(), "a key was made by looking");

    home.ok(["keys", "init"]);
    let shown: Value = serde_json::from_str(&home.ok(["keys", "show", "--json"]).out).unwrap();
    for (worker, time) in [("w2", "1795977009"), ("w1", "7")] {
        let stall = ["--worker", worker, "--reason", "heartbeat_stale", "--timestamp", time];
        home.ok([&["escalation", "emit", "r"][..], &stall].concat());
    }
    home.ok(["keys", "trust", PUBLIC, "--name", "ann"]);
    let other = "SHA256:4jSePaNlWcgFv0ZhR4yuHnNcsUSKgmQRTA1Gj2DCn2M";
    home.ok(["keys", "trust", other, "--name", "bob"]);
    home.ok(["keys", "revoke", "bob"]);
    let all = document(&home);
    assert_eq!(all["keys"]["identity"]["fingerprint"], shown["fingerprint"]);
    assert_eq!(all["keys"]["hmac_key"]["present"], true);
    assert_eq!(all["trust"], serde_json::json!({ "trusted": 1, "revoked": 1 }));
    assert_eq!(all["stalls"]["receipts"], 2);
    let latest = &all["stalls"]["latest"];
    assert_eq!((&latest["worker_id"], &latest["run_id"]), (&"w2".into(), &"r".into()));
    assert_eq!(
        (&latest["timestamp"], &latest["recommended_action"]),
        (&1_795_977_009.into(), &"escalate".into())
    );
    let text = home.ok(["status"]).out;
    let fingerprint = shown["fingerprint"].as_str().unwrap();
    for words in [
        &format!("signs as {fingerprint}"),
        "the HMAC key is here",
        "1 signer trusted, 1 revoked",
        "2 receipts, last 2026-11-29T18:30:09Z r w2: heartbeat_stale, ",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }

    // What can't be read is said, and hides nothing else.
    fs::set_permissions(home.key(), fs::Permissions::from_mode(0o644)).unwrap();
    fs::write(home.home.path().join(".config/waybill/trust.toml"), "x = 1\n").unwrap();
    let said = home.ok(["status"]);
    for words in ["chmod 600", "`x` is not known", "2 receipts", "signs as"] {
        assert!(said.out.contains(words), "{words}: {said:?}");
    }
}

#[test]
fn a_narrow_terminal_and_one_without_colour_get_the_same_words() {
    let home = in_a_repository();
    home.ok(["keys", "init"]);
    home.ok(["ledger", "anchor", RUN]);
    let stall = ["--worker", &"日本".repeat(40), "--reason", "unknown", "--timestamp", "7"];
    home.ok([&["escalation", "emit", "r"][..], &stall].concat());
    for columns in [40, 60, 90] {
        let output = home.command().env("COLUMNS", columns.to_string()).arg("status").output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.lines().all(|line| line.chars().count() <= columns), "{columns}: {text}");
        for words in ["goal-42", "agree", "signs as", "1 receipt, "] {
            assert!(text.contains(words), "{columns}: {text}");
        }
    }
    let forced = home.command().env("NO_COLOR", "1").env("CLICOLOR_FORCE", "1").arg("status").output();
    assert!(!forced.unwrap().stdout.contains(&0x1b));
    assert!(home.ok(["status", "--help"]).out.contains("no signature, tag or link"));
}

#[test]
fn one_of_something_is_said_as_one() {
    let home = in_a_repository();
    home.ok(["keys", "init"]);
    home.ok(["keys", "trust", PUBLIC, "--name", "ann"]);
    home.ok(["journal", "record", "r", "--event", "a.b"]);
    home.ok(["escalation", "emit", "r", "--worker", "w", "--reason", "unknown", "--timestamp", "7"]);
    home.ok(["ledger", "anchor", RUN]);
    let id = home.receipts().pop().unwrap();
    let mut said = String::new();
    for command in [
        &["status"][..],
        &["doctor"],
        &["ledger", "open", RUN],
        &["ledger", "state", RUN],
        &["ledger", "anchor", RUN],
        &["ledger", "diff", RUN],
        &["ledger", "verify", RUN],
        &["ledger", "verify", RUN, "--anchored"],
        &["ledger", "resume", RUN, "--dry-run"],
        &["journal", "verify", "r"],
        &["escalation", "verify", &id],
        &["verify", ".sdd/lineage/escalations"],
        &["verify", ".sdd/audit"],
        &["audit", "verify"],
    ] {
        said.push_str(&home.run(command).out);
    }
    for words in ["1 entry in common", "1 event holds", "1 chunk,", "0 blobs written", "1 file,", "1 receipt"]
    {
        assert!(said.contains(words), "{words}: {said}");
    }
    let two = fs::read(home.project.ledger()).unwrap();
    fs::write(home.project.ledger(), [&two[..], b"{"].concat()).unwrap();
    said.push_str(&home.run(["verify", RUN]).out);
    said.push_str(&home.ok(["ledger", "open", RUN]).err);
    assert!(said.contains("the torn 1 byte aside") && said.contains("torn tail of 1 byte"), "{said}");
    let many = ["entries", "events", "chunks", "files", "blobs", "bytes", "rows", "signers", "receipts"];
    for noun in many {
        for before in [" ", "(", "\n"] {
            assert!(!said.contains(&format!("{before}1 {noun}")), "{noun}: {said}");
        }
    }
}
