//! Fragmentation: packets longer than the link's frames are fragmented, and reassembled at the far end.
//!
//! The header of each fragment counts as part of the link's overhead (bakshi96 3.1: "framing, error
//! correction, segmentation and synchronization"), so the fragments together have the bytes of their packet.
//! The loss of one fragment loses the packet (bakshi96 4.1).

use crate::describe::{Kind, System};
use std::collections::VecDeque;

use crate::air::Station;
use crate::link::frame::{Load, Piece};
use crate::wire::Packet;

/// Descriptor for lists.
pub const FRAGMENTATION: System = System::new(
    Kind::Link,
    "fragmentation",
    "path: fragment = \"128B\"",
    "packets cut to a small wireless MTU; one lost piece loses the packet",
    "bakshi96 3.1, 4.1",
);

/// Limit of packets under reassembly per sender; the oldest is evicted.
const OPEN: usize = 64;

/// Fragments packets at one station.
#[derive(Clone, Debug)]
pub(super) struct Cutter {
    limit: u32,
    next_id: u32,
    /// The present packet for each receiver, with its number and the number of fragments already sent.
    current: Vec<Option<(Packet, u32, u16)>>,
}

impl Cutter {
    /// Makes fragments of at most `limit` bytes, for `receivers` receivers.
    pub fn new(limit: u32, receivers: u8) -> Cutter {
        let current = (0..receivers).map(|_| None).collect();
        Cutter { limit: limit.max(1), next_id: 0, current }
    }

    /// Whether fragments for `to` remain.
    pub fn is_busy(&self, to: Station) -> bool {
        self.current[to.index()].is_some()
    }

    /// The next load for `to`, from the present packet or from the one that `next` returns.
    pub fn take(&mut self, to: Station, next: impl FnOnce() -> Option<Packet>) -> Option<Load> {
        let slot = &mut self.current[to.index()];
        let (packet, id, index) = match slot.take() {
            Some(begun) => begun,
            None => {
                let packet = next()?;
                if packet.wire_len() <= self.limit {
                    return Some(Load::Packet(packet));
                }
                self.next_id = self.next_id.wrapping_add(1);
                (packet, self.next_id, 0)
            }
        };
        let len = packet.wire_len();
        // A packet has at most 65,575 bytes, and a fragment at least one.
        let count = len.div_ceil(self.limit).min(u32::from(u16::MAX)) as u16;
        let bytes = (len - u32::from(index) * self.limit).min(self.limit);
        let piece = Piece { packet: packet.clone(), id, index, count, bytes };
        if index + 1 < count {
            *slot = Some((packet, id, index + 1));
        }
        Some(Load::Piece(piece))
    }

    /// Discards the remaining fragments of the packet with this identity.
    pub fn abandon(&mut self, to: Station, id: u32) {
        let slot = &mut self.current[to.index()];
        if slot.as_ref().is_some_and(|(_, begun, _)| *begun == id) {
            *slot = None;
        }
    }
}

/// A packet under reassembly.
#[derive(Clone, Debug)]
struct Open {
    id: u32,
    have: Vec<bool>,
    left: u16,
}

/// Reassembles packets at one station, from one sender.
#[derive(Clone, Debug, Default)]
pub(super) struct Gatherer {
    open: VecDeque<Open>,
    /// Packets with a lost fragment, while others are under way.
    spoilt: VecDeque<u32>,
}

impl Gatherer {
    /// Adds a fragment. Returns the packet if it is complete.
    pub fn add(&mut self, piece: Piece) -> Option<Packet> {
        let i = match self.open.iter().position(|open| open.id == piece.id) {
            Some(i) => i,
            None => {
                if self.open.len() == OPEN {
                    self.open.pop_front();
                }
                let have = vec![false; usize::from(piece.count)];
                self.open.push_back(Open { id: piece.id, have, left: piece.count });
                self.open.len() - 1
            }
        };
        let open = &mut self.open[i];
        let have = open.have.get_mut(usize::from(piece.index))?;
        if !core::mem::replace(have, true) {
            open.left -= 1;
        }
        if open.left > 0 {
            return None;
        }
        self.open.remove(i);
        Some(piece.packet)
    }

    /// Records the loss of a fragment of the packet with this identity.
    pub fn spoil(&mut self, id: u32) {
        if !self.is_spoilt(id) {
            self.spoilt.push_back(id);
        }
    }

    /// Whether a fragment of the packet was lost.
    pub fn is_spoilt(&self, id: u32) -> bool {
        self.spoilt.contains(&id)
    }

    /// Removes a packet that will not be complete.
    pub fn forget(&mut self, id: u32) {
        self.open.retain(|open| open.id != id);
        self.spoilt.retain(|spoilt| *spoilt != id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Addr, Body, Flags, Segment, Seq, Transport};

    fn packet(len: u32) -> Packet {
        let (src, dst) = (Addr::v4(10, 0, 0, 1), Addr::v4(10, 0, 0, 2));
        let body = Body::Pattern { stream: 1, len: len - 20, offset: 0 };
        let segment = Segment::new(1, 2, Seq(0), Seq(0), Flags::NONE);
        Packet::tcp(src, dst, segment, body).with(|packet| packet.transport = Transport::Other(17))
    }

    #[test]
    fn pieces_have_all_bytes_and_make_the_packet_again() {
        let mut cutter = Cutter::new(128, 1);
        let mut gatherer = Gatherer::default();
        let whole = packet(576);
        let mut next = Some(whole.clone());
        let mut bytes = Vec::new();
        let mut made = None;
        while let Some(Load::Piece(piece)) = cutter.take(Station(0), || next.take()) {
            assert!(made.is_none());
            bytes.push(piece.bytes);
            made = gatherer.add(piece);
        }
        assert_eq!(bytes, [128, 128, 128, 128, 64]);
        assert_eq!(made, Some(whole));
    }

    #[test]
    fn a_packet_that_fits_is_not_cut() {
        let mut cutter = Cutter::new(128, 1);
        let small = packet(128);
        assert_eq!(cutter.take(Station(0), || Some(small.clone())), Some(Load::Packet(small)));
    }

    #[test]
    fn a_piece_that_comes_twice_counts_once() {
        let mut cutter = Cutter::new(128, 1);
        let mut gatherer = Gatherer::default();
        let mut next = Some(packet(256));
        let Some(Load::Piece(first)) = cutter.take(Station(0), || next.take()) else { panic!() };
        assert_eq!(gatherer.add(first.clone()), None);
        assert_eq!(gatherer.add(first), None);
        let Some(Load::Piece(last)) = cutter.take(Station(0), || None) else { panic!() };
        assert!(gatherer.add(last).is_some());
    }
}
