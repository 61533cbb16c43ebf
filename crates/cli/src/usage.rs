//! The command line: clap's parser, messages and suggestions, with hidden aliases for the words of other programs.

use std::ffi::OsString;
use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ColorChoice, Command, CommandFactory as _, FromArgMatches as _};
use lasthop_scenario::{example, nearest_example};

use crate::failure::Failure;
use crate::style::Color;
use crate::{Cli, features, help};

/// Hidden aliases of commands.
const COMMANDS: &[(&str, &str)] = &[
    ("run", "simulate sim execute"),
    ("compare", "rank benchmark"),
    ("advise", "recommend suggest"),
    ("analyze", "analyse diagnose tcptrace"),
    ("shell", "emulate netem exec"),
    ("list", "ls show"),
    ("plot", "figure chart"),
    ("lab", "gui laboratory"),
    ("station", "router base-station pep"),
    ("link", "tunnel vpn"),
    ("ctl", "control"),
    ("testbed", "netns mininet"),
];

/// Hidden aliases of options: the command, or all commands that have the option; its name, and words for it.
const OPTIONS: &[(&str, &str, &str)] = &[
    ("", "rate", "bandwidth bw throughput speed capacity"),
    ("", "delay", "latency"),
    ("", "loss", "packet-loss loss-rate"),
    ("", "queue", "buffer queue-size uplink-queue downlink-queue"),
    ("", "discipline", "qdisc aqm"),
    ("", "jobs", "threads workers"),
    ("", "seeds", "repetitions iterations"),
    ("", "output", "out outdir output-dir"),
    ("", "color", "colour"),
    ("", "duration", "seconds time for"),
    ("", "sender", "tcp cc congestion-control"),
    // Former names, for one release.
    ("run", "details", "trace"),
    ("run", "details-size", "trace-size"),
    ("packetdrill", "packets", "trace"),
    ("schema", "answer", "output"),
    ("reproduce", "strict", "check"),
    ("analyze", "checksums", "verify"),
    ("make", "record", "measured"),
];

/// Former commands, options, and values of options, with what replaces them: the command, or all; the word, and the remedy.
const REPLACED: &[(&str, &str, &str)] = &[
    (
        "lasthop advise",
        "--scenario",
        "`-o DIR` writes DIR/scenario.toml; `lasthop compare FILE` ranks schemes on a scenario",
    ),
    (
        "lasthop advise",
        "tdd",
        "`--link nr` has blocks in a pattern; for other frames add half of one to --delay, and leave --duplex out",
    ),
    ("lasthop", "send", SENDER),
    ("lasthop", "discard", SENDER),
    ("", "--units", "rates are in Mbit/s, and in bytes per second with `--json`"),
    ("lasthop trace make", "leo", "`starlink` has the figures of a record"),
];

const SENDER: &str = "`iperf3 -s` and `iperf3 -c HOST -n 2M` time a transfer between two hosts";

/// Endings of the names of captures.
const CAPTURES: [&str; 5] = [".pcap", ".pcapng", ".cap", ".pcap.gz", ".pcapng.gz"];

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
    let version = || match early.json {
        true => Parsed::Version,
        false => Parsed::Shown(format!("lasthop {}\n", crate::version::LINE)),
    };
    if words.get(1).is_some_and(|word| word == "version") {
        return Ok(version());
    }
    let result = command.try_get_matches_from_mut(words);
    match result.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => Ok(Parsed::Command(Box::new(cli))),
        Err(error) if error.kind() == ErrorKind::DisplayHelp => {
            Ok(Parsed::Shown(match command_of(&command, words).1 == "lasthop" {
                true => help::full(),
                false if crate::style::stdout_is_colourful() => error.render().ansi().to_string(),
                false => error.render().to_string(),
            }))
        }
        Err(error) if error.kind() == ErrorKind::DisplayVersion => Ok(version()),
        Err(error) => Err(wrong(&command, words, &error)),
    }
}

/// The definition of all arguments. Numbers may be negative, so that a wrong one is rejected by its range.
pub fn command() -> Command {
    fn with_aliases(command: Command) -> Command {
        let names: Vec<String> =
            command.get_arguments().filter_map(Arg::get_long).map(str::to_owned).collect();
        let name = command.get_name().to_owned();
        let alias = |arg: Arg| {
            let is_of = |(command, option, _): &&(&str, &str, &str)| {
                (command.is_empty() || *command == name) && arg.get_long() == Some(option)
            };
            let words = OPTIONS.iter().filter(is_of).flat_map(|(.., words)| words.split(' '));
            let free = words.filter(|word| !names.iter().any(|name| name == word));
            let free: Vec<&str> = free.collect();
            arg.aliases(free)
        };
        let takes = |arg: &Arg| !arg.is_positional() && arg.get_action().takes_values();
        command
            .mut_args(|arg| match () {
                () if takes(&arg) => alias(arg.allow_negative_numbers(true)),
                () if arg.is_positional() => arg,
                () => alias(arg),
            })
            .mut_subcommands(with_aliases)
    }
    let all = with_examples(Cli::command(), "lasthop".to_owned());
    with_aliases(all).mut_subcommands(|command| {
        let words = COMMANDS
            .iter()
            .find(|(name, _)| *name == command.get_name())
            .map_or("", |(_, words)| words);
        command.aliases(words.split_whitespace())
    })
}

