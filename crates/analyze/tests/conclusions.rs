//! Conclusions of a capture where a single cause was changed: each test has the cause and a control without it.

use crate::common::Script;
use crate::packets::{any_numbers, one};
use lasthop_analyze::{Connection, Direction, Finding, Opening, Retransmissions, StallCause};
use lasthop_proto::wire::Flags;
use proptest::prelude::*;

const SYN_ACK: Flags = Flags(Flags::SYN.0 | Flags::ACK.0);

/// An open connection with scaled windows, captured at the client.
fn opened(isn: [u32; 2], v6: bool, rtt: f64) -> Script {
    let mut s = Script::new();
    (s.isn, s.v6) = (isn, v6);
    (s.mss, s.scale, s.window) = ([Some(1460); 2], [Some(7); 2], [8000; 2]);
    s.send(0.0, 0, Flags::SYN, 0, 0, 0);
    s.send(rtt, 1, SYN_ACK, 0, 0, 1);
    s.send(rtt + 0.02, 0, Flags::ACK, 1, 0, 1);
    s
}

fn finding(direction: &Direction, is: fn(&Finding) -> bool) -> Option<Finding> {
    direction.diagnoses.iter().map(|diagnosis| diagnosis.finding.clone()).find(is)
}

/// Rounds of ten segments, the second of each lost and repaired, sent as `parts` packets.
fn rounds(isn: [u32; 2], v6: bool, rtt: f64, super_segments: bool) -> Connection {
    let mut s = opened(isn, v6, rtt);
    let mut at = rtt + 1.0;
    for round in 0..20u32 {
        let first = 1 + round * 14_600;
        if super_segments {
            s.data(at, first, 14_600);
        } else {
            (0..10).for_each(|n| s.data(at + f64::from(n) * 0.01, first + n * 1460, 1460));
        }
        at += rtt + 0.2;
        s.ack(at, first + 1460);
        for n in 3..=10 {
            s.ack_sack(at + f64::from(n) * 0.01, first + 1460, &[(first + 2920, first + n * 1460)]);
        }
        s.data(at + 0.2, first + 1460, 1460);
        at += rtt + 0.3;
        s.ack(at, first + 14_600);
        at += 1.0;
    }
    one(&s.analyze()).clone()
}

