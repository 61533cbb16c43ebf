//! Reconstructed ACKs after a slow return link.

use lasthop_proto::agent::{Agent, AgentConfig, BaseStation, Reconstruction, Router};
use lasthop_proto::event::{Cause, EventKind, Interest, Op};
use lasthop_proto::machine::{Machine, Out, Side};
use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::{Addr, Body, Damage, Flags, Packet, PacketId, Segment, Seq, Timestamps};
use proptest::prelude::*;

const SERVER: Addr = Addr::v4(10, 0, 0, 1);
const HOME: Addr = Addr::v4(10, 1, 0, 1);
const MSS: u32 = 1000;

fn data(seq: u32, bytes: u32) -> Packet {
    let segment = Segment::new(5001, 9, Seq(seq), Seq(700), Flags::ACK);
    let body = Body::Pattern { stream: 1, len: bytes, offset: 0 };
    Packet::tcp(SERVER, HOME, segment, body)
}

fn ack(n: u32) -> Packet {
    let mut segment = Segment::new(9, 5001, Seq(700), Seq(n), Flags::ACK);
    segment.window = 30_000;
    segment.timestamps = Some(Timestamps { value: n, echo: n });
    Packet::tcp(HOME, SERVER, segment, Body::EMPTY)
}

/// Output towards the sender: time, acknowledgement, and the cause of a created ACK.
type Line = (u64, u32, Option<Cause>);

struct World {
    agent: Agent,
    out: Out,
    id: u64,
    put: usize,
    /// In microseconds.
    seen: Vec<Line>,
    dropped: Vec<(u32, Cause)>,
}

impl World {
    /// An agent that has seen one segment.
    fn new(config: Reconstruction) -> World {
        let agent = Agent::new(&AgentConfig::AckReconstruction(config));
        let out = Out::new(Interest::METRICS);
        let mut world = World { agent, out, id: 1 << 40, put: 0, seen: vec![], dropped: vec![] };
        world.put(0, Side::Left, data(1, MSS));
        world
    }

    fn until(&mut self, at: Time) {
        while let Some(wake) = self.agent.next_wake().filter(|wake| *wake <= at) {
            self.out.begin(Default::default(), wake);
            self.agent.on_wake(wake, &mut self.out);
            assert!(self.agent.next_wake().is_none_or(|next| next > wake), "no progress");
            self.drain(wake);
        }
    }

    fn put(&mut self, us: u64, from: Side, mut packet: Packet) {
        let at = Time(us * 1000);
        self.until(at);
        self.id += 1;
        packet.id = PacketId(self.id);
        self.put += usize::from(from == Side::Right);
        self.out.begin(Default::default(), at);
        self.agent.on_packet(at, from, packet, &mut self.out);
        self.drain(at);
    }

    fn drain(&mut self, at: Time) {
        let mut forged = Vec::new();
        for event in self.out.events.drain(..) {
            match event.kind {
                EventKind::Packet { op: Op::Originated(cause), packet, .. } => {
                    forged.push((packet.id, cause));
                }
                EventKind::Packet { op: Op::Dropped(cause), packet, .. } => {
                    self.dropped.push((packet.segment().unwrap().ack.0, cause));
                }
                _ => {}
            }
        }
        for (side, packet) in self.out.sends.drain(..) {
            if side == Side::Left && packet.damage != Damage::None {
                // Not polled by the test.
                self.put -= 1;
            } else if side == Side::Left {
                let cause = forged.iter().find(|(id, _)| *id == packet.id).map(|(_, c)| *c);
                self.seen.push((at.0 / 1000, packet.segment().unwrap().ack.0, cause));
            }
        }
        let real = self.seen.iter().filter(|(.., cause)| cause.is_none()).count();
        assert_eq!(self.put, real + self.dropped.len() + self.agent.holds(), "conservation");
    }

    /// Number of tracked connections.
    fn flows(&self) -> usize {
        self.agent.flows()
    }

    fn ack(&mut self, us: u64, n: u32) {
        self.put(us, Side::Right, ack(n));
    }

    /// ACKs 10 ms apart, the last one for eight segments at 40 ms.
    fn with_a_gap(config: Reconstruction) -> World {
        let mut world = World::new(config);
        for i in 1..=3 {
            world.ack(i * 10_000, 1 + i as u32 * 2 * MSS);
        }
        world.ack(40_000, 1 + 14 * MSS);
        world
    }
}

const FORGED: Option<Cause> = Some(Cause::ReconstructedAck);

