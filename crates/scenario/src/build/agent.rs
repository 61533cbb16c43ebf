//! The agent of a base station and its options.

use lasthop_proto::agent::{
    AckpMode, AgentConfig, DupAcks, PacketSizes, Reconstruction, SnoopConfig, SplitConfig,
    TimeoutRule,
};
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
    let smart = reader.choice("split-sack", &[("rfc", false), ("smart", true)])?.unwrap_or(false);
    let spacing = reader.within("spacing", Span::ZERO, Span::ZERO..=Span::secs(3600))?;
    let sizes = packet_sizes(reader)?;
    let reconstruction = reconstruction(reader, snoop.flows)?;
    let of_acks = |option: &str| ["ack-thresh", "ack-interval"].contains(&option);
    let of_split = |option: &str| ["split-preset", "split-sack", "buffer"].contains(&option);
    let of_sizes = |option: &str| ["packet-size", "bad-period", "packet-sizes"].contains(&option);
    let of_snoop = |option: &str| {
        !of_split(option) && !of_sizes(option) && !of_acks(option) && option != "spacing"
    };
    let uses = |option: &str| match word {
        "snoop+ackp" => of_snoop(option),
        "snoop" | "snoop-smart" | "snoop-nack" => option != "ackp-mode" && of_snoop(option),
        "ebsn" | "source-quench" => option == "spacing",
        "good-packet-size" => of_sizes(option),
        "ack-reconstruction" => of_acks(option) || option == "flows",
        "seq-cache" => option == "flows",
        "split" if option == "split-sack" => false,
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
        "snoop" => AgentConfig::Snoop(SnoopAgent { snoop, ackp: None }),
        "snoop+ackp" => AgentConfig::Snoop(SnoopAgent { snoop, ackp: Some(mode) }),
        "snoop-smart" => AgentConfig::Snoop(SnoopAgent { snoop: snoop.selective(), ackp: None }),
        "snoop-nack" => AgentConfig::SnoopNack(NackAgent { snoop }),
        "seq-cache" => AgentConfig::SeqCache(SeqCacheAgent { flows: snoop.flows }),
        "split" => AgentConfig::Split(split),
        "split-sack" if smart => AgentConfig::Split(split.smart()),
        "split-sack" => AgentConfig::Split(split.selective()),
        "ebsn" => AgentConfig::Ebsn(Ebsn { spacing }),
        "source-quench" => AgentConfig::SourceQuench(SourceQuench { spacing }),
        "good-packet-size" => AgentConfig::GoodPacketSize(sizes),
        "ack-reconstruction" => AgentConfig::AckReconstruction(reconstruction),
        _ => AgentConfig::None,
    })
}

/// How missing ACKs are filled in.
fn reconstruction(reader: &Reader<'_>, flows: usize) -> Result<Reconstruction, Error> {
    let base = Reconstruction::default();
    let interval = match reader.has("ack-interval") {
        true => Some(reader.within("ack-interval", Span::ZERO, Span::ZERO..=Span::secs(1))?),
        false => None,
    };
    let thresh = reader.within("ack-thresh", u64::from(base.thresh), 1..=1000)? as u32;
    Ok(Reconstruction { thresh, interval, flows })
}

/// A published snoop agent, and what the file changes about it.
fn snoop(reader: &Reader<'_>) -> Result<SnoopConfig, Error> {
    let published = [
        ("west97", SnoopConfig::west97 as fn() -> SnoopConfig),
        ("parsa98", SnoopConfig::parsa98),
        ("daedalus", SnoopConfig::daedalus),
    ];
    let base = reader.choice("agent-preset", &published)?.unwrap_or(SnoopConfig::west97)();
    let rules =
        [("twice-srtt", TimeoutRule::TwiceSrtt), ("srtt-plus-var", TimeoutRule::SrttPlusVar)];
    let dup_acks = [("suppress", DupAcks::Suppress), ("pass", DupAcks::Pass)];
    let period = |key, default| reader.within(key, default, Span::millis(1)..=Span::secs(3600));
    let number = |key, default: u64, most| reader.within(key, default, 1..=most);
    Ok(SnoopConfig {
        dupacks: number("dupacks", base.dupacks.into(), 255)? as u32,
        selective: base.selective,
        dup_acks: reader.choice("dup-acks", &dup_acks)?.unwrap_or(base.dup_acks),
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

/// Smallest packet that a host must take (RFC 791), with room for payload; and the largest.
const PACKET_SIZES: core::ops::RangeInclusive<Bytes> = Bytes(68)..=Bytes(65_535);
/// Rows of a table of packet sizes.
const MAX_ROWS: usize = 100;

/// The packet size for the state of the channel: one size, or a table and the state.
fn packet_sizes(reader: &Reader<'_>) -> Result<PacketSizes, Error> {
    let published = PacketSizes::bakshi96();
    let periods = Span::ZERO..=Span::secs(86_400);
    let bad_period = reader.within("bad-period", published.bad_period, periods.clone())?;
    let table = match reader.node("packet-sizes") {
        None => published.table,
        Some(node) => packet_size_table(reader, node)?,
    };
    if !reader.has("packet-size") {
        return Ok(PacketSizes { table, bad_period });
    }
    if let Some(other) = ["bad-period", "packet-sizes"].into_iter().find(|key| reader.has(key)) {
        let key = reader.key("packet-size");
        return Err(Diagnostic::new(Code::BadValue, key, &reader.place("packet-size"))
            .message(format!("`packet-size` is set beside `{other}`"))
            .label("which of them?")
            .help("write the size that is good now, `packet-size = \"512B\"`, or a table and the state")
            .into());
    }
    let size = reader.within("packet-size", Bytes(512), PACKET_SIZES)?;
    Ok(PacketSizes { table: vec![(Span::ZERO, size.0 as u32)], bad_period: Span::ZERO })
}

/// Rows of a bad period and a packet size, the bad periods in ascending order.
fn packet_size_table(reader: &Reader<'_>, node: &Node) -> Result<Vec<(Span, u32)>, Error> {
    let path = reader.key("packet-sizes");
    let refused = |node: &Node, path: &str, message: String| {
        Diagnostic::new(Code::BadValue, path, &node.at)
            .message(message)
            .label("expected bad periods and packet sizes")
            .help(
                "a row for each state of the channel, by ascending mean bad period, for example \
                 `packet-sizes = [{ bad = \"1s\", size = \"512B\" }, { bad = \"3s\", size = \"384B\" }]`",
            )
    };
    let rows = node.as_array().unwrap_or_default();
    if rows.is_empty() || rows.len() > MAX_ROWS {
        let message =
            format!("`{path}`: this is {}, not a list of 1 to {MAX_ROWS} rows", node.brief());
        return Err(refused(node, &path, message).into());
    }
    let mut table: Vec<(Span, u32)> = Vec::with_capacity(rows.len());
    for (i, row) in rows.iter().enumerate() {
        let path = format!("{path}.{}", i + 1);
        let row_of = Reader::open(row, &path, &["bad", "size"])?;
        let bad: Span = row_of.required("bad")?;
        if !row_of.has("size") {
            row_of.required::<Bytes>("size")?;
        }
        let size = row_of.within("size", Bytes(512), PACKET_SIZES)?;
        if table.last().is_some_and(|(before, _)| *before >= bad) {
            let message = format!("`{path}.bad` is not longer than that of the row before");
            return Err(refused(row, &path, message).into());
        }
        table.push((bad, size.0 as u32));
    }
    Ok(table)
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
