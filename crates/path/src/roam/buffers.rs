//! Packets that base stations buffer for an absent host.

use std::collections::VecDeque;

use lasthop_proto::wire::{Packet, PacketId};

/// Buffered packets for one host, by cell.
#[derive(Clone, Debug, Default)]
pub struct HostBuffers(Vec<(u16, VecDeque<Packet>)>);

impl HostBuffers {
    /// Buffers `packet` at `cell`, up to `room` packets; returns the oldest one if it is dropped.
    pub fn put(&mut self, cell: u16, packet: Packet, room: u32) -> Option<Packet> {
        let i = match self.0.iter().position(|(at, _)| *at == cell) {
            Some(i) => i,
            None => {
                self.0.push((cell, VecDeque::new()));
                self.0.len() - 1
            }
        };
        let packets = &mut self.0[i].1;
        packets.push_back(packet);
        if packets.len() > room as usize { packets.pop_front() } else { None }
    }

    /// Removes all packets buffered at `cell`, oldest first.
    pub fn take(&mut self, cell: u16) -> VecDeque<Packet> {
        match self.0.iter().position(|(at, _)| *at == cell) {
            Some(i) => self.0.swap_remove(i).1,
            None => VecDeque::new(),
        }
    }

    /// Another cell with buffered packets.
    pub fn other_than(&self, cell: u16) -> Option<u16> {
        self.0.iter().map(|(at, _)| *at).filter(|at| *at != cell).min()
    }
}

/// Recent copies of packets for one host, and the received ones.
#[derive(Clone, Debug, Default)]
pub struct Copies {
    /// Original and copy.
    made: VecDeque<(PacketId, PacketId)>,
    delivered: VecDeque<PacketId>,
}

/// History per host, as a multiple of the buffer: two cells have copies, and packets in flight are not buffered.
const REMEMBERED: usize = 4;

fn remember<T>(list: &mut VecDeque<T>, item: T, room: u32) {
    list.push_back(item);
    if list.len() > REMEMBERED * room as usize {
        list.pop_front();
    }
}

impl Copies {
    /// Records that `copy` was made of `original`.
    pub fn made(&mut self, original: PacketId, copy: PacketId, room: u32) {
        remember(&mut self.made, (original, copy), room);
    }

    /// Records that the host received this packet.
    pub fn delivered(&mut self, id: PacketId, room: u32) {
        let id = self.original(id).unwrap_or(id);
        remember(&mut self.delivered, id, room);
    }

    fn original(&self, copy: PacketId) -> Option<PacketId> {
        // The list is short, and copies have ascending numbers.
        let at = self.made.partition_point(|(_, other)| *other < copy);
        self.made.get(at).filter(|(_, other)| *other == copy).map(|(original, _)| *original)
    }

    /// Whether the host has received the original of this copy, or another copy.
    pub fn is_delivered(&self, copy: PacketId) -> bool {
        self.original(copy).is_some_and(|original| self.delivered.contains(&original))
    }
}

#[cfg(test)]
mod copies {
    use super::*;

    /// The first copy to arrive makes all others duplicates; old entries are forgotten.
    #[test]
    fn copies_of_delivered_packets_are_recognised() {
        let mut copies = Copies::default();
        let id = PacketId;
        for n in 0..10 {
            copies.made(id(n), id(100 + n), 2);
        }
        copies.delivered(id(109), 2);
        copies.delivered(id(8), 2);
        let known = |copies: &Copies| {
            (100..110).filter(|n| copies.is_delivered(id(*n))).collect::<Vec<_>>()
        };
        assert_eq!(known(&copies), [108, 109]);
        // The buffer has room for two packets, so each list remembers eight entries: the copies from the third one on.
        for n in 0..10 {
            copies.delivered(id(n), 2);
        }
        assert_eq!(known(&copies), (102..110).collect::<Vec<_>>());
        copies.delivered(id(50), 2);
        assert_eq!(known(&copies), (103..110).collect::<Vec<_>>());
    }
}
