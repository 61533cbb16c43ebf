//! Two captures of one path.

use crate::common::Script;
use lasthop_analyze::{Config, Matched, match_captures};
use lasthop_proto::wire::Flags;

/// What both captures see of a transfer, the second one `delay` milliseconds later and by its `clock`. The segments in
/// `lost` are lost in between and retransmitted.
fn pair(clock: impl Fn(f64) -> f64, delay: impl Fn(u32) -> f64, lost: &[u32]) -> [Script; 2] {
    translated_pair([4000; 2], clock, delay, lost)
}

/// The same with a port of the client in each capture.
fn translated_pair(
    ports: [u16; 2],
    clock: impl Fn(f64) -> f64,
    delay: impl Fn(u32) -> f64,
    lost: &[u32],
) -> [Script; 2] {
    let mut scripts = [Script::new(), Script::new()];
    for (side, s) in scripts.iter_mut().enumerate() {
        s.port = ports[side];
        let there = |at: f64, i| if side == 0 { at } else { clock(at + delay(i)) };
        let back = |at: f64| if side == 0 { at } else { clock(at - 5.0) };
        s.send(there(0.0, 0), 0, Flags::SYN, 0, 0, 0);
        s.send(back(40.0), 1, Flags::SYN | Flags::ACK, 0, 0, 1);
        s.send(there(40.1, 0), 0, Flags::ACK, 1, 0, 1);
        for i in 0..600 {
            let at = 50.0 + 50.0 * f64::from(i);
            if side == 0 || !lost.contains(&i) {
                s.data(there(at, i), 1 + 1000 * i, 1000);
            }
            if lost.contains(&i) {
                s.data(there(at + 30.0, i), 1 + 1000 * i, 1000);
            }
            s.ack(back(at + 45.0), 1001 + 1000 * i);
        }
    }
    scripts
}

fn matched([first, second]: [Script; 2]) -> Matched {
    match_captures(&first.finish(), &second.finish(), Config::default()).unwrap()
}

#[test]
fn losses_in_between_and_the_change_of_delays_are_found() {
    // Every tenth segment waits for 20 ms more.
    let delay = |i: u32| if i % 10 == 9 { 25.0 } else { 5.0 };
    for (ahead, swapped) in [(0.0, false), (3_600_000.0, false), (250.0, true)] {
        let [a, b] = pair(|at| at + ahead, delay, &[100, 333]);
        let found = matched(if swapped { [b, a] } else { [a, b] });
        let clocks = found.clocks.unwrap();
        let expected = if swapped { -ahead } else { ahead } / 1e3;
        assert!((clocks.ahead - expected).abs() < 1e-6, "{clocks:?}");
        assert!(clocks.both_ways && clocks.faster_ppm.unwrap().abs() < 1.0, "{clocks:?}");
        let [forth, back] = &found.crossings[..] else { panic!("{found:?}") };
        assert_eq!((forth.backwards, back.backwards), (swapped, !swapped));
        assert_eq!((forth.lost, forth.lost_data, forth.added), (2, 2, 0), "{swapped}");
        let lost: Vec<_> = forth.losses.iter().map(|lost| (lost.seq - 1000, lost.len)).collect();
        assert_eq!(lost, [(100_001, 1000), (333_001, 1000)]);
        let spread = forth.delay.unwrap();
        assert!(spread.min < 1e-6 && (spread.max - 0.020).abs() < 1e-6, "{spread:?}");
        assert!((spread.mean - 0.002).abs() < 2e-4, "{spread:?}");
        assert_eq!((back.lost, back.added), (0, 0));
    }
}

#[test]
fn translated_ends_match_by_their_sequence_numbers() {
    let found = matched(translated_pair([4000, 61_001], |at| at, |_| 5.0, &[100, 333]));
    let [forth, back] = &found.crossings[..] else { panic!("{found:?}") };
    assert_eq!((forth.lost, forth.matched, back.lost, found.unmatched), (2, 602, 0, 0));
    let [from, to] = forth.translated.unwrap();
    assert_eq!((forth.from.port, from.port, to.port), (4000, 61_001, 80));
}

