//! What several targets make of their input: operations, segments of a few connections, time that goes on.
#![allow(dead_code, reason = "no target needs all of it")]

use lasthop_proto::machine::Side;
use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::{Addr, Body, Flags, Packet, PacketId, Segment, Seq, options};

/// Input that is read piece by piece; behind its end come zeros.
pub struct Feed<'a>(pub &'a [u8]);

impl<'a> Feed<'a> {
    pub fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    pub fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    pub fn number(&mut self) -> u16 {
        u16::from_be_bytes([self.byte(), self.byte()])
    }

    pub fn take(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// From a microsecond to a day: short ones are as likely as long ones.
    pub fn span(&mut self) -> Span {
        let byte = self.byte();
        Span::micros((u64::from(byte & 15) + 1) << (2 * u32::from(byte >> 4)))
    }
}

pub const FIXED: Addr = Addr::v4(10, 0, 0, 1);
pub const MOBILE: Addr = Addr::v4(10, 0, 1, 1);

/// Where the numbers of a connection begin, by its port: one of them passes zero early.
fn first(port: u16) -> u32 {
    if port & 1 == 0 { 1_000 } else { u32::MAX - 3_000 }
}

/// A segment of one of four connections between the two hosts, and the side that it comes from. What stands at a
/// sequence number is always the same byte.
pub fn segment(feed: &mut Feed<'_>) -> (Side, Packet) {
    let what = feed.byte();
    let port = u16::from(what >> 1 & 3);
    let (seq, ack, len) = (feed.number(), feed.number(), feed.number() & 0xfff);
    let flags = if what & 8 == 0 { Flags::ACK } else { Flags(u16::from(feed.byte())) };
    let (from, near) = if what & 1 == 0 { (Side::Left, true) } else { (Side::Right, false) };
    let begin = first(port);
    // Most numbers are multiples of a segment's length, so that they meet.
    let scale = if what & 16 == 0 { 500 } else { 1 };
    let seq = Seq(begin.wrapping_add(u32::from(seq) * scale));
    let ack = Seq(begin.wrapping_add(u32::from(ack) * scale));
    let ports = if near { (40_000 + port, 9) } else { (9, 40_000 + port) };
    let mut segment = Segment::new(ports.0, ports.1, seq, ack, flags);
    segment.window = if what & 32 == 0 { 20_000 } else { feed.number() };
    if what & 64 != 0 {
        let count = usize::from(feed.byte() % 41);
        let read = options::read(feed.take(count));
        segment.timestamps = read.timestamps;
        if let Some(found) = read.options {
            *segment.options_mut() = *found;
        }
    }
    let data = seq + u32::from(flags.has(Flags::SYN));
    let body = body(from, port, data, u32::from(if what & 128 == 0 { len % 1461 } else { 0 }));
    let (src, dst) = if near { (FIXED, MOBILE) } else { (MOBILE, FIXED) };
    (from, Packet::tcp(src, dst, segment, body))
}

fn body(from: Side, port: u16, seq: Seq, len: u32) -> Body {
    let stream = 2 * u32::from(port) + 1 + u32::from(from == Side::Right);
    // As far from the first number as the number may be before it.
    let offset = u64::from(seq.0.wrapping_sub(first(port)).wrapping_add(1 << 31));
    Body::Pattern { stream, len, offset }
}

/// The bytes of a packet that leaves are those that belong at its numbers.
pub fn is_true(packet: &Packet) -> bool {
    let Some(segment) = packet.segment() else { return true };
    let (from, port) = match packet.src {
        FIXED => (Side::Left, segment.src_port.wrapping_sub(40_000)),
        _ => (Side::Right, segment.dst_port.wrapping_sub(40_000)),
    };
    let Body::Pattern { .. } = packet.body else { return false };
    let first = segment.seq + u32::from(segment.flags.has(Flags::SYN));
    let expected = body(from, port, first, packet.body.len());
    (0..packet.body.len()).step_by(97).all(|i| packet.body.byte(i) == expected.byte(i))
}

/// Gives packets their identities.
#[derive(Default)]
pub struct Ids(u64);

impl Ids {
    pub fn next(&mut self) -> PacketId {
        self.0 += 1;
        PacketId(1 << 60 | self.0)
    }
}

/// Wakes what wants to be woken until `now`, each time at its own time; `wake` says when it wants to be called after
/// that.
pub fn wake_until(now: Time, mut next: Option<Time>, mut wake: impl FnMut(Time) -> Option<Time>) {
    let mut last = Time::ZERO;
    for _ in 0..100_000 {
        let Some(at) = next.filter(|at| *at <= now) else { return };
        last = last.max(at);
        next = wake(last);
    }
    // A day of a short timer may take more than that; one that stands still is a fault.
    assert!(next.is_none_or(|at| at > last), "it wants to be woken at {last} for ever");
}
