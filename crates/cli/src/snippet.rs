//! A diagnostic for a terminal: the message, the lines of text that it refers to, and the remedy.

use lasthop_report::wrap::{columns, fill};

use crate::style::painted;

/// How serious a diagnostic is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Severity {
    /// The command cannot be carried out.
    Error,
    /// The command continues, but probably not as intended.
    Warning,
}

/// A message about a span of a text.
#[derive(Debug)]
pub struct Snippet<'a> {
    /// Colour and sign of the message.
    pub severity: Severity,
    /// The problem.
    pub message: &'a str,
    /// File or option that has the text.
    pub name: &'a str,
    /// The whole text.
    pub text: &'a str,
    /// Line and column where the span begins, both counted from one.
    pub position: (usize, usize),
    /// First byte and length of the span, which lies in one line.
    pub span: (usize, usize),
    /// Remark on the span; may be empty.
    pub label: &'a str,
    /// Remedy; may be empty.
    pub help: &'a str,
}

/// Lines of context before and after that of the span.
const CONTEXT: usize = 1;
/// Columns between tab stops.
const TAB: usize = 4;

impl Snippet<'_> {
    /// The diagnostic for a terminal of `width` columns. Lines of the text are not wrapped.
    pub fn drawn(&self, width: usize, colourful: bool) -> String {
        let paint = |text: &str, code: &str| painted(text, code, colourful);
        let (sign, code) = match self.severity {
            Severity::Error => ("×", "31"),
            Severity::Warning => ("⚠", "33"),
        };
        let width = width.saturating_sub(2);
        let (first, rest) =
            (format!("  {} ", paint(sign, code)), format!("  {} ", paint("│", code)));
        let mut drawn = fill(self.message, width, &first, &rest) + "\n";
        drawn += &self.lines(&paint);
        if !self.help.is_empty() {
            drawn += &fill(self.help, width, &paint("  help: ", "36"), "        ");
            drawn.push('\n');
        }
        drawn
    }

    fn lines(&self, paint: &dyn Fn(&str, &str) -> String) -> String {
        let start = floor(self.text, self.span.0);
        let end = floor(self.text, self.span.0.saturating_add(self.span.1)).max(start);
        let index = self.text[..start].matches('\n').count();
        let line_start = self.text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let mut lines: Vec<&str> = self.text.lines().collect();
        // The position after the end of the last line.
        lines.resize(lines.len().max(index + 1), "");
        let shown = index.saturating_sub(CONTEXT)..(index + CONTEXT + 1).min(lines.len());
        let digits = shown.end.to_string().len();
        let blank = " ".repeat(digits + 2);
        let (line, column) = self.position;
        let place = paint(&format!("{}:{line}:{column}", self.name), "1;4;36");
        let mut drawn = format!("{blank}╭─[{place}]\n");
        for row in shown {
            let number = paint(&format!(" {:digits$} ", row + 1), "2");
            drawn += &format!("{number}│ {}\n", printable(lines[row]));
            if row == index {
                let before = columns(&printable(&self.text[line_start..start]));
                let span = columns(&printable(&self.text[line_start..end])) - before;
                drawn += &self.underline(&blank, before, span, paint);
            }
        }
        drawn + &blank + "╰────\n"
    }

    /// The underline of the span, and the label below its middle.
    fn underline(
        &self,
        blank: &str,
        before: usize,
        span: usize,
        paint: &dyn Fn(&str, &str) -> String,
    ) -> String {
        let middle = span / 2;
        let mark = match span {
            0 => "▲".to_owned(),
            _ => format!("{}┬{}", "─".repeat(middle), "─".repeat(span - middle - 1)),
        };
        let mut drawn = format!("{blank}· {}{}\n", " ".repeat(before), paint(&mark, "1;35"));
        if !self.label.is_empty() {
            let label = paint(&format!("╰── {}", self.label), "1;35");
            drawn += &format!("{blank}· {}{label}\n", " ".repeat(before + middle));
        }
        drawn
    }
}

/// The last boundary of a character at or before `index`.
fn floor(text: &str, index: usize) -> usize {
    (0..=index.min(text.len())).rev().find(|i| text.is_char_boundary(*i)).unwrap_or(0)
}

/// A line with blanks for tabs, and without control characters.
fn printable(line: &str) -> String {
    let mut shown = String::with_capacity(line.len());
    for c in line.chars() {
        match c {
            '\t' => shown.push_str(&" ".repeat(TAB - columns(&shown) % TAB)),
            c if c.is_control() => shown.push('\u{fffd}'),
            c => shown.push(c),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(text: &str, span: (usize, usize), label: &str) -> String {
        let line = text[..floor(text, span.0)].matches('\n').count() + 1;
        let (severity, position) = (Severity::Error, (line, 1));
        let (name, message, help) = ("f", "no", "");
        Snippet { severity, message, name, text, position, span, label, help }.drawn(80, false)
    }

    #[test]
    fn tabs_and_wide_characters_move_the_mark() {
        let text = drawn("a = 1\n\tb = \"日本\" # c\nd = 2\ne = 3", (11, 8), "two");
        assert_eq!(
            text,
            "  × no\n   ╭─[f:2:1]\n 1 │ a = 1\n 2 │     b = \"日本\" # c\n   ·         ───┬──\n   ·            ╰── two\n 3 │ d = 2\n   ╰────\n"
        );
    }

    #[test]
    fn a_place_after_the_end_has_an_arrow() {
        for (text, span) in [("", (0, 0)), ("x = ", (4, 9)), ("x\n", (2, 0)), ("é", (1, 1))] {
            let text = drawn(text, span, "");
            assert!(text.ends_with("╰────\n") && !text.contains("╰──  "), "{text}");
            assert!(text.contains('▲') || text.contains('┬'), "{text}");
        }
        assert!(drawn("x\n", (2, 0), "").contains(" 2 │ \n   · ▲\n"));
    }

    #[test]
    fn nothing_of_a_file_reaches_the_terminal_as_a_command() {
        let text = drawn("a = \"\u{1b}[2J\u{7}\"", (4, 8), "here");
        assert!(!text.contains('\u{1b}') && !text.contains('\u{7}'), "{text:?}");
        assert!(text.contains("· ") && text.contains("┬"), "{text}");
    }
}
