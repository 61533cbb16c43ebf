//! Parsa & Garcia-Luna-Aceves 1998: TULIP, snoop and TCP alone over a half-duplex radio with medium access.
//!
//! One set of values serves every experiment: see `testbed.toml` beside this file.

mod both_ways;
mod bursts;
mod cases;
mod closer;
mod delay;
mod exchange;
mod throughput;

use lasthop_report::model::Assumption;

use crate::west97::Experiment;

/// A source on a wire, a base station, a wireless host (5, Figure 8).
pub const TESTBED: &str = include_str!("testbed.toml");

/// The experiment for the claim `id`.
pub fn experiment(id: &str) -> Option<Experiment> {
    Some(match id {
        "T-F6" => exchange::f6,
        "T-F9" => throughput::f9,
        "T-F10" => throughput::f10,
        "T-T1" => throughput::t1,
        "T-F12" => closer::f12,
        "T-F13" => closer::f13,
        "T-F14" => delay::f14,
        "T-F15" => throughput::f15,
        "T-F16" => delay::f16,
        "T-F17" => delay::f17,
        "T-T2" => bursts::t2,
        "T-F19" => bursts::f19,
        "T-BIDIR" => both_ways::run,
        _ => return None,
    })
}

/// What the paper leaves open, the same for all of its experiments.
pub fn assumptions() -> Vec<Assumption> {
    let table: [(&str, &str); 13] = [
        (
            "Each radio frame takes 0.2 ms beside its bits, the preamble of 802.11 (192 us) and its headers.",
            "The only fitted constant: with it an error-free transfer with TULIP reaches about 631 kb/s, to which the \
             three rows of Table 2 extrapolate. It stands for the ramp-up, ramp-down and processing of equation 1, \
             for which the paper has no numbers.",
        ),
        (
            "The wireless host takes 0.1 ms for each packet, either way.",
            "Processing time of equation 1. Its value does not matter as long as it is longer than the 30 us in which \
             an answer must begin: a host that acknowledges sooner would find its station still listening and draw a \
             back-off, while one that takes a moment finds the channel quiet. Without it ACKs and data have equal \
             chances, half of the window waits at the wireless host, and delays do not come near Table 2.",
        ),
        (
            "Physical layer: 802.11 DSSS at 1 Mb/s, 192 us of preamble, slots of 20 us, SIFS of 10 us. FAMA-NCS backs \
             off for 1 to 10 times an RTS.",
            "The paper names 802.11 and FAMA-NCS; these are their published values.",
        ),
        (
            "TCP measures round trips in whole units of 500 ms; its time-out is the estimate plus four times the \
             deviation, 0.5 s at least, doubled up to 64 s; it never gives up. Every packet is acknowledged.",
            "5.1.4, footnote 6, taken as written. A first round trip then gives 0.5 s + 4 x 0.25 s: the 1.5 s after \
             which the timer of Figure 12(a) expires. REAL's receiver is not described; delayed ACKs would halve the \
             number of ACKs in Figure 12.",
        ),
        (
            "The source always has data.",
            "The paper offers 1 Mb/s on average as a Poisson process, more than the channel carries: the source is \
             backlogged but for the first moments.",
        ),
        (
            "Bit errors are independent, so that their distances are exponential, and hit every frame of either \
             direction: data, ACKs, link acknowledgements, RTS and CTS.",
            "5 applies losses to the wireless channel; 3 says that they hit ACKs as well. The packet losses of Table 1 \
             (16 % at 15 per million) are those of frames of 1400 bytes and headers.",
        ),
        (
            "Error rates are per bit. At 75 per million 58 % of the data packets are lost.",
            "5.2 speaks of 85 % there, which is the number of errors per packet (0.86) and not the share of packets \
             that have one; at 15 per million, where the two are alike, it measured 16 %.",
        ),
        (
            "Snoop's retransmissions go before the packets that wait for the radio.",
            "The published description of snoop has it so, and the authors matched their code with it. In Figure 18(b) \
             two retransmissions fall into a burst of six packets, with a window of packets waiting.",
        ),
        (
            "Snoop times a packet from when it leaves the queue before the radio; its first local time-out is 200 ms.",
            "In Figure 18(b) local time-outs are 60 ms apart while a window of packets waits for the radio, more than \
             ten times as long: the paper's round trips do not hold that queue.",
        ),
        (
            "Snoop's fault: a sample counts although other packets were retransmitted while it was taken. It is in \
             experiments 1 and 3; experiment 2 shows both.",
            "5.2 describes the fault and says that the code was changed for experiment 2, and that plots of the mended \
             snoop are labelled so; those of experiments 1 and 3 are not.",
        ),
        (
            "The base station queues 50 packets; the wire has 1 ms of delay.",
            "No window is larger, so that nothing is ever dropped. The wire of Figure 8 has no delay given.",
        ),
        (
            "10 MB are 10,000,000 bytes, the windows 42,000 and 16,000 bytes, 30 and 11 packets; the 64 KB between \
             bursts are 65,536 bytes of data packets on the air, retransmissions included.",
            "30 packets of 1400 bytes are 42,000 bytes; other readings of KB give the same number of packets.",
        ),
        (
            "Fading: a carrier of 2.4 GHz and a margin of 20 dB, states that go by time and are the same in both \
             directions.",
            "802.11's band. The paper names the speed and neither margin nor carrier; in a fade neither side hears the \
             other (5.3).",
        ),
    ];
    crate::assumed(&table)
}

#[cfg(test)]
mod tests {
    use lasthop_proto::machine::Side;

    use super::*;
    use crate::bench::scenario;
    use crate::claims::claims;

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
                    let changes: Vec<&str> = changes.iter().map(String::as_str).collect();
                    assert_eq!(scenario(TESTBED, &changes).path.len(), 4);
                }
            }
        }
    }

    /// 3.3: every answer goes at once and takes the TCP ACK along that waits; nothing is sent twice, and hardly an ACK
    /// asks for the channel on its own.
    #[test]
    fn with_acceleration_acks_travel_with_the_answers() {
        let mut changes = cases::case(cases::Protocol::Tulip, cases::Window::Large, "errors=none");
        changes.push("transfer.bytes=500kB".to_owned());
        let changes: Vec<&str> = changes.iter().map(String::as_str).collect();
        let metrics = lasthop_lab::measure(&scenario(TESTBED, &changes), 1).metrics;
        assert!(metrics.complete());
        assert_eq!(metrics.flows[0].repeated.total(), 0);
        let back = metrics.stages.iter().filter(|s| s.towards == Some(Side::Left));
        let rts: u64 = back.filter_map(|s| s.air.as_ref()).map(|air| air.rts.frames).sum();
        assert!(rts <= 5, "{rts} of 358 ACKs had a handshake of their own");
    }

    #[test]
    fn every_claim_of_the_paper_has_an_experiment() {
        for claim in claims().filter(|c| c.paper == "parsa98") {
            assert!(experiment(claim.id).is_some(), "{}", claim.id);
        }
    }
}
