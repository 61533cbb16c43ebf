//! What both versions of BBR know of a path in the same way: packet-timed round trips, the product of rate and round trip,
//! and the pace that follows from a rate.

use crate::units::{Rate, Span, Time};

use super::{Sample, Window};

/// Gains are in 1/256.
pub(in super::super) const UNIT: u64 = 256;

/// Counts round trips by packets: one ends when a segment is acknowledged that was sent after it had begun.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct Rounds {
    pub(in super::super) count: u64,
    /// Whether the last ACK began one.
    pub(in super::super) starts: bool,
    /// One ends with a segment that was sent after so much had been delivered.
    end: u64,
}

impl Rounds {
    /// An ACK has come. Whether a round trip begins with it.
    pub(in super::super) fn update(&mut self, sample: &Sample) -> bool {
        self.starts = sample.rate.is_some_and(|rate| rate.prior >= self.end);
        if self.starts {
            self.count += 1;
            self.end = sample.total;
        }
        self.starts
    }

    /// A round trip begins now that `total` bytes are delivered.
    pub(in super::super) fn restart(&mut self, total: u64) {
        self.end = total;
    }
}

/// Bytes that a rate of `bps` puts into a path of this round trip, times `gain`.
pub(in super::super) fn product(bps: u64, rtt: Span, gain: u64) -> u64 {
    let bits = u128::from(bps) * u128::from(rtt.0) / 1_000_000_000;
    (bits * u128::from(gain) / u128::from(UNIT) / 8).min(1 << 40) as u64
}

/// 32 bits in place of drawn ones, so that flows do not all probe at once: the moment decides, which differs from flow to
/// flow and from seed to seed.
pub(in super::super) fn scattered(now: Time) -> u64 {
    (now.0 / 1000).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32
}

/// The pace at which segments leave, in bits per second; none before the first round trip.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct Pace(pub(in super::super) Option<u64>);

impl Pace {
    /// The pace of a path that carries `bps`, times `gain`; it comes down only when the path is known to be `filled`. The first
    /// one is that of the first window, times `first`.
    pub(in super::super) fn update(
        &mut self,
        w: &Window,
        sample: &Sample,
        bps: u64,
        [gain, first]: [u64; 2],
        filled: bool,
    ) {
        if self.0.is_none() {
            let Some(rtt) = sample.rtt else { return };
            let bits = u128::from(w.cwnd) * 8 * 1_000_000_000 / u128::from(rtt.0.max(1));
            self.0 = Some((bits * u128::from(first) / u128::from(UNIT)) as u64);
        }
        let pace = paced(bps, gain);
        if filled || self.0.is_none_or(|now| pace > now) {
            self.0 = Some(pace);
        }
    }

    /// The path is known to carry `bps`, and nothing more is asked of it.
    pub(in super::super) fn cruise(&mut self, bps: u64) {
        self.0 = Some(paced(bps, UNIT));
    }

    /// As a rate.
    pub(in super::super) fn rate(self) -> Option<Rate> {
        self.0.and_then(|bps| Rate::from_bps(bps.max(1)))
    }
}

/// One percent less than the rate, so that a queue does not stand.
fn paced(bps: u64, gain: u64) -> u64 {
    let pace = u128::from(bps) * u128::from(gain) * 99 / (100 * u128::from(UNIT));
    pace.min(u128::from(u64::MAX)) as u64
}
