//! Our own definitions: kinds of retransmissions, losses, stalls.

use crate::common::Script;
use lasthop_analyze::{
    Cause, Closing, Config, LossLocation, Opening, PointKind, Retransmission, StallCause,
    analyze_capture,
};
use lasthop_proto::wire::Flags;
use proptest::prelude::*;

#[test]
fn one_fast_retransmission_has_one_loss_of_unclear_cause() {
    let mut s = Script::new();
    s.handshake(0.0, 40.0);
    (0..8).for_each(|i| s.data(50.0 + f64::from(i), 1 + 1000 * i, 1000));
    s.ack(90.0, 1001);
    s.ack(91.0, 2001);
    (0..5).for_each(|i| s.ack_sack(93.0 + f64::from(i), 2001, &[(3001, 4001 + 1000 * i)]));
    s.data(96.5, 2001, 1000);
    s.ack(137.0, 8001);
    let analysis = s.analyze();
    let sent = &analysis.connections[0].to_server;
    assert_eq!(sent.retransmissions.fast, 1);
    assert_eq!(sent.retransmissions.total(), 1);
    assert_eq!((sent.bytes, sent.unique_bytes), (9000, 8000));
    assert_eq!(sent.goodput, Some(8.0 / 9.0));
    let loss = &sent.losses[0];
    assert_eq!((loss.seen, loss.repair), (LossLocation::Before, Retransmission::Fast));
    assert_eq!((loss.burst, loss.offset), (1, 2001));
    assert_eq!(sent.verdict.cause, Cause::Unclear);
    // Two ACKs and five SACK blocks; the ACK over the retransmission gives none.
    assert_eq!(sent.rtt.unwrap().samples, 7);
    let answers = &analysis.connections[0].to_client;
    assert_eq!((answers.sack_acks, answers.duplicate_acks), (5, 5));
}

#[test]
fn losses_of_one_episode_are_a_burst() {
    let mut s = Script::new();
    s.handshake(0.0, 40.0);
    let mut at = 50.0;
    for i in 0..10u32 {
        s.data(at, 1 + 1000 * i, 1000);
        at += 40.0 + 15.0 * f64::from(i);
        s.ack(at, 1001 + 1000 * i);
    }
    (0..6).for_each(|i| s.data(at + f64::from(i), 10_001 + 1000 * i, 1000));
    (0..4).for_each(|i| {
        s.ack_sack(at + 180.0 + f64::from(i), 10_001, &[(12_001, 13_001 + 1000 * i)]);
    });
    s.data(at + 184.0, 10_001, 1000);
    s.data(at + 185.0, 11_001, 1000);
    s.ack(at + 370.0, 16_001);
    let sent = &s.analyze().connections[0].to_server;
    let kinds = sent.retransmissions;
    assert_eq!((kinds.fast, kinds.recovery, kinds.total()), (1, 1, 2));
    assert!(sent.losses.iter().all(|loss| loss.burst == 2 && loss.rtt_before > Some(0.15)));
    assert_eq!(sent.verdict.losses, 1, "the second is not independent of the first");
}

#[test]
fn a_timeout_its_stall_and_later_repairs_are_classified() {
    let mut s = Script::new();
    s.handshake(0.0, 40.0);
    (0..3).for_each(|i| s.data(50.0 + f64::from(i), 1 + 1000 * i, 1000));
    s.data(300.0, 1, 1000);
    s.ack(340.0, 1001);
    s.data(341.0, 1001, 1000);
    s.ack(381.0, 3001);
    let sent = &s.analyze().connections[0].to_server;
    let kinds = sent.retransmissions;
    assert_eq!((kinds.timeout, kinds.after_timeout, kinds.total()), (1, 1, 2));
    assert_eq!(sent.stalls.len(), 1);
    assert_eq!((sent.stalls[0].cause, sent.stalls[0].outstanding), (StallCause::Timeout, 3000));
    let count = |kind| sent.points.iter().filter(|point| point.kind == kind).count();
    assert_eq!((count(PointKind::Data), count(PointKind::Retransmission)), (3, 2));
}

#[test]
fn timestamps_and_dsack_unmask_a_needless_timeout() {
    let mut s = Script::new();
    s.handshake(0.0, 40.0);
    s.stamps = Some((100, 0));
    s.data(50.0, 1, 1000);
    s.stamps = Some((300, 0));
    s.data(300.0, 1, 1000);
    s.stamps = Some((900, 100));
    s.ack(310.0, 1001);
    s.stamps = Some((901, 100));
    s.ack_sack(320.0, 1001, &[(1, 1001)]);
    let analysis = s.analyze();
    let kinds = analysis.connections[0].to_server.retransmissions;
    assert_eq!((kinds.timeout, kinds.spurious_by_timestamps, kinds.spurious_by_dsack), (1, 1, 1));
    assert_eq!(analysis.connections[0].to_client.dsacks, 1);
}

