//! Why a sender waits: its peer's reading, answers, timers, or a window that still grows. Each test has the
//! cause and a control without it.

use crate::common::Script;
use crate::packets::{any_numbers, one};
use lasthop_analyze::{Diagnosis, Direction, Finding, StallCause};
use lasthop_proto::wire::Flags;
use proptest::prelude::*;

const SYN_ACK: Flags = Flags(Flags::SYN.0 | Flags::ACK.0);

/// An open connection with scaled windows, captured at the client or at the server.
fn opened(isn: [u32; 2], v6: bool, rtt: f64, near: bool) -> Script {
    let mut s = Script::new();
    (s.isn, s.v6, s.ids) = (isn, v6, (!v6).then_some([100, 7]));
    (s.mss, s.scale, s.window, s.sack_permitted) =
        ([Some(1460); 2], [Some(7); 2], [8000; 2], [true; 2]);
    s.send(0.0, 0, Flags::SYN, 0, 0, 0);
    s.send(if near { rtt } else { 0.01 }, 1, SYN_ACK, 0, 0, 1);
    s.send(rtt + 0.02, 0, Flags::ACK, 1, 0, 1);
    s
}

fn find(direction: &Direction, is: fn(&Finding) -> bool) -> Option<&Diagnosis> {
    direction.diagnoses.iter().find(|diagnosis| is(&diagnosis.finding))
}

