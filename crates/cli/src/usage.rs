//! The command line: parsed by clap, with separate error messages.

use std::ffi::OsString;
use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ColorChoice, Command, CommandFactory as _, FromArgMatches as _};
use lasthop_scenario::synonyms::{Synonyms, meaning};
use lasthop_scenario::{example, nearest_example};

use crate::failure::Failure;
use crate::style::Color;
use crate::{Cli, features, help};

/// Synonyms of commands.
const COMMANDS: &Synonyms = &[
    ("run", &["simulate", "sim", "start", "execute", "simulation"]),
    ("compare", &["rank", "diff", "versus", "benchmark"]),
    ("advise", &["recommend", "suggest", "advice"]),
    ("analyze", &["analyse", "pcap", "inspect", "diagnose", "tcptrace", "capture"]),
    ("shell", &["emulate", "netem", "mm-link", "exec", "shape", "wrap"]),
    ("list", &["ls", "show", "scenarios", "presets", "systems"]),
    ("doctor", &["check", "selftest", "self-test", "probe"]),
    ("report", &["html", "page"]),
    ("plot", &["figure", "chart", "graph", "draw", "picture"]),
    ("lab", &["web", "gui", "ui", "browser", "serve"]),
    ("station", &["router", "daemon", "base-station", "pep"]),
    ("link", &["tunnel", "vpn"]),
    ("ctl", &["control", "status", "set", "get", "watch"]),
    ("energy", &["power"]),
    ("battery", &["lifetime"]),
    ("reproduce", &["claims", "papers"]),
    ("completions", &["completion"]),
    ("man", &["manual", "manpage"]),
    ("send", &["upload", "iperf", "iperf3"]),
    ("load", &["bufferbloat", "flent", "networkquality", "speedtest"]),
    ("discard", &["sink", "receive", "receiver"]),
    ("testbed", &["namespaces", "netns", "hosts"]),
    ("trace", &["traces", "mahimahi"]),
    ("sweep", &["cluster", "batch"]),
];

/// Synonyms of options.
const OPTIONS: &Synonyms = &[
    ("rate", &["bandwidth", "bw", "throughput", "speed", "capacity", "bitrate"]),
    ("delay", &["latency", "lag", "rtt", "ping", "propagation", "round-trip"]),
    ("loss", &["packet-loss", "loss-rate", "drop", "drops", "plr", "error-rate"]),
    ("queue", &["buffer", "queue-size", "limit", "uplink-queue", "downlink-queue", "backlog"]),
    ("discipline", &["qdisc", "aqm", "scheduler"]),
    ("jobs", &["threads", "workers", "parallel", "cores", "cpus", "processes"]),
    ("seeds", &["runs", "repetitions", "iterations", "repeat", "samples", "replications"]),
    ("seed", &["random-seed", "rng-seed", "seeds"]),
    ("output", &["out", "outdir", "output-dir", "dir", "directory", "save", "write"]),
    ("set", &["param", "override", "define", "option", "key"]),
    ("vary", &["sweep", "matrix", "grid"]),
    ("json", &["format", "machine-readable"]),
    ("quiet", &["silent", "no-progress"]),
    ("color", &["colour", "colors", "colours", "no-color", "no-colour"]),
    ("dry-run", &["plan", "simulate", "noop", "check"]),
    ("sender", &["tcp", "cc", "congestion-control", "congestion"]),
    ("interface", &["iface", "device", "dev", "nic"]),
    ("for", &["duration", "time"]),
    ("duration", &["time", "length"]),
    ("serve", &["server"]),
    ("rate-back", &["upload-rate", "rate-up", "uplink-rate"]),
    ("scenario", &["file"]),
];

/// Options that determine the form of errors, read before arguments are parsed.
#[derive(Clone, Copy, Debug)]
pub struct Early {
    /// Errors as JSON.
    pub json: bool,
    /// When to use colours.
    pub color: Color,
}

