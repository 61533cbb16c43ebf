//! The battery of a host: a preset, and what the file changes about it.

use lasthop_proto::energy::{Hardware, PRESETS, Preset, RadioPower};
use lasthop_proto::units::{Charge, Current, Energy, Power, Voltage};

use crate::document::{Node, Value};
use crate::error::{Code, Diagnostic, Error, Place, meant};
use crate::model::{Host, HostSide, RadioStage, Stage, StageKind};
use crate::read::{Reader, not_a_choice};
use crate::schema;

/// No preset and no laptop comes near these; they keep sums of a long run finite.
const MOST_ENERGY: f64 = 1e12;
const MOST_POWER: f64 = 1e6;

/// Reads `battery`: the word of a preset, or a table.
pub(super) fn read(host: &Reader<'_>) -> Result<Option<(Hardware, Place)>, Error> {
    const KEY: &str = "battery";
    let Some(node) = host.node(KEY) else { return Ok(None) };
    let hardware = match &node.value {
        Value::String(_) => preset(node, &host.key(KEY))?.hardware(),
        Value::Table(_) => table(&Reader::open(node, &host.key(KEY), schema::BATTERY)?)?,
        _ => {
            return Err(Diagnostic::new(Code::BadValue, host.key(KEY), &node.at)
                .message(format!("`{}`: this is {}", host.key(KEY), node.kind()))
                .label("expected a preset or a table")
                .help(format!(
                    "for example `battery = \"{}\"` or `battery = {{ preset = \"{0}\", capacity = \"30Wh\" }}`; \
                     `lasthop list hardware` shows the presets",
                    PRESETS[0].name
                ))
                .into());
        }
    };
    Ok(Some((hardware, node.at.clone())))
}

fn preset(node: &Node, key: &str) -> Result<&'static Preset, Error> {
    let found = node.as_str().and_then(Preset::find);
    found.ok_or_else(|| {
        let names: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
        not_a_choice(node, key, &names)
    })
}

/// A battery in a table. Without a preset nothing has a default.
fn table(table: &Reader<'_>) -> Result<Hardware, Error> {
    let base = match table.node("preset") {
        Some(node) => Some(preset(node, &table.key("preset"))?.hardware()),
        None => None,
    };
    let supply = supply(table)?;
    let power = |key: &str, default: Option<Power>| power(table, key, supply, default);
    let radio = base.as_ref().map(|base| base.radio);
    let hardware = Hardware {
        name: base.as_ref().map_or("custom", |base| &base.name).to_owned(),
        capacity: capacity(table, supply, base.as_ref().map(|base| base.capacity))?,
        base: power("base", base.as_ref().map(|base| base.base))?,
        radio: RadioPower {
            doze: power("doze", radio.map(|radio| radio.doze))?,
            idle: power("idle", radio.map(|radio| radio.idle))?,
            receive: power("receive", radio.map(|radio| radio.receive))?,
            transmit: power("transmit", radio.map(|radio| radio.transmit))?,
        },
        segment: match table.optional::<Energy>("segment")? {
            Some(energy) if energy.get() <= MOST_ENERGY => energy,
            Some(_) => {
                return Err(table.out_of_range("segment", "for example `segment = \"12mJ\"`"));
            }
            None => base
                .as_ref()
                .map(|base| base.segment)
                .ok_or_else(|| absent(table, "segment", "12mJ"))?,
        },
    };
    Ok(hardware)
}

fn absent(table: &Reader<'_>, key: &str, example: &str) -> Error {
    let expected = format!(
        "`preset = \"{}\"` to begin with, or every key of a battery: {}",
        PRESETS[0].name,
        meant("", &["capacity", "base", "doze", "idle", "receive", "transmit", "segment"])
    );
    table.missing(key, &expected, &format!("\"{example}\""))
}

fn supply(table: &Reader<'_>) -> Result<Option<Voltage>, Error> {
    let supply = table.optional::<Voltage>("supply")?;
    if supply.is_some_and(|supply| supply.get() == 0.0 || supply.get() > MOST_POWER) {
        return Err(table.out_of_range("supply", "for example `supply = \"5V\"`"));
    }
    Ok(supply)
}

