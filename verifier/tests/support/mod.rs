//! What the tests on vectors share.
#![allow(dead_code)]

use std::fs;
use std::path::{Path, PathBuf};

use waybill_verifier::json::{self, Object, Value};
use waybill_verifier::report::{Check, Report, Status};
use waybill_verifier::tag::MasterKey;

/// The cases of one kind: name, folder, `expected.json`.
pub(crate) fn vectors(kind: &str) -> Vec<(String, PathBuf, Object)> {
    let mut cases: Vec<_> = fs::read_dir(root().join(kind))
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            let expected = json::parse(&fs::read(path.join("expected.json")).unwrap()).unwrap();
            let Value::Object(expected) = expected else { panic!("{name}: not an object") };
            (name, path, expected)
        })
        .collect();
    cases.sort_by(|left, right| left.0.cmp(&right.0));
    assert!(!cases.is_empty());
    cases
}

pub(crate) fn case(kind: &str, name: &str) -> PathBuf {
    root().join(kind).join(name)
}

/// The master key of all vectors.
pub(crate) fn key() -> MasterKey {
    MasterKey::from_file(&fs::read(root().join("hmac.key")).unwrap()).unwrap()
}

pub(crate) fn object<'a>(of: &'a Object, key: &str) -> &'a Object {
    of.get(key).unwrap().as_object().unwrap()
}

pub(crate) fn number(of: &Object, key: &str) -> Option<u64> {
    of.get(key).and_then(Value::as_u64)
}

pub(crate) fn string<'a>(of: &'a Object, key: &str) -> Option<&'a str> {
    of.get(key).and_then(Value::as_str)
}

pub(crate) fn first_failed(report: &Report) -> Option<&Check> {
    report.checks.iter().find(|check| check.status == Status::Fail)
}

pub(crate) fn status(report: &Report, id: &str) -> Status {
    report.checks.iter().find(|check| check.id == id).unwrap_or_else(|| panic!("no check {id}")).status
}

pub(crate) fn warned(report: &Report) -> bool {
    report.checks.iter().any(|check| check.status == Status::Warn)
}

/// Compares a report with what a vector's `strict` (or a part of it) says.
#[track_caller]
pub(crate) fn check(name: &str, strict: &Object, report: &Report) {
    let failed = first_failed(report);
    assert_eq!(
        Some(u64::from(report.verdict.exit_code())),
        number(strict, "exit"),
        "{name}: exit: {failed:?}"
    );
    let place = failed.and_then(|check| check.at.as_ref()?.place);
    for key in ["entry", "step"] {
        if let Some(entry) = number(strict, key) {
            assert_eq!(place.map(|place| place.entry), Some(entry), "{name}: entry");
        }
    }
    if let Some(line) = number(strict, "line") {
        assert_eq!(place.map(|place| place.line), Some(line), "{name}: line");
    }
    if let Some(fault) = string(strict, "fault") {
        assert_eq!(failed.and_then(|check| check.fault), Some(fault), "{name}: fault");
    }
    if let (Some(file), Some(failed)) = (string(strict, "file"), failed) {
        let at = failed.at.as_ref().map(|at| at.file.as_str());
        assert!(at.is_some_and(|at| at.ends_with(file)), "{name}: file: {failed:?}");
    }
    if let Some(part) = string(strict, "check") {
        assert!(failed.is_some_and(|check| check.id.contains(part)), "{name}: check: {failed:?}");
    }
    for key in ["entries", "files"] {
        if let Some(count) = number(strict, key) {
            assert_eq!(number(&report.facts, key), Some(count), "{name}: {key}");
        }
    }
    if let Some(verdict) = string(strict, "verdict") {
        assert_eq!(report.verdict.name(), verdict, "{name}: verdict");
    }
}

/// All files below a folder, by their names relative to it, sorted.
pub(crate) fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    collect(folder, "", &mut found);
    found.sort();
    found
}

fn collect(folder: &Path, prefix: &str, found: &mut Vec<(String, Vec<u8>)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = format!("{prefix}{}", path.file_name().unwrap().to_str().unwrap());
        if path.is_dir() {
            collect(&path, &format!("{name}/"), found);
        } else {
            found.push((name, fs::read(path).unwrap()));
        }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/vectors")
}
