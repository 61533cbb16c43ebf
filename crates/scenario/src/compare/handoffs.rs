//! Hand-offs that a comparison adds to its scenario: two copies of the last base station, between which hosts move.

use core::fmt;
use core::str::FromStr;

use lasthop_proto::units::Span;
use serde::Serialize;

use super::stages::{last_hop, path_of, trouble};
use crate::document::{self, Node, Table, Value};
use crate::error::{Error, Location, Source, did_you_mean};
use crate::{resolve, schema};

/// The names of the two cells.
const CELLS: [&str; 2] = ["here", "there"];

/// Scenario in which given hand-offs are validated.
const SMALL: &str = "transfer = { from = \"a\", to = \"b\", bytes = 1 }\n[host.a]\n[host.b]\n\
                     [[path]]\nlink = {}\n[[path]]\nradio = { rate = \"2mbit\" }\n";

const EXAMPLE: &str = "for example every=15s,gap=80ms";

/// Hand-offs in the notation `every=15s,gap=80ms`. `every` or `dwell` is a key of the visits, all others are
/// of the hand-offs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(transparent)]
pub struct Handoffs {
    word: String,
    /// Table, key and value of each.
    #[serde(skip)]
    set: Vec<(&'static str, String, String)>,
}

impl fmt::Display for Handoffs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.word)
    }
}

impl FromStr for Handoffs {
    type Err = String;

    fn from_str(word: &str) -> Result<Handoffs, String> {
        let mut set: Vec<(&'static str, String, String)> = Vec::new();
        for part in word.split(',') {
            let Some((key, value)) = part.split_once('=') else {
                return Err(format!("`{part}` is no KEY=VALUE; {EXAMPLE}"));
            };
            let (key, value) = (key.trim(), value.trim());
            let table = match key {
                "every" | "dwell" => "visits",
                _ if schema::keys("handoff").contains(&key) => "handoff",
                _ => {
                    let known = [&["every", "dwell"], schema::keys("handoff")].concat();
                    return Err(format!(
                        "hand-offs have no `{key}`: {}",
                        did_you_mean(key, &known)
                    ));
                }
            };
            if set.iter().any(|(_, other, _)| other == key) {
                return Err(format!("`{key}` is given twice"));
            }
            set.push((table, key.to_owned(), value.to_owned()));
        }
        if !set.iter().any(|(table, ..)| *table == "visits") {
            return Err(format!("the time in each cell is missing, `every` or `dwell`; {EXAMPLE}"));
        }
        let handoffs = Handoffs { word: word.to_owned(), set };
        let tried = document::parse(SMALL).and_then(|mut document| {
            handoffs.apply(&mut document)?;
            resolve::scenario(&document, "hand-offs")
        });
        match tried {
            Ok(_) => Ok(handoffs),
            Err(error) => Err(format!("{}: {}", error.message, error.help)),
        }
    }
}

impl Handoffs {
    /// Time that hosts stay in a cell, or its mean.
    pub fn stay(&self) -> Span {
        let visits = self.set.iter().find(|(table, ..)| *table == "visits");
        let (.., value) = visits.expect("the time in each cell is given");
        let node = document::parse_value(value, Source::Argument(0), 0);
        node.as_str().unwrap_or(value).parse().expect("the time was tried in a scenario")
    }

    /// Makes the hosts of `document` move. If it has cells already, only visits and hand-offs change.
    pub(super) fn apply(&self, document: &mut Table) -> Result<(), Error> {
        if !document.has("cell") {
            split(document)?;
        }
        let at = Location::file(0..0);
        // There are no other visits.
        document.put("visits", &at, Node::new(Value::Table(Table::default())));
        for (name, key, value) in &self.set {
            if !document.has(name) {
                document.put(name, &at, Node::new(Value::Table(Table::default())));
            }
            let mut value = document::parse_value(value, Source::Argument(0), 0);
            value.forget_locations();
            if let Some(table) = document.get_mut(name).and_then(Node::as_table_mut) {
                table.put(key, &at, value);
            }
        }
        Ok(())
    }
}

/// The stages from the last base station on become two cells.
fn split(document: &mut Table) -> Result<(), Error> {
    let Some((radio, agent)) = last_hop(document) else {
        return Err(trouble("the path has no radio, so no host can move to another one")
            .help("add a `[[path]]` stage with `radio = { ... }` to the file, or leave `--handoff` out")
            .into());
    };
    let at = Location::file(0..0);
    let Some(stages) = path_of(document) else { return Ok(()) };
    let mut behind = stages.split_off(agent.unwrap_or(radio));
    if stages.is_empty() {
        let mut wire = Table::default();
        wire.put("link", &at, Node::new(Value::Table(Table::default())));
        stages.push(Node::new(Value::Table(wire)));
    }
    // Stages are named after their cells.
    for stage in behind.iter_mut().filter_map(Node::as_table_mut) {
        stage.remove("name");
    }
    let cell = |name: &str| {
        let mut cell = Table::default();
        cell.put("name", &at, Node::new(Value::String(name.to_owned())));
        cell.put("path", &at, Node::new(Value::Array(behind.clone())));
        Node::new(Value::Table(cell))
    };
    let cells = Value::Array(CELLS.iter().map(|name| cell(name)).collect());
    document.put("cell", &at, Node::new(cells));
    Ok(())
}
