//! Help of the program: commands in groups.

use clap::CommandFactory as _;

use crate::{Cli, style};

/// A heading, and its commands with descriptions.
type Group = (&'static str, &'static [(&'static str, &'static str)]);

const GROUPS: &[Group] = &[
    (
        "Simulate a link, and choose what helps",
        &[
            ("run", "a scenario: each variant, each seed, with intervals"),
            ("compare", "schemes on one scenario, ranked"),
            ("advise", "what would help on a link that you describe"),
            ("list", "scenarios, schemes, systems, presets, hardware, claims"),
            ("explore", "every combination of faults of the first packets"),
            ("sweep", "runs by the million, shared among machines"),
            ("report", "the page of results, or of several in one plot"),
            ("plot", "one figure of results, as SVG, PDF or PNG"),
            ("lab", "the laboratory in a browser, with lessons"),
        ],
    ),
    (
        "Look into captures and traces",
        &[
            ("analyze", "what happened to TCP in a capture: losses, stalls, why"),
            ("trace", "the capacity of a link over time: show, make, convert"),
        ],
    ),
    (
        "Try real programs and kernels on this machine",
        &[
            ("shell", "any program behind a link, without root"),
            ("testbed", "hosts in network namespaces, without root"),
            ("replay", "the same losses for the kernel's TCP and for ours"),
            ("packetdrill", "packetdrill scripts, on ours and on the kernel"),
            ("send", "transfers, measured and traced"),
            ("discard", "the receiver of such transfers"),
        ],
    ),
    (
        "Help a real link",
        &[
            ("station", "the base station between two interfaces of a router"),
            ("link", "a tunnel that repairs what the path loses"),
            ("ctl", "query, change and watch a running one"),
        ],
    ),
    (
        "Energy",
        &[
            ("energy", "what a transfer costs a battery, and which TCP saves most"),
            ("battery", "how long it lasts in a device that reports over a radio"),
            ("compress", "whether compression saves energy"),
        ],
    ),
    (
        "Published results",
        &[
            ("reproduce", "results of published papers: does each hold?"),
            ("explain", "which of the values that a paper leaves open decide"),
        ],
    ),
    (
        "This program",
        &[
            ("doctor", "what this machine can run"),
            ("generate", "schemas, completion scripts, manual pages"),
        ],
    ),
];

/// Options of all commands.
const OPTIONS: &str = "\
Options: --json  --color WHEN  -q, --quiet  -v, --verbose  -h, --help
";

/// One line per command.
pub fn full() -> String {
    let mut text = format!("{}\n\n{}\n", about(), usage());
    for (heading, commands) in GROUPS {
        let here: Vec<_> = commands.iter().filter(|(name, _)| is_here(name)).collect();
        if !here.is_empty() {
            text += &format!("\n{}\n", style::heading(heading));
        }
        for (name, summary) in here {
            text += &format!("  {name:<12} {summary}\n");
        }
    }
    text += &absent();
    text + "\n" + OPTIONS + EXAMPLES
}

const EXAMPLES: &str = "\
Version: -V. Exit codes: 0 done, 1 the answer is no, 2 bad input, 70 a fault of
lasthop, 130 interrupted (finished work is stored). With --json errors are
JSON on stderr.
";

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
        let names =
            || GROUPS.iter().flat_map(|(_, commands)| commands.iter().map(|(name, _)| *name));
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
