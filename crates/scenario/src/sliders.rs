//! The numbers of a scenario that a slider can change: key, present value, and range.

use lasthop_proto::describe::{Form, Key, Keys, Value};
use lasthop_proto::link::tc::{PoliceConfig, TbfConfig};
use lasthop_proto::units::{Limit, Span};
use lasthop_proto::{agent, channel};
use serde::Serialize;

use crate::argument::Argument;
use crate::document::{self, Node, Table};
use crate::error::{Error, Location};
use crate::parts::errors::{KEYS as ERRORS, any_rate};
use crate::parts::{host, link, stages, transfer};
use crate::read::Reader;
use crate::reading::values;
use crate::schema::STAGES;
use crate::schemes;
use crate::vary;

/// Keys that are shown first even with default values.
const FIRST: [&str; 6] = ["rate", "delay", "queue", "loss", "recv-buffer", "rto-min"];

/// The largest number of sliders.
const MOST: usize = 200;

/// The unit of a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// Seconds.
    Seconds,
    /// Bytes.
    Bytes,
    /// Bits per second.
    Rate,
    /// Packets.
    Packets,
    /// A probability.
    Probability,
    /// A count, or a ratio.
    One,
}

/// A number of a scenario.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Slider {
    /// The key as `--set` takes it.
    pub key: String,
    /// Its owner: a stage, a host or the transfer.
    pub of: String,
    /// The last word of the key.
    pub name: &'static str,
    /// Its meaning.
    pub what: &'static str,
    /// Its unit.
    pub unit: Unit,
    /// The least value that the slider offers.
    pub least: f64,
    /// The greatest.
    pub most: f64,
    /// Whether the scale is logarithmic.
    pub by_factors: bool,
    /// Whether zero precedes the least value.
    pub zero: bool,
    /// Whether only whole numbers are valid.
    pub whole: bool,
    /// The present value.
    pub value: f64,
    /// Whether it belongs to the sliders that are shown first.
    pub first: bool,
}

/// The sliders of a scenario, changed by the `--set` arguments: its path, its hosts, its transfers.
///
/// # Errors
///
/// If the text is not TOML, or an argument is wrong. [`crate::parse`] reports other faults.
pub fn sliders(text: &str, arguments: &[Argument]) -> Result<Vec<Slider>, Error> {
    let mut document = document::parse(text)?;
    schemes::take(&mut document)?;
    let axes = vary::apply(&mut document, arguments, vary::MAX_CELLS)?;
    for point in axes.iter().filter_map(|axis| axis.points.first()) {
        point.apply(&mut document)?;
    }
    let mut all = Vec::new();
    stages(&document, &mut all);
    if let Some(hosts) = document.get("host").and_then(Node::as_table) {
        for entry in &hosts.entries {
            let key = format!("host.{}", entry.key);
            table(&entry.node, &key, &entry.key, host::keys, &mut all);
        }
    }
    if let Some(node) = document.get("transfer").filter(|node| node.as_table().is_some()) {
        table(node, "transfer", "transfer", transfer::keys, &mut all);
    }
    all.retain(|slider| !axes.iter().any(|axis| axis.replaces(&document, &slider.key)));
    all.truncate(MOST);
    Ok(all)
}

fn stages(document: &Table, all: &mut Vec<Slider>) {
    let items = document.items("path");
    for (i, item) in items.iter().enumerate() {
        let Some(stage) = item.as_table() else { continue };
        let Some(kind) = STAGES.iter().find(|kind| stage.has(kind)) else { continue };
        let key = format!("path.{}", i + 1);
        let name = stage.get("name").and_then(Node::as_str).unwrap_or(kind);
        let inner = format!("{key}.{kind}");
        let Some(node) = stage.get(kind) else { continue };
        match *kind {
            "link" => table(node, &inner, name, link::link, all),
            "radio" => table(node, &inner, name, stages::radio, all),
            "cross" => table(node, &inner, name, stages::cross, all),
            "tbf" => table(node, &inner, name, TbfConfig::keys, all),
            "police" => table(node, &inner, name, PoliceConfig::keys, all),
            _ => {
                // An agent's options are next to its name.
                let word = node.as_str().unwrap_or("none");
                if let Some(agent) = agent::words().find(|agent| agent.word == word) {
                    over(stage, &key, word, |k| (agent.read)(k), all);
                }
            }
        }
        for (errors, _) in ERRORS {
            let Some(node) = stage.get(errors) else { continue };
            let Some(inner) = node.as_table() else { continue };
            let word = inner.get("model").and_then(Node::as_str).unwrap_or_default();
            let Some(model) = channel::words().find(|model| model.word == word) else { continue };
            let name = format!("{name} {errors}");
            let key = format!("{key}.{errors}");
            over(inner, &key, &name, |k| (model.read)(k, any_rate()), all);
        }
    }
}