/// The AccECN option of the receiver counts the bytes with CE.
#[test]
fn the_accecn_option_reports_bytes() {
    for option in [false, true] {
        let mut s = Script::new();
        s.ecn = [2, 0];
        s.send(0.0, 0, Flags::SYN.with_ace(7), 0, 0, 0);
        s.send(30.0, 1, SYN_ACK.with_ace(2), 0, 0, 1);
        s.send(31.0, 0, Flags::ACK.with_ace(2), 1, 0, 1);
        for n in 0..20u32 {
            s.options.clear();
            s.data(40.0 + f64::from(n), 1 + 1000 * n, 1000);
            let marks = n.min(5);
            if option {
                let count = (1000 * marks).to_be_bytes();
                s.options = [&[172, 8, 0, 0, 1][..], &count[1..]].concat();
            }
            s.send(
                70.0 + f64::from(n),
                1,
                Flags::ACK.with_ace(5 + marks as u8),
                1,
                0,
                1001 + 1000 * n,
            );
        }
        let analysis = s.analyze();
        let all = &one(&analysis).to_server.diagnoses;
        let found = all.iter().find(|d| matches!(d.finding, Finding::Ecn { accurate: true, .. }));
        let evidence = &found.unwrap().evidence;
        let expected = if option { "5000 B with CE" } else { "without its option" };
        assert!(evidence.contains(expected), "{evidence}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_loss_rate_counts_segments_of_super_segments(
        isn in any_numbers(), v6 in any::<bool>(), rtt in 5.0f64..200.0,
    ) {
        let counts = |super_segments| {
            let data = rounds(isn, v6, rtt, super_segments).to_server;
            (data.data_segments, data.lost_segments, data.losses.len())
        };
        prop_assert_eq!(counts(false), (220, 20, 20));
        prop_assert_eq!(counts(true), (220, 20, 20));
    }

    /// A host that repeats data with the same IP identification, upon duplicate ACKs or needlessly.
    #[test]
    fn a_repeat_with_the_same_identification_is_no_copy(
        isn in any_numbers(), rtt in 10.0f64..200.0, from in 1u16..60_000, needless in any::<bool>(), keeps in any::<bool>(),
    ) {
        let mut s = Script::new();
        (s.isn, s.ids) = (isn, Some([from, 7]));
        s.handshake(0.0, rtt);
        let mut at = rtt + 1.0;
        for round in 0..10u32 {
            let first = 1 + round * 4000;
            let id = s.ids.unwrap()[0];
            (0..4).for_each(|n| s.data(at + f64::from(n) * 0.1, first + n * 1000, 1000));
            at += rtt + 0.5;
            if needless {
                s.ack(at, first + 4000);
            } else {
                (0..3).for_each(|n| s.ack(at + f64::from(n) * 0.1, first));
            }
            at += 0.7 * rtt;
            let next = s.ids.unwrap();
            if keeps {
                s.ids = Some([id, next[1]]);
            }
            s.data(at, first, 1000);
            s.ids = Some([if keeps { next[0] } else { next[0] + 1 }, next[1]]);
            at += rtt;
            let twice = [(first, first + 1000)];
            s.ack_sack(at, first + 4000, if needless { &twice } else { &[] });
            at += 1.0;
        }
        let analysis = s.analyze();
        let data = &one(&analysis).to_server;
        prop_assert_eq!((analysis.copied_packets, data.retransmissions.total()), (0, 10));
        prop_assert_eq!(data.retransmissions.needless + data.retransmissions.spurious > 0, needless);
    }

    /// Equal SYNs of a flood; in the control each packet is captured twice.
    #[test]
    fn equal_syns_are_sent_repeatedly(every in 0.01f64..90.0, count in 3u32..60, from in 0u16..5) {
        let mut s = Script::new();
        s.garbage = 0;
        for n in 0..count {
            s.ids = Some([from, 0]);
            s.send(f64::from(n) * every, 0, Flags::SYN, 0, 0, 0);
        }
        let analysis = s.analyze();
        let connection = one(&analysis);
        prop_assert_eq!(analysis.copied_packets, 0);
        prop_assert_eq!((connection.syns, connection.to_server.packets), (count.into(), count.into()));
        prop_assert_eq!(analysis.tcp_packets, u64::from(count));
        let is = |f: &Finding| matches!(f, Finding::Opening { opening: Opening::Unanswered, .. });
        prop_assert!(finding(&connection.to_server, is).is_some());
    }

    /// The server writes each answer in two parts. With Nagle's algorithm the second one waits for the ACK of the first.
    #[test]
    fn nagle_with_delayed_acks(
        isn in any_numbers(), v6 in any::<bool>(), rtt in 0.2f64..20.0, delay in 35.0f64..250.0, nagle in any::<bool>(),
        parts in [50u32..700, 50u32..700],
    ) {
        let mut s = opened(isn, v6, rtt);
        let (mut at, mut asked, mut sent) = (rtt + 1.0, 1, 1);
        for _ in 0..20 {
            s.send(at, 0, Flags::ACK, asked, 120, sent);
            asked += 120;
            at += rtt + 0.1;
            s.send(at, 1, Flags::ACK, sent, parts[0], asked);
            if nagle {
                s.send(at + delay, 0, Flags::ACK, asked, 0, sent + parts[0]);
                at += delay + rtt + 0.05;
            } else {
                at += 0.05;
            }
            s.send(at, 1, Flags::ACK, sent + parts[0], parts[1], asked);
            sent += parts[0] + parts[1];
            s.send(at + 0.05, 0, Flags::ACK, asked, 0, sent);
            at += 3.0;
        }
        let analysis = s.analyze();
        let found = finding(&one(&analysis).to_client, |f| matches!(f, Finding::Nagle { .. }));
        let Some(Finding::Nagle { times, waited, share }) = found else {
            prop_assert!(!nagle);
            return Ok(());
        };
        prop_assert!(nagle && times >= 19, "{times}");
        let least = 19.0 * delay / 1e3;
        prop_assert!(waited > least && share > 0.7, "{waited} {share} {least}");
    }

    /// The outstanding data never exceeds the buffer, whose size is no multiple of the segment size.
    #[test]
    fn a_send_buffer(
        isn in any_numbers(), v6 in any::<bool>(), rtt in 20.0f64..200.0, full in 4u32..60, rest in 1u32..1460,
        written in any::<bool>(), pause in 5.0f64..40.0,
        far in any::<bool>(),
    ) {
        // Far from the sender, a pause of less than the round trip to it looks like a full buffer. What follows within an
        // eighth of the round trip counts as sent at once.
        prop_assume!(!(far && written && pause < 1.125 * rtt));
        // By the handshake the capture is far from the sender; by its data it is not.
        let mut s = opened(isn, v6, if far { 0.02 } else { rtt });
        if far {
            s.port = 4001;
            s.send(0.0, 0, Flags::SYN, 0, 0, 0);
            s.send(0.01, 1, SYN_ACK, 0, 0, 1);
            s.send(rtt, 0, Flags::ACK, 1, 0, 1);
        }
        let delay = if far { 1.5 * rtt } else { rtt };
        let buffer = full * 1460 + rest;
        let mut at = rtt + 1.0;
        for round in 0..30 {
            let first = 1 + round * buffer;
            for n in 0..=full {
                let len = if n == full { rest } else { 1460 };
                if len > 0 {
                    s.data(at + f64::from(n) * 0.001, first + n * 1460, len);
                }
            }
            s.ack(at + delay, first + buffer);
            // The control: the application writes after a pause.
            at += delay + 0.05 + if written { pause } else { 0.0 };
        }
        let analysis = s.analyze();
        let connection = analysis.connections.last().unwrap();
        let found = finding(&connection.to_server, |f| matches!(f, Finding::Limits { .. }));
        let Some(Finding::Limits { application, send_buffer, .. }) = found else { panic!() };
        if written {
            prop_assert!(send_buffer < 0.01 && application > 0.9, "{send_buffer} {application}");
        } else {
            prop_assert!(send_buffer > 0.9 && application < 0.01, "{send_buffer} {application}");
        }
    }

    /// Each ACK frees a part of the buffer that is no multiple of the segment size. By the handshake the capture is at the
    /// receiver. In the control the application writes by a clock.
    #[test]
    fn a_send_buffer_that_each_ack_refills(
        isn in any_numbers(), v6 in any::<bool>(), rtt in 20.0f64..200.0, parts in 10u32..40, rest in 100u32..1300,
        clock in any::<bool>(),
    ) {
        let mut s = opened(isn, v6, 0.02);
        s.port = 4001;
        s.send(0.0, 0, Flags::SYN, 0, 0, 0);
        s.send(0.01, 1, SYN_ACK, 0, 0, 1);
        s.send(0.25 * rtt, 0, Flags::ACK, 1, 0, 1);
        let part = 1460 + rest;
        let write = |s: &mut Script, at: f64, n: u32| {
            s.data(at, 1 + n * part, 1460);
            s.data(at + 0.01, 1461 + n * part, rest);
        };
        let every = rtt / f64::from(parts);
        let begin = 2.0 * rtt;
        (0..parts).for_each(|n| write(&mut s, begin + 0.02 * f64::from(n), n));
        for n in 0..300 {
            let at = begin + rtt + every * f64::from(n);
            s.ack(at, 1 + (n + 1) * part);
            let phase = f64::from(n) * 0.618 % 1.0 * 0.9;
            write(&mut s, at + if clock { phase * every } else { 0.02 }, n + parts);
        }
        let analysis = s.analyze();
        let connection = analysis.connections.last().unwrap();
        let found = finding(&connection.to_server, |f| matches!(f, Finding::Limits { .. }));
        let Some(Finding::Limits { application, send_buffer, .. }) = found else { panic!() };
        if clock {
            prop_assert!(application > 0.5 && send_buffer < 0.4, "{send_buffer} {application}");
        } else {
            prop_assert!(send_buffer > 0.9 && application < 0.05, "{send_buffer} {application}");
        }
    }

    /// The receiver stops reading, and the sender probes its window until the capture ends.
    #[test]
    fn a_window_that_is_closed_to_the_end(
        isn in any_numbers(), v6 in any::<bool>(), rtt in 5.0f64..100.0, probes in 3u32..9, scaled in any::<bool>(),
        reset in any::<bool>(), reads in any::<bool>(),
    ) {
        let mut s = if scaled { opened(isn, v6, rtt) } else { Script::new() };
        let mut at = rtt + 1.0;
        for n in 0..10 {
            s.data(at, 1 + n * 1000, 1000);
            at += rtt;
            s.window[1] = if n == 9 { 0 } else { 8000 };
            s.ack(at, 1 + (n + 1) * 1000);
        }
        let closed = at;
        for n in 0..probes {
            at = closed + 300.0 * f64::from(1 << n);
            s.data(at, 10_000, 0);
            if reads && n + 1 == probes {
                s.window[1] = 8000;
            }
            s.ack(at + rtt, 10_001);
        }
        if reads {
            s.data(at + rtt + 0.1, 10_001, 1000);
        }
        at += 2000.0;
        if reset {
            s.send(at, 1, Flags::RST | Flags::ACK, 1, 0, 10_001);
        } else {
            s.ack(at, if reads { 11_001 } else { 10_001 });
        }
        let analysis = s.analyze();
        let data = &one(&analysis).to_server;
        let found = finding(data, |f| matches!(f, Finding::ClosedWindow { .. }));
        let stall = data.stalls.iter().find(|stall| stall.cause == StallCause::ZeroWindow).unwrap();
        let seconds = stall.to.since(stall.from).as_secs_f64();
        let Some(Finding::ClosedWindow { closed, share, to_end }) = found else { panic!("{data:?}") };
        prop_assert_eq!(to_end, !reads);
        prop_assert!((closed - seconds).abs() < 1e-6 && share > 0.5, "{closed} {share}");
        // The lines state rates and shares of the same time.
        let all = data.duration.unwrap();
        prop_assert!((data.throughput.unwrap() * all - data.unique_bytes as f64 * 8.0).abs() < 1.0);
        prop_assert!(all >= seconds, "{all} {seconds}");
    }

    /// SYNs or SYN-ACKs are lost before the connection opens.
    #[test]
    fn losses_before_the_opening(
        isn in any_numbers(), v6 in any::<bool>(), rtt in 5.0f64..200.0, lost in 0u32..4, back in any::<bool>(),
    ) {
        let mut s = Script::new();
        (s.isn, s.v6) = (isn, v6);
        let last = f64::from((1u32 << lost) - 1) * 1000.0;
        let times = |n: u32| f64::from((1u32 << n) - 1) * 1000.0;
        for n in 0..=lost {
            if n == 0 || !back {
                s.send(times(n), 0, Flags::SYN, 0, 0, 0);
            }
            if back {
                s.send(times(n) + 0.9 * rtt, 1, SYN_ACK, 0, 0, 1);
            }
        }
        if !back {
            s.send(last + 0.9 * rtt, 1, SYN_ACK, 0, 0, 1);
        }
        s.send(last + rtt, 0, Flags::ACK, 1, 0, 1);
        s.data(last + rtt + 1.0, 1, 500);
        s.ack(last + 2.0 * rtt, 501);
        let analysis = s.analyze();
        let connection = one(&analysis);
        prop_assert_eq!(connection.opening, Opening::Handshake);
        let of = if back { &connection.to_client } else { &connection.to_server };
        let found = finding(of, |f| matches!(f, Finding::Opening { .. }));
        prop_assert_eq!(found.is_some(), lost > 0);
        if let Some(Finding::Opening { waited, syns, syn_acks, share, .. }) = found {
            let transmissions = u64::from(lost) + 1;
            prop_assert_eq!((syns, syn_acks), if back { (1, transmissions) } else { (transmissions, 1) });
            prop_assert!((waited - last / 1e3).abs() < 1e-3 && share > 0.6, "{waited} {share}");
        }
    }

    /// Two neighbouring losses are repaired, and a delayed ACK covers both: it echoes the timestamp of the first repair.
    #[test]
    fn a_delayed_ack_echoes_the_earliest_timestamp(
        isn in any_numbers(), rtt in 10.0f64..200.0, delayed in any::<bool>(), arrived in any::<bool>(),
    ) {
        let mut s = Script::new();
        (s.isn, s.sack_permitted) = (isn, [true; 2]);
        s.stamps = Some((1000, 5));
        s.handshake(0.0, rtt);
        let mut at = rtt + 1.0;
        for round in 0..10u32 {
            let first = 1 + round * 6000;
            let stamp = 1000 + round * 1000;
            let echo = |s: &mut Script, echo: u32| s.stamps = Some((echo, echo));
            echo(&mut s, stamp);
            (0..6).for_each(|n| s.data(at + f64::from(n) * 0.1, first + n * 1000, 1000));
            at += rtt + 0.6;
            for n in 3..=6 {
                s.ack_sack(at + f64::from(n) * 0.1, first, &[(first + 2000, first + n * 1000)]);
            }
            echo(&mut s, stamp + 50);
            s.data(at + 0.7, first, 1000);
            echo(&mut s, stamp + 60);
            s.data(at + 0.8, first + 1000, 1000);
            at += rtt + 0.8;
            let first_echo = if arrived { stamp } else { stamp + 50 };
            if !delayed {
                echo(&mut s, first_echo);
                s.ack_sack(at, first + 1000, &[(first + 2000, first + 6000)]);
                echo(&mut s, if arrived { stamp } else { stamp + 60 });
            } else {
                echo(&mut s, first_echo);
            }
            s.ack(at + 0.1, first + 6000);
            at += 1.0;
        }
        let analysis = s.analyze();
        let Retransmissions { needless, .. } = one(&analysis).to_server.retransmissions;
        let expected = match (arrived, delayed) {
            (false, _) => 0,
            // Of the second repair the ACK shows nothing.
            (true, true) => 10,
            (true, false) => 20,
        };
        prop_assert_eq!(needless, expected);
    }

    /// Losses of retransmissions and of first transmissions: an ACK that shows that later ones arrived starts repairs, as in
    /// RACK (RFC 8985), before SACK blocks reach that far.
    #[test]
    fn repairs_of_a_recovery_by_time(isn in any_numbers(), rtt in 20.0f64..150.0, tail in 4u32..20) {
        let mut s = Script::new();
        (s.isn, s.sack_permitted) = (isn, [true; 2]);
        s.handshake(0.0, rtt);
        let mut at = rtt + 1.0;
        (0..4).for_each(|n| s.data(at + f64::from(n) * 0.1, 1 + n * 1000, 1000));
        // The first is lost, the next three arrive; then a tail of segments is lost altogether.
        (0..tail).for_each(|n| s.data(at + 1.0 + f64::from(n) * 0.1, 4001 + n * 1000, 1000));
        at += rtt;
        (2..=4).for_each(|n| s.ack_sack(at + f64::from(n) * 0.1, 1, &[(1001, 1 + n * 1000)]));
        at += 3.0;
        s.data(at, 1, 1000);
        at += rtt;
        s.ack(at, 4001);
        (0..tail).for_each(|n| {
            s.data(at + 0.1 + f64::from(n), 4001 + n * 1000, 1000);
        });
        s.ack(at + f64::from(tail) + rtt, 4001 + tail * 1000);
        let analysis = s.analyze();
        let data = &one(&analysis).to_server;
        let Retransmissions { fast, recovery, .. } = data.retransmissions;
        prop_assert_eq!(fast + recovery, u64::from(tail) + 1, "{:?}", data.retransmissions);
        prop_assert!(data.losses.iter().all(|loss| loss.reported));
    }

    /// A link stalls before the point of capture, or the application pauses: only the timestamps differ.
    #[test]
    fn a_link_that_stalls_before_the_capture(isn in any_numbers(), rtt in 5.0f64..60.0, stalls in any::<bool>()) {
        let mut s = Script::new();
        s.isn = isn;
        s.stamps = Some((1_000_000, 5));
        s.handshake(0.0, rtt);
        let mut at = rtt + 1.0;
        for n in 0..60u32 {
            if n % 20 == 19 {
                at += 900.0;
            }
            let sent = if stalls && n % 20 >= 19 { at - 880.0 } else { at };
            s.stamps = Some((1_000_000 + sent as u32, 5));
            s.data(at, 1 + n * 1000, 1000);
            s.ack(at + 0.9 * rtt, 1 + (n + 1) * 1000);
            at += rtt;
        }
        let analysis = s.analyze();
        let data = &one(&analysis).to_server;
        let is = |f: &Finding| matches!(f, Finding::HeldBack { .. });
        prop_assert_eq!(finding(data, is).is_some(), stalls);
        let cause = if stalls { StallCause::HeldBack } else { StallCause::ApplicationIdle };
        prop_assert!(data.stalls.iter().all(|stall| stall.cause == cause), "{:?}", data.stalls);
    }
}

/// Counters of sequence numbers, acknowledgments and identifications that grow together.
#[test]
fn different_packets_have_different_fingerprints() {
    for (every, step) in [(0.1, 1448u32), (0.01, 1000), (0.25, 512)] {
        let mut s = Script::new();
        s.isn = [2_675_342_405, 1_097_127_993];
        s.ids = Some([48_613, 23_496]);
        s.handshake(0.0, 5.0);
        let segments = 40_000u32;
        for n in 0..segments {
            let at = 10.0 + f64::from(n) * every;
            s.data(at, 1 + n * step, step);
            if n % 2 == 1 {
                s.ack(at + every / 100.0, 1 + (n + 1) * step);
            }
        }
        let analysis = s.analyze();
        assert_eq!(analysis.copied_packets, 0);
    }
}

/// The states of connections that never opened.
#[test]
fn connections_that_never_opened() {
    let state = |s: Script| {
        let analysis = s.analyze();
        let connection = one(&analysis).clone();
        let is = |f: &Finding| matches!(f, Finding::Opening { .. });
        let both = [&connection.to_server, &connection.to_client];
        assert!(both.iter().any(|side| finding(side, is).is_some()), "{connection:?}");
        connection.opening
    };
    let mut refused = Script::new();
    refused.send(0.0, 0, Flags::SYN, 0, 0, 0);
    refused.send(5.0, 1, Flags::RST | Flags::ACK, 0, 0, 1);
    assert_eq!(state(refused), Opening::Refused);
    let mut silent = Script::new();
    (0..3).for_each(|n| silent.send(f64::from(n) * 1000.0, 0, Flags::SYN, 0, 0, 0));
    assert_eq!(state(silent), Opening::Unanswered);
    let mut half = Script::new();
    for n in 0..3 {
        half.send(f64::from(n) * 1000.0, 0, Flags::SYN, 0, 0, 0);
        half.send(f64::from(n) * 1000.0 + 20.0, 1, SYN_ACK, 0, 0, 1);
    }
    assert_eq!(state(half), Opening::Unconfirmed);
}
