//! The manual and the parser agree: every word and every key is explained, every example runs.

use std::slice;

use lasthop_proto::describe::{Descriptor, Form, Need, Value};
use lasthop_proto::tcp::words::TCPS;
use lasthop_proto::units::{Bytes, Rate, Span};
use lasthop_proto::{agent, channel, link, mac, queue, systems};
use lasthop_scenario::keys::{Listed, list, written};
use lasthop_scenario::{PARTS, Part, parse};

/// The pages on scenario files.
const MANUAL: &str = concat!(
    include_str!("../../../docs/reference/scenario-files.md"),
    include_str!("../../../docs/reference/scenario-transfers.md"),
    include_str!("../../../docs/reference/scenario-hosts.md"),
    include_str!("../../../docs/reference/scenario-path.md"),
    include_str!("../../../docs/reference/scenario-radio.md"),
    include_str!("../../../docs/reference/scenario-cells.md"),
);
const STATION: &str = include_str!("../../../docs/reference/station.md");
const TUNNEL: &str = include_str!("../../../docs/reference/tunnel.md");

#[test]
fn every_word_is_in_the_manual() {
    let words = TCPS.iter().map(|word| word.key);
    let words = words.chain(agent::words().map(|agent| agent.word));
    let words = words.chain(queue::words().map(|discipline| discipline.word));
    let words = words.chain(channel::words().map(|model| model.word));
    let words = words.chain(mac::all_words().map(|mac| mac.word));
    let words = words.chain(link::words().map(|layer| layer.word));
    for word in words {
        assert!(MANUAL.contains(&format!("`{word}`")), "the manual lacks `{word}`");
    }
}

/// Paths of the keys of the table `table` that the manual lacks, with those of inner tables.
fn missing_keys(keys: &[Listed], table: &str, manual: &str) -> Vec<String> {
    let is_listed = |key: &str| {
        let forms = ["`KEY`", "`KEY =", "`[KEY", "`[[KEY", "{ KEY =", ", KEY ="];
        forms.iter().any(|form| manual.contains(&form.replace("KEY", key)))
    };
    let own = |listed: &Listed| {
        let name = listed.key.name;
        let path = if table.is_empty() { name.to_owned() } else { format!("{table}.{name}") };
        let inner = missing_keys(&listed.inner, &path, manual);
        let this = Some(path).filter(|path| !is_listed(path) && !is_listed(name));
        this.into_iter().chain(inner).collect::<Vec<_>>()
    };
    keys.iter().flat_map(own).collect()
}

#[test]
fn every_key_is_in_its_manual() {
    for part in PARTS.iter() {
        let manual = match part.name {
            "station" => STATION,
            "tunnel" => TUNNEL,
            _ => MANUAL,
        };
        let missing = missing_keys(&part.keys, "", manual);
        assert!(missing.is_empty(), "the manual of `{}` lacks {missing:?}", part.name);
    }
}

/// Text between `<!-- generated: NAME -->` and `<!-- end -->` in the manual is generated from the descriptions of systems
/// and keys. `make manual` regenerates it.
#[test]
fn the_tables_of_the_manual_are_those_of_the_program() {
    let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let mut tables = 0;
    let parts = ["files", "transfers", "hosts", "path", "radio", "cells"]
        .map(|part| format!("reference/scenario-{part}.md"));
    let others = ["reference/station.md", "reference/tunnel.md", "reference/systems/README.md"]
        .map(String::from);
    for file in parts.iter().chain(&others) {
        let path = docs.join(file);
        let old = std::fs::read_to_string(&path).unwrap();
        let mut new = String::new();
        let mut parts = old.split("<!-- generated: ");
        new.push_str(parts.next().unwrap_or_default());
        for part in parts {
            let (name, rest) = part.split_once(" -->\n").expect("a name");
            let (_, after) = rest.split_once("<!-- end -->").expect("an end");
            let table = generated(name).unwrap_or_else(|| panic!("{file}: no table `{name}`"));
            new.push_str(&format!("<!-- generated: {name} -->\n\n{table}\n<!-- end -->{after}"));
            tables += 1;
        }
        if std::env::var_os("LASTHOP_WRITE_MANUAL").is_some() {
            std::fs::write(&path, new).unwrap();
        } else {
            assert!(old == new, "docs/{file} is out of date: run `make manual`");
        }
    }
    assert!(tables > 10, "{tables}");
}

/// Every TOML block of the manual that is a whole scenario is accepted.
#[test]
fn the_scenarios_of_the_manual_are_scenarios() {
    let mut tried = 0;
    for block in MANUAL.split("```toml\n").skip(1) {
        let text = block.split("```").next().unwrap_or_default();
        if !text.contains("transfer") || !text.contains("[[path]]") {
            continue;
        }
        tried += 1;
        if let Err(error) = parse(text, "manual", &[]) {
            panic!("{error}: {}\n{text}", error.help);
        }
    }
    assert!(tried > 0);
}

fn keys_of(name: &str) -> &'static Part {
    PARTS.iter().find(|part| part.name == name).unwrap()
}

