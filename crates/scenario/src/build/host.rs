//! Hosts and their TCP: a preset, and what the file changes about it.

use core::ops::RangeInclusive;
use std::net::IpAddr;

use lasthop_proto::energy::Hardware;
use lasthop_proto::tcp::config::{
    AccConfig, Clock, DelayedAck, ElnMode, ElnReaction, GrowthRule, Halving, LossCause, PRESETS,
    Prediction, Rounding, RtoRule, TcpConfig, Variant, VegasRule,
};
use lasthop_proto::tcp::words::TCPS;
use lasthop_proto::units::{Bytes, Span};
use lasthop_proto::wire::Addr;

use super::{battery, named};
use crate::document::Node;
use crate::error::{Code, Diagnostic, Error, Place};
use crate::model::{HostSide, Stack};
use crate::read::{Reader, not_a_choice};
use crate::schema;

/// Most hosts of a scenario.
const MAX_HOSTS: usize = 1000;
/// No timer of a TCP is longer than a day.
const DAY: Span = Span::secs(86_400);
/// Largest socket buffer.
const MAX_BUFFER: Bytes = Bytes(1 << 30);

/// A host as the file describes it; its side may be left to be found.
pub(super) struct HostSpec {
    pub name: String,
    pub at: Place,
    pub side: Option<HostSide>,
    pub addr: Option<(Addr, Place)>,
    pub tcp: TcpConfig,
    pub battery: Option<(Hardware, Place)>,
    pub stack: Stack,
}

/// All hosts, in the order of the file.
pub(super) fn read(file: &Reader<'_>) -> Result<Vec<HostSpec>, Error> {
    let Some(node) = file.node("host") else { return Err(no_hosts(file)) };
    let Some(table) = node.as_table() else {
        return Err(Diagnostic::new(Code::BadValue, "host", &node.at)
            .message(format!("`host` is {}, not a table of hosts", node.kind()))
            .label("expected tables")
            .help("each host has its own table: `[host.fixed]`")
            .into());
    };
    let entries = &table.entries;
    if entries.is_empty() {
        return Err(no_hosts(file));
    }
    if entries.len() > MAX_HOSTS {
        return Err(file.out_of_range("host", "a scenario has at most 1000 hosts"));
    }
    entries
        .iter()
        .map(|entry| {
            let path = format!("host.{}", entry.key);
            named(&entry.key, &path, &entry.key_at)?;
            host(&entry.key, &entry.key_at, &entry.node, &path)
        })
        .collect()
}

fn no_hosts(file: &Reader<'_>) -> Error {
    Diagnostic::new(Code::MissingKey, "host", file.at())
        .message("the scenario has no hosts")
        .label("`[host.NAME]` is missing")
        .help(
            "write one table for each host: `[host.fixed]` and `[host.mobile]`; they may be empty",
        )
        .into()
}

fn host(name: &str, at: &Place, node: &Node, path: &str) -> Result<HostSpec, Error> {
    let reader = Reader::open(node, path, schema::HOST)?;
    let side = reader.choice("side", &[("left", HostSide::Left), ("right", HostSide::Right)])?;
    let addr = match reader.optional::<String>("addr")? {
        None => None,
        Some(text) => match text.parse::<IpAddr>() {
            Ok(ip) => Some((Addr::from(ip), reader.place("addr"))),
            Err(_) => {
                return Err(Diagnostic::new(Code::BadValue, reader.key("addr"), &reader.place("addr"))
                    .message(format!("`{path}.addr`: `{text}` is no IP address"))
                    .label("expected an address")
                    .help("for example `addr = \"10.0.0.1\"` or `addr = \"fd00::1\"`; without it one is chosen")
                    .into());
            }
        },
    };
    let (tcp, stack) = (tcp(&reader)?, stack(&reader)?);
    let battery = battery::read(&reader)?;
    Ok(HostSpec { name: name.to_owned(), at: at.clone(), side, addr, tcp, battery, stack })
}

