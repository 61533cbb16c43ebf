//! Fast retransmission after a hand-off (Caceres and Iftode 1995): the mobile host's end tells its TCP that it has come
//! to another cell, and TCP sends again at once instead of waiting for its timer.
//!
//! As a sender it takes what is in flight for lost: the oldest segment is sent again, and the window opens by slow start,
//! as after the fast retransmit of the TCPs of that time. A time-out during the hand-off has lowered the threshold
//! already, so it stays then; the back-off of the timer stays as well, until an ACK comes. As a receiver it sends the
//! same ACK as often as it takes to make the peer, which need not know of any of this, retransmit at once
//! ([`Connection::on_handoff`](crate::tcp::Connection::on_handoff)).
//!
//! Not modelled: how the host learns of its new cell. It is told when it can be reached there.

use crate::describe::{Kind, SIM, System};
use crate::event::{Cause, TcpKind};
use crate::units::Time;

use super::growth::{Growth, Loss};
use super::recovery::Recovery;
use super::{Verdict, Way};

/// What it is, for lists.
pub const SYSTEM: System = System::new(
    Kind::Sender,
    "fast-rtx-handoff",
    "host: fast-rtx-handoff = true",
    "fast retransmit as soon as a hand-off is over, instead of waiting for a time-out",
    "bakshi96 2, agarwal00 2; Caceres and Iftode 1995",
)
.tier(2)
.runs(SIM);

impl<R: Recovery> Way<'_, R> {
    /// The host has come to another cell. The caller sends afterwards.
    pub(super) fn on_handoff(&mut self, now: Time) -> Verdict {
        let core = &mut *self.core;
        let w = &mut core.window;
        // A closed window is probed, which no hand-off changes.
        if w.una >= w.max || core.timers.persist.is_set() {
            return None;
        }
        let lowered = core.tally.retries > 0 || self.recovery.active();
        if !lowered && !self.recovery.unrepaired(w) && !self.recovery.keeps_window() {
            w.ssthresh = core.growth.after_loss(now, w, Loss::Timeout);
        }
        self.start_over(now, Cause::FastRetransmit);
        let w = &mut self.core.window;
        // Where records say what is lost, the oldest segment may not count as lost yet.
        w.repair = (w.nxt > w.una).then_some((w.una, Cause::FastRetransmit));
        Some(TcpKind::FastRetransmit)
    }
}
