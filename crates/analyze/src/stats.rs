//! Mean and spread of a series, in one pass.

use serde::Serialize;

/// Minimum, mean, maximum and standard deviation of samples in seconds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Spread {
    /// Number of samples.
    pub samples: u64,
    /// Smallest sample, in seconds.
    pub min: f64,
    /// Arithmetic mean, in seconds.
    pub mean: f64,
    /// Largest sample, in seconds.
    pub max: f64,
    /// Standard deviation of the samples (divided by n - 1), in seconds; zero for one sample.
    pub sd: f64,
}

/// Accumulates samples by Welford's method: numerically stable, and without storing them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Series {
    samples: u64,
    min: f64,
    mean: f64,
    max: f64,
    squares: f64,
}

impl Series {
    pub(crate) fn add(&mut self, sample: f64) {
        if self.samples == 0 {
            (self.min, self.max) = (sample, sample);
        }
        self.samples += 1;
        self.min = self.min.min(sample);
        self.max = self.max.max(sample);
        let before = sample - self.mean;
        self.mean += before / self.samples as f64;
        self.squares += before * (sample - self.mean);
    }

    /// The smallest sample.
    pub(crate) fn min(&self) -> Option<f64> {
        (self.samples > 0).then_some(self.min)
    }

    /// The spread; `None` without samples.
    pub(crate) fn spread(&self) -> Option<Spread> {
        let &Series { samples, min, mean, max, squares } = self;
        let sd = if samples > 1 { (squares / (samples - 1) as f64).max(0.0).sqrt() } else { 0.0 };
        (samples > 0).then_some(Spread { samples, min, mean, max, sd })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_series_has_its_known_spread() {
        let mut series = Series::default();
        assert_eq!(series.spread(), None);
        [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0].into_iter().for_each(|x| series.add(x));
        let spread = series.spread().unwrap();
        assert_eq!((spread.samples, spread.min, spread.mean, spread.max), (8, 2.0, 5.0, 9.0));
        assert!((spread.sd - (32.0f64 / 7.0).sqrt()).abs() < 1e-12);
    }
}
