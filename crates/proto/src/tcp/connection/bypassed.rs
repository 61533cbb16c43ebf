//! A base station's end whose peer has gone on without it: its host was elsewhere meanwhile, and is back.

use super::Connection;
use crate::event::Cause;
use crate::machine::Out;
use crate::units::Time;
use crate::wire::{Body, Flags, Segment};

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

    /// A segment of what the peer has long had: it answers with the numbers that it is at, wherever that is.
    pub fn probe(&mut self, now: Time) -> Option<Segment> {
        let una = self.tx.core.window.una;
        let heard = self.state.is_synchronised() && una > 0;
        heard.then(|| self.segment(now, una - 1, Flags::ACK))
    }

    /// Sends what [`Connection::probe`] made. Without a byte in it a peer that has just answered another one may keep silent.
    //= rfc9293#section-3.8.4: SEG.SEQ = SND.NXT-1, and one garbage octet
    pub fn send_probe(&mut self, probe: Segment, out: &mut Out) {
        let body = Body::Pattern { stream: 0, len: 1, offset: 0 };
        self.originate(probe, body, Cause::Control, out);
    }

    /// What the peer acknowledges beyond what was sent here counts for all of that: it has the rest from elsewhere.
    pub fn believe_in_more(&mut self) {
        self.resumed = true;
    }
}
