//! State of both ends: sent packets without a status, and packets received out of order.

use std::collections::VecDeque;

use crate::air::Station;
use crate::event::{Cause, LinkNote};
use crate::link::end::Above;
use crate::link::in_order::{Accepted, InOrder, Order};
use crate::link::load::{BitVector, LinkAck, Load};

/// Whether number `a` is after `b`; numbers wrap.
pub(super) fn after(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) > 0
}

/// A sent packet.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub load: Load,
    /// Number of its last transmission.
    pub transmission: u32,
    /// Whether the transmission has ended.
    pub left: bool,
    /// Number of later statuses without this packet.
    pub unknown: u8,
    pub acked: bool,
    /// Whether it was sent more than once.
    pub repeated: bool,
    /// Cause of its pending retransmission.
    pub again: Option<Cause>,
}

/// Unacknowledged packets to one station.
#[derive(Clone, Debug, Default)]
pub(super) struct Outgoing {
    /// Number of the first of `slots`.
    pub first: u32,
    pub slots: VecDeque<Slot>,
    /// Number of the last transmission.
    pub transmission: u32,
}

impl Outgoing {
    /// Asserts the invariants of a window of at most `window` packets.
    pub fn check(&self, window: u16) {
        debug_assert!(self.slots.len() <= usize::from(window), "limit of the window");
        debug_assert!(
            self.slots.iter().all(|slot| !after(slot.transmission, self.transmission)),
            "a slot has a transmission that was never counted"
        );
        debug_assert!(
            self.slots.iter().all(|slot| !(slot.acked && slot.again.is_some())),
            "an acknowledged packet needs no retransmission"
        );
        debug_assert!(
            self.slots.iter().all(|slot| slot.again.is_none() || slot.transmission > 0),
            "an unsent packet needs no retransmission"
        );
    }

    /// Reports unacknowledged packets, and whether they are sent more than once.
    pub fn stored_loads(&self, each: &mut dyn FnMut(&Load, bool)) {
        let slots = self.slots.iter().filter(|slot| !slot.acked);
        slots.for_each(|slot| each(&slot.load, slot.repeated || slot.again.is_some()));
    }

    /// Counts a transmission and returns its number.
    pub fn count(&mut self) -> u32 {
        self.transmission = self.transmission.wrapping_add(1);
        self.transmission
    }

    /// Adds a packet before its first transmission. Returns its index.
    pub fn push(&mut self, load: Load) -> usize {
        let slot = Slot {
            load,
            transmission: 0,
            left: false,
            unknown: 0,
            acked: false,
            repeated: false,
            again: None,
        };
        self.slots.push_back(slot);
        self.slots.len() - 1
    }

    /// Counts a transmission of the packet at index `i`. Returns the packet's number, the transmission's
    /// number, and the packet.
    pub fn send(&mut self, i: usize) -> (u32, u32, Load) {
        let transmission = self.count();
        let slot = &mut self.slots[i];
        slot.repeated = slot.transmission > 0;
        slot.transmission = transmission;
        (slot.left, slot.unknown, slot.again) = (false, 0, None);
        (self.first.wrapping_add(i as u32), transmission, slot.load.clone())
    }

    /// The first packet with a pending retransmission.
    pub fn again(&self) -> Option<(usize, Cause)> {
        let mut slots = self.slots.iter().enumerate();
        slots.find_map(|(i, slot)| Some((i, slot.again?)))
    }

    /// The packet with this number, if it is still stored.
    pub fn slot(&mut self, seq: u32) -> Option<&mut Slot> {
        self.slots.get_mut(seq.wrapping_sub(self.first) as usize)
    }

    /// Handles an acknowledgement. Returns false if it is impossible. Unacknowledged packets sent before the
    /// last transmission heard are lost.
    pub fn take_in(&mut self, ack: &LinkAck) -> bool {
        let covered = ack.cumulative.wrapping_add(1).wrapping_sub(self.first);
        if (covered as i32) < 0 {
            // An old acknowledgement.
            return true;
        }
        let bits = usize::from(ack.vector.len());
        let too_much = covered as usize + bits > self.slots.len();
        if too_much || after(ack.last_received, self.transmission) {
            return false;
        }
        self.slots.drain(..covered as usize);
        self.first = self.first.wrapping_add(covered);
        for i in (0..bits).filter(|i| ack.vector.get(*i as u16)) {
            self.slots[i].acked = true;
            self.slots[i].again = None;
        }
        for slot in self.slots.iter_mut().filter(|slot| !slot.acked && slot.again.is_none()) {
            if !after(slot.transmission, ack.last_received) {
                slot.again = Some(Cause::LinkNack);
            }
        }
        true
    }
}

