//! Content of a frame: a packet, another protocol, or unread bytes with the reason.

use core::fmt;

use lasthop_proto::wire::parse::View;
use serde::{Serialize, Serializer};

/// The outcome of one frame, or of one packet in it where a frame aggregates several.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Content {
    /// A TCP segment or an ICMP message, with the headers of its innermost IP packet.
    Packet(View),
    /// A protocol that is neither.
    Other(Protocol),
    /// A fragment of an IP packet that was reported as another frame's content, or a copy of such a fragment.
    Fragment,
    /// Bytes that may hold TCP and are not read.
    Unread(Reason),
}

/// Why bytes that may hold TCP are not read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(tag = "reason", content = "number", rename_all = "snake_case")]
pub enum Reason {
    /// IPsec ESP, also inside UDP (RFC 3948).
    Esp,
    /// An encrypted 802.11 frame.
    EncryptedWifi,
    /// Encrypted MACsec (IEEE 802.1AE).
    EncryptedMacsec,
    /// Encrypted PPP, DTLS around CAPWAP, WireGuard or OpenVPN.
    EncryptedTunnel,
    /// Headers or payload compressed by PPP or IPComp (RFC 3173).
    Compressed,
    /// A link type that has no reader.
    LinkType(u16),
    /// An EtherType that is not known.
    EtherType(u16),
    /// The destination service access point of an LLC header that is not known.
    Llc(u8),
    /// A protocol of PPP that is not known.
    Ppp(u16),
    /// The address family of a loopback header that is not known.
    Family(u32),
    /// A tunnel whose content cannot be recognized.
    Tunnel,
    /// A fragment of an IP packet that is not complete in the capture.
    IncompleteFragments,
    /// A fragment of an IP packet whose fragments contradict each other (RFC 5722).
    OverlappingFragments,
    /// An 802.11 frame of which only a part was in this frame.
    LinkFragment,
    /// The capture has too little of the frame, by its snap length.
    CutOff,
    /// More headers than [`super::MAX_HEADERS`].
    TooDeep,
    /// Lengths or headers that contradict each other.
    Malformed,
    /// The capturing radio reported a wrong frame check sequence.
    FrameCheck,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Esp => f.write_str("ESP"),
            Reason::EncryptedWifi => f.write_str("encrypted 802.11"),
            Reason::EncryptedMacsec => f.write_str("encrypted MACsec"),
            Reason::EncryptedTunnel => f.write_str("an encrypted tunnel"),
            Reason::Compressed => f.write_str("compressed"),
            Reason::LinkType(number) => write!(f, "unknown link type {number}"),
            Reason::EtherType(number) => write!(f, "unknown EtherType 0x{number:04x}"),
            Reason::Llc(number) => write!(f, "unknown LLC service 0x{number:02x}"),
            Reason::Ppp(number) => write!(f, "unknown PPP protocol 0x{number:04x}"),
            Reason::Family(number) => write!(f, "unknown address family {number}"),
            Reason::Tunnel => f.write_str("a tunnel with unknown content"),
            Reason::IncompleteFragments => f.write_str("fragments of incomplete packets"),
            Reason::OverlappingFragments => f.write_str("fragments that overlap"),
            Reason::LinkFragment => f.write_str("fragments of 802.11 frames"),
            Reason::CutOff => f.write_str("cut off by the snap length"),
            Reason::TooDeep => f.write_str("nested too deep"),
            Reason::Malformed => f.write_str("malformed"),
            Reason::FrameCheck => f.write_str("damaged on the radio"),
        }
    }
}

/// A protocol that is not TCP.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Protocol {
    /// By its IP protocol number.
    Ip(u8),
    /// By its EtherType.
    Ether(u16),
    /// By its service access point of LLC.
    Llc(u8),
    /// By its number in PPP: control of the link, or a network protocol other than IP.
    Ppp(u16),
    /// Another network protocol of an OSI, Cisco or loopback header.
    Network,
    /// Management, control and empty frames of 802.11, or control frames of another link or tunnel.
    LinkControl,
}

