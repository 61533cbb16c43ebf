//! Every key of a scenario has its documented effect: a value other than its default changes the field of the
//! configuration with the same name, and no other.

mod cells;
mod live_files;
mod stages;
mod testbed;
mod transfers;

use std::collections::{BTreeMap, BTreeSet};

use lasthop_proto::describe::{Form, Need, Value};
use lasthop_proto::units::{Bytes, Rate, Span};
use lasthop_proto::{agent, channel, link, mac};
use lasthop_scenario::keys::written;
use lasthop_scenario::keys::{Listed, list};
use lasthop_scenario::{PARTS, parse};

/// The fields of keys with another name; an empty list represents several fields.
const FIELDS: &[(&str, &[&str])] = &[
    ("give-up", &["giving_up"]),
    ("mpu", &["least"]),
    ("recv-buffer", &["recv_buffer", "recv_memory"]),
    // Keywords of whole configurations.
    ("preset", &[]),
    ("tcp", &[]),
    ("battery", &[]),
    ("agent-preset", &[]),
    ("state-delay", &["state"]),
    ("state-rate", &["state"]),
    ("split-preset", &[]),
    ("split-tcp", &[]),
    ("split-sack", &[]),
    ("mac", &["mac", "hop", "hops"]),
    ("link-layer", &["hop", "link"]),
    ("model", &[]),
    // Shorthands.
    ("sender-adaptation", &["byte_counting", "pacing", "burst"]),
    ("acc", &["acc", "ecn"]),
    ("ticks", &["clock", "delayed_ack"]),
    ("slow", &["clock"]),
    ("fast", &["clock", "delayed_ack"]),
    ("granularity", &["clock"]),
    ("rate", &["rate", "rate_right", "rate_left"]),
    ("discipline", &["discipline_right", "discipline_left"]),
    ("header-compression", &[]),
    ("frame-loss", &[]),
    ("frame-fates-right", &[]),
    ("frame-fates-left", &[]),
    ("ack-size", &[]),
    ("packet-size", &["table", "bad_period"]),
    ("packet-sizes", &["table"]),
    ("every", &["transfers", "every"]),
    ("protocol", &["quic"]),
    ("table", &["list"]),
    ("on-off", &["traffic", "bytes"]),
    ("shape", &["shape", "size"]),
    ("voice", &[]),
    ("probe", &[]),
    ("max", &["max", "size"]),
    ("sizes", &["sizes", "content", "think"]),
    ("multiplexed", &["multiplexed", "connections"]),
    ("length", &["length", "segments"]),
    ("segment", &["segment", "segments", "startup", "resume"]),
    ("abr", &["abr"]),
    ("mean", &["mean", "size"]),
    ("speed", &["speed", "good", "bad"]),
    ("carrier", &["carrier", "good", "bad"]),
    ("margin", &["good", "bad"]),
    ("clock", &["model", "good", "bad", "good_bits", "bad_bits", "deterministic", "reciprocal"]),
    ("fragment", &["fragment", "hop"]),
    ("coding", &["coding", "hop"]),
    ("power-save", &["power_save"]),
    ("phy", &[]),
    ("delays-order", &["impairments"]),
    // Other names.
    ("seed", &["first_seed"]),
    ("timeout-rule", &["timeout"]),
    ("unit", &["whole"]),
    ("ackp-mode", &["ackp"]),
    ("cache", &["cache", "memory"]),
    ("buffer", &["buffer", "largest", "reservoir", "cushion"]),
    ("ack-thresh", &["thresh"]),
    ("ack-interval", &["interval"]),
    ("duplex", &["half_duplex"]),
    ("compression-slots", &["slots"]),
    ("typical", &["packet_time"]),
    ("encrypted", &["opaque"]),
    ("spacing", &["spacing", "uniform"]),
    ("block", &["n", "t", "block"]),
    ("data", &["k", "t"]),
    ("corrects", &["t"]),
    ("bad", &["bad", "table"]),
    ("size", &["size", "table"]),
    ("testbed-runs", &["runs"]),
    // Properties of the network's ends: which host, which end of the path. Keys of `tbf` and `police` without
    // a field of the same name.
    ("line", &[]),
    ("latency", &["limit"]),
    ("peak-rate", &["peak"]),
    ("mtu", &["mtu", "peak"]),
    ("packet-rate", &["by", "mtu"]),
    ("packet-burst", &["by"]),
    ("from", &["from", "to", "side", "addr"]),
    ("to", &["from", "to", "side", "addr"]),
];

