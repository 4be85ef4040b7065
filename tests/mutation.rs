//! Each byte that is covered, changed: the verdict is failed, and the check that says so is the
//! right one.

use std::fs;
use std::path::Path;

use crate::help::{Home, Report};

/// A vector's project with one file changed by one byte, and the report on its receipt.
fn changed(home: &Home, id: &str, file: &Path, whole: &[u8], at: usize) -> Report {
    fs::write(file, with_flip(whole, at)).unwrap();
    home.verify_receipt(id)
}

fn with_flip(whole: &[u8], at: usize) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    bytes[at] ^= 1;
    bytes
}

/// The float that a byte is in, if it is in one.
fn number(text: &[u8], at: usize) -> Option<u64> {
    let is_part = |byte: &u8| byte.is_ascii_digit() || b".eE+-".contains(byte);
    let start = text[..at].iter().rposition(|byte| !is_part(byte)).map_or(0, |end| end + 1);
    let end = at + text[at..].iter().position(|byte| !is_part(byte))?;
    let token = std::str::from_utf8(&text[start..end]).ok().filter(|token| token.contains('.'))?;
    token.parse::<f64>().ok().map(f64::to_bits)
}

fn failed(report: &Report) -> Vec<&str> {
    let checks = report.0["checks"].as_array().unwrap();
    checks
        .iter()
        .filter(|check| check["status"] == "fail")
        .map(|check| check["id"].as_str().unwrap())
        .collect()
}

#[test]
fn each_byte_of_a_receipt_counts() {
    let home = Home::of_vector("receipt", "ok-full-window");
    let id = home.receipts().pop().unwrap();
    let file = home.path().join(format!(".sdd/escalation/receipts/{id}.json"));
    let whole = fs::read(&file).unwrap();
    for at in 0..whole.len() {
        let report = changed(&home, &id, &file, &whole, at);
        let failed = failed(&report);
        assert_eq!(report.verdict(), "failed", "byte {at}");
        assert!(
            failed.iter().all(|id| id.starts_with("receipt.") || *id == "journal.chain"),
            "byte {at}: {failed:?}"
        );
        assert!(
            ["receipt.form", "receipt.signature", "receipt.anchor"].contains(&failed[0]),
            "byte {at}: {failed:?}"
        );
    }
}

#[test]
fn each_covered_byte_of_the_journal_up_to_the_window_s_end_counts() {
    let home = Home::of_vector("receipt", "ok-full-window");
    let id = home.receipts().pop().unwrap();
    let file = home.path().join(".sdd/runs/run-7/journal.jsonl");
    let whole = fs::read(&file).unwrap();
    let line = |at: usize| whole[..at].iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
    let mut free = 0;
    for at in (0..whole.len()).step_by(7) {
        let report = changed(&home, &id, &file, &whole, at);
        let failed = failed(&report);
        if report.verdict() == "consistent" {
            // Only times, the space between tokens, and digits behind a double's last are covered
            // by nothing.
            let start = line(at);
            let row = String::from_utf8_lossy(&whole[start..]);
            let times = row.find(", \"index\"").unwrap();
            let same =
                number(&whole, at).is_some() && number(&whole, at) == number(&with_flip(&whole, at), at);
            assert!(at - start < times || whole[at].is_ascii_whitespace() || same, "byte {at}");
            let text = report.0["does_not_establish"].to_string();
            assert!(text.contains("`ts` and `elapsed_s`"), "{text}");
            free += 1;
            continue;
        }
        assert_eq!(report.verdict(), "failed", "byte {at}: {report:?}");
        assert!(["journal.chain", "receipt.window"].contains(&failed[0]), "byte {at}: {failed:?}");
    }
    assert!(free > 5);
}

#[test]
fn each_byte_of_the_spine_and_its_head_counts() {
    let home = Home::of_vector("receipt", "ok-full-window");
    let id = home.receipts().pop().unwrap();
    for name in ["spine.jsonl", "spine.head"] {
        let file = home.path().join(".sdd/lineage/escalations").join(name);
        let whole = fs::read(&file).unwrap();
        for at in (0..whole.len()).step_by(2) {
            let report = changed(&home, &id, &file, &whole, at);
            assert_eq!(report.verdict(), "failed", "{name}: byte {at}");
            assert!(failed(&report)[0].starts_with("spine."), "{name}: byte {at}: {:?}", failed(&report));
        }
        fs::write(&file, whole).unwrap();
    }
}