impl Early {
    /// From the words of the command line, which may be wrong.
    pub fn of(words: &[OsString]) -> Early {
        let own: Vec<&str> = words
            .iter()
            .filter_map(|word| word.to_str())
            .take_while(|word| *word != "--")
            .collect();
        let color = own.iter().enumerate().rev().find_map(|(i, word)| match *word {
            "--color" => own.get(i + 1).copied().and_then(Color::of),
            word => word.strip_prefix("--color=").and_then(Color::of),
        });
        Early { json: own.contains(&"--json"), color: color.unwrap_or_default() }
    }
}

/// The result of parsing the arguments.
#[derive(Debug)]
pub enum Parsed {
    /// A command.
    Command(Box<Cli>),
    /// Help or a version, for stdout.
    Shown(String),
    /// A version, for a program.
    Version,
}

/// Parses the words of the command line, the program's name first.
pub fn parse(words: &[OsString], early: Early) -> Result<Parsed, Failure> {
    let mut command = command().color(match early.color {
        Color::Auto => ColorChoice::Auto,
        Color::Always => ColorChoice::Always,
        Color::Never => ColorChoice::Never,
    });
    let result = command.try_get_matches_from_mut(words);
    match result.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => Ok(Parsed::Command(Box::new(cli))),
        Err(error) if error.kind() == ErrorKind::DisplayHelp => {
            let long = words.iter().any(|word| word == "--help" || word == "help");
            Ok(Parsed::Shown(match (words_of(&command, words).1.is_empty(), long) {
                (true, true) => help::full(),
                (true, false) => help::short(),
                (false, _) if crate::style::stdout_is_colourful() => {
                    error.render().ansi().to_string()
                }
                (false, _) => error.render().to_string(),
            }))
        }
        Err(error) if error.kind() == ErrorKind::DisplayVersion => Ok(match early.json {
            true => Parsed::Version,
            false => Parsed::Shown(format!("lasthop {}\n", crate::version::LINE)),
        }),
        Err(error) => Err(wrong(&command, words, &error)),
    }
}

/// The definition of all arguments. Numbers may be negative, so that a wrong one is rejected by its range.
pub fn command() -> Command {
    fn negative(command: Command) -> Command {
        let takes = |arg: &Arg| !arg.is_positional() && arg.get_action().takes_values();
        command
            .mut_args(|arg| if takes(&arg) { arg.allow_negative_numbers(true) } else { arg })
            .mut_subcommands(negative)
    }
    negative(Cli::command())
}

/// The command of the words, and its names: `lasthop trace show` has two.
fn words_of<'c>(root: &'c Command, words: &[OsString]) -> (&'c Command, Vec<&'c str>) {
    let (mut command, mut names) = (root, Vec::new());
    let mut value_follows = false;
    for word in words.iter().skip(1).filter_map(|word| word.to_str()) {
        if std::mem::replace(&mut value_follows, word == "--color") || word == "help" {
            continue;
        }
        if word.starts_with('-') {
            continue;
        }
        let Some(inner) = command.find_subcommand(word) else { break };
        names.push(inner.get_name());
        command = inner;
    }
    (command, names)
}

