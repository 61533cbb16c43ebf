//! The first action of every agent with a packet.

use crate::event::Cause;
use crate::machine::{Out, Side};
use crate::wire::{Damage, Packet};

/// The first action of every IP hop: drops a packet with a wrong header checksum.
//= west97#4.3: a packet whose IP header is damaged is dropped by the IP layer that receives it
#[inline]
pub(super) fn admit(from: Side, packet: Packet, out: &mut Out) -> Option<Packet> {
    if packet.damage == Damage::Ip {
        out.discard(from.other(), packet, Cause::IpChecksum);
        return None;
    }
    Some(packet)
}
