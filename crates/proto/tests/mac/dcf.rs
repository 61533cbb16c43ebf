//! DCF: transmissions and their times, and reports to the link layer.

use lasthop_proto::air::{FrameFate, FrameKind, Station};
use lasthop_proto::event::Cause;
use lasthop_proto::link::RadioConfig;
use lasthop_proto::link::fec::Coding;
use lasthop_proto::mac::{Access, Dcf, DcfConfig, Mac, Outcome, Phy};
use lasthop_proto::rng::Stream;
use lasthop_proto::units::{Rate, Span, Time};

use super::driver::{Recorder, frame, radio, run};

const DELAY: Span = Span::micros(1);
const END: Time = Time(60_000_000_000);

fn mac(config: DcfConfig, stations: u8) -> Dcf {
    Dcf::new(config, Phy::dsss(&radio(DELAY), Coding::NONE), stations, Stream::new(1, "mac"))
}

#[test]
fn on_an_idle_channel_a_frame_goes_after_a_difs_and_is_acknowledged() {
    let (mut mac, mut air) = (mac(DcfConfig::default(), 2), Recorder::perfect());
    mac.request(Time::ZERO, frame(0, 1, 1440), Access::Contend, &mut air);
    run(&mut mac, &mut air, END, |_, _, _, _| {});
    assert_eq!(air.kinds(), [FrameKind::Data, FrameKind::MacAck]);
    let data = Span::micros(192 + 8 * 1476);
    let arrived = Time::ZERO + Span::micros(50) + data + DELAY;
    let acked = arrived + Span::micros(10 + 192 + 112) + DELAY;
    assert_eq!(air.air[0].0, arrived);
    assert_eq!(air.air[1].0, acked);
    assert!(matches!(air.outcomes[0], (Time(50_000), Outcome::Trans { .. })));
    assert!(matches!(air.outcomes[1].1, Outcome::Arrived { intact: true, .. }));
    assert!(
        matches!(&air.outcomes[2], (at, Outcome::Done { acked: Some(true), .. }) if *at == acked)
    );
}

/// 802.11 9.6: an answer has the highest basic rate that does not exceed that of the frame.
#[test]
fn control_frames_go_at_their_own_rate() {
    let config = DcfConfig {
        rts_threshold: 0,
        control_rate: Rate::from_bps(2_000_000),
        ..DcfConfig::default()
    };
    let radio = RadioConfig { rate: Rate::from_bps(11_000_000).unwrap(), ..radio(DELAY) };
    let stream = || Stream::new(1, "mac");
    let mut mac = Dcf::new(config.clone(), Phy::dsss(&radio, Coding::NONE), 2, stream());
    let mut air = Recorder::perfect();
    mac.request(Time::ZERO, frame(0, 1, 500), Access::Contend, &mut air);
    run(&mut mac, &mut air, END, |_, _, _, _| {});
    let times: Vec<Span> = air.air.iter().map(|(_, e)| e.airtime).collect();
    let long = Span::micros(192);
    assert_eq!(times[0], long + Span::micros(80), "RTS");
    assert_eq!(times[1], long + Span::micros(56), "CTS");
    assert_eq!(times[3], long + Span::micros(56), "ACK");
    // Never faster than data.
    let slow = RadioConfig { rate: Rate::from_bps(1_000_000).unwrap(), ..radio };
    let mut mac = Dcf::new(config, Phy::dsss(&slow, Coding::NONE), 2, stream());
    let mut air = Recorder::perfect();
    mac.request(Time::ZERO, frame(0, 1, 500), Access::Contend, &mut air);
    run(&mut mac, &mut air, END, |_, _, _, _| {});
    assert_eq!(air.air[0].1.airtime, long + Span::micros(160));
}

#[test]
fn frames_above_the_threshold_go_behind_rts_and_cts() {
    use FrameKind::{Cts, Data, MacAck, Rts};
    for (bytes, want) in [(464, vec![Data, MacAck]), (465, vec![Rts, Cts, Data, MacAck])] {
        let config = DcfConfig { rts_threshold: 500, ..DcfConfig::default() };
        let (mut mac, mut air) = (mac(config, 3), Recorder::perfect());
        mac.request(Time::ZERO, frame(0, 1, bytes), Access::Contend, &mut air);
        run(&mut mac, &mut air, END, |_, _, _, _| {});
        assert_eq!(air.kinds(), want);
    }
}

