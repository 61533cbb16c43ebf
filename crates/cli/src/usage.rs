//! The command line: parsed by clap, with separate error messages.

mod words;

use std::ffi::OsString;
use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ColorChoice, Command, CommandFactory as _, FromArgMatches as _};
use lasthop_proto::units::Rate;
use lasthop_scenario::synonyms::{meaning, remark, same};
use lasthop_scenario::{example, nearest_example, settings, settings_like, spelling};

use crate::failure::Failure;
use crate::style::Color;
use crate::{Cli, features, help};
use words::{CAPTURES, COMMANDS, FILES, OPTIONS, OTHERS, VALUES};

fn is_capture(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    CAPTURES.iter().any(|ending| lower.ends_with(ending))
}

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
        ErrorKind::UnknownArgument if option.starts_with('-') => {
            let help = option_of_later_command(command, &called, words, &option)
                .unwrap_or_else(|| other_option(command, &called, &option));
            refused(format!("`{called}` has no option `{option}`"), help)
        }
        ErrorKind::UnknownArgument => {
            // Clap's argument, since an option's name ends at `=`.
            let word = arg.clone();
            let usage = command.clone().bin_name(called.clone()).render_usage().to_string();
            let usage = usage.trim_start_matches("Usage: ").trim().to_owned();
            let guess = option_for(command, &word)
                .map_or(String::new(), |guess| format!("did you mean {guess}? "));
            refused(
                format!("`{word}` is one argument too many"),
                format!("{guess}`{usage}`; {more}"),
            )
        }
        ErrorKind::TooManyValues => {
            refused(format!("`{option}` takes no value"), format!("write `{option}` alone; {more}"))
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
    if known.is_empty() {
        let help = format!("`{called} --help` explains the command");
        return (format!("`{word}` is one argument too many"), help);
    }
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
    let other = OTHERS.iter().find(|(words, _)| words.contains(&lower.as_str()));
    let help = if word == "version" || word == "Version" {
        "did you mean `lasthop --version`?".to_owned()
    } else if is_capture(word) {
        format!("did you mean `lasthop analyze {word}`?")
    } else if lower.ends_with(".toml") || example(word).is_some() || Path::new(word).is_file() {
        format!("did you mean `lasthop run {word}`?")
    } else if let Some((_, other)) = other {
        format!("did you mean `lasthop {other}`?")
    } else if let Some(near) = meaning(word, COMMANDS, &known) {
        format!("did you mean `lasthop {near}`?")
    } else if let Some(near) = nearest_example(word) {
        format!("did you mean the scenario `{near}`: `lasthop run {near}`?")
    } else {
        "`lasthop --help` lists the commands; a scenario is run by `lasthop run FILE`".to_owned()
    };
    (message, help)
}

/// The remedy for an option of a command that is written before the command.
fn option_of_later_command(
    parent: &Command,
    called: &str,
    words: &[OsString],
    option: &str,
) -> Option<String> {
    let command = words.iter().find_map(|word| parent.find_subcommand(word))?;
    let name = option.trim_start_matches('-');
    let is_it = |arg: &Arg| match option.starts_with("--") {
        true => arg.get_long() == Some(name),
        false => arg.get_short().is_some_and(|short| name.starts_with(short)),
    };
    let later = command.get_name();
    let help = format!("options of a command come after it: `{called} {later} {option} ...`");
    command.get_arguments().any(is_it).then_some(help)
}

/// The option for an argument without one.
fn option_for(command: &Command, word: &str) -> Option<String> {
    let has = |name: &str| command.get_arguments().any(|arg| arg.get_long() == Some(name));
    if is_capture(word) && has("capture") {
        Some(format!("`--capture {word}`"))
    } else if word.contains('=') && has("set") {
        Some(format!("`--set {word}`, each with its own `--set`"))
    } else if example(word).is_some() && has("show") {
        Some(format!("`--show {word}`"))
    } else if word.parse::<Rate>().is_ok() && has("rate") {
        Some(format!("`--rate {word}`"))
    } else {
        None
    }
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
    let word = option.strip_prefix("--");
    let guess = word.and_then(|word| meant_by_option(command, called, word, &known));
    let guess = guess.map_or(String::new(), |guess| format!("did you mean {guess}? "));
    format!("{guess}{all}{behind}")
}

