//! Text in lines that fit.

use unicode_width::UnicodeWidthChar as _;

/// How many columns `text` takes on a terminal; sequences of colours and the like take none.
pub fn columns(text: &str) -> usize {
    let mut rest = text.chars();
    let mut columns = 0;
    while let Some(c) = rest.next() {
        if c != '\u{1b}' {
            columns += c.width().unwrap_or(0);
        } else if rest.clone().next() == Some('[') {
            rest.next();
            let _ = rest.find(|c| ('@'..='~').contains(c));
        }
    }
    columns
}

/// Each line of `text` as lines of at most `width` columns, cut between words. The further ones are indented: below what
/// stands behind a gap of two blanks and more, as in a list of names and what they mean, or else by two columns. A word that is
/// longer stays whole.
pub fn wrap(text: &str, width: usize) -> String {
    let lines: Vec<String> = text.split('\n').map(|line| fit(line, width)).collect();
    lines.join("\n")
}

/// Words with the blanks before each.
fn words(line: &str) -> Vec<(usize, &str)> {
    let (mut all, mut gap) = (Vec::new(), 0);
    for (i, word) in line.split(' ').enumerate() {
        gap += usize::from(i > 0);
        if !word.is_empty() {
            all.push((gap, word));
            gap = 0;
        }
    }
    all
}

fn fit(line: &str, width: usize) -> String {
    if columns(line) <= width {
        return line.to_owned();
    }
    let words = words(line);
    let Some((indent, _)) = words.first().copied() else { return String::new() };
    // What is deep on a wide screen would be a thin column on a narrow one.
    let indent = indent.min(width / 8);
    let hang = hang(&words, indent).filter(|hang| *hang <= width / 2).unwrap_or(indent + 2);
    let (mut text, mut column) = (String::new(), 0);
    for (gap, word) in words {
        let wide = columns(word);
        let gap = if column == 0 { indent } else { gap };
        if column > 0 && column + gap + wide > width {
            text += "\n";
            text += &" ".repeat(hang);
            column = hang;
        } else {
            text += &" ".repeat(gap);
            column += gap;
        }
        text += word;
        column += wide;
    }
    text
}

/// Where the words behind the first gap begin.
fn hang(words: &[(usize, &str)], indent: usize) -> Option<usize> {
    let mut column = indent + columns(words.first()?.1);
    for (gap, word) in &words[1..] {
        if *gap > 1 {
            return Some(column + gap);
        }
        column += gap + columns(word);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_between_words_and_never_longer_than_asked() {
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
    fn what_a_name_means_stands_below_itself() {
        assert_eq!(
            wrap("snoop  keeps copies of packets", 18),
            "snoop  keeps\n       copies of\n       packets"
        );
        assert_eq!(wrap("a-long-name-of-it  what it is", 20), "a-long-name-of-it\n  what it is");
        assert_eq!(wrap("one\n\ntwo three four", 9), "one\n\ntwo three\n  four");
        assert_eq!(wrap("short incomprehensibilities", 9), "short\n  incomprehensibilities");
    }

    #[test]
    fn colours_take_no_columns() {
        assert_eq!(columns("\u{1b}[1;31merror:\u{1b}[0m x ±"), 10);
        assert_eq!(columns("日本"), 4);
    }
}