/// Names of IP protocols that are frequent in captures.
const IP_NAMES: [(u8, &str); 13] = [
    (1, "ICMP"),
    (2, "IGMP"),
    (17, "UDP"),
    (46, "RSVP"),
    (47, "GRE"),
    (58, "ICMPv6"),
    (59, "IPv6 without payload"),
    (88, "EIGRP"),
    (89, "OSPF"),
    (103, "PIM"),
    (112, "VRRP"),
    (132, "SCTP"),
    (135, "Mobile IPv6"),
];

/// EtherTypes of protocols that carry no IP.
const ETHER_NAMES: [(u16, &str); 41] = [
    (0x0842, "Wake-on-LAN"),
    (0x0806, "ARP"),
    (0x2000, "CDP"),
    (0x22f0, "AVTP"),
    (0x6002, "DECnet MOP"),
    (0x6003, "DECnet"),
    (0x6004, "DECnet LAT"),
    (0x8035, "RARP"),
    (0x809b, "AppleTalk"),
    (0x80f3, "AppleTalk ARP"),
    (0x8137, "IPX"),
    (0x8138, "IPX"),
    (0x8808, "flow control"),
    (0x886f, "network load balancing"),
    (0x887b, "HomePlug"),
    (0x8899, "Realtek switch control"),
    (0x88bf, "RoMON"),
    (0x88ca, "TIPC"),
    (0x88d9, "LLTD"),
    (0x8809, "slow protocols"),
    (0x8863, "PPPoE discovery"),
    (0x8892, "PROFINET"),
    (0x888e, "EAPOL"),
    (0x889a, "HyperSCSI"),
    (0x88a2, "ATA over Ethernet"),
    (0x88a4, "EtherCAT"),
    (0x88b8, "GOOSE"),
    (0x88b9, "GSE"),
    (0x88ba, "sampled values"),
    (0x88c7, "802.11 pre-authentication"),
    (0x88cc, "LLDP"),
    (0x88e1, "HomePlug"),
    (0x88e3, "MRP"),
    (0x88f7, "PTP"),
    (0x8902, "CFM"),
    (0x8906, "FCoE"),
    (0x890d, "802.11 tunnelled over Ethernet"),
    (0x8912, "HomePlug"),
    (0x8914, "FCoE initialization"),
    (0x893a, "IEEE 1905"),
    (0x9000, "loopback test"),
];

impl Protocol {
    /// The protocol of an EtherType that is known to carry no IP.
    pub(super) fn of_ethertype(number: u16) -> Option<Protocol> {
        let known = ETHER_NAMES.iter().any(|(known, _)| *known == number);
        known.then_some(Protocol::Ether(number))
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Protocol::Ip(number) => match IP_NAMES.iter().find(|(known, _)| *known == number) {
                Some((_, name)) => f.write_str(name),
                None => write!(f, "IP protocol {number}"),
            },
            Protocol::Ether(number) => {
                match ETHER_NAMES.iter().find(|(known, _)| *known == number) {
                    Some((_, name)) => f.write_str(name),
                    None => write!(f, "EtherType 0x{number:04x}"),
                }
            }
            Protocol::Llc(0x42) => f.write_str("STP"),
            Protocol::Llc(0xe0 | 0xff) => f.write_str("IPX"),
            Protocol::Llc(0xf0) => f.write_str("NetBIOS"),
            Protocol::Llc(0xfe) => f.write_str("IS-IS"),
            Protocol::Llc(number) => write!(f, "LLC service 0x{number:02x}"),
            Protocol::Ppp(_) => f.write_str("PPP control"),
            Protocol::Network => f.write_str("other network protocols"),
            Protocol::LinkControl => f.write_str("link control"),
        }
    }
}

impl Serialize for Protocol {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