fn tcp(reader: &Reader<'_>) -> Result<TcpConfig, Error> {
    let mut tcp = preset(reader)?;
    if let Some(node) = reader.node("tcp") {
        let word = TCPS.iter().find(|word| Some(word.key) == node.as_str()).ok_or_else(|| {
            let names: Vec<&str> = TCPS.iter().map(|word| word.key).collect();
            not_a_choice(node, &reader.key("tcp"), &names)
        })?;
        (word.apply)(&mut tcp);
    }
    tcp.sack = reader.or("sack", tcp.sack)?;
    tcp.dsack = reader.or("dsack", tcp.dsack)?;
    if matches!(tcp.variant, Variant::Sack | Variant::Rack) && !tcp.sack {
        let word = reader.node("tcp").and_then(Node::as_str).unwrap_or("sack");
        return Err(Diagnostic::new(Code::BadValue, reader.key("sack"), &reader.place("sack"))
            .message(format!("`tcp = \"{word}\"` and `sack = false` contradict each other"))
            .label("contradicts `tcp`")
            .help("leave out `sack = false`, or choose `tcp = \"newreno\"`, which needs no SACK blocks")
            .into());
    }
    tcp.smart = reader.or("smart", tcp.smart)?;
    tcp.smart_repeat = reader.or("smart-repeat", tcp.smart_repeat)?;
    if tcp.variant == Variant::Smart && !tcp.smart {
        return Err(Diagnostic::new(Code::BadValue, reader.key("smart"), &reader.place("smart"))
            .message("`tcp = \"smart\"` and `smart = false` contradict each other")
            .label("contradicts `tcp`")
            .help(
                "leave out `smart = false`, or choose `tcp = \"newreno\"`, which needs no reports",
            )
            .into());
    }

    snack(reader, &mut tcp)?;

    const TIMERS: RangeInclusive<Span> = Span(1)..=DAY;
    let rules =
        [("rfc6298", RtoRule::Rfc6298), ("jacobson", RtoRule::Jacobson), ("linux", RtoRule::Linux)];
    tcp.rto_rule = reader.choice("rto-rule", &rules)?.unwrap_or(tcp.rto_rule);
    tcp.rto_min = reader.within("rto-min", tcp.rto_min, TIMERS)?;
    tcp.rto_max = reader.within("rto-max", tcp.rto_max, TIMERS)?;
    tcp.rto_initial = reader.within("rto-initial", tcp.rto_initial, TIMERS)?;
    if tcp.rto_min > tcp.rto_max {
        let key = if reader.has("rto-min") { "rto-min" } else { "rto-max" };
        let help = format!("rto-min ({}) must not exceed rto-max ({})", tcp.rto_min, tcp.rto_max);
        return Err(reader.out_of_range(key, &help));
    }
    tcp.time_wait = reader.within("time-wait", tcp.time_wait, Span::ZERO..=DAY)?;
    tcp.max_retries = small(reader, "max-retries", tcp.max_retries, 0..=255)?;
    tcp.mss = size(reader, "mss", tcp.mss, Bytes(1)..=Bytes(65_495))?;
    tcp.send_buffer = size(reader, "send-buffer", tcp.send_buffer, Bytes(1)..=MAX_BUFFER)?;
    tcp.recv_buffer = size(reader, "recv-buffer", tcp.recv_buffer, Bytes(1)..=MAX_BUFFER)?;
    for (key, buffer) in [("send-buffer", tcp.send_buffer), ("recv-buffer", tcp.recv_buffer)] {
        if buffer < tcp.mss {
            let blamed = if reader.has(key) { key } else { "mss" };
            let help = format!("a buffer must hold a segment: mss is {}, {key} {buffer}", tcp.mss);
            return Err(reader.out_of_range(blamed, &help));
        }
    }
    tcp.initial_window = small(reader, "initial-window", tcp.initial_window, 1..=10_000)?;
    tcp.loss_window = small(reader, "loss-window", tcp.loss_window, 1..=10_000)?;
    tcp.initial_ssthresh =
        size(reader, "initial-ssthresh", tcp.initial_ssthresh, Bytes(1)..=Bytes(u32::MAX.into()))?;
    let growths = [("rfc5681", GrowthRule::Rfc5681), ("bsd", GrowthRule::Bsd)];
    tcp.growth = reader.choice("growth", &growths)?.unwrap_or(tcp.growth);
    if reader.or("sender-adaptation", false)? {
        tcp.adapt_to_sparse_acks();
    }
    tcp.byte_counting = small(reader, "byte-counting", tcp.byte_counting, 0..=u32::MAX.into())?;
    tcp.pacing = reader.or("pacing", tcp.pacing)?;
    tcp.burst = small(reader, "burst", tcp.burst, 1..=10_000)?;
    let halvings = [("window", Halving::Window), ("flight", Halving::Flight)];
    tcp.halving = reader.choice("halving", &halvings)?.unwrap_or(tcp.halving);
    tcp.dupthresh = small(reader, "dupthresh", tcp.dupthresh, 1..=255)?;
    acc(reader, &mut tcp)?;
    tcp.ecn = reader.or("ecn", tcp.ecn)?;
    tcp.timestamps = reader.or("timestamps", tcp.timestamps)?;
    tcp.window_scale = reader.or("window-scale", tcp.window_scale)?;
    let predictions = [
        ("off", Prediction::Off),
        ("after-paws", Prediction::AfterPaws),
        ("before-paws", Prediction::BeforePaws),
    ];
    tcp.prediction = reader.choice("prediction", &predictions)?.unwrap_or(tcp.prediction);
    tcp.ackp = reader.choice("ackp", &schema::ACKP)?.unwrap_or(tcp.ackp);
    tcp.ackp_karn = reader.or("ackp-karn", tcp.ackp_karn)?;
    let elns = [("off", ElnMode::Off), ("checksum", ElnMode::Checksum), ("ideal", ElnMode::Ideal)];
    tcp.eln = reader.choice("eln", &elns)?.unwrap_or(tcp.eln);
    tcp.nack = reader.or("nack", tcp.nack)?;
    let reactions = [
        ("named", ElnReaction::Named),
        ("third-duplicate", ElnReaction::ThirdDuplicate),
        ("first-ack", ElnReaction::FirstAck),
    ];
    tcp.eln_reaction = reader.choice("eln-reaction", &reactions)?.unwrap_or(tcp.eln_reaction);
    tcp.ebsn = reader.or("ebsn", tcp.ebsn)?;
    tcp.quench = reader.or("quench", tcp.quench)?;
    let roundings = [("up", Rounding::Up), ("nearest", Rounding::Nearest)];
    tcp.rtt_from_syn = reader.or("rtt-from-syn", tcp.rtt_from_syn)?;
    tcp.rtt_rounding = reader.choice("rtt-rounding", &roundings)?.unwrap_or(tcp.rtt_rounding);
    tcp.limited_transmit = reader.or("limited-transmit", tcp.limited_transmit)?;
    vegas(reader, &mut tcp)?;
    clock(reader, &mut tcp)?;
    delayed_ack(reader, &mut tcp)?;
    Ok(tcp)
}

