//! Reassembly of IPv4 fragments (RFC 791 section 3.2), since a connection that ends here needs whole segments.
//!
//! Fragments of TCP wait until their packet is complete. If it belongs to no split connection, the fragments are
//! forwarded as they arrived. So are fragments that overlap, and those of the oldest packet if there is no room.
//! An incomplete packet is dropped after 30 s, as in Linux, or when its identification returns.

use std::sync::Arc;

use crate::event::Cause;
use crate::machine::{Machine as _, Out, Side};
use crate::units::{Span, Time};
use crate::wire::parse::{IpLayer, Mode, transport};
use crate::wire::protocol::PROTOCOL_TCP;
use crate::wire::{Addr, Body, CE, Damage, Fragment, Packet, PacketId, Parts, Transport};

use super::Split;

/// Limit of waiting packets, of their fragments, and of the fragments' bytes.
const PACKETS_MAX: usize = 64;
const FRAGMENTS_MAX: usize = 512;
const BYTES_MAX: u32 = 256 << 10;
/// Largest payload of an IPv4 packet.
const PAYLOAD_MAX: u32 = 65_515;
const WAIT: Span = Span::secs(30);
/// Number of later packets after which the identification of a packet may belong to another one (`ipfrag_max_dist` of
/// Linux). Its 16 bits wrap around within seconds on fast links (RFC 4963).
const DISTANCE_MAX: u64 = 64;

/// An incomplete packet.
#[derive(Clone, Debug)]
struct Incomplete {
    from: Side,
    until: Time,
    /// Its number in the order of first fragments.
    number: u64,
    /// In order of arrival, without overlaps.
    fragments: Vec<Packet>,
    /// Bytes of the fragments.
    bytes: u32,
    /// Length of the payload, once its last fragment has arrived.
    end: Option<u32>,
}

/// Bytes `start..end` of the payload that a fragment holds, and whether it is the last fragment.
fn range(packet: &Packet) -> Option<(u32, u32, bool)> {
    let Transport::Fragment(Fragment { place, .. }) = packet.transport else { return None };
    let start = u32::from(place & 0x1fff) * 8;
    Some((start, start + packet.body.len(), place & 0x2000 == 0))
}

/// Identity of a fragment's packet: addresses and IP identification.
fn identity(packet: &Packet) -> Option<(Addr, Addr, u16)> {
    match packet.transport {
        Transport::Fragment(fragment) => Some((packet.src, packet.dst, fragment.id)),
        _ => None,
    }
}

impl Incomplete {
    fn is_of(&self, from: Side, packet: &Packet) -> bool {
        self.from == from
            && self.fragments.first().is_some_and(|first| identity(first) == identity(packet))
    }

    fn drop_all(self, out: &mut Out) {
        for fragment in self.fragments {
            out.discard(self.from.other(), fragment, Cause::PieceLost);
        }
    }

    /// Whether `packet` repeats a fragment.
    fn has(&self, packet: &Packet) -> bool {
        self.fragments.iter().any(|known| range(known) == range(packet))
    }

    /// Stores a fragment. Returns false if it contradicts the others, or exceeds an IP packet.
    fn add(&mut self, packet: Packet) -> bool {
        let Some((start, end, last)) = range(&packet) else { return false };
        let fits = |(other, other_end, _): (u32, u32, bool)| {
            (other_end <= start || other >= end) && !(last && other_end > end)
        };
        let valid = start < end
            && (last || (end - start).is_multiple_of(8))
            && end <= self.end.unwrap_or(PAYLOAD_MAX)
            && !(last && self.end.is_some())
            && self.fragments.iter().filter_map(range).all(fits);
        if last {
            self.end = Some(end);
        }
        self.bytes += packet.body.len();
        self.fragments.push(packet);
        valid
    }

    /// Whether all fragments have arrived: they do not overlap.
    fn is_complete(&self) -> bool {
        self.end == Some(self.bytes)
    }

    /// The packet of all fragments, if it is a TCP segment.
    fn whole(&self) -> Option<Packet> {
        let mut all: Vec<&Packet> = self.fragments.iter().collect();
        all.sort_unstable_by_key(|fragment| range(fragment));
        let first = all.first()?;
        // The headers of the first frame remain, from which a data plane learns the link's addresses.
        let mut bytes = match &first.body {
            Body::Bytes { frame, from, .. } => frame.get(..*from as usize)?.to_vec(),
            Body::Pattern { .. } => Vec::new(),
        };
        let payload_at = bytes.len();
        all.iter().for_each(|fragment| fragment.body.copy_into(fragment.body.len(), &mut bytes));
        let payload = &bytes[payload_at..];
        let marked = all.iter().any(|fragment| fragment.tos & CE == CE);
        let ip = IpLayer {
            src: first.src,
            dst: first.dst,
            protocol: PROTOCOL_TCP,
            //= rfc3168#section-5.3: a mark on any fragment marks the packet
            tos: if marked { first.tos | CE } else { first.tos },
            label: 0,
            ttl: first.ttl,
            id: 0,
            header: 0,
            total: payload.len(),
            damaged: false,
            fragment: None,
        };
        let view = transport(payload, &ip, Mode::WHOLE).ok().filter(|v| v.bad_option.is_none())?;
        let (from, len) = ((payload_at + view.body_at) as u32, view.body_len);
        Some(Packet::new(Parts {
            id: PacketId(0),
            src: view.src,
            dst: view.dst,
            transport: view.transport,
            body: Body::Bytes { frame: Arc::from(bytes), from, len },
            tos: view.tos,
            label: view.label,
            ttl: view.ttl,
            damage: view.damage,
            urgent: false,
            piece: 0,
            fragmentable: true,
        }))
    }
}

