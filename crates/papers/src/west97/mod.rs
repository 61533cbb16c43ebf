//! West & Vaidya 1997: the FreeBSD testbed, snoop, and partial acknowledgements.
//!
//! One set of values serves all experiments on one testbed: see the `.toml` files in this folder.

mod ackp_scenarios;
mod figures;
mod open;
mod range;
mod setup;
mod tables;

use crate::{Claim, Paper};

pub(crate) const PAPER: Paper = Paper {
    key: "west97",
    title: "S. West, N. Vaidya: TCP Enhancements for Heterogeneous Networks. TR 97-003, Texas A&M, 1997",
    claims: &[
        figures::F9,
        figures::F10,
        figures::F12,
        figures::F13,
        figures::WINDOWS,
        tables::T1,
        tables::T1_DENSER,
        tables::SNOOP_WINDOW,
        tables::T2,
        tables::T3,
        tables::T4,
        ackp_scenarios::ACKP_SCENARIOS,
        open::LONG_DELAY,
        open::SEQCACHE,
        open::ELN_CHECKSUM,
    ],
};

/// Proposed studies of section 7.
pub(crate) const EXPERIMENTS: &[Claim] = &[open::MULTI, open::SACK_ELN];

#[cfg(test)]
mod tests {
    use super::setup::{ACKP, ACKP_FULL, BURSTS, MANY, SATELLITE, SLOW, SNOOP, WAN};
    use crate::scenario;
    use crate::testbed::{SINGLE, WEST97_LAN as LAN};

    #[test]
    fn every_testbed_is_a_scenario_with_every_agent() {
        for text in [LAN, SLOW, SATELLITE, MANY] {
            for changes in [&[][..], SNOOP, ACKP, ACKP_FULL, &[SINGLE], &[BURSTS]] {
                assert!(!scenario(text, changes).path.is_empty());
            }
        }
        assert_eq!(scenario(WAN, &["cross.loss=0.44%"]).path.len(), 5);
    }

    /// The built-in scenarios are the testbeds of the claims.
    #[test]
    fn the_built_in_scenarios_are_these_testbeds() {
        for (name, text, errors) in [
            ("west97-lan", LAN, SINGLE),
            ("west97-lan-bursts", LAN, BURSTS),
            ("west97-slow", SLOW, SINGLE),
        ] {
            let example = lasthop_scenario::example(name).unwrap();
            let built_in = scenario(example.text, &["agent=none"]);
            assert_eq!(built_in.path, scenario(text, &[errors]).path, "{name}");
        }
    }
}
