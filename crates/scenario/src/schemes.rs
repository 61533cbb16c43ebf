//! Schemes: named sets of changes of a scenario, with the equipment to change.
//!
//! The table is data, `schemes.toml`; a scenario's own `[schemes]` has the same form. `compare.rs` applies a
//! scheme to a scenario.

use serde::Serialize;

use crate::document::{self, Node, Table, Value};
use crate::error::{Code, Diagnostic, Error};
use crate::read::{Reader, not_a_choice};

/// Part of the network in which a scheme works.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// No part of the network: the unchanged scenario, or a point of its own axis.
    Plain,
    /// The hosts' TCPs.
    EndToEnd,
    /// Both ends of the radio.
    LinkLayer,
    /// Two connections, one on each side of the base station.
    Split,
    /// A base station that reads TCP.
    TcpAware,
    /// The path of the ACKs.
    ReturnPath,
}

/// Keywords of families.
const FAMILIES: [(&str, Family); 6] = [
    ("plain", Family::Plain),
    ("end-to-end", Family::EndToEnd),
    ("link-layer", Family::LinkLayer),
    ("split", Family::Split),
    ("tcp-aware", Family::TcpAware),
    ("return-path", Family::ReturnPath),
];

/// The equipment that a scheme may change.
const CHANGES: [&str; 7] =
    ["nothing", "sender", "receiver", "base station", "link", "router", "gateway"];

/// Conditions of a scheme on a scenario, in addition to the stages of its keys.
pub(crate) const DATA_TO_RADIO: &str = "data-to-radio";
/// Data in the opposite direction.
pub(crate) const DATA_FROM_RADIO: &str = "data-from-radio";
/// More than one connection between the same hosts.
pub(crate) const SEVERAL: &str = "several-connections";

/// Requests and responses.
pub(crate) const EXCHANGES: &str = "exchanges";
/// Hosts that move.
pub(crate) const HAND_OFFS: &str = "hand-offs";
/// All conditions.
const NEEDS: [&str; 5] = [DATA_TO_RADIO, DATA_FROM_RADIO, SEVERAL, EXCHANGES, HAND_OFFS];

const KEYS: [&str; 6] = ["family", "change", "needs", "what", "run", "set"];

/// A named set of changes of a scenario.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Scheme {
    /// Its name.
    pub name: String,
    /// Part of the network in which it works.
    pub family: Family,
    /// Equipment to replace or install: `sender`, `receiver`, `base station`, `link` (both of its ends),
    /// `router` (which queues ACKs), `gateway` (on the sender's side of that router).
    pub change: Vec<String>,
    /// A short description.
    pub what: String,
    /// Available implementation: `station` or `link` (lasthop runs it), or a command for the sending host;
    /// `None` if it is only simulated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    #[serde(skip)]
    pub(crate) needs: Vec<String>,
    /// Keys and their values, in order.
    #[serde(skip)]
    pub(crate) set: Vec<(String, Node)>,
}

impl Scheme {
    /// A scheme that is not in the table: the scenario as it is, or a point of an axis.
    pub(crate) fn plain(name: &str, description: &str) -> Scheme {
        Scheme {
            name: name.to_owned(),
            family: Family::Plain,
            change: Vec::new(),
            what: description.to_owned(),
            run: None,
            needs: Vec::new(),
            set: Vec::new(),
        }
    }

    /// The keys that it sets and their values, in the notation of a file.
    pub fn settings(&self) -> impl Iterator<Item = (&str, String)> {
        self.set.iter().map(|(key, node)| (key.as_str(), node.brief()))
    }

    /// The value of `key` in the notation of a file, if the scheme sets it.
    pub fn written(&self, key: &str) -> Option<String> {
        self.set.iter().find(|(name, _)| name == key).map(|(_, node)| node.written())
    }
}

/// The schemes of the program.
///
/// # Panics
///
/// If the table of the program is wrong; a test reads it.
pub fn schemes() -> Vec<Scheme> {
    let read = document::parse(include_str!("schemes.toml")).and_then(|mut table| take(&mut table));
    read.unwrap_or_else(|error| unreachable!("schemes.toml: {error}: {}", error.help))
}

