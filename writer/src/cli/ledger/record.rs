//! The commands that record.

use std::io::{self, BufReader, Write};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::JoinHandle;

use waybill_verifier::id::{Kind, RunId, TaskId};
use waybill_verifier::json::{self, Object, Value};
use waybill_verifier::report::counted;

use super::super::Global;
use super::super::exit::{Exit, Failure};
use super::super::out::{self, Form};
use super::super::recording::{
    self, Durability, Options, acknowledgement, own_socket, payload, read_line, say_to_own, transition,
    transition_line,
};
use super::put_line;
use crate::durable::Sync;
use crate::log::{Ledger, Missing, Recorded, Transition};
use crate::redact::Scrubber;

/// From how much input on one write and one sync take no more of it.
const BATCH_BYTES: usize = 4 << 20;
const BATCH_LINES: usize = 8192;

/// How much of standard input is read at once, and how many batches of it wait.
const PIECE: usize = 64 << 10;
const BATCHES: usize = 64;

pub(super) fn open(
    global: &Global,
    run: &RunId,
    goal: Option<&str>,
    extra: Option<&str>,
    options: &Options,
) -> Result<Exit, Failure> {
    let project = global.project()?;
    let scrubber = options.scrubber()?;
    let mut object = extra.map_or_else(|| Ok(Object::default()), payload)?;
    if let Some(goal) = goal {
        object.insert("goal".into(), Value::from(goal));
    }
    if object.get("run_id").is_some_and(|id| id.as_str() != Some(run.as_str())) {
        return Err(Failure::usage(format!("--payload: its run_id is not {run}; leave it out")));
    }
    object.insert("run_id".into(), Value::from(run.as_str()));
    let first = transition(&scrubber, run, kind("run.open"), the_run(), object).map_err(Failure::usage)?;
    let mut ledger = options.open(&project, run, Missing::Create)?;
    if ledger.entries() > 0 {
        let standing = if ledger.closed() { "closed" } else { "open already" };
        let text = format!(
            "run {run} is {standing}: {}, head {}\n",
            counted(ledger.entries(), "entry"),
            ledger.head()
        );
        match global.form() {
            Form::Text => super::super::put(text.as_bytes())?,
            Form::Json => {
                let document = Object::of([
                    ("run_id", Value::from(run.as_str())),
                    ("entries", Value::from(ledger.entries())),
                    ("head_hash", Value::from(ledger.head().to_hex())),
                ]);
                put_line(&Value::from(document))?;
            }
            Form::Quiet => {}
        }
        return Ok(Exit::Done);
    }
    let recorded = ledger.append(&[first], options.durability.sync())?;
    recorded_text(global, &recorded)
}

pub(super) fn append(
    global: &Global,
    run: &RunId,
    kind: &Kind,
    task: Option<&TaskId>,
    argument: Option<&str>,
    options: &Options,
) -> Result<Exit, Failure> {
    let scrubber = options.scrubber()?;
    let object = argument.map_or_else(|| Ok(Object::default()), payload)?;
    let task = task.cloned().unwrap_or_else(the_run);
    if let Some(socket) = own_socket(run) {
        // The recorder of the run that this process is in holds the ledger.
        let line = Object::of([
            ("kind", Value::from(kind.as_str())),
            ("task_id", Value::from(task.as_str())),
            ("payload", Value::from(object)),
        ]);
        return own_recorded(global, &say_to_own(&socket, &Value::from(line))?);
    }
    let transition = transition(&scrubber, run, kind.clone(), task, object).map_err(Failure::usage)?;
    let mut ledger = open_started(global, run, options)?;
    let recorded = ledger.append(&[transition], options.durability.sync())?;
    recorded_text(global, &recorded)
}

pub(super) fn close(
    global: &Global,
    run: &RunId,
    reason: Option<&str>,
    options: &Options,
) -> Result<Exit, Failure> {
    let scrubber = options.scrubber()?;
    let mut object = Object::default();
    if let Some(reason) = reason {
        object.insert("reason".into(), Value::from(reason));
    }
    let last = transition(&scrubber, run, kind("run.closed"), the_run(), object).map_err(Failure::usage)?;
    let mut ledger = options.open(&global.project()?, run, Missing::Refuse)?;
    if ledger.closed() {
        out::say(&format!("run {run} is closed already"));
        return Ok(Exit::Done);
    }
    if ledger.entries() == 0 {
        return Err(not_started(run));
    }
    let recorded = ledger.append(&[last], options.durability.sync())?;
    recorded_text(global, &recorded)
}

