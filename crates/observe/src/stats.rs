//! Statistics over runs: means with confidence intervals, paired differences, quantiles, regression.

use serde::{Deserialize, Serialize};
use statrs::distribution::{Binomial, ContinuousCDF, DiscreteCDF, StudentsT};

/// Mean and spread of a sample of independent runs.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Summary {
    /// Number of values.
    pub n: u64,
    /// Arithmetic mean; zero for an empty sample.
    pub mean: f64,
    /// Sample standard deviation (divisor n - 1); zero for fewer than two values.
    pub sd: f64,
    /// Half the width of the 95 % confidence interval of the mean. Zero for fewer than two values, which have
    /// no interval.
    pub ci95: f64,
}

impl Summary {
    /// Summary of `values` by two passes, which avoids cancellation.
    pub fn of(values: &[f64]) -> Summary {
        let n = values.len();
        if n == 0 {
            return Summary::default();
        }
        let mean = values.iter().sum::<f64>() / n as f64;
        if n == 1 {
            return Summary { n: 1, mean, sd: 0.0, ci95: 0.0 };
        }
        let squares: f64 = values.iter().map(|x| (x - mean) * (x - mean)).sum();
        let sd = (squares / (n - 1) as f64).sqrt();
        let ci95 = student_t(n as u64 - 1) * sd / (n as f64).sqrt();
        Summary { n: n as u64, mean, sd, ci95 }
    }

    /// Summary of the paired differences `a - b`. Runs with the same seed have the same channel errors, so
    /// this interval is narrower than the two separate intervals suggest. `None` if the lengths differ.
    pub fn of_differences(a: &[f64], b: &[f64]) -> Option<Summary> {
        if a.len() != b.len() {
            return None;
        }
        let differences: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
        Some(Summary::of(&differences))
    }

    /// The summary in a larger unit of `unit` present ones.
    pub fn in_units_of(&self, unit: f64) -> Summary {
        let Summary { n, mean, sd, ci95 } = *self;
        Summary { n, mean: mean / unit, sd: sd / unit, ci95: ci95 / unit }
    }

    /// Lower end of the 95 % confidence interval.
    pub fn low(&self) -> f64 {
        self.mean - self.ci95
    }

    /// Upper end of the 95 % confidence interval.
    pub fn high(&self) -> f64 {
        self.mean + self.ci95
    }
}

/// The factor of a two-sided 95 % interval: Student's t at 0.975 with `freedom` degrees of freedom. Infinite
/// for zero.
pub fn student_t(freedom: u64) -> f64 {
    student_t_at(freedom, 0.05)
}

/// The factor of an interval that excludes `level`, such as 0.05.
pub fn student_t_at(freedom: u64, level: f64) -> f64 {
    let student = StudentsT::new(0.0, 1.0, freedom as f64);
    student.map_or(f64::INFINITY, |t| t.inverse_cdf(1.0 - level / 2.0))
}

/// Two-sided p-value of the paired t-test: the probability of a mean difference at least this large if there
/// is none. 1 if all pairs are equal, 0 if all pairs differ by the same amount. `None` for fewer than two
/// pairs and for different lengths.
pub fn paired_p(a: &[f64], b: &[f64]) -> Option<f64> {
    let Summary { n, mean, sd, .. } = Summary::of_differences(a, b).filter(|s| s.n > 1)?;
    let scale = a.iter().chain(b).fold(0.0_f64, |most, x| most.max(x.abs()));
    // Rounding residues of equal values are no difference.
    if mean.abs() <= 1e-12 * scale {
        return Some(1.0);
    }
    if sd <= 1e-12 * scale {
        return Some(0.0);
    }
    let t = mean.abs() / (sd / (n as f64).sqrt());
    let student = StudentsT::new(0.0, 1.0, (n - 1) as f64).ok()?;
    Some((2.0 * student.sf(t)).min(1.0))
}

/// Mean and deviation of a stream of values in constant memory (Welford).
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Moments {
    n: u64,
    mean: f64,
    squares: f64,
    max: f64,
}

impl Moments {
    /// Adds a value.
    pub fn add(&mut self, x: f64) {
        self.n += 1;
        let from_old = x - self.mean;
        self.mean += from_old / self.n as f64;
        self.squares += from_old * (x - self.mean);
        self.max = if self.n == 1 { x } else { self.max.max(x) };
    }

    /// Number of values.
    pub fn n(&self) -> u64 {
        self.n
    }

    /// Arithmetic mean; zero before the first value.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// Sample standard deviation; zero for fewer than two values.
    pub fn sd(&self) -> f64 {
        if self.n < 2 { 0.0 } else { (self.squares / (self.n - 1) as f64).sqrt() }
    }

    /// Largest value; zero before the first.
    pub fn max(&self) -> f64 {
        self.max
    }
}

