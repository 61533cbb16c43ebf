//! Frames: the input and output of a packet socket, and the packets inside.
//!
//! ```text
//! | virtio header | Ethernet addresses | VLAN tags | type | IP packet ... |
//! ```
//!
//! An unchanged frame leaves with identical bytes, including IP options, identification, flow label and an
//! incomplete checksum. A packet shares the bytes of its frame, so a comparison of headers detects changes.
//! Damage and a queue's ECN mark are written into those bytes. A new packet gets the link-layer addresses of
//! earlier frames between its hosts.

use std::net::IpAddr;
use std::sync::Arc;

use lasthop_proto::wire::checksum::{checksum, update};
use lasthop_proto::wire::emit::{emit, emit_partial};
use lasthop_proto::wire::parse::{Mode, View, view};
use lasthop_proto::wire::protocol::{PROTOCOL_TCP, PROTOCOL_UDP};
use lasthop_proto::wire::{
    Addr, Body, Damage, Flags, FlowKey, Packet, PacketId, Parts, Seq, Transport,
};

use crate::header::{IPV6, VNET, VnetHeader, content, network_at};
use crate::offload;

/// XOR mask that makes a checksum wrong.
const SPOIL: u16 = 0x5555;

const ARP: u16 = 0x0806;
const HOP_BY_HOP: u8 = 0;
const IGMP: u8 = 2;
const ICMPV6: u8 = 58;

/// Limit of padding and trailers after the packet in its frame, bytes. A stage that stores a packet stores
/// its frame but counts only the packet; so this bounds the uncounted memory.
const TRAILER_MAX: usize = 64;

/// Treatment of a received frame.
#[derive(Debug)]
pub enum Incoming {
    /// Bypasses the stages: ARP, neighbour discovery, group membership, and all protocols other than IP.
    Pass,
    /// Bypasses the stages: its type is IP, but it is malformed.
    Malformed,
    /// The packets of a super-packet.
    Packets(Vec<Packet>),
    /// One packet, the common case.
    Packet(Packet),
}

/// The link-layer header of `frame`: addresses, tags and type.
pub fn link_header(frame: &[u8]) -> Option<&[u8]> {
    frame.get(VNET..network_at(frame)?)
}

/// Whether this is a super-packet inside a tunnel, whose virtio header does not describe the inner segments.
/// A super-packet without an IP header is inside another protocol too, for example PPPoE. The kernel's
/// program (`bpf/station.bpf.c`) makes the same test, and forwards such frames.
pub(crate) fn is_wrapped(frame: &[u8]) -> bool {
    const TUNNELS: [u16; 3] = [4789, 8472, 6081];
    if !VnetHeader::read(frame).is_some_and(VnetHeader::is_super) {
        return false;
    }
    let Some(at) = network_at(frame) else { return true };
    let Some(ip) = frame.get(at..at + 40) else { return false };
    let (protocol, header) = match ip[0] >> 4 {
        4 => (ip[9], usize::from(ip[0] & 0x0f) * 4),
        _ => (ip[6], 40),
    };
    match protocol {
        PROTOCOL_TCP => false,
        PROTOCOL_UDP => frame
            .get(at + header + 2..at + header + 4)
            .is_some_and(|port| TUNNELS.contains(&u16::from_be_bytes([port[0], port[1]]))),
        _ => true,
    }
}

/// The flow that a frame with TCP belongs to, and the number of its SYN if it opens a connection.
pub(crate) fn connection(frame: &[u8]) -> Option<(FlowKey, Option<Seq>)> {
    let seen = look(frame.get(network_at(frame)?..)?, false)?;
    let Transport::Tcp(segment) = &seen.transport else { return None };
    let (src_port, dst_port) = (segment.src_port, segment.dst_port);
    let flow = FlowKey { src: seen.src, dst: seen.dst, src_port, dst_port };
    let opens = segment.flags.has(Flags::SYN) && !segment.flags.any(Flags::ACK | Flags::RST);
    Some((flow, opens.then_some(segment.seq)))
}

