//! Link layers over a lossy hop: every packet arrives once, for any behaviour of the channel.

use lasthop_proto::channel::{BitErrors, Channel, ErrorModel, PacketLoss};
use lasthop_proto::event::{Cause, Event, EventKind, Interest, Op};
use lasthop_proto::hop::{Hop, HopConfig};
use lasthop_proto::link::fec::{Code, Coding};
use lasthop_proto::link::ll::LlConfig;
use lasthop_proto::link::{LinkLayerConfig, RadioConfig};
use lasthop_proto::machine::{Machine, Out, Side, StageId};
use lasthop_proto::queue::{Discipline, Limit};
use lasthop_proto::rng::Stream;
use lasthop_proto::units::{Probability, Rate, Span, Time};
use lasthop_proto::wire::{Addr, Body, Flags, Packet, PacketId, Segment, Seq};
use proptest::prelude::*;

/// Delivered packets in order, and events.
#[derive(Default)]
struct Run {
    left: Vec<u64>,
    right: Vec<u64>,
    events: Vec<Event>,
    held: usize,
}

impl Run {
    fn repeated(&self, cause: Cause) -> usize {
        let same = |e: &&Event| matches!(&e.kind, EventKind::Packet { op: Op::Repeated(c), .. } if *c == cause);
        self.events.iter().filter(same).count()
    }
}

fn packet(id: u64, from: Side, len: u32) -> Packet {
    let (fixed, mobile) = (Addr::v4(10, 0, 0, 1), Addr::v4(10, 0, 0, 2));
    let (src, dst) = if from == Side::Left { (fixed, mobile) } else { (mobile, fixed) };
    let segment = Segment::new(1, 2, Seq(id as u32), Seq(0), Flags::ACK);
    let mut packet = Packet::tcp(src, dst, segment, Body::Pattern { stream: 1, len, offset: 0 });
    packet.id = PacketId(id);
    packet
}

/// Sends `count` packets from the left, one every `gap`, and half as many from the right, over a hop that loses
/// frames with probability `loss` in each direction.
fn run(
    link: LinkLayerConfig,
    half_duplex: bool,
    loss: f64,
    seed: u64,
    count: u64,
    gap: Span,
) -> Run {
    let radio = RadioConfig {
        rate: Rate::from_bps(2_000_000).unwrap(),
        delay: Span::millis(1),
        overhead: Span::micros(300),
        half_duplex,
        queue: Limit::Packets(10_000),
        discipline_right: Discipline::Fifo,
        discipline_left: Discipline::Fifo,
    };
    let model = ErrorModel::PacketLoss(PacketLoss { p: Probability::new(loss).unwrap() });
    let channel = |part: &str| Some(Channel::new(&model, Stream::new(seed, part)));
    let config = HopConfig { link, ..HopConfig::default() };
    let mut hop = Hop::new(&radio, &config, vec![[channel("left"), channel("right")]], |part| {
        Stream::new(seed, part)
    });
    let mut out = Out::new(Interest::METRICS);
    let mut run = Run::default();
    let mut next = 0;
    let mut steps = 0;
    loop {
        let arrival = (next < count).then(|| Time::ZERO + gap * next);
        let now = match (arrival, hop.next_wake()) {
            (Some(a), Some(w)) => a.min(w),
            (Some(at), None) | (None, Some(at)) => at,
            (None, None) => break,
        };
        steps += 1;
        assert!(steps < 1_000_000, "it never ends");
        out.begin(StageId(1), now);
        if arrival == Some(now) {
            hop.on_packet(now, Side::Left, packet(next, Side::Left, 1000), &mut out);
            if next % 2 == 0 {
                hop.on_packet(now, Side::Right, packet(next, Side::Right, 200), &mut out);
            }
            next += 1;
        } else {
            hop.on_wake(now, &mut out);
        }
        for (side, packet) in out.sends.drain(..) {
            if side == Side::Right { &mut run.right } else { &mut run.left }.push(packet.id.0);
        }
        run.events.append(&mut out.events);
        out.take_tally();
    }
    run.held = hop.holds();
    run
}

fn ll(selective: bool) -> LinkLayerConfig {
    LinkLayerConfig::Ll(LlConfig { min_timeout: Span::millis(50), ..LlConfig::new(selective) })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn every_packet_arrives_once(
        selective in any::<bool>(),
        half_duplex in any::<bool>(),
        loss in 0.0..0.6f64,
        seed in any::<u64>(),
        gap in 0u64..8_000_000,
    ) {
        let mut run = run(ll(selective), half_duplex, loss, seed, 80, Span(gap));
        run.right.sort_unstable();
        run.left.sort_unstable();
        prop_assert_eq!(run.right, (0..80).collect::<Vec<_>>());
        prop_assert_eq!(run.left, (0..80).step_by(2).collect::<Vec<_>>());
        prop_assert_eq!(run.held, 0);
    }
}

