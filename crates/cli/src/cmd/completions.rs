//! `lasthop generate completions`: a completion script for a shell.

use clap::CommandFactory as _;
use clap::builder::PossibleValuesParser;
use clap_complete::Shell;

use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::{Cli, output};

/// Print a completion script for a shell
#[derive(clap::Args, Debug)]
pub struct CompletionsArgs {
    /// Which shell
    shell: Shell,
}

/// Runs the command.
pub fn run(args: &CompletionsArgs) -> Result<Outcome, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(
        args.shell,
        &mut with_names(visible(&Cli::command())),
        "lasthop",
        &mut script,
    );
    output::exact(&with_files(args.shell, &String::from_utf8_lossy(&script)))?;
    Ok(Outcome::Done)
}

/// The command without internal subcommands.
fn visible(command: &clap::Command) -> clap::Command {
    let inner = command.get_subcommands().filter(|inner| !inner.is_hide_set()).map(visible);
    clap::Command::new(command.get_name().to_owned())
        .about(command.get_about().cloned().unwrap_or_default())
        .args(command.get_arguments().cloned())
        .subcommands(inner)
}

fn scenarios() -> Vec<String> {
    lasthop_scenario::examples().iter().map(|example| example.name.to_owned()).collect()
}

/// The names to complete for an argument that the help calls `value`, such as `CLAIM`.
fn names(value: &str) -> Option<Vec<String>> {
    let claims = || lasthop_papers::all_claims().map(|claim| claim.id.to_owned());
    let papers = || lasthop_papers::works().map(|work| work.key.to_owned());
    Some(match value {
        "FILE|NAME" | "SCENARIO" => scenarios(),
        "SCHEME" | "SCHEMES" => {
            let all = (value == "SCHEMES").then(|| "all".to_owned());
            all.into_iter()
                .chain(lasthop_scenario::schemes().into_iter().map(|scheme| scheme.name))
                .collect()
        }
        "PAPER|CLAIM" => papers().chain(claims()).collect(),
        "CLAIM" => claims().collect(),
        _ => return None,
    })
}

/// The commands, with the names of scenarios, schemes and claims wherever one may be named.
fn with_names(command: clap::Command) -> clap::Command {
    let known = |arg: &clap::Arg| names(arg.get_value_names()?.first()?.as_str());
    command.mut_subcommands(|command| {
        command.mut_args(|arg| match known(&arg) {
            Some(names) => arg.value_parser(PossibleValuesParser::new(names)),
            None => arg,
        })
    })
}

/// Bash and fish complete files anyway; zsh needs an instruction.
fn with_files(shell: Shell, script: &str) -> String {
    if shell != Shell::Zsh {
        return script.to_owned();
    }
    let names = scenarios().join(" ");
    let both = format!("_alternative \"scenarios:scenario:({names})\" \"files:file:_files\"");
    script.replace(&format!(":({names})'"), &format!(":{both}'"))
}
