//! Checks that arguments and documentation agree. `make manual` generates docs/reference/commands.md, and the
//! parser accepts all commands in pages and in the examples of `--help`.

use clap::error::ErrorKind;
use clap::{Arg, Command, CommandFactory as _};

use crate::cmd::man::commands;
use crate::doc_commands::{DocCommand, of_text};

const HEAD: &str = "\
# Commands

For users of the command line: every command with the names of its options. `lasthop COMMAND --help` and the manual pages (`lasthop generate man
DIR`, in the Debian package) explain them, with examples and files. Exit codes: 0 done, 1 the answer is no, 2 bad input, 70 a fault of lasthop, 130 interrupted.
`make manual` generates this page.

With `--json` every answer is an object with `format`, such as `lasthop-run`, and `format_version`. The version rises when a member is removed or means
something else; new members do not raise it. `lasthop generate schema --answer run` prints the JSON Schema of an answer. A fault is an object on stderr, of the
format `lasthop-error`: `error` has `code`, `message`, `help` and the place (`file`, `line`, `column`, or `command` and `argument`); the exit code is 2.
";

/// The written form of an argument: `--seeds N`, or `FILE`.
fn written(arg: &Arg) -> String {
    let names = arg.get_value_names().unwrap_or_default();
    let values = names.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(" ");
    if arg.is_positional() {
        return format!("`{values}`");
    }
    let value = if arg.get_action().takes_values() { format!(" {values}") } else { String::new() };
    arg.get_long().map_or(String::new(), |long| format!("`--{long}{value}`"))
}

/// The arguments in a command's row. Arguments of all commands are in the program's row.
fn listed(command: &Command) -> impl Iterator<Item = &Arg> {
    let program = command.get_bin_name().unwrap_or_else(|| command.get_name()) == "lasthop";
    let hidden =
        |arg: &Arg| arg.is_hide_set() || ["help", "version"].contains(&arg.get_id().as_str());
    command.get_arguments().filter(move |arg| !hidden(arg) && (!arg.is_global_set() || program))
}

fn row(command: &Command) -> String {
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name());
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let arguments: Vec<String> = listed(command).map(written).collect();
    let row = format!("| `{name}` | {about} | {}", arguments.join(", "));
    format!("{} |\n", row.replace("FILE|NAME", "FILE\\|NAME").trim_end())
}

fn page() -> String {
    let rows: String = commands().iter().map(row).collect();
    format!("{HEAD}\n| command | what | arguments |\n|---|---|---|\n{rows}")
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
