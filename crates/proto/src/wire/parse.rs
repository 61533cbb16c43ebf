//! Conversion of bytes to packets.
//!
//! The bytes are untrusted: they come from the air, from a capture file, or from an attacker. No function
//! here panics, allocates more than one options record, or reads beyond the bounds of the headers.
//!
//! [`view`] reads headers in place, also of packets truncated by a capture; [`parse`] creates the packet for
//! machines, which shares the frame's bytes.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use super::checksum::{Sum, checksum};
use super::icmp::{self, Notice};
use super::options::{self, OptionError};
use super::protocol::{PROTOCOL_ICMP, PROTOCOL_ICMPV6, PROTOCOL_TCP};
use super::{
    Addr, Body, Damage, Flags, Fragment, Packet, PacketId, Parts, Segment, Seq, Transport,
};

/// Why bytes are not a packet. Positions count from the first byte of the IP header.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ParseError {
    /// The buffer is empty.
    #[error("no bytes")]
    Empty,
    /// Neither IPv4 nor IPv6.
    #[error("IP version {0}")]
    Version(u8),
    /// The bytes end within a header.
    #[error("{have} bytes end within the {header} header, which needs {need}")]
    Short {
        /// Which header.
        header: &'static str,
        /// Bytes needed up to its end.
        need: usize,
        /// Bytes available.
        have: usize,
    },
    /// The length field of a header is less than its fixed part.
    #[error("the {header} header claims to be only {len} bytes long")]
    HeaderLength {
        /// Which header.
        header: &'static str,
        /// The length in the field.
        len: usize,
    },
    /// The length field of IP is less than the headers or more than the available bytes.
    #[error("the IP packet claims {claimed} bytes, its headers take {headers}, there are {have}")]
    Length {
        /// Length in the field.
        claimed: usize,
        /// Length of the headers.
        headers: usize,
        /// Bytes available.
        have: usize,
    },
    /// A TCP option has an impossible length.
    #[error(transparent)]
    Option(#[from] OptionError),
    /// The packet exceeds the 32-bit positions of a [`Body`].
    #[error("frames of four gigabytes are not packets")]
    TooLarge,
}

/// What [`view`] may expect of the bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mode {
    /// Whether checksums are verified. If not, every packet counts as undamaged: for interfaces that leave
    /// the checksum to hardware.
    pub verify: bool,
    /// In a capture: the length of the whole packet on the wire, which may exceed the bytes. `None` means
    /// that the bytes are the whole packet, possibly followed by padding.
    pub wire_len: Option<usize>,
}

impl Mode {
    /// The whole packet, with its checksums verified.
    pub const WHOLE: Mode = Mode { verify: true, wire_len: None };
}

/// A packet's headers, and the position of its payload in the bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct View {
    /// Source address.
    pub src: Addr,
    /// Destination address.
    pub dst: Addr,
    /// Transport header.
    pub transport: Transport,
    /// Traffic class: DSCP and ECN bits.
    pub tos: u8,
    /// IPv6 flow label, 20 bits; zero on IPv4.
    pub label: u32,
    /// Remaining hops (TTL).
    pub ttl: u8,
    /// IPv4 identification; zero on IPv6.
    pub ip_id: u16,
    /// Result of the checksums; [`Damage::None`] where they were not or could not be verified.
    pub damage: Damage,
    /// Index of the first byte of the payload.
    pub body_at: usize,
    /// Length of the payload on the wire.
    pub body_len: u32,
    /// Available bytes of the payload.
    pub captured: u32,
    /// The malformed or partly captured TCP option; those before it were read.
    pub bad_option: Option<OptionError>,
}

/// The IP layer of a packet, as [`ip_layer`] reads it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IpLayer {
    /// Source address.
    pub src: Addr,
    /// Destination address.
    pub dst: Addr,
    /// Protocol of the payload; on IPv6 the number of an extension header, where one follows.
    pub protocol: u8,
    /// Traffic class: DSCP and ECN bits.
    pub tos: u8,
    /// IPv6 flow label, 20 bits; zero on IPv4.
    pub label: u32,
    /// Remaining hops (TTL).
    pub ttl: u8,
    /// IPv4 identification; zero on IPv6.
    pub id: u16,
    /// Length of the header: index of the payload's first byte.
    pub header: usize,
    /// Length of the packet on the wire, header included.
    pub total: usize,
    /// Whether the header's checksum is wrong; `false` where it was not verified.
    pub damaged: bool,
    /// Flags and offset of an IPv4 fragment; `None` if the payload is the whole transport packet.
    pub fragment: Option<u16>,
}

/// The headers of the IP packet at the start of `bytes`.
///
/// TCP (and ICMP that quotes a TCP segment) is parsed after IPv4 (with options, which are skipped) and
/// directly after IPv6. Fragments of IPv4 are [`Transport::Fragment`], and IPv6 extension headers make a
/// packet [`Transport::Other`]: no machine here acts on half a segment. A TCP option of impossible length is
/// reported in [`View::bad_option`]; the options before it are valid.
///
/// # Errors
/// When the bytes do not hold the headers, or their length fields contradict each other.
pub fn view(bytes: &[u8], mode: Mode) -> Result<View, ParseError> {
    transport(bytes, &ip_layer(bytes, mode)?, mode)
}

