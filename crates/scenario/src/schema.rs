//! Every key of a file, listed once from its visiting function. The check of unknown keys, suggestions, the
//! addresses of the command line, the manual and the JSON Schema use this list.

use std::sync::LazyLock;

use lasthop_proto::agent;
use lasthop_proto::describe::Keys;
use lasthop_proto::link::tc::{PoliceConfig, TbfConfig};

use crate::keys::{Listed, list, list_with, names};
use crate::parts::{
    cells, errors, handoff, hop, host, link, stages, station, top, transfer, tunnel,
};

/// The keys of the kinds of stages; a stage has exactly one of them.
pub(crate) const STAGES: &[&str] = &["link", "agent", "radio", "cross", "tbf", "police"];

/// A part of a file: a table, or keys of one concern.
#[derive(Debug)]
pub struct Part {
    /// Its name in the manual.
    pub name: &'static str,
    /// Its keys.
    pub keys: Vec<Listed>,
    names: Vec<&'static str>,
}

fn part<T>(name: &'static str, go: impl FnMut(&mut Keys<'_>) -> T) -> Part {
    let keys = list(go);
    Part { name, names: names(&keys), keys }
}

/// All parts of scenario, station and tunnel files.
pub static PARTS: LazyLock<Vec<Part>> = LazyLock::new(|| {
    vec![
        part("scenario", top::keys),
        part("transfer", transfer::keys),
        part("host", host::keys),
        part("link", link::link),
        part("radio", stages::radio),
        part("cross", stages::cross),
        part("tbf", TbfConfig::keys),
        part("police", PoliceConfig::keys),
        part("errors", errors::all),
        part("hop", hop::all),
        part("agent", |k| agent::words().for_each(|agent| drop((agent.read)(k)))),
        part("cell", cells::cell),
        part("visits", cells::visits),
        part("handoff", handoff::handoff),
        part("station", station::keys),
        part("tunnel", tunnel::keys),
    ]
});

/// The keys of a host with the preset `rfc`, on which their defaults depend.
pub fn keys_of_hosts() -> Vec<Listed> {
    list_with(Some(("preset", "rfc")), host::keys)
}

/// The part of this name.
pub(crate) fn of(name: &str) -> &'static Part {
    let found = PARTS.iter().find(|part| part.name == name);
    found.unwrap_or_else(|| unreachable!("`{name}` is a part of a file"))
}

/// Names of the keys of a part.
pub(crate) fn keys(name: &str) -> &'static [&'static str] {
    &of(name).names
}

/// Keys of a stage of this kind, next to `kind`.
pub(crate) fn stage_keys(kind: &str) -> &'static [&'static str] {
    static RADIO: LazyLock<Vec<&'static str>> =
        LazyLock::new(|| [keys("errors"), keys("hop")].concat());
    match kind {
        "radio" => &RADIO,
        "agent" => keys("agent"),
        _ => &[],
    }
}

/// Keys in the braces of `kind`.
pub(crate) fn inner_keys(kind: &str) -> &'static [&'static str] {
    if kind == "agent" { &[] } else { keys(kind) }
}

/// Keys of a scenario that are tables or lists.
pub(crate) const TABLES: &[&str] =
    &["transfer", "host", "path", "cell", "visits", "handoff", "vary", "schemes"];

/// Keys at the top of a scenario.
pub(crate) fn scenario() -> &'static [&'static str] {
    static TOP: LazyLock<Vec<&'static str>> = LazyLock::new(|| [keys("scenario"), TABLES].concat());
    &TOP
}

/// The table to which a misplaced key of a scenario belongs.
pub(crate) fn owner(key: &str) -> Option<String> {
    let in_braces: Vec<String> = ["link", "radio"]
        .iter()
        .filter(|kind| inner_keys(kind).contains(&key))
        .map(|kind| format!("`{kind} = {{ {key} = ... }}`"))
        .collect();
    let next_to = ["radio", "agent"].into_iter().find(|kind| stage_keys(kind).contains(&key));
    Some(if STAGES.contains(&key) {
        format!("`{key}` is a stage of the path: write it below its own `[[path]]`")
    } else if TABLES.contains(&key) {
        let heading = match key {
            "host" => "[host.NAME]".to_owned(),
            "path" | "cell" => format!("[[{key}]]"),
            _ => format!("[{key}]"),
        };
        format!("`{key}` is not part of another table: begin it by `{heading}`")
    } else if keys("scenario").contains(&key) {
        format!("`{key}` belongs to the top of the file, above the first heading in brackets")
    } else if !in_braces.is_empty() {
        format!("`{key}` belongs into the braces of a stage: {}", in_braces.join(" or "))
    } else if let Some(kind) = next_to {
        format!("write `{key}` next to `{kind} = ...`, under the same `[[path]]`")
    } else if keys("host").contains(&key) {
        format!("`{key}` belongs to a host: write it below `[host.NAME]`")
    } else if keys("transfer").contains(&key) {
        format!("`{key}` belongs to a transfer: `transfer = {{ {key} = ..., ... }}`")
    } else {
        return None;
    })
}
