//! `lasthop generate completions`: a completion script for a shell.

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::{Cli, output};

const EXAMPLES: &str = "\
Examples:
  lasthop generate completions bash > ~/.local/share/bash-completion/completions/lasthop
  lasthop generate completions zsh > ~/.zfunc/_lasthop
  lasthop generate completions fish > ~/.config/fish/completions/lasthop.fish";

/// Print a completion script for a shell
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct CompletionsArgs {
    /// Which shell
    shell: Shell,
}

/// Runs the command.
pub fn run(args: &CompletionsArgs) -> Result<Outcome, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(
        args.shell,
        &mut with_scenarios(Cli::command()),
        "lasthop",
        &mut script,
    );
    output::exact(&with_files(args.shell, &String::from_utf8_lossy(&script)))?;
    Ok(Outcome::Done)
}

fn names() -> Vec<&'static str> {
    lasthop_scenario::examples().iter().map(|example| example.name).collect()
}

/// The commands, with the built-in scenarios wherever one may be named.
fn with_scenarios(command: clap::Command) -> clap::Command {
    let takes_one = |arg: &clap::Arg| {
        let names = arg.get_value_names().unwrap_or_default();
        names.iter().any(|name| name.as_str() == "FILE|NAME")
    };
    command.mut_subcommands(|command| {
        command.mut_args(|arg| if takes_one(&arg) { arg.value_parser(names()) } else { arg })
    })
}

/// Bash and fish complete files anyway; zsh needs an instruction.
fn with_files(shell: Shell, script: &str) -> String {
    if shell != Shell::Zsh {
        return script.to_owned();
    }
    let names = names().join(" ");
    let both = format!("_alternative \"scenarios:scenario:({names})\" \"files:file:_files\"");
    script.replace(&format!(":({names})'"), &format!(":{both}'"))
}
