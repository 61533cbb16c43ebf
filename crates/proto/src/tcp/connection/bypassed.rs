//! A base station's end whose peer has gone on without it: its host was elsewhere meanwhile, and is back.
//!
//! Anybody can send a segment that looks like it. So it counts only if it has a number that only the two hosts can know;
//! otherwise the peer is probed first (RFC 5961 has the same rule for resets).

use super::Connection;
use crate::event::Cause;
use crate::machine::Out;
use crate::units::Time;
use crate::wire::{Body, Flags, Segment, Seq};

/// How much a segment shows that the peer and its far end have continued with each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Evidence {
    /// It belongs to this connection, or to none.
    None,
    /// Its numbers are possible for such a peer, but a third party guesses such numbers within some thousand packets.
    Suspect,
    /// One of its numbers is exactly the one that is expected here: a guess succeeds once in 2^32 packets.
    Exact,
    /// It reports the byte of [`Connection::probe`] as a duplicate, which only its receiver can know.
    Answer,
}

impl Connection {
    /// What `segment`, with a payload of `len` bytes, shows of a peer that has continued without this end: it acknowledges
    /// data that was never sent from here, or sends data beyond every window that was given here. `probed` says that a
    /// probe asked the peer for its numbers.
    pub fn evidence(&self, segment: &Segment, len: u32, probed: bool) -> Evidence {
        let flags = segment.flags;
        if !self.state.is_synchronised() || self.held || flags.any(Flags::SYN | Flags::RST) {
            return Evidence::None;
        }
        let window = &self.tx.core.window;
        let position = |seq: Seq| seq.unwrap_near(self.iss, window.una);
        let ack = position(segment.ack).filter(|_| flags.has(Flags::ACK));
        let from = segment.seq.unwrap_near(self.irs, self.rx.nxt);
        let (Some(ack), Some(from)) = (ack, from) else { return Evidence::None };
        let ahead = ack > window.max && !self.resumed;
        // A probe of a closed window begins at its edge. Without data nobody sends beyond it, but to answer.
        let beyond = from > self.rx.edge() && (len > 0 || probed);
        if !ahead && !beyond {
            return Evidence::None;
        }
        if probed
            && let Some((left, right)) = segment.options().sack.as_slice().first()
            && position(*right) == Some(window.una)
            && *right - *left == 1
        {
            return Evidence::Answer;
        }
        if ahead && from == self.rx.nxt || beyond && ack == window.max {
            return Evidence::Exact;
        }
        let widest = u64::from(self.config.recv_buffer);
        let heard = ack + u64::from(window.peer_max) >= window.una && ack <= window.max;
        let placed = from + widest >= self.rx.nxt && from <= self.rx.edge();
        match ahead && placed || beyond && heard {
            true => Evidence::Suspect,
            false => Evidence::None,
        }
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

    /// Whether `segment` answers the SYN of this end, which has not got an answer yet.
    pub fn is_answered_by(&self, segment: &Segment) -> bool {
        let flags = segment.flags;
        let acks = flags.has(Flags::ACK) && segment.ack == self.iss + 1;
        acks && flags.any(Flags::SYN | Flags::RST)
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
