//! Kinds of packets that look like others: repeated single bytes, data of a SYN, old duplicates, packets without times.

use crate::common::Script;
use crate::packets::{any_numbers, faults, one};
use lasthop_analyze::{Confidence, Config, EcnState, Finding, Opening, analyze_capture};
use lasthop_proto::wire::Flags;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A terminal session: single bytes, of which one is lost. A keep-alive repeats the last one later.
    #[test]
    fn a_single_byte_is_retransmitted_until_its_ack(
        isn in any_numbers(), v6 in any::<bool>(), rtt in 5.0f64..200.0, lost in 0u32..8, probes in 0u32..4,
    ) {
        let mut s = Script::new();
        (s.isn, s.v6) = (isn, v6);
        s.handshake(0.0, rtt);
        let mut at = rtt + 100.0;
        for n in 0..8 {
            s.data(at, 1 + n, 1);
            if n == lost {
                at += rtt + 300.0;
                s.data(at, 1 + n, 1);
            }
            s.ack(at + rtt, 2 + n);
            at += rtt + 500.0;
        }
        for _ in 0..probes {
            at += 75_000.0;
            s.data(at, 8, 1);
            s.ack(at + rtt, 9);
        }
        let analysis = s.analyze();
        let sent = &one(&analysis).to_server;
        prop_assert_eq!(faults(one(&analysis)), [1, 0, 1]);
        prop_assert_eq!((sent.unique_bytes, sent.keep_alives), (8, u64::from(probes)));
        // Karn's rule: the repeated byte gives no round trip.
        let rtts = sent.rtt.unwrap();
        prop_assert_eq!(rtts.samples, 7);
        prop_assert!(rtts.max < (rtt + 1.0) / 1e3, "{:?}", rtts);
    }

    /// The server declines the data of the SYN (RFC 7413), and the client sends it again, alone or with more.
    #[test]
    fn data_that_a_syn_ack_declines_is_not_lost(
        isn in any_numbers(), v6 in any::<bool>(), rtt in 5.0f64..200.0, len in 1u32..1000, more in 0u32..400,
        accepted in any::<bool>(),
    ) {
        let mut s = Script::new();
        (s.isn, s.v6) = (isn, v6);
        s.send(0.0, 0, Flags::SYN, 0, len, 0);
        s.send(rtt, 1, Flags::SYN | Flags::ACK, 0, 0, if accepted { 1 + len } else { 1 });
        let end = 1 + len + more;
        let first = if accepted { 1 + len } else { 1 };
        s.data(rtt + 0.1, first, end - first);
        s.ack(2.0 * rtt + 0.1, end);
        let analysis = s.analyze();
        prop_assert_eq!(faults(one(&analysis)), [u64::from(!accepted), 0, 0]);
        prop_assert_eq!(one(&analysis).to_server.unique_bytes, u64::from(len + more));
    }

    /// An old duplicate of a SYN arrives in an open connection, which continues.
    #[test]
    fn an_old_syn_opens_no_connection(
        isn in any_numbers(), v6 in any::<bool>(), other in 1u32 << 24..1 << 30, segments in 2u32..8,
    ) {
        let mut s = Script::new();
        (s.isn, s.v6) = (isn, v6);
        s.handshake(0.0, 20.0);
        let transfer = |s: &mut Script, at: f64, first: u32| {
            for n in first..first + segments {
                let at = at + f64::from(n) * 50.0;
                s.data(at, 1 + 1000 * n, 1000);
                s.ack(at + 20.0, 1001 + 1000 * n);
            }
        };
        transfer(&mut s, 100.0, 0);
        s.send(2000.0, 0, Flags::SYN, other, 0, 0);
        s.ack(2020.0, 1 + 1000 * segments);
        transfer(&mut s, 3000.0, segments);
        let analysis = s.analyze();
        let openings: Vec<_> = analysis.connections.iter().map(|c| c.opening).collect();
        prop_assert_eq!(openings, [Opening::Handshake, Opening::Unanswered]);
        let bytes = [u64::from(2000 * segments), 0];
        for (connection, bytes) in analysis.connections.iter().zip(bytes) {
            prop_assert_eq!((faults(connection), connection.half), ([0; 3], None));
            prop_assert_eq!(connection.to_server.unique_bytes, bytes);
        }
    }

    /// No data arrives after the handshake, and all of it is of full size.
    #[test]
    fn full_segments_that_follow_the_handshake(
        isn in any_numbers(), v6 in any::<bool>(), flight in 2u32..12, repeats in 2u32..6, answers in any::<bool>(),
    ) {
        let mut s = Script::new();
        (s.isn, s.v6) = (isn, v6);
        s.mss = [Some(1460); 2];
        s.send(0.0, 0, Flags::SYN, 0, 0, 0);
        if answers {
            s.send(18.0, 1, Flags::SYN | Flags::ACK, 0, 0, 1);
        }
        s.send(20.0, 0, Flags::ACK, 1, 0, 1);
        (0..flight).for_each(|n| s.data(21.0, 1 + 1460 * n, 1460));
        for n in 0..repeats {
            s.data(300.0 * f64::from(1 << n), 1, 1460);
        }
        let analysis = s.analyze();
        let found = one(&analysis).to_server.diagnoses.iter().find_map(|d| match d.finding {
            Finding::MtuBlackHole { from, passed, .. } => Some((from, passed, d.confidence)),
            _ => None,
        });
        // Without packets of the server it is the capture that shows one direction only.
        prop_assert_eq!(found, answers.then_some((1460, None, Confidence::Possible)));
    }

    /// All packets carry CE, and the receiver reports it or not.
    #[test]
    fn marks_without_a_report(isn in any_numbers(), v6 in any::<bool>(), reported in any::<bool>()) {
        let mut s = Script::new();
        (s.isn, s.v6, s.ecn) = (isn, v6, [3, 0]);
        s.send(0.0, 0, Flags::SYN | Flags::ECE | Flags::CWR, 0, 0, 0);
        s.send(20.0, 1, Flags::SYN | Flags::ACK | Flags::ECE, 0, 0, 1);
        s.send(20.1, 0, Flags::ACK, 1, 0, 1);
        let answer = if reported { Flags::ACK | Flags::ECE } else { Flags::ACK };
        for n in 0..20 {
            let at = 30.0 + 30.0 * f64::from(n);
            s.data(at, 1 + 1000 * n, 1000);
            s.send(at + 20.0, 1, answer, 1, 0, 1001 + 1000 * n);
        }
        let analysis = s.analyze();
        let mut diagnoses = one(&analysis).to_server.diagnoses.iter();
        let found = diagnoses.find(|d| matches!(d.finding, Finding::Ecn { .. })).unwrap();
        let Finding::Ecn { state, ce, echoes, .. } = found.finding else { panic!("{found}") };
        prop_assert_eq!((state, ce, echoes), (EcnState::Marked, 20, if reported { 20 } else { 0 }));
        prop_assert_eq!(found.remedy.contains("none needed"), reported);
    }
}

