//! Compares cells of a sweep by runs with equal seeds: differences, intervals, ranks.
//!
//! Runs with the same seed have the same channel, so they are compared in pairs. The interval of the mean difference is
//! Student's for paired samples. With ten to twenty seeds the intervals of a bootstrap over seeds cover too little;
//! Student's intervals are accurate for means of differences.
//!
//! The test compares ratios: logarithms in pairs, or the values themselves if one is zero. Many comparisons find some
//! difference by chance. So Holm's step-down procedure bounds the family-wise error of "better" and "worse" by 5 %. It
//! is applied to all comparisons with the baseline, and separately to all pairs, for the ranks. The interval of a ratio
//! is at the level of Holm's procedure for its test: it excludes 1 exactly if the difference is significant.

use lasthop_observe::stats::{Summary, paired_p, student_t_at};
use serde::{Deserialize, Serialize};

/// Family-wise error of the comparisons.
pub const LEVEL: f64 = 0.05;

/// Relative differences below this count as a tie even if they are significant: TCP options of a few bytes cause them.
const NEGLIGIBLE: f64 = 0.005;

/// The result of a comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Judgement {
    /// The cell is the baseline itself.
    Baseline,
    /// Significantly higher than the baseline.
    Better,
    /// Significantly lower than the baseline.
    Worse,
    /// No significant difference.
    Tie,
    /// Fewer than two pairs of runs.
    Unknown,
}

/// A cell compared with the baseline.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Standing {
    /// Rank by means; a cell without a significant difference from the leader of a rank shares that rank.
    pub rank: usize,
    pub value: Summary,
    /// The value minus that of the baseline, in pairs.
    pub difference: Summary,
    /// Geometric mean of the ratios to the baseline, in pairs, with a simultaneous 95 % interval. `None` where a value
    /// is zero; without an interval for fewer than two pairs.
    pub ratio: Option<Ratio>,
    /// Two-sided p-value of this comparison, without correction.
    pub p: Option<f64>,
    /// The p-value with Holm's correction.
    pub p_holm: Option<f64>,
    pub judgement: Judgement,
}

/// A ratio with its interval.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Ratio {
    /// Geometric mean of the ratios.
    pub mean: f64,
    /// Lower bound; the mean itself where there is no interval.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
}

impl Ratio {
    /// The ratio of `values` to `baseline` in pairs, with a `1 - level` interval.
    fn of(values: &[f64], baseline: &[f64], level: f64) -> Option<Ratio> {
        let (values, baseline) = (logarithms(values)?, logarithms(baseline)?);
        let s = Summary::of_differences(&values, &baseline).filter(|s| s.n > 0)?;
        let half = match s.n {
            1 => 0.0,
            n => student_t_at(n - 1, level) * s.sd / (n as f64).sqrt(),
        };
        let [mean, low, high] = [s.mean, s.mean - half, s.mean + half].map(libm::exp);
        Some(Ratio { mean, low, high })
    }
}

/// The logarithms; `None` if a value is not positive.
fn logarithms(values: &[f64]) -> Option<Vec<f64>> {
    values.iter().map(|value| (*value > 0.0).then(|| libm::log(*value))).collect()
}

/// The p-value of the paired test of ratios; of differences if a value is not positive.
fn p_value(a: &[f64], b: &[f64]) -> Option<f64> {
    match (logarithms(a), logarithms(b)) {
        (Some(a), Some(b)) => paired_p(&a, &b),
        _ => paired_p(a, b),
    }
}

/// The level at which Holm's procedure tests each of `p`: `level` divided by the number of untested hypotheses. From the
/// first hypothesis that is not rejected it is constant.
fn levels(p: &[Option<f64>], level: f64) -> Vec<f64> {
    let mut order: Vec<(usize, f64)> =
        p.iter().enumerate().filter_map(|(i, p)| p.map(|p| (i, p))).collect();
    order.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut levels = vec![level; p.len()];
    let mut at = level / order.len().max(1) as f64;
    let mut stopped = false;
    for (done, (i, p)) in order.iter().enumerate() {
        if !stopped {
            at = level / (order.len() - done) as f64;
        }
        levels[*i] = at;
        stopped |= *p >= at;
    }
    levels
}

/// Holm's step-down correction: each p-value times the number of untested hypotheses, monotone and at most 1. A cell
/// without a p-value is not tested.
fn holm(p: &[Option<f64>]) -> Vec<Option<f64>> {
    let mut order: Vec<(usize, f64)> =
        p.iter().enumerate().filter_map(|(i, p)| p.map(|p| (i, p))).collect();
    order.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut corrected = vec![None; p.len()];
    let mut last = 0.0_f64;
    for (done, (i, p)) in order.iter().enumerate() {
        last = last.max(p * (order.len() - done) as f64).min(1.0);
        corrected[*i] = Some(last);
    }
    corrected
}

/// Compares each of `cells` with the cell at `baseline`. Each cell is a list of values by seed; a comparison uses
/// the seeds that both cells have.
pub fn standings(cells: &[Vec<f64>], baseline: usize) -> Vec<Standing> {
    standings_of_looks(cells, baseline, 1)
}