/// A value whose unit is that of a quantity which becomes what is wanted times the supply's voltage.
fn needs_supply(table: &Reader<'_>, key: &str, what: &str, instead: &str) -> Error {
    Diagnostic::new(Code::MissingKey, table.key(key), &table.place(key))
        .message(format!("`{}` is {what}, and the battery has no `supply`", table.key(key)))
        .label("at which voltage?")
        .help(format!("add the voltage, for example `supply = \"5V\"`, or write {instead}"))
        .into()
}

/// The unit of a word, in lower case.
fn unit(node: Option<&Node>) -> String {
    let word = node.and_then(Node::as_str).unwrap_or_default();
    let unit: String = word
        .chars()
        .rev()
        .take_while(|c| c.is_alphabetic())
        .collect::<Vec<_>>()
        .iter()
        .rev()
        .collect();
    unit.to_ascii_lowercase()
}

fn capacity(
    table: &Reader<'_>,
    supply: Option<Voltage>,
    default: Option<Energy>,
) -> Result<Energy, Error> {
    const KEY: &str = "capacity";
    const HELP: &str = "a battery holds something, for example `capacity = \"30Wh\"`";
    let energy = if unit(table.node(KEY)).ends_with("ah") {
        let charge = table.required::<Charge>(KEY)?;
        let supply = supply.ok_or_else(|| {
            needs_supply(table, KEY, "a charge", "what it holds: `capacity = \"30Wh\"`")
        })?;
        supply * charge
    } else {
        match table.optional::<Energy>(KEY)?.or(default) {
            Some(energy) => energy,
            None => return Err(absent(table, KEY, "30Wh")),
        }
    };
    if energy.get() == 0.0 || energy.get() > MOST_ENERGY {
        return Err(table.out_of_range(KEY, HELP));
    }
    Ok(energy)
}

fn power(
    table: &Reader<'_>,
    key: &str,
    supply: Option<Voltage>,
    default: Option<Power>,
) -> Result<Power, Error> {
    let unit = unit(table.node(key));
    let power = if unit.ends_with('a') {
        let current = table.required::<Current>(key)?;
        let supply = supply.ok_or_else(|| {
            needs_supply(table, key, "a current", &format!("a power: `{key} = \"0.9W\"`"))
        })?;
        supply * current
    } else {
        match table.optional::<Power>(key)?.or(default) {
            Some(power) => power,
            None => return Err(absent(table, key, "0.9W")),
        }
    };
    if power.get() > MOST_POWER {
        return Err(table.out_of_range(key, &format!("for example `{key} = \"0.9W\"`")));
    }
    Ok(power)
}

/// Hops of hosts with a battery tell what is on the air: a plain radio, which does not, becomes a hop with the ideal
/// medium, which behaves the same.
pub(super) fn give_hops(
    path: &mut [Stage],
    hosts: &[Host],
    batteries: &[Option<Place>],
) -> Result<(), Error> {
    let is_link = |stage: &Stage| {
        matches!(stage.kind, StageKind::Link(_) | StageKind::Serial(_) | StageKind::Radio(_))
    };
    for (host, place) in hosts.iter().zip(batteries) {
        let Some(place) = place else { continue };
        let link = match host.side {
            HostSide::Left => path.iter().position(is_link),
            HostSide::Right => path.iter().rposition(is_link),
        };
        let Some(StageKind::Radio(RadioStage { hop, hops, .. })) = link.map(|i| &mut path[i].kind)
        else {
            continue;
        };
        if hops.is_some() {
            return Err(Diagnostic::new(Code::BadValue, format!("host.{}.battery", host.name), place)
                .message(format!(
                    "`host.{}.battery`: `half-duplex-hops` does not tell when its stations send",
                    host.name
                ))
                .label("not on this hop")
                .help("write another medium access, for example `mac = \"dcf\"`, or leave out the battery")
                .into());
        }
        hop.get_or_insert_default();
    }
    Ok(())
}
