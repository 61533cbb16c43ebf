//! The meter of a host: states of its radio, power in each state, and the time when the battery is empty.

use lasthop_proto::air::{AirEvent, FrameFate, FrameKind, Station};
use lasthop_proto::energy::{
    Antenna, Hardware, Meter, Operation, PRESETS, RadioPower, RadioState, RadioStates, ReportTime,
    Work, costs,
};
use lasthop_proto::units::{Energy, Power, Span, Time};
use proptest::prelude::*;

const OURS: Station = Station(1);
const DELAY: Span = Span(3);

fn antenna(longest: u64) -> Antenna {
    Antenna { station: OURS, delay: DELAY, reported: ReportTime::AtEnd { longest: Span(longest) } }
}

fn watts(watts: f64) -> Power {
    Power::watts(watts).unwrap()
}

fn joules(joules: f64) -> Energy {
    Energy::joules(joules).unwrap()
}

/// Powers whose sums are all different.
fn hardware(capacity: f64) -> Hardware {
    Hardware {
        name: "test".to_owned(),
        capacity: joules(capacity),
        base: watts(7.0),
        radio: RadioPower {
            doze: watts(0.125),
            idle: watts(0.5),
            receive: watts(1.0),
            transmit: watts(2.0),
        },
        segment: joules(costs::BASE),
    }
}

fn frame(station: u8, airtime: u64) -> AirEvent {
    AirEvent {
        station: Station(station),
        to: Station(0),
        kind: FrameKind::Data,
        bytes: 1,
        airtime: Span(airtime),
        fate: FrameFate::Received,
    }
}

fn work(sends: u32) -> Work {
    let mut work = Work::default();
    work.add(Operation::Send, sends);
    work
}

/// A transmission: station, start, duration.
type Shot = (u8, u64, u64);

/// The reports of the shots, in order, with their times.
fn reports(shots: &[Shot]) -> Vec<(Time, AirEvent)> {
    let mut all: Vec<_> = shots
        .iter()
        .map(|(who, start, airtime)| (Time(start + airtime + DELAY.0), frame(*who, *airtime)))
        .collect();
    all.sort_by_key(|(at, _)| *at);
    all
}

/// The state at every nanosecond, directly from its definition.
fn expected(shots: &[Shot], dozes: &[(u64, bool)], at: u64) -> RadioState {
    let within = |start: u64, airtime: u64| (start..start + airtime).contains(&at);
    let sends = shots.iter().any(|(who, s, a)| *who == OURS.0 && within(*s, *a));
    let receives = shots.iter().any(|(who, s, a)| *who != OURS.0 && within(s + DELAY.0, *a));
    let asleep = dozes.iter().rfind(|(when, _)| *when <= at).is_some_and(|(_, asleep)| *asleep);
    match (sends, asleep, receives) {
        (true, ..) => RadioState::Transmit,
        (false, true, _) => RadioState::Doze,
        (false, false, true) => RadioState::Receive,
        (false, false, false) => RadioState::Idle,
    }
}

#[test]
fn a_collision_reported_late_counts_once() {
    // Station 2 from 100 to 400, station 0 from 200 to 300: reported in the order of their ends.
    let mut states = RadioStates::new(antenna(300));
    let shots = [(2, 100, 300), (0, 200, 100)];
    let mut times = [0; 4];
    let mut count = |state: RadioState, from: Time, to: Time| times[state.index()] += to.0 - from.0;
    for (at, event) in reports(&shots) {
        states.air(at, &event);
        states.settle(states.known(at), &mut count);
    }
    states.settle(Time(1000), &mut count);
    assert_eq!(times[RadioState::Receive.index()], 300);
    assert_eq!(times[RadioState::Idle.index()], 700);
}

#[test]
fn reception_while_sending_is_not_counted() {
    let meter = {
        let mut meter = Meter::new(hardware(1e9), Some(antenna(1000)));
        for (at, event) in reports(&[(1, 100, 500), (0, 300, 600)]) {
            meter.air(at, &event);
        }
        meter
    };
    let (battery, _) = meter.finish(Time(2000));
    assert_eq!(battery.time(RadioState::Transmit), Span(500));
    // Heard from 303 to 903, of which 297 are within the own frame.
    assert_eq!(battery.time(RadioState::Receive), Span(303));
}

