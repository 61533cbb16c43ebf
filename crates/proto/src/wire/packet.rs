//! A packet: IP header, transport header, payload, and damage by the channel.

use core::fmt;
use core::hash::{Hash, Hasher};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::ops::{Deref, DerefMut};

use super::icmp::{self, Notice, Quote, TooBig};
use super::protocol::{PROTOCOL_ICMP, PROTOCOL_ICMPV6, PROTOCOL_UDP};
use super::{Body, Flags, Segment};
use crate::side::Side;

/// An IP address. IPv4 is stored in its IPv6-mapped form, so that all addresses compare and hash alike. Two
/// 64-bit words, because the alignment of a 128-bit word would make packets and flows larger.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Addr {
    high: u64,
    low: u64,
}

const V4_MAPPED: u64 = 0xffff_0000_0000;

impl Addr {
    /// An IPv4 address.
    pub const fn v4(a: u8, b: u8, c: u8, d: u8) -> Addr {
        Addr { high: 0, low: V4_MAPPED | u32::from_be_bytes([a, b, c, d]) as u64 }
    }

    /// Whether this is a multicast or broadcast address.
    pub fn is_multicast(self) -> bool {
        match self.ip() {
            IpAddr::V4(v4) => v4.is_multicast() || v4.is_broadcast(),
            IpAddr::V6(v6) => v6.is_multicast(),
        }
    }

    /// Whether this is an IPv4 address.
    #[inline]
    pub fn is_v4(self) -> bool {
        self.high == 0 && self.low >> 32 == V4_MAPPED >> 32
    }

    /// The address as two numbers, for hashes.
    #[inline]
    pub fn words(self) -> [u64; 2] {
        [self.high, self.low]
    }

    /// The address as the standard library's type.
    pub fn ip(self) -> IpAddr {
        if self.is_v4() {
            IpAddr::V4(Ipv4Addr::from(self.low as u32))
        } else {
            IpAddr::V6(Ipv6Addr::from(u128::from(self.high) << 64 | u128::from(self.low)))
        }
    }
}

impl From<IpAddr> for Addr {
    fn from(ip: IpAddr) -> Addr {
        match ip {
            IpAddr::V4(v4) => Addr { high: 0, low: V4_MAPPED | u64::from(u32::from(v4)) },
            IpAddr::V6(v6) => {
                let bits = u128::from(v6);
                Addr { high: (bits >> 64) as u64, low: bits as u64 }
            }
        }
    }
}

impl Hash for Addr {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.high ^ self.low);
    }
}

impl fmt::Display for Addr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.ip().fmt(f)
    }
}

impl fmt::Debug for Addr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.ip().fmt(f)
    }
}

/// One direction of a TCP connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FlowKey {
    /// Source address.
    pub src: Addr,
    /// Destination address.
    pub dst: Addr,
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
}

impl FlowKey {
    /// The same connection seen from the other side.
    pub fn reversed(self) -> FlowKey {
        FlowKey { src: self.dst, dst: self.src, src_port: self.dst_port, dst_port: self.src_port }
    }

    /// The flow from left to right of the connection; a packet from `from` has this flow.
    pub fn rightward(self, from: Side) -> FlowKey {
        match from {
            Side::Left => self,
            Side::Right => self.reversed(),
        }
    }
}

/// Identity of one transmission along its path: a retransmission has a new one. The high bits identify the
/// stage that created it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct PacketId(pub u64);

/// Damage by the channel. The receiver that verifies the damaged checksum drops the packet.
//= west97#4.3: the error model damages the IP or the TCP checksum by the position of the error
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Damage {
    /// Untouched.
    #[default]
    None,
    /// The IP header checksum is wrong: the next IP hop drops it.
    Ip,
    /// The TCP checksum (or that of ICMP) is wrong: routers forward the packet, the receiving TCP drops it.
    Tcp,
}

