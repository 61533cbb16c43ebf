//! FAMA-NCS: transmissions and their times, and reports to the link layer.

use core::fmt::Write as _;

use lasthop_proto::air::{FrameFate, FrameKind, Station};
use lasthop_proto::link::fec::Coding;
use lasthop_proto::mac::fama_ncs::table::{
    Action as A, Action, Event as E, Event, State as S, State, rule,
};
use lasthop_proto::mac::{Access, FamaConfig, FamaNcs, Mac, Outcome, Phy};
use lasthop_proto::rng::Stream;
use lasthop_proto::units::{Span, Time};

use super::driver::{Recorder, frame, radio, run};

/// Propagation delay and radio turnaround time.
const DELAY: Span = Span::micros(5);
const TURN: Span = Span::micros(10);
/// 192 us and 20 bytes at 1 Mb/s.
const RTS: Span = Span::micros(352);
/// Duration of an RTS, a round trip and a turnaround, in whole bytes: 23 of them.
const CTS: Span = Span::micros(376);
const END: Time = Time(60_000_000_000);

fn mac(config: FamaConfig, stations: u8) -> FamaNcs {
    FamaNcs::new(config, Phy::dsss(&radio(DELAY), Coding::NONE), stations, Stream::new(1, "mac"))
}

/// Duration of a data frame with 36 bytes of headers.
fn data(bytes: u64) -> Span {
    Span::micros(192 + 8 * (36 + bytes))
}

fn micros(span: Span) -> Time {
    Time::ZERO + span
}

#[test]
fn a_frame_goes_behind_an_rts_and_a_cts() {
    let (mut mac, mut air) = (mac(FamaConfig::default(), 3), Recorder::perfect());
    mac.request(Time::ZERO, frame(0, 1, 1440), Access::Contend, &mut air);
    assert!(!mac.is_idle(Station(0)));
    run(&mut mac, &mut air, END, |_, _, _, _| {});
    assert_eq!(air.kinds(), [FrameKind::Rts, FrameKind::Cts, FrameKind::Data]);
    let clear = RTS + DELAY + TURN + CTS + DELAY;
    let sent = clear + TURN + data(1440);
    let at = |want: &dyn Fn(&Outcome) -> bool| {
        air.outcomes.iter().find(|(_, outcomes)| want(outcomes)).map(|(at, _)| *at)
    };
    assert_eq!(at(&|o| matches!(o, Outcome::Trans { .. })), Some(micros(clear + TURN)));
    assert_eq!(at(&|o| matches!(o, Outcome::Done { acked: None, .. })), Some(micros(sent)));
    let arrived = at(&|o| matches!(o, Outcome::Arrived { intact: true, may_reply: true, .. }));
    assert_eq!(arrived, Some(micros(sent + DELAY)));
    // WAIT lasts from the end of a short answer, had one begun with this RTS, to the end of the data.
    let until = air.outcomes.iter().find_map(|(at, outcomes)| match outcomes {
        Outcome::Wait { station: Station(1), from: Station(0), hold } => Some(*at + *hold),
        _ => None,
    });
    let short = data(40).saturating_sub(RTS);
    assert_eq!(
        until,
        Some(Time((sent + DELAY + DELAY * 2 + TURN).0 - short.0 - (DELAY * 2 + TURN).0))
    );
    assert!((0..3).all(|s| mac.state(Station(s)) == State::Passive));
    assert_eq!(mac.next_wake(), None);
}

#[test]
fn a_cts_dominates_an_rts() {
    assert!(CTS > RTS + DELAY * 2 + TURN);
    for delay in [Span::ZERO, Span::micros(1), Span::millis(1), Span::millis(75)] {
        let phy = Phy::dsss(&radio(delay), Coding::NONE);
        let mut mac = FamaNcs::new(FamaConfig::default(), phy, 2, Stream::new(1, "mac"));
        let mut air = Recorder::perfect();
        mac.request(Time::ZERO, frame(0, 1, 100), Access::Contend, &mut air);
        run(&mut mac, &mut air, END, |_, _, _, _| {});
        let time = |kind| air.air.iter().find(|(_, e)| e.kind == kind).unwrap().1.airtime;
        assert!(time(FrameKind::Cts) > time(FrameKind::Rts) + delay * 2, "{delay}");
        assert!(
            air.outcomes.iter().any(|(_, o)| matches!(o, Outcome::Arrived { intact: true, .. }))
        );
    }
}

