//! Cross-validation: sets chosen on some conditions, judged on the others.

use lasthop_proto::rng::Stream;
use serde::Serialize;

use super::SetResult;
use super::sample::shuffle;

/// Number of random splits of the conditions.
const SPLITS: usize = 200;

/// How well sets chosen on some conditions meet the others.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Split {
    /// Indices of the conditions for the choice; empty for random halves.
    pub fit: Vec<usize>,
    /// Number of conditions for the choice.
    pub on: usize,
    /// Number of other conditions.
    pub others: usize,
    /// Conditions for the choice that the best sets meet, in the mean over splits.
    pub met_on: f64,
    /// Other conditions that those sets meet: mean over all equally good sets.
    pub met_others: f64,
    /// Other conditions that any set meets, in the mean.
    pub any: f64,
    /// Other conditions that the assumed values meet.
    pub assumed: f64,
}

/// Chooses on the conditions `fit`, or on random halves if it is empty; `None` where no condition is left to judge.
pub(super) fn split(
    sets: &[SetResult],
    assumed: &SetResult,
    conditions: usize,
    fit: &[usize],
) -> Option<Split> {
    let on = if fit.is_empty() { conditions / 2 } else { fit.len() };
    if on == 0 || on >= conditions || sets.is_empty() {
        return None;
    }
    let mut draws = Stream::new(1, "explain/split");
    let splits = if fit.is_empty() { SPLITS } else { 1 };
    let mut sums = [0.0; 4];
    for _ in 0..splits {
        let mut order: Vec<usize> = (0..conditions).collect();
        if fit.is_empty() {
            shuffle(&mut order, &mut draws);
        } else {
            order.sort_by_key(|condition| !fit.contains(condition));
        }
        let (chosen_on, others) = order.split_at(on);
        let met = |set: &SetResult, of: &[usize]| of.iter().filter(|c| set.holds[**c]).count();
        let best = sets.iter().map(|set| met(set, chosen_on)).max().unwrap_or(0);
        let chosen: Vec<&SetResult> =
            sets.iter().filter(|set| met(set, chosen_on) == best).collect();
        let mean = |sets: &mut dyn Iterator<Item = &SetResult>, n: usize| {
            sets.map(|set| met(set, others) as f64).sum::<f64>() / n as f64
        };
        let of = [
            best as f64,
            mean(&mut chosen.iter().copied(), chosen.len()),
            mean(&mut sets.iter(), sets.len()),
            met(assumed, others) as f64,
        ];
        sums.iter_mut().zip(of).for_each(|(sum, of)| *sum += of / splits as f64);
    }
    let [met_on, met_others, any, assumed] = sums;
    Some(Split { fit: fit.to_vec(), on, others: conditions - on, met_on, met_others, any, assumed })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tried(holds: &[bool]) -> SetResult {
        SetResult {
            sets: Vec::new(),
            places: Vec::new(),
            holds: holds.to_vec(),
            values: Vec::new(),
        }
    }

    #[test]
    fn sets_chosen_on_some_conditions_are_judged_on_others() {
        let sets = [
            tried(&[true, true, false, false]),
            tried(&[true, false, true, true]),
            tried(&[false, false, false, true]),
        ];
        let split = |fit: &[usize]| split(&sets, &sets[2], 4, fit);
        let two = split(&[0, 1]).unwrap();
        assert_eq!((two.met_on, two.met_others, two.any, two.assumed), (2.0, 0.0, 1.0, 1.0));
        // Two sets are equally good on the first condition.
        let one = split(&[0]).unwrap();
        assert_eq!((one.others, one.met_others), (3, 1.5));
        assert_eq!(split(&[0, 1, 2, 3]), None);
        let halves = split(&[]).unwrap();
        assert_eq!((halves.on, halves.others), (2, 2));
        assert!(halves.met_on > halves.met_others);
    }
}
