//! `waybill ledger runs`: the runs that are here and anchored, and whether the two agree.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use waybill_verifier::anchor::ObjectId;
use waybill_verifier::hash::Digest;
use waybill_verifier::id::RunId;
use waybill_verifier::json::{Object, Value};
use waybill_verifier::ledger::{State, TaskState};

use super::super::Global;
use super::super::exit::{Exit, Failure};
use super::super::out::{self, Form, escape};
use super::super::table::lay_out;
use crate::anchoring;
use crate::git::{Store, network};

pub(super) const HELP: &str = "\
Ledgers here are replayed; of anchors the claims are read ('verify --anchored' checks one).

Examples:
  waybill ledger runs
  waybill ledger runs --remote origin --json

Exit codes: 0 listed, 74 I/O";

/// A run, as far as it is known here, anchored and at the remote.
pub(in super::super) struct Known {
    pub(in super::super) run: RunId,
    pub(in super::super) local: Option<Result<State, String>>,
    /// Entries and head, as the anchor claims them.
    pub(in super::super) anchored: Option<Result<(u64, Digest), String>>,
    commits: (Option<ObjectId>, Option<ObjectId>),
    /// Whether the anchored head is the ledger's entry at that place.
    holds_anchored: bool,
}

pub(super) fn run(global: &Global, remote: Option<&str>) -> Result<Exit, Failure> {
    let store = Store::discover(global.project()?.root())?;
    let mut known = known(global, store.as_ref())?;
    match (&store, remote) {
        (_, None) => {}
        (None, Some(_)) => return Err(anchoring::Error::NoRepository.into()),
        (Some(store), Some(remote)) => {
            for (run, commit) in network::remote_anchors(store, remote)? {
                known.entry(run.clone()).or_insert_with(|| Known::new(run)).commits.1 = Some(commit);
            }
        }
    }
    show_runs(global, &known.into_values().collect::<Vec<_>>(), remote.is_some())
}

/// The runs that are here and anchored: ledgers are replayed, each in one walk; of anchors the
/// claims are read.
pub(in super::super) fn known(
    global: &Global,
    store: Option<&Store>,
) -> Result<BTreeMap<RunId, Known>, Failure> {
    let mut known = BTreeMap::new();
    for (run, commit) in store.map_or_else(|| Ok(Vec::new()), Store::anchors)? {
        let mut found = Known::new(run.clone());
        let claimed = commit.map_err(anchoring::Error::from).and_then(|commit| {
            found.commits.0 = Some(commit);
            store.map_or(Ok(None), |store| anchoring::claimed(store, &run))
        });
        found.anchored = Some(match claimed {
            Ok(Some(claimed)) => Ok(claimed),
            Ok(None) => Err(String::from("the anchor can't be read: verify --anchored says why")),
            Err(error) => Err(error.to_string()),
        });
        known.insert(run, found);
    }
    for run in global.project()?.runs()? {
        let found = known.entry(run.clone()).or_insert_with(|| Known::new(run.clone()));
        let claimed = found.anchored.as_ref().and_then(|claimed| claimed.as_ref().ok()).copied();
        let holds = &mut found.holds_anchored;
        let replayed = super::replay_seeing(global, &run, |state| {
            *holds |= claimed == Some((state.entries, state.head()));
        });
        found.local = Some(replayed.map_err(|failure| failure.message));
    }
    Ok(known)
}

impl Known {
    fn new(run: RunId) -> Known {
        Known { run, local: None, anchored: None, commits: (None, None), holds_anchored: false }
    }

    /// Whether ledger and anchor agree, in a word.
    pub(in super::super) fn agreement(&self) -> &'static str {
        match (&self.local, &self.anchored) {
            (Some(Err(_)), _) => "damaged",
            (_, Some(Err(_))) => "anchor unreadable",
            (None, Some(Ok(_))) => "only anchored",
            (Some(Ok(_)), None) => "not anchored",
            (Some(Ok(state)), Some(Ok((anchored, _)))) => match state.entries.cmp(anchored) {
                Ordering::Equal if self.holds_anchored => "agree",
                Ordering::Greater if self.holds_anchored => "ledger ahead",
                Ordering::Equal | Ordering::Greater => "DIVERGED",
                Ordering::Less => "anchor ahead",
            },
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
                    Ok(state) => chain(state.entries, state.head()),
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
            super::super::put_document(Object::of([("runs", Value::from(list.collect::<Vec<_>>()))]))?;
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
            Some(Ok(state)) => {
                (state.entries.to_string(), counts(state), state.head().to_hex()[..12].to_owned())
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

/// How many tasks are started, scheduled, completed and failed.
pub(in super::super) fn counts(state: &State) -> [String; 4] {
    [TaskState::Started, TaskState::Scheduled, TaskState::Completed, TaskState::Failed]
        .map(|wanted| state.tasks_in(wanted).count().to_string())
}
