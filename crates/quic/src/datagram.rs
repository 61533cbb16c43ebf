//! UDP in IP (RFC 768), as packets of the path: what is behind the IP header is the body.

use lasthop_proto::event::Cause;
use lasthop_proto::machine::{Out, Side};
use lasthop_proto::wire::checksum::Sum;
use lasthop_proto::wire::{Body, Damage, FlowKey, Packet, PacketId, Transport};
use quinn_proto::EcnCodepoint;

/// The protocol number of UDP.
pub(crate) const UDP: u8 = 17;

/// Length of the UDP header in bytes.
const HEADER: usize = 8;

/// Sends a datagram of `flow` with `payload`.
pub(crate) fn send(
    flow: FlowKey,
    ecn: Option<EcnCodepoint>,
    payload: &[u8],
    cause: Cause,
    side: Side,
    out: &mut Out,
) {
    let len = (HEADER + payload.len()) as u32;
    let mut bytes = vec![0; len as usize];
    bytes[0..2].copy_from_slice(&flow.src_port.to_be_bytes());
    bytes[2..4].copy_from_slice(&flow.dst_port.to_be_bytes());
    bytes[4..6].copy_from_slice(&(len as u16).to_be_bytes());
    let mut sum = Sum::default();
    sum.pseudo_header(flow.src, flow.dst, UDP, len);
    sum.bytes(&bytes[..HEADER]);
    sum.copy(payload, &mut bytes[HEADER..]);
    //= rfc768: a checksum of zero is sent as all ones
    let checksum = if sum.checksum() == 0 { 0xffff } else { sum.checksum() };
    bytes[6..8].copy_from_slice(&checksum.to_be_bytes());
    let packet = Packet {
        id: PacketId(0),
        src: flow.src,
        dst: flow.dst,
        transport: Transport::Other(UDP),
        body: Body::Bytes { frame: bytes.into(), from: 0, len },
        tos: ecn.map_or(0, |ecn| ecn as u8),
        ttl: 64,
        damage: Damage::None,
        urgent: false,
        piece: 0,
    };
    out.originate(side, packet, cause);
}

/// What a datagram carries.
pub(crate) fn payload(packet: &Packet) -> Option<&[u8]> {
    let Body::Bytes { frame, from, len } = &packet.body else { return None };
    let (from, len) = (*from as usize, *len as usize);
    frame.get(from..from + len)?.get(HEADER..)
}
