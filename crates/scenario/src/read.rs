//! Typed values of a document, with errors that show the expected form and an example.

mod values;

use crate::document::{Entry, Node, Table};
use crate::error::{Code, Diagnostic, Error, Location, Noted, did_you_mean, listed};
use crate::schema;
use crate::synonyms::{KEYS, meaning, same};

/// A value that can be written in a scenario.
pub(crate) trait Readable: Sized {
    /// The form with examples: finishes the sentence "expected ...".
    const EXPECTED: &'static str;
    /// An example value, as after `key = `.
    const EXAMPLE: &'static str;

    /// The value, or its fault.
    fn read(node: &Node) -> Result<Self, Trouble>;

    /// The most likely value of a refused word, as after `key = `.
    fn corrected(_: &str) -> Option<String> {
        None
    }
}

/// Frequent keys of tables, with examples.
const COMMON: [(&str, &str); 3] =
    [("rate", "\"10mbit\""), ("tcp", "\"cubic\""), ("bytes", "\"2MB\"")];

/// The name of a scenario's file in messages.
pub(crate) const SCENARIO: &str = "scenario";

/// The fault of a value: its kind, and a few words.
pub(crate) type Trouble = (Code, String);

/// A value of the wrong kind.
fn bad(why: impl Into<String>) -> Trouble {
    (Code::BadValue, why.into())
}

/// A value of the right kind, but too small or too large.
fn beyond(why: impl Into<String>) -> Trouble {
    (Code::OutOfRange, why.into())
}

/// One table of the document while its keys are being read.
#[derive(Clone)]
pub(crate) struct Reader<'t> {
    table: &'t Table,
    /// Dotted key of the table; empty for the file.
    path: String,
    at: Location,
    /// The name of the file in messages.
    file: &'static str,
}

impl<'t> Reader<'t> {
    /// Opens a table that may have `keys` and no others. Unknown keys are reported before missing ones,
    /// since a misspelled key is usually the missing one.
    pub fn open(node: &'t Node, path: &str, keys: &[&str]) -> Result<Reader<'t>, Error> {
        let Some(table) = node.as_table() else {
            let common = COMMON.iter().find(|(key, _)| keys.contains(key));
            let first = (*keys.first().unwrap_or(&"key"), "...");
            let (key, value) = common.copied().unwrap_or(first);
            // A long list hides the example.
            let all = match keys.len() > 12 {
                true => String::new(),
                false => format!("; {}", did_you_mean("", keys)),
            };
            return Err(Diagnostic::new(Code::BadValue, path, &node.at)
                .message(format!("`{path}` is {}, not a table", node.kind()))
                .label("expected a table")
                .help(format!("write it in braces: `{{ {key} = {value} }}`{all}"))
                .into());
        };
        Reader::of(table, path, node.at.clone(), SCENARIO, keys)
    }

    /// The top level of a file that messages call `file`.
    pub fn top(table: &'t Table, file: &'static str, keys: &[&str]) -> Result<Reader<'t>, Error> {
        Reader::of(table, "", Location::file(0..0), file, keys)
    }

