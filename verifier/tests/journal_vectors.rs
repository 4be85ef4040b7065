//! The journals of the receipt vectors, alone: what holds and what is named.
#![allow(missing_docs, clippy::unwrap_used)]

mod support;

use std::fs;

use support::{case, first_failed, vectors};
use waybill_verifier::chain::{LastLine, Place, Unseen, Visit, Walk};
use waybill_verifier::hash::Digest;
use waybill_verifier::journal::{self, BadDraft, Draft, Event, EventRows, Fork, Profile, Snapshot};
use waybill_verifier::json::{self, Object, Value};
use waybill_verifier::report::Report;

fn read(bytes: &[u8], visitor: impl Visit<Event>, expected_head: Option<Digest>) -> Report {
    let mut walk = Walk::new(EventRows::new(visitor));
    bytes.chunks(777).for_each(|piece| walk.push(piece));
    journal::report("run", "journal.jsonl", &walk.finish(LastLine::Settled), expected_head)
}

fn verify(bytes: &[u8]) -> Report {
    read(bytes, Unseen, None)
}

fn load(name: &str, run: &str) -> Vec<u8> {
    fs::read(case("receipt", name).join(".sdd/runs").join(run).join("journal.jsonl")).unwrap()
}

#[test]
fn the_journals_of_all_receipts_that_verify_hold() {
    let mut journals = 0;
    for (name, path, _) in vectors("receipt") {
        let Ok(runs) = fs::read_dir(path.join(".sdd/runs")) else { continue };
        for run in runs {
            let report = verify(&fs::read(run.unwrap().path().join("journal.jsonl")).unwrap());
            let expect = match name.as_str() {
                "bad-journal-edit-before-window" => Some(("payload_hash_mismatch", 1)),
                "bad-journal-edit-in-window" => Some(("payload_hash_mismatch", 19)),
                "bad-journal-payload-hash" => Some(("payload_hash_mismatch", 18)),
                "bad-journal-payload-hash-repaired" => Some(("event_hash_mismatch", 19)),
                "bad-journal-prev-hash" => Some(("prev_hash_mismatch", 19)),
                "bad-journal-index" => Some(("index_mismatch", 18)),
                "bad-unknown-profile" => Some(("unknown_profile", 0)),
                "ok-journal-torn-after-window" => Some(("torn_tail", 32)),
                _ => None,
            };
            let failed = first_failed(&report);
            let found =
                failed.map(|check| (check.fault.unwrap(), check.at.as_ref().unwrap().place.unwrap().entry));
            assert_eq!(found, expect, "{name}: {failed:?}");
            if report.facts.get("entries").and_then(Value::as_u64) == Some(0) {
                assert_eq!(report.verdict.name(), "empty", "{name}");
            }
            journals += 1;
        }
    }
    assert!(journals > 60);
}

#[test]
fn each_covered_field_of_each_row_is_covered_and_times_are_not() {
    let text = String::from_utf8(load("ok-full-window", "run-7")).unwrap();
    let rows: Vec<&str> = text.lines().collect();
    for (index, row) in rows.iter().enumerate() {
        let object = json::parse(row.as_bytes()).unwrap().as_object().unwrap().clone();
        for (key, value) in object.iter() {
            let key = key.as_str().unwrap();
            let changed = match value {
                Value::String(text) if text.as_wtf8().len() == 64 => Value::from(Digest::of(b"x").to_hex()),
                Value::String(_) => Value::from("changed"),
                _ => Value::from(987_654_321),
            };
            let mut altered = object.clone();
            altered.insert(key.into(), changed);
            let altered = String::from_utf8(json::ascii(&Value::from(altered))).unwrap();
            let mut lines = rows.clone();
            lines[index] = &altered;
            let report = verify(lines.join("\n").as_bytes());
            let failed = first_failed(&report);
            if matches!(key, "ts" | "elapsed_s") {
                assert!(failed.is_none(), "{index} {key}: {failed:?}");
                assert!(report.does_not_establish.iter().any(|line| line.contains(key)));
                continue;
            }
            let expect = match key {
                "prev_hash" if index == 0 => "malformed_row",
                "prev_hash" => "prev_hash_mismatch",
                "event_hash" => "event_hash_mismatch",
                "index" => "index_mismatch",
                _ => "payload_hash_mismatch",
            };
            let failed = failed.unwrap_or_else(|| panic!("{index} {key}"));
            let place = failed.at.as_ref().unwrap().place.unwrap();
            assert_eq!(usize::try_from(place.entry).unwrap(), index, "{key}: {failed:?}");
            assert_eq!(failed.fault, Some(expect), "{index} {key}");
        }
    }
}

#[test]
fn a_missing_row_is_one_fault() {
    let text = String::from_utf8(load("ok-full-window", "run-7")).unwrap();
    let mut rows: Vec<&str> = text.lines().collect();
    rows.remove(5);
    let report = verify(rows.join("\n").as_bytes());
    assert_eq!(report.facts.get("fault_count").and_then(Value::as_u64), Some(1));
    assert_eq!(first_failed(&report).unwrap().fault, Some("prev_hash_mismatch"));
}

