#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;

use waybill_verifier::audit::TagsChecked;
use waybill_verifier::chain::Unseen;
use waybill_verifier::json::{Object, Value};
use waybill_verifier::time::Timestamp;

use super::*;

struct Home {
    folder: tempfile::TempDir,
    project: Project,
    key: KeyFile,
}

impl Home {
    fn new() -> Home {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::at(folder.path().join("p"));
        fs::create_dir(project.root()).unwrap();
        let path = folder.path().join("state/audit.key");
        Home { key: KeyFile::named_by(|_| Some(path.clone())), project, folder }
    }

    fn record(&self, day: &str, id: &str) -> Result<Recorded, Error> {
        record(&self.project, &self.key, &draft(day, id))
    }

    fn outcome(&self) -> Outcome<Unseen> {
        read(&self.project.audit(), self.key.read().unwrap().as_ref(), || Unseen).unwrap()
    }

    #[track_caller]
    fn holds(&self, events: u64) {
        let outcome = self.outcome();
        assert_eq!((outcome.faults, outcome.file_faults), (vec![], vec![]));
        assert_eq!((outcome.events, outcome.tags), (events, TagsChecked::Yes));
    }

    fn path(&self, name: &str) -> PathBuf {
        self.project.audit().join(name)
    }
}

fn draft(day: &str, id: &str) -> Draft {
    Draft {
        timestamp: Timestamp::parse(&format!("{day}T10:00:00.000001Z")).unwrap(),
        event_type: String::from("test.event"),
        actor: String::from("tester"),
        resource_type: String::from("thing"),
        resource_id: id.to_owned(),
        details: Object::of([("n", Value::from("é"))]),
    }
}

#[test]
fn the_key_is_made_with_the_first_row_and_never_again() {
    let home = Home::new();
    assert!(home.record("2026-11-27", "a").unwrap().key_made.is_some());
    assert!(home.record("2026-11-28", "b").unwrap().key_made.is_none());
    home.holds(2);
    fs::remove_file(home.key.path().unwrap()).unwrap();
    let error = home.record("2026-11-28", "c").unwrap_err();
    assert!(matches!(error, Error::Key(master::Error::Lost(_))), "{error}");
    assert!(!home.key.path().unwrap().exists());
}

#[test]
fn a_clock_that_was_set_back_does_not_break_the_chain() {
    let home = Home::new();
    home.record("2026-11-28", "a").unwrap();
    let recorded = home.record("2026-11-27", "b").unwrap();
    assert_eq!(recorded.path, home.path("2026-11-28.jsonl"));
    home.holds(2);
    archive(&home.project, &home.key, "2026-11-29").unwrap();
    let error = home.record("2026-11-28", "c").unwrap_err();
    assert!(matches!(error, Error::ClockBehind { .. }), "{error}");
    home.record("2026-11-29", "c").unwrap();
    home.holds(3);
}

#[test]
fn a_row_cut_at_any_byte_is_set_aside_or_ended_and_the_log_goes_on() {
    let home = Home::new();
    for id in ["a", "b"] {
        home.record("2026-11-27", id).unwrap();
    }
    let path = home.path("2026-11-27.jsonl");
    let whole = fs::read(&path).unwrap();
    let second = whole.iter().position(|&byte| byte == b'\n').unwrap() + 1;
    for cut in second - 1..whole.len() {
        for day in ["2026-11-27", "2026-11-28"] {
            fs::write(&path, &whole[..cut]).unwrap();
            drop(fs::remove_file(home.path("2026-11-28.jsonl")));
            drop(fs::remove_file(home.path(".torn-1")));
            let recorded = home.record(day, "c").unwrap();
            let torn = cut > second && cut + 1 < whole.len();
            assert_eq!(recorded.set_aside.is_some(), torn, "{cut}");
            if let Some(aside) = recorded.set_aside {
                assert_eq!(fs::read(aside).unwrap(), whole[second..cut]);
            }
            home.holds(if cut + 1 < whole.len() { 2 } else { 3 });
        }
    }
}