/// Claim of an RTS: the other stations are silent until the ACK, even if they did not hear the CTS.
#[test]
fn the_nav_defers_other_stations() {
    let config = DcfConfig { rts_threshold: 0, ..DcfConfig::default() };
    let (mut mac, mut air) = (mac(config, 3), Recorder::perfect());
    mac.request(Time::ZERO, frame(0, 1, 1000), Access::Contend, &mut air);
    let during = Time::ZERO + Span::micros(1500);
    run(&mut mac, &mut air, during, |_, _, _, _| {});
    air.now = during;
    mac.request(during, frame(2, 1, 1000), Access::Contend, &mut air);
    run(&mut mac, &mut air, END, |_, _, _, _| {});
    assert!(air.air.iter().all(|(_, e)| e.fate == FrameFate::Received));
    let senders: Vec<u8> = air.air.iter().map(|(_, e)| e.station.0).collect();
    assert_eq!(senders, [0, 1, 0, 1, 2, 1, 2, 1]);
}

#[test]
fn a_frame_whose_ack_is_lost_is_handed_up_once() {
    let mut acks = 0;
    let mut air = Recorder::new(move |_, kind, _| {
        acks += u32::from(kind == FrameKind::MacAck);
        kind == FrameKind::MacAck && acks <= 2
    });
    let mut mac = mac(DcfConfig::default(), 2);
    mac.request(Time::ZERO, frame(0, 1, 500), Access::Contend, &mut air);
    run(&mut mac, &mut air, END, |_, _, _, _| {});
    let count = |kind| air.air.iter().filter(|(_, e)| e.kind == kind).count();
    assert_eq!((count(FrameKind::Data), count(FrameKind::MacAck)), (3, 3));
    let arrived = air.outcomes.iter().filter(|(_, o)| matches!(o, Outcome::Arrived { .. })).count();
    assert_eq!(arrived, 1);
    assert!(matches!(air.outcomes.last(), Some((_, Outcome::Done { acked: Some(true), .. }))));
}

#[test]
fn after_as_many_tries_as_the_limit_the_frame_is_given_up() {
    let config = DcfConfig { rts_threshold: 500, ..DcfConfig::default() };
    // (length, lost frame, attempts at RTS and data, whether it was delivered)
    let cases = [
        (400, FrameKind::Data, (0, 7), false),
        (400, FrameKind::MacAck, (0, 7), true),
        (1400, FrameKind::Cts, (7, 0), false),
        (1400, FrameKind::Data, (4, 4), false),
        (1400, FrameKind::MacAck, (4, 4), true),
    ];
    for (bytes, lost, tries, reached) in cases {
        let mut air = Recorder::new(move |_, kind, _| kind == lost);
        let mut mac = mac(config.clone(), 2);
        mac.request(Time::ZERO, frame(0, 1, bytes), Access::Contend, &mut air);
        run(&mut mac, &mut air, END, |_, _, _, _| {});
        let count = |kind| air.air.iter().filter(|(_, e)| e.kind == kind).count();
        assert_eq!((count(FrameKind::Rts), count(FrameKind::Data)), tries, "{lost:?}");
        let n = air.outcomes.len();
        let Outcome::Failed { cause, delivered, .. } = &air.outcomes[n - 2].1 else { panic!() };
        assert_eq!((*cause, *delivered), (Cause::RetryLimit, reached));
        assert!(matches!(air.outcomes[n - 1].1, Outcome::Done { acked: Some(false), .. }));
        assert_eq!(mac.next_wake(), None, "nothing is left, post backoff included");
    }
}

/// Only backoffs that end in the same slot collide.
#[test]
fn stations_with_equal_backoffs_collide() {
    let (mut mac, mut air) = (mac(DcfConfig::default(), 3), Recorder::perfect());
    // Both find the channel idle at the same time.
    for s in [1, 2] {
        mac.request(Time::ZERO, frame(s, 0, 500), Access::Contend, &mut air);
    }
    run(&mut mac, &mut air, END, |_, _, _, _| {});
    let fates: Vec<FrameFate> = air.air.iter().map(|(_, e)| e.fate).collect();
    assert_eq!(fates[..2], [FrameFate::Collided; 2]);
    let done =
        air.outcomes.iter().filter(|(_, o)| matches!(o, Outcome::Done { acked: Some(true), .. }));
    assert_eq!(done.count(), 2);
}

/// A station that has just sent backs off before its next frame, so a station that waited meanwhile precedes
/// it about half of the time.
#[test]
fn saturated_stations_share_the_channel() {
    let (mut mac, mut air) = (mac(DcfConfig::default(), 4), Recorder::perfect());
    for s in 1..4 {
        mac.request(Time::ZERO, frame(s, 0, 1000), Access::Contend, &mut air);
    }
    let mut sent = [0_u32; 4];
    run(&mut mac, &mut air, END, |mac, air, now, outcome| {
        if let Outcome::Done { station, .. } = outcome {
            sent[station.index()] += 1;
            assert!(mac.is_idle(*station));
            mac.request(now, frame(station.0, 0, 1000), Access::Contend, air);
        }
    });
    let sum: u32 = sent.iter().sum();
    assert!(sum > 5000 && sent[1..].iter().all(|n| n * 10 > sum * 3), "{sent:?}");
    assert!(mac.is_idle(Station::BASE));
}
