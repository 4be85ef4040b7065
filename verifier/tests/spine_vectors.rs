//! Every spine vector gives what its `strict` says, with the key and without.
#![allow(missing_docs, clippy::unwrap_used)]

mod support;

use std::fs;

use support::{case, check, first_failed, key, number, object, status, vectors, warned};
use waybill_verifier::chain::{LastLine, Place, Unseen, Visit, Walk};
use waybill_verifier::hash::Digest;
use waybill_verifier::report::{Report, Status};
use waybill_verifier::spine::{self, Draft, Entry, HeadFile, SpineRows};
use waybill_verifier::tag::MasterKey;

fn read(rows: &[u8], head: Option<&[u8]>, key: Option<&MasterKey>, visitor: impl Visit<Entry>) -> Report {
    let head = HeadFile::read(head);
    let mut walk = Walk::new(SpineRows::new(key, &head, visitor));
    rows.chunks(100).for_each(|piece| walk.push(piece));
    spine::report("run", ("spine.jsonl", "spine.head"), &walk.finish(LastLine::Settled), &head)
}

fn verify(rows: &[u8], head: Option<&[u8]>, key: Option<&MasterKey>) -> Report {
    read(rows, head, key, Unseen)
}

fn load(name: &str) -> (Vec<u8>, Option<Vec<u8>>) {
    let folder = case("spine", name);
    (fs::read(folder.join("spine.jsonl")).unwrap(), fs::read(folder.join("spine.head")).ok())
}

#[test]
fn every_vector_gives_what_strict_says() {
    for (name, _, expected) in vectors("spine") {
        let strict = object(&expected, "strict");
        let (rows, head) = load(&name);
        let report = verify(&rows, head.as_deref(), Some(&key()));
        check(&name, strict, &report);
        if number(strict, "exit") == Some(0) {
            assert_eq!(warned(&report), strict.get("warn").is_some(), "{name}: {:?}", report.checks);
        }
    }
}

#[test]
fn without_the_key_tags_are_not_checked_and_it_reads_incomplete() {
    for (name, _, expected) in vectors("spine") {
        let (rows, head) = load(&name);
        let report = verify(&rows, head.as_deref(), None);
        if rows.is_empty() {
            assert_eq!(report.verdict.name(), "empty");
        } else if name == "bad-head-hmac" || number(object(&expected, "strict"), "exit") == Some(0) {
            assert_eq!(report.verdict.name(), "incomplete", "{name}");
            assert_eq!(status(&report, "spine.hmac"), Status::NotChecked, "{name}");
            assert_ne!(status(&report, "spine.head"), Status::Pass, "{name}");
        } else {
            check(&name, object(&expected, "strict"), &report);
        }
    }
}

#[test]
fn faults_are_named() {
    for (name, id, fault) in [
        ("bad-edit", "spine.chain", Some("entry_hash_mismatch")),
        ("bad-prev-hash", "spine.chain", Some("prev_hash_mismatch")),
        ("bad-unknown-field", "spine.chain", Some("unknown_field")),
        ("bad-unknown-field-tagged", "spine.chain", Some("unknown_field")),
        ("bad-head-hmac", "spine.head", Some("hmac_mismatch")),
        ("bad-head-count", "spine.head", None),
        ("bad-truncated-against-head", "spine.head", None),
    ] {
        let (rows, head) = load(name);
        let report = verify(&rows, head.as_deref(), Some(&key()));
        let failed = first_failed(&report).unwrap();
        assert_eq!((failed.id, failed.fault), (id, fault), "{name}");
    }
}

#[test]
fn every_changed_byte_of_rows_and_head_is_seen() {
    let (rows, head) = load("ok-v2");
    let (head, key) = (head.unwrap(), key());
    for at in 0..rows.len() {
        let mut changed = rows.clone();
        changed[at] ^= 1;
        let report = verify(&changed, Some(&head), Some(&key));
        let failed = first_failed(&report).unwrap_or_else(|| panic!("byte {at}"));
        let line = rows[..at].iter().filter(|&&byte| byte == b'\n').count();
        let place = failed.at.as_ref().unwrap().place.unwrap();
        assert_eq!(usize::try_from(place.line).unwrap(), line + 1, "byte {at}: {failed:?}");
    }
    for at in 0..head.len() {
        let mut changed = head.clone();
        changed[at] ^= 1;
        let report = verify(&rows, Some(&changed), Some(&key));
        assert_eq!(first_failed(&report).map(|check| check.id), Some("spine.head"), "byte {at}");
    }
}