/// The values that a key accepts, in few words.
fn accepted(form: &Form) -> String {
    fn words(words: &[&str]) -> String {
        let quoted: Vec<String> = words.iter().map(|word| format!("`\"{word}\"`")).collect();
        quoted.join(", ")
    }
    match form {
        Form::Flag => "boolean".to_owned(),
        Form::Range(_, Value::Time(Span(u64::MAX))) => "time".to_owned(),
        Form::Range(_, Value::Size(Bytes(u64::MAX))) => "size".to_owned(),
        Form::Range(_, Value::Speed(_)) => "speed".to_owned(),
        Form::Range(_, Value::Frequency(_)) => "frequency".to_owned(),
        Form::Range(least, most) => {
            let (least, most) = (least.to_string(), most.to_string());
            // A dash in front of a number is a sign.
            if least.starts_with('-') {
                format!("{least} to {most}")
            } else {
                format!("{least}–{most}")
            }
        }
        Form::Rate => "rate".to_owned(),
        Form::Probability => "probability".to_owned(),
        Form::Limit => "packets (`\"50p\"`) or size".to_owned(),
        Form::Power => "power or current".to_owned(),
        Form::Energy => "energy or charge".to_owned(),
        Form::Voltage => "voltage".to_owned(),
        Form::Keyword(list) if list.len() > 8 => "a word, above".to_owned(),
        Form::Keyword(list) => words(list),
        Form::Keywords(list) => format!("{}, or a list", words(list)),
        Form::Text(example) | Form::File(example) => format!("such as `{example}`"),
        Form::Texts(example) => format!("list such as `{example}`"),
        Form::Or(list, other) => format!("{}, or {}", words(list), accepted(other)),
        Form::Table => "table".to_owned(),
        Form::TableOr(other) => format!("table, or {}", accepted(other)),
        Form::Tables => "list of tables".to_owned(),
    }
}

/// The row of a key. `above` is the path to its inner table with a dot, or empty for a key of the part itself.
fn row(Listed { key, default, .. }: &Listed, above: &str) -> String {
    let default = match key.need {
        Need::Default => written(default).map(|word| format!(" (`{word}`)")),
        Need::Required(_) => Some(" (required)".to_owned()),
        Need::Else("") => None,
        Need::Else(otherwise) => Some(format!(" ({otherwise})")),
    };
    let (description, values) = (key.summary, accepted(&key.form));
    format!("| `{above}{}` | {description} | {values}{} |\n", key.name, default.unwrap_or_default())
}

/// The rows of keys, those of inner tables below their own.
fn rows(keys: &[Listed], above: &str, text: &mut String) {
    for listed in keys {
        text.push_str(&row(listed, above));
        // `models` lists tables of errors.
        if !listed.key.name.starts_with("errors") {
            rows(&listed.inner, &format!("{above}{}.", listed.key.name), text);
        }
    }
}

/// The table of a part's keys. Keys that a radio shares with a link are only named.
fn keys(part: &str) -> String {
    let same = |listed: &&Listed| {
        let of_link = keys_of("link").keys.iter().find(|link| link.key.name == listed.key.name);
        part == "radio" && of_link.is_some_and(|link| row(link, "") == row(listed, ""))
    };
    let (same, own): (Vec<&Listed>, Vec<&Listed>) = keys_of(part).keys.iter().partition(same);
    let mut text = "| key | what | values (default) |\n|---|---|---|\n".to_owned();
    own.into_iter().for_each(|listed| rows(slice::from_ref(listed), "", &mut text));
    if !same.is_empty() {
        let names: Vec<String> = same.iter().map(|same| format!("`{}`", same.key.name)).collect();
        text += "\nThese are as for a [link](scenario-path.md#links-and-routers): ";
        text += &names.join(", ");
        text += ".\n";
    }
    text
}

/// A table of the manual as Markdown; `None` for an unknown name.
///
/// `keys NAME` has the keys of a part of a file (see [`PARTS`]), and `keys errors` those of all channel
/// models. `words NAME` has the keywords of a family, and `systems` all systems with their pages.
fn generated(name: &str) -> Option<String> {
    Some(match name.split_once(' ') {
        Some(("keys", "errors")) => models(),
        Some(("keys", part)) => keys(part),
        Some(("words", "tcp")) => {
            words(TCPS.iter().map(|word| (word.key, word.summary, word.source)))
        }
        Some(("words", "agent")) => words(agent::words().map(columns)),
        Some(("words", "discipline")) => words(queue::words().map(columns)),
        Some(("words", "model")) => words(channel::words().map(columns)),
        Some(("words", "mac")) => words(mac::all_words().map(columns)),
        Some(("words", "link-layer")) => words(link::words().map(columns)),
        None if name == "systems" => pages(),
        _ => return None,
    })
}

fn columns<R>(system: &Descriptor<R>) -> (&'static str, &'static str, &'static str) {
    (system.word, system.system.summary, system.system.source)
}

fn words<'w>(rows: impl Iterator<Item = (&'w str, &'w str, &'w str)>) -> String {
    let mut text = "| word | what | after |\n|---|---|---|\n".to_owned();
    for (word, description, source) in rows {
        text.push_str(&format!("| `{word}` | {description} | {source} |\n"));
    }
    text
}

/// The keys of each channel model, without the common keys of all models.
fn models() -> String {
    let mut text = "| `model` | key | what | values (default) |\n|---|---|---|---|\n".to_owned();
    for model in channel::words() {
        let mut own = String::new();
        rows(&list(|k| (model.read)(k, Rate::from_bps(1_000_000).unwrap())), "", &mut own);
        for row in own.lines() {
            text.push_str(&format!("| `{}` {row}\n", model.word));
        }
    }
    text
}

/// The systems of each kind, with their pages.
fn pages() -> String {
    let mut text = "| where | systems |\n|---|---|\n".to_owned();
    let all: Vec<_> = systems::systems().into_iter().filter(|system| system.tier > 0).collect();
    for kind in all.chunk_by(|a, b| a.kind == b.kind) {
        let pages = kind.iter().map(|system| format!("[{0}]({0}.md)", system.key));
        let kind = format!("{:?}", kind[0].kind).to_lowercase();
        text.push_str(&format!("| {kind} | {} |\n", pages.collect::<Vec<_>>().join(", ")));
    }
    text
}
