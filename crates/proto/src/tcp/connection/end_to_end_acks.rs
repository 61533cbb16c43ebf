//! End-to-end acknowledgements of a base station (M-TCP): its end towards the sender acknowledges only data that the
//! receiver at the far end has acknowledged.
//!
//! This end receives and forwards data like any other. It acknowledges the data that the far end has acknowledged,
//! less one byte while more data is in flight to the far end. That byte is a reserve for the moment when the
//! far end disappears: an ACK of it closes the window. Every sender accepts a smaller window from an ACK of new data;
//! 4.4BSD accepts it only from such an ACK.
//!
//! An ACK without news would count as a duplicate ACK, so it is suppressed. Behind a hole the sender needs duplicate
//! ACKs. They are delayed until the far end has acknowledged all data before the hole, since earlier ones would name
//! bytes that are not missing.

use super::Connection;
use crate::machine::Out;
use crate::travel::travels;
use crate::units::{Span, Time};
use crate::wire::Segment;

/// Maximum number of delayed duplicate ACKs: there is one for each segment behind a hole.
const OWED_MAX: u32 = 1024;

/// Minimum time between two answers to data that was already acknowledged. When a closed window opens again, a whole
/// window of such data may arrive, and the answers would count as duplicate ACKs. No sender's timer is shorter.
const QUIET: Span = Span::millis(100);

/// Acknowledgement state of an end that acknowledges only data which the far end has acknowledged.
#[derive(Clone, Debug, Default)]
pub(super) struct EndToEndAcks {
    /// The far end has acknowledged all positions below.
    far_acked: u64,
    /// This end has acknowledged all positions below to its peer.
    acked_to_peer: u64,
    /// The far end is gone, so this end advertises a zero window.
    window_closed: bool,
    /// The next due ACK is sent even without news.
    ack_required: bool,
    /// Delayed duplicate ACKs.
    owed: u32,
    /// Time of the last answer to data that was already acknowledged.
    repeated: Option<Time>,
}

travels!(EndToEndAcks { far_acked, acked_to_peer, window_closed });

impl Connection {
    /// Restricts ACKs to data that [`Connection::on_far_ack`] reports. Called before the connection opens.
    pub fn enable_end_to_end_acks(&mut self) {
        let acks = EndToEndAcks { far_acked: 1, acked_to_peer: 1, ..EndToEndAcks::default() };
        self.end_to_end = Some(Box::new(acks));
    }

    /// Whether this end acknowledges only data which the far end has acknowledged.
    pub fn acks_end_to_end(&self) -> bool {
        self.end_to_end.is_some()
    }

    /// Whether this end advertises a zero window because the far end is gone.
    pub fn has_closed_window(&self) -> bool {
        self.end_to_end.as_ref().is_some_and(|acks| acks.window_closed)
    }

    /// Records that the far end has acknowledged `bytes` of the received data, and the peer's FIN if `fin`. Sends the
    /// ACK or the delayed duplicate ACKs that this allows.
    pub fn on_far_ack(&mut self, now: Time, bytes: u64, fin: bool, out: &mut Out) {
        self.note_far_ack(bytes, fin);
        let Some(acks) = &mut self.end_to_end else { return };
        let reached = acks.far_acked >= self.rx.nxt;
        let owed = if reached { core::mem::take(&mut acks.owed) } else { 0 };
        if self.ackable() > self.acked_to_peer() {
            self.rx.demand_ack();
            self.flush(now, out);
        }
        for _ in 0..owed {
            self.send_ack_now(now, out);
        }
    }

    /// Like [`Connection::on_far_ack`], but sends no segment: the next one carries the acknowledgement.
    pub fn note_far_ack(&mut self, bytes: u64, fin: bool) {
        if let Some(acks) = &mut self.end_to_end {
            acks.far_acked = acks.far_acked.max(1 + bytes + u64::from(fin));
        }
    }

    /// Closes the window when the far end is gone, or opens it when the far end is back, and sends an ACK with the
    /// change.
    pub fn set_window_closed(&mut self, now: Time, closed: bool, out: &mut Out) {
        if let Some(acks) = &mut self.end_to_end
            && acks.window_closed != closed
            && self.state.is_synchronised()
        {
            acks.window_closed = closed;
            self.send_ack_now(now, out);
        }
    }

