//! Whether an arriving segment may be accepted: its timestamp, its connection count and its acknowledgement.
//!
//! A segment changes the state of a connection only if it passes all of these checks. A single bad segment could
//! otherwise leave a timestamp behind by which PAWS drops every segment that follows.

use crate::machine::Out;
use crate::tcp::config::GrowthRule;
use crate::tcp::state::State;
use crate::units::{Span, Time};
use crate::wire::{Ackp, Body, Flags, Nack, Segment};

use super::Connection;

/// Validity of a peer's timestamp: a clock of milliseconds changes its sign after 24.8 days (RFC 7323 section 5.5).
const TIMESTAMP_VALID: Span = Span::secs(24 * 24 * 60 * 60);

impl Connection {
    /// Whether a segment is an old duplicate: its timestamp fails PAWS, or it has the count of another connection.
    #[inline]
    pub(super) fn is_old_duplicate(&mut self, now: Time, segment: &Segment, body: &Body) -> bool {
        self.fails_paws(now, segment, body) || self.agreed.counts && self.is_foreign(segment, body)
    }

    /// PAWS: a segment with a timestamp older than the last one is an old duplicate. Linux makes two exceptions.
    //= rfc7323#section-5.2
    #[inline]
    fn fails_paws(&mut self, now: Time, segment: &Segment, body: &Body) -> bool {
        match segment.timestamps {
            Some(ts) if self.agreed.timestamps && !segment.flags.has(Flags::RST) => {
                self.steps.paws = true;
                let age = self.ts_recent.wrapping_sub(ts.value) as i32;
                age > 0
                    && !self.has_outdated_timestamp(now)
                    && !self.may_be_older(segment, body, age)
            }
            _ => false,
        }
    }

    /// Whether the last timestamp is so old that the peer's clock may have wrapped around since.
    //= rfc7323#section-5.5: after an idle time of more than 24 days it is invalid
    fn has_outdated_timestamp(&self, now: Time) -> bool {
        now.since(self.ts_recent_at) > TIMESTAMP_VALID
    }

    /// Whether Linux accepts a segment whose timestamp is `age` units older than the last one. It accepts an age of
    /// one unit (`TCP_PAWS_WINDOW`), and a duplicate ACK that others have overtaken (`tcp_disordered_ack_check`).
    /// Such an ACK may carry the only report of a segment that came twice.
    fn may_be_older(&self, segment: &Segment, body: &Body, age: i32) -> bool {
        if self.config.growth != GrowthRule::Linux {
            return false;
        }
        let plain = segment.flags.has(Flags::ACK) && segment.seq_len(body.len()) == 0;
        let in_sequence = segment.seq.unwrap_near(self.irs, self.rx.nxt) == Some(self.rx.nxt);
        let una = self.tx.core.window.una;
        let repeats = segment.ack.unwrap_near(self.iss, una) == Some(una);
        // Linux treats a unit of the timestamp as a millisecond.
        let replay = self.tx.core.timers.rtt.rto() * 6 / 5;
        let fresh = Span::millis(age.unsigned_abs().into()) <= replay;
        age <= 1 || plain && in_sequence && repeats && !self.updates_window(segment, una) && fresh
    }

    /// Whether Linux accepts a reset at `from` although it expects another position: the end of the last SACK block,
    /// or the position of the peer's FIN (`tcp_validate_incoming`, `tcp_reset_check`).
    pub(super) fn resets_in_linux(&self, from: u64) -> bool {
        let closed = matches!(self.state, State::CloseWait | State::Closing | State::LastAck);
        self.config.growth == GrowthRule::Linux
            && (self.agreed.sack && self.rx.stored_to() == Some(from)
                || closed && from + 1 == self.rx.nxt)
    }

    /// The window that a segment advertises, in bytes.
    fn advertised(&self, segment: &Segment) -> u32 {
        u32::from(segment.window) << self.agreed.send_scale
    }

