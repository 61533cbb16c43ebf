//! What each claim costs to evaluate beside the others, so that an estimate of the time left is worth something.
//!
//! Tenths of a second with 20 seeds on a machine with two cores, as `lasthop reproduce --timings` prints them; only
//! the ratios matter. Claims share runs: each is charged with those that it is the first to need.

use crate::Claim;

const COSTS: &[(&str, u64)] = &[
    ("W-F9", 1),
    ("W-F10", 1),
    ("W-F12", 4),
    ("W-F13", 2),
    ("W-T1", 2),
    ("W-T1-32K-16K", 3),
    ("W-T2", 3),
    ("W-T3", 4),
    ("W-T4", 3),
    ("W-ACKP-SCENARIOS", 0),
    ("W-SATELLITE", 26),
    ("W-MULTI", 37),
    ("W-SEQCACHE", 1),
    ("W-ELN-CHECKSUM", 1),
    ("T-F6", 0),
    ("T-F9", 72),
    ("T-F10", 833),
    ("T-T1", 1),
    ("T-F12", 1),
    ("T-F13", 33),
    ("T-F14", 1),
    ("T-F15", 1220),
    ("T-F16", 1),
    ("T-F17", 1),
    ("T-T2", 130),
    ("T-F19", 628),
    ("T-BIDIR", 25),
    ("B-F3", 1),
    ("B-F4", 4),
    ("B-F5", 1),
    ("B-F7", 11),
    ("B-F8", 54),
    ("B-F9", 1),
    ("B-F10", 60),
    ("B-QUENCH", 10),
    ("B-TICK", 21),
    ("D-F1", 63),
    ("D-F2-LAN", 70),
    ("D-F2-WAN", 38),
    ("D-F3-LAN", 27),
    ("D-F3-WAN", 16),
    ("D-F4", 16),
    ("D-ACKSPLIT", 12),
    ("D-F6", 11),
    ("D-T1", 283),
    ("D-2WAY", 22),
    ("D-MAC", 2),
    ("D-F7", 4),
    ("D-F8-F9", 2),
    ("D-F11-F12", 6),
    ("D-MOBILE-SENDER", 8),
    ("A-CAL", 112),
    ("A-MSS", 34),
    ("A-SACK", 55),
    ("A-OPTIONS", 54),
    ("A-DELACK", 43),
    ("A-BEST", 52),
    ("A-RECEIVER", 1),
    ("A-ERRORS", 61),
    ("A-T5.1", 95),
    ("A-CHECKSUM", 5),
    ("A-LOOKUP", 3),
    ("A-LIVE", 111),
];

/// What `claim` costs; a claim that is not in the table counts as a cheap one.
pub fn cost(claim: &Claim) -> u64 {
    COSTS.iter().find(|(id, _)| *id == claim.id).map_or(1, |(_, cost)| *cost)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{claims, has_experiment};

    #[test]
    fn every_experiment_has_its_cost() {
        for claim in claims().filter(|claim| has_experiment(claim)) {
            assert!(COSTS.iter().any(|(id, _)| *id == claim.id), "{} has no cost", claim.id);
        }
    }
}
