//! Serial lines: short frames, lost frames, effects of a lost frame on later ones; conservation of packets.

use lasthop_proto::event::{Cause, EventKind, Interest, Op};
use lasthop_proto::link::header_compression::{CompressionConfig, Recovery};
use lasthop_proto::link::{Line, LineConfig, Serial, SerialConfig};
use lasthop_proto::machine::{Machine, Out, Side};
use lasthop_proto::queue::{Discipline, Limit};
use lasthop_proto::rng::Stream;
use lasthop_proto::units::{Probability, Rate, Span, Time};
use lasthop_proto::wire::emit::emit;
use lasthop_proto::wire::{Addr, Body, Damage, Flags, Packet, PacketId, Segment, Seq};
use proptest::prelude::*;

fn line(queue: u32) -> LineConfig {
    LineConfig {
        rate_right: Rate::from_bps(8000),
        rate_left: Rate::from_bps(8000),
        delay: Span::millis(10),
        framing: 0,
        queue: Limit::Packets(queue),
        discipline_right: Discipline::Fifo,
        discipline_left: Discipline::Fifo,
    }
}

fn config(recovery: Option<Recovery>, loss: f64) -> SerialConfig {
    let compression =
        recovery.map(|recovery| CompressionConfig { recovery, ..CompressionConfig::default() });
    let frame_loss = Probability::new(loss).unwrap();
    SerialConfig {
        line: line(50),
        compression,
        ack_size: None,
        frame_loss,
        frame_fates_right: None,
        frame_fates_left: None,
        loss_noticed: true,
    }
}

fn serial(config: SerialConfig, seed: u64) -> Serial {
    let name = |part: &str| part.rsplit('.').next().unwrap_or_default().to_owned();
    Serial::new(config, |part| Stream::new(seed, &name(part)))
}

/// ACK number `i`, of 40 bytes.
fn ack(i: u32) -> Packet {
    let segment = Segment::new(1, 2, Seq(1), Seq(1000 * i), Flags::ACK);
    let mut packet = Packet::tcp(Addr::v4(1, 1, 1, 1), Addr::v4(2, 2, 2, 2), segment, Body::EMPTY);
    packet.id = PacketId(i.into());
    packet
}

/// Delivered packets, and the causes of the others.
type Outcome = (Vec<(Time, Side, Packet)>, Vec<(u64, Cause)>);

/// Sends `arrivals` through `machine` and checks conservation at each step.
fn play(machine: &mut impl Machine, mut arrivals: Vec<(Time, Side, Packet)>) -> Outcome {
    arrivals.reverse();
    let mut out = Out::new(Interest::EVERYTHING);
    let (mut outcome, mut inside) = (Outcome::default(), 0);
    loop {
        let wake = machine.next_wake().unwrap_or(Time::NEVER);
        let now = arrivals.last().map_or(wake, |(at, ..)| wake.min(*at));
        if now == Time::NEVER {
            assert_eq!(machine.holds(), 0);
            return outcome;
        }
        out.begin(Default::default(), now);
        match arrivals.pop_if(|(at, ..)| *at == now) {
            Some((_, from, packet)) => {
                machine.on_packet(now, from, packet, &mut out);
                inside += 1;
            }
            None => {
                machine.on_wake(now, &mut out);
                assert!(machine.next_wake().is_none_or(|next| next > now), "no progress at {now}");
            }
        }
        inside -= out.sends.len();
        outcome.0.extend(out.sends.drain(..).map(|(side, packet)| (now, side, packet)));
        for event in out.events.drain(..) {
            if let EventKind::Packet { op: Op::Dropped(cause), packet, .. } = event.kind {
                outcome.1.push((packet.id.0, cause));
                inside -= 1;
            }
        }
        assert_eq!(inside, machine.holds(), "conservation at {now}");
    }
}

fn acks(n: u32, every: Span) -> Vec<(Time, Side, Packet)> {
    let mut at = Time::ZERO;
    let next = |i| {
        at += every;
        (at, Side::Right, ack(i))
    };
    (1..=n).map(next).collect()
}

#[test]
fn acks_cross_in_six_bytes() {
    let (out, drops) =
        play(&mut serial(config(Some(Recovery::Retransmission), 0.0), 1), acks(4, Span::ZERO));
    assert_eq!(drops, []);
    // A millisecond a byte: the first whole, the others in 6 bytes each, immediately after it.
    let times: Vec<_> = out.iter().map(|(at, ..)| *at).collect();
    assert_eq!(times, [50, 56, 62, 68].map(|ms| Time::ZERO + Span::millis(ms)));
    assert!(
        out.iter().zip(1..).all(|((_, side, packet), i)| (*side, packet) == (Side::Left, &ack(i)))
    );
}

/// Forty ACKs, of which exactly the third is lost.
fn third_lost(recovery: Recovery, noticed: bool) -> Outcome {
    const LOSS: f64 = 0.02;
    let losses = |seed, side: &str, n| -> Vec<usize> {
        let mut rng = Stream::new(seed, side);
        (0..n).filter(|_| rng.chance(LOSS)).collect()
    };
    let fits =
        |seed: &u64| losses(*seed, "left", 40) == [2] && losses(*seed, "right", 9).is_empty();
    let seed = (0..).find(fits).unwrap();
    let config = SerialConfig { loss_noticed: noticed, ..config(Some(recovery), LOSS) };
    play(&mut serial(config, seed), acks(40, Span::millis(9)))
}