    /// Whether a segment that acknowledges position `ack` updates the peer's window. That of an ACK which others have
    /// overtaken is out of date. In Linux a new ACK and new data always update it, others only open it
    /// (`tcp_may_update_window`).
    #[inline]
    fn updates_window(&self, segment: &Segment, ack: u64) -> bool {
        let (una, before) = (self.tx.core.window.una, self.tx.core.window.peer);
        let window = self.advertised(segment);
        if self.config.growth == GrowthRule::Linux {
            let newer = segment.seq - self.window_from;
            return ack > una
                || ack == una && (newer > 0 || newer == 0 && (window > before || window == 0));
        }
        let age = segment.timestamps.map(|ts| self.ts_recent.wrapping_sub(ts.value) as i32);
        let overtaken = self.agreed.timestamps && age.is_some_and(|age| age > 0);
        //= rfc9293#section-3.10.7.4: the window of an ACK older than the last one is out of date
        ack >= una && window != before && !overtaken
    }

    /// The peer's window in bytes, if a segment that acknowledges position `ack` updates it.
    #[inline]
    pub(super) fn window_update(&mut self, segment: &Segment, ack: u64) -> Option<u32> {
        let updates = self.updates_window(segment, ack);
        if updates {
            self.window_from = segment.seq;
        }
        updates.then(|| self.advertised(segment))
    }

    /// Stores the timestamp of an acceptable segment, which the next one sent echoes; an older one does not replace it.
    #[inline]
    pub(super) fn note_timestamp(&mut self, now: Time, value: u32) {
        let older = (self.ts_recent.wrapping_sub(value) as i32) > 0;
        let replaced = !older || self.config.growth != GrowthRule::Linux;
        if replaced || self.has_outdated_timestamp(now) {
            (self.ts_recent, self.ts_recent_at) = (value, now);
        }
    }

    /// Records an arrived segment with data or a FIN for the options of the next ACK.
    #[inline]
    pub(super) fn note_arrival(&mut self, segment: &Segment) {
        self.note_cause(segment);
        if self.config.stamps {
            self.rare().stamped = segment.options().stamp.map(|stamp| stamp.sent);
        }
    }

    /// The position that a segment acknowledges, if it is not too old. It may exceed the sent data.
    #[inline]
    fn acked_position(&self, segment: &Segment) -> Option<u64> {
        let w = &self.tx.core.window;
        //= rfc5961#section-5.2: an ACK from further back than the largest window is challenged
        let known = segment.ack.unwrap_near(self.iss, w.una);
        let ack = known.filter(|ack| ack + u64::from(w.peer_max) >= w.una)?;
        if !self.resumed || ack <= w.max {
            return Some(ack);
        }
        // The previous base station of this connection, or its far end, may have sent more data than this one. The
        // peer's ACK of that data covers all data of this end. To exclude forgery, the segment must have exactly the
        // next sequence number.
        let exact = segment.seq.unwrap_near(self.irs, self.rx.nxt) == Some(self.rx.nxt);
        Some(if exact { w.max } else { ack })
    }

    /// Whether a segment acknowledges a position that an established peer can acknowledge.
    pub(super) fn has_acceptable_ack(&self, segment: &Segment) -> bool {
        segment.flags.has(Flags::ACK)
            && self.acked_position(segment).is_some_and(|ack| ack <= self.tx.core.window.max)
    }

    /// The acknowledged position of a segment with `len` bytes, if the segment may be accepted. Otherwise this
    /// function has sent the required answer, and the segment must not change the state.
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
            // A base station made this segment, and an answer would not reach the station.
            return (ack <= max).then_some(ack);
        }
        if self.state == State::SynReceived && ack != 1 {
            //= rfc9293#section-3.10.7.4: SYN-RECEIVED: an ACK of something else is answered with a reset
            self.refuse_ack(segment, out);
            return None;
        }
        if ack > max {
            //= rfc9293#section-3.10.7.4: an ACK of unsent data is answered with an ACK
            self.challenge(now, segment, len, out);
            return None;
        }
        Some(ack)
    }
}