/// Packets received from one station.
#[derive(Clone, Debug)]
pub(super) struct Incoming {
    buffer: InOrder<Load>,
    /// Number of the last received transmission.
    pub last_received: u32,
    /// Number of received frames.
    pub came: u32,
}

impl Incoming {
    /// Nothing received, with a buffer for `window` packets.
    pub fn new(order: Order, window: u16) -> Incoming {
        Incoming { buffer: InOrder::new(order, window.into()), last_received: 0, came: 0 }
    }

    /// Records a received frame.
    pub fn record_transmission(&mut self, transmission: u32) {
        self.came = self.came.wrapping_add(1);
        if after(transmission, self.last_received) {
            self.last_received = transmission;
        }
    }

    /// Packets between `seq` and the next one in order; negative for an earlier one.
    fn ahead(&self, seq: u32) -> i32 {
        seq.wrapping_sub(self.buffer.expected() as u32) as i32
    }

    /// Whether packet `seq` was received.
    pub fn has(&self, seq: u32) -> bool {
        let ahead = self.ahead(seq);
        ahead < 0 || self.buffer.received().nth(ahead as usize).unwrap_or(false)
    }

    /// Whether a packet is missing before a received one.
    pub fn has_gap(&self) -> bool {
        self.buffer.received().len() > 0
    }

    /// Handles a packet from `from`, received or restored from parity. Delivers packets that are in order
    /// now.
    pub fn receive(&mut self, from: Station, seq: u32, load: Load, above: &mut dyn Above) {
        let number = self.buffer.expected().checked_add_signed(self.ahead(seq).into());
        match number.map_or(Accepted::Old, |number| self.buffer.accept(number, load)) {
            Accepted::Ready | Accepted::Waits => {}
            Accepted::Old => return above.note(from, LinkNote::Duplicate),
            Accepted::OutOfWindow => return above.note(from, LinkNote::OutOfWindow),
        }
        while let Some(load) = self.buffer.take_next() {
            above.release(from, load);
        }
    }

    /// Acknowledgement of the received packets.
    pub fn ack(&self) -> LinkAck {
        let received = self.buffer.received();
        let mut vector = BitVector::zeros(received.len() as u16);
        received.enumerate().filter(|(_, got)| *got).for_each(|(i, _)| vector.set(i as u16));
        LinkAck {
            cumulative: (self.buffer.expected() as u32).wrapping_sub(1),
            vector,
            last_received: self.last_received,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Addr, Body, Flags, Packet, PacketId, Segment, Seq};

    fn load(id: u64) -> Load {
        let segment = Segment::new(1, 2, Seq(0), Seq(0), Flags::ACK);
        let addr = Addr::v4(10, 0, 0, 1);
        let packet = Packet::tcp(addr, addr, segment, Body::copy_of(&[0; 20]));
        Load::Packet(packet.with(|packet| packet.id = PacketId(id)))
    }

    /// Unacknowledged packets are stored, and reported with whether they are sent more than once.
    #[test]
    fn unacknowledged_loads_are_stored_with_their_resend_flag() {
        let mut out = Outgoing::default();
        (1..=5).for_each(|id| {
            let index = out.push(load(id));
            out.send(index);
        });
        out.push(load(6));
        out.slots[1].acked = true;
        out.slots[2].again = Some(Cause::LinkNack);
        out.send(3);
        let mut stored = Vec::new();
        out.stored_loads(&mut |load, again| {
            let Load::Packet(packet) = load else { panic!("{load:?}") };
            stored.push((packet.id.0, again));
        });
        assert_eq!(stored, [(1, false), (3, true), (4, true), (5, false), (6, false)]);
    }
}
