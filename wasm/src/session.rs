//! One check, from the first piece to the report: what the bindings wrap, without JavaScript.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use waybill_verifier::chain::{LastLine, MAX_LINE, Outcome, Place, Walk};
use waybill_verifier::hash::Digest;
use waybill_verifier::id::RunId;
use waybill_verifier::json::{self, Object, Value};
use waybill_verifier::ledger::{self, Expect, LedgerRows, Row, State};
use waybill_verifier::step::{self, StepRows};

/// From here on a line is long: memory is taken in large steps for it.
const LONG_LINE: usize = 1 << 20;

type Visit = Box<dyn FnMut(&Row<'_>, Place)>;

/// Why something asked of a check could not be done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Error {
    /// The kind is none that can be checked here.
    Kind(String),
    /// The options are not the text of a JSON object.
    Options(String),
    /// An option with this name is not known for the kind.
    UnknownOption(String),
    /// An option's value does not fit.
    Option { name: &'static str, rule: String },
    /// Something was pushed to, or asked again of, a finished check.
    Finished,
    /// The state was asked for before the end.
    NotFinished,
    /// Only ledgers replay to a state.
    NoLedger,
    /// The ledger was not replayed, because nobody asked for it.
    NotReplayed,
    /// A chain that does not hold has no state.
    Broken(String),
    /// The files of a project have more bytes than are held.
    TooMuch,
    /// A key is none.
    Key(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Kind(kind) => write!(f, "unknown kind {kind:?}: give \"ledger\" or \"step-journal\""),
            Error::Options(why) => write!(f, "options are not the text of a JSON object: {why}"),
            Error::UnknownOption(name) => write!(f, "unknown option {name} for this kind"),
            Error::Option { name, rule } => write!(f, "option {name}: {rule}"),
            Error::Finished => f.write_str("the check is finished: start another"),
            Error::NotFinished => f.write_str("the state is known at the end: call finish() first"),
            Error::NoLedger => f.write_str("a step journal has no state"),
            Error::NotReplayed => f.write_str("the ledger was not replayed: give the option replay"),
            Error::TooMuch => f.write_str("the files have more bytes than are held at most: 256 MiB"),
            Error::Key(why) => f.write_str(why),
            Error::Broken(fault) => write!(f, "a chain that does not hold has no state: {fault}"),
        }
    }
}

impl std::error::Error for Error {}

/// A check of one file, under way or finished.
pub(crate) struct Session {
    name: String,
    file: String,
    check: Check,
    headroom: Headroom,
}

