//! Whether an arriving segment may be accepted: its timestamp, its connection count and its acknowledgement.
//!
//! Nothing of a segment is stored before all of these hold. A single bad segment could otherwise leave a timestamp behind
//! by which PAWS drops every segment that follows.

use crate::machine::Out;
use crate::tcp::state::State;
use crate::units::Time;
use crate::wire::{Ackp, Body, Flags, Nack, Segment};

use super::Connection;

impl Connection {
    /// Whether a segment is one of another window, or of another connection.
    #[inline]
    pub(super) fn is_ghost(&mut self, segment: &Segment, body: &Body) -> bool {
        self.fails_paws(segment) || self.agreed.counts && self.is_foreign(segment, body)
    }

    /// PAWS: a segment whose timestamp is older than the last one is a ghost of another window.
    //= rfc7323#section-5.2
    #[inline]
    pub(super) fn fails_paws(&mut self, segment: &Segment) -> bool {
        match segment.timestamps {
            Some(ts) if self.agreed.timestamps && !segment.flags.has(Flags::RST) => {
                self.steps.paws = true;
                (ts.value.wrapping_sub(self.ts_recent) as i32) < 0
            }
            _ => false,
        }
    }

    /// What the next ACK reports of a segment with data or a FIN that arrived.
    #[inline]
    pub(super) fn note_arrival(&mut self, segment: &Segment) {
        self.note_cause(segment);
        if self.config.stamps {
            self.rare().stamped = segment.options().stamp.map(|stamp| stamp.sent);
        }
    }

    /// The position that a segment acknowledges, if it is not too old; it may lie beyond what was sent.
    #[inline]
    fn acked_position(&self, segment: &Segment) -> Option<u64> {
        let w = &self.tx.core.window;
        //= rfc5961#section-5.2: an ACK from further back than the largest window is challenged
        let known = segment.ack.unwrap_near(self.iss, w.una);
        let ack = known.filter(|ack| ack + u64::from(w.peer_max) >= w.una)?;
        if !self.resumed || ack <= w.max {
            return Some(ack);
        }
        // The previous owner of this connection, or its far end itself, may have sent more since it was handed over. It
        // acknowledges everything that was sent here, so the number of the segment must be the one that nobody can guess.
        let exact = segment.seq.unwrap_near(self.irs, self.rx.nxt) == Some(self.rx.nxt);
        Some(if exact { w.max } else { ack })
    }

    /// Whether a segment acknowledges a position that an established peer can acknowledge.
    pub(super) fn has_acceptable_ack(&self, segment: &Segment) -> bool {
        segment.flags.has(Flags::ACK)
            && self.acked_position(segment).is_some_and(|ack| ack <= self.tx.core.window.max)
    }

    /// The acknowledged position of a segment with `len` bytes, if the segment may be accepted. Otherwise it has been
    /// answered as it must be, and nothing of it may be stored.
    #[inline]
    pub(super) fn acceptable_ack(
        &mut self,
        now: Time,
        segment: &Segment,
        len: u32,
        out: &mut Out,
    ) -> Option<u64> {
        let max = self.tx.core.window.max;
        let Some(ack) = self.acked_position(segment) else {
            match self.state {
                //= rfc9293#section-3.10.7.4: SYN-RECEIVED: an unacceptable ACK is answered with a reset
                State::SynReceived => self.refuse_ack(segment, out),
                _ => self.challenge(now, segment, len, out),
            }
            return None;
        };
        let from_base = segment.has_options()
            && (segment.options().ackp == Some(Ackp::Partial)
                || matches!(segment.options().nack, Some(Nack::Missing(_))));
        if from_base {
            // A base station made it: an answer would not reach the station.
            return (ack <= max).then_some(ack);
        }
        if self.state == State::SynReceived && ack != 1 {
            //= rfc9293#section-3.10.7.4: SYN-RECEIVED: an ACK of something else is answered with a reset
            self.refuse_ack(segment, out);
            return None;
        }
        if ack > max {
            //= rfc9293#section-3.10.7.4: an ACK of what was never sent is answered with an ACK
            self.challenge(now, segment, len, out);
            return None;
        }
        Some(ack)
    }
}