#[test]
fn without_losses_nothing_is_sent_again() {
    for selective in [false, true] {
        let run = run(ll(selective), true, 0.0, 1, 200, Span::millis(8));
        assert_eq!(run.right, (0..200).collect::<Vec<_>>());
        assert_eq!(run.repeated(Cause::LinkTimeout) + run.repeated(Cause::LinkNack), 0);
    }
}

#[test]
fn cumulative_acknowledgements_cost_needless_retransmissions() {
    let repeats = |selective| {
        let run = run(ll(selective), true, 0.1, 1, 500, Span::millis(8));
        (run.repeated(Cause::LinkTimeout), run.repeated(Cause::LinkNack))
    };
    let (timeouts, nacks) = repeats(false);
    let (selective_timeouts, selective_nacks) = repeats(true);
    assert_eq!(nacks, 0);
    // About a tenth of 750 packets is lost; packets received after a gap are retransmitted as well.
    assert!(timeouts > 2 * (selective_timeouts + selective_nacks), "{timeouts}");
    // Nearly all losses are detected by later packets.
    assert!(selective_nacks > 4 * selective_timeouts, "{selective_nacks} {selective_timeouts}");
}

#[test]
fn the_link_layer_does_not_preserve_order() {
    for selective in [false, true] {
        let run = run(ll(selective), true, 0.1, 1, 200, Span::millis(8));
        assert!(!run.right.is_sorted());
    }
}

/// The number of lost frames among a thousand of 1,052 bytes over a channel with independent bit errors, and
/// the duration of one.
fn coded(coding: Coding, ber: f64) -> (usize, Span) {
    let radio = RadioConfig {
        rate: Rate::from_bps(8_000_000).unwrap(),
        delay: Span::ZERO,
        overhead: Span::ZERO,
        half_duplex: true,
        queue: Limit::Packets(1000),
        discipline_right: Discipline::Fifo,
        discipline_left: Discipline::Fifo,
    };
    let model = ErrorModel::BitErrors(BitErrors { ber: Probability::new(ber).unwrap() });
    let channel = Some(Channel::new(&model, Stream::new(1, "errors")));
    let config = HopConfig { coding, ..HopConfig::default() };
    let mut hop = Hop::new(&radio, &config, vec![[None, channel]], |part| Stream::new(1, part));
    let mut out = Out::new(Interest::METRICS);
    let mut lost = 0;
    let mut airtime = Span::ZERO;
    for id in 0..1000 {
        let now = Time::ZERO + Span::millis(10) * id;
        out.begin(StageId(1), now);
        hop.on_packet(now, Side::Left, packet(id, Side::Left, 1012), &mut out);
        while let Some(at) = hop.next_wake() {
            out.begin(StageId(1), at);
            hop.on_wake(at, &mut out);
        }
        for event in out.events.drain(..) {
            match event.kind {
                EventKind::Packet { op: Op::Dropped(Cause::FrameLost), .. } => lost += 1,
                EventKind::Air(air) => airtime = air.airtime,
                _ => {}
            }
        }
        out.sends.clear();
        out.take_tally();
    }
    (lost, airtime)
}

#[test]
fn a_code_costs_time_and_saves_frames() {
    let code = Code::reed_solomon(255, 223).unwrap();
    let (plain_lost, plain_air) = coded(Coding::NONE, 1e-3);
    let (coded_lost, coded_air) = coded(Coding::Block(code), 1e-3);
    // 1,052 bytes are 5 blocks with 32 check bytes each; a byte takes a microsecond.
    assert_eq!((plain_air, coded_air), (Span::micros(1052), Span::micros(1052 + 5 * 32)));
    // A frame of 8,416 bits survives one in 4,500 times; a block of 255 bytes has 2 wrong ones on average.
    assert!(plain_lost > 990, "{plain_lost}");
    assert_eq!(coded_lost, 0);
    // At 1e-2, 20 bytes of a block are wrong on average: beyond what 32 check bytes correct.
    let (hopeless, _) = coded(Coding::Block(code), 1e-2);
    assert!(hopeless > 990, "{hopeless}");
    // Overhead corrects nothing.
    assert_eq!(coded(Coding::Overhead(1.5), 1e-3), (plain_lost, Span::micros(1578)));
}
