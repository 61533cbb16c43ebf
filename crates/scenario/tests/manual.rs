//! The manual and the parser agree: every word is explained, every example runs. Keys are checked beside
//! their list, in `schema.rs`.

use lasthop_proto::tcp::words::TCPS;
use lasthop_scenario::{AGENTS, DISCIPLINES, ERROR_MODELS, LINK_LAYERS, MACS, parse};

const MANUAL: &str = include_str!("../../../docs/scenario-files.md");

#[test]
fn every_word_is_in_the_manual() {
    let words = TCPS.iter().map(|word| word.key);
    let words = words.chain(AGENTS.iter().map(|(word, _)| *word));
    let words = words.chain(DISCIPLINES.iter().map(|(word, _)| *word));
    let words = words.chain(ERROR_MODELS.iter().map(|(word, _)| *word));
    let words = words.chain(ERROR_MODELS.iter().flat_map(|(_, keys)| keys.iter().copied()));
    let words = words.chain(MACS.iter().chain(&LINK_LAYERS).map(|(word, _)| *word));
    for word in words {
        assert!(MANUAL.contains(&format!("`{word}`")), "the manual lacks `{word}`");
    }
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
