//! Anchors that are wrong in ways that the vectors lack: each names its fault, and where.
#![allow(missing_docs, clippy::unwrap_used)]

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;

use waybill_verifier::anchor::{
    Builder, Completeness, Found, Layout, ObjectId, ObjectKind, Target, chunk_name, squash_commit, verify,
};
use waybill_verifier::chain::{LastLine, Place, Walk};
use waybill_verifier::hash::Digest;
use waybill_verifier::id::{Kind, RunId, TaskId};
use waybill_verifier::json::{Object, Value};
use waybill_verifier::ledger::{LedgerRows, Row, RowText};
use waybill_verifier::report::{Report, Status, Verdict};

/// A repository in memory; what it is asked for is counted.
#[derive(Default)]
struct Repo {
    objects: BTreeMap<ObjectId, (ObjectKind, Vec<u8>)>,
    asked: RefCell<BTreeMap<ObjectId, u64>>,
}

impl Repo {
    fn put(&mut self, kind: ObjectKind, bytes: Vec<u8>) -> ObjectId {
        let id = ObjectId::of(kind, &bytes).unwrap();
        self.objects.insert(id, (kind, bytes));
        id
    }

    fn blob(&mut self, bytes: impl Into<Vec<u8>>) -> ObjectId {
        self.put(ObjectKind::Blob, bytes.into())
    }

    /// Writes the tree of the rows.
    fn layout(&mut self, run: &str, rows: &[Vec<u8>]) -> Layout {
        let run = RunId::new(run).unwrap();
        let mut builder = Builder::new(&run);
        let mut chunks = Vec::new();
        let visit = |row: &Row<'_>, _| chunks.extend(builder.push(row).unwrap());
        let mut walk = Walk::new(LedgerRows::new(None, visit));
        rows.iter().for_each(|row| walk.push(row));
        assert_eq!(walk.finish(LastLine::Settled).fault_count, 0);
        let (last, layout) = builder.finish().unwrap();
        for chunk in chunks.into_iter().chain(last) {
            assert_eq!(self.blob(chunk.bytes), chunk.id);
        }
        self.blob(layout.meta.clone());
        self.put(ObjectKind::Tree, layout.tree.clone());
        layout
    }

    fn anchor(&mut self, rows: &[Vec<u8>], parent: Option<ObjectId>) -> ObjectId {
        let layout = self.layout("goal-1", rows);
        self.put(ObjectKind::Commit, layout.commit(parent.as_ref(), 1))
    }

    /// An anchor of any files: what they are is the test's own affair.
    fn anchor_of(
        &mut self,
        files: &[(String, ObjectId)],
        message: (u64, Digest),
        parents: &[ObjectId],
    ) -> ObjectId {
        let entry = |(name, id): &(String, ObjectId)| {
            [b"100644 ", name.as_bytes(), &[0], &id.as_bytes()[..]].concat()
        };
        let tree = self.put(ObjectKind::Tree, files.iter().flat_map(entry).collect());
        let parents: String = parents.iter().map(|parent| format!("parent {parent}\n")).collect();
        let ident = "bernstein-work-ledger <work-ledger@bernstein.invalid> 1 +0000";
        let (entries, head) = message;
        let text = format!(
            "tree {tree}\n{parents}author {ident}\ncommitter {ident}\n\n\
             bernstein work ledger anchor\n\nrun_id=goal-1\nhead={head}\nentries={entries}\n"
        );
        self.put(ObjectKind::Commit, text.into_bytes())
    }

    fn verify(&self, target: &Target<'_>) -> Report {
        let source = |id: &ObjectId, limit: usize| {
            *self.asked.borrow_mut().entry(*id).or_default() += 1;
            Ok::<_, Infallible>(match self.objects.get(id) {
                None => Found::Missing,
                Some((_, bytes)) if bytes.len() > limit => Found::TooLarge,
                Some((kind, bytes)) => Found::Object(*kind, bytes.clone()),
            })
        };
        verify(target, source, |_, _| {}).unwrap()
    }

    #[track_caller]
    fn check(&self, commit: ObjectId, id: &str, status: Status, fault: Option<&str>) -> Report {
        self.check_with(commit, Completeness::Whole, id, status, fault)
    }

