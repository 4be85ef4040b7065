//! The report on one anchor and the anchors before it.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use super::commit::Form;
use super::finding::Finding;
use super::history::{self, History};
use super::judge::{Anchored, check};
use super::object::{Found, ID_LEN, ObjectId, ObjectKind};
use super::read::{Body, CommitRead, Completeness, Known, Store, Unread};
use super::rows::RowsRead;
use super::tree;
use crate::chain::{FaultKind, Place};
use crate::hash::Digest;
use crate::id::RunId;
use crate::json::{Object, Value};
use crate::ledger::Row;
use crate::report::{Check, Report, Status, Verdict, Voucher, counted};
use crate::table::Table;

/// How many anchors of a history are looked at, if the caller does not say.
pub const HISTORY_LIMIT: u64 = 100_000;

/// What a caller knows of the anchor from elsewhere.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Expect {
    /// The commit: given by a person, or just read from a remote's ref.
    pub commit: Option<ObjectId>,
    /// The last entry's hash.
    pub head: Option<Digest>,
    /// Some entry's hash.
    pub contains: Option<Digest>,
}

/// An anchor to verify.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// What the report calls it: the ref, or the commit.
    pub name: &'a str,
    /// The commit.
    pub commit: ObjectId,
    /// The run that the ref names; `None` if no ref led to the commit.
    pub run: Option<&'a RunId>,
    /// What the store is known to lack.
    pub completeness: Completeness<'a>,
    /// What is known from elsewhere.
    pub expect: Expect,
    /// How many anchors are looked at; what is before them is not checked.
    pub history_limit: u64,
}

impl<'a> Target<'a> {
    /// The anchor at `commit` in a store that has all it names.
    #[must_use]
    pub fn new(name: &'a str, commit: ObjectId, run: Option<&'a RunId>) -> Target<'a> {
        let (completeness, expect) = (Completeness::Whole, Expect::default());
        Target { name, commit, run, completeness, expect, history_limit: HISTORY_LIMIT }
    }
}

