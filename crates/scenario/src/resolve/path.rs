//! The path: its stages one by one, and whether they fit together.

use lasthop_proto::agent::AgentConfig;
use lasthop_proto::link::tc::{PoliceConfig, TbfConfig};
use lasthop_proto::mac::MacConfig;

use super::transfer::Directions;
use super::{agent, errors, hop, netem};
use crate::document::Node;
use crate::error::{Code, Diagnostic, Error, Location, Noted, listed, suggestion};
use crate::model::{Host, HostSide, RadioStage, Stage, StageKind};
use crate::parts::link::link;
use crate::parts::stages::{cross, radio};
use crate::read::{Reader, check_name};
use crate::reading::take;
use crate::roaming::{RadioCell, Roaming};
use crate::schema;
use crate::synonyms::{KEYS, same};

/// Maximum number of stages of a path.
const MAX_STAGES: usize = 64;

const EXAMPLE: &str = "for example\n\n    [[path]]\n    link = { rate = \"10mbit\", delay = \"0.2ms\" }\n    \
                       [[path]]\n    agent = \"snoop\"\n    \
                       [[path]]\n    radio = { rate = \"2mbit\", delay = \"1ms\" }";

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
            .help(format!("a path lists the stages between hosts, from left to right, {EXAMPLE}"))
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
    let stretch = Stretch { key: "path", cell: None, data };
    stages_of(items, stretch, &mut Vec::new(), notes)
}

/// Lets base stations that end connections suspect that lost full segments are too large for the path.
pub(super) fn suspect_sizes(path: &mut [Stage]) {
    for stage in path {
        if let StageKind::Agent(AgentConfig::Split(split)) = &mut stage.kind {
            split.suspects_size = true;
        }
    }
}

/// Rejects a path without a line or a radio. All packets and their answers would arrive at the instant of
/// their transmission, in an endless loop.
pub(super) fn takes_time(
    path: &[Stage],
    roaming: Option<&Roaming>,
    hosts: &[Host],
    file: &Reader<'_>,
) -> Result<(), Error> {
    let lines =
        |end| hosts.iter().filter(|host| host.side == end).all(|host| host.access.is_some());
    let has_line = |path: &[Stage]| path.iter().any(|stage| stage.kind.is_link());
    if has_line(path) || lines(HostSide::Left) || lines(HostSide::Right) {
        return Ok(());
    }
    let fault = match roaming {
        None => Diagnostic::new(Code::BadPath, "path", &file.location("path"))
            .message("no time passes on the path: it has neither a link nor a radio"),
        Some(roaming) => match roaming.cells.iter().find(|cell| !has_line(&cell.path)) {
            None => return Ok(()),
            Some(RadioCell { name, .. }) => Diagnostic::new(
                Code::BadPath,
                "cell",
                &file.location("cell"),
            )
            .message(format!(
                "no time passes on the way through cell `{name}`: it has neither a link nor a radio"
            )),
        },
    };
    Err(fault
        .label("no stage has a delay or a rate")
        .help(format!("add a link or a radio, {EXAMPLE}"))
        .into())
}

/// A list of stages: the path, or that of a cell.
#[derive(Clone, Copy)]
pub(super) struct Stretch<'a> {
    /// The dotted key of the list.
    pub key: &'a str,
    /// The cell that it belongs to.
    pub cell: Option<&'a str>,
    pub data: Directions,
}

/// Reads the stages of a cell, at least one, and adds their names to `taken`.
pub(super) fn stages(
    cell: &Reader<'_>,
    stretch: Stretch<'_>,
    taken: &mut Vec<String>,
    notes: &mut Vec<Noted>,
) -> Result<Vec<Stage>, Error> {
    match cell.node("path").and_then(Node::as_array) {
        Some(items) if !items.is_empty() => stages_of(items, stretch, taken, notes),
        _ => Err(Diagnostic::new(Code::BadPath, stretch.key, &cell.location("path"))
            .message(format!("the cell `{}` has no stages", stretch.cell.unwrap_or_default()))
            .label("`[[cell.path]]` is missing")
            .help(
                "each stage begins with its own `[[cell.path]]` below its `[[cell]]`, for example \
                 `radio = { rate = \"2mbit\", delay = \"1ms\" }`",
            )
            .into()),
    }
}