/// Neighbour discovery and group membership maintain a link and are no traffic.
fn is_link_local_control(view: &View, ip: &[u8]) -> bool {
    let byte = |at: usize| ip.get(at).copied().unwrap_or(0);
    let icmp = match view.transport.opaque() {
        Some(IGMP) => return view.src.is_v4(),
        Some(ICMPV6) => view.body_at,
        // Multicast listener reports follow a hop-by-hop header.
        Some(HOP_BY_HOP) if byte(view.body_at) == ICMPV6 => {
            view.body_at + 8 + 8 * usize::from(byte(view.body_at + 1))
        }
        _ => return false,
    };
    !view.src.is_v4() && matches!(byte(icmp), 130..=137 | 143)
}

/// The address of a host and its link-layer address, if `frame` announces them: ARP (RFC 826), or neighbour discovery
/// (RFC 4861). The third value is the frame's link-layer header.
pub(crate) fn announcement(frame: &[u8]) -> Option<(Addr, [u8; 6], &[u8])> {
    let (kind, at) = content(frame)?;
    let bytes = frame.get(at..)?;
    let mac =
        |bytes: &[u8], at: usize| -> Option<[u8; 6]> { bytes.get(at..at + 6)?.try_into().ok() };
    let v6 = |at: usize| -> Option<Addr> {
        let octets: [u8; 16] = bytes.get(at..at + 16)?.try_into().ok()?;
        Some(Addr::from(IpAddr::from(octets)))
    };
    let (addr, mac) = match kind {
        // Ethernet and IPv4.
        ARP if bytes.starts_with(&[0, 1, 8, 0, 6, 4]) => {
            let octets: [u8; 4] = bytes.get(14..18)?.try_into().ok()?;
            (Addr::from(IpAddr::from(octets)), mac(bytes, 8)?)
        }
        IPV6 if bytes.get(6) == Some(&ICMPV6) && bytes.get(7) == Some(&255) => {
            let (addr, options, wanted) = match bytes.get(40)? {
                133 => (v6(8)?, 48, 1),
                134 => (v6(8)?, 56, 1),
                135 => (v6(8)?, 64, 1),
                136 => (v6(48)?, 64, 2),
                _ => return None,
            };
            let mut rest = bytes.get(options..)?;
            loop {
                match rest {
                    [kind, 1, ..] if *kind == wanted => break (addr, mac(rest, 2)?),
                    [_, units, ..] if *units > 0 => rest = rest.get(8 * usize::from(*units)..)?,
                    _ => return None,
                }
            }
        }
        _ => return None,
    };
    let is_host = mac[0] & 1 == 0 && !addr.is_multicast() && !addr.ip().is_unspecified();
    is_host.then_some((addr, mac, frame.get(VNET..at)?))
}

/// Parses the IP packet at the start of `ip`. Unreadable TCP is opaque: it passes through the stages without
/// any action.
fn look(ip: &[u8], verify: bool) -> Option<View> {
    let mut seen = view(ip, Mode { verify, wire_len: None }).ok()?;
    if seen.bad_option.is_some() {
        let header = offload::ip_header_len(ip, 0)?;
        seen.transport = Transport::Other(PROTOCOL_TCP);
        seen.body_len += (seen.body_at - header) as u32;
        seen.body_at = header;
    }
    Some(seen)
}

/// Reads a frame. A TCP super-packet is one packet.
pub fn read_whole(frame: &[u8]) -> Incoming {
    let bulk = |vnet: &VnetHeader| vnet.is_tcp() && vnet.needs_checksum() && vnet.gso_size > 0;
    let (Some(at), Some(vnet)) = (network_at(frame), VnetHeader::read(frame).filter(bulk)) else {
        return read(frame);
    };
    let mut seen = read_packet(frame, at, vnet, || frame.into());
    if let Incoming::Packet(packet) = &mut seen {
        packet.piece = vnet.gso_size;
    }
    seen
}

