//! The stages of a document that a comparison changes.

use crate::document::{Node, Table, Value};
use crate::error::{Code, Diagnostic, Location};

/// The fault of a scenario that cannot be compared as requested.
pub(super) fn trouble(message: &str) -> Diagnostic {
    Diagnostic::new(Code::BadValue, "", &Location::file(0..0))
        .message(message)
        .label("this scenario")
}

pub(super) fn stages(document: &Table) -> Vec<&Table> {
    let items = document.items("path");
    // The parser of paths reports a stage that is not a table. Here such a stage counts as empty.
    static NOTHING: Table = Table { entries: Vec::new(), inline: false };
    items.iter().map(|item| item.as_table().unwrap_or(&NOTHING)).collect()
}

/// The last radio and the agent of its base station.
pub(super) fn last_hop(document: &Table) -> Option<(usize, Option<usize>)> {
    let stages = stages(document);
    let radio = stages.iter().rposition(|stage| stage.has("radio"))?;
    let before = stages[..radio].iter().rposition(|stage| stage.has("radio")).map_or(0, |i| i + 1);
    let agent = (before..radio).rev().find(|i| stages[*i].has("agent"));
    Some((radio, agent))
}

/// Gives the last radio a base station with agent `none`, if it has none; returns its position.
pub(super) fn insert_agent(document: &mut Table) -> Option<usize> {
    let (radio, agent) = last_hop(document)?;
    if agent.is_some() {
        return None;
    }
    put_agent(document, radio, "none");
    Some(radio)
}

/// Puts a stage with an agent before the stage `before`.
pub(super) fn put_agent(document: &mut Table, before: usize, agent: &str) {
    let mut stage = Table::default();
    stage.put("agent", &Location::file(0..0), Node::new(Value::String(agent.to_owned())));
    if let Some(items) = path_of(document) {
        items.insert(before, Node::new(Value::Table(stage)));
    }
}

pub(super) fn path_of(document: &mut Table) -> Option<&mut Vec<Node>> {
    match document.get_mut("path").map(|node| &mut node.value) {
        Some(Value::Array(items)) => Some(items),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The agent of the last radio, between it and the radio before it.
    #[test]
    fn the_last_hop_has_the_agent_before_its_radio() {
        for (stages, hop) in [
            ("link", None),
            ("radio", Some((0, None))),
            ("agent radio", Some((1, Some(0)))),
            ("agent link agent link radio", Some((4, Some(2)))),
            ("radio agent", Some((0, None))),
            ("agent radio radio", Some((2, None))),
            ("agent radio link radio", Some((3, None))),
            ("agent radio agent radio", Some((3, Some(2)))),
            ("radio agent radio link", Some((2, Some(1)))),
        ] {
            let (at, mut document) = (Location::file(0..0), Table::default());
            let stage = |kind: &str| {
                let mut stage = Table::default();
                stage.put(kind, &at, Node::new(Value::Bool(true)));
                Node::new(Value::Table(stage))
            };
            let all = Value::Array(stages.split(' ').map(stage).collect());
            document.put("path", &at, Node::new(all));
            assert_eq!(last_hop(&document), hop, "{stages}");
        }
    }
}
