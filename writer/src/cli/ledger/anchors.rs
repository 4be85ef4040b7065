//! The commands between a ledger and its anchors.

use clap::ValueEnum;
use waybill_verifier::anchor::{Expect, ObjectId};
use waybill_verifier::chain::Place;
use waybill_verifier::compare::{Comparison, Stamp, compare};
use waybill_verifier::evidence::{Held, held_against};
use waybill_verifier::hash::Digest;
use waybill_verifier::id::RunId;
use waybill_verifier::json::{self, Object, Value};
use waybill_verifier::ledger::Row;
use waybill_verifier::report::{Check, Report, Status, Verdict, Voucher, counted};

use super::super::Global;
use super::super::exit::{Exit, Failure};
use super::super::out::{self, Form, cut, escape};
use super::super::recording::waiting;
use super::super::verify::{ExpectArgs, show};
use super::put_line;
use crate::anchoring::{self, Fork, Keep, Materialized, Other, Pushed, Side};
use crate::clock::Moment;
use crate::git::{Store, anchor_ref, network};
use crate::master::KeyFile;
use crate::project::Project;

pub(super) const ANCHOR_HELP: &str = "\
The ledger and the anchor that is there are verified first; what diverged is refused. Only blobs that
are new are written, and everything is synced before it says \"anchored\". The audit log gets an event.

Examples:
  waybill ledger anchor goal-42 && waybill ledger push goal-42

Exit codes: 0 anchored (or it was already), 1 no such run or no repository, 2 ledger or anchor does
not hold, or the anchor is ahead (fetch first), 3 diverged, 74 I/O";

pub(super) const FETCH_HELP: &str = "\
Your own git fetches into a temporary repository; what came is verified there and compared with what
is here, and only then imported.

Examples:
  waybill ledger fetch goal-42
  waybill ledger fetch goal-42 --remote ../other-clone

Exit codes: 0 fetched (or nothing new), 1 no such run there, 2 it does not hold, or what is here is
ahead (anchor instead), 3 diverged, 74 I/O";

pub(super) const PUSH_HELP: &str = "\
Only a remote's anchor that ours goes on from is replaced, and only if it is still there (a lease); a
lineage that 'diff --keep local' set aside goes to refs/waybill/aside there in the same push.

Example:
  waybill ledger push goal-42 --remote origin

Exit codes: 0 pushed (or there already), 1 no anchor here, 2 an anchor does not hold, or the remote is
ahead (fetch first), 3 diverged, 74 I/O";

pub(super) const DIFF_HELP: &str = "\
Nothing is ever merged or deleted: the lineage that is not kept goes to refs/waybill/aside/RUN/HEAD, or
to .aside-HEAD beside the ledger, and the audit log says so.

Examples:
  waybill ledger diff goal-42
  waybill ledger diff goal-42 --remote origin
  waybill ledger diff goal-42 --remote origin --keep local && waybill ledger push goal-42

Exit codes: 0 the same, one ahead, or settled; 1 no such run or anchor, 2 one of them does not hold,
3 diverged, 64 nothing to settle, 74 I/O";

pub(super) const GC_HELP: &str = "\
The tree stays the same; earlier anchors are let go, so that 'git gc' can drop them.

Example:
  waybill ledger gc goal-42 && git gc --prune=now

Exit codes: 0 done (or it was one commit already), 1 no anchor, 2 it does not hold, 74 I/O";

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(in super::super) enum Lineage {
    /// The ledger here
    Local,
    /// The anchored one
    Anchored,
}

/// The project, and the repository that it is in.
fn places(global: &Global) -> Result<(Project, Store), Failure> {
    let project = global.project()?;
    match Store::discover(project.root())? {
        Some(store) => Ok((project, store)),
        None => Err(anchoring::Error::NoRepository.into()),
    }
}

/// Shows a result: a line for people, an object for programs.
fn tell(global: &Global, text: &str, members: Vec<(&str, Value)>) -> Result<Exit, Failure> {
    match global.form() {
        Form::Quiet => {}
        Form::Json => put_line(&Value::from(Object::of(members)))?,
        Form::Text => super::super::put(format!("{text}\n").as_bytes())?,
    }
    Ok(Exit::Done)
}