fn stages_of(
    items: &[Node],
    stretch: Stretch<'_>,
    taken: &mut Vec<String>,
    notes: &mut Vec<Noted>,
) -> Result<Vec<Stage>, Error> {
    let Stretch { key, data, .. } = stretch;
    if items.len() > MAX_STAGES {
        return Err(Diagnostic::new(Code::OutOfRange, key, &items[MAX_STAGES].at)
            .message(format!("the path has {} stages", items.len()))
            .label("one too many")
            .help(format!("a path has at most {MAX_STAGES} stages"))
            .into());
    }
    let kinds = items
        .iter()
        .enumerate()
        .map(|(i, item)| kind(item, &format!("{key}.{}", i + 1)))
        .collect::<Result<Vec<_>, _>>()?;
    one_agent_each(items, &kinds, key)?;
    let names = names(items, &kinds, stretch, taken)?;
    let stages: Result<Vec<Stage>, Error> = items
        .iter()
        .zip(kinds)
        .zip(names)
        .enumerate()
        .map(|(i, ((item, kind), name))| {
            let kind = stage(item, &format!("{key}.{}", i + 1), kind, data, notes)?;
            Ok(Stage { name, kind })
        })
        .collect();
    let stages = stages?;
    netem::note(items, key, &stages, notes);
    Ok(stages)
}

/// The key that decides the kind of the stage.
fn kind(item: &Node, path: &str) -> Result<&'static str, Error> {
    let all = [schema::STAGES, schema::stage_keys("radio"), schema::stage_keys("agent"), &["name"]]
        .concat();
    if let Some(error) = outside_braces(item, path, &all) {
        return Err(error);
    }
    let reader = Reader::open(item, path, &all)?;
    let found: Vec<&'static str> =
        schema::STAGES.iter().copied().filter(|key| reader.has(key)).collect();
    let trouble = |message: String, label: &str| {
        Diagnostic::new(Code::BadPath, path, reader.at()).message(message).label(label).help(
            format!(
                "a stage has exactly one of {}; each stage begins with its own `[[path]]`",
                listed(schema::STAGES)
            ),
        )
    };
    match found.as_slice() {
        [one] => Ok(one),
        [] => Err(trouble(format!("`{path}` has no kind"), "an empty stage").into()),
        several => {
            Err(trouble(format!("`{path}` has several kinds: {}", listed(several)), "too much")
                .into())
        }
    }
}

/// The error for a key next to a stage that is not in `known` and belongs into the stage's braces.
fn outside_braces(item: &Node, path: &str, known: &[&str]) -> Option<Error> {
    let table = item.as_table()?;
    let kind = schema::STAGES.iter().find(|kind| table.has(kind))?;
    let entry = table.entries.iter().find(|entry| !known.contains(&entry.key.as_str()))?;
    let inner = schema::inner_keys(kind);
    let near = same(&entry.key, KEYS, &[known, inner].concat())?;
    inner.contains(&near).then(|| {
        Diagnostic::new(Code::UnknownKey, format!("{path}.{}", entry.key), &entry.key_at)
            .message(format!("`{path}` has no key `{}`", entry.key))
            .label("unknown key")
            .help(format!("write it inside the braces: `{kind} = {{ {near} = ... }}`"))
            .into()
    })
}

