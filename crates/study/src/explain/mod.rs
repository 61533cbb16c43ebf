//! What decides a claim: sets of what its paper leaves open are tried, and this tells which parameters its conditions
//! hang on, what the best sets have in common, and which conditions no set meets together.
//!
//! [`design`] says which sets; who asks tries them, and [`answer`] takes the results.

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

/// Something that is left open.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Parameter {
    /// Its name: the address of a key.
    pub name: String,
    /// What is assumed.
    pub assumed: String,
    /// What else could be, in words.
    pub range: String,
    /// Its values, or parts of its range: place times their number.
    pub parts: Vec<String>,
    /// Why these.
    pub why: String,
}

impl Parameter {
    /// Into which part a place falls.
    fn part(&self, place: f64) -> usize {
        ((place * self.parts.len() as f64) as usize).min(self.parts.len().saturating_sub(1))
    }
}

/// A set that was tried.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Tried {
    /// What is set, as `KEY=VALUE`.
    pub sets: Vec<String>,
    /// The place of each parameter; none for what is assumed.
    pub places: Vec<f64>,
    /// Whether each condition holds.
    pub holds: Vec<bool>,
    /// The measured value of each condition, if it has one.
    pub values: Vec<Option<f64>>,
}

impl Tried {
    /// How many conditions hold.
    pub fn met(&self) -> usize {
        self.holds.iter().filter(|holds| **holds).count()
    }
}

/// What was tried.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Asked {
    /// The claims.
    pub claims: Vec<String>,
    /// What is open.
    pub parameters: Vec<Parameter>,
    /// The conditions, in words.
    pub conditions: Vec<String>,
    /// Seeds of each case.
    pub seeds: u32,
    /// What is assumed, judged in the same way as the sets.
    pub assumed: Tried,
    /// The sets of a [`design`], in its order.
    pub sets: Vec<Tried>,
    /// How many sets each block of it has. A block of which not all sets were tried is as many blocks of one.
    pub blocks: Vec<usize>,
}

impl Asked {
    /// What each parameter explains of a number that each set gives.
    fn effects(&self, parts: &[Vec<usize>], results: &[f64]) -> Vec<Effect> {
        Sample { parts, results, parameters: self.parameters.len(), blocks: &self.blocks }.effects()
    }
}

/// A parameter in the ranking.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Decides {
    /// Which parameter, by its place.
    pub parameter: usize,
    /// What it explains of how many conditions are met.
    pub effect: Effect,
    /// For each of its parts: how many conditions the sets meet in the mean, and how many the best meets.
    pub by_part: Vec<(f64, usize)>,
    /// For each of its parts, which share of the best sets lies in it.
    pub best: Vec<f64>,
}

/// A condition over all sets.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Met {
    /// The share of the sets that meet it.
    pub share: f64,
    /// Whether what is assumed meets it.
    pub assumed: bool,
    /// The parameters with the largest main effects on the rank of its value, with those; on whether it holds, where it
    /// has no value. At most two, and only such whose interval lies above zero.
    pub by: Vec<(usize, Share)>,
}

/// Two conditions that no set meets together.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Apart {
    /// Their places.
    pub conditions: (usize, usize),
    /// In how many sets they would be met together by chance, if they had nothing to do with each other.
    pub by_chance: f64,
}

/// The answer.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Explained {
    /// What was tried.
    #[serde(flatten)]
    pub asked: Asked,
    /// The parameters, what decides most first.
    pub ranking: Vec<Decides>,
    /// The conditions, in their order.
    pub met: Vec<Met>,
    /// Pairs that exclude each other, the most surprising first.
    pub apart: Vec<Apart>,
    /// The best sets, by their places: those that meet most conditions.
    pub best: Vec<usize>,
    /// The sets of [`Explained::told`], tried again with all seeds and whole transfers; what is assumed comes first.
    pub again: Vec<Tried>,
    /// Seeds of each case when they were tried again.
    pub again_seeds: u32,
    /// Chosen on some conditions, judged on the others.
    pub split: Option<Split>,
}

/// So many parameters are named that decide a condition.
const DECIDERS: usize = 2;
/// So many of the best sets are told of.
const TOLD: usize = 3;

