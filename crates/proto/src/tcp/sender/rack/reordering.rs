//! How long to wait for what may only be reordered (RFC 8985 section 6.2, step 4).

use crate::units::{Span, Time};

use super::Rack;

/// Timers of Linux run in ticks, here those of 250 Hz.
const TICK: u64 = 4_000_000;
/// How much longer a timer runs that waits for reordered segments (`TCP_TIMEOUT_MIN_US`).
const LONGER: Span = Span::millis(2);

/// When such a timer expires that is set at `now` for `due`: never within the tick in which it was set.
pub(super) fn tick(now: Time, due: Time) -> Time {
    let ticks = (due.since(now) + LONGER).0.div_ceil(TICK);
    Time((now.0 / TICK + ticks + 1) * TICK)
}

/// Recoveries for which a wider reordering window is kept.
const PERSIST: u32 = 16;

/// The window is at most so many quarters for Linux.
const MOST_QUARTERS: u64 = 255;

/// How long to wait for what may only be reordered.
#[derive(Clone, Debug)]
pub(super) struct Reordering {
    /// The window is so many quarters of the shortest round trip.
    quarters: u64,
    /// Recoveries until it is one quarter again.
    persist: u32,
    /// Reports of duplicates count again once this is acknowledged.
    round: Option<u64>,
    /// For Linux: a duplicate was reported that counts, and reports count again once something arrives that was sent after so
    /// many bytes had been delivered.
    pub(super) pending: bool,
    delivered: u64,
    /// Segments that were sent again.
    pub(super) repeats: u64,
    /// Segments that the receiver has reported as duplicates.
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

    /// The receiver reports `segments` duplicates. Whether retransmissions may have caused them: once there are more of
    /// them than retransmissions, the network duplicates segments (`tcp_dsack_seen`).
    pub(super) fn note_duplicate(&mut self, segments: u64) -> bool {
        self.duplicates = self.duplicates.saturating_add(segments);
        self.duplicates <= self.repeats
    }

    /// The window widens with each round trip in which a retransmission proved needless; `nxt` ends this round trip.
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

    /// As Linux adapts it: `total` bytes are delivered, and `prior` were when the newest segment was sent that has arrived
    /// (`tcp_rack_update_reo_wnd`).
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

    /// A reaction was taken back because of reported duplicates: the window stays for longer (`tcp_try_undo_dsack`).
    pub(super) fn proved(&mut self) {
        self.persist = (self.persist + 1).min(PERSIST);
    }

    /// A recovery is over.
    pub(super) fn recovered(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.quarters = 1;
        }
    }

    /// The window.
    pub(super) fn window(&self, min_rtt: Span) -> Span {
        min_rtt * self.quarters / 4
    }
}

impl Rack {
    /// An ACK reports that positions `from` to `to` came twice. Returns whether the window widens for it, and how many bytes
    /// were delivered without need, as far as that counts.
    pub(super) fn take_duplicate(
        &mut self,
        now: Time,
        (from, to): (u64, u64),
        mss: u64,
    ) -> (bool, u64) {
        let segments = to.saturating_sub(from).div_ceil(mss.max(1));
        let credible = self.reordering.note_duplicate(segments);
        if credible {
            self.undo.duplicate(to, segments);
        }
        if !self.kernel {
            return (true, 0);
        }
        if !credible {
            return (false, 0);
        }
        // A needless retransmission has been delivered as well (`tcp_dsack_seen`).
        let bytes = segments.saturating_mul(mss);
        self.meter.delivered_again(now, bytes);
        self.facts.delivered = self.facts.delivered.wrapping_add(segments as u32);
        (self.facts.reordered && !self.probe.repeated(to), bytes)
    }
}
