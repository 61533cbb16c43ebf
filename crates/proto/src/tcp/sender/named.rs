//! Recovery by a record of segments that the peer names one by one: what SMART and SCPS-TP do alike. How they learn
//! what is lost is theirs.
//!
//! The window shrinks once for the losses of one window. A pipe keeps the clock, as that of RFC 6675 does: what is
//! known to have arrived or to be lost is not in the network. A time-out forgets the record.

use crate::event::Cause;

use super::flight::Flight;
use super::recovery::{Choice, Progress};
use super::{Core, Window};

/// A record of segments, and a recovery that follows it.
#[derive(Clone, Debug, Default)]
pub(super) struct Named {
    pub(super) flight: Flight,
    /// The latest transmission that is known to have arrived.
    pub(super) latest: u64,
    pub(super) active: bool,
    /// One past the highest position sent when the last loss was detected.
    pub(super) recover: u64,
}

impl Named {
    /// A loss was detected.
    pub(super) fn enter(&mut self, w: &mut Window) {
        self.active = true;
        self.recover = w.max;
        // The first one goes out whatever the pipe says, unless it is under way.
        w.repair = self.flight.first_lost().map(|(from, _)| (from, Cause::FastRetransmit));
    }

    /// An ACK moved the left edge, which the record has seen.
    pub(super) fn progress(&mut self, w: &Window) -> Progress {
        if w.una < self.recover {
            return Progress::Partial { rearm: true };
        }
        self.active = false;
        Progress::Over
    }

    /// The retransmission timer expired.
    pub(super) fn forget(&mut self, w: &Window) {
        self.active = false;
        self.recover = w.max;
        self.flight.clear();
    }

    /// Losses first, then new data, as far as the pipe has room.
    pub(super) fn next_chunk(&mut self, core: &mut Core) -> Choice {
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
