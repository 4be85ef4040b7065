//! The live view.

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};

use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Block, Clear, Paragraph, Row as TableRow, Table, TableState};

use super::super::Global;
use super::super::exit::{Exit, Failure};
use super::gather::{Gather, View};
use super::text;
use crate::registry::{Intent, Intention};
use crate::run::control;

/// What the screen shows besides the runs.
enum Over {
    Nothing,
    /// Whether this run is to be stopped.
    Stop(String),
    /// Lines of a receipt.
    Receipt(Vec<String>),
}

struct Screen {
    view: View,
    chosen: TableState,
    over: Over,
    /// What was done last.
    said: String,
}

/// What a key leads to.
enum Next {
    Stay,
    Leave,
    Attach(String),
    Stop(String),
}

pub(super) fn run(global: &Global, mut gather: Gather, every: Duration) -> Result<Exit, Failure> {
    let mut screen = Screen {
        view: gather.look()?,
        chosen: TableState::default().with_selected(0),
        over: Over::Nothing,
        said: String::new(),
    };
    let mut terminal = ratatui::try_init().map_err(|error| Failure::io(&error))?;
    let done = watch(&mut terminal, &mut screen, &mut gather, every);
    ratatui::restore();
    match done? {
        Next::Attach(run) => {
            let mut command = Command::new("/proc/self/exe");
            if let Some(folder) = &global.data_dir {
                command.arg("--data-dir").arg(folder);
            }
            let error = command.args(["jobs", "attach"]).arg(run).exec();
            Err(Failure::io(&error))
        }
        _ => Ok(Exit::Done),
    }
}

fn watch(
    terminal: &mut ratatui::DefaultTerminal,
    screen: &mut Screen,
    gather: &mut Gather,
    every: Duration,
) -> Result<Next, Failure> {
    let mut looked = Instant::now();
    let io = |error: std::io::Error| Failure::io(&error);
    loop {
        terminal.draw(|frame| screen.draw(frame)).map_err(io)?;
        let left = every.saturating_sub(looked.elapsed());
        if event::poll(left).map_err(io)? {
            if let Event::Key(key) = event::read().map_err(io)? {
                match screen.key(key) {
                    Next::Stay => {}
                    Next::Stop(run) => {
                        screen.said = stop(gather, &run);
                        screen.view = gather.look()?;
                    }
                    next => return Ok(next),
                }
            }
        } else {
            screen.view = gather.look()?;
            looked = Instant::now();
        }
    }
}

/// Stops a run; says how that went. The screen stands still for the grace at most.
fn stop(gather: &Gather, run: &str) -> String {
    let records = gather.registry.records().unwrap_or_default();
    let Some(record) = records.into_iter().find(|record| record.run.as_str() == run) else {
        return format!("run {run} is gone");
    };
    let intention = Intention { intent: Intent::Stop, reason: String::from("top") };
    match control::end(&gather.registry, &record, &intention) {
        Ok(ended) if ended.forced => format!("run {run}: {} (forced)", ended.status.name()),
        Ok(ended) => format!("run {run}: {}", ended.status.name()),
        Err(error) => error.to_string(),
    }
}

