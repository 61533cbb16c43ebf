//! Header prediction: a fast path for the segment that is expected next (Jacobson 1990; agarwal00 3.4, 4.4).
//!
//! In a one-way transfer nearly every segment is either the next data or an ACK of data in flight, without other
//! information. Five comparisons detect it. Such a segment skips the checks that only other segments need. These are
//! its position in the window, flags and options that require an action, and the new part of its payload. Its effect
//! is exactly that of the full procedure.
//!
//! There is no prediction if the ends have negotiated more than timestamps, window scaling and SACK.

use crate::machine::Out;
use crate::tcp::config::Prediction;
use crate::tcp::sender::AckInfo;
use crate::tcp::state::State;
use crate::units::Time;
use crate::wire::{Body, Flags, Segment};

use super::Connection;

impl Connection {
    /// The number of bytes that `segment` acknowledges, if it is the expected next segment.
    #[inline]
    pub(super) fn predicted(&self, segment: &Segment, body: &Body) -> Option<u32> {
        let window = &self.tx.core.window;
        let peer = u32::from(segment.window) << self.agreed.send_scale;
        let expected = self.irs + self.rx.nxt as u32;
        // The five comparisons: an established connection; no flag but ACK and PSH, no option but timestamps; the next
        // segment in sequence; the same window; no retransmission in progress.
        if self.state != State::Established
            || Flags(segment.flags.0 & !Flags::PSH.0) != Flags::ACK
            || segment.seq != expected
            || peer != window.peer
            || window.nxt != window.max
            || segment.has_options()
        {
            return None;
        }
        let acked = segment.ack - (self.iss + window.una as u32);
        let one_way = if body.is_empty() {
            //= agarwal00#3.4: an ACK of data, without data
            acked > 0 && u64::from(acked.unsigned_abs()) <= window.max - window.una
        } else {
            //= agarwal00#3.4: or new data in the window, while no data of this end is in flight
            let len = u64::from(body.len());
            acked == 0
                && self.tx.is_idle()
                && self.rx.has_no_gap()
                && self.rx.nxt + len <= self.rx.edge()
        };
        let more = self.agreed.ecn | self.agreed.acc | self.marks.is_accurate() | self.is_half();
        (one_way && !more).then_some(acked.unsigned_abs())
    }

    /// Processes the expected next segment, which acknowledges `acked` bytes.
    #[inline]
    pub(super) fn take_predicted(
        &mut self,
        now: Time,
        segment: &Segment,
        acked: u32,
        body: Body,
        out: &mut Out,
    ) {
        self.steps.predicted = !self.predicts(Prediction::Off);
        if let Some(ts) = segment.timestamps.filter(|_| self.agreed.timestamps) {
            self.steps.stamped = true;
            if self.rx.nxt <= self.last_ack_sent {
                self.note_timestamp(now, ts.value);
            }
        }
        self.steps.scaled = self.agreed.scaled;
        if body.is_empty() || self.tx.records_segments() {
            let ack = self.tx.core.window.una + u64::from(acked);
            let echoed = self.echoed(now, segment);
            let carries = !body.is_empty();
            if acked > 0 {
                self.window_from = segment.seq;
            }
            self.apply_ack(now, &AckInfo { echoed, ..AckInfo::plain(ack, None, carries) }, out);
        }
        if !body.is_empty() {
            self.note_cause(segment);
            self.time_receiver(now, segment);
            if self.rx.admits(self.rx.nxt, body.len(), Some(self.sending())) {
                self.absorb(now, self.rx.nxt, body, false, out);
            }
        }
        self.flush(now, out);
    }

    /// Whether header prediction is configured as `when`: off, or before or after the check of the timestamp.
    #[inline]
    pub(super) fn predicts(&self, when: Prediction) -> bool {
        self.config.prediction == when
    }
}
