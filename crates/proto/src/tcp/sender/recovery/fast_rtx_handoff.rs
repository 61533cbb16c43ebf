//! Fast retransmission after a handoff (Caceres and Iftode 1995): the mobile host notifies its TCP of the new cell,
//! and TCP retransmits at once instead of waiting for its timer.
//!
//! A sender treats all data in flight as lost and retransmits the oldest segment. Then the window grows by slow
//! start, as after a fast retransmit in the TCPs of 1995. After a timeout during the handoff the threshold is not
//! lowered again, and the timer's backoff persists until an ACK arrives. A receiver repeats its last ACK as a number
//! of duplicate ACKs that makes an unmodified peer retransmit at once
//! ([`Connection::on_handoff`](crate::tcp::Connection::on_handoff)).
//!
//! Not modelled: how the host detects its new cell. The simulator notifies it when it is reachable there.

use crate::describe::{Kind, SIM, System};
use crate::event::{Cause, TcpKind};
use crate::units::Time;

use super::Recovery;
use crate::tcp::sender::congestion_control::{CongestionControl, Loss};
use crate::tcp::sender::{SenderWith, Verdict};

/// Description of the system, for lists.
pub const SYSTEM: System = System::new(
    Kind::Sender,
    "fast-rtx-handoff",
    "host: fast-rtx-handoff = true",
    "fast retransmit as soon as a hand-off is over, instead of waiting for a timeout",
    "bakshi96 2, agarwal00 2; Caceres and Iftode 1995",
)
.tier(2)
.runs(SIM);

impl<R: Recovery> SenderWith<'_, R> {
    /// Handles the host's move to another cell. The caller sends afterwards.
    pub(in crate::tcp::sender) fn on_handoff(&mut self, now: Time) -> Verdict {
        let core = &mut *self.core;
        let w = &mut core.window;
        // Probes of a closed window continue independent of the handoff.
        if w.una >= w.max || core.timers.persist.is_set() {
            return None;
        }
        let lowered = core.tally.retries > 0 || self.recovery.active();
        if !lowered && !self.recovery.unrepaired(w) && !self.recovery.preserves_window() {
            w.ssthresh = core.congestion_control.ssthresh_after_loss(now, w, Loss::Timeout);
        }
        self.start_over(now, Cause::FastRetransmit);
        let w = &mut self.core.window;
        // With records of segments, the oldest one may not count as lost yet, so request its retransmission.
        w.repair = (w.nxt > w.una).then_some((w.una, Cause::FastRetransmit));
        Some(TcpKind::FastRetransmit)
    }
}
