//! Local recovery on an ideal medium: times of transmissions, fates of packets, and signals to the
//! neighbours.

use lasthop_proto::air::FrameKind;
use lasthop_proto::channel::{Channel, ErrorModel, PacketLoss};
use lasthop_proto::event::{Cause, EventKind, Interest, LinkNote, Op};
use lasthop_proto::hop::{Hop, HopConfig};
use lasthop_proto::link::local_recovery::LocalRecoveryConfig;
use lasthop_proto::link::{LinkLayerConfig, RadioConfig};
use lasthop_proto::machine::{Machine, Out, Side, Signal};
use lasthop_proto::queue::{Discipline, Limit};
use lasthop_proto::rng::Stream;
use lasthop_proto::units::{Probability, Rate, Span, Time};
use lasthop_proto::wire::{Addr, Body, Flags, Packet, PacketId, Segment, Seq};
use proptest::prelude::*;

const BASE: Addr = Addr::v4(1, 1, 1, 1);

fn mobile(i: usize) -> Addr {
    Addr::v4(2, 2, 2, i as u8 + 1)
}

/// A packet of `bytes` bytes between the wired host and mobile host `i`, coming from `side`.
fn packet(id: u64, side: Side, i: usize, bytes: u32) -> Packet {
    let segment = Segment::new(1, 2, Seq(1000 * id as u32), Seq(0), Flags::ACK);
    let body = Body::Pattern { stream: 1, len: bytes - 40, offset: 0 };
    let (src, dst) = match side {
        Side::Left => (BASE, mobile(i)),
        Side::Right => (mobile(i), BASE),
    };
    Packet::tcp(src, dst, segment, body).with(|packet| packet.id = PacketId(id))
}

/// All events, each with its time.
#[derive(Default, Debug)]
struct Story {
    out: Vec<(Time, Side, u64)>,
    dropped: Vec<(Time, u64, Cause)>,
    /// Frames on the air, by start time.
    air: Vec<(Time, FrameKind)>,
    repeated: Vec<(u64, Cause)>,
    notes: Vec<LinkNote>,
    /// Signals to the left neighbour: attempts, and whether that was the last.
    signals: Vec<(Time, u32, bool)>,
}

/// Arrival time, side, index of the mobile host, and length.
type Arrival = (Time, Side, usize, u32);

fn play(hop: &mut Hop, arrivals: &[Arrival]) -> Story {
    let mut story = Story::default();
    let mut out = Out::new(Interest::EVERYTHING);
    let mut arrivals = arrivals.iter().enumerate().peekable();
    let mut arrived = 0;
    loop {
        let wake = hop.next_wake().unwrap_or(Time::NEVER);
        let now = match arrivals.peek() {
            Some((_, (at, ..))) if *at <= wake => *at,
            _ if wake == Time::NEVER => break,
            _ => wake,
        };
        out.begin(Default::default(), now);
        match arrivals.next_if(|(_, (at, ..))| *at == now) {
            Some((id, (_, from, i, bytes))) => {
                hop.on_packet(now, *from, packet(id as u64, *from, *i, *bytes), &mut out);
                arrived += 1;
            }
            None => {
                hop.on_wake(now, &mut out);
                assert!(hop.next_wake().is_none_or(|next| next > now), "no progress at {now}");
            }
        }
        story.out.extend(out.sends.drain(..).map(|(side, packet)| (now, side, packet.id.0)));
        for (side, signal) in out.signals.drain(..) {
            if let (Side::Left, Signal::AttemptFailed { tries, discarded, .. }) = (side, signal) {
                story.signals.push((now, tries, discarded));
            }
        }
        for event in out.events.drain(..) {
            match event.kind {
                EventKind::Packet { op: Op::Dropped(cause), packet, .. } => {
                    story.dropped.push((now, packet.id.0, cause));
                }
                EventKind::Packet { op: Op::Repeated(cause), packet, .. } => {
                    story.repeated.push((packet.id.0, cause));
                }
                EventKind::Air(air) => story.air.push((now, air.kind)),
                EventKind::Link { note, .. } => story.notes.push(note),
                _ => {}
            }
        }
        let ended = story.out.len() + story.dropped.len();
        assert_eq!(arrived, ended + hop.holds(), "conservation at {now}");
    }
    assert_eq!(hop.holds(), 0);
    story
}

/// 1 Mb/s, 1 ms each way.
fn radio(half_duplex: bool) -> RadioConfig {
    RadioConfig {
        rate: Rate::from_bps(1_000_000).unwrap(),
        delay: Span::millis(1),
        overhead: Span::ZERO,
        half_duplex,
        queue: Limit::Packets(1000),
        discipline_right: Discipline::Fifo,
        discipline_left: Discipline::Fifo,
    }
}

fn losing(p: f64, seed: u64, name: &str) -> Option<Channel> {
    let model = ErrorModel::PacketLoss(PacketLoss { p: Probability::new(p).unwrap() });
    Some(Channel::new(&model, Stream::new(seed, name)))
}

