//! Agarwal 2000: what TCP's options, segment sizes and ACKs cost the battery of a laptop on 802.11b.
//!
//! One set of values serves every experiment: see `testbed.toml` beside this file.

mod best;
mod budget;
mod calibration;
mod cases;
mod errors;
mod interference;
mod live;
mod options;
mod sizes;

use lasthop_report::model::Assumption;

use crate::assumed;
use crate::west97::Experiment;

/// Two laptops and a node that interferes (5, Figure 5.1; 5.11).
pub const TESTBED: &str = include_str!("testbed.toml");

/// Length of a run in seconds: steady state. Where a node interferes now and then, five minutes, once in which it does.
const RUN_S: f64 = 100.0;

/// The experiment for the claim `id`.
pub fn experiment(id: &str) -> Option<Experiment> {
    calibration::experiment(id)
        .or_else(|| sizes::experiment(id))
        .or_else(|| options::experiment(id))
        .or_else(|| best::experiment(id))
        .or_else(|| errors::experiment(id))
        .or_else(|| interference::experiment(id))
        .or_else(|| live::experiment(id))
}

/// What the paper leaves open, the same for all of its experiments.
pub fn assumptions() -> Vec<Assumption> {
    let sections: [&[(&str, &str)]; 1] = [&live::ASSUMED];
    sections.into_iter().flat_map(assumed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::scenario;

    #[test]
    fn the_testbed_is_a_scenario() {
        assert_eq!(scenario(TESTBED, &[]).path.len(), 1);
    }
}