enum Check {
    Ledger { walk: Box<Walk<LedgerRows<Visit>>>, expect: Expect, replay: Option<Rc<RefCell<State>>> },
    Step { walk: Box<Walk<StepRows>> },
    Finished { state: Result<Vec<u8>, Error> },
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Session {
    pub(crate) fn new(kind: &str, name: &str, options: Option<&str>) -> Result<Session, Error> {
        let options = Options::read(options)?;
        let check = match kind {
            "ledger" => {
                let replay = options.replay.then(Rc::<RefCell<State>>::default);
                let visit: Visit = match replay.clone() {
                    Some(state) => Box::new(move |row, _| state.borrow_mut().apply(row)),
                    None => Box::new(|_, _| {}),
                };
                let expect = Expect { head: options.head, contains: options.contains };
                let rows = LedgerRows::new(options.run.as_ref(), visit).looking_for(expect.hashes());
                Check::Ledger { walk: Box::new(Walk::new(rows)), expect, replay }
            }
            "step-journal" => match options.first_of_ledgers() {
                Some(name) => return Err(Error::UnknownOption(name.into())),
                None => Check::Step { walk: Box::new(Walk::new(StepRows::default())) },
            },
            _ => return Err(Error::Kind(kind.into())),
        };
        let file = options.file.unwrap_or_else(|| name.into());
        Ok(Session { name: name.into(), file, check, headroom: Headroom::default() })
    }

    pub(crate) fn push(&mut self, piece: &[u8]) -> Result<(), Error> {
        self.headroom.before(piece);
        match &mut self.check {
            Check::Ledger { walk, .. } => walk.push(piece),
            Check::Step { walk } => walk.push(piece),
            Check::Finished { .. } => return Err(Error::Finished),
        }
        Ok(())
    }

    pub(crate) fn finish(&mut self) -> Result<Vec<u8>, Error> {
        let finished = Check::Finished { state: Err(Error::NoLedger) };
        let (report, state) = match std::mem::replace(&mut self.check, finished) {
            Check::Ledger { walk, expect, replay } => {
                let outcome = walk.finish(LastLine::Settled);
                let report = ledger::report(&self.name, &self.file, &outcome, &expect);
                let state = match replay {
                    Some(replay) => self.state_after(&outcome, &replay.borrow()),
                    None => Err(Error::NotReplayed),
                };
                (report, state)
            }
            Check::Step { walk } => {
                let outcome = walk.finish(LastLine::Settled);
                (step::report(&self.name, &self.file, &outcome), Err(Error::NoLedger))
            }
            finished @ Check::Finished { .. } => {
                self.check = finished;
                return Err(Error::Finished);
            }
        };
        self.check = Check::Finished { state };
        Ok(report.to_json())
    }

    pub(crate) fn state(&self) -> Result<Vec<u8>, Error> {
        match &self.check {
            Check::Finished { state } => state.clone(),
            Check::Ledger { .. } => Err(Error::NotFinished),
            Check::Step { .. } => Err(Error::NoLedger),
        }
    }

    fn state_after(&self, outcome: &Outcome<LedgerRows<Visit>>, state: &State) -> Result<Vec<u8>, Error> {
        if let (Some(fault), None) = (outcome.faults.first(), outcome.recovery) {
            return Err(Error::Broken(fault.to_string()));
        }
        let document = state.document(outcome.rows.run().unwrap_or(&self.name));
        let mut text = json::ascii_indented(&document);
        text.push(b'\n');
        Ok(text)
    }
}

/// Takes memory in large steps before a long line is read, up to 16 bytes a byte of it.
///
/// A WebAssembly memory grows by 64 KiB when nothing more is asked for, and each growth costs
/// the engine as much as reading a megabyte: a hostile line of 60 MB took minutes.
#[derive(Debug, Default)]
struct Headroom {
    /// How much there is of the line that is under way.
    line: usize,
    /// The length up to which there is room.
    ready: usize,
}

impl Headroom {
    fn before(&mut self, piece: &[u8]) {
        self.make(self.line.saturating_add(piece.len()).min(MAX_LINE));
        self.line = match piece.iter().rposition(|&byte| byte == b'\n') {
            Some(end) => piece.len() - end - 1,
            None => self.line.saturating_add(piece.len()),
        };
    }

    fn make(&mut self, line: usize) {
        if line <= LONG_LINE || line <= self.ready {
            return;
        }
        self.ready = line.next_power_of_two();
        // Freed at once, and kept by the allocator. Where there is not as much, fewer may do.
        let mut room = Vec::<u8>::new();
        drop(room.try_reserve_exact(self.ready.saturating_mul(16)));
        drop(std::hint::black_box(room));
    }
}

/// What is known of the file from elsewhere.
#[derive(Debug, Default)]
struct Options {
    file: Option<String>,
    run: Option<RunId>,
    head: Option<Digest>,
    contains: Option<Digest>,
    replay: bool,
}

impl Options {
    fn read(text: Option<&str>) -> Result<Options, Error> {
        let mut options = Options::default();
        let Some(text) = text else { return Ok(options) };
        let object: Object = match json::parse(text.as_bytes()) {
            Ok(Value::Object(object)) => object,
            Ok(_) => return Err(Error::Options("it is another kind of value".into())),
            Err(error) => return Err(Error::Options(error.to_string())),
        };
        for (name, value) in object.iter() {
            match name.as_str() {
                Some("file") => options.file = Some(text_of("file", value)?.into()),
                Some("run_id") => options.run = Some(run_id(value)?),
                Some("expected_head") => options.head = Some(digest("expected_head", value)?),
                Some("contains") => options.contains = Some(digest("contains", value)?),
                Some("replay") => options.replay = truth("replay", value)?,
                _ => {
                    let shown = json::ascii(&Value::String(name.clone()));
                    return Err(Error::UnknownOption(String::from_utf8_lossy(&shown).into_owned()));
                }
            }
        }
        Ok(options)
    }