/// The schemes for a comparison of the scenario `text`: its own, and those of the program that it does not
/// redefine.
///
/// # Errors
///
/// When the text is no TOML, or its `[schemes]` are wrong.
pub fn schemes_of(text: &str) -> Result<Vec<Scheme>, Error> {
    let mut own = take(&mut document::parse(text)?)?;
    let rest = schemes().into_iter().filter(|s| own.iter().all(|other| other.name != s.name));
    let rest: Vec<Scheme> = rest.collect();
    own.extend(rest);
    Ok(own)
}

/// Takes `[schemes]` out of a document.
pub(crate) fn take(document: &mut Table) -> Result<Vec<Scheme>, Error> {
    let Some(entry) = document.remove("schemes") else { return Ok(Vec::new()) };
    let Some(table) = entry.node.as_table() else {
        return Err(Diagnostic::new(Code::BadValue, "schemes", &entry.node.at)
            .message(format!("`schemes` is {}, not a table", entry.node.kind()))
            .label("expected a table")
            .help("a scheme is a name and what it sets: `mine = { set = { agent = \"snoop\" } }` under `[schemes]`")
            .into());
    };
    table.entries.iter().map(|entry| read(&entry.key, &entry.node)).collect()
}

fn read(name: &str, node: &Node) -> Result<Scheme, Error> {
    let path = format!("schemes.{name}");
    let reader = Reader::open(node, &path, &KEYS)?;
    let family = reader.choice("family", &FAMILIES)?.unwrap_or(Family::Plain);
    let mut set = Vec::new();
    match reader.node("set").and_then(Node::as_table) {
        Some(table) if !table.entries.is_empty() => flatten(table, "", &mut set),
        _ => {
            return Err(reader.missing(
                "set",
                "the keys that the scheme sets",
                "{ agent = \"snoop\" }",
            ));
        }
    }
    Ok(Scheme {
        name: name.to_owned(),
        family,
        change: words(&reader, "change", &CHANGES)?,
        what: reader.or("what", String::new())?,
        run: reader.optional("run")?,
        needs: words(&reader, "needs", &NEEDS)?,
        set,
    })
}

fn words(reader: &Reader<'_>, key: &str, known: &[&str]) -> Result<Vec<String>, Error> {
    let Some(node) = reader.node(key) else { return Ok(Vec::new()) };
    let Some(items) = node.as_array() else {
        return Err(not_a_choice(node, &reader.key(key), known));
    };
    let word = |item: &Node| match item.as_str() {
        Some(word) if known.contains(&word) => Ok(word.to_owned()),
        _ => Err(not_a_choice(item, &reader.key(key), known)),
    };
    items.iter().map(word).collect()
}

/// A table in braces is a value. A table from a dotted key contains further keys.
fn flatten(table: &Table, prefix: &str, set: &mut Vec<(String, Node)>) {
    for entry in &table.entries {
        let key =
            if prefix.is_empty() { entry.key.clone() } else { format!("{prefix}.{}", entry.key) };
        match &entry.node.value {
            Value::Table(inner) if !inner.inline => flatten(inner, &key, set),
            _ => set.push((key, entry.node.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scheme_has_a_description_and_a_change() {
        let all = schemes();
        assert!(all.len() > 15);
        for scheme in &all {
            assert!(!scheme.what.is_empty() && !scheme.change.is_empty(), "{}", scheme.name);
            assert_ne!(scheme.family, Family::Plain, "{}", scheme.name);
        }
        let snoop = all.iter().find(|s| s.name == "snoop").unwrap();
        assert_eq!(snoop.settings().collect::<Vec<_>>(), [("agent", "snoop".to_owned())]);
    }

    #[test]
    fn a_file_may_define_its_own() {
        let text = "[schemes]\nsnoop = { set = { agent = \"none\" } }\nmine.set.host.a.mss = 512\n";
        let all = schemes_of(text).unwrap();
        assert_eq!(all.iter().filter(|s| s.name == "snoop").count(), 1);
        assert_eq!(all[1].set[0].0, "host.a.mss");
        let error = schemes_of("[schemes]\nx = { set = {} }\n").unwrap_err();
        assert!(error.help.contains("set = "), "{}", error.help);
        assert!(schemes_of("schemes = 1\n").is_err());
        assert!(
            schemes_of("[schemes]\nx = { family = \"magic\", set.agent = \"none\" }\n").is_err()
        );
    }
}
