//! Effects of netem on the packets of a line, each compared with its closed form.

use std::collections::BTreeMap;

use lasthop_proto::channel::GilbertElliott;
use lasthop_proto::event::{Cause, EventKind, Interest, Op};
use lasthop_proto::link::varied::{Distribution, Impairments, Loss, Order, OutagePackets};
use lasthop_proto::link::{LineConfig, Varied, VariedConfig};
use lasthop_proto::machine::{Machine as _, Out, Side};
use lasthop_proto::queue::{CodelConfig, Discipline, Limit};
use lasthop_proto::rng::Stream;
use lasthop_proto::units::{Probability, Rate, Span, Time};
use lasthop_proto::wire::{Addr, Body, Damage, Flags, Packet, PacketId, Segment, Seq};
use proptest::prelude::*;

const MS: u64 = 1_000_000;
const BYTES: u32 = 1000;

fn p(p: f64) -> Probability {
    Probability::new(p).unwrap()
}

fn line(delay: Span, impairments: Impairments) -> VariedConfig {
    VariedConfig {
        line: LineConfig {
            rate_right: None,
            rate_left: None,
            delay,
            framing: 0,
            queue: Limit::Packets(1_000_000),
            discipline_right: Discipline::Fifo,
            discipline_left: Discipline::Fifo,
        },
        right: None,
        left: None,
        delays: None,
        losses: None,
        outages: None,
        outage_packets: OutagePackets::Keep,
        impairments: Some(impairments),
    }
}

fn packet(id: u64) -> Packet {
    let segment = Segment::new(1, 2, Seq(0), Seq(0), Flags::ACK);
    let body = Body::Pattern { stream: 1, len: BYTES - 40, offset: 0 };
    let mut packet = Packet::tcp(Addr::v4(1, 1, 1, 1), Addr::v4(2, 2, 2, 2), segment, body);
    packet.id = PacketId(id);
    packet
}

/// Fates of packets.
#[derive(Default, Debug)]
struct Fates {
    /// Output times of packets by number, without duplicates.
    out: Vec<(Time, u64)>,
    lost: Vec<u64>,
    damaged: BTreeMap<u64, Damage>,
    reordered: Vec<u64>,
    /// Duplicates that were delivered, and that were lost.
    duplicates: (u64, u64),
}

/// Sends packets of [`BYTES`] bytes at these times from the left. Each step checks conservation of packets;
/// timers are delayed by `late`.
fn play(config: VariedConfig, arrivals: &[Time], late: impl Fn(Time) -> Time) -> Fates {
    let mut line = Varied::new(config, |part| Stream::new(7, part));
    let mut out = Out::new(Interest::EVERYTHING);
    let mut fates = Fates::default();
    let mut arrivals = arrivals.iter().copied().zip(0_u64..).peekable();
    let (mut arrived, mut departed, mut ended, mut made) = (0, 0, 0, 0);
    loop {
        let wake = line.next_wake().map_or(Time::NEVER, &late);
        let next = arrivals.next_if(|(at, _)| *at <= wake);
        let now = next.map_or(wake, |(at, _)| at);
        if now == Time::NEVER {
            break;
        }
        out.begin(Default::default(), now);
        match next {
            Some((_, id)) => {
                // Packets that the line creates are numbered from 0.
                line.on_packet(now, Side::Left, packet((1 << 32) + id), &mut out);
                arrived += 1;
            }
            None => line.on_wake(now, &mut out),
        }
        let tally = out.take_tally();
        (made, ended) = (made + tally.originated, ended + tally.discarded);
        for (_, packet) in out.sends.drain(..) {
            departed += 1;
            match packet.id {
                PacketId(id) if id >> 32 == 1 => fates.out.push((now, id - (1 << 32))),
                _ => fates.duplicates.0 += 1,
            }
            if packet.damage != Damage::None {
                fates.damaged.insert(packet.id.0, packet.damage);
            }
        }
        for event in out.events.drain(..) {
            let EventKind::Packet { op, packet, .. } = event.kind else { continue };
            match op {
                Op::Originated(cause) => assert_eq!(cause, Cause::LineDuplicate),
                Op::Redirected(cause) => {
                    assert_eq!(cause, Cause::Reordered);
                    fates.reordered.push(packet.id.0);
                }
                Op::Dropped(Cause::FrameLost) if packet.id.0 >> 32 == 0 => fates.duplicates.1 += 1,
                Op::Dropped(Cause::FrameLost) => fates.lost.push(packet.id.0 - (1 << 32)),
                _ => {}
            }
        }
        assert_eq!(arrived + made, departed + ended + line.holds() as u64, "at {now}");
    }
    assert_eq!(line.holds(), 0);
    fates
}

