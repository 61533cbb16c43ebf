//! Super-segments, as GRO merges packets and TSO leaves them whole: data in any order with its ACKs, black holes.

use crate::common::Script;
use crate::packets::{any_numbers, faults, one};
use lasthop_analyze::{Finding, analyze_capture};
use lasthop_proto::wire::Flags;
use proptest::prelude::*;

/// Sizes of super-segments in packets.
fn sizes() -> impl Strategy<Value = Vec<u32>> {
    prop::collection::vec(1u32..44, 4..40)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// ACKs of packets within a super-segment appear in the file before or behind it.
    #[test]
    fn acks_of_a_part_before_its_super_segment(
        isn in any_numbers(), v6 in any::<bool>(), stamped in any::<bool>(), from in 0usize..2, sizes in sizes(),
        ahead in prop::collection::vec(any::<bool>(), 40), opened in any::<bool>(),
    ) {
        let mut s = Script::new();
        (s.isn, s.v6) = (isn, v6);
        s.stamps = stamped.then_some((5, 6));
        if opened {
            s.handshake(0.0, 20.0);
        }
        let (mut at, mut next) = (30.0, 1);
        for (packets, ahead) in sizes.iter().zip(ahead) {
            let (len, half) = (packets * 1460, packets.div_ceil(2) * 1460);
            let ack = |s: &mut Script, at: f64, to: u32| s.send(at, 1 - from, Flags::ACK, 1, 0, to);
            if ahead {
                ack(&mut s, at, next + half);
                s.send(at + 0.01, from, Flags::ACK, next, len, 1);
            } else {
                s.send(at, from, Flags::ACK, next, len, 1);
                ack(&mut s, at + 0.01, next + half);
            }
            ack(&mut s, at + 0.02, next + len);
            next += len;
            at += 1.0;
        }
        let analysis = s.analyze();
        prop_assert_eq!(faults(one(&analysis)), [0; 3]);
        let connection = one(&analysis);
        // Where the opening is missing, the client is who sends first.
        let by_client = (from == 0) == (connection.client.port != 80);
        let sent = if by_client { &connection.to_server } else { &connection.to_client };
        prop_assert_eq!((sent.unique_bytes, sent.goodput), (u64::from(next - 1), Some(1.0)));
    }

    /// A sender with TSO behind whose router full packets disappear: its first transmissions are super-segments.
    #[test]
    fn a_black_hole_of_packets_that_left_in_super_segments(
        isn in any_numbers(), v6 in any::<bool>(), rtt in 5.0f64..300.0, packets in 2u32..30, more in 1u32..4,
        repeats in 2u32..6,
    ) {
        let mut s = Script::new();
        (s.isn, s.v6) = (isn, v6);
        (s.mss, s.scale, s.window) = ([Some(1460); 2], [Some(7); 2], [8000; 2]);
        s.handshake(0.0, rtt);
        let at = rtt + 1.0;
        s.data(at, 1, 200);
        s.ack(at + rtt, 201);
        let at = at + rtt + 1.0;
        (0..more).for_each(|n| s.data(at, 201 + n * packets * 1460, packets * 1460));
        let mut at = at + 300.0;
        for n in 0..repeats {
            s.data(at, 201, 1460);
            at += 400.0 * f64::from(1 << n);
        }
        let analysis = analyze_capture(&s.finish(), lasthop_analyze::Config::default()).unwrap();
        let hole = one(&analysis).to_server.diagnoses.iter().find_map(|d| match d.finding {
            Finding::MtuBlackHole { from, passed, .. } => Some((from, passed)),
            _ => None,
        });
        prop_assert_eq!(hole, Some((1460, Some(200))));
    }

    /// Without the handshake the packets of a super-segment have an unknown size. Super-segments are lost, and a later
    /// retransmission of single packets arrives.
    #[test]
    fn lost_super_segments_of_unknown_packets_are_no_black_hole(
        isn in any_numbers(), v6 in any::<bool>(), rtt in 5.0f64..300.0, size in 700u32..1460, packets in 3u32..8,
        repeats in 1u32..5,
    ) {
        let mut s = Script::new();
        (s.isn, s.v6) = (isn, v6);
        s.data(1.0, 1, size);
        s.ack(1.0 + rtt, 1 + size);
        let first = 1 + size;
        let mut at = rtt + 2.0;
        for n in 0..repeats {
            (0..2).for_each(|m| s.data(at, first + m * packets * size, packets * size));
            at += 300.0 * f64::from(1 << n);
        }
        for n in 0..2 * packets {
            s.data(at, first + n * size, size);
            s.ack(at + rtt, first + (n + 1) * size);
            at += rtt + 1.0;
        }
        let analysis = s.analyze();
        let mut diagnoses = one(&analysis).to_server.diagnoses.iter();
        let hole = diagnoses.find(|d| matches!(d.finding, Finding::MtuBlackHole { .. }));
        prop_assert_eq!(hole, None);
    }
}
