//! Errors and warnings about a scenario, with their locations.

use core::fmt;
use core::ops::{Deref, Range};

use serde::Serialize;

use crate::synonyms::{KEYS, meaning, remark};

/// The text of a location.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// The scenario file.
    File,
    /// The argument of this index in the list given to [`crate::parse`].
    Argument(usize),
    /// The table of points given to [`crate::Grid::parse`].
    Points,
    /// The referenced file of this index among the files that [`crate::files::with`] has added to the text.
    Referenced(usize),
}

/// A source location: bytes of the file or of an argument.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Location {
    /// The text of the location.
    pub source: Source,
    /// Bytes within it.
    pub span: Range<usize>,
}

impl Location {
    /// A location in the file.
    pub(crate) fn file(span: Range<usize>) -> Location {
        Location { source: Source::File, span }
    }

    /// Line and column of the beginning in `text`, both counted from one, columns in characters.
    pub fn line_column(&self, text: &str) -> (usize, usize) {
        let end = (0..=self.span.start.min(text.len()))
            .rev()
            .find(|i| text.is_char_boundary(*i))
            .unwrap_or(0);
        let before = &text[..end];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or(before).chars().count() + 1;
        (line, column)
    }
}

/// The kind of a fault: a stable word for scripts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Code {
    /// The text is not TOML.
    Syntax,
    /// A key that does not exist, or not at this position.
    UnknownKey,
    /// A required key is missing.
    MissingKey,
    /// A value of the wrong kind or without its unit, or an unknown keyword.
    BadValue,
    /// A value that is too small, too large or negative.
    OutOfRange,
    /// The path or its stages do not fit together.
    BadPath,
    /// Hosts and transfers do not fit together.
    BadTransfer,
    /// Cells and visits do not fit together.
    BadVisit,
    /// An invalid `--set` or `--vary` argument, or axis.
    BadAxis,
    /// A name that is used twice, or that cannot name a file.
    BadName,
    /// An unknown scheme.
    NoScheme,
    /// Warning: part of the scenario has no effect.
    NoEffect,
    /// Warning: the model differs from a named program or standard, as the message says.
    Differs,
    /// Warning: a number of a `tc` line has no unit, and tc's unit makes it very small.
    BareNumber,
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// One message about a scenario.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Diagnostic {
    /// The kind of fault.
    pub code: Code,
    /// The fault, in one sentence.
    pub message: String,
    /// The key concerned, dotted as `--set` takes it; empty if it concerns the whole file.
    pub key: String,
    /// The source location of the fault.
    pub at: Location,
    /// A few words for the location.
    pub label: String,
    /// The expected form, an example, and a suggestion.
    pub help: String,
}

/// A probably unintended setting. The scenario can be run.
pub type Warning = Diagnostic;

/// A warning, and whether it counts only if every combination of a sweep has it. For example, an option of
/// the snoop agent is valid if one cell of the sweep has that agent.
pub(crate) struct Noted {
    pub warning: Warning,
    pub in_every_cell: bool,
}

impl Diagnostic {
    pub(crate) fn new(code: Code, key: impl Into<String>, at: &Location) -> Diagnostic {
        Diagnostic {
            code,
            key: key.into(),
            at: at.clone(),
            message: String::new(),
            label: String::new(),
            help: String::new(),
        }
    }

    pub(crate) fn message(mut self, message: impl Into<String>) -> Diagnostic {
        self.message = message.into();
        self
    }

    pub(crate) fn label(mut self, label: impl Into<String>) -> Diagnostic {
        self.label = label.into();
        self
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Diagnostic {
        self.help = help.into();
        self
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// The first fault of a text that is not a scenario. Boxed, since it is large and rare.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct Error(pub Box<Diagnostic>);

impl From<Diagnostic> for Error {
    fn from(diagnostic: Diagnostic) -> Error {
        Error(Box::new(diagnostic))
    }
}

impl Deref for Error {
    type Target = Diagnostic;
    fn deref(&self) -> &Diagnostic {
        &self.0
    }
}

/// The most likely candidate, by letters or by meaning.
pub(crate) fn suggestion<'a>(word: &str, candidates: &[&'a str]) -> Option<&'a str> {
    meaning(word, KEYS, candidates)
}

fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).chain(['.']).collect()
}

/// `a`, `b` and `c`, quoted, for a help text.
pub(crate) fn listed(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    match quoted.split_last() {
        None => "nothing".to_owned(),
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
    }
}

/// Help for an unknown word: the most likely one of `candidates`. All candidates are listed if there is none, or if
/// they are few.
pub(crate) fn did_you_mean(word: &str, candidates: &[&str]) -> String {
    let are = if candidates.len() == 1 { "is" } else { "are" };
    // A long list hides the suggestion; without a suggestion the list is the only help.
    let Some(near) = suggestion(word, candidates) else {
        return format!("there {are} {}", listed(candidates));
    };
    let remark = remark(word, near).map(|text| format!(" {}", sentence(text))).unwrap_or_default();
    match candidates.len() > 12 {
        true => format!("did you mean `{near}`?{remark}"),
        false => format!("did you mean `{near}`?{remark} There {are} {}", listed(candidates)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synonyms::nearest;

    #[test]
    fn near_misses_are_recognised_and_others_are_not() {
        let keys = ["delay", "rate", "send-buffer", "tcp"];
        assert_eq!(nearest("dealy", &keys), Some("delay"));
        assert_eq!(nearest("send_buffer", &keys), Some("send-buffer"));
        assert_eq!(nearest("Rate", &keys), Some("rate"));
        assert_eq!(nearest("tpc", &keys), Some("tcp"));
        assert_eq!(nearest("colour", &keys), None);
        // Words without a common letter are not similar.
        assert_eq!(nearest("x", &["y", "p"]), None);
        assert_eq!(nearest("x", &["yx", "p"]), Some("yx"));
    }

    #[test]
    fn lines_and_columns_count_from_one_in_characters() {
        let text = "a = 1\nö = 2\n";
        assert_eq!(Location::file(0..1).line_column(text), (1, 1));
        assert_eq!(Location::file(9..10).line_column(text), (2, 3));
        assert_eq!(Location::file(900..901).line_column(text), (3, 1));
    }
}
