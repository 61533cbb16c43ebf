//! How the window opens by what arrives, and comes down in recovery.

use crate::tcp::sender::growth::{Acked, Growth as _, Repair};
use crate::tcp::sender::prr::Heard;
use crate::tcp::sender::recovery::Step;
use crate::tcp::sender::{Core, Window};

use super::Rack;

/// Segments by which reordering is expected at first (`tcp_reordering`).
const DUPTHRESH: u32 = 3;

impl Rack {
    /// Whether a loss is being repaired.
    pub(super) fn repair(&self, w: &Window) -> Repair {
        match (self.active, w.una < self.recover) {
            (true, _) => Repair::Recovery,
            (_, true) => Repair::Timeout,
            _ => Repair::None,
        }
    }

    /// Opens the window. Linux goes by what has newly arrived, not by how far the left edge moved.
    pub(super) fn open(&self, core: &mut Core, ack: &Acked) {
        let bytes = if self.kernel { self.last.delivered as u32 } else { ack.bytes };
        core.growth.on_ack(&mut core.window, &Acked { bytes, ..*ack });
    }

    /// Whether the window grows by what SACK blocks report: where segments are reordered by more than three, the left edge
    /// moves too seldom (`tcp_may_raise_cwnd`).
    pub(super) fn grows_by_reports(&self) -> bool {
        let told = self.last.delivered > self.last.needless && !self.last.repaired;
        self.kernel && told && self.facts.reordered_by > u64::from(DUPTHRESH)
    }

    /// Brings the window down in step with what has arrived.
    pub(super) fn reduce(&mut self, w: &mut Window, step: &Step) {
        let (pipe, ssthresh, mss) = (self.flight.pipe(), w.ssthresh.into(), w.mss.into());
        // As Linux, and draft-ietf-tcpm-prr-rfc6937bis: one more than was delivered only where the left edge moves and
        // nothing is newly lost.
        let safe = !self.kernel || step.moved && step.lost == 0;
        let heard = Heard { delivered: self.last.delivered, pipe, ssthresh, mss, safe };
        w.cwnd = self.prr.window(&heard).min(u32::MAX.into()) as u32;
    }
}
