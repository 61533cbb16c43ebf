//! What a base station says about a segment of this connection.

use crate::event::Cause;
use crate::machine::Out;
use crate::tcp::config::Variant;
use crate::units::Time;
use crate::wire::{Notice, Seq};

use super::Connection;

impl Connection {
    /// Whether this end would heed a message about the segment that it sent with number `seq`.
    ///
    /// # Errors
    /// Why it would not.
    pub fn heeds(&self, notice: Notice, seq: Seq) -> Result<(), Cause> {
        self.tx.heeds(notice, seq.unwrap_near(self.iss, self.tx.core.window.una))
    }

    /// A base station says something about the segment that this end sent with number `seq`.
    pub fn on_notice(&mut self, now: Time, notice: Notice, seq: Seq, out: &mut Out) {
        if self.heeds(notice, seq).is_ok()
            && let Some(kind) = self.tx.on_notice(now, notice)
        {
            self.report(kind, out);
        }
    }

    /// The host has come to another cell: what is in flight is sent again at once, and the peer is made to do the same.
    pub fn on_handoff(&mut self, now: Time, out: &mut Out) {
        if !self.state.is_synchronised() {
            return;
        }
        if self.rx.nxt > 1 && !self.rx.is_finished() {
            // The first may be news to the peer, if the last one before was lost.
            for _ in 0..=self.config.dupthresh {
                self.rx.demand_ack();
                self.send_ack(now, out);
            }
        }
        if let Some(kind) = self.tx.on_handoff(now) {
            self.report(kind, out);
            self.flush(now, out);
        }
    }

    /// Whether it obeys negative acknowledgements: RACK repairs what its own records show to be lost.
    pub(super) fn offers_nacks(&self) -> bool {
        self.config.nack && self.config.variant != Variant::Rack
    }

    /// A base station misses these ranges of what this end sent. It is no ACK: the receiver has said nothing.
    pub(super) fn take_nack(&mut self, now: Time, missing: &[(Seq, Seq)], out: &mut Out) {
        if !self.offers_nacks() || !self.state.is_synchronised() {
            return;
        }
        let near = self.tx.core.window.una;
        let place = |seq: &Seq| seq.unwrap_near(self.iss, near);
        let ranges: Vec<(u64, u64)> =
            missing.iter().filter_map(|(left, right)| place(left).zip(place(right))).collect();
        if let Some(kind) = self.tx.on_nack(now, &ranges) {
            self.report(kind, out);
            self.flush(now, out);
        }
    }
}