/// A straight line through points, by least squares.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Line {
    /// Change of y per unit of x.
    pub slope: f64,
    /// y at x = 0.
    pub intercept: f64,
    /// Share of the variance of y that the line explains, 0..=1 (R squared).
    pub r2: f64,
}

/// The least-squares line through `points`; `None` for fewer than two distinct x.
pub fn regression(points: &[(f64, f64)]) -> Option<Line> {
    let n = points.len() as f64;
    let (mx, my) = points.iter().fold((0.0, 0.0), |(sx, sy), (x, y)| (sx + x / n, sy + y / n));
    let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
    for (x, y) in points {
        let (dx, dy) = (x - mx, y - my);
        xx += dx * dx;
        xy += dx * dy;
        yy += dy * dy;
    }
    if xx <= 0.0 || !xx.is_finite() {
        return None;
    }
    let slope = xy / xx;
    // A level line explains level points completely.
    let r2 = if yy > 0.0 { (xy * xy / (xx * yy)).min(1.0) } else { 1.0 };
    Some(Line { slope, intercept: my - slope * mx, r2 })
}

/// The `q`-quantile of `values` (0..=1), interpolated between neighbours like NumPy and R (type 7). `None`
/// for an empty sample.
pub fn quantile(values: &[f64], q: f64) -> Option<f64> {
    let mut values = values.to_vec();
    let place = q.clamp(0.0, 1.0) * values.len().checked_sub(1)? as f64;
    let (_, &mut below, rest) = values.select_nth_unstable_by(place as usize, f64::total_cmp);
    let above = rest.iter().copied().min_by(f64::total_cmp).unwrap_or(below);
    Some(below + (above - below) * place.fract())
}

/// The median of `values`; `None` for an empty sample.
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// Median of a sample with a distribution-free 95 % interval. It suits measurements with a long tail:
/// disturbances on a busy machine only add time.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Middle {
    /// Number of values.
    pub n: u64,
    /// Their median.
    pub median: f64,
    /// Interval that contains the median of the population with a probability of at least 95 %: two of the
    /// values, by rank. `None` for fewer than six values.
    pub interval: Option<(f64, f64)>,
}

impl Middle {
    /// The median of `values`; `None` for an empty sample.
    pub fn of(values: &[f64]) -> Option<Middle> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let median = median(&sorted)?;
        let n = sorted.len();
        // The number of values below the population's median is binomial, like coin tosses. The interval
        // begins at the highest rank that leaves at most 2.5 % on each side.
        let coin = Binomial::new(0.5, n as u64).ok()?;
        let rank = (0..n / 2).take_while(|k| coin.cdf(*k as u64) <= 0.025).count();
        let interval = (rank > 0).then(|| (sorted[rank - 1], sorted[n - rank]));
        Some(Middle { n: n as u64, median, interval })
    }

    /// Half the width of an interval around the median that contains [`Middle::interval`]; zero without one.
    pub fn half(&self) -> f64 {
        self.interval.map_or(0.0, |(low, high)| (self.median - low).max(high - self.median))
    }

    /// Whether the interval contains `value`.
    pub fn holds(&self, value: f64) -> bool {
        self.interval.is_some_and(|(low, high)| (low..=high).contains(&value))
    }
}