#[test]
fn a_gap_is_filled_over_the_time_between_acks() {
    let mut world = World::with_a_gap(Reconstruction::default());
    world.until(Time(1_000_000_000));
    assert_eq!(
        world.seen[3..],
        [
            (40_000, 8001, FORGED),
            (42_500, 10_001, FORGED),
            (45_000, 12_001, FORGED),
            (47_500, 14_001, None),
        ]
    );
    assert_eq!(world.agent.holds(), 0);
}

#[test]
fn without_the_agent_nothing_is_filled_in() {
    let mut world = World::with_a_gap(Reconstruction::default());
    world.until(Time(1_000_000_000));
    let filled = world.seen.len();
    let mut plain = World {
        agent: Agent::new(&AgentConfig::None(Router)),
        ..World::new(Reconstruction::default())
    };
    for (us, n) in [(10_000, 2001), (20_000, 4001), (30_000, 6001), (40_000, 14_001)] {
        plain.ack(us, n);
    }
    assert_eq!((plain.seen.len(), filled), (4, 7));
}

#[test]
fn threshold_sets_ack_count_and_interval_sets_ack_times() {
    let config = Reconstruction { thresh: 4, interval: Some(Span::millis(6)), flows: 8 };
    let mut world = World::with_a_gap(config);
    world.until(Time(1_000_000_000));
    assert_eq!(world.seen[3..], [(40_000, 10_001, FORGED), (43_000, 14_001, None)]);
}

#[test]
fn gaps_of_more_than_1024_acks_are_not_filled() {
    let config = Reconstruction { interval: Some(Span::ZERO), ..Reconstruction::default() };
    let sent = |segments: u32| {
        let mut world = World::new(config.clone());
        world.put(0, Side::Right, ack(1));
        world.put(10, Side::Right, ack(1 + segments * MSS));
        world.seen.len()
    };
    // The first, the last, and one for each two segments between them.
    assert_eq!(sent(2 * 1025), 1026);
    assert_eq!(sent(2 * 1025 + 1), 2);
    assert_eq!(sent(2_000_000), 2);
}

#[test]
fn a_newer_ack_supersedes_the_held_ack() {
    let mut world = World::with_a_gap(Reconstruction::default());
    world.ack(44_000, 1 + 16 * MSS);
    world.until(Time(1_000_000_000));
    assert_eq!(world.dropped, [(14_001, Cause::SupersededAck)]);
    let acks: Vec<u32> = world.seen.iter().map(|(_, ack, _)| *ack).collect();
    assert_eq!(acks[3..], [8001, 10_001, 12_001, 14_001, 16_001]);
}

#[test]
fn non_plain_acks_flush_held_ones_and_pass_unchanged() {
    let duplicate = ack(1 + 14 * MSS);
    let mut sack = ack(1 + 14 * MSS);
    if let lasthop_proto::wire::Transport::Tcp(segment) = &mut sack.transport {
        segment.options_mut().sack.push(Seq(20_001), Seq(21_001));
    }
    let mut fin = ack(1 + 14 * MSS);
    if let lasthop_proto::wire::Transport::Tcp(segment) = &mut fin.transport {
        segment.flags = Flags::ACK | Flags::FIN;
    }
    for packet in [duplicate, sack, fin] {
        let mut world = World::with_a_gap(Reconstruction::default());
        world.put(41_000, Side::Right, packet);
        world.until(Time(1_000_000_000));
        assert_eq!(
            world.seen[3..],
            [(40_000, 8001, FORGED), (41_000, 14_001, None), (41_000, 14_001, None)]
        );
    }
}

#[test]
fn a_window_change_prevents_forged_acks() {
    let mut world = World::new(Reconstruction::default());
    world.ack(10_000, 2001);
    world.ack(20_000, 4001);
    let mut closing = ack(14_001);
    if let lasthop_proto::wire::Transport::Tcp(segment) = &mut closing.transport {
        segment.window = 10_000;
    }
    world.put(30_000, Side::Right, closing);
    world.until(Time(1_000_000_000));
    assert_eq!(world.seen, [(10_000, 2001, None), (20_000, 4001, None), (30_000, 14_001, None)]);
}

#[test]
fn after_a_pause_and_without_data_acks_just_pass() {
    let mut world = World::new(Reconstruction::default());
    world.ack(10_000, 2001);
    // Only a pause has been measured.
    world.ack(3_010_000, 14_001);
    assert_eq!(world.seen.last(), Some(&(3_010_000, 14_001, None)));
    // No segment of this connection was seen.
    let mut other = ack(1);
    other.src = Addr::v4(10, 1, 0, 9);
    world.put(3_020_000, Side::Right, other);
    assert_eq!(world.agent.flows(), 1);
    // A reset discards the state.
    let mut reset = data(2, 0);
    if let lasthop_proto::wire::Transport::Tcp(segment) = &mut reset.transport {
        segment.flags = Flags::RST;
    }
    world.put(3_030_000, Side::Left, reset);
    assert_eq!(world.agent.flows(), 0);
}

