//! Shares of the variance of a result that each parameter explains (I. Sobol 1993).
//!
//! The *main effect* is the share of the parameter alone. It is the variance of the means over its parts (its values,
//! or quarters of its range), divided by the total variance. The *total effect* is the share that would remain if all
//! other parameters were fixed. It is half of the mean square of the change in a block when this parameter is drawn
//! again (M. Jansen 1999), divided by the total variance. It includes interactions, and chance in runs of finite
//! length: a parameter that only shifts random draws has a total effect and no main effect.
//!
//! Intervals are from blocks drawn with replacement (basic bootstrap, B. Efron), which also removes the bias of means
//! over few sets.

use core::ops::Range;

use lasthop_proto::rng::Stream;
use serde::Serialize;

/// A share of the variance with its 95 % interval.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Share {
    pub share: f64,
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
}

/// The shares of one parameter.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Effect {
    /// Main effect.
    pub main: Share,
    /// Total effect, interactions included.
    pub total: Share,
}

/// Bootstrap samples for an interval.
const DRAWS: usize = 200;

/// Sets with one result each.
#[derive(Clone, Debug)]
pub struct Sample<'a> {
    /// For each set, the part of each parameter.
    pub parts: &'a [Vec<usize>],
    /// The result of each set.
    pub results: &'a [f64],
    /// Number of parameters.
    pub parameters: usize,
    /// Sizes of the blocks, in the order of the sets: a whole block of [`super::design`], or 1.
    pub blocks: &'a [usize],
}

impl Sample<'_> {
    /// The effects of each parameter; all zero if the results do not vary.
    pub fn effects(&self) -> Vec<Effect> {
        let mut end = 0;
        let ranges = self.blocks.iter().map(|size| {
            end += size;
            end - size..end
        });
        let (whole, single): (Vec<_>, Vec<_>) = ranges.partition(|block| block.len() > 1);
        let all: Vec<Range<usize>> = whole.iter().chain(&single).cloned().collect();
        let estimates = self.estimates(&all);
        let mut draws = Stream::new(1, "explain/bootstrap");
        let mut again: Vec<Vec<[f64; 2]>> = Vec::with_capacity(DRAWS);
        for _ in 0..DRAWS {
            let drawn = [&whole, &single].into_iter().flatten().map(|block| {
                let of = if block.len() > 1 { &whole } else { &single };
                of[draws.below(of.len() as u64) as usize].clone()
            });
            again.push(self.estimates(&drawn.collect::<Vec<_>>()));
        }
        let share = |i: usize, which: usize| {
            basic(estimates[i][which], again.iter().map(|e| e[i][which]).collect())
        };
        (0..self.parameters).map(|i| Effect { main: share(i, 0), total: share(i, 1) }).collect()
    }

    /// Main and total effect of each parameter over these blocks.
    fn estimates(&self, blocks: &[Range<usize>]) -> Vec<[f64; 2]> {
        let sets = || blocks.iter().flat_map(Clone::clone);
        let n = sets().count() as f64;
        let mean = sets().map(|set| self.results[set]).sum::<f64>() / n;
        let squares = sets().map(|set| square(self.results[set] - mean)).sum::<f64>();
        // Rounding noise of equal results is no variance.
        if blocks.is_empty() || squares / n <= 1e-18 * mean * mean {
            return vec![[0.0; 2]; self.parameters];
        }
        let whole: Vec<&Range<usize>> = blocks.iter().filter(|block| block.len() > 1).collect();
        let of = |i: usize| {
            // Sum and count of each part.
            let mut parts: Vec<(f64, f64)> = Vec::new();
            for set in sets() {
                let part = self.parts[set][i];
                if parts.len() <= part {
                    parts.resize(part + 1, (0.0, 0.0));
                }
                parts[part].0 += self.results[set] - mean;
                parts[part].1 += 1.0;
            }
            let met = parts.iter().filter(|(_, count)| *count > 0.0);
            let between: f64 = met.map(|(sum, count)| sum * sum / count).sum();
            let changed = |block: &&Range<usize>| {
                square(self.results[block.start] - self.results[block.start + 1 + i])
            };
            let changes: f64 = whole.iter().map(changed).sum();
            [between / squares, changes / whole.len().max(1) as f64 / 2.0 / (squares / n)]
        };
        (0..self.parameters).map(of).collect()
    }
}

