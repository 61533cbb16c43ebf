//! IP fragments of split connections.

use lasthop_proto::agent::Split;
use lasthop_proto::event::{Cause, EventKind, Interest, Op};
use lasthop_proto::machine::{Machine as _, Out, Side};
use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::emit::emit;
use lasthop_proto::wire::protocol::{PROTOCOL_TCP, PROTOCOL_UDP};
use lasthop_proto::wire::{
    Body, CE, Flags, Fragment, Packet, PacketId, Parts, Segment, Seq, Transport,
};
use proptest::prelude::*;

use crate::path::{FIXED, MOBILE};
use crate::split_script::config;

const PORT: u16 = 5001;

fn bytes(len: u32) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + i / 251) as u8).collect()
}

/// A segment of the fixed host on port `port`, with `len` bytes.
fn segment(port: u16, flags: Flags, [seq, ack]: [u32; 2], len: u32) -> Packet {
    let mut segment = Segment::new(port, 9, Seq(seq), Seq(ack), flags);
    segment.window = 16_384;
    Packet::tcp(FIXED, MOBILE, segment, Body::copy_of(&bytes(len)))
}

/// The IP fragments of a packet: its payload, cut at these positions in units of 8 bytes.
fn fragments(packet: &Packet, cuts: &[u32], id: u16) -> Vec<Packet> {
    let mut ip = Vec::new();
    emit(packet, &mut ip).unwrap();
    let payload = &ip[20..];
    let mut ends: Vec<usize> = cuts.iter().map(|cut| *cut as usize * 8).collect();
    ends.retain(|end| (1..payload.len()).contains(end));
    ends.push(payload.len());
    ends.sort_unstable();
    ends.dedup();
    let mut start = 0;
    let pieces = ends.iter().map(|end| {
        let more = if *end < payload.len() { 0x2000 } else { 0 };
        let place = more | (start / 8) as u16;
        let body = Body::copy_of(&payload[start..*end]);
        start = *end;
        fragment(packet, Fragment { protocol: PROTOCOL_TCP, id, place }, body)
    });
    pieces.collect()
}

fn fragment(packet: &Packet, fragment: Fragment, body: Body) -> Packet {
    let id = PacketId(u64::from(fragment.id) << 16 | u64::from(fragment.place));
    let transport = Transport::Fragment(fragment);
    Packet::new(Parts { id, transport, body, ..Parts::clone(packet) })
}

/// An agent with a connection that is open, and its output.
fn opened() -> (Split, Out, Time) {
    let mut split = Split::new(&config());
    let mut out = Out::new(Interest::METRICS.union(Interest::DETAIL));
    let now = Time::ZERO + Span::millis(20);
    let mut syn = segment(PORT, Flags::SYN, [0, 0], 0);
    let mut answer = segment(PORT, Flags::SYN | Flags::ACK, [7000, 1], 0);
    (answer.src, answer.dst) = (MOBILE, FIXED);
    for packet in [&mut syn, &mut answer] {
        let Transport::Tcp(segment) = &mut packet.transport else { unreachable!() };
        segment.options_mut().mss = Some(1000);
    }
    let Transport::Tcp(ports) = &mut answer.transport else { unreachable!() };
    (ports.src_port, ports.dst_port) = (ports.dst_port, ports.src_port);
    out.begin(Default::default(), now);
    split.on_packet(now, Side::Left, syn, &mut out);
    split.on_packet(now, Side::Right, answer, &mut out);
    split.on_packet(now, Side::Left, segment(PORT, Flags::ACK, [1, 7001], 0), &mut out);
    out.sends.clear();
    out.events.clear();
    (split, out, now)
}

/// Data that the agent has sent to the right, in order.
fn forwarded(out: &mut Out) -> Vec<u8> {
    let mut all = Vec::new();
    for (side, packet) in out.sends.drain(..) {
        assert!(packet.segment().is_some(), "{packet:?}");
        if side == Side::Right {
            packet.body.copy_into(packet.body.len(), &mut all);
        }
    }
    all
}

