//! Keys of transfers and of what their applications do.

use std::collections::BTreeSet;

use super::{HOSTS, PATH, braces, check, part};

/// A transfer of requests and responses without and with `key = value`.
fn exchanges(key: &str, value: &str) -> (String, String) {
    let text = |set: &str| {
        let keys = format!("request = \"300B\", response = \"9kB\", exchanges = 5{set}");
        let old = keys.split(", ").filter(|old| set.is_empty() || !old.starts_with(key));
        let mut keys: Vec<&str> = old.collect();
        keys.extend(set.strip_prefix(", "));
        let all = keys.join(", ");
        format!("transfer = {{ from = \"fixed\", to = \"mobile\", {all} }}\n{HOSTS}{PATH}")
    };
    (text(""), text(&format!(", {key} = {value}")))
}

#[test]
fn keys_of_transfers() {
    let mut done = BTreeSet::new();
    let transfer = |way: &[&str], value: &str| {
        if let ["udp", key] = way {
            let needed = match *key {
                "rate" | "voice" | "probe" => "",
                "buffer" => "voice = \"g711\", ",
                _ => "rate = \"1mbit\", ",
            };
            let text = |set: &str| {
                let ends = "from = \"fixed\", to = \"mobile\", stop = \"60s\"";
                format!("transfer = {{ {ends}, udp = {{ {set} }} }}\n{HOSTS}{PATH}")
            };
            let before = if *key == "buffer" { "voice = \"g711\"" } else { "rate = \"1mbit\"" };
            return Some((text(before), text(&format!("{needed}{key} = {value}"))));
        }
        if let [table @ ("page" | "video"), key] = way {
            let others = match *key {
                "pages" => "",
                _ if *table == "page" => "pages = 2",
                "window" | "safety" => "abr = \"rate\"",
                _ => "",
            };
            let value = match *key {
                "reservoir" => "\"5s\"",
                "cushion" => "\"10s\"",
                _ => value,
            };
            let text = |set: &str| {
                let ends = "from = \"fixed\", to = \"mobile\", stop = \"60s\"";
                format!("transfer = {{ {ends}, {table} = {{ {set} }} }}\n{HOSTS}{PATH}")
            };
            let comma = if others.is_empty() { "" } else { ", " };
            return Some((text(others), text(&format!("{others}{comma}{key} = {value}"))));
        }
        let (value, application) = match way {
            ["from"] => ("\"mobile\"", ""),
            ["to"] => return None,
            ["web", "size", "max"] => ("\"2MB\"", "web = { size = { mean = \"10kB\" } }, "),
            ["on-off", _] => (value, "on-off = { on = \"500ms\" }, "),
            ["web", "size", _] => (value, "web = { size = { mean = \"10kB\" } }, "),
            ["web", _] => (value, "web = { sessions = 1 }, "),
            ["quic", _] => (value, "bytes = \"1MB\", protocol = \"quic\", "),
            ["bytes"] => (value, ""),
            ["request" | "response" | "think" | "persistent" | "exchanges"] => {
                return Some(exchanges(way[0], value));
            }
            _ => (value, "bytes = \"1MB\", "),
        };
        let ends = match way {
            ["from"] => "to = \"fixed\", bytes = \"1MB\", ",
            ["bytes"] => "from = \"fixed\", to = \"mobile\", ",
            _ => "from = \"fixed\", to = \"mobile\", ",
        };
        let text =
            |set: &str| format!("horizon = \"60s\"\ntransfer = {{ {ends}{set} }}\n{HOSTS}{PATH}");
        let before = match way {
            ["from"] => {
                let old = "from = \"fixed\", to = \"mobile\", bytes = \"1MB\"";
                format!("horizon = \"60s\"\ntransfer = {{ {old} }}\n{HOSTS}{PATH}")
            }
            ["bytes"] => text("bytes = \"1MB\""),
            _ => text(application.trim_end_matches(", ")),
        };
        let set = match way {
            ["on-off" | "web", ..] => braces(way, value),
            _ => format!("{application}{}", braces(way, value)),
        };
        Some((before, text(&set)))
    };
    check(part("transfer"), &[], &transfer, &mut done);
    assert!(done.len() > 12, "{done:?}");
}