/// Like [`standings`], after `looks` interim analyses that decided whether a cell gets more seeds. [`LEVEL`] is divided
/// equally among the analyses.
pub fn standings_of_looks(cells: &[Vec<f64>], baseline: usize, looks: u32) -> Vec<Standing> {
    let Some(base) = cells.get(baseline) else { return Vec::new() };
    let looks = f64::from(looks.max(1));
    let pairs: Vec<(&[f64], &[f64])> =
        cells.iter().map(|values| common_seeds(values, base)).collect();
    let p: Vec<Option<f64>> = pairs
        .iter()
        .enumerate()
        .map(|(i, (values, base))| (i != baseline).then(|| p_value(values, base)).flatten())
        .collect();
    let corrected: Vec<Option<f64>> =
        holm(&p).into_iter().map(|p| p.map(|p| (p * looks).min(1.0))).collect();
    let levels = levels(&p, LEVEL / looks);
    let ranks = ranks(cells, baseline, looks);
    pairs
        .iter()
        .enumerate()
        .map(|(i, (values, base))| {
            let difference = Summary::of_differences(values, base).expect("pairs of seeds");
            Standing {
                rank: ranks[i],
                value: Summary::of(values),
                difference,
                ratio: Ratio::of(values, base, levels[i]),
                p: p[i],
                p_holm: corrected[i],
                judgement: match corrected[i] {
                    _ if i == baseline => Judgement::Baseline,
                    None => Judgement::Unknown,
                    Some(p) if p >= LEVEL || negligible(values, base) => Judgement::Tie,
                    Some(_) if difference.mean > 0.0 => Judgement::Better,
                    Some(_) => Judgement::Worse,
                },
            }
        })
        .collect()
}

/// The values of the seeds that both cells have.
fn common_seeds<'a>(a: &'a [f64], b: &'a [f64]) -> (&'a [f64], &'a [f64]) {
    let common = a.len().min(b.len());
    (&a[..common], &b[..common])
}

fn negligible(a: &[f64], b: &[f64]) -> bool {
    let (a, b) = (Summary::of(a).mean, Summary::of(b).mean);
    (a - b).abs() < NEGLIGIBLE * a.abs().min(b.abs())
}

/// Ranks by means. A cell shares the rank of the leader above it. If the leader is significantly better by the test
/// over all pairs, the cell leads the next rank. The mean of a cell with fewer seeds is its ratio to the baseline at
/// these seeds, times the baseline's mean.
fn ranks(cells: &[Vec<f64>], baseline: usize, looks: f64) -> Vec<usize> {
    let mut pairs = Vec::new();
    for a in 0..cells.len() {
        pairs.extend((a + 1..cells.len()).map(|b| (a, b)));
    }
    let of_pair = |(a, b): (usize, usize)| common_seeds(&cells[a], &cells[b]);
    let p: Vec<Option<f64>> = pairs
        .iter()
        .map(|pair| {
            let (a, b) = of_pair(*pair);
            p_value(a, b)
        })
        .collect();
    let corrected = holm(&p);
    let differ = |a: usize, b: usize| {
        let pair = (a.min(b), a.max(b));
        let (one, other) = of_pair(pair);
        let place = pairs.iter().position(|other| *other == pair);
        place.and_then(|i| corrected[i]).is_some_and(|p| p * looks < LEVEL)
            && !negligible(one, other)
    };
    let means = means(cells, baseline);
    let mut order: Vec<usize> = (0..cells.len()).collect();
    order.sort_by(|a, b| means[*b].total_cmp(&means[*a]));
    let mut ranks = vec![1; cells.len()];
    let mut leader = (order.first().copied().unwrap_or(0), 1);
    for (place, i) in order.into_iter().enumerate() {
        if differ(leader.0, i) {
            leader = (i, place + 1);
        }
        ranks[i] = leader.1;
    }
    ranks
}

