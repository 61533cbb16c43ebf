//! Checks that arguments and documentation agree. `make manual` generates docs/reference/commands.md, and the
//! parser accepts all commands in pages and in the examples of `--help`.

use std::collections::BTreeMap;

use clap::error::ErrorKind;
use clap::{Arg, Command, CommandFactory as _};

use crate::cmd::man::commands;
use crate::doc_commands::{DocCommand, of_text};

const HEAD: &str = "\
# Commands

For users of the command line: every command with its arguments. `lasthop COMMAND --help` and the manual pages (`lasthop man DIR`, in
the Debian package) add examples and files. Exit codes: 0 done, 1 the answer is no, 2 bad input, 70 a fault of lasthop, 130 interrupted.
`make manual` generates this page.

With `--json` every answer is an object with `format`, such as `lasthop-run`, and `format_version`. The version rises when a member is removed or means
something else; new members do not raise it. `lasthop schema --output run` prints the JSON Schema of an answer. A fault is an object on stderr, of the
format `lasthop-error`: `error` has `code`, `message`, `help` and the place (`file`, `line`, `column`, or `command` and `argument`); the exit code is 2.
";

/// The help of an argument, on one line of Markdown.
fn one_line(text: &str) -> String {
    text.replace('\n', " ").replace('<', "&lt;")
}

/// The written form of an argument: `-n`, `--seeds N`, or `FILE`.
fn written(arg: &Arg) -> String {
    let names = arg.get_value_names().unwrap_or_default();
    let values = names.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(" ");
    if arg.is_positional() {
        return format!("`{values}`");
    }
    let value = if arg.get_action().takes_values() { format!(" {values}") } else { String::new() };
    let short = arg.get_short().map(|short| format!("`-{short}`"));
    let long = arg.get_long().map(|long| format!("`--{long}{value}`"));
    short.into_iter().chain(long).collect::<Vec<_>>().join(", ")
}

fn item(arg: &Arg) -> String {
    let help = arg.get_help().map(|help| one_line(&help.to_string())).unwrap_or_default();
    let code = |word: &str| format!("`{word}`");
    let takes_values = arg.get_action().takes_values();
    let choices: Vec<String> = arg
        .get_possible_values()
        .iter()
        .filter(|value| takes_values && !value.is_hide_set())
        .map(|value| code(value.get_name()))
        .collect();
    let defaults = arg.get_default_values().iter().filter(|_| takes_values);
    let default: Vec<String> = defaults.map(|v| code(&v.to_string_lossy())).collect();
    let mut line = format!("- {}: {help}", written(arg));
    for (name, values) in [("choices", choices), ("default", default)] {
        // Some sentences contain the default value.
        if !values.is_empty() && !help.contains(&format!("[{name}")) {
            line += &format!("; {name}: {}", values.join(", "));
        }
    }
    line + "\n"
}

/// The arguments in a command's section. Arguments of all commands are in the program's section.
fn listed(command: &Command) -> impl Iterator<Item = &Arg> {
    let program = command.get_bin_name().unwrap_or_else(|| command.get_name()) == "lasthop";
    let hidden =
        |arg: &Arg| arg.is_hide_set() || ["help", "version"].contains(&arg.get_id().as_str());
    command.get_arguments().filter(move |arg| !hidden(arg) && (!arg.is_global_set() || program))
}

/// Items that several commands share literally, each with the long form of the argument.
fn common(commands: &[Command]) -> BTreeMap<String, String> {
    let mut counts: BTreeMap<String, (usize, String)> = BTreeMap::new();
    for arg in commands.iter().flat_map(listed) {
        let name = written(arg).rsplit(", ").next().unwrap_or_default().to_owned();
        counts.entry(item(arg)).or_insert((0, name)).0 += 1;
    }
    let several = counts.into_iter().filter(|(_, (count, _))| *count > 1);
    several.map(|(item, (_, name))| (item, name)).collect()
}

fn section(command: &Command, common: &BTreeMap<String, String>) -> String {
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name());
    let about = command.get_long_about().or_else(|| command.get_about());
    let about = about.map(ToString::to_string).unwrap_or_default();
    let usage = command.clone().render_usage().to_string();
    let usage = usage.split_whitespace().collect::<Vec<_>>().join(" ");
    let usage = usage.trim_start_matches("Usage: ");
    let mut text = format!("\n## `{name}`\n\n{about}\n\nUsage: `{usage}`\n");
    let (shared, own): (Vec<String>, Vec<String>) =
        listed(command).map(item).partition(|item| common.contains_key(item));
    if !(shared.is_empty() && own.is_empty()) {
        text += &format!("\n{}", own.concat());
    }
    if !shared.is_empty() {
        let names: Vec<&str> = shared.iter().map(|item| common[item].as_str()).collect();
        text += &format!("- [Common](#common-arguments): {}\n", names.join(", "));
    }
    text
}

fn page() -> String {
    let commands = commands();
    let common = common(&commands);
    let sections: String = commands.iter().map(|command| section(command, &common)).collect();
    let items = common.keys().map(String::as_str).collect::<String>();
    format!("{HEAD}{sections}\n## Common arguments\n\n{items}")
}

/// The commands that the examples of `--help` show.
fn examples() -> Vec<DocCommand> {
    let help = |command: &Command| {
        let name = command.get_bin_name().unwrap_or_else(|| command.get_name());
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        of_text(name, &format!("```\n{help}\n```\n"))
    };
    commands().iter().flat_map(help).collect()
}

#[test]
fn the_page_of_commands_is_that_of_the_program() {
    let path = crate::doc_commands::root().join("docs/reference/commands.md");
    let page = page();
    if std::env::var_os("LASTHOP_WRITE_MANUAL").is_some() {
        std::fs::write(&path, page).expect("the page is written");
    } else {
        let old = std::fs::read_to_string(&path).expect("there is a page");
        assert!(old == page, "docs/reference/commands.md is out of date: run `make manual`");
    }
}

/// tests/documented.rs runs those that can run on any machine.
#[test]
fn commands_of_the_documentation_are_understood() {
    let (pages, examples) = (crate::doc_commands::commands(), examples());
    assert!(pages.len() > 100 && examples.len() > 50, "{} {}", pages.len(), examples.len());
    for example in pages.into_iter().chain(examples) {
        let words = words(&example.command);
        if let Err(error) = crate::Cli::command().try_get_matches_from(&words) {
            let helps = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
            assert!(helps, "{}:{}: {words:?}: {error}", example.page, example.line);
        }
    }
}

/// The words of a command after shell parsing, up to a pipe or a redirection, without `sudo`.
fn words(command: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in command.strip_prefix("sudo ").unwrap_or(command).chars() {
        match (quote, c) {
            (Some(mark), c) if c == mark => quote = None,
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '|' | '>' | '<' | ';' | '&') => break,
            (None, ' ') => words.extend(word.take()),
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}
