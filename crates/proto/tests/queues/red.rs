//! Random early detection: selection of packets, its frequency, and its effect.

use lasthop_proto::event::{Cause, Interest};
use lasthop_proto::link::{Line, LineConfig};
use lasthop_proto::machine::{Machine as _, Out, Side};
use lasthop_proto::queue::{Discipline, Limit, RedConfig};
use lasthop_proto::rng::Stream;
use lasthop_proto::units::{Bytes, Rate, Span, Time};
use lasthop_proto::wire::{ECT, Packet, Seq};
use proptest::prelude::*;

use super::script::{Bench, packet};

const PLENTY: Limit = Limit::Packets(10_000);

fn red(config: RedConfig) -> Bench {
    Bench::new(Discipline::Red(config), PLENTY)
}

/// The average is the length at the last arrival.
fn quick() -> RedConfig {
    RedConfig { min: 5.0, max: 15.0, max_p: 0.1, weight: 1.0, ..RedConfig::FLOYD93 }
}

fn data(capable: bool) -> Packet {
    packet("data 1+960", Seq(0)).with(|packet| packet.tos = if capable { ECT } else { 0 })
}

/// Enqueues `n` packets that cannot be selected.
fn fill(bench: &mut Bench, n: usize) {
    for _ in 0..n {
        bench.enqueue(data(true));
    }
}

/// Numbers of arrivals between selections, at a queue of constant length.
fn distances(length: usize, config: RedConfig, choices: usize) -> Vec<u32> {
    let mut bench = red(config);
    // Below the threshold no packet is selected; one more packet raises the average to it.
    fill(&mut bench, length);
    let (mut all, mut since) = (Vec::new(), 0);
    bench.marked = 0;
    while all.len() < choices {
        since += 1;
        bench.enqueue(data(true));
        bench.dequeue();
        if bench.marked > 0 {
            all.push(since);
            (bench.marked, since) = (0, 0);
        }
    }
    all
}

//= floyd93#4: no packet is marked below the minimum threshold, every one from the maximum on
#[test]
fn nothing_is_chosen_below_the_thresholds_and_everything_above() {
    let mut bench = red(quick());
    // The fifth packet still finds a queue of four.
    fill(&mut bench, 5);
    assert_eq!(bench.marked, 0);
    for _ in 0..500 {
        bench.dequeue();
        bench.enqueue(data(true));
    }
    assert_eq!(bench.marked, 0, "an average of four");
    let mut bench = red(RedConfig { max_p: 1e-9, ..quick() });
    fill(&mut bench, 15);
    assert_eq!(bench.marked, 0, "chance alone would choose none");
    fill(&mut bench, 10);
    assert_eq!(bench.marked, 10, "at fifteen and above it chooses all");
}

//= floyd93#7: the number of arrivals between marks is uniform between 1 and 1/p_b
#[test]
fn the_distances_of_marks_are_uniform() {
    // A queue of ten: p_b = 0.1 (10 - 5) / (15 - 5) = 1/20.
    let distances = distances(10, quick(), 40_000);
    let mut counts = [0u32; 21];
    for distance in distances {
        assert!((1..=20).contains(&distance), "never further apart than 1/p_b: {distance}");
        counts[distance as usize] += 1;
    }
    // Chi-square with 19 degrees of freedom: 43.8 is passed once in a thousand; the draws are pinned.
    let expected = 40_000.0 / 20.0;
    let square = |n: &u32| (f64::from(*n) - expected) * (f64::from(*n) - expected);
    let chi: f64 = counts[1..].iter().map(|n| square(n) / expected).sum();
    assert!(chi < 43.8, "{chi}: {counts:?}");
}

/// The average outlives a queue; as in ns-2 and ns-3 a queue with at most one packet is not congested.
#[test]
fn no_packet_is_chosen_while_at_most_one_waits() {
    let mut bench = red(RedConfig { weight: 0.001, max_p: 1.0, ..quick() });
    // Long enough at a length of twelve for the average to reach it.
    fill(&mut bench, 12);
    for _ in 0..20_000 {
        bench.dequeue();
        bench.enqueue(data(true));
    }
    assert!(bench.average() > 10.9, "{}", bench.average());
    let mut chosen = |length: usize| {
        while bench.stored > length {
            bench.dequeue();
        }
        bench.marked = 0;
        bench.enqueue(data(true));
        bench.marked
    };
    // With a probability of at least 0.6 by its count; the draw is pinned.
    assert!((0..5).map(|_| chosen(2)).sum::<usize>() > 1);
    assert_eq!((0..50).map(|_| chosen(1)).sum::<usize>(), 0);
    assert_eq!((0..50).map(|_| chosen(0)).sum::<usize>(), 0);
}

