//! West & Vaidya 1997: the FreeBSD testbed, snoop, and partial acknowledgements.
//!
//! One set of values serves all experiments on one testbed: see the `.toml` files in this folder.

mod ackp_scenarios;
mod assumed;
mod figures;
mod open;
mod range;
mod tables;
mod untested;

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
        open::MULTI,
        open::SEQCACHE,
        open::ELN_CHECKSUM,
        open::SACK_ELN,
    ],
    assumed: assumed::ASSUMED,
    untested: untested::UNTESTED,
};

const CLAIM: Claim = Claim { testbed: Some(&range::TESTBED), ..Claim::of("west97") };

/// The LAN with the wireless link slowed to 14.6 KB/s (5.3).
const SLOW: &str = include_str!("slow.toml");
/// Chopin to Tucson (5.1, Figure 11).
const WAN: &str = include_str!("wan.toml");
/// A satellite hop (5.3 end, 7.0).
const SATELLITE: &str = include_str!("satellite.toml");
/// Several connections (7.0).
const MANY: &str = include_str!("many.toml");

/// Each error destroys six consecutive packets (5.2.2).
const BURSTS: &str =
    r#"errors={ model = "packet-bursts", packets = 6, mean = "64KiB", on = ["data", "ack"] }"#;
/// Snoop at the base station.
const SNOOP: &[&str] = &["agent=snoop"];
/// Snoop with partial acknowledgements as measured in the paper (4.2): one for every packet, and a sender with a
/// constant timeout.
const ACKP: &[&str] =
    &["agent=snoop+ackp", "path.verdi.ackp-mode=every-packet", "host.fixed.ackp=constant"];
/// Snoop with partial acknowledgements as designed in the paper (3.3, 3.4).
const ACKP_FULL: &[&str] =
    &["agent=snoop+ackp", "path.verdi.ackp-mode=full", "host.fixed.ackp=rearm"];

#[cfg(test)]
mod tests {
    use super::*;
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