/// Both sides of a PEP, which has sequence numbers and segments of its own: `len` bytes behind it. The last `lost` segments
/// do not arrive.
fn split_pair(len: u32, other: bool, handshakes: bool, port: u16, lost: u32) -> Matched {
    let [mut first, mut second] = [Script::new(), Script::new()];
    second.isn = [700_000_000, u32::MAX - 5000];
    second.port = port;
    (first.payload, second.payload) = (u32::MAX, u32::MAX);
    if other {
        // A connection with other content.
        second.stream_from = [5_000_000; 2];
    }
    if handshakes {
        first.handshake(0.0, 10.0);
        second.handshake(3.0, 600.0);
    }
    for i in 0..200u32 {
        first.data(700.0 + f64::from(i), 1 + 1000 * i, 1000);
        first.ack(710.0 + f64::from(i), 1001 + 1000 * i);
    }
    let total = 200_000 - 1000 * lost;
    for i in 0..total.div_ceil(len) {
        let at = 705.0 + 0.001 * f64::from(i * len);
        second.data(at, 1 + len * i, len.min(total - len * i));
        second.ack(at + 500.0, 1 + (len * (i + 1)).min(total));
    }
    matched([first, second])
}

#[test]
fn split_connections_match_by_the_bytes_of_their_payload() {
    for (len, handshakes, port) in
        [(1000, true, 4000), (1400, false, 4000), (530, true, 61_001), (1448, false, 9)]
    {
        let found = split_pair(len, false, handshakes, port, 10);
        let forth = found.crossings.iter().find(|c| c.packets > 100);
        let forth = forth.unwrap_or_else(|| panic!("{len} {port} {}", found.unmatched));
        assert!(forth.split && forth.translated.is_some() == (port != 4000), "{len} {port}");
        // Without a handshake the first segments may have begun before the other capture.
        assert!(forth.matched >= 189 && forth.lost == 10, "{len} {port} {}", forth.matched);
        let delay = forth.delay.unwrap();
        assert!(delay.max < 0.002, "{len} {delay:?}");
    }
    // Other bytes between the same ends, at the same time.
    for handshakes in [false, true] {
        let found = split_pair(1400, true, handshakes, 4000, 0);
        assert_eq!((found.clocks, found.unmatched), (None, 2));
    }
}

/// Address translation and other segments, as of an interface that merges them.
#[test]
fn initial_numbers_match_translated_connections_with_other_segments() {
    let [mut first, mut second] = [Script::new(), Script::new()];
    second.port = 61_001;
    for (s, len, late) in [(&mut first, 1460, 0.0), (&mut second, 1380, 7.0)] {
        s.mss = [Some(1460); 2];
        s.handshake(late, 50.0);
        (0..30).for_each(|i| s.data(100.0 + late + f64::from(i), 1 + len * i, len));
    }
    let found = matched([first, second]);
    let forth = found.crossings.iter().find(|c| c.packets > 20).unwrap();
    assert!(forth.translated.is_some() && forth.matched >= 28 && forth.lost <= 2, "{forth:?}");
}

#[test]
fn clock_drift_is_removed_from_delays() {
    // It gains 50 us in each second, 1.5 ms in all.
    let found = matched(pair(|at| at * (1.0 + 50e-6), |_| 5.0, &[]));
    assert!((found.clocks.unwrap().faster_ppm.unwrap() - 50.0).abs() < 0.1, "{:?}", found.clocks);
    for crossing in &found.crossings {
        assert_eq!((crossing.lost, crossing.added), (0, 0));
        assert!(crossing.delay.unwrap().max < 20e-6, "{:?}", crossing.delay);
    }
}

#[test]
fn merged_segments_are_split_before_matching() {
    let mut first = Script::new();
    let mut second = Script::new();
    for s in [&mut first, &mut second] {
        s.handshake(0.0, 40.0);
    }
    for i in 0..10u32 {
        let at = 50.0 + 10.0 * f64::from(i);
        first.data(at, 1 + 3000 * i, 3000);
        (0..3).filter(|k| (i, *k) != (4, 1)).for_each(|k| {
            second.data(at + 5.0, 1 + 3000 * i + 1000 * k, 1000);
        });
    }
    let found = matched([first, second]);
    let forth = &found.crossings[0];
    assert_eq!((forth.matched, forth.lost), (2 + 29, 1), "{forth:?}");
    assert_eq!(forth.losses[0].seq, 1000 + 13_001);
}

#[test]
fn captures_of_different_connections_do_not_match() {
    let [first, _] = pair(|at| at, |_| 5.0, &[]);
    let mut other = Script::new();
    (other.port, other.isn) = (4999, [5, 6]);
    other.handshake(0.0, 40.0);
    let found = matched([first, other]);
    assert_eq!((found.clocks, found.crossings.len()), (None, 0));
}