/// Adds the examples of `examples.txt` to the help of a command and those below it. `called` is its name with those above.
fn with_examples(command: Command, called: String) -> Command {
    let mut parts =
        include_str!("examples.txt").split("== ").filter_map(|part| part.split_once('\n'));
    let command = match parts.find(|(name, _)| *name == called) {
        Some((_, examples)) => command.after_help(examples.trim_end()),
        None => command,
    };
    command.mut_subcommands(|inner| {
        let called = format!("{called} {}", inner.get_name());
        with_examples(inner, called)
    })
}

/// The command of the words, and how it is called: `lasthop trace show`.
fn command_of<'c>(root: &'c Command, words: &[OsString]) -> (&'c Command, String) {
    let (mut command, mut called) = (root, "lasthop".to_owned());
    let mut value_follows = false;
    for word in words.iter().skip(1).filter_map(|word| word.to_str()) {
        let skipped = std::mem::replace(&mut value_follows, word == "--color") || word == "help";
        if skipped || word.starts_with('-') {
            continue;
        }
        let Some(inner) = command.find_subcommand(word) else { break };
        called = format!("{called} {}", inner.get_name());
        command = inner;
    }
    (command, called)
}

/// A failure of the command line: clap's message, and its suggestion as the remedy.
fn wrong(root: &Command, words: &[OsString], error: &clap::Error) -> Failure {
    let (command, called) = command_of(root, words);
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        Some(ContextValue::Strings(all)) => all.join(", "),
        _ => String::new(),
    };
    let argument = [ContextKind::InvalidArg, ContextKind::InvalidSubcommand].map(text).concat();
    let argument = argument.split([' ', '=']).next().unwrap_or_default().to_owned();
    let rendered = error.render().to_string();
    let message = rendered.split("\n\n").next().unwrap_or_default();
    let message = message.strip_prefix("error: ").unwrap_or(message);
    let message: Vec<&str> =
        message.lines().map(str::trim).filter(|line| !line.starts_with('[')).collect();
    // The message of the parser of Rust for numbers.
    let message = message.join(" ").replace("invalid digit found in string", "not a whole number");
    let (mut message, mut help) = match message.split_once("; ") {
        Some((message, help)) => (message.to_owned(), format!("{help}; ")),
        None => (message, String::new()),
    };
    let suggested =
        [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand, ContextKind::SuggestedValue];
    let suggested = suggested.map(text).concat();
    if error.kind() == ErrorKind::InvalidSubcommand && called == "lasthop" {
        message = format!("there is no command `{argument}`");
        if let Some(feature) = features::absent(&argument) {
            message = format!(
                "`lasthop {argument}` needs the feature `{feature}`, which this build lacks"
            );
            help = features::remedy(feature);
        } else {
            help = instead_of_command(&argument, &suggested);
        }
        return Failure::Usage { command: called, argument, message, help };
    }
    if !suggested.is_empty() {
        help += &format!("did you mean `{suggested}`? ");
    }
    match error.kind() {
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            message = format!("`{called}` needs a command");
            let visible = command.get_subcommands().filter(|inner| !inner.is_hide_set());
            let names: Vec<&str> =
                visible.map(Command::get_name).filter(|name| *name != "help").collect();
            help = match called.as_str() {
                "lasthop" => {
                    "`lasthop run` is a demonstration, `lasthop --version` is the version; "
                        .to_owned()
                }
                _ => format!("one of {}; ", names.join(", ")),
            };
        }
        ErrorKind::UnknownArgument if called == "lasthop" => {
            help += "options of a command come after it; ";
        }
        ErrorKind::UnknownArgument if called == "lasthop shell" => {
            help += "options of your program come after `--`; ";
        }
        ErrorKind::UnknownArgument
            if suggested.is_empty()
                && command.get_arguments().any(|arg| arg.get_long() == Some("set")) =>
        {
            help += "a value of the scenario is changed by `--set KEY=VALUE`; ";
        }
        ErrorKind::InvalidValue => {
            let choices = text(ContextKind::ValidValue);
            if !choices.is_empty() {
                help += &format!("one of {choices}; ");
            }
        }
        _ => {}
    }
    let words = [&argument, &text(ContextKind::InvalidValue)];
    let replaced = |(command, former, _): &&(&str, &str, &str)| {
        (command.is_empty() || *command == called) && words.iter().any(|word| *word == former)
    };
    if let Some((.., remedy)) = REPLACED.iter().find(replaced) {
        help = format!("{remedy}; ");
    }
    if let Some(meaning) = meaning_of(command, &argument) {
        help += &format!("{argument}: {meaning}; ");
    }
    help += &format!("`{called} --help` explains them");
    Failure::Usage { command: called, argument, message, help }
}