#[test]
fn a_lost_ack_costs_those_behind_it() {
    // Detected: dropped, as there is no connection number. ACKs are never retransmitted, so that never ends.
    let (out, drops) = third_lost(Recovery::Retransmission, true);
    assert_eq!(out.len(), 2);
    assert_eq!(drops[0], (3, Cause::FrameLost));
    assert!(drops[1..].iter().copied().eq((4..=40).map(|id| (id, Cause::Desynchronised))));
    // Not detected: forwarded with a header that the receiver will reject.
    let (out, drops) = third_lost(Recovery::Retransmission, false);
    assert_eq!(drops, [(3, Cause::FrameLost)]);
    for (_, _, packet) in &out[2..] {
        assert_eq!(packet.damage, Damage::Tcp);
        assert_eq!(packet.segment().unwrap().ack, Seq(1000 * (packet.id.0 as u32 - 1)));
    }
}

#[test]
fn twice_loses_one_frame_and_feedback_those_in_flight() {
    let (out, drops) = third_lost(Recovery::Twice, true);
    assert_eq!(drops, [(3, Cause::FrameLost)]);
    assert!(out.iter().all(|(_, _, packet)| *packet == ack(packet.id.0 as u32)));
    let (out, drops) = third_lost(Recovery::Feedback, true);
    // The request takes 3 ms to send and 10 to arrive. Packets sent until then are lost as well.
    assert_eq!(drops[0], (3, Cause::FrameLost));
    assert!((2..8).contains(&drops[1..].len()), "{drops:?}");
    assert!(drops[1..].iter().all(|(_, cause)| *cause == Cause::Desynchronised));
    assert!(out.iter().all(|(_, _, packet)| *packet == ack(packet.id.0 as u32)));
    assert_eq!(out.len() + drops.len(), 40);
}

fn arrivals() -> impl Strategy<Value = Vec<(Time, Side, Packet)>> {
    let one = (0u64..40, any::<bool>(), 0u16..4, 0u32..5000, 0u32..5000, 0u32..500);
    proptest::collection::vec(one, 0..80).prop_map(|list| {
        let mut at = Time::ZERO;
        let packet =
            |(i, (wait, left, port, seq, acked, len)): (usize, (u64, bool, u16, u32, u32, u32))| {
                at += Span::millis(wait);
                let segment = Segment::new(port, 9, Seq(seq), Seq(acked), Flags::ACK);
                let body = Body::Pattern { stream: port.into(), offset: seq.into(), len };
                let mut packet =
                    Packet::tcp(Addr::v4(1, 1, 1, 1), Addr::v4(2, 2, 2, 2), segment, body);
                packet.id = PacketId(i as u64);
                (at, if left { Side::Left } else { Side::Right }, packet)
            };
        list.into_iter().enumerate().map(packet).collect()
    })
}

fn tcp_checksum(packet: &Packet) -> [u8; 2] {
    let mut bytes = Vec::new();
    emit(packet, &mut bytes).unwrap();
    [bytes[36], bytes[37]]
}

proptest! {
    /// Without compression and losses it is equivalent to a line, to the nanosecond, for any queue.
    #[test]
    fn an_uncompressed_serial_line_equals_a_plain_line(arrivals in arrivals(), queue in 0u32..5, filter in any::<bool>()) {
        let discipline = if filter { Discipline::AckFilter } else { Discipline::Fifo };
        let line = LineConfig { discipline_left: discipline, ..line(queue) };
        let serial_line = SerialConfig { line: line.clone(), ..config(None, 0.0) };
        let a = play(&mut Line::new(line), arrivals.clone());
        let b = play(&mut serial(serial_line, 1), arrivals);
        prop_assert_eq!(a, b);
    }

    /// With compression, the output equals the input, in order, and not later.
    #[test]
    fn compression_changes_no_packet_and_adds_no_delay(arrivals in arrivals(), feedback in any::<bool>()) {
        let recovery = if feedback { Recovery::Feedback } else { Recovery::Retransmission };
        let plain = play(&mut Line::new(line(50)), arrivals.clone()).0;
        let (out, _) = play(&mut serial(config(Some(recovery), 0.0), 1), arrivals.clone());
        prop_assert!(out.len() >= plain.len());
        for (_, _, packet) in &out {
            prop_assert_eq!(packet, &arrivals[packet.id.0 as usize].2);
        }
        // No frame is longer than its packet.
        for (at, _, packet) in &plain {
            let sooner = out.iter().find(|(_, _, other)| other.id == packet.id).unwrap();
            prop_assert!(sooner.0 <= *at);
        }
    }

    /// With losses: undamaged output equals the input, except where the checksum cannot detect it; all other
    /// packets have a cause.
    #[test]
    fn losses_are_accounted_for(
        arrivals in arrivals(),
        recovery in prop_oneof![
            Just(Recovery::Retransmission), Just(Recovery::Twice), Just(Recovery::Feedback)
        ],
        noticed in any::<bool>(),
        seed in 0u64..1000,
    ) {
        let config = SerialConfig { loss_noticed: noticed, ..config(Some(recovery), 0.2) };
        let (out, drops) = play(&mut serial(config, seed), arrivals.clone());
        prop_assert_eq!(out.len() + drops.len(), arrivals.len());
        for (_, _, packet) in out {
            let sent = &arrivals[packet.id.0 as usize].2;
            prop_assert_eq!(&packet.body, &sent.body);
            if packet.damage == Damage::None && packet.transport != sent.transport {
                prop_assert_eq!(tcp_checksum(&packet), tcp_checksum(sent));
            }
        }
    }
}
