//! Tokens of a rate and of a peak rate, counted like in Linux's token bucket filter and policer (Linux 6.18):
//! in nanoseconds of the rate.

use serde::Serialize;

use crate::units::{Rate, Span, Time};

const SECOND: u128 = 1_000_000_000;

/// The rate for lists of keys.
pub(super) const LISTED: Rate = Rate::from_bps(1_000_000).expect("a rate");

/// Length of a packet for a rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Measure {
    /// Framing bytes per packet; 14 for an Ethernet header.
    pub framing: u32,
    /// Additional bytes per frame.
    pub overhead: u32,
    /// Minimum length of a frame in bytes, with the overhead.
    pub least: u32,
    /// Whether frames are divided into ATM cells, 48 bytes in 53.
    pub atm: bool,
}

impl Default for Measure {
    fn default() -> Measure {
        Measure { framing: 14, overhead: 0, least: 0, atm: false }
    }
}

impl Measure {
    /// Nanoseconds of a frame of `bytes` bytes at `rate`.
    pub(super) fn nanos(&self, bytes: u64, rate: Rate) -> i64 {
        let mut bytes = (bytes + u64::from(self.overhead)).max(self.least.into());
        if self.atm {
            bytes = bytes.div_ceil(48) * 53;
        }
        nanos(bytes, rate)
    }
}

/// Nanoseconds of `bytes` bytes at `rate`.
pub(super) fn nanos(bytes: u64, rate: Rate) -> i64 {
    let nanos = u128::from(bytes) * 8 * SECOND / u128::from(rate.bps());
    nanos.min(i64::MAX as u128) as i64
}

/// A bucket.
#[derive(Clone, Debug)]
struct Bucket {
    depth: i64,
    tokens: i64,
}

impl Bucket {
    /// A full bucket.
    fn new(depth: i64) -> Bucket {
        Bucket { depth, tokens: depth }
    }

    /// The tokens after a time of `passed` and a cost of `cost`; negative if there are too few.
    fn after(&self, passed: i64, cost: i64) -> i64 {
        self.tokens.saturating_add(passed).min(self.depth).saturating_sub(cost)
    }
}

/// A bucket for the rate, and one for the peak rate, if there is one.
#[derive(Clone, Debug)]
pub(super) struct Tokens {
    rate: Bucket,
    peak: Option<Bucket>,
    /// Time of the last count.
    at: Time,
}

impl Tokens {
    /// Asserts that the buckets are neither overdrawn nor too full.
    pub fn check(&self) {
        for bucket in core::iter::once(&self.rate).chain(&self.peak) {
            debug_assert!(bucket.tokens >= 0, "a packet has passed without tokens: {bucket:?}");
            debug_assert!(bucket.tokens <= bucket.depth, "more tokens than fit: {bucket:?}");
        }
    }

    /// Full buckets of these depths in nanoseconds.
    pub fn new(depth: i64, peak: Option<i64>) -> Tokens {
        Tokens { rate: Bucket::new(depth), peak: peak.map(Bucket::new), at: Time::ZERO }
    }

    /// Takes the tokens of a packet with these costs. On failure takes none, and returns the waiting time.
    pub fn take(&mut self, now: Time, cost: i64, peak_cost: i64) -> Result<(), Span> {
        let passed = now.0.saturating_sub(self.at.0).min(self.rate.depth.unsigned_abs()) as i64;
        let left = self.rate.after(passed, cost);
        let left_of_peak = self.peak.as_ref().map_or(0, |peak| peak.after(passed, peak_cost));
        let least = left.min(left_of_peak);
        if least < 0 {
            return Err(Span(least.unsigned_abs()));
        }
        self.at = now;
        self.rate.tokens = left;
        if let Some(peak) = &mut self.peak {
            peak.tokens = left_of_peak;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_counted_as_the_kernel_counts_it() {
        let rate = Rate::from_bps(8_000_000).unwrap();
        let plain = Measure::default();
        assert_eq!(plain.nanos(1514, rate), 1_514_000);
        let long = Measure { overhead: 10, least: 84, ..plain };
        assert_eq!([long.nanos(54, rate), long.nanos(100, rate)], [84_000, 110_000]);
        // 1514 bytes are 32 cells.
        assert_eq!(Measure { atm: true, ..plain }.nanos(1514, rate), 32 * 53 * 1000);
    }

    #[test]
    fn tokens_come_back_with_time_and_no_more_than_the_bucket_holds() {
        let mut tokens = Tokens::new(100, None);
        assert_eq!(tokens.take(Time(0), 60, 0), Ok(()));
        assert_eq!(tokens.take(Time(10), 60, 0), Err(Span(10)));
        assert_eq!(tokens.take(Time(20), 60, 0), Ok(()));
        assert_eq!(tokens.take(Time(1000), 100, 0), Ok(()));
        assert_eq!(tokens.take(Time(1000), 1, 0), Err(Span(1)));
        // With a peak rate both must have enough, and the later one determines the time.
        let mut tokens = Tokens::new(1000, Some(50));
        assert_eq!(tokens.take(Time(0), 100, 50), Ok(()));
        assert_eq!(tokens.take(Time(0), 100, 50), Err(Span(50)));
        assert_eq!(tokens.take(Time(50), 100, 50), Ok(()));
    }
}
