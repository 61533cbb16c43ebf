//! Agarwal 2000: what TCP's options, segment sizes and ACKs cost the battery of a laptop on 802.11b.
//!
//! One set of values serves every experiment: see `testbed.toml` beside this file.

mod assumed;
mod best;
mod budget;
mod calibration;
mod cases;
mod checksum;
mod clock;
mod errors;
mod interference;
mod live;
mod lookup;
mod options;
mod sizes;

use lasthop_report::model::Assumption;

use crate::west97::Experiment;

/// Two laptops and a node that interferes (5, Figure 5.1; 5.11).
pub const TESTBED: &str = include_str!("testbed.toml");

/// Length of a run in seconds: steady state. Where a node interferes now and then, five minutes, once in which it does.
const RUN_S: f64 = 100.0;

/// Claims that time this machine's code and kernel.
pub const OF_THIS_MACHINE: [&str; 3] = ["A-CHECKSUM", "A-LOOKUP", "A-LIVE"];

/// The experiment for the claim `id`.
pub fn experiment(id: &str) -> Option<Experiment> {
    calibration::experiment(id)
        .or_else(|| sizes::experiment(id))
        .or_else(|| options::experiment(id))
        .or_else(|| best::experiment(id))
        .or_else(|| errors::experiment(id))
        .or_else(|| interference::experiment(id))
        .or_else(|| checksum::experiment(id))
        .or_else(|| lookup::experiment(id))
        .or_else(|| live::experiment(id))
}

/// What the paper leaves open, the same for all of its experiments.
pub fn assumptions() -> Vec<Assumption> {
    let sections: [&[(&str, &str)]; 2] = [assumed::ASSUMED, &live::ASSUMED];
    sections.into_iter().flat_map(crate::assumed).collect()
}

#[cfg(test)]
mod tests;