fn snack(reader: &Reader<'_>, tcp: &mut TcpConfig) -> Result<(), Error> {
    tcp.snack = reader.or("snack", tcp.snack)?;
    let causes = [("congestion", LossCause::Congestion), ("corruption", LossCause::Corruption)];
    tcp.loss_cause = reader.choice("loss-cause", &causes)?.unwrap_or(tcp.loss_cause);
    if tcp.variant == Variant::Snack && !tcp.snack {
        return Err(Diagnostic::new(Code::BadValue, reader.key("snack"), &reader.place("snack"))
            .message("`tcp = \"scps-tp\"` and `snack = false` contradict each other")
            .label("contradicts `tcp`")
            .help("leave out `snack = false`, or choose `tcp = \"vegas\"`, which needs no SNACKs")
            .into());
    }
    Ok(())
}

/// Whose TCP it is on real packets. A kernel is set up in the likeness of the preset, as far as kernels go.
fn stack(reader: &Reader<'_>) -> Result<Stack, Error> {
    let word = |key: &str| reader.node(key).and_then(Node::as_str);
    let likeness = match word("preset") {
        Some("linux") if word("tcp") == Some("bbr") => "linux-bbr",
        Some("linux") if word("tcp") == Some("rack") => "linux-reno",
        Some("freebsd-2.1" | "ns" | "bakshi96") => "linux-1997",
        Some("linux") => "linux-cubic",
        _ => "linux-reno",
    };
    let kernels = schema::words(&schema::KERNELS).map(|word| (word, word));
    let preset = reader.choice("kernel", &kernels)?.unwrap_or(likeness);
    let kernel = Stack::Kernel { preset };
    let stacks = [("kernel", kernel), ("lasthop", Stack::Lasthop)];
    Ok(reader.choice("stack", &stacks)?.unwrap_or(kernel))
}

fn preset(reader: &Reader<'_>) -> Result<TcpConfig, Error> {
    let Some(node) = reader.node("preset") else { return Ok(TcpConfig::rfc()) };
    node.as_str().and_then(TcpConfig::preset).ok_or_else(|| {
        let names = schema::words(&PRESETS);
        not_a_choice(node, &reader.key("preset"), &names)
    })
}

/// What Vegas aims at.
fn vegas(reader: &Reader<'_>, tcp: &mut TcpConfig) -> Result<(), Error> {
    let Some(node) = reader.node("vegas") else { return Ok(()) };
    let table = Reader::open(node, &reader.key("vegas"), &["alpha", "beta", "gamma"])?;
    let VegasRule { alpha, beta, gamma } = tcp.vegas;
    let segments = |key: &str, default: u32| small(&table, key, default, 0..=10_000);
    tcp.vegas = VegasRule {
        alpha: segments("alpha", alpha)?,
        beta: segments("beta", beta)?,
        gamma: segments("gamma", gamma)?,
    };
    if tcp.vegas.alpha > tcp.vegas.beta {
        let help = "alpha must not exceed beta, for example `vegas = { alpha = 1, beta = 3 }`";
        return Err(table.out_of_range(if table.has("alpha") { "alpha" } else { "beta" }, help));
    }
    Ok(())
}

