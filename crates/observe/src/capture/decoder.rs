//! From captured frames to the packets in them.

use lasthop_proto::units::Time;
use lasthop_proto::wire::parse::{IpLayer, Mode, ParseError, View, ip_layer, transport};
use lasthop_proto::wire::{Addr, Damage};

use super::content::{Content, Protocol, Reason};
use super::fragments::{Fragment, Fragments, Key};
use super::part::{Layer, Part, Step, Stop};
use super::{Frame, ethernet, link, tunnel, wifi};

/// Headers of a frame that are read, each VLAN tag, label and extension header counted as one.
pub const MAX_HEADERS: u32 = 32;

const HOP_BY_HOP: u8 = 0;
const IP_IN_IP: u8 = 4;
const TCP: u8 = 6;
const UDP: u8 = 17;
const IPV6: u8 = 41;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const GRE: u8 = 47;
const ESP: u8 = 50;
const AUTHENTICATION: u8 = 51;
const DESTINATION: u8 = 60;
const ETHERNET_IN_IP: u8 = 97;
const COMPRESSED: u8 = 108;
const L2TP: u8 = 115;
const MOBILITY: u8 = 135;
const MPLS_IN_IP: u8 = 137;
const HOST_IDENTITY: u8 = 139;
const SHIM6: u8 = 140;

/// Finds the packets in frames: steps over link headers and tunnels, and reassembles fragments.
///
/// A frame has one [`Content`], which is that of its innermost packet. An 802.11 frame that aggregates several has
/// one for each. A fragment's content is reported when its packet is complete or given up, at the latest by
/// [`Decoder::finish`].
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    verify: bool,
    fragments: Fragments,
}

/// What all headers of one frame share.
#[derive(Clone, Copy)]
struct Context {
    at: Time,
    /// Headers that may still follow.
    left: u32,
    /// Whether an outer header's checksum is wrong.
    damaged: bool,
}

impl Decoder {
    /// A decoder that has seen nothing. It compares checksums of packets that were captured whole if `verify` is set.
    pub fn new(verify: bool) -> Decoder {
        Decoder { verify, ..Decoder::default() }
    }

    /// Gives `out` the content of a frame. It may be nothing, or that of earlier fragments as well.
    #[inline]
    pub fn frame(&mut self, frame: &Frame<'_>, mut out: impl FnMut(Content)) {
        let context = Context { at: frame.at, left: MAX_HEADERS, damaged: false };
        // A length on the wire below the captured length is ignored.
        let part = Part::new(frame.bytes, frame.wire_len as usize);
        match link::first(frame.link, part) {
            Ok((layer, part)) => self.walk(context, layer, part, &mut out),
            Err(stop) => out(stop.into()),
        }
    }

    /// Reports the fragments whose packets are not complete.
    pub fn finish(&mut self, mut out: impl FnMut(Content)) {
        self.fragments.finish(&mut out);
    }

    /// Skips headers up to the innermost packet.
    fn walk(
        &mut self,
        mut context: Context,
        mut layer: Layer,
        mut part: Part<'_>,
        out: &mut impl FnMut(Content),
    ) {
        loop {
            let Some(left) = context.left.checked_sub(1) else {
                return out(Content::Unread(Reason::TooDeep));
            };
            context.left = left;
            let step = match layer {
                Layer::Ip => self.ip(&mut context, part, out),
                Layer::Subframes => return self.subframes(context, part, out),
                _ => below_ip(layer, part).map(Some),
            };
            match step {
                Ok(Some(next)) => (layer, part) = next,
                Ok(None) => return,
                Err(stop) => return out(stop.into()),
            }
        }
    }

    /// The aggregated frames of an 802.11 frame.
    fn subframes(&mut self, context: Context, part: Part<'_>, out: &mut impl FnMut(Content)) {
        let mut rest = Some(part);
        while let Some(part) = rest {
            match wifi::subframe(part) {
                Ok((content, next)) => {
                    // Its nesting in itself is bounded by the headers that are left.
                    self.walk_dyn(context, Layer::Llc, content, out);
                    rest = next;
                }
                Err(stop) => return out(stop.into()),
            }
        }
    }

    /// [`Decoder::walk`] where it calls itself: one type for all depths.
    fn walk_dyn(
        &mut self,
        context: Context,
        layer: Layer,
        part: Part<'_>,
        mut out: &mut dyn FnMut(Content),
    ) {
        self.walk(context, layer, part, &mut out);
    }