/// The path is interrupted for several timeouts, so a probe soon after the loss is lost as well.
#[test]
fn no_probe_avoids_the_timeouts_of_an_interruption() {
    let mut s = Script::new();
    s.sack_permitted = [true; 2];
    s.handshake(0.0, 50.0);
    for n in 0..10 {
        let at = 100.0 + 60.0 * f64::from(n);
        s.data(at, 1 + 1000 * n, 1000);
        s.ack(at + 50.0, 1001 + 1000 * n);
    }
    s.data(800.0, 10_001, 1000);
    for n in 0..5 {
        s.data(800.0 + 300.0 * f64::from(1 << n), 10_001, 1000);
    }
    s.ack(5700.0, 11_001);
    let analysis = s.analyze();
    let mut diagnoses = one(&analysis).to_server.diagnoses.iter();
    let found = diagnoses.find(|d| matches!(d.finding, Finding::Timeouts { .. })).unwrap();
    let Finding::Timeouts { total, causes, .. } = found.finding else { panic!("{found}") };
    // The probe of a single segment waits for a delayed ACK, as long as the timer (RFC 8985, 7.2).
    assert_eq!((total, causes.repeated, causes.avoided_by_tail_loss_probe), (5, 4, 0));
    assert!(found.remedy.contains("interruptions") && !found.remedy.contains("probes"), "{found}");
}

