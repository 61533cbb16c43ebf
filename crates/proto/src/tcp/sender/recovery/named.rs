//! Recovery with records of segments that the peer identifies one by one: the common part of SMART and SCPS-TP. Each
//! detects losses in its own way ([`Reports`]).
//!
//! The window shrinks once for the losses of one window. As in RFC 6675, an estimate of the bytes in the network (the
//! pipe) paces transmissions: arrived and lost segments do not count. A timeout clears the records.

use core::fmt::Debug;

use crate::event::Cause;
use crate::units::Time;

use super::detect::Detection;
use super::flight::Flight;
use super::{AckSummary, Choice, Progress, Recovery};
use crate::tcp::sender::congestion_control::Acked;
use crate::tcp::sender::{AckInfo, Chunk, Core, Window};

/// The peer's reports of single segments.
pub trait Reports: Clone + Debug + Sized {
    /// Whether a segment without a record counts as a retransmission if it is below the highest position sent.
    const KNOWS_RETRANSMISSIONS: bool;

    /// Removes the records below `una`, which have arrived.
    fn acknowledge(named: &mut Named<Self>, una: u64);

    /// Records arrived and lost segments by the reports of an ACK. Returns whether there are any.
    fn record(named: &mut Named<Self>, w: &Window, info: &AckInfo<'_>) -> bool;

    /// Whether a loss is no sign of congestion.
    fn preserves_window(&self) -> bool {
        false
    }
}

/// Records of segments, and a recovery that uses them.
#[derive(Clone, Debug)]
pub struct Named<R> {
    pub(in crate::tcp::sender) flight: Flight,
    /// Number of the latest transmission that has arrived.
    pub(in crate::tcp::sender) latest: u64,
    active: bool,
    /// One past the highest position sent when the last loss was detected.
    recover: u64,
    pub(in crate::tcp::sender) reports: R,
}

impl<R: Reports> Named<R> {
    /// A recovery without records.
    pub(in crate::tcp::sender) fn of(reports: R) -> Named<R> {
        Named { flight: Flight::default(), latest: 0, active: false, recover: 0, reports }
    }
}

impl<R: Reports> Recovery for Named<R> {
    fn check(&self, w: &Window) {
        self.flight.check();
        debug_assert!(self.recover <= w.end + 2, "recovery ends beyond the written data");
        debug_assert!(!self.active || self.recover > 0, "a recovery without an end");
    }

    const DETECTION: Detection = Detection::FirstReport;

    fn active(&self) -> bool {
        self.active
    }
    fn may_enter(&self, w: &Window) -> bool {
        w.una >= self.recover
    }
    fn enter(&mut self, w: &mut Window, _: u32) {
        if !self.preserves_window() {
            w.fall();
        }
        (self.active, self.recover) = (true, w.max);
        // The first lost segment is sent independent of the pipe, unless it is already in flight.
        w.repair = self.flight.first_lost().map(|(from, _)| (from, Cause::FastRetransmit));
    }
    fn on_ack(&mut self, core: &mut Core, _: &Acked) -> Progress {
        R::acknowledge(self, core.window.una);
        if core.window.una < self.recover {
            return Progress::Partial { rearm: true };
        }
        self.active = false;
        Progress::Over
    }
    fn on_timeout(&mut self, _: Time, core: &mut Core) -> Option<u64> {
        (self.active, self.recover) = (false, core.window.max);
        self.flight.clear();
        None
    }
    fn on_sent(&mut self, now: Time, core: &mut Core, chunk: &Chunk) -> Option<bool> {
        let w = &core.window;
        R::acknowledge(self, w.una);
        self.flight.put(now, w, chunk, R::KNOWS_RETRANSMISSIONS && chunk.from < w.max);
        None
    }
    fn record_ack(&mut self, _: Time, w: &Window, info: &AckInfo<'_>) -> AckSummary {
        AckSummary { reported: Some(R::record(self, w, info)), ..AckSummary::default() }
    }
    fn preserves_window(&self) -> bool {
        self.reports.preserves_window()
    }
    /// Remaining losses and retransmissions belong to the window after the repaired one.
    fn unfinished(&self) -> bool {
        self.flight.is_unsettled()
    }

    /// The next segment in recovery: lost ones first, then new data, as far as the pipe has room.
    fn next_chunk(&mut self, core: &mut Core, _: Time) -> Choice {
        let w = &mut core.window;
        if !self.active {
            return Choice::Window;
        }
        if self.flight.pipe() + u64::from(w.mss) > u64::from(w.cwnd) {
            return Choice::Wait;
        }
        Choice::now(match self.flight.first_lost() {
            Some((from, to)) => Some(w.chunk_between(from, to, Cause::FastRetransmit)),
            None => w.new_chunk(),
        })
    }
}