/// `n` packets at intervals of `ms` milliseconds.
fn each(ms: u64, n: u64) -> Vec<Time> {
    (0..n).map(|i| Time(i * ms * MS)).collect()
}

fn on_time(wake: Time) -> Time {
    wake
}

/// Deviations of the delays of lone packets from 10 s, in units of the jitter.
fn deviations(n: u64, impairments: Impairments) -> Vec<f64> {
    let jitter = impairments.jitter.0 as f64;
    let sent = each(30_000, n);
    let fates = play(line(Span::secs(10), impairments), &sent, on_time);
    let after = |(at, id): &(Time, u64)| at.since(sent[*id as usize]).0 as f64;
    fates.out.iter().map(|packet| (after(packet) - 1e10) / jitter).collect()
}

/// Mean and standard deviation.
fn moments(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (mean, (values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / n).sqrt())
}

#[test]
fn jitter_has_the_moments_of_its_distribution() {
    // Means and deviations of the tables' entries; for the uniform one 1/sqrt(3).
    let n = 100_000;
    for (jitter_distribution, mean, deviation, least) in [
        (Distribution::Uniform, 0.0, 0.577_35, -1.0),
        (Distribution::Normal, -0.000_780, 1.000_053, -4.0),
        (Distribution::Pareto, -0.033_491, 0.819_677, -0.666_7),
        (Distribution::ParetoNormal, -0.025_301, 0.833_945, -1.502_1),
    ] {
        let jitter = Span::millis(100);
        let values =
            deviations(n, Impairments { jitter, jitter_distribution, ..Default::default() });
        let (got, spread) = moments(&values);
        // Four standard errors; those of the deviation with a kurtosis of at most 10.
        let error = 4.0 * deviation / (n as f64).sqrt();
        assert!((got - mean).abs() < error, "{jitter_distribution:?}: {got} {mean}");
        assert!((spread - deviation).abs() < 1.5 * error, "{jitter_distribution:?}: {spread}");
        assert!(values.iter().all(|v| (least - 1e-4..4.0).contains(v)), "{jitter_distribution:?}");
    }
}

#[test]
fn negative_delays_are_clamped_to_zero() {
    let impairments = Impairments { jitter: Span::millis(5), ..Default::default() };
    let sent = each(100, 4000);
    let fates = play(line(Span::ZERO, impairments), &sent, on_time);
    let at_once = fates.out.iter().filter(|(at, id)| *at == sent[*id as usize]).count() as f64;
    // Half of all deviations are below zero.
    assert!((at_once - 2000.0).abs() < 4.0 * 31.6, "{at_once}");
}

#[test]
fn a_deviation_depends_on_the_one_before() {
    let (n, c) = (100_000, 0.6);
    let jitter = Span::millis(100);
    let impairments = Impairments { jitter, jitter_correlation: p(c), ..Default::default() };
    let values = deviations(n, impairments);
    let (mean, spread) = moments(&values);
    // x = (1 - c) u + c x': its variance is (1 - c) / (1 + c) of that of u, and its correlation c.
    let want = ((1.0 - c) / (1.0 + c)).sqrt() * 0.577_35;
    assert!((spread - want).abs() < 0.005, "{spread} {want}");
    let pairs = values.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean));
    let correlation = pairs.sum::<f64>() / n as f64 / (spread * spread);
    assert!((correlation - c).abs() < 4.0 / (n as f64).sqrt(), "{correlation}");
}