#[test]
fn the_flow_limit_holds_and_evictions_send_held_acks() {
    let mut world = World::with_a_gap(Reconstruction { flows: 1, ..Reconstruction::default() });
    let mut other = data(1, MSS);
    other.dst = Addr::v4(10, 1, 0, 9);
    world.put(41_000, Side::Left, other);
    assert_eq!((world.agent.flows(), world.agent.holds()), (1, 0));
    assert_eq!(world.seen.last(), Some(&(41_000, 14_001, None)));
}

proptest! {
    /// For any input the sender receives exactly the receiver's acknowledgements, in order and complete.
    #[test]
    fn acks_are_in_order_complete_and_never_premature(
        steps in prop::collection::vec((0_u64..30_000, 0_u32..12, 0_u8..10), 1..80),
        thresh in 1_u32..5,
        isn in prop_oneof![Just(0_u32), Just(u32::MAX - 3000)],
    ) {
        let mut world = World::new(Reconstruction { thresh, ..Reconstruction::default() });
        let (mut us, mut acked) = (0, isn);
        for (gap, segments, kind) in steps {
            us += gap;
            if kind != 3 {
                acked = acked.wrapping_add(segments * MSS);
            }
            let mut packet = ack(acked);
            if let lasthop_proto::wire::Transport::Tcp(segment) = &mut packet.transport {
                match kind {
                    0 => segment.window = 20_000,
                    1 => segment.flags = Flags::ACK | Flags::FIN,
                    2 => { segment.options_mut().sack.push(Seq(acked) + 5000, Seq(acked) + 6000); }
                    _ => {}
                }
            }
            if kind == 3 {
                packet.damage = Damage::Tcp;
            }
            world.put(us, Side::Right, packet);
            for (_, ack, _) in &world.seen {
                prop_assert!(Seq(*ack).le(Seq(acked)), "{ack} before {acked}");
            }
        }
        world.until(Time(u64::MAX / 2));
        prop_assert_eq!(world.agent.holds(), 0);
        prop_assert!(world.seen.last().is_none_or(|last| last.1 == acked), "{:?}", world.seen);
        prop_assert!(world.seen.windows(2).all(|w| Seq(w[0].1).le(Seq(w[1].1))), "{:?}", world.seen);
    }
}

/// The FIN of the data, alone or after some bytes.
fn fin(seq: u32, bytes: u32) -> Packet {
    data(seq, bytes).with(|packet| {
        if let lasthop_proto::wire::Transport::Tcp(segment) = &mut packet.transport {
            segment.flags = segment.flags | Flags::FIN;
        }
    })
}

#[test]
fn the_ack_of_a_fin_removes_the_connection() {
    for bytes in [0, 300] {
        let mut world = World::new(Reconstruction::default());
        world.put(1000, Side::Left, fin(1 + 14 * MSS, bytes));
        let end = 2 + 14 * MSS + bytes;
        world.ack(10_000, end - 1);
        assert_eq!(world.flows(), 1, "the FIN is not acknowledged");
        world.ack(20_000, end);
        assert_eq!((world.flows(), world.agent.holds()), (0, 0));
        // Its ACK was lost: the FIN is repeated, and so is its answer.
        world.put(30_000, Side::Left, fin(1 + 14 * MSS, bytes));
        world.ack(40_000, end);
        assert_eq!(world.flows(), 0);
    }
}

/// The last ACK waits for the ACKs inserted before it; the connection is removed when it has been sent.
#[test]
fn a_held_final_ack_removes_the_connection_when_sent() {
    let mut world = World::new(Reconstruction::default());
    for i in 1..=3 {
        world.ack(i * 10_000, 1 + i as u32 * 2 * MSS);
    }
    world.put(35_000, Side::Left, fin(1 + 14 * MSS, 0));
    world.ack(40_000, 2 + 14 * MSS);
    assert_eq!((world.flows(), world.agent.holds()), (1, 1));
    world.until(Time(1_000_000_000));
    assert_eq!((world.flows(), world.agent.holds()), (0, 0));
    assert_eq!(world.seen.last().map(|line| (line.1, line.2)), Some((2 + 14 * MSS, None)));
}
