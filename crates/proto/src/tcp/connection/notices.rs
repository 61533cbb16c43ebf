//! Reactions to base stations: their notices about segments, negative ACKs, and handoffs.

use crate::event::Cause;
use crate::machine::Out;
use crate::tcp::config::Variant;
use crate::units::Time;
use crate::wire::{Notice, Seq};

use super::Connection;

impl Connection {
    /// Whether this end reacts to a notice about its segment with sequence number `seq`.
    ///
    /// # Errors
    /// The reason for which it ignores the notice.
    pub fn heeds(&self, notice: Notice, seq: Seq) -> Result<(), Cause> {
        self.tx.heeds(notice, seq.unwrap_near(self.iss, self.tx.core.window.una))
    }

    /// Handles a base station's notice about this end's segment with sequence number `seq`.
    pub fn on_notice(&mut self, now: Time, notice: Notice, seq: Seq, out: &mut Out) {
        if self.heeds(notice, seq).is_ok()
            && let Some(kind) = self.tx.on_notice(now, notice)
        {
            self.report(kind, out);
        }
    }

    /// Handles the host's move to another cell: retransmits data in flight at once, and makes the peer do the same by
    /// duplicate ACKs.
    pub fn on_handoff(&mut self, now: Time, out: &mut Out) {
        if !self.state.is_synchronised() {
            return;
        }
        if self.rx.nxt > 1 && !self.rx.is_finished() {
            // One more than the threshold: if the last ACK was lost, the first one here is no duplicate.
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

    /// Whether this end reacts to negative ACKs. RACK ignores them and repairs losses from its own records.
    pub(super) fn offers_nacks(&self) -> bool {
        self.config.nack && self.config.variant != Variant::Rack
    }

    /// Handles a base station's report that these ranges of this end's data are missing. It is no ACK of the receiver.
    pub(super) fn take_nack(&mut self, now: Time, missing: &[(Seq, Seq)], out: &mut Out) {
        if !self.offers_nacks() || !self.state.is_synchronised() {
            return;
        }
        let near = self.tx.core.window.una;
        let position = |seq: &Seq| seq.unwrap_near(self.iss, near);
        let ranges: Vec<(u64, u64)> = missing
            .iter()
            .filter_map(|(left, right)| position(left).zip(position(right)))
            .collect();
        if let Some(kind) = self.tx.on_nack(now, &ranges) {
            self.report(kind, out);
            self.flush(now, out);
        }
    }
}
