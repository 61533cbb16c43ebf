//! A radio that reports the state changes of its channels, and channels that affect only some frames.

use lasthop_proto::channel::{
    Channel, ErrorModel, Kinds, Overlap, PacketBursts, Traffic, TwoState,
};
use lasthop_proto::event::{EventKind, Interest};
use lasthop_proto::link::{Radio, RadioConfig};
use lasthop_proto::machine::{Machine, Out, Side, Signal};
use lasthop_proto::queue::{Discipline, Limit};
use lasthop_proto::rng::Stream;
use lasthop_proto::units::{Bytes, Probability, Rate, Span, Time};
use lasthop_proto::wire::{Addr, Body, Damage, Flags, Packet, Segment, Seq};

fn packet(payload: u32) -> Packet {
    let segment = Segment::new(1, 2, Seq(0), Seq(0), Flags::ACK);
    let body = Body::Pattern { stream: 1, len: payload, offset: 0 };
    Packet::tcp(Addr::v4(1, 1, 1, 1), Addr::v4(2, 2, 2, 2), segment, body)
}

fn config() -> RadioConfig {
    RadioConfig {
        rate: Rate::from_bps(1_000_000).unwrap(),
        delay: Span::ZERO,
        overhead: Span::ZERO,
        half_duplex: true,
        queue: Limit::Packets(1000),
        discipline_right: Discipline::Fifo,
        discipline_left: Discipline::Fifo,
    }
}

/// bakshi96 3.2: ten seconds good, four bad.
fn ten_and_four() -> ErrorModel {
    ErrorModel::TwoState(TwoState {
        good: Span::secs(10),
        bad: Span::secs(4),
        ber_good: Probability::ZERO,
        ber_bad: Probability::new(1e-2).unwrap(),
        deterministic: true,
    })
}

fn channel(model: &ErrorModel, name: &str) -> Channel {
    Channel::with_states(model, Stream::new(1, name), Stream::new(1, "radio.states"))
}

/// The reports until `end`, with their times; a packet of data is sent to the right every `every`.
fn turns(radio: &mut Radio, end: u64, every: Option<Span>) -> Vec<(u64, Side, bool, Side)> {
    let mut out = Out::new(Interest::EVERYTHING);
    let mut reports = Vec::new();
    let mut next = every.map_or(Time::NEVER, |_| Time::ZERO);
    loop {
        let now = next.min(radio.next_wake().unwrap_or(Time::NEVER));
        if now > Time::ZERO + Span::secs(end) {
            return reports;
        }
        out.begin(Default::default(), now);
        if let Some(every) = every.filter(|_| now == next) {
            radio.on_packet(now, Side::Left, packet(1000), &mut out);
            next += every;
        } else {
            radio.on_wake(now, &mut out);
        }
        out.sends.clear();
        let events = out.events.drain(..).filter_map(|event| match event.kind {
            EventKind::Channel { side, good } => Some((event.at, side, good)),
            _ => None,
        });
        for ((at, side, good), (to, signal)) in events.zip(out.signals.drain(..)) {
            assert_eq!(signal, Signal::ChannelGood(good));
            assert_eq!(at.0 % 1_000_000_000, 0, "reported late");
            reports.push((at.0 / 1_000_000_000, side, good, to));
        }
        assert!(out.signals.is_empty());
    }
}

#[test]
fn channel_reports_are_on_time_with_and_without_traffic() {
    let want = [
        (10, Side::Right, false, Side::Left),
        (14, Side::Right, true, Side::Left),
        (24, Side::Right, false, Side::Left),
        (28, Side::Right, true, Side::Left),
    ];
    for every in [None, Some(Span::millis(9))] {
        let right = channel(&ten_and_four(), "right").reporting();
        let mut radio = Radio::new(config(), None, Some(right));
        assert_eq!(turns(&mut radio, 30, every), want);
    }
}

#[test]
fn each_neighbour_gets_reports_of_its_sending_channel() {
    let both = |name| Some(channel(&ten_and_four(), name).reporting());
    let mut radio = Radio::new(config(), both("left"), both("right"));
    let reports = turns(&mut radio, 11, None);
    let want = [(10, Side::Left, false, Side::Right), (10, Side::Right, false, Side::Left)];
    assert_eq!(reports, want);
}

#[test]
fn without_reporting_a_channel_has_no_timer() {
    let quiet = channel(&ten_and_four(), "right");
    let radio = Radio::new(config(), None, Some(quiet));
    assert_eq!(radio.next_wake(), None, "no timer");
}

#[test]
fn a_late_timer_reports_no_past_channel_changes() {
    let model = ErrorModel::TwoState(TwoState {
        good: Span::millis(10),
        bad: Span::millis(10),
        ber_good: Probability::ZERO,
        ber_bad: Probability::ZERO,
        deterministic: false,
    });
    let mut radio = Radio::new(config(), None, Some(channel(&model, "right").reporting()));
    let mut out = Out::new(Interest::EVERYTHING);
    let days = Time::ZERO + Span::secs(20 * 86_400);
    out.begin(Default::default(), days);
    radio.on_wake(days, &mut out);
    assert!(out.events.len() <= 1);
    assert!(radio.next_wake().is_some_and(|at| at > days));
}

/// parsa98 5.3.1: bursts of `packets` data packets, every 64 KiB of data.
#[test]
fn bursts_of_data_count_data_alone() {
    for packets in [2, 4, 6] {
        let model = ErrorModel::PacketBursts(PacketBursts {
            packets,
            mean: Bytes(65_536),
            uniform: true,
            overlap: Overlap::Restart,
        });
        let run = |acks_between: usize, only: Kinds| {
            let channel = Channel::new(&model, Stream::new(1, "radio")).only(only);
            let mut radio = Radio::new(config(), None, Some(channel));
            let mut out = Out::new(Interest::EVERYTHING);
            let mut damaged = (Vec::new(), 0);
            let mut now = Time::ZERO;
            for i in 0..400 {
                for payload in core::iter::once(1460).chain(vec![0; acks_between]) {
                    out.begin(Default::default(), now);
                    radio.on_packet(now, Side::Left, packet(payload), &mut out);
                    now += Span::millis(20);
                    out.begin(Default::default(), now);
                    radio.on_wake(now, &mut out);
                    for (_, packet) in out.sends.drain(..) {
                        match (packet.damage, packet.is_data()) {
                            (Damage::None, _) => {}
                            (_, true) => damaged.0.push(i),
                            (_, false) => damaged.1 += 1,
                        }
                    }
                }
            }
            damaged
        };
        let data = Kinds::NONE.with(Traffic::Data);
        let (alone, _) = run(0, data);
        // 400 * 1500 bytes have nine distances of 65,536.
        assert_eq!(alone.len(), 9 * packets as usize);
        assert_eq!(alone[0], 43, "byte 65,536 lies in the 44th packet");
        // Any number of acknowledgements between them is neither damaged nor counted.
        assert_eq!(run(3, data), (alone.clone(), 0));
        // Without a filter both are.
        let (other, acks) = run(3, Kinds::ALL);
        assert!(acks > 0 && other != alone);
    }
}