#[test]
fn start_reports_give_the_same_times_as_end_reports() {
    let at_start = Antenna { reported: ReportTime::AtStart, ..antenna(0) };
    let mut early = Meter::new(hardware(1e9), Some(at_start));
    let mut late = Meter::new(hardware(1e9), Some(antenna(90)));
    let shots = [(0, 10, 50), (1, 70, 90), (2, 170, 20)];
    shots.iter().for_each(|(who, start, airtime)| early.air(Time(*start), &frame(*who, *airtime)));
    reports(&shots).iter().for_each(|(at, event)| late.air(*at, event));
    for state in RadioState::ALL {
        let time = |meter: &Meter| meter.finish(Time(500)).0.time(state);
        assert_eq!(time(&early), time(&late), "{state:?}");
    }
}

#[test]
fn without_a_radio_there_is_base_and_processing_alone() {
    let mut meter = Meter::new(hardware(1e9), None);
    meter.air(Time(500), &frame(1, 100));
    meter.work(Time(1_000_000_000), &work(10));
    let (battery, totals) = meter.finish(Time(2_000_000_000));
    assert_eq!(RadioState::ALL.map(|state| battery.time(state)), [Span::ZERO; 4]);
    // An instruction costs a joule.
    let instructions = 10.0 * costs::instructions(Operation::Send);
    assert_eq!(totals.instructions, instructions);
    assert!((battery.processing() - instructions).abs() < 1e-6, "{battery:?}");
    assert_eq!(battery.base(), 14.0);
    assert_eq!(battery.spent(), 14.0 + battery.processing());
}

#[test]
fn a_battery_is_empty_at_the_exact_time_and_nothing_counts_afterwards() {
    // Idle draws 7.5 W: 15 J last two seconds.
    let mut meter = Meter::new(hardware(15.0), Some(antenna(1_000_000)));
    let second = 1_000_000_000;
    meter.sent(Time(second), 1000);
    meter.received(Time(second), 10);
    meter.sent(Time(2 * second + 5), 1_000_000);
    meter.work(Time(2 * second + 5), &work(1));
    meter.air(Time(4 * second), &frame(1, 1000));
    let (battery, totals) = meter.finish(Time(9 * second));
    assert_eq!(battery.empty(), Some(Time(2 * second)));
    assert_eq!((totals.sent, totals.received, totals.instructions), (1000, 10, 0.0));
    assert_eq!(battery.elapsed(), Span::secs(2));
    assert_eq!(battery.spent(), 15.0);
    // Work that uses the remaining energy empties it as well.
    let mut meter = Meter::new(hardware(15.0), None);
    meter.work(Time(second), &work(1));
    let (battery, _) = meter.finish(Time(9 * second));
    assert_eq!(battery.empty(), Some(Time(second)));
    assert_eq!((battery.spent(), battery.processing()), (15.0, 8.0));
}

#[test]
fn a_dozing_radio_receives_nothing_and_wakes_to_send() {
    let mut meter = Meter::new(hardware(1e9), Some(antenna(200)));
    meter.doze(Time(100), true);
    meter.air(Time(303), &frame(0, 100));
    meter.air(Time(453), &frame(1, 50));
    meter.doze(Time(600), false);
    meter.air(Time(703), &frame(0, 50));
    let (battery, _) = meter.finish(Time(1000));
    assert_eq!(battery.time(RadioState::Doze), Span(450));
    assert_eq!(battery.time(RadioState::Transmit), Span(50));
    assert_eq!(battery.time(RadioState::Receive), Span(50));
    assert_eq!(battery.time(RadioState::Idle), Span(450));
}

#[test]
fn every_preset_is_drained() {
    for preset in PRESETS {
        let (battery, _) = Meter::new(preset.hardware(), Some(antenna(0)))
            .finish(Time(10_000_000 * 1_000_000_000));
        assert!(battery.empty().is_some(), "{}", preset.name);
    }
}

