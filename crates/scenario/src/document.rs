//! A TOML document in which every key and every value has its source location.
//!
//! `toml`'s own tables do not preserve the order of the file, and cannot hold values from the command line.
//! Both matter here, so its parse result is copied into a small tree.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::{Code, Diagnostic, Error, Location, Source};
use crate::syntax::{other_language, remedy};

/// A value and its location.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Node {
    pub at: Location,
    pub value: Value,
}

/// A TOML value.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Value {
    String(String),
    /// `None` when it does not fit 64 bits; the text stays for messages.
    Integer(Option<i64>, String),
    Float(f64, String),
    Bool(bool),
    Datetime(String),
    Array(Vec<Node>),
    Table(Table),
}

/// A table in the order of the file.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Table {
    pub entries: Vec<Entry>,
    /// Whether it was written in braces: then it is a single value, not a group of dotted keys.
    pub inline: bool,
}

/// A key and its value.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Entry {
    pub key: String,
    pub key_at: Location,
    pub node: Node,
}

impl Table {
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|entry| &entry.node)
    }

    /// The items of a list; none if the key is absent or no list.
    pub fn items(&self, key: &str) -> &[Node] {
        self.get(key).and_then(Node::as_array).unwrap_or_default()
    }

    pub fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key == key)
    }

    pub fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        self.entries.iter_mut().find(|entry| entry.key == key).map(|entry| &mut entry.node)
    }

    pub fn has(&self, key: &str) -> bool {
        self.entry(key).is_some()
    }

    /// Sets `key`. A replaced value does not change its position among its siblings.
    pub fn put(&mut self, key: &str, key_at: &Location, node: Node) {
        match self.entries.iter_mut().find(|entry| entry.key == key) {
            Some(entry) => {
                entry.key_at = key_at.clone();
                entry.node = node;
            }
            None => {
                self.entries.push(Entry { key: key.to_owned(), key_at: key_at.clone(), node });
            }
        }
    }

    /// Removes all source locations.
    pub fn forget_locations(&mut self) {
        for entry in &mut self.entries {
            entry.key_at = Location::file(0..0);
            entry.node.forget_locations();
        }
    }

    pub fn remove(&mut self, key: &str) -> Option<Entry> {
        let index = self.entries.iter().position(|entry| entry.key == key)?;
        Some(self.entries.remove(index))
    }
}

impl Node {
    /// A value that is not from the user's input.
    pub fn new(value: Value) -> Node {
        Node { at: Location::file(0..0), value }
    }

    pub fn as_str(&self) -> Option<&str> {
        match &self.value {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    pub fn as_table(&self) -> Option<&Table> {
        match &self.value {
            Value::Table(table) => Some(table),
            _ => None,
        }
    }

    pub fn as_table_mut(&mut self) -> Option<&mut Table> {
        match &mut self.value {
            Value::Table(table) => Some(table),
            _ => None,
        }
    }

    pub fn as_array(&self) -> Option<&[Node]> {
        match &self.value {
            Value::Array(items) => Some(items),
            _ => None,
        }
    }

    pub fn forget_locations(&mut self) {
        self.at = Location::file(0..0);
        match &mut self.value {
            Value::Array(items) => items.iter_mut().for_each(Node::forget_locations),
            Value::Table(table) => table.forget_locations(),
            _ => {}
        }
    }

    /// The kind of the value with an article, for messages.
    pub fn kind(&self) -> &'static str {
        match self.value {
            Value::String(_) => "a string",
            Value::Integer(..) => "an integer",
            Value::Float(..) => "a number",
            Value::Bool(_) => "true or false",
            Value::Datetime(_) => "a date",
            Value::Array(_) => "a list",
            Value::Table(_) => "a table",
        }
    }

    /// The value in a few words: the label of a point on an axis.
    pub fn brief(&self) -> String {
        match &self.value {
            Value::String(text)
            | Value::Integer(_, text)
            | Value::Float(_, text)
            | Value::Datetime(text) => text.clone(),
            Value::Bool(value) => value.to_string(),
            Value::Array(items) => {
                let items: Vec<String> = items.iter().map(Node::brief).collect();
                format!("[{}]", items.join(", "))
            }
            Value::Table(table) => {
                let entries: Vec<String> = table
                    .entries
                    .iter()
                    .map(|entry| format!("{} = {}", entry.key, entry.node.brief()))
                    .collect();
                format!("{{{}}}", entries.join(", "))
            }
        }
    }

    /// The value in the notation of a file, in one line.
    pub fn written(&self) -> String {
        match &self.value {
            Value::String(text) => format!("{text:?}"),
            Value::Array(items) => {
                let items: Vec<String> = items.iter().map(Node::written).collect();
                format!("[{}]", items.join(", "))
            }
            Value::Table(table) => {
                let entry = |entry: &Entry| format!("{} = {}", entry.key, entry.node.written());
                let entries: Vec<String> = table.entries.iter().map(entry).collect();
                format!("{{ {} }}", entries.join(", "))
            }
            _ => self.brief(),
        }
    }
}

/// Parses a whole file.
pub(crate) fn parse(text: &str) -> Result<Table, Error> {
    match DeTable::parse(text) {
        Ok(table) => Ok(copy_table(table.get_ref(), false, &Origin::file(text))),
        Err(error) => {
            let span = error.span().unwrap_or(0..0);
            let remedy = remedy(text, span.clone(), error.message());
            let remedy = remedy.map_or(String::new(), |remedy| format!("{remedy}; "));
            let problem = other_language(text).unwrap_or(error.message());
            Err(Diagnostic::new(Code::Syntax, "", &Location::file(span))
                .message(format!("this is not TOML: {problem}"))
                .label("here")
                .help(format!(
                    "{remedy}a scenario is written in TOML: `key = value` lines under `[table]` headings, text \
                     in double quotes, for example `rate = \"2mbit\"`; `lasthop list scenarios` names \
                     examples to start from"
                ))
                .into())
        }
    }
}

/// Parses the value part of an argument as TOML. Text that is not TOML is a string, so that
/// `rate=2mbit` needs no quotes within quotes. `from` is the offset of the value in the argument.
pub(crate) fn parse_value(text: &str, source: Source, from: usize) -> Node {
    let origin = Origin { text, source, from };
    match DeValue::parse(text) {
        Ok(value) => copy(&value, &origin),
        Err(_) => Node {
            at: origin.location(0..text.len()),
            value: Value::String(text.trim().to_owned()),
        },
    }
}

/// The text that spans refer to, and its offset in the user's input.
struct Origin<'t> {
    text: &'t str,
    source: Source,
    from: usize,
}