/// Incomplete packets, the oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Reassembly {
    waiting: Vec<Incomplete>,
    /// Number of packets so far.
    count: u64,
}

/// Result of a fragment.
#[derive(Debug)]
enum Step {
    /// It waits for others.
    Waits,
    /// It repeats one that waits.
    Repeated(Packet),
    /// The fragments of a complete packet in order of arrival, and this packet.
    Complete(Vec<Packet>, Packet),
    /// Fragments that form no segment.
    Unfit(Vec<Packet>),
}

impl Reassembly {
    fn take(&mut self, now: Time, from: Side, packet: Packet, out: &mut Out) -> Step {
        let known = self.waiting.iter().position(|known| known.is_of(from, &packet));
        if let Some(i) = known.filter(|i| self.count - self.waiting[*i].number > DISTANCE_MAX) {
            self.waiting.remove(i).drop_all(out);
        }
        let i =
            self.waiting.iter().position(|known| known.is_of(from, &packet)).unwrap_or_else(|| {
                self.count += 1;
                let (until, number, fragments) = (now + WAIT, self.count, Vec::new());
                self.waiting.push(Incomplete {
                    from,
                    until,
                    number,
                    fragments,
                    bytes: 0,
                    end: None,
                });
                self.waiting.len() - 1
            });
        if self.waiting[i].has(&packet) {
            return Step::Repeated(packet);
        }
        if !self.waiting[i].add(packet) {
            return Step::Unfit(self.waiting.remove(i).fragments);
        }
        if !self.waiting[i].is_complete() {
            return Step::Waits;
        }
        let complete = self.waiting.remove(i);
        match complete.whole() {
            Some(whole) => Step::Complete(complete.fragments, whole),
            None => Step::Unfit(complete.fragments),
        }
    }

    /// Removes the oldest packet if the limits are exceeded.
    fn take_excess(&mut self) -> Option<(Side, Vec<Packet>)> {
        let bytes: u32 = self.waiting.iter().map(|incomplete| incomplete.bytes).sum();
        let exceeded =
            self.waiting.len() > PACKETS_MAX || self.len() > FRAGMENTS_MAX || bytes > BYTES_MAX;
        exceeded.then(|| self.waiting.remove(0)).map(|oldest| (oldest.from, oldest.fragments))
    }

    /// Number of waiting fragments.
    pub(super) fn len(&self) -> usize {
        self.waiting.iter().map(|incomplete| incomplete.fragments.len()).sum()
    }

    /// When the oldest packet is dropped.
    pub(super) fn next_wake(&self) -> Option<Time> {
        self.waiting.first().map(|oldest| oldest.until)
    }

    /// Drops packets that have waited too long.
    pub(super) fn on_wake(&mut self, now: Time, out: &mut Out) {
        while self.next_wake().is_some_and(|until| until <= now) {
            self.waiting.remove(0).drop_all(out);
        }
    }
}

impl Split {
    /// Whether a packet is an intact fragment of TCP, and a connection is split.
    pub(super) fn reassembles(&self, packet: &Packet) -> bool {
        let is_tcp =
            matches!(packet.transport, Transport::Fragment(f) if f.protocol == PROTOCOL_TCP);
        is_tcp && packet.damage == Damage::None && self.pairs.len() > 0
    }

    pub(super) fn on_fragment(&mut self, now: Time, from: Side, packet: Packet, out: &mut Out) {
        match self.reassembly.take(now, from, packet, out) {
            Step::Waits => {}
            Step::Repeated(packet) => out.discard(from.other(), packet, Cause::SplitTaken),
            Step::Complete(fragments, whole) => {
                let key = whole.flow().map(|flow| flow.rightward(from));
                if key.is_some_and(|key| self.pairs.find(key).is_some()) {
                    for fragment in fragments.into_iter().skip(1) {
                        out.discard(from.other(), fragment, Cause::SplitTaken);
                    }
                    self.on_packet(now, from, whole, out);
                } else {
                    self.pass_all(now, from, fragments, out);
                }
            }
            Step::Unfit(fragments) => self.pass_all(now, from, fragments, out),
        }
        while let Some((from, fragments)) = self.reassembly.take_excess() {
            self.pass_all(now, from, fragments, out);
        }
    }

    fn pass_all(&mut self, now: Time, from: Side, packets: Vec<Packet>, out: &mut Out) {
        packets.into_iter().for_each(|packet| self.pass(now, from, packet, out));
    }
}
