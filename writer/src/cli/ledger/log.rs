//! `waybill ledger log`: the entries for people, a line each.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use jiff::{Timestamp, tz::TimeZone};
use waybill_verifier::chain::{FaultKind, Place, Walk};
use waybill_verifier::id::RunId;
use waybill_verifier::ledger::{LedgerRows, Row};

use super::super::Global;
use super::super::exit::{Exit, Failure};
use super::super::out::{self, Form, cut, escape};
use crate::durable;
use crate::lock::Lock;
use crate::log as ledger_log;

pub(super) fn show(global: &Global, run: &RunId, follow: bool, last: Option<usize>) -> Result<Exit, Failure> {
    let project = global.project()?;
    durable::refuse_links(project.root(), &project.ledger_folder(run))?;
    let path = project.ledger(run);
    let open = || {
        durable::open_if_there(&path)?.ok_or_else(|| Failure::from(ledger_log::Error::Absent(run.clone())))
    };
    let unreadable = |source| durable::Error::new("can't read", &path, source);
    let line = Lines { form: global.form(), width: out::width(), now: Timestamp::now() };
    let mut held: VecDeque<String> = VecDeque::new();

    let mut file = open()?;
    let mut read = 0;
    let mut first_look = true;
    let ready = RefCell::new(Vec::new());
    let visit = |row: &Row<'_>, _: Place| ready.borrow_mut().push(line.of(row));
    let mut walk = Walk::new(LedgerRows::new(Some(run), visit));
    loop {
        let grown = push_new(&mut walk, &file, &mut read).map_err(unreadable)?;
        let lines = ready.take();
        // Only the first look is cut to the last entries; what comes later is all shown.
        match last.filter(|_| first_look) {
            Some(count) => {
                held.extend(lines);
                held.drain(..held.len().saturating_sub(count));
                if grown.caught_up {
                    super::super::put(held.drain(..).collect::<String>().as_bytes())?;
                }
            }
            None => super::super::put(lines.concat().as_bytes())?,
        }
        if !grown.caught_up {
            continue;
        }
        first_look = false;
        if !follow {
            break;
        }
        std::thread::sleep(Duration::from_millis(200));
        // A repair replaces the file: go on with the new one from where this one was.
        let there = open()?;
        if there.metadata().map_err(unreadable)?.ino() != file.metadata().map_err(unreadable)?.ino() {
            out::say("the ledger was repaired: it is read again from its start");
            file = there;
            read = 0;
            walk = Walk::new(LedgerRows::new(Some(run), visit));
        }
    }
    let outcome = walk.finish(Lock::last_line(&project.ledger_lock(run)));
    super::super::put(ready.take().concat().as_bytes())?;
    match outcome.faults.first() {
        None => Ok(Exit::Done),
        Some(fault) => {
            let advice = match fault.kind {
                FaultKind::TornTail => "the next append sets the torn tail aside",
                _ => "rows behind it are shown as far as they hold",
            };
            Err(Failure { exit: Exit::Failed, message: format!("{fault}; {advice}") })
        }
    }
}

struct Grown {
    caught_up: bool,
}

fn push_new<F: FnMut(&Row<'_>, Place)>(
    walk: &mut Walk<LedgerRows<F>>,
    file: &File,
    read: &mut u64,
) -> std::io::Result<Grown> {
    let mut piece = vec![0; 256 << 10];
    let count = file.read_at(&mut piece, *read)?;
    walk.push(&piece[..count]);
    *read += u64::try_from(count).unwrap_or(0);
    Ok(Grown { caught_up: count < piece.len() })
}

struct Lines {
    form: Form,
    width: usize,
    now: Timestamp,
}

impl Lines {
    fn of(&self, row: &Row<'_>) -> String {
        match self.form {
            Form::Json => format!("{}\n", row.text),
            Form::Quiet => String::new(),
            Form::Text => self.text(row),
        }
    }

    fn text(&self, row: &Row<'_>) -> String {
        let (time, age) = match row.ts.parse::<f64>().ok().and_then(timestamp) {
            Some(at) => (clock_time(at), self.age(at)),
            None => (String::from("?"), String::new()),
        };
        let task = if row.task_id.is_empty() { "-" } else { row.task_id };
        let redacted = match row.redactions {
            "0" => String::new(),
            count => format!(" [{count} redacted]"),
        };
        let payload = if row.payload == "{}" { "" } else { row.payload };
        // A narrow terminal gets the age alone, and shorter names.
        let time = if self.width < 90 { String::new() } else { format!("{time:<14}  ") };
        let wide = (self.width / 6).clamp(6, 16);
        let task = cut(&escape(task), wide.max(self.width.saturating_sub(60)));
        let lead = format!("{:>6}  {time}{age:>5}  {task:<wide$}  ", row.seq);
        let room = self.width.saturating_sub(lead.chars().count());
        let kind = cut(row.kind, room);
        let style = kind_style(row.kind);
        let rest = format!("{redacted}  {}", escape(payload));
        let rest = cut(rest.trim_end(), room.saturating_sub(kind.len().max(16)));
        let pad = " ".repeat(if rest.is_empty() { 0 } else { 16usize.saturating_sub(kind.len()) });
        format!("{lead}{style}{kind}{style:#}{pad}{rest}\n")
    }

    fn age(&self, at: Timestamp) -> String {
        let seconds = self.now.as_second() - at.as_second();
        match seconds {
            ..0 => String::from("ahead"),
            0..60 => format!("{seconds}s"),
            60..3600 => format!("{}m", seconds / 60),
            3600..172_800 => format!("{}h", seconds / 3600),
            _ => format!("{}d", seconds / 86_400),
        }
    }
}

pub(super) fn timestamp(seconds: f64) -> Option<Timestamp> {
    let duration = Duration::try_from_secs_f64(seconds).ok()?;
    Timestamp::from_duration(duration.try_into().ok()?).ok()
}

/// A time of day, for people here.
pub(super) fn clock_time(at: Timestamp) -> String {
    at.to_zoned_datetime(TimeZone::system()).strftime("%m-%d %H:%M:%S").to_string()
}

fn kind_style(kind: &str) -> Style {
    let colour = match kind {
        "task.completed" => AnsiColor::Green,
        "task.failed" | "task.abandoned" => AnsiColor::Red,
        "task.started" | "task.resumed" => AnsiColor::Cyan,
        "task.suspended" => AnsiColor::Yellow,
        kind if kind.starts_with("run.") => AnsiColor::Magenta,
        _ => return Style::new(),
    };
    Style::new().fg_color(Some(colour.into()))
}