impl<'t> Origin<'t> {
    fn file(text: &'t str) -> Origin<'t> {
        Origin { text, source: Source::File, from: 0 }
    }

    fn location(&self, span: core::ops::Range<usize>) -> Location {
        Location { source: self.source, span: span.start + self.from..span.end + self.from }
    }
}

fn copy(value: &Spanned<DeValue<'_>>, origin: &Origin<'_>) -> Node {
    let copied = match value.get_ref() {
        DeValue::String(text) => Value::String(text.clone().into_owned()),
        DeValue::Integer(number) => {
            let parsed = i64::from_str_radix(number.as_str(), number.radix()).ok();
            Value::Integer(parsed, number.to_string())
        }
        DeValue::Float(number) => {
            Value::Float(number.as_str().parse().unwrap_or(f64::NAN), number.to_string())
        }
        DeValue::Boolean(value) => Value::Bool(*value),
        DeValue::Datetime(value) => Value::Datetime(value.to_string()),
        DeValue::Array(items) => {
            Value::Array(items.iter().map(|item| copy(item, origin)).collect())
        }
        DeValue::Table(table) => {
            let inline = origin.text[..].as_bytes().get(value.span().start) == Some(&b'{');
            Value::Table(copy_table(table, inline, origin))
        }
    };
    Node { at: origin.location(value.span()), value: copied }
}

fn copy_table(table: &DeTable<'_>, inline: bool, origin: &Origin<'_>) -> Table {
    let mut entries: Vec<Entry> = table
        .iter()
        .map(|(key, value)| Entry {
            key: key.get_ref().clone().into_owned(),
            key_at: origin.location(key.span()),
            node: copy(value, origin),
        })
        .collect();
    // The parser sorts by key; the file's order decides which host comes first.
    entries.sort_by_key(|entry| entry.key_at.span.start);
    Table { entries, inline }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_retain_their_file_order_and_locations() {
        let text = "zoo = 1\n[host.b]\nx = 'y'\n[host.a]\nx.y = 2\nz = { y = 3 }\n";
        let table = parse(text).unwrap();
        assert_eq!(table.entries[0].key, "zoo");
        let host = table.get("host").and_then(Node::as_table).unwrap();
        let names: Vec<&str> = host.entries.iter().map(|entry| entry.key.as_str()).collect();
        assert_eq!(names, ["b", "a"]);
        let a = host.get("a").and_then(Node::as_table).unwrap();
        assert!(!a.get("x").and_then(Node::as_table).unwrap().inline);
        assert!(a.get("z").and_then(Node::as_table).unwrap().inline);
        let entry = &host.get("b").and_then(Node::as_table).unwrap().entries[0];
        assert_eq!(&text[entry.key_at.span.clone()], "x");
        assert_eq!(&text[entry.node.at.span.clone()], "'y'");
    }

    #[test]
    fn bare_words_of_an_argument_are_strings() {
        assert_eq!(parse_value("2mbit", Source::Argument(0), 5).as_str(), Some("2mbit"));
        assert_eq!(parse_value("snoop+ackp", Source::Argument(0), 5).as_str(), Some("snoop+ackp"));
        assert_eq!(
            parse_value("5", Source::Argument(0), 5).value,
            Value::Integer(Some(5), "5".into())
        );
        assert_eq!(parse_value("5", Source::Argument(0), 7).at.span, 7..8);
        assert_eq!(
            parse_value("[\"data\"]", Source::Argument(0), 0).as_array().map(<[Node]>::len),
            Some(1)
        );
    }
}