/// Keys that make another kind of link.
const VARYING: &str = "rates rates-right rates-left trace trace-right trace-left light light-right light-left \
                       delays losses outages measured netem jitter loss duplicate corrupt reorder";

/// Keys that are invalid alone in an otherwise equal scenario.
const ELSEWHERE: &[&str] = &[
    // A file without times, which is invalid without it.
    "delays-step",
    // Both hosts would be at one end; tests of plans choose sides.
    "side", // Not part of the simulation; tests of plans check them.
    "kernel",
    "stack",  // A voltage is valid only with a current.
    "supply", // Only packets that `fates` names are late.
    "late",
    "very-late",
];

/// The leaves of a configuration, by their way from the root.
fn leaves(value: &serde_json::Value, way: &str, into: &mut BTreeMap<String, String>) {
    match value {
        serde_json::Value::Object(fields) => {
            for (name, value) in fields {
                leaves(value, &format!("{way}/{name}"), into);
            }
        }
        serde_json::Value::Array(items) => {
            for (i, value) in items.iter().enumerate() {
                leaves(value, &format!("{way}/{i}"), into);
            }
        }
        leaf => {
            into.insert(way.to_owned(), leaf.to_string());
        }
    }
}

fn configuration(text: &str) -> BTreeMap<String, String> {
    let (plan, _) = parse(text, "test", &[]).unwrap_or_else(|e| panic!("{e}: {}\n{text}", e.help));
    let json = serde_json::to_value(&plan.cells[0].scenario).unwrap();
    let mut found = BTreeMap::new();
    leaves(&json, "", &mut found);
    found
}

/// The ways to what differs.
fn difference(a: &BTreeMap<String, String>, b: &BTreeMap<String, String>) -> Vec<String> {
    let ways: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    ways.into_iter().filter(|way| a.get(*way) != b.get(*way)).cloned().collect()
}

/// A valid value of a key, other than its default, as written in a file.
fn other(form: &Form, default: &Value) -> String {
    let text = |value: Value| written(&value).unwrap();
    match (form, default) {
        (Form::Flag, Value::Flag(flag)) => (!flag).to_string(),
        (Form::Flag, _) => "true".to_owned(),
        (Form::Range(Value::Count(_), Value::Count(most)), Value::Count(count)) => {
            if count < most { count + 1 } else { count - 1 }.to_string()
        }
        (Form::Range(Value::Count(least), Value::Count(most)), _) => {
            (least + 2).min(*most).to_string()
        }
        (Form::Range(Value::Number(least), Value::Number(most)), Value::Number(number)) => {
            let next = if number * 1.5 <= *most { number * 1.5 } else { *least };
            format!("{next:?}")
        }
        (Form::Range(Value::Number(least), Value::Number(_)), _) => format!("{:?}", least + 0.25),
        (Form::Range(Value::Time(least), Value::Time(most)), Value::Time(time)) => {
            let twice = Span((time.0 * 2).clamp(least.0, most.0));
            text(Value::Time(if twice == *time { Span(least.0.max(1_000_000)) } else { twice }))
        }
        (Form::Range(Value::Time(least), Value::Time(most)), _) => {
            text(Value::Time(Span((least.0 * 3).clamp(20_000_000, most.0))))
        }
        (Form::Range(Value::Size(least), Value::Size(most)), Value::Size(size)) => {
            let next = if size < most { size.0 + 1 } else { least.0 };
            next.to_string()
        }
        (Form::Range(Value::Size(least), Value::Size(most)), _) => {
            Bytes((least.0 * 2).clamp(100, most.0)).0.to_string()
        }
        (Form::Rate, _) => "\"3mbit\"".to_owned(),
        (Form::Probability, _) => "0.3".to_owned(),
        (Form::Limit, _) => "\"77p\"".to_owned(),
        (Form::Range(Value::Speed(_), _), _) => "\"5km/h\"".to_owned(),
        (Form::Range(Value::Frequency(_), _), _) => "\"900MHz\"".to_owned(),
        (Form::Range(Value::Decibels(_), _), _) => "\"15dB\"".to_owned(),
        (Form::Range(..), _) => unreachable!("{form:?}"),
        (Form::Power, _) => "\"123mW\"".to_owned(),
        (Form::Energy, _) => "\"12345J\"".to_owned(),
        (Form::Voltage, _) => "\"5V\"".to_owned(),
        (Form::Keyword(words), default) => {
            // Without a default the first word is the usual one.
            let usual =
                if *default == Value::Absent { Value::Keyword(words[0]) } else { default.clone() };
            let word = words.iter().find(|word| usual != Value::Keyword(word)).unwrap_or(&words[0]);
            format!("\"{word}\"")
        }
        (Form::Keywords(words), _) => format!("[\"{}\"]", words[0]),
        (Form::Text(example) | Form::File(example) | Form::Texts(example), _) => {
            (*example).to_owned()
        }
        (Form::Or(_, form), default) => other(form, default),
        (Form::TableOr(form), default) => other(form, default),
        (form, default) => unreachable!("{form:?} with the default {default:?}"),
    }
}