/// Opens a ledger to append to it: it must have been started, and should not be closed.
fn open_started(global: &Global, run: &RunId, options: &Options) -> Result<Ledger, Failure> {
    let ledger = options.open(&global.project()?, run, Missing::Refuse)?;
    if ledger.entries() == 0 {
        return Err(not_started(run));
    }
    if ledger.closed() {
        out::say(&format!("run {run} is closed; it is recorded all the same, and the run stays closed"));
    }
    Ok(ledger)
}

fn not_started(run: &RunId) -> Failure {
    let message = format!("the ledger of run {run} has no entries: 'waybill ledger open {run}' starts it");
    Failure { exit: Exit::Absent, message }
}

fn recorded_text(global: &Global, recorded: &[Recorded]) -> Result<Exit, Failure> {
    for recorded in recorded {
        match global.form() {
            Form::Text => {
                let text = format!("recorded entry {} ({})\n", recorded.seq, recorded.entry_hash);
                super::super::put(text.as_bytes())?;
            }
            Form::Json => put_line(&acknowledgement(recorded))?,
            Form::Quiet => {}
        }
    }
    Ok(Exit::Done)
}

/// What the recorder of the run that this process is in answered.
fn own_recorded(global: &Global, answer: &Object) -> Result<Exit, Failure> {
    match global.form() {
        Form::Text => super::super::put(super::super::record::text(answer).as_bytes())?,
        Form::Json => put_line(&Value::from(answer.clone()))?,
        Form::Quiet => {}
    }
    Ok(Exit::Done)
}

/// `append --stdin`: a line in, an acknowledgement out once it is as durable as asked.
pub(super) fn append_lines(global: &Global, run: &RunId, options: &Options) -> Result<Exit, Failure> {
    if let Some(socket) = own_socket(run) {
        return super::super::record::lines(&socket);
    }
    let scrubber = options.scrubber()?;
    let mut ledger = open_started(global, run, options)?;
    let (batches, reader) = read_batches(scrubber, run.clone());
    let (together, sync) = (options.durability != Durability::Entry, options.durability.sync());
    let mut refused: u64 = 0;
    let mut acknowledge = Acknowledge { listening: true };
    while let Ok(mut batch) = batches.recv() {
        while together && batch.has_room() {
            let Ok(more) = batches.try_recv() else { break };
            batch.join(more);
        }
        refused += batch.refused();
        if together {
            acknowledge.recorded(&mut ledger, &batch, sync)?;
        } else {
            for one in batch.one_by_one() {
                acknowledge.recorded(&mut ledger, &one, sync)?;
            }
        }
    }
    // It has ended: nothing sends any more.
    reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
    if refused > 0 {
        return Err(recording::refused(refused));
    }
    Ok(Exit::Done)
}

/// Lines that are recorded together, and what became of each.
#[derive(Default)]
struct Batch {
    transitions: Vec<Transition>,
    /// Per line: refused, and why; or the next of `transitions`.
    answers: Vec<Option<String>>,
    bytes: usize,
}

impl Batch {
    fn has_room(&self) -> bool {
        self.bytes < BATCH_BYTES && self.answers.len() < BATCH_LINES
    }

    /// Each line by itself.
    fn one_by_one(self) -> impl Iterator<Item = Batch> {
        let mut transitions = self.transitions.into_iter();
        self.answers.into_iter().map(move |answer| Batch {
            transitions: transitions.by_ref().take(usize::from(answer.is_none())).collect(),
            answers: vec![answer],
            bytes: 0,
        })
    }

    fn join(&mut self, more: Batch) {
        self.transitions.extend(more.transitions);
        self.answers.extend(more.answers);
        self.bytes += more.bytes;
    }

    fn take(&mut self, line: &[u8], read: impl FnOnce(&[u8]) -> Result<Transition, String>) {
        if line.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        self.bytes += line.len();
        match read(line) {
            Ok(transition) => {
                self.transitions.push(transition);
                self.answers.push(None);
            }
            Err(reason) => self.answers.push(Some(reason)),
        }
    }

