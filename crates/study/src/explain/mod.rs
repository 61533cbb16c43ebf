//! Explains a claim. It finds the open parameters of the paper that decide the claim's conditions, the common
//! values of the best sets, and the conditions that no set meets together.
//!
//! [`design`] lays out the sets; the caller runs them, and [`answer`] evaluates the results.

mod fit;
mod indices;
mod page;
mod sample;
mod tables;

pub use fit::Split;
pub use indices::{Effect, Sample, Share};
pub use page::{page, picture};
pub use sample::design;
pub use tables::sections;

use serde::Serialize;

/// A parameter that the paper leaves open.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Parameter {
    /// The address of its key.
    pub name: String,
    /// The assumed value.
    pub assumed: String,
    /// All values except the assumed one, as text.
    pub range: String,
    /// Its values, or parts of its range. The index of a part is the position in the range times the number of parts.
    pub parts: Vec<String>,
    /// The reason for this range.
    pub why: String,
}

impl Parameter {
    /// The part that contains a position.
    fn part(&self, place: f64) -> usize {
        ((place * self.parts.len() as f64) as usize).min(self.parts.len().saturating_sub(1))
    }
}

/// A set of values with its results.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SetResult {
    /// The settings, as `KEY=VALUE`.
    pub sets: Vec<String>,
    /// The position of each parameter, from 0 to 1; empty for the assumed values.
    pub places: Vec<f64>,
    /// Whether each condition holds.
    pub holds: Vec<bool>,
    /// The measured value of each condition, if it has one.
    pub values: Vec<Option<f64>>,
}

impl SetResult {
    /// Number of conditions that hold.
    pub fn met(&self) -> usize {
        self.holds.iter().filter(|holds| **holds).count()
    }
}

/// All sets of an explanation with their results.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Experiment {
    pub claims: Vec<String>,
    pub parameters: Vec<Parameter>,
    /// The conditions, as text.
    pub conditions: Vec<String>,
    /// Seeds of each case.
    pub seeds: u32,
    /// The assumed values, judged in the same way as the sets.
    pub assumed: SetResult,
    /// The sets of a [`design`], in its order.
    pub sets: Vec<SetResult>,
    /// Number of sets per block of the design. An incomplete block counts as blocks of one.
    pub blocks: Vec<usize>,
}

impl Experiment {
    /// The effects of each parameter on a number of each set.
    fn effects(&self, parts: &[Vec<usize>], results: &[f64]) -> Vec<Effect> {
        Sample { parts, results, parameters: self.parameters.len(), blocks: &self.blocks }.effects()
    }
}

/// A parameter in the ranking.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Influence {
    /// Index of the parameter.
    pub parameter: usize,
    /// Its effect on the number of conditions that hold.
    pub effect: Effect,
    /// For each part: mean and maximum number of conditions that its sets meet.
    pub by_part: Vec<(f64, usize)>,
    /// For each part: share of the best sets in it.
    pub best: Vec<f64>,
}

/// A condition over all sets.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ConditionSummary {
    /// Share of the sets that meet it.
    pub share: f64,
    /// Whether the assumed values meet it.
    pub assumed: bool,
    /// At most two parameters with the largest main effects, and an interval above zero. The effects are on the rank of
    /// the condition's value, or without a value on whether it holds.
    pub by: Vec<(usize, Share)>,
}

/// Two conditions that no set meets together.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Exclusion {
    /// Indices of the conditions.
    pub conditions: (usize, usize),
    /// Expected number of sets that meet both, if they were independent.
    pub by_chance: f64,
}

/// The complete explanation.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Explanation {
    #[serde(flatten)]
    pub asked: Experiment,
    /// The parameter with the largest effect first.
    pub ranking: Vec<Influence>,
    /// The conditions, in their order.
    pub met: Vec<ConditionSummary>,
    /// Pairs that exclude each other, the most surprising first.
    pub apart: Vec<Exclusion>,
    /// Indices of the sets that meet most conditions.
    pub best: Vec<usize>,
    /// The assumed values and the sets of [`Explanation::listed`], run again with all seeds and whole transfers.
    pub again: Vec<SetResult>,
    /// Seeds of each case in these runs.
    pub again_seeds: u32,
    /// Cross-validation of the choice.
    pub split: Option<Split>,
}

/// Maximum number of parameters listed per condition.
const DECIDERS: usize = 2;
/// Maximum number of best sets listed.
const MAX_LISTED: usize = 3;

impl Explanation {
    /// Indices of the listed best sets, spread from the first to the last, because neighbours are similar.
    pub fn listed(&self) -> Vec<usize> {
        let n = self.best.len();
        let count = n.min(MAX_LISTED);
        (0..count).map(|i| self.best[i * (n - 1) / (count - 1).max(1)]).collect()
    }
}

/// Minimum expected number of sets for a surprising pair. With this mean, chance gives no set in one case of twenty.
const SURPRISING: f64 = 3.0;

