//! The path: its stages one by one, and whether they fit together.

use lasthop_proto::link::header_compression::{CompressionConfig, MAX_SLOTS};
use lasthop_proto::link::{LineConfig, RadioConfig, SerialConfig};
use lasthop_proto::queue::{Discipline, Limit};
use lasthop_proto::units::{Probability, Rate, Span};
use lasthop_proto::wire::Addr;

use super::transfer::Directions;
use super::{Noted, agent, errors, hop, mac, named, red};
use crate::document::Node;
use crate::error::{Code, Diagnostic, Error, listed};
use crate::model::{CrossTraffic, Host, HostSide, RadioStage, Stage, StageKind};
use crate::read::Reader;
use crate::schema;

/// Most stages of a path.
const MAX_STAGES: usize = 64;
/// Longest delay of a link: light takes less to the sun and back.
const MAX_DELAY: Span = Span::secs(1000);
/// Queue in front of a transmitter, where the file does not say.
const QUEUE: Limit = Limit::Packets(50);

const EXAMPLE: &str = "for example\n\n    [[path]]\n    link = { rate = \"10mbit\", delay = \"0.2ms\" }\n    \
                       [[path]]\n    agent = \"snoop\"\n    [[path]]\n    radio = { rate = \"2mbit\", delay = \"1ms\" }";

/// Reads and checks the path.
pub(super) fn read(
    file: &Reader<'_>,
    data: Directions,
    notes: &mut Vec<Noted>,
) -> Result<Vec<Stage>, Error> {
    let Some(node) = file.node("path") else {
        return Err(Diagnostic::new(Code::MissingKey, "path", file.at())
            .message("the scenario has no path")
            .label("`[[path]]` is missing")
            .help(format!("a path is what lies between the hosts, from left to right, {EXAMPLE}"))
            .into());
    };
    let Some(items) = node.as_array() else {
        return Err(Diagnostic::new(Code::BadPath, "path", &node.at)
            .message(format!("`path` is {}, not a list of stages", node.kind()))
            .label("expected a list")
            .help("each stage begins with its own `[[path]]`, in double brackets")
            .into());
    };
    if items.is_empty() {
        return Err(Diagnostic::new(Code::BadPath, "path", &node.at)
            .message("the path is empty")
            .label("no stages")
            .help(format!("at least one stage must lie between the hosts, {EXAMPLE}"))
            .into());
    }
    if items.len() > MAX_STAGES {
        return Err(Diagnostic::new(Code::OutOfRange, "path", &items[MAX_STAGES].at)
            .message(format!("the path has {} stages", items.len()))
            .label("one too many")
            .help(format!("a path has at most {MAX_STAGES} stages"))
            .into());
    }
    let kinds =
        items.iter().enumerate().map(|(i, item)| kind(item, i)).collect::<Result<Vec<_>, _>>()?;
    one_agent_each(items, &kinds)?;
    let names = names(items, &kinds)?;
    items
        .iter()
        .zip(kinds)
        .zip(names)
        .enumerate()
        .map(|(i, ((item, kind), name))| {
            let kind = stage(item, &format!("path.{}", i + 1), kind, data, notes)?;
            Ok(Stage { name, kind })
        })
        .collect()
}

/// Which of the stage's keys says what it is.
fn kind(item: &Node, index: usize) -> Result<&'static str, Error> {
    let path = format!("path.{}", index + 1);
    let all: Vec<&str> = ["name"]
        .into_iter()
        .chain(schema::STAGES.iter().copied())
        .chain(schema::ERRORS.iter().copied())
        .chain(schema::HOP.iter().copied())
        .chain(schema::AGENT_OPTIONS.iter().copied())
        .collect();
    let reader = Reader::open(item, &path, &all)?;
    let found: Vec<&'static str> =
        schema::STAGES.iter().copied().filter(|key| reader.has(key)).collect();
    let trouble = |message: String, label: &str| {
        Diagnostic::new(Code::BadPath, path.as_str(), reader.at())
            .message(message)
            .label(label)
            .help(format!(
                "a stage has exactly one of {}; each stage begins with its own `[[path]]`",
                listed(schema::STAGES)
            ))
    };
    match found.as_slice() {
        [one] => Ok(one),
        [] => Err(trouble(format!("`{path}` does not say what it is"), "an empty stage").into()),
        several => {
            Err(trouble(format!("`{path}` is several things: {}", listed(several)), "too much")
                .into())
        }
    }
}

/// A base station runs one agent: between two radios, and before the first, there is room for one.
fn one_agent_each(items: &[Node], kinds: &[&str]) -> Result<(), Error> {
    let mut agent: Option<usize> = None;
    for (i, kind) in kinds.iter().enumerate() {
        match (*kind, agent) {
            ("radio", _) => agent = None,
            ("agent", None) => agent = Some(i),
            ("agent", Some(first)) => {
                let at = items[i].as_table().and_then(|table| table.get("agent"));
                let at = at.map_or(&items[i].at, |node| &node.at);
                return Err(Diagnostic::new(Code::BadPath, format!("path.{}.agent", i + 1), at)
                    .message(format!("two agents where one fits: `path.{}` and this one", first + 1))
                    .label("second agent")
                    .help(
                        "a radio hop has one base station, and that runs one agent; to compare agents \
                         write `agent = [\"none\", \"snoop\"]` under `[vary]`",
                    )
                    .into());
            }
            _ => {}
        }
    }
    Ok(())
}