    /// An IP packet: reports its content, or answers the tunnel in it.
    #[inline]
    fn ip<'a>(
        &mut self,
        context: &mut Context,
        part: Part<'a>,
        out: &mut impl FnMut(Content),
    ) -> Result<Option<(Layer, Part<'a>)>, Stop> {
        let mode = Mode { verify: self.verify, wire_len: Some(part.wire) };
        let ip = ip_layer(part.bytes, mode).map_err(|error| stop(part, &error))?;
        context.damaged |= ip.damaged;
        if ip.protocol == TCP && ip.fragment.is_none() {
            out(Content::Packet(segment(context, part, &ip, mode)?));
            return Ok(None);
        }
        self.beyond(context, part, ip, out)
    }

    /// Content after an IP header that is not TCP.
    fn beyond<'a>(
        &mut self,
        context: &mut Context,
        part: Part<'a>,
        mut ip: IpLayer,
        out: &mut impl FnMut(Content),
    ) -> Result<Option<(Layer, Part<'a>)>, Stop> {
        let mode = Mode { verify: self.verify, wire_len: Some(part.wire) };
        let whole = Part::new(part.bytes, ip.total).limit(ip.total);
        loop {
            let rest = whole.skip(ip.header)?;
            if let Some(place) = ip.fragment {
                let (at, more) = (8 * u32::from(place & 0x1fff), place & 0x2000 != 0);
                let id = u32::from(ip.id);
                self.fragment(*context, &ip, Piece { id, at, more, rest }, out)?;
                return Ok(None);
            }
            match ip.protocol {
                TCP => {
                    out(Content::Packet(segment(context, part, &ip, mode)?));
                    return Ok(None);
                }
                UDP => return tunnel::udp(rest).map(Some),
                HOP_BY_HOP | DESTINATION | ROUTING | FRAGMENT | MOBILITY | HOST_IDENTITY
                | SHIM6
                    if !ip.src.is_v4() =>
                {
                    if ip.protocol == FRAGMENT && rest.be16(2)? & 0xfff9 != 0 {
                        let (place, id) = (rest.be16(2)?, rest.be32(4)?);
                        let (at, more) = (u32::from(place & 0xfff8), place & 1 != 0);
                        ip.protocol = rest.byte(0)?;
                        let rest = rest.skip(8)?;
                        self.fragment(*context, &ip, Piece { id, at, more, rest }, out)?;
                        return Ok(None);
                    }
                    extension(&mut ip, rest)?;
                }
                AUTHENTICATION => {
                    let len = 4 * (usize::from(rest.byte(1)?) + 2);
                    ip.protocol = rest.byte(0)?;
                    ip.header += len;
                }
                IP_IN_IP | IPV6 => return Ok(Some((Layer::Ip, rest))),
                GRE => return Ok(Some((Layer::Gre, rest))),
                ESP => return Err(Stop::Unread(Reason::Esp)),
                COMPRESSED => return Err(Stop::Unread(Reason::Compressed)),
                // Two bytes of header.
                ETHERNET_IN_IP => return Ok(Some((Layer::Ethernet, rest.skip(2)?))),
                MPLS_IN_IP => return Ok(Some((Layer::Mpls, rest))),
                // Its data sessions; session 0 is control.
                L2TP if rest.be32(0)? != 0 => return Err(Stop::Unread(Reason::Tunnel)),
                protocol => {
                    // ICMP that quotes TCP is of interest to some.
                    let view = transport(part.bytes, &ip, mode);
                    out(match view {
                        Ok(view) if view.transport.opaque().is_none() => {
                            Content::Packet(with_damage(context, view))
                        }
                        _ => Content::Other(Protocol::Ip(protocol)),
                    });
                    return Ok(None);
                }
            }
            // An extension header was stepped over.
            let Some(left) = context.left.checked_sub(1) else {
                return Err(Stop::Unread(Reason::TooDeep));
            };
            context.left = left;
        }
    }

    /// A fragment: stores it, and reads the packet if it is complete.
    fn fragment(
        &mut self,
        context: Context,
        ip: &IpLayer,
        piece: Piece<'_>,
        out: &mut impl FnMut(Content),
    ) -> Result<(), Stop> {
        match ip.protocol {
            ESP => return Err(Stop::Unread(Reason::Esp)),
            COMPRESSED => return Err(Stop::Unread(Reason::Compressed)),
            IP_IN_IP | TCP | UDP | IPV6 | GRE | AUTHENTICATION | ETHERNET_IN_IP | L2TP
            | MPLS_IN_IP => {}
            HOP_BY_HOP | ROUTING | DESTINATION | FRAGMENT if !ip.src.is_v4() => {}
            other => return Err(Stop::Other(Protocol::Ip(other))),
        }
        let protocol = if ip.src.is_v4() { ip.protocol } else { 0 };
        let key = Key { src: ip.src, dst: ip.dst, protocol, id: piece.id };
        let fragment = Fragment {
            key,
            at: piece.at,
            len: piece.rest.wire,
            more: piece.more,
            bytes: piece.rest.bytes,
            protocol: ip.protocol,
            tos: ip.tos,
            ttl: ip.ttl,
        };
        let Some(whole) = self.fragments.insert(context.at, fragment, out) else { return Ok(()) };
        let part = Part::new(&whole.bytes, whole.wire);
        let ip = IpLayer {
            protocol: whole.protocol,
            tos: whole.tos,
            ttl: whole.ttl,
            header: 0,
            total: whole.wire,
            fragment: None,
            ..*ip
        };
        let mut inner = context;
        if let Some((layer, part)) = self.beyond(&mut inner, part, ip, out)? {
            self.walk_dyn(inner, layer, part, out);
        }
        Ok(())
    }
}

