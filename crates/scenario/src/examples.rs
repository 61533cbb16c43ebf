//! Scenarios to start from, built in so that they run by name in any directory.

use serde::Serialize;

/// A built-in scenario file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Example {
    /// Its name.
    pub name: &'static str,
    /// Its text, with comments, as in `scenarios/`.
    #[serde(skip)]
    pub text: &'static str,
}

macro_rules! examples {
    ($($name:literal),* $(,)?) => {
        /// All built-in scenarios, the simplest first.
        pub fn examples() -> &'static [Example] {
            const ALL: &[Example] = &[$(Example {
                name: $name,
                text: include_str!(concat!("../scenarios/", $name, ".toml")),
            }),*];
            ALL
        }
    };
}

examples![
    "quickstart",
    "variants",
    "rivals",
    "west97-lan",
    "west97-lan-bursts",
    "west97-slow",
    "west97-wan",
    "many-flows",
    "satellite",
    "fading",
    "disconnections",
    "slow-return",
    "cable-modem",
    "satellite-dialup",
    "packet-radio",
    "handoff-agents",
    "handoff-wavelan",
    "handoff-cellular",
    "starlink",
    "modern-links",
    "lte-trace",
    "lte-video",
    "wisp",
    "l4s",
    "aircraft",
    "hf-radio",
    "nb-iot",
    "ebsn",
    "contention",
    "csdp",
    "tulip",
    "web",
    "transactions",
    "integrated",
    "daedalus-lan",
    "daedalus-wan",
    "today",
    "worth-it",
    "quic",
    "agarwal00",
    "interference",
    "loss-notices",
    "power-save",
    "energy-hops",
    "energy-today",
    "explore",
];

/// The contents of a file that built-in scenarios reference.
pub fn file(name: &str) -> Option<&'static str> {
    match name {
        "lte.down" => Some(include_str!("../scenarios/lte.down")),
        "lte.up" => Some(include_str!("../scenarios/lte.up")),
        "starlink.csv" => Some(include_str!("../scenarios/starlink.csv")),
        _ => None,
    }
}

/// The built-in scenario of this name.
pub fn example(name: &str) -> Option<&'static Example> {
    examples().iter().find(|example| example.name == name)
}

/// Former names of built-in scenarios, with their successors.
const REPLACED: [(&str, &str); 2] = [("leo", "starlink"), ("leo-link", "starlink")];

/// The name of the built-in scenario that replaces `name`, is most similar to it, or begins with it.
pub fn nearest_example(name: &str) -> Option<&'static str> {
    if let Some((_, successor)) = REPLACED.iter().find(|(former, _)| *former == name) {
        return Some(successor);
    }
    let names: Vec<&'static str> = examples().iter().map(|example| example.name).collect();
    let begins = || names.iter().copied().find(|known| name.len() > 2 && known.starts_with(name));
    crate::synonyms::nearest(name, &names).or_else(begins)
}

impl Example {
    /// Its subject: the first sentence of its first comment.
    pub fn summary(&self) -> String {
        let comment: Vec<&str> = self
            .text
            .lines()
            .map_while(|line| line.strip_prefix('#'))
            .take_while(|line| !line.trim().is_empty())
            .map(str::trim)
            .collect();
        let comment = comment.join(" ");
        match comment.split_once(". ") {
            Some((first, _)) => format!("{first}."),
            None => comment,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_of_a_name_is_enough_for_a_suggestion() {
        assert_eq!(nearest_example("west97"), Some("west97-lan"));
        assert_eq!(nearest_example("quikstart"), Some("quickstart"));
    }

    #[test]
    fn every_example_parses_without_warnings() {
        for example in examples() {
            let (plan, warnings) = crate::parse(example.text, example.name, &[])
                .unwrap_or_else(|error| panic!("{}: {error}\n{}", example.name, error.help));
            assert_eq!(plan.name, example.name);
            // The scenario `explore` intentionally has combinations without effect.
            let matrix = example.name == "explore";
            let unexpected = warnings.iter().find(|w| !(matrix && w.code == crate::Code::NoEffect));
            assert!(unexpected.is_none(), "{}: {unexpected:#?}", example.name);
            assert!(example.summary().len() > 20, "{}", example.name);
        }
    }
}
