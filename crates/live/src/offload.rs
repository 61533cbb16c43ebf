//! What a network card would have done: completing checksums and splitting super-packets.
//!
//! The kernel leaves both for later. A frame that nobody looks into is passed on so; where a stage looks at single
//! packets, or a checksum is to be made wrong, it has to be done here.

use std::sync::Arc;

use lasthop_proto::wire::Flags;
use lasthop_proto::wire::checksum::{Sum, checksum, update};
use lasthop_proto::wire::parse::{Mode, View, view};
use lasthop_proto::wire::{Damage, Packet, Transport};

use crate::header::{VNET, VnetHeader, network_at};

/// Protocol numbers and where their checksum stands.
const TCP: (u8, u16) = (6, 16);
const UDP: (u8, u16) = (17, 6);

/// Completes a checksum as the network card would.
pub fn complete(bytes: &mut [u8], vnet: VnetHeader) {
    let start = VNET + usize::from(vnet.checksum_start);
    let field = start + usize::from(vnet.checksum_offset);
    let Some(covered) = bytes.get(start..) else { return };
    // The field holds the sum over the pseudo-header, which is thereby added in.
    let sum = match checksum(covered) {
        //= rfc768: zero says that there is no checksum; for TCP both forms of zero are as good
        0 => 0xffff,
        sum => sum,
    };
    if let Some(field) = bytes.get_mut(field..field + 2) {
        field.copy_from_slice(&sum.to_be_bytes());
    }
}

/// The packets of a super-packet as frames of their own, as the network card would send them; `None` if it is of a
/// kind that is not known here, or contradicts itself.
pub fn segments(frame: &[u8]) -> Option<Vec<Arc<[u8]>>> {
    let vnet = VnetHeader::read(frame)?;
    let transport = match vnet.gso_type & !VnetHeader::ECN {
        VnetHeader::TCPV4 | VnetHeader::TCPV6 => TCP,
        VnetHeader::UDP => UDP,
        _ => return None,
    };
    let (start, offset) = (usize::from(vnet.checksum_start), vnet.checksum_offset);
    if !vnet.needs_checksum() || offset != transport.1 {
        return None;
    }
    let at = network_at(frame)?;
    let seen = view(&frame[at..], Mode { verify: false, wire_len: None }).ok()?;
    cut(frame, at, VNET + start, &seen, transport, vnet)
}

/// What the interface is told of a super-packet whose link-layer header has `link` bytes, and IP and TCP `headers`.
pub fn describe(packet: &Packet, link: usize, headers: usize) -> VnetHeader {
    let ip = packet.ip_header_len() as usize;
    let reduced = matches!(&packet.transport, Transport::Tcp(s) if s.flags.has(Flags::CWR));
    let kind = if packet.src.is_v4() { VnetHeader::TCPV4 } else { VnetHeader::TCPV6 };
    VnetHeader {
        flags: VnetHeader::NEEDS_CHECKSUM,
        gso_type: kind | if reduced { VnetHeader::ECN } else { 0 },
        header_len: (link + headers) as u16,
        gso_size: packet.piece,
        checksum_start: (link + ip) as u16,
        checksum_offset: TCP.1,
    }
}

/// A frame with TCP data that is longer than an interface takes, as several that are not: the bytes of a stream may
/// be cut anywhere. `None` if it is not TCP, is damaged, or cannot be made to fit.
pub fn refit(frame: &[u8], mtu: usize) -> Option<Vec<Arc<[u8]>>> {
    let mut vnet = VnetHeader::read(frame)?;
    let at = network_at(frame)?;
    let mode = Mode { verify: vnet.is_unverified(), wire_len: None };
    let seen = view(&frame[at..], mode).ok()?;
    let plain = matches!(&seen.transport, Transport::Tcp(s) if !s.flags.any(Flags::SYN | Flags::RST | Flags::URG));
    if !plain || seen.damage != Damage::None || vnet.is_super() {
        return None;
    }
    let start = at + ip_header_len(frame, at)?;
    vnet.gso_size = mtu.checked_sub(seen.body_at).filter(|room| *room > 0)?.min(0xffff) as u16;
    vnet.checksum_start = (start - VNET) as u16;
    vnet.checksum_offset = TCP.1;
    cut(frame, at, start, &seen, TCP, vnet)
}

