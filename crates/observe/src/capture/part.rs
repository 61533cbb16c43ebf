//! The bytes that remain of a frame while its headers are removed one by one.

use lasthop_proto::wire::checksum::checksum;

use super::content::{Protocol, Reason};

/// Flags of the frame control of 802.11.
pub(super) const BOTH_SYSTEMS: u8 = 0x03;
pub(super) const MORE_FRAGMENTS: u8 = 0x04;
pub(super) const PROTECTED: u8 = 0x40;

/// Why no packet is found in a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stop {
    /// The frame belongs to another protocol.
    Other(Protocol),
    /// The frame may hold TCP and cannot be read.
    Unread(Reason),
}

/// What follows a header: how it begins, and its bytes.
pub(super) type Step<'a> = Result<(Layer, Part<'a>), Stop>;

/// The header that a [`Part`] begins with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Layer {
    /// Ethernet or IEEE 802.3.
    Ethernet,
    /// Whatever an EtherType names.
    EtherType(u16),
    /// Logical link control (IEEE 802.2).
    Llc,
    /// PPP, with or without address and control field.
    Ppp,
    /// PPP in HDLC-like framing, whose address field may be that of Cisco HDLC.
    Hdlc,
    /// Cisco HDLC.
    CiscoHdlc,
    /// Frame Relay (RFC 2427 or Cisco's encapsulation).
    FrameRelay,
    /// 802.11, and whether padding follows its header.
    Wifi {
        /// The header is padded to a multiple of four bytes.
        padded: bool,
    },
    /// Subframes of an 802.11 A-MSDU.
    Subframes,
    /// MPLS labels.
    Mpls,
    /// Generic Routing Encapsulation.
    Gre,
    /// A pcap link type, nested in another.
    Link(super::LinkType),
    /// IPv4 or IPv6, by the first four bits.
    Ip,
}

/// Captured bytes and how many there were on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Part<'a> {
    pub(super) bytes: &'a [u8],
    /// Never less than there are bytes.
    pub(super) wire: usize,
}

impl<'a> Part<'a> {
    pub(super) fn new(bytes: &'a [u8], wire: usize) -> Part<'a> {
        Part { bytes, wire: wire.max(bytes.len()) }
    }

    /// Why the bytes up to `end` are not there.
    #[cold]
    pub(super) fn missing(self, end: usize) -> Stop {
        Stop::Unread(if end <= self.wire { Reason::CutOff } else { Reason::Malformed })
    }

    #[inline]
    fn array<const N: usize>(self, at: usize) -> Result<[u8; N], Stop> {
        let array = self.bytes.get(at..).and_then(|rest| rest.first_chunk());
        array.copied().ok_or_else(|| self.missing(at.saturating_add(N)))
    }

    #[inline]
    pub(super) fn byte(self, at: usize) -> Result<u8, Stop> {
        self.array(at).map(u8::from_be_bytes)
    }

    #[inline]
    pub(super) fn be16(self, at: usize) -> Result<u16, Stop> {
        self.array(at).map(u16::from_be_bytes)
    }

    pub(super) fn be32(self, at: usize) -> Result<u32, Stop> {
        self.array(at).map(u32::from_be_bytes)
    }

    pub(super) fn le16(self, at: usize) -> Result<u16, Stop> {
        self.array(at).map(u16::from_le_bytes)
    }

    pub(super) fn le32(self, at: usize) -> Result<u32, Stop> {
        self.array(at).map(u32::from_le_bytes)
    }

    /// Without the first `len` bytes.
    #[inline]
    pub(super) fn skip(self, len: usize) -> Result<Part<'a>, Stop> {
        let bytes = self.bytes.get(len..).ok_or_else(|| self.missing(len))?;
        Ok(Part { bytes, wire: self.wire - len })
    }

    /// The first `len` bytes on the wire, or all if there are fewer.
    #[inline]
    pub(super) fn limit(self, len: usize) -> Part<'a> {
        let captured = self.bytes.len().min(len);
        Part { bytes: &self.bytes[..captured], wire: self.wire.min(len) }
    }

    /// Whether an IP header seems to begin here.
    pub(super) fn looks_like_ip(self) -> bool {
        match self.bytes {
            [first, _, high, low, ..] if first >> 4 == 4 => {
                let len = usize::from(u16::from_be_bytes([*high, *low]));
                first & 0x0f >= 5 && (len == 0 || len >= usize::from(first & 0x0f) * 4)
            }
            [first, ..] => first >> 4 == 6 && self.wire >= 40,
            [] => false,
        }
    }

    /// Whether an IP header begins here: its lengths agree with those of the frame, and its checksum is right.
    pub(super) fn is_ip(self) -> bool {
        let len = |at: usize| self.be16(at).map_or(usize::MAX, usize::from);
        match self.bytes {
            [first, ..] if first >> 4 == 4 => {
                let header = self.bytes.get(..usize::from(first & 0x0f) * 4).unwrap_or(&[]);
                header.len() >= 20 && len(2) <= self.wire && checksum(header) == 0
            }
            [first, ..] if first >> 4 == 6 => len(4).saturating_add(40) == self.wire,
            _ => false,
        }
    }

    /// Whether an Ethernet header with a frequent EtherType seems to begin here.
    pub(super) fn looks_like_ethernet(self) -> bool {
        let kind = self.be16(12);
        matches!(kind, Ok(0x0800 | 0x86dd | 0x0806 | 0x8100 | 0x88a8 | 0x8847 | 0x8863 | 0x8864))
    }
}
