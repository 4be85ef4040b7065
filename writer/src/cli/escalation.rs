//! `waybill escalation`: receipts of stalled workers.

mod list;

use std::path::Path;

use clap::Subcommand;
use waybill_verifier::id::RunId;
use waybill_verifier::json::{self, Object, Value};
use waybill_verifier::receipt::{Binding, File, ReceiptId, StallReason, Trust};
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
    Show {
        /// The receipt
        #[arg(value_parser = receipt_id)]
        id: ReceiptId,
    },
    /// Check a receipt against its run's journal, the spine and the audit log
    #[command(after_help = VERIFY_HELP)]
    Verify {
        /// The receipt
        #[arg(value_parser = receipt_id)]
        id: ReceiptId,
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

const VERIFY_HELP: &str = "\
Examples:
  waybill escalation verify 793c8e6b00d8adfc2cc9de582bd4df55
  waybill escalation verify 793c8e6b… --signer SHA256:4jSePaNl… --require pinned,hmac

Exit codes: 0 holds, consistent, incomplete or degraded, 1 no such receipt, 2 failed, 64 wrong
arguments, 74 I/O";

fn receipt_id(text: &str) -> Result<ReceiptId, String> {
    ReceiptId::parse(text).ok_or_else(|| String::from("a receipt's id has 32 lowercase hex digits"))
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
        Command::Show { id } => show(global, &project, id),
        Command::Verify { id, signer, require } => {
            let trust = signer.trust()?;
            let key = KeyFile::of_environment().read()?;
            let receipt = File::read(&read(&project, id)?);
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
        std::io::ErrorKind::NotFound => {
            let message = format!("there is no receipt {id} here: 'waybill escalation list' lists them");
            Failure { exit: Exit::Absent, message }
        }
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
    let text = match global.form() {
        Form::Quiet => Vec::new(),
        Form::Json => line(projection(&emitted.binding, &emitted.id, &emitted.entry_hash)),
        Form::Text => {
            let word = if emitted.there { "is there already" } else { "written" };
            let binding = &emitted.binding;
            format!(
                "receipt {} {word}: {}, {}\n{}\n",
                emitted.id,
                binding.stall_reason,
                binding.recommended_action,
                emitted.path.display()
            )
            .into_bytes()
        }
    };
    super::put(&text)?;
    Ok(Exit::Done)
}

fn projection(binding: &Binding, id: &ReceiptId, entry_hash: &str) -> Value {
    Value::from(binding.projection(id, entry_hash))
}

fn line(value: Value) -> Vec<u8> {
    let mut text = json::ascii_indented(&value);
    text.push(b'\n');
    text
}

fn show(global: &Global, project: &Project, id: &ReceiptId) -> Result<Exit, Failure> {
    let file = File::read(&read(project, id)?);
    let (Some(binding), Some(own)) = (&file.binding, file.id()) else {
        let why = file.faults.first().map_or("", String::as_str);
        let message = format!("receipt {id} can't be read: {why}; see 'waybill escalation verify {id}'");
        return Err(Failure { exit: Exit::Failed, message });
    };
    let entry = file.entry_hash.as_ref().map(prefixed).unwrap_or_default();
    let text = match global.form() {
        Form::Quiet => Vec::new(),
        Form::Json => line(projection(binding, &own, &entry)),
        Form::Text => {
            let document: Object = binding.projection(&own, &entry);
            let mut text = String::new();
            for (name, value) in document.iter() {
                let name = name.as_str().unwrap_or_default();
                let shown = match value {
                    Value::Null => String::from("-"),
                    Value::String(text) => escape(&String::from_utf8_lossy(text.as_wtf8())),
                    other => String::from_utf8_lossy(&json::ascii(other)).into_owned(),
                };
                text.push_str(&format!("{name:<22}  {shown}\n"));
            }
            text.into_bytes()
        }
    };
    super::put(&text)?;
    if !file.faults.is_empty() || own != *id {
        out::say(&format!("what is shown does not hold: see 'waybill escalation verify {id}'"));
    }
    Ok(Exit::Done)
}
