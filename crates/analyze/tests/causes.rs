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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Requests and responses in which the client, the server or no end takes its time, with the capture anywhere on the path.
    #[test]
    fn the_end_that_takes_its_time_is_named(
        isn in any_numbers(), v6 in any::<bool>(), rtt in 2.0f64..200.0, place in 0.0f64..1.0, think in 300.0f64..2000.0,
        who in 0usize..3, first in any::<bool>(),
    ) {
        let mut s = Script::new();
        (s.isn, s.v6) = (isn, v6);
        let (there, back) = (rtt * place, rtt - rtt * place);
        s.send(1000.0, 0, Flags::SYN, 0, 0, 0);
        s.send(1000.0 + there, 1, Flags::SYN | Flags::ACK, 0, 0, 1);
        s.send(1000.0 + rtt, 0, Flags::ACK, 1, 0, 1);
        let (mut at, mut sent, mut got) = (1000.0 + rtt + 0.1, 1, 1);
        let mut waited = 0.0;
        for n in 0..4 {
            let (client, server) = (who == 1 && (n > 0 || first), who == 2);
            let wait = |yes: bool| if yes { think } else { 0.0 };
            at += wait(client);
            waited += wait(client) + wait(server);
            s.send(at, 0, Flags::ACK, sent, 200, got);
            sent += 200;
            at += there;
            s.send(at, 1, Flags::ACK, got, 0, sent);
            at += 0.1 + wait(server);
            s.send(at, 1, Flags::ACK, got, 1000, sent);
            s.send(at + 0.1, 1, Flags::ACK, got + 1000, 1000, sent);
            got += 2000;
            at += 0.1 + back;
            s.send(at, 0, Flags::ACK, sent, 0, got);
            at += 0.1;
        }
        // A request without an answer shows nothing.
        (0..4).for_each(|n| s.send(at + 100.0 * f64::from(n + 1), 0, Flags::ACK, sent, 200, got));
        let analysis = s.analyze();
        let connection = &analysis.connections[0];
        let found: Vec<_> = [&connection.to_server, &connection.to_client].into_iter().flat_map(|d| &d.diagnoses)
            .filter_map(|d| match d.finding {
                Finding::ThinkTime { client, waited, share, .. } => Some((client, waited, share)),
                _ => None,
            })
            .collect();
        if who == 0 {
            prop_assert!(found.is_empty(), "{:?}", found);
        } else {
            let [(client, seconds, share)] = found[..] else { panic!("{found:?}") };
            prop_assert_eq!(client, who == 1);
            prop_assert!((seconds - waited / 1e3).abs() < 0.002, "{} of {}", seconds, waited);
            let all = (at + 400.0 - 1000.0) / 1e3;
            prop_assert!((share - seconds / all).abs() < 0.01, "{} of {}", share, seconds / all);
        }
    }
}
