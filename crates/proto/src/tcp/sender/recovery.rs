//! Loss recovery: what a sender does from the detection of a loss until it is repaired.

use crate::units::{Span, Time};
use crate::wire::Snack;

use super::{Chunk, Window};

/// How far an ACK for new data brought a recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// It is over.
    Over,
    /// More is missing; `rearm` says whether the retransmission timer starts again.
    Partial {
        /// Start the timer again.
        rearm: bool,
    },
}

/// Repairs losses. [`Window::repair`] asks for one segment at once; edges and windows are changed in place.
pub trait Recovery {
    /// Whether a recovery is under way.
    fn active(&self) -> bool;

    /// Whether a detected loss may begin a recovery, or belongs to one that ended by a time-out.
    fn may_enter(&self, window: &Window) -> bool {
        let _ = window;
        true
    }

    /// A loss was detected by `dupacks` duplicate ACKs; the slow-start threshold has been lowered.
    fn enter(&mut self, window: &mut Window, dupacks: u32);

    /// A further duplicate ACK during recovery.
    fn on_dup_ack(&mut self, window: &mut Window);

    /// An ACK moved the left edge by `acked` bytes during recovery.
    fn on_ack(&mut self, window: &mut Window, acked: u32) -> Progress;

    /// The retransmission timer expired; the caller resets the window.
    fn on_timeout(&mut self, window: &mut Window);

    /// The same, for one that knows when each segment was sent; `srtt` is the smoothed round trip.
    fn expired(&mut self, now: Time, window: &mut Window, srtt: Span) {
        let _ = (now, srtt);
        self.on_timeout(window);
    }

    /// When a timer of its own expires next.
    fn next_wake(&self) -> Option<Time> {
        None
    }

    /// Stops its timers.
    fn stop(&mut self) {}

    /// Whether it may have something to send.
    fn has_work(&self) -> bool {
        self.active()
    }

    /// Takes in SACK blocks, as positions; whether they told anything new.
    fn learn(&mut self, window: &Window, blocks: &[(u64, u64)]) -> bool {
        let _ = (window, blocks);
        false
    }

    /// An ACK says that the segment which begins at `from` has caused it; whether that was new.
    fn on_cause(&mut self, window: &Window, from: u64) -> bool {
        let _ = (window, from);
        false
    }

    /// An ACK of `ack` names what is missing above it; whether that was new.
    fn on_snack(&mut self, window: &Window, ack: u64, snack: &Snack) -> bool {
        let _ = (window, ack, snack);
        false
    }

    /// Whether a loss is no sign of congestion: the window stays, and opens on while losses are repaired.
    fn keeps_window(&self) -> bool {
        false
    }

    /// A piece goes out.
    fn on_sent(&mut self, window: &Window, chunk: &Chunk) {
        let _ = (window, chunk);
    }

    /// When a recovery is over: whether it is known already that more is lost, so that the next one begins.
    fn unfinished(&self) -> bool {
        false
    }

    /// Whether only selective acknowledgements tell what arrived.
    fn selective(&self) -> bool {
        false
    }

    /// Bytes above the left edge that have been selectively acknowledged.
    fn sacked_above(&self, window: &Window) -> u64 {
        let _ = window;
        0
    }

    /// What to send next, if this recovery decides that itself: `Some(None)` is "nothing now".
    fn next_chunk(&mut self, window: &mut Window) -> Option<Option<Chunk>> {
        let _ = window;
        None
    }
}
