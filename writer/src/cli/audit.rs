//! `waybill audit`: check the audit log, read it, pack its older days.

use std::cell::RefCell;

use clap::Subcommand;
use waybill_verifier::audit::{self as format, Event, Query};
use waybill_verifier::chain::{Place, Unseen};
use waybill_verifier::json;
use waybill_verifier::report::Report;
use waybill_verifier::time::Timestamp;

use super::Global;
use super::exit::{Exit, Failure};
use super::out::{self, Form, escape};
use super::table::lay_out;
use super::verify::{self, Assurance};
use crate::audit;
use crate::clock;
use crate::durable;
use crate::master::KeyFile;
use crate::project::Project;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Check the audit log: form, links, and the tags where the HMAC key is
    #[command(after_help = VERIFY_HELP)]
    Verify {
        /// Fail unless the report has these assurances
        #[arg(long, value_delimiter = ',', value_enum)]
        require: Vec<Assurance>,
    },
    /// Show the events, a line each
    #[command(after_help = LOG_HELP)]
    Log {
        /// Only events of this type, as work_ledger.anchor
        #[arg(long = "type", value_name = "TYPE")]
        event_type: Option<String>,
        /// Only those of this actor
        #[arg(long)]
        actor: Option<String>,
        /// Only those from this time on: 2026-11, 2026-11-27, 2026-11-27T19:30 (UTC)
        #[arg(long, value_name = "TIME", value_parser = time)]
        since: Option<String>,
        /// Only those before this time
        #[arg(long, value_name = "TIME", value_parser = time)]
        until: Option<String>,
    },
    /// Pack the days that are older than so many days
    #[command(after_help = ARCHIVE_HELP)]
    Archive {
        /// How many days stay as they are, today aside
        #[arg(long, value_name = "DAYS")]
        older_than: u16,
    },
}

const VERIFY_HELP: &str = "\
The HMAC key is the file that $BERNSTEIN_AUDIT_KEY_PATH names, else
$XDG_STATE_HOME/bernstein/audit.key, else ~/.local/state/bernstein/audit.key. Without it the verdict
is 'incomplete': what events say is then not checked.

Examples:
  waybill audit verify
  waybill audit verify --require hmac --json

Exit codes: 0 holds, incomplete or empty, 1 no audit log, 2 failed, 74 I/O, or a key that others can use";

const LOG_HELP: &str = "\
Examples:
  waybill audit log --type escalation.receipt --since 2026-11
  waybill audit log --json | jq .details

Exit codes: 0 shown, 1 no audit log, 2 the log is damaged: what holds of it was shown, 74 I/O";

const ARCHIVE_HELP: &str = "\
A day is packed as archive/YYYY-MM-DD.jsonl.gz, read back, and only then its file is removed; the log
verifies as before. A log that does not hold is left as it is.

Example:
  waybill audit archive --older-than 30

Exit codes: 0 done, 1 no audit log, 2 the log is damaged, 74 I/O or no HMAC key";

/// The beginning of a time, as the log writes times: compared as text.
fn time(text: &str) -> Result<String, String> {
    const FORM: &str = "0000-00-00T00:00:00.000000Z";
    let fits = text.len() >= 4
        && text.len() <= FORM.len()
        && text.bytes().zip(FORM.bytes()).all(|(byte, form)| match form {
            b'0' => byte.is_ascii_digit(),
            _ => byte == form,
        });
    if fits {
        Ok(text.to_owned())
    } else {
        Err(String::from("a time is as much as you know of 2026-11-27T19:30:00.000000Z (UTC)"))
    }
}

pub(super) fn run(global: &Global, command: &Command) -> Result<Exit, Failure> {
    let project = global.project()?;
    match command {
        Command::Verify { require } => {
            let mut report = report(&project)?;
            verify::require(&mut report, require);
            verify::show(global, &report)
        }
        Command::Log { event_type, actor, since, until } => {
            let query = Query {
                event_type: event_type.as_deref(),
                actor: actor.as_deref(),
                since: since.as_deref(),
                until: until.as_deref(),
            };
            log(global, &project, query)
        }
        Command::Archive { older_than } => archive(global, &project, *older_than),
    }
}