    fn of(
        table: &'t Table,
        path: &str,
        at: Location,
        file: &'static str,
        keys: &[&str],
    ) -> Result<Reader<'t>, Error> {
        let reader = Reader { table, path: path.to_owned(), at, file };
        match table.entries.iter().find(|entry| !keys.contains(&entry.key.as_str())) {
            None => Ok(reader),
            Some(entry) => Err(reader.unknown(entry, keys)),
        }
    }

    /// The reader of a table with any keys.
    pub fn any(table: &'t Table, path: &str, at: Location) -> Reader<'t> {
        Reader { table, path: path.to_owned(), at, file: SCENARIO }
    }

    /// The keys of the table.
    pub fn keys(&self) -> impl Iterator<Item = &'t str> {
        self.table.entries.iter().map(|entry| entry.key.as_str())
    }

    fn unknown(&self, entry: &Entry, keys: &[&str]) -> Error {
        let place = self.named("a");
        let owner = match self.file == SCENARIO && same(&entry.key, KEYS, keys).is_none() {
            true => schema::owner(&entry.key),
            false => None,
        };
        Diagnostic::new(Code::UnknownKey, self.key(&entry.key), &entry.key_at)
            .message(format!("{place} has no key `{}`", entry.key))
            .label("unknown key")
            .help(self.other_file().or(owner).unwrap_or_else(|| did_you_mean(&entry.key, keys)))
            .into()
    }

    /// The remedy for a file of another command: all of its keys are of that kind.
    fn other_file(&self) -> Option<String> {
        let station = [schema::keys("station"), &["path"]].concat();
        let kinds = [
            (SCENARIO, schema::scenario(), "a scenario: `lasthop run FILE`"),
            ("station's file", &station[..], "a station's file: `lasthop station FILE`"),
            ("tunnel's file", schema::keys("tunnel"), "a tunnel's file: `lasthop link FILE`"),
        ];
        let fits = |keys: &[&str]| {
            self.table.entries.iter().all(|entry| keys.contains(&entry.key.as_str()))
        };
        let (_, _, command) =
            kinds.into_iter().find(|(file, keys, _)| *file != self.file && fits(keys))?;
        self.path.is_empty().then(|| format!("these are the keys of {command}"))
    }

    /// Reports a key of another kind of this table with a specific message. This table is of the kind
    /// `kind` and may have the keys `own`, in addition to those of every kind.
    pub fn belongs(&self, kind: &str, own: &[&str], every: &[&str]) -> Result<(), Error> {
        let has = |key: &str| own.contains(&key) || every.contains(&key);
        let Some(entry) = self.table.entries.iter().find(|entry| !has(&entry.key)) else {
            return Ok(());
        };
        let word = kind.rsplit(' ').next().unwrap_or(kind);
        let guess = meaning(&entry.key, KEYS, own)
            .map_or(String::new(), |near| format!("; did you mean `{near}`?"));
        Err(Diagnostic::new(Code::UnknownKey, self.key(&entry.key), &entry.key_at)
            .message(format!("`{}`: {kind} has no key `{}`", self.path, entry.key))
            .label("belongs to another one")
            .help(format!("{word} takes {}{guess}", listed(own)))
            .into())
    }

    fn named(&self, article: &str) -> String {
        match self.path.as_str() {
            "" => format!("{article} {}", self.file),
            path => format!("`{path}`"),
        }
    }

    /// Dotted key of `key` in this table.
    pub fn key(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// Where the table was written.
    pub fn at(&self) -> &Location {
        &self.at
    }

    /// The bare value of a key.
    pub fn node(&self, key: &str) -> Option<&'t Node> {
        self.table.get(key)
    }

    /// The items of a list; none if the key is absent or no list.
    pub fn items(&self, key: &str) -> &'t [Node] {
        self.table.items(key)
    }

    /// Whether the key is there.
    pub fn has(&self, key: &str) -> bool {
        self.table.has(key)
    }

    /// Source location of the key's value, or of the table without it.
    pub fn location(&self, key: &str) -> Location {
        self.node(key).map_or_else(|| self.at.clone(), |node| node.at.clone())
    }

    /// The value of an optional key.
    pub fn optional<T: Readable>(&self, key: &str) -> Result<Option<T>, Error> {
        let Some(node) = self.node(key) else { return Ok(None) };
        read(node, &self.key(key), key).map(Some)
    }

    /// The value of a key, or a default.
    pub fn or<T: Readable>(&self, key: &str, default: T) -> Result<T, Error> {
        Ok(self.optional(key)?.unwrap_or(default))
    }

    /// One of several words.
    pub fn choice<T: Copy, const N: usize>(
        &self,
        key: &str,
        choices: &[(&'static str, T); N],
    ) -> Result<Option<T>, Error> {
        let Some(node) = self.node(key) else { return Ok(None) };
        let words = choices.map(|(word, _)| word);
        let word = node.as_str().unwrap_or_default();
        match choices.iter().find(|(name, _)| *name == word) {
            Some((_, value)) => Ok(Some(*value)),
            None => Err(not_a_choice(node, &self.key(key), &words)),
        }
    }

    /// The error for a required key that is missing.
    pub fn missing(&self, key: &str, expected: &str, example: &str) -> Error {
        let place = self.named("the");
        Diagnostic::new(Code::MissingKey, self.key(key), &self.at)
            .message(format!("{place} needs `{key}`"))
            .label(format!("`{key}` is missing"))
            .help(format!("expected {expected}, for example `{key} = {example}`"))
            .into()
    }

    /// The error for a value outside its limits.
    pub fn out_of_range(&self, key: &str, help: &str) -> Error {
        let shown = self.node(key).map(Node::brief).unwrap_or_default();
        Diagnostic::new(Code::OutOfRange, self.key(key), &self.location(key))
            .message(format!("`{}`: {shown} is out of range", self.key(key)))
            .label("out of range")
            .help(help)
            .into()
    }

    /// The warning of a key without an effect here. It counts if every combination of a sweep has it.
    pub fn unused(&self, key: &str, label: &str, help: &str) -> Noted {
        let warning = Diagnostic::new(Code::NoEffect, self.key(key), &self.location(key))
            .message(format!("`{key}` has no effect"))
            .label(label)
            .help(help);
        Noted { warning, in_every_cell: true }
    }
}

/// Reads a single value.
pub(crate) fn read<T: Readable>(node: &Node, path: &str, key: &str) -> Result<T, Error> {
    T::read(node).map_err(|(code, why)| {
        let word = node.brief();
        let correctable = code == Code::BadValue && node.as_array().is_none();
        let corrected = T::corrected(&word).filter(|_| correctable);
        let help = match &corrected {
            Some(meant) => format!("did you mean `{key} = {meant}`?"),
            None => format!("for example `{key} = {}`{}", T::EXAMPLE, axis_hint(node)),
        };
        Diagnostic::new(code, path, &node.at)
            .message(format!("`{path}`: {why}"))
            .label(format!("expected {}", T::EXPECTED))
            .help(help)
            .into()
    })
}

/// Remedy for a list in place of a value.
fn axis_hint(node: &Node) -> &'static str {
    match node.as_array() {
        Some(_) => {
            "; a scenario tries several values as an axis under `[vary]`, for example `link.rate = [\"1mbit\", \"2mbit\"]`"
        }
        None => "",
    }
}