/// The IP header at the start of `bytes`, without extension headers.
///
/// # Errors
/// When the bytes do not hold the header, or its length fields contradict each other.
#[inline]
pub fn ip_layer(bytes: &[u8], mode: Mode) -> Result<IpLayer, ParseError> {
    match bytes.first() {
        None => Err(ParseError::Empty),
        Some(first) if first >> 4 == 4 => ipv4(bytes, mode),
        Some(first) if first >> 4 == 6 => ipv6(bytes, mode),
        Some(first) => Err(ParseError::Version(first >> 4)),
    }
}

/// The transport header after the IP layer `ip` of the packet `bytes`.
///
/// The caller may have moved [`IpLayer::header`] past extension headers. For a reassembled packet, whose
/// bytes are the payload alone, it is zero.
///
/// # Errors
/// When the bytes do not hold the header, or the length fields contradict each other.
pub fn transport(bytes: &[u8], ip: &IpLayer, mode: Mode) -> Result<View, ParseError> {
    if ip.header > ip.total || ip.header > bytes.len() {
        return Err(short("IP", ip.header, bytes));
    }
    let end = ip.total.min(bytes.len());
    let packet = &bytes[..end];
    let mut view = View {
        src: ip.src,
        dst: ip.dst,
        transport: match ip.fragment {
            Some(place) => {
                Transport::Fragment(Fragment { protocol: ip.protocol, id: ip.id, place })
            }
            None => Transport::Other(ip.protocol),
        },
        tos: ip.tos,
        label: ip.label,
        ttl: ip.ttl,
        ip_id: ip.id,
        damage: if ip.damaged { Damage::Ip } else { Damage::None },
        body_at: ip.header,
        body_len: u32::try_from(ip.total - ip.header).map_err(|_| ParseError::TooLarge)?,
        captured: (end - ip.header) as u32,
        bad_option: None,
    };
    let icmp_is = if ip.src.is_v4() { PROTOCOL_ICMP } else { PROTOCOL_ICMPV6 };
    match view.transport {
        Transport::Other(PROTOCOL_TCP) => tcp(packet, ip, mode, &mut view)?,
        Transport::Other(protocol) if protocol == icmp_is => icmp(packet, ip, mode, &mut view),
        _ => {}
    }
    Ok(view)
}