/// Configuration of a test's hop.
#[derive(Clone, Copy, Debug)]
struct Setup {
    half_duplex: bool,
    mobiles: usize,
    fragment: Option<u32>,
    /// Losses towards the mobile hosts and towards the base station.
    loss: [f64; 2],
    seed: u64,
    max_retransmits: u32,
    timeout: Option<Span>,
}

const CLEAN: Setup = Setup {
    half_duplex: false,
    mobiles: 1,
    fragment: None,
    loss: [0.0, 0.0],
    seed: 1,
    max_retransmits: 13,
    timeout: None,
};

fn hop(setup: &Setup) -> Hop {
    let recovery = LocalRecoveryConfig {
        max_retransmits: setup.max_retransmits,
        timeout: setup.timeout,
        ..LocalRecoveryConfig::bakshi96()
    };
    let config = HopConfig {
        link: LinkLayerConfig::LocalRecovery(recovery),
        fragment: setup.fragment,
        mobiles: (0..setup.mobiles).map(mobile).collect(),
        ..HopConfig::default()
    };
    let channels = |i: usize| {
        [
            losing(setup.loss[1], setup.seed, &format!("left.{i}")),
            losing(setup.loss[0], setup.seed, &format!("right.{i}")),
        ]
    };
    let channels = (0..setup.mobiles).map(channels).collect();
    Hop::new(&radio(setup.half_duplex), &config, channels, |part| Stream::new(setup.seed, part))
}

const MS: u64 = 1_000_000;

#[test]
fn one_frame_waits_for_the_acknowledgement_of_the_one_before() {
    let arrivals = [(Time(0), Side::Left, 0, 1000), (Time(0), Side::Left, 0, 1000)];
    let story = play(&mut hop(&CLEAN), &arrivals);
    // 8 ms on the air and 1 ms of propagation; the acknowledgement takes 64 us and 1 ms; then the second.
    let again = 8 * MS + MS + 64_000 + MS;
    assert_eq!(story.out, [(Time(9 * MS), Side::Right, 0), (Time(again + 9 * MS), Side::Right, 1)]);
    let kinds = [FrameKind::Data, FrameKind::LinkAck, FrameKind::Data, FrameKind::LinkAck];
    let times = [0, 9 * MS, again, again + 9 * MS];
    let air: Vec<_> = times.into_iter().map(Time).zip(kinds).collect();
    assert_eq!(story.air, air);
    assert_eq!((story.repeated.len(), story.signals.len()), (0, 0));
}

#[test]
fn a_packet_has_fourteen_attempts_and_failures_are_reported() {
    let setup = Setup { loss: [1.0, 0.0], ..CLEAN };
    let story = play(&mut hop(&setup), &[(Time(0), Side::Left, 0, 1000)]);
    let attempts: Vec<_> = story.signals.iter().map(|(_, tries, last)| (*tries, *last)).collect();
    assert_eq!(attempts, (1..=14).map(|n| (n, n == 14)).collect::<Vec<_>>());
    assert_eq!(story.repeated, [(0, Cause::LinkTimeout); 13]);
    assert_eq!(story.air.len(), 14);
    assert!(story.out.is_empty());
    let [(at, 0, Cause::LinkGaveUp)] = story.dropped[..] else { panic!("{:?}", story.dropped) };
    assert_eq!(at, story.signals[13].0);
    // 8 ms on the air; 12,008 us for the longest frame and a byte, two acknowledgements, 2 ms of propagation.
    let attempt = Span(8 * MS + 12_008_000 + 128_000 + 2 * MS);
    for (n, pair) in story.signals.windows(2).enumerate() {
        let backoff = Span(pair[1].0.since(pair[0].0).0 - attempt.0);
        let limit = Span::millis((50 << n).min(800));
        assert!(backoff <= limit, "the {n}th backoff is {backoff}");
    }
    let whole = story.signals[13].0.since(story.signals[0].0);
    assert!(whole > Span::secs(2), "the backoffs do not grow: {whole}");
}

#[test]
fn a_packet_whose_acknowledgements_are_lost_arrives_once_and_is_not_dropped() {
    let setup = Setup { loss: [0.0, 1.0], ..CLEAN };
    let story = play(&mut hop(&setup), &[(Time(0), Side::Left, 0, 1000)]);
    assert_eq!(story.out, [(Time(9 * MS), Side::Right, 0)]);
    assert_eq!(story.dropped, []);
    assert_eq!(story.notes, [LinkNote::Duplicate; 13]);
    assert_eq!(story.signals.len(), 14);
}