pub(super) fn anchor(global: &Global, run: &RunId) -> Result<Exit, Failure> {
    let (project, store) = places(global)?;
    let made = anchoring::anchor(&project, &store, &KeyFile::of_environment(), run, Moment::now())?;
    if let Some(path) = made.mirrored.as_ref().and_then(|recorded| recorded.key_made.as_ref()) {
        out::say(&format!("made the HMAC key {} for the audit log: keep a copy of it", path.display()));
    }
    let verb = if made.moved { "anchored" } else { "anchored already" };
    let text = format!(
        "{verb}: run {run}, {}, head {}\ncommit {} (tree {}), {} written",
        counted(made.entries, "entry"),
        made.head,
        made.commit,
        made.tree,
        counted(made.blobs_written, "blob")
    );
    tell(
        global,
        &text,
        vec![
            ("run_id", Value::from(run.as_str())),
            ("ref", Value::from(anchor_ref(run))),
            ("commit", Value::from(made.commit.to_hex())),
            ("tree", Value::from(made.tree.to_hex())),
            ("head_hash", Value::from(made.head.to_hex())),
            ("entries", Value::from(made.entries)),
            ("chunks", Value::from(made.chunks)),
            ("blobs_written", Value::from(made.blobs_written)),
            ("moved", Value::from(made.moved)),
            ("mirrored", Value::from(made.mirrored.is_some())),
        ],
    )
}

pub(super) fn fetch(global: &Global, run: &RunId, remote: &str) -> Result<Exit, Failure> {
    let (project, store) = places(global)?;
    let fetched = anchoring::fetch(&project, &store, run, remote, waiting(run))?;
    let action = match fetched.materialized {
        Materialized::Unchanged => "unchanged",
        Materialized::Created => "created",
        Materialized::FastForwarded(_) => "fast-forwarded",
    };
    let state = &fetched.anchor.chain.state;
    let text = format!("{action}: run {run}, {}, head {}", counted(state.entries, "entry"), state.head());
    tell(
        global,
        &text,
        vec![
            ("run_id", Value::from(run.as_str())),
            ("action", Value::from(action)),
            ("entries", Value::from(state.entries)),
            ("head_hash", Value::from(state.head().to_hex())),
            ("commit", Value::from(fetched.anchor.commit.to_hex())),
        ],
    )
}

pub(super) fn push(global: &Global, run: &RunId, remote: &str) -> Result<Exit, Failure> {
    let (_, store) = places(global)?;
    let (commit, pushed) = anchoring::push(&store, run, remote)?;
    let action = match pushed {
        Pushed::UpToDate => "there already",
        Pushed::Moved => "pushed",
    };
    let text = format!("{action}: run {run}, commit {commit}, {}", anchor_ref(run));
    tell(
        global,
        &text,
        vec![
            ("run_id", Value::from(run.as_str())),
            ("action", Value::from(action)),
            ("commit", Value::from(commit.to_hex())),
            ("ref", Value::from(anchor_ref(run))),
        ],
    )
}

pub(super) fn gc(global: &Global, run: &RunId) -> Result<Exit, Failure> {
    let (_, store) = places(global)?;
    let squashed = anchoring::gc(&store, run, Moment::now())?;
    let text = match squashed.commits_before {
        0 | 1 => format!("run {run} has one anchor: nothing to let go"),
        count => format!("run {run}: {count} anchors are one now, commit {}", squashed.commit),
    };
    tell(
        global,
        &text,
        vec![
            ("run_id", Value::from(run.as_str())),
            ("commit", Value::from(squashed.commit.to_hex())),
            ("commits_before", Value::from(squashed.commits_before)),
        ],
    )
}

/// `ledger verify RUN --anchored`.
pub(super) fn verify(
    global: &Global,
    run: &RunId,
    expected_commit: Option<&str>,
    remote: Option<&str>,
    expect: &ExpectArgs,
) -> Result<Exit, Failure> {
    let (_, store) = places(global)?;
    let expected =
        match expected_commit {
            None => None,
            Some(text) => Some(ObjectId::from_hex(text.as_bytes()).ok_or_else(|| {
                Failure::usage("--expected-commit: a commit's id has 40 lowercase hex digits")
            })?),
        };
    let Some(commit) = store.reference(&anchor_ref(run))? else {
        return Err(anchoring::Error::NoAnchor { run: run.clone(), remote: None }.into());
    };
    let known = expect.expect();
    let expect_anchor = Expect { commit: expected, head: known.head, contains: known.contains };
    let mut stamps = Vec::new();
    let visit = |row: &Row<'_>, _: Place| stamps.push(Stamp::of(row));
    let mut report = anchoring::report_anchor(&store, run, commit, expect_anchor, visit)?;
    if let (Some(remote), true) = (remote, report.verdict != Verdict::Failed) {
        report.add(remote_check(&store, run, &stamps, remote)?);
    }
    expect.require(&mut report);
    show(global, &report)
}

