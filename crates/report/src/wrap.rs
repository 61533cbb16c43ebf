//! Line wrapping for terminals.

use textwrap::{Options, WordSeparator, WordSplitter, WrapAlgorithm};

/// Columns of `text` on a terminal; escape sequences of colours take none.
pub fn columns(text: &str) -> usize {
    textwrap::core::display_width(text)
}

/// Wraps each line of `text` to `width` columns, between words. Continuation lines are indented to the second column of
/// a list (after a gap of two blanks or more), or else by two columns. A word longer than `width` stays whole.
pub fn wrap(text: &str, width: usize) -> String {
    let lines: Vec<String> = text.split('\n').map(|line| fit(line, width)).collect();
    lines.join("\n")
}

/// Fills lines of `width` columns with `text`: the first one begins with `first`, all others with `rest`. Words longer than
/// a line are broken.
pub fn fill(text: &str, width: usize, first: &str, rest: &str) -> String {
    let options = Options::new(width)
        .initial_indent(first)
        .subsequent_indent(rest)
        .word_separator(WordSeparator::AsciiSpace)
        .word_splitter(WordSplitter::NoHyphenation)
        .wrap_algorithm(WrapAlgorithm::FirstFit);
    textwrap::fill(text, options)
}

fn fit(line: &str, width: usize) -> String {
    if columns(line) <= width {
        return line.to_owned();
    }
    let text = line.trim_matches(' ');
    // A deep indentation would leave a thin column on a narrow terminal.
    let indent = (line.len() - line.trim_start_matches(' ').len()).min(width / 8);
    let hang = match text.split_once("  ") {
        Some((name, rest)) => {
            let gap = 2 + rest.len() - rest.trim_start_matches(' ').len();
            Some(indent + columns(name) + gap).filter(|hang| *hang <= width / 2)
        }
        None => None,
    };
    let (indent, hang) = (" ".repeat(indent), " ".repeat(hang.unwrap_or(indent + 2)));
    let options = Options::new(width)
        .initial_indent(&indent)
        .subsequent_indent(&hang)
        .break_words(false)
        .word_separator(WordSeparator::AsciiSpace)
        .word_splitter(WordSplitter::NoHyphenation)
        .wrap_algorithm(WrapAlgorithm::FirstFit);
    textwrap::fill(text, options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_wrapped_between_words_to_the_given_width() {
        let line = "  rate          20mbit    estimated: acknowledged in the best windows of 0.2 s";
        for width in [40, 60, 80] {
            let text = wrap(line, width);
            assert!(text.lines().all(|line| columns(line) <= width), "{text}");
            let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            assert_eq!(words(&text), words(line));
        }
        assert_eq!(wrap(line, 200), line);
        assert_eq!(wrap("a\n\nb\n", 9), "a\n\nb\n");
    }

    #[test]
    fn wrapped_descriptions_align_with_their_first_line() {
        assert_eq!(
            wrap("snoop  keeps copies of packets", 18),
            "snoop  keeps\n       copies of\n       packets"
        );
        assert_eq!(wrap("a-long-name-of-it  what it is", 20), "a-long-name-of-it\n  what it is");
        assert_eq!(wrap("one\n\ntwo three four", 9), "one\n\ntwo three\n  four");
        assert_eq!(wrap("short incomprehensibilities", 9), "short\n  incomprehensibilities");
    }

    #[test]
    fn a_filled_paragraph_has_its_first_line_prefix() {
        let text = fill("one two-three\n  four", 9, "- ", "  ");
        assert_eq!(text, "- one\n  two-thr\n  ee\n    four");
    }

    #[test]
    fn colours_take_no_columns() {
        assert_eq!(columns("\u{1b}[1;31merror:\u{1b}[0m x ±"), 10);
        assert_eq!(columns("日本"), 4);
    }
}