/// The transport header.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Transport {
    /// A TCP segment.
    Tcp(Segment),
    /// ICMP to the source of a datagram; the quote is the body.
    Icmp(Notice),
    /// A fragment of an IPv4 packet; its part of header and payload is the body.
    Fragment(Fragment),
    /// Anything else: the IP protocol number; header and payload are the body.
    Other(u8),
}

impl Transport {
    /// The IP protocol number of a transport that is not parsed.
    pub fn opaque(&self) -> Option<u8> {
        match self {
            Transport::Tcp(_) | Transport::Icmp(_) => None,
            Transport::Fragment(Fragment { protocol, .. }) | Transport::Other(protocol) => {
                Some(*protocol)
            }
        }
    }
}

/// Fields of the IPv4 header of a fragment (RFC 791 section 3.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fragment {
    /// The IP protocol number of the whole packet.
    pub protocol: u8,
    /// The identification that all fragments share.
    pub id: u16,
    /// Flags and fragment offset, as in the header.
    pub place: u16,
}

/// ECN bits of the traffic class: an ECN-capable transport, ECT(0) (RFC 3168 section 5).
pub const ECT: u8 = 0b10;
/// ECN bits of the traffic class: an ECN-capable transport that responds to each mark by a small reduction,
/// so that queues may be very short (L4S, RFC 9331 section 4.1).
pub const ECT1: u8 = 0b01;
/// ECN bits of the traffic class: a router experienced congestion.
pub const CE: u8 = 0b11;

/// A packet in flight. It moves several times per hop, so it is a pointer to its [`Parts`], which do not
/// move.
#[derive(PartialEq, Eq)]
pub struct Packet(Box<Parts>);

impl Clone for Packet {
    fn clone(&self) -> Packet {
        Packet(self.0.clone())
    }

    /// Reuses the memory of the replaced packet.
    fn clone_from(&mut self, source: &Packet) {
        self.0.clone_from(&source.0);
    }
}

/// The contents of a packet. The struct has no cache-line alignment: such allocations are slow, and every
/// buffered packet would pay for it.
#[derive(Clone, PartialEq, Eq)]
pub struct Parts {
    /// Identity of this transmission; set by [`crate::machine::Out::originate`].
    pub id: PacketId,
    /// Source address.
    pub src: Addr,
    /// Destination address.
    pub dst: Addr,
    /// Transport header.
    pub transport: Transport,
    /// Payload.
    pub body: Body,
    /// Traffic class: DSCP and ECN bits.
    pub tos: u8,
    /// IPv6 flow label, 20 bits; zero on IPv4.
    pub label: u32,
    /// Remaining hops (TTL).
    pub ttl: u8,
    /// Damage by the channel.
    pub damage: Damage,
    /// Whether a base station requests priority over waiting packets in the queue of the next link. Not part
    /// of the wire format.
    pub urgent: bool,
    /// Payload of each segment of a super-packet in bytes, which a network card splits on output; zero for a
    /// single packet. Only data planes whose agents support super-packets ([`Packet::cut`]) accept them.
    pub piece: u16,
    /// Whether routers may fragment it: an IPv4 packet without "don't fragment".
    pub fragmentable: bool,
}

impl Parts {
    /// The parts of a TCP packet that no stage has sent yet.
    #[inline]
    pub fn tcp(src: Addr, dst: Addr, segment: Segment, body: Body) -> Parts {
        Parts::new(src, dst, Transport::Tcp(segment), body)
    }

    #[inline]
    fn new(src: Addr, dst: Addr, transport: Transport, body: Body) -> Parts {
        Parts {
            id: PacketId(0),
            src,
            dst,
            transport,
            body,
            tos: 0,
            label: 0,
            ttl: 64,
            damage: Damage::None,
            urgent: false,
            piece: 0,
            fragmentable: false,
        }
    }
}

impl Deref for Packet {
    type Target = Parts;

    #[inline]
    fn deref(&self) -> &Parts {
        &self.0
    }
}

impl DerefMut for Packet {
    #[inline]
    fn deref_mut(&mut self) -> &mut Parts {
        &mut self.0
    }
}

