//! Every audit vector gives what its `strict` says, with the key and without.
#![allow(missing_docs, clippy::unwrap_used)]

mod support;

use support::{case, check, files, first_failed, key, number, object, status, vectors, warned};
use waybill_verifier::audit::{self, Draft, Event, Log, Mend, Outcome, Query, Start, arrange};
use waybill_verifier::chain::{LastLine, Place, Unseen, Visit};
use waybill_verifier::hash::Digest;
use waybill_verifier::json::{self, Object, Value};
use waybill_verifier::report::{Report, Status};
use waybill_verifier::tag::MasterKey;
use waybill_verifier::time::Timestamp;

type Files = Vec<(String, Vec<u8>)>;

fn read<V: Visit<Event>>(files: &Files, key: Option<&MasterKey>, start: Start, visitor: V) -> Outcome<V> {
    let folder = arrange(files.iter().map(|(name, _)| name.as_str()));
    let mut log = Log::new(key, start, visitor).in_folder(&folder);
    for day in &folder.days {
        log.open(day);
        let (_, bytes) = files.iter().find(|(name, _)| name == day.name).unwrap();
        bytes.chunks(1000).for_each(|piece| log.push(piece));
    }
    log.finish(LastLine::Settled)
}

fn verify(files: &Files, key: Option<&MasterKey>) -> Report {
    audit::report("audit", ".sdd/audit/", &read(files, key, Start::Genesis, Unseen))
}

#[test]
fn every_vector_gives_what_strict_says() {
    for (name, path, expected) in vectors("audit") {
        let strict = object(&expected, "strict");
        let files = files(&path.join("audit"));
        let report = verify(&files, Some(&key()));
        check(&name, strict, &report);
        assert_eq!(warned(&report), strict.get("warn").is_some(), "{name}: warn");
        if number(strict, "exit") == Some(0) {
            assert_eq!(report.verdict.name(), "consistent", "{name}");
        }
    }
}

#[test]
fn without_the_key_form_and_links_are_checked_and_it_reads_incomplete() {
    for (name, path, expected) in vectors("audit") {
        let report = verify(&files(&path.join("audit")), None);
        // Only the tag can tell that a value was changed.
        if name == "bad-wrong-byte" || number(object(&expected, "strict"), "exit") == Some(0) {
            assert_eq!(report.verdict.name(), "incomplete", "{name}");
            assert_eq!(status(&report, "audit.hmac"), Status::NotChecked, "{name}");
        } else {
            check(&name, object(&expected, "strict"), &report);
        }
    }
}

#[test]
fn faults_are_named() {
    for (name, id, fault) in [
        ("bad-archive-corrupt", "audit.files", "archive_corrupt"),
        ("bad-blank-line", "audit.chain", "malformed_row"),
        ("bad-day-live-and-archived", "audit.files", "day_twice"),
        ("bad-deleted-day", "audit.chain", "prev_hmac_mismatch"),
        ("bad-edit", "audit.chain", "not_canonical"),
        ("bad-no-final-newline", "audit.chain", "no_final_newline"),
        ("bad-prev-chain-digest", "audit.chain", "prev_chain_digest_mismatch"),
        ("bad-scheme-3", "audit.chain", "unknown_scheme"),
        ("bad-truncated-line", "audit.chain", "torn_tail"),
        ("bad-undated-file", "audit.files", "undated_file"),
        ("bad-unknown-field-tagged", "audit.chain", "unknown_field"),
        ("bad-wrong-byte", "audit.hmac", "hmac_mismatch"),
    ] {
        let report = verify(&files(&case("audit", name).join("audit")), Some(&key()));
        let failed = first_failed(&report).unwrap();
        assert_eq!((failed.id, failed.fault), (id, Some(fault)), "{name}");
    }
}

fn rotated() -> Files {
    files(&case("audit", "ok-v2-rotated").join("audit"))
}

#[test]
fn the_right_tag_of_an_altered_row_is_not_in_the_report() {
    let mut files = rotated();
    let original = String::from_utf8(files[0].1.clone()).unwrap();
    let tag = &original[original.find("\"hmac\": \"").unwrap() + 9..][..64];
    files[0].1 = original.replace(tag, &"0".repeat(64)).into_bytes();
    let report = verify(&files, Some(&key()));
    assert_eq!(first_failed(&report).unwrap().id, "audit.hmac");
    assert_eq!(number(&report.facts, "fault_count"), Some(1));
    assert!(!String::from_utf8(report.to_json()).unwrap().contains(tag));
}

#[test]
fn every_changed_byte_of_every_day_fails() {
    let files = rotated();
    let key = key();
    for index in 0..files.len() {
        for at in (0..files[index].1.len()).step_by(7) {
            let mut changed = files.clone();
            changed[index].1[at] ^= 1;
            let report = verify(&changed, Some(&key));
            let place = first_failed(&report).unwrap_or_else(|| panic!("{}: byte {at}", files[index].0));
            assert_eq!(place.at.as_ref().unwrap().file, format!(".sdd/audit/{}", files[index].0), "{at}");
        }
    }
}

