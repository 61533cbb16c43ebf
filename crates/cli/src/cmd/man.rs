//! `lasthop generate man`: manual pages, generated from the definition of the arguments.

use std::io;
use std::path::PathBuf;

use clap::{Command, CommandFactory as _};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::{Cli, output, usage};

/// Write the manual pages: one of the program and one of each command
#[derive(clap::Args, Debug)]
pub struct ManArgs {
    /// Directory of the pages; made if it is not there
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

/// Runs the command.
pub fn run(args: &ManArgs) -> Result<Outcome, Failure> {
    // `man run` would silently make a directory of this name.
    if let Some(name) =
        args.dir.to_str().filter(|name| Cli::command().find_subcommand(name).is_some())
    {
        return Err(Failure::input(
            format!("`{name}` is a command, and `lasthop generate man` needs a directory"),
            format!(
                "`lasthop help {name}` explains the command; `lasthop generate man ./{name}` writes the pages of all commands \
                 to a directory of this name"
            ),
        ));
    }
    output::prepare(&args.dir)?;
    for command in commands() {
        let man =
            Man::new(command.clone()).source(format!("lasthop {}", lasthop_sim::version::VERSION));
        let mut page = Vec::new();
        render(&man, &command, &mut page).map_err(Failure::Output)?;
        output::write(&args.dir.join(man.get_filename()), &page)?;
    }
    Ok(Outcome::Done)
}

/// Writes a page. Examples keep their lines.
fn render(man: &Man, command: &Command, page: &mut Vec<u8>) -> io::Result<()> {
    man.render_title(page)?;
    man.render_name_section(page)?;
    man.render_synopsis_section(page)?;
    man.render_description_section(page)?;
    man.render_options_section(page)?;
    if command.get_subcommands().any(|inner| !inner.is_hide_set()) {
        man.render_subcommands_section(page)?;
    }
    let Some(examples) = command.get_after_help() else { return Ok(()) };
    let mut roff = Roff::new();
    roff.control("SH", ["EXAMPLES"]);
    let mut filled = true;
    // A manual page is read where a package is installed.
    let examples = output::with_pages(&examples.to_string(), "/usr/share/doc/lasthop");
    for line in examples.lines().filter(|line| *line != "Examples:") {
        if filled == line.starts_with(' ') {
            filled = !filled;
            roff.control(if filled { "fi" } else { "nf" }, []);
        }
        if line.is_empty() {
            roff.control("PP", [])
        } else {
            roff.text([roman(line)])
        };
    }
    roff.to_writer(page)
}

/// The program and all visible commands, each before its subcommands.
pub fn commands() -> Vec<Command> {
    fn add(command: &Command, all: &mut Vec<Command>) {
        all.push(command.clone());
        for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
            add(inner, all);
        }
    }
    let mut program = usage::command().disable_help_subcommand(true);
    program.build();
    let mut all = Vec::new();
    add(&program, &mut all);
    all
}