/// The report on a project's audit log.
fn report(project: &Project) -> Result<Report, Failure> {
    let folder = folder(project)?;
    let key = KeyFile::of_environment().read()?;
    let outcome = audit::read(&folder, key.as_ref(), || Unseen)?;
    Ok(format::report(".sdd/audit", ".sdd/audit/", &outcome))
}

fn folder(project: &Project) -> Result<std::path::PathBuf, Failure> {
    let folder = project.audit();
    durable::refuse_links(project.root(), &folder)?;
    if folder.is_dir() { Ok(folder) } else { Err(audit::Error::Absent.into()) }
}

fn log(global: &Global, project: &Project, query: Query<'_>) -> Result<Exit, Failure> {
    let folder = folder(project)?;
    let key = KeyFile::of_environment().read()?;
    let form = global.form();
    let rows = RefCell::new(Vec::new());
    let lines = RefCell::new(Vec::new());
    let outcome = audit::read(&folder, key.as_ref(), || {
        rows.borrow_mut().clear();
        lines.borrow_mut().clear();
        |event: &Event, _: Place| match form {
            _ if !query.matches(event) => {}
            Form::Quiet => {}
            Form::Json => {
                let mut lines = lines.borrow_mut();
                lines.extend_from_slice(&json::ascii(&event.document()));
                lines.push(b'\n');
            }
            Form::Text => rows.borrow_mut().push(row(event)),
        }
    })?;
    super::put(&lines.take())?;
    let rows = rows.take();
    if !rows.is_empty() {
        super::put(lay_out(&rows, out::width()).as_bytes())?;
    }
    if key.is_none() && outcome.events > 0 {
        out::say("the HMAC key is missing, so anybody could have written these events");
    }
    let faults = outcome.file_faults.iter().map(|fault| format!("{}: {}", fault.name, fault.detail));
    let damage = faults.chain(outcome.faults.iter().map(|(name, fault)| format!("{name}: {fault}"))).next();
    match damage {
        None => Ok(Exit::Done),
        Some(damage) => {
            let message = format!("{damage}; only events that hold were shown: see 'waybill audit verify'");
            Err(Failure { exit: Exit::Failed, message })
        }
    }
}

fn row(event: &Event) -> Vec<String> {
    let text = |value: &json::Text| escape(&String::from_utf8_lossy(value.as_wtf8()));
    let time = event.timestamp.as_str();
    let details = json::ascii(&json::Value::Object(event.details.clone()));
    vec![
        format!("{} {}", event.timestamp.day(), &time[11..19]),
        text(&event.event_type),
        text(&event.actor),
        text(&event.resource_id),
        String::from_utf8_lossy(&details).into_owned(),
    ]
}

fn archive(global: &Global, project: &Project, older_than: u16) -> Result<Exit, Failure> {
    const DAY: u64 = 86_400_000_000;
    let first_kept = clock::micros().saturating_sub(u64::from(older_than) * DAY);
    let first_kept = Timestamp::from_micros(first_kept).expect("before the year 10000");
    let before = first_kept.day();
    let done = audit::archive(project, &KeyFile::of_environment(), before)?;
    if let Some(path) = &done.set_aside {
        out::say(&format!("a row that was never acknowledged was set aside as {}", path.display()));
    }
    let names = done.packed.iter().map(|path| path.file_name().unwrap_or_default().to_string_lossy());
    let text = match global.form() {
        Form::Quiet => String::new(),
        Form::Json => {
            let names: Vec<_> = names.map(|name| json::Value::from(&*name)).collect();
            let document = json::Object::of([("packed", json::Value::from(names))]);
            let text = json::ascii(&json::Value::from(document));
            format!("{}\n", String::from_utf8_lossy(&text))
        }
        Form::Text if done.packed.is_empty() => format!("no day before {before} is left to pack\n"),
        Form::Text => names.map(|name| format!("packed archive/{name}\n")).collect(),
    };
    super::put(text.as_bytes())?;
    Ok(Exit::Done)
}
