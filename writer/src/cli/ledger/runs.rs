//! `waybill ledger runs`: the runs that are here and anchored, and whether the two agree.

use waybill_verifier::anchor::ObjectId;
use waybill_verifier::hash::Digest;
use waybill_verifier::id::RunId;
use waybill_verifier::json::{self, Object, Value};
use waybill_verifier::ledger::TaskState;

use super::super::Global;
use super::super::exit::{Exit, Failure};
use super::super::out::{self, Form, escape};
use super::super::table::lay_out;
use crate::anchoring;
use crate::git::{Store, network};
use crate::project::Project;

pub(super) const HELP: &str = "\
Ledgers here are replayed; of anchors the claims are read ('verify --anchored' checks one).

Examples:
  waybill ledger runs
  waybill ledger runs --remote origin --json

Exit codes: 0 listed, 74 I/O";

/// Entries, head, and how many tasks are started, scheduled, completed and failed.
type Replayed = (u64, Digest, [usize; 4]);

/// A run, as far as it is known here, anchored and at the remote.
struct Known {
    run: RunId,
    local: Option<Result<Replayed, String>>,
    anchored: Option<Result<(u64, Digest), String>>,
    commits: (Option<ObjectId>, Option<ObjectId>),
    /// Whether the anchored head is the ledger's entry at that place.
    holds_anchored: bool,
}

pub(super) fn run(global: &Global, remote: Option<&str>) -> Result<Exit, Failure> {
    let project = global.project()?;
    let store = Store::discover(project.root())?;
    if store.is_none() && remote.is_some() {
        return Err(anchoring::Error::NoRepository.into());
    }
    let mut known: std::collections::BTreeMap<RunId, Known> = std::collections::BTreeMap::new();
    let entry = |run: &RunId| Known {
        run: run.clone(),
        local: None,
        anchored: None,
        commits: (None, None),
        holds_anchored: false,
    };
    for run in project.runs()? {
        let mut found = entry(&run);
        found.local = Some(match super::replay(global, &run) {
            Ok(state) => {
                let count = |wanted| state.tasks_in(wanted).count();
                let counts = [
                    count(TaskState::Started),
                    count(TaskState::Scheduled),
                    count(TaskState::Completed),
                    count(TaskState::Failed),
                ];
                Ok((state.entries, state.head, counts))
            }
            Err(failure) => Err(failure.message),
        });
        known.insert(run, found);
    }
    if let Some(store) = &store {
        for (run, commit) in store.anchors()? {
            let found = known.entry(run.clone()).or_insert_with(|| entry(&run));
            found.anchored = Some(match commit {
                Ok(commit) => {
                    found.commits.0 = Some(commit);
                    match anchoring::claimed(store, &run) {
                        Ok(Some(claimed)) => {
                            found.holds_anchored = holds(&project, &run, claimed)?;
                            Ok(claimed)
                        }
                        Ok(None) => Err(String::from("the anchor can't be read: verify --anchored says why")),
                        Err(error) => Err(error.to_string()),
                    }
                }
                Err(error) => Err(error.to_string()),
            });
        }
        if let Some(remote) = remote {
            for (run, commit) in network::remote_anchors(store, remote)? {
                known.entry(run.clone()).or_insert_with(|| entry(&run)).commits.1 = Some(commit);
            }
        }
    }
    show_runs(global, &known.into_values().collect::<Vec<_>>(), remote.is_some())
}

/// Whether a ledger has an entry of a hash as the last of so many.
fn holds(project: &Project, run: &RunId, (entries, head): (u64, Digest)) -> Result<bool, Failure> {
    let Ok(Some(ours)) = anchoring::local(project, run) else { return Ok(false) };
    let last = usize::try_from(entries).ok().and_then(|entries| entries.checked_sub(1));
    Ok(last.and_then(|last| ours.chain.stamps.get(last)).is_some_and(|stamp| stamp.entry_hash == head))
}

