//! The receiver of one sender (parsa98 3.2, Figure 3): buffer of W packets, delivery in order,
//! acknowledgements.
//!
//! Figure 3 as printed drops a duplicate packet, or one outside of the window, without an acknowledgement.
//! The text differs ("the receiver sends a LACK every time it receives a data packet"), and must be right:
//! the sender repeats its oldest packet to force an acknowledgement, and would do so forever.

use crate::air::Station;
use crate::event::LinkNote;
use crate::link::end::Above;
use crate::link::frame::{BitVector, LinkAck, Load};
use crate::link::in_order::{Accepted, InOrder, Order};
use crate::units::Time;

use super::sender::after;

/// The receiver of one sender.
#[derive(Clone, Debug)]
pub(super) struct Receiver {
    window: u64,
    buffer: InOrder<Load>,
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
    /// Asserts the invariants of the window.
    pub fn check(&self) {
        debug_assert_eq!(self.floors.len() as u64, self.window, "a floor for each number");
        debug_assert!(
            self.floors.iter().take(8).all(|floor| !after(*floor, self.last_received)),
            "a floor above all received transmissions"
        );
    }

    pub fn new(window: u16, order: Order) -> Receiver {
        Receiver {
            window: u64::from(window),
            buffer: InOrder::new(order, window.into()),
            floors: vec![0; usize::from(window)],
            last_received: 0,
            owed: 0,
            due_at: None,
        }
    }

    /// Number of packets that wait for an earlier one.
    pub fn buffered(&self) -> usize {
        self.buffer.buffered()
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
        let base = self.buffer.expected();
        let ahead = (u64::from(seq) + modulus - base % modulus) % modulus;
        let floor = self.floors[(u64::from(seq) % self.window) as usize];
        if !after(number, floor) {
            return above.note(from, LinkNote::Duplicate);
        }
        match self.buffer.accept(base + ahead, load) {
            Accepted::Ready | Accepted::Waits => {}
            Accepted::Old | Accepted::OutOfWindow => return above.note(from, LinkNote::Duplicate),
        }
        while let Some(load) = self.buffer.take_next() {
            above.release(from, load);
        }
        for passed in base..self.buffer.expected() {
            self.floors[(passed % self.window) as usize] = self.last_received;
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
        let cumulative = ((self.buffer.expected() + modulus - 1) % modulus) as u32;
        let received = self.buffer.received();
        let len = (received.len() as u64).max(8).min(self.window);
        let mut vector = BitVector::zeros(len as u16);
        received.enumerate().filter(|(_, got)| *got).for_each(|(i, _)| vector.set(i as u16));
        LinkAck { cumulative, vector, last_received: self.last_received }
    }
}
