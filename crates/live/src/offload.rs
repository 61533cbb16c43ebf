//! Offloads in software: completion of checksums and segmentation of super-packets.
//!
//! The kernel defers both. An uninspected frame is forwarded unchanged. Before a stage inspects single
//! packets or damages a checksum, both must be done.

use std::sync::Arc;

use lasthop_proto::wire::Flags;
use lasthop_proto::wire::checksum::{Sum, checksum, update};
use lasthop_proto::wire::parse::{Mode, View, view};
use lasthop_proto::wire::{Damage, Packet, Segment, Transport};

use crate::header::{VNET, VnetHeader, network_at};

/// Protocol numbers with the offsets of their checksums.
const TCP: (u8, u16) = (6, 16);
const UDP: (u8, u16) = (17, 6);

/// Completes a checksum as a network card would.
pub fn complete(bytes: &mut [u8], vnet: VnetHeader) {
    let start = VNET + usize::from(vnet.checksum_start);
    let field = start + usize::from(vnet.checksum_offset);
    let Some(covered) = bytes.get(start..) else { return };
    // The field contains the sum over the pseudo-header, which is part of the result.
    let sum = match checksum(covered) {
        //= rfc768: zero says that there is no checksum; for TCP both forms of zero are as good
        0 => 0xffff,
        sum => sum,
    };
    if let Some(field) = bytes.get_mut(field..field + 2) {
        field.copy_from_slice(&sum.to_be_bytes());
    }
}

/// Segments a super-packet into frames, as a network card would; `None` for an unknown kind or an
/// inconsistent header.
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

/// The virtio header of a super-packet with a link-layer header of `link` bytes, and IP and TCP `headers`
/// bytes.
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

/// Splits a TCP frame that exceeds the interface's MTU, since the bytes of a stream may be split anywhere.
/// `None` if it is not TCP, is damaged, has a signature, or cannot fit.
pub fn refit(frame: &[u8], mtu: usize) -> Option<Vec<Arc<[u8]>>> {
    let mut vnet = VnetHeader::read(frame)?;
    let at = network_at(frame)?;
    let mode = Mode { verify: vnet.is_unverified(), wire_len: None };
    let seen = view(&frame[at..], mode).ok()?;
    let divisible = |s: &Segment| {
        // A signature covers the header and the data of the whole segment (RFC 2385, RFC 5925).
        !s.flags.any(Flags::SYN | Flags::RST | Flags::URG) && !s.is_signed()
    };
    let plain = matches!(&seen.transport, Transport::Tcp(s) if divisible(s));
    if !plain || seen.damage != Damage::None || vnet.is_super() {
        return None;
    }
    let start = at + ip_header_len(frame, at)?;
    vnet.gso_size = mtu.checked_sub(seen.body_at).filter(|room| *room > 0)?.min(0xffff) as u16;
    vnet.checksum_start = (start - VNET) as u16;
    vnet.checksum_offset = TCP.1;
    cut(frame, at, start, &seen, TCP, vnet)
}

/// Length of the IP header at `at`, without extension headers.
pub(crate) fn ip_header_len(frame: &[u8], at: usize) -> Option<usize> {
    let first = *frame.get(at)?;
    Some(if first >> 4 == 4 { usize::from(first & 0x0f) * 4 } else { 40 })
}

/// Splits the payload of a frame by `vnet.gso_size`, and gives each piece its headers. The IP packet begins
/// at `at`, the transport header at `start`.
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
            //= rfc3168#section-6.1.2: CWR on the first segment only
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

/// Sets length and identification of piece `i`. A wrong IPv4 checksum remains wrong.
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
