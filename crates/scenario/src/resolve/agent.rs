//! The agent of a base station and its options.

use lasthop_proto::agent::{AgentConfig, Router, words};

use crate::document::Node;
use crate::error::{Error, Noted, did_you_mean};
use crate::read::{Reader, not_a_choice};
use crate::reading::take;
use crate::schema;

/// Reads the agent of a stage and the options next to it.
pub(super) fn read(reader: &Reader<'_>, notes: &mut Vec<Noted>) -> Result<AgentConfig, Error> {
    let Some(node) = reader.node("agent") else { return Ok(AgentConfig::None(Router)) };
    let names: Vec<&str> = words().map(|agent| agent.word).collect();
    let word = node.as_str().unwrap_or_default();
    if !names.contains(&word) {
        return Err(unknown(node, &reader.key("agent"), &names));
    }
    // All options are read for every agent: a wrong value is an error in every cell of a sweep.
    let mut chosen = (AgentConfig::None(Router), Vec::new());
    for agent in words() {
        let read = take(reader, |k| (agent.read)(k))?;
        if agent.word == word {
            chosen = read;
        }
    }
    let (agent, uses) = chosen;
    for key in
        schema::stage_keys("agent").iter().filter(|key| reader.has(key) && !uses.contains(key))
    {
        let help = "leave it out, or choose an agent that uses it";
        notes.push(reader.unused(key, "the agent does not use it", help));
    }
    Ok(agent)
}

fn unknown(node: &Node, path: &str, names: &[&str]) -> Error {
    let mut error = not_a_choice(node, path, names);
    if node.as_str() == Some("ackp") {
        error.0.help = "partial acknowledgements need snoop's cache: write `snoop+ackp`".to_owned();
    } else if node.as_table().is_some() {
        error.0.help = format!(
            "`agent` is a name, and its options are keys next to it: `agent = \"snoop\"` and `dupacks = 2`; {}",
            did_you_mean("", names)
        );
    }
    error
}