/// The sender probes the tail during an interruption: the probe is no timeout, and did not help.
#[test]
fn a_probe_of_the_tail_is_no_timeout() {
    let mut s = Script::new();
    s.sack_permitted = [true; 2];
    s.handshake(0.0, 100.0);
    for n in 0..10 {
        let at = 200.0 + 110.0 * f64::from(n);
        s.data(at, 1 + 1000 * n, 1000);
        s.ack(at + 100.0, 1001 + 1000 * n);
    }
    (0..6).for_each(|n| s.data(1400.0 + f64::from(n), 10_001 + 1000 * n, 1000));
    // Two round trips later the last segment, then by the timer the first one.
    s.data(1650.0, 15_001, 1000);
    s.data(1950.0, 10_001, 1000);
    s.data(2550.0, 10_001, 1000);
    s.ack(2650.0, 11_001);
    let analysis = s.analyze();
    let sent = &one(&analysis).to_server;
    assert_eq!((sent.retransmissions.other, sent.retransmissions.timeout), (1, 2));
    assert!(!sent.diagnoses.iter().any(|d| matches!(d.finding, Finding::TailLoss { .. })));
    let found =
        sent.diagnoses.iter().find(|d| matches!(d.finding, Finding::Timeouts { .. })).unwrap();
    let Finding::Timeouts { total, causes, .. } = found.finding else { panic!("{found}") };
    assert_eq!((total, causes.repeated, causes.avoided_by_tail_loss_probe), (2, 1, 0));
    assert!(found.remedy.contains("interruptions"), "{found}");
}

/// A fast retransmission is lost as well. SACK does not avoid that timeout; RACK does.
#[test]
fn a_lost_retransmission_needs_a_sender_with_rack() {
    let mut s = Script::new();
    s.sack_permitted = [true; 2];
    s.handshake(0.0, 50.0);
    s.data(60.0, 1, 1000);
    s.ack(110.0, 1001);
    (0..8).for_each(|n| s.data(120.0 + f64::from(n), 1001 + 1000 * n, 1000));
    (0..4).for_each(|n| s.ack_sack(171.0 + f64::from(n), 1001, &[(2001, 3001 + 1000 * n)]));
    s.data(175.0, 1001, 1000);
    (4..7).for_each(|n| s.ack_sack(171.0 + f64::from(n), 1001, &[(2001, 3001 + 1000 * n)]));
    s.data(450.0, 1001, 1000);
    s.ack(500.0, 9001);
    let analysis = s.analyze();
    let mut diagnoses = one(&analysis).to_server.diagnoses.iter();
    let found = diagnoses.find(|d| matches!(d.finding, Finding::Timeouts { .. })).unwrap();
    assert!(found.remedy.contains("RACK"), "{found}");
}

/// At the receiver of a long path each window follows the former by a round trip, in which the sender waits for ACKs.
#[test]
fn a_round_trip_between_windows_is_no_stall_of_the_sender() {
    let mut s = Script::new();
    s.send(0.0, 0, Flags::SYN, 0, 0, 0);
    s.send(0.1, 1, Flags::SYN | Flags::ACK, 0, 0, 1);
    s.send(600.1, 0, Flags::ACK, 1, 0, 1);
    for round in 0..20 {
        let at = 600.2 + 601.0 * f64::from(round);
        (0..5).for_each(|n| s.data(at + f64::from(n), 1 + 1000 * (5 * round + n), 1000));
        s.ack(at + 4.1, 1 + 1000 * (5 * round + 5));
    }
    s.data(15_000.0, 100_001, 1000);
    let analysis = s.analyze();
    let stalls = &one(&analysis).to_server.stalls;
    assert_eq!(stalls.iter().map(|stall| stall.offset).collect::<Vec<_>>(), [100_001]);
}

/// The capture misses packets that arrive, in the midst and at the end.
#[test]
fn acknowledged_bytes_that_were_not_captured() {
    let missed = |opened: bool, missing: &[u32]| {
        let mut s = Script::new();
        if opened {
            s.handshake(0.0, 10.0);
        }
        for n in 0..10 {
            let at = 20.0 + 20.0 * f64::from(n);
            if !missing.contains(&n) {
                s.data(at, 1 + 1000 * n, 1000);
            }
            s.ack(at + 10.0, 1001 + 1000 * n);
        }
        let analysis = s.analyze();
        let connection = one(&analysis);
        assert_eq!(faults(connection), [0; 3]);
        connection.to_server.missed_bytes + connection.to_client.missed_bytes
    };
    assert_eq!((missed(true, &[]), missed(false, &[])), (0, 0));
    assert_eq!((missed(true, &[3, 4, 7]), missed(false, &[3, 4, 7])), (3000, 3000));
    // One of the bytes at the end may be a FIN.
    assert_eq!((missed(true, &[0, 9]), missed(true, &[8, 9])), (1999, 1999));
    // They were sent before the capture began.
    assert_eq!(missed(false, &[0, 1]), 0);
}

