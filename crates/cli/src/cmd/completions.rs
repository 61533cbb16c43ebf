//! `lasthop completions`: a completion script for a shell.

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::failure::Failure;
use crate::{Cli, Outcome, output};

const EXAMPLES: &str = "\
Examples:
  lasthop completions bash > ~/.local/share/bash-completion/completions/lasthop
  lasthop completions zsh > ~/.zfunc/_lasthop
  lasthop completions fish > ~/.config/fish/completions/lasthop.fish";

/// Print a completion script for a shell
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Which shell
    shell: Shell,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<Outcome, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "lasthop", &mut script);
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(Outcome::Done)
}