/// Jain's fairness index of `shares`: 1 if all are equal, 1/n if one has everything. 1 for no shares and for
/// zero shares.
pub fn jain_index(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|x| x * x).sum();
    if squares > 0.0 { sum * sum / (shares.len() as f64 * squares) } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64, tolerance: f64) {
        assert!((a - b).abs() <= tolerance, "{a} is not {b}");
    }

    #[test]
    fn student_t_agrees_with_the_printed_table() {
        // Critical values at 0.975, NIST/SEMATECH e-Handbook of Statistical Methods, table 1.3.6.7.2.
        for (freedom, t) in [
            (1, 12.706),
            (2, 4.303),
            (3, 3.182),
            (4, 2.776),
            (9, 2.262),
            (19, 2.093),
            (29, 2.045),
            (49, 2.010),
            (99, 1.984),
        ] {
            close(student_t(freedom), t, 0.0006);
        }
        close(student_t(1_000_000), 1.960, 0.0006);
    }

    #[test]
    fn summary_of_a_known_sample() {
        let s = Summary::of(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]);
        close(s.mean, 5.0, 1e-12);
        close(s.sd, 2.138_089_935, 1e-9);
        close(s.ci95, 2.3646 * 2.138_089_935 / 8f64.sqrt(), 1e-4);
        assert_eq!(Summary::of(&[]).n, 0);
        assert_eq!(Summary::of(&[3.0]).ci95, 0.0);
    }

    #[test]
    fn pairing_narrows_the_interval() {
        let a = [10.0, 20.0, 30.0, 40.0];
        let b = [9.0, 18.9, 29.1, 39.0];
        let paired = Summary::of_differences(&a, &b).unwrap();
        close(paired.mean, 1.0, 1e-9);
        assert!(paired.ci95 < 0.2);
        assert_eq!(Summary::of_differences(&a, &b[1..]), None);
    }

    #[test]
    fn the_paired_test_agrees_with_a_textbook() {
        // Student's own data (1908): hours of sleep gained with two drugs; R's t.test(..., paired = TRUE): t
        // = -4.0621, df = 9, p = 0.002833.
        let a = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
        let b = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];
        close(paired_p(&a, &b).unwrap(), 0.002_833, 1e-6);
        assert_eq!(paired_p(&a, &a), Some(1.0));
        assert_eq!(paired_p(&[1.0, 2.0], &[2.0, 3.0]), Some(0.0));
        assert_eq!(paired_p(&[1.0], &[2.0]), None);
    }

    #[test]
    fn streaming_and_two_pass_agree() {
        let values: Vec<f64> = (0..1000).map(|i| 1e9 + f64::from(i % 17)).collect();
        let mut moments = Moments::default();
        values.iter().for_each(|x| moments.add(*x));
        let summary = Summary::of(&values);
        close(moments.mean(), summary.mean, 1e-4);
        close(moments.sd(), summary.sd, 1e-6);
        assert_eq!(moments.max(), 1e9 + 16.0);
        assert_eq!(moments.n(), 1000);
    }

    #[test]
    fn a_straight_line_has_r2_one() {
        let line = regression(&[(0.0, 1.0), (1.0, 3.0), (2.0, 5.0)]).unwrap();
        close(line.slope, 2.0, 1e-12);
        close(line.intercept, 1.0, 1e-12);
        close(line.r2, 1.0, 1e-12);
        // Anscombe's first set.
        let anscombe = [
            (10.0, 8.04),
            (8.0, 6.95),
            (13.0, 7.58),
            (9.0, 8.81),
            (11.0, 8.33),
            (14.0, 9.96),
            (6.0, 7.24),
            (4.0, 4.26),
            (12.0, 10.84),
            (7.0, 4.82),
            (5.0, 5.68),
        ];
        let line = regression(&anscombe).unwrap();
        close(line.slope, 0.5001, 1e-4);
        close(line.intercept, 3.0001, 1e-3);
        close(line.r2, 0.6665, 1e-4);
        assert_eq!(regression(&[(1.0, 1.0), (1.0, 2.0)]), None);
    }

    #[test]
    fn quantiles_interpolate() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(quantile(&[0.0, 10.0], 0.9), Some(9.0));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn the_interval_of_a_median_goes_by_ranks() {
        // Ranks of the two-sided 95 % interval for n values: Conover, Practical Nonparametric Statistics, table A3.
        for (n, low) in [(6, 1), (8, 1), (9, 2), (11, 2), (12, 3), (15, 4), (20, 6), (30, 10)] {
            let values: Vec<f64> = (1..=n).rev().map(f64::from).collect();
            let middle = Middle::of(&values).unwrap();
            assert_eq!(middle.interval, Some((f64::from(low), f64::from(n + 1 - low))), "{n}");
            close(middle.median, f64::from(n + 1) / 2.0, 1e-12);
        }
        let few = Middle::of(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert_eq!((few.interval, few.median, few.half()), (None, 3.0, 0.0));
        assert_eq!(Middle::of(&[]), None);
        let skewed = Middle::of(&[1.0, 1.0, 1.1, 1.1, 1.2, 9.0]).unwrap();
        assert!(skewed.holds(1.0) && !skewed.holds(0.9));
        close(skewed.half(), 7.9, 1e-12);
        // The probability of the lowest rank is below the smallest floating-point number.
        let many: Vec<f64> = (0..2000).map(f64::from).collect();
        let (low, high) = Middle::of(&many).unwrap().interval.unwrap();
        assert!((900.0..1000.0).contains(&low) && (1000.0..1100.0).contains(&high), "{low} {high}");
    }

    #[test]
    fn jain_index_spans_its_range() {
        close(jain_index(&[5.0, 5.0, 5.0]), 1.0, 1e-12);
        close(jain_index(&[1.0, 0.0, 0.0, 0.0]), 0.25, 1e-12);
        close(jain_index(&[1.0, 2.0]), 0.9, 1e-12);
        assert_eq!(jain_index(&[]), 1.0);
    }

    #[test]
    fn an_interval_lies_around_its_mean_in_every_unit() {
        let summary = Summary { n: 9, mean: 6.0, sd: 3.0, ci95: 1.5 };
        assert_eq!((summary.low(), summary.high()), (4.5, 7.5));
        let halves = summary.in_units_of(2.0);
        assert_eq!(halves, Summary { n: 9, mean: 3.0, sd: 1.5, ci95: 0.75 });
        assert_eq!((halves.low(), halves.high()), (2.25, 3.75));
    }
}