/// A failure of the command line, with lasthop's own message.
fn wrong(root: &Command, words: &[OsString], error: &clap::Error) -> Failure {
    let (command, names) = words_of(root, words);
    let called = ["lasthop"].into_iter().chain(names).collect::<Vec<_>>().join(" ");
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        Some(ContextValue::Strings(all)) => all.join(" "),
        _ => String::new(),
    };
    let (arg, value) = (text(ContextKind::InvalidArg), text(ContextKind::InvalidValue));
    // Clap says `--seeds <N>`.
    let option =
        arg.split([' ', '=']).next().unwrap_or_default().trim_matches(['[', ']']).to_owned();
    let more = format!("`{called} --help` explains them");
    let refused = |message: String, help: String| Failure::Usage {
        command: called.clone(),
        argument: option.clone(),
        message,
        help,
    };
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let word = text(ContextKind::InvalidSubcommand);
            let (message, help) = unknown_command(command, &called, &word);
            Failure::Usage { command: called.clone(), argument: word, message, help }
        }
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let all: Vec<&str> = command
                .get_subcommands()
                .filter(|inner| !inner.is_hide_set())
                .map(Command::get_name)
                .collect();
            let help = match called.as_str() {
                "lasthop" => "`lasthop run` is a demonstration, `lasthop --help` lists all commands, `lasthop --version` \
                              is the version"
                    .to_owned(),
                _ => format!("one of {}; {more}", all.join(", ")),
            };
            refused(format!("`{called}` needs a command"), help)
        }
        ErrorKind::UnknownArgument if option.starts_with('-') => refused(
            format!("`{called}` has no option `{option}`"),
            other_option(command, &called, &option),
        ),
        ErrorKind::UnknownArgument => {
            let word = option.clone();
            let usage = command.clone().bin_name(called.clone()).render_usage().to_string();
            let usage = usage.trim_start_matches("Usage: ").trim().to_owned();
            refused(format!("`{word}` is one argument too many"), format!("`{usage}`; {more}"))
        }
        ErrorKind::MissingRequiredArgument => {
            refused(format!("`{called}` needs {arg}"), format!("{}{more}", example_of(command)))
        }
        ErrorKind::ArgumentConflict => {
            let prior = text(ContextKind::PriorArg);
            let message = match prior == arg || prior.is_empty() {
                true => format!("`{option}` is given more than once"),
                false => format!("`{arg}` cannot be used together with `{prior}`"),
            };
            refused(message, "leave one of them out".to_owned())
        }
        ErrorKind::InvalidValue if value.is_empty() => {
            refused(format!("`{option}` needs a value"), format!("write `{arg}`; {more}"))
        }
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => {
            let (message, help) = bad_value(error, &option, &value, &more);
            refused(message, help)
        }
        ErrorKind::InvalidUtf8 => {
            refused("an argument is not text in UTF-8".to_owned(), "name files in UTF-8".to_owned())
        }
        _ => {
            let shown = error.to_string();
            let first = shown.lines().next().unwrap_or_default().trim_start_matches("error: ");
            refused(first.to_owned(), more)
        }
    }
}

/// The first example of a command's help.
fn example_of(command: &Command) -> String {
    let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let example = text.lines().map(str::trim).find(|line| line.starts_with("lasthop "));
    example
        .and_then(|line| line.split("   ").next())
        .map_or(String::new(), |line| format!("for example `{}`; ", line.trim()))
}

fn unknown_command(command: &Command, called: &str, word: &str) -> (String, String) {
    let known: Vec<&str> = command
        .get_subcommands()
        .filter(|inner| !inner.is_hide_set())
        .map(Command::get_name)
        .collect();
    if called != "lasthop" {
        let help = match meaning(word, &[], &known) {
            Some(near) => format!("did you mean `{called} {near}`?"),
            None => format!("one of {}", known.join(", ")),
        };
        return (format!("`{called}` has no command `{word}`"), help);
    }
    if let Some(feature) = features::absent(word) {
        let message =
            format!("`lasthop {word}` needs the feature `{feature}`, which this build lacks");
        return (message, features::remedy(feature));
    }
    let message = format!("there is no command `{word}`");
    let lower = word.to_ascii_lowercase();
    let has = |ends: &[&str]| ends.iter().any(|end| lower.ends_with(end));
    let captures =
        [".pcap", ".pcapng", ".cap", ".pcap.gz", ".pcapng.gz", ".pcap.zst", ".pcapng.zst"];
    let help = if word == "version" || word == "Version" {
        "did you mean `lasthop --version`?".to_owned()
    } else if has(&captures) {
        format!("did you mean `lasthop analyze {word}`?")
    } else if has(&[".toml"]) || example(word).is_some() || Path::new(word).is_file() {
        format!("did you mean `lasthop run {word}`?")
    } else if let Some(near) = meaning(word, COMMANDS, &known) {
        format!("did you mean `lasthop {near}`?")
    } else if let Some(near) = nearest_example(word) {
        format!("did you mean the scenario `{near}`: `lasthop run {near}`?")
    } else {
        "`lasthop --help` lists the commands; a scenario is run by `lasthop run FILE`".to_owned()
    };
    (message, help)
}