/// Reads a frame. A super-packet is split.
pub fn read(frame: &[u8]) -> Incoming {
    let (Some(at), Some(vnet)) = (network_at(frame), VnetHeader::read(frame)) else {
        return Incoming::Pass;
    };
    if !vnet.is_super() {
        return read_packet(frame, at, vnet, || frame.into());
    }
    let Some(frames) = offload::segments(frame) else { return Incoming::Malformed };
    let packets = frames.iter().map(|frame| {
        let vnet = VnetHeader::read(frame)?;
        match read_packet(frame, at, vnet, || frame.clone()) {
            Incoming::Packet(packet) => Some(packet),
            _ => None,
        }
    });
    packets.collect::<Option<_>>().map_or(Incoming::Pass, Incoming::Packets)
}

/// Reads a frame with one packet that begins at `at`. `shared` returns the frame in shared memory for the
/// packet.
fn read_packet(
    frame: &[u8],
    at: usize,
    vnet: VnetHeader,
    shared: impl FnOnce() -> Arc<[u8]>,
) -> Incoming {
    let ip = &frame[at..];
    let Some(seen) = look(ip, vnet.is_unverified()) else { return Incoming::Malformed };
    let end = seen.body_at + seen.body_len as usize;
    if ip.len() - end > TRAILER_MAX {
        return Incoming::Malformed;
    }
    if is_link_local_control(&seen, ip) {
        return Incoming::Pass;
    }
    let mut damage = seen.damage;
    if damage == Damage::None && has_wrong_ip_checksum(ip) {
        // The virtio header describes the transport's checksum, not that of IP.
        damage = Damage::Ip;
    }
    Incoming::Packet(Packet::new(Parts {
        id: PacketId(0),
        src: seen.src,
        dst: seen.dst,
        transport: seen.transport,
        body: Body::Bytes { frame: shared(), from: (at + seen.body_at) as u32, len: seen.body_len },
        tos: seen.tos,
        label: seen.label,
        ttl: seen.ttl,
        damage,
        urgent: false,
        piece: 0,
        fragmentable: false,
    }))
}

fn has_wrong_ip_checksum(ip: &[u8]) -> bool {
    let header = offload::ip_header_len(ip, 0).and_then(|len| ip.get(..len));
    ip.first().is_some_and(|first| first >> 4 == 4) && header.is_some_and(|h| checksum(h) != 0)
}

/// A frame to send.
#[derive(Clone, Debug)]
pub enum Outgoing {
    /// The received bytes.
    Same(Arc<[u8]>),
    /// New bytes.
    New(Vec<u8>),
}

impl Outgoing {
    /// The bytes, beginning with the virtio header.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Outgoing::Same(frame) => frame,
            Outgoing::New(frame) => frame,
        }
    }
}

impl AsRef<[u8]> for Outgoing {
    fn as_ref(&self) -> &[u8] {
        self.bytes()
    }
}

/// The frame that `packet` arrived in, if only damage and an ECN mark were added. Damage and traffic class
/// are written into the frame.
pub fn untouched(packet: &Packet) -> Option<Outgoing> {
    let Body::Bytes { frame, from, len } = &packet.body else { return None };
    let at = network_at(frame)?;
    let vnet = VnetHeader::read(frame)?;
    let came = look(&frame[at..], false)?;
    let same = (at + came.body_at) as u32 == *from
        && came.body_len == *len
        && came.src == packet.src
        && came.dst == packet.dst
        && came.transport == packet.transport
        && came.ttl == packet.ttl;
    if !same {
        return None;
    }
    // IPv6 has no header checksum, so only the transport's can be wrong.
    let damage = match packet.damage {
        Damage::Ip if !packet.src.is_v4() => Damage::Tcp,
        damage => damage,
    };
    let is_sound = damage == Damage::None || is_damaged(&frame[at..], vnet, damage);
    if is_sound && came.tos == packet.tos {
        return Some(Outgoing::Same(frame.clone()));
    }
    let mut bytes = frame.to_vec();
    set_traffic_class(&mut bytes[at..], packet.tos);
    if !is_sound {
        spoil(&mut bytes, at, &came, vnet, damage);
    }
    Some(Outgoing::New(bytes))
}

