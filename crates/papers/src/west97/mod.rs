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
        range::CLAIM.named("W-F9", figures::f9),
        range::CLAIM.named("W-F10", figures::f10),
        range::CLAIM.named("W-F12", figures::f12),
        range::CLAIM.named("W-F13", figures::f13),
        range::CLAIM.named("W-WINDOWS", figures::windows),
        range::CLAIM.named("W-T1", tables::t1),
        range::CLAIM.named("W-T1-32K-16K", tables::t1_denser),
        range::CLAIM.named("W-SNOOP-WINDOW", tables::snoop_window),
        range::CLAIM.named("W-T2", tables::t2),
        range::CLAIM.named("W-T3", tables::t3),
        range::CLAIM.named("W-T4", tables::t4),
        Claim::of("west97").named("W-ACKP-SCENARIOS", ackp_scenarios::run),
        Claim { testbed: Some(&range::FAR), ..range::CLAIM.named("W-SATELLITE", open::satellite) },
        range::CLAIM.named("W-SEQCACHE", open::seqcache),
        range::CLAIM.named("W-ELN-CHECKSUM", open::eln_checksum),
    ],
};

/// Proposed studies of section 7.
pub(crate) const EXPERIMENTS: &[Claim] = &[
    Claim { testbed: Some(&range::CROWD), ..EXPERIMENT.named("W-MULTI", open::multi) },
    EXPERIMENT.named("W-SACK-ELN", open::sack_eln),
];

const EXPERIMENT: Claim = Claim { paper: "experiments", ..range::CLAIM };

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
