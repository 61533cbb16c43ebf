//! Round trips of a subscriber on one side of the station, in constant memory.

use lasthop_proto::units::Span;
use serde::{Deserialize, Serialize};

/// Classes of a sixteenth of an octave, from 66 us to 17 s: the median is accurate to 3 %.
const FIRST_OCTAVE: u32 = 16;
const LAST_OCTAVE: u32 = 33;
const STEPS: u32 = 4;
const CLASSES: usize = ((LAST_OCTAVE - FIRST_OCTAVE + 1) << STEPS) as usize;

/// No round trip yet.
const NONE: u32 = u32::MAX;

/// Round trips of the recent past, in seconds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct RecentTrips {
    /// The least of the last ten to twenty minutes.
    pub min_s: f64,
    /// The median. The weight of a round trip halves every 30 s.
    pub median_s: f64,
    /// Sum of the weights.
    pub samples: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Trips {
    counts: [u16; CLASSES],
    /// The least of the current period and of the one before, microseconds.
    least: [u32; 2],
}

impl Default for Trips {
    fn default() -> Trips {
        Trips { counts: [0; CLASSES], least: [NONE; 2] }
    }
}

impl Trips {
    pub(super) fn add(&mut self, trip: Span) {
        let nanos = trip.0.clamp(1 << FIRST_OCTAVE, (1 << (LAST_OCTAVE + 1)) - 1);
        let octave = nanos.ilog2();
        let step = (nanos >> (octave - STEPS)) as usize & ((1 << STEPS) - 1);
        let class = (((octave - FIRST_OCTAVE) << STEPS) as usize) + step;
        if self.counts[class] == u16::MAX {
            self.halve(1);
        }
        self.counts[class] += 1;
        self.least[0] = self.least[0].min((trip.0 / 1000).min(u64::from(NONE - 1)) as u32);
    }

    /// Halves all weights `times` times.
    pub(super) fn halve(&mut self, times: u64) {
        let shift = u32::try_from(times).unwrap_or(u32::MAX);
        self.counts.iter_mut().for_each(|n| *n = n.checked_shr(shift).unwrap_or(0));
    }

    /// Begins the next period of the least round trip.
    pub(super) fn rotate(&mut self) {
        self.least = [NONE, self.least[0]];
    }

    /// `None` without a recent round trip.
    pub(super) fn recent(&self) -> Option<RecentTrips> {
        let total: u64 = self.counts.iter().map(|n| u64::from(*n)).sum();
        let least = self.least[0].min(self.least[1]);
        if total == 0 || least == NONE {
            return None;
        }
        let min_s = f64::from(least) / 1e6;
        let median_s = self.median(total).max(min_s);
        Some(RecentTrips { min_s, median_s, samples: total })
    }

    /// The median in seconds, interpolated within its class.
    fn median(&self, total: u64) -> f64 {
        let half = total as f64 / 2.0;
        let mut below = 0.0;
        for (i, n) in (0u32..).zip(&self.counts) {
            let n = f64::from(*n);
            if n > 0.0 && below + n >= half {
                let width = 1u64 << (FIRST_OCTAVE + (i >> STEPS) - STEPS);
                let low = width * u64::from((1 << STEPS) + (i & ((1 << STEPS) - 1)));
                let inside = (half - below) / n;
                return (low as f64 + inside * width as f64) / 1e9;
            }
            below += n;
        }
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(millis: impl IntoIterator<Item = u64>) -> Trips {
        let mut trips = Trips::default();
        millis.into_iter().for_each(|ms| trips.add(Span::millis(ms)));
        trips
    }

    #[test]
    fn the_median_is_near_and_the_least_is_exact() {
        assert_eq!(Trips::default().recent(), None);
        for (all, min, median) in [
            (of([7]), 0.007, 0.007),
            (of(1..=1001), 0.001, 0.501),
            (of([3, 100, 100, 100, 2000]), 0.003, 0.1),
            (of([16_000]), 16.0, 16.0),
        ] {
            let recent = all.recent().unwrap();
            assert_eq!(recent.min_s, min, "{recent:?}");
            assert!((recent.median_s / median - 1.0).abs() <= 0.032, "{recent:?}");
        }
        // Beyond the classes.
        let mut trips = of([40_000]);
        assert!((trips.recent().unwrap().median_s - 40.0).abs() < 1e-9, "at least the least");
        trips.add(Span(10));
        assert_eq!(trips.recent().unwrap().min_s, 0.0);
    }

    #[test]
    fn old_round_trips_lose_their_weight() {
        let mut trips = of([100; 64]);
        trips.halve(4);
        (0..6).for_each(|_| trips.add(Span::millis(10)));
        let recent = trips.recent().unwrap();
        assert_eq!((recent.samples, recent.min_s), (10, 0.01));
        assert!(recent.median_s < 0.011, "{recent:?}");
        trips.rotate();
        assert_eq!(trips.recent().unwrap().min_s, 0.01, "of the period before");
        trips.halve(99);
        assert_eq!(trips.recent(), None);
        // A class that is full halves all.
        let mut full = of([5; u16::MAX as usize + 1]);
        assert_eq!(full.recent().unwrap().samples, u64::from(u16::MAX / 2) + 1);
        full.rotate();
        full.rotate();
        assert_eq!(full.recent(), None);
    }
}