/// Verifies an anchor and the anchors before it.
///
/// `source` gives the object of an id, or says that it is not there or has more than the given
/// number of bytes; it is asked for one object at a time, and need not check anything. `visit` is
/// called with each row of the anchor that holds, in order: what it makes of them counts only if
/// the report does not fail.
///
/// # Errors
///
/// The source's own: it could not be read.
pub fn verify<E>(
    target: &Target<'_>,
    mut source: impl FnMut(&ObjectId, usize) -> Result<Found, E>,
    mut visit: impl FnMut(&Row<'_>, Place),
) -> Result<Report, E> {
    let mut why = None;
    let mut source = |id: &ObjectId, limit| {
        source(id, limit).map_err(|error| {
            why = Some(error);
            Unread
        })
    };
    let mut store = Store { source: &mut source, completeness: target.completeness };
    let verified = verify_in(&mut store, target, &mut visit);
    verified.map_err(|Unread| why.expect("only the source's own errors end a reading"))
}

fn verify_in(
    store: &mut Store<'_>,
    target: &Target<'_>,
    visit: &mut dyn FnMut(&Row<'_>, Place),
) -> Result<Report, Unread> {
    let commit = match CommitRead::load(store, target.commit, None)? {
        Ok(commit) => commit,
        Err(finding) => return Ok(unread(target, &finding)),
    };
    let wanted = [target.expect.head, target.expect.contains];
    let known = Known { run: target.run, like: None, wanted };
    let body = Body::load(store, &commit.tree, known, visit)?;
    let anchored = Anchored { commit: Some(&commit), body: &body, run: target.run };
    let mut checks: Vec<_> = anchored.judge().into_iter().map(check).collect();
    let run = anchored.run_id();
    let mut facts = facts(target, &anchored);
    let rows = body.rows.clone().filter(|_| body.whole);
    let squashed = matches!(anchored.commit(), Ok(Form::Squash));

    let history = history::walk(store, commit, body, run.as_ref(), target.history_limit)?;
    facts.insert("history_length".into(), Value::from(history.length));
    facts.insert("squashed".into(), Value::from(squashed || matches!(history.end, Ok(Form::Squash))));
    checks.push(history_check(&history));
    let mut voucher = Voucher::None;
    for expected in expectations(target, rows.as_ref()) {
        if expected.status == Status::Pass {
            voucher = Voucher::Outside;
        }
        checks.push(expected);
    }
    Ok(report(target, checks, facts, rows.as_ref(), voucher))
}

/// The report on an anchor's tree that was checked out as files: `LEDGER.json` and the chunks, by
/// their names and bytes. `root` stands before the names in the report.
#[must_use]
pub fn report_tree(name: &str, root: &str, files: &[(&str, &[u8])], expect: Expect) -> Report {
    let mut objects = Table::new();
    let mut listed = Table::new();
    for (file, bytes) in files {
        // Bytes made to collide get an id that nothing has, and are named as missing.
        let id = ObjectId::of(ObjectKind::Blob, bytes).unwrap_or(ObjectId::from_bytes([0; ID_LEN]));
        objects.insert(&id.to_hex(), (ObjectKind::Blob, *bytes));
        listed.insert(file, id);
    }
    let tree = tree::of_files(&listed);
    let id = ObjectId::of(ObjectKind::Tree, &tree).unwrap_or(ObjectId::from_bytes([0; ID_LEN]));
    objects.insert(&id.to_hex(), (ObjectKind::Tree, &tree));
    let mut source = |id: &ObjectId, limit: usize| {
        Ok(match objects.get(&id.to_hex()) {
            None => Found::Missing,
            Some((_, bytes)) if bytes.len() > limit => Found::TooLarge,
            Some((kind, bytes)) => Found::Object(*kind, bytes.to_vec()),
        })
    };
    let mut store = Store { source: &mut source, completeness: Completeness::Whole };
    let target = Target { expect, ..Target::new(name, id, None) };
    let known = Known { run: None, like: None, wanted: [expect.head, expect.contains] };
    let body = Body::load(&mut store, &id, known, &mut |_, _| {});
    let body = body.expect("what is in memory can be read");
    let anchored = Anchored { commit: None, body: &body, run: None };
    let mut checks: Vec<_> = anchored.judge().into_iter().map(check).collect();
    let history = "no commit was given, so there is no history to look at";
    checks.push(Check::new("anchor.history", Status::NotChecked, history));
    for at in checks.iter_mut().filter_map(|check| check.at.as_mut()) {
        at.file.insert_str(0, root);
    }
    let mut facts = facts(&target, &anchored);
    facts.insert("commit".into(), Value::Null);
    facts.insert("tree".into(), Value::from(id.to_hex()));
    let rows = body.rows.clone().filter(|_| body.whole);
    let mut voucher = Voucher::None;
    let target = Target { expect: Expect { commit: None, ..expect }, ..target };
    for expected in expectations(&target, rows.as_ref()) {
        if expected.status == Status::Pass {
            voucher = Voucher::Outside;
        }
        checks.push(expected);
    }
    report(&target, checks, facts, rows.as_ref(), voucher)
}

fn report(
    target: &Target<'_>,
    checks: Vec<Check>,
    facts: Object,
    rows: Option<&RowsRead>,
    voucher: Voucher,
) -> Report {
    let verdict = Report::judge(&checks, voucher);
    Report {
        subject: ("anchor", target.name.to_string()),
        verdict,
        summary: summary(target, verdict, &checks, rows),
        checks,
        facts,
        does_not_establish: does_not_establish(verdict),
        parts: Vec::new(),
    }
}

/// The report on a commit that could not be read.
fn unread(target: &Target<'_>, finding: &Finding) -> Report {
    let broken = match finding.fault {
        Some(FaultKind::CommitMismatch) => "anchor.commit",
        _ => "anchor.objects",
    };
    let check = |id| match id == broken {
        true => finding.check(id),
        false => Check::new(id, Status::NotChecked, "the anchor's commit could not be read"),
    };
    let mut checks: Vec<_> = super::CHECKS.map(check).into();
    checks.extend(expectations(target, None));
    let facts = Object::of([("commit", Value::from(target.commit.to_hex()))]);
    report(target, checks, facts, None, Voucher::None)
}

fn history_check(history: &History) -> Check {
    const ID: &str = "anchor.history";
    let earlier = history.length - 1;
    let start = match &history.end {
        Err(finding) => return finding.check(ID),
        Ok(Form::Anchor) => "the first anchor",
        Ok(Form::Squash) => "a gc squash, which kept the rows and dropped the anchors before it",
    };
    let sentence = match earlier {
        0 => format!("there is no earlier anchor: this is {start}"),
        1 => format!("the 1 earlier anchor holds, is a prefix of this one, and is {start}"),
        _ => format!("{earlier} earlier anchors hold, each a prefix of the next, back to {start}"),
    };
    Check::new(ID, Status::Pass, sentence)
}

fn expectations(target: &Target<'_>, rows: Option<&RowsRead>) -> Vec<Check> {
    let mut checks = Vec::new();
    if let Some(expected) = target.expect.commit {
        let (status, sentence) = if expected == target.commit {
            (Status::Pass, format!("the commit is the expected {expected}"))
        } else {
            (Status::Fail, format!("the commit is {}, expected {expected}", target.commit))
        };
        checks.push(Check::new("anchor.expected_commit", status, sentence));
    }
    for (id, hash) in
        [("anchor.expected_head", target.expect.head), ("anchor.contains", target.expect.contains)]
    {
        let Some(hash) = hash else { continue };
        checks.push(match rows {
            Some(rows) => of_hash(id, hash, rows),
            None => Check::new(id, Status::NotChecked, "not all rows could be read"),
        });
    }
    checks
}

fn of_hash(id: &'static str, hash: Digest, rows: &RowsRead) -> Check {
    let head = rows.end.head;
    let found = rows.found.iter().find(|(found, ..)| *found == hash);
    let is_head_check = id == "anchor.expected_head";
    match found {
        _ if is_head_check && hash == head => {
            Check::new(id, Status::Pass, format!("the head is the expected {hash}"))
        }
        Some((_, file, place)) => {
            let status = if is_head_check { Status::Fail } else { Status::Pass };
            let more = rows.end.entries.saturating_sub(place.entry + 1);
            let sentence =
                format!("{hash} is entry {}, with {} behind it", place.entry, counted(more, "entry"));
            Check::new(id, status, sentence).at(file, Some(*place))
        }
        None => {
            let sentence = format!("{hash} is no entry of this anchor, whose head is {head}");
            Check::new(id, Status::Fail, sentence)
        }
    }
}

fn facts(target: &Target<'_>, anchored: &Anchored<'_>) -> Object {
    let body = anchored.body;
    let totals = anchored.totals();
    let head = totals.filter(|_| body.clean_rows()).map(|totals| totals.head.to_hex());
    let parent = anchored.commit.and_then(|commit| commit.parents.first());
    Object::of([
        ("commit", Value::from(target.commit.to_hex())),
        ("tree", Value::from(anchored.commit.map(|commit| commit.tree.to_hex()))),
        ("run_id", Value::from(anchored.run_id().as_ref().map(RunId::as_str))),
        ("entries", Value::from(totals.map(|totals| totals.entries))),
        ("chunk_count", Value::from(totals.map(|totals| totals.chunks))),
        ("head_hash", Value::from(head)),
        ("parent", Value::from(parent.map(ObjectId::to_hex))),
    ])
}

fn summary(target: &Target<'_>, verdict: Verdict, checks: &[Check], rows: Option<&RowsRead>) -> String {
    let first = |status| checks.iter().find(|check| check.status == status);
    let count = counted(rows.map_or(0, |rows| rows.end.entries), "entry");
    match (first(Status::Fail), first(Status::NotChecked)) {
        (Some(check), _) => check.sentence.clone(),
        (None, Some(check)) => format!("not all could be checked: {}", check.sentence),
        (None, None) if verdict == Verdict::Verified => {
            format!("{count} anchored at {} hold, and match what was expected", target.commit)
        }
        (None, None) => format!(
            "{count} anchored at {} hold; nothing outside the evidence vouches for the end",
            target.commit
        ),
    }
}

fn does_not_establish(verdict: Verdict) -> Vec<String> {
    let mut lines = vec![
        String::from(
            "when entries were written or anchored: no hash covers `ts`, and a commit's times are free",
        ),
        String::from("who made the anchor: its author is what its writer says, signatures are not looked at"),
        String::from("that what the entries say happened"),
    ];
    if verdict != Verdict::Verified {
        let latest = "that this is the latest anchor: give --expected-head or --expected-commit, or --remote";
        lines.insert(0, String::from(latest));
    }
    lines
}