/// Ticks or a granularity; choosing one leaves the other.
fn clock(reader: &Reader<'_>, tcp: &mut TcpConfig) -> Result<(), Error> {
    let range = Span::micros(1)..=Span::secs(60);
    if let Some(node) = reader.node("ticks") {
        if reader.has("granularity") {
            return Err(Diagnostic::new(Code::BadValue, reader.key("ticks"), &node.at)
                .message("`ticks` and `granularity` exclude each other")
                .label("one clock too many")
                .help("a TCP counts BSD `ticks`, or has fine timers with a `granularity`")
                .into());
        }
        let ticks = Reader::open(node, &reader.key("ticks"), &["slow", "fast"])?;
        let slow = ticks.within("slow", Span::millis(500), range.clone())?;
        let fast = ticks.within("fast", Span::millis(200), range)?;
        tcp.clock = Clock::Ticks { slow, fast };
        tcp.delayed_ack.timeout = fast;
    } else if reader.has("granularity") {
        let granularity = reader.within("granularity", Span::millis(1), range)?;
        tcp.clock = Clock::Fine { granularity };
    }
    Ok(())
}

/// Congestion control of acknowledgements; with it both data and ACKs may be marked, unless the file says otherwise.
fn acc(reader: &Reader<'_>, tcp: &mut TcpConfig) -> Result<(), Error> {
    let Some(node) = reader.node("acc") else { return Ok(()) };
    let usual = AccConfig::default();
    tcp.acc = if node.as_table().is_some() {
        let table = Reader::open(node, &reader.key("acc"), schema::ACC)?;
        let most = small(&table, "most", usual.most, 1..=u32::MAX.into())?;
        let timeout = table.within("timeout", usual.timeout, Span(1)..=Span::secs(60))?;
        Some(AccConfig { most, timeout })
    } else {
        reader.or("acc", false)?.then_some(usual)
    };
    tcp.ecn |= tcp.acc.is_some();
    Ok(())
}

fn delayed_ack(reader: &Reader<'_>, tcp: &mut TcpConfig) -> Result<(), Error> {
    let Some(node) = reader.node("delayed-ack") else { return Ok(()) };
    if node.as_str() == Some("off") {
        // The fast tick stays: it belongs to the clock.
        tcp.delayed_ack.every = 1;
        return Ok(());
    }
    if node.as_table().is_none() {
        return Err(Diagnostic::new(Code::BadValue, reader.key("delayed-ack"), &node.at)
            .message(format!("`{}`: this is {}", reader.key("delayed-ack"), node.brief()))
            .label("expected a table or \"off\"")
            .help(
                "for example `delayed-ack = { every = 2, timeout = \"200ms\" }`; \"off\" acknowledges \
                 each segment at once",
            )
            .into());
    }
    let table = Reader::open(node, &reader.key("delayed-ack"), &["every", "timeout"])?;
    let before = tcp.delayed_ack;
    tcp.delayed_ack = DelayedAck {
        every: match table.node("every").and_then(Node::as_str) {
            Some("none") => DelayedAck::BY_TIME,
            Some(_) => {
                let help = "a number of segments, or \"none\": `{ every = \"none\", timeout = \"500ms\" }`";
                return Err(table.out_of_range("every", help));
            }
            None if !table.has("every") => before.every,
            None => small(&table, "every", before.every, 1..=1_000_000)?,
        },
        timeout: table.within("timeout", before.timeout, Span::ZERO..=Span::secs(60))?,
    };
    if let Clock::Ticks { fast, .. } = &mut tcp.clock
        && *fast != tcp.delayed_ack.timeout
    {
        // With ticks the delay and the fast tick are one and the same thing.
        if reader.has("ticks") {
            let help = format!("with ticks a delayed ACK waits for the fast tick, which is {fast}");
            return Err(table.out_of_range("timeout", &help));
        }
        if tcp.delayed_ack.timeout == Span::ZERO {
            return Err(table.out_of_range("timeout", "write `delayed-ack = \"off\"` for no delay"));
        }
        *fast = tcp.delayed_ack.timeout;
    }
    Ok(())
}

fn size(
    reader: &Reader<'_>,
    key: &str,
    default: u32,
    range: RangeInclusive<Bytes>,
) -> Result<u32, Error> {
    // Every range that is passed ends within 32 bits.
    reader.within(key, Bytes(default.into()), range).map(|bytes| bytes.0 as u32)
}

fn small(
    reader: &Reader<'_>,
    key: &str,
    default: u32,
    range: RangeInclusive<u64>,
) -> Result<u32, Error> {
    reader.within(key, u64::from(default), range).map(|number| number as u32)
}

/// Names of all hosts, for suggestions.
pub(super) fn names(specs: &[HostSpec]) -> Vec<&str> {
    specs.iter().map(|spec| spec.name.as_str()).collect()
}