/// Writes a file without a key and one with it, given the way to the key and its value; nothing where that makes no
/// sense.
type Writer<'w> = dyn Fn(&[&str], &str) -> Option<(String, String)> + 'w;

/// Puts each of `keys` into the text that `write` makes of `key = value`, and looks at what it changes.
fn check(keys: &[Listed], tables: &[&str], write: &Writer<'_>, done: &mut BTreeSet<String>) {
    for Listed { key, default, inner } in keys {
        let mut way = tables.to_vec();
        way.push(key.name);
        if !inner.is_empty() && key.form != Form::Tables {
            check(inner, &way, write, done);
        }
        if matches!(key.form, Form::Table | Form::Tables) || ELSEWHERE.contains(&key.name) {
            continue;
        }
        let value = other(&key.form, default);
        let Some((before, after)) = write(&way, &value) else { continue };
        let changed = difference(&configuration(&before), &configuration(&after));
        let named = key.name.replace('-', "_");
        let fields = FIELDS.iter().find(|(name, _)| *name == key.name).map(|(_, fields)| *fields);
        let own = [named.as_str()];
        let varies = VARYING.split(' ').any(|varying| varying == key.name);
        let fields = if varies { &[] } else { fields.unwrap_or(&own) };
        assert!(!changed.is_empty(), "`{} = {value}` changes nothing\n{after}", way.join("."));
        for way_of_field in &changed {
            let meant = |segment: &str| fields.contains(&segment);
            let fits = fields.is_empty() || way_of_field.split('/').any(meant);
            assert!(fits, "`{} = {value}` changes {way_of_field}\n{after}", way.join("."));
        }
        done.insert(way.join("."));
    }
}

const HEAD: &str = "transfer = { from = \"fixed\", to = \"mobile\", bytes = \"1MB\" }\n";
const HOSTS: &str = "[host.fixed]\n[host.mobile]\n";
const PATH: &str = "[[path]]\nlink = { rate = \"10mbit\", delay = \"1ms\" }\n[[path]]\nradio = { rate = \"2mbit\" }\n";

/// `key = value` in the tables above it, in braces.
fn braces(way: &[&str], value: &str) -> String {
    match way {
        [] => value.to_owned(),
        [key] => format!("{key} = {value}"),
        [key, rest @ ..] => format!("{key} = {{ {} }}", braces(rest, value)),
    }
}

fn part(name: &str) -> &'static [Listed] {
    &PARTS.iter().find(|part| part.name == name).unwrap().keys
}

fn stage(text: &str) -> String {
    format!("{HEAD}{HOSTS}{text}")
}

