//! Files next to a scenario that its links reference: traces, and values over time.
//!
//! This crate reads no files. The caller gets their names from [`named`] and adds their contents to the text with
//! [`with`]. Each becomes a table `[files."NAME"]` at the end, so that one text contains a whole scenario.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::LazyLock;

use lasthop_proto::describe::Form;
use lasthop_proto::link::varied::names_file;

use crate::document::{self, Entry, Node, Table, Value};
use crate::error::{Code, Diagnostic, Error};
use crate::schema;
use crate::vary::{Argument, commas};

/// A referenced file that is not embedded in the text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Named {
    /// Its name in the scenario.
    pub name: String,
    /// Whether an argument names it, and not the text.
    pub by_argument: bool,
}

/// The keys of a link whose values may be files.
static KEYS: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let keys =
        schema::of("link").keys.iter().filter(|listed| matches!(listed.key.form, Form::File(_)));
    keys.map(|listed| listed.key.name).collect()
});

/// Whether a word at the end of a dotted key is the name of a file.
fn is_file(key: &str, word: &str) -> bool {
    let last = key.rsplit('.').next().unwrap_or(key).trim();
    let always = last.starts_with("trace") || last == "measured";
    KEYS.contains(&last) && (always || names_file(word))
}

/// The files that a text and its arguments reference, in their order, without files that are embedded already.
pub fn named(text: &str, arguments: &[Argument]) -> Vec<Named> {
    // Most scenarios reference none, and need not be parsed twice.
    let may = |text: &str| KEYS.iter().any(|key| text.contains(key));
    if !may(text) && !arguments.iter().any(|argument| may(argument.text())) {
        return Vec::new();
    }
    let Ok(document) = document::parse(text) else { return Vec::new() };
    let mut found = Vec::new();
    for part in ["path", "cell", "vary"] {
        if let Some(node) = document.get(part) {
            collect("", node, &mut found);
        }
    }
    let mut all: Vec<Named> =
        found.into_iter().map(|name| Named { name, by_argument: false }).collect();
    for argument in arguments {
        let Some((key, value)) = argument.text().split_once('=') else { continue };
        let values = match argument {
            Argument::Set(_) => vec![value],
            Argument::Vary(_) => commas(value),
        };
        let names = values.iter().map(|value| value.trim().trim_matches(['"', '\'']));
        let names = names.filter(|name| is_file(key, name));
        all.extend(names.map(|name| Named { name: name.to_owned(), by_argument: true }));
    }
    let there = document.get("files").and_then(Node::as_table);
    let mut seen: Vec<String> = Vec::new();
    all.retain(|named| {
        let new = !seen.contains(&named.name) && !there.is_some_and(|files| files.has(&named.name));
        seen.push(named.name.clone());
        new
    });
    all
}

fn collect(key: &str, node: &Node, found: &mut Vec<String>) {
    match &node.value {
        Value::String(word) if is_file(key, word) => found.push(word.clone()),
        Value::Array(items) => items.iter().for_each(|item| collect(key, item, found)),
        Value::Table(table) => {
            table.entries.iter().for_each(|entry| collect(&entry.key, &entry.node, found));
        }
        _ => {}
    }
}

/// The text with the contents of a file, without a byte order mark, which would make a heading of the first line.
pub fn with(mut text: String, name: &str, content: &str) -> String {
    let content = content.strip_prefix('\u{feff}').unwrap_or(content);
    let quoted = |text: &str| {
        let mut word = String::with_capacity(text.len() + 2);
        for c in text.chars() {
            match c {
                '"' | '\\' => word.extend(['\\', c]),
                '\n' | '\t' => word.push(c),
                c if c.is_control() => drop(write!(word, "\\u{:04x}", c as u32)),
                c => word.push(c),
            }
        }
        word
    };
    let name = quoted(&name.replace('\n', " "));
    let content = quoted(content);
    let _ = write!(text, "\n[files.\"{name}\"]\ntext = \"\"\"\n{content}\"\"\"\n");
    text
}

/// The document with its file names replaced by contents, without the table of files.
pub(crate) fn put_in(document: &Table) -> Result<Cow<'_, Table>, Error> {
    if !document.has("files") {
        return Ok(Cow::Borrowed(document));
    }
    let mut document = document.clone();
    let Some(entry) = document.remove("files") else { return Ok(Cow::Owned(document)) };
    let texts = texts(&entry)?;
    let lists = document.entries.iter_mut().filter(|entry| matches!(&*entry.key, "path" | "cell"));
    lists.for_each(|entry| replace("", &mut entry.node, &texts));
    Ok(Cow::Owned(document))
}

/// The files of a table, each with its contents.
fn texts(files: &Entry) -> Result<Vec<(&str, &str)>, Error> {
    let wrong = |entry: &Entry| {
        Diagnostic::new(Code::BadValue, format!("files.{}", entry.key), &entry.node.at)
            .message(format!("`{}` is {}, not the content of a file", entry.key, entry.node.kind()))
            .label("expected a text")
            .help("under `[files]`, write the lines of each file in triple quotes after its name")
    };
    let Some(table) = files.node.as_table() else { return Err(wrong(files).into()) };
    table
        .entries
        .iter()
        .map(|entry| {
            let inner = entry.node.as_table().and_then(|table| table.get("text"));
            let text = inner.unwrap_or(&entry.node).as_str();
            Ok((entry.key.as_str(), text.ok_or_else(|| Error::from(wrong(entry)))?))
        })
        .collect()
}

fn replace(key: &str, node: &mut Node, texts: &[(&str, &str)]) {
    match &mut node.value {
        Value::String(word) if KEYS.contains(&key) => {
            let Some((name, text)) = texts.iter().find(|(name, _)| name == word) else { return };
            let entry = |key: &str, text: &str| Entry {
                key: key.to_owned(),
                key_at: node.at.clone(),
                node: Node { at: node.at.clone(), value: Value::String(text.to_owned()) },
            };
            let entries = vec![entry("file", name), entry("text", text)];
            node.value = Value::Table(Table { entries, inline: true });
        }
        Value::Array(items) => items.iter_mut().for_each(|item| replace(key, item, texts)),
        Value::Table(table) => {
            table.entries.iter_mut().for_each(|entry| replace(&entry.key, &mut entry.node, texts));
        }
        _ => {}
    }
}

/// Name and text of the file that replaces it.
pub(crate) fn content(node: &Node) -> Option<(&str, &str)> {
    let table = node.as_table()?;
    Some((table.get("file")?.as_str()?, table.get("text")?.as_str()?))
}
