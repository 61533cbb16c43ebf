//! A base station's end whose peer has gone on without it: its host was elsewhere meanwhile, and is back.

use super::Connection;
use crate::machine::Out;
use crate::units::Time;
use crate::wire::{Flags, Segment};

impl Connection {
    /// Whether `segment`, with a payload of `len` bytes, shows that the peer and its far end have gone on with each
    /// other: it acknowledges what was never sent here, or sends what lies beyond any window that was given here. The
    /// other one of its numbers must be as it should, so that nobody who guesses can say so.
    pub fn is_bypassed(&self, segment: &Segment, len: u32) -> bool {
        let flags = segment.flags;
        if !self.state.is_synchronised() || self.held || flags.any(Flags::SYN | Flags::RST) {
            return false;
        }
        let window = &self.tx.core.window;
        let ack = segment.ack.unwrap_near(self.iss, window.una).filter(|_| flags.has(Flags::ACK));
        let from = segment.seq.unwrap_near(self.irs, self.rx.nxt);
        let (Some(ack), Some(from)) = (ack, from) else { return false };
        let widest = u64::from(self.config.recv_buffer);
        let ahead = ack > window.max && !self.resumed;
        // A probe of a closed window begins at its edge.
        let beyond = from > self.rx.edge() && len > 0;
        let heard = ack + u64::from(window.peer_max) >= window.una && ack <= window.max;
        let placed = from + widest >= self.rx.nxt && from <= self.rx.edge();
        ahead && placed || beyond && heard
    }

    /// Whether `segment`, with a payload of `len` bytes, leaves a hole before it.
    pub fn leaves_hole(&self, segment: &Segment, len: u32) -> bool {
        let from = segment.seq.unwrap_near(self.irs, self.rx.nxt);
        len > 0 && from.is_some_and(|from| from > self.rx.nxt && from <= self.rx.edge())
    }

    /// Whether the peer has acknowledged all that it was to get from here.
    pub fn has_delivered(&self) -> bool {
        self.outbox.as_ref().is_none_or(|outbox| outbox.rope.is_empty())
    }

    /// If all that was sent here is acknowledged, the peer is sent an ACK: if it has more than that it answers.
    pub fn ask_back(&mut self, now: Time, out: &mut Out) {
        let window = &self.tx.core.window;
        if self.state.is_synchronised() && window.una == window.max {
            self.insist(now, out);
        }
    }

    /// What the peer acknowledges beyond what was sent here counts for all of that: it has the rest from elsewhere.
    pub fn believe_in_more(&mut self) {
        self.resumed = true;
    }
}