/// Sends a frame from 0 to 1 and answers it with `bytes`; returns the transmissions, and the time of the
/// answer.
fn answered(config: FamaConfig, bytes: u32) -> (Vec<FrameKind>, Span) {
    let (mut mac, mut air) = (mac(config, 3), Recorder::perfect());
    mac.request(Time::ZERO, frame(0, 1, 1440), Access::Contend, &mut air);
    let mut arrived = None;
    let mut took = None;
    run(&mut mac, &mut air, END, |mac, air, now, outcome| {
        let Outcome::Arrived { frame: came, intact, may_reply } = outcome else { return };
        assert!(intact);
        if came.from == Station(0) {
            let access = if *may_reply { Access::Reply } else { Access::Contend };
            arrived = Some(now);
            mac.request(now, frame(1, 0, bytes), access, air);
        } else {
            took = Some(now - arrived.unwrap());
        }
    });
    (air.kinds(), took.unwrap())
}

/// parsa98 figure 4.
#[test]
fn an_accelerated_answer_needs_no_handshake_if_it_is_short() {
    use FrameKind::{Ack, Cts, Data, Rts};
    let (kinds, took) = answered(FamaConfig::default(), 40);
    assert_eq!(kinds, [Rts, Cts, Data, Ack]);
    assert_eq!(took, TURN + data(40) + DELAY);
    // (b): a longer one begins with an RTS at once.
    let (kinds, took) = answered(FamaConfig::default(), 41);
    assert_eq!(kinds, [Rts, Cts, Data, Rts, Cts, Data]);
    let handshake = RTS + DELAY + TURN + CTS + DELAY;
    assert_eq!(took, TURN + handshake + TURN + data(41) + DELAY);
    // Without acceleration an answer waits like every frame.
    let plain = FamaConfig { acceleration: false, ..FamaConfig::default() };
    let (kinds, took) = answered(plain, 40);
    assert_eq!(kinds, [Rts, Cts, Data, Rts, Cts, Ack]);
    assert!(took >= RTS + handshake + TURN + data(40) + DELAY, "{took}");
}

#[test]
fn only_rts_within_a_propagation_delay_collide() {
    for (gap, collide) in [(0, true), (4_999, true), (5_000, true), (5_001, false)] {
        let (mut mac, mut air) = (mac(FamaConfig::default(), 3), Recorder::perfect());
        mac.request(Time::ZERO, frame(1, 0, 500), Access::Contend, &mut air);
        run(&mut mac, &mut air, Time(gap), |_, _, _, _| {});
        air.now = Time(gap);
        // At 5,000 ns the carrier was sensed at the same instant.
        let sensed = mac.state(Station(2)) == State::Remote;
        mac.request(Time(gap), frame(2, 0, 500), Access::Contend, &mut air);
        run(&mut mac, &mut air, END, |_, _, _, _| {});
        let collided = air.air.iter().filter(|(_, e)| e.fate == FrameFate::Collided).count();
        assert_eq!(collided > 0, collide && !sensed, "{gap}");
        assert!(
            air.air.iter().all(|(_, e)| e.kind == FrameKind::Rts || e.fate == FrameFate::Received)
        );
        let arrived =
            air.outcomes.iter().filter(|(_, o)| matches!(o, Outcome::Arrived { intact: true, .. }));
        assert_eq!(arrived.count(), 2, "{gap}");
    }
}

