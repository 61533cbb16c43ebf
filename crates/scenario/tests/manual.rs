//! The manual and the parser agree: every word and every key is explained, every example runs.

use lasthop_proto::tcp::words::TCPS;
use lasthop_proto::{agent, channel, link, mac, queue};
use lasthop_scenario::keys::Listed;
use lasthop_scenario::manual::generated;
use lasthop_scenario::{PARTS, parse};

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