#[test]
fn a_torn_last_line_is_mended_and_the_same_in_an_earlier_day_is_not() {
    let torn = files(&case("audit", "bad-truncated-line").join("audit"));
    let outcome = read(&torn, Some(&key()), Start::Genesis, Unseen);
    let Some(Mend::SetAside { name, recovery }) = outcome.mend else { panic!("no way to mend") };
    assert_eq!((name.as_str(), recovery.place.byte, recovery.place.entry), ("2026-12-03.jsonl", 0, 13));
    let mut earlier = rotated();
    let length = earlier[2].1.len();
    earlier[2].1.truncate(length - 30);
    let outcome = read(&earlier, Some(&key()), Start::Genesis, Unseen);
    assert_eq!(outcome.mend, None);
    assert_eq!(outcome.faults[0].1.kind.name(), "interior_corruption");
    assert_eq!(outcome.faults[0].0, earlier[2].0);
}

#[test]
fn a_whole_last_row_that_lacks_its_newline_is_ended_and_kept() {
    let files = files(&case("audit", "bad-no-final-newline").join("audit"));
    let outcome = read(&files, Some(&key()), Start::Genesis, Unseen);
    assert_eq!(outcome.mend, Some(Mend::AddNewline { name: String::from("2026-12-03.jsonl") }));
    assert_eq!(outcome.events, 14);
    let mut earlier = rotated();
    earlier[0].1.pop();
    let outcome = read(&earlier, Some(&key()), Start::Genesis, Unseen);
    assert_eq!((outcome.fault_count, outcome.mend), (1, None));
}

#[test]
fn a_range_of_days_verifies_behind_its_starting_link() {
    let mut files = rotated();
    let mut first_day = Vec::new();
    read(&files[..1].to_vec(), Some(&key()), Start::Genesis, |event: &Event, _: Place| {
        first_day.push(event.hmac)
    });
    files.remove(0);
    let report = verify(&files, Some(&key()));
    assert_eq!(
        first_failed(&report).unwrap().at.as_ref().unwrap().file,
        format!(".sdd/audit/{}", files[0].0)
    );
    let start = Start::After(*first_day.last().unwrap());
    let report = audit::report("audit", "", &read(&files, Some(&key()), start, Unseen));
    assert_eq!(report.verdict.name(), "consistent");
    assert!(report.does_not_establish[0].starts_with("what the days before say"));
}

#[test]
fn bytes_in_flight_are_left_out() {
    let mut files = rotated();
    files.last_mut().unwrap().1.extend_from_slice(b"{\"actor\": \"x");
    let folder = arrange(files.iter().map(|(name, _)| name.as_str()));
    let mut log = Log::new(None, Start::Genesis, Unseen);
    for (day, (_, bytes)) in folder.days.iter().zip(&files) {
        log.open(day);
        log.push(bytes);
    }
    let outcome = log.finish(LastLine::InFlight);
    assert_eq!((outcome.fault_count, outcome.in_flight), (0, 12));
}

#[test]
fn what_is_written_next_verifies_and_is_found() {
    let mut files = rotated();
    let before = read(&files, Some(&key()), Start::Genesis, Unseen);
    let anchored = audit::Anchored {
        run_id: "goal-42",
        head_hash: Digest::of(b"head"),
        entry_count: 7,
        chunk_count: 1,
        reference: "refs/bernstein/work-ledger/goal-42",
        tree_sha: "a103b994980fe0ee1b32e55fedfb706959fea80b",
    };
    let draft = anchored.draft(Timestamp::parse("2026-12-04T00:00:00.000001Z").unwrap());
    let (mut row, hmac) = audit::next(&key(), &before.head, &draft);
    row.push(b'\n');
    files.push((String::from("2026-12-04.jsonl"), row));
    let query =
        Query { event_type: Some("work_ledger.anchor"), since: Some("2026-12-04"), ..Query::default() };
    let mut found = Vec::new();
    let outcome = read(&files, Some(&key()), Start::Genesis, |event: &Event, _: Place| {
        if query.matches(event) {
            found.push(event.clone());
        }
    });
    assert_eq!((outcome.fault_count, outcome.head, outcome.events), (0, hmac, 15));
    let [event] = &found[..] else { panic!("{found:?}") };
    assert_eq!(event.details.get("prev_chain_digest"), Some(&Value::from(before.head.to_hex())));
    assert_eq!(event.details.get("chunk_count").and_then(Value::as_u64), Some(1));
    let nobody = Query { actor: Some("x"), until: Some("2026-12-04"), ..Query::default() };
    assert!(!nobody.matches(event));
}

