//! What the commands that record share: the scrubber, the payload, the lock's words.

use std::io::{self, BufRead, Read, Write};
use std::path::Path;

use clap::ValueEnum;
use waybill_verifier::chain::MAX_LINE;
use waybill_verifier::id::{Kind, RunId, TaskId};
use waybill_verifier::json::{self, MAX_DEPTH, Object, Value};
use waybill_verifier::report::counted;

use super::exit::{Exit, Failure};
use super::out;
use crate::anchoring;
use crate::durable::{Sync, open_regular};
use crate::git::Store;
use crate::lock::Wait;
use crate::log::recover::TornTail;
use crate::log::{Ledger, Missing, Recorded, Transition};
use crate::project::Project;
use crate::redact::Scrubber;
use crate::scrub;

/// Options of every command that records.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Options {
    /// When an entry counts as recorded
    #[arg(long, value_enum, default_value_t = Durability::Entry)]
    pub(super) durability: Durability,
    #[command(flatten)]
    scrubbing: Scrubbing,
    /// Fail with code 75 if another process records this run
    #[arg(long)]
    no_wait: bool,
    /// Go on although the anchor here knows more entries than the ledger
    #[arg(long)]
    accept_loss: bool,
}

/// What is scrubbed besides what always is.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Scrubbing {
    /// Scrub what matches this regular expression too (repeatable)
    #[arg(long, value_name = "REGEX")]
    redact_pattern: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum Durability {
    /// On disk, each entry by itself
    Entry,
    /// On disk, all that wait with one sync
    Group,
    /// With the kernel: survives this process, not a power cut
    Os,
}

impl Durability {
    pub(super) fn sync(self) -> Sync {
        match self {
            Durability::Entry | Durability::Group => Sync::Data,
            Durability::Os => Sync::None,
        }
    }
}

impl Options {
    pub(super) fn wait(&self) -> Wait {
        if self.no_wait { Wait::No } else { Wait::Yes }
    }

    pub(super) fn scrubber(&self) -> Result<Scrubber, Failure> {
        self.scrubbing.scrubber()
    }

    /// Opens the ledger, and says what opening had to do.
    pub(super) fn open(&self, project: &Project, run: &RunId, missing: Missing) -> Result<Ledger, Failure> {
        let waiting = waiting(run);
        let ledger = Ledger::open(project, run, missing, self.wait(), waiting)?;
        self.check_loss(project, run, &ledger)?;
        if let Some(torn) = ledger.set_aside() {
            say_set_aside("entry", torn);
        }
        Ok(ledger)
    }
}

/// Tells of a torn tail that opening set aside.
pub(super) fn say_set_aside(what: &str, torn: &TornTail) {
    out::say(&format!(
        "{what} {} was being written when a crash came, and was never acknowledged: its torn tail of {} was \
         set aside as {}",
        torn.entry,
        counted(torn.length, "byte"),
        torn.path.display()
    ));
}

/// Lines of standard input that were refused.
pub(super) fn refused(count: u64) -> Failure {
    let were = if count == 1 { "was" } else { "were" };
    let lines = counted(count, "line");
    Failure::usage(format!("{lines} {were} refused and not recorded; see the answers"))
}

impl Options {
    /// An anchor that knows more entries than the ledger is no crash: something is missing here.
    fn check_loss(&self, project: &Project, run: &RunId, ledger: &Ledger) -> Result<(), Failure> {
        // Recording needs no repository, so one that can't be used does not stop it.
        let Ok(Some(store)) = Store::discover(project.root()) else { return Ok(()) };
        let Ok(Some((anchored, _))) = anchoring::claimed(&store, run) else { return Ok(()) };
        if anchored <= ledger.entries() {
            return Ok(());
        }
        let lost = format!(
            "the anchor of run {run} knows {}, the ledger here has {}: the rest is missing",
            counted(anchored, "entry"),
            ledger.entries()
        );
        if self.accept_loss {
            out::say(&format!("{lost}; going on all the same"));
            return Ok(());
        }
        let advice =
            "'waybill ledger resume' takes them over; --accept-loss goes on without them, as another lineage";
        Err(Failure { exit: Exit::Failed, message: format!("{lost}; {advice}") })
    }
}

impl Scrubbing {
    pub(super) fn scrubber(&self) -> Result<Scrubber, Failure> {
        let home = std::env::var("HOME").ok();
        let variables = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        let mut builder = Scrubber::builder().home(home.as_deref()).env(variables);
        for pattern in &self.redact_pattern {
            builder = builder
                .pattern(pattern)
                .map_err(|error| Failure::usage(format!("--redact-pattern: {error}")))?;
        }
        Ok(builder.build())
    }
}

/// Says who holds a run's lock, before a wait for it begins.
pub(super) fn waiting(run: &RunId) -> impl Fn(&str) + use<'_> {
    move |holder: &str| out::say(&format!("waiting for the lock of run {run}, held by {holder}"))
}

/// A payload argument: JSON, `@file`, or `-` for standard input.
pub(super) fn payload(argument: &str) -> Result<Object, Failure> {
    named_payload("--payload", argument)
}

/// The same, of an option with another name.
pub(super) fn named_payload(option: &str, argument: &str) -> Result<Object, Failure> {
    let bytes = match argument.strip_prefix('@') {
        _ if argument == "-" => {
            let mut bytes = Vec::new();
            let limit = u64::try_from(MAX_LINE).unwrap_or(u64::MAX);
            std::io::stdin().take(limit + 1).read_to_end(&mut bytes).map_err(|error| Failure {
                exit: Exit::Io,
                message: format!("can't read standard input: {error}"),
            })?;
            bytes
        }
        Some(path) => read_limited(Path::new(path))?,
        None => argument.as_bytes().to_vec(),
    };
    object(&bytes).map_err(|reason| Failure::usage(format!("{option}: {reason}")))
}