/// Length of the IP header that begins at `at`, extension headers not counted.
pub(crate) fn ip_header_len(frame: &[u8], at: usize) -> Option<usize> {
    let first = *frame.get(at)?;
    Some(if first >> 4 == 4 { usize::from(first & 0x0f) * 4 } else { 40 })
}

/// Cuts the payload of a frame by `vnet.gso_size` and gives each piece its headers. The IP packet begins at `at`,
/// the transport header at `start`.
fn cut(
    frame: &[u8],
    at: usize,
    start: usize,
    seen: &View,
    (protocol, field): (u8, u16),
    vnet: VnetHeader,
) -> Option<Vec<Arc<[u8]>>> {
    let end = at + seen.body_at + seen.body_len as usize;
    let is_tcp = protocol == TCP.0;
    let (least, transport_len) = match is_tcp {
        true => (20, (usize::from(*frame.get(start + 12)?) >> 4) * 4),
        false => (8, 8),
    };
    let body_at = start.checked_add(transport_len)?;
    let headers_fit = start >= at + ip_header_len(frame, at)? && transport_len >= least;
    let payload = frame.get(body_at..end).filter(|_| headers_fit)?;
    let size = usize::from(vnet.gso_size);
    if size == 0 || payload.is_empty() {
        return None;
    }
    let last = (payload.len() - 1) / size;
    let partial = VnetHeader {
        flags: VnetHeader::NEEDS_CHECKSUM,
        checksum_start: (start - VNET) as u16,
        checksum_offset: field,
        ..VnetHeader::default()
    };
    let pieces = payload.chunks(size).enumerate().map(|(i, piece)| {
        let mut bytes = Vec::with_capacity(body_at + piece.len());
        bytes.extend_from_slice(&frame[..body_at]);
        partial.write(&mut bytes);
        let len = transport_len + piece.len();
        relabel(&mut bytes[at..], start - at + len, i as u16);
        let mut sum = Sum::default();
        sum.pseudo_header(seen.src, seen.dst, protocol, len as u32);
        let header = &mut bytes[start..];
        if is_tcp {
            let seq = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
            let seq = seq.wrapping_add((i * size) as u32);
            header[4..8].copy_from_slice(&seq.to_be_bytes());
            let mut flags = header[13];
            if i < last {
                flags &= !((Flags::FIN | Flags::PSH).0 as u8);
            }
            //= rfc3168#section-6.1.2: CWR is told once
            if i > 0 && vnet.gso_type & VnetHeader::ECN != 0 {
                flags &= !(Flags::CWR.0 as u8);
            }
            header[13] = flags;
        } else {
            header[4..6].copy_from_slice(&(len as u16).to_be_bytes());
        }
        let field = usize::from(field);
        header[field..field + 2].copy_from_slice(&sum.fold().to_be_bytes());
        bytes.extend_from_slice(piece);
        bytes.into()
    });
    Some(pieces.collect())
}

/// Gives piece `i` of a packet its length and identification. What was wrong with an IPv4 header stays wrong.
fn relabel(ip: &mut [u8], total: usize, i: u16) {
    let word = |ip: &[u8], at: usize| u16::from_be_bytes([ip[at], ip[at + 1]]);
    if ip[0] >> 4 != 4 {
        ip[4..6].copy_from_slice(&((total - 40) as u16).to_be_bytes());
        return;
    }
    let mut sum = word(ip, 10);
    let id = word(ip, 4).wrapping_add(i);
    for (at, new) in [(2, total as u16), (4, id)] {
        sum = update(sum, word(ip, at), new);
        ip[at..at + 2].copy_from_slice(&new.to_be_bytes());
    }
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
}