/// The meaning of an option.
fn meaning_of(command: &Command, option: &str) -> Option<String> {
    let name = option.strip_prefix("--")?;
    let arg = command.get_arguments().find(|arg| arg.get_long() == Some(name))?;
    Some(arg.get_help()?.to_string().replace('\n', " "))
}

/// The command with the letters of `word` in another order: clap may suggest an alias that is further away.
fn mistyped(word: &str) -> Option<String> {
    let sorted = |text: &str| {
        let mut letters: Vec<char> = text.chars().collect();
        letters.sort_unstable();
        letters
    };
    let root = Cli::command();
    let mut names = root.get_subcommands().map(Command::get_name);
    names.find(|name| sorted(name) == sorted(word)).map(str::to_owned)
}

/// The remedy for an unknown command: files and scenarios lead to the command that reads them.
fn instead_of_command(word: &str, suggested: &str) -> String {
    let lower = word.to_ascii_lowercase();
    let former =
        |(command, former, _): &&(&str, &str, &str)| *command == "lasthop" && *former == word;
    if let Some((.., remedy)) = REPLACED.iter().find(former) {
        (*remedy).to_owned()
    } else if CAPTURES.iter().any(|ending| lower.ends_with(ending)) {
        format!("did you mean `lasthop analyze {word}`?")
    } else if lower.ends_with(".toml") || example(word).is_some() || Path::new(word).is_file() {
        format!("did you mean `lasthop run {word}`?")
    } else if let Some(name) = mistyped(word) {
        format!("did you mean `lasthop {name}`?")
    } else if !suggested.is_empty() {
        format!("did you mean `lasthop {suggested}`?")
    } else if let Some(near) = nearest_example(word) {
        format!("did you mean the scenario `{near}`: `lasthop run {near}`?")
    } else {
        "`lasthop --help` lists the commands; a scenario is run by `lasthop run FILE`".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same option has the same kind of value in all commands; `-o` writes to a file or to a directory. The snapshot
    /// has each option of several commands with its help, so that a second meaning of a name is seen in review.
    #[test]
    fn every_option_has_one_meaning() {
        use std::collections::{BTreeMap, BTreeSet};
        type Uses = BTreeMap<String, BTreeSet<String>>;
        fn collect(command: &Command, uses: &mut Uses, helps: &mut Uses) {
            for arg in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
                let Some(name) = arg.get_long() else { continue };
                let values = match arg.get_action().takes_values() {
                    true => arg.get_value_names().unwrap_or_default().join(" "),
                    false => "none".to_owned(),
                };
                uses.entry(name.to_owned()).or_default().insert(values);
                let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
                let help = help.split('\n').next().unwrap_or_default();
                let used = format!("{:10} {help}", command.get_name());
                helps.entry(name.to_owned()).or_default().insert(used);
            }
            command.get_subcommands().for_each(|inner| collect(inner, uses, helps));
        }
        let (mut uses, mut helps) = (Uses::new(), Uses::new());
        collect(&command(), &mut uses, &mut helps);
        uses.retain(|name, values| values.len() > 1 && name != "output");
        assert_eq!(uses, Uses::new());
        if features::ABSENT.is_empty() {
            let shared = helps.iter().filter(|(_, used)| used.len() > 1);
            let text = shared.map(|(name, used)| {
                let used: String = used.iter().map(|used| format!("  {used}\n")).collect();
                format!("--{name}\n{used}")
            });
            insta::with_settings!({ snapshot_path => "../tests/snapshots", prepend_module_to_snapshot => false }, {
                insta::assert_snapshot!("options", text.collect::<String>());
            });
        }
    }

    #[test]
    fn former_names_of_options_are_hidden_aliases() {
        fn of<'c>(root: &'c Command, name: &str) -> Option<&'c Command> {
            let mut inner = root.get_subcommands();
            inner.find_map(
                |inner| if inner.get_name() == name { Some(inner) } else { of(inner, name) },
            )
        }
        let root = command();
        for (name, new, former) in OPTIONS {
            let Some(command) = of(&root, name) else { continue };
            let arg = command.get_arguments().find(|arg| arg.get_long() == Some(new));
            let aliases = arg.and_then(Arg::get_all_aliases).unwrap_or_default();
            assert!(aliases.contains(former), "{name}: {new}, {former}");
            assert!(arg.and_then(Arg::get_visible_aliases).unwrap_or_default().is_empty());
        }
    }

    /// An alias of a nonexistent name would do nothing.
    #[test]
    fn every_alias_has_an_existing_name() {
        fn longs(command: &Command, all: &mut Vec<String>) {
            all.extend(command.get_arguments().filter_map(Arg::get_long).map(str::to_owned));
            command.get_subcommands().for_each(|inner| longs(inner, all));
        }
        let command = command();
        command.clone().debug_assert();
        let mut options = Vec::new();
        longs(&command, &mut options);
        let full = features::ABSENT.is_empty();
        for (name, _) in COMMANDS {
            assert!(
                command.find_subcommand(name).is_some() || features::absent(name).is_some(),
                "{name}"
            );
        }
        for (_, name, _) in OPTIONS {
            assert!(options.iter().any(|option| option == name) || !full, "{name}");
        }
    }
}
