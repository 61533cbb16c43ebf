//! Packet radio over several hops: a turnaround for each packet, and one radio for both hops of a relay.

use lasthop_proto::air::{FrameFate, FrameKind, Station};
use lasthop_proto::channel::{Channel, ErrorModel, PacketLoss};
use lasthop_proto::event::{Cause, EventKind, Interest};
use lasthop_proto::link::RadioConfig;
use lasthop_proto::mac::{HalfDuplexHops, Hops};
use lasthop_proto::machine::{Machine, Out, Side};
use lasthop_proto::queue::{Discipline, Limit};
use lasthop_proto::rng::Stream;
use lasthop_proto::units::{Probability, Span, Time};
use proptest::prelude::*;

use super::driver::radio;
use super::support::{packet, play, play_late};

const DELAY: Span = Span::micros(500);

fn config(hops: u8) -> HalfDuplexHops {
    HalfDuplexHops { hops, ..HalfDuplexHops::default() }
}

fn machine(radio: &RadioConfig, config: &HalfDuplexHops, seed: u64) -> Hops {
    Hops::new(radio, config, Vec::new(), |part| Stream::new(seed, part))
}

/// At 1 Mb/s: a poll and its answer of 16 bytes, a turnaround, and the packet.
fn exchange(bytes: u64) -> Span {
    Span::micros(128 + 13_250 + 128 + 8 * bytes)
}

#[test]
fn each_packet_pays_a_poll_and_a_turn_around_on_each_hop() {
    for hops in [1_u8, 2, 3] {
        let mut machine = machine(&radio(DELAY), &config(hops), 1);
        let outcome = play(&mut machine, &[(Time::ZERO, Side::Left, 1000)]);
        let at = Time::ZERO + (exchange(1000) + DELAY) * u64::from(hops);
        assert_eq!(outcome.out, [(at, Side::Right, 0)]);
    }
}

/// Transmissions until `until`: time of the report, sender, kind, and fate.
fn on_the_air(
    machine: &mut Hops,
    arrivals: &[(Time, Side, u32)],
    until: Time,
) -> Vec<(Time, Station, FrameKind, FrameFate)> {
    let mut out = Out::new(Interest::METRICS);
    for (id, (at, from, bytes)) in arrivals.iter().enumerate() {
        out.begin(Default::default(), *at);
        machine.on_packet(*at, *from, packet(id as u64, *bytes), &mut out);
    }
    while let Some(at) = machine.next_wake().filter(|at| *at <= until) {
        out.begin(Default::default(), at);
        machine.on_wake(at, &mut out);
    }
    let air = |event: &lasthop_proto::event::Event| match &event.kind {
        EventKind::Air(air) => Some((event.at, air.station, air.kind, air.fate)),
        _ => None,
    };
    out.events.iter().filter_map(air).collect()
}

#[test]
fn a_sending_relay_misses_polls_on_its_other_hop() {
    let arrivals = [(Time::ZERO, Side::Left, 1000), (Time::ZERO, Side::Left, 1000)];
    let mut machine = machine(&radio(Span::ZERO), &config(2), 1);
    // Both the first station and the relay poll when the first packet has arrived at the relay.
    let until = Time::ZERO + exchange(1000) + Span::millis(1);
    let air = on_the_air(&mut machine, &arrivals, until);
    let arrival = Time::ZERO + Span::micros(128);
    let second = arrival + exchange(1000);
    let (first, relay, last) = (Station(0), Station(1), Station(2));
    use FrameFate::{Collided, Received};
    use FrameKind::{Cts, Data, Rts};
    assert_eq!(
        air,
        [
            (arrival, first, Rts, Received),
            (arrival, relay, Cts, Received),
            (arrival, first, Data, Received),
            (second, first, Rts, Collided),
            (second, relay, Rts, Received),
            (second, last, Cts, Received),
            (second, relay, Data, Received),
        ]
    );
}

