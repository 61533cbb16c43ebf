//! The command line: parsed by clap, with separate error messages.

mod values;
mod words;

use std::ffi::OsString;
use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ColorChoice, Command, CommandFactory as _, FromArgMatches as _};
use lasthop_proto::units::Rate;
use lasthop_scenario::synonyms::{meaning, remark, same};
use lasthop_scenario::{example, nearest_example, schemes, settings, settings_like};

use crate::failure::Failure;
use crate::style::Color;
use crate::{Cli, features, help};
pub use values::bad_quantity;
use values::bad_value;
use words::{
    CAPTURES, COMMANDS, FILES, LETTERS, LETTERS_OF_ARGUMENTS, OPTIONS, OTHERS, SUBCOMMANDS,
};

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
    // Examples of a subcommand may be those of its command.
    let parent = names.first().and_then(|name| root.find_subcommand(name)).unwrap_or(command);
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
    let more = format!("{}`{called} --help` explains them", meaning_of(command, &option));
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
            let all = subcommands(command);
            let help = match called.as_str() {
                "lasthop" => "`lasthop run` is a demonstration, `lasthop --help` lists all commands, `lasthop --version` \
                              is the version"
                    .to_owned(),
                _ => format!("one of {}; {more}", all.join(", ")),
            };
            refused(format!("`{called}` needs a command"), help)
        }
        ErrorKind::UnknownArgument if option.starts_with('-') => {
            let option = whole_option(command, words, option);
            let help = option_of_later_command(command, &called, words, &option)
                .unwrap_or_else(|| other_option(command, &called, &option));
            let message = format!("`{called}` has no option `{option}`");
            Failure::Usage { command: called.clone(), argument: option, message, help }
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
            // An option may need another one.
            let example = match arg.starts_with("--") && !arg.contains(['<', ' ']) {
                true => format!("add `{arg}`; "),
                false => example_of(&[command, parent], &called),
            };
            refused(format!("`{called}` needs {arg}"), format!("{example}{more}"))
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

/// The meaning of an option, as a sentence for a remedy.
fn meaning_of(command: &Command, option: &str) -> String {
    let of_option =
        |arg: &&Arg| arg.get_long().is_some_and(|long| option.strip_prefix("--") == Some(long));
    let text = command.get_arguments().find(of_option).and_then(Arg::get_help);
    text.map_or(String::new(), |text| {
        format!("{option}: {}; ", text.to_string().replace('\n', " "))
    })
}

/// The visible subcommands, without `help`.
fn subcommands(command: &Command) -> Vec<&str> {
    let visible = command.get_subcommands().filter(|inner| !inner.is_hide_set());
    visible.map(Command::get_name).filter(|name| *name != "help").collect()
}

/// The word of the command line with this option. Clap reports the first letter of a long option that is written with
/// one hyphen.
fn whole_option(command: &Command, words: &[OsString], option: String) -> String {
    let is_known = |name: &str| {
        ["help", "version"].contains(&name)
            || command.get_arguments().any(|arg| arg.get_long() == Some(name))
    };
    let whole = words
        .iter()
        .filter_map(|word| word.to_str())
        .find(|word| word.strip_prefix('-').is_some_and(|name| name.len() > 1 && is_known(name)));
    match whole {
        Some(whole) if !option.starts_with("--") => whole.to_owned(),
        _ => option,
    }
}

/// The first example of a command in the help of these.
fn example_of(commands: &[&Command], called: &str) -> String {
    let texts = commands.iter().filter_map(|command| command.get_after_help());
    let text: String = texts.map(|text| format!("{text}\n")).collect();
    let is_it = |line: &&str| line.strip_prefix("sudo ").unwrap_or(line).starts_with(called);
    let example = text.lines().map(str::trim).find(is_it);
    example
        .and_then(|line| line.split("   ").next())
        .map_or(String::new(), |line| format!("for example `{}`; ", line.trim()))
}

fn unknown_command(command: &Command, called: &str, word: &str) -> (String, String) {
    let known = subcommands(command);
    if known.is_empty() {
        let help = format!("`{called} --help` explains the command");
        return (format!("`{word}` is one argument too many"), help);
    }
    if called != "lasthop" {
        let help = match meaning(word, SUBCOMMANDS, &known) {
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
    let help = if is_capture(word) {
        format!("did you mean `lasthop analyze {word}`?")
    } else if lower.ends_with(".toml") || example(word).is_some() || Path::new(word).is_file() {
        format!("did you mean `lasthop run {word}`?")
    } else if let Some((_, others)) = other {
        let others: Vec<String> = others.iter().map(|other| format!("`lasthop {other}`")).collect();
        format!("did you mean {}?", others.join(" or "))
    } else if let Some(both) = joined(command, &lower) {
        format!("did you mean `lasthop {both}`?")
    } else if let Some(near) = meaning(word, COMMANDS, &known) {
        format!("did you mean `lasthop {near}`?")
    } else if let Some(near) = nearest_example(word) {
        format!("did you mean the scenario `{near}`: `lasthop run {near}`?")
    } else {
        "`lasthop --help` lists the commands; a scenario is run by `lasthop run FILE`".to_owned()
    };
    (message, help)
}

/// A command and its subcommand or value that are joined by a hyphen: `list-systems` is `list systems`.
fn joined(command: &Command, word: &str) -> Option<String> {
    let (first, second) = word.split_once(['-', '_'])?;
    let inner = command.find_subcommand(first)?;
    let values = inner.get_positionals().flat_map(Arg::get_possible_values);
    let has = inner.find_subcommand(second).is_some()
        || values.into_iter().any(|value| value.get_name() == second);
    has.then(|| format!("{first} {second}"))
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
    } else if word.parse::<u16>().is_ok() && has("listen") {
        Some(format!("`--listen {word}`"))
    } else if has("schemes") && schemes().iter().any(|scheme| scheme.name == word) {
        Some(format!("`--schemes {word}`, several with commas"))
    } else if has("gain") && (word.ends_with(".toml") || example(word).is_some()) {
        Some(format!("`lasthop compare {word}`, which ranks schemes on a scenario"))
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
    let guess = match option.strip_prefix("--") {
        Some(word) => meant_by_option(command, called, word, &known),
        None => meant_by_letters(command, called, &option[1..], &known),
    };
    let guess = guess.map_or(String::new(), |guess| format!("did you mean {guess}? "));
    format!("{guess}{all}{behind}")
}

/// The option, command or argument that the letters after one hyphen mean, quoted.
fn meant_by_letters(command: &Command, called: &str, word: &str, known: &[&str]) -> Option<String> {
    let letter = word.chars().next()?;
    if word.len() > 1 {
        return Some(format!("`--{word}`, with two hyphens"));
    }
    match (called, letter) {
        ("lasthop", 's') => return Some("`lasthop discard`, the receiver".to_owned()),
        ("lasthop", 'c') => return Some("`lasthop send HOST`".to_owned()),
        (_, '?') => return Some("`--help`".to_owned()),
        _ => {}
    }
    let (_, longs) =
        LETTERS.iter().find(|(other, _)| *other == letter).copied().unwrap_or((letter, &[]));
    let long = longs.iter().find(|long| known.contains(long)).map(|long| format!("`--{long}`"));
    let argument = || {
        let argument = command.get_positionals().next()?;
        let is_port = letter == 'p' && argument.to_string().contains("PORT");
        (is_port || LETTERS_OF_ARGUMENTS.contains(&letter))
            .then(|| format!("`{called} {argument}`, without an option"))
    };
    long.or_else(argument)
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
    // `--set` of these commands concerns a part of a scenario only.
    let parts: &[&str] = match called {
        "lasthop shell" => &["link.", "radio.", "agent", "errors"],
        "lasthop compress" => &["battery"],
        _ => &[""],
    };
    let of_command = |key: &String| parts.iter().any(|part| key.starts_with(part));
    let set = |keys: Vec<String>| {
        let keys: Vec<String> = keys.into_iter().filter(of_command).collect();
        let near = keys.first()?.rsplit('.').next()?;
        let options: Vec<String> = keys.iter().map(|key| format!("`--set {key}=VALUE`")).collect();
        known.contains(&"set").then(|| with_remark(options.join(" or "), near))
    };
    let file = || {
        let argument = command.get_positionals().next()?;
        FILES.contains(&word).then(|| format!("`{called} {argument}`, without an option"))
    };
    let begun: Vec<&str> = known.iter().copied().filter(|name| name.starts_with(word)).collect();
    let begun = (word.len() > 1 && (1..4).contains(&begun.len()))
        .then(|| begun.iter().map(|name| format!("`--{name}`")).collect::<Vec<_>>().join(" or "));
    same(word, OPTIONS, known)
        .map(option)
        .or_else(|| set(settings(word)))
        .or_else(file)
        .or(begun)
        .or_else(|| meaning(word, OPTIONS, known).map(option))
        .or_else(|| set(settings_like(word)))
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
        let mut inner = Vec::new();
        command.get_subcommands().for_each(|one| inner.extend(subcommands(one)));
        for (name, _) in SUBCOMMANDS {
            assert!(inner.contains(name) || !features::ABSENT.is_empty(), "{name}");
        }
        for other in OTHERS.iter().flat_map(|(_, others)| *others) {
            let first = other.split(' ').next().unwrap_or_default();
            let is_known = first.starts_with("--") || command.find_subcommand(first).is_some();
            assert!(is_known || features::absent(first).is_some(), "{other}");
        }
        let letters = LETTERS.iter().flat_map(|(_, longs)| *longs);
        for name in OPTIONS.iter().map(|(name, _)| name).chain(letters) {
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