    /// The first option that was given and only fits ledgers.
    fn first_of_ledgers(&self) -> Option<&'static str> {
        [
            ("contains", self.contains.is_some()),
            ("expected_head", self.head.is_some()),
            ("replay", self.replay),
            ("run_id", self.run.is_some()),
        ]
        .into_iter()
        .find_map(|(name, given)| given.then_some(name))
    }
}

fn text_of<'a>(name: &'static str, value: &'a Value) -> Result<&'a str, Error> {
    value.as_str().ok_or_else(|| Error::Option { name, rule: "is not text".into() })
}

fn truth(name: &'static str, value: &Value) -> Result<bool, Error> {
    match value {
        Value::Bool(truth) => Ok(*truth),
        _ => Err(Error::Option { name, rule: "is neither true nor false".into() }),
    }
}

fn run_id(value: &Value) -> Result<RunId, Error> {
    let name = "run_id";
    RunId::new(text_of(name, value)?).map_err(|error| Error::Option { name, rule: error.to_string() })
}

fn digest(name: &'static str, value: &Value) -> Result<Digest, Error> {
    let rule = || Error::Option { name, rule: "is not 64 lowercase hex digits".into() };
    Digest::from_hex(text_of(name, value)?.as_bytes()).ok_or_else(rule)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TORN: &[u8] = include_bytes!("../../tests/vectors/ledger/torn-tail/000000.jsonl");
    const BROKEN: &[u8] = include_bytes!("../../tests/vectors/ledger/bad-payload-edit/000000.jsonl");

    #[track_caller]
    fn refused(kind: &str, options: &str, expected: &str) {
        let error = Session::new(kind, "f", Some(options)).expect_err(options);
        assert_eq!(error.to_string(), expected);
    }

    fn finished(bytes: &[u8]) -> Session {
        let mut session = Session::new("ledger", "f", Some(r#"{"replay":true}"#)).expect("known options");
        session.push(bytes).expect("not finished");
        session.finish().expect("not finished");
        session
    }

    #[test]
    fn what_does_not_fit_is_refused_by_name() {
        refused("journal", "{}", "unknown kind \"journal\": give \"ledger\" or \"step-journal\"");
        refused("ledger", "[]", "options are not the text of a JSON object: it is another kind of value");
        refused("ledger", r#"{"heads":1}"#, "unknown option \"heads\" for this kind");
        refused("ledger", r#"{"file":7}"#, "option file: is not text");
        refused("ledger", r#"{"contains":"AB"}"#, "option contains: is not 64 lowercase hex digits");
        refused("ledger", r#"{"replay":1}"#, "option replay: is neither true nor false");
        refused("step-journal", r#"{"run_id":"r"}"#, "unknown option run_id for this kind");
        assert!(Session::new("ledger", "f", Some(r#"{"run_id":"../x"}"#)).is_err());
        assert!(Session::new("ledger", "f", Some("{")).is_err());
        assert!(Session::new("step-journal", "f", Some(r#"{"file":"a/f"}"#)).is_ok());
    }

    #[test]
    fn a_finished_check_takes_nothing_more() {
        let mut session = finished(TORN);
        assert_eq!(session.push(b"{}"), Err(Error::Finished));
        assert_eq!(session.finish(), Err(Error::Finished));
        assert!(session.state().is_ok());
    }

    #[test]
    fn a_torn_ledger_has_the_state_of_what_holds_and_a_broken_one_has_none() {
        let state = finished(TORN).state().expect("a torn tail can be undone");
        assert!(state.starts_with(b"{\n"));
        assert!(matches!(finished(BROKEN).state(), Err(Error::Broken(_))));
        let unfinished = Session::new("ledger", "f", None).expect("a known kind");
        assert_eq!(unfinished.state(), Err(Error::NotFinished));
        let mut plain = Session::new("ledger", "f", Some("{}")).expect("a known kind");
        plain.finish().expect("not finished");
        assert_eq!(plain.state(), Err(Error::NotReplayed));
        let step = Session::new("step-journal", "f", None).expect("a known kind");
        assert_eq!(step.state(), Err(Error::NoLedger));
    }
}