fn short(header: &'static str, need: usize, bytes: &[u8]) -> ParseError {
    ParseError::Short { header, need, have: bytes.len() }
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// The packet's length from its length field, checked against the bytes.
fn total(claimed: usize, headers: usize, bytes: &[u8], mode: Mode) -> Result<usize, ParseError> {
    let have = mode.wire_len.unwrap_or(bytes.len());
    let error = ParseError::Length { claimed, headers, have };
    if claimed < headers {
        // Segmentation offload leaves the field zero for packets that exceed it.
        if let Some(wire) = mode.wire_len
            && claimed == 0
            && wire >= headers
        {
            return Ok(wire);
        }
        return Err(error);
    }
    // In a capture the length field is more reliable: truncated and offloaded frames differ from it.
    if claimed > have && mode.wire_len.is_none() { Err(error) } else { Ok(claimed) }
}

fn ipv4(bytes: &[u8], mode: Mode) -> Result<IpLayer, ParseError> {
    let fixed = bytes.first_chunk::<20>().ok_or_else(|| short("IPv4", 20, bytes))?;
    let header = usize::from(fixed[0] & 0x0f) * 4;
    if header < 20 {
        return Err(ParseError::HeaderLength { header: "IPv4", len: header });
    }
    if bytes.len() < header {
        return Err(short("IPv4", header, bytes));
    }
    let place = u16_at(fixed, 6);
    let addr = |at| Addr::from(IpAddr::V4(Ipv4Addr::from(u32_at(fixed, at))));
    Ok(IpLayer {
        src: addr(12),
        dst: addr(16),
        protocol: fixed[9],
        tos: fixed[1],
        label: 0,
        ttl: fixed[8],
        id: u16_at(fixed, 4),
        header,
        total: total(usize::from(u16_at(fixed, 2)), header, bytes, mode)?,
        damaged: mode.verify && checksum(&bytes[..header]) != 0,
        // More fragments follow or precede this one.
        fragment: (place & 0x3fff != 0).then_some(place),
    })
}

/// Mask of the flow label in the first word of the IPv6 header.
const LABEL: u32 = 0xf_ffff;

fn ipv6(bytes: &[u8], mode: Mode) -> Result<IpLayer, ParseError> {
    let fixed = bytes.first_chunk::<40>().ok_or_else(|| short("IPv6", 40, bytes))?;
    let addr = |at: usize| {
        let halves = [at, at + 4, at + 8, at + 12].map(|at| u128::from(u32_at(fixed, at)));
        let bits = halves.into_iter().fold(0, |bits, word| bits << 32 | word);
        Addr::from(IpAddr::V6(Ipv6Addr::from_bits(bits)))
    };
    let payload = usize::from(u16_at(fixed, 4));
    // A jumbogram's length is zero here (RFC 2675); in a capture the frame has its length.
    let claimed = if payload == 0 && mode.wire_len.is_some() { 0 } else { 40 + payload };
    Ok(IpLayer {
        src: addr(8),
        dst: addr(24),
        protocol: fixed[6],
        tos: fixed[0] << 4 | fixed[1] >> 4,
        label: u32_at(fixed, 0) & LABEL,
        ttl: fixed[7],
        id: 0,
        header: 40,
        total: total(claimed, 40, bytes, mode)?,
        damaged: false,
        fragment: None,
    })
}

fn tcp(packet: &[u8], ip: &IpLayer, mode: Mode, view: &mut View) -> Result<(), ParseError> {
    let bytes = &packet[ip.header..];
    let need = |len: usize| short("TCP", ip.header + len, packet);
    let fixed = bytes.first_chunk::<20>().ok_or_else(|| need(20))?;
    let header = usize::from(fixed[12] >> 4) * 4;
    if header < 20 {
        return Err(ParseError::HeaderLength { header: "TCP", len: header });
    }
    let headers = ip.header + header;
    if headers > ip.total {
        return Err(ParseError::Length { claimed: ip.total, headers, have: packet.len() });
    }
    // A snap length may truncate the options; the rest of them is read.
    if bytes.len() < header && mode.wire_len.is_none() {
        return Err(need(header));
    }
    let header_there = header.min(bytes.len());
    let read = options::read(&bytes[20..header_there]);
    let mut segment = Segment::new(
        u16_at(fixed, 0),
        u16_at(fixed, 2),
        Seq(u32_at(fixed, 4)),
        Seq(u32_at(fixed, 8)),
        Flags(u16::from_be_bytes([fixed[12] & 1, fixed[13]])),
    );
    segment.window = u16_at(fixed, 14);
    segment.timestamps = read.timestamps;
    if let Some(options) = read.options {
        *segment.options_mut() = *options;
    }
    let urgent = u16_at(fixed, 18);
    if urgent != 0 {
        segment.options_mut().urgent = urgent;
    }
    if mode.verify && !ip.damaged && packet.len() == ip.total {
        let mut sum = Sum::default();
        sum.pseudo_header(ip.src, ip.dst, PROTOCOL_TCP, bytes.len() as u32);
        sum.bytes(bytes);
        if !sum.verifies() {
            view.damage = Damage::Tcp;
        }
    }
    view.transport = Transport::Tcp(segment);
    view.body_at = ip.header + header_there;
    view.body_len = (ip.total - headers) as u32;
    view.captured = (bytes.len() - header_there) as u32;
    let cut = (header_there < header).then_some(OptionError { at: header_there - 20, kind: 0 });
    view.bad_option = read.error.or(cut);
    Ok(())
}

/// Parses ICMP that quotes a TCP segment, if its kind is one that machines process; anything else stays
/// opaque.
fn icmp(packet: &[u8], ip: &IpLayer, mode: Mode, view: &mut View) {
    let bytes = &packet[ip.header..];
    let Some(notice) = Notice::read(bytes, ip.src.is_v4()) else { return };
    if mode.verify && !ip.damaged && packet.len() == ip.total {
        let sum = icmp::sum(ip.src, ip.dst, bytes.len() as u32, bytes);
        if !sum.verifies() {
            view.damage = Damage::Tcp;
        }
    }
    view.transport = Transport::Icmp(notice);
    view.body_at = ip.header + icmp::HEADER_LEN as usize;
    view.body_len -= icmp::HEADER_LEN;
    view.captured -= icmp::HEADER_LEN;
}

/// The packet whose IP header begins at `at` in `frame`; its body shares the frame.
///
/// The packet's identity is zero: the caller assigns one before the packet enters a path.
///
/// # Errors
/// See [`ParseError`]. Unlike [`view`] this rejects malformed TCP options, because a packet emitted from the
/// readable ones would differ from the received one.
pub fn parse(frame: &Arc<[u8]>, at: usize, verify: bool) -> Result<Packet, ParseError> {
    let bytes = frame.get(at..).unwrap_or(&[]);
    let view = view(bytes, Mode { verify, wire_len: None })?;
    if let Some(error) = view.bad_option {
        return Err(error.into());
    }
    let from = u32::try_from(at + view.body_at).map_err(|_| ParseError::TooLarge)?;
    let body = match view.body_len {
        0 => Body::EMPTY,
        len => Body::Bytes { frame: frame.clone(), from, len },
    };
    Ok(Packet::new(Parts {
        id: PacketId(0),
        src: view.src,
        dst: view.dst,
        transport: view.transport,
        body,
        tos: view.tos,
        label: view.label,
        ttl: view.ttl,
        damage: view.damage,
        urgent: false,
        piece: 0,
        fragmentable: false,
    }))
}