/// Share of early or late drops on a line of 1 Mbit/s, for random arrivals of packets of 1000 bytes.
fn dropped_share(load: f64) -> f64 {
    let rate = Rate::from_bps(1_000_000);
    let config = RedConfig::FLOYD93.on(rate, RedConfig::TYPICAL);
    let mut line = Line::seeded(
        LineConfig {
            rate_right: rate,
            rate_left: rate,
            delay: Span::ZERO,
            framing: 0,
            queue: Limit::Packets(50),
            discipline_right: Discipline::Red(config),
            discipline_left: Discipline::Fifo,
        },
        |part| Stream::new(5, part),
    );
    let mut gaps = Stream::new(6, "gaps");
    let mut out = Out::new(Interest::NOTHING);
    let (n, mut at, mut dropped) = (3_000_000, 0.0, 0);
    for _ in 0..n {
        at += gaps.exponential(8e6 / load);
        let now = Time(at as u64);
        while let Some(wake) = line.next_wake().filter(|wake| *wake <= now) {
            line.on_wake(wake, &mut out);
        }
        line.on_packet(now, Side::Left, data(false), &mut out);
        dropped += out.take_tally().discarded;
        out.sends.clear();
    }
    dropped as f64 / f64::from(n)
}

/// Shares of an independent model of ns-3's queue disc, without `Gentle` and `Wait`.
#[test]
fn loss_under_open_load_matches_ns_3() {
    for (load, share) in [(0.95, 0.007_31), (1.0, 0.029_0), (1.2, 0.171_4)] {
        let got = dropped_share(load);
        assert!((got / share - 1.0).abs() < 0.06, "{load}: {got} instead of {share}");
    }
}

#[test]
fn the_average_follows_with_its_weight_and_idle_time_counts_as_packets() {
    let config = RedConfig { weight: 0.25, ..quick() }.on(Rate::from_bps(8_000_000), Bytes(1000));
    assert_eq!(config.packet_time, Span::millis(1));
    let mut bench = red(config);
    let mut expected = 0.0;
    for length in 0..6 {
        bench.enqueue(data(true));
        expected += 0.25 * (f64::from(length) - expected);
        assert!((bench.average() - expected).abs() < 1e-12);
    }
    while bench.dequeue().is_some() {}
    // Four packets could have been sent: (3/4)^4.
    bench.wait(Span::millis(4));
    bench.enqueue(data(true));
    assert!((bench.average() - expected * 0.75 * 0.75 * 0.75 * 0.75).abs() < 1e-12);
}

#[test]
fn without_ecn_or_marking_selected_packets_are_dropped() {
    for (mark, capable) in [(true, false), (false, true)] {
        let mut bench = red(RedConfig { mark, ..quick() });
        let mut dropped = Vec::new();
        for _ in 0..10_000 {
            dropped.extend(bench.enqueue(data(capable)));
        }
        assert_eq!(bench.marked, 0);
        assert!(dropped.iter().all(|(_, cause)| *cause == Cause::EarlyDrop));
        // Dropped packets do not lengthen the queue: it remains at the length where every packet is selected.
        assert_eq!(bench.stored, 15);
    }
}

#[test]
fn red_acks_first_sends_acks_before_data() {
    let mut bench = Bench::new(Discipline::RedAcksFirst(quick()), PLENTY);
    fill(&mut bench, 3);
    bench.enqueue(packet("ack 1000", Seq(0)));
    assert_eq!(bench.dequeue(), Some(packet("ack 1000", Seq(0))));
    assert!(bench.dequeue().unwrap().is_data());
}

proptest! {
    /// For any arrivals: each packet leaves, waits, or is dropped with a cause; the queue stays within its
    /// bound, and only markable packets are marked. (The bench itself checks conservation.)
    #[test]
    fn packets_are_conserved(
        steps in prop::collection::vec((0u8..4, any::<bool>(), 0u64..50), 1..300),
        seed in any::<u64>(),
        weight in 0.01f64..1.0,
        first in any::<bool>(),
        limit in 1u32..30,
    ) {
        let config = RedConfig { min: 2.0, max: 8.0, max_p: 0.3, weight, packet_time: Span::millis(5), ..RedConfig::FLOYD93 };
        let discipline = if first { Discipline::RedAcksFirst(config) } else { Discipline::Red(config) };
        let mut bench = Bench::seeded(discipline, Limit::Packets(limit), seed);
        let (mut entered, mut ended, mut left) = (0, 0, 0);
        for (action, capable, millis) in steps {
            bench.wait(Span::millis(millis));
            if action == 0 {
                if let Some(packet) = bench.dequeue() {
                    prop_assert!(packet.is_ecn_capable() || packet.tos == 0);
                    left += 1;
                }
                continue;
            }
            entered += 1;
            for (packet, cause) in bench.enqueue(data(capable)) {
                ended += 1;
                prop_assert!(!packet.is_ecn_capable() || cause == Cause::QueueFull);
                prop_assert!(matches!(cause, Cause::QueueFull | Cause::EarlyDrop));
            }
            prop_assert!(bench.stored <= limit as usize);
            prop_assert!((0.0..=f64::from(limit)).contains(&bench.average()));
        }
        prop_assert_eq!(entered, ended + left + bench.stored);
    }
}