fn means(cells: &[Vec<f64>], baseline: usize) -> Vec<f64> {
    let mean = |values: &[f64]| Summary::of(values).mean;
    let most = cells.iter().map(Vec::len).max().unwrap_or(0);
    let base = &cells[baseline];
    let of = |values: &Vec<f64>| {
        let (own, there) = common_seeds(values, base);
        let (own, there) = (mean(own), mean(there));
        if own.is_finite() && there > 0.0 && values.len() < most {
            own / there * mean(base)
        } else {
            mean(values)
        }
    };
    cells.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holm_is_as_published() {
        // S. Holm 1979, as in the manual of R's p.adjust.
        let p = [Some(0.01), Some(0.04), None, Some(0.03), Some(0.005)];
        let got: Vec<f64> = holm(&p).into_iter().flatten().collect();
        for (got, want) in got.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((got - want).abs() < 1e-12, "{got} {want}");
        }
        assert_eq!(holm(&p)[2], None);
        assert_eq!(holm(&[Some(0.9), Some(0.8)])[0], Some(1.0));
    }

    #[test]
    fn consistent_gains_are_better_and_noise_is_a_tie() {
        let noise = [3.0, -2.0, 5.0, -4.0, 1.0, 0.0, -3.0, 2.0];
        let base: Vec<f64> = noise.iter().map(|n| 100.0 + 10.0 * n).collect();
        let better: Vec<f64> = base.iter().zip(noise).map(|(b, n)| b + 8.0 + n / 10.0).collect();
        let same: Vec<f64> = base.iter().zip(noise).map(|(b, n)| b + n * n - 8.5).collect();
        let all = standings(&[base.clone(), better, same, base], 0);
        assert_eq!(all[0].judgement, Judgement::Baseline);
        assert_eq!(all[1].judgement, Judgement::Better);
        assert_eq!((all[1].rank, all[0].rank, all[2].rank), (1, 2, 2));
        assert_eq!(all[2].judgement, Judgement::Tie);
        // A significant but negligible difference is a tie as well.
        let hardly: Vec<f64> = cells_of_100().iter().map(|v| v + 0.1).collect();
        let all_of_100 = standings(&[cells_of_100(), hardly], 0);
        assert_eq!((all_of_100[1].p, all_of_100[1].judgement), (Some(0.0), Judgement::Tie));
        assert_eq!(all_of_100[0].rank, 1);
        // Equal values are a tie, not a certain difference of zero.
        assert_eq!(all[3].judgement, Judgement::Tie);
        let ratio = all[1].ratio.unwrap();
        assert!(ratio.low > 1.0 && ratio.low < ratio.mean && ratio.mean < ratio.high);
    }

    /// The judgement and the interval of the ratio always agree.
    #[test]
    fn the_ratio_interval_agrees_with_the_judgement() {
        let noise = [3.0, -2.0, 5.0, -4.0, 1.0, 0.0, -3.0, 2.0];
        let base: Vec<f64> = noise.iter().map(|n| 100.0 + 20.0 * n).collect();
        let mut cells = vec![base.clone()];
        for gain in [0.2, 0.5, 0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.2, 1.5, 3.0] {
            for spread in [0.0, 0.02, 0.1, 0.3] {
                let wave =
                    |i: usize| if i.is_multiple_of(3) { 1.0 + spread } else { 1.0 - spread / 3.0 };
                cells.push(base.iter().enumerate().map(|(i, b)| b * gain * wave(i)).collect());
            }
        }
        let all = standings(&cells, 0);
        let significant = all.iter().filter(|s| s.judgement != Judgement::Tie).count();
        assert!((5..all.len() - 5).contains(&significant), "{significant}");
        for standing in &all[1..] {
            let ratio = standing.ratio.unwrap();
            let (low, high) = (ratio.low, ratio.high);
            match standing.judgement {
                Judgement::Better => assert!(low > 1.0, "{standing:?}"),
                Judgement::Worse => assert!(high < 1.0, "{standing:?}"),
                // Where all pairs are equal the bounds are 1, but for rounding.
                _ => assert!(low < 1.0 + 1e-9 && high > 1.0 - 1e-9, "{standing:?}"),
            }
        }
    }

    /// A cell with fewer seeds is compared at these seeds only, and two analyses have a stricter level than one.
    #[test]
    fn cells_with_fewer_seeds_are_compared_at_common_seeds() {
        let base: Vec<f64> =
            (0..12_u32).map(|i| 100.0 + f64::from(i % 5) * 10.0 + f64::from(i)).collect();
        let better: Vec<f64> = base.iter().map(|b| b * 1.2 + (b % 3.0)).collect();
        let few: Vec<f64> = base[..5].iter().map(|b| b * 1.1 + (b % 2.0)).collect();
        let cells = [base.clone(), better, few.clone()];
        let (once, twice) = (standings(&cells, 0), standings_of_looks(&cells, 0, 2));
        assert_eq!(once[2].value.n, 5);
        assert_eq!(
            once[2].ratio,
            standings(&[base[..5].to_vec(), few], 0)[1].ratio.map(|ratio| Ratio {
                // The bounds are not compared: two comparisons have a stricter level than one.
                low: once[2].ratio.unwrap().low,
                high: once[2].ratio.unwrap().high,
                ..ratio
            })
        );
        for (one, two) in once.iter().zip(&twice).skip(1) {
            assert_eq!(two.p_holm, one.p_holm.map(|p| (2.0 * p).min(1.0)));
            let (one, two) = (one.ratio.unwrap(), two.ratio.unwrap());
            assert!(two.low < one.low && two.high > one.high && two.mean == one.mean);
        }
        assert_eq!(once.iter().map(|s| s.rank).collect::<Vec<_>>(), [3, 1, 2]);
    }

    fn cells_of_100() -> Vec<f64> {
        vec![100.0; 5]
    }

    #[test]
    fn one_run_has_no_judgement_and_zeros_no_ratio() {
        let all = standings(&[vec![1.0], vec![2.0]], 0);
        assert_eq!(all[1].judgement, Judgement::Unknown);
        assert_eq!((all[0].rank, all[1].rank), (1, 1));
        let all = standings(&[vec![0.0, 1.0], vec![2.0, 2.0, 7.0]], 0);
        assert_eq!(all[1].ratio, None);
        assert_eq!(all[1].value.n, 2);
        assert!(standings(&[], 0).is_empty());
    }
}
