//! Frames: what a packet socket gives and takes, and the packets inside.
//!
//! ```text
//! | virtio header | Ethernet addresses | VLAN tags | type | IP packet ... |
//! ```
//!
//! A frame that no stage changes leaves as the very bytes that came: IP options, identification, flow label, a
//! checksum that is still to be completed, everything. A packet shares the bytes of its frame, so that is a
//! matter of comparing headers. What is new is written with the addresses that frames of these hosts had.

use std::sync::Arc;

use lasthop_proto::wire::checksum::checksum;
use lasthop_proto::wire::emit::emit;
use lasthop_proto::wire::parse::{Mode, View, view};
use lasthop_proto::wire::{Body, Damage, Packet, PacketId, Transport};

use crate::sys::packet_socket::VNET;

/// Ethernet addresses and type.
const ETHERNET: usize = 14;

/// What a checksum is spoiled with.
const SPOIL: u16 = 0x5555;

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const VLAN: [u16; 2] = [0x8100, 0x88a8];

const ICMPV6: u8 = 58;

/// The header that the kernel puts before each frame (virtio_net_hdr), in its byte order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct VnetHeader {
    /// [`VnetHeader::NEEDS_CHECKSUM`] and others.
    pub flags: u8,
    /// Zero for a plain frame; else how the super-packet is to be split.
    pub gso_type: u8,
    /// Length of all headers of a super-packet.
    pub header_len: u16,
    /// Payload of each segment of a super-packet.
    pub gso_size: u16,
    /// Where the checksum begins to count, from the start of the Ethernet frame.
    pub checksum_start: u16,
    /// Where the checksum stands, from there.
    pub checksum_offset: u16,
}

impl VnetHeader {
    /// The checksum field holds only the sum over the pseudo-header.
    pub const NEEDS_CHECKSUM: u8 = 1;
    /// The checksum was verified already.
    pub const VALID: u8 = 2;
    /// TCP over IPv4 and IPv6 to be segmented; the high bit of the type says that the first segment carries CWR.
    const TCPV4: u8 = 1;
    const TCPV6: u8 = 4;
    const ECN: u8 = 0x80;

    /// Reads the header at the start of `frame`.
    pub fn read(frame: &[u8]) -> Option<VnetHeader> {
        let b = frame.first_chunk::<VNET>()?;
        let word = |at: usize| u16::from_ne_bytes([b[at], b[at + 1]]);
        Some(VnetHeader {
            flags: b[0],
            gso_type: b[1],
            header_len: word(2),
            gso_size: word(4),
            checksum_start: word(6),
            checksum_offset: word(8),
        })
    }

    /// Writes the header to the start of `frame`.
    pub fn write(self, frame: &mut [u8]) {
        let Some(b) = frame.first_chunk_mut::<VNET>() else { return };
        b[0] = self.flags;
        b[1] = self.gso_type;
        b[2..4].copy_from_slice(&self.header_len.to_ne_bytes());
        b[4..6].copy_from_slice(&self.gso_size.to_ne_bytes());
        b[6..8].copy_from_slice(&self.checksum_start.to_ne_bytes());
        b[8..10].copy_from_slice(&self.checksum_offset.to_ne_bytes());
    }

    /// The header of a frame that grew by `bytes` before its network header.
    pub fn shifted(self, bytes: u16) -> VnetHeader {
        let mut header = self;
        if self.flags & VnetHeader::NEEDS_CHECKSUM != 0 {
            header.checksum_start = self.checksum_start.wrapping_add(bytes);
        }
        if self.gso_type != 0 {
            header.header_len = self.header_len.wrapping_add(bytes);
        }
        header
    }

    fn is_super_tcp(self) -> bool {
        matches!(self.gso_type & !VnetHeader::ECN, VnetHeader::TCPV4 | VnetHeader::TCPV6)
            && self.gso_size > 0
    }
}

