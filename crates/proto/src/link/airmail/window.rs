//! What both ends have: packets that were sent and wait for a status, and packets that came out of order.

use std::collections::VecDeque;

use crate::air::Station;
use crate::event::{Cause, LinkNote};
use crate::link::end::Above;
use crate::link::frame::{BitVector, LinkAck, Load};

/// Whether number `a` comes after `b`; numbers wrap.
pub(super) fn after(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) > 0
}

/// A packet that was sent.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub load: Load,
    /// Number of its last transmission.
    pub transmission: u32,
    /// Whether that has left the transmitter.
    pub left: bool,
    /// Statuses that came since and did not know of it.
    pub unknown: u8,
    pub acked: bool,
    /// Whether it was sent more than once.
    pub repeated: bool,
    /// Why it is to be sent again.
    pub again: Option<Cause>,
}

/// The packets on their way to one station.
#[derive(Clone, Debug, Default)]
pub(super) struct Outgoing {
    /// Number of the first of `slots`.
    pub first: u32,
    pub slots: VecDeque<Slot>,
    /// Number of the last transmission.
    pub transmission: u32,
}

impl Outgoing {
    /// What is not known to have arrived, and whether it was or will be sent more than once.
    pub fn kept(&self, tell: &mut dyn FnMut(&Load, bool)) {
        let slots = self.slots.iter().filter(|slot| !slot.acked);
        slots.for_each(|slot| tell(&slot.load, slot.repeated || slot.again.is_some()));
    }

    /// Counts a transmission: its number.
    pub fn count(&mut self) -> u32 {
        self.transmission = self.transmission.wrapping_add(1);
        self.transmission
    }

    /// A packet that is about to be sent for the first time: its place.
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

    /// The packet at place `i` is sent: its number, that of the transmission, and the packet.
    pub fn send(&mut self, i: usize) -> (u32, u32, Load) {
        let transmission = self.count();
        let slot = &mut self.slots[i];
        slot.repeated = slot.transmission > 0;
        slot.transmission = transmission;
        (slot.left, slot.unknown, slot.again) = (false, 0, None);
        (self.first.wrapping_add(i as u32), transmission, slot.load.clone())
    }

    /// The first packet that is to be sent again.
    pub fn again(&self) -> Option<(usize, Cause)> {
        let mut slots = self.slots.iter().enumerate();
        slots.find_map(|(i, slot)| Some((i, slot.again?)))
    }

    /// The packet with this number, if it is still here.
    pub fn slot(&mut self, seq: u32) -> Option<&mut Slot> {
        self.slots.get_mut(seq.wrapping_sub(self.first) as usize)
    }

    /// Takes in what has arrived; whether that can be. What was sent before the last transmission that was heard and
    /// has not arrived is lost.
    pub fn take_in(&mut self, ack: &LinkAck) -> bool {
        let covered = ack.cumulative.wrapping_add(1).wrapping_sub(self.first);
        if (covered as i32) < 0 {
            // An old one.
            return true;
        }
        let bits = usize::from(ack.vector.len());
        let too_much = covered as usize + bits > self.slots.len();
        if too_much || after(ack.heard, self.transmission) {
            return false;
        }
        self.slots.drain(..covered as usize);
        self.first = self.first.wrapping_add(covered);
        for i in (0..bits).filter(|i| ack.vector.get(*i as u16)) {
            self.slots[i].acked = true;
            self.slots[i].again = None;
        }
        for slot in self.slots.iter_mut().filter(|slot| !slot.acked && slot.again.is_none()) {
            if !after(slot.transmission, ack.heard) {
                slot.again = Some(Cause::LinkNack);
            }
        }
        true
    }
}

/// The packets that come from one station.
#[derive(Clone, Debug, Default)]
pub(super) struct Incoming {
    /// Number of the next packet in order.
    pub expected: u32,
    /// What has come from there on. The first is always missing.
    beyond: VecDeque<Option<Load>>,
    /// Number of the last transmission heard.
    pub heard: u32,
    /// Frames that have come.
    pub came: u32,
}

impl Incoming {
    /// A frame has come.
    pub fn hear(&mut self, transmission: u32) {
        self.came = self.came.wrapping_add(1);
        if after(transmission, self.heard) {
            self.heard = transmission;
        }
    }

    /// Whether packet `seq` has come.
    pub fn has(&self, seq: u32) -> bool {
        let ahead = seq.wrapping_sub(self.expected);
        (ahead as i32) < 0 || self.beyond.get(ahead as usize).is_some_and(Option::is_some)
    }

    /// Whether a packet is missing before one that has come.
    pub fn has_gap(&self) -> bool {
        !self.beyond.is_empty()
    }

    /// A packet has come from `from`, or was made of parity: hands up what is in order now.
    pub fn receive(
        &mut self,
        from: Station,
        seq: u32,
        load: Load,
        window: u16,
        above: &mut dyn Above,
    ) {
        if self.has(seq) {
            return above.note(from, LinkNote::Duplicate);
        }
        let ahead = seq.wrapping_sub(self.expected) as usize;
        if ahead >= usize::from(window) {
            return above.note(from, LinkNote::OutOfWindow);
        }
        if self.beyond.len() <= ahead {
            self.beyond.resize_with(ahead + 1, || None);
        }
        self.beyond[ahead] = Some(load);
        while let Some(load) = self.beyond.front_mut().and_then(Option::take) {
            self.beyond.pop_front();
            self.expected = self.expected.wrapping_add(1);
            above.release(from, load);
        }
    }

    /// What has arrived.
    pub fn ack(&self) -> LinkAck {
        let mut vector = BitVector::zeros(self.beyond.len() as u16);
        for (i, _) in self.beyond.iter().enumerate().filter(|(_, load)| load.is_some()) {
            vector.set(i as u16);
        }
        LinkAck { cumulative: self.expected.wrapping_sub(1), vector, heard: self.heard }
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

    /// What has not arrived is kept, and told with whether it was or will be sent again.
    #[test]
    fn what_has_not_arrived_is_kept() {
        let mut out = Outgoing::default();
        (1..=5).for_each(|id| {
            let place = out.push(load(id));
            out.send(place);
        });
        out.push(load(6));
        out.slots[1].acked = true;
        out.slots[2].again = Some(Cause::LinkNack);
        out.send(3);
        let mut kept = Vec::new();
        out.kept(&mut |load, again| {
            let Load::Packet(packet) = load else { panic!("{load:?}") };
            kept.push((packet.id.0, again));
        });
        assert_eq!(kept, [(1, false), (3, true), (4, true), (5, false), (6, false)]);
    }
}