fn record(profile: Profile, events: &[(&str, Object)]) -> (Vec<u8>, Digest) {
    let (mut bytes, mut prev) = (Vec::new(), None);
    for (index, (event, fields)) in (0..).zip(events) {
        let draft = Draft { event, fields, ts: 1_795_976_964.5, elapsed_s: 0.25 };
        let (row, hash) = journal::next(profile, (index, prev.as_ref()), &draft).unwrap();
        bytes.extend(row);
        bytes.push(b'\n');
        prev = Some(hash);
    }
    (bytes, prev.unwrap())
}

#[test]
fn what_is_recorded_verifies_in_both_profiles() {
    let float = json::parse(
        b"{\"x\":[1e-7,10.0,1E21,-0.0],\"\xf0\x9f\x98\x80\":\"\xef\xac\xb3\",\"n\":12345678901234567890123}",
    );
    let float = float.unwrap().as_object().unwrap().clone();
    let fork = Fork { parent_run_id: "run-7", fork_step: 3, snapshot_sha: "abc" };
    let snapshot = Snapshot { sha: "def", step: 4 };
    let events = [(Fork::EVENT, fork.fields()), ("über.failed", float), (Snapshot::EVENT, snapshot.fields())];
    for profile in [Profile::PyJsonV1, Profile::JcsV2] {
        let (bytes, head) = record(profile, &events);
        let mut seen = Vec::new();
        let report = read(&bytes, |event: &Event, _: Place| seen.push(event.clone()), Some(head));
        assert_eq!(report.verdict.name(), "verified", "{profile:?}: {:?}", report.checks);
        assert_eq!(report.facts.get("hash_profile").and_then(Value::as_str), Some(profile.name()));
        assert_eq!((seen[0].fork(), seen[0].snapshot()), (Some(fork), None));
        assert_eq!((seen[2].fork(), seen[2].snapshot()), (None, Some(snapshot)));
        let other = read(&bytes, Unseen, Some(Digest::ZERO));
        assert_eq!(first_failed(&other).unwrap().id, "journal.expected_head");
    }
    assert_ne!(record(Profile::PyJsonV1, &events).1, record(Profile::JcsV2, &events).1);
}

#[test]
fn what_the_journal_writes_itself_is_not_taken_from_a_draft() {
    for name in
        ["ts", "elapsed_s", "index", "prev_hash", "payload_hash", "event_hash", "event", "hash_profile"]
    {
        let fields = Object::of([(name, Value::from(1))]);
        let draft = Draft { event: "x", fields: &fields, ts: 0.0, elapsed_s: 0.0 };
        let refused = journal::next(Profile::PyJsonV1, (0, None), &draft).unwrap_err();
        assert_eq!(refused, BadDraft::Reserved(name));
    }
    let fields = Object::default();
    let draft = Draft { event: "x", fields: &fields, ts: f64::NAN, elapsed_s: 0.0 };
    assert_eq!(journal::next(Profile::JcsV2, (0, None), &draft).unwrap_err(), BadDraft::NotFinite);
    let lone = json::parse(b"{\"k\":\"\\ud800\"}").unwrap().as_object().unwrap().clone();
    let draft = Draft { event: "x", fields: &lone, ts: 0.0, elapsed_s: 0.0 };
    assert!(matches!(journal::next(Profile::JcsV2, (0, None), &draft), Err(BadDraft::Text(_))));
    assert!(journal::next(Profile::PyJsonV1, (0, None), &draft).is_ok());
}

#[test]
fn each_rule_of_a_row_is_named() {
    let text = String::from_utf8(load("ok-full-window", "run-7")).unwrap();
    let row = text.lines().next().unwrap();
    for (changed, fault) in [
        (row.replacen("{\"ts\"", "{\"goal\":1,\"ts\"", 1), "duplicate_key"),
        (row.replacen("\"index\": 0", "\"index\": 0.0", 1), "malformed_row"),
        (row.replacen("\"index\": 0", "\"index\": -1", 1), "malformed_row"),
        (row.replacen("\"event\": \"run_started\"", "\"event\": 1", 1), "malformed_row"),
        (row.replacen("\"ts\": 1795976964.4978988", "\"ts\": \"now\"", 1), "malformed_row"),
        (row.replacen("\"budget\": 1.5", "\"budget\": NaN", 1), "malformed_row"),
        (row.replacen("\"prev_hash\": \"\", ", "", 1), "malformed_row"),
        (row.replacen("\"prev_hash\": \"\"", "\"prev_hash\": null", 1), "malformed_row"),
        (row.replacen("\"budget\": 1.5", "\"budget\": 1.5, \"hash_profile\": null", 1), "unknown_profile"),
        (
            row.replacen("\"budget\": 1.5", "\"budget\": 1.5, \"hash_profile\": \"jcs-v2\"", 1),
            "payload_hash_mismatch",
        ),
        (format!("\u{feff}{row}"), "torn_tail"),
        (row[..40].to_owned(), "torn_tail"),
    ] {
        let report = verify(changed.as_bytes());
        assert_eq!(first_failed(&report).and_then(|check| check.fault), Some(fault), "{changed}");
    }
    assert_eq!(verify(row.as_bytes()).verdict.name(), "consistent");
}
