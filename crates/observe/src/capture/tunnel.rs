//! Tunnels over IP: GRE, and those that have a port of UDP.

use super::LinkType;
use super::content::{Protocol, Reason};
use super::part::{BOTH_SYSTEMS, Layer, MORE_FRAGMENTS, PROTECTED, Part, Step, Stop};

const UDP: Stop = Stop::Other(Protocol::Ip(17));

/// The tunnel whose registered port a datagram has, at either end; other datagrams are of no interest here.
///
/// A datagram that is not formed as the tunnel at its port demands is no tunnel: any program may use the port.
pub(super) fn udp(datagram: Part<'_>) -> Step<'_> {
    let (src, dst, len) = (datagram.be16(0)?, datagram.be16(2)?, datagram.be16(4)?);
    if !is_tunnel(src) && !is_tunnel(dst) {
        return Err(UDP);
    }
    let whole = if len < 8 { datagram } else { datagram.limit(len.into()) };
    let rest = whole.skip(8)?;
    // Header bytes by which the kind of a tunnel is detected.
    let needed = rest.wire.min(16);
    match at_port(dst, rest).or_else(|| at_port(src, rest)) {
        Some(step) => step,
        None if rest.bytes.len() < needed => Err(rest.missing(needed)),
        None => Err(UDP),
    }
}

/// Whether datagrams of a fragmented packet can be a tunnel's: the ports of its first fragment.
pub(super) fn may_be_tunnel(ports: &[u8]) -> bool {
    let [a, b, c, d, ..] = *ports else { return true };
    is_tunnel(u16::from_be_bytes([a, b])) || is_tunnel(u16::from_be_bytes([c, d]))
}

fn is_tunnel(port: u16) -> bool {
    matches!(
        port,
        1194 | 1701
            | 2152
            | 3386
            | 3544
            | 4341
            | 4500
            | 4754
            | 4789
            | 4790
            | 5247
            | 6081
            | 6635
            | 8472
            | 37008
            | 51820
    )
}

/// The content of a tunnel at `port`; `None` if the datagram is not formed as one.
fn at_port(port: u16, rest: Part<'_>) -> Option<Step<'_>> {
    match port {
        1194 => openvpn(rest),
        1701 => l2tp(rest),
        2152 => gtp(rest),
        3386 => gtp_prime(rest),
        3544 => teredo(rest),
        4341 => lisp(rest),
        4500 => esp_in_udp(rest),
        4754 => Some(Ok((Layer::Gre, rest))),
        4789 | 8472 => vxlan(rest),
        4790 => vxlan_gpe(rest),
        5247 => capwap(rest),
        6081 => geneve(rest),
        6635 => Some(Ok((Layer::Mpls, rest))),
        37008 => tzsp(rest),
        51820 => wireguard(rest),
        _ => None,
    }
}

/// GTP-U of version 1 (3GPP TS 29.281).
fn gtp(rest: Part<'_>) -> Option<Step<'_>> {
    const USER_DATA: u8 = 255;
    let flags = rest.byte(0).ok()?;
    if flags >> 5 != 1 || flags & 0x10 == 0 {
        return None;
    }
    if rest.byte(1).ok()? != USER_DATA {
        return Some(Err(UDP));
    }
    Some(gtp_content(flags, rest))
}

fn gtp_content(flags: u8, rest: Part<'_>) -> Step<'_> {
    const EXTENSION: u8 = 0x04;
    let len = usize::from(rest.be16(2)?);
    let mut rest = rest.skip(8)?.limit(len);
    if flags & 0x07 != 0 {
        let mut next = rest.byte(3)?;
        rest = rest.skip(4)?;
        // The type is valid only if its flag is set.
        if flags & EXTENSION == 0 {
            next = 0;
        }
        while next != 0 {
            let len = 4 * usize::from(rest.byte(0)?);
            if len == 0 {
                return Err(Stop::Unread(Reason::Malformed));
            }
            next = rest.byte(len - 1)?;
            rest = rest.skip(len)?;
        }
    }
    session(rest)
}

/// GTP of version 0, whose header has 20 bytes.
fn gtp_prime(rest: Part<'_>) -> Option<Step<'_>> {
    let (flags, kind) = (rest.byte(0).ok()?, rest.byte(1).ok()?);
    (flags >> 5 == 0 && flags & 0x10 != 0 && kind == 255).then(|| rest.skip(20).and_then(session))
}

/// Payload of a mobile device: IP, PPP, or Ethernet.
fn session(rest: Part<'_>) -> Step<'_> {
    match rest.bytes {
        [] if rest.wire == 0 => Err(UDP),
        _ if rest.looks_like_ip() => Ok((Layer::Ip, rest)),
        [0xff, 0x03, ..] => Ok((Layer::Ppp, rest)),
        _ if rest.looks_like_ethernet() => Ok((Layer::Ethernet, rest)),
        bytes if bytes.len() < rest.wire.min(14) => Err(rest.missing(rest.wire.min(14))),
        _ => Err(Stop::Unread(Reason::Tunnel)),
    }
}

/// VXLAN (RFC 7348).
fn vxlan(rest: Part<'_>) -> Option<Step<'_>> {
    let flags = rest.byte(0).ok()?;
    (flags & 0x08 != 0 && rest.byte(7).ok()? == 0).then(|| Ok((Layer::Ethernet, rest.skip(8)?)))
}

/// VXLAN with a protocol of its content (RFC 9932).
fn vxlan_gpe(rest: Part<'_>) -> Option<Step<'_>> {
    let flags = rest.byte(0).ok()?;
    if flags & 0x08 == 0 {
        return None;
    }
    let kind = if flags & 0x04 == 0 { 3 } else { rest.byte(3).ok()? };
    Some(rest.skip(8).and_then(|rest| numbered(kind, rest)))
}

/// Numbers that VXLAN and the service header have for their content.
fn numbered(kind: u8, rest: Part<'_>) -> Step<'_> {
    match kind {
        1 | 2 => Ok((Layer::Ip, rest)),
        3 => Ok((Layer::Ethernet, rest)),
        4 => service_header(rest),
        5 => Ok((Layer::Mpls, rest)),
        _ => Err(Stop::Unread(Reason::Tunnel)),
    }
}

/// The network service header (RFC 8300).
pub(super) fn service_header(rest: Part<'_>) -> Step<'_> {
    let (len, kind) = (usize::from(rest.byte(1)? & 0x3f) * 4, rest.byte(3)?);
    if len < 8 {
        return Err(Stop::Unread(Reason::Malformed));
    }
    // A service header in a service header is no content that exists.
    match kind {
        4 => Err(Stop::Unread(Reason::Tunnel)),
        kind => numbered(kind, rest.skip(len)?),
    }
}

/// Geneve (RFC 8926), with options. Receivers ignore the reserved bits. If some are set, the content must be Ethernet or
/// IP.
fn geneve(rest: Part<'_>) -> Option<Step<'_>> {
    let (first, kind) = (rest.byte(0).ok()?, rest.be16(2).ok()?);
    let usual = matches!(kind, 0x6558 | 0x0800 | 0x86dd);
    if first >> 6 != 0 || rest.byte(7).ok()? != 0 && !usual {
        return None;
    }
    let len = 8 + 4 * usize::from(first & 0x3f);
    Some(rest.skip(len).map(|rest| (Layer::EtherType(kind), rest)))
}

/// L2TP of version 2 (RFC 2661), which carries PPP. In version 3 the length of the header depends on the session.
fn l2tp(rest: Part<'_>) -> Option<Step<'_>> {
    let flags = rest.be16(0).ok()?;
    match flags & 0x000f {
        2 if flags & 0x8000 != 0 => Some(Err(UDP)),
        2 => Some(l2tp_data(flags, rest)),
        3 if flags & 0x8000 != 0 => Some(Err(UDP)),
        3 => Some(Err(Stop::Unread(Reason::Tunnel))),
        _ => None,
    }
}

fn l2tp_data(flags: u16, rest: Part<'_>) -> Step<'_> {
    let mut at = 2;
    let mut whole = rest;
    if flags & 0x4000 != 0 {
        whole = rest.limit(rest.be16(2)?.into());
        at += 2;
    }
    at += 4;
    if flags & 0x0800 != 0 {
        at += 4;
    }
    if flags & 0x0200 != 0 {
        at += 2 + usize::from(whole.be16(at)?);
    }
    let rest = whole.skip(at)?;
    if rest.wire == 0 { Err(UDP) } else { Ok((Layer::Ppp, rest)) }
}

/// Teredo (RFC 4380): IPv6, behind indications that only some packets have.
fn teredo(rest: Part<'_>) -> Option<Step<'_>> {
    let mut rest = rest;
    if rest.be16(0).ok()? == 0x0001 {
        let len = 4 + usize::from(rest.byte(2).ok()?) + usize::from(rest.byte(3).ok()?) + 9;
        rest = rest.skip(len).ok()?;
    }
    if rest.be16(0).ok()? == 0x0000 {
        rest = rest.skip(8).ok()?;
    }
    (rest.byte(0).ok()? >> 4 == 6).then_some(Ok((Layer::Ip, rest)))
}

/// LISP (RFC 9300).
fn lisp(rest: Part<'_>) -> Option<Step<'_>> {
    let rest = rest.skip(8).ok()?;
    rest.looks_like_ip().then_some(Ok((Layer::Ip, rest)))
}

/// ESP behind a NAT (RFC 3948), next to the key exchange and keep-alives of the same port.
fn esp_in_udp(rest: Part<'_>) -> Option<Step<'_>> {
    (rest.be32(0).ok()? != 0).then_some(Err(Stop::Unread(Reason::Esp)))
}

/// OpenVPN: the operation is in the upper five bits.
fn openvpn(rest: Part<'_>) -> Option<Step<'_>> {
    const DATA: [u8; 2] = [6, 9];
    let data = DATA.contains(&(rest.byte(0).ok()? >> 3));
    data.then_some(Err(Stop::Unread(Reason::EncryptedTunnel)))
}

/// WireGuard: type 4 is data, padded to a multiple of 16 bytes. An empty one is a keepalive.
fn wireguard(rest: Part<'_>) -> Option<Step<'_>> {
    const DATA: u32 = 4;
    const EMPTY: usize = 32;
    let data = rest.le32(0).ok()? == DATA && rest.wire > EMPTY && rest.wire.is_multiple_of(16);
    data.then_some(Err(Stop::Unread(Reason::EncryptedTunnel)))
}

/// Data of CAPWAP (RFC 5415): 802.3 or 802.11 frames of an access point.
fn capwap(rest: Part<'_>) -> Option<Step<'_>> {
    match rest.byte(0).ok()? {
        0 => Some(capwap_data(rest)),
        // DTLS.
        1 => Some(Err(Stop::Unread(Reason::EncryptedTunnel))),
        _ => None,
    }
}

fn capwap_data(rest: Part<'_>) -> Step<'_> {
    let (first, second, third) = (rest.byte(1)?, rest.byte(2)?, rest.byte(3)?);
    let len = 4 * usize::from(first >> 3);
    if len < 8 {
        return Err(UDP);
    }
    if third & 0x80 != 0 {
        return Err(Stop::Unread(Reason::LinkFragment));
    }
    if third & 0x08 != 0 {
        return Err(Stop::Other(Protocol::LinkControl));
    }
    let rest = rest.skip(len)?;
    if second & 1 == 0 {
        return Ok((Layer::Ethernet, rest));
    }
    match [rest.byte(0)?, rest.byte(1)?] {
        [control, _] if control & 0x0f == 0x08 => Ok((Layer::Wifi { padded: false }, rest)),
        [_, control] if control & 0x0f == 0x08 => swapped(rest),
        _ => Err(Stop::Other(Protocol::LinkControl)),
    }
}

/// A data frame of an access point that swaps the two bytes of each field. Nothing in the frame says so, but the header
/// behind it must fit.
fn swapped(frame: Part<'_>) -> Step<'_> {
    let (flags, kind) = (frame.byte(0)?, frame.byte(1)?);
    let quality = kind & 0x80 != 0;
    let len = if flags & BOTH_SYSTEMS == BOTH_SYSTEMS { 30 } else { 24 };
    let rest = frame.skip(if quality { len + 2 } else { len })?;
    let whole = flags & (MORE_FRAGMENTS | PROTECTED) == 0 && frame.be16(22)? & 0x0f == 0;
    match [rest.byte(0)?, rest.byte(1)?, rest.byte(2)?] {
        [0xaa, 0xaa, 0x03] if whole => Ok((Layer::Llc, rest)),
        _ => Err(Stop::Unread(Reason::Tunnel)),
    }
}

/// Frames that a sniffer forwards (TaZmen Sniffer Protocol).
fn tzsp(rest: Part<'_>) -> Option<Step<'_>> {
    (rest.byte(0).ok()? == 1).then(|| tzsp_content(rest))
}

fn tzsp_content(rest: Part<'_>) -> Step<'_> {
    let (kind, link) = (rest.byte(1)?, rest.be16(2)?);
    if kind > 1 {
        return Err(Stop::Other(Protocol::LinkControl));
    }
    let mut rest = rest.skip(4)?;
    loop {
        match rest.byte(0)? {
            0 => rest = rest.skip(1)?,
            1 => break,
            _ => rest = rest.skip(2 + usize::from(rest.byte(1)?))?,
        }
    }
    let rest = rest.skip(1)?;
    match link {
        1 => Ok((Layer::Ethernet, rest)),
        18 => Ok((Layer::Wifi { padded: false }, rest)),
        119 => Ok((Layer::Link(LinkType::PRISM), rest)),
        127 => Ok((Layer::Link(LinkType::AVS), rest)),
        _ => Err(Stop::Unread(Reason::Tunnel)),
    }
}

/// Generic Routing Encapsulation (RFC 2784, 2890, 1701), that of PPTP (RFC 2637), and ERSPAN.
pub(super) fn gre(rest: Part<'_>) -> Step<'_> {
    const CHECKSUM: u16 = 0x8000;
    const ROUTING: u16 = 0x4000;
    const KEY: u16 = 0x2000;
    const SEQUENCE: u16 = 0x1000;
    const ACKNOWLEDGEMENT: u16 = 0x0080;
    let (flags, kind) = (rest.be16(0)?, rest.be16(2)?);
    let word = |flag: u16| if flags & flag == 0 { 0 } else { 4 };
    match flags & 7 {
        0 => {}
        1 if kind == 0x880b => {
            let len = usize::from(rest.be16(4)?);
            let rest = rest.skip(8 + word(SEQUENCE) + word(ACKNOWLEDGEMENT))?.limit(len);
            if flags & SEQUENCE == 0 || len == 0 {
                return Err(Stop::Other(Protocol::Ip(47)));
            }
            return Ok((Layer::Ppp, rest));
        }
        _ => return Err(Stop::Unread(Reason::Tunnel)),
    }
    let mut rest = rest.skip(4 + word(CHECKSUM | ROUTING) + word(KEY) + word(SEQUENCE))?;
    if flags & ROUTING != 0 {
        // Source routes, of which an empty one is the last.
        loop {
            let len = usize::from(rest.byte(3)?);
            rest = rest.skip(4 + len)?;
            if len == 0 {
                break;
            }
        }
    }
    match kind {
        // ERSPAN of types I and II.
        0x88be => Ok((Layer::Ethernet, rest.skip(if flags & SEQUENCE == 0 { 0 } else { 8 })?)),
        // Type III, whose last bit announces eight bytes more.
        0x22eb => {
            let more = if rest.byte(11)? & 1 == 0 { 0 } else { 8 };
            Ok((Layer::Ethernet, rest.skip(12 + more)?))
        }
        // Web cache redirection, of which version 2 has a header.
        0x883e if rest.looks_like_ip() => Ok((Layer::Ip, rest)),
        0x883e => Ok((Layer::Ip, rest.skip(4)?)),
        // Keep-alives of Cisco, and the next hop resolution protocol.
        0x0000 | 0x2001 => Err(Stop::Other(Protocol::Ip(47))),
        kind => Ok((Layer::EtherType(kind), rest)),
    }
}