    fn refused(&self) -> u64 {
        u64::try_from(self.answers.iter().flatten().count()).unwrap_or(u64::MAX)
    }
}

/// Answers on standard output. Where nobody listens any more, recording goes on.
struct Acknowledge {
    listening: bool,
}

impl Acknowledge {
    /// Records a batch, and answers each of its lines.
    fn recorded(&mut self, ledger: &mut Ledger, batch: &Batch, sync: Sync) -> Result<(), Failure> {
        if batch.transitions.is_empty() {
            return self.all(batch, &[]);
        }
        match ledger.append(&batch.transitions, sync) {
            Ok(recorded) => self.all(batch, &recorded),
            Err(error) => {
                let failure = Failure::from(error);
                self.none(batch, &failure)?;
                Err(failure)
            }
        }
    }

    fn all(&mut self, batch: &Batch, recorded: &[Recorded]) -> Result<(), Failure> {
        let mut recorded = recorded.iter();
        let mut text = Vec::new();
        for answer in &batch.answers {
            match (answer, answer.is_none().then(|| recorded.next()).flatten()) {
                (None, Some(recorded)) => push_acknowledgement(&mut text, recorded),
                (reason, _) => push_error(&mut text, reason.as_deref().unwrap_or("not recorded")),
            }
        }
        self.put(&text)
    }

    fn none(&mut self, batch: &Batch, failure: &Failure) -> Result<(), Failure> {
        let mut text = Vec::new();
        for answer in &batch.answers {
            push_error(&mut text, answer.as_deref().unwrap_or(&failure.message));
        }
        self.put(&text)
    }

    fn put(&mut self, text: &[u8]) -> Result<(), Failure> {
        if !self.listening {
            return Ok(());
        }
        let mut out = io::stdout().lock();
        match out.write_all(text).and_then(|()| out.flush()) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.listening = false;
                Ok(())
            }
            Err(error) => {
                let message = format!("can't write acknowledgements: {error}");
                Err(Failure { exit: Exit::Io, message })
            }
        }
    }
}

fn push_acknowledgement(text: &mut Vec<u8>, recorded: &Recorded) {
    text.extend_from_slice(b"{\"entry_hash\":\"");
    text.extend_from_slice(&recorded.entry_hash.hex());
    text.extend_from_slice(b"\",\"seq\":");
    text.extend_from_slice(recorded.seq.to_string().as_bytes());
    text.extend_from_slice(b"}\n");
}

fn push_error(text: &mut Vec<u8>, reason: &str) {
    json::push_ascii(text, &Value::from(Object::of([("error", Value::from(reason))])));
    text.push(b'\n');
}

/// Reads standard input in a thread of its own, which also checks and scrubs: meanwhile what is
/// ready is hashed and written, and what arrives while the disk is busy goes into one batch. How
/// the input ended is what the thread gives.
fn read_batches(scrubber: Scrubber, run: RunId) -> (Receiver<Batch>, JoinHandle<Result<(), Failure>>) {
    let (sender, receiver) = sync_channel(BATCHES);
    let thread = std::thread::spawn(move || {
        let mut input = BufReader::with_capacity(PIECE, io::stdin().lock());
        let mut batch = Batch::default();
        loop {
            let line = read_line(&mut input);
            let ended = match line {
                Ok(Some(line)) => {
                    batch.take(&line, |line| transition_line(&scrubber, &run, line));
                    None
                }
                Ok(None) => Some(Ok(())),
                Err(error) => {
                    let message = format!("can't read standard input: {error}");
                    Some(Err(Failure { exit: Exit::Io, message }))
                }
            };
            // Nothing that is here waits for what is not.
            let has_more = memchr::memchr(b'\n', input.buffer()).is_some();
            if ended.is_none() && has_more && batch.has_room() {
                continue;
            }
            // The other end is gone only if recording ended.
            let is_gone = !batch.answers.is_empty() && sender.send(std::mem::take(&mut batch)).is_err();
            match ended {
                Some(ended) => return ended,
                None if is_gone => return Ok(()),
                None => {}
            }
        }
    });
    (receiver, thread)
}

fn kind(name: &str) -> Kind {
    Kind::new(name).expect("the program's own kinds fit the pattern")
}

fn the_run() -> TaskId {
    TaskId::new("").expect("the empty id is the run itself")
}