#[test]
fn a_log_that_does_not_hold_is_not_extended() {
    let home = Home::new();
    for id in ["a", "b"] {
        home.record("2026-11-27", id).unwrap();
    }
    let path = home.path("2026-11-27.jsonl");
    let whole = fs::read_to_string(&path).unwrap();
    let changed = whole.replacen("\"tester\"", "\"tEster\"", 1);
    fs::write(&path, &changed).unwrap();
    assert!(matches!(home.record("2026-11-27", "c"), Err(Error::Damaged { .. })));
    assert!(matches!(archive(&home.project, &home.key, "2027-01-01"), Err(Error::Damaged { .. })));
    assert_eq!(fs::read_to_string(&path).unwrap(), changed);
    fs::write(&path, &whole).unwrap();
    fs::write(home.path("notes.jsonl"), "").unwrap();
    assert!(matches!(home.record("2026-11-27", "c"), Err(Error::BadFile(_))));
}

#[test]
fn what_is_there_is_not_recorded_twice() {
    let home = Home::new();
    let once = |id: &str| {
        let draft = draft("2026-11-27", id);
        record_unless(&home.project, &home.key, &draft, |event| event.resource_id == *id).unwrap()
    };
    assert!(once("a").is_some() && once("b").is_some());
    assert!(once("a").is_none());
    home.holds(2);
    let key = home.key.read().unwrap();
    assert!(has(&home.project, key.as_ref(), |event| event.resource_id == *"a").unwrap());
    assert!(!has(&home.project, None, |event| event.resource_id == *"z").unwrap());
}

#[test]
fn older_days_are_packed_to_the_same_bytes_each_time_and_an_interrupted_packing_ends() {
    let home = Home::new();
    for day in ["2026-11-25", "2026-11-26", "2026-11-26", "2026-11-27"] {
        home.record(day, day).unwrap();
    }
    let plain = fs::read(home.path("2026-11-26.jsonl")).unwrap();
    let done = archive(&home.project, &home.key, "2026-11-27").unwrap();
    let (first, second) =
        (home.path("archive/2026-11-25.jsonl.gz"), home.path("archive/2026-11-26.jsonl.gz"));
    assert_eq!(done.packed, [first, second.clone()]);
    assert!(!home.path("2026-11-26.jsonl").exists());
    home.holds(4);
    let packed = fs::read(&second).unwrap();
    // Both files: what a crash between the two steps leaves.
    fs::write(home.path("2026-11-26.jsonl"), &plain).unwrap();
    assert_eq!(home.outcome().file_faults.len(), 1);
    home.record("2026-11-27", "x").unwrap();
    home.holds(5);
    // Two that differ are no crash's.
    fs::write(home.path("2026-11-26.jsonl"), b"x").unwrap();
    assert!(matches!(home.record("2026-11-27", "y"), Err(Error::BadFile(_))));
    fs::remove_file(&second).unwrap();
    fs::write(home.path("2026-11-26.jsonl"), &plain).unwrap();
    let after = fs::read(home.path("archive/2026-11-25.jsonl.gz")).unwrap();
    fs::remove_file(home.path("archive/2026-11-25.jsonl.gz")).unwrap();
    fs::write(home.path("2026-11-25.jsonl"), unpack(&after)).unwrap();
    archive(&home.project, &home.key, "2026-11-27").unwrap();
    assert_eq!(fs::read(&second).unwrap(), packed);
    let listed = fs::read_dir(home.folder.path().join("p/.sdd/audit/archive")).unwrap().count();
    assert_eq!(listed, 2);
}

fn unpack(packed: &[u8]) -> Vec<u8> {
    let mut gunzip = waybill_verifier::gzip::Gunzip::new(1 << 30);
    let mut bytes = Vec::new();
    gunzip.push(packed, |piece| bytes.extend_from_slice(piece)).unwrap();
    gunzip.finish().unwrap();
    bytes
}

#[test]
fn many_writers_make_one_chain() {
    let home = Home::new();
    std::thread::scope(|scope| {
        for writer in 0..6 {
            let home = &home;
            scope.spawn(move || {
                for row in 0..8 {
                    home.record("2026-11-27", &format!("{writer}-{row}")).unwrap();
                }
            });
        }
    });
    home.holds(48);
}
