//! The receiver of one sender (parsa98 3.2, Figure 3): buffer of W packets, delivery in order,
//! acknowledgements.
//!
//! Figure 3 as printed drops a duplicate packet, or one outside of the window, without an acknowledgement.
//! The text differs ("the receiver sends a LACK every time it receives a data packet"), and must be right:
//! the sender repeats its oldest packet to force an acknowledgement, and would do so forever.

use std::collections::VecDeque;

use crate::air::Station;
use crate::event::LinkNote;
use crate::link::end::Above;
use crate::link::frame::{BitVector, LinkAck, Load};
use crate::units::Time;

use super::sender::after;

/// The receiver of one sender.
#[derive(Clone, Debug)]
pub(super) struct Receiver {
    window: u64,
    /// Sequence number of the next packet in order.
    base: u64,
    /// Packets received out of order, from `base` on. The first one is always missing.
    slots: VecDeque<Option<Load>>,
    /// Indexed by sequence number modulo W: the last transmission heard when the window reached it. Earlier
    /// transmissions are an older packet of the same number.
    floors: Vec<u32>,
    /// The last received transmission.
    last_received: u32,
    /// Packets received since the last acknowledgement.
    pub owed: u32,
    /// Deadline of a delayed acknowledgement.
    pub due_at: Option<Time>,
}

impl Receiver {
    pub fn new(window: u16) -> Receiver {
        Receiver {
            window: u64::from(window),
            base: 0,
            slots: VecDeque::new(),
            floors: vec![0; usize::from(window)],
            last_received: 0,
            owed: 0,
            due_at: None,
        }
    }

    /// Number of packets that wait for an earlier one.
    pub fn buffered(&self) -> usize {
        self.slots.iter().flatten().count()
    }

    /// Handles a reliable packet.
    pub fn receive(
        &mut self,
        from: Station,
        seq: u32,
        number: u32,
        load: Load,
        above: &mut dyn Above,
    ) {
        let modulus = 2 * self.window;
        if u64::from(seq) >= modulus {
            return above.note(from, LinkNote::OutOfWindow);
        }
        self.owed = self.owed.saturating_add(1);
        if after(number, self.last_received) {
            self.last_received = number;
        }
        let ahead = (u64::from(seq) + modulus - self.base % modulus) % modulus;
        let floor = self.floors[(u64::from(seq) % self.window) as usize];
        if ahead >= self.window || !after(number, floor) {
            return above.note(from, LinkNote::Duplicate);
        }
        let ahead = ahead as usize;
        if ahead >= self.slots.len() {
            self.slots.resize_with(ahead + 1, || None);
        }
        if self.slots[ahead].is_some() {
            return above.note(from, LinkNote::Duplicate);
        }
        self.slots[ahead] = Some(load);
        while let Some(load) = self.slots.front_mut().and_then(Option::take) {
            self.slots.pop_front();
            self.floors[(self.base % self.window) as usize] = self.last_received;
            self.base += 1;
            above.release(from, load);
        }
    }

    /// The acknowledgement to send now.
    ///
    /// Its first bit is always 0, since the packet behind the cumulative acknowledgement is missing. So W
    /// bits describe the W - 1 packets of the paper's vector. Zeros behind the last received packet are not
    /// sent, except for those of the first byte.
    pub fn acknowledgement(&mut self) -> LinkAck {
        self.owed = 0;
        self.due_at = None;
        let modulus = 2 * self.window;
        let cumulative = ((self.base + modulus - 1) % modulus) as u32;
        let len = (self.slots.len() as u64).max(8).min(self.window);
        let mut vector = BitVector::zeros(len as u16);
        for (i, _) in self.slots.iter().enumerate().filter(|(_, slot)| slot.is_some()) {
            vector.set(i as u16);
        }
        LinkAck { cumulative, vector, last_received: self.last_received }
    }
}
