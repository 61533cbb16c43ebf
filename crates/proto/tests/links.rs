//! Lines, radios and their queues: packets are conserved, order is preserved, rates are exact to the
//! nanosecond.

use lasthop_proto::channel::{Channel, ErrorModel, TwoState};
use lasthop_proto::event::Cause;
use lasthop_proto::link::{Cross, CrossTraffic, Line, LineConfig, Radio, RadioConfig};
use lasthop_proto::machine::Side;
use lasthop_proto::queue::{Discipline, Limit};
use lasthop_proto::rng::Stream;
use lasthop_proto::units::{Bytes, Probability, Rate, Span, Time};
use proptest::prelude::*;

use crate::support::{Outcome, play, play_late};

fn rate(bps: u64) -> Rate {
    Rate::from_bps(bps).unwrap()
}

fn line(queue: Limit) -> LineConfig {
    LineConfig {
        rate_right: Some(rate(1_000_000)),
        rate_left: Some(rate(500_000)),
        delay: Span::millis(10),
        framing: 25,
        queue,
        discipline_right: Discipline::Fifo,
        discipline_left: Discipline::Fifo,
    }
}

fn radio(half_duplex: bool, queue: Limit) -> RadioConfig {
    RadioConfig {
        rate: rate(1_000_000),
        delay: Span::millis(1),
        overhead: Span::micros(500),
        half_duplex,
        queue,
        discipline_right: Discipline::Fifo,
        discipline_left: Discipline::Fifo,
    }
}

const MS: u64 = 1_000_000;
const PLENTY: Limit = Limit::Packets(1000);

#[test]
fn a_line_serialises_each_direction_on_its_own() {
    let mut line = Line::new(line(PLENTY));
    // 125 bytes on the wire: 1 ms to the right, 2 ms to the left.
    let arrivals = [
        (Time(0), Side::Left, 100),
        (Time(0), Side::Left, 100),
        (Time(0), Side::Right, 100),
        (Time(5 * MS), Side::Left, 100), // the line has been idle
    ];
    let want = [
        (Time(11 * MS), Side::Right, 0),
        (Time(12 * MS), Side::Right, 1),
        (Time(12 * MS), Side::Left, 2),
        (Time(16 * MS), Side::Right, 3),
    ];
    let mut got = play(&mut line, &arrivals).out;
    got.sort_by_key(|(at, side, id)| (*at, *side != Side::Right, *id));
    assert_eq!(got, want);
}

#[test]
fn a_line_without_a_rate_only_delays() {
    let config = LineConfig { rate_right: None, ..line(Limit::Packets(0)) };
    let outcome = play(&mut Line::new(config), &[(Time(7), Side::Left, 1500); 3]);
    assert_eq!(outcome.out.len(), 3);
    assert!(outcome.out.iter().all(|(at, ..)| *at == Time(7 + 10 * MS)));
}

#[test]
fn a_full_queue_drops_the_newest() {
    // One in transmission, two waiting; at 1 ms the first of them starts and makes room.
    for limit in [Limit::Packets(2), Limit::Bytes(Bytes(250))] {
        let mut arrivals = vec![(Time(0), Side::Left, 100); 4];
        arrivals.push((Time(MS), Side::Left, 100));
        arrivals.push((Time(MS), Side::Left, 100));
        let outcome = play(&mut Line::new(line(limit)), &arrivals);
        let dropped = [(Time(0), 3, Cause::QueueFull), (Time(MS), 5, Cause::QueueFull)];
        assert_eq!(outcome.dropped, dropped, "{limit:?}");
    }
    // The radio counts the packets themselves, without framing.
    for limit in [Limit::Packets(2), Limit::Bytes(Bytes(200))] {
        let mut radio = Radio::new(radio(true, limit), None, None);
        let outcome = play(&mut radio, &[(Time(0), Side::Left, 100); 4]);
        assert_eq!(outcome.dropped, [(Time(0), 3, Cause::QueueFull)], "{limit:?}");
    }
}

#[test]
fn both_stations_of_a_half_duplex_radio_take_turns() {
    // 100 bytes: 0.8 ms and 0.5 ms of overhead, then 1 ms of propagation.
    let mut radio = Radio::new(radio(true, PLENTY), None, None);
    let mut arrivals = vec![(Time(0), Side::Left, 100); 3];
    arrivals.extend([(Time(0), Side::Right, 100); 2]);
    let times = |n: u64| Time(n * 13 * MS / 10 + MS);
    let want = [
        (times(1), Side::Right, 0),
        (times(2), Side::Left, 3),
        (times(3), Side::Right, 1),
        (times(4), Side::Left, 4),
        (times(5), Side::Right, 2),
    ];
    assert_eq!(play(&mut radio, &arrivals).out, want);
}

