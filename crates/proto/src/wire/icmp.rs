//! Messages of a base station to the source of a datagram, and the quote that identifies the datagram.
//!
//! Both are ICMP error messages: eight bytes of header, then the IP header of the datagram and the first
//! eight bytes after it, which for TCP are the ports and the sequence number. The quote is the [`Body`] of
//! the packet, so its other contents (IP options, more of the datagram) pass unchanged.
//!
//! | message | ICMPv4 | ICMPv6 |
//! |---|---|---|
//! | source quench | type 4 (RFC 792) | none exists; type 101, private experimentation (RFC 4443 section 2.1) |
//! | bad state (EBSN) | type 253, experiment 1 (RFC 4727 section 4) | type 100, private experimentation |
//!
//! A message with another code, with nonzero unused bytes, or with a quote that does not identify a TCP
//! segment is none of these: it travels as [`super::Transport::Other`].

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::Serialize;

use super::checksum::{Sum, checksum};
use super::protocol::{PROTOCOL_ICMPV6, PROTOCOL_TCP};
use super::{Addr, Body, FlowKey, Packet, Seq};

/// Bytes before the quote: type, code, checksum, four unused.
pub const HEADER_LEN: u32 = 8;

/// Bytes of a quote that captures always keep, independent of their payload limit: the longest IPv4 header,
/// or the IPv6 header, and eight bytes.
pub const QUOTE_MAX: u32 = 68;

/// A message of a base station to the source of a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Notice {
    /// The source sends too fast (RFC 792; deprecated by RFC 6633).
    SourceQuench,
    /// The wireless link is in a bad state, and the base station is still transmitting the datagram: explicit
    /// bad state notification (bakshi96 4.2.3).
    BadState,
}

impl Notice {
    /// Both messages.
    pub const ALL: [Notice; 2] = [Notice::SourceQuench, Notice::BadState];

    /// Its ICMP type, in IPv4 or in IPv6.
    //= rfc792: source quench is type 4
    //= rfc4727#section-4: types 253 and 254 are for experiments
    //= rfc4443#section-2.1: so are 100 and 101 among the error messages of ICMPv6
    pub const fn kind(self, v4: bool) -> u8 {
        match (self, v4) {
            (Notice::SourceQuench, true) => 4,
            (Notice::BadState, true) => 253,
            (Notice::SourceQuench, false) => 101,
            (Notice::BadState, false) => 100,
        }
    }

    /// The message in the ICMP packet `bytes`; its quote follows the eight bytes of the header.
    pub(super) fn read(bytes: &[u8], v4: bool) -> Option<Notice> {
        let (header, quote) = bytes.split_first_chunk::<8>()?;
        let notice = Notice::ALL.into_iter().find(|notice| notice.kind(v4) == header[0])?;
        let plain = header[1] == 0 && header[4..8] == [0; 4];
        // A quote of the other address family cannot be a datagram from that source.
        let quoted = Quote::read(quote).is_some_and(|quote| quote.flow.src.is_v4() == v4);
        (plain && quoted).then_some(notice)
    }

    /// The name used in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Notice::SourceQuench => "source-quench",
            Notice::BadState => "bad-state",
        }
    }
}

/// Identification of the datagram that a message concerns.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Quote {
    /// Its flow.
    pub flow: FlowKey,
    /// Its sequence number.
    pub seq: Seq,
    /// Length of the IP packet in bytes, from its header.
    pub len: u32,
}

impl Quote {
    /// The quote at the start of `bytes`, if it includes the sequence number of a TCP segment. The header's
    /// checksum is not verified, since routers on the way have decremented its TTL.
    pub fn read(bytes: &[u8]) -> Option<Quote> {
        let (header, len, src, dst): (usize, u32, IpAddr, IpAddr) = match bytes.first()? >> 4 {
            4 => {
                let fixed = bytes.first_chunk::<20>()?;
                let header = usize::from(fixed[0] & 0x0f) * 4;
                // Only the first fragment begins with the TCP header.
                let offset = u16::from_be_bytes([fixed[6], fixed[7]]) & 0x1fff;
                if header < 20 || offset != 0 || fixed[9] != PROTOCOL_TCP {
                    return None;
                }
                let addr = |at: usize| Ipv4Addr::from(long(fixed, at));
                let len = u16::from_be_bytes([fixed[2], fixed[3]]);
                (header, len.into(), addr(12).into(), addr(16).into())
            }
            6 => {
                let fixed = bytes.first_chunk::<40>()?;
                if fixed[6] != PROTOCOL_TCP {
                    return None;
                }
                let addr = |at: usize| {
                    let words = [at, at + 4, at + 8, at + 12].map(|at| u128::from(long(fixed, at)));
                    Ipv6Addr::from_bits(words.into_iter().fold(0, |bits, word| bits << 32 | word))
                };
                let len = 40 + u32::from(u16::from_be_bytes([fixed[4], fixed[5]]));
                (40, len, addr(8).into(), addr(24).into())
            }
            _ => return None,
        };
        //= rfc792: the header and the first 64 bits of the datagram's data
        let tcp = bytes.get(header..)?.first_chunk::<8>()?;
        // TCP did not send a datagram without room for a TCP header.
        if (len as usize) < header + 20 {
            return None;
        }
        let (src, dst) = (Addr::from(src), Addr::from(dst));
        let port = |at: usize| u16::from_be_bytes([tcp[at], tcp[at + 1]]);
        let flow = FlowKey { src, dst, src_port: port(0), dst_port: port(2) };
        Some(Quote { flow, seq: Seq(long(tcp, 4)), len })
    }