/// The check of a ledger against the run's anchor here, or at a remote, and what it makes of the
/// verdict.
pub(in super::super) fn anchored_check(
    project: &Project,
    run: &RunId,
    remote: Option<&str>,
) -> Result<Option<Held>, Failure> {
    const ID: &str = "ledger.anchored";
    let store = match (Store::discover(project.root()), remote) {
        (Ok(Some(store)), _) => store,
        (Ok(None), None) => return Ok(None),
        (Ok(None), Some(_)) => return Err(anchoring::Error::NoRepository.into()),
        (Err(error), Some(_)) => return Err(error.into()),
        (Err(error), None) => {
            let check = Check::new(ID, Status::NotApplicable, format!("no anchors are looked for: {error}"));
            return Ok(Some((check, None, Voucher::None)));
        }
    };
    let (anchor, voucher, whose) = match remote {
        Some(remote) => {
            let Some(quarantine) = network::fetch(&store, remote, run)? else {
                let remote = Some(remote.to_owned());
                return Err(anchoring::Error::NoAnchor { run: run.clone(), remote }.into());
            };
            let read = anchoring::read_anchor(&quarantine.store, run, quarantine.commit, Some(remote));
            (read, Voucher::Outside, format!("the anchor at {}", escape(remote)))
        }
        None => match store.reference(&anchor_ref(run)) {
            Ok(None) => return Ok(None),
            Ok(Some(commit)) => {
                let read = anchoring::read_anchor(&store, run, commit, None);
                (read, Voucher::None, String::from("the anchor here"))
            }
            Err(error) => {
                let sentence = format!("the anchor here can't be read: {error}");
                return Ok(Some((Check::new(ID, Status::NotChecked, sentence), None, Voucher::None)));
            }
        },
    };
    let anchor = match anchor {
        Ok(anchor) => anchor,
        Err(error @ anchoring::Error::BadAnchor { .. }) => {
            let check = Check::new(ID, Status::Fail, error.to_string());
            return Ok(Some((check, Some(Verdict::Failed), Voucher::None)));
        }
        Err(error) => return Err(error.into()),
    };
    let Some(ours) = anchoring::local(project, run).ok().flatten() else { return Ok(None) };
    let (ours, theirs) = (&ours.chain.stamps, &anchor.chain.stamps);
    Ok(Some(held_against(ID, compare(ours, theirs), ("the ledger", ours), (&whose, theirs), voucher)))
}

/// The anchor here held against a remote's.
fn remote_check(store: &Store, run: &RunId, ours: &[Stamp], remote: &str) -> Result<Held, Failure> {
    const ID: &str = "anchor.remote";
    let Some(quarantine) = network::fetch(store, remote, run)? else {
        let remote = Some(remote.to_owned());
        return Err(anchoring::Error::NoAnchor { run: run.clone(), remote }.into());
    };
    let whose = format!("the anchor at {}", escape(remote));
    Ok(match anchoring::read_anchor(&quarantine.store, run, quarantine.commit, Some(remote)) {
        Ok(theirs) => {
            let theirs = &theirs.chain.stamps;
            let comparison = compare(ours, theirs);
            held_against(ID, comparison, ("the anchor here", ours), (&whose, theirs), Voucher::Outside)
        }
        Err(error @ anchoring::Error::BadAnchor { .. }) => {
            (Check::new(ID, Status::Fail, error.to_string()), Some(Verdict::Failed), Voucher::None)
        }
        Err(error) => return Err(error.into()),
    })
}

/// Adds the check against the anchor to a report on a run's ledger.
pub(in super::super) fn add_anchored(
    report: &mut Report,
    project: &Project,
    run: &RunId,
    remote: Option<&str>,
) -> Result<(), Failure> {
    if let Some(held) = anchored_check(project, run, remote)? {
        report.add(held);
    }
    Ok(())
}

pub(super) fn diff(
    global: &Global,
    run: &RunId,
    keep: Option<Lineage>,
    remote: Option<&str>,
) -> Result<Exit, Failure> {
    let (project, store) = places(global)?;
    let other = Other::of(&store, run, remote)?;
    if let Some(lineage) = keep {
        let which = match lineage {
            Lineage::Local => Keep::Local,
            Lineage::Anchored => Keep::Anchored,
        };
        let key = KeyFile::of_environment();
        let kept = anchoring::keep(&project, &other, &key, run, which, Moment::now(), waiting(run))?;
        let name = if which == Keep::Local { "local" } else { "anchored" };
        let text = format!(
            "kept the {name} lineage of run {run}; the other is now {}\nthe anchor is {}; recorded in the audit log",
            kept.aside, kept.commit
        );
        return tell(
            global,
            &text,
            vec![
                ("run_id", Value::from(run.as_str())),
                ("kept", Value::from(name)),
                ("aside", Value::from(kept.aside)),
                ("commit", Value::from(kept.commit.to_hex())),
            ],
        );
    }
    let fork = anchoring::diff(&project, &other, run)?;
    match global.form() {
        Form::Json => super::super::put_document(fork_document(run, &fork))?,
        Form::Text => super::super::put(fork_text(run, &fork).as_bytes())?,
        Form::Quiet => {}
    }
    Ok(match fork.comparison {
        Comparison::Diverged { .. } => Exit::Verdict(Verdict::Diverged),
        Comparison::UnhashedFieldsDiffer { .. } => Exit::Failed,
        _ => Exit::Done,
    })
}

