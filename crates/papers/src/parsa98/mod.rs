//! Parsa & Garcia-Luna-Aceves 1998: TULIP, snoop and TCP alone over a half-duplex radio with medium access.
//!
//! One set of values serves all experiments: see `testbed.toml` in this folder.

mod both_ways;
mod bursts;
mod cases;
mod closer;
mod delay;
mod exchange;
mod range;
mod setup;
mod throughput;
mod trips;

use crate::Paper;

pub(crate) const PAPER: Paper = Paper {
    key: "parsa98",
    title: "C. Parsa, J. J. Garcia-Luna-Aceves: Improving TCP Performance over Wireless Networks at the Link \
            Layer, 1998",
    claims: &[
        range::CLAIM.named("T-F6", exchange::f6),
        range::CLAIM.named("T-F9", throughput::f9),
        range::CLAIM.named("T-F10", throughput::f10),
        range::CLAIM.named("T-T1", throughput::t1),
        range::CLAIM.named("T-SACK", throughput::sack),
        range::CLAIM.named("T-F12", closer::f12),
        range::CLAIM.named("T-F13", trips::f13),
        range::CLAIM.named("T-F14", delay::f14),
        range::CLAIM.named("T-F15", throughput::f15),
        range::CLAIM.named("T-F16", delay::f16),
        range::CLAIM.named("T-F17", delay::f17),
        range::CLAIM.named("T-T2", bursts::t2),
        range::CLAIM.named("T-F19", bursts::f19),
        range::CLAIM.named("T-BIDIR", both_ways::run),
    ],
};

#[cfg(test)]
mod tests {
    use lasthop_proto::machine::Side;

    use super::setup::TESTBED;
    use super::*;
    use crate::scenario;

    #[test]
    fn the_testbed_is_a_scenario_with_every_protocol_and_channel() {
        for protocol in cases::Protocol::ALL {
            assert_eq!(scenario(TESTBED, &both_ways::changes(protocol)).transfers.len(), 2);
            for window in cases::Window::BOTH {
                for errors in [
                    cases::bit_errors(0.0),
                    cases::bit_errors(15.0),
                    bursts::bursts(6),
                    bursts::fading(0.01),
                ] {
                    let changes = cases::case(protocol, window, &errors);
                    assert_eq!(scenario(TESTBED, &changes).path.len(), 4);
                }
            }
        }
    }

    /// 3.3: every answer is sent at once and carries a waiting TCP ACK; nothing is sent twice, and hardly any ACK
    /// contends for the channel alone.
    #[test]
    fn with_acceleration_acks_travel_with_the_answers() {
        let mut changes = cases::case(cases::Protocol::Tulip, cases::Window::Large, "errors=none");
        changes.push("transfer.bytes=500kB".to_owned());
        let metrics = lasthop_sim::runs::measure(&scenario(TESTBED, &changes), 1).metrics;
        assert!(metrics.complete());
        assert_eq!(metrics.flows[0].repeated.total(), 0);
        let back = metrics.stages.iter().filter(|s| s.towards == Some(Side::Left));
        let rts: u64 = back.filter_map(|s| s.air.as_ref()).map(|air| air.rts.frames).sum();
        assert!(rts <= 5, "{rts} of 358 ACKs had a handshake of their own");
    }
}
