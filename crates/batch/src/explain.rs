//! Explains which open parameters decide claims: lays out the sets of values and evaluates their results. The caller
//! makes the trials, stores them, and shows the result.

use lasthop_papers::{Claim, ConditionResult, Open, Trial, aligned, all_claims, claims};
use lasthop_study::explain::{Experiment, Explanation, Parameter, SetResult, answer, design};

use crate::Error;

/// A question about claims of one testbed.
#[derive(Clone, Debug)]
pub struct Question {
    pub claims: Vec<&'static Claim>,
    /// Open parameters of any of them.
    pub open: Vec<&'static Open>,
    /// Number of sets of values.
    pub sets: usize,
    /// Seed of the sample of sets.
    pub sample: u64,
    /// Runs per case for each set.
    pub seeds: u32,
    /// Runs per case for the best sets with whole transfers; 0 to omit them.
    pub again: u32,
    /// Claims or conditions (by number) on which sets are chosen and judged on the others; random halves if empty.
    pub fit: Vec<String>,
}

impl Question {
    /// A question about these claims; with `testbed`, about all claims of their testbed as well. The default number of
    /// seeds is that of the testbed.
    ///
    /// # Errors
    ///
    /// A claim is unknown, has another testbed, or has no open parameters.
    pub fn new(words: &[String], testbed: bool) -> Result<Question, Error> {
        let claims = choose(words, testbed)?;
        let mut open: Vec<&Open> = Vec::new();
        for other in claims.iter().flat_map(|claim| claim.open()) {
            if open.iter().all(|open| open.name() != other.name()) {
                open.push(other);
            }
        }
        let first = claims.first().and_then(|claim| claim.testbed);
        let seeds = first.map_or(3, |testbed| testbed.seeds);
        let fit = Vec::new();
        Ok(Question { claims, open, sets: 1000, sample: 1, seeds, again: 20, fit })
    }

    /// The open parameters for a study.
    pub fn parameters(&self) -> Vec<Parameter> {
        self.open.iter().map(|open| parameter(open)).collect()
    }

    /// Evaluates the conditions that `judge` finds under the sets; `judge` returns `None` for a set that was not
    /// started because the user interrupted. No result if that is the set of assumed values.
    ///
    /// # Errors
    ///
    /// Those of `judge`, and words in `fit` that name no condition.
    pub fn answer<E: From<Error>>(
        &self,
        judge: &mut Judge<'_, E>,
    ) -> Result<Option<Explanation>, E> {
        // A wrong name is reported before the runs, a wrong number when the conditions are known.
        let is_known = |word: &str| self.claims.iter().any(|claim| claim.id == word);
        if let Some(word) = self.fit.iter().find(|w| w.parse::<usize>().is_err() && !is_known(w)) {
            let message = format!("`--fit {word}` names no condition");
            return Err(Error::input(message, "a claim that was asked for, or a number").into());
        }
        let trial = Trial { claims: &self.claims, seeds: self.seeds, whole: false };
        let design = design(self.sample, self.open.len(), self.sets);
        let mut sets = vec![Vec::new()];
        sets.extend(design.iter().flatten().map(|places| settings(&self.open, places)));
        let tried = judge(&trial, &sets)?;
        let Some(assumed) = tried[0].clone() else { return Ok(None) };
        let fit = self.fit(&assumed)?;
        let mut explained = answer(self.experiment(&assumed, &design, &sets, &tried), &fit);
        // After an interruption no further trials are made.
        if self.again > 0 && tried.iter().all(Option::is_some) {
            let whole = Trial { seeds: self.again, whole: true, ..trial };
            let mut best = vec![Vec::new()];
            best.extend(
                explained.listed().into_iter().map(|i| explained.asked.sets[i].sets.clone()),
            );
            let again = judge(&whole, &best)?;
            if let Some(again) = again.into_iter().collect::<Option<Vec<_>>>() {
                let of = |(sets, judged): (&Vec<String>, &Vec<ConditionResult>)| {
                    one(&assumed, sets, &[], judged)
                };
                explained.again = best.iter().zip(&again).map(of).collect();
                explained.again_seeds = self.again;
            }
        }
        Ok(Some(explained))
    }