#[test]
fn stations_that_poll_each_other_both_fail_and_back_off_for_random_times() {
    let arrivals = [(Time::ZERO, Side::Left, 1000), (Time::ZERO, Side::Right, 40)];
    let mut starts = Vec::new();
    for seed in 1..=8 {
        let mut machine = machine(&radio(Span::ZERO), &config(1), seed);
        let outcome = play(&mut machine, &arrivals);
        assert_eq!(outcome.out.len(), 2);
        let first = outcome.out[0].0;
        // The polls waited in vain for a turnaround and four polls; the backoff is 80 to 120 ms.
        let patience = Span::micros(13_250 + 4 * 128);
        assert!(first >= Time::ZERO + patience + Span::millis(80) + exchange(40), "{first}");
        starts.push(first);
    }
    starts.dedup();
    assert!(starts.len() > 1, "the backoff is not random");
}

#[test]
fn without_turn_around_and_contention_nothing_but_polls_is_added() {
    let still = HalfDuplexHops { turnaround: Span::ZERO, ..config(1) };
    let outcome =
        play(&mut machine(&radio(Span::ZERO), &still, 1), &[(Time::ZERO, Side::Left, 1000)]);
    assert_eq!(outcome.out[0].0, Time::ZERO + Span::micros(128 + 128 + 8000));
}

#[test]
fn a_damaged_frame_is_lost_on_its_hop() {
    let always = ErrorModel::PacketLoss(PacketLoss { p: Probability::new(1.0).unwrap() });
    let channel = || Some(Channel::new(&always, Stream::new(1, "errors")));
    let channels = vec![[None, None], [None, channel()]];
    let mut machine =
        Hops::new(&radio(Span::ZERO), &config(2), channels, |part| Stream::new(1, part));
    let outcome =
        play(&mut machine, &[(Time::ZERO, Side::Left, 1000), (Time::ZERO, Side::Right, 40)]);
    let lost: Vec<_> = outcome.dropped.iter().map(|(_, id, cause)| (*id, *cause)).collect();
    assert_eq!(lost, [(0, Cause::FrameLost)]);
    assert_eq!(outcome.out.iter().map(|(_, _, id)| *id).collect::<Vec<_>>(), [1]);
}

#[test]
fn the_filter_works_at_every_station() {
    let filtered = RadioConfig { discipline_left: Discipline::AckFilter, ..radio(Span::ZERO) };
    let arrivals: Vec<_> = (0..6).map(|i| (Time(i), Side::Right, 40)).collect();
    let outcome = play(&mut machine(&filtered, &config(2), 1), &arrivals);
    assert!(outcome.dropped.iter().all(|(_, _, cause)| *cause == Cause::SupersededAck));
    // One packet is being polled for. Of those behind it the newest remains, and the first one that arrived.
    assert!(outcome.dropped.len() >= 3, "{outcome:?}");
    assert_eq!(outcome.out.last().unwrap().2, 5);
}

proptest! {
    #[test]
    fn packets_are_conserved_for_any_arrivals_and_clock_delay(
        hops in 1_u8..7,
        gaps in prop::collection::vec((0_u64..60_000_000, any::<bool>(), 41_u32..1500), 1..40),
        limit in 0_u32..6,
        turnaround in 0_u64..20_000_000,
        late in 0_u64..30_000_000,
        seed in any::<u64>(),
    ) {
        let mut now = Time::ZERO;
        let arrivals: Vec<_> = gaps.iter().map(|(gap, left, bytes)| {
            now += Span(*gap);
            (now, if *left { Side::Left } else { Side::Right }, *bytes)
        }).collect();
        let radio = RadioConfig { queue: Limit::Packets(limit), ..radio(DELAY) };
        let config = HalfDuplexHops { turnaround: Span(turnaround), ..config(hops) };
        // Both assert conservation at each step, and an empty machine in the end.
        let prompt = play(&mut machine(&radio, &config, seed), &arrivals);
        prop_assert_eq!(prompt.out.len() + prompt.dropped.len(), arrivals.len());
        play_late(&mut machine(&radio, &config, seed), &arrivals, |at| at + Span(late));
    }
}
