//! Converts datagrams of the QUIC stack to packets of the path.

use lasthop_proto::event::Cause;
use lasthop_proto::machine::{Out, Side};
use lasthop_proto::udp;
use lasthop_proto::wire::FlowKey;
use quinn_proto::EcnCodepoint;

/// Sends a datagram of `flow` with `payload`.
pub(crate) fn send(
    flow: FlowKey,
    ecn: Option<EcnCodepoint>,
    payload: &[u8],
    cause: Cause,
    side: Side,
    out: &mut Out,
) {
    let mut bytes = Vec::with_capacity(udp::HEADER as usize + payload.len());
    bytes.resize(udp::HEADER as usize, 0);
    bytes.extend_from_slice(payload);
    let packet =
        udp::packet(flow, bytes).with(|packet| packet.tos = ecn.map_or(0, |ecn| ecn as u8));
    out.originate(side, packet, cause);
}