fn drops(out: &mut Out) -> Vec<Cause> {
    let dropped = out.events.drain(..).filter_map(|event| match event.kind {
        EventKind::Packet { op: Op::Dropped(cause), .. } => Some(cause),
        _ => None,
    });
    dropped.collect()
}

proptest! {
    #[test]
    fn a_fragmented_segment_is_acknowledged_and_forwarded(
        len in 1u32..1000, first in 1u32..3, cuts in proptest::collection::vec(1u32..128, 0..20), seed: u64,
        repeated: bool, mark in any::<prop::sample::Index>(),
    ) {
        let (mut split, mut out, now) = opened();
        let whole = segment(PORT, Flags::ACK | Flags::PSH, [1, 7001], len);
        let mut pieces = fragments(&whole, &[&cuts[..], &[first]].concat(), 77);
        let marked = mark.index(pieces.len());
        pieces[marked].tos |= CE;
        let count = pieces.len();
        // A fixed permutation of the order of arrival.
        pieces.sort_by_key(|piece| piece.id.0.wrapping_mul(seed | 1));
        if repeated {
            pieces.insert(0, pieces[0].clone());
        }
        for piece in pieces {
            prop_assert!(out.sends.is_empty());
            split.on_packet(now, Side::Left, piece, &mut out);
        }
        prop_assert_eq!(split.holds(), 0);
        let acks: Vec<Seq> = out.sends.iter().filter(|(side, _)| *side == Side::Left)
            .filter_map(|(_, packet)| packet.segment().map(|s| s.ack)).collect();
        prop_assert_eq!(acks, [Seq(1 + len)]);
        prop_assert_eq!(forwarded(&mut out), bytes(len));
        // Every fragment has a fate.
        let fates = drops(&mut out);
        prop_assert_eq!(fates, vec![Cause::SplitTaken; count + usize::from(repeated)]);
    }
}

#[test]
fn fragments_of_other_connections_pass_unchanged() {
    let (mut split, mut out, now) = opened();
    let other = segment(PORT + 1, Flags::ACK, [1, 7001], 900);
    let mut pieces = fragments(&other, &[20, 50, 70], 5);
    pieces.swap(0, 2);
    let udp = Fragment { protocol: PROTOCOL_UDP, id: 5, place: 0x2000 };
    let datagram = fragment(&other, udp, Body::copy_of(&[1; 800]));
    split.on_packet(now, Side::Left, datagram.clone(), &mut out);
    assert_eq!(out.sends.drain(..).collect::<Vec<_>>(), [(Side::Right, datagram)]);
    for piece in &pieces {
        assert!(out.sends.is_empty());
        split.on_packet(now, Side::Left, piece.clone(), &mut out);
    }
    let sent: Vec<Packet> = out.sends.drain(..).map(|(_, packet)| packet).collect();
    assert_eq!(sent, pieces);
    assert_eq!((split.holds(), drops(&mut out)), (0, vec![]));
}

#[test]
fn fragments_that_form_no_segment_pass() {
    let whole = segment(PORT, Flags::ACK, [1, 7001], 900);
    let all = fragments(&whole, &[50], 5);
    let cut = |place: u16, len: usize| {
        fragment(
            &whole,
            Fragment { protocol: PROTOCOL_TCP, id: 5, place },
            Body::copy_of(&bytes(920)[..len]),
        )
    };
    for odd in [cut(0x2000 | 49, 16), cut(49, 16), cut(0x2000 | 200, 7), cut(8190, 100), cut(60, 0)]
    {
        let (mut split, mut out, now) = opened();
        split.on_packet(now, Side::Left, all[0].clone(), &mut out);
        split.on_packet(now, Side::Left, odd.clone(), &mut out);
        let sent: Vec<Packet> = out.sends.drain(..).map(|(_, packet)| packet).collect();
        assert_eq!(sent, [all[0].clone(), odd]);
        assert_eq!(split.holds(), 0);
    }
}

