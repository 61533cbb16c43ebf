//! Power saving of 802.11: sleep times of stations, and the fate of frames for sleeping ones.

use std::collections::BTreeMap;

use lasthop_proto::air::{FrameFate, FrameKind, Station};
use lasthop_proto::event::Cause;
use lasthop_proto::link::fec::Coding;
use lasthop_proto::mac::{Access, Dcf, DcfConfig, Mac, Outcome, Phy, PowerSaveConfig};
use lasthop_proto::rng::Stream;
use lasthop_proto::units::{Span, Time};

use super::driver::{Recorder, frame, radio, run};

const BEACON: Span = Span::micros(102_400);

fn mac(save: PowerSaveConfig, stations: u8) -> Dcf {
    let config = DcfConfig { power_save: Some(save), ..DcfConfig::default() };
    let phy = Phy::dsss(&radio(Span::micros(1)), Coding::NONE);
    Dcf::new(config, phy, stations, Stream::new(1, "mac"))
}

fn polls() -> PowerSaveConfig {
    PowerSaveConfig::default()
}

fn dynamic() -> PowerSaveConfig {
    PowerSaveConfig { timeout: Some(Span::millis(100)), ..PowerSaveConfig::default() }
}

fn secs(n: u64) -> Time {
    Time::ZERO + Span::secs(n)
}

/// Total time awake of each station until `end`.
fn awake(air: &Recorder, stations: u8, end: Time) -> BTreeMap<u8, Span> {
    let mut since: BTreeMap<u8, Option<Time>> =
        (1..stations).map(|s| (s, Some(Time::ZERO))).collect();
    let mut sum: BTreeMap<u8, Span> = (1..stations).map(|s| (s, Span::ZERO)).collect();
    for (at, outcome) in &air.outcomes {
        let Outcome::Doze { station, asleep } = outcome else { continue };
        let since = since.get_mut(&station.0).expect("the access point never sleeps");
        assert_eq!(since.is_some(), *asleep, "{station:?} at {at}: neither twice");
        if let Some(woke) = core::mem::replace(since, (!asleep).then_some(*at)) {
            let sum = sum.get_mut(&station.0).unwrap();
            *sum = *sum + at.since(woke);
        }
    }
    for (s, since) in since {
        if let Some(woke) = since {
            let sum = sum.get_mut(&s).unwrap();
            *sum = *sum + end.since(woke);
        }
    }
    sum
}

fn count(air: &Recorder, kind: FrameKind) -> usize {
    air.air.iter().filter(|(_, event)| event.kind == kind).count()
}

fn arrived(air: &Recorder, to: u8) -> usize {
    let mine = |outcome: &Outcome| matches!(outcome, Outcome::Arrived { frame, .. } if frame.to == Station(to));
    air.outcomes.iter().filter(|(_, outcome)| mine(outcome)).count()
}

#[test]
fn without_traffic_a_station_is_awake_for_its_beacons_only() {
    for (listen, of) in [(1, 1), (3, 3)] {
        let mut mac = mac(PowerSaveConfig { listen, ..polls() }, 2);
        let mut air = Recorder::perfect();
        run(&mut mac, &mut air, secs(30), |_, _, _, _| {});
        let beacons = count(&air, FrameKind::Beacon);
        assert_eq!(beacons, air.air.len(), "nothing else is on the air");
        assert!((292..=294).contains(&beacons), "{beacons}");
        // Its time on the air (192 us and 65 bytes at 1 Mb/s), and at most a backoff of 31 slots and a DIFS.
        let airtime = Span::micros(192 + 65 * 8);
        let received = beacons.div_ceil(of) as u64;
        let time = awake(&air, 2, secs(30))[&1];
        assert!(time >= airtime * received, "{time}");
        assert!(time <= (airtime + Span::micros(50 + 31 * 20 + 1)) * received, "{time}");
    }
}

/// The frame of a sleeping station waits for a beacon that lists the station, and for the poll that follows.
#[test]
fn frames_for_a_dozing_station_wait_for_the_beacon() {
    let (mut mac, mut air) = (mac(polls(), 2), Recorder::perfect());
    let request_at = secs(1);
    run(&mut mac, &mut air, request_at, |_, _, _, _| {});
    air.now = request_at;
    mac.request(request_at, frame(0, 1, 1000), Access::Contend, &mut air);
    assert!(mac.is_idle(Station::BASE), "it is buffered, and the access point is idle");
    run(&mut mac, &mut air, secs(2), |_, _, _, _| {});
    use FrameKind::{Beacon, Data, MacAck, PsPoll};
    let after: Vec<FrameKind> =
        air.air.iter().filter(|(at, _)| *at > request_at).map(|(_, event)| event.kind).collect();
    assert_eq!(after[..6], [Beacon, PsPoll, MacAck, Data, MacAck, Beacon]);
    assert!(after[5..].iter().all(|kind| *kind == Beacon));
    assert_eq!(arrived(&air, 1), 1);
    let (at, _) = air.outcomes.iter().find(|(_, o)| matches!(o, Outcome::Arrived { .. })).unwrap();
    assert!(at.since(request_at) < BEACON + Span::millis(20));
    assert!(air.air.iter().all(|(_, event)| event.fate == FrameFate::Received));
}

