//! Stalls: the flat parts of a time-sequence plot (west97 5.1).

use lasthop_proto::units::{Due, Span, Time};
use serde::{Deserialize, Serialize};

use crate::gaps::Gaps;
use crate::histogram::Histogram;

/// Minimum length of a stall: half a tick of the coarsest TCP timer in use, well above a delayed ACK and any
/// local repair on a LAN.
pub const MIN_STALL: Span = Span::millis(200);

/// Minimum length of a stall in typical gaps, so that a slow link is not one long stall.
pub const STALL_FACTOR: u64 = 4;

/// Gaps in classes below this one are no longer than a quarter of [`MIN_STALL`]. If the median is among them, the
/// threshold is [`MIN_STALL`].
const SHORT: Span = Span(6 << 23);

/// Limit of stored gaps. Beyond it, gaps below the present threshold are removed.
const MAX_LISTED: usize = 4096;

/// A time in which a flow had unfinished business and no new data was delivered.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Stall {
    /// Time of the last delivery of new data, seconds since the start of the run.
    pub from_s: f64,
    /// Time of the next delivery, seconds since the start of the run.
    pub to_s: f64,
}

impl Stall {
    /// Duration, seconds.
    pub fn length_s(&self) -> f64 {
        self.to_s - self.from_s
    }
}

/// Detects the stalls of one flow from its signs of progress. Several signs at one instant count once.
///
/// A stall is a gap between two signs of progress that is longer than [`MIN_STALL`] and than [`STALL_FACTOR`]
/// times the flow's median gap. The median is known only at the end, so long gaps are stored and judged then.
/// It is from a histogram with four classes per octave, with an accuracy of 12 %.
#[derive(Clone, Debug, Default)]
pub struct StallWatch {
    last: Due,
    gaps: Histogram,
    /// Number of [short](SHORT) gaps that are not in `gaps`.
    short: u32,
    /// Possible stalls, allocated with the first.
    long: Option<Box<Long>>,
}

/// Possible stalls.
#[derive(Clone, Debug, Default)]
struct Long {
    listed: Gaps,
    /// Number and duration of gaps beyond the limit that were stalls by the threshold of that time.
    unlisted: (u64, Span),
}

impl StallWatch {
    /// Starts the observation: from now on, silence counts.
    pub fn begin(&mut self, at: Time) {
        if !self.last.is_set() {
            self.last = Due::at(at);
        }
    }

    /// Records new data or the completion.
    pub fn progress(&mut self, at: Time) {
        self.advance(at, false);
    }

    /// The same; in `brief`, [short](SHORT) gaps are only counted. Stalls are the same, and a short typical gap is zero.
    #[inline]
    pub(crate) fn advance(&mut self, at: Time, brief: bool) {
        let last = core::mem::replace(&mut self.last, Due::at(at));
        let Some(last) = last.get() else { return };
        let gap = at.since(last);
        if gap == Span::ZERO {
            return;
        }
        if brief && gap < SHORT {
            self.short = self.short.saturating_add(1);
            return;
        }
        self.gaps.add(gap);
        if gap > MIN_STALL {
            self.keep(last, at);
        }
    }

    /// Ends the flow at `at`: later silence is no stall.
    pub fn end(&mut self, at: Time) {
        self.progress(at);
        self.last = Due::NEVER;
    }

    #[cold]
    fn keep(&mut self, from: Time, to: Time) {
        let full = self.long.as_ref().is_some_and(|long| long.listed.len() == MAX_LISTED);
        let threshold = if full { self.threshold() } else { MIN_STALL };
        let Long { listed, unlisted } = &mut **self.long.get_or_insert_default();
        if full {
            listed.retain_longer(threshold);
        }
        if listed.len() < MAX_LISTED {
            listed.push(from, to);
        } else if to.since(from) > threshold {
            unlisted.0 += 1;
            unlisted.1 = unlisted.1 + to.since(from);
        }
    }

    /// The median gap so far; zero before the first gap.
    pub fn typical_gap(&self) -> Span {
        self.gaps.quantile_above(0.5, self.short.into())
    }

    /// Minimum length of a stall by the present median.
    pub fn threshold(&self) -> Span {
        MIN_STALL.max(self.typical_gap() * STALL_FACTOR)
    }

    /// The stalls so far, oldest first, including one in progress at `now`.
    pub fn stalls(&self, now: Time) -> Vec<Stall> {
        let threshold = self.threshold();
        let open = self.last.get().map(|last| (last, now));
        let listed = self.long.iter().flat_map(|long| long.listed.iter());
        let all = listed.chain(open);
        all.filter(|(from, to)| to.since(*from) > threshold)
            .map(|(from, to)| Stall { from_s: from.as_secs_f64(), to_s: to.as_secs_f64() })
            .collect()
    }

    /// Number and total duration of stalls beyond the listed ones.
    pub fn unlisted(&self) -> (u64, Span) {
        self.long.as_ref().map_or((0, Span::ZERO), |long| long.unlisted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time(ms * 1_000_000)
    }

    #[test]
    fn a_long_gap_among_short_ones_is_a_stall() {
        let mut watch = StallWatch::default();
        watch.begin(at(0));
        for ms in (10..=500).step_by(10) {
            watch.progress(at(ms));
        }
        watch.progress(at(1500));
        watch.progress(at(1510));
        watch.end(at(1520));
        let stalls = watch.stalls(at(9000));
        assert_eq!(stalls, [Stall { from_s: 0.5, to_s: 1.5 }]);
    }

    #[test]
    fn a_slow_link_is_not_one_long_stall() {
        let mut watch = StallWatch::default();
        watch.begin(at(0));
        for ms in (250..10_000).step_by(250) {
            watch.progress(at(ms));
        }
        assert!(watch.stalls(at(10_000)).is_empty());
        assert_eq!(watch.stalls(at(11_000)).len(), 1, "silence at the end counts");
    }

    /// The middle of the class of 100 ms is 92 ms, so the threshold is 369 ms.
    #[test]
    fn four_typical_gaps_make_a_stall_and_three_do_not() {
        for (gap, stalls) in [(350, 0), (390, 1)] {
            let mut watch = StallWatch::default();
            watch.begin(at(0));
            (1..=20).for_each(|i| watch.progress(at(100 * i)));
            watch.end(at(2000 + gap));
            let found = watch.stalls(at(9000)).len();
            assert_eq!(found, stalls, "a gap of {gap} ms among gaps of 100 ms");
        }
    }

    #[test]
    fn the_median_is_close() {
        let mut watch = StallWatch::default();
        watch.begin(at(0));
        for i in 1..100u64 {
            watch.progress(Time(i * 6_000_000));
        }
        let typical = watch.typical_gap().as_secs_f64();
        assert!((typical / 0.006 - 1.0).abs() < 0.125, "{typical}");
    }

    #[test]
    fn memory_is_bounded() {
        let mut watch = StallWatch::default();
        watch.begin(at(0));
        let mut now = 0;
        for i in 0..30_000 {
            now += if i % 2 == 0 { 10 } else { 5000 };
            watch.progress(at(now));
        }
        let listed = watch.stalls(at(now)).len() as u64;
        assert!(listed <= MAX_LISTED as u64);
        assert_eq!(listed + watch.unlisted().0, 15_000);
    }
}
