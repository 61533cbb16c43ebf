//! Detection that the two hosts have continued a split connection without this base station: a host left its cell and
//! has come back.
//!
//! A third party could forge such a segment. It is therefore accepted only with a number that only the two hosts can
//! have. Otherwise the base station probes the peer first, as RFC 5961 does for resets.

use super::Connection;
use crate::event::Cause;
use crate::machine::Out;
use crate::units::Time;
use crate::wire::{Body, Flags, Segment, Seq};

/// Strength of the evidence in a segment that the peer and its far end have continued with each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Evidence {
    /// The segment belongs to this connection, or to none.
    None,
    /// Its numbers are possible for such a peer, but a third party guesses such numbers within some thousand packets.
    Suspect,
    /// One of its numbers is exactly the expected one: a guess succeeds once in 2^32 packets.
    Exact,
    /// It reports the byte of [`Connection::probe`] as a duplicate. Only the receiver of the probe has its number.
    Answer,
}

impl Connection {
    /// The evidence in `segment`, with a payload of `len` bytes, that the peer has continued without this end.
    /// Such a segment acknowledges data that this end never sent, or has data beyond the window of this end.
    /// `probed` is whether a probe has requested the peer's numbers.
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
        // A probe of a closed window begins at its edge. A segment without data lies beyond the edge only as an answer.
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
        let plausible = ack + u64::from(window.peer_max) >= window.una && ack <= window.max;
        let placed = from + widest >= self.rx.nxt && from <= self.rx.edge();
        match ahead && placed || beyond && plausible {
            true => Evidence::Suspect,
            false => Evidence::None,
        }
    }

    /// Whether `segment`, with a payload of `len` bytes, leaves a hole before it.
    pub fn leaves_hole(&self, segment: &Segment, len: u32) -> bool {
        let from = segment.seq.unwrap_near(self.irs, self.rx.nxt);
        len > 0 && from.is_some_and(|from| from > self.rx.nxt && from <= self.rx.edge())
    }

    /// Whether the peer has acknowledged all data of this end.
    pub fn has_delivered(&self) -> bool {
        self.outbox.as_ref().is_none_or(|outbox| outbox.rope.is_empty())
    }

    /// Sends an ACK if no data of this end is outstanding. A peer that has continued elsewhere answers it.
    pub fn elicit_answer(&mut self, now: Time, out: &mut Out) {
        let window = &self.tx.core.window;
        if self.state.is_synchronised() && window.una == window.max {
            self.send_ack_now(now, out);
        }
    }

    /// Whether `segment` answers the SYN of this end.
    pub fn is_answered_by(&self, segment: &Segment) -> bool {
        let flags = segment.flags;
        let acks = flags.has(Flags::ACK) && segment.ack == self.iss + 1;
        acks && flags.any(Flags::SYN | Flags::RST)
    }

    /// A segment that repeats the last acknowledged byte. The peer answers with its current numbers.
    pub fn probe(&mut self, now: Time) -> Option<Segment> {
        let una = self.tx.core.window.una;
        let open = self.state.is_synchronised() && una > 0 && !self.held;
        open.then(|| self.segment(now, una - 1, Flags::ACK))
    }

    /// Whether the peer requests an answer by a segment without new data: a keep-alive, or Linux's probe of a closed
    /// window. It may carry one byte, as that of old hosts and of Windows.
    //= rfc9293#section-3.8.4: SEG.SEQ = SND.NXT-1
    pub fn is_probed_by(&self, segment: &Segment, len: u32) -> bool {
        let plain = segment.flags.without(Flags::PSH | Flags::ACE) == Flags::ACK;
        let position = segment.seq.unwrap_near(self.irs, self.rx.nxt);
        self.is_open()
            && plain
            && len <= 1
            && position.is_some_and(|at| at + 1 == self.acked_to_peer())
    }

    /// Whether both ends are synchronised, and the connection is not over.
    pub fn is_open(&self) -> bool {
        self.state.is_synchronised() && !self.is_over()
    }

    /// Answers a probe of the peer.
    pub fn confirm(&mut self, now: Time, out: &mut Out) {
        if self.is_open() {
            self.send_ack_now(now, out);
        }
    }

    /// Sends the segment of [`Connection::probe`], with `len` bytes of data, at most one. A peer may ignore an empty one
    /// if it has just answered another.
    //= rfc9293#section-3.8.4: SEG.SEQ = SND.NXT-1, and one garbage octet
    pub fn send_probe(&mut self, probe: Segment, len: u32, out: &mut Out) {
        let body = Body::Pattern { stream: 0, len, offset: 0 };
        self.originate(probe, body, Cause::Control, out);
    }

    /// Accepts ACKs beyond the data of this end as ACKs of all its data: the peer has received more from elsewhere.
    pub fn accept_acks_beyond(&mut self) {
        self.resumed = true;
    }
}