/// A complete packet without a TCP header passes, too.
#[test]
fn a_packet_that_is_no_segment_passes() {
    let whole = segment(PORT, Flags::ACK, [1, 7001], 900);
    let cut = |place: u16, len: usize| {
        let fragment = Fragment { protocol: PROTOCOL_TCP, id: 5, place };
        self::fragment(&whole, fragment, Body::copy_of(&bytes(920)[..len]))
    };
    let (mut split, mut out, now) = opened();
    split.on_packet(now, Side::Left, cut(0x2000, 8), &mut out);
    split.on_packet(now, Side::Left, cut(1, 4), &mut out);
    assert_eq!((out.sends.len(), split.holds()), (2, 0));
}

#[test]
fn an_incomplete_packet_is_dropped_after_30_s() {
    let (mut split, mut out, now) = opened();
    let whole = segment(PORT, Flags::ACK, [1, 7001], 900);
    let pieces = fragments(&whole, &[30, 60], 5);
    for piece in &pieces[1..] {
        split.on_packet(now, Side::Left, piece.clone(), &mut out);
    }
    assert_eq!(split.holds(), 2);
    let end = now + Span::secs(30);
    while let Some(at) = split.next_wake().filter(|at| *at < end) {
        split.on_wake(at, &mut out);
    }
    assert_eq!((split.holds(), split.next_wake()), (2, Some(end)));
    split.on_wake(end, &mut out);
    assert_eq!((split.holds(), drops(&mut out)), (0, vec![Cause::PieceLost; 2]));
    // The sender repeats the segment.
    out.sends.clear();
    for piece in fragments(&whole, &[30, 60], 6) {
        split.on_packet(end, Side::Left, piece, &mut out);
    }
    assert_eq!(forwarded(&mut out), bytes(900));
}

/// The identification wraps around: a stale fragment does not become a part of another packet.
#[test]
fn a_stale_fragment_completes_no_later_packet() {
    let (mut split, mut out, now) = opened();
    let whole = segment(PORT, Flags::ACK, [1, 7001], 900);
    let mut other = fragments(&segment(PORT, Flags::ACK, [1, 7001], 900), &[50], 5);
    other[0].body = Body::copy_of(&[9; 400]);
    split.on_packet(now, Side::Left, other.swap_remove(0), &mut out);
    for id in 100..170 {
        for piece in fragments(&segment(PORT + 1, Flags::ACK, [1, 7001], 900), &[50], id) {
            split.on_packet(now, Side::Left, piece, &mut out);
        }
    }
    out.sends.clear();
    out.events.clear();
    for piece in fragments(&whole, &[50], 5) {
        split.on_packet(now, Side::Left, piece, &mut out);
    }
    assert_eq!(drops(&mut out), [Cause::PieceLost, Cause::SplitTaken, Cause::SplitTaken]);
    assert_eq!(forwarded(&mut out), bytes(900));
}

/// A flood of first fragments has bounded memory: the oldest ones pass.
#[test]
fn a_flood_of_fragments_has_bounded_memory() {
    let (mut split, mut out, now) = opened();
    let whole = segment(PORT, Flags::ACK, [1, 7001], 900);
    let mut passed = 0;
    for id in 0..20_000u16 {
        let first = fragments(&whole, &[30, 60], id).swap_remove(usize::from(id % 3));
        split.on_packet(now, Side::Left, first, &mut out);
        passed += out.sends.drain(..).count();
        assert!(split.holds() <= 64, "{}", split.holds());
    }
    assert_eq!(passed + split.holds(), 20_000);
    for piece in fragments(&whole, &[30, 60], 30_000) {
        split.on_packet(now, Side::Left, piece, &mut out);
    }
    assert!(
        out.sends.iter().any(|(side, packet)| *side == Side::Right && packet.segment().is_some())
    );
}