    /// The position up to which this end has acknowledged data to its peer.
    pub(super) fn acked_to_peer(&self) -> u64 {
        self.end_to_end.as_ref().map_or(self.rx.nxt, |acks| acks.acked_to_peer)
    }

    /// Whether data is missing before data that was received.
    fn has_hole(&self) -> bool {
        !self.rx.has_no_gap() && !self.rx.is_finished()
    }

    /// The position up to which the peer may be acknowledged now: the far end's position, less the reserved byte if
    /// more data is in flight there. Behind a hole there is no reserve, since the peer retransmits from the
    /// acknowledged position.
    fn ackable(&self) -> u64 {
        let Some(acks) = &self.end_to_end else { return self.rx.nxt };
        let far = acks.far_acked.min(self.rx.nxt);
        let reserves = !acks.window_closed
            && far < self.rx.nxt
            && far > acks.acked_to_peer
            && !self.has_hole();
        acks.acked_to_peer.max(far - u64::from(reserves))
    }

    /// The acknowledged position of the segment that is being sent. Records it as acknowledged to the peer.
    pub(super) fn take_ack_position(&mut self) -> u64 {
        let ackable = self.ackable();
        if let Some(acks) = &mut self.end_to_end {
            (acks.acked_to_peer, acks.ack_required) = (ackable, false);
        }
        ackable
    }

    /// The window of a segment with this acknowledged position, in bytes. It starts at that position.
    #[inline]
    pub(super) fn advertised_window(&mut self, acknowledged: u64) -> u64 {
        let window = self.rx.window() + self.rx.nxt.saturating_sub(acknowledged);
        if self.has_closed_window() { 0 } else { window }
    }

    /// Sends an ACK now, even without news.
    pub(super) fn send_ack_now(&mut self, now: Time, out: &mut Out) {
        self.demand_ack();
        self.flush(now, out);
    }

    /// An ACK is due, even without news.
    pub(super) fn demand_ack(&mut self) {
        if let Some(acks) = &mut self.end_to_end {
            acks.ack_required = true;
        }
        self.rx.demand_ack();
    }

    /// Whether a due ACK is sent now. Otherwise it is suppressed; behind a hole it is counted as a delayed duplicate
    /// ACK.
    pub(super) fn permits_ack(&mut self) -> bool {
        let (ackable, acked) = (self.ackable(), self.acked_to_peer());
        let (hole, next) = (self.has_hole(), self.rx.nxt);
        let Some(acks) = &mut self.end_to_end else { return true };
        if acks.ack_required || ackable > acked || hole && ackable == next {
            return true;
        }
        if hole {
            acks.owed = (acks.owed + 1).min(OWED_MAX);
        }
        false
    }

    /// Whether a segment is answered whose positions, from `from` to `to`, were all received before.
    ///
    /// It is answered if it repeats acknowledged data, since that ACK may be lost, or if it probes a closed window.
    /// Data that waits for the far end gets no answer, except that the reserved byte is then acknowledged.
    pub(super) fn answers_repeated(
        &mut self,
        now: Time,
        segment: &Segment,
        (from, to): (u64, u64),
    ) -> bool {
        let acceptable = self.has_acceptable_ack(segment);
        let Some(acks) = &mut self.end_to_end else { return true };
        if let Some(ts) = segment.timestamps.filter(|_| acceptable && from <= acks.acked_to_peer) {
            // The next ACK answers this segment, so it echoes this timestamp.
            (self.ts_recent, self.ts_recent_at) = (ts.value, now);
        }
        if from <= acks.acked_to_peer && acks.far_acked > acks.acked_to_peer {
            acks.acked_to_peer = acks.far_acked.min(self.rx.nxt);
            return true;
        }
        if acks.window_closed {
            return true;
        }
        let quiet = acks.repeated.is_some_and(|at| now.since(at) < QUIET);
        let answers = to <= acks.acked_to_peer && !quiet;
        if answers {
            acks.repeated = Some(now);
        }
        answers
    }
}
