//! Open parameters of the papers' testbeds, with plausible values.
//!
//! A parameter is the address of a scenario's key, as in `--set`, with possible values. The testbed's file has the
//! assumed value; the table of assumptions has the reason, and refers to each parameter by the beginning of its text.

use lasthop_report::number::short;
use serde::Deserialize;

/// A testbed with its open parameters.
#[derive(Clone, Copy, Debug)]
pub struct Testbed {
    pub key: &'static str,
    /// Its scenario files.
    pub texts: &'static [&'static str],
    /// Its open parameters in the paper's `assumptions.toml`.
    pub open: &'static str,
    /// Settings for shorter transfers, when many sets of parameters are evaluated.
    pub shorter: &'static [&'static str],
    /// Runs of each case, when many sets of parameters are evaluated.
    pub seeds: u32,
}

/// A parameter that a paper leaves open.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Open {
    /// Addresses of the keys that get the value, as in `--set`. A key whose host or stage is not in the scenario is
    /// skipped.
    pub keys: Vec<String>,
    /// The assumed value, in the file's format.
    pub assumed: String,
    /// The possible values.
    pub values: Values,
    /// The beginning of the assumption's text ([`crate::Paper::assumed`]).
    pub assumption: String,
    /// The reason for these values, with its source.
    pub why: String,
}

/// The possible values, all equally probable.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum Values {
    /// A list.
    Words(Vec<String>),
    /// A range with its unit.
    Linear {
        linear: [f64; 2],
        #[serde(default)]
        unit: String,
    },
    /// A range with a uniform logarithm, with its unit.
    Log {
        log: [f64; 2],
        #[serde(default)]
        unit: String,
    },
}

/// Number of equally probable parts of a range for effects by part.
const PARTS: usize = 4;

impl Open {
    /// The first of its keys.
    pub fn name(&self) -> &str {
        self.keys.first().map_or("", String::as_str)
    }

    /// The value at a position from 0 to 1 (excluded).
    pub fn value(&self, place: f64) -> String {
        let number = |x: f64, unit: &str| format!("{}{unit}", digits(x));
        match &self.values {
            Values::Words(words) => {
                let at = (place * words.len() as f64) as usize;
                words[at.min(words.len() - 1)].clone()
            }
            Values::Linear { linear: [low, high], unit } => {
                number(low + place * (high - low), unit)
            }
            Values::Log { log: [low, high], unit } => {
                number(low * libm::pow(high / low, place), unit)
            }
        }
    }

    /// The values, or parts of the range, as text; the index is the position times their number.
    pub fn parts(&self) -> Vec<String> {
        match &self.values {
            Values::Words(words) => words.clone(),
            Values::Linear { .. } | Values::Log { .. } => {
                let end = |i: usize| self.value(i as f64 / PARTS as f64);
                (0..PARTS).map(|i| format!("{} to {}", end(i), end(i + 1))).collect()
            }
        }
    }

    /// The settings for the value at a position.
    pub fn settings(&self, place: f64) -> impl Iterator<Item = String> {
        let value = self.value(place);
        self.keys.iter().map(move |key| format!("{key}={value}"))
    }

    /// The values as text.
    pub fn range(&self) -> String {
        match &self.values {
            Values::Words(words) => words.join(", "),
            Values::Linear { linear: [low, high], unit }
            | Values::Log { log: [low, high], unit } => {
                format!("{} to {} {unit}", short(*low), short(*high)).trim_end().to_owned()
            }
        }
    }
}

/// A number with three digits, in the format of scenarios.
fn digits(x: f64) -> String {
    let places = (2 - libm::log10(x.abs()).floor() as i32).clamp(0, 12) as usize;
    let text = format!("{x:.places$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// Readings of a paper's text are named like keys that begin with this. No scenario has them: the experiment reads them
/// from the bench ([`crate::Bench::setting`]).
pub(crate) const READING: &str = "reading.";

/// The setting for the scenario file `text`, if that has its host or stage. `NAME: KEY=VALUE` applies to the scenario
/// of this name only.
pub(crate) fn fitting<'a>(text: &str, setting: &'a str) -> Option<&'a str> {
    if setting.starts_with(READING) {
        return None;
    }
    let named = |name: &str| text.contains(&format!("name = \"{name}\""));
    let setting = match setting.split_once(": ") {
        Some((name, rest)) if named(name) => rest,
        Some(_) => return None,
        None => setting,
    };
    let mut parts = setting.split('.');
    let has = match (parts.next(), parts.next()) {
        (Some("path"), Some(stage)) => named(stage),
        (Some("host"), Some(host)) => text.contains(&format!("[host.{host}]")),
        _ => true,
    };
    has.then_some(setting)
}

#[cfg(test)]
mod tests {
    use lasthop_scenario::plan::RunKey;

    use super::*;
    use crate::{PAPERS, scenario};

    fn open(values: &str) -> Open {
        let rest = "keys = ['path.base.persist']\nassumed = '200ms'\nassumption = ''\nwhy = ''";
        toml::from_str(&format!("values = {values}\n{rest}")).unwrap()
    }

    #[test]
    fn fractions_map_to_parameter_values() {
        let log = open("{ log = [50, 800], unit = 'ms' }");
        assert_eq!(log.value(0.0), "50ms");
        assert_eq!(log.value(0.5), "200ms");
        assert_eq!(
            log.parts(),
            ["50ms to 100ms", "100ms to 200ms", "200ms to 400ms", "400ms to 800ms"]
        );
        let words = open("['off', 'on']");
        assert_eq!([words.value(0.49), words.value(0.5)], ["off", "on"]);
        assert_eq!(open("{ linear = [0, 1.5] }").value(0.1), "0.15");
    }

    /// The scenario files and the table of assumptions are consistent.
    #[test]
    fn assumed_values_match_the_files_and_all_are_settable() {
        for claim in crate::claims() {
            let Some(testbed) = claim.testbed else {
                continue;
            };
            let paper = PAPERS.iter().find(|paper| paper.key == claim.paper).unwrap();
            for open in claim.open() {
                let name = format!("{}, {}", testbed.key, open.name());
                let belongs = paper
                    .assumed()
                    .iter()
                    .filter(|assumed| assumed.what.starts_with(&open.assumption));
                assert_eq!(belongs.count(), 1, "{name}: {}", open.assumption);
                assert!(open.parts().len() > 1, "{name} has one value");
                let mut places = 0;
                for text in testbed.texts {
                    let key = |changes: &[String]| RunKey::of(&scenario(text, changes), 1);
                    let fitting = |settings: Vec<String>| -> Vec<String> {
                        let fit = settings.iter().filter_map(|setting| fitting(text, setting));
                        fit.map(str::to_owned).collect()
                    };
                    let assumed = open.keys.iter().map(|key| format!("{key}={}", open.assumed));
                    let assumed = fitting(assumed.collect());
                    places += assumed.len();
                    assert_eq!(
                        key(&assumed),
                        key(&[]),
                        "{name} is not assumed to be {}",
                        open.assumed
                    );
                    for part in 0..open.parts().len() {
                        let place = (part as f64 + 0.5) / open.parts().len() as f64;
                        scenario(text, &fitting(open.settings(place).collect()));
                    }
                }
                let reading = open.name().starts_with(READING);
                assert!(places > 0 || reading, "{name} has a place in no scenario");
            }
        }
    }
}
