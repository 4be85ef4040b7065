//! `waybill jobs attach`: following a run, and answering it.

use std::io::BufRead;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use super::super::exit::{Exit, Failure};
use super::super::out;
use super::super::recording::Scrubbing;
use super::logs::Log;
use crate::process::Table;
use crate::registry::{Record, Registry};
use crate::run::control;

/// How much of what was printed before is shown.
const LINES: usize = 20;
/// How often the run is looked at.
const LOOK: Duration = Duration::from_millis(100);

pub(super) fn run(registry: &Registry, record: &Record) -> Result<Exit, Failure> {
    let folder = registry.run(&record.run);
    let scrubber = Scrubbing::of(&[]).scrubber()?;
    let lines = typed();
    let mut log = Log::of(&folder);
    log.show(Some(LINES))?;
    let mut asked: Option<String> = None;
    loop {
        let alive = folder.is_locked();
        log.show_more()?;
        let questions = folder.questions()?;
        let open = questions.open().next();
        let id = open.map(|question| question.id.clone());
        if id != asked {
            // What was typed before a question was shown is no answer to it.
            while lines.try_recv().is_ok() {}
            if let Some(question) = open {
                out::say(&format!("{} asks ({}): {}", record.run, question.id, question.text));
            }
            asked = id;
        }
        if let Some(id) = &asked {
            if let Ok(line) = lines.recv_timeout(LOOK) {
                let answer = scrubber.scrub(line.trim()).0.into_owned();
                match control::answer(registry, record, Some(id), &answer) {
                    Ok(_) => asked = None,
                    Err(error) => out::say(&Failure::from(error).message),
                }
            }
        } else {
            std::thread::sleep(LOOK);
        }
        if !alive && asked.is_none() {
            break;
        }
    }
    let look = super::look(registry, &Table::read(), folder.record()?);
    out::say(&format!("run {}: {}", record.run, look.shown.name()));
    Ok(Exit::Done)
}

/// The lines that are typed; none come any more at the end of standard input.
fn typed() -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}