/// Writes the traffic class into an IP header. Updates the checksum of an IPv4 header; a wrong one remains
/// wrong.
fn set_traffic_class(ip: &mut [u8], tos: u8) {
    if ip[0] >> 4 != 4 {
        ip[0] = 0x60 | tos >> 4;
        ip[1] = tos << 4 | ip[1] & 0x0f;
        return;
    }
    let word = |ip: &[u8], at: usize| u16::from_be_bytes([ip[at], ip[at + 1]]);
    let old = word(ip, 0);
    ip[1] = tos;
    let sum = update(word(ip, 10), old, word(ip, 0));
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
}

/// Whether the packet arrived with this damage.
fn is_damaged(ip: &[u8], vnet: VnetHeader, damage: Damage) -> bool {
    match damage {
        Damage::Ip => has_wrong_ip_checksum(ip),
        _ => look(ip, vnet.is_unverified()).is_some_and(|seen| seen.damage == damage),
    }
}

/// Makes a checksum wrong, so that the receiver drops the packet for the channel's cause.
fn spoil(bytes: &mut [u8], at: usize, seen: &View, vnet: VnetHeader, damage: Damage) {
    if vnet.needs_checksum() {
        offload::complete(bytes, vnet);
    }
    // Neither verified nor incomplete, so that the receiver verifies the checksum.
    VnetHeader::default().write(bytes);
    let v4 = seen.src.is_v4();
    let field = match (&seen.transport, damage) {
        (_, Damage::None) => return,
        (_, Damage::Ip) if v4 => Some(at + 10),
        (Transport::Tcp(_), _) => offload::ip_header_len(bytes, at).map(|ip| at + ip + 16),
        // The only checksum of a packet without payload is that of its IPv4 header.
        _ if seen.body_len == 0 && v4 => Some(at + 10),
        _ => None,
    };
    if let Some(sum) = field.and_then(|field| bytes.get_mut(field..field + 2)) {
        let wrong = u16::from_be_bytes([sum[0], sum[1]]) ^ SPOIL;
        sum.copy_from_slice(&wrong.to_be_bytes());
        return;
    }
    // Every transport's checksum covers the last byte. A packet without payload gets a wrong version, which
    // no receiver accepts. An increment, so that a second station on the path does not restore the value.
    let place = match seen.body_len {
        0 => at,
        len => at + seen.body_at + len as usize - 1,
    };
    if let Some(byte) = bytes.get_mut(place) {
        *byte = byte.wrapping_add(if seen.body_len == 0 { 0x10 } else { 1 });
    }
}

/// The link-layer header for a packet derived from a received one with the same direction.
pub fn own_link_header(packet: &Packet) -> Option<&[u8]> {
    let Body::Bytes { frame, .. } = &packet.body else { return None };
    let at = network_at(frame)?;
    let came = view(&frame[at..], Mode { verify: false, wire_len: None }).ok()?;
    (came.src == packet.src && came.dst == packet.dst).then(|| frame.get(VNET..at))?
}