fn shots() -> impl Strategy<Value = Vec<Shot>> {
    // A station does not begin to send while it sends; an overlap generated here represents one longer frame.
    proptest::collection::vec((0_u8..4, 0_u64..2000, 1_u64..300), 0..30)
}

proptest! {
    /// Every nanosecond has the state of its definition, for any overlap of transmissions.
    #[test]
    fn radio_states_match_their_definition(
        shots in shots(),
        turns in proptest::collection::vec(0_u64..2500, 0..6),
    ) {
        let mut turns = turns;
        turns.sort_unstable();
        let dozes: Vec<(u64, bool)> = turns.iter().enumerate().map(|(i, at)| (*at, i % 2 == 0)).collect();
        let mut states = RadioStates::new(antenna(300));
        let mut seen = Vec::new();
        let mut record = |state: RadioState, from: Time, to: Time| {
            (from.0..to.0).for_each(|at| { assert_eq!(seen.len() as u64, at); seen.push(state); });
        };
        let mut calls: Vec<(Time, Option<AirEvent>, bool)> =
            reports(&shots).into_iter().map(|(at, event)| (at, Some(event), false)).collect();
        calls.extend(dozes.iter().map(|(at, asleep)| (Time(*at), None, *asleep)));
        calls.sort_by_key(|(at, ..)| *at);
        for (at, event, asleep) in calls {
            match event {
                Some(event) => states.air(at, &event),
                None => states.doze(at, asleep),
            }
            states.settle(states.known(at), &mut record);
        }
        states.settle(Time(3000), &mut record);
        prop_assert_eq!(seen.len(), 3000);
        for (at, state) in seen.iter().enumerate() {
            prop_assert_eq!(*state, expected(&shots, &dozes, at as u64), "at {}", at);
        }
    }

    /// The sum of all consumers equals the energy that left the battery, and the states cover the whole time.
    #[test]
    fn energy_is_conserved(
        shots in shots(),
        works in proptest::collection::vec((0_u64..2500, 1_u32..50), 0..20),
        capacity in prop_oneof![Just(1e12), 1e-6..3e-5_f64],
        segment in prop_oneof![Just(0.0), 1e-9..1e-5_f64],
    ) {
        let mut hardware = hardware(capacity);
        hardware.segment = joules(segment);
        let mut meter = Meter::new(hardware, Some(antenna(300)));
        let mut calls: Vec<(Time, Option<AirEvent>, u32)> =
            reports(&shots).into_iter().map(|(at, event)| (at, Some(event), 0)).collect();
        calls.extend(works.iter().map(|(at, sends)| (Time(*at), None, *sends)));
        calls.sort_by_key(|(at, ..)| *at);
        for (at, event, sends) in &calls {
            match event {
                Some(event) => meter.air(*at, event),
                None => meter.work(*at, &work(*sends)),
            }
        }
        let end = Time(3000);
        let (battery, totals) = meter.finish(end);
        let radio: f64 = RadioState::ALL.into_iter().map(|state| battery.by_radio(state)).sum();
        let sum = battery.base() + radio + battery.processing();
        let lost = capacity - battery.left();
        prop_assert!((sum - lost).abs() <= 1e-9 * sum + 1e-15 * capacity, "{sum} {lost}");
        let times: u64 = RadioState::ALL.into_iter().map(|state| battery.time(state).0).sum();
        prop_assert_eq!(times, battery.elapsed().0);
        prop_assert_eq!(times, battery.empty().map_or(end.0, |at| at.0));
        // A nanosecond at full power is the resolution of time.
        if battery.empty().is_some() {
            prop_assert!(battery.left() <= 9.0 * 1e-9, "{}", battery.left());
        } else {
            let all: u32 = works.iter().map(|(_, sends)| sends).sum();
            prop_assert_eq!(totals.instructions, f64::from(all) * costs::instructions(Operation::Send));
        }
    }
}
