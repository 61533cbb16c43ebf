//! Conversion of packets to bytes.
//!
//! [`emit`] writes the wire format. A damaged packet gets a checksum that is really wrong, so the receiver of
//! the bytes drops it for the reason that the channel model gave.
//!
//! Fields that a [`Packet`] does not store are regenerated: the IPv4 identification from the packet's
//! identity, and "don't fragment" set except in fragments and where [`Parts`](super::Parts) permits fragments. There are no IPv4 options, and the IPv6 flow label
//! is zero.

use super::checksum::{Sum, checksum};
use super::icmp;
use super::options::{self, WriteError};
use super::protocol::{PROTOCOL_ICMP, PROTOCOL_ICMPV6, PROTOCOL_TCP};
use super::{Damage, Fragment, Packet, Segment, Transport};

/// Turns every right checksum into a wrong one: no two checksums with this difference are equal in ones'
/// complement.
const SPOIL: u16 = 0x5555;

/// Why a packet cannot be converted to bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EmitError {
    /// One address is IPv4 and the other IPv6.
    #[error("source and destination address are of different families")]
    MixedFamilies,
    /// TCP with an unreadable header. Forward its bytes instead.
    #[error("a segment whose options cannot be read cannot be emitted")]
    Unreadable,
    /// The packet is too long for the length field of IP.
    #[error("{len} bytes are more than an IP packet can hold")]
    TooLong {
        /// Length of the packet with its IP header.
        len: u64,
    },
    /// The options do not fit the header.
    #[error(transparent)]
    Options(#[from] WriteError),
}

/// Appends the bytes of `packet` to `out` and returns their number.
///
/// [`Damage::Ip`] makes the IPv4 header checksum wrong. IPv6 has none, so the transport is damaged as for
/// [`Damage::Tcp`]: the packet is lost one stage later, at its receiver. Damage to a transport other than TCP
/// flips a bit in its last byte, which the transport's checksum covers.
///
/// # Errors
/// See [`EmitError`]; nothing is appended then.
pub fn emit(packet: &Packet, out: &mut Vec<u8>) -> Result<usize, EmitError> {
    emit_prefix(packet, u32::MAX, out).map(|written| written.captured as usize)
}

/// Like [`emit`], but the TCP checksum covers only the pseudo-header: the network card adds the rest. Returns
/// the length of the IP and TCP headers.
///
/// # Errors
/// See [`EmitError`]; nothing is appended then.
pub fn emit_partial(packet: &Packet, out: &mut Vec<u8>) -> Result<usize, EmitError> {
    let at = out.len();
    let headers = emit_prefix(packet, 0, out)?.captured;
    packet.body.copy_into(u32::MAX, out);
    if let Transport::Tcp(_) = packet.transport {
        let ip = packet.ip_header_len();
        let mut sum = Sum::default();
        let len = headers - ip + packet.body.len();
        sum.pseudo_header(packet.src, packet.dst, PROTOCOL_TCP, len);
        let field = at + ip as usize + 16;
        out[field..field + 2].copy_from_slice(&sum.fold().to_be_bytes());
    }
    Ok(headers as usize)
}

/// Extent of a packet that [`emit_prefix`] wrote.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Prefix {
    /// Bytes appended.
    pub captured: u32,
    /// Bytes of the whole packet.
    pub original: u32,
}

