//! Agarwal 2000: what TCP's options, segment sizes and ACKs cost the battery of a laptop on 802.11b.
//!
//! One set of values serves every experiment: see `testbed.toml` beside this file.

use lasthop_report::model::Assumption;

use crate::assumed;
use crate::west97::Experiment;

/// Two laptops and a node that interferes (5, Figure 5.1; 5.11).
pub const TESTBED: &str = include_str!("testbed.toml");

/// The experiment for the claim `id`. Each file of this module knows its own: `one(id).or_else(|| other(id))`.
pub fn experiment(_id: &str) -> Option<Experiment> {
    None
}

/// What the paper leaves open, the same for all of its experiments.
pub fn assumptions() -> Vec<Assumption> {
    let sections: [&[(&str, &str)]; 0] = [];
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
