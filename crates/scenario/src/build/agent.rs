//! The agent of a base station and its options.

use lasthop_proto::agent::{AckpMode, AgentConfig, SnoopConfig, SplitConfig, TimeoutRule};
use lasthop_proto::tcp::TcpConfig;
use lasthop_proto::tcp::config::PRESETS;
use lasthop_proto::units::{Bytes, Span};

use super::Noted;
use crate::document::Node;
use crate::error::{Code, Diagnostic, Error, meant};
use crate::read::{Reader, not_a_choice};
use crate::schema;

/// Reads the agent of a stage and the options beside it.
pub(super) fn read(reader: &Reader<'_>, notes: &mut Vec<Noted>) -> Result<AgentConfig, Error> {
    let Some(node) = reader.node("agent") else { return Ok(AgentConfig::None) };
    let names = schema::words(&schema::AGENTS);
    let word = node.as_str().unwrap_or_default();
    if !names.contains(&word) {
        return Err(unknown(node, &reader.key("agent"), &names));
    }
    // All options are read whatever the agent is: a wrong one is wrong in every cell of a sweep.
    let snoop = snoop(reader)?;
    let mode = reader.choice("ackp-mode", &schema::ACKP_MODES)?.unwrap_or(AckpMode::Full);
    let split = split(reader, &snoop)?;
    let of_split = |option: &str| ["split-preset", "buffer"].contains(&option);
    let uses = |option: &str| match word {
        "snoop+ackp" => !of_split(option),
        "snoop" => option != "ackp-mode" && !of_split(option),
        "seq-cache" => option == "flows",
        "split" | "split-sack" => of_split(option) || ["flows", "cache"].contains(&option),
        _ => false,
    };
    for key in schema::AGENT_OPTIONS.iter().filter(|key| reader.has(key) && !uses(key)) {
        notes.push(Noted {
            warning: Diagnostic::new(Code::NoEffect, reader.key(key), &reader.place(key))
                .message(format!("`{key}` has no effect"))
                .label("the agent does not use it")
                .help("leave it out, or choose an agent that uses it"),
            in_every_cell: true,
        });
    }
    Ok(match word {
        "snoop" => AgentConfig::Snoop { snoop, ackp: None },
        "snoop+ackp" => AgentConfig::Snoop { snoop, ackp: Some(mode) },
        "seq-cache" => AgentConfig::SeqCache { flows: snoop.flows },
        "split" => AgentConfig::Split(Box::new(split)),
        "split-sack" => AgentConfig::Split(Box::new(split.selective())),
        _ => AgentConfig::None,
    })
}

/// A published snoop agent, and what the file changes about it.
fn snoop(reader: &Reader<'_>) -> Result<SnoopConfig, Error> {
    let published =
        [("west97", SnoopConfig::west97 as fn() -> SnoopConfig), ("parsa98", SnoopConfig::parsa98)];
    let base = reader.choice("agent-preset", &published)?.unwrap_or(SnoopConfig::west97)();
    let rules =
        [("twice-srtt", TimeoutRule::TwiceSrtt), ("srtt-plus-var", TimeoutRule::SrttPlusVar)];
    let period = |key, default| reader.within(key, default, Span::millis(1)..=Span::secs(3600));
    let number = |key, default: u64, most| reader.within(key, default, 1..=most);
    Ok(SnoopConfig {
        dupacks: number("dupacks", base.dupacks.into(), 255)? as u32,
        timeout: reader.choice("timeout-rule", &rules)?.unwrap_or(base.timeout),
        initial_timeout: period("initial-timeout", base.initial_timeout)?,
        min_timeout: period("min-timeout", base.min_timeout)?,
        max_retransmits: number("max-retransmits", base.max_retransmits.into(), 1_000_000)? as u32,
        persist: period("persist", base.persist)?,
        rtt_fault: reader.or("rtt-fault", base.rtt_fault)?,
        priority: reader.or("priority", base.priority)?,
        from_departure: reader.or("from-departure", base.from_departure)?,
        flow_packets: number("flow-packets", base.flow_packets as u64, 1_000_000)? as usize,
        flows: number("flows", base.flows as u64, 1_000_000)? as usize,
        cache: reader.within("cache", base.cache, Bytes(1500)..=Bytes(1 << 40))?,
    })
}

/// The base station's own TCP, and how much it may hold. The tables of all agents are bounded by the same keys.
fn split(reader: &Reader<'_>, snoop: &SnoopConfig) -> Result<SplitConfig, Error> {
    // The end points of balakrishnan97 were BSD systems with Reno and coarse timers.
    let preset = reader.choice("split-preset", &PRESETS.map(|(name, _)| (name, name)))?;
    let tcp = preset.and_then(TcpConfig::preset).unwrap_or_else(TcpConfig::freebsd_2_1);
    let base = SplitConfig::new(tcp);
    Ok(SplitConfig {
        buffer: reader.within("buffer", base.buffer, Bytes(1)..=Bytes(1 << 30))?,
        flows: snoop.flows,
        memory: if reader.has("cache") { snoop.cache } else { base.memory },
        ..base
    })
}

fn unknown(node: &Node, path: &str, names: &[&str]) -> Error {
    let mut error = not_a_choice(node, path, names);
    if node.as_str() == Some("ackp") {
        error.0.help = "partial acknowledgements need snoop's cache: write `snoop+ackp`".to_owned();
    } else if node.as_table().is_some() {
        error.0.help = format!(
            "the agent is a word, its options stand beside it: `agent = \"snoop\"` and `dupacks = 2`; {}",
            meant("", names)
        );
    }
    error
}
