//! What the commands that record share: the scrubber, the payload, the lock's words.

use std::io::{self, BufRead, Read, Write};
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use waybill_verifier::chain::MAX_LINE;
use waybill_verifier::id::RunId;
use waybill_verifier::json::{self, Object, Value};
use waybill_verifier::report::counted;

use super::exit::{Exit, Failure};
use super::out;
use crate::anchoring;
use crate::durable::{Sync, open_regular};
use crate::lines;
pub(super) use crate::lines::{clean_names, event_name, object, transition};
use crate::lock::Wait;
use crate::log::recover::TornTail;
use crate::log::{Ledger, Missing, Recorded, Transition};
use crate::project::Project;
use crate::redact::Scrubber;
use crate::run::client::Client;

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
        let Some((anchored, _)) = anchoring::claimed_here(project, run) else { return Ok(()) };
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
    /// With these patterns.
    pub(super) fn of(patterns: &[String]) -> Scrubbing {
        Scrubbing { redact_pattern: patterns.to_vec() }
    }

    pub(super) fn patterns(&self) -> &[String] {
        &self.redact_pattern
    }

    /// A scrubber that leaves the home folder as it is.
    pub(super) fn without_home(&self) -> Result<Scrubber, Failure> {
        self.build(None)
    }

    pub(super) fn scrubber(&self) -> Result<Scrubber, Failure> {
        self.build(std::env::var("HOME").ok().as_deref())
    }

    fn build(&self, home: Option<&str>) -> Result<Scrubber, Failure> {
        let variables = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        let mut builder = Scrubber::builder().home(home).env(variables);
        for pattern in &self.redact_pattern {
            builder = builder
                .pattern(pattern)
                .map_err(|error| Failure::usage(format!("--redact-pattern: {error}")))?;
        }
        Ok(builder.build())
    }
}

/// The socket of the run that this process is in, if it is this one.
pub(super) fn own_socket(run: &RunId) -> Option<PathBuf> {
    let own = std::env::var("WAYBILL_RUN_ID").ok()?;
    if own != run.as_str() {
        return None;
    }
    std::env::var_os("WAYBILL_SOCKET").filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// Says a line to the run's recorder, and gives its answer.
pub(super) fn call(client: &mut Client, line: &[u8]) -> Result<Object, Failure> {
    let answered = client.send_raw(line).and_then(|()| client.receive());
    answered.map_err(|error| Failure {
        exit: Exit::Io,
        message: format!("the run's recorder did not take it: {error}"),
    })
}

/// Connects to the recorder of the run that this process is in.
pub(super) fn connect(socket: &Path) -> Result<Client, Failure> {
    Client::connect(socket).map_err(|error| Failure {
        exit: Exit::Io,
        message: format!("can't reach the run's recorder at {}: {error}", socket.display()),
    })
}

/// Says a line to the recorder of the run that this process is in; what it refuses is a failure.
pub(super) fn say_to_own(socket: &Path, line: &Value) -> Result<Object, Failure> {
    let answer = call(&mut connect(socket)?, &json::ascii(line))?;
    match answer.get("error").and_then(Value::as_str) {
        Some(reason) => Err(Failure::usage(reason)),
        None => Ok(answer),
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

/// One line of `append --stdin`: an object with `kind`, and `task_id` and `payload` if any.
pub(super) fn transition_line(scrubber: &Scrubber, run: &RunId, line: &[u8]) -> Result<Transition, String> {
    lines::transition_of(scrubber, run, object(line)?)
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
