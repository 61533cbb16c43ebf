use super::*;
use crate::tcp::rtt::Beat;
use crate::tcp::settings::Beats;
use crate::units::Span;
use crate::wire::Seq;
use proptest::prelude::*;

fn receiver() -> Receiver {
    let config = TcpConfig { recv_buffer: 65_535, ..TcpConfig::rfc() };
    let beat = Beat::new(Span::millis(200), Span::ZERO);
    let config = Settings::new(config, Beats { slow: beat, fast: beat });
    let mut r = Receiver::new(&config);
    r.synchronise(&config, 1000, 1000);
    r
}

fn body(from: u64, len: u32) -> Body {
    Body::Pattern { stream: 1, offset: from - 1, len }
}

#[test]
fn sack_blocks_are_newest_first() {
    let mut r = receiver();
    for from in [2001, 4001, 6001] {
        r.take(Time(0), from, body(from, 1000), false);
    }
    let blocks = r.sack(Seq(0), 3);
    let starts: Vec<u32> = blocks.as_slice().iter().map(|b| b.0.0).collect();
    assert_eq!(starts, [6001, 4001, 2001]);
}

/// The blocks that a receiver reports, by their positions.
fn blocks(r: &Receiver) -> Vec<(u32, u32)> {
    r.sack(Seq(0), 4).as_slice().iter().map(|(left, right)| (left.0, right.0)).collect()
}

//= rfc2018#section-3: a block is a range of sequence numbers, of which a FIN takes one
#[test]
fn sack_blocks_include_the_fin() {
    // Segments behind a hole, as first position, length and FIN, and the blocks after the last one.
    type Segments = &'static [(u64, u32, bool)];
    let cases: [(Segments, &[(u32, u32)]); 7] = [
        (&[(1001, 500, true)], &[(1001, 1502)]),
        (&[(1001, 0, true)], &[(1001, 1002)]),
        (&[(1001, 500, false), (1501, 0, true)], &[(1001, 1502)]),
        (&[(1501, 0, true), (1001, 500, false)], &[(1001, 1502)]),
        (&[(1501, 0, true), (1001, 400, false)], &[(1001, 1401), (1501, 1502)]),
        (&[(1001, 400, false), (1501, 0, true)], &[(1501, 1502), (1001, 1401)]),
        (&[(1001, 400, false), (1501, 9, true)], &[(1501, 1511), (1001, 1401)]),
    ];
    for (segments, expected) in cases {
        let mut r = receiver();
        for (from, len, fin) in segments {
            r.take(Time(0), *from, body(*from, *len), *fin);
        }
        assert_eq!(blocks(&r), expected, "{segments:?}");
        let mut other = receiver();
        other.resume(Time(0), r.inbound());
        let last = expected.iter().max().unwrap();
        assert!(blocks(&other).contains(last), "{segments:?} at another base station");
        // The hole is filled up to the FIN, so no block remains to be reported.
        let end = segments.iter().map(|s| s.0 + u64::from(s.1)).max().unwrap();
        let taken = r.take(Time(0), 1, body(1, (end - 1) as u32), false);
        assert!(taken.fin && !taken.corrupted, "{segments:?}");
        assert_eq!((blocks(&r).len(), r.out_of_order.is_none(), r.nxt), (0, true, end + 1));
    }
}

#[test]
fn a_lone_fin_is_sacked_until_all_data_arrives() {
    let mut r = receiver();
    r.take(Time(0), 3001, body(3001, 0), true);
    r.take(Time(0), 1001, body(1001, 1000), false);
    r.take(Time(0), 1, body(1, 1000), false);
    assert_eq!((r.nxt, blocks(&r)), (2001, vec![(3001, 3002)]));
    assert!(r.snack(32).is_some_and(|snack| snack.size == 1), "one segment is missing below it");
    assert!(r.take(Time(0), 2001, body(2001, 1000), false).fin);
}