fn square(x: f64) -> f64 {
    x * x
}

/// The estimate less its bias, with its interval (basic bootstrap).
fn basic(estimate: f64, mut drawn: Vec<f64>) -> Share {
    drawn.sort_by(f64::total_cmp);
    let at = |share: f64| drawn[((drawn.len() - 1) as f64 * share).round() as usize];
    let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
    let mirrored = |drawn: f64| (2.0 * estimate - drawn).clamp(0.0, 1.0);
    Share { share: mirrored(mean), low: mirrored(at(0.975)), high: mirrored(at(0.025)) }
}

#[cfg(test)]
mod tests {
    use core::f64::consts::PI;

    use super::super::design;
    use super::*;

    /// The effects of the function `of` over `parameters` coordinates, each in `in_parts` parts.
    fn effects(
        parameters: usize,
        count: usize,
        in_parts: f64,
        of: impl Fn(&[f64]) -> f64,
    ) -> Vec<Effect> {
        let design = design(7, parameters, count);
        let blocks: Vec<usize> = design.iter().map(Vec::len).collect();
        let sets: Vec<Vec<f64>> = design.into_iter().flatten().collect();
        let part = |place: &f64| (place * in_parts) as usize;
        let parts: Vec<Vec<usize>> =
            sets.iter().map(|set| set.iter().map(part).collect()).collect();
        let results: Vec<f64> = sets.iter().map(|set| of(set)).collect();
        Sample { parts: &parts, results: &results, parameters, blocks: &blocks }.effects()
    }

    fn close(got: Share, want: f64, within: f64) {
        assert!((got.share - want).abs() < within, "{got:?}, wanted {want}");
        assert!(got.low <= got.share && got.share <= got.high, "{got:?}");
        assert!(got.low - 0.02 <= want && want <= got.high + 0.02, "{got:?}, wanted {want}");
    }

    /// T. Ishigami and T. Homma 1990: sin x + 7 sin^2 y + z^4 sin x / 10 over [-pi, pi]. Shares from its variances:
    /// main 0.3139, 0.4424, 0; total 0.5576, 0.4424, 0.2437.
    #[test]
    fn ishigami_has_its_known_shares() {
        let got = effects(3, 8000, 16.0, |u| {
            let [x, y, z] = [0, 1, 2].map(|i| PI * (2.0 * u[i] - 1.0));
            libm::sin(x) + 7.0 * square(libm::sin(y)) + 0.1 * square(square(z)) * libm::sin(x)
        });
        let known = [(0.3139, 0.5576), (0.4424, 0.4424), (0.0, 0.2437)];
        for (got, (main, total)) in got.iter().zip(known) {
            close(got.main, main, 0.03);
            close(got.total, total, 0.04);
        }
    }

    /// A sum of 4x, 2y, z and nothing of w: shares as 16 : 4 : 1 : 0, main and total alike. Quarters of a range capture
    /// 15 of 16 parts of the variance of a straight line.
    #[test]
    fn a_sum_has_the_shares_of_its_terms() {
        for (count, main, total) in [(5000, 0.03, 0.05), (1000, 0.05, 0.15)] {
            let got = effects(4, count, 4.0, |u| 4.0 * u[0] + 2.0 * u[1] + u[2]);
            for (got, want) in got.iter().zip([16.0, 4.0, 1.0, 0.0]) {
                close(got.main, want / 21.0 * 15.0 / 16.0, main);
                close(got.total, want / 21.0, total);
            }
        }
    }

    #[test]
    fn a_constant_result_has_no_effects() {
        assert_eq!(effects(2, 40, 4.0, |_| 3.3), [Effect::default(); 2]);
        assert_eq!(effects(2, 0, 4.0, |_| 1.0), [Effect::default(); 2]);
    }
}