#[test]
fn old_echoes_but_not_early_acks_mark_needless_repairs() {
    for stamped in [false, true] {
        let mut s = Script::new();
        s.handshake(0.0, 40.0);
        s.stamps = stamped.then_some((100, 0));
        (0..3).for_each(|i| s.data(50.0 + f64::from(i), 1 + 1000 * i, 1000));
        s.stamps = stamped.then_some((400, 0));
        s.data(400.0, 1, 1000);
        s.stamps = stamped.then_some((900, 100));
        s.ack(if stamped { 450.0 } else { 405.0 }, 3001);
        let sent = &s.analyze().connections[0].to_server;
        let expected = if stamped { (1, 0) } else { (0, 1) };
        // Without an RTT sample before, nothing is known to be too soon; the echo speaks for itself.
        assert_eq!((sent.retransmissions.needless, sent.losses.len() as u64), expected);
    }
}

#[test]
fn at_the_receiver_gap_age_separates_reordering_from_loss() {
    for (delay, expected) in [(5.0, (1, 0)), (60.0, (0, 1))] {
        let mut s = Script::new();
        s.handshake(0.0, 40.0);
        s.data(50.0, 1, 1000);
        s.data(51.0, 2001, 1000);
        s.ack(51.1, 1001);
        s.data(52.0, 3001, 1000);
        s.ack(52.1, 1001);
        s.data(52.0 + delay, 1001, 1000);
        let sent = &s.analyze().connections[0].to_server;
        assert_eq!((sent.out_of_order, sent.retransmissions.total()), expected);
        assert_eq!((sent.bytes, sent.unique_bytes), (4000, 4000));
        assert!(sent.losses.iter().all(|loss| loss.seen == LossLocation::Never));
    }
}

#[test]
fn stalls_are_classified_by_cause() {
    let mut s = Script::new();
    s.handshake(0.0, 10.0);
    s.data(20.0, 1, 1000);
    s.ack(30.0, 1001);
    s.data(1000.0, 1001, 1000); // nothing was outstanding
    s.ack(1500.0, 2001);
    s.data(1501.0, 2001, 1000); // the ACK came late
    s.window[1] = 0;
    s.ack(1511.0, 3001);
    s.window[1] = 8000;
    s.ack(2500.0, 3001);
    s.data(2501.0, 3001, 1000);
    let sent = &s.analyze().connections[0].to_server;
    let causes: Vec<_> = sent.stalls.iter().map(|stall| stall.cause).collect();
    assert_eq!(
        causes,
        [StallCause::ApplicationIdle, StallCause::AckDelayed, StallCause::ZeroWindow]
    );
}

#[test]
fn openings_and_closings() {
    let mut s = Script::new();
    s.handshake(0.0, 10.0);
    s.send(20.0, 0, Flags::FIN | Flags::ACK, 1, 0, 1);
    s.send(30.0, 1, Flags::FIN | Flags::ACK, 1, 0, 2);
    s.port += 1;
    s.send(40.0, 1, Flags::SYN | Flags::ACK, 0, 0, 1);
    s.send(41.0, 0, Flags::RST, 1, 0, 0);
    s.port += 1;
    s.data(50.0, 777, 10);
    let analysis = s.analyze();
    let [a, b, c] = &analysis.connections[..] else { panic!("three connections") };
    assert_eq!((a.opening, a.closing), (Opening::Handshake, Closing::Fin));
    assert_eq!(a.handshake_rtt.unwrap().as_secs_f64(), 0.01);
    assert!(a.syn_ack.is_some_and(|part| part < a.handshake_rtt.unwrap()), "{:?}", a.syn_ack);
    assert_eq!(b.syn_ack, None, "its SYN was not captured");
    assert_eq!((b.closing, b.client.port), (Closing::Reset, 4001), "the client is who opens");
    assert_eq!((c.opening, c.closing), (Opening::MidConnection, Closing::Open));
    assert_eq!(c.to_server.points[0].offset, 1);
}

#[test]
fn limits_hold_and_omissions_are_counted() {
    let mut s = Script::new();
    for i in 0..50u32 {
        s.data(f64::from(i) * 300.0, 1, 1000);
    }
    s.port += 1;
    s.data(20_000.0, 1, 10);
    let config = Config { connections: 1, points: 10, losses: 3, ..Config::default() };
    let analysis = analyze_capture(&s.finish(), config).unwrap();
    assert_eq!((analysis.connections.len(), analysis.ignored_packets), (1, 1));
    let sent = &analysis.connections[0].to_server;
    assert_eq!((sent.points.len(), sent.points_omitted), (10, 40));
    assert_eq!((sent.losses.len(), sent.losses_omitted), (3, 46));
    assert_eq!((sent.stalls.len(), sent.stalls_omitted), (3, 46));
}