#[test]
fn full_duplex_stations_do_not_wait_for_each_other() {
    let mut radio = Radio::new(radio(false, PLENTY), None, None);
    let arrivals = [(Time(0), Side::Left, 100), (Time(0), Side::Right, 100)];
    let out = play(&mut radio, &arrivals).out;
    assert!(out.iter().all(|(at, ..)| *at == Time(23 * MS / 10)));
}

/// A clock that advances once a `tick`.
fn coarse(tick: Span) -> impl Fn(Time) -> Time {
    move |wake| Time(wake.0.next_multiple_of(tick.0))
}

/// From much less than the duration of a frame to that of many.
fn ticks() -> impl Strategy<Value = Span> {
    prop_oneof![30_000u64..1_000_000, 1_000_000u64..50_000_000].prop_map(Span)
}

/// The equivalent of an exact run in a world with a coarse clock: each packet at the first tick at which it
/// is due, for any duration; the same drops at the same times.
fn seen_coarsely(mut exact: Outcome, tick: Span) -> Outcome {
    exact.out.iter_mut().for_each(|(at, ..)| *at = coarse(tick)(*at));
    sorted(exact)
}

/// Packets delivered at one tick are ordered only within each direction.
fn sorted(mut outcome: Outcome) -> Outcome {
    outcome.out.sort_by_key(|(at, side, _)| (*at, side.index()));
    outcome.damaged.sort_unstable();
    outcome
}

#[test]
fn a_late_timer_does_not_delay_later_frames() {
    // 1.3 ms each, back to back. If each frame began at the timer's tick, the last would arrive at 35 ms.
    let arrivals = [(Time(0), Side::Left, 100); 20];
    let mut machine = Radio::new(radio(true, PLENTY), None, None);
    let outcome = play_late(&mut machine, &arrivals, |wake| wake + Span::micros(400));
    let want = (1..=20).map(|n| Time(n * 13 * MS / 10 + MS) + Span::micros(400));
    assert!(outcome.out.iter().map(|(at, ..)| *at).eq(want), "{:?}", outcome.out);
}

fn arrivals() -> impl Strategy<Value = Vec<(Time, Side, u32)>> {
    let one = (0u64..3_000_000, any::<bool>(), prop_oneof![Just(40u32), 41u32..1500]);
    prop::collection::vec(one, 1..80).prop_map(|steps| {
        let mut now = Time::ZERO;
        let step = |(gap, left, bytes)| {
            now += Span(gap);
            (now, if left { Side::Left } else { Side::Right }, bytes)
        };
        steps.into_iter().map(step).collect()
    })
}

const DISCIPLINES: [Discipline; 4] = [
    Discipline::Fifo,
    Discipline::AckFilter,
    Discipline::AcksFirst,
    Discipline::AckFilterAcksFirst,
];

fn disciplines() -> impl Strategy<Value = Discipline> {
    prop::sample::select(DISCIPLINES.to_vec())
}

fn limits() -> impl Strategy<Value = Limit> {
    prop_oneof![
        (0u32..6).prop_map(Limit::Packets),
        (0u64..4000).prop_map(|n| Limit::Bytes(Bytes(n))),
    ]
}

/// Packets are delivered in order in each direction.
fn in_order(outcome: &Outcome) -> bool {
    [Side::Left, Side::Right].iter().all(|side| {
        let ids: Vec<u64> = outcome.out.iter().filter(|o| o.1 == *side).map(|o| o.2).collect();
        ids.is_sorted()
    })
}

/// When each delivered packet was on the air or the wire: from, to, and direction.
fn transmissions(
    outcome: &Outcome,
    arrivals: &[(Time, Side, u32)],
    delay: Span,
    duration: impl Fn(Side, u32) -> Span,
) -> Vec<(u64, u64, Side)> {
    let mut all: Vec<_> = outcome
        .out
        .iter()
        .map(|(at, side, id)| {
            let end = at.0 - delay.0;
            (end - duration(*side, arrivals[*id as usize].2).0, end, *side)
        })
        .collect();
    all.sort_by_key(|(from, ..)| *from);
    all
}

