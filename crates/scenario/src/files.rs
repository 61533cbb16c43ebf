//! Files next to a scenario that it references: traces and values over time of links, and visits of hosts.
//!
//! This crate reads no files. The caller gets their names from [`named`] and adds their contents to the text with
//! [`with`]. Each becomes a table `[files."NAME"]` at the end, so that one text contains a whole scenario. Locations
//! within such a file refer to its content ([`Source::Referenced`]); [`located`] returns its name and content.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::LazyLock;

use lasthop_proto::describe::Form;
use lasthop_proto::link::varied::names_file;

use crate::argument::{Argument, commas};
use crate::document::{self, Entry, Node, Table, Value};
use crate::error::{Code, Diagnostic, Error, Location, Source};
use crate::schema;

/// A referenced file that is not embedded in the text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Named {
    /// Its name in the scenario.
    pub name: String,
    /// Whether an argument names it, and not the text.
    pub by_argument: bool,
}

/// The first line of the files that [`with`] adds to a text.
const ADDED: &str = "\n# Files of this scenario\n";

/// The parts of a scenario whose keys may name files.
const PARTS: [&str; 4] = ["path", "cell", "visits", "vary"];

/// The keys of a part of the schema whose values may be files.
fn keys_of(part: &str) -> impl Iterator<Item = &'static str> {
    let keys = schema::of(part).keys.iter();
    let keys = keys.filter(|listed| matches!(listed.key.form, Form::File(_)));
    keys.map(|listed| listed.key.name)
}

/// The keys whose values may be files, without their tables.
static KEYS: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| keys_of("link").chain(keys_of("visits")).collect());

/// Whether a word at the end of a dotted key is the name of a file.
fn is_file(key: &str, word: &str) -> bool {
    let last = key.rsplit('.').next().unwrap_or(key).trim();
    let always = last.starts_with("trace") || matches!(last, "measured" | "file");
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
    for part in PARTS {
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
    if !text.contains(ADDED) {
        text.push_str(ADDED);
    }
    let name = quoted(&name.replace('\n', " "));
    let content = quoted(content);
    let _ = write!(text, "\n[files.\"{name}\"]\ntext = \"\"\"\n{content}\"\"\"\n");
    text
}

/// The text as its author wrote it, without the files that [`with`] has added.
pub fn own(text: &str) -> &str {
    text.find(ADDED).map_or(text, |at| &text[..at])
}

/// Name and content of the text that a location refers to. `origin` is the path or name of the scenario `text`; names
/// of files in the text are relative to its directory.
pub fn located(
    at: &Location,
    origin: &str,
    text: &str,
    arguments: &[Argument],
) -> (String, String) {
    let whole = || (origin.to_owned(), own(text).to_owned());
    match at.source {
        Source::File if at.span.start > own(text).len() => (origin.to_owned(), text.to_owned()),
        Source::File => whole(),
        Source::Points => (origin.to_owned(), text.to_owned()),
        Source::Argument(index) => arguments.get(index).map_or_else(whole, |argument| {
            (argument.option().to_owned(), argument.text().to_owned())
        }),
        Source::Referenced(index) => {
            let Ok(document) = document::parse(text) else { return whole() };
            let files = document.get("files").and_then(Node::as_table);
            let Some(entry) = files.and_then(|files| files.entries.get(index)) else {
                return whole();
            };
            let content = entry.node.as_table().and_then(|table| table.get("text")?.as_str());
            let in_text = named(own(text), &[]).iter().any(|named| named.name == entry.key);
            let directory = origin.rfind('/').map_or("", |slash| &origin[..=slash]);
            let directory = if in_text && !entry.key.starts_with('/') { directory } else { "" };
            (format!("{directory}{}", entry.key), content.unwrap_or_default().to_owned())
        }
    }
}

/// The location of a line, counted from one, of a referenced file; of the whole value if the text itself has it.
pub(crate) fn line_of(node: &Node, line: usize) -> Location {
    let text = node.as_table().and_then(|table| table.get("text"));
    let Some((at, content)) = text.and_then(|text| Some((&text.at, text.as_str()?))) else {
        return node.at.clone();
    };
    if !matches!(at.source, Source::Referenced(_)) {
        return at.clone();
    }
    let mut lines = content.split_inclusive('\n');
    let start: usize = lines.by_ref().take(line.saturating_sub(1)).map(str::len).sum();
    let length = lines.next().map_or(0, |line| line.trim_end().len());
    Location { source: at.source, span: start..start + length }
}

/// The document with its file names replaced by contents, without the table of files.
pub(crate) fn put_in(document: &Table) -> Result<Cow<'_, Table>, Error> {
    if !document.has("files") {
        return Ok(Cow::Borrowed(document));
    }
    let mut document = document.clone();
    let Some(entry) = document.remove("files") else { return Ok(Cow::Owned(document)) };
    let texts = texts(&entry)?;
    let lists = document.entries.iter_mut().filter(|entry| PARTS.contains(&&*entry.key));
    lists.for_each(|entry| replace("", &mut entry.node, &texts));
    Ok(Cow::Owned(document))
}

/// The files of a table, each with its content and the location of the content.
fn texts(files: &Entry) -> Result<Vec<(&str, Node)>, Error> {
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
        .enumerate()
        .map(|(i, entry)| {
            let inner = entry.node.as_table().and_then(|table| table.get("text"));
            let text = inner.unwrap_or(&entry.node);
            let content = text.as_str().ok_or_else(|| Error::from(wrong(entry)))?;
            let at = match inner {
                // Written as `with` does: the file has positions of its own.
                Some(_) => Location { source: Source::Referenced(i), span: 0..content.len() },
                None => text.at.clone(),
            };
            Ok((entry.key.as_str(), Node { at, value: text.value.clone() }))
        })
        .collect()
}

fn replace(key: &str, node: &mut Node, texts: &[(&str, Node)]) {
    match &mut node.value {
        Value::String(word) if KEYS.contains(&key) => {
            let Some((name, text)) = texts.iter().find(|(name, _)| name == word) else { return };
            let name = Node { at: node.at.clone(), value: Value::String((*name).to_owned()) };
            let entry = |key: &str, value: &Node| Entry {
                key: key.to_owned(),
                key_at: node.at.clone(),
                node: value.clone(),
            };
            let entries = vec![entry("file", &name), entry("text", text)];
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
