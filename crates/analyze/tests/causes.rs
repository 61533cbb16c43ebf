//! Causes that end or slow a connection: a forgotten connection, an injected reset, merged packets that are dropped.

use crate::common::Script;
use crate::packets::{any_numbers, one};
use lasthop_analyze::{Connection, Finding};
use lasthop_proto::wire::Flags;
use proptest::prelude::*;

fn opened(isn: [u32; 2], v6: bool, rtt: f64) -> Script {
    let mut s = Script::new();
    (s.isn, s.v6) = (isn, v6);
    (s.mss, s.scale, s.window) = ([Some(1460); 2], [Some(7); 2], [8000; 2]);
    s.handshake(0.0, rtt);
    s
}

fn find(connection: &Connection, is: fn(&Finding) -> bool) -> Option<Finding> {
    let both = connection.to_server.diagnoses.iter().chain(&connection.to_client.diagnoses);
    both.map(|diagnosis| diagnosis.finding.clone()).find(is)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// After a silence the peer answers no more; in the controls it answers the last transmission, or there was no silence.
    #[test]
    fn an_idle_connection_that_was_forgotten(
        isn in any_numbers(), v6 in any::<bool>(), rtt in 5.0f64..100.0, idle in 31.0f64..4000.0, times in 4u32..9,
        answered in any::<bool>(), long in any::<bool>(),
    ) {
        let mut s = opened(isn, v6, rtt);
        s.data(rtt + 1.0, 1, 40);
        s.ack(2.0 * rtt + 1.0, 41);
        let idle = if long { idle } else { 1.0 };
        let at = |n: u32| 2.0 * rtt + idle * 1e3 + 300.0 * f64::from((1 << n) - 1);
        (0..times).for_each(|n| s.data(at(n), 41, 40));
        if answered {
            s.ack(at(times - 1) + rtt, 81);
        }
        let analysis = s.analyze();
        let found = find(one(&analysis), |f| matches!(f, Finding::Unanswered { .. }));
        prop_assert_eq!(found.is_some(), !answered);
        if let Some(Finding::Unanswered { idle: seen, transmissions, .. }) = found {
            prop_assert_eq!(transmissions, u64::from(times));
            prop_assert!(if long { (seen - idle).abs() < 0.2 } else { seen == 0.0 }, "{seen}");
        }
    }

    /// The capture begins in the connection, and has no packet of the peer. In the control the data is new.
    #[test]
    fn a_peer_that_never_answers(isn in any_numbers(), v6 in any::<bool>(), times in 4u32..9, new in any::<bool>()) {
        let mut s = Script::new();
        (s.isn, s.v6) = (isn, v6);
        for n in 0..times {
            s.data(300.0 * f64::from((1 << n) - 1), if new { 1 + 100 * n } else { 1 }, 100);
        }
        let analysis = s.analyze();
        let found = find(one(&analysis), |f| matches!(f, Finding::Unanswered { .. }));
        prop_assert_eq!(found.is_some(), !new);
    }

    /// Another host resets the connection; in the control the server does.
    #[test]
    fn an_injected_reset(
        isn in any_numbers(), rtt in 5.0f64..100.0, hops in 70u8..120, by_id in any::<bool>(), injected in any::<bool>(),
    ) {
        let mut s = opened(isn, false, rtt);
        s.ids = Some([1, 100]);
        for n in 0..5 {
            s.data(rtt + 1.0 + f64::from(n), 1 + n * 200, 200);
            s.send(2.0 * rtt + 1.0 + f64::from(n), 1, Flags::ACK, 1 + n * 100, 100, 201 + n * 200);
        }
        let at = 2.0 * rtt + 10.0;
        let ids = s.ids.unwrap();
        if injected {
            s.ttl = if by_id { 64 } else { hops };
            s.ids = Some([ids[0], if by_id { 30_000 } else { ids[1] }]);
        }
        s.send(at, 1, Flags::RST | Flags::ACK, 501, 0, 1001);
        (s.ttl, s.ids) = (64, Some([ids[0], ids[1] + 1]));
        if injected {
            s.send(at + rtt, 1, Flags::ACK, 501, 1000, 1001);
        }
        let analysis = s.analyze();
        let found = find(one(&analysis), |f| matches!(f, Finding::InjectedReset { .. }));
        prop_assert_eq!(found.is_some(), injected, "{:?}", found);
    }

    /// Packets of several segments vanish behind the capture, and single ones pass; in the control all pass.
    #[test]
    fn merged_packets_that_are_dropped(
        isn in any_numbers(), v6 in any::<bool>(), rtt in 1.0f64..50.0, merged in 2u32..4, dropped in any::<bool>(),
    ) {
        let mut s = opened(isn, v6, rtt);
        let (mut at, mut next) = (rtt + 1.0, 1);
        for _ in 0..6 {
            s.data(at, next, merged * 1460);
            if dropped {
                for _ in 0..merged {
                    at += 300.0;
                    s.data(at, next, 1460);
                    next += 1460;
                    s.ack(at + rtt, next);
                }
            } else {
                next += merged * 1460;
                s.ack(at + rtt, next);
                s.data(at + rtt + 0.1, next, 1460);
                next += 1460;
                s.ack(at + 2.0 * rtt + 0.1, next);
            }
            at += 2.0 * rtt + 1.0;
        }
        let analysis = s.analyze();
        let found = find(one(&analysis), |f| matches!(f, Finding::MergedDropped { .. }));
        prop_assert_eq!(found.is_some(), dropped);
    }
}
