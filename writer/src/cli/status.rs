//! `waybill status`: the runs of this project at a glance, with their anchors, and who signs and
//! is trusted here.

use waybill_verifier::json::{Object, Value};
use waybill_verifier::report::counted;

use super::Global;
use super::escalation::Stalls;
use super::exit::{Exit, Failure};
use super::keys::trusted_and_revoked;
use super::ledger::{Known, counts, known};
use super::out::{self, Form, cut, escape};
use super::table::lay_out;
use super::{put, put_document};
use crate::git::Store;
use crate::identity;
use crate::lock::Lock;
use crate::master::KeyFile;
use crate::project::Project;

pub(super) const HELP: &str = "\
Ledgers are replayed; of anchors and receipts the claims are read, and no signature, tag or link of
theirs is checked: 'verify', 'ledger verify --anchored' and 'escalation verify' do that.

Examples:
  waybill status
  waybill status --json | jq .stalls.latest

Exit codes: 0 shown, 64 wrong arguments, 74 I/O";

/// What could be read, or why not.
type Judged<T> = Result<T, Failure>;

/// A run's ledger here, and who records it.
struct Standing {
    word: &'static str,
    writer: Option<String>,
}

/// All that is shown.
struct Overview {
    runs: Vec<(Known, Standing)>,
    /// Why there may be anchors that could not be looked for.
    no_anchors: Option<Failure>,
    identity: Judged<Option<String>>,
    hmac_key: Judged<bool>,
    trust: Judged<(usize, usize)>,
    stalls: Judged<Stalls>,
}

pub(super) fn run(global: &Global) -> Result<Exit, Failure> {
    let overview = Overview::of(global, &global.project()?)?;
    match global.form() {
        Form::Quiet => {}
        Form::Json => put_document(overview.document())?,
        Form::Text => put(overview.text(out::width()).as_bytes())?,
    }
    Ok(Exit::Done)
}

impl Overview {
    fn of(global: &Global, project: &Project) -> Result<Overview, Failure> {
        let (store, mut no_anchors) = match Store::discover(project.root()) {
            Ok(store) => (store, None),
            Err(error) => (None, Some(Failure::from(error))),
        };
        let found = match known(global, store.as_ref()) {
            Err(failure) if store.is_some() => {
                no_anchors = Some(failure);
                known(global, None)
            }
            found => found,
        }?;
        let standing = |known: &Known| {
            let writer = Lock::holder_of(&project.ledger_lock(&known.run));
            let word = match &known.local {
                None => "not here",
                Some(Err(_)) => "damaged",
                Some(Ok(state)) if state.run_closed => "closed",
                Some(Ok(_)) if writer.is_some() => "recording",
                Some(Ok(_)) => "open",
            };
            Standing { word, writer }
        };
        let runs = found.into_values().map(|known| {
            let standing = standing(&known);
            (known, standing)
        });
        let runs = runs.collect();
        Ok(Overview {
            runs,
            no_anchors,
            identity: identity::public(project)
                .map(|key| key.map(|key| key.fingerprint().to_string()))
                .map_err(Failure::from),
            hmac_key: KeyFile::of_environment().read().map(|key| key.is_some()).map_err(Failure::from),
            trust: trusted_and_revoked(),
            stalls: Stalls::of(project),
        })
    }

    fn document(&self) -> Object {
        let runs = self.runs.iter().map(|(known, standing)| {
            let mut document = Object::of([
                ("run_id", Value::from(known.run.as_str())),
                ("standing", Value::from(standing.word)),
                ("writer", Value::from(standing.writer.as_deref())),
                ("anchor", anchor_document(known)),
                ("agreement", Value::from(known.agreement())),
            ]);
            let (name, value) = match &known.local {
                None => ("state", Value::Null),
                Some(Ok(state)) => ("state", state.document(known.run.as_str())),
                Some(Err(reason)) => ("reason", Value::from(reason.as_str())),
            };
            document.insert(name.into(), value);
            Value::from(document)
        });
        let runs = runs.collect::<Vec<_>>();
        let reason = |failure: &Failure| Value::from(failure.message.as_str());
        let unreadable = |failure| Value::from(Object::of([("reason", reason(failure))]));
        let number = |count: usize| Value::from(u64::try_from(count).unwrap_or(u64::MAX));
        let identity = match &self.identity {
            Ok(fingerprint) => Object::of([("fingerprint", Value::from(fingerprint.as_deref()))]),
            Err(failure) => Object::of([("fingerprint", Value::Null), ("reason", reason(failure))]),
        };
        let hmac_key = match &self.hmac_key {
            Ok(present) => Object::of([("present", Value::from(*present))]),
            Err(failure) => Object::of([("present", Value::from(false)), ("reason", reason(failure))]),
        };
        let keys = Object::of([("identity", Value::from(identity)), ("hmac_key", Value::from(hmac_key))]);
        Object::of([
            ("runs", Value::from(runs)),
            ("anchors_unreadable", self.no_anchors.as_ref().map_or(Value::Null, reason)),
            ("keys", Value::from(keys)),
            (
                "trust",
                match &self.trust {
                    Ok((trusted, revoked)) => Value::from(Object::of([
                        ("trusted", number(*trusted)),
                        ("revoked", number(*revoked)),
                    ])),
                    Err(failure) => unreadable(failure),
                },
            ),
            (
                "stalls",
                match &self.stalls {
                    Ok(stalls) => Value::from(stalls.document()),
                    Err(failure) => unreadable(failure),
                },
            ),
        ])
    }