/// A loss before the data frame only costs time; the data frame itself is not retransmitted.
#[test]
fn a_handshake_is_tried_again_and_a_data_frame_is_not() {
    for kind in [FrameKind::Rts, FrameKind::Cts, FrameKind::Data] {
        let mut harmed = 0;
        let mut air = Recorder::new(move |_, k, _| {
            harmed += u32::from(k == kind);
            k == kind && harmed <= 3
        });
        let mut mac = mac(FamaConfig::default(), 3);
        mac.request(Time::ZERO, frame(0, 1, 1440), Access::Contend, &mut air);
        run(&mut mac, &mut air, END, |_, _, _, _| {});
        let count = |kind| air.air.iter().filter(|(_, e)| e.kind == kind).count();
        let (rts, cts, data) =
            (count(FrameKind::Rts), count(FrameKind::Cts), count(FrameKind::Data));
        let arrived = air.outcomes.iter().filter_map(|(_, o)| match o {
            Outcome::Arrived { intact, .. } => Some(*intact),
            _ => None,
        });
        let want = match kind {
            FrameKind::Rts => (4, 1, 1),
            FrameKind::Cts => (4, 4, 1),
            _ => (1, 1, 1),
        };
        assert_eq!((rts, cts, data), want, "{kind:?}");
        assert!(arrived.eq([kind != FrameKind::Data]));
    }
}

/// Two stations that always have frames for each other have equal shares.
#[test]
fn saturated_stations_share_the_channel_equally() {
    let (mut mac, mut air) = (mac(FamaConfig::default(), 4), Recorder::perfect());
    for s in 1..4 {
        mac.request(Time::ZERO, frame(s, 0, 1000), Access::Contend, &mut air);
    }
    let mut sent = [0_u32; 4];
    run(&mut mac, &mut air, END, |mac, air, now, outcome| {
        if let Outcome::Done { station, .. } = outcome {
            sent[station.index()] += 1;
            mac.request(now, frame(station.0, 0, 1000), Access::Contend, air);
        }
    });
    let sum: u32 = sent.iter().sum();
    assert!(sum > 5000, "{sent:?}");
    assert!(sent[1..].iter().all(|n| n * 10 > sum * 3), "{sent:?}");
    let collided = air.air.iter().filter(|(_, e)| e.fate == FrameFate::Collided);
    assert!(collided.clone().all(|(_, e)| e.kind == FrameKind::Rts));
    assert!(collided.count() > 0, "or nothing is tested");
}

/// A pair that always sends long answers does not exclude the third station.
#[test]
fn long_answers_do_not_exclude_a_third_station() {
    let (mut mac, mut air) = (mac(FamaConfig::default(), 3), Recorder::perfect());
    for (from, to) in [(0, 1), (2, 0)] {
        mac.request(Time::ZERO, frame(from, to, 1000), Access::Contend, &mut air);
    }
    let mut sent = [0_u32; 3];
    run(&mut mac, &mut air, END, |mac, air, now, outcome| match outcome {
        Outcome::Done { station, .. } => {
            sent[station.index()] += 1;
            if *station == Station(2) {
                mac.request(now, frame(2, 0, 1000), Access::Contend, air);
            }
        }
        Outcome::Arrived { frame: came, may_reply, .. }
            if came.from != Station(2) && mac.is_idle(came.to) =>
        {
            let access = if *may_reply { Access::Reply } else { Access::Contend };
            mac.request(now, frame(came.to.0, came.from.0, 1000), access, air);
        }
        _ => {}
    });
    assert!(sent[2] * 5 > sent.iter().sum::<u32>(), "{sent:?}");
}

/// A station that hears the RTS of others leaves room for the CTS, even if none follows.
#[test]
fn a_station_hearing_an_rts_waits_for_a_cts() {
    let (mut mac, mut air) =
        (mac(FamaConfig::default(), 3), Recorder::new(|_, kind, _| kind == FrameKind::Rts));
    mac.request(Time::ZERO, frame(0, 1, 1440), Access::Contend, &mut air);
    let since_rts = |after| micros(RTS + DELAY + Span::micros(after));
    run(&mut mac, &mut air, since_rts(CTS.0 / 1000), |_, _, _, _| {});
    assert_eq!(mac.state(Station(2)), State::Remote, "a CTS may be on its way");
    run(&mut mac, &mut air, since_rts(CTS.0 / 1000 + 100), |_, _, _, _| {});
    assert_eq!(mac.state(Station(2)), State::Passive, "none has come");
}