/// More Data: with a poll for each, all buffered frames are sent after one beacon, without loss or
/// duplication.
#[test]
fn one_beacon_empties_the_buffer() {
    let (mut mac, mut air) = (mac(polls(), 3), Recorder::perfect());
    run(&mut mac, &mut air, secs(1), |_, _, _, _| {});
    air.now = secs(1);
    for _ in 0..5 {
        mac.request(secs(1), frame(0, 1, 500), Access::Contend, &mut air);
        mac.request(secs(1), frame(0, 2, 500), Access::Contend, &mut air);
    }
    run(&mut mac, &mut air, secs(1) + BEACON * 2, |_, _, _, _| {});
    assert_eq!((arrived(&air, 1), arrived(&air, 2)), (5, 5));
    let polls: Vec<u8> = air
        .air
        .iter()
        .filter(|(_, e)| e.kind == FrameKind::PsPoll && e.fate == FrameFate::Received)
        .map(|(_, e)| e.station.0)
        .collect();
    assert_eq!(polls.iter().filter(|s| **s == 1).count(), 5);
    assert_eq!(polls.iter().filter(|s| **s == 2).count(), 5);
}

/// A listen interval of n makes frames wait for up to n beacons.
#[test]
fn a_longer_listen_interval_waits_longer() {
    let wait = |listen| {
        let (mut mac, mut air) =
            (mac(PowerSaveConfig { listen, ..polls() }, 2), Recorder::perfect());
        let mut waited = Span::ZERO;
        let mut request_at = Time::ZERO + Span::millis(3);
        for _ in 0..40 {
            run(&mut mac, &mut air, request_at, |_, _, _, _| {});
            air.now = request_at;
            mac.request(request_at, frame(0, 1, 100), Access::Contend, &mut air);
            let before = air.outcomes.len();
            let next = request_at + Span::millis(1777);
            run(&mut mac, &mut air, next, |_, _, _, _| {});
            let mut behind = air.outcomes[before..].iter();
            let (at, _) = behind.find(|(_, o)| matches!(o, Outcome::Arrived { .. })).unwrap();
            waited = waited + at.since(request_at);
            request_at = next;
        }
        waited / 40
    };
    // Half an interval on average, plus the duration of the exchange.
    let (one, ten) = (wait(1), wait(10));
    assert!(one > BEACON / 4 && one < BEACON, "{one}");
    assert!(ten > BEACON * 3 && ten < BEACON * 8, "{ten}");
}

#[test]
fn a_station_with_data_to_send_wakes_immediately() {
    for save in [polls(), dynamic()] {
        let (mut mac, mut air) = (mac(save, 2), Recorder::perfect());
        let request_at = secs(1);
        run(&mut mac, &mut air, request_at, |_, _, _, _| {});
        air.now = request_at;
        mac.request(request_at, frame(1, 0, 1000), Access::Contend, &mut air);
        assert!(matches!(
            air.outcomes.last(),
            Some((at, Outcome::Doze { station: Station(1), asleep: false })) if *at == request_at
        ));
        run(&mut mac, &mut air, request_at + Span::millis(20), |_, _, _, _| {});
        assert_eq!(arrived(&air, 0), 1);
    }
}

#[test]
fn frames_over_the_buffer_limit_fail_with_a_cause() {
    let (mut mac, mut air) =
        (mac(PowerSaveConfig { buffer: 3, ..polls() }, 2), Recorder::perfect());
    for _ in 0..5 {
        mac.request(Time::ZERO, frame(0, 1, 500), Access::Contend, &mut air);
    }
    let full = |o: &Outcome| {
        matches!(o, Outcome::Failed { cause: Cause::PowerSaveFull, delivered: false, .. })
    };
    assert_eq!(air.outcomes.iter().filter(|(_, o)| full(o)).count(), 2);
    run(&mut mac, &mut air, secs(1), |_, _, _, _| {});
    assert_eq!(arrived(&air, 1), 3);
}

/// With a timeout the station announces that it is awake, receives buffered and new frames without polls, and
/// announces that it sleeps again.
#[test]
fn with_a_time_out_a_station_stays_awake_while_there_is_traffic() {
    let (mut mac, mut air) = (mac(dynamic(), 2), Recorder::perfect());
    let mut request_at = secs(1);
    run(&mut mac, &mut air, request_at, |_, _, _, _| {});
    for _ in 0..20 {
        air.now = request_at;
        mac.request(request_at, frame(0, 1, 500), Access::Contend, &mut air);
        request_at += Span::millis(90);
        run(&mut mac, &mut air, request_at, |_, _, _, _| {});
    }
    run(&mut mac, &mut air, secs(5), |_, _, _, _| {});
    assert_eq!(arrived(&air, 1), 20);
    assert_eq!((count(&air, FrameKind::PsPoll), count(&air, FrameKind::Null)), (0, 2));
    let awake = awake(&air, 2, secs(5))[&1];
    assert!(awake > Span::millis(1700) && awake < Span::millis(1900), "{awake}");
}

/// Unreadable beacons keep a station awake, and no frame is lost.
#[test]
fn unreadable_beacons_and_polls_lose_no_frames() {
    for save in [polls(), dynamic()] {
        let mut rng = Stream::new(5, "harm");
        let mut air = Recorder::new(move |_, kind, _| kind != FrameKind::Data && rng.below(3) == 0);
        let mut mac = mac(save, 3);
        let mut request_at = Time::ZERO;
        for i in 0..200 {
            run(&mut mac, &mut air, request_at, |_, _, _, _| {});
            air.now = request_at;
            mac.request(request_at, frame(0, 1 + (i % 2) as u8, 300), Access::Contend, &mut air);
            request_at += Span::millis(7 + 13 * (i % 11));
        }
        run(&mut mac, &mut air, request_at + Span::secs(3), |_, _, _, _| {});
        assert_eq!((arrived(&air, 1), arrived(&air, 2)), (100, 100));
        let failed = air
            .outcomes
            .iter()
            .filter(|(_, o)| matches!(o, Outcome::Failed { delivered: false, .. }));
        assert_eq!(failed.count(), 0);
        let _ = awake(&air, 3, request_at + Span::secs(3));
    }
}