    fn text(&self, width: usize) -> String {
        let mut text = runs_text(&self.runs, width);
        text.push_str(&anchors_text(&self.runs, width));
        if let Some(failure) = &self.no_anchors {
            text.push_str(&format!("! anchors: {}\n", escape(&failure.message)));
        }
        let unreadable = |failure: &Failure| format!("! {}", escape(&failure.message));
        let identity = match &self.identity {
            Ok(Some(fingerprint)) => format!("signs as {fingerprint}"),
            Ok(None) => String::from("no identity signs here: 'waybill keys init' makes one"),
            Err(failure) => unreadable(failure),
        };
        let hmac_key = match &self.hmac_key {
            Ok(true) => String::from("the HMAC key is here"),
            Ok(false) => String::from("no HMAC key: tags can't be checked"),
            Err(failure) => unreadable(failure),
        };
        let trust = match &self.trust {
            Ok((trusted, revoked)) => format!("{} trusted, {revoked} revoked", counted(*trusted, "signer")),
            Err(failure) => unreadable(failure),
        };
        let stalls = match &self.stalls {
            Ok(stalls) => {
                let latest = stalls.latest_text().map(|latest| format!(", last {latest}"));
                format!("{}{}", counted(stalls.count, "receipt"), latest.unwrap_or_default())
            }
            Err(failure) => unreadable(failure),
        };
        text.push('\n');
        for (name, said) in [("keys", &identity), ("", &hmac_key), ("trust", &trust), ("stalls", &stalls)] {
            let line = format!("{name:<6}  {said}");
            // What is wrong, and its mend, are never cut.
            text.push_str(&if said.starts_with('!') { line } else { cut(&line, width) });
            text.push('\n');
        }
        text
    }
}

/// The ledgers; what could not be read comes below the table, since a reason has no columns.
fn runs_text(runs: &[(Known, Standing)], width: usize) -> String {
    let head = ["run", "standing", "entries", "started", "scheduled", "done", "failed", "head"];
    let mut rows = vec![head.map(String::from).to_vec()];
    let mut damaged = String::new();
    for (known, standing) in runs {
        match &known.local {
            None => {}
            Some(Ok(state)) => {
                let mut row =
                    vec![known.run.to_string(), standing.word.to_owned(), state.entries.to_string()];
                row.extend(counts(state));
                row.push(state.head().to_hex()[..12].to_owned());
                rows.push(row);
            }
            Some(Err(reason)) => damaged.push_str(&format!("{}  ! {}\n", known.run, escape(reason))),
        }
    }
    let table = match (rows.len(), damaged.is_empty()) {
        (1, true) => String::from("no runs are recorded here: 'waybill ledger open RUN' starts one\n"),
        (1, false) => String::new(),
        _ => lay_out(&rows, width),
    };
    table + &damaged
}

/// The anchors of these runs, where one of them has one; unverified.
fn anchors_text(runs: &[(Known, Standing)], width: usize) -> String {
    if runs.iter().all(|(known, _)| known.anchored.is_none()) {
        return String::new();
    }
    let mut rows = vec![["run", "anchored", "agreement", "anchored head"].map(String::from).to_vec()];
    for (known, _) in runs {
        let (entries, head) = match &known.anchored {
            Some(Ok((entries, head))) => (entries.to_string(), head.to_hex()[..12].to_owned()),
            Some(Err(reason)) => (String::from("-"), format!("! {}", escape(reason))),
            None => (String::from("-"), String::from("-")),
        };
        rows.push(vec![known.run.to_string(), entries, known.agreement().to_owned(), head]);
    }
    format!("\n{}", lay_out(&rows, width))
}

fn anchor_document(known: &Known) -> Value {
    Value::from(known.anchored.as_ref().map(|anchored| match anchored {
        Ok((entries, head)) => {
            Object::of([("entries", Value::from(*entries)), ("head_hash", Value::from(head.to_hex()))])
        }
        Err(reason) => Object::of([("reason", Value::from(reason.as_str()))]),
    }))
}
