//! Arguments of the command line that change a scenario.

/// An argument of the command line that changes a scenario.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Argument {
    /// `--set KEY=VALUE`: one value; an axis of the file with this key is dropped. For a labelled axis VALUE
    /// is the label of the remaining point.
    Set(String),
    /// `--vary KEY=A,B,C`: an axis; it replaces an axis of the file with this key. For a labelled axis the
    /// values are the labels of the remaining points.
    Vary(String),
}

impl Argument {
    /// Its option.
    pub fn option(&self) -> &'static str {
        match self {
            Argument::Set(_) => "--set",
            Argument::Vary(_) => "--vary",
        }
    }

    /// The text after the option; [`Location`](crate::Location)s count its bytes.
    pub fn text(&self) -> &str {
        match self {
            Argument::Set(text) | Argument::Vary(text) => text,
        }
    }
}

/// Splits at the commas outside of brackets, braces and quotes.
pub(crate) fn commas(text: &str) -> Vec<&str> {
    let (mut depth, mut quote, mut begin) = (0_i32, None, 0);
    let mut parts = Vec::new();
    for (i, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => depth -= 1,
            (None, ',') if depth == 0 => {
                parts.push(&text[begin..i]);
                begin = i + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[begin..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_in_brackets_and_quotes_do_not_split() {
        assert_eq!(commas("none,snoop"), ["none", "snoop"]);
        assert_eq!(commas("[\"a\",\"b\"],[\"c\"]"), ["[\"a\",\"b\"]", "[\"c\"]"]);
        assert_eq!(commas("{m=\"x,y\",n=1},none"), ["{m=\"x,y\",n=1}", "none"]);
    }
}