    #[track_caller]
    fn check_with(
        &self,
        commit: ObjectId,
        completeness: Completeness<'_>,
        id: &str,
        status: Status,
        fault: Option<&str>,
    ) -> Report {
        let run = RunId::new("goal-1").unwrap();
        let report = self.verify(&Target { completeness, ..Target::new("x", commit, Some(&run)) });
        let failed = report.checks.iter().find(|check| check.status == Status::Fail);
        let first = failed.or_else(|| report.checks.iter().find(|check| check.status == status)).unwrap();
        assert_eq!((first.id, first.status, first.fault), (id, status, fault), "{:?}", report.checks);
        report
    }
}

/// The rows of a run that opens and then starts a task again and again.
fn rows(count: u64) -> Vec<Vec<u8>> {
    rows_of("goal-1", count, &[])
}

/// The same, with another time at the given entries.
fn rows_of(run: &str, count: u64, late: &[u64]) -> Vec<Vec<u8>> {
    let mut prev = Digest::ZERO;
    (0..count)
        .map(|seq| {
            let (kind, task, payload) = match seq {
                0 => ("run.open", "", Object::of([("run_id", Value::from(run))])),
                _ => ("task.started", "t", Object::of([("n", Value::from(seq))])),
            };
            let (kind, task) = (Kind::new(kind).unwrap(), TaskId::new(task).unwrap());
            let ts = if late.contains(&seq) { 2.5 } else { 1.5 };
            let (text, hash) = RowText::next(&kind, &task, &payload, (seq, &prev), 0, ts);
            prev = hash;
            [text.as_bytes(), b"\n"].concat()
        })
        .collect()
}

fn at(report: &Report) -> (String, Option<(u64, u64)>) {
    let at =
        report.checks.iter().find_map(|check| (check.status == Status::Fail).then_some(check.at.as_ref()?));
    let at = at.unwrap();
    (at.file.clone(), at.place.map(|place| (place.entry, place.line)))
}

#[test]
fn a_grown_history_holds() {
    let (mut repo, rows) = (Repo::default(), rows(2500));
    let mut parent = None;
    for count in [1, 2, 2, 999, 1000, 1001, 2000, 2500] {
        parent = Some(repo.anchor(&rows[..count], parent));
    }
    let report = repo.check(parent.unwrap(), "anchor.objects", Status::Pass, None);
    assert_eq!(report.verdict, Verdict::Consistent);
    assert_eq!(report.facts.get("history_length").unwrap().as_u64(), Some(8));
    // After a gc it goes on from the squash.
    let layout = repo.layout("goal-1", &rows[..1001]);
    let squash = squash_commit(&layout.run, &layout.tree_id, 1);
    let squash = repo.put(ObjectKind::Commit, squash);
    let tip = repo.anchor(&rows, Some(squash));
    let report = repo.check(tip, "anchor.objects", Status::Pass, None);
    assert_eq!(report.facts.get("squashed"), Some(&Value::Bool(true)));
    assert_eq!(report.facts.get("history_length").unwrap().as_u64(), Some(2));
}

#[test]
fn missing_and_damaged_objects_are_named() {
    let (mut repo, rows) = (Repo::default(), rows(1200));
    let tip = repo.anchor(&rows, None);
    let all: Vec<_> = repo.objects.keys().copied().collect();
    for id in all {
        let (kind, bytes) = repo.objects.remove(&id).unwrap();
        let objects = "anchor.objects";
        repo.check(tip, objects, Status::Fail, Some("object_missing"));
        if id != tip {
            repo.check_with(tip, Completeness::Cut, objects, Status::Fail, Some("object_missing"));
        }
        let report = repo.check_with(tip, Completeness::Partial, objects, Status::NotChecked, None);
        assert_eq!(report.verdict, Verdict::Incomplete);
        let mut flipped = bytes.clone();
        flipped[3] ^= 1;
        repo.objects.insert(id, (kind, flipped));
        repo.check(tip, objects, Status::Fail, Some("object_mismatch"));
        repo.objects.insert(id, (ObjectKind::Tag, bytes.clone()));
        repo.check(tip, objects, Status::Fail, Some("object_mismatch"));
        repo.objects.insert(id, (kind, bytes));
    }
    // A replaced blob: what `git replace` would give out under the old id.
    repo.check(tip, "anchor.objects", Status::Pass, None);
    let big = repo.blob(vec![b' '; 65 << 10]);
    let chunk = repo.blob(rows[..2].concat());
    let tip = repo.anchor_of(&[("LEDGER.json".into(), big), (chunk_name(0), chunk)], (2, Digest::ZERO), &[]);
    repo.check(tip, "anchor.objects", Status::Fail, Some("object_limit"));
    let no_commit = repo.put(ObjectKind::Commit, b"tree x\n".to_vec());
    repo.check(no_commit, "anchor.commit", Status::Fail, Some("commit_mismatch"));
}