impl Known {
    /// Whether ledger and anchor agree, in a word.
    fn agreement(&self) -> &'static str {
        match (&self.local, &self.anchored) {
            (Some(Err(_)), _) => "damaged",
            (_, Some(Err(_))) => "anchor unreadable",
            (None, Some(Ok(_))) => "only anchored",
            (Some(Ok(_)), None) => "not anchored",
            (Some(Ok((entries, head, _))), Some(Ok((anchored, anchored_head)))) => {
                match entries.cmp(anchored) {
                    std::cmp::Ordering::Equal if head == anchored_head => "agree",
                    std::cmp::Ordering::Equal => "DIVERGED",
                    std::cmp::Ordering::Greater if self.holds_anchored => "ledger ahead",
                    std::cmp::Ordering::Greater => "DIVERGED",
                    std::cmp::Ordering::Less => "anchor ahead",
                }
            }
            (None, None) => "only at the remote",
        }
    }

    fn remote_agreement(&self) -> &'static str {
        match self.commits {
            (Some(here), Some(there)) if here == there => "same",
            (Some(_), Some(_)) => "differs",
            (Some(_), None) => "not there",
            (None, Some(_)) => "only there",
            (None, None) => "-",
        }
    }
}

fn show_runs(global: &Global, runs: &[Known], asked_remote: bool) -> Result<Exit, Failure> {
    match global.form() {
        Form::Quiet => {}
        Form::Json => {
            let list = runs.iter().map(|known| {
                let chain = |entries: u64, head: Digest| {
                    Value::from(Object::of([
                        ("entries", Value::from(entries)),
                        ("head_hash", Value::from(head.to_hex())),
                    ]))
                };
                let reason =
                    |reason: &String| Value::from(Object::of([("reason", Value::from(reason.as_str()))]));
                let local = known.local.as_ref().map(|local| match local {
                    Ok((entries, head, _)) => chain(*entries, *head),
                    Err(message) => reason(message),
                });
                let anchored = known.anchored.as_ref().map(|anchored| match anchored {
                    Ok((entries, head)) => chain(*entries, *head),
                    Err(message) => reason(message),
                });
                let commit = |id: &Option<ObjectId>| Value::from(id.map(|id| id.to_hex()));
                let mut object = Object::of([
                    ("run_id", Value::from(known.run.as_str())),
                    ("local", local.unwrap_or(Value::Null)),
                    ("anchored", anchored.unwrap_or(Value::Null)),
                    ("anchored_commit", commit(&known.commits.0)),
                    ("agreement", Value::from(known.agreement())),
                ]);
                if asked_remote {
                    object.insert("remote_commit".into(), commit(&known.commits.1));
                    object.insert("remote".into(), Value::from(known.remote_agreement()));
                }
                Value::from(object)
            });
            let document = Object::of([("runs", Value::from(list.collect::<Vec<_>>()))]);
            let mut text = json::ascii_indented(&Value::from(document));
            text.push(b'\n');
            super::super::put(&text)?;
        }
        Form::Text if runs.is_empty() => {
            super::super::put(b"no runs here: 'waybill ledger open RUN' starts one\n")?;
        }
        Form::Text => super::super::put(runs_text(runs, asked_remote).as_bytes())?,
    }
    Ok(Exit::Done)
}

fn runs_text(runs: &[Known], asked_remote: bool) -> String {
    let mut head =
        vec!["run", "entries", "anchored", "started", "scheduled", "done", "failed", "head", "agreement"];
    if asked_remote {
        head.push("remote");
    }
    let mut rows = vec![head.into_iter().map(String::from).collect::<Vec<_>>()];
    let mut reasons = String::new();
    for known in runs {
        let mut row = vec![known.run.to_string()];
        let (entries, counts, hash) = match &known.local {
            Some(Ok((entries, head, counts))) => {
                (entries.to_string(), counts.map(|count| count.to_string()), head.to_hex()[..12].to_owned())
            }
            _ => (String::from("-"), ["-"; 4].map(String::from), String::from("-")),
        };
        row.push(entries);
        row.push(match &known.anchored {
            Some(Ok((entries, _))) => entries.to_string(),
            _ => String::from("-"),
        });
        row.extend(counts);
        row.push(hash);
        row.push(known.agreement().to_owned());
        if asked_remote {
            row.push(known.remote_agreement().to_owned());
        }
        rows.push(row);
        for reason in [
            known.local.as_ref().and_then(|local| local.as_ref().err()),
            known.anchored.as_ref().and_then(|anchored| anchored.as_ref().err()),
        ]
        .into_iter()
        .flatten()
        {
            reasons.push_str(&format!("{}: {}\n", known.run, escape(reason)));
        }
    }
    lay_out(&rows, out::width()) + &reasons
}
