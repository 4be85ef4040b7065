//! All receipt, spine and audit vectors through the binary: what `strict` says, with the key and
//! without, pinned and not.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::help::{Home, Report, is_explained, report, vectors};

fn cases(kind: &str) -> Vec<(String, Value)> {
    let mut cases: Vec<_> = fs::read_dir(vectors().join(kind))
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            let expected = fs::read(entry.path().join("expected.json")).unwrap();
            (entry.file_name().into_string().unwrap(), serde_json::from_slice(&expected).unwrap())
        })
        .collect();
    cases.sort_by(|left: &(String, Value), right| left.0.cmp(&right.0));
    assert!(cases.len() > 5);
    cases
}

#[track_caller]
fn check(name: &str, strict: &Value, report: &Report) {
    assert_eq!(report.0["exit_code"], strict["exit"], "{name}: {report:?}");
    let failed = report.first_failure().cloned().unwrap_or_default();
    if let Some(part) = strict["check"].as_str() {
        assert!(failed["id"].as_str().unwrap().contains(part), "{name}: {failed}");
    }
    for key in ["entry", "line"] {
        if strict[key].is_u64() {
            assert_eq!(failed["at"][key], strict[key], "{name}: {key}");
        }
    }
    if let Some(step) = strict["step"].as_u64() {
        assert_eq!(failed["at"]["entry"], step, "{name}");
    }
    if let Some(file) = strict["file"].as_str() {
        assert!(failed["at"]["file"].as_str().unwrap().ends_with(file), "{name}: {failed}");
    }
    for (key, fact) in [("entries", "entries"), ("action", "recommended_action")] {
        if !strict[key].is_null() {
            assert_eq!(report.0["facts"][fact], strict[key], "{name}: {key}");
        }
    }
    if let Some(verdict) = strict["verdict"].as_str() {
        assert_eq!(report.verdict(), verdict, "{name}");
    }
}

fn warned(report: &Report, but: &str) -> bool {
    let checks = report.0["checks"].as_array().unwrap();
    checks.iter().any(|check| check["status"] == "warn" && check["id"] != but)
}

#[test]
fn every_receipt_gives_what_strict_says() {
    let mut known = BTreeSet::new();
    for (name, expected) in cases("receipt") {
        let strict = &expected["strict"];
        let home = Home::of_vector("receipt", &name);
        let id = home.receipts().pop().unwrap();
        let plain = home.verify_receipt(&id);
        check(&name, strict, &plain);
        is_explained(&plain, &mut known);
        // The same file given by its path is the same report.
        let path = format!(".sdd/escalation/receipts/{id}.json");
        let by_path = home.run(["verify", &path, "--json"]);
        assert_eq!(report(&by_path).0, plain.0, "{name}");
        if strict["exit"] == 0 {
            let pin = plain.0["facts"]["signer"].as_str().unwrap();
            let pinned = report(&home.run(["escalation", "verify", &id, "--json", "--signer", pin]));
            assert_eq!(warned(&pinned, ""), !strict["warn"].is_null(), "{name}: {pinned:?}");
            let verdict = if name.starts_with("ok-degraded") { "degraded" } else { "verified" };
            assert_eq!(pinned.verdict(), verdict, "{name}");
            let shown = home.ok(["escalation", "show", &id, "--json"]);
            let shown: Value = serde_json::from_str(&shown.out).unwrap();
            if let Some(projection) = expected["projection"].as_object() {
                for (key, value) in projection {
                    let stated = if shown[key].is_null() { Value::from("") } else { shown[key].clone() };
                    assert!(stated == *value || shown[key] == *value, "{name}: {key}");
                }
            }
            assert!(shown["signature"].is_null() && shown["window_entry_hashes"].is_null());
        }
        if strict["with_pinned_key"].is_object() {
            let with = &strict["with_pinned_key"];
            let file = with["file"].as_str().unwrap();
            let said = home.run(["escalation", "verify", &id, "--json", "--signer", file]);
            let pinned = report(&said);
            assert_eq!(pinned.0["exit_code"], with["exit"], "{name}");
            assert_eq!(pinned.first_failure().unwrap()["id"], "receipt.signer", "{name}");
            assert!(said.err.contains("came with the evidence"), "{said:?}");
        }
    }
}

#[test]
fn without_the_key_receipts_are_incomplete_and_say_why() {
    for (name, expected) in cases("receipt") {
        let home = Home::of_vector("receipt", &name);
        fs::remove_file(home.key()).unwrap();
        let id = home.receipts().pop().unwrap();
        let report = home.verify_receipt(&id);
        if expected["strict"]["exit"] == 0 || name == "bad-spine-hmac" {
            assert_eq!(report.verdict(), "incomplete", "{name}: {report:?}");
            assert_eq!(report.check("spine.hmac")["status"], "not_checked", "{name}");
        } else {
            assert_eq!(report.verdict(), "failed", "{name}");
        }
        assert!(!home.key().exists(), "a key was made while checking");
    }
}