/// Names of the stages: given ones, else the kind, numbered from the second of a kind on. Adding a stage
/// of one kind thus renames none of another, and moves none of their random draws.
fn names(items: &[Node], kinds: &[&'static str]) -> Result<Vec<String>, Error> {
    let mut given: Vec<Option<String>> = Vec::with_capacity(items.len());
    for (i, item) in items.iter().enumerate() {
        let name = item.as_table().and_then(|table| table.get("name"));
        let Some(node) = name else {
            given.push(None);
            continue;
        };
        let path = format!("path.{}.name", i + 1);
        let text: String = crate::read::read(node, &path, "name")?;
        named(&text, &path, &node.at)?;
        let reason = if given.iter().flatten().any(|other| *other == text) {
            Some("another stage has this name")
        } else if text.bytes().all(|b| b.is_ascii_digit()) {
            Some("a number would be taken for a position in the path")
        } else if schema::STAGES.contains(&text.as_str()) && text != kinds[i] {
            Some("this is the name of another kind of stage")
        } else {
            None
        };
        if let Some(reason) = reason {
            return Err(Diagnostic::new(Code::BadName, path.as_str(), &node.at)
                .message(format!("`{path}`: `{text}` cannot be the stage's name: {reason}"))
                .label("choose another name")
                .help("a name is unique in the path, for example `name = \"wavelan\"`")
                .into());
        }
        given.push(Some(text));
    }
    let mut taken: Vec<String> = given.iter().flatten().cloned().collect();
    Ok(given
        .into_iter()
        .zip(kinds)
        .map(|(name, kind)| {
            name.unwrap_or_else(|| {
                let mut name = (*kind).to_owned();
                for number in 2.. {
                    if !taken.contains(&name) {
                        break;
                    }
                    name = format!("{kind}{number}");
                }
                taken.push(name.clone());
                name
            })
        })
        .collect())
}

fn stage(
    item: &Node,
    path: &str,
    kind: &str,
    data: Directions,
    notes: &mut Vec<Noted>,
) -> Result<StageKind, Error> {
    let of_radio = [schema::ERRORS, schema::HOP].concat();
    let beside: &[&str] = match kind {
        "agent" => schema::AGENT_OPTIONS,
        "radio" => &of_radio,
        _ => &[],
    };
    belongs(item, path, kind, beside)?;
    let keys: Vec<&str> = ["name", kind].into_iter().chain(beside.iter().copied()).collect();
    let reader = Reader::open(item, path, &keys)?;
    let inner = |keys: &[&str]| match reader.node(kind) {
        Some(node) => Reader::open(node, &reader.key(kind), keys),
        None => Ok(reader.clone()),
    };
    Ok(match kind {
        "link" => link(&inner(schema::LINK)?)?,
        "agent" => StageKind::Agent(agent::read(&reader, notes)?),
        "radio" => {
            let radio = radio(&inner(schema::RADIO)?)?;
            let (errors_right, errors_left) = errors::read(&reader, data, radio.rate)?;
            let hop = hop::read(&reader, &radio, notes)?;
            let hops = mac::half_duplex_hops(&reader, hop.as_deref())?;
            StageKind::Radio(RadioStage { radio, errors_right, errors_left, hop, hops })
        }
        _ => StageKind::Cross(cross(&inner(schema::CROSS)?)?),
    })
}

/// A key that stands beside another kind of stage is a slip worth its own words.
fn belongs(item: &Node, path: &str, kind: &str, beside: &[&str]) -> Result<(), Error> {
    let Some(table) = item.as_table() else { return Ok(()) };
    let foreign = |key: &str| key != "name" && key != kind && !beside.contains(&key);
    let Some(entry) = table.entries.iter().find(|entry| foreign(&entry.key)) else { return Ok(()) };
    let of_radio = |key| schema::ERRORS.contains(&key) || schema::HOP.contains(&key);
    let owner = if of_radio(entry.key.as_str()) { "radio" } else { "agent" };
    let inside: &[&str] = match kind {
        "link" => schema::LINK,
        "radio" => schema::RADIO,
        _ => &[],
    };
    let help = if inside.contains(&entry.key.as_str()) {
        format!("write it inside the braces: `{kind} = {{ {} = ... }}`", entry.key)
    } else {
        format!("`{}` stands beside `{owner} = ...`, under the same `[[path]]`", entry.key)
    };
    Err(Diagnostic::new(Code::UnknownKey, format!("{path}.{}", entry.key), &entry.key_at)
        .message(format!("`{path}` is `{kind}` and has no key `{}`", entry.key))
        .label(format!("not a key of `{kind}`"))
        .help(help)
        .into())
}

fn link(reader: &Reader<'_>) -> Result<StageKind, Error> {
    one_or_both(reader, "rate", "leave one out if it is infinitely fast")?;
    let both = reader.optional("rate")?;
    let rate_right = reader.optional("rate-right")?.or(both);
    let rate_left = reader.optional("rate-left")?.or(both);
    let (discipline_right, discipline_left) = disciplines(reader, rate_right, rate_left)?;
    let line = LineConfig {
        rate_right,
        rate_left,
        delay: reader.within("delay", Span::ZERO, Span::ZERO..=MAX_DELAY)?,
        framing: reader.within("framing", 0_u64, 0..=10_000)? as u32,
        queue: reader.or("queue", QUEUE)?,
        discipline_right,
        discipline_left,
    };
    let compression = compression(reader)?;
    let frame_loss = reader.or("frame-loss", Probability::ZERO)?;
    let loss_noticed = reader.or("loss-noticed", true)?;
    // A plain line stays what it is, and as fast as it is.
    Ok(if compression.is_none() && frame_loss == Probability::ZERO {
        StageKind::Link(line)
    } else {
        StageKind::Serial(SerialConfig { line, compression, frame_loss, loss_noticed })
    })
}

/// How headers are compressed on a line.
fn compression(reader: &Reader<'_>) -> Result<Option<CompressionConfig>, Error> {
    let recovery = reader.choice("header-compression", &schema::HEADER_COMPRESSION)?.flatten();
    let slots = u64::from(CompressionConfig::default().slots);
    let slots = reader.within("compression-slots", slots, 1..=MAX_SLOTS.into())? as u16;
    Ok(recovery.map(|recovery| CompressionConfig {
        slots,
        recovery,
        ..CompressionConfig::default()
    }))
}

/// Most mobile hosts with stations of their own; more share one.
const MOBILES: usize = 250;

/// Where several hosts hang on the right of a radio hop that ends the path, each has a station of its own.
pub(super) fn give_stations(path: &mut [Stage], hosts: &[Host]) {
    let Some(Stage { kind: StageKind::Radio(RadioStage { hop: Some(hop), .. }), .. }) =
        path.last_mut()
    else {
        return;
    };
    let right = hosts.iter().filter(|host| host.side == HostSide::Right);
    let mobiles: Vec<Addr> = right.map(|host| host.addr).collect();
    if (2..=MOBILES).contains(&mobiles.len()) {
        hop.mobiles = mobiles;
    }
}

/// A key holds in both directions, or its `-right` and `-left` do in one; the file must not say both.
fn one_or_both(reader: &Reader<'_>, key: &str, missing: &str) -> Result<(), Error> {
    if !(reader.has(key) && (has_side(reader, key, "right") || has_side(reader, key, "left"))) {
        return Ok(());
    }
    Err(Diagnostic::new(Code::BadValue, reader.key(key), &reader.place(key))
        .message(format!("`{}` is set beside a {key} of one direction", reader.key(key)))
        .label("which of them?")
        .help(format!(
            "`{key}` holds in both directions; write `{key}-right` and `{key}-left` where they differ, \
             and {missing}"
        ))
        .into())
}

fn has_side(reader: &Reader<'_>, key: &str, side: &str) -> bool {
    reader.has(&format!("{key}-{side}"))
}

/// What the queues towards the right and towards the left do with their packets.
fn disciplines(
    reader: &Reader<'_>,
    rate_right: Option<Rate>,
    rate_left: Option<Rate>,
) -> Result<(Discipline, Discipline), Error> {
    one_or_both(reader, "discipline", "leave one out if it is `fifo`")?;
    let read = |key| reader.choice(key, &schema::DISCIPLINES);
    let both = read("discipline")?.unwrap_or_default();
    let side = |key| Ok::<_, Error>(read(key)?.unwrap_or(both));
    red::read(
        reader,
        (side("discipline-right")?, rate_right),
        (side("discipline-left")?, rate_left),
    )
}

fn radio(reader: &Reader<'_>) -> Result<RadioConfig, Error> {
    let rate = reader.required("rate")?;
    let (discipline_right, discipline_left) = disciplines(reader, Some(rate), Some(rate))?;
    Ok(RadioConfig {
        rate,
        delay: reader.within("delay", Span::ZERO, Span::ZERO..=MAX_DELAY)?,
        overhead: reader.within("overhead", Span::ZERO, Span::ZERO..=Span::secs(60))?,
        half_duplex: reader.choice("duplex", &[("half", true), ("full", false)])?.unwrap_or(true),
        queue: reader.or("queue", QUEUE)?,
        discipline_right,
        discipline_left,
    })
}

fn cross(reader: &Reader<'_>) -> Result<CrossTraffic, Error> {
    Ok(CrossTraffic {
        loss: reader.or("loss", Probability::ZERO)?,
        jitter: reader.within("jitter", Span::ZERO, Span::ZERO..=Span::secs(60))?,
    })
}