//= rfc2883#section-4: the duplicate comes first, and a FIN is part of it
#[test]
fn a_dsack_block_includes_the_fin_of_the_duplicate() {
    for (len, twice) in [(500, (1001, 1502)), (0, (1001, 1002))] {
        let config = TcpConfig { dsack: true, ..TcpConfig::rfc() };
        let beat = Beat::new(Span::millis(200), Span::ZERO);
        let config = Settings::new(config, Beats { slow: beat, fast: beat });
        let mut r = Receiver::new(&config);
        r.synchronise(&config, 1000, 1000);
        for _ in 0..2 {
            r.acked();
            r.take(Time(0), 1001, body(1001, len), true);
        }
        assert_eq!(blocks(&r), [twice, (1001, 1002 + len)], "{len} bytes");
    }
}

#[test]
fn a_corrupted_byte_is_detected() {
    let mut r = receiver();
    assert!(!r.take(Time(0), 1, body(1, 10), false).corrupted);
    assert!(r.take(Time(0), 11, body(12, 10), false).corrupted);
}

#[test]
fn only_the_first_consistent_fin_ends_the_stream() {
    let mut r = receiver();
    r.take(Time(0), 2001, body(2001, 1000), false);
    // Data beyond this FIN has arrived, so the FIN is inconsistent.
    let taken = r.take(Time(0), 1, body(1, 500), true);
    assert!(!taken.fin && taken.delivered == 500);
    assert_eq!(r.take(Time(0), 501, body(501, 1500), false).delivered, 2500);
    // A FIN behind a hole: data beyond it is ignored, and so is another FIN.
    r.take(Time(0), 3501, body(3501, 500), true);
    r.take(Time(0), 3801, body(3801, 1000), true);
    r.take(Time(0), 5001, body(5001, 1000), false);
    let taken = r.take(Time(0), 3001, body(3001, 500), false);
    assert!(taken.fin && taken.delivered == 1000);
    let taken = r.take(Time(0), 4002, body(4002, 100), true);
    assert!(!taken.fin && taken.delivered == 0);
}

/// A receiver with this buffer that has accepted `segments` segments of 1000 bytes, which its program has not read.
fn unread(buffer: u32, segments: u64) -> Receiver {
    let mut r = receiver();
    let config = TcpConfig { recv_buffer: buffer, ..TcpConfig::rfc() };
    (r.buffer, r.reading) = (buffer, false);
    r.synchronise(&config, 1000, 1000);
    for n in 0..segments {
        r.take(Time(0), 1 + n * 1000, body(1 + n * 1000, 1000), false);
    }
    r.acked();
    r
}

//= rfc9293#section-3.8.6.2.2
#[test]
fn reading_enough_bytes_makes_a_window_update_due() {
    for (buffer, segments, least) in [(65_535, 3, 2000), (3000, 2, 1500), (3000, 3, 1000)] {
        let mut r = unread(buffer, segments);
        r.read(Time::ZERO, least - 1);
        assert!(!r.ack_due(), "{buffer}, {segments}");
        r.read(Time::ZERO, 1);
        assert!(r.ack_due(), "{buffer}, {segments}");
    }
}

//= rfc9293#section-3.8.6.2.2: by the smaller of half the buffer and one segment
#[test]
fn the_window_closes_with_data_and_avoids_silly_windows() {
    for (buffer, least) in [(3000, 1000), (1000, 500)] {
        let mut r = unread(buffer, 0);
        assert_eq!((r.window(), r.edge()), (buffer.into(), 1 + u64::from(buffer)));
        r.take(Time(0), 1, body(1, buffer), false);
        assert_eq!((r.window(), r.has_read()), (0, false));
        r.read(Time::ZERO, least - 1);
        assert_eq!(r.window(), 0, "a silly window");
        r.read(Time::ZERO, 1);
        assert_eq!(r.window(), least);
        r.read(Time::ZERO, u64::from(buffer) - least);
        assert_eq!((r.window(), r.has_read()), (buffer.into(), true));
    }
}

