//! The small files beside a run's record: attempts, resume point, intention, questions.

use waybill_verifier::hash::Digest;
use waybill_verifier::json::{Object, Value};

use super::{Error, RunFolder};

/// How often boots have continued a run since it last ended on purpose.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Attempts {
    /// This often.
    Spent(u64),
    /// The file is gone or damaged, which counts as all of them.
    Lost,
}

/// What a resume goes on from: the ledger must hold up to here, and have this entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ResumePoint {
    /// How many entries there were.
    pub entries: u64,
    /// The last one's hash.
    pub head: Digest,
}

/// What somebody wants to become of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Intent {
    /// End it (`jobs stop`).
    Stop,
    /// End it (Ctrl-C).
    Interrupt,
    /// End it, and go on another day.
    Pause,
    /// End it, and keep it for the record.
    Archive,
    /// A limit that was set for it ends it.
    Policy,
}

impl Intent {
    /// All of them.
    pub const ALL: [Intent; 5] =
        [Intent::Stop, Intent::Interrupt, Intent::Pause, Intent::Archive, Intent::Policy];

    /// As it is written.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Intent::Stop => "stop",
            Intent::Interrupt => "interrupt",
            Intent::Pause => "pause",
            Intent::Archive => "archive",
            Intent::Policy => "policy",
        }
    }
}

/// An intent that was recorded, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Intention {
    /// What is to become of the run.
    pub intent: Intent,
    /// Who or what wants it.
    pub reason: String,
}

/// A question of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Question {
    /// Its id within the run, as `q1`.
    pub id: String,
    /// What is asked, scrubbed.
    pub text: String,
    /// Which worker asks; empty where none was named.
    pub worker: String,
    /// When, in seconds since 1970 UTC.
    pub asked: u64,
    /// What was answered.
    pub answer: Option<String>,
    /// Whether who asked got the answer, or does not want it any more.
    pub settled: bool,
}

/// All questions of a run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Questions {
    /// In the order in which they were asked.
    pub list: Vec<Question>,
}

impl Questions {
    /// Those that nobody has answered.
    pub fn open(&self) -> impl Iterator<Item = &Question> {
        self.list.iter().filter(|question| question.answer.is_none() && !question.settled)
    }

    /// The next one's id.
    #[must_use]
    pub fn next_id(&self) -> String {
        format!("q{}", self.list.len() + 1)
    }
}

impl RunFolder {
    /// How often boots have continued the run.
    #[must_use]
    pub fn attempts(&self) -> Attempts {
        let read = self.read("attempts.json").ok().flatten();
        match read.as_ref().and_then(|object| object.get("attempts")).and_then(Value::as_u64) {
            Some(count) => Attempts::Spent(count),
            None => Attempts::Lost,
        }
    }

    /// Notes how often.
    ///
    /// # Errors
    ///
    /// If it can't be written.
    pub fn write_attempts(&self, count: u64) -> Result<(), Error> {
        self.write("attempts.json", Object::of([("attempts", Value::from(count))]))
    }

    /// What a resume goes on from, if there is such a point.
    ///
    /// # Errors
    ///
    /// If the file can't be believed.
    pub fn resume_point(&self) -> Result<Option<ResumePoint>, Error> {
        let Some(object) = self.read("resume-point.json")? else { return Ok(None) };
        let point = || {
            Some(ResumePoint {
                entries: object.get("entries")?.as_u64()?,
                head: Digest::from_hex(object.get("head")?.as_str()?.as_bytes())?,
            })
        };
        point().map(Some).ok_or_else(|| self.malformed("resume-point.json"))
    }

    /// Writes it.
    ///
    /// # Errors
    ///
    /// If it can't be written.
    pub fn write_resume_point(&self, point: &ResumePoint) -> Result<(), Error> {
        let entries = Value::from(point.entries);
        let object = Object::of([("entries", entries), ("head", Value::from(point.head.to_hex()))]);
        self.write("resume-point.json", object)
    }

    /// Deletes it: the run ended on purpose.
    ///
    /// # Errors
    ///
    /// If it is there and can't be removed.
    pub fn remove_resume_point(&self) -> Result<(), Error> {
        self.remove("resume-point.json")
    }

    /// What somebody wants to become of the run, and was not carried out yet. A file that can't be
    /// read counts as a stop: it was written on purpose.
    #[must_use]
    pub fn intention(&self) -> Option<Intention> {
        let object = match self.read("intent.json") {
            Ok(None) => return None,
            Ok(Some(object)) => object,
            Err(_) => Object::default(),
        };
        let named = object.get("intent").and_then(Value::as_str);
        let intent = Intent::ALL.into_iter().find(|intent| Some(intent.name()) == named);
        let reason = object.get("reason").and_then(Value::as_str).unwrap_or("a damaged intent.json");
        Some(Intention { intent: intent.unwrap_or(Intent::Stop), reason: reason.to_owned() })
    }

    /// Records an intent: durable before any signal that carries it out.
    ///
    /// # Errors
    ///
    /// If it can't be written.
    pub fn write_intention(&self, intention: &Intention) -> Result<(), Error> {
        let intent = Value::from(intention.intent.name());
        self.write(
            "intent.json",
            Object::of([("intent", intent), ("reason", Value::from(intention.reason.as_str()))]),
        )
    }

    /// Forgets it: it was carried out.
    ///
    /// # Errors
    ///
    /// If it is there and can't be removed.
    pub fn remove_intention(&self) -> Result<(), Error> {
        self.remove("intent.json")
    }

    /// The run's questions.
    ///
    /// # Errors
    ///
    /// If the file can't be believed.
    pub fn questions(&self) -> Result<Questions, Error> {
        let Some(object) = self.read("questions.json")? else { return Ok(Questions::default()) };
        let question = |value: &Value| {
            let object = value.as_object()?;
            let text = |name: &str| Some(object.get(name)?.as_str()?.to_owned());
            Some(Question {
                id: text("id")?,
                text: text("text")?,
                worker: text("worker")?,
                asked: object.get("asked")?.as_u64()?,
                answer: text("answer"),
                settled: object.get("settled") == Some(&Value::Bool(true)),
            })
        };
        let Some(Value::Array(items)) = object.get("questions") else {
            return Err(self.malformed("questions.json"));
        };
        let list: Option<Vec<_>> = items.iter().map(question).collect();
        list.map(|list| Questions { list }).ok_or_else(|| self.malformed("questions.json"))
    }

    /// Replaces them. Only who holds the lock does.
    ///
    /// # Errors
    ///
    /// If they can't be written.
    pub fn write_questions(&self, questions: &Questions) -> Result<(), Error> {
        let items = questions.list.iter().map(|question| {
            Value::from(Object::of([
                ("id", Value::from(question.id.as_str())),
                ("text", Value::from(question.text.as_str())),
                ("worker", Value::from(question.worker.as_str())),
                ("asked", Value::from(question.asked)),
                ("answer", Value::from(question.answer.as_deref())),
                ("settled", Value::from(question.settled)),
            ]))
        });
        let items = Value::from(items.collect::<Vec<_>>());
        self.write("questions.json", Object::of([("questions", items)]))
    }

    fn malformed(&self, name: &str) -> Error {
        Error::Damaged {
            path: self.file(name),
            reason: String::from("a field is missing or of a wrong type"),
        }
    }
}
