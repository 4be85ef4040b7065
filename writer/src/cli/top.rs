//! `waybill top`.

use super::Global;
use super::exit::{Exit, Failure};

#[derive(Debug, clap::Args)]
pub(super) struct Args {}

pub(super) fn run(_: &Global, _: &Args) -> Result<Exit, Failure> {
    Ok(Exit::Done)
}
