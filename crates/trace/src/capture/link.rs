//! What precedes the IP packet in a captured frame.

/// A link-layer type as registered at tcpdump.org/linktypes.html.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct LinkType(pub u16);

impl LinkType {
    /// BSD loopback: the address family in the capturing machine's byte order.
    pub const NULL: LinkType = LinkType(0);
    /// Ethernet.
    pub const ETHERNET: LinkType = LinkType(1);
    /// Raw IP as OpenBSD numbers it.
    pub const RAW_OPENBSD: LinkType = LinkType(14);
    /// Raw IP, as it appears in files of systems that wrote the DLT number.
    pub const RAW_DLT: LinkType = LinkType(12);
    /// Raw IP, version 4 or 6.
    pub const RAW: LinkType = LinkType(101);
    /// OpenBSD loopback: the address family in network byte order.
    pub const LOOP: LinkType = LinkType(108);
    /// Linux "cooked" capture, version 1.
    pub const LINUX_SLL: LinkType = LinkType(113);
    /// Raw IPv4.
    pub const IPV4: LinkType = LinkType(228);
    /// Raw IPv6.
    pub const IPV6: LinkType = LinkType(229);
    /// Linux "cooked" capture, version 2.
    pub const LINUX_SLL2: LinkType = LinkType(276);

    /// Whether packets behind this link layer can be found.
    pub fn is_known(self) -> bool {
        matches!(
            self,
            LinkType::NULL
                | LinkType::ETHERNET
                | LinkType::RAW_OPENBSD
                | LinkType::RAW_DLT
                | LinkType::RAW
                | LinkType::LOOP
                | LinkType::LINUX_SLL
                | LinkType::IPV4
                | LinkType::IPV6
                | LinkType::LINUX_SLL2
        )
    }
}

const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;

/// Most VLAN tags that are stepped over; provider bridges use two.
const MAX_TAGS: usize = 4;

/// Index of the first byte of the IP packet in `frame`.
pub(super) fn ip_at(link: LinkType, frame: &[u8]) -> Option<usize> {
    let at = match link {
        LinkType::ETHERNET => behind_ethertype(frame, 12)?,
        // Families differ between systems, so what follows is believed instead.
        LinkType::NULL | LinkType::LOOP => 4,
        LinkType::LINUX_SLL => behind_ethertype(frame, 14)?,
        LinkType::LINUX_SLL2 => {
            is_ip(ethertype(frame, 0)?).then_some(20)?
        }
        LinkType::RAW
        | LinkType::RAW_OPENBSD
        | LinkType::RAW_DLT
        | LinkType::IPV4
        | LinkType::IPV6 => 0,
        _ => return None,
    };
    let version = frame.get(at)? >> 4;
    matches!(version, 4 | 6).then_some(at)
}

fn ethertype(frame: &[u8], at: usize) -> Option<u16> {
    frame.get(at..)?.first_chunk().copied().map(u16::from_be_bytes)
}

fn is_ip(ethertype: u16) -> bool {
    matches!(ethertype, ETHERTYPE_IPV4 | ETHERTYPE_IPV6)
}

/// The place behind the EtherType at `at` and any VLAN tags (IEEE 802.1Q, 802.1ad).
fn behind_ethertype(frame: &[u8], mut at: usize) -> Option<usize> {
    for _ in 0..=MAX_TAGS {
        match ethertype(frame, at)? {
            0x8100 | 0x88a8 | 0x9100 => at += 4,
            kind => return is_ip(kind).then_some(at + 2),
        }
    }
    None
}
