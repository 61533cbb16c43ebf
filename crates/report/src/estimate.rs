//! Estimates from runs, with 95 % intervals.

use std::fmt;

use lasthop_observe::stats::{Summary, student_t, student_t_at};
use serde::{Deserialize, Serialize};

use crate::number::with_interval;

/// A value, with half of its 95 % interval if it has one: constants and deterministic runs have none.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(into = "Bounds", from = "Bounds")]
pub struct Estimate {
    pub value: f64,
    pub ci: Option<f64>,
}

/// [`Estimate`] in JSON, with both bounds of the interval, so that readers need not know that `ci` is half of its width.
#[derive(Serialize, Deserialize)]
struct Bounds {
    // Infinities and NaN are written as `null`.
    value: Option<f64>,
    interval95: Option<(f64, f64)>,
}

impl From<Estimate> for Bounds {
    fn from(estimate: Estimate) -> Bounds {
        let interval = estimate.ci.map(|_| (estimate.low(), estimate.high()));
        let interval95 = interval.filter(|(low, high)| low.is_finite() && high.is_finite());
        Bounds { value: Some(estimate.value), interval95 }
    }
}

impl From<Bounds> for Estimate {
    fn from(bounds: Bounds) -> Estimate {
        let ci = bounds.interval95.map(|(low, high)| (high - low) / 2.0);
        Estimate { value: bounds.value.unwrap_or(f64::NAN), ci }
    }
}

impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&with_interval(self.value, self.half()))
    }
}

/// An interval below this part of the value is rounding noise of equal runs.
const NOISE: f64 = 1e-9;

impl Estimate {
    pub fn new(value: f64, ci: f64) -> Estimate {
        let ci = Some(ci).filter(|ci| *ci > NOISE * value.abs() && ci.is_finite());
        Estimate { value, ci }
    }

    /// A function of the means of some series of runs, with the interval of the jackknife.
    ///
    /// Series of one length are of the same seeds, so that one run is left out of all of them at a time: errors that
    /// they share cancel out. A series of one value is a constant.
    pub fn of(series: &[&[f64]], of: impl Fn(&[f64]) -> f64) -> Estimate {
        let sums: Vec<f64> = series.iter().map(|s| s.iter().sum()).collect();
        let all: Vec<f64> = sums.iter().zip(series).map(|(sum, s)| sum / s.len() as f64).collect();
        let value = of(&all);
        let mut lengths: Vec<usize> = series.iter().map(|s| s.len()).filter(|n| *n > 1).collect();
        lengths.sort_unstable();
        lengths.dedup();
        let mut ci2 = 0.0;
        for n in lengths {
            let without = |run: usize| {
                let mut means = all.clone();
                for ((mean, sum), s) in means.iter_mut().zip(&sums).zip(series) {
                    if s.len() == n {
                        *mean = (sum - s[run]) / (n - 1) as f64;
                    }
                }
                of(&means)
            };
            let left: Vec<f64> = (0..n).map(without).collect();
            let mean = left.iter().sum::<f64>() / n as f64;
            let squares: f64 = left.iter().map(|x| (x - mean) * (x - mean)).sum();
            let error2 = squares * (n - 1) as f64 / n as f64;
            ci2 += error2 * student_t(n as u64 - 1) * student_t(n as u64 - 1);
        }
        Estimate::new(value, ci2.sqrt())
    }

    /// The ratio of two means.
    pub fn ratio(a: &[f64], b: &[f64]) -> Estimate {
        Estimate::of(&[a, b], |m| m[0] / m[1])
    }

    /// By how many percent the mean of `a` exceeds that of `b`.
    pub fn percent_above(a: &[f64], b: &[f64]) -> Estimate {
        Estimate::of(&[a, b], |m| 100.0 * (m[0] / m[1] - 1.0))
    }

    /// The difference of two means.
    pub fn difference(a: &[f64], b: &[f64]) -> Estimate {
        Estimate::of(&[a, b], |m| m[0] - m[1])
    }

    /// With the interval of one of several comparisons from `runs` runs, so that all of them together are right in 95 %
    /// of the cases (Bonferroni).
    pub fn among(self, comparisons: usize, runs: usize) -> Estimate {
        let freedom = (runs.max(2) - 1) as u64;
        let wider = student_t_at(freedom, 0.05 / comparisons.max(1) as f64) / student_t(freedom);
        Estimate { ci: self.ci.map(|ci| ci * wider), ..self }
    }

