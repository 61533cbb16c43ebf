//! Captures without some packets: without pure ACKs, as a filter for an application protocol leaves them, without the
//! repair of a loss, without the other direction, without the data before a keep-alive.

use crate::common::Script;
use crate::packets::{any_numbers, one};
use lasthop_analyze::{Cause, StallCause};
use lasthop_proto::wire::Flags;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Requests with pauses, near the client. Answers acknowledge requests; requests acknowledge answers only if there
    /// is no pure ACK.
    #[test]
    fn pauses_of_an_application_are_no_round_trips(
        isn in any_numbers(), v6 in any::<bool>(), rtt in 5.0f64..300.0, handshake in any::<bool>(),
        pause in 2_000.0f64..90_000.0, parts in 1u32..4, filtered in any::<bool>(), stamped in any::<bool>(),
    ) {
        let mut s = Script::new();
        (s.isn, s.v6) = (isn, v6);
        s.stamps = stamped.then_some((5, 6));
        if handshake {
            s.handshake(0.0, rtt);
        }
        let mut at = rtt + 1.0;
        let mut answered = 1;
        for n in 0..10u32 {
            s.send(at, 0, Flags::ACK, 1 + 100 * n, 100, answered);
            for part in 0..parts {
                s.send(at + rtt + f64::from(part), 1, Flags::ACK, answered, 700, 101 + 100 * n);
                answered += 700;
            }
            if !filtered {
                s.send(at + rtt + 40.0, 0, Flags::ACK, 101 + 100 * n, 0, answered);
            }
            at += rtt + pause;
        }
        let analysis = s.analyze();
        let connection = one(&analysis);
        let asked = connection.to_server.rtt.unwrap();
        prop_assert_eq!(asked.samples, 10);
        prop_assert!((asked.mean - rtt / 1e3).abs() < 1e-5, "{asked:?}");
        let answers = &connection.to_client;
        prop_assert_eq!(answers.rtt.map_or(0, |rtt| rtt.samples), if filtered { 0 } else { 10 });
        prop_assert!(answers.rtt.is_none_or(|rtt| rtt.max < 0.041), "{:?}", answers.rtt);
        let others = answers.over_time.round_trips.kept.iter().filter(|trip| trip.rtt > 0.041);
        prop_assert_eq!(others.count(), 0);
        for stall in connection.to_server.stalls.iter().chain(&answers.stalls) {
            prop_assert_eq!(stall.cause, StallCause::ApplicationIdle);
        }
    }

    /// A segment is lost behind the point of capture or before it, and its repair is not in the capture.
    #[test]
    fn a_loss_without_its_repair_is_no_absence_of_losses(
        isn in any_numbers(), v6 in any::<bool>(), rtt in 5.0f64..300.0, lost in 3u32..12, seen in any::<bool>(),
        acks in any::<bool>(), sack in any::<bool>(), handshake in any::<bool>(),
    ) {
        let mut s = Script::new();
        (s.isn, s.v6) = (isn, v6);
        if handshake {
            s.handshake(0.0, rtt);
        }
        let at = rtt + 1.0;
        for n in (0..16).filter(|n| seen || *n != lost) {
            s.data(at + f64::from(n), 1 + 1000 * n, 1000);
        }
        if acks {
            for n in 0..16u32 {
                let (edge, right) = (1 + 1000 * lost, 1001 + 1000 * n);
                let at = at + rtt + 20.0 + f64::from(n);
                match n {
                    n if n < lost => s.ack(at, right),
                    n if n > lost && sack => s.ack_sack(at, edge, &[(edge + 1000, right)]),
                    n if n > lost => s.ack(at, edge),
                    _ => {}
                }
            }
        }
        let analysis = s.analyze();
        let sent = &one(&analysis).to_server;
        prop_assert_eq!(sent.retransmissions.total(), 0);
        prop_assert_eq!(sent.verdict.cause, Cause::Unclear);
        let evidence = &sent.verdict.evidence;
        if !seen {
            prop_assert!(evidence.contains("but 1000 B before captured ones"), "{evidence}");
        } else if acks {
            prop_assert!(evidence.contains("report missing bytes"), "{evidence}");
        } else {
            prop_assert!(evidence.contains("no ACK of this data"), "{evidence}");
        }
    }

    /// An idle connection, whose data was sent before the capture began: keep-alives without a byte and their answers.
    #[test]
    fn keep_alives_before_the_first_data_are_no_duplicate_acks(
        isn in any_numbers(), v6 in any::<bool>(), rtt in 5.0f64..200.0, probes in 1u32..9, data in any::<bool>(),
        both in any::<bool>(),
    ) {
        let mut s = Script::new();
        (s.isn, s.v6) = (isn, v6);
        let mut at = 1.0;
        for _ in 0..probes {
            s.send(at, 0, Flags::ACK, 1000, 0, 1);
            s.send(at + rtt, 1, Flags::ACK, 1, 0, 1001);
            if both {
                s.send(at + 300.0, 1, Flags::ACK, 0, 0, 1001);
                s.send(at + 300.0, 0, Flags::ACK, 1001, 0, 1);
            }
            at += 10_000.0;
        }
        if data {
            s.data(at, 1001, 500);
            s.ack(at + rtt, 1501);
        }
        let analysis = s.analyze();
        let connection = one(&analysis);
        let (sent, back) = (&connection.to_server, &connection.to_client);
        prop_assert_eq!([sent.duplicate_acks, back.duplicate_acks], [0, 0]);
        // Only the answer to the first one shows that this was a keep-alive.
        prop_assert_eq!(sent.keep_alives, u64::from(probes - 1));
        prop_assert_eq!(back.keep_alives, if both { u64::from(probes) } else { 0 });
        prop_assert_eq!([sent.unique_bytes, sent.missed_bytes], [if data { 500 } else { 0 }, 0]);
    }
}
