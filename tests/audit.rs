//! The audit log through the binary: mirrors, listing, packing, keys.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::help::{Home, report};

/// A receipt of a run without a journal: what writes to the audit log with the least around it.
fn emit(home: &Home, worker: &str) {
    home.ok(["escalation", "emit", "r", "--worker", worker, "--reason", "unknown", "--timestamp", "7"]);
}

#[test]
fn the_key_is_made_by_who_records_said_and_never_twice() {
    let home = Home::signing();
    assert!(!home.key().exists());
    home.fails(1, &["no audit log"], ["audit", "verify"]);
    let said =
        home.ok(["escalation", "emit", "r", "--worker", "w", "--reason", "unknown", "--timestamp", "7"]);
    assert!(said.err.contains("made the HMAC key"), "{said:?}");
    assert_eq!(fs::metadata(home.key()).unwrap().permissions().mode() & 0o777, 0o600);
    let key = fs::read_to_string(home.key()).unwrap();
    assert!(!said.err.contains(&key) && !said.out.contains(&key));
    fs::remove_file(home.key()).unwrap();
    for command in [["audit", "verify"].as_slice(), &["audit", "log"], &["escalation", "list"]] {
        home.ok(command);
        assert!(!home.key().exists());
    }
    home.fails(
        74,
        &["is not at", "BERNSTEIN_AUDIT_KEY_PATH"],
        ["escalation", "emit", "r", "--worker", "x", "--reason", "unknown"],
    );
    assert!(!home.key().exists());
}

#[test]
fn a_loose_or_short_key_is_refused_with_the_mend() {
    let home = Home::of_vector("receipt", "ok-full-window");
    fs::set_permissions(home.key(), fs::Permissions::from_mode(0o644)).unwrap();
    let id = home.receipts().pop().unwrap();
    for command in [["escalation", "verify", &id].as_slice(), &["escalation", "list"]] {
        home.fails(74, &["0644", "chmod 600"], command);
    }
    fs::set_permissions(home.key(), fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(home.key(), "tooshort").unwrap();
    home.fails(74, &["8 bytes"], ["escalation", "verify", &id]);
}

#[test]
fn a_variable_that_is_empty_counts_as_unset() {
    let home = Home::of_vector("receipt", "ok-full-window");
    let id = home.receipts().pop().unwrap();
    let output = home
        .command()
        .env("BERNSTEIN_AUDIT_KEY_PATH", "")
        .env("XDG_STATE_HOME", "")
        .args(["escalation", "verify", &id, "--json"])
        .output()
        .unwrap();
    assert_eq!(report(&output.into()).verdict(), "consistent");
}

#[test]
fn events_are_listed_by_type_actor_and_time() {
    let home = Home::of_vector("audit", "ok-archived");
    fs::create_dir(home.path().join(".sdd")).unwrap();
    fs::rename(home.path().join("audit"), home.path().join(".sdd/audit")).unwrap();
    let count =
        |arguments: &[&str]| home.ok([&["audit", "log", "--json"], arguments].concat()).out.lines().count();
    assert_eq!(count(&[]), 14);
    assert_eq!(count(&["--type", "no.such"]), 0);
    let (before, after) = (count(&["--until", "2026-11-30"]), count(&["--since", "2026-11-30"]));
    assert!(before > 0 && after > 0);
    assert_eq!(before + after, 14);
    home.fails(64, &["2026-11-27T19:30"], ["audit", "log", "--since", "yesterday"]);
}

#[test]
fn a_damaged_log_is_neither_extended_nor_packed_and_stays_as_it_is() {
    let home = Home::signing();
    emit(&home, "w1");
    let folder = home.path().join(".sdd/audit");
    let day = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let day = day.into_iter().find(|path| path.extension().is_some_and(|end| end == "jsonl")).unwrap();
    let text = fs::read_to_string(&day).unwrap().replacen("unknown", "unKnown", 1);
    fs::write(&day, &text).unwrap();
    home.fails(
        2,
        &["damaged", "hmac_mismatch"],
        ["escalation", "emit", "r", "--worker", "w2", "--reason", "unknown"],
    );
    home.fails(2, &["damaged"], ["audit", "archive", "--older-than", "0"]);
    assert_eq!(fs::read_to_string(&day).unwrap(), text);
}

#[test]
fn packed_days_still_verify_and_listing_reads_them() {
    let home = Home::of_vector("audit", "ok-v2-rotated");
    fs::create_dir(home.path().join(".sdd")).unwrap();
    fs::rename(home.path().join("audit"), home.path().join(".sdd/audit")).unwrap();
    let before = report(&home.run(["audit", "verify", "--json"]));
    // The vectors' days are of a time to come, or past: the test's own clock decides.
    home.ok(["audit", "archive", "--older-than", "0"]);
    let after = report(&home.run(["audit", "verify", "--json"]));
    assert_eq!(after.verdict(), "consistent");
    assert_eq!(after.entries(), before.entries());
    let rows = home.ok(["audit", "log", "--json"]).out.lines().count();
    assert_eq!(u64::try_from(rows).unwrap(), before.entries());
}

#[test]
fn a_listed_event_is_all_that_its_row_has() {
    for name in ["ok-archived", "ok-v1"] {
        let home = Home::of_vector("audit", name);
        fs::create_dir(home.path().join(".sdd")).unwrap();
        fs::rename(home.path().join("audit"), home.path().join(".sdd/audit")).unwrap();
        let listed = home.ok(["audit", "log", "--json"]).out;
        let listed: Vec<serde_json::Value> =
            listed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let mut found = 0;
        for entry in fs::read_dir(home.path().join(".sdd/audit")).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|end| end == "jsonl") {
                for row in fs::read_to_string(path).unwrap().lines() {
                    let row: serde_json::Value = serde_json::from_str(row).unwrap();
                    assert!(listed.contains(&row), "{name}: {row}");
                    found += 1;
                }
            }
        }
        assert!(found > 0, "{name}");
    }
}