/// Checks that each base station has one agent: at most one before the first radio, and one between two radios.
fn one_agent_each(items: &[Node], kinds: &[&str], path: &str) -> Result<(), Error> {
    let mut agent: Option<usize> = None;
    for (i, kind) in kinds.iter().enumerate() {
        match (*kind, agent) {
            ("radio", _) => agent = None,
            ("agent", None) => agent = Some(i),
            ("agent", Some(first)) => {
                let at = items[i].as_table().and_then(|table| table.get("agent"));
                let at = at.map_or(&items[i].at, |node| &node.at);
                return Err(Diagnostic::new(Code::BadPath, format!("{path}.{}.agent", i + 1), at)
                    .message(format!("two agents where one fits: `{path}.{}` and this one", first + 1))
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

/// Names of the stages: the given name, or the kind, with a number from the second stage of a kind on. So
/// an additional stage of one kind does not change the names and random draws of other kinds.
fn names(
    items: &[Node],
    kinds: &[&'static str],
    stretch: Stretch<'_>,
    taken: &mut Vec<String>,
) -> Result<Vec<String>, Error> {
    let mut given: Vec<Option<String>> = Vec::with_capacity(items.len());
    for (i, item) in items.iter().enumerate() {
        let name = item.as_table().and_then(|table| table.get("name"));
        let Some(node) = name else {
            given.push(None);
            continue;
        };
        let path = format!("{}.{}.name", stretch.key, i + 1);
        let text: String = crate::read::read(node, &path, "name")?;
        check_name(&text, &path, &node.at)?;
        let reason = if given.iter().flatten().chain(&*taken).any(|other| *other == text) {
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
    taken.extend(given.iter().flatten().cloned());
    Ok(given
        .into_iter()
        .zip(kinds)
        .map(|(name, kind)| {
            name.unwrap_or_else(|| {
                let kind = stretch.cell.map_or((*kind).to_owned(), |cell| format!("{cell}-{kind}"));
                let mut name = kind.clone();
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
    let stage_keys = schema::stage_keys(kind);
    belongs(item, path, kind, stage_keys)?;
    let keys: Vec<&str> = ["name", kind].into_iter().chain(stage_keys.iter().copied()).collect();
    let reader = Reader::open(item, path, &keys)?;
    let inner = || match reader.node(kind) {
        Some(node) => Reader::open(node, &reader.key(kind), schema::inner_keys(kind)),
        None => Ok(reader.clone()),
    };
    Ok(match kind {
        "link" => take(&inner()?, link)?.0,
        "agent" => StageKind::Agent(agent::read(&reader, notes)?),
        "radio" => {
            let ((radio, varying), _) = take(&inner()?, radio)?;
            let (errors_right, errors_left) = errors::read(&reader, data, radio.rate)?;
            let (hop, hops) = hop::read(&reader, &radio, notes)?;
            if varying.is_some() && hops.is_some() {
                return Err(not_on_a_hop(&reader));
            }
            StageKind::Radio(RadioStage { radio, errors_right, errors_left, varying, hop, hops })
        }
        "tbf" => StageKind::Tbf(take(&inner()?, TbfConfig::keys)?.0),
        "police" => StageKind::Police(take(&inner()?, PoliceConfig::keys)?.0),
        _ => StageKind::Cross(take(&inner()?, cross)?.0),
    })
}

/// The error for packet radio over several hops that varies.
fn not_on_a_hop(reader: &Reader<'_>) -> Error {
    Diagnostic::new(Code::BadPath, reader.key("radio"), &reader.location("radio"))
        .message("packet radio over several hops does not vary")
        .label("not on these hops")
        .help(
            "leave out `mac`, or the keys that vary; or write a `link` that varies before these hops, and give the \
             radio its highest rate",
        )
        .into()
}

/// Rejects a key of another kind of stage with a specific message.
fn belongs(item: &Node, path: &str, kind: &str, stage_keys: &[&str]) -> Result<(), Error> {
    let Some(table) = item.as_table() else { return Ok(()) };
    let foreign = |key: &str| key != "name" && key != kind && !stage_keys.contains(&key);
    let Some(entry) = table.entries.iter().find(|entry| foreign(&entry.key)) else { return Ok(()) };
    let of_radio = schema::stage_keys("radio").contains(&entry.key.as_str());
    let owner = if of_radio { "radio" } else { "agent" };
    let help = if schema::inner_keys(kind).contains(&entry.key.as_str()) {
        format!("write it inside the braces: `{kind} = {{ {} = ... }}`", entry.key)
    } else {
        let hint = suggestion(&entry.key, schema::inner_keys(kind))
            .map_or(String::new(), |near| format!("did you mean `{near}`? Otherwise "));
        let on_link = match kind == "link" && schema::keys("errors").contains(&entry.key.as_str()) {
            true => "; a `link` loses packets by `frame-loss = \"1%\"` in its braces",
            false => "",
        };
        format!(
            "{hint}write `{}` next to `{owner} = ...`, under the same `[[path]]`{on_link}",
            entry.key
        )
    };
    Err(Diagnostic::new(Code::UnknownKey, format!("{path}.{}", entry.key), &entry.key_at)
        .message(format!("`{path}` is `{kind}` and has no key `{}`", entry.key))
        .label(format!("not a key of `{kind}`"))
        .help(help)
        .into())
}

/// Maximum number of mobile hosts with separate stations; more share one.
const MOBILES: usize = 250;

/// Several hosts on the right of a radio hop at the end of the path have one station each. Hosts that `dcf.stations`
/// names must have one.
pub(super) fn give_stations(
    path: &mut [Stage],
    hosts: &[Host],
    at: &Location,
) -> Result<(), Error> {
    let right: Vec<&Host> = hosts.iter().filter(|host| host.side == HostSide::Right).collect();
    let several = (2..=MOBILES).contains(&right.len());
    let last = path.len().saturating_sub(1);
    for (i, stage) in path.iter_mut().enumerate() {
        let StageKind::Radio(RadioStage { hop: Some(hop), .. }) = &mut stage.kind else { continue };
        if several && i == last {
            hop.mobiles = right.iter().map(|host| host.addr).collect();
        }
        let MacConfig::Dcf(dcf) = &mut hop.mac else { continue };
        for own in &mut dcf.stations {
            let place = right.iter().position(|host| host.name == own.host);
            let place = place.filter(|place| i == last && (several || *place == 0));
            let Some(place) = place else {
                let names: Vec<&str> = right.iter().map(|host| host.name.as_str()).collect();
                return Err(Diagnostic::new(Code::BadValue, "path", at)
                    .message(format!("no station of `{}` is the host `{}`", stage.name, own.host))
                    .label("in `dcf.stations`")
                    .help(format!(
                        "hosts with a station are those behind the last radio: {}",
                        names.join(", ")
                    ))
                    .into());
            };
            own.station = place as u8 + 1;
        }
    }
    Ok(())
}