impl Screen {
    fn key(&mut self, key: KeyEvent) -> Next {
        if key.kind == KeyEventKind::Release {
            return Next::Stay;
        }
        let ctrl_c = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
        if ctrl_c {
            return Next::Leave;
        }
        match std::mem::replace(&mut self.over, Over::Nothing) {
            Over::Stop(run) if key.code == KeyCode::Char('y') => return Next::Stop(run),
            Over::Stop(_) | Over::Receipt(_) => return Next::Stay,
            Over::Nothing => {}
        }
        let row = self.chosen.selected().and_then(|at| self.view.rows.get(at));
        let run = row.map(|row| row.look.record.run.to_string());
        match (key.code, run) {
            (KeyCode::Char('q') | KeyCode::Esc, _) => return Next::Leave,
            (KeyCode::Down | KeyCode::Char('j'), _) => {
                let next = self.chosen.selected().map_or(0, |at| at + 1);
                self.chosen.select(Some(if next < self.view.rows.len() { next } else { 0 }));
            }
            (KeyCode::Up | KeyCode::Char('k'), _) => {
                let last = self.view.rows.len().saturating_sub(1);
                self.chosen.select(self.chosen.selected().map(|at| at.checked_sub(1).unwrap_or(last)));
            }
            (KeyCode::Char('a'), Some(run)) => return Next::Attach(run),
            (KeyCode::Char('s'), Some(run)) => self.over = Over::Stop(run),
            (KeyCode::Char('r'), Some(_)) => match row.and_then(|row| row.stalls.first()) {
                Some(stall) => self.over = Over::Receipt(text::projection(stall)),
                None => self.said = String::from("this run has no receipt"),
            },
            _ => {}
        }
        Next::Stay
    }

    fn draw(&mut self, frame: &mut Frame<'_>) {
        let chosen = self.chosen.selected().and_then(|at| self.view.rows.get(at));
        let details = chosen.map(|row| text::details(row, 20)).unwrap_or_default();
        let high =
            u16::try_from(details.len()).unwrap_or(u16::MAX).saturating_add(2).min(frame.area().height / 2);
        let [runs, below, foot] =
            Layout::vertical([Constraint::Min(4), Constraint::Length(high), Constraint::Length(1)])
                .areas(frame.area());
        let cells: Vec<_> = self.view.rows.iter().map(text::cells).collect();
        let wide = |column: usize| {
            let widths = cells.iter().map(|cells| cells[column].chars().count());
            let wide = widths.chain([text::HEAD[column].len()]).max().unwrap_or(0);
            Constraint::Length(u16::try_from(wide.min(40)).unwrap_or(40))
        };
        let table = Table::new(cells.iter().map(|cells| TableRow::new(cells.clone())), (0..9).map(wide))
            .header(TableRow::new(text::HEAD).style(Style::new().add_modifier(Modifier::BOLD)))
            .column_spacing(2)
            .highlight_symbol("> ")
            .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED))
            .block(Block::bordered().title(format!(" waybill top: {} runs ", cells.len())));
        frame.render_stateful_widget(table, runs, &mut self.chosen);
        let title = chosen_title(&self.view, &self.chosen);
        let lines: Vec<Line<'_>> = details.into_iter().map(Line::from).collect();
        frame.render_widget(Paragraph::new(lines).block(Block::bordered().title(title)), below);
        let damaged = match self.view.damaged.len() {
            0 => String::new(),
            count => format!("  {count} damaged records ('waybill jobs list')"),
        };
        let keys = "up/down choose  a attach  s stop  r receipt  q quit";
        frame.render_widget(Paragraph::new(format!("{keys}  {}{damaged}", self.said)), foot);
        self.draw_over(frame);
    }

    fn draw_over(&self, frame: &mut Frame<'_>) {
        let (title, lines) = match &self.over {
            Over::Nothing => return,
            Over::Stop(run) => {
                (" stop ", vec![format!("stop run {run}? y stops it, any other key does not")])
            }
            Over::Receipt(lines) => (" receipt ", lines.clone()),
        };
        let longest = lines.iter().map(|line| line.chars().count()).max().unwrap_or(0);
        let size = |count: usize| u16::try_from(count + 2).unwrap_or(u16::MAX);
        let area = frame.area();
        let area = area.centered(
            Constraint::Length(size(longest).min(area.width)),
            Constraint::Length(size(lines.len()).min(area.height)),
        );
        frame.render_widget(Clear, area);
        let text: Text<'_> = lines.into_iter().map(Line::from).collect();
        frame.render_widget(Paragraph::new(text).block(Block::bordered().title(title)), area);
    }
}

fn chosen_title(view: &View, chosen: &TableState) -> String {
    let row = chosen.selected().and_then(|at| view.rows.get(at));
    row.map_or_else(String::new, |row| format!(" {} ", row.look.record.run))
}
