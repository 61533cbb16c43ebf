//! Recovery with records of segments that the peer identifies one by one: the common part of SMART and SCPS-TP. Each
//! detects losses in its own way.
//!
//! The window shrinks once for the losses of one window. As in RFC 6675, an estimate of the bytes in the network (the
//! pipe) paces transmissions: arrived and lost segments do not count. A timeout clears the records.

use crate::event::Cause;

use super::flight::Flight;
use super::{Choice, Progress};
use crate::tcp::sender::{Core, Window};

/// Records of segments, and a recovery that uses them.
#[derive(Clone, Debug, Default)]
pub(in crate::tcp::sender) struct Named {
    pub(in crate::tcp::sender) flight: Flight,
    /// Number of the latest transmission that has arrived.
    pub(in crate::tcp::sender) latest: u64,
    pub(in crate::tcp::sender) active: bool,
    /// One past the highest position sent when the last loss was detected.
    pub(in crate::tcp::sender) recover: u64,
}

impl Named {
    /// Asserts the invariants of the records and of the recovery.
    pub(in crate::tcp::sender) fn check(&self, w: &Window) {
        self.flight.check();
        debug_assert!(self.recover <= w.end + 2, "recovery ends beyond the written data");
        debug_assert!(!self.active || self.recover > 0, "a recovery without an end");
    }

    /// Begins recovery after a detected loss.
    pub(in crate::tcp::sender) fn enter(&mut self, w: &mut Window) {
        self.active = true;
        self.recover = w.max;
        // The first lost segment is sent independent of the pipe, unless it is already in flight.
        w.repair = self.flight.first_lost().map(|(from, _)| (from, Cause::FastRetransmit));
    }

    /// Progress by an ACK of new data, which the records contain already.
    pub(in crate::tcp::sender) fn progress(&mut self, w: &Window) -> Progress {
        if w.una < self.recover {
            return Progress::Partial { rearm: true };
        }
        self.active = false;
        Progress::Over
    }

    /// Clears the records after a timeout.
    pub(in crate::tcp::sender) fn forget(&mut self, w: &Window) {
        self.active = false;
        self.recover = w.max;
        self.flight.clear();
    }

    /// The next segment in recovery: lost ones first, then new data, as far as the pipe has room.
    pub(in crate::tcp::sender) fn next_chunk(&mut self, core: &mut Core) -> Choice {
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
