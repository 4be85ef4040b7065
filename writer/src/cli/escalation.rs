//! `waybill escalation`: receipts of stalled workers.

mod list;
mod standing;

use std::path::Path;
use std::str::FromStr;

use clap::Subcommand;
use waybill_verifier::id::RunId;
use waybill_verifier::json::{self, Object, Value};
use waybill_verifier::receipt::{File, ReceiptId, StallReason, Trust};
use waybill_verifier::spine::prefixed;

use super::Global;
use super::exit::{Exit, Failure};
use super::keys;
use super::out::{self, Form, escape};
use super::recording::{self, Scrubbing};
use super::verify::{self, Assurance};
use crate::master::KeyFile;
use crate::project::Project;
use crate::receipt::{self, Gathered, Request};
use crate::trust::TrustFile;
use crate::{clock, durable, scrub};

pub(super) use standing::Stalls;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Sign what a stalled worker did last, and what to do
    #[command(after_help = EMIT_HELP)]
    Emit(Box<EmitArgs>),
    /// List the receipts: when, run, worker, reason, action, verdict
    List {
        #[command(flatten)]
        signer: SignerArgs,
    },
    /// Show what a receipt says: neither signature nor the window's hashes
    #[command(after_help = SHOW_HELP)]
    Show {
        /// The receipt: its id, or the first digits of it that name no other
        id: Named,
    },
    /// Check a receipt against its run's journal, the spine and the audit log
    #[command(after_help = VERIFY_HELP)]
    Verify {
        /// The receipt: its id, or the first digits of it that name no other
        id: Named,
        #[command(flatten)]
        signer: SignerArgs,
        /// Fail unless the report has these assurances
        #[arg(long, value_delimiter = ',', value_enum)]
        require: Vec<Assurance>,
    },
}

#[derive(Debug, clap::Args)]
pub(super) struct EmitArgs {
    /// The run
    run: RunId,
    /// The worker that stalled
    #[arg(long)]
    worker: String,
    /// Why it counts as stalled
    #[arg(long, value_parser = stall_reason)]
    reason: StallReason,
    /// Its session
    #[arg(long, default_value = "")]
    session: String,
    /// Its working tree
    #[arg(long, default_value = "")]
    worktree: String,
    /// How often it may still be started again
    #[arg(long, value_name = "N", default_value_t = 0)]
    budget: u64,
    /// The step of the snapshot to fork from
    #[arg(long, value_name = "N")]
    fork_step: Option<u64>,
    /// What else is to be signed: a JSON object, @FILE, or - for standard input
    #[arg(long, value_name = "JSON|@FILE|-")]
    extra: Option<String>,
    /// When, in seconds since 1970 UTC [default: now]
    #[arg(long, value_name = "SECONDS")]
    timestamp: Option<u64>,
    #[command(flatten)]
    scrubbing: Scrubbing,
}

/// Whom the reader trusts.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct SignerArgs {
    /// The signer it must have: a public key's file or a fingerprint (repeatable)
    /// [default: whom your trust file names]
    #[arg(long = "signer", value_name = "FILE|FINGERPRINT")]
    signers: Vec<String>,
}

impl SignerArgs {
    pub(super) fn trust(&self) -> Result<Trust, Failure> {
        if self.signers.is_empty() {
            return Ok(TrustFile::of_environment().read()?);
        }
        let pins = self.signers.iter().map(|signer| {
            if Path::new(signer).components().any(|part| part.as_os_str() == ".sdd") {
                out::say(&format!(
                    "{signer} came with the evidence: it only says that the evidence agrees with itself"
                ));
            }
            keys::pin(signer)
        });
        Ok(Trust::Pinned(pins.collect::<Result<_, _>>()?))
    }
}

const EMIT_HELP: &str = "\
The window is the journal's last 16 events; without a journal the receipt says so ('degraded').
The same receipt emitted again (--timestamp) is there already, or is completed.

Example:
  waybill escalation emit goal-42 --worker w1 --reason heartbeat_stale --budget 2 --fork-step 3

Exit codes: 0 written or there, 1 no identity or snapshot, 2 journal or spine damaged, 64 wrong
arguments, 74 I/O";

const SHOW_HELP: &str = "\
Nothing is checked but that the file can be read: 'waybill escalation verify' checks it.

Examples:
  waybill escalation show 793c8e6b00d8adfc2cc9de582bd4df55
  waybill escalation show 793c --json | jq .recommended_action

Exit codes: 0 shown, 1 no such receipt, 2 it can't be read as one, 64 wrong arguments, or the digits
begin several ids, 74 I/O";

const VERIFY_HELP: &str = "\
Examples:
  waybill escalation verify 793c8e6b00d8adfc2cc9de582bd4df55
  waybill escalation verify 793c8e6b --signer SHA256:4jSePaNl… --require pinned,hmac

Exit codes: 0 holds, consistent, incomplete or degraded, 1 no such receipt, 2 failed, 64 wrong
arguments, or the digits begin several ids, 74 I/O";

/// A receipt as a person names it: a whole id, or a beginning of one.
#[derive(Clone, Debug)]
pub(super) struct Named(String);

impl FromStr for Named {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Named, Self::Err> {
        let is_hex = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if is_hex && (4..=32).contains(&text.len()) {
            Ok(Named(text.to_owned()))
        } else {
            Err("a receipt's id has 32 lowercase hex digits, of which the first 4 or more are enough")
        }
    }
}

