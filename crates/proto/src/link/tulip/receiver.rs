//! The receiver of one sender (parsa98 3.2, Figure 3): buffer of W packets, release in order, acknowledgements.
//!
//! Figure 3 as printed drops a packet that is already in the buffer, or outside of the window, without an
//! acknowledgement. The text has it otherwise ("the receiver sends a LACK every time it receives a data packet"), and
//! so must it be: the sender repeats its oldest packet to force an acknowledgement, and would do so for ever.

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
    /// What has come out of order, from `base` on. The first is always missing.
    slots: VecDeque<Option<Load>>,
    /// By sequence number modulo W: the last transmission heard when the window came to hold it. What was sent
    /// before is an older packet of the same number.
    floors: Vec<u32>,
    /// The last transmission heard.
    heard: u32,
    /// Packets received since the last acknowledgement.
    pub owed: u32,
    /// Until when the acknowledgement may be put off.
    pub due_at: Option<Time>,
}

impl Receiver {
    pub fn new(window: u16) -> Receiver {
        Receiver {
            window: u64::from(window),
            base: 0,
            slots: VecDeque::new(),
            floors: vec![0; usize::from(window)],
            heard: 0,
            owed: 0,
            due_at: None,
        }
    }

    /// Number of packets that wait for an earlier one.
    pub fn buffered(&self) -> usize {
        self.slots.iter().flatten().count()
    }

    /// A reliable packet has come.
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
        if after(number, self.heard) {
            self.heard = number;
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
            self.floors[(self.base % self.window) as usize] = self.heard;
            self.base += 1;
            above.release(from, load);
        }
    }

    /// The acknowledgement to be sent now.
    ///
    /// Its first bit is always 0: the packet behind the cumulative acknowledgement is the one that is missing. So W
    /// bits tell of the W - 1 packets that the paper's vector tells of. Zeros behind the last packet received are
    /// not sent, but for those of the first byte.
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
        LinkAck { cumulative, vector, heard: self.heard }
    }
}
