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

/// Text for stdout: wrapped at words where a terminal is narrower, as it is in pipes and files.
pub fn wrapped(text: &str) -> String {
    match look() {
        Look::Terminal(width) => text.lines().map(|line| fit(line, usize::from(width))).collect(),
        Look::Plain => text.to_owned(),
    }
}

/// A line as lines of at most `width` columns, the further ones indented a little more; a word that is longer stays whole.
fn fit(line: &str, width: usize) -> String {
    if console::measure_text_width(line) <= width {
        return format!("{line}\n");
    }
    let indent = line.len() - line.trim_start().len();
    let (mut text, mut column) = (String::new(), 0);
    for word in line.split_whitespace() {
        let wide = console::measure_text_width(word);
        let start = match text.is_empty() {
            true => indent.min(width / 8),
            false => indent.min(width / 8) + 2,
        };
        if text.is_empty() || column + 1 + wide > width {
            text += if text.is_empty() { "" } else { "\n" };
            text += &" ".repeat(start);
            column = start;
        } else {
            text.push(' ');
            column += 1;
        }
        text += word;
        column += wide;
    }
    text + "\n"
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_between_words_and_never_longer_than_asked() {
        let line = "  rate          20mbit    estimated: acknowledged in the best windows of 0.2 s";
        for width in [40, 60, 80] {
            let text = fit(line, width);
            assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
            let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            assert_eq!(words(&text), words(line));
        }
        assert_eq!(fit(line, 200), format!("{line}\n"));
    }
}