/// Simple packet blocks have no times: no round trip is zero.
#[test]
fn packets_without_times_give_no_round_trip() {
    let mut s = Script::new();
    s.handshake(0.0, 10.0);
    s.data(20.0, 1, 1000);
    s.ack(30.0, 1001);
    let mut file = s.finish();
    // The time of an enhanced packet block is behind its type, its length and its interface.
    let mut at = 0;
    while at < file.len() {
        let word = |at: usize| u32::from_le_bytes(*file[at..].first_chunk().unwrap());
        let (kind, len) = (word(at), word(at + 4) as usize);
        if kind == 6 {
            file[at + 12..at + 20].fill(0);
        }
        at += len;
    }
    let analysis = analyze_capture(&file, Config::default()).unwrap();
    let connection = one(&analysis);
    assert_eq!((connection.to_server.unique_bytes, connection.to_server.rtt), (1000, None));
}

/// Linux probes a closed window without a byte, others with one. The same packet is a keep-alive if the window is open.
#[test]
fn probes_of_a_closed_window() {
    for (seq, len) in [(1000, 0), (1001, 1)] {
        let mut s = Script::new();
        s.handshake(0.0, 10.0);
        s.data(20.0, 1, 1000);
        s.window[1] = 0;
        s.ack(30.0, 1001);
        for n in 0..4 {
            let at = 300.0 * f64::from(1 << n);
            s.data(at, seq, len);
            s.ack(at + 10.0, 1001);
        }
        s.window[1] = 8000;
        s.ack(3000.0, 1001);
        s.data(3001.0, 1001, 1000);
        s.ack(3011.0, 2001);
        s.data(80_000.0, 2000, 0);
        s.ack(80_010.0, 2001);
        let analysis = s.analyze();
        let sent = &one(&analysis).to_server;
        assert_eq!((sent.window_probes, sent.keep_alives, sent.unique_bytes), (4, 1, 2000));
        assert_eq!(faults(one(&analysis)), [0; 3]);
    }
}

/// The scale of a SYN counts only if its answer has one: the window of the SYN is not the largest.
#[test]
fn a_window_is_unknown_without_the_answer_to_its_syn() {
    let mut s = Script::new();
    s.scale = [Some(7); 2];
    s.send(0.0, 0, Flags::SYN, 0, 0, 0);
    s.send(10.0, 0, Flags::ACK, 1, 0, 1);
    s.data(11.0, 1, 1000);
    assert_eq!(one(&s.analyze()).to_server.window_max, None);
}

/// The last segment of a flight is repeated by a timeout, and a DSACK block shows that the first one had arrived.
#[test]
fn a_needless_timeout_repairs_no_tail_loss() {
    let tail = |needless: bool, late: bool| {
        let mut s = Script::new();
        s.sack_permitted = [true; 2];
        s.handshake(0.0, 50.0);
        s.data(60.0, 1, 500);
        s.ack(110.0, 501);
        s.data(120.0, 501, 500);
        s.data(500.0, 501, 500);
        match (needless, late) {
            (true, false) => s.ack_sack(550.0, 1001, &[(501, 1001)]),
            (true, true) => {
                s.ack(510.0, 1001);
                s.ack_sack(550.0, 1001, &[(501, 1001)]);
            }
            (false, _) => s.ack(550.0, 1001),
        }
        let analysis = s.analyze();
        let sent = &one(&analysis).to_server;
        assert_eq!(sent.retransmissions.needless, u64::from(needless));
        sent.diagnoses.iter().any(|d| matches!(d.finding, Finding::TailLoss { .. }))
    };
    assert!(tail(false, false));
    assert!(!tail(true, true));
    assert!(!tail(true, false));
}