const fn comparison_name(comparison: &Comparison) -> &'static str {
    match comparison {
        Comparison::Identical => "identical",
        Comparison::LocalAhead(_) => "local_ahead",
        Comparison::RemoteAhead(_) => "anchor_ahead",
        Comparison::Diverged { .. } => "diverged",
        Comparison::UnhashedFieldsDiffer { .. } => "unhashed_fields_differ",
    }
}

fn fork_document(run: &RunId, fork: &Fork) -> Value {
    let side = |entries: &[Side]| {
        let rows = entries.iter().map(|side| {
            Value::from(Object::of([
                ("entry", Value::from(u64::try_from(side.entry).unwrap_or(0))),
                ("entry_hash", Value::from(side.entry_hash.as_str())),
                ("kind", Value::from(side.kind.as_str())),
                ("task_id", Value::from(side.task_id.as_str())),
                ("payload", json::parse(side.payload.as_bytes()).unwrap_or(Value::Null)),
                ("ts", json::parse(side.ts.as_bytes()).unwrap_or(Value::Null)),
            ]))
        });
        Value::from(rows.collect::<Vec<_>>())
    };
    Value::from(Object::of([
        ("run_id", Value::from(run.as_str())),
        ("comparison", Value::from(comparison_name(&fork.comparison))),
        ("entries_in_common", Value::from(u64::try_from(fork.common).unwrap_or(0))),
        ("local_head", Value::from(fork.heads.0.to_hex())),
        ("anchored_head", Value::from(fork.heads.1.to_hex())),
        ("local", side(&fork.local)),
        ("anchored", side(&fork.anchored)),
    ]))
}

fn fork_text(run: &RunId, fork: &Fork) -> String {
    let mut text = match fork.comparison {
        Comparison::Identical => format!("run {run}: the ledger and its anchor are the same\n"),
        Comparison::LocalAhead(more) => format!("run {run}: the ledger goes on from its anchor by {more}\n"),
        Comparison::RemoteAhead(more) => format!("run {run}: the anchor goes on from the ledger by {more}\n"),
        Comparison::Diverged { entry, .. } => format!("run {run} DIVERGED at entry {entry}\n"),
        Comparison::UnhashedFieldsDiffer { entry } => {
            format!("run {run}: the same hashes, but `ts` or `redactions` differ from entry {entry} on\n")
        }
    };
    text.push_str(&format!("{} in common\n", counted(fork.common, "entry")));
    let shown = fork.local.len().max(fork.anchored.len());
    if shown == 0 {
        return text;
    }
    let half = (out::width().saturating_sub(3) / 2).max(18);
    let head = |digest: Digest| digest.to_hex()[..12].to_owned();
    let mut line = |left: &str, right: &str| {
        let row = format!("{:<half$} | {}", cut(left, half), cut(right, half));
        text.push_str(row.trim_end());
        text.push('\n');
    };
    line(&format!("local, head {}", head(fork.heads.0)), &format!("anchored, head {}", head(fork.heads.1)));
    for index in 0..shown.min(200) {
        line(&side_text(fork.local.get(index)), &side_text(fork.anchored.get(index)));
    }
    if shown > 200 {
        text.push_str(&format!("… and {}; --json has all\n", counted(shown - 200, "more line")));
    }
    text
}

fn side_text(side: Option<&Side>) -> String {
    let Some(side) = side else { return String::new() };
    let when = side.ts.parse::<f64>().ok().and_then(super::log::timestamp);
    let when = when.map(|at| super::log::clock_time(at) + " ").unwrap_or_default();
    let task = if side.task_id.is_empty() { "" } else { &side.task_id };
    let payload = if side.payload == "{}" { "" } else { &side.payload };
    escape(&format!("{} {when}{} {task} {payload}", side.entry, side.kind)).trim_end().to_owned()
}