/// Like [`emit`], but with at most the first `payload` bytes of the body: for captures.
///
/// The quoted headers of an ICMP message are always written.
///
/// For a truncated body the checksum covers only the written bytes, since truncation avoids generating the
/// rest. No reader can verify a checksum over bytes that it does not have.
///
/// # Errors
/// See [`EmitError`]; nothing is appended then.
pub fn emit_prefix(packet: &Packet, payload: u32, out: &mut Vec<u8>) -> Result<Prefix, EmitError> {
    if packet.src.is_v4() != packet.dst.is_v4() {
        return Err(EmitError::MixedFamilies);
    }
    if packet.transport == Transport::Other(PROTOCOL_TCP) {
        return Err(EmitError::Unreadable);
    }
    let written = match &packet.transport {
        Transport::Tcp(segment) if segment.timestamps.is_some() || segment.has_options() => {
            Some(options::write(segment.timestamps, segment.options())?)
        }
        _ => None,
    };
    let options = written.as_ref().map_or(&[][..], |w| w.as_slice());
    let header = match packet.transport {
        Transport::Tcp(_) => 20 + options.len() as u32,
        Transport::Icmp(_) => icmp::HEADER_LEN,
        Transport::Fragment(_) | Transport::Other(_) => 0,
    };
    let transport_len = u64::from(header) + u64::from(packet.body.len());
    let ip_header = packet.ip_header_len();
    // The length field of IPv4 includes its header, that of IPv6 does not.
    let len = u64::from(ip_header) + transport_len;
    if (if packet.src.is_v4() { len } else { transport_len }) > 0xffff {
        return Err(EmitError::TooLong { len });
    }
    let transport_len = transport_len as u32;
    let least = if matches!(packet.transport, Transport::Icmp(_)) { icmp::QUOTE_MAX } else { 0 };
    let payload = payload.max(least).min(packet.body.len());
    out.reserve((ip_header + header + payload) as usize);
    if packet.src.is_v4() {
        ipv4(packet, len as u16, out);
    } else {
        ipv6(packet, transport_len as u16, out);
    }
    let at = out.len();
    let spoiled =
        packet.damage == Damage::Tcp || packet.damage == Damage::Ip && !packet.src.is_v4();
    match &packet.transport {
        Transport::Tcp(segment) => {
            tcp(segment, options, out);
            packet.body.copy_into(payload, out);
            let mut sum = Sum::default();
            sum.pseudo_header(packet.src, packet.dst, PROTOCOL_TCP, transport_len);
            sum.bytes(&out[at..]);
            let check = sum.checksum() ^ if spoiled { SPOIL } else { 0 };
            out[at + 16..at + 18].copy_from_slice(&check.to_be_bytes());
        }
        Transport::Icmp(notice) => {
            out.extend_from_slice(&[notice.kind(packet.src.is_v4()), 0, 0, 0, 0, 0, 0, 0]);
            packet.body.copy_into(payload, out);
            let sum = icmp::sum(packet.src, packet.dst, transport_len, &out[at..]);
            let check = sum.checksum() ^ if spoiled { SPOIL } else { 0 };
            out[at + 2..at + 4].copy_from_slice(&check.to_be_bytes());
        }
        Transport::Fragment(_) | Transport::Other(_) => {
            packet.body.copy_into(payload, out);
            if spoiled
                && payload == packet.body.len()
                && payload > 0
                && let Some(last) = out.last_mut()
            {
                *last ^= 1;
            }
        }
    }
    Ok(Prefix { captured: ip_header + header + payload, original: len as u32 })
}

fn protocol(packet: &Packet) -> u8 {
    match packet.transport {
        Transport::Tcp(_) => PROTOCOL_TCP,
        Transport::Icmp(_) if packet.src.is_v4() => PROTOCOL_ICMP,
        Transport::Icmp(_) => PROTOCOL_ICMPV6,
        Transport::Fragment(Fragment { protocol, .. }) | Transport::Other(protocol) => protocol,
    }
}

//= rfc791#section-3.1: layout of the header
fn ipv4(packet: &Packet, len: u16, out: &mut Vec<u8>) {
    let octets = |addr: super::Addr| addr.as_v4().map_or([0; 4], |v4| v4.octets());
    let mut header = [0u8; 20];
    header[0] = 0x45;
    header[1] = packet.tos;
    header[2..4].copy_from_slice(&len.to_be_bytes());
    //= rfc6864#section-4.1: with fragmentation forbidden the identification may be any value
    let (id, place) = match packet.transport {
        Transport::Fragment(fragment) => (fragment.id, fragment.place),
        _ => (packet.id.0 as u16, if packet.fragmentable { 0 } else { 0x4000 }),
    };
    header[4..6].copy_from_slice(&id.to_be_bytes());
    header[6..8].copy_from_slice(&place.to_be_bytes());
    header[8] = packet.ttl;
    header[9] = protocol(packet);
    header[12..16].copy_from_slice(&octets(packet.src));
    header[16..20].copy_from_slice(&octets(packet.dst));
    let check = checksum(&header) ^ if packet.damage == Damage::Ip { SPOIL } else { 0 };
    header[10..12].copy_from_slice(&check.to_be_bytes());
    out.extend_from_slice(&header);
}

