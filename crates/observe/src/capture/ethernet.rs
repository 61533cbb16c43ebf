//! Headers between the link and IP: Ethernet, VLAN tags, LLC, PPP, Frame Relay and MPLS.

use super::content::{Protocol, Reason};
use super::part::{Layer, Part, Step, Stop};

pub(super) const PPPOE_SESSION: u16 = 0x8864;

/// Ethernet II, or 802.3 with its length in place of the type.
#[inline]
pub(super) fn ethernet(frame: Part<'_>) -> Step<'_> {
    let kind = frame.be16(12)?;
    if kind >= 0x0600 {
        return Ok((Layer::EtherType(kind), frame.skip(14)?));
    }
    // Inter-switch link of Cisco: a whole frame behind 26 bytes.
    if let [0x01 | 0x03, 0x00, 0x0c, 0x00, 0x00, ..] = frame.bytes {
        return Ok((Layer::Ethernet, frame.skip(26)?));
    }
    let rest = frame.skip(14)?;
    // Senders that leave segmentation to hardware write no length.
    let rest = if kind == 0 { rest } else { rest.limit(kind.into()) };
    match rest.be16(0)? {
        0xffff => Err(Stop::Other(Protocol::Llc(0xff))),
        _ => Ok((Layer::Llc, rest)),
    }
}

/// Content by the EtherType `kind`.
#[inline]
pub(super) fn ethertype(kind: u16, rest: Part<'_>) -> Step<'_> {
    match kind {
        0x0800 | 0x86dd => Ok((Layer::Ip, rest)),
        // VLAN tags (IEEE 802.1Q, 802.1ad, and what preceded them).
        0x8100 | 0x88a8 | 0x9100 | 0x9200 | 0x9300 => {
            let kind = rest.be16(2)?;
            Ok(behind_tag(kind, rest.skip(4)?))
        }
        _ => rarer(kind, rest),
    }
}

/// Content of a tagged frame: by its type, or by LLC if the field is the length of an 802.3 frame.
#[inline]
fn behind_tag(kind: u16, rest: Part<'_>) -> (Layer, Part<'_>) {
    if kind < 0x0600 {
        return (Layer::Llc, rest.limit(kind.into()));
    }
    (Layer::EtherType(kind), rest)
}

/// A frame on the port of an Ethernet switch towards its processor: `len` bytes of the switch's tag follow the addresses.
pub(super) fn switch_tag(len: usize, frame: Part<'_>) -> Step<'_> {
    let kind = frame.be16(12 + len)?;
    Ok(behind_tag(kind, frame.skip(14 + len)?))
}

fn rarer(kind: u16, rest: Part<'_>) -> Step<'_> {
    match kind {
        PPPOE_SESSION => pppoe(rest),
        0x8847 | 0x8848 => Ok((Layer::Mpls, rest)),
        // Transparent Ethernet bridging, and the payload of ERSPAN is in `tunnel`.
        0x6558 => Ok((Layer::Ethernet, rest)),
        0x880b => Ok((Layer::Ppp, rest)),
        0x8870 => Ok((Layer::Llc, rest)),
        // Provider backbone bridging: a service tag, then a whole frame.
        0x88e7 => Ok((Layer::Ethernet, rest.skip(4)?)),
        // The tag of a virtual network card.
        0x8926 => Ok((Layer::EtherType(rest.be16(4)?), rest.skip(6)?)),
        // Cisco FabricPath: a tag, then the whole frame of the host.
        0x8903 => Ok((Layer::Ethernet, rest.skip(2)?)),
        0x22f3 => trill(rest),
        0x4305 => batman(rest),
        // Cisco metadata: version, length in units of four bytes, options, then the type.
        0x8909 => Ok((Layer::EtherType(rest.be16(6)?), rest.skip(8)?)),
        0x88e5 => macsec(rest),
        0x894f => super::tunnel::service_header(rest),
        0x00fe => network_identifier(rest),
        known => Err(match Protocol::of_ethertype(known) {
            Some(protocol) => Stop::Other(protocol),
            None => Stop::Unread(Reason::EtherType(known)),
        }),
    }
}

/// TRILL (RFC 6325): six bytes and options, then a whole frame.
fn trill(rest: Part<'_>) -> Step<'_> {
    let options = 4 * usize::from(rest.be16(0)? >> 6 & 0x1f);
    Ok((Layer::Ethernet, rest.skip(6 + options)?))
}

/// B.A.T.M.A.N. advanced (version 15): unicast packets carry a whole frame.
fn batman(rest: Part<'_>) -> Step<'_> {
    const VERSION: u8 = 15;
    if rest.byte(1)? != VERSION {
        return Err(Stop::Unread(Reason::Tunnel));
    }
    match rest.byte(0)? {
        0x40 => Ok((Layer::Ethernet, rest.skip(10)?)),
        0x41 => Err(Stop::Unread(Reason::LinkFragment)),
        0x42 => Ok((Layer::Ethernet, rest.skip(18)?)),
        _ => Err(Stop::Other(Protocol::LinkControl)),
    }
}

fn pppoe(rest: Part<'_>) -> Step<'_> {
    let (code, len) = (rest.byte(1)?, rest.be16(4)?);
    if code != 0 {
        return Err(Stop::Other(Protocol::Ether(0x8863)));
    }
    Ok((Layer::Ppp, rest.skip(6)?.limit(len.into())))
}

/// MACsec may protect frames without encrypting them.
fn macsec(rest: Part<'_>) -> Step<'_> {
    const ENCRYPTED_OR_CHANGED: u8 = 0x0c;
    const CHANNEL: u8 = 0x20;
    let control = rest.byte(0)?;
    if control & ENCRYPTED_OR_CHANGED != 0 {
        return Err(Stop::Unread(Reason::EncryptedMacsec));
    }
    let len = if control & CHANNEL == 0 { 6 } else { 14 };
    Ok((Layer::EtherType(rest.be16(len)?), rest.skip(len + 2)?))
}

/// Logical link control, also with a SNAP header.
pub(super) fn llc(rest: Part<'_>) -> Step<'_> {
    let (destination, control) = (rest.byte(0)?, rest.byte(2)?);
    // Unnumbered frames have a control field of one byte, others of two.
    let len = if control & 3 == 3 { 3 } else { 4 };
    match destination & 0xfe {
        0xaa => snap(rest.skip(len)?),
        0x06 => Ok((Layer::Ip, rest.skip(len)?)),
        0xfe => network_identifier(rest.skip(len)?),
        // Null, management, STP, ISO 8208, IPX, NetBIOS, SNA.
        0x00 | 0x02 | 0x42 | 0x7e | 0xe0 | 0xf0 | 0x04 | 0x08 | 0xf4 | 0xf8 | 0xfc => {
            Err(Stop::Other(Protocol::Llc(destination & 0xfe)))
        }
        unknown => Err(Stop::Unread(Reason::Llc(unknown))),
    }
}

pub(super) fn snap(rest: Part<'_>) -> Step<'_> {
    let (high, kind) = (rest.be32(0)? >> 8, rest.be16(3)?);
    let rest = rest.skip(5)?;
    match (high, kind) {
        // Encapsulated Ethernet, and that of bridges (RFC 1042, IEEE 802.1H).
        (0x00_0000 | 0x00_00f8, kind) => Ok((Layer::EtherType(kind), rest)),
        // Bridged frames (RFC 2427, RFC 2684, which pads them).
        (0x00_80c2, 0x0001 | 0x0007) => {
            let rest = if rest.looks_like_ethernet() { rest } else { rest.skip(2)? };
            Ok((Layer::Ethernet, rest))
        }
        (0x00_80c2 | 0x00_000c, _) => Err(Stop::Other(Protocol::Llc(0xaa))),
        _ => Err(Stop::Unread(Reason::Llc(0xaa))),
    }
}

/// The network layer protocol identifier of ISO/IEC TR 9577.
fn network_identifier(rest: Part<'_>) -> Step<'_> {
    match rest.byte(0)? {
        0xcc | 0x8e => Ok((Layer::Ip, rest.skip(1)?)),
        0xcf => Ok((Layer::Ppp, rest.skip(1)?)),
        // CLNP, ES-IS, IS-IS, and the null layer.
        0x81..=0x83 | 0x00 => Err(Stop::Other(Protocol::Llc(0xfe))),
        _ => Err(Stop::Unread(Reason::Llc(0xfe))),
    }
}

/// PPP in HDLC-like framing, or the Cisco HDLC that the same link types carry.
pub(super) fn hdlc(rest: Part<'_>) -> Step<'_> {
    match rest.bytes {
        [0x0f | 0x8f, 0x00, ..] => Ok((Layer::CiscoHdlc, rest)),
        // The second byte distinguishes the two.
        [0x0f | 0x8f] => Err(rest.missing(2)),
        _ => Ok((Layer::Ppp, rest)),
    }
}

/// PPP (RFC 1661): address and control may be left out, and the protocol may be a single, odd byte.
pub(super) fn ppp(rest: Part<'_>) -> Step<'_> {
    let rest = match rest.bytes {
        [0xff, 0x03, ..] => rest.skip(2)?,
        // The address, and no protocol has this number.
        [0xff] => return Err(rest.missing(2)),
        _ => rest,
    };
    let first = rest.byte(0)?;
    let (protocol, rest) = if first & 1 == 1 {
        (u16::from(first), rest.skip(1)?)
    } else {
        (rest.be16(0)?, rest.skip(2)?)
    };
    match protocol {
        0x0021 | 0x0057 => Ok((Layer::Ip, rest)),
        0x0281 | 0x0283 => Ok((Layer::Mpls, rest)),
        0x0031 => bridged(rest),
        0x003d => multilink(rest),
        // Compressed TCP/IP headers (RFC 1144, 2507, 3095), compressed datagrams (RFC 1962).
        0x002d | 0x002f | 0x0003 | 0x0005 | 0x0061 | 0x0063 | 0x0065 | 0x0067 | 0x0069 | 0x2063
        | 0x2065 | 0x2067 | 0x2069 | 0x00fb | 0x00fd => Err(Stop::Unread(Reason::Compressed)),
        0x0053 | 0x0055 => Err(Stop::Unread(Reason::EncryptedTunnel)),
        // Control protocols, and network protocols other than IP.
        0x8000.. | 0x0023..=0x002b | 0x003f | 0x004d | 0x004f => {
            Err(Stop::Other(Protocol::Ppp(protocol)))
        }
        unknown => Err(Stop::Unread(Reason::Ppp(unknown))),
    }
}

/// Bridged frames (RFC 3518): flags, type of the frame, and for 802.3 the frame itself.
fn bridged(rest: Part<'_>) -> Step<'_> {
    match rest.byte(1)? {
        1 => Ok((Layer::Ethernet, rest.skip(2)?)),
        _ => Err(Stop::Other(Protocol::LinkControl)),
    }
}

/// Multilink PPP (RFC 1990): only packets that one frame holds as a whole are read.
fn multilink(rest: Part<'_>) -> Step<'_> {
    match rest.byte(0)? & 0xc0 {
        0xc0 => Ok((Layer::Ppp, rest.skip(4)?)),
        _ => Err(Stop::Unread(Reason::LinkFragment)),
    }
}

/// Cisco HDLC: address, control, EtherType.
pub(super) fn cisco_hdlc(rest: Part<'_>) -> Step<'_> {
    let kind = rest.be16(2)?;
    match kind {
        // Its keep-alives have the number of RARP.
        0x8035 | 0x2000 => Err(Stop::Other(Protocol::LinkControl)),
        kind => Ok((Layer::EtherType(kind), rest.skip(4)?)),
    }
}

/// Frame Relay: an address of two to four bytes, then RFC 2427 or the EtherType of Cisco's encapsulation.
pub(super) fn frame_relay(rest: Part<'_>) -> Step<'_> {
    let mut len = 1;
    // The address ends with the byte whose last bit is set.
    while rest.byte(len)? & 1 == 0 {
        len += 1;
        if len > 3 {
            return Err(Stop::Unread(Reason::Malformed));
        }
    }
    let rest = rest.skip(len + 1)?;
    if rest.byte(0)? != 0x03 {
        return Ok((Layer::EtherType(rest.be16(0)?), rest.skip(2)?));
    }
    let mut rest = rest.skip(1)?;
    // A zero byte may align what follows.
    if rest.byte(0)? == 0 {
        rest = rest.skip(1)?;
    }
    match rest.byte(0)? {
        0x80 => snap(rest.skip(1)?),
        // Signalling.
        0x08 | 0x09 => Err(Stop::Other(Protocol::LinkControl)),
        _ => network_identifier(rest),
    }
}

/// One MPLS label (RFC 3032). The content after the last one is guessed from its first bits (RFC 4928).
pub(super) fn mpls(rest: Part<'_>) -> Step<'_> {
    const ADDRESSES_AND_TYPE: usize = 14;
    let label = rest.be32(0)?;
    let rest = rest.skip(4)?;
    if label & 0x100 == 0 {
        return Ok((Layer::Mpls, rest));
    }
    let first = rest.byte(0)? >> 4;
    match first {
        // Without a control word the address of a pseudowire's frame may begin like an IP header.
        4 | 6 if rest.bytes.len() < ADDRESSES_AND_TYPE => Err(rest.missing(ADDRESSES_AND_TYPE)),
        4 | 6 if rest.looks_like_ethernet() && !rest.is_ip() => Ok((Layer::Ethernet, rest)),
        4 | 6 if rest.looks_like_ip() => Ok((Layer::Ip, rest)),
        // A control word (RFC 4448), or an address that begins so.
        0 if !rest.looks_like_ethernet() => Ok((Layer::Ethernet, rest.skip(4)?)),
        // The associated channel (RFC 5586).
        1 if !rest.looks_like_ethernet() => Err(Stop::Other(Protocol::LinkControl)),
        _ if rest.looks_like_ethernet() => Ok((Layer::Ethernet, rest)),
        4 | 6 => Ok((Layer::Ip, rest)),
        _ => Err(Stop::Unread(Reason::Tunnel)),
    }
}