/// Asserts that `count` of `n` draws of probability `p` lies within four deviations. Dependent draws count as
/// `1 / dependence` of independent ones.
fn within(count: usize, n: u64, p: f64, dependence: f64) {
    let (n, count) = (n as f64, count as f64);
    let deviation = (n * p * (1.0 - p) * dependence).sqrt();
    assert!((count - n * p).abs() < 4.0 * deviation, "{count} of {n}, expected {}", n * p);
}

#[test]
fn effects_occur_with_their_configured_probability() {
    let n = 100_000;
    let impairments = Impairments {
        loss: Some(Loss::Random(p(0.1))),
        duplicate: p(0.05),
        corrupt: p(0.2),
        ..Default::default()
    };
    let fates = play(line(Span::millis(1), impairments), &each(10, n), on_time);
    let (passed, lost) = fates.duplicates;
    within((passed + lost) as usize, n, 0.05, 1.0);
    // A packet that is both duplicated and lost is not lost; the duplicate is.
    within(fates.lost.len(), n, 0.1 * 0.95, 1.0);
    within(lost as usize, n, 0.05 * (0.1 + 0.9 * 0.1), 1.0);
    within(fates.damaged.len(), fates.out.len() as u64 + passed, 0.2, 1.0);
    // A wrong bit is in the 20 bytes of the IP header of every 1000, or after it.
    let headers = fates.damaged.values().filter(|damage| **damage == Damage::Ip).count();
    within(headers, fates.damaged.len() as u64, 0.02, 1.0);
}

#[test]
fn with_a_correlation_of_a_half_shares_are_those_of_the_fabius_function() {
    // The sum of 2^-k u(k) has this distribution, whose values at 1/2, 1/4 and 1/8 are 1/2, 5/72 and 1/288.
    let n = 400_000;
    let half = p(0.5);
    let impairments = Impairments {
        loss: Some(Loss::Random(p(0.125))),
        loss_correlation: half,
        corrupt: half,
        corrupt_correlation: half,
        ..Default::default()
    };
    // Draws of correlation 0.5 count as a third.
    let fates = play(line(Span::millis(1), impairments), &each(10, n), on_time);
    within(fates.lost.len(), n, 1.0 / 288.0, 3.0);
    within(fates.damaged.len(), fates.out.len() as u64, 0.5, 3.0);
    let impairments =
        Impairments { duplicate: p(0.25), duplicate_correlation: half, ..Default::default() };
    let fates = play(line(Span::millis(1), impairments), &each(10, n), on_time);
    within(fates.duplicates.0 as usize, n, 5.0 / 72.0, 3.0);
}

#[test]
fn gilbert_elliott_losses_match_the_formula() {
    let n = 400_000;
    let (step, back, h, k) = (0.02, 0.25, 0.4, 0.99);
    let chain = GilbertElliott { p: p(step), r: Some(p(back)), h: p(h), k: p(k) };
    let impairments = Impairments { loss: Some(Loss::Chain(chain)), ..Default::default() };
    let fates = play(line(Span::ZERO, impairments), &each(1, n), on_time);
    let share = (step * (1.0 - h) + back * (1.0 - k)) / (step + back);
    // The state has a correlation of 1 - p - r between consecutive packets.
    let together = 1.0 - step - back;
    within(fates.lost.len(), n, share, (1.0 + together) / (1.0 - together));
}

#[test]
fn if_all_are_duplicated_and_lost_one_copy_arrives() {
    let all = p(1.0);
    let loss = Some(Loss::Random(all));
    let impairments = Impairments { loss, duplicate: all, ..Default::default() };
    let fates = play(line(Span::millis(3), impairments), &each(1, 100), on_time);
    assert_eq!((fates.out.len(), fates.duplicates, fates.lost.len()), (100, (0, 100), 0));
}

