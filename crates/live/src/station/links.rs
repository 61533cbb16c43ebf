//! Link headers for the packets of split connections.
//!
//! A packet of a split connection may have a copy of payload in place of the frame in which it arrived.
//! Payload can imitate a frame. If it defined a link header, a remote host could select addresses and VLAN
//! tags of frames on the other side. In addition, addresses of third parties may evict an end from the table
//! of neighbours while both ends are silent. So each connection stores its link headers.

use std::collections::{BTreeMap, BTreeSet};

use lasthop_proto::machine::Side;
use lasthop_proto::wire::{FlowKey, Packet};

/// Link headers towards both ends of split connections, by their flows from left to right; empty where unknown.
#[derive(Debug, Default)]
pub(super) struct Links(BTreeMap<FlowKey, [Vec<u8>; 2]>);

impl Links {
    pub fn insert(&mut self, flow: FlowKey, links: [Vec<u8>; 2]) {
        self.0.insert(flow, links);
    }

    pub fn remove(&mut self, flow: FlowKey) {
        self.0.remove(&flow);
    }

    /// Removes all connections but `flows`.
    pub fn retain(&mut self, flows: &BTreeSet<FlowKey>) {
        self.0.retain(|flow, _| flows.contains(flow));
    }

    /// Whether the connection with this flow from left to right is stored.
    pub fn has(&self, flow: FlowKey) -> bool {
        self.0.contains_key(&flow)
    }

    /// The link header of `packet` towards `side`, if its connection is stored.
    pub fn towards(&self, side: Side, packet: &Packet) -> Option<Vec<u8>> {
        let flow = packet.flow()?;
        let key = if side == Side::Right { flow } else { flow.reversed() };
        let link = &self.0.get(&key)?[side.index()];
        (!link.is_empty()).then(|| link.clone())
    }
}

#[cfg(test)]
mod tests {
    use lasthop_observe::Nothing;
    use lasthop_proto::wire::{Addr, Body, Flags, Segment, Seq};

    use super::super::Around;
    use super::*;
    use crate::frame;
    use crate::header::VNET;
    use crate::neighbours::{Neighbour, Neighbours};

    const HOSTS: [Addr; 2] = [Addr::v4(10, 0, 0, 1), Addr::v4(10, 1, 0, 1)];

    fn link(to: u8, from: u8) -> Vec<u8> {
        [&[to; 6][..], &[from; 6], &[8, 0]].concat()
    }

    /// A packet to the right with this payload.
    fn packet(payload: &[u8]) -> Packet {
        let [src, dst] = HOSTS;
        let segment = Segment::new(80, 9, Seq(1), Seq(1), Flags::ACK);
        Packet::tcp(src, dst, segment, Body::copy_of(payload))
    }

    /// The link header with which `packet` leaves.
    fn leaves(packet: &Packet, mut neighbours: Neighbours, links: &Links) -> Option<Vec<u8>> {
        let (mut sink, mut unroutable) = (Nothing, 0);
        let mut around = Around {
            sink: &mut sink,
            ports: &mut [],
            neighbours: &mut neighbours,
            unroutable: &mut unroutable,
            plane: None,
            current: None,
            links: Some(links),
        };
        let frame = around.frame(Side::Right, packet)?;
        Some(frame.bytes()[VNET..VNET + 14].to_vec())
    }

    /// A server sends a frame as payload, with the addresses of both hosts and other link-layer addresses.
    #[test]
    fn payload_that_imitates_a_frame_defines_no_link_header() {
        let imitation = frame::write(&packet(&[7; 100]), &link(6, 6)).unwrap();
        let packet = packet(imitation.bytes());
        assert_eq!(frame::own_link_header(&packet), Some(&link(6, 6)[..]), "it imitates one");
        let mut neighbours = Neighbours::default();
        neighbours.insert(Side::Left, HOSTS[0], Neighbour::untagged([1; 6]));
        neighbours.insert(Side::Right, HOSTS[1], Neighbour::untagged([2; 6]));
        assert_eq!(leaves(&packet, neighbours, &Links::default()), Some(link(2, 1)));
    }

    #[test]
    fn an_end_that_the_table_of_neighbours_has_lost_is_reached() {
        let packet = packet(&[7; 100]);
        let flow = packet.flow().unwrap();
        let mut links = Links::default();
        assert_eq!(leaves(&packet, Neighbours::default(), &links), None);
        links.insert(flow, [Vec::new(), link(4, 3)]);
        assert_eq!(leaves(&packet, Neighbours::default(), &links), Some(link(4, 3)));
        links.retain(&BTreeSet::from([flow]));
        assert!(links.has(flow));
        links.remove(flow);
        assert!(!links.has(flow));
    }
}