//= rfc5681#section-4.2: at least every second full-sized segment, within 500 ms
#[test]
fn every_second_segment_is_acknowledged_and_a_lone_one_by_the_timer() {
    for (len, due) in [(1, false), (1000, false), (1001, true), (2000, true)] {
        let mut r = receiver();
        r.take(Time(5), 1, body(1, len), false);
        assert_eq!((r.ack_due(), r.next_wake().is_none()), (due, due), "{len}");
    }
    let mut r = receiver();
    let timeout = r.settings.delayed_ack.timeout;
    r.take(Time(5), 1, body(1, 1000), false);
    let at = r.next_wake().unwrap();
    assert_eq!(at, Time(5) + timeout);
    r.on_wake(Time(at.0 - 1));
    assert!(!r.ack_due());
    r.on_wake(at);
    assert!(r.ack_due() && r.next_wake().is_none());
    r.acked();
    // The count restarts.
    r.take(at, 1001, body(1001, 1000), false);
    assert!(!r.ack_due() && r.next_wake() == Some(at + timeout));
    r.take(at, 2001, body(2001, 1000), false);
    assert!(r.ack_due());
    r.stop();
    assert!(!r.ack_due() && r.next_wake().is_none());
}

//= rfc5681#section-4.2: immediate ACK for out-of-order data and for data that fills a gap
#[test]
fn gaps_cause_immediate_acks_and_data_is_buffered_once() {
    let mut r = receiver();
    let steps = [
        // from, length, delivered, kept behind the hole
        (2001, 1000, 0, 1000),
        (1501, 2000, 0, 2000),
        (1501, 2000, 0, 2000),
        (3501, 1, 0, 2001),
        (4001, 500, 0, 2501),
        (1, 1000, 1000, 2501),
        (1001, 500, 2501, 500),
        (3502, 499, 999, 0),
    ];
    for (from, len, delivered, held) in steps {
        let taken = r.take(Time(0), from, body(from, len), false);
        assert_eq!(
            (taken.delivered, r.held(), taken.corrupted),
            (delivered, held, false),
            "{from}"
        );
        assert!(r.ack_due(), "{from}");
        assert_eq!(r.has_no_gap(), held == 0, "{from}");
        r.acked();
    }
    assert_eq!((r.nxt, r.delivered()), (4501, 4500));
    r.take(Time(0), 4501, body(4501, 9), true);
    assert!(r.ack_due() && r.is_finished());
    assert_eq!((r.nxt, r.delivered()), (4511, 4509), "a FIN is no byte");
}

#[test]
fn the_number_of_out_of_order_pieces_is_bounded() {
    let mut r = receiver();
    for n in 1..=PIECES_MAX as u64 + 5 {
        r.take(Time(0), 1 + 2 * n, body(1 + 2 * n, 1), false);
    }
    assert_eq!(r.held(), PIECES_MAX as u64);
}

proptest! {
    #[test]
    fn every_byte_is_delivered_once_and_in_order(pieces in prop::collection::vec((0u64..300, 1u32..60), 1..80)) {
        let mut r = receiver();
        let mut have = [false; 400];
        let mut delivered = 0;
        for (at, len) in pieces {
            let from = 1 + at;
            have[at as usize..at as usize + len as usize].fill(true);
            // The connection removes bytes that were received before, and so does this test.
            let cut = r.nxt.saturating_sub(from).min(len.into()) as u32;
            let part = body(from, len).slice(cut, u32::MAX);
            if part.is_empty() { continue; }
            let taken = r.take(Time(0), from + u64::from(cut), part, false);
            prop_assert!(!taken.corrupted);
            delivered += taken.delivered;
            let contiguous = have.iter().take_while(|h| **h).count();
            prop_assert_eq!(delivered as usize, contiguous);
        }
    }
}

/// A buffer of two segments: the program's read doubles the window after each of them.
#[test]
fn a_window_that_a_read_doubles_is_announced_at_once() {
    let config = TcpConfig {
        quick_acks: true,
        mss: 536,
        recv_buffer: 2304,
        recv_memory: Some([2304, 2304]),
        ..TcpConfig::rfc()
    };
    let beat = Beat::new(Span::millis(200), Span::ZERO);
    let config = Settings::new(config, Beats { slow: beat, fast: beat });
    let mut r = Receiver::new(&config);
    r.open_window(536, 1, true);
    r.synchronise(&config, 536, 536);
    r.established(Time(0));
    for i in 0..60 {
        let (at, from) = (Time::ZERO + Span::millis(50 * i), 1 + 536 * i);
        r.take(at, from, body(from, 536), false);
        assert!(r.ack_due(), "segment {i}");
        r.window();
        r.acked();
    }
}