/// The option, key or file that `word` means, quoted. Meanings have precedence over typing errors.
fn meant_by_option(command: &Command, called: &str, word: &str, known: &[&str]) -> Option<String> {
    let with_remark = |text: String, near: &str| match remark(word, near) {
        Some(remark) => format!("{text} ({remark})"),
        None => text,
    };
    let option = |near: &str| {
        let value = if word.starts_with("no-col") { " never" } else { "" };
        with_remark(format!("`--{near}{value}`"), near)
    };
    let set = |keys: Vec<String>| {
        let near = keys.first()?.rsplit('.').next()?;
        let options: Vec<String> = keys.iter().map(|key| format!("`--set {key}=VALUE`")).collect();
        known.contains(&"set").then(|| with_remark(options.join(" or "), near))
    };
    let file = || {
        let argument = command.get_positionals().next()?;
        FILES.contains(&word).then(|| format!("`{called} {argument}`, without an option"))
    };
    same(word, OPTIONS, known)
        .map(option)
        .or_else(|| set(settings(word)))
        .or_else(file)
        .or_else(|| meaning(word, OPTIONS, known).map(option))
        .or_else(|| set(settings_like(word)))
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
        let near = meaning(value, VALUES, &known)
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
    let message = source.to_string();
    // Clap's message for a range.
    if let Some((_, range)) = message.split_once(" is not in ") {
        let (least, most) = range.split_once("..").unwrap_or((range, ""));
        let most = most.trim_start_matches('=');
        let range = if most.is_empty() {
            format!("from {least} on")
        } else {
            format!("from {least} to {most}")
        };
        return (format!("{place} is out of range"), format!("a whole number {range}"));
    }
    bad_quantity(option, value, &message)
}

/// Message and remedy for a value of an option. `message` is a message of lasthop: the problem, and after a semicolon the
/// remedy.
pub fn bad_quantity(option: &str, value: &str, message: &str) -> (String, String) {
    let place = match option.starts_with('-') {
        true => format!("`{option} {value}`"),
        false => format!("`{value}`"),
    };
    let guess = spelled(message, value)
        .map_or(String::new(), |meant| format!("did you mean `{option} {meant}`? "));
    match message.split_once("; ") {
        Some((problem, help)) if problem.contains('`') => (
            format!("`{option}`: {problem}"),
            format!("{guess}{}{help}", range(problem, help, value)),
        ),
        Some((problem, help)) => (format!("{place}: {problem}"), format!("{guess}{help}")),
        None => (format!("{place} is not understood"), format!("{guess}{message}")),
    }
}

/// The right spelling of a quantity, of which `message` states the expected form.
fn spelled(message: &str, value: &str) -> Option<String> {
    type Spelling = fn(&str) -> Option<String>;
    const FORMS: &[(&str, Spelling)] = &[
        ("a rate such as", spelling::rate),
        ("a time such as", spelling::time),
        ("a size such as", spelling::size),
        ("a probability", spelling::probability),
        ("a number of packets or bytes", spelling::queue),
    ];
    let (_, spell) = FORMS.iter().find(|(form, _)| message.contains(form))?;
    spell(value).filter(|_| !message.contains("out of range"))
}

/// The range of a quantity that is out of range.
fn range(problem: &str, help: &str, value: &str) -> &'static str {
    let is_negative = value.trim_start().starts_with('-');
    match problem.ends_with("is out of range") {
        true if help.contains("a probability") => "a probability is from 0 to 1, or 0% to 100%; ",
        true if help.contains("a rate") => "a rate is at least `1bit`; ",
        true if is_negative => "it is at least 0; ",
        _ => "",
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
