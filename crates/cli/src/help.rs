//! Help of the program: commands in groups.

use clap::CommandFactory as _;

use crate::{Cli, style};

/// Groups of commands with descriptions, each below its heading, and the text at the end.
const TEXT: &str = include_str!("help.txt");

/// One line per command.
pub fn full() -> String {
    let mut text = format!("{}\n\n{}\n", about(), usage());
    for (heading, rows) in groups() {
        let here: Vec<&str> = rows.lines().filter(|row| is_here(name(row))).collect();
        if !here.is_empty() {
            text += &format!("\n{}\n", style::heading(heading));
            here.iter().for_each(|row| text += &format!("{row}\n"));
        }
    }
    text + &absent() + "\n" + TEXT.rsplit("\n\n").next().unwrap_or_default()
}

/// The headings with their rows.
fn groups() -> impl Iterator<Item = (&'static str, &'static str)> {
    TEXT.split("\n\n")
        .filter_map(|part| part.split_once('\n').filter(|(_, rows)| rows.starts_with("  ")))
}

/// The command of a row.
fn name(row: &str) -> &str {
    row.split_whitespace().next().unwrap_or_default()
}

fn about() -> String {
    Cli::command().get_about().map(ToString::to_string).unwrap_or_default()
}

fn usage() -> String {
    format!("{} lasthop [OPTIONS] COMMAND [ARGUMENTS]", style::heading("Usage:"))
}

fn is_here(name: &str) -> bool {
    Cli::command().find_subcommand(name).is_some()
}

/// Commands that this build leaves out, by feature.
fn absent() -> String {
    let mut text = String::new();
    for (feature, commands) in crate::features::ABSENT.iter().filter(|(_, c)| !c.is_empty()) {
        text += &format!("\nNot in this build: {} (feature `{feature}`)\n", commands.join(", "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn every_command_is_in_one_group() {
        let names = || groups().flat_map(|(_, rows)| rows.lines().map(name));
        let mut listed: Vec<&str> = names().filter(|name| is_here(name)).collect();
        let command = Cli::command();
        let mut there: Vec<&str> = command
            .get_subcommands()
            .filter(|inner| !inner.is_hide_set())
            .map(clap::Command::get_name)
            .collect();
        listed.sort_unstable();
        there.sort_unstable();
        assert_eq!(listed, there);
        for name in names().filter(|name| !is_here(name)) {
            assert!(crate::features::absent(name).is_some(), "{name}");
        }
    }

    #[test]
    fn the_help_fits_into_sixty_lines_of_eighty_columns() {
        let text = full();
        assert!(text.lines().count() < 60, "{} lines:\n{text}", text.lines().count());
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
}
