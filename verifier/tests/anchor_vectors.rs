//! Every anchor vector gives what its `strict` says, read from its bundle without git.
#![allow(missing_docs, clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

use waybill_verifier::anchor::bundle::{self, Bundle};
use waybill_verifier::anchor::{
    Builder, Chunk, Completeness, Expect, Found, Layout, ObjectId, ObjectKind, Target, squash_commit, verify,
};
use waybill_verifier::chain::{LastLine, Walk};
use waybill_verifier::compare::{Comparison, Stamp, compare};
use waybill_verifier::hash::Digest;
use waybill_verifier::id::RunId;
use waybill_verifier::json::{self, Object, Value};
use waybill_verifier::ledger::{LedgerRows, Row};
use waybill_verifier::report::{Report, Status, Verdict};

struct Case {
    name: String,
    folder: PathBuf,
    expected: Object,
    bundle: Vec<u8>,
}

impl Case {
    fn load(folder: PathBuf) -> Case {
        let expected = json::parse(&fs::read(folder.join("expected.json")).unwrap()).unwrap();
        Case {
            name: folder.file_name().unwrap().to_str().unwrap().to_owned(),
            expected: expected.as_object().unwrap().clone(),
            bundle: fs::read(folder.join("anchor.bundle")).unwrap(),
            folder,
        }
    }

    fn named(name: &str) -> Case {
        Case::load(root().join(name))
    }

    fn strict(&self) -> &Object {
        self.expected.get("strict").unwrap().as_object().unwrap()
    }

    fn text(&self, key: &str) -> &str {
        self.expected.get(key).and_then(Value::as_str).unwrap()
    }

    fn commit(&self) -> ObjectId {
        ObjectId::from_hex(self.text("commit").as_bytes()).unwrap()
    }

    fn run(&self) -> RunId {
        RunId::new(self.text("run_id")).unwrap()
    }

