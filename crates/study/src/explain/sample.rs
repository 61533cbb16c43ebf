//! Lays out the sets of parameter values.
//!
//! Positions of parameters are numbers from 0 to 1. Half of the sets are random. The others are in blocks (A. Saltelli
//! et al. 2010, "Variance based sensitivity analysis of model output", Computer Physics Communications 181). A block
//! has a random set and, for each parameter, the same set with this parameter drawn again. All draws are Latin
//! hypercubes (M. McKay et al. 1979): a range has as many parts as there are sets, and each part is used once.

use core::iter::once;

use lasthop_proto::rng::Stream;

/// At most `count` sets of `parameters` parameters. First are the blocks of one set and its copies, each with one
/// parameter drawn again. Then follow single sets, each as a block.
pub fn design(seed: u64, parameters: usize, count: usize) -> Vec<Vec<Vec<f64>>> {
    let blocks = count / 2 / (parameters + 1);
    let first = hypercube(seed, "first", parameters, blocks);
    let redrawn = hypercube(seed, "anew", parameters, blocks);
    let block = |(first, redrawn): (Vec<f64>, Vec<f64>)| {
        let changed = |i: usize| {
            let mut set = first.clone();
            set[i] = redrawn[i];
            set
        };
        once(first.clone()).chain((0..parameters).map(changed)).collect()
    };
    let singles = hypercube(seed, "single", parameters, count - blocks * (parameters + 1));
    first
        .into_iter()
        .zip(redrawn)
        .map(block)
        .chain(singles.into_iter().map(|set| vec![set]))
        .collect()
}

/// A Latin hypercube: a row for each of `count` points.
fn hypercube(seed: u64, name: &str, parameters: usize, count: usize) -> Vec<Vec<f64>> {
    let mut points = vec![Vec::with_capacity(parameters); count];
    for i in 0..parameters {
        let mut draws = Stream::new(seed, &format!("explain/{name}/{i}"));
        let mut parts: Vec<usize> = (0..count).collect();
        shuffle(&mut parts, &mut draws);
        for (point, part) in points.iter_mut().zip(parts) {
            point.push((part as f64 + draws.unit()) / count as f64);
        }
    }
    points
}

/// Shuffles `all` (Fisher and Yates).
pub(super) fn shuffle<T>(all: &mut [T], draws: &mut Stream) {
    for i in (1..all.len()).rev() {
        all.swap(i, draws.below(i as u64 + 1) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_every_range_is_met_once_and_blocks_change_one_parameter_at_a_time() {
        let (parameters, blocks) = (3, 10);
        let sets = design(1, parameters, 80);
        let (blocked, singles) = sets.split_at(blocks);
        assert_eq!(singles.len(), 40);
        for i in 0..parameters {
            for of in [blocked, singles] {
                let mut parts: Vec<usize> =
                    of.iter().map(|block| (block[0][i] * of.len() as f64) as usize).collect();
                parts.sort_unstable();
                assert_eq!(parts, (0..of.len()).collect::<Vec<_>>());
            }
        }
        for block in blocked {
            for (i, set) in block[1..].iter().enumerate() {
                let changed: Vec<usize> =
                    (0..parameters).filter(|j| set[*j] != block[0][*j]).collect();
                assert_eq!(changed, [i]);
            }
        }
        assert!(singles.iter().all(|block| block.len() == 1));
        assert_eq!(sets, design(1, parameters, 80));
        assert_ne!(sets, design(2, parameters, 80));
    }
}