#[test]
fn what_is_written_next_verifies_up_to_its_new_head() {
    let (mut rows, old_head) = load("ok-v2");
    let mut seen = Vec::new();
    read(&rows, None, Some(&key()), |entry: &Entry, _: Place| seen.push(entry.clone()));
    let draft = Draft {
        actor: String::from("bernstein.escalation_receipt"),
        artifact_path: String::from("src/日本.py"),
        content_hash: Digest::of(b"content"),
        step_id: String::from("s\u{7f}6"),
        model: String::from("none"),
        timestamp: 1_795_977_200,
    };
    let (row, hash) = spine::next(&key(), seen.last().map(|entry| &entry.entry_hash), &draft);
    rows.extend(row);
    rows.push(b'\n');
    let head = spine::head(&key(), 7, Some(&hash));
    let report = verify(&rows, Some(&head), Some(&key()));
    assert_eq!(report.verdict.name(), "consistent");
    assert!(!warned(&report));
    let behind = verify(&rows, old_head.as_deref(), Some(&key()));
    assert_eq!(status(&behind, "spine.head"), Status::Warn);
    // A first row links to nothing, and a head of nothing is what an empty spine has.
    let (first, hash) = spine::next(&key(), None, &draft);
    assert_eq!(
        verify(&first, Some(&spine::head(&key(), 1, Some(&hash))), Some(&key())).verdict.name(),
        "consistent"
    );
    assert_eq!(verify(b"", Some(&spine::head(&key(), 0, None)), Some(&key())).verdict.name(), "empty");
    assert_eq!(verify(b"", Some(&head), Some(&key())).verdict.name(), "failed");
}

#[test]
fn rows_the_reference_wrote_are_written_the_same() {
    let (rows, _) = load("ok-v2");
    let mut prev: Option<Digest> = None;
    let mut written = Vec::new();
    read(&rows, None, Some(&key()), |entry: &Entry, _: Place| {
        let draft = Draft {
            actor: entry.actor.clone(),
            artifact_path: entry.artifact_path.clone(),
            content_hash: entry.content_hash,
            step_id: entry.step_id.clone(),
            model: entry.model.clone(),
            timestamp: entry.timestamp.to_u64().unwrap(),
        };
        let (row, hash) = spine::next(&key(), prev.as_ref(), &draft);
        prev = Some(hash);
        written.extend(row);
        written.push(b'\n');
    });
    // The fourth row has a `traceparent`, which ours don't.
    let first_three =
        |bytes: Vec<u8>| String::from_utf8(bytes).unwrap().lines().take(3).collect::<Vec<_>>().join("\n");
    assert_eq!(first_three(written), first_three(rows));
}

#[test]
fn blank_lines_are_faults_and_other_forms_of_a_row_warn() {
    let (rows, head) = load("ok-v2");
    let blank = [&b"\n"[..], &rows].concat();
    assert_eq!(
        first_failed(&verify(&blank, head.as_deref(), Some(&key()))).unwrap().fault,
        Some("malformed_row")
    );
    let text = String::from_utf8(rows).unwrap();
    for other in [text.replace('\n', "\r\n"), text.replacen("{\"actor\"", "{ \"actor\"", 1)] {
        let report = verify(other.as_bytes(), head.as_deref(), Some(&key()));
        assert_eq!(status(&report, "spine.chain"), Status::Warn);
        assert_eq!(report.verdict.name(), "consistent");
    }
}

#[test]
fn each_rule_of_a_row_and_of_the_head_is_named() {
    let (rows, head) = load("warn-head-behind");
    let rows = String::from_utf8(rows).unwrap();
    let row = rows.lines().next().unwrap();
    for (changed, fault) in [
        (row.replacen("{\"actor\"", "{\"actor\":1,\"actor\"", 1), "duplicate_key"),
        (row.replacen("\"timestamp\":1", "\"timestamp\":1.0", 1), "malformed_row"),
        (row.replacen("\"v\":2", "\"v\":3", 1), "malformed_row"),
        (row.replacen("\"v\":2", "\"baggage\":1,\"v\":2", 1), "malformed_row"),
        (row.replacen("\"actor\":\"a\"", "\"actor\":\"\\ud800\"", 1), "malformed_row"),
        (row.replacen("sha256:", "sha512:", 1), "malformed_row"),
        (row.replacen("\"model\":\"m\",", "", 1), "malformed_row"),
        (row.replacen("\"prev_hash\":\"\"", "\"prev_hash\":\"x\"", 1), "malformed_row"),
        (row[..row.len() - 1].to_owned(), "torn_tail"),
    ] {
        let report = verify(changed.as_bytes(), None, Some(&key()));
        assert_eq!(first_failed(&report).and_then(|check| check.fault), Some(fault), "{changed}");
    }
    let head = String::from_utf8(head.unwrap()).unwrap();
    for (changed, expect) in [
        (head.replacen("\"count\"", "\"extra\":1,\"count\"", 1), Status::Fail),
        (head.replacen("\"count\":1", "\"count\":-1", 1), Status::Fail),
        (head.replacen("\"count\":1", "\"count\":1.0", 1), Status::Fail),
        (head.replacen("{\"count\"", "{\"hash_profile\":1,\"count\"", 1), Status::Fail),
        (head.replacen("{\"count\"", "{\"hash_profile\":\"x\",\"count\"", 1), Status::Fail),
        (head[1..].to_owned(), Status::Fail),
        (String::from("7"), Status::Fail),
        (format!("{head}\n"), Status::Warn),
    ] {
        let rows = if expect == Status::Warn { row } else { rows.as_str() };
        let report = verify(rows.as_bytes(), Some(changed.as_bytes()), Some(&key()));
        assert_eq!(status(&report, "spine.head"), expect, "{changed}");
    }
}