/// A word for a message, shortened: a long one would hide the rest of the message.
pub(crate) fn shortened(word: &str) -> String {
    const LONGEST: usize = 60;
    match word.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", &word[..end]),
        None => word.to_owned(),
    }
}

/// Names become parts of file names, of dotted keys and of table rows.
pub(crate) fn check_name(name: &str, key: &str, at: &Location) -> Result<(), Error> {
    let fits = (1..=64).contains(&name.len())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
        && !name.starts_with('-');
    if fits {
        return Ok(());
    }
    Err(Diagnostic::new(Code::BadName, key, at)
        .message(format!("`{key}`: `{}` cannot be a name", shortened(name)))
        .label("not a name")
        .help("a name is 1 to 64 letters, digits, `-` or `_`, for example `west97-lan`")
        .into())
}

/// The error for an unknown keyword.
pub(crate) fn not_a_choice(node: &Node, path: &str, words: &[&str]) -> Error {
    let problem = match node.as_str() {
        Some(word) => format!("`{}` is none of the choices", shortened(word)),
        None => format!("this is {}, not a word in quotes", node.kind()),
    };
    Diagnostic::new(Code::BadValue, path, &node.at)
        .message(format!("`{path}`: {problem}"))
        .label("not known")
        .help(did_you_mean(node.as_str().unwrap_or_default(), words) + axis_hint(node))
        .into()
}