proptest! {
    #[test]
    fn a_line_preserves_order_and_never_exceeds_its_rate(arrivals in arrivals(), limit in limits()) {
        let config = line(limit);
        let outcome = play(&mut Line::new(config.clone()), &arrivals);
        prop_assert!(in_order(&outcome));
        let duration = |side, bytes: u32| {
            let rate = if side == Side::Left { config.rate_left } else { config.rate_right };
            rate.unwrap().transmit((bytes + config.framing).into())
        };
        let all = transmissions(&outcome, &arrivals, config.delay, duration);
        for side in [Side::Left, Side::Right] {
            let mine: Vec<_> = all.iter().filter(|t| t.2 == side).collect();
            prop_assert!(mine.windows(2).all(|two| two[0].1 <= two[1].0));
        }
    }

    #[test]
    fn a_radio_preserves_order_and_never_overlaps_frames(
        arrivals in arrivals(),
        limit in limits(),
        half_duplex in any::<bool>(),
    ) {
        let config = radio(half_duplex, limit);
        let outcome = play(&mut Radio::new(config.clone(), None, None), &arrivals);
        prop_assert!(in_order(&outcome));
        let duration = |_, bytes: u32| config.overhead + config.rate.transmit(bytes.into());
        let all = transmissions(&outcome, &arrivals, config.delay, duration);
        for (i, a) in all.iter().enumerate() {
            for b in &all[i + 1..] {
                prop_assert!(a.1 <= b.0 || (!half_duplex && a.2 != b.2), "{:?} {:?}", a, b);
            }
        }
        // The medium is not idle while a packet waits.
        if limit == Limit::Packets(5) && half_duplex {
            for two in all.windows(2) {
                let waiting = |t: &(u64, u64, Side)| arrivals.iter().any(|a| a.0.0 == t.0);
                prop_assert!(two[0].1 == two[1].0 || waiting(&two[1]));
            }
        }
    }

    #[test]
    fn a_line_stays_on_schedule_with_coarse_clocks(
        arrivals in arrivals(),
        limit in limits(),
        discipline in disciplines(),
        tick in ticks(),
    ) {
        let config =
            LineConfig { discipline_right: discipline, discipline_left: discipline, ..line(limit) };
        let exact = play(&mut Line::new(config.clone()), &arrivals);
        let late = play_late(&mut Line::new(config), &arrivals, coarse(tick));
        prop_assert_eq!(sorted(late), seen_coarsely(exact, tick));
    }

    #[test]
    fn a_radio_stays_on_schedule_with_coarse_clocks(
        arrivals in arrivals(),
        limit in limits(),
        half_duplex in any::<bool>(),
        discipline in disciplines(),
        seed in any::<u64>(),
        tick in ticks(),
    ) {
        let config = RadioConfig {
            discipline_right: discipline,
            discipline_left: discipline,
            ..radio(half_duplex, limit)
        };
        // A channel that depends on the clock: it must see each frame at its own time.
        let model = ErrorModel::TwoState(TwoState {
            good: Span::millis(5),
            bad: Span::millis(3),
            ber_good: Probability::ZERO,
            ber_bad: Probability::new(1e-3).unwrap(),
            deterministic: false,
        });
        let channel = |part| Some(Channel::new(&model, Stream::new(seed, part)));
        let machine = || Radio::new(config.clone(), channel("left"), channel("right"));
        let exact = play(&mut machine(), &arrivals);
        let late = play_late(&mut machine(), &arrivals, coarse(tick));
        prop_assert_eq!(sorted(late), seen_coarsely(exact, tick));
    }

    #[test]
    fn a_shared_router_stays_on_schedule_with_coarse_clocks(
        arrivals in arrivals(),
        seed in any::<u64>(),
        tick in ticks(),
    ) {
        let config = CrossTraffic {
            loss: Probability::new(0.3).unwrap(),
            jitter: Span::millis(9),
            ..CrossTraffic::default()
        };
        let machine = || Cross::new(config.clone(), Stream::new(seed, "cross"));
        let exact = play(&mut machine(), &arrivals);
        let late = play_late(&mut machine(), &arrivals, coarse(tick));
        prop_assert_eq!(sorted(late), seen_coarsely(exact, tick));
    }

    /// For data alone every discipline is equivalent to the plain queue.
    #[test]
    fn without_acks_every_discipline_is_fifo(arrivals in arrivals(), limit in limits(), half in any::<bool>()) {
        let arrivals: Vec<_> = arrivals.into_iter().map(|(at, side, bytes)| (at, side, bytes.max(41))).collect();
        for discipline in DISCIPLINES {
            let (right, left) = (discipline, discipline);
            let config = LineConfig { discipline_right: right, discipline_left: left, ..line(limit) };
            let plain = play(&mut Line::new(line(limit)), &arrivals);
            prop_assert_eq!(sorted(play(&mut Line::new(config), &arrivals)), sorted(plain));
            let config = RadioConfig { discipline_right: right, discipline_left: left, ..radio(half, limit) };
            let plain = play(&mut Radio::new(radio(half, limit), None, None), &arrivals);
            prop_assert_eq!(play(&mut Radio::new(config, None, None), &arrivals), plain);
        }
    }

    #[test]
    fn a_shared_router_preserves_order_and_drops_only_data(arrivals in arrivals(), seed in any::<u64>()) {
        let config = CrossTraffic {
            loss: Probability::new(0.3).unwrap(),
            jitter: Span::millis(9),
            ..CrossTraffic::default()
        };
        let mut cross = Cross::new(config.clone(), Stream::new(seed, "cross"));
        let outcome = play(&mut cross, &arrivals);
        prop_assert!(in_order(&outcome));
        for (_, id, cause) in outcome.dropped {
            prop_assert_eq!(cause, Cause::CrossTraffic);
            prop_assert!(arrivals[id as usize].2 > 40);
        }
    }
}