    /// The assumed values and the finished sets of the design, with their results.
    fn experiment(
        &self,
        assumed: &[ConditionResult],
        design: &[Vec<Vec<f64>>],
        settings: &[Vec<String>],
        tried: &[Option<Vec<ConditionResult>>],
    ) -> Experiment {
        let mut rest = settings.iter().zip(tried).skip(1);
        let (mut sets, mut blocks) = (Vec::new(), Vec::new());
        for block in design {
            let finished =
                block.iter().zip(rest.by_ref()).filter_map(|(places, (settings, tried))| {
                    Some(one(assumed, settings, places, tried.as_deref()?))
                });
            let before = sets.len();
            sets.extend(finished);
            match sets.len() - before {
                whole if whole == block.len() => blocks.push(whole),
                part => blocks.extend(core::iter::repeat_n(1, part)),
            }
        }
        Experiment {
            claims: self.claims.iter().map(|claim| claim.id.to_owned()).collect(),
            parameters: self.parameters(),
            conditions: assumed.iter().map(ToString::to_string).collect(),
            seeds: self.seeds,
            assumed: one(assumed, &[], &[], assumed),
            sets,
            blocks,
        }
    }

    /// The indices of the conditions on which sets are chosen.
    fn fit(&self, conditions: &[ConditionResult]) -> Result<Vec<usize>, Error> {
        let mut all = Vec::new();
        for word in &self.fit {
            let number = word.parse().ok().filter(|n| (1..=conditions.len()).contains(n));
            let of_claim = |i: &usize| conditions[*i].claim == *word || number == Some(i + 1);
            let found: Vec<usize> = (0..conditions.len()).filter(of_claim).collect();
            if found.is_empty() {
                let help = format!("a claim that was asked for, or 1 to {}", conditions.len());
                return Err(Error::input(format!("`--fit {word}` names no condition"), help));
            }
            all.extend(found);
        }
        all.sort_unstable();
        all.dedup();
        Ok(all)
    }
}

/// Finds the conditions of a trial under each of some sets; `None` for a set that was not started.
pub type Judge<'a, E> =
    dyn FnMut(&Trial<'_>, &[Vec<String>]) -> Result<Vec<Option<Vec<ConditionResult>>>, E> + 'a;

/// The requested claims, all on one testbed.
fn choose(words: &[String], all: bool) -> Result<Vec<&'static Claim>, Error> {
    let mut testbed = None;
    for word in words {
        let Some(claim) = all_claims().find(|claim| claim.id == word) else {
            let help = "`lasthop list claims` names them all";
            return Err(Error::input(format!("there is no claim `{word}`"), help));
        };
        let Some(this) = claim.testbed.map(|testbed| testbed.key) else {
            let with: Vec<&str> = claims().filter(|c| c.testbed.is_some()).map(|c| c.id).collect();
            return Err(Error::input(
                format!(
                    "there are no values to try for {word}: {}",
                    claim.closed().unwrap_or_default()
                ),
                format!("it is for {}", with.join(", ")),
            ));
        };
        if testbed.is_some_and(|other| other != this) {
            return Err(Error::input(
                format!("{word} has another testbed than {}", words[0]),
                "a set of values is tried on one testbed",
            ));
        }
        testbed = Some(this);
    }
    let named = |claim: &&Claim| words.iter().any(|word| word == claim.id);
    let same = |claim: &&Claim| all && claim.testbed.map(|t| t.key) == testbed;
    Ok(claims().filter(|claim| named(claim) || same(claim)).collect())
}

fn parameter(open: &Open) -> Parameter {
    Parameter {
        name: open.name().to_owned(),
        assumed: open.assumed.clone(),
        range: open.range(),
        parts: open.parts(),
        why: open.why.clone(),
    }
}

/// The settings at these positions.
fn settings(open: &[&Open], places: &[f64]) -> Vec<String> {
    open.iter().zip(places).flat_map(|(open, place)| open.settings(*place)).collect()
}

/// A set with its results, in the order of the conditions `of`. A condition that was not evaluated does not hold.
fn one(
    of: &[ConditionResult],
    sets: &[String],
    places: &[f64],
    judged: &[ConditionResult],
) -> SetResult {
    let aligned = aligned(of, judged);
    SetResult {
        sets: sets.to_vec(),
        places: places.to_vec(),
        holds: aligned.iter().map(|judged| judged.is_some_and(|judged| judged.holds)).collect(),
        values: aligned.iter().map(|judged| judged.and_then(|judged| judged.value)).collect(),
    }
}
