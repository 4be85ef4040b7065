//! Every vector of `tests/vectors` gives what its `strict` says.
#![allow(missing_docs, clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

use waybill_verifier::chain::{LastLine, Outcome, Walk};
use waybill_verifier::hash::Digest;
use waybill_verifier::json::{self, Encoding, Object, ParseError, Value};
use waybill_verifier::ledger::{self, Expect, LedgerRows, State};
use waybill_verifier::report::{Report, Status};
use waybill_verifier::step::{self, StepRows};

fn vectors(kind: &str) -> Vec<(String, PathBuf, Object)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/vectors").join(kind);
    let mut cases: Vec<_> = fs::read_dir(root)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            let expected = json::parse(&fs::read(path.join("expected.json")).unwrap()).unwrap();
            let Value::Object(expected) = expected else { panic!("{name}: not an object") };
            (name, path.join("000000.jsonl"), expected)
        })
        .collect();
    cases.sort_by(|left, right| left.0.cmp(&right.0));
    assert!(!cases.is_empty());
    cases
}

fn strict(expected: &Object) -> &Object {
    expected.get("strict").unwrap().as_object().unwrap()
}

/// Compares a report with what a vector's `strict` (or a part of it) says.
fn check(name: &str, strict: &Object, report: &Report) {
    let number = |key| strict.get(key).and_then(Value::as_u64);
    assert_eq!(Some(u64::from(report.verdict.exit_code())), number("exit"), "{name}: exit");
    let failed = report.checks.iter().find(|check| check.status == Status::Fail);
    let place = failed.and_then(|check| check.at.as_ref()?.place);
    if let Some(entry) = number("entry") {
        assert_eq!(place.map(|place| place.entry), Some(entry), "{name}: entry");
    }
    if let Some(line) = number("line") {
        assert_eq!(place.map(|place| place.line), Some(line), "{name}: line");
    }
    if let Some(fault) = strict.get("fault") {
        assert_eq!(failed.and_then(|check| check.fault), fault.as_str(), "{name}: fault");
    }
    if let Some(entries) = number("entries") {
        assert_eq!(report.facts.get("entries").unwrap().as_u64(), Some(entries), "{name}: entries");
    }
    if let Some(head) = strict.get("head_hash") {
        assert_eq!(report.facts.get("head_hash"), Some(head), "{name}: head");
    }
    let warned = report.checks.iter().any(|check| check.status == Status::Warn);
    if number("exit") == Some(0) {
        assert_eq!(warned, strict.get("warn").is_some(), "{name}: warn: {:?}", report.checks);
    }
    if let Some(recover) = strict.get("recover").and_then(Value::as_object) {
        let recovery = report.facts.get("recovery").unwrap().as_object().unwrap();
        assert_eq!(recovery.get("entries"), recover.get("entries"), "{name}: recovery");
    }
}

fn verify(bytes: &[u8], expect: &Expect) -> Report {
    let rows = LedgerRows::new(None, |_, _| {}).looking_for(expect.hashes());
    let mut walk = Walk::new(rows);
    walk.push(bytes);
    ledger::report("run", "000000.jsonl", &walk.finish(LastLine::Settled), expect)
}

#[test]
fn every_ledger_vector_gives_what_strict_says() {
    for (name, path, expected) in vectors("ledger") {
        let bytes = fs::read(path).unwrap();
        let strict = strict(&expected);
        check(&name, strict, &verify(&bytes, &Expect::default()));
        if let Some(with) = strict.get("with_expected_head").and_then(Value::as_object) {
            let head = Digest::from_hex(with.get("head").unwrap().as_str().unwrap().as_bytes());
            check(&name, with, &verify(&bytes, &Expect { head, contains: None }));
        }
        if let Some(state) = expected.get("state") {
            let mut replay = State::default();
            let mut walk = Walk::new(LedgerRows::new(None, |row: &ledger::Row<'_>, _| replay.apply(row)));
            walk.push(&bytes);
            drop(walk.finish(LastLine::Settled));
            let run_id = expected.get("run_id").unwrap().as_str().unwrap();
            assert_eq!(&replay.document(run_id), state, "{name}: state");
        }
    }
}

#[test]
fn every_step_journal_vector_gives_what_strict_says() {
    for (name, path, expected) in vectors("step-journal") {
        let mut walk = Walk::new(StepRows::default());
        walk.push(&fs::read(path).unwrap());
        let outcome: Outcome<StepRows> = walk.finish(LastLine::Settled);
        check(&name, strict(&expected), &step::report("agent", "000000.jsonl", &outcome));
    }
}

#[test]
fn every_canonical_json_vector_encodes_or_is_refused_as_stated() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/vectors/canonical-json.jsonl");
    let mut texts = 0;
    for line in fs::read_to_string(path).unwrap().lines() {
        let case = json::parse(line.as_bytes()).unwrap();
        let case = case.as_object().unwrap();
        let Value::String(text) = case.get("text").unwrap() else { panic!("{line}") };
        texts += 1;
        let parsed = json::parse(text.as_wtf8());
        if let Some(refused) = case.get("refused") {
            let error = parsed.expect_err(line);
            let duplicate = matches!(error, ParseError::DuplicateKey { .. });
            assert_eq!(duplicate, refused.as_str() == Some("duplicate_key"), "{line}");
            continue;
        }
        let value = parsed.unwrap_or_else(|error| panic!("{error}: {line}"));
        for (name, encoding) in [
            ("ascii", Encoding::Ascii),
            ("ascii_spaced", Encoding::AsciiSpaced),
            ("utf8", Encoding::Utf8),
            ("jcs_v2", Encoding::JcsV2),
        ] {
            let encoded = json::encode(encoding, &value);
            match case.get(name) {
                Some(Value::String(expected)) => {
                    assert_eq!(encoded.as_deref(), Ok(expected.as_wtf8()), "{name}: {line}");
                }
                _ => {
                    let refused = format!("{name}_refused");
                    assert!(case.get(&refused).is_some(), "{name}: {line}");
                    assert!(encoded.is_err(), "{name}: {line}");
                }
            }
        }
    }
    assert!(texts > 1000);
}