#[test]
fn an_earlier_anchors_fault_is_reported_at_its_commit() {
    let (mut repo, rows) = (Repo::default(), rows(30));
    let first = repo.anchor(&rows[..5], None);
    // The second lies in its message only.
    let layout = repo.layout("goal-1", &rows[..10]);
    let text = String::from_utf8(layout.commit(Some(&first), 1)).unwrap();
    let lied = repo.put(ObjectKind::Commit, text.replace("entries=10", "entries=11").into_bytes());
    let third = repo.anchor(&rows[..20], Some(lied));
    let tip = repo.anchor(&rows, Some(third));
    let report = repo.check(tip, "anchor.history", Status::Fail, Some("commit_mismatch"));
    assert_eq!(at(&report), (lied.to_hex(), None));
    // A fault in its rows is reported with its file, and not as a rewrite.
    let mut edited = rows[..10].to_vec();
    edited[7] = String::from_utf8(edited[7].clone()).unwrap().replace("{\"n\":7}", "{\"n\":9}").into_bytes();
    let chunk = repo.blob(edited.concat());
    let files = [("LEDGER.json".into(), layout.meta_id), (chunk_name(0), chunk)];
    let edited = repo.anchor_of(&files, (10, layout.head), &[first]);
    let tip = repo.anchor(&rows, Some(edited));
    let report = repo.check(tip, "anchor.history", Status::Fail, Some("entry_hash_mismatch"));
    assert_eq!(at(&report), (format!("{edited}:chunk-000000.jsonl"), Some((7, 8))));
    // The same tree in the tip and before it: the tip's fault comes first.
    let tip = repo.anchor_of(&files, (10, layout.head), &[edited]);
    let report = repo.check(tip, "anchor.chain", Status::Fail, Some("entry_hash_mismatch"));
    assert_eq!(at(&report), ("chunk-000000.jsonl".into(), Some((7, 8))));
    assert!(report.checks.iter().any(|check| check.id == "anchor.history" && check.status == Status::Fail));
}

#[test]
fn a_rewritten_history_names_the_first_entry_that_differs() {
    let (mut repo, long) = (Repo::default(), rows(2500));
    let mut check = |before: &[Vec<u8>], after: &[Vec<u8>], expect: (usize, u64, u64)| {
        let parent = repo.anchor(before, None);
        let tip = repo.anchor(after, Some(parent));
        let report = repo.check(tip, "anchor.history", Status::Fail, Some("history_rewritten"));
        let (chunk, entry, line) = expect;
        assert_eq!(at(&report), (chunk_name(chunk), Some((entry, line))));
    };
    check(&rows_of("goal-1", 1500, &[1203]), &long, (1, 1203, 204));
    check(&rows_of("goal-1", 1500, &[3, 1203]), &long, (0, 3, 4));
    check(&rows_of("goal-1", 2000, &[1999]), &long[..2000], (1, 1999, 1000));
    check(&rows_of("goal-1", 1500, &[1203]), &long[..1203], (1, 1203, 204));
    check(&long[..1001], &long[..1000], (1, 1000, 1));
    check(&long[..2500], &long[..900], (0, 900, 901));
    check(&long[..11], &long[..10], (0, 10, 11));
}

#[test]
fn the_rewrite_may_be_further_back() {
    let (mut repo, rows) = (Repo::default(), rows(30));
    let first = repo.anchor(&rows_of("goal-1", 5, &[4]), None);
    let second = repo.anchor(&rows[..10], Some(first));
    let tip = repo.anchor(&rows, Some(second));
    let report = repo.check(tip, "anchor.history", Status::Fail, Some("history_rewritten"));
    assert_eq!(at(&report), (format!("{second}:chunk-000000.jsonl"), Some((4, 5))));
}