/// Evaluates the sets; `fit` has the indices of conditions on which sets are chosen, empty for random halves.
pub fn answer(experiment: Experiment, fit: &[usize]) -> Explanation {
    let parts: Vec<Vec<usize>> =
        experiment.sets.iter().map(|set| parts(&experiment.parameters, set)).collect();
    let most = experiment.sets.iter().map(SetResult::met).max().unwrap_or(0);
    let best = (0..experiment.sets.len()).filter(|i| experiment.sets[*i].met() == most).collect();
    let ranking = ranking(&experiment, &parts, most);
    let met = (0..experiment.conditions.len()).map(|c| condition(&experiment, &parts, c)).collect();
    let split = fit::split(&experiment.sets, &experiment.assumed, experiment.conditions.len(), fit);
    let apart = apart(&experiment);
    Explanation {
        asked: experiment,
        ranking,
        met,
        apart,
        best,
        again: Vec::new(),
        again_seeds: 0,
        split,
    }
}

/// The part of each parameter that contains a set.
fn parts(parameters: &[Parameter], set: &SetResult) -> Vec<usize> {
    parameters.iter().zip(&set.places).map(|(parameter, place)| parameter.part(*place)).collect()
}

/// The parameters by their effect on the number of conditions that hold.
fn ranking(experiment: &Experiment, parts: &[Vec<usize>], most: usize) -> Vec<Influence> {
    let results: Vec<f64> = experiment.sets.iter().map(|set| set.met() as f64).collect();
    let effects = experiment.effects(parts, &results);
    let mut all: Vec<Influence> = effects
        .into_iter()
        .enumerate()
        .map(|(i, effect)| {
            let count = experiment.parameters[i].parts.len();
            let within = |part: usize| {
                experiment
                    .sets
                    .iter()
                    .zip(parts)
                    .filter(move |(_, of)| of[i] == part)
                    .map(|(set, _)| set.met())
            };
            let mean =
                |part| within(part).sum::<usize>() as f64 / within(part).count().max(1) as f64;
            let by_part = (0..count).map(|part| (mean(part), within(part).max().unwrap_or(0)));
            let best = |part| within(part).filter(|met| *met == most).count() as f64;
            let all: f64 = (0..count).map(best).sum();
            let best = (0..count).map(|part| best(part) / all.max(1.0)).collect();
            Influence { parameter: i, effect, by_part: by_part.collect(), best }
        })
        .collect();
    all.sort_by(|a, b| {
        let by = |of: fn(&Effect) -> f64| of(&b.effect).total_cmp(&of(&a.effect));
        by(|effect| effect.main.share).then(by(|effect| effect.total.share))
    });
    all
}

fn condition(experiment: &Experiment, parts: &[Vec<usize>], condition: usize) -> ConditionSummary {
    let holds = |set: &SetResult| f64::from(u8::from(set.holds[condition]));
    let values: Option<Vec<f64>> =
        experiment.sets.iter().map(|set| set.values[condition]).collect();
    let results =
        values.map_or_else(|| experiment.sets.iter().map(holds).collect(), |values| ranks(&values));
    let effects = experiment.effects(parts, &results);
    let mains = effects.iter().map(|effect| effect.main).enumerate();
    let mut by: Vec<(usize, Share)> = mains.filter(|(_, main)| main.low > 0.0).collect();
    by.sort_by(|a, b| b.1.share.total_cmp(&a.1.share));
    by.truncate(DECIDERS);
    ConditionSummary {
        share: experiment.sets.iter().map(holds).sum::<f64>() / experiment.sets.len().max(1) as f64,
        assumed: experiment.assumed.holds[condition],
        by,
    }
}

/// The rank of each value; equal values share theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let of = |value: &f64| {
        let below = sorted.partition_point(|other| other.total_cmp(value).is_lt());
        let above = sorted.partition_point(|other| other.total_cmp(value).is_le());
        (below + above) as f64 / 2.0
    };
    values.iter().map(of).collect()
}

/// Pairs of conditions that no set meets together, although enough sets meet each of them to expect one.
fn apart(experiment: &Experiment) -> Vec<Exclusion> {
    let count = |of: &dyn Fn(&SetResult) -> bool| {
        experiment.sets.iter().filter(|set| of(set)).count() as f64
    };
    let each: Vec<f64> =
        (0..experiment.conditions.len()).map(|c| count(&|set| set.holds[c])).collect();
    let mut all = Vec::new();
    for a in 0..each.len() {
        for b in a + 1..each.len() {
            let by_chance = each[a] * each[b] / experiment.sets.len().max(1) as f64;
            if by_chance >= SURPRISING && count(&|set| set.holds[a] && set.holds[b]) == 0.0 {
                all.push(Exclusion { conditions: (a, b), by_chance });
            }
        }
    }
    all.sort_by(|a, b| b.by_chance.total_cmp(&a.by_chance));
    all
}

#[cfg(test)]
mod tests;