// As derived, but without fields that almost no packet has: the digests of runs are computed from this form.
impl fmt::Debug for Packet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Parts { id, src, dst, transport, body, tos, ttl, damage, .. } = &**self;
        let Parts { label, urgent, piece, fragmentable, .. } = &**self;
        let mut form = f.debug_struct("Packet");
        form.field("id", id).field("src", src).field("dst", dst).field("transport", transport);
        form.field("body", body).field("tos", tos).field("ttl", ttl).field("damage", damage);
        if *label != 0 {
            form.field("label", label);
        }
        if *urgent {
            form.field("urgent", urgent);
        }
        if *piece != 0 {
            form.field("piece", piece);
        }
        if *fragmentable {
            form.field("fragmentable", fragmentable);
        }
        form.finish()
    }
}

impl Packet {
    /// A packet of these parts.
    #[inline]
    pub fn new(parts: Parts) -> Packet {
        Packet(Box::new(parts))
    }

    /// A packet of these parts in the memory of this one.
    #[inline]
    pub(crate) fn renewed(mut self, parts: Parts) -> Packet {
        *self.0 = parts;
        self
    }

    /// A TCP packet that no stage has sent yet.
    #[inline]
    pub fn tcp(src: Addr, dst: Addr, segment: Segment, body: Body) -> Packet {
        Packet::new(Parts::tcp(src, dst, segment, body))
    }

    /// A packet that no stage has sent yet and that no machine parses.
    pub fn opaque(src: Addr, dst: Addr, transport: Transport, body: Body) -> Packet {
        Packet::new(Parts::new(src, dst, transport, body))
    }

    /// Reads a word at either end to prefetch the whole packet; the result has no meaning.
    #[inline]
    pub fn touch(&self) -> u64 {
        self.dst.low ^ self.id.0 ^ u64::from(self.ttl) ^ u64::from(self.body.len())
    }