/// A station that hears a data frame of others leaves room for an answer only. For an unreadable frame it
/// would leave room for the longest frame.
#[test]
fn a_station_hearing_data_waits_for_the_answer_only() {
    let sent = RTS + DELAY + TURN + CTS + DELAY + TURN + data(1440);
    let (mut mac, mut air) = (mac(FamaConfig::default(), 3), Recorder::perfect());
    mac.request(Time::ZERO, frame(0, 1, 1440), Access::Contend, &mut air);
    run(&mut mac, &mut air, micros(sent + DELAY + Span::micros(1)), |_, _, _, _| {});
    assert_eq!(mac.state(Station(2)), State::Remote, "an answer may come");
    run(&mut mac, &mut air, micros(sent + Span::millis(2)), |_, _, _, _| {});
    assert_eq!(mac.state(Station(2)), State::Passive, "none has come");
}

fn state_name(state: State) -> &'static str {
    match state {
        S::Passive => "PASSIVE",
        S::Backoff => "BACKOFF",
        S::Rts => "RTS",
        S::ToRts => "TO_RTS",
        S::ToCts => "TO_CTS",
        S::Cts => "CTS",
        S::ToXmit => "TO_XMIT",
        S::Xmit => "XMIT",
        S::Remote => "REMOTE",
    }
}

fn event_name(event: Event) -> &'static str {
    match event {
        E::Request => "frame to send",
        E::ShortAnswer => "short answer",
        E::LongAnswer => "long answer",
        E::Carrier => "carrier",
        E::Expired => "timer, frame waits",
        E::ExpiredEmpty => "timer, no frame",
        E::Rts => "RTS",
        E::Cts => "CTS",
        E::Data => "data",
        E::OtherRts => "other's RTS",
        E::OtherCts => "other's CTS",
        E::OtherData => "other's data",
        E::Noise => "noise",
        E::LongNoise => "long noise",
    }
}

fn action_name(action: Action) -> &'static str {
    match action {
        A::Nothing => "nothing",
        A::Rest => "stop the timer",
        A::DrawBackoff => "draw a backoff",
        A::TurnRound => "turn round",
        A::TellWait => "WAIT, turn round",
        A::SendRts => "send RTS",
        A::SendCts => "send CTS",
        A::SendData => "TRANS, send data",
        A::Finish => "done, leave time for an answer",
        A::HandUp => "hand up, leave time for an answer",
        A::LeaveAnswer => "leave time for an answer",
        A::LeaveCts => "leave time for a CTS",
        A::LeaveData => "leave time for the data",
        A::LeaveLongest => "leave time for the longest frame",
    }
}

/// The table and its diagram as Markdown, for `docs/reference/systems/fama-ncs.md`.
fn markdown() -> String {
    let mut text = String::from("```mermaid\nstateDiagram-v2\n    [*] --> PASSIVE\n");
    for from in State::ALL {
        for to in State::ALL {
            let causes: Vec<&str> = Event::ALL
                .into_iter()
                .filter(|event| rule(from, *event).is_some_and(|(next, _)| next == to))
                .map(event_name)
                .collect();
            if !causes.is_empty() {
                let causes = causes.join(" / ");
                let _ = writeln!(text, "    {} --> {}: {causes}", state_name(from), state_name(to));
            }
        }
    }
    text.push_str("```\n\n| in state | on | do | then in state |\n|---|---|---|---|\n");
    for from in State::ALL {
        for event in Event::ALL {
            if let Some((next, action)) = rule(from, event) {
                let row =
                    [state_name(from), event_name(event), action_name(action), state_name(next)];
                let _ = writeln!(text, "| {} |", row.join(" | "));
            }
        }
    }
    text
}

#[test]
fn the_documentation_contains_the_transition_table() {
    super::driver::is_in_docs("reference/systems/fama-ncs.md", &markdown());
}

/// In each state each possible event has a rule, or is inaudible there.
#[test]
fn no_state_is_a_dead_end() {
    for state in State::ALL {
        let leaves =
            Event::ALL.iter().any(|e| rule(state, *e).is_some_and(|(next, _)| next != state));
        assert!(leaves, "{}", state_name(state));
        let timer = rule(state, Event::Expired).is_some();
        assert_eq!(timer, state != State::Passive, "{}", state_name(state));
    }
}