#[test]
fn keys_of_the_file_and_of_hosts() {
    let mut done = BTreeSet::new();
    let top = |way: &[&str], value: &str| {
        if matches!(way, ["name" | "runs" | "world"]) {
            // A run does not depend on them: tests of plans look at them.
            return None;
        }
        let world = if way == ["testbed-runs"] { "world = \"testbed\"\n" } else { "" };
        let text = format!("{HEAD}{HOSTS}{PATH}");
        Some((format!("{world}{text}"), format!("{world}{}\n{text}", braces(way, value))))
    };
    check(part("scenario"), &[], &top, &mut done);
    let host = |way: &[&str], value: &str| {
        let required = match way {
            ["snack"] | ["smart"] | ["sack"] => "",
            ["battery", key] if *key != "preset" => "preset = \"sens-800\", ",
            _ => "",
        };
        let (first, table) = match way {
            ["battery", "preset"] | ["battery"] => ("battery = \"esp32\"".to_owned(), None),
            ["battery", ..] => ("battery = { preset = \"sens-800\" }".to_owned(), Some(required)),
            ["ticks", _] => ("ticks = { slow = \"500ms\", fast = \"200ms\" }".to_owned(), None),
            ["access", _] => ("access = {}".to_owned(), None),
            ["acc", _] => ("acc = true".to_owned(), None),
            // CUBIC, which a host has by default, needs it.
            ["sack"] => ("tcp = \"newreno\"".to_owned(), None),
            ["delayed-ack", _] => ("delayed-ack = { every = 2 }".to_owned(), None),
            _ => (String::new(), None),
        };
        let value = match way {
            ["addr"] => "\"10.9.9.9\"",
            ["tcp"] => "\"tahoe\"",
            _ => value,
        };
        let set = braces(way, value).replacen("{ ", &format!("{{ {}", table.unwrap_or("")), 1);
        // A battery makes a hop of its radio, and a hop reports its frames on the air.
        let text = |host: &str| format!("{HEAD}[host.fixed]\n{host}\n[host.mobile]\n{PATH}");
        let set = if way == ["sack"] { format!("{first}\n{set}") } else { set };
        Some((text(&first), text(&set)))
    };
    check(part("host"), &[], &host, &mut done);
    assert!(done.len() > 60, "{done:?}");
}

#[test]
fn options_of_agents() {
    let mut done = BTreeSet::new();
    for agent in agent::words() {
        let word = agent.word;
        let agent_text = |way: &[&str], value: &str| {
            let text = |set: &str| {
                stage(&format!(
                    "[[path]]\nagent = \"{word}\"\n{set}\n[[path]]\nradio = {{ rate = \"1mbit\" }}\n"
                ))
            };
            Some((text(""), text(&braces(way, value))))
        };
        check(&list(agent.read), &[], &agent_text, &mut done);
    }
    // A list of tables, whose keys are in its rows.
    let text = |rows: &str| {
        stage(&format!(
            "[[path]]\nagent = \"good-packet-size\"\npacket-sizes = [{rows}]\n\
             [[path]]\nradio = {{ rate = \"1mbit\" }}\n"
        ))
    };
    let (one, two) = ("{ bad = \"1s\", size = 512 }", "{ bad = \"2s\", size = 512 }");
    let changed = difference(&configuration(&text(one)), &configuration(&text(two)));
    assert_eq!(changed.len(), 1, "{changed:?}");
    let known: BTreeSet<&str> = part("agent").iter().map(|listed| listed.key.name).collect();
    let missed: Vec<_> = known.iter().filter(|key| !done.contains(**key)).collect();
    assert_eq!(missed, [&"packet-sizes"]);
}