fn read_limited(path: &Path) -> Result<Vec<u8>, Failure> {
    let file = open_regular(path)?;
    let mut bytes = Vec::new();
    let limit = u64::try_from(MAX_LINE).unwrap_or(u64::MAX);
    file.take(limit + 1)
        .read_to_end(&mut bytes)
        .map_err(|source| crate::durable::Error::new("can't read", path, source))?;
    Ok(bytes)
}

/// A JSON object, as deep and long as a row can hold.
pub(super) fn object(bytes: &[u8]) -> Result<Object, String> {
    if bytes.len() > MAX_LINE {
        return Err(format!("longer than {MAX_LINE} bytes"));
    }
    match json::parse(bytes) {
        Ok(value @ Value::Object(_)) if depth(&value) >= MAX_DEPTH => {
            Err(format!("nested deeper than {} levels", MAX_DEPTH - 1))
        }
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(String::from("not a JSON object, as {\"why\":\"nightly\"}")),
        // The text itself may hold a secret, so only its place is said.
        Err(error) => Err(error.to_string()),
    }
}

/// How deep a value nests; the parser's limit bounds the recursion.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(object) => 1 + object.iter().map(|(_, value)| depth(value)).max().unwrap_or(0),
        _ => 0,
    }
}

/// Refuses names that look like secrets: they can't be scrubbed and still be names.
pub(super) fn clean_names<'a>(
    scrubber: &Scrubber,
    names: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<(), String> {
    for (what, name) in names {
        if scrubber.scrub(name).1 > 0 {
            return Err(format!(
                "the {what} holds what looks like a secret, and names are recorded as they are"
            ));
        }
    }
    Ok(())
}

/// A transition as `append` takes it, scrubbed; `run` is the run it is for.
pub(super) fn transition(
    scrubber: &Scrubber,
    run: &RunId,
    kind: Kind,
    task_id: TaskId,
    payload: Object,
) -> Result<Transition, String> {
    clean_names(
        scrubber,
        [("kind", kind.as_str()), ("task id", task_id.as_str()), ("run id", run.as_str())],
    )?;
    if kind.as_str() == "run.open" {
        match payload.get("run_id") {
            Some(id) if id.as_str() == Some(run.as_str()) => {}
            _ => return Err(format!("run.open must have \"run_id\":\"{run}\" in its payload")),
        }
    }
    let (payload, redactions) = scrub::object(scrubber, payload);
    Ok(Transition { kind, task_id, payload, redactions })
}

/// One line of `append --stdin`: an object with `kind`, and `task_id` and `payload` if any.
pub(super) fn transition_line(scrubber: &Scrubber, run: &RunId, line: &[u8]) -> Result<Transition, String> {
    let mut object = object(line)?;
    let string = |value: Option<Value>, name: &str| match value {
        None => Ok(None),
        Some(value) => match value.as_str() {
            Some(text) => Ok(Some(text.to_owned())),
            None => Err(format!("`{name}` is not a string")),
        },
    };
    let kind = string(object.remove("kind"), "kind")?.ok_or("`kind` is missing")?;
    let task_id = string(object.remove("task_id"), "task_id")?.unwrap_or_default();
    let payload = match object.remove("payload") {
        None => Object::default(),
        Some(Value::Object(payload)) => payload,
        Some(_) => return Err(String::from("`payload` is not an object")),
    };
    if !object.is_empty() {
        return Err(String::from("a transition has `kind`, `task_id` and `payload`, and no other field"));
    }
    let kind = Kind::new(&kind).map_err(|error| error.to_string())?;
    let task_id = TaskId::new(&task_id).map_err(|error| error.to_string())?;
    transition(scrubber, run, kind, task_id, payload)
}

/// The acknowledgement of an entry, as a JSON object.
pub(super) fn acknowledgement(recorded: &Recorded) -> Value {
    Value::from(Object::of([
        ("seq", Value::from(recorded.seq)),
        ("entry_hash", Value::from(recorded.entry_hash.to_hex())),
    ]))
}

/// Answers each line of standard input that is not blank. Where nobody listens to the answers any
/// more, the work goes on.
pub(super) fn each_line(mut answer: impl FnMut(&[u8]) -> Result<Vec<u8>, Failure>) -> Result<(), Failure> {
    let failed =
        |what: &str, error: io::Error| Failure { exit: Exit::Io, message: format!("{what}: {error}") };
    let mut input = io::stdin().lock();
    let mut listening = true;
    while let Some(line) =
        read_line(&mut input).map_err(|error| failed("can't read standard input", error))?
    {
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let text = answer(&line)?;
        let mut out = io::stdout().lock();
        match out.write_all(&text).and_then(|()| out.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => listening = false,
            Err(error) if listening => return Err(failed("can't write acknowledgements", error)),
            _ => {}
        }
    }
    Ok(())
}

/// The next line without its end; one that is too long comes cut, which its reader refuses.
pub(super) fn read_line(input: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let limit = u64::try_from(MAX_LINE).unwrap_or(u64::MAX) + 1;
    let mut line = Vec::new();
    if input.by_ref().take(limit).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
    } else if line.len() > MAX_LINE {
        skip_line(input)?;
    }
    Ok(Some(line))
}

fn skip_line(input: &mut impl BufRead) -> io::Result<()> {
    loop {
        let available = input.fill_buf()?;
        if available.is_empty() {
            return Ok(());
        }
        match memchr::memchr(b'\n', available) {
            Some(end) => {
                input.consume(end + 1);
                return Ok(());
            }
            None => {
                let length = available.len();
                input.consume(length);
            }
        }
    }
}
