//! Agents are independent of initial sequence numbers, and read no number without its flag.
//!
//! The same connection runs past each agent of the registry with several pairs of initial sequence numbers.
//! The output, relative to those numbers, equals that with numbers far from any boundary. Some connections
//! are longer than half of the number space, so that numbers wrap in the middle of the transfer.

use lasthop_proto::agent::{Agent, AgentConfig, Read, words};
use lasthop_proto::describe::{Descriptor, Fault, Key, Keys, Value, Visitor};
use lasthop_proto::event::{EventKind, Interest, Op};
use lasthop_proto::machine::{Machine, Out, Side};
use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::{
    Ackp, Body, Eln, Flags, Nack, Packet, PacketId, SackBlocks, Segment, Seq, Smart, Timestamps,
    Transport,
};
use proptest::prelude::*;

use crate::path::{FIXED, MOBILE};

/// Far from zero, from the end, and from half of the number space.
const PLAIN: [Seq; 2] = [Seq(0x2000_0000), Seq(0x2400_0000)];

/// The boundaries of the number space, and of its halves.
const BORDERS: [u32; 5] = [0, 1, (1 << 31) - 1, 1 << 31, u32::MAX];

/// Leaves every key at its default.
struct Defaults;

impl Visitor for Defaults {
    fn key(&mut self, _: &Key, _: &mut Value) {}
    fn table(&mut self, _: &Key, _: &mut Value, _: &mut dyn FnMut(&mut Keys<'_>)) {}
    fn tables(&mut self, _: &Key, _: &mut dyn FnMut(&mut Keys<'_>)) {}
    fn has(&self, _: &str) -> bool {
        false
    }
    fn missing(&mut self, _: &str, _: Option<(&str, &str)>) {}
    fn kind(&mut self, _: &str, _: &mut dyn FnMut(&mut Keys<'_>)) {}
    fn path(&self, key: &str) -> String {
        key.to_owned()
    }
    fn out_of_range(&mut self, _: &str, _: String) {}
    fn refuse(&mut self, _: Fault, _: &str, _: String, _: &str, _: String) {}
}

fn config(word: &Descriptor<Read>) -> AgentConfig {
    (word.read)(&mut Keys::of(&mut Defaults))
}

/// A packet of an end: numbers count from the initial ones.
#[derive(Clone, Copy, Debug)]
struct Put {
    from: Side,
    flags: Flags,
    at: u32,
    acks: u32,
    len: u32,
    window: u16,
    block: Option<(u32, u32)>,
    /// Milliseconds since the previous packet.
    later: u64,
}

/// Shifts all numbers of `packet`: the sender's numbers by `own`, those of its peer by `other`.
fn moved(packet: Packet, own: u32, other: u32) -> Packet {
    packet.with(|packet| {
        let Transport::Tcp(segment) = &mut packet.transport else { return };
        let has_ack = segment.flags.has(Flags::ACK);
        segment.seq = segment.seq + own;
        if has_ack {
            segment.ack = segment.ack + other;
        }
        // The ends of a split connection start their clocks at their initial numbers; here hosts do, too.
        if let Some(stamps) = &mut segment.timestamps {
            stamps.value = stamps.value.wrapping_add(own);
            stamps.echo = stamps.echo.wrapping_add(if has_ack { other } else { 0 });
        }
        let blocks = |blocks: SackBlocks| {
            let mut moved = SackBlocks::default();
            for (left, right) in blocks.as_slice() {
                moved.push(*left + other, *right + other);
            }
            moved
        };
        let sack = blocks(segment.options().sack);
        if !sack.is_empty() {
            segment.options_mut().sack = sack;
        }
        if let Some(Nack::Missing(missing)) = segment.options().nack {
            segment.options_mut().nack = Some(Nack::Missing(blocks(missing)));
        }
        if let Some(Eln::Lost(lost)) = segment.options().eln {
            segment.options_mut().eln = Some(Eln::Lost(lost + other));
        }
        if let Some(Smart::Caused(caused)) = segment.options().smart {
            segment.options_mut().smart = Some(Smart::Caused(caused + other));
        }
    })
}

/// Shifts by the initial numbers of both sides, or back to zero.
fn moved_from(side: Side, packet: Packet, [left, right]: [u32; 2]) -> Packet {
    match side {
        Side::Left => moved(packet, left, right),
        Side::Right => moved(packet, right, left),
    }
}

fn packet(put: &Put, id: u64, stray: u32) -> Packet {
    let (src, dst, ports) = match put.from {
        Side::Left => (FIXED, MOBILE, (5001, 9)),
        Side::Right => (MOBILE, FIXED, (9, 5001)),
    };
    let mut segment = Segment::new(ports.0, ports.1, Seq(put.at), Seq(put.acks), put.flags);
    segment.window = put.window;
    let clock = 1000 + id as u32;
    segment.timestamps = Some(Timestamps { value: clock, echo: clock - 1 });
    if !put.flags.has(Flags::ACK) {
        // The value has no meaning.
        segment.ack = Seq(stray);
        segment.timestamps = Some(Timestamps { value: clock, echo: stray });
    }
    if put.flags.has(Flags::SYN) {
        let options = segment.options_mut();
        (options.ackp, options.eln) = (Some(Ackp::Permitted), Some(Eln::Permitted));
        (options.nack, options.mss) = (Some(Nack::Permitted), Some(1000));
        options.sack_permitted = true;
    }
    if let Some((left, right)) = put.block {
        segment.options_mut().sack.push(Seq(left), Seq(right));
    }
    let body = Body::Pattern { stream: 1, len: put.len, offset: put.at.into() };
    let mut packet = Packet::tcp(src, dst, segment, body);
    packet.id = PacketId(id);
    packet
}

/// The output of the agent, in order, with numbers from zero.
fn outcome(config: &AgentConfig, puts: &[Put], isn: [u32; 2], stray: u32) -> Vec<String> {
    let mut agent = Agent::new(config);
    let mut out = Out::new(Interest::METRICS);
    let mut record = Vec::new();
    let back = isn.map(u32::wrapping_neg);
    let mut note = |out: &mut Out, now: Time| {
        let line = |side: Side, packet: &Packet| {
            // Without the flag the output's number has no meaning either.
            let packet = packet.clone().with(|packet| {
                if let Transport::Tcp(segment) = &mut packet.transport
                    && !segment.flags.has(Flags::ACK)
                {
                    segment.ack = Seq(0);
                    if let Some(stamps) = &mut segment.timestamps {
                        stamps.echo = 0;
                    }
                }
            });
            format!("{now} {side:?} {:?}", moved_from(side.other(), packet, back))
        };
        for event in out.events.drain(..) {
            record.push(match event.kind {
                EventKind::Packet {
                    op: op @ (Op::Originated(_) | Op::Dropped(_)),
                    side,
                    packet,
                } => {
                    format!("{op:?} {}", line(side, &packet))
                }
                EventKind::Agent { note, .. } => format!("{now} {note:?}"),
                _ => continue,
            });
        }
        record.extend(out.sends.drain(..).map(|(side, packet)| line(side, &packet)));
    };
    let mut now = Time::ZERO;
    for (id, put) in puts.iter().enumerate() {
        let at = now + Span::millis(put.later);
        while let Some(wake) = agent.next_wake().filter(|wake| *wake <= at) {
            out.begin(Default::default(), wake);
            agent.on_wake(wake, &mut out);
            note(&mut out, wake);
        }
        now = at;
        out.begin(Default::default(), now);
        let packet = moved_from(put.from, packet(put, id as u64, stray), isn);
        agent.on_packet(now, put.from, packet, &mut out);
        note(&mut out, now);
    }
    record
}

/// Length of a connection's long segments.
const STRIDE: u32 = 1000;

/// A connection with randomly lost, repeated and acknowledged packets; `jump` is the distance that data
/// advances in between.
fn connections() -> impl Strategy<Value = Vec<Put>> {
    let step = (0u8..12, 0u32..6, prop::sample::select(vec![0u64, 1, 7, 60, 400]), 0u16..2);
    let jump = prop_oneof![2 => Just(0u32), 1 => Just(1 << 27)];
    (any::<bool>(), any::<bool>(), jump, prop::collection::vec(step, 1..90)).prop_map(
        |(left_opens, rightwards, jump, steps)| {
            let (client, server) = match left_opens {
                true => (Side::Left, Side::Right),
                false => (Side::Right, Side::Left),
            };
            let plain = |from, flags, at, acks| Put {
                from,
                flags,
                at,
                acks,
                len: 0,
                window: 60_000,
                block: None,
                later: 3,
            };
            let mut puts = vec![
                plain(client, Flags::SYN, 0, 0),
                plain(server, Flags::SYN | Flags::ACK, 0, 1),
                plain(client, Flags::ACK, 1, 1),
            ];
            let (sender, receiver) = match rightwards {
                true => (Side::Left, Side::Right),
                false => (Side::Right, Side::Left),
            };
            let (mut next, mut acked) = (1u32, 1u32);
            for (kind, number, later, window) in steps {
                let data = |at| Put { len: STRIDE, later, ..plain(sender, Flags::ACK, at, 1) };
                let ack = |acks| Put {
                    later,
                    window: 60_000 + window,
                    ..plain(receiver, Flags::ACK, 1, acks)
                };
                puts.push(match kind {
                    0..=4 => {
                        next += STRIDE;
                        data(next - STRIDE)
                    }
                    // A packet lost before the agent, then the next one.
                    5 => {
                        next += 2 * STRIDE;
                        data(next - STRIDE)
                    }
                    // A retransmission from the last acknowledged byte on.
                    6 => data((acked + number * STRIDE).min(next)),
                    7 | 8 => {
                        acked = (acked + number * STRIDE).min(next);
                        // All data in flight arrives, and the transfer continues far beyond it.
                        if number == 5 && jump > 0 {
                            (acked, next) = (next + jump, next + jump);
                        }
                        ack(acked)
                    }
                    9 => Put { window: 60_000, ..ack(acked) },
                    10 if next > acked + 2 * STRIDE => Put {
                        block: Some((acked + STRIDE, acked + 2 * STRIDE)),
                        window: 60_000,
                        ..ack(acked)
                    },
                    // Neither a SYN nor an ACK: no TCP sends such a segment, and it has no effect.
                    11 => plain(receiver, Flags::PSH, 1, 0),
                    _ => ack(acked),
                });
            }
            puts.push(plain(sender, Flags::FIN | Flags::ACK, next, 1));
            puts.push(plain(receiver, Flags::ACK, 1, next + 1));
            puts
        },
    )
}

fn initial() -> impl Strategy<Value = u32> {
    prop_oneof![3 => prop::sample::select(BORDERS.to_vec()), 1 => any::<u32>()]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Every agent, in a new test case for each connection and each pair of initial numbers.
    #[test]
    fn no_agent_depends_on_initial_numbers(
        puts in connections(),
        (left, right) in (initial(), initial()),
        stray in initial(),
    ) {
        for word in words() {
            let config = config(word);
            let plain = outcome(&config, &puts, PLAIN.map(|seq| seq.0), 0);
            let moved = outcome(&config, &puts, [left, right], stray);
            prop_assert_eq!(&plain, &moved, "{} from {} and {}", word.word, left, right);
        }
    }
}

/// Every pair of the boundaries, with one connection that loses a packet on the air and one before it.
#[test]
fn all_borders_in_both_directions() {
    let put = |from, flags, at, acks, len| Put {
        from,
        flags,
        at,
        acks,
        len,
        window: 60_000,
        block: None,
        later: 5,
    };
    for (sender, receiver) in [(Side::Left, Side::Right), (Side::Right, Side::Left)] {
        let data = |at| put(sender, Flags::ACK, at, 1, STRIDE);
        let ack = |acks| put(receiver, Flags::ACK, 1, acks, 0);
        let puts = [
            put(receiver, Flags::SYN, 0, 0, 0),
            put(sender, Flags::SYN | Flags::ACK, 0, 1, 0),
            put(receiver, Flags::ACK, 1, 1, 0),
            data(1),
            data(1001),
            data(2001),
            data(3001),
            ack(1001),
            ack(1001),
            ack(1001),
            ack(4001),
            data(5001),
            ack(4001),
            data(4001),
            ack(6001),
        ];
        for word in words() {
            let config = config(word);
            let plain = outcome(&config, &puts, PLAIN.map(|seq| seq.0), 0);
            for (left, right) in BORDERS.iter().flat_map(|l| BORDERS.map(|r| (*l, r))) {
                for stray in BORDERS {
                    let moved = outcome(&config, &puts, [left, right], stray);
                    assert_eq!(plain, moved, "{} from {left} and {right}, {stray}", word.word);
                }
            }
        }
        // The connection triggers the caching agents, so that the comparison is meaningful.
        let snoop = words().find(|word| word.word == "snoop").map(config).expect("snoop");
        let repaired = outcome(&snoop, &puts, [0, 0], 0);
        let local = repaired.iter().filter(|line| line.contains("LocalDupAck")).count();
        assert_eq!(local, usize::from(sender == Side::Left), "{repaired:#?}");
    }
}