#[test]
fn options_of_hops() {
    let mut done = BTreeSet::new();
    let text = |keys: &str, set: &str| {
        stage(&format!("[[path]]\nradio = {{ rate = \"1mbit\" }}\n{keys}\n{set}\n"))
    };
    for mac in mac::all_words() {
        let keys = format!("mac = \"{}\"", mac.word);
        let duplex = if mac.word == "granted" { ", duplex = \"full\"" } else { "" };
        let text = |keys: &str, set: &str| {
            stage(&format!("[[path]]\nradio = {{ rate = \"1mbit\"{duplex} }}\n{keys}\n{set}\n"))
        };
        let write = |way: &[&str], value: &str| {
            if let ["dcf", key @ ("width" | "streams" | "mcs" | "aggregate" | "window" | "order")] =
                way
            {
                let value = if *key == "width" { "40" } else { value };
                let after = format!("dcf = {{ phy = \"ax\", {key} = {value} }}");
                return Some((text(&keys, "dcf = { phy = \"ax\" }"), text(&keys, &after)));
            }
            let (old, value) = match way {
                ["dcf", "power-save"] => ("", "\"ps-poll\""),
                ["dcf", "power-save", _] => ("dcf = { power-save = \"ps-poll\" }", value),
                _ => ("", value),
            };
            Some((text(&keys, old), text(&keys, &braces(way, value))))
        };
        check(&list(mac.read), &[], &write, &mut done);
    }
    for layer in link::words() {
        let keys = format!("link-layer = \"{}\"", layer.word);
        let write =
            |way: &[&str], value: &str| Some((text(&keys, ""), text(&keys, &braces(way, value))));
        check(&list(|k| (layer.read)(k, None)), &[], &write, &mut done);
    }
    let rest: Vec<Listed> = part("hop")
        .iter()
        .filter(|listed| ["mac", "link-layer", "fragment", "coding"].contains(&listed.key.name))
        .cloned()
        .collect();
    let write = |way: &[&str], value: &str| {
        let old = if let ["coding", _] = way { "coding = { block = 255 }" } else { "" };
        let value = if way == ["coding", "corrects"] { "3" } else { value };
        Some((text("", old), text("", &braces(way, value))))
    };
    check(&rest, &[], &write, &mut done);
    assert!(done.len() > 35, "{done:?}");
}

#[test]
fn keys_of_channels() {
    let mut done = BTreeSet::new();
    let rate = Rate::from_bps(1_000_000).unwrap();
    for model in channel::words() {
        let word = model.word;
        let keys = list(|k| (model.read)(k, rate));
        let write = |way: &[&str], value: &str| {
            let needed = keys.iter().filter_map(|listed| match listed.key.need {
                Need::Required(example) => Some(format!("{} = {example}", listed.key.name)),
                _ => None,
            });
            let mut given: Vec<String> = needed.collect();
            let more: &[&str] = match (word, way[0]) {
                ("two-state", "good-bits" | "bad-bits") => &["good-bits = 9", "bad-bits = 9"],
                ("two-state", "speed" | "carrier" | "margin" | "clock") => {
                    &["speed = \"2km/h\"", "carrier = \"2.4GHz\"", "margin = \"10dB\""]
                }
                ("two-state", _) => &["good = \"1s\"", "bad = \"1s\""],
                ("rayleigh", _) => &["speed = \"2km/h\"", "carrier = \"2.4GHz\"", "snr = \"20dB\""],
                _ => &[],
            };
            given.extend(more.iter().map(|text| (*text).to_owned()));
            let text = |given: &[String]| {
                let all = given.join(", ");
                stage(&format!(
                    "[[path]]\nradio = {{ rate = \"1mbit\" }}\nerrors = {{ model = \"{word}\", {all} }}\n"
                ))
            };
            let before = text(&given);
            given.retain(|set| set.split(' ').next() != Some(way[0]));
            given.push(braces(way, value));
            Some((before, text(&given)))
        };
        check(&keys, &[word], &|way, value| write(&way[1..], value), &mut done);
    }
    // What all models have.
    let text = |set: &str| {
        stage(&format!(
            "[[path]]\nradio = {{ rate = \"1mbit\" }}\nerrors = {{ model = \"packet-loss\", p = 0.1 {set} }}\n"
        ))
    };
    let changed = difference(&configuration(&text("")), &configuration(&text(", only = \"data\"")));
    assert!(
        changed.iter().all(|way| way.ends_with("/only") || way.contains("/only/")),
        "{changed:?}"
    );
    let changed = difference(&configuration(&text("")), &configuration(&text(", on = \"data\"")));
    assert!(
        !changed.is_empty() && changed.iter().all(|way| way.contains("errors_left")),
        "{changed:?}"
    );
    for (key, side) in [
        ("errors-right", "errors_right"),
        ("errors-left", "errors_left"),
        ("errors-data", "errors_right"),
        ("errors-ack", "errors_left"),
    ] {
        let none = stage("[[path]]\nradio = { rate = \"1mbit\" }\n");
        let set = format!("{none}{key} = {{ model = \"packet-loss\", p = 0.1 }}\n");
        let changed = difference(&configuration(&none), &configuration(&set));
        assert!(
            !changed.is_empty() && changed.iter().all(|way| way.contains(side)),
            "{key}: {changed:?}"
        );
    }
    assert!(done.len() > 20, "{done:?}");
}
