//! Keys in the braces of a stage.

use std::collections::BTreeSet;

use lasthop_proto::queue;
use lasthop_scenario::keys::{Listed, list};

use super::{braces, check, part, stage};

/// A token-bucket stage without a key and with it, next to a link.
fn shaper(kind: &str, key: &str, value: &str) -> (String, String) {
    let mut keys_of_kind = vec![("rate", "\"1mbit\""), ("burst", "\"20kB\"")];
    if kind == "tbf" {
        keys_of_kind.push(("limit", "30000"));
    }
    match key {
        "peak-rate" => keys_of_kind.push(("mtu", "2000")),
        "mtu" if kind == "tbf" => keys_of_kind.push(("peak-rate", "\"2mbit\"")),
        "packet-burst" => keys_of_kind = vec![("packet-rate", "100")],
        _ => {}
    }
    let text = |keys: &[(&str, &str)]| {
        let keys: Vec<String> =
            keys.iter().map(|(key, value)| format!("{key} = {value}")).collect();
        stage(&format!(
            "[[path]]\n{kind} = {{ {} }}\n[[path]]\nlink = {{ rate = \"9mbit\" }}\n",
            keys.join(", ")
        ))
    };
    let mut before = keys_of_kind.clone();
    match key {
        "packet-burst" => before.push(("packet-burst", "7")),
        "mtu" if kind == "tbf" => before.push(("mtu", "1000")),
        _ => {}
    }
    let others = |other: &&(&str, &str)| match key {
        "latency" => other.0 != "limit",
        "packet-rate" => other.0 != "rate" && other.0 != "burst",
        key => other.0 != key,
    };
    let mut after: Vec<(&str, &str)> = keys_of_kind.iter().filter(others).copied().collect();
    after.push((key, value));
    if key == "packet-rate" {
        after.push(("packet-burst", "7"));
    }
    (text(&before), text(&after))
}

/// The discipline with the table of options `key`.
fn discipline_with(key: &str) -> Option<&'static str> {
    let mut words = queue::words();
    let has = |keys: &[Listed]| keys.iter().any(|listed| listed.key.name == key);
    words.find(|word| has(&list(|k| (word.read)(k, None)))).map(|word| word.word)
}

#[test]
fn keys_in_the_braces_of_a_stage() {
    let mut done = BTreeSet::new();
    for kind in ["link", "radio", "cross", "tbf", "police"] {
        let inside = |way: &[&str], value: &str| {
            if let "tbf" | "police" = kind {
                return Some(shaper(kind, way[0], value));
            }
            let (rate, others) = match (kind, way) {
                ("cross", _) => ("", ""),
                (_, ["rate"]) => ("", ""),
                ("link", [key]) if key.starts_with("rate") || key.starts_with("trace") => ("", ""),
                ("link", [key]) if key.starts_with("light") => ("", "trace = \"lte.up\", "),
                (
                    "link",
                    ["jitter-correlation" | "jitter-distribution" | "jitter-order" | "impaired"],
                ) => ("rate = \"1mbit\", ", "jitter = \"1ms\", "),
                ("link", ["loss-correlation"]) => ("rate = \"1mbit\", ", "loss = 0.1, "),
                ("link", ["duplicate-correlation"]) => ("rate = \"1mbit\", ", "duplicate = 0.1, "),
                ("link", ["corrupt-correlation"]) => ("rate = \"1mbit\", ", "corrupt = 0.1, "),
                ("link", ["reorder"]) => ("rate = \"1mbit\", ", "delay = \"1ms\", "),
                ("link", ["reorder-correlation" | "reorder-gap"]) => {
                    ("rate = \"1mbit\", ", "delay = \"1ms\", reorder = 0.1, ")
                }
                ("link", ["delays-order"]) => ("rate = \"1mbit\", ", "delays = \"0s 20ms\", "),
                ("link" | "radio", ["outage-packets"]) => {
                    ("rate = \"1mbit\", ", "outages = \"4s-5s\", ")
                }
                (_, ["loss-noticed"]) => ("rate = \"1mbit\", ", "frame-loss = \"1%\", "),
                (_, ["compression-slots"]) => {
                    ("rate = \"1mbit\", ", "header-compression = \"vj\", ")
                }
                _ => ("rate = \"1mbit\", ", ""),
            };
            let discipline = discipline_with(way[0]);
            let others =
                &*discipline.map_or(others.to_owned(), |word| format!("discipline = \"{word}\", "));
            let old = if way == ["rate"] { "rate = \"1mbit\", " } else { rate };
            let files = "[files]\n\"light.down\" = \"0 30 0 1\\n9 30 0\\n\"\n\"lte.up\" = \"1\\n2\\n\"\n\"drive.csv\" = \"time (s),rate (mbit)\\n0,1\\n1,2\\n\"\n";
            // It takes no time itself, and one stage must.
            let line = if kind == "cross" { "[[path]]\nlink = { rate = \"9mbit\" }\n" } else { "" };
            let text = |set: &str| stage(&format!("[[path]]\n{kind} = {{ {set} }}\n{line}{files}"));
            if let ("link", ["loss", key]) = (kind, way) {
                let needed = if *key == "p" { "" } else { "p = 0.1, " };
                let after = format!("loss = {{ {needed}{key} = {value} }}");
                return Some((text("loss = { p = 0.1 }"), text(&after)));
            }
            let before = format!("{old}{others}");
            let after = format!("{rate}{others}{}", braces(way, value));
            Some((text(before.trim_end_matches(", ")), text(&after)))
        };
        check(part(kind), &[], &inside, &mut done);
    }
    assert!(done.len() > 22, "{done:?}");
}