//= rfc8200#section-3: layout of the header
fn ipv6(packet: &Packet, payload_len: u16, out: &mut Vec<u8>) {
    let mut header = [0u8; 40];
    let first = 6 << 28 | u32::from(packet.tos) << 20 | packet.label;
    header[..4].copy_from_slice(&first.to_be_bytes());
    header[4..6].copy_from_slice(&payload_len.to_be_bytes());
    header[6] = protocol(packet);
    header[7] = packet.ttl;
    header[8..24].copy_from_slice(&packet.src.as_v6().octets());
    header[24..40].copy_from_slice(&packet.dst.as_v6().octets());
    out.extend_from_slice(&header);
}

//= rfc9293#section-3.1: layout of the header
fn tcp(segment: &Segment, options: &[u8], out: &mut Vec<u8>) {
    let mut header = [0u8; 20];
    header[0..2].copy_from_slice(&segment.src_port.to_be_bytes());
    header[2..4].copy_from_slice(&segment.dst_port.to_be_bytes());
    header[4..8].copy_from_slice(&segment.seq.0.to_be_bytes());
    header[8..12].copy_from_slice(&segment.ack.0.to_be_bytes());
    let [high, low] = segment.flags.0.to_be_bytes();
    header[12] = ((20 + options.len()) as u8 / 4) << 4 | high & 1;
    header[13] = low;
    header[14..16].copy_from_slice(&segment.window.to_be_bytes());
    header[18..20].copy_from_slice(&segment.options().urgent.to_be_bytes());
    out.extend_from_slice(&header);
    out.extend_from_slice(options);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Addr, Body, PacketId, Parts};

    /// Damage to a transport without a checksum of this code is one bit of its last byte, if that is written.
    #[test]
    fn damage_to_another_protocol_spoils_its_last_byte() {
        let v4 = Addr::v4(10, 0, 0, 1);
        let v6 = Addr::from(core::net::IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, 1]));
        let written = |end: Addr, damage, body: &[u8], most: u32| {
            let packet = Packet::new(Parts {
                id: PacketId(0),
                src: end,
                dst: end,
                transport: Transport::Other(50),
                body: Body::copy_of(body),
                tos: 0,
                label: 0,
                ttl: 64,
                damage,
                urgent: false,
                piece: 0,
                fragmentable: false,
            });
            let mut out = Vec::new();
            emit_prefix(&packet, most, &mut out).unwrap();
            out.split_off(packet.ip_header_len() as usize)
        };
        let cases = [
            (v4, Damage::None, [1, 2, 4]),
            (v4, Damage::Tcp, [1, 2, 5]),
            (v4, Damage::Ip, [1, 2, 4]),
            (v6, Damage::Tcp, [1, 2, 5]),
            // IPv6 has no header checksum.
            (v6, Damage::Ip, [1, 2, 5]),
        ];
        for (end, damage, expected) in cases {
            assert_eq!(written(end, damage, &[1, 2, 4], u32::MAX), expected, "{end:?}, {damage:?}");
            assert_eq!(
                written(end, damage, &[1, 2, 4], 3),
                expected,
                "{end:?}, {damage:?}, just all"
            );
            assert_eq!(written(end, damage, &[1, 2, 4], 2), [1, 2], "{end:?}, {damage:?}, cut");
            assert_eq!(written(end, damage, &[], u32::MAX), [], "{end:?}, {damage:?}, no body");
        }
    }
}
