//! Room for ACKs that come in lumps (Linux' `tcp_bbr.c`, `bbr_update_ack_aggregation`): how much more is acknowledged at
//! a time than the rate explains, so that the window does not run dry until the next lump.

use crate::units::{Span, Time};

use super::Sample;

/// Rounds that each of the two maxima covers.
pub(in super::super) const ROUNDS: u32 = 5;
/// An epoch that has seen so many segments is an old one.
const OLD: u64 = 1 << 20;
/// At most what the rate carries in so long.
const LONGEST: Span = Span::millis(100);

/// What comes in lumps.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Aggregation {
    /// Bytes beyond the rate, the most of this window of rounds and of the one before.
    most: [u64; 2],
    rounds: u32,
    since: Time,
    acked: u64,
}

impl Aggregation {
    /// An ACK has come while the path's rate was `bps`; `limits` are the window and the segment in bytes. Where it begins a
    /// round trip, `starts` is how many of them a maximum covers.
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

    /// Sending begins again: what was counted until then says nothing.
    pub(in super::super) fn restart(&mut self, now: Time) {
        (self.acked, self.since) = (0, now);
    }

    /// Bytes to have in flight beyond the path's product.
    pub(in super::super) fn extra(&self, bps: u64) -> u64 {
        self.most[0].max(self.most[1]).min(carried(bps, LONGEST))
    }
}

/// Bytes that a rate carries in a time.
fn carried(bps: u64, span: Span) -> u64 {
    (u128::from(bps) * u128::from(span.0) / 8_000_000_000).min(1 << 40) as u64
}