#[test]
fn the_mirror_event_of_a_receipt_is_byte_for_byte_the_reference_s() {
    let audit = files(&case("receipt", "ok-audit-mirrored").join(".sdd/audit"));
    let expected = String::from_utf8(audit[2].1.clone()).unwrap();
    let value = json::parse(expected.trim_end().as_bytes()).unwrap();
    let details: &Object = value.as_object().unwrap().get("details").unwrap().as_object().unwrap();
    let text = |key| details.get(key).unwrap().as_str().unwrap();
    let escalated = audit::Escalated {
        journal_entry_hash: text("journal_entry_hash").to_owned(),
        run_id: text("run_id"),
        worker_id: text("worker_id"),
        session_id: text("session_id"),
        stall_reason: text("stall_reason"),
        recommended_action: text("recommended_action"),
        journal_head_at_stall: text("journal_head_at_stall").to_owned(),
        window_size: 16,
        fork_snapshot_sha: Some(text("fork_snapshot_sha")),
        journal_state: None,
    };
    let draft: Draft = escalated.draft(Timestamp::parse("2026-11-28T00:00:01.420348Z").unwrap());
    let prev = Digest::from_hex(text("prev_chain_digest").as_bytes()).unwrap();
    let (row, _) = audit::next(&key(), &prev, &draft);
    assert_eq!(String::from_utf8(row).unwrap(), expected.trim_end());
}

#[test]
fn each_rule_of_a_row_is_named() {
    let row = String::from_utf8(rotated()[0].1.clone()).unwrap();
    let row = row.trim_end();
    for (changed, fault) in [
        (row.replacen("{\"actor\"", "{\"actor\": 1, \"actor\"", 1), "duplicate_key"),
        (row.replacen("\"\\u00fc\"", "1", 1), "malformed_row"),
        (row.replacen("\\u00fc", "\u{fc}", 1), "not_canonical"),
        (row.replacen("\"task\"", "null", 1), "malformed_row"),
        (row.replacen("T19:00:00.699226Z", "T19:00:00Z", 1), "malformed_row"),
        (row.replacen("2026-11-27T", "2026-02-30T", 1), "malformed_row"),
        (row.replacen("\"prev_hmac\": \"0", "\"prev_hmac\": \"A", 1), "malformed_row"),
        (row.replacen("\"scheme\": 2", "\"scheme\": 2.0", 1), "unknown_scheme"),
        (row.replacen("\"scheme\": 2", "\"scheme\": true", 1), "unknown_scheme"),
        (row.replacen("\"resource_id\": \"t0\", ", "", 1), "malformed_row"),
        (format!("{row}\r"), "not_canonical"),
        (format!(" {row}"), "not_canonical"),
        (format!("\u{feff}{row}"), "torn_tail"),
        (String::from("[]"), "malformed_row"),
        (String::from(" "), "malformed_row"),
    ] {
        let files = vec![(String::from("2026-11-27.jsonl"), format!("{changed}\n").into_bytes())];
        let report = verify(&files, None);
        assert_eq!(first_failed(&report).and_then(|check| check.fault), Some(fault), "{changed}");
    }
}

#[test]
fn scheme_1_may_be_said_or_left_out() {
    let v1 = files(&case("audit", "ok-v1").join("audit"));
    assert_eq!(read(&v1, Some(&key()), Start::Genesis, Unseen).events_v1, 4);
    // Stated, it is part of what the tag covers: a row cannot move from one form to the other.
    let text = String::from_utf8(v1[0].1.clone()).unwrap();
    let stated =
        text.replacen("\"resource_type\": \"task\", ", "\"resource_type\": \"task\", \"scheme\": 1, ", 1);
    let files = vec![(v1[0].0.clone(), stated.into_bytes())];
    assert_eq!(first_failed(&verify(&files, Some(&key()))).unwrap().fault, Some("hmac_mismatch"));
    assert_eq!(verify(&files, None).verdict.name(), "incomplete");
}

#[test]
fn an_archive_that_is_not_one_whole_member_is_named() {
    let archived = files(&case("audit", "ok-archived").join("audit"));
    let at = archived.iter().position(|(name, _)| name.starts_with("archive/")).unwrap();
    for change in [
        |bytes: &mut Vec<u8>| bytes.push(0),
        |bytes: &mut Vec<u8>| bytes.truncate(bytes.len() - 1),
        |bytes: &mut Vec<u8>| {
            bytes[0] = 0;
        },
    ] {
        let mut changed = archived.clone();
        change(&mut changed[at].1);
        let report = verify(&changed, Some(&key()));
        let failed = first_failed(&report).unwrap();
        assert_eq!((failed.id, failed.fault), ("audit.files", Some("archive_corrupt")));
        assert_eq!(failed.at.as_ref().unwrap().file, format!(".sdd/audit/{}", archived[at].0));
    }
}