#[test]
fn an_earlier_anchor_of_another_run_is_its_own_fault() {
    let (mut repo, rows) = (Repo::default(), rows(30));
    let layout = repo.layout("goal-2", &rows_of("goal-2", 3, &[]));
    let other = repo.put(ObjectKind::Commit, layout.commit(None, 1));
    let tip = repo.anchor(&rows, Some(other));
    let report = repo.check(tip, "anchor.history", Status::Fail, Some("run_id_mismatch"));
    assert_eq!(at(&report), (format!("{other}:LEDGER.json"), None));
    // Without a ref, too: the tip says which run it is.
    let report = repo.verify(&Target::new("x", tip, None));
    assert_eq!(at(&report), (format!("{other}:LEDGER.json"), None));
}

#[test]
fn where_the_history_is_cut_off_it_is_not_checked() {
    let (mut repo, rows) = (Repo::default(), rows(30));
    let first = repo.anchor(&rows[..5], None);
    let second = repo.anchor(&rows[..10], Some(first));
    let tip = repo.anchor(&rows, Some(second));
    repo.objects.remove(&first);
    let (history, missing) = ("anchor.history", Some("object_missing"));
    repo.check(tip, history, Status::Fail, missing);
    for completeness in
        [Completeness::Cut, Completeness::Partial, Completeness::Shallow(&BTreeSet::from([second]))]
    {
        let report = repo.check_with(tip, completeness, history, Status::NotChecked, None);
        assert_eq!(report.verdict, Verdict::Incomplete);
        assert_eq!(report.facts.get("history_length").unwrap().as_u64(), Some(2));
    }
    // Shallow elsewhere is no excuse.
    repo.check_with(tip, Completeness::Shallow(&BTreeSet::from([tip])), history, Status::Fail, missing);
    let run = RunId::new("goal-1").unwrap();
    let report = repo.verify(&Target { history_limit: 2, ..Target::new("x", tip, Some(&run)) });
    assert_eq!(report.verdict, Verdict::Incomplete);
}

#[test]
fn an_anchor_without_entries_or_with_a_chunk_twice_fails() {
    let (mut repo, rows) = (Repo::default(), rows(1000));
    let layout = repo.layout("goal-1", &rows);
    let zero = String::from_utf8(layout.meta.clone()).unwrap();
    let zero = zero.replace("\"chunk_count\":1,\"entry_count\":1000", "\"chunk_count\":0,\"entry_count\":0");
    let zero = repo.blob(zero.replace(&layout.head.to_hex(), &Digest::ZERO.to_hex()));
    let meta = ("LEDGER.json".to_owned(), zero);
    let tip = repo.anchor_of(std::slice::from_ref(&meta), (0, Digest::ZERO), &[]);
    repo.check(tip, "anchor.meta", Status::Fail, Some("meta_mismatch"));
    let empty = repo.blob("");
    let tip = repo.anchor_of(&[meta.clone(), (chunk_name(0), empty)], (0, Digest::ZERO), &[]);
    repo.check(tip, "anchor.chunks", Status::Fail, Some("chunk_size"));
    // Ten thousand names of one blob cost two reads of it.
    let chunk = repo.blob(rows.concat());
    let mut files = vec![("LEDGER.json".to_owned(), layout.meta_id)];
    files.extend((0..10_000).map(|index| (chunk_name(index), chunk)));
    let tip = repo.anchor_of(&files, (1000, layout.head), &[]);
    let report = repo.check(tip, "anchor.chain", Status::Fail, Some("seq_mismatch"));
    assert_eq!(at(&report), (chunk_name(1), Some((1000, 1))));
    assert_eq!(repo.asked.borrow()[&chunk], 2);
}