#[test]
fn a_broken_capture_is_analysed_up_to_the_fault() {
    let capture = include_bytes!("data/real.pcap");
    let cut = analyze_capture(&capture[..capture.len() / 2], Config::default()).unwrap();
    assert!(cut.truncated && cut.packets > 100);
    let mut torn = capture.to_vec();
    let at = 24 + 16 + 60; // the second record
    torn[at + 8..at + 12].fill(0xff);
    let analysis = analyze_capture(&torn, Config::default()).unwrap();
    assert!(analysis.packets == 1 && analysis.error.is_some_and(|e| e.contains("at byte")));
}

#[test]
fn a_real_transfer_is_explained() {
    // 1 MB at 8 Mbit/s over 2 x 10 ms, a queue of 30 packets, 2 % random loss (tests/data/make.py).
    let capture = include_bytes!("data/real.pcap");
    let analysis = analyze_capture(capture, Config::default()).unwrap();
    let connection = &analysis.connections[0];
    let sent = &connection.to_server;
    assert_eq!((connection.opening, connection.closing), (Opening::Handshake, Closing::Fin));
    assert_eq!(sent.unique_bytes, 1_000_000);
    assert!(sent.rtt.unwrap().min > 0.020 && sent.rtt.unwrap().max < 0.1);
    let throughput = sent.throughput.unwrap();
    assert!((5e6..8e6).contains(&throughput), "{throughput}");

    // Packets that the link dropped, by its trace: sequence number and cause.
    let syn = lasthop_observe::capture::open(capture).unwrap().next().unwrap().unwrap();
    let syn = syn.view(false).unwrap().unwrap();
    let lasthop_proto::wire::Transport::Tcp(syn) = syn.transport else { panic!("TCP") };
    let mut truth: Vec<(i64, &str)> = include_str!("data/real.truth")
        .lines()
        .map(|line| {
            let (seq, cause) = line.split_once(' ').unwrap();
            (i64::from(seq.parse::<u32>().unwrap().wrapping_sub(syn.seq.0)), cause)
        })
        .collect();
    assert_eq!(sent.retransmissions.total(), truth.len() as u64, "one for each loss");
    assert_eq!((sent.retransmissions.timeout, sent.retransmissions.needless), (0, 0));
    for loss in &sent.losses {
        let at = truth.iter().position(|(offset, _)| *offset == loss.offset).expect("a real loss");
        truth.remove(at);
    }
    assert!(truth.is_empty(), "{truth:?}");
    // The radio lost 18 of the 24, the queue the others.
    let verdict = &sent.verdict;
    assert!(matches!(verdict.cause, Cause::Radio | Cause::Both | Cause::Unclear), "{verdict:?}");
}

proptest! {
    #[test]
    fn byte_and_packet_counts_of_any_exchange_are_consistent(steps in prop::collection::vec(
        (0u8..5, 0usize..2, any::<u8>(), 0u32..20_000, 0u32..1500, 0u32..20_000), 0..80)
    ) {
        let mut s = Script::new();
        let mut at = 0.0;
        for (wait, from, flags, seq, len, ack) in steps {
            at += f64::from(wait) * 70.0;
            s.sack = if flags & 3 == 3 { vec![(ack, seq), (seq, ack + 5)] } else { Vec::new() };
            s.window[from] = u16::from(flags) << 4;
            s.send(at, from, Flags(flags.into()), seq, len, ack);
        }
        for c in &s.analyze().connections {
            for d in [&c.to_server, &c.to_client] {
                prop_assert!(d.unique_bytes <= d.bytes);
                prop_assert!(d.data_packets <= d.packets);
                prop_assert!(d.retransmissions.total() + d.out_of_order <= d.data_packets);
            }
        }
    }

    #[test]
    fn corrupted_captures_do_not_panic(changes in prop::collection::vec((any::<usize>(), any::<u8>()), 1..40)) {
        let mut capture = include_bytes!("data/real.pcap")[..20_000].to_vec();
        for (at, byte) in changes {
            let at = 24 + at % (capture.len() - 24);
            capture[at] = byte;
        }
        let _ = analyze_capture(&capture, Config { verify: true, ..Config::default() });
    }
}

/// Captures as 0.1.0 wrote them (`kept/capture` in the tests of the command), of a run with two losses: all of its
/// packets, and the dropped ones with the reason in a comment. They must be readable after changes of the format.
#[test]
fn captures_of_an_earlier_program_are_read() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../cli/tests/data/kept/capture/");
    let read = |name: &str| {
        let bytes = std::fs::read(format!("{folder}{name}")).expect("it is there");
        analyze_capture(&bytes, Config::default()).expect("it is read")
    };
    let all = read("radio.pcapng");
    let sent = &all.connections[0].to_server;
    assert_eq!((all.packets, all.malformed_packets, all.truncated), (28, 0, false));
    assert_eq!((sent.bytes, sent.unique_bytes), (22_920, 20_000));
    assert_eq!((sent.retransmissions.fast, sent.retransmissions.timeout), (1, 1));
    let dropped = read("drops.pcapng");
    assert_eq!((dropped.packets, dropped.connections[0].to_server.bytes), (2, 2_920));
}
