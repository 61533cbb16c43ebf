//! West & Vaidya 1997: the FreeBSD testbed, snoop, and partial acknowledgements.
//!
//! One set of values serves every experiment on one testbed: see the `.toml` files beside this one.

mod ackp_scenarios;
mod figures;
mod open;
mod tables;

use lasthop_report::model::Assumption;

use crate::assumed;
use crate::bench::{Bench, Interrupted};
use crate::finding::Finding;

/// An experiment.
pub type Experiment = fn(&mut Bench<'_>) -> Result<Finding, Interrupted>;

/// Ravel, Verdi, Chopin (4.0, Figure 8).
pub const LAN: &str = include_str!("lan.toml");
/// The same with the wireless link slowed to 14.6 KB/s (5.3).
pub const SLOW: &str = include_str!("slow.toml");
/// Chopin to Tucson (5.1, Figure 11).
pub const WAN: &str = include_str!("wan.toml");
/// A satellite hop (5.3 end, 7.0).
pub const SATELLITE: &str = include_str!("satellite.toml");
/// Several connections (7.0).
pub const MANY: &str = include_str!("many.toml");

/// One byte error per 64 KB on average, for data and for ACKs (4.3, 5.2.1).
pub(crate) const SINGLE: &str =
    r#"errors={ model = "exponential", mean = "64KiB", on = ["data", "ack"] }"#;
/// Each error destroys six packets in a row (5.2.2).
pub(crate) const BURSTS: &str =
    r#"errors={ model = "packet-bursts", packets = 6, mean = "64KiB", on = ["data", "ack"] }"#;
/// Snoop at the base station.
pub(crate) const SNOOP: &[&str] = &["agent=snoop"];
/// Snoop with partial acknowledgements as the paper measured them (4.2): one for every packet, and a sender that
/// sets its timer to a constant.
pub(crate) const ACKP: &[&str] =
    &["agent=snoop+ackp", "path.verdi.ackp-mode=every-packet", "host.fixed.ackp=constant"];
/// Snoop with partial acknowledgements as the paper designed them (3.3, 3.4).
pub(crate) const ACKP_FULL: &[&str] =
    &["agent=snoop+ackp", "path.verdi.ackp-mode=full", "host.fixed.ackp=rearm"];

/// `first` and then `more`.
pub(crate) fn with<'s>(first: &[&'s str], more: &[&'s str]) -> Vec<&'s str> {
    first.iter().chain(more).copied().collect()
}

/// The experiment for the claim `id`.
pub fn experiment(id: &str) -> Option<Experiment> {
    Some(match id {
        "W-F9" => figures::f9,
        "W-F10" => figures::f10,
        "W-F12" => figures::f12,
        "W-F13" => figures::f13,
        "W-T1" => tables::t1,
        "W-T1-32K-16K" => tables::t1_denser,
        "W-T2" => tables::t2,
        "W-T3" => tables::t3,
        "W-T4" => tables::t4,
        "W-ACKP-SCENARIOS" => ackp_scenarios::run,
        "W-SATELLITE" => open::satellite,
        "W-MULTI" => open::multi,
        "W-SEQCACHE" => open::seqcache,
        "W-ELN-CHECKSUM" => open::eln_checksum,
        _ => return None,
    })
}

/// What the paper leaves open, the same for all of its experiments.
pub fn assumptions() -> Vec<Assumption> {
    let table: [(&str, &str); 11] = [
        (
            "Each radio frame takes 0.65 ms beside its bits.",
            "The only fitted constant: with it the error-free transfer takes the published 9.77 s (Table 1). It \
             stands for preamble, framing and channel access of the WaveLAN.",
        ),
        (
            "The two stations take turns on the radio; 50 packets fit each interface queue.",
            "CSMA/CA gives both stations the same chance; 50 packets was BSD's interface queue.",
        ),
        (
            "Timers and round trips follow 4.4BSD's integer arithmetic: 500 ms and 200 ms ticks with a random \
             phase in each run, srtt in eighths and variation in quarters of a tick, RTO 1 s to 64 s, 12 retries.",
            "FreeBSD 2.1 descends from 4.4BSD-Lite. The truncation of this arithmetic keeps a LAN's time-out at \
             three ticks, which the lengths of the stalls depend on.",
        ),
        (
            "The congestion window opens by one segment a window.",
            "RFC 5681. 4.4BSD added an eighth of a segment per ACK; whether FreeBSD 2.1 still did is not known. \
             `--set host.fixed.growth=bsd` shows the difference: Reno of Table 1 gains about 6 %.",
        ),
        (
            "Socket buffers are 16 KiB, segments 1460 B on the LAN and 512 B on the WAN, no options.",
            "FreeBSD's defaults; the segment sizes are the paper's.",
        ),
        (
            "In six-packet bursts the 64 KB count from onset to onset, and an onset inside a burst begins it anew.",
            "5.2.2: the mean distance between the onset of two error bursts. Retransmissions that pass during a \
             burst are destroyed as well.",
        ),
        (
            "Snoop retransmits on one duplicate ACK; its local time-out is srtt + 4 rttvar, at least 100 ms, 1.1 s \
             before the first measurement, and is not backed off; its persist timer is 200 ms or the local \
             time-out if that is longer.",
            "2.6 for the duplicate ACK. The paper names no timers: those of the snoop in ns-2 by the same authors \
             are taken, and the persist timer of parsa98 4.",
        ),
        (
            "On the slow link (5.3) packets wait behind the base station's agent.",
            "The paper's delay is where a packet is forwarded to the wireless link, and snoop has it before.",
        ),
        (
            "The WAN is a 545 kbit/s link with 27 ms each way.",
            "So that the error-free transfer reaches the published 61 KB/s at the published 67 ms of round trip.",
        ),
        (
            "Other people's traffic drops 0.44 % of the data packets at random and delays each by 0 to 67 ms.",
            "17 of 3,900 packets were lost (5.1). The paper gives no delays; a gateway that drops packets has a \
             full queue, taken as up to one more round trip.",
        ),
        (
            "A transfer is timed from the first SYN to the ACK of its last byte. A connection that gives up counts \
             with what it delivered until then.",
            "The test sender times the transfer (4.5), without saying from where to where.",
        ),
    ];
    assumed(&table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::scenario;
    use crate::claims::claims;

    #[test]
    fn every_testbed_is_a_scenario_with_every_agent() {
        for text in [LAN, SLOW, SATELLITE, MANY] {
            for changes in [&[][..], SNOOP, ACKP, ACKP_FULL, &[SINGLE], &[BURSTS]] {
                assert!(!scenario(text, changes).path.is_empty());
            }
        }
        assert_eq!(scenario(WAN, &["cross.loss=0.44%"]).path.len(), 5);
    }

    /// What a user runs by name is the testbed that the claims are judged on.
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

    #[test]
    fn every_claim_of_the_paper_has_an_experiment() {
        for claim in claims().filter(|c| c.paper == "west97") {
            assert!(experiment(claim.id).is_some(), "{}", claim.id);
        }
    }
}