/// A suggestion for an unknown option.
fn other_option(command: &Command, called: &str, option: &str) -> String {
    let known: Vec<&str> = command
        .get_arguments()
        .filter(|arg| !arg.is_hide_set())
        .filter_map(Arg::get_long)
        .collect();
    let all = format!("`{called} --help` lists its options");
    let behind = match called {
        "lasthop shell" => {
            "; options of your program come behind it: `lasthop shell --rate 1mbit -- CMD`"
        }
        _ => "",
    };
    let word = option.trim_start_matches('-');
    if option.starts_with("--") {
        if let Some(near) = meaning(word, OPTIONS, &known) {
            let value = if word.starts_with("no-col") { " never" } else { "" };
            return format!("did you mean `--{near}{value}`? {all}{behind}");
        }
    }
    format!("{all}{behind}")
}

/// An invalid value of an option.
fn bad_value(error: &clap::Error, option: &str, value: &str, more: &str) -> (String, String) {
    use std::error::Error as _;
    let place = match option.starts_with('-') {
        true => format!("`{option} {value}`"),
        false => format!("`{value}`"),
    };
    if let Some(ContextValue::Strings(choices)) = error.get(ContextKind::ValidValue) {
        let known: Vec<&str> = choices.iter().map(String::as_str).collect();
        let near = meaning(value, &[], &known)
            .map_or(String::new(), |near| format!("did you mean `{near}`? "));
        return (
            format!("{place} is none of the choices"),
            format!("{near}one of {}", known.join(", ")),
        );
    }
    let Some(source) = error.source() else {
        return (format!("{place} is not understood"), more.to_owned());
    };
    if let Some(error) = source.downcast_ref::<std::num::ParseIntError>() {
        return match error.kind() {
            std::num::IntErrorKind::Zero => {
                (format!("{place} is out of range"), "a whole number from 1 on".to_owned())
            }
            _ => (format!("{place} is not a whole number"), format!("write digits only; {more}")),
        };
    }
    if source.is::<std::num::ParseFloatError>() {
        return (format!("{place} is not a number"), format!("for example 1.5; {more}"));
    }
    let said = source.to_string();
    // Clap's message for a range.
    if let Some((_, range)) = said.split_once(" is not in ") {
        let (least, most) = range.split_once("..").unwrap_or((range, ""));
        let most = most.trim_start_matches('=');
        let range = if most.is_empty() {
            format!("from {least} on")
        } else {
            format!("from {least} to {most}")
        };
        return (format!("{place} is out of range"), format!("a whole number {range}"));
    }
    // A message of lasthop: the problem, and after a semicolon the remedy.
    match said.split_once("; ") {
        Some((what, help)) if what.contains('`') => {
            (format!("`{option}`: {what}"), help.to_owned())
        }
        Some((what, help)) => (format!("{place}: {what}"), help.to_owned()),
        None => (format!("{place} is not understood"), said),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A synonym of a nonexistent name would never be suggested.
    #[test]
    fn every_synonym_leads_to_an_existing_name() {
        fn longs(command: &Command, all: &mut Vec<String>) {
            all.extend(command.get_arguments().filter_map(Arg::get_long).map(str::to_owned));
            command.get_subcommands().for_each(|inner| longs(inner, all));
        }
        let command = command();
        let mut options = Vec::new();
        longs(&command, &mut options);
        for (name, _) in COMMANDS {
            assert!(
                command.find_subcommand(name).is_some() || features::absent(name).is_some(),
                "{name}"
            );
        }
        for (name, _) in OPTIONS {
            assert!(
                options.iter().any(|option| option == name) || !features::ABSENT.is_empty(),
                "{name}"
            );
        }
    }

    fn early(words: &[&str]) -> Early {
        Early::of(&words.iter().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn the_look_of_errors_is_known_before_the_words_are_parsed() {
        assert!(early(&["lasthop", "rnu", "--json"]).json);
        assert!(!early(&["lasthop", "shell", "--", "ip", "--json"]).json);
        assert_eq!(early(&["lasthop", "--color", "always", "x"]).color, Color::Always);
        assert_eq!(early(&["lasthop", "x", "--color=never"]).color, Color::Never);
        assert_eq!(early(&["lasthop", "--color", "pink"]).color, Color::Auto);
    }
}