/// The numbers of a table.
fn table<T>(
    node: &Node,
    key: &str,
    of: &str,
    go: impl FnOnce(&mut Keys<'_>) -> T,
    all: &mut Vec<Slider>,
) {
    if let Some(inner) = node.as_table() {
        over(inner, key, of, go, all);
    }
}

fn over<T>(
    table: &Table,
    key: &str,
    of: &str,
    go: impl FnOnce(&mut Keys<'_>) -> T,
    all: &mut Vec<Slider>,
) {
    // Unknown keys are reported elsewhere.
    let reader = Reader::any(table, key, Location::file(0..0));
    for (found, value) in values(&reader, go) {
        let written = table.has(found.name);
        let slider = slider(&found, &value, key, of, written);
        // A default of zero often has an effect only with another key.
        all.extend(slider.filter(|slider| slider.first || slider.value > 0.0));
    }
}

/// The slider of a key, if its value is a number.
fn slider(found: &Key, value: &Value, key: &str, of: &str, written: bool) -> Option<Slider> {
    let form = number(&found.form);
    let bounds = |form: &Form| match *form {
        Form::Range(Value::Time(least), Value::Time(most)) => (seconds(least), seconds(most)),
        Form::Range(Value::Size(least), Value::Size(most)) => (least.0 as f64, most.0 as f64),
        Form::Range(Value::Count(least), Value::Count(most)) => (least as f64, most as f64),
        Form::Range(Value::Number(least), Value::Number(most)) => (least, most),
        Form::Probability => (0.0, 1.0),
        Form::Rate => (1.0, 1e12),
        _ => (0.0, f64::MAX),
    };
    let (floor, ceiling) = bounds(form);
    let (unit, value, whole) = match value {
        Value::Time(span) => (Unit::Seconds, seconds(*span), false),
        Value::Size(bytes) => (Unit::Bytes, bytes.0 as f64, true),
        Value::Rate(rate) => (Unit::Rate, rate.bps() as f64, true),
        Value::Probability(p) => (Unit::Probability, p.get(), false),
        Value::Limit(Limit::Packets(n)) => (Unit::Packets, f64::from(*n), true),
        Value::Limit(Limit::Bytes(bytes)) => (Unit::Bytes, bytes.0 as f64, true),
        Value::Count(n) => (Unit::One, *n as f64, true),
        Value::Number(n) => (Unit::One, *n, false),
        _ => return None,
    };
    if !value.is_finite() || value > 1e15 {
        return None;
    }
    let small = whole && unit == Unit::One && ceiling <= 64.0;
    // For a default of zero, the range is around a typical value.
    let around = match unit {
        _ if value > 0.0 => value,
        Unit::Seconds => 0.02,
        Unit::Bytes => 16_384.0,
        Unit::Rate => 1e6,
        Unit::Packets | Unit::One => 10.0,
        Unit::Probability => 0.01,
    };
    let (least, most) = match unit {
        _ if small => (floor, ceiling),
        Unit::Probability => (around.min(1e-4), around.max(0.5)),
        Unit::Packets => (1.0, around.max(1000.0)),
        Unit::One if !whole => (around / 10.0, around * 10.0),
        _ => (around / 50.0, around * 50.0),
    };
    let least = if whole { least.max(1.0) } else { least };
    let (least, most) = (least.max(floor), most.min(ceiling));
    (least < most).then(|| Slider {
        key: format!("{key}.{}", found.name),
        of: of.to_owned(),
        name: found.name,
        what: found.summary,
        unit,
        least: if whole { least.round() } else { least },
        most: if whole { most.round() } else { most },
        by_factors: !small && least > 0.0,
        zero: floor <= 0.0 && !small,
        whole,
        value,
        first: written || FIRST.contains(&found.name),
    })
}

/// The form of the numbers of a key.
fn number(form: &Form) -> &Form {
    match form {
        Form::Or(_, form) | Form::TableOr(form) => number(form),
        form => form,
    }
}

fn seconds(span: Span) -> f64 {
    span.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{examples, parse};

    /// The value as `--set` takes it.
    fn written(slider: &Slider, value: f64) -> String {
        match slider.unit {
            Unit::Seconds => format!("{:.0}ns", value * 1e9),
            Unit::Bytes => format!("{value}B"),
            Unit::Rate => format!("{value}bit"),
            Unit::Packets => format!("{value}p"),
            Unit::Probability | Unit::One => format!("{value}"),
        }
    }

    #[test]
    fn setting_a_slider_to_its_value_changes_no_run() {
        for example in examples() {
            let mut text = example.text.to_owned();
            for name in crate::files::named(example.text, &[]) {
                let file = examples::file(&name.name).unwrap();
                text = crate::files::with(text, &name.name, file);
            }
            let (plan, _) = parse(&text, example.name, &[]).unwrap();
            let key = |plan: &crate::Plan| crate::RunKey::of(&plan.cells[0].scenario, 1);
            let before = key(&plan);
            for slider in sliders(&text, &[]).unwrap() {
                let set = format!("{}={}", slider.key, written(&slider, slider.value));
                let set = [Argument::Set(set)];
                match parse(&text, example.name, &set) {
                    // An axis with this key is dropped, and its first value applies. Settings of the kernel
                    // may now cause warnings.
                    Ok((same, _)) => {
                        // The receive buffer of Linux grows until it is set.
                        let grows = slider.key.ends_with(".recv-buffer")
                            && plan.cells[0].scenario.hosts.iter().any(|it| it.tcp.quick_acks);
                        assert!(grows || key(&same) == before, "{}: {set:?}", example.name);
                    }
                    Err(error) => panic!("{}: {set:?}: {error}; {}", example.name, error.help),
                }
                assert!(slider.least <= slider.most && slider.what.len() > 3, "{slider:?}");
            }
        }
    }

    #[test]
    fn main_sliders_of_the_quickstart_are_marked_first() {
        let all = sliders(crate::example("quickstart").unwrap().text, &[]).unwrap();
        let first: Vec<_> = all.iter().filter(|s| s.first).map(|s| s.key.as_str()).collect();
        for key in [
            "path.1.link.rate",
            "path.3.radio.delay",
            "path.3.errors.mean",
            "host.laptop.recv-buffer",
        ] {
            assert!(first.contains(&key), "{key} in {first:?}");
        }
        let set = [Argument::Set("errors.mean=16KiB".to_owned())];
        let changed = sliders(crate::example("quickstart").unwrap().text, &set).unwrap();
        assert_eq!(changed.iter().find(|s| s.key == "path.3.errors.mean").unwrap().value, 16384.0);
    }
}