impl Explained {
    /// The best sets that are told of: from the first to the last, since neighbours are alike.
    pub fn told(&self) -> Vec<usize> {
        let n = self.best.len();
        let told = n.min(TOLD);
        (0..told).map(|i| self.best[i * (n - 1) / (told - 1).max(1)]).collect()
    }
}

/// Fewer sets than this are no surprise: by chance alone there is none in one case of twenty.
const SURPRISING: f64 = 3.0;

/// What the sets tell; `fit` has the places of conditions on which sets are to be chosen, none for halves at random.
pub fn answer(asked: Asked, fit: &[usize]) -> Explained {
    let parts: Vec<Vec<usize>> =
        asked.sets.iter().map(|set| parts(&asked.parameters, set)).collect();
    let most = asked.sets.iter().map(Tried::met).max().unwrap_or(0);
    let best = (0..asked.sets.len()).filter(|i| asked.sets[*i].met() == most).collect();
    let ranking = ranking(&asked, &parts, most);
    let met = (0..asked.conditions.len()).map(|c| condition(&asked, &parts, c)).collect();
    let split = fit::split(&asked.sets, &asked.assumed, asked.conditions.len(), fit);
    let apart = apart(&asked);
    Explained { asked, ranking, met, apart, best, again: Vec::new(), again_seeds: 0, split }
}

/// Into which part of each parameter a set falls.
fn parts(parameters: &[Parameter], set: &Tried) -> Vec<usize> {
    parameters.iter().zip(&set.places).map(|(parameter, place)| parameter.part(*place)).collect()
}

/// The parameters by what they explain of the number of conditions that are met.
fn ranking(asked: &Asked, parts: &[Vec<usize>], most: usize) -> Vec<Decides> {
    let results: Vec<f64> = asked.sets.iter().map(|set| set.met() as f64).collect();
    let effects = asked.effects(parts, &results);
    let mut all: Vec<Decides> = effects
        .into_iter()
        .enumerate()
        .map(|(i, effect)| {
            let count = asked.parameters[i].parts.len();
            let within = |part: usize| {
                asked
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
            Decides { parameter: i, effect, by_part: by_part.collect(), best }
        })
        .collect();
    all.sort_by(|a, b| {
        let by = |of: fn(&Effect) -> f64| of(&b.effect).total_cmp(&of(&a.effect));
        by(|effect| effect.main.share).then(by(|effect| effect.total.share))
    });
    all
}

/// A condition over all sets.
fn condition(asked: &Asked, parts: &[Vec<usize>], condition: usize) -> Met {
    let holds = |set: &Tried| f64::from(u8::from(set.holds[condition]));
    let values: Option<Vec<f64>> = asked.sets.iter().map(|set| set.values[condition]).collect();
    let results =
        values.map_or_else(|| asked.sets.iter().map(holds).collect(), |values| ranks(&values));
    let effects = asked.effects(parts, &results);
    let mains = effects.iter().map(|effect| effect.main).enumerate();
    let mut by: Vec<(usize, Share)> = mains.filter(|(_, main)| main.low > 0.0).collect();
    by.sort_by(|a, b| b.1.share.total_cmp(&a.1.share));
    by.truncate(DECIDERS);
    Met {
        share: asked.sets.iter().map(holds).sum::<f64>() / asked.sets.len().max(1) as f64,
        assumed: asked.assumed.holds[condition],
        by,
    }
}

/// The rank of each value, equal ones sharing theirs.
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

/// The pairs of conditions that are each met by so many sets that one should meet both, and that none does.
fn apart(asked: &Asked) -> Vec<Apart> {
    let count =
        |of: &dyn Fn(&Tried) -> bool| asked.sets.iter().filter(|set| of(set)).count() as f64;
    let each: Vec<f64> = (0..asked.conditions.len()).map(|c| count(&|set| set.holds[c])).collect();
    let mut all = Vec::new();
    for a in 0..each.len() {
        for b in a + 1..each.len() {
            let by_chance = each[a] * each[b] / asked.sets.len().max(1) as f64;
            if by_chance >= SURPRISING && count(&|set| set.holds[a] && set.holds[b]) == 0.0 {
                all.push(Apart { conditions: (a, b), by_chance });
            }
        }
    }
    all.sort_by(|a, b| b.by_chance.total_cmp(&a.by_chance));
    all
}

#[cfg(test)]
mod tests;