    /// The bytes of a quote: a reconstructed header, and ports and sequence number.
    pub fn body(&self) -> Body {
        let FlowKey { src, dst, src_port, dst_port } = self.flow;
        let mut bytes = Vec::with_capacity(48);
        if let (Some(src), Some(dst)) = (src.as_v4(), dst.as_v4()) {
            let mut header = [0u8; 20];
            header[0] = 0x45;
            let len = self.len.clamp(40, 0xffff) as u16;
            header[2..4].copy_from_slice(&len.to_be_bytes());
            header[6] = 0x40;
            header[8] = 64;
            header[9] = PROTOCOL_TCP;
            header[12..16].copy_from_slice(&src.octets());
            header[16..20].copy_from_slice(&dst.octets());
            let check = checksum(&header);
            header[10..12].copy_from_slice(&check.to_be_bytes());
            bytes.extend_from_slice(&header);
        } else {
            let mut header = [0u8; 40];
            header[0] = 0x60;
            let len = (self.len.clamp(60, 40 + 0xffff) - 40) as u16;
            header[4..6].copy_from_slice(&len.to_be_bytes());
            header[6] = PROTOCOL_TCP;
            header[7] = 64;
            header[8..24].copy_from_slice(&src.as_v6().octets());
            header[24..40].copy_from_slice(&dst.as_v6().octets());
            bytes.extend_from_slice(&header);
        }
        bytes.extend_from_slice(&src_port.to_be_bytes());
        bytes.extend_from_slice(&dst_port.to_be_bytes());
        bytes.extend_from_slice(&self.seq.0.to_be_bytes());
        Body::copy_of(&bytes)
    }

    /// The quote for a message about a packet that carries TCP.
    pub fn of(packet: &Packet) -> Option<Quote> {
        let seq = packet.segment()?.seq;
        Some(Quote { flow: packet.flow()?, seq, len: packet.wire_len() })
    }
}

/// A router's report of a datagram that was too large for its next link.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TooBig {
    /// The datagram.
    pub quote: Quote,
    /// The MTU of the link in bytes; 0 if the router does not report it.
    pub mtu: u32,
}

impl TooBig {
    /// The report in the ICMP message `bytes`. The checksum is verified where it covers only the message.
    //= rfc1191#section-4: destination unreachable, fragmentation needed, with the MTU in the low half of the second word
    //= rfc4443#section-3.2: packet too big is type 2, with the MTU in the second word
    pub fn read(bytes: &[u8], v4: bool) -> Option<TooBig> {
        let (header, quote) = bytes.split_first_chunk::<8>()?;
        let is_one = if v4 { header[..2] == [3, 4] } else { header[..2] == [2, 0] };
        if !is_one || v4 && checksum(bytes) != 0 {
            return None;
        }
        let word = long(header, 4);
        let mtu = if v4 { word & 0xffff } else { word };
        let quote = Quote::read(quote).filter(|quote| quote.flow.src.is_v4() == v4)?;
        Some(TooBig { quote, mtu })
    }
}

fn long(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// The checksum of an ICMP message of `len` bytes, of which `bytes` are present, with its field zero.
//= rfc792: the checksum covers the message from its type on
//= rfc4443#section-2.3: that of ICMPv6 covers a pseudo-header as well
pub(super) fn sum(src: Addr, dst: Addr, len: u32, bytes: &[u8]) -> Sum {
    let mut sum = Sum::default();
    if !src.is_v4() {
        sum.pseudo_header(src, dst, PROTOCOL_ICMPV6, len);
    }
    sum.bytes(bytes);
    sum
}