/// What is to become of a frame that came in.
#[derive(Debug)]
pub enum Incoming {
    /// Not for the stages: ARP, neighbour discovery, anything that is not IP or is malformed.
    Pass,
    /// One packet for the stages, or the segments of a super-packet.
    Packets(Vec<Packet>),
    /// One packet: the common case.
    Packet(Packet),
}

/// Where the IP packet begins in `frame`, if there is one.
fn network_at(frame: &[u8]) -> Option<usize> {
    let mut at = VNET + ETHERNET - 2;
    // Two tags (802.1ad) are the most there are.
    for _ in 0..3 {
        let kind = u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]);
        if VLAN.contains(&kind) {
            at += 4;
            continue;
        }
        return (kind == IPV4 || kind == IPV6).then_some(at + 2);
    }
    None
}

/// The link-layer header of `frame`: addresses, tags, type.
pub fn link_header(frame: &[u8]) -> Option<&[u8]> {
    frame.get(VNET..network_at(frame)?)
}

/// Neighbour discovery and multicast listener discovery keep a link alive; they are not traffic.
fn is_link_local_control(view: &View, ip: &[u8]) -> bool {
    let kind = ip.get(view.body_at).copied().unwrap_or(0);
    view.transport == Transport::Other(ICMPV6) && matches!(kind, 130..=137 | 143)
        // Multicast listener reports stand behind a hop-by-hop header.
        || view.transport == Transport::Other(0) && !view.src.is_v4()
}

/// Reads a frame.
pub fn read(frame: &[u8]) -> Incoming {
    let Some(at) = network_at(frame) else { return Incoming::Pass };
    let vnet = VnetHeader::read(frame).unwrap_or_default();
    let verify =
        vnet.flags & (VnetHeader::NEEDS_CHECKSUM | VnetHeader::VALID) == 0 && vnet.gso_type == 0;
    let Ok(seen) = view(&frame[at..], Mode { verify, wire_len: None }) else {
        return Incoming::Pass;
    };
    if seen.bad_option.is_some() || is_link_local_control(&seen, &frame[at..]) {
        return Incoming::Pass;
    }
    let shared: Arc<[u8]> = frame.into();
    let from = (at + seen.body_at) as u32;
    let packet = Packet {
        id: PacketId(0),
        src: seen.src,
        dst: seen.dst,
        transport: seen.transport,
        body: Body::Bytes { frame: shared, from, len: seen.body_len },
        tos: seen.tos,
        ttl: seen.ttl,
        damage: seen.damage,
    };
    if vnet.is_super_tcp() && packet.is_data() {
        return Incoming::Packets(segments(&packet, vnet));
    }
    Incoming::Packet(packet)
}

/// The segments of a super-packet, as the network card would send them.
fn segments(whole: &Packet, vnet: VnetHeader) -> Vec<Packet> {
    use lasthop_proto::wire::Flags;
    let size = u32::from(vnet.gso_size);
    let len = whole.body.len();
    let last = len.div_ceil(size).saturating_sub(1);
    (0..=last)
        .filter_map(|i| {
            let mut packet = whole.clone();
            packet.body = whole.body.slice(i * size, size);
            let Transport::Tcp(segment) = &mut packet.transport else { return None };
            segment.seq = segment.seq + i * size;
            let mut flags = segment.flags.0;
            if i < last {
                flags &= !(Flags::FIN | Flags::PSH).0;
            }
            if i > 0 && vnet.gso_type & VnetHeader::ECN != 0 {
                flags &= !Flags::CWR.0;
            }
            segment.flags = Flags(flags);
            Some(packet)
        })
        .collect()
}

/// A frame to be sent.
#[derive(Clone, Debug)]
pub enum Outgoing {
    /// The bytes that came.
    Same(Arc<[u8]>),
    /// Bytes that were written here.
    New(Vec<u8>),
}