fn limits(direction: &Direction) -> Option<&Diagnosis> {
    find(direction, |finding| matches!(finding, Finding::Limits { .. }))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// The application reads as fast as data arrives, or leaves two fifths of the buffer unread.
    #[test]
    fn unread_data_shows_a_slow_reader(
        isn in any_numbers(), v6 in any::<bool>(), rtt in 20.0f64..300.0, packets in 10u32..40, lags in any::<bool>(),
    ) {
        let mut s = opened(isn, v6, rtt, true);
        let (mut at, mut next) = (rtt + 1.0, 1);
        for round in 0..12 {
            let room = if lags && round > 0 { packets * 3 / 5 } else { packets };
            s.window[1] = (room * 1460).div_ceil(128) as u16;
            s.ack(at, next);
            (0..room).for_each(|n| s.data(at + 0.01 + f64::from(n) * 0.001, next + n * 1460, 1460));
            next += room * 1460;
            at += rtt;
        }
        let analysis = s.analyze();
        let found = limits(&one(&analysis).to_server).unwrap();
        prop_assert_eq!(found.remedy.contains("reads too slowly"), lags, "{}", found);
    }

    /// Each request follows the answer before it, or requests leave at regular times.
    #[test]
    fn requests_that_wait_for_answers_cost_a_round_trip_each(
        isn in any_numbers(), v6 in any::<bool>(), rtt in 25.0f64..200.0, near in any::<bool>(), waits in any::<bool>(),
    ) {
        let mut s = opened(isn, v6, rtt, near);
        let (there, back) = if near { (rtt, 0.0) } else { (0.1, rtt) };
        let mut at = rtt + 0.1;
        for n in 0..30 {
            s.send(at, 0, Flags::ACK, 1 + 100 * n, 100, 1 + 50 * n);
            s.send(at + there, 1, Flags::ACK, 1 + 50 * n, 50, 101 + 100 * n);
            at += there + back + if waits { 0.1 } else { 20.0 * rtt };
        }
        let analysis = s.analyze();
        let data = &one(&analysis).to_server;
        let trips = find(data, |f| matches!(f, Finding::RoundTrips { exchanges: 29, share, .. } if *share > 0.8));
        prop_assert_eq!(trips.is_some(), waits, "{:?}", data.diagnoses);
        let idle = limits(data).is_some_and(|found| found.remedy.contains("the network is not the limit"));
        prop_assert!(!(waits && idle));
    }

    /// The window doubles in each round trip until the end, or stays the same.
    #[test]
    fn a_short_transfer_ends_in_slow_start(
        isn in any_numbers(), v6 in any::<bool>(), rtt in 20.0f64..200.0, grows in any::<bool>(),
    ) {
        let mut s = opened(isn, v6, rtt, true);
        let (mut at, mut next) = (rtt + 1.0, 1);
        for round in 0..6 {
            let packets = if grows { 10u32 << round } else { 40 };
            (0..packets).for_each(|n| s.data(at + f64::from(n) * 0.001, next + n * 1460, 1460));
            next += packets * 1460;
            s.ack(at + rtt, next);
            at += rtt + 0.02;
        }
        let analysis = s.analyze();
        let found = limits(&one(&analysis).to_server).unwrap();
        prop_assert_eq!(found.remedy.contains("slow start"), grows, "{}", found);
    }

    /// Messages of an application, of which every third is lost and repaired by the timer; or there is no loss. At the server
    /// only the IP identifications show the loss.
    #[test]
    fn the_timer_is_no_wait_for_the_application(
        isn in any_numbers(), rtt in 20.0f64..100.0, near in any::<bool>(), lossy in any::<bool>(),
    ) {
        let mut s = opened(isn, false, rtt, near);
        let mut at = rtt + 1.0;
        for n in 0..40 {
            let lost = lossy && n % 3 == 2;
            if lost {
                if near {
                    s.data(at, 1 + 500 * n, 500);
                } else if let Some(ids) = &mut s.ids {
                    ids[0] += 1;
                }
                at += rtt + 210.0;
            }
            s.data(at, 1 + 500 * n, 500);
            s.ack(at + if near { rtt } else { 0.1 }, 501 + 500 * n);
            at += rtt + 30.0;
        }
        let analysis = s.analyze();
        let data = &one(&analysis).to_server;
        let found = limits(data).unwrap();
        let Finding::Limits { application, congestion_window, .. } = found.finding else { panic!("{found}") };
        prop_assert_eq!(congestion_window > application, lossy, "{}", found);
        prop_assert_eq!(found.remedy.contains("verdict on losses"), lossy, "{}", found);
        let losses = if lossy { 13 } else { 0 };
        prop_assert_eq!((data.retransmissions.timeout, data.losses.len()), (losses, losses as usize));
        prop_assert!(data.stalls.iter().all(|stall| stall.cause == StallCause::Timeout));
        let tail = find(data, |finding| matches!(finding, Finding::TailLoss { .. }));
        prop_assert_eq!(tail.is_some_and(|tail| tail.remedy.contains("minimum")), lossy && near);
    }

    /// A delay spike: the timer expires, and the DSACK block of the late ACK shows that the data had arrived.
    #[test]
    fn a_needless_timeout_needs_no_probe(
        isn in any_numbers(), v6 in any::<bool>(), rtt in 20.0f64..60.0, needless in any::<bool>(),
    ) {
        let mut s = opened(isn, v6, rtt, true);
        for n in 0..20 {
            let at = rtt + 1.0 + f64::from(n) * (rtt + 20.0);
            s.data(at, 1 + 1460 * n, 1460);
            s.ack(at + rtt, 1461 + 1460 * n);
        }
        let (at, next) = (rtt + 1.0 + 20.0 * (rtt + 20.0), 1 + 20 * 1460);
        (0..5).for_each(|n| s.data(at + f64::from(n) * 0.1, next + 1460 * n, 1460));
        s.data(at + rtt + 250.0, next, 1460);
        let end = next + 5 * 1460;
        s.ack(at + rtt + 300.0, end);
        let twice = [(next, next + 1460)];
        s.ack_sack(at + 2.0 * rtt + 260.0, end, if needless { &twice } else { &[] });
        let analysis = s.analyze();
        let found = find(&one(&analysis).to_server, |f| matches!(f, Finding::Timeouts { .. })).unwrap();
        prop_assert_eq!(found.remedy.contains("had arrived"), needless, "{}", found);
        let Finding::Timeouts { needless: count, .. } = found.finding else { panic!("{found}") };
        prop_assert_eq!(count, u64::from(needless));
    }

    /// At the receiver a retransmission overtakes its original, which another way delays; or the original is lost.
    #[test]
    fn an_original_behind_its_retransmission_was_not_lost(
        isn in any_numbers(), v6 in any::<bool>(), rtt in 20.0f64..100.0, late in any::<bool>(),
    ) {
        let mut s = opened(isn, v6, rtt, false);
        s.ids = None;
        let at = rtt + 1.0;
        let mut send = |at: f64, n: u32, stamp: u32| {
            s.stamps = Some((stamp, 5));
            s.data(at, 1 + 1000 * n, 1000);
        };
        (0..8).filter(|n| *n != 2).for_each(|n| send(at + f64::from(n) * 0.1, n, 100));
        send(at + rtt + 1.0, 2, 100 + rtt as u32);
        if late {
            send(at + rtt + 5.0, 2, 100);
        }
        s.stamps = Some((9, 100));
        s.ack(at + rtt + 6.0, 8001);
        let analysis = s.analyze();
        let data = &one(&analysis).to_server;
        let lost = u64::from(!late);
        prop_assert_eq!((data.lost_segments, data.losses.len() as u64), (lost, lost));
        prop_assert_eq!((data.out_of_order, data.retransmissions.total()), (u64::from(late), 1));
    }

    /// At the receiver the network delivers a packet twice, behind the receiver's ACK; or the sender repeats it later.
    #[test]
    fn a_packet_that_the_network_duplicates_is_no_retransmission(
        isn in any_numbers(), rtt in 20.0f64..100.0, again in any::<bool>(),
    ) {
        let mut s = opened(isn, false, rtt, false);
        let mut at = rtt + 1.0;
        for n in 0..20 {
            let id = s.ids;
            s.data(at, 1 + 1000 * n, 1000);
            s.ack(at + 0.01, 1001 + 1000 * n);
            if n % 5 == 2 {
                let next = s.ids;
                if !again {
                    s.ids = id;
                }
                s.data(at + if again { rtt + 250.0 } else { 0.02 }, 1 + 1000 * n, 1000);
                s.ids = if again { s.ids } else { next };
            }
            at += rtt + if again { 260.0 } else { 1.0 };
        }
        let analysis = s.analyze();
        let again = if again { 4 } else { 0 };
        let data = &one(&analysis).to_server;
        prop_assert_eq!((analysis.copied_packets, data.retransmissions.total()), (4 - again, again));
    }

    /// The peer vanishes: keep-alives without an answer, a reset, and seconds later the peer's own reset.
    #[test]
    fn keep_alives_without_an_answer_are_a_dead_path(isn in any_numbers(), v6 in any::<bool>(), answered in any::<bool>()) {
        let mut s = opened(isn, v6, 40.0, true);
        s.data(50.0, 1, 1000);
        s.ack(90.0, 1001);
        for n in 1..6 {
            let at = 1000.0 * f64::from(n);
            s.send(at, 0, Flags::ACK, 1000, 0, 1);
            if answered {
                s.ack(at + 40.0, 1001);
            }
        }
        s.send(6000.0, 0, Flags::RST | Flags::ACK, 1001, 0, 1);
        s.send(9000.0, 1, Flags::RST | Flags::ACK, 1, 0, 1001);
        let analysis = s.analyze();
        let found = find(&one(&analysis).to_server, |f| {
            matches!(f, Finding::Unanswered { transmissions: 5, waited, .. } if (*waited - 5.0).abs() < 0.01)
        });
        prop_assert_eq!(found.is_some(), !answered);
    }

    /// The ACK of the handshake is lost, and the server repeats its SYN-ACK; or its application takes its time.
    #[test]
    fn a_repeated_syn_ack_is_no_think_time(isn in any_numbers(), v6 in any::<bool>(), lost in any::<bool>()) {
        let mut s = opened(isn, v6, 40.0, true);
        if lost {
            s.send(1050.0, 1, SYN_ACK, 0, 0, 1);
            s.send(1050.1, 0, Flags::ACK, 1, 0, 1);
        }
        for n in 0..4 {
            s.send(1100.0 + f64::from(n) * 0.1, 1, Flags::ACK, 1 + 1000 * n, 1000, 1);
        }
        s.send(1101.0, 0, Flags::ACK, 1, 0, 4001);
        let analysis = s.analyze();
        let thinks = find(&one(&analysis).to_client, |f| matches!(f, Finding::ThinkTime { .. }));
        prop_assert_eq!(thinks.is_some(), !lost);
    }

    /// The first SYN-ACK is lost. The repeated one echoes the first SYN, so the round trip is unknown; sooner it is known.
    #[test]
    fn a_repeated_syn_ack_measures_no_round_trip(isn in any_numbers(), v6 in any::<bool>(), lost in any::<bool>()) {
        let mut s = Script::new();
        (s.isn, s.v6) = (isn, v6);
        s.stamps = Some((100, 0));
        s.send(0.0, 0, Flags::SYN, 0, 0, 0);
        let again = if lost { 1020.0 } else { 500.0 };
        s.stamps = Some((100 + again as u32, 0));
        s.send(again, 0, Flags::SYN, 0, 0, 0);
        s.stamps = Some((7, 100));
        s.send(again + 20.0, 1, SYN_ACK, 0, 0, 1);
        s.send(again + 20.1, 0, Flags::ACK, 1, 0, 1);
        (0..3).for_each(|n| s.data(again + 21.0 + f64::from(n), 1 + 1000 * n, 1000));
        s.ack(again + 62.0, 3001);
        let analysis = s.analyze();
        let connection = one(&analysis);
        prop_assert_eq!(connection.handshake_rtt.is_none(), lost);
        let late = find(&connection.to_server, |f| matches!(f, Finding::Opening { waited, .. } if *waited > 1.0));
        prop_assert_eq!(late.is_some(), lost);
    }

    /// At the receiver of a long path a repair comes a round trip after the report of the loss.
    #[test]
    fn a_repair_on_a_long_path_is_no_timeout(isn in any_numbers(), v6 in any::<bool>(), rtt in 250.0f64..700.0, timer in any::<bool>()) {
        let mut s = opened(isn, v6, rtt, false);
        let at = rtt + 1.0;
        for n in (0..12).filter(|n| *n != 3) {
            s.data(at + f64::from(n), 1 + 1000 * n, 1000);
            if n < 3 {
                s.ack(at + f64::from(n) + 0.1, 1001 + 1000 * n);
            } else {
                s.ack_sack(at + f64::from(n) + 0.1, 3001, &[(4001, 1001 + 1000 * n)]);
            }
        }
        let at = at + rtt + 10.0 + if timer { rtt + 300.0 } else { 0.0 };
        s.data(at, 3001, 1000);
        s.ack(at + 0.1, 12_001);
        let analysis = s.analyze();
        prop_assert_eq!(one(&analysis).to_server.retransmissions.timeout, u64::from(timer));
    }
}
