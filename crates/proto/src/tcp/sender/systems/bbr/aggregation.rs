//! Room for aggregated ACKs (Linux' `tcp_bbr.c`, `bbr_update_ack_aggregation`). The window is increased by the bytes
//! that were acknowledged in excess of the rate. So the sender can send until the next group of ACKs arrives.

use crate::units::{Span, Time};

use super::Sample;

/// Number of rounds that each of the two maxima covers.
pub(in super::super) const ROUNDS: u32 = 5;
/// Number of segments after which an epoch ends.
const OLD: u64 = 1 << 20;
/// Bound of the additional bytes, as time at the rate.
const LONGEST: Span = Span::millis(100);

/// Measurement of aggregated ACKs.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Aggregation {
    /// Maximum bytes in excess of the rate, in this window of rounds and in the previous one.
    most: [u64; 2],
    rounds: u32,
    since: Time,
    acked: u64,
}

impl Aggregation {
    /// Processes an ACK at a path rate of `bps`; `limits` are the window and the segment size in bytes. If it starts a round
    /// trip, `starts` is the number of rounds that a maximum covers.
    pub(in super::super) fn update(
        &mut self,
        sample: &Sample,
        starts: Option<u32>,
        bps: u64,
        limits: (u64, u64),
    ) {
        if sample.delivered == 0 || sample.rate.is_none() {
            return;
        }
        if let Some(most) = starts {
            self.rounds += 1;
            if self.rounds >= most {
                self.rounds = 0;
                self.most = [0, self.most[0]];
            }
        }
        let (window, mss) = limits;
        let acked = u64::from(sample.delivered);
        let mut expected = carried(bps, sample.now.since(self.since));
        if self.acked <= expected || (self.acked + acked) / mss.max(1) >= OLD {
            (self.acked, self.since, expected) = (0, sample.now, 0);
        }
        self.acked += acked;
        let extra = self.acked.saturating_sub(expected).min(window);
        self.most[0] = self.most[0].max(extra);
    }

    /// Restarts the measurement after idle time.
    pub(in super::super) fn restart(&mut self, now: Time) {
        (self.acked, self.since) = (0, now);
    }

    /// Additional bytes in flight, on top of the path's product.
    pub(in super::super) fn extra(&self, bps: u64) -> u64 {
        self.most[0].max(self.most[1]).min(carried(bps, LONGEST))
    }
}

/// Bytes at the rate `bps` in the time `span`.
fn carried(bps: u64, span: Span) -> u64 {
    (u128::from(bps) * u128::from(span.0) / 8_000_000_000).min(1 << 40) as u64
}
