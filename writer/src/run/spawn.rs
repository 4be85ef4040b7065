//! Starting a run's command, the first time and again, and writing down that it could not be.

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;

use waybill_verifier::json::{self, Object, Value};

use super::book::{MAIN, replay};
use super::ending::Cause;
use super::finish::{End, finish};
use super::launch::{Spec, launch};
use super::start::Io;
use super::supervisor::{Running, Supervisor};
use super::{Error, runtime};
use crate::cli::exit::chain;
use crate::durable;
use crate::registry::record::Ending;

impl Supervisor<'_> {
    /// Starts the command and records that it did; the error has `env`'s code if the command is at fault.
    pub(super) fn spawn(&mut self) -> Result<(), (Option<u8>, String)> {
        let other = |error: Error| (None, chain(&error));
        let mut variables = vec![
            ("WAYBILL_RUN_ID", OsString::from(self.record.run.as_str())),
            ("WAYBILL_SOCKET", self.runtime.join("s").into_os_string()),
        ];
        if self.resumes {
            let path = self.write_state().map_err(other)?;
            variables.push(("WAYBILL_RESUME", OsString::from("1")));
            variables.push(("WAYBILL_STATE", path.into_os_string()));
        }
        let waiting = launch(&Spec {
            command: &self.command,
            folder: &self.record.folder,
            variables,
            stdin: self.io == Io::Foreground,
            control: &self.runtime.join("x"),
        })
        .map_err(other)?;
        self.record.child = Some(waiting.process.clone());
        let recorded = self.folder.write_record(&self.record).map_err(|error| other(error.into()));
        if let Err(error) = recorded {
            waiting.abandon();
            return Err(error);
        }
        if let Some(intention) = self.folder.intention() {
            waiting.abandon();
            return Err((None, format!("somebody ended it meanwhile ({})", intention.reason)));
        }
        let (child, process, pidfd, streams) =
            waiting.go().map_err(|refused| (Some(refused.code), refused.reason))?;
        let kind = if self.resumes { "task.resumed" } else { "task.started" };
        let attached = self.io == Io::Foreground;
        let stdout: Option<Box<dyn Write + Send>> =
            if attached { Some(Box::new(std::io::stdout())) } else { None };
        let stderr: Option<Box<dyn Write + Send>> =
            if attached { Some(Box::new(std::io::stderr())) } else { None };
        let readers =
            vec![self.output.follow(streams.stdout, stdout), self.output.follow(streams.stderr, stderr)];
        self.running = Some(Running { child, process, pidfd, readers, exited: false });
        let started = self.book.transition(kind, MAIN, Object::default());
        let started = started.and_then(|_| Ok(self.folder.write_resume_point(&self.book.point())?));
        if let Err(error) = started {
            // What can't be recorded must not run on unrecorded.
            let problem = chain(&error);
            self.kill_unrecorded();
            return Err((None, problem));
        }
        self.resumes = true;
        Ok(())
    }

    /// The ledger's state, for a command that goes on.
    fn write_state(&self) -> Result<PathBuf, Error> {
        let state = replay(&self.project, &self.record.run)?.unwrap_or_default();
        let mut text = json::ascii_indented(&state.document(self.record.run.as_str()));
        text.push(b'\n');
        let path = self.runtime.join("state.json");
        durable::replace_lightly(&path, &text)?;
        Ok(path)
    }

    /// Writes down that the command could not be started.
    pub(super) fn fail_to_start(&mut self, code: Option<u8>, reason: &str) {
        self.record.child = None;
        let intention = self.folder.intention();
        let cause = intention.map_or(Cause::Itself, |intention| Cause::Intent(intention.intent));
        let reason = self.scrubber.scrub(reason).0.into_owned();
        drop(self.book.event("run.not_started", &Object::of([("reason", Value::from(reason))])));
        let end = End { ending: Ending::Exited(i32::from(code.unwrap_or(125))), cause, forced: false };
        let (_, problems) =
            finish(&self.folder, &mut self.record, Ok(&mut self.book), &mut self.questions, &end);
        self.tell_problems(&problems);
        runtime::remove(&self.runtime);
    }

    pub(super) fn tell_problems(&self, problems: &[Error]) {
        for problem in problems {
            (self.say)(&chain(problem));
        }
    }
}