    fn verify(&self, expect: Expect, visit: impl FnMut(&Row<'_>)) -> Report {
        let mut bundle = Bundle::open(&self.bundle).unwrap();
        assert_eq!(bundle.refs, [(self.text("ref").to_owned(), self.commit())], "{}", self.name);
        let mut visit = visit;
        let run = self.run();
        bundle.verify((self.text("ref"), &run, self.commit()), expect, |row, _| visit(row)).unwrap()
    }

    fn stamps(&self) -> Vec<Stamp> {
        let mut stamps = Vec::new();
        self.verify(Expect::default(), |row| stamps.push(Stamp::of(row)));
        stamps
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/vectors/anchor")
}

fn cases() -> Vec<Case> {
    let mut folders: Vec<_> = fs::read_dir(root()).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    assert!(folders.len() > 20);
    folders.into_iter().map(Case::load).collect()
}

#[test]
fn every_anchor_vector_gives_what_strict_says() {
    for case in cases() {
        let name = &case.name;
        let strict = case.strict();
        let report = case.verify(Expect::default(), |_| {});
        let number = |key| strict.get(key).and_then(Value::as_u64);
        assert_eq!(
            Some(u64::from(report.verdict.exit_code())),
            number("exit"),
            "{name}: {:?}",
            report.checks
        );
        let failed = report.checks.iter().find(|check| check.status == Status::Fail);
        let fault = strict.get("fault").and_then(Value::as_str);
        assert_eq!(failed.and_then(|check| check.fault), fault, "{name}: {:?}", report.checks);
        if let Some(entry) = number("entry") {
            let place = failed.and_then(|check| check.at.as_ref()?.place);
            assert_eq!(place.map(|place| place.entry), Some(entry), "{name}: entry");
        }
        for (key, fact) in [
            ("entry_count", "entries"),
            ("chunk_count", "chunk_count"),
            ("head_hash", "head_hash"),
            ("tree_sha", "tree"),
        ] {
            if let Some(expected) = strict.get(key) {
                assert_eq!(report.facts.get(fact), Some(expected), "{name}: {fact}");
            }
        }
        if let Some(history) = case.expected.get("history").and_then(Value::as_str) {
            assert_eq!(report.facts.get("history_length").unwrap().as_u64(), history.parse().ok(), "{name}");
        }
        if failed.is_none() {
            let warned = report.checks.iter().any(|check| check.status == Status::Warn);
            assert_eq!(warned, strict.get("warn").is_some(), "{name}: {:?}", report.checks);
            assert_eq!(report.verdict, Verdict::Consistent, "{name}: {:?}", report.checks);
        }
        if let Some(pair) = strict.get("pair").and_then(Value::as_object) {
            let other = Case::named(pair.get("with").unwrap().as_str().unwrap());
            let compared = compare(&case.stamps(), &other.stamps());
            assert!(matches!(compared, Comparison::UnhashedFieldsDiffer { .. }), "{name}: {compared:?}");
        }
        let whole = bundle::report("anchor.bundle", &case.bundle, Expect::default());
        assert_eq!(whole.verdict, report.verdict, "{name}");
        assert_eq!(whole.parts, [report], "{name}");
    }
}

fn layout(run: &RunId, ledger: &[u8]) -> (Vec<Chunk>, Layout) {
    let mut builder = Builder::new(run);
    let mut chunks = Vec::new();
    let rows = LedgerRows::new(Some(run), |row: &Row<'_>, _| chunks.extend(builder.push(row).unwrap()));
    let mut walk = Walk::new(rows);
    walk.push(ledger);
    assert_eq!(walk.finish(LastLine::Settled).fault_count, 0);
    let (last, layout) = builder.finish().unwrap();
    chunks.extend(last);
    (chunks, layout)
}

#[test]
fn the_same_rows_give_the_references_tree() {
    let mut built = 0;
    for case in cases() {
        let Ok(ledger) = fs::read(case.folder.join("000000.jsonl")) else { continue };
        let (chunks, layout) = layout(&case.run(), &ledger);
        let tree = case.strict().get("tree_sha").unwrap().as_str().unwrap();
        assert_eq!(layout.tree_id.to_hex(), tree, "{}", case.name);
        let meta = case.text("ledger_meta");
        assert_eq!(layout.meta.strip_suffix(b"\n"), Some(meta.as_bytes()), "{}", case.name);
        let listed = case.expected.get("tree").unwrap();
        let Value::Array(listed) = listed else { panic!("{}", case.name) };
        let ids = [layout.meta_id].into_iter().chain(chunks.iter().map(|chunk| chunk.id));
        for (listed, id) in listed.iter().zip(ids) {
            assert!(listed.as_str().unwrap().contains(&id.to_hex()), "{}", case.name);
        }
        // The commit too, byte for byte, given its parent and time.
        let mut bundle = Bundle::open(&case.bundle).unwrap();
        let Found::Object(_, commit) = bundle.object(&case.commit(), 1 << 20).unwrap() else { panic!() };
        let text = String::from_utf8(commit.clone()).unwrap();
        let seconds = text.split("> ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
        let parent =
            text.split("\nparent ").nth(1).map(|rest| ObjectId::from_hex(&rest.as_bytes()[..40]).unwrap());
        let ours = if case.name == "squashed" {
            squash_commit(&case.run(), &layout.tree_id, seconds)
        } else {
            layout.commit(parent.as_ref(), seconds)
        };
        assert_eq!(String::from_utf8(ours).unwrap(), text, "{}", case.name);
        built += 1;
    }
    assert_eq!(built, 3);
}

#[test]
fn an_expectation_from_outside_makes_it_verified_or_fails() {
    let case = Case::named("many-chunks-grown");
    let head = Digest::from_hex(case.strict().get("head_hash").unwrap().as_str().unwrap().as_bytes());
    let earlier = case.stamps()[999].entry_hash;
    let other = Some(Digest::of(b"other"));
    let none = Expect::default();
    let check = |expect: Expect, verdict: Verdict, id: &str| {
        let report = case.verify(expect, |_| {});
        assert_eq!(report.verdict, verdict, "{:?}", report.checks);
        assert_eq!(report.checks.last().unwrap().id, id);
    };
    check(Expect { head, ..none }, Verdict::Verified, "anchor.expected_head");
    check(Expect { head: Some(earlier), ..none }, Verdict::Failed, "anchor.expected_head");
    check(Expect { head: other, ..none }, Verdict::Failed, "anchor.expected_head");
    check(Expect { contains: Some(earlier), ..none }, Verdict::Verified, "anchor.contains");
    check(Expect { contains: other, ..none }, Verdict::Failed, "anchor.contains");
    check(Expect { commit: Some(case.commit()), ..none }, Verdict::Verified, "anchor.expected_commit");
    let wrong = Some(ObjectId::from_bytes([7; 20]));
    check(Expect { commit: wrong, ..none }, Verdict::Failed, "anchor.expected_commit");
}

#[test]
fn a_bundle_that_is_damaged_or_asks_for_more_is_refused() {
    let good = Case::named("one-chunk").bundle;
    for cut in (0..good.len()).step_by(7) {
        assert!(Bundle::open(&good[..cut]).is_err(), "{cut}");
    }
    let with = |from: &str, to: &str| {
        let at = good.windows(from.len()).position(|window| window == from.as_bytes()).unwrap();
        [&good[..at], to.as_bytes(), &good[at + from.len()..]].concat()
    };
    let line = "15782b7cb7d75d01bc9d47920e3b13a1e68265b4 refs/bernstein/work-ledger/goal-42\n";
    let check = |bytes: &[u8], expect: &str| {
        let error = Bundle::open(bytes).unwrap_err().to_string();
        assert!(error.contains(expect), "{error}");
    };
    check(&with("# v2", "# v4"), "does not start as");
    check(&with("# v2 git bundle\n", "# v2 git bundle\n@object-format=sha1\n"), "not known here");
    check(&with("# v2 git bundle\n", "# v3 git bundle\n@object-format=sha256\n"), "not known here");
    check(&with(line, &[line, line].concat()), "there twice");
    check(&with(line, &line.to_uppercase()), "no ref");
    check(&with("\n\nPACK", "\nPACK"), "no ref");
    assert!(Bundle::open(&with("# v2 git bundle\n", "# v3 git bundle\n@object-format=sha1\n")).is_ok());
    let prerequisite = format!("-{} x\n{line}", "7".repeat(40));
    let bytes = with(line, &prerequisite);
    assert!(matches!(Bundle::open(&bytes).unwrap().completeness, Completeness::Partial));
    let no_run = with("goal-42", "goal..2");
    assert_eq!(bundle::report("x", &no_run, Expect::default()).verdict, Verdict::Failed);
    let no_anchor = with("refs/bernstein", "refs/xernstein");
    assert_eq!(bundle::report("x", &no_anchor, Expect::default()).verdict, Verdict::Absent);
    assert_eq!(bundle::report("x", &good[..99], Expect::default()).verdict, Verdict::Failed);
}

#[test]
fn a_commit_alone_is_verified_without_a_ref() {
    let case = Case::named("one-chunk");
    let mut bundle = Bundle::open(&case.bundle).unwrap();
    let target = Target::new("15782b7", case.commit(), None);
    let report = verify(&target, |id, limit| bundle.object(id, limit), |_, _| {}).unwrap();
    assert_eq!(report.verdict, Verdict::Consistent);
    assert_eq!(report.facts.get("run_id").unwrap().as_str(), Some("goal-42"));
    // A ref that names something else than a commit.
    let tree = ObjectId::from_hex(b"6382bc24942969a8e4fc699e89365f8d52be83ce").unwrap();
    let target = Target::new("tree", tree, None);
    let report = verify(&target, |id, limit| bundle.object(id, limit), |_, _| {}).unwrap();
    assert_eq!(report.verdict, Verdict::Failed);
    assert_eq!(report.checks[0].fault, Some("object_mismatch"));
    assert_eq!(ObjectKind::Tree.name(), "tree");
}