    /// The packet after `change`.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Parts)) -> Packet {
        change(&mut self);
        self
    }

    /// A message about the datagram of `quote`, to its source.
    ///
    /// The datagram's destination is its source address: a base station is a bump in the wire and need not
    /// have an address, and packets from the destination are expected on this path.
    pub fn notice(notice: Notice, quote: &Quote) -> Packet {
        let transport = Transport::Icmp(notice);
        Packet::opaque(quote.flow.dst, quote.flow.src, transport, quote.body())
    }

    /// The message and its quote, if this packet is one.
    pub fn quote(&self) -> Option<(Notice, Quote)> {
        let Transport::Icmp(notice) = self.transport else { return None };
        let Body::Bytes { frame, from, len } = &self.body else { return None };
        let from = *from as usize;
        Quote::read(frame.get(from..from + *len as usize)?).map(|quote| (notice, quote))
    }

    /// The router's report that another packet was too large, if this packet is one.
    pub fn too_big(&self) -> Option<TooBig> {
        let v4 = self.src.is_v4();
        let icmp = if v4 { PROTOCOL_ICMP } else { PROTOCOL_ICMPV6 };
        if self.transport != Transport::Other(icmp) {
            return None;
        }
        let Body::Bytes { frame, from, len } = &self.body else { return None };
        let from = *from as usize;
        TooBig::read(frame.get(from..from + *len as usize)?, v4)
    }

    /// The TCP segment, if this is one.
    #[inline]
    pub fn segment(&self) -> Option<&Segment> {
        match &self.transport {
            Transport::Tcp(segment) => Some(segment),
            Transport::Icmp(_) | Transport::Fragment(_) | Transport::Other(_) => None,
        }
    }

    /// Address and port pairs in the direction of travel, if this is TCP.
    #[inline]
    pub fn flow(&self) -> Option<FlowKey> {
        self.segment().map(|s| FlowKey {
            src: self.src,
            dst: self.dst,
            src_port: s.src_port,
            dst_port: s.dst_port,
        })
    }

    /// Address and port pairs in the direction of travel, if this is UDP.
    pub fn datagram_flow(&self) -> Option<FlowKey> {
        if self.transport != Transport::Other(PROTOCOL_UDP) {
            return None;
        }
        let port = |at| Some(u16::from_be_bytes([self.body.byte(at)?, self.body.byte(at + 1)?]));
        Some(FlowKey { src: self.src, dst: self.dst, src_port: port(0)?, dst_port: port(2)? })
    }

    /// Length of the IP header in bytes.
    #[inline]
    pub fn ip_header_len(&self) -> u32 {
        if self.src.is_v4() { 20 } else { 40 }
    }

    /// Length of IP and transport headers in bytes.
    #[inline]
    pub fn header_len(&self) -> u32 {
        let transport = match &self.transport {
            Transport::Tcp(segment) => segment.header_len(),
            Transport::Icmp(_) => icmp::HEADER_LEN,
            Transport::Fragment(_) | Transport::Other(_) => 0,
        };
        self.ip_header_len() + transport
    }

    /// Length of the whole IP packet in bytes.
    #[inline]
    pub fn wire_len(&self) -> u32 {
        self.header_len() + self.body.len()
    }

    /// Number of packets on the wire: more than one for a super-packet.
    #[inline]
    pub fn pieces(&self) -> u32 {
        if self.piece == 0 { 1 } else { self.body.len().div_ceil(u32::from(self.piece)).max(1) }
    }

    /// The packets that a card makes of this super-packet.
    pub fn cut(&self) -> impl Iterator<Item = Packet> + '_ {
        let size = u32::from(self.piece);
        let last = self.pieces() - 1;
        (0..=last).map(move |i| {
            let mut packet = self.clone().with(|whole| whole.piece = 0);
            if last == 0 {
                return packet;
            }
            packet.body = self.body.slice(i * size, size);
            if let Transport::Tcp(segment) = &mut packet.transport {
                segment.seq = segment.seq + i * size;
                if i < last {
                    segment.flags = segment.flags.without(Flags::FIN | Flags::PSH);
                }
                //= rfc3168#section-6.1.2: CWR on the first segment only
                if i > 0 {
                    segment.flags = segment.flags.without(Flags::CWR);
                }
            }
            packet
        })
    }

    /// ECN bits of the traffic class.
    #[inline]
    pub fn ecn(&self) -> u8 {
        self.tos & CE
    }

    /// Whether its ends understand congestion marks, so that a router need not drop it.
    pub fn is_ecn_capable(&self) -> bool {
        self.tos & CE != 0
    }

    /// Whether a router has marked it: congestion experienced.
    pub fn is_marked(&self) -> bool {
        self.tos & CE == CE
    }

    /// Whether this carries TCP payload.
    pub fn is_data(&self) -> bool {
        matches!(self.transport, Transport::Tcp(_)) && !self.body.is_empty()
    }

    /// Whether this carries data as far as a router can determine: TCP payload, or UDP larger than an
    /// acknowledgement of QUIC, which is encrypted.
    pub fn bears_data(&self) -> bool {
        /// Bytes of a whole packet; TULIP has the same default bound.
        const ACK: u32 = 160;
        match self.transport {
            Transport::Tcp(_) => !self.body.is_empty(),
            Transport::Other(PROTOCOL_UDP) => self.wire_len() > ACK,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_stays_small() {
        // The fields that each hop reads and moves. An allocation of 112 bytes would take as much memory.
        assert_eq!((size_of::<Parts>(), size_of::<Option<Packet>>()), (120, size_of::<usize>()));
    }

    #[test]
    fn addresses_round_trip() {
        let v4 = Addr::v4(10, 0, 0, 1);
        assert_eq!(v4.to_string(), "10.0.0.1");
        assert_eq!(Addr::from(v4.ip()), v4);
        let v6: IpAddr = "fd00::7".parse().unwrap();
        assert_eq!(Addr::from(v6).ip(), v6);
        assert!(!Addr::from(v6).is_v4());
    }
}