    /// Of several steps, all of which should be above zero: one that is below for certain, or the one that is least
    /// certain to be above.
    pub fn weakest(steps: impl IntoIterator<Item = Estimate>) -> Estimate {
        let steps: Vec<Estimate> = steps.into_iter().collect();
        let falls = steps.iter().filter(|step| step.high() < 0.0);
        let falls = falls.min_by(|a, b| a.high().total_cmp(&b.high()));
        let least = || steps.iter().min_by(|a, b| a.low().total_cmp(&b.low()));
        falls.or_else(least).copied().unwrap_or(Estimate::from(f64::NAN))
    }

    /// A share of runs, in percent, with Wilson's interval, drawn around the share.
    pub fn share(part: usize, of: usize) -> Estimate {
        const Z: f64 = 1.96;
        let (n, p) = (of as f64, part as f64 / of as f64);
        let scale = 1.0 + Z * Z / n;
        let centre = (p + Z * Z / (2.0 * n)) / scale;
        let half = Z / scale * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
        Estimate::new(100.0 * p, 100.0 * (half + (centre - p).abs()))
    }

    /// Half of the interval; zero without one.
    pub fn half(&self) -> f64 {
        self.ci.unwrap_or(0.0)
    }

    pub fn low(&self) -> f64 {
        self.value - self.half()
    }

    pub fn high(&self) -> f64 {
        self.value + self.half()
    }

    /// The same in another unit.
    pub fn scaled(self, factor: f64) -> Estimate {
        Estimate { value: self.value * factor, ci: self.ci.map(|ci| ci * factor.abs()) }
    }
}

impl From<f64> for Estimate {
    fn from(value: f64) -> Estimate {
        Estimate { value, ci: None }
    }
}

impl From<Summary> for Estimate {
    fn from(summary: Summary) -> Estimate {
        Estimate::new(summary.mean, summary.ci95)
    }
}

impl From<&Summary> for Estimate {
    fn from(summary: &Summary) -> Estimate {
        Estimate::from(*summary)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: [f64; 5] = [10.0, 12.0, 9.0, 11.0, 13.0];

    #[test]
    fn the_jackknife_of_a_mean_is_the_usual_interval() {
        let usual = Summary::of(&A);
        let estimate = Estimate::of(&[&A], |m| m[0]);
        assert!((estimate.value - usual.mean).abs() < 1e-12);
        assert!((estimate.ci.unwrap() - usual.ci95).abs() < 1e-9);
    }

    #[test]
    fn shared_errors_cancel_out() {
        let b = A.map(|a| a / 2.0);
        assert_eq!(Estimate::ratio(&A, &b), Estimate { value: 2.0, ci: None });
        let shifted = A.map(|a| a + 1.0);
        assert_eq!(Estimate::difference(&shifted, &A).ci, None);
        let other = [5.0, 4.0, 6.0, 5.0, 4.5];
        assert!(Estimate::ratio(&A, &other).ci.unwrap() > 0.1);
        // Series of other lengths are of other runs.
        assert!(Estimate::ratio(&A, &b[..4]).ci.unwrap() > 0.1);
    }

    #[test]
    fn constants_have_no_interval() {
        assert_eq!(Estimate::from(3.0).ci, None);
        assert_eq!(Estimate::from(Summary::of(&[3.0])).ci, None);
        assert_eq!(Estimate::of(&[&[3.0], &[2.0]], |m| m[0] / m[1]).ci, None);
        assert_eq!(Estimate::of(&[&[0.1; 20]], |m| m[0]).ci, None, "equal runs");
    }

    #[test]
    fn the_weakest_step_is_one_that_falls_for_certain() {
        let steps = [(1.0, 0.1), (-0.5, 0.9), (-0.2, 0.1)].map(|(v, ci)| Estimate::new(v, ci));
        assert_eq!(Estimate::weakest(steps).value, -0.2);
        assert_eq!(Estimate::weakest(steps[..2].to_vec()).value, -0.5);
        assert!(Estimate::weakest([]).value.is_nan());
        let wider = Estimate::new(1.0, 0.1).among(8, 20).ci.unwrap();
        assert!((0.13..0.16).contains(&wider), "{wider}");
    }

    #[test]
    fn a_share_has_an_interval_even_if_it_is_all_or_nothing() {
        assert!(Estimate::share(0, 20).high() > 5.0);
        assert!(Estimate::share(20, 20).low() < 95.0);
        assert!(Estimate::share(100, 200).ci.unwrap() < 7.5);
    }
}
