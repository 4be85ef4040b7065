//! `waybill completions`: a script for a shell.

use clap::{CommandFactory, ValueEnum};

use super::exit::{Exit, Failure};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The shell
    shell: Shell,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Shell {
    Bash,
    Elvish,
    Fish,
    Zsh,
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    let shell = match args.shell {
        Shell::Bash => clap_complete::Shell::Bash,
        Shell::Elvish => clap_complete::Shell::Elvish,
        Shell::Fish => clap_complete::Shell::Fish,
        Shell::Zsh => clap_complete::Shell::Zsh,
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut super::Cli::command(), "waybill", &mut script);
    super::put(&script)?;
    Ok(Exit::Done)
}
