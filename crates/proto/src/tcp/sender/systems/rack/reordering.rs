//! The reordering window: how long RACK waits for possibly reordered segments (RFC 8985 section 6.2, step 4).

use crate::units::{Span, Time};

use super::Rack;

/// Addition to the timer for reordered segments (`TCP_TIMEOUT_MIN_US`).
pub(super) const LONGER: Span = Span::millis(2);

/// Number of recoveries for which a wider reordering window persists.
const PERSIST: u32 = 16;

/// Maximum window of Linux, in quarters of the shortest round trip.
const MOST_QUARTERS: u64 = 255;

/// State of the reordering window.
#[derive(Clone, Debug)]
pub(super) struct Reordering {
    /// The window in quarters of the shortest round trip.
    quarters: u64,
    /// Number of recoveries until it returns to one quarter.
    persist: u32,
    /// Acknowledged position from which on reports of duplicates count again.
    round: Option<u64>,
    /// With the rules of Linux: whether a reported duplicate waits to be counted. Reports count again when a segment
    /// arrives that was sent after `delivered` bytes had been delivered.
    pub(super) pending: bool,
    delivered: u64,
    /// Number of retransmitted segments.
    pub(super) repeats: u64,
    /// Number of segments that the receiver has reported as duplicates.
    duplicates: u64,
}

impl Reordering {
    pub(super) fn new() -> Reordering {
        Reordering {
            quarters: 1,
            persist: 0,
            round: None,
            pending: false,
            delivered: 0,
            repeats: 0,
            duplicates: 0,
        }
    }

    /// Records a report of `segments` duplicates. Returns whether retransmissions may have caused them: if there are
    /// more duplicates than retransmissions, the network duplicates segments (`tcp_dsack_seen`).
    pub(super) fn note_duplicate(&mut self, segments: u64) -> bool {
        self.duplicates = self.duplicates.saturating_add(segments);
        self.duplicates <= self.repeats
    }

    /// Widens the window once for each round trip with a needless retransmission; `nxt` ends this round trip.
    //= rfc8985#section-6.2: step 4: RACK_update_reo_wnd
    pub(super) fn adapt(&mut self, ack: u64, nxt: u64, duplicate: bool) {
        if self.round.is_some_and(|round| ack >= round) {
            self.round = None;
        }
        if duplicate && self.round.is_none() {
            self.round = Some(nxt);
            self.quarters += 1;
            self.persist = PERSIST;
        }
    }

    /// Adapts the window as Linux does. `total` is the number of delivered bytes, `prior` that number when the newest
    /// arrived segment was sent (`tcp_rack_update_reo_wnd`).
    pub(super) fn adapt_by_delivery(&mut self, prior: u64, total: u64) {
        let counts = core::mem::take(&mut self.pending) && prior >= self.delivered;
        if counts {
            self.quarters = (self.quarters + 1).min(MOST_QUARTERS);
            self.delivered = total;
            self.persist = PERSIST;
        } else if self.persist == 0 {
            self.quarters = 1;
        }
    }

    /// Extends the persistence of the window after reported duplicates have reverted a reaction (`tcp_try_undo_dsack`).
    pub(super) fn proved(&mut self) {
        self.persist = (self.persist + 1).min(PERSIST);
    }

    /// Handles the end of a recovery.
    pub(super) fn recovered(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.quarters = 1;
        }
    }

    pub(super) fn window(&self, min_rtt: Span) -> Span {
        min_rtt * self.quarters / 4
    }
}

impl Rack {
    /// Processes a report that positions `from` to `to` arrived twice, of which `repeated` segments were sent again.
    /// Returns whether the window widens, and the number of needlessly delivered bytes that count.
    pub(super) fn take_duplicate(
        &mut self,
        now: Time,
        (from, to): (u64, u64),
        (repeated, mss): (u64, u64),
    ) -> (bool, u64) {
        let segments = to.saturating_sub(from).div_ceil(mss.max(1));
        let credible = self.reordering.note_duplicate(segments);
        if credible {
            self.undo.duplicate(to, repeated);
        }
        if !self.kernel {
            return (true, 0);
        }
        if !credible {
            return (false, 0);
        }
        // A needless retransmission counts as delivered (`tcp_dsack_seen`).
        let bytes = segments.saturating_mul(mss);
        self.meter.delivered_again(now, bytes);
        self.facts.delivered = self.facts.delivered.wrapping_add(segments as u32);
        (self.facts.reordered && !self.probe.repeated(to), bytes)
    }
}
