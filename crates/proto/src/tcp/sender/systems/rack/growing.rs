//! Growth of the window by arriving data, and its reduction in recovery.

use crate::tcp::sender::congestion_control::{Acked, CongestionControl as _, Repair};
use crate::tcp::sender::recovery::Step;
use crate::tcp::sender::recovery::prr::PrrInput;
use crate::tcp::sender::{Core, Window};

use super::Rack;

/// Initial extent of reordering in segments (`tcp_reordering`).
pub(super) const DUPTHRESH: u32 = 3;

impl Rack {
    /// State of loss recovery.
    pub(super) fn repair(&self, w: &Window) -> Repair {
        match (self.active, w.una < self.recover) {
            (true, _) => Repair::Recovery,
            (_, true) => Repair::Timeout,
            _ => Repair::None,
        }
    }

    /// Grows the window. Linux counts newly arrived bytes, not the movement of the left edge.
    pub(super) fn open(&self, core: &mut Core, ack: &Acked) {
        let bytes = if self.kernel { self.last.delivered as u32 } else { ack.bytes };
        core.congestion_control.on_ack(&mut core.window, &Acked { bytes, ..*ack });
    }

    /// Whether the window grows by SACK reports: with reordering by more than three segments, the left edge moves too
    /// rarely (`tcp_may_raise_cwnd`).
    pub(super) fn grows_by_reports(&self) -> bool {
        let new_data = self.last.delivered > self.last.needless && !self.last.repaired;
        self.kernel && !self.counts && new_data && self.facts.reordered_by > u64::from(DUPTHRESH)
    }

    /// Reduces the window in proportion to the arrived data.
    pub(super) fn reduce(&mut self, w: &mut Window, step: &Step) {
        let (pipe, ssthresh, mss) = (self.in_network(w), w.ssthresh.into(), w.mss.into());
        // As Linux, and draft-ietf-tcpm-prr-rfc6937bis: one more than was delivered only where the left edge moves and
        // nothing is newly lost.
        let safe = !self.kernel || step.moved && step.lost == 0;
        let input = PrrInput { delivered: self.last.delivered, pipe, ssthresh, mss, safe };
        w.cwnd = self.prr.window(&input).min(u32::MAX.into()) as u32;
    }
}