/// A timeout that is far too short drops a packet that arrives a moment later. That copy is a separate packet
/// with its own cause, and the counts of the hop balance.
#[test]
fn a_late_copy_of_a_dropped_packet_is_delivered() {
    let setup = Setup { max_retransmits: 0, timeout: Some(Span(3)), ..CLEAN };
    let mut hop = hop(&setup);
    let mut out = Out::new(Interest::EVERYTHING);
    hop.on_packet(Time(0), Side::Left, packet(7, Side::Left, 0, 1000), &mut out);
    assert_eq!(hop.holds(), 1);
    while let Some(wake) = hop.next_wake() {
        hop.on_wake(wake, &mut out);
    }
    assert_eq!(hop.holds(), 0);
    let ops = out.events.iter().filter_map(|event| match &event.kind {
        EventKind::Packet { op: op @ (Op::Dropped(_) | Op::Originated(_)), packet, .. } => {
            Some((*op, packet.id == PacketId(7)))
        }
        _ => None,
    });
    let ops: Vec<_> = ops.collect();
    let late = Op::Originated(Cause::LateCopy);
    assert_eq!(ops, [(Op::Dropped(Cause::LinkGaveUp), true), (late, false)]);
    assert!(matches!(&out.sends[..], [(Side::Right, late)] if late.id != PacketId(7)));
}

#[test]
fn the_rest_of_a_packet_is_abandoned_with_its_first_lost_piece() {
    let setup = Setup { loss: [1.0, 0.0], fragment: Some(128), max_retransmits: 2, ..CLEAN };
    let arrivals = [(Time(0), Side::Left, 0, 1000), (Time(0), Side::Left, 0, 100)];
    let story = play(&mut hop(&setup), &arrivals);
    // Three frames for the first of eight fragments, three for the packet behind it.
    assert_eq!(story.air.len(), 6);
    let dropped: Vec<_> = story.dropped.iter().map(|(_, id, cause)| (*id, *cause)).collect();
    assert_eq!(dropped, [(0, Cause::LinkGaveUp), (1, Cause::LinkGaveUp)]);
}

#[test]
fn acknowledgements_are_not_starved_by_data_of_the_other_direction() {
    for half_duplex in [false, true] {
        let setup = Setup { half_duplex, mobiles: 3, ..CLEAN };
        let arrivals: Vec<Arrival> = (0..120)
            .map(|n| {
                let side = if n % 2 == 0 { Side::Left } else { Side::Right };
                (Time(0), side, n / 2 % 3, 1500)
            })
            .collect();
        let story = play(&mut hop(&setup), &arrivals);
        assert_eq!(story.out.len(), 120);
        assert_eq!(story.repeated, [], "half duplex: {half_duplex}");
    }
}

#[test]
fn an_unreachable_station_does_not_block_others() {
    let config = HopConfig {
        link: LinkLayerConfig::LocalRecovery(LocalRecoveryConfig::bakshi96()),
        mobiles: (0..2).map(mobile).collect(),
        ..HopConfig::default()
    };
    let channels = vec![[None, losing(1.0, 1, "right")], [None, None]];
    let mut hop = Hop::new(&radio(true), &config, channels, |part| Stream::new(1, part));
    let arrivals: Vec<Arrival> = (0..20).map(|n| (Time(0), Side::Left, n % 2, 1000)).collect();
    let story = play(&mut hop, &arrivals);
    assert_eq!(story.out.len(), 10);
    let first_given_up = story.dropped[0].0;
    assert!(story.out.iter().all(|(at, ..)| *at < first_given_up));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Each packet is delivered once or dropped, and delivered ones are in order.
    #[test]
    fn packets_are_delivered_once_in_order_or_dropped(
        half_duplex: bool,
        mobiles in 1usize..4,
        fragment in prop::option::of(16u32..600),
        loss in (0.0f64..0.8, 0.0f64..0.8),
        seed: u64,
        max_retransmits in 0u32..6,
        packets in prop::collection::vec((0u64..50, any::<bool>(), 0usize..3, 40u32..1500), 1..40),
    ) {
        let setup =
            Setup { half_duplex, mobiles, fragment, loss: [loss.0, loss.1], seed, max_retransmits, timeout: None };
        let mut now = 0;
        let arrivals: Vec<Arrival> = packets
            .into_iter()
            .map(|(gap, left, i, bytes)| {
                now += gap * MS;
                let side = if left { Side::Left } else { Side::Right };
                (Time(now), side, i % mobiles, bytes)
            })
            .collect();
        let story = play(&mut hop(&setup), &arrivals);
        let mut ids: Vec<u64> = story.out.iter().map(|(.., id)| *id).collect();
        ids.extend(story.dropped.iter().map(|(_, id, _)| *id));
        ids.sort_unstable();
        prop_assert_eq!(ids, (0..arrivals.len() as u64).collect::<Vec<_>>());
        prop_assert!(story.dropped.iter().all(|(.., cause)| *cause == Cause::LinkGaveUp));
        for side in [Side::Left, Side::Right] {
            for i in 0..mobiles {
                let of = |id: &u64| {
                    let (_, from, mobile, _) = arrivals[*id as usize];
                    from == side && mobile == i
                };
                let came: Vec<u64> = story.out.iter().map(|(.., id)| *id).filter(of).collect();
                prop_assert!(came.is_sorted(), "{:?}", came);
            }
        }
    }
}
