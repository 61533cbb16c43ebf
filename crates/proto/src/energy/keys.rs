//! The keys of a battery: a preset and changes to it.

use super::hardware::{Hardware, RadioPower};
use super::presets::PRESETS;
use crate::describe::{Form, Keys, Need, Value};
use crate::units::{Energy, Power, Voltage};

/// Bounds that keep the sums of a long run finite; no preset and no laptop comes near them.
const MOST_ENERGY: f64 = 1e12;
const MOST_POWER: f64 = 1e6;

/// The presets by keyword.
fn presets() -> Vec<(&'static str, Hardware)> {
    PRESETS.iter().map(|preset| (preset.name, preset.hardware())).collect()
}

impl Hardware {
    /// Reads the key `battery`: the keyword of a preset, or a table.
    pub fn keys(k: &mut Keys<'_>) -> Option<Hardware> {
        let presets = presets();
        let words = presets.iter().map(|(name, _)| *name).collect();
        let mut table = None;
        let doc =
            "the hardware of a host on a battery: a preset or a table (`lasthop list hardware`)";
        let word = k.table_or("battery", Form::Keyword(words), doc, |k| table = Some(read(k)));
        match word {
            Value::Keyword(word) => {
                presets.into_iter().find(|(name, _)| *name == word).map(|(_, h)| h)
            }
            _ => table.filter(|_| k.has("battery")),
        }
    }
}

/// Reads a battery from a table. Without a preset no key has a default.
fn read(k: &mut Keys<'_>) -> Hardware {
    let base = k.maybe_word("preset", &presets(), "the hardware that the other keys modify");
    let supply = supply(k);
    let radio = base.as_ref().map(|base| base.radio);
    let mut power = |key, default, doc| power(k, key, supply, default, doc);
    let draw =
        power("base", base.as_ref().map(|base| base.base), "the power that the host always draws");
    let radio = RadioPower {
        doze: power("doze", radio.map(|r| r.doze), "power of its sleeping radio"),
        idle: power("idle", radio.map(|r| r.idle), "power of its listening radio"),
        receive: power("receive", radio.map(|r| r.receive), "power of its receiving radio"),
        transmit: power("transmit", radio.map(|r| r.transmit), "power of its transmitting radio"),
    };
    Hardware {
        name: base.as_ref().map_or("custom", |base| &base.name).to_owned(),
        capacity: capacity(k, supply, base.as_ref().map(|base| base.capacity)),
        base: draw,
        radio,
        segment: segment(k, base.as_ref().map(|base| base.segment)),
    }
}

fn absent(k: &mut Keys<'_>, key: &str, example: &str) {
    let expected = format!(
        "`preset = \"{}\"` to begin with, or every key of a battery: `capacity`, `base`, `doze`, `idle`, `receive`, \
         `transmit` and `segment`",
        PRESETS[0].name
    );
    k.missing(key, &expected, &format!("\"{example}\""));
}

fn segment(k: &mut Keys<'_>, default: Option<Energy>) -> Energy {
    const DOC: &str =
        "the processor's energy beyond `base` to send a full segment of 1448 bytes with timestamps";
    let usual = default.map_or(Value::Absent, Value::Energy);
    match k.value("segment", Form::Energy, Need::Else("that of the preset"), usual, DOC) {
        Value::Energy(energy) => {
            if energy.get() > MOST_ENERGY {
                k.out_of_range("segment", "for example `segment = \"12mJ\"`");
            }
            energy
        }
        _ => {
            absent(k, "segment", "12mJ");
            Energy::ZERO
        }
    }
}

fn supply(k: &mut Keys<'_>) -> Option<Voltage> {
    const DOC: &str = "the voltage by which currents and ampere-hours are converted";
    let Value::Voltage(supply) =
        k.value("supply", Form::Voltage, Need::Else("none"), Value::Absent, DOC)
    else {
        return None;
    };
    if supply.get() == 0.0 || supply.get() > MOST_POWER {
        k.out_of_range("supply", "for example `supply = \"5V\"`");
    }
    Some(supply)
}

/// Rejects a value whose unit must be multiplied by the supply voltage, if no supply is given.
fn needs_supply(k: &mut Keys<'_>, key: &str, quantity: &str, instead: &str) {
    let message = format!("`{}` is {quantity}, and the battery has no `supply`", k.path(key));
    let help = format!("add the voltage, for example `supply = \"5V\"`, or write {instead}");
    k.lacks(key, message, "at which voltage?", help);
}

fn capacity(k: &mut Keys<'_>, supply: Option<Voltage>, default: Option<Energy>) -> Energy {
    const KEY: &str = "capacity";
    const DOC: &str = "the energy of the full battery; ampere-hours need a `supply`";
    let usual = default.map_or(Value::Absent, Value::Energy);
    let energy = match k.value(KEY, Form::Energy, Need::Else("that of the preset"), usual, DOC) {
        Value::Energy(energy) => Some(energy),
        Value::Charge(charge) => match supply {
            Some(supply) => Some(supply * charge),
            None => {
                needs_supply(k, KEY, "a charge", "an energy: `capacity = \"30Wh\"`");
                None
            }
        },
        _ => {
            absent(k, KEY, "30Wh");
            None
        }
    };
    if energy.is_some_and(|energy| energy.get() == 0.0 || energy.get() > MOST_ENERGY) {
        k.out_of_range(KEY, "write more than 0, for example `capacity = \"30Wh\"`");
    }
    energy.unwrap_or(Energy::ZERO)
}

fn power(
    k: &mut Keys<'_>,
    key: &'static str,
    supply: Option<Voltage>,
    default: Option<Power>,
    doc: &'static str,
) -> Power {
    let usual = default.map_or(Value::Absent, Value::Power);
    let power = match k.value(key, Form::Power, Need::Else("that of the preset"), usual, doc) {
        Value::Power(power) => power,
        Value::Current(current) => match supply {
            Some(supply) => supply * current,
            None => {
                needs_supply(k, key, "a current", &format!("a power: `{key} = \"0.9W\"`"));
                Power::ZERO
            }
        },
        _ => {
            absent(k, key, "0.9W");
            Power::ZERO
        }
    };
    if power.get() > MOST_POWER {
        k.out_of_range(key, format!("for example `{key} = \"0.9W\"`"));
    }
    power
}
