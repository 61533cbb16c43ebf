//! The limit of a sender where its segments are smaller than the handshake allows, and where the receiver's window is
//! the limit.

use crate::common::Script;
use crate::packets::{any_numbers, one};
use lasthop_analyze::{Analysis, Diagnosis, Finding};
use lasthop_proto::wire::Flags;
use proptest::prelude::*;

/// The limit of the data from the client.
fn limit(analysis: &Analysis) -> Diagnosis {
    let mut diagnoses = one(analysis).to_server.diagnoses.iter();
    diagnoses.find(|d| matches!(d.finding, Finding::Limits { .. })).unwrap().clone()
}

/// Shares of the receiver's window, of a small one, of the application and of the congestion window.
fn shares(diagnosis: &Diagnosis) -> [f64; 4] {
    let Finding::Limits { receive_window, small_window, application, congestion_window, .. } =
        diagnosis.finding
    else {
        panic!("{diagnosis}")
    };
    [receive_window, small_window, application, congestion_window]
}

/// An open connection with scaled windows, captured at the client or at the server.
fn opened(isn: [u32; 2], v6: bool, rtt: f64, near: bool) -> Script {
    let mut s = Script::new();
    (s.isn, s.v6) = (isn, v6);
    (s.mss, s.scale, s.window) = ([Some(1460); 2], [Some(7); 2], [60_000; 2]);
    s.send(0.0, 0, Flags::SYN, 0, 0, 0);
    s.send(if near { rtt } else { 0.01 }, 1, Flags::SYN | Flags::ACK, 0, 0, 1);
    s.send(rtt + 0.02, 0, Flags::ACK, 1, 0, 1);
    s
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The sender knows that the path passes less than the segment size of the handshake.
    #[test]
    fn segments_of_the_path_mtu_are_full(
        isn in any_numbers(), v6 in any::<bool>(), rtt in 20.0f64..300.0, size in 1200u32..1460,
        segments in 1u32..20, near in any::<bool>(),
    ) {
        let mut s = opened(isn, v6, rtt, near);
        let len = size * segments;
        let mut at = rtt + 1.0;
        for round in 0..10 {
            let first = 1 + round * 4 * len;
            (0..4).for_each(|n| s.data(at + f64::from(n) * 0.01, first + n * len, len));
            s.ack(at + 0.05 + if near { rtt } else { 0.0 }, first + 4 * len);
            at += rtt + 0.1;
        }
        let [.., congestion_window] = shares(&limit(&s.analyze()));
        prop_assert!(congestion_window > 0.8, "{congestion_window}");
    }

    /// Loopback interfaces have segments that are larger than the window.
    #[test]
    fn a_window_below_a_segment_does_not_limit_messages(
        isn in any_numbers(), v6 in any::<bool>(), len in 10u32..20_000, pause in 0.1f64..900.0,
    ) {
        let mut s = Script::new();
        (s.isn, s.v6) = (isn, v6);
        (s.mss, s.window) = ([Some(65_483); 2], [43_690; 2]);
        s.handshake(0.0, 0.03);
        for n in 0..25 {
            let at = 1.0 + f64::from(n) * pause;
            s.data(at, 1 + n * len, len);
            s.ack(at + 0.01, 1 + (n + 1) * len);
        }
        let [receive_window, _, application, _] = shares(&limit(&s.analyze()));
        prop_assert!(receive_window < 0.2, "{receive_window}");
        prop_assert!(application > 0.8, "{application}");
    }

    /// The application writes messages of one size, and each leaves at once.
    #[test]
    fn messages_of_one_size_are_those_of_an_application(
        isn in any_numbers(), v6 in any::<bool>(), size in 1200u32..1460, every in 3.0f64..30.0,
    ) {
        let mut s = opened(isn, v6, 40.0, true);
        let both = |n: u32| {
            let at = 100.0 + every * f64::from(n);
            [(at, n, true), (at + 40.0, n, false)]
        };
        let mut packets: Vec<(f64, u32, bool)> = (0..40).flat_map(both).collect();
        packets.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (at, n, is_data) in packets {
            if is_data { s.data(at, 1 + size * n, size) } else { s.ack(at, 1 + size * (n + 1)) }
        }
        let [_, _, application, _] = shares(&limit(&s.analyze()));
        prop_assert!(application > 0.9, "{application}");
    }

    /// Both ends scale their windows, and the receiver's one is small: the option is no remedy.
    #[test]
    fn a_small_receive_buffer_with_a_scale(
        isn in any_numbers(), v6 in any::<bool>(), rtt in 20.0f64..300.0, packets in 4u32..40, near in any::<bool>(),
    ) {
        let mut s = opened(isn, v6, rtt, near);
        s.window[1] = (packets * 1460).div_ceil(128) as u16;
        let mut at = rtt + 1.0;
        for round in 0..10 {
            let first = 1 + round * packets * 1460;
            (0..packets).for_each(|n| s.data(at + f64::from(n) * 0.001, first + n * 1460, 1460));
            s.ack(at + 0.05 + if near { rtt } else { 0.0 }, first + packets * 1460);
            at += rtt + 0.1;
        }
        let limit = limit(&s.analyze());
        let [receive_window, small_window, ..] = shares(&limit);
        prop_assert!(receive_window > 0.8 && small_window < 0.1, "{limit}");
        prop_assert!(limit.remedy.contains("receive buffer") && !limit.remedy.contains("scaling"), "{limit}");
    }

    /// The receiving application pauses while its buffer is full.
    #[test]
    fn a_receiving_application_that_reads_slowly(
        isn in any_numbers(), v6 in any::<bool>(), rtt in 20.0f64..100.0, pause in 400.0f64..2000.0,
        left in 0u16..10,
    ) {
        let mut s = opened(isn, v6, rtt, true);
        s.window[1] = 512;
        s.ack(rtt + 0.5, 1);
        let mut at = rtt + 1.0;
        for round in 0..6 {
            let first = 1 + round * 44 * 1460;
            (0..44).for_each(|n| s.data(at + f64::from(n) * 0.001, first + n * 1460, 1460));
            s.window[1] = left;
            s.ack(at + rtt, first + 44 * 1460);
            s.window[1] = 512;
            s.ack(at + rtt + pause, first + 44 * 1460);
            at += rtt + pause + 0.1;
        }
        let limit = limit(&s.analyze());
        let [receive_window, small_window, ..] = shares(&limit);
        prop_assert!(small_window > 0.7 && receive_window > small_window, "{limit}");
        prop_assert!(limit.remedy.contains("receiving application"), "{limit}");
    }

    /// The window exceeds the bandwidth-delay product, so the link has a queue. A larger window only makes this queue longer.
    #[test]
    fn a_window_that_fills_the_queue_of_the_link(
        isn in any_numbers(), v6 in any::<bool>(), rtt in 10.0f64..50.0, packets in 20u32..40, scaled in any::<bool>(),
        is_limit in any::<bool>(),
    ) {
        let mut s = opened(isn, v6, rtt, true);
        if !scaled {
            s = Script::new();
            (s.isn, s.v6) = (isn, v6);
            s.mss = [Some(1460); 2];
            s.handshake(0.0, rtt);
        }
        s.window[1] = match (is_limit, scaled) {
            (true, true) => (packets * 1460).div_ceil(128) as u16,
            (true, false) => (packets * 1460) as u16,
            _ => 60_000,
        };
        // A packet leaves the link every 5 ms, and its ACK lets the next one out.
        let sent = |n: u32| rtt + 1.0 + 5.0 * f64::from((n + 1).saturating_sub(packets)) + if n < packets { 0.0 } else { rtt };
        let both = |n: u32| [(sent(n), n, true), (rtt + 1.0 + 5.0 * f64::from(n + 1) + rtt - 0.001, n, false)];
        let mut all: Vec<(f64, u32, bool)> = (0..400).flat_map(both).collect();
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (at, n, is_data) in all {
            if is_data { s.data(at, 1 + 1460 * n, 1460) } else { s.ack(at, 1 + 1460 * (n + 1)) }
        }
        let limit = limit(&s.analyze());
        let [receive_window, .., congestion_window] = shares(&limit);
        prop_assert!(if is_limit { receive_window } else { congestion_window } > 0.8, "{limit}");
        prop_assert!(limit.remedy.contains("link is full"), "{limit}");
    }

    /// Neither a loss nor a queue, and constant outstanding data: the buffer of the sender is the limit.
    #[test]
    fn a_sender_below_the_rate_of_its_link(
        isn in any_numbers(), v6 in any::<bool>(), rtt in 20.0f64..100.0, near in any::<bool>(),
    ) {
        let mut s = opened(isn, v6, rtt, near);
        let mut at = rtt + 1.0;
        for round in 0..30 {
            (0..8).for_each(|n| s.data(at + f64::from(n) * 0.001, 1 + 1460 * (8 * round + n), 1460));
            s.ack(at + 0.05 + if near { rtt } else { 0.0 }, 1 + 1460 * (8 * round + 8));
            at += rtt + 0.1;
        }
        let limit = limit(&s.analyze());
        prop_assert!(limit.remedy.contains("send buffer"), "{limit}");
        prop_assert!(limit.evidence.contains("always 11680 B"), "{limit}");
    }
}
