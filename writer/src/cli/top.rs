//! `waybill top`: the runs of this machine, live.

mod gather;
mod screen;
mod text;

use std::io::IsTerminal;
use std::time::Duration;

use super::Global;
use super::exit::{Exit, Failure};
use super::out::{self, Form};
use crate::run::policy::parse_time;
use gather::Gather;

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(super) struct Args {
    /// Print it once, and end
    #[arg(long)]
    once: bool,
    /// Archived runs, too
    #[arg(long)]
    all: bool,
    /// How often it is looked
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_time)]
    every: Duration,
}

const HELP: &str = "\
Keys: up and down choose a run; a attaches to it, s stops it (asks first), r shows its latest receipt, q
leaves. Without a terminal, and with --json, it is printed once.

Exit codes: 0, 74 I/O";

pub(super) fn run(global: &Global, args: &Args) -> Result<Exit, Failure> {
    let registry = global.registry()?;
    let mut gather = Gather::new(registry, args.all);
    let live = !args.once && global.form() == Form::Text && std::io::stdout().is_terminal();
    if live {
        return screen::run(global, gather, args.every.max(Duration::from_millis(100)));
    }
    let view = gather.look()?;
    match global.form() {
        Form::Quiet => {}
        Form::Json => super::put_document(view.document())?,
        Form::Text => super::put(text::of(&view, out::width()).as_bytes())?,
    }
    Ok(Exit::Done)
}