#[test]
fn each_fifth_packet_is_reordered() {
    // As in tc-netem(8): `delay 10ms reorder 100% gap 5`.
    let impairments = Impairments { reorder: p(1.0), reorder_gap: 5, ..Default::default() };
    let fates = play(line(Span::millis(10), impairments), &each(1, 1000), on_time);
    for (at, id) in &fates.out {
        let delay = if id % 5 == 4 { 0 } else { 10 };
        assert_eq!(*at, Time((id + delay) * MS), "{id}");
    }
    assert_eq!(fates.reordered.len(), 200);
    // At 25% each packet is drawn independently.
    let impairments = Impairments { reorder: p(0.25), ..Default::default() };
    let sent = each(1, 100_000);
    let fates = play(line(Span::millis(10), impairments), &sent, on_time);
    let at_once = fates.out.iter().filter(|(at, id)| *at == sent[*id as usize]).count();
    within(at_once, 100_000, 0.25, 1.0);
}

#[test]
fn a_queued_packet_may_overtake_packets_in_flight() {
    let impairments = Impairments { reorder: p(1.0), reorder_gap: 2, ..Default::default() };
    let mut config = line(Span::millis(100), impairments);
    config.line.rate_right = Rate::from_bps(1_000_000);
    // 8 ms each; the second and the fourth take no delay.
    let fates = play(config, &[Time(0); 4], on_time);
    let out: Vec<_> = fates.out.iter().map(|(at, id)| (at.0 / MS, *id)).collect();
    assert_eq!(out, [(16, 1), (32, 3), (108, 0), (124, 2)]);
}

#[test]
fn jitter_preserves_order_if_configured() {
    let jitter = Span::millis(5);
    let free = Impairments { jitter, ..Default::default() };
    let ordered = Impairments { jitter_order: Order::Kept, ..free.clone() };
    let sent = each(1, 10_000);
    let fates = play(line(Span::millis(20), ordered), &sent, on_time);
    assert!(fates.out.is_sorted_by_key(|(_, id)| *id) && fates.reordered.is_empty());
    let fates = play(line(Span::millis(20), free), &sent, on_time);
    // Only packets that overtook an earlier one are reported.
    let behind = |i: usize| fates.out[i + 1..].iter().take(20).any(|(_, id)| *id < fates.out[i].1);
    let early = (0..fates.out.len()).filter(|i| behind(*i)).map(|i| fates.out[i].1 + (1 << 32));
    assert_eq!(early.collect::<Vec<_>>(), fates.reordered);
    assert!(fates.reordered.len() > 2000, "{}", fates.reordered.len());
}

#[test]
fn only_the_impaired_direction_suffers() {
    let all = Impairments { loss: Some(Loss::Random(p(1.0))), ..Default::default() };
    for (impaired, lost) in [(None, 10), (Some(Side::Right), 10), (Some(Side::Left), 0)] {
        let impairments = Impairments { impaired, ..all.clone() };
        let fates = play(line(Span::ZERO, impairments), &each(1, 10), on_time);
        assert_eq!(fates.lost.len(), lost);
    }
}

proptest! {
    #[test]
    fn packets_are_conserved(
        sent in prop::collection::vec(0..300_u64, 1..150),
        share in prop::array::uniform4(0.0..1.0_f64),
        gap in 0..6_u32,
        bps in prop::option::of(100_000..20_000_000_u64),
        queue in 0..30_u32,
        codel in any::<bool>(),
        ordered in any::<bool>(),
        tick in 1..15_u64,
    ) {
        let [loss, duplicate, corrupt, reorder] = share.map(p);
        let impairments = Impairments {
            jitter: Span::millis(20),
            jitter_distribution: Distribution::Pareto,
            jitter_order: if ordered { Order::Kept } else { Order::Free },
            loss: Some(Loss::Random(loss)),
            duplicate, corrupt, reorder, reorder_gap: gap,
            ..Default::default()
        };
        let mut config = line(Span::millis(30), impairments);
        config.line.rate_right = bps.and_then(Rate::from_bps);
        config.line.queue = Limit::Packets(queue);
        if codel {
            config.line.discipline_right = Discipline::Codel(CodelConfig::default());
        }
        let mut sent: Vec<Time> = sent.into_iter().map(|ms| Time(ms * MS)).collect();
        sent.sort();
        // Each step checks conservation.
        let exact = play(config.clone(), &sent, on_time);
        prop_assert!(exact.out.len() <= sent.len());
        play(config, &sent, |wake| Time(wake.0.div_ceil(tick * MS) * tick * MS));
    }
}
