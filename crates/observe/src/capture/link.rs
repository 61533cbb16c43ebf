//! Link types of capture files, and what precedes the network layer in each.

use super::content::{Protocol, Reason};
use super::part::{Layer, Part, Step, Stop};
use super::{ethernet, wifi};

/// A link-layer type as registered at tcpdump.org/linktypes.html.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct LinkType(pub u16);

impl LinkType {
    /// BSD loopback: the address family in the capturing machine's byte order.
    pub const NULL: LinkType = LinkType(0);
    /// SLIP, with the header that BSD writes.
    pub const SLIP: LinkType = LinkType(8);
    /// Ethernet.
    pub const ETHERNET: LinkType = LinkType(1);
    /// IEEE 802.5 token ring.
    pub const TOKEN_RING: LinkType = LinkType(6);
    /// PPP, also with the address field of Cisco HDLC.
    pub const PPP: LinkType = LinkType(9);
    /// FDDI.
    pub const FDDI: LinkType = LinkType(10);
    /// Raw IP, as it appears in files of systems that wrote the DLT number.
    pub const RAW_DLT: LinkType = LinkType(12);
    /// Raw IP as OpenBSD numbers it.
    pub const RAW_OPENBSD: LinkType = LinkType(14);
    /// PPP in HDLC-like framing (RFC 1662), or Cisco HDLC.
    pub const PPP_HDLC: LinkType = LinkType(50);
    /// PPPoE session packets.
    pub const PPP_ETHER: LinkType = LinkType(51);
    /// LLC in ATM adaptation layer 5 (RFC 2684).
    pub const ATM_RFC1483: LinkType = LinkType(100);
    /// Raw IP, version 4 or 6.
    pub const RAW: LinkType = LinkType(101);
    /// Cisco HDLC.
    pub const C_HDLC: LinkType = LinkType(104);
    /// 802.11.
    pub const IEEE802_11: LinkType = LinkType(105);
    /// Frame Relay.
    pub const FRELAY: LinkType = LinkType(107);
    /// OpenBSD loopback: the address family in network byte order.
    pub const LOOP: LinkType = LinkType(108);
    /// OpenBSD and FreeBSD IPsec interface.
    pub const ENC: LinkType = LinkType(109);
    /// Linux "cooked" capture, version 1.
    pub const LINUX_SLL: LinkType = LinkType(113);
    /// Firewall log of OpenBSD.
    pub const PFLOG: LinkType = LinkType(117);
    /// 802.11 behind a Prism header.
    pub const PRISM: LinkType = LinkType(119);
    /// RFC 2625 IP over Fibre Channel.
    pub const IP_OVER_FC: LinkType = LinkType(122);
    /// ATM with the header of SunATM.
    pub const SUNATM: LinkType = LinkType(123);
    /// 802.11 behind a radiotap header.
    pub const RADIOTAP: LinkType = LinkType(127);
    /// Apple's IP over IEEE 1394.
    pub const APPLE_1394: LinkType = LinkType(138);
    /// 802.11 behind an AVS header.
    pub const AVS: LinkType = LinkType(163);
    /// PPP whose address field is the direction.
    pub const PPP_PPPD: LinkType = LinkType(166);
    /// Per-packet information, which has a separate link type.
    pub const PPI: LinkType = LinkType(192);
    /// PPP behind a byte for the direction.
    pub const PPP_WITH_DIR: LinkType = LinkType(204);
    /// Cisco HDLC behind a byte for the direction.
    pub const C_HDLC_WITH_DIR: LinkType = LinkType(205);
    /// Frame Relay behind a byte for the direction.
    pub const FRELAY_WITH_DIR: LinkType = LinkType(206);
    /// Records of Endace cards, each with its own kind of link.
    pub const ERF: LinkType = LinkType(197);
    /// Raw IPv4.
    pub const IPV4: LinkType = LinkType(228);
    /// Raw IPv6.
    pub const IPV6: LinkType = LinkType(229);
    /// Firewall log of Linux.
    pub const NFLOG: LinkType = LinkType(239);
    /// Ethernet behind the header of a netANALYZER.
    pub const NETANALYZER: LinkType = LinkType(240);
    /// Ethernet with its preamble behind the header of a netANALYZER.
    pub const NETANALYZER_TRANSPARENT: LinkType = LinkType(241);
    /// IP over InfiniBand (RFC 4391).
    pub const IPOIB: LinkType = LinkType(242);
    /// Apple's packet tap, which has a separate link type.
    pub const PKTAP: LinkType = LinkType(258);
    /// Ethernet with its preamble (IEEE 802.3br).
    pub const MPACKET: LinkType = LinkType(274);
    /// Linux "cooked" capture, version 2.
    pub const LINUX_SLL2: LinkType = LinkType(276);
    /// Ethernet with a tag of Broadcom's switches behind the addresses.
    pub const SWITCH_BROADCOM: LinkType = LinkType(281);
    /// Ethernet behind a tag of Broadcom's switches.
    pub const SWITCH_BROADCOM_PREPENDED: LinkType = LinkType(282);
    /// Ethernet with a tag of Marvell's switches (DSA) behind the addresses.
    pub const SWITCH_MARVELL: LinkType = LinkType(284);
    /// The same with an EtherType of its own before the tag (EDSA).
    pub const SWITCH_MARVELL_TYPED: LinkType = LinkType(285);
}

