//! How long to wait for what may only be reordered (RFC 8985 section 6.2, step 4).

use crate::units::{Span, Time};

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

/// How long to wait for what may only be reordered.
#[derive(Clone, Debug)]
pub(super) struct Reordering {
    /// The window is so many quarters of the shortest round trip.
    quarters: u64,
    /// Recoveries until it is one quarter again.
    persist: u32,
    /// Reports of duplicates count again once this is acknowledged.
    round: Option<u64>,
    /// Segments that were sent again.
    pub(super) repeats: u64,
    /// Segments that the receiver has reported as duplicates.
    duplicates: u64,
}

impl Reordering {
    pub(super) fn new() -> Reordering {
        Reordering { quarters: 1, persist: 0, round: None, repeats: 0, duplicates: 0 }
    }

    /// The receiver reports `segments` duplicates. Whether retransmissions may have caused them: once there are more of
    /// them than retransmissions, the network duplicates segments (`tcp_dsack_seen`).
    pub(super) fn note_duplicate(&mut self, segments: u64) -> bool {
        self.duplicates += segments;
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
