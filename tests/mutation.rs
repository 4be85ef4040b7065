//! Each byte that is covered, changed: the verdict is failed, and the check that says so is the
//! right one. Every byte is judged through the library, and a sample through the binary, whose
//! report must be the same bytes.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use waybill_verifier::audit::Start;
use waybill_verifier::json::{self, Object, Value};
use waybill_verifier::receipt::{Scope, Together, Trust};
use waybill_verifier::report::{Report, Status};
use waybill_verifier::tag::MasterKey;

use crate::help::{Home, vectors};

/// What is flipped in a byte: a digit for its neighbour, a letter for its other case.
const FLIPS: [u8; 2] = [0x01, 0x20];

/// One byte in so many goes through the binary, too.
const SAMPLE: usize = 101;

const JOURNAL: &str = ".sdd/runs/run-7/journal.jsonl";

type Files = BTreeMap<String, Vec<u8>>;

/// A receipt with the files of its project: in memory, and in a folder.
struct Whole {
    home: Home,
    key: MasterKey,
    id: String,
    receipt: String,
    files: Files,
}

impl Whole {
    fn new() -> Whole {
        let home = Home::of_vector("receipt", "ok-full-window");
        let id = home.receipts().pop().unwrap();
        let mut files = Files::new();
        take(home.path(), "", &mut files);
        files.remove("expected.json");
        let receipt = format!(".sdd/escalation/receipts/{id}.json");
        assert_eq!(files.len(), 5, "{:?}", files.keys());
        let key = MasterKey::from_file(&fs::read(vectors().join("hmac.key")).unwrap()).unwrap();
        Whole { home, key, id, receipt, files }
    }

    fn report(&self) -> Report {
        let files = self.files.iter().map(|(path, bytes)| (path.as_str(), bytes.as_slice())).collect();
        let together = Together::of(files, Start::Genesis, Some(&self.key));
        together.report(&self.receipt, Scope::Project, &Trust::Unpinned)
    }

    /// Calls `judge` with each byte of a file, what is flipped in it, and the report on that.
    fn change_each(&mut self, file: &str, mut judge: impl FnMut(usize, u8, &Report)) {
        let length = self.files[file].len();
        for at in 0..length {
            for flip in FLIPS {
                self.files.get_mut(file).unwrap()[at] ^= flip;
                let report = self.report();
                if at % SAMPLE == 0 {
                    fs::write(self.home.path().join(file), &self.files[file]).unwrap();
                    let said = self.home.run(["escalation", "verify", &self.id, "--json"]);
                    assert_eq!(said.out.as_bytes(), report.to_json(), "{file}: byte {at}");
                    assert_eq!(said.code, Some(i32::from(report.verdict.exit_code())), "{file}: byte {at}");
                }
                judge(at, flip, &report);
                self.files.get_mut(file).unwrap()[at] ^= flip;
            }
        }
        fs::write(self.home.path().join(file), &self.files[file]).unwrap();
        assert_eq!(self.report().verdict.name(), "consistent");
    }
}

/// Takes the files of a folder, by their paths relative to the project.
fn take(folder: &Path, prefix: &str, files: &mut Files) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = format!("{prefix}{}", path.file_name().unwrap().to_str().unwrap());
        if path.is_dir() {
            take(&path, &format!("{name}/"), files);
        } else {
            files.insert(name, fs::read(&path).unwrap());
        }
    }
}

fn failed(report: &Report) -> Vec<&str> {
    report.checks.iter().filter(|check| check.status == Status::Fail).map(|check| check.id).collect()
}

/// What the hashes of a row cover, where it is JSON: the values of all but its times. Digits
/// behind a double's last change no value.
fn covered(row: &[u8]) -> Option<Object> {
    let Ok(Value::Object(mut fields)) = json::parse(row) else { return None };
    for name in ["ts", "elapsed_s"] {
        fields.remove(name).filter(|time| matches!(time, Value::Int(_) | Value::Float(_)))?;
    }
    Some(fields)
}

/// The line that a byte is in.
fn row(text: &[u8], at: usize) -> &[u8] {
    let start = text[..at].iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
    let end = text[at..].iter().position(|&byte| byte == b'\n').map_or(text.len(), |length| at + length);
    &text[start..end]
}

#[test]
fn each_byte_of_a_receipt_counts() {
    let mut whole = Whole::new();
    let receipt = whole.receipt.clone();
    whole.change_each(&receipt, |at, flip, report| {
        let failed = failed(report);
        assert_eq!(report.verdict.name(), "failed", "byte {at} ^ {flip}");
        assert!(
            failed.iter().all(|id| id.starts_with("receipt.") || *id == "journal.chain"),
            "byte {at} ^ {flip}: {failed:?}"
        );
        assert!(
            ["receipt.form", "receipt.signature", "receipt.anchor"].contains(&failed[0]),
            "byte {at} ^ {flip}: {failed:?}"
        );
    });
}

#[test]
fn each_covered_byte_of_the_journal_up_to_the_window_s_end_counts() {
    let mut whole = Whole::new();
    let text = whole.files[JOURNAL].clone();
    let mut free = 0;
    whole.change_each(JOURNAL, |at, flip, report| {
        let mut changed = text.clone();
        changed[at] ^= flip;
        let was = covered(row(&text, at)).unwrap();
        if covered(row(&changed, at)).is_some_and(|now| now == was) {
            assert_eq!(report.verdict.name(), "consistent", "byte {at} ^ {flip}: {report:?}");
            let text = report.does_not_establish.join("\n");
            assert!(text.contains("`ts` and `elapsed_s`"), "{text}");
            free += 1;
            return;
        }
        let failed = failed(report);
        assert_eq!(report.verdict.name(), "failed", "byte {at} ^ {flip}: {report:?}");
        assert!(["journal.chain", "receipt.window"].contains(&failed[0]), "byte {at} ^ {flip}: {failed:?}");
    });
    assert!(free > 300, "{free}");
}

#[test]
fn each_byte_of_the_spine_and_its_head_counts() {
    let mut whole = Whole::new();
    for name in ["spine.jsonl", "spine.head"] {
        whole.change_each(&format!(".sdd/lineage/escalations/{name}"), |at, flip, report| {
            assert_eq!(report.verdict.name(), "failed", "{name}: byte {at} ^ {flip}");
            let failed = failed(report);
            assert!(failed[0].starts_with("spine."), "{name}: byte {at} ^ {flip}: {failed:?}");
        });
    }
}