#[test]
fn of_several_faults_the_first_in_order_is_the_headline() {
    let (mut repo, rows) = (Repo::default(), rows(3));
    let layout = repo.layout("goal-1", &rows);
    let good = String::from_utf8(layout.meta.clone()).unwrap();
    let other_run = rows_of("goal-2", 3, &[]).concat();
    let broken_chain = [rows[0].clone(), rows[2].clone()].concat();
    let spaced = [&rows[0][..], b" ", &rows[1]].concat();
    let mut check = |meta: &str, chunk: &[u8], extra: bool, id: &str, fault: &str| {
        let (meta, chunk) = (repo.blob(meta), repo.blob(chunk));
        let mut files = vec![("LEDGER.json".to_owned(), meta), (chunk_name(0), chunk)];
        files.extend(extra.then(|| ("x".to_owned(), chunk)));
        let tip = repo.anchor_of(&files, (9, Digest::ZERO), &[]);
        repo.check(tip, id, Status::Fail, Some(fault));
    };
    let unknown = good.replace("\"run_id\"", "\"a\":1,\"run_id\"").replace("\"a\":1,", "");
    assert_eq!(unknown, good);
    let unknown = good.replace("}", ",\"z\":1}");
    let misnamed = unknown.replace("goal-1", "goal-2");
    check(&misnamed, &spaced, true, "anchor.tree", "unexpected_tree_entry");
    check(&misnamed, &spaced, false, "anchor.form", "not_canonical");
    check(&misnamed, &other_run, false, "anchor.form", "unknown_field");
    check(&good.replace("goal-1", "goal-2"), &broken_chain, false, "anchor.run", "run_id_mismatch");
    check(&good, &other_run, false, "anchor.run", "run_id_mismatch");
    check(&good, &broken_chain, false, "anchor.chain", "seq_mismatch");
    check(&good, &rows[..2].concat(), false, "anchor.meta", "meta_mismatch");
    check(&good, &rows.concat(), false, "anchor.commit", "commit_mismatch");
}

#[test]
fn a_chain_that_names_no_run_warns() {
    let mut repo = Repo::default();
    let (kind, task) = (Kind::new("task.started").unwrap(), TaskId::new("t").unwrap());
    let (text, _) = RowText::next(&kind, &task, &Object::default(), (0, &Digest::ZERO), 0, 0.5);
    let tip = repo.anchor(&[[text.as_bytes(), b"\n"].concat()], None);
    let report = repo.check(tip, "anchor.run", Status::Warn, None);
    assert_eq!(report.verdict, Verdict::Consistent);
}

/// Anchors `rows` after every `step` of them.
fn grown(repo: &mut Repo, rows: &[Vec<u8>], step: u64) -> ObjectId {
    let mut builder = Builder::new(&RunId::new("goal-1").unwrap());
    let mut parent = None;
    let mut walk = Walk::new(LedgerRows::new(None, |row: &Row<'_>, place: Place| {
        if let Some(chunk) = builder.push(row).unwrap() {
            repo.blob(chunk.bytes);
        }
        if (place.entry + 1).is_multiple_of(step) {
            let (last, layout) = builder.clone().finish().unwrap();
            last.map(|chunk| repo.blob(chunk.bytes));
            let commit = layout.commit(parent.as_ref(), 1);
            repo.blob(layout.meta);
            repo.put(ObjectKind::Tree, layout.tree);
            parent = Some(repo.put(ObjectKind::Commit, commit));
        }
    }));
    rows.iter().for_each(|row| walk.push(row));
    drop(walk);
    parent.unwrap()
}

#[test]
fn a_long_history_of_many_chunks_costs_each_anchor_its_tree_and_last_chunk() {
    let mut repo = Repo::default();
    let tip = grown(&mut repo, &rows(20_000), 150);
    let report = repo.check(tip, "anchor.objects", Status::Pass, None);
    assert_eq!(report.facts.get("history_length").unwrap().as_u64(), Some(133));
    let asked: u64 = repo.asked.borrow().values().sum();
    // The commits, trees and metas, the 20 chunks of the tip, and at most two chunks a step.
    assert!(asked <= 3 * 133 + 20 + 2 * 133, "{asked}");
}

#[test]
fn a_history_that_alternates_between_lineages_ends_at_the_first_rewrite() {
    let (mut repo, ours) = (Repo::default(), rows(5000));
    let theirs = rows_of("goal-1", 5000, &[0]);
    let mut parent = None;
    for turn in 0..40 {
        parent = Some(repo.anchor(if turn % 2 == 0 { &ours } else { &theirs }, parent));
    }
    repo.check(parent.unwrap(), "anchor.history", Status::Fail, Some("history_rewritten"));
    let asked: u64 = repo.asked.borrow().values().sum();
    assert!(asked < 30, "{asked}");
}