#[test]
fn what_is_not_checked_is_said_once() {
    let home = Home::of_vector("receipt", "ok-full-window");
    fs::remove_file(home.key()).unwrap();
    let id = home.receipts().pop().unwrap();
    let path = format!(".sdd/escalation/receipts/{id}.json");
    fs::copy(home.path().join(path), home.path().join(format!("{id}.json"))).unwrap();
    let audit = Home::of_vector("audit", "ok-archived");
    fs::remove_file(audit.key()).unwrap();
    let mut unchecked = 0;
    for said in [
        home.ok(["escalation", "verify", &id]),
        home.ok(["verify", &format!("{id}.json")]),
        audit.ok(["verify", "audit"]),
    ] {
        for line in said.out.lines().filter(|line| line.starts_with("NOT CHECKED")) {
            assert!(!line.contains("not checked"), "{line}");
            unchecked += 1;
        }
    }
    assert!(unchecked > 5, "{unchecked}");
}

#[test]
fn every_spine_gives_what_strict_says() {
    let mut known = BTreeSet::new();
    for (name, expected) in cases("spine") {
        let strict = &expected["strict"];
        let home = Home::of_vector("spine", &name);
        fs::remove_file(home.path().join("expected.json")).unwrap();
        let by_folder = report(&home.run(["verify", ".", "--json"]));
        check(&name, strict, &by_folder);
        is_explained(&by_folder, &mut known);
        if strict["exit"] == 0 {
            assert_eq!(warned(&by_folder, ""), !strict["warn"].is_null(), "{name}");
        }
        if home.path().join("spine.jsonl").metadata().unwrap().len() > 0 {
            let by_file = report(&home.run(["verify", "spine.jsonl", "--json"]));
            assert_eq!(by_file.0["checks"], by_folder.0["checks"], "{name}");
        }
    }
}

#[test]
fn every_audit_log_gives_what_strict_says() {
    let mut known = BTreeSet::new();
    for (name, expected) in cases("audit") {
        let strict = &expected["strict"];
        let home = Home::of_vector("audit", &name);
        let by_folder = report(&home.run(["verify", "audit", "--json"]));
        check(&name, strict, &by_folder);
        is_explained(&by_folder, &mut known);
        fs::create_dir(home.path().join(".sdd")).unwrap();
        fs::rename(home.path().join("audit"), home.path().join(".sdd/audit")).unwrap();
        let of_project = report(&home.run(["audit", "verify", "--json"]));
        check(&name, strict, &of_project);
        assert_eq!(of_project.0["facts"]["entries"], by_folder.0["facts"]["entries"], "{name}");
        fs::remove_file(home.key()).unwrap();
        let without = report(&home.run(["audit", "verify", "--json"]));
        if strict["exit"] == 0 || name == "bad-wrong-byte" {
            assert_eq!(without.verdict(), "incomplete", "{name}");
        }
        assert!(!home.key().exists(), "a key was made while checking");
    }
}

#[test]
fn a_receipt_alone_is_incomplete() {
    let home = Home::of_vector("receipt", "ok-full-window");
    let id = home.receipts().pop().unwrap();
    let name = format!("{id}.json");
    fs::copy(home.path().join(format!(".sdd/escalation/receipts/{name}")), home.path().join(&name)).unwrap();
    let alone = report(&home.run(["verify", &name, "--json"]));
    assert_eq!(alone.verdict(), "incomplete");
    assert_eq!(alone.check("receipt.signature")["status"], "pass");
    assert_eq!(alone.check("receipt.window")["status"], "not_checked");
}

#[test]
fn one_day_of_an_audit_log_is_checked_from_where_it_goes_on() {
    let home = Home::of_vector("audit", "ok-archived");
    for name in ["audit/2026-11-29.jsonl", "audit/archive/2026-11-27.jsonl.gz"] {
        let day = report(&home.run(["verify", name, "--json"]));
        assert_eq!(day.verdict(), "consistent", "{name}: {day:?}");
        assert!(day.entries() > 0);
    }
}

#[test]
fn receipts_whose_file_is_gone_are_listed() {
    let home = Home::of_vector("receipt", "ok-full-window");
    let id = home.receipts().pop().unwrap();
    assert!(home.ok(["escalation", "list"]).out.contains(&id));
    fs::remove_file(home.path().join(format!(".sdd/escalation/receipts/{id}.json"))).unwrap();
    let said = home.ok(["escalation", "list"]);
    assert!(said.out.contains(&format!("{id} is in the spine, and its file is gone")), "{said:?}");
    home.fails(1, &["no receipt", &id], ["escalation", "verify", &id]);
    home.fails(64, &["32 lowercase hex"], ["escalation", "verify", "../x"]);
}