impl Outgoing {
    /// The bytes, virtio header first.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Outgoing::Same(frame) => frame,
            Outgoing::New(frame) => frame,
        }
    }
}

/// The frame that `packet` came in, if nothing but the channel has touched it since.
pub fn untouched(packet: &Packet) -> Option<Outgoing> {
    let Body::Bytes { frame, from, len } = &packet.body else { return None };
    let at = network_at(frame)?;
    let vnet = VnetHeader::read(frame)?;
    let came = view(&frame[at..], Mode { verify: false, wire_len: None }).ok()?;
    let same = (at + came.body_at) as u32 == *from
        && came.body_len == *len
        && came.src == packet.src
        && came.dst == packet.dst
        && came.transport == packet.transport
        && came.tos == packet.tos
        && came.ttl == packet.ttl
        && !vnet.is_super_tcp();
    if !same {
        return None;
    }
    let damage = packet.damage;
    if damage == Damage::None || is_damaged(frame, at, vnet, damage) {
        return Some(Outgoing::Same(frame.clone()));
    }
    let mut bytes = frame.to_vec();
    spoil(&mut bytes, at, &came, vnet, damage);
    Some(Outgoing::New(bytes))
}

/// Whether the frame came in with this damage already.
fn is_damaged(frame: &[u8], at: usize, vnet: VnetHeader, damage: Damage) -> bool {
    let verify = vnet.flags & (VnetHeader::NEEDS_CHECKSUM | VnetHeader::VALID) == 0;
    view(&frame[at..], Mode { verify, wire_len: None }).is_ok_and(|seen| seen.damage == damage)
}

/// Makes a checksum wrong, so that the receiver drops the packet for the reason that the channel gave.
fn spoil(bytes: &mut [u8], at: usize, seen: &View, vnet: VnetHeader, damage: Damage) {
    if vnet.flags & VnetHeader::NEEDS_CHECKSUM != 0 {
        complete(bytes, vnet);
    }
    // Neither verified nor to be completed: whoever receives it has to look.
    VnetHeader::default().write(bytes);
    let field = match (&seen.transport, damage) {
        (_, Damage::None) => return,
        (_, Damage::Ip) if seen.src.is_v4() => Some(at + 10),
        (Transport::Tcp(_), _) => {
            let ip = if seen.src.is_v4() { usize::from(bytes[at] & 0x0f) * 4 } else { 40 };
            Some(at + ip + 16)
        }
        _ => None,
    };
    match field.and_then(|field| bytes.get_mut(field..field + 2)) {
        Some(sum) => {
            let wrong = u16::from_be_bytes([sum[0], sum[1]]) ^ SPOIL;
            sum.copy_from_slice(&wrong.to_be_bytes());
        }
        // The last byte is covered by whatever checksum the transport has.
        None => {
            let end = at + seen.body_at + seen.body_len as usize;
            if let Some(last) = bytes.get_mut(end - 1) {
                *last ^= 1;
            }
        }
    }
}

/// Completes a checksum as the network card would.
fn complete(bytes: &mut [u8], vnet: VnetHeader) {
    let start = VNET + usize::from(vnet.checksum_start);
    let field = start + usize::from(vnet.checksum_offset);
    let Some(covered) = bytes.get(start..) else { return };
    // The field holds the sum over the pseudo-header, which is thereby added in.
    let sum = checksum(covered);
    if let Some(field) = bytes.get_mut(field..field + 2) {
        field.copy_from_slice(&sum.to_be_bytes());
    }
}

/// A new frame for `packet` behind this link-layer header; `None` if it cannot be put into bytes.
pub fn write(packet: &Packet, link: &[u8]) -> Option<Outgoing> {
    let mut bytes = Vec::with_capacity(VNET + link.len() + packet.wire_len() as usize);
    bytes.resize(VNET, 0);
    bytes.extend_from_slice(link);
    emit(packet, &mut bytes).ok()?;
    Some(Outgoing::New(bytes))
}