/// A new frame for `packet` with this link-layer header; `None` for a packet without an encoding. The
/// interface completes the checksum of a super-packet and segments it.
pub fn write(packet: &Packet, link: &[u8]) -> Option<Outgoing> {
    let mut bytes = Vec::with_capacity(VNET + link.len() + packet.wire_len() as usize);
    bytes.resize(VNET, 0);
    bytes.extend_from_slice(link);
    if packet.piece > 0 {
        let headers = emit_partial(packet, &mut bytes).ok()?;
        offload::describe(packet, link.len(), headers).write(&mut bytes);
    } else {
        emit(packet, &mut bytes).ok()?;
    }
    Some(Outgoing::New(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(kind: u16, gso_type: u8, ip: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; VNET];
        VnetHeader { gso_type, ..VnetHeader::default() }.write(&mut bytes);
        bytes.extend([[2; 6], [4; 6]].concat());
        bytes.extend(kind.to_be_bytes());
        bytes.extend(ip);
        bytes
    }

    /// An IPv6 packet with the next header `next`.
    fn v6(next: u8, payload: &[u8]) -> Vec<u8> {
        let mut ip = vec![0x60, 0, 0, 0, 0, payload.len() as u8, next, 64];
        for host in [1, 2] {
            ip.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host]);
        }
        ip.extend(payload);
        framed(0x86dd, 0, &ip)
    }

    fn v4(protocol: u8, options: usize, payload: &[u8]) -> Vec<u8> {
        let header = 20 + options;
        let mut ip = vec![0x40 | (header / 4) as u8, 0, 0, (header + payload.len()) as u8];
        ip.extend([0, 0, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 1, 0, 1]);
        ip.resize(header, 1);
        ip.extend(payload);
        let sum = checksum(&ip[..header]);
        ip[10..12].copy_from_slice(&sum.to_be_bytes());
        framed(0x0800, 0, &ip)
    }

    fn passes(frame: &[u8]) -> bool {
        match read(frame) {
            Incoming::Pass => true,
            Incoming::Packet(_) => false,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn arp_and_neighbour_discovery_announce_link_layer_addresses() {
        let v4_addr = Addr::v4(10, 0, 0, 1);
        let arp = |sender: [u8; 4]| {
            let ends = [&[6; 6][..], &sender, &[0; 6], &[10, 0, 0, 1]].concat();
            framed(ARP, 0, &[&[0, 1, 8, 0, 6, 4, 0, 2][..], &ends[..]].concat())
        };
        let link = [&[2; 6][..], &[4; 6], &[8, 6]].concat();
        assert_eq!(announcement(&arp([10, 0, 0, 1])), Some((v4_addr, [6; 6], &link[..])));
        assert_eq!(announcement(&arp([0; 4])), None, "a probe");
        assert_eq!(announcement(&arp([10, 0, 0, 1])[..40]), None);
        // The target of an advertisement, and the source of the other messages.
        let [from, target] = [1u8, 7].map(|host| {
            let mut octets = [0; 16];
            (octets[0], octets[15]) = (0xfd, host);
            Addr::from(IpAddr::from(octets))
        });
        for (kind, fields, option, announced) in
            [(133u8, 4, 1u8, from), (134, 12, 1, from), (135, 20, 1, from), (136, 20, 2, target)]
        {
            let mut message = vec![0; 4 + fields];
            message[0] = kind;
            if fields == 20 {
                (message[8], message[23]) = (0xfd, 7);
            }
            message.extend([14, 1, 0, 0, 0, 0, 0, 0, option, 1, 6, 6, 6, 6, 6, 6]);
            let mut frame = v6(ICMPV6, &message);
            frame[VNET + 14 + 7] = 255;
            let got = announcement(&frame).map(|(addr, mac, _)| (addr, mac));
            assert_eq!(got, Some((announced, [6; 6])), "{kind}");
            frame[VNET + 14 + 7] = 64;
            assert_eq!(announcement(&frame), None, "{kind} from another network");
        }
    }

    /// RFC 4890 section 4.3 lists the types. Multicast listener reports follow a hop-by-hop header of any
    /// length.
    #[test]
    fn neighbour_discovery_and_group_membership_bypass_stages() {
        for kind in 0..=255 {
            let control = matches!(kind, 130..=137 | 143);
            let message = [kind, 0, 0, 0, 0, 0, 0, 0];
            assert_eq!(passes(&v6(ICMPV6, &message)), control, "ICMPv6 {kind}");
            for units in [0, 1, 3] {
                let mut behind = vec![0; 8 + 8 * usize::from(units)];
                (behind[0], behind[1]) = (ICMPV6, units);
                behind.extend(message);
                assert_eq!(passes(&v6(HOP_BY_HOP, &behind)), control, "{units}: ICMPv6 {kind}");
                behind[0] = PROTOCOL_UDP;
                assert!(!passes(&v6(HOP_BY_HOP, &behind)), "{units}: {kind} is no ICMPv6");
            }
            assert!(!passes(&v4(1, 0, &message)), "ICMP {kind}");
            assert!(!passes(&v4(ICMPV6, 0, &message)), "ICMPv6 {kind} in IPv4");
        }
        assert!(passes(&v4(IGMP, 0, &[0x22, 0, 0, 0])), "IGMP");
        assert!(!passes(&v6(IGMP, &[0x22, 0, 0, 0])), "there is none in IPv6");
    }

    #[test]
    fn a_frame_trailer_is_limited_to_64_bytes() {
        for (trailer, is_packet) in [(0, true), (1, true), (64, true), (65, false)] {
            for frame in [v4(PROTOCOL_UDP, 0, &[1; 12]), v6(PROTOCOL_UDP, &[1; 12])] {
                let mut frame = frame;
                frame.resize(frame.len() + trailer, 0);
                let found = matches!(read(&frame), Incoming::Packet(_));
                assert_eq!(found, is_packet, "{trailer} bytes behind it");
            }
        }
    }

    /// VXLAN, its first port in Linux, and Geneve; other tunnels have their own protocol numbers.
    #[test]
    fn a_super_packet_within_a_tunnel_is_known_by_its_port() {
        const GRE: u8 = 47;
        let ports = |port: u16| [&[9, 9][..], &port.to_be_bytes(), &[0; 24]].concat();
        let set = |mut frame: Vec<u8>, gso_type| {
            frame[1] = gso_type;
            frame
        };
        for (port, wrapped) in
            [(4789, true), (8472, true), (6081, true), (443, false), (4788, false)]
        {
            let inside = ports(port);
            for frame in [
                v4(PROTOCOL_UDP, 0, &inside),
                v4(PROTOCOL_UDP, 8, &inside),
                v6(PROTOCOL_UDP, &inside),
            ] {
                assert_eq!(is_wrapped(&set(frame.clone(), VnetHeader::UDP)), wrapped, "{port}");
                assert!(!is_wrapped(&frame), "{port}: one packet");
            }
            assert!(!is_wrapped(&set(v4(PROTOCOL_TCP, 0, &inside), VnetHeader::TCPV4)), "TCP");
            assert!(!is_wrapped(&set(v6(PROTOCOL_TCP, &inside), VnetHeader::TCPV6)), "TCP");
        }
        for frame in [v4(GRE, 0, &[0; 30]), v6(GRE, &[0; 30])] {
            assert!(is_wrapped(&set(frame, VnetHeader::TCPV4)), "GRE");
        }
        for kind in [0x8864, 0x8847] {
            assert!(is_wrapped(&framed(kind, VnetHeader::TCPV4, &[0; 60])), "{kind:#x}");
            assert!(!is_wrapped(&framed(kind, 0, &[0; 60])), "{kind:#x}: one packet");
        }
        let cut = set(v4(PROTOCOL_UDP, 0, &ports(4789)), VnetHeader::UDP);
        assert!(!is_wrapped(&cut[..VNET + 14 + 39]), "a cut packet is not parsed");
    }

    #[test]
    fn a_traffic_class_change_updates_the_header_checksum() {
        for tos in [0, 1, 3, 0xb8, 0xff] {
            let frame = v4(PROTOCOL_UDP, 0, &[1; 12]);
            let mut ip = frame[VNET + 14..].to_vec();
            set_traffic_class(&mut ip, tos);
            assert_eq!((ip[1], checksum(&ip[..20])), (tos, 0));
            ip[8] ^= 1;
            let wrong = checksum(&ip[..20]);
            set_traffic_class(&mut ip, tos ^ 0x55);
            assert_eq!((ip[1], checksum(&ip[..20])), (tos ^ 0x55, wrong), "as wrong as it was");

            let frame = v6(PROTOCOL_UDP, &[1; 12]);
            let mut ip = frame[VNET + 14..].to_vec();
            ip[1] = 0x0a;
            let before = ip.clone();
            set_traffic_class(&mut ip, tos);
            assert_eq!((ip[0], ip[1]), (0x60 | tos >> 4, tos << 4 | 0x0a), "the flow label stays");
            assert_eq!(ip[2..], before[2..]);
        }
    }
}
