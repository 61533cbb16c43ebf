//! Colours, and only where a person looks: on terminals, unless `NO_COLOR` asks for none.

use std::io::IsTerminal as _;

use lasthop_report::table::Look;

fn wanted() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Whether what is written to stderr may have colours.
pub fn stderr_is_colourful() -> bool {
    std::io::stderr().is_terminal() && wanted()
}

/// Whether what is written to stdout may have colours.
pub fn stdout_is_colourful() -> bool {
    std::io::stdout().is_terminal() && wanted()
}

/// Columns of the terminal on stderr; a fixed number for files and pipes, so that output there does not
/// depend on who looks.
pub fn stderr_width() -> usize {
    let terminal = console::Term::stderr();
    let columns = terminal.size_checked().map(|(_, columns)| usize::from(columns));
    columns.unwrap_or(100).clamp(40, 200)
}

/// How tables on stdout are drawn.
pub fn look() -> Look {
    match console::Term::stdout().size_checked() {
        Some((_, columns)) if std::io::stdout().is_terminal() => Look::Terminal(columns),
        _ => Look::Plain,
    }
}

fn painted(text: &str, code: &str, colourful: bool) -> String {
    if colourful { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
}

/// The word `error:` on stderr.
pub fn error(text: &str) -> String {
    painted(text, "1;31", stderr_is_colourful())
}

/// Bold on stderr.
pub fn bold(text: &str) -> String {
    painted(text, "1", stderr_is_colourful())
}

/// A heading on stdout.
pub fn heading(text: &str) -> String {
    painted(text, "1", stdout_is_colourful())
}

/// A side remark on stdout.
pub fn dim(text: &str) -> String {
    painted(text, "2", stdout_is_colourful())
}

/// Something good on stdout.
pub fn good(text: &str) -> String {
    painted(text, "32", stdout_is_colourful())
}

/// Something to look at on stdout.
pub fn bad(text: &str) -> String {
    painted(text, "33", stdout_is_colourful())
}