/// The outermost IP packet of a frame, and the length on the wire from there to the frame's end.
pub(super) fn outermost<'a>(frame: &Frame<'a>) -> Option<(&'a [u8], usize)> {
    let part = Part::new(frame.bytes, frame.wire_len as usize);
    let (mut layer, mut part) = link::first(frame.link, part).ok()?;
    for _ in 0..MAX_HEADERS {
        match layer {
            Layer::Ip => {
                let version = part.bytes.first()? >> 4;
                return matches!(version, 4 | 6).then_some((part.bytes, part.wire));
            }
            Layer::Subframes => return None,
            _ => (layer, part) = below_ip(layer, part).ok()?,
        }
    }
    None
}

/// A fragment's place in its packet, and its bytes.
struct Piece<'a> {
    id: u32,
    at: u32,
    more: bool,
    rest: Part<'a>,
}

/// Headers between the link and IP.
#[inline]
fn below_ip(layer: Layer, part: Part<'_>) -> Step<'_> {
    match layer {
        Layer::Ethernet => ethernet::ethernet(part),
        Layer::EtherType(kind) => ethernet::ethertype(kind, part),
        Layer::Llc => ethernet::llc(part),
        Layer::Ppp => ethernet::ppp(part),
        Layer::Hdlc => ethernet::hdlc(part),
        Layer::CiscoHdlc => ethernet::cisco_hdlc(part),
        Layer::FrameRelay => ethernet::frame_relay(part),
        Layer::Wifi { padded } => wifi::frame(part, padded),
        Layer::Mpls => ethernet::mpls(part),
        Layer::Gre => tunnel::gre(part),
        Layer::Link(link) => link::first(link, part),
        // They are handled where memory is needed, and never come here.
        Layer::Ip | Layer::Subframes => Ok((layer, part)),
    }
}

#[inline]
fn segment(context: &Context, part: Part<'_>, ip: &IpLayer, mode: Mode) -> Result<View, Stop> {
    match transport(part.bytes, ip, mode) {
        Ok(view) => Ok(with_damage(context, view)),
        Err(error) => Err(stop(Part::new(part.bytes, ip.total), &error)),
    }
}

fn with_damage(context: &Context, mut view: View) -> View {
    if context.damaged && view.damage == Damage::None {
        view.damage = Damage::Ip;
    }
    view
}

/// Why the packet in `part` cannot be read.
#[cold]
fn stop(part: Part<'_>, error: &ParseError) -> Stop {
    match error {
        ParseError::Empty => part.missing(1),
        ParseError::Short { need, .. } => part.missing(*need),
        _ => Stop::Unread(Reason::Malformed),
    }
}

/// Skips an extension header of IPv6.
fn extension(ip: &mut IpLayer, rest: Part<'_>) -> Result<(), Stop> {
    let (next, len) = (rest.byte(0)?, rest.byte(1)?);
    let len = if ip.protocol == FRAGMENT { 8 } else { 8 * (usize::from(len) + 1) };
    if ip.protocol == ROUTING
        && let Some(last) = last_address(rest)?
    {
        ip.dst = last;
    }
    rest.skip(len)?;
    ip.protocol = next;
    ip.header += len;
    Ok(())
}

/// The final destination of a packet that is underway by a routing header: TCP's checksum and connection have that one.
fn last_address(routing: Part<'_>) -> Result<Option<Addr>, Stop> {
    const SOURCE_ROUTE: u8 = 0;
    const MOBILE_IPV6: u8 = 2;
    const SEGMENTS: u8 = 4;
    if routing.byte(3)? == 0 {
        return Ok(None);
    }
    let at = match routing.byte(2)? {
        SOURCE_ROUTE | MOBILE_IPV6 => {
            let addresses = usize::from(routing.byte(1)?) / 2;
            if addresses == 0 {
                return Ok(None);
            }
            8 + 16 * (addresses - 1)
        }
        // Segments are listed from the last (RFC 8754).
        SEGMENTS => 8,
        _ => return Ok(None),
    };
    let rest = routing.skip(at)?;
    let Some(octets) = rest.bytes.first_chunk::<16>() else { return Err(rest.missing(16)) };
    Ok(Some(Addr::from(core::net::IpAddr::from(*octets))))
}

impl From<Stop> for Content {
    fn from(stop: Stop) -> Content {
        match stop {
            Stop::Other(protocol) => Content::Other(protocol),
            Stop::Unread(reason) => Content::Unread(reason),
        }
    }
}