/// VLAN tags that count for [`id`].
const TAGS: usize = 4;

/// A number of the link on which a frame was captured.
#[inline]
pub(super) fn id(link: LinkType, interface: u32, bytes: &[u8]) -> u32 {
    let mix =
        |hash: u64, value: u64| (hash.rotate_left(23) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let word = |at: usize| {
        bytes
            .get(at..)
            .and_then(|rest| rest.first_chunk())
            .map_or(0, |word| u64::from_be_bytes(*word))
    };
    let mut hash = u64::from(interface);
    match link {
        LinkType::ETHERNET => {
            // Twelve bytes of addresses, then types of tags.
            let second = word(8);
            hash = mix(mix(hash, word(0)), second >> 32);
            let (mut kind, mut at) = ((second >> 16) as u16, 14);
            for _ in 0..TAGS {
                if !matches!(kind, 0x8100 | 0x88a8 | 0x9100 | 0x9200 | 0x9300) {
                    break;
                }
                let tag = word(at) >> 32;
                // Without the priority.
                hash = mix(hash, tag >> 16 & 0x0fff);
                (kind, at) = (tag as u16, at + 4);
            }
        }
        // The kind of the packet (to or from this machine), and the address.
        LinkType::LINUX_SLL => hash = mix(mix(hash, word(0) >> 48), word(6)),
        LinkType::LINUX_SLL2 => hash = mix(mix(hash, word(4)), word(12)),
        _ => {}
    }
    (hash >> 32) as u32 ^ hash as u32
}

/// Content of a frame of type `link` after the headers that only this link type has.
#[inline]
pub(super) fn first(link: LinkType, frame: Part<'_>) -> Step<'_> {
    match link {
        LinkType::ETHERNET => Ok((Layer::Ethernet, frame)),
        LinkType::RAW
        | LinkType::RAW_OPENBSD
        | LinkType::RAW_DLT
        | LinkType::IPV4
        | LinkType::IPV6 => Ok((Layer::Ip, frame)),
        _ => rarer(link, frame),
    }
}

fn rarer(link: LinkType, frame: Part<'_>) -> Step<'_> {
    match link {
        LinkType::NULL | LinkType::LOOP => loopback(frame),
        LinkType::LINUX_SLL => cooked(frame),
        LinkType::LINUX_SLL2 => cooked2(frame),
        LinkType::PPP | LinkType::PPP_HDLC => Ok((Layer::Hdlc, frame)),
        LinkType::PPP_ETHER => Ok((Layer::EtherType(ethernet::PPPOE_SESSION), frame)),
        LinkType::PPP_WITH_DIR => Ok((Layer::Hdlc, frame.skip(1)?)),
        LinkType::PPP_PPPD => Ok((Layer::Ppp, frame.skip(2)?)),
        LinkType::C_HDLC => Ok((Layer::CiscoHdlc, frame)),
        LinkType::C_HDLC_WITH_DIR => Ok((Layer::CiscoHdlc, frame.skip(1)?)),
        LinkType::FRELAY => Ok((Layer::FrameRelay, frame)),
        LinkType::FRELAY_WITH_DIR => Ok((Layer::FrameRelay, frame.skip(1)?)),
        LinkType::ATM_RFC1483 => Ok((Layer::Llc, frame)),
        LinkType::SUNATM => sun_atm(frame),
        LinkType::IP_OVER_FC => Ok((Layer::Llc, frame.skip(16)?)),
        LinkType::FDDI => fddi(frame),
        LinkType::TOKEN_RING => token_ring(frame),
        LinkType::IEEE802_11 => Ok((Layer::Wifi { padded: false }, frame)),
        LinkType::RADIOTAP => wifi::radiotap(frame),
        LinkType::PRISM => wifi::prism(frame),
        LinkType::AVS => wifi::avs(frame),
        LinkType::PPI => wifi::ppi(frame),
        LinkType::NFLOG => nflog(frame),
        LinkType::PFLOG => pflog(frame),
        LinkType::ENC => Ok((Layer::Ip, frame.skip(12)?)),
        LinkType::IPOIB => ipoib(frame),
        LinkType::APPLE_1394 => Ok((Layer::EtherType(frame.be16(16)?), frame.skip(18)?)),
        LinkType::NETANALYZER => Ok((Layer::Ethernet, frame.skip(4)?)),
        LinkType::NETANALYZER_TRANSPARENT => Ok((Layer::Ethernet, frame.skip(12)?)),
        LinkType::MPACKET => Ok((Layer::Ethernet, frame.skip(8)?)),
        LinkType::PKTAP => packet_tap(frame),
        LinkType::SLIP => Ok((Layer::Ip, frame.skip(16)?)),
        LinkType::ERF => erf(frame),
        LinkType::SWITCH_BROADCOM | LinkType::SWITCH_MARVELL => ethernet::switch_tag(4, frame),
        LinkType::SWITCH_BROADCOM_PREPENDED => Ok((Layer::Ethernet, frame.skip(4)?)),
        LinkType::SWITCH_MARVELL_TYPED => ethernet::switch_tag(8, frame),
        LinkType(unknown) => Err(Stop::Unread(Reason::LinkType(unknown))),
    }
}

/// The address family is written in either byte order, and numbered differently by each system.
fn loopback(frame: Part<'_>) -> Step<'_> {
    let family = frame.be32(0)?;
    // PPP was written with this link type before it had a separate one.
    if family >> 16 == 0xff03 {
        return Ok((Layer::Ppp, frame));
    }
    let family = if family & 0xffff == 0 { family.swap_bytes() } else { family };
    match family {
        // OSI, AppleTalk and IPX.
        7 | 16 | 23 => Err(Stop::Other(Protocol::Network)),
        2 | 10 | 24 | 26 | 28 | 30 | 33 => Ok((Layer::Ip, frame.skip(4)?)),
        0x0600..=0xffff => Ok((Layer::EtherType(family as u16), frame.skip(4)?)),
        _ => {
            let rest = frame.skip(4)?;
            if rest.looks_like_ip() {
                Ok((Layer::Ip, rest))
            } else {
                Err(Stop::Unread(Reason::Family(family)))
            }
        }
    }
}

/// Hardware types (ARPHRD_*) whose protocol field is no EtherType.
const NETLINK: u16 = 824;
const HARDWARE_RADIOTAP: u16 = 803;
const HARDWARE_WIFI: u16 = 801;

fn cooked(frame: Part<'_>) -> Step<'_> {
    let (hardware, protocol) = (frame.be16(2)?, frame.be16(14)?);
    behind_cooked(hardware, protocol, frame.skip(16)?)
}

fn cooked2(frame: Part<'_>) -> Step<'_> {
    let (protocol, hardware) = (frame.be16(0)?, frame.be16(8)?);
    behind_cooked(hardware, protocol, frame.skip(20)?)
}

fn behind_cooked(hardware: u16, protocol: u16, rest: Part<'_>) -> Step<'_> {
    match (hardware, protocol) {
        (NETLINK, _) => Err(Stop::Other(Protocol::LinkControl)),
        (HARDWARE_RADIOTAP, _) => wifi::radiotap(rest),
        (HARDWARE_WIFI, _) => Ok((Layer::Wifi { padded: false }, rest)),
        // Novell's frames without LLC, and CAN.
        (_, 0x0001 | 0x000c..=0x000e) => Err(Stop::Other(Protocol::Network)),
        (_, 0x0004) => Ok((Layer::Llc, rest)),
        // PPP that could not be attributed has its own numbers here.
        (512, 0x0007..=0x0009) => Ok((Layer::Ppp, rest)),
        (_, protocol) => Ok((Layer::EtherType(protocol), rest)),
    }
}

fn sun_atm(frame: Part<'_>) -> Step<'_> {
    match frame.byte(0)? & 0x0f {
        // LANE, whose two bytes are its header.
        1 => Ok((Layer::Ethernet, frame.skip(6)?)),
        2 => Ok((Layer::Llc, frame.skip(4)?)),
        _ => Err(Stop::Other(Protocol::LinkControl)),
    }
}

fn fddi(frame: Part<'_>) -> Step<'_> {
    // Frame control: asynchronous and synchronous LLC frames.
    match frame.byte(0)? & 0x70 {
        0x50 | 0x10 => Ok((Layer::Llc, frame.skip(13)?)),
        _ => Err(Stop::Other(Protocol::LinkControl)),
    }
}

fn token_ring(frame: Part<'_>) -> Step<'_> {
    if frame.byte(1)? & 0xc0 != 0x40 {
        return Err(Stop::Other(Protocol::LinkControl));
    }
    // A source address with its first bit set announces routing information.
    let routing = if frame.byte(8)? & 0x80 == 0 { 0 } else { usize::from(frame.byte(14)? & 0x1f) };
    Ok((Layer::Llc, frame.skip(14 + routing)?))
}

/// Attributes, of which the one with the payload counts.
fn nflog(frame: Part<'_>) -> Step<'_> {
    const PAYLOAD: u16 = 9;
    let mut rest = frame.skip(4)?;
    // Length and kind have the byte order of the machine; kinds are small.
    let little = rest.le16(2)? < 0x0100;
    loop {
        let (len, kind) =
            if little { (rest.le16(0)?, rest.le16(2)?) } else { (rest.be16(0)?, rest.be16(2)?) };
        let len = usize::from(len);
        if len < 4 {
            return Err(Stop::Unread(Reason::Malformed));
        }
        if kind & 0x7fff == PAYLOAD {
            return Ok((Layer::Ip, rest.limit(len).skip(4)?));
        }
        rest = rest.skip(len.next_multiple_of(4))?;
    }
}

fn pflog(frame: Part<'_>) -> Step<'_> {
    let len = usize::from(frame.byte(0)?).next_multiple_of(4);
    Ok((Layer::Ip, frame.skip(len)?))
}

/// The encapsulation header of RFC 4391; in some files behind the address or the routing header of InfiniBand.
fn ipoib(frame: Part<'_>) -> Step<'_> {
    for at in [0, 20, 40] {
        let kind = frame.be16(at)?;
        if matches!(kind, 0x0800 | 0x86dd | 0x0806 | 0x8035) && frame.be16(at + 2)? == 0 {
            return Ok((Layer::EtherType(kind), frame.skip(at + 4)?));
        }
    }
    Err(Stop::Unread(Reason::Malformed))
}

/// The record header of Endace cards: the kind, the length on the wire, and extension headers.
fn erf(frame: Part<'_>) -> Step<'_> {
    const MORE: u8 = 0x80;
    let (mut more, kind, wire) = (frame.byte(8)? & MORE, frame.byte(8)? & !MORE, frame.be16(14)?);
    let mut rest = frame.skip(16)?;
    while more != 0 {
        more = rest.byte(0)? & MORE;
        rest = rest.skip(8)?;
    }
    match kind {
        // HDLC, also with the color of a filter.
        1 | 10 | 15 => Ok((Layer::Hdlc, rest.limit(wire.into()))),
        // Ethernet, likewise, behind two bytes of padding.
        2 | 11 | 16 | 20 => Ok((Layer::Ethernet, rest.skip(2)?.limit(wire.into()))),
        22 | 23 => Ok((Layer::Ip, rest.limit(wire.into()))),
        _ => Err(Stop::Unread(Reason::LinkType(LinkType::ERF.0))),
    }
}

fn packet_tap(frame: Part<'_>) -> Step<'_> {
    let (len, link) = (frame.le32(0)?, frame.le32(8)?);
    match u16::try_from(link) {
        Ok(link) if len >= 12 => Ok((Layer::Link(LinkType(link)), frame.skip(len as usize)?)),
        _ => Err(Stop::Unread(Reason::Malformed)),
    }
}