impl Named {
    /// The receipt that is meant: the exact id, else the only one that begins so.
    fn find(&self, project: &Project) -> Result<ReceiptId, Failure> {
        if let Some(id) = ReceiptId::parse(&self.0) {
            return Ok(id);
        }
        let mut ids = receipt::ids(project)?;
        ids.retain(|id| id.as_str().starts_with(&self.0));
        match ids.as_slice() {
            [] => Err(absent(&self.0)),
            [id] => Ok(id.clone()),
            [first, second, more @ ..] => {
                let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
                Err(Failure::usage(format!(
                    "{} begins {first}, {second}{more}: give more of its digits",
                    self.0
                )))
            }
        }
    }
}

fn absent(id: &str) -> Failure {
    let message = format!("there is no receipt {id} here: 'waybill escalation list' lists them");
    Failure { exit: Exit::Absent, message }
}

fn stall_reason(text: &str) -> Result<StallReason, String> {
    StallReason::named(text).ok_or_else(|| {
        let names: Vec<_> = StallReason::ALL.iter().map(|reason| reason.name()).collect();
        format!("a reason is one of {}", names.join(", "))
    })
}

pub(super) fn run(global: &Global, command: &Command) -> Result<Exit, Failure> {
    let project = global.project()?;
    match command {
        Command::Emit(args) => emit(global, &project, args),
        Command::List { signer } => list::run(global, &project, signer),
        Command::Show { id } => show(global, &project, &id.find(&project)?),
        Command::Verify { id, signer, require } => {
            let id = id.find(&project)?;
            let trust = signer.trust()?;
            let key = KeyFile::of_environment().read()?;
            let receipt = File::read(&read(&project, &id)?);
            let gathered = Gathered::of(&project, key.as_ref())?;
            let mut report = gathered.report(&id.path(), &receipt, &trust)?;
            verify::require(&mut report, require);
            verify::show(global, &report)
        }
    }
}

/// A receipt's bytes.
fn read(project: &Project, id: &ReceiptId) -> Result<Vec<u8>, Failure> {
    durable::refuse_links(project.root(), &project.receipts())?;
    receipt::read_file(&project.root().join(id.path())).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => absent(id.as_str()),
        _ => error.into(),
    })
}

fn emit(global: &Global, project: &Project, args: &EmitArgs) -> Result<Exit, Failure> {
    let scrubber = args.scrubbing.scrubber()?;
    let extra = match &args.extra {
        None => None,
        Some(extra) => Some(scrub::object(&scrubber, recording::named_payload("--extra", extra)?).0),
    };
    let clean = |text: &str| scrubber.scrub(text).0.into_owned();
    let request = Request {
        run: args.run.clone(),
        worker: clean(&args.worker),
        session: clean(&args.session),
        worktree: clean(&args.worktree),
        reason: args.reason,
        budget: args.budget,
        timestamp: args.timestamp.unwrap_or_else(|| clock::micros() / 1_000_000),
        fork_step: args.fork_step,
        extra,
        events: None,
    };
    let emitted = receipt::emit(project, &KeyFile::of_environment(), &request, clock::timestamp())?;
    if let Some(path) = &emitted.key_made {
        out::say(&format!("made the HMAC key {}: back it up, who has it can write records", path.display()));
    }
    for path in &emitted.set_aside {
        out::say(&format!("a row that was never acknowledged was set aside as {}", path.display()));
    }
    match global.form() {
        Form::Quiet => {}
        Form::Json => {
            super::put_document(emitted.binding.projection(&emitted.id, &emitted.entry_hash))?;
        }
        Form::Text => {
            let word = if emitted.there { "is there already" } else { "written" };
            let binding = &emitted.binding;
            let text = format!(
                "receipt {} {word}: {}, {}\n{}\n",
                emitted.id,
                binding.stall_reason,
                binding.recommended_action,
                emitted.path.display()
            );
            super::put(text.as_bytes())?;
        }
    }
    Ok(Exit::Done)
}

fn show(global: &Global, project: &Project, id: &ReceiptId) -> Result<Exit, Failure> {
    let file = File::read(&read(project, id)?);
    let (Some(binding), Some(own)) = (&file.binding, file.id()) else {
        let why = file.faults.first().map_or("", String::as_str);
        let message = format!("receipt {id} can't be read: {why}; see 'waybill escalation verify {id}'");
        return Err(Failure { exit: Exit::Failed, message });
    };
    let entry = file.entry_hash.as_ref().map(prefixed).unwrap_or_default();
    match global.form() {
        Form::Quiet => {}
        Form::Json => super::put_document(binding.projection(&own, &entry))?,
        Form::Text => {
            let document: Object = binding.projection(&own, &entry);
            let mut text = String::new();
            for (name, value) in document.iter() {
                let name = name.as_str().unwrap_or_default();
                let shown = match value {
                    Value::Null => String::from("-"),
                    Value::String(text) if text.as_wtf8().is_empty() => String::from("-"),
                    Value::String(text) => escape(&String::from_utf8_lossy(text.as_wtf8())),
                    other => String::from_utf8_lossy(&json::ascii(other)).into_owned(),
                };
                text.push_str(&format!("{name:<22}  {shown}\n"));
            }
            super::put(text.as_bytes())?;
        }
    }
    if !file.faults.is_empty() || own != *id {
        out::say(&format!("what is shown does not hold: see 'waybill escalation verify {id}'"));
    }
    Ok(Exit::Done)
}
