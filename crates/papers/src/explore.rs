//! Evaluates claims with other values of their open parameters.

use core::fmt;

use lasthop_sim::runs::Observer;
use serde::{Deserialize, Serialize};

use crate::{Bench, Bound, Claim, Finding, Interrupted};

/// A condition of a claim with its result.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ConditionResult {
    pub claim: String,
    /// The measured quantity.
    pub what: String,
    /// The required bound, as text.
    pub bound: String,
    /// The measured value, if there is one.
    pub value: Option<f64>,
    pub holds: bool,
}

impl fmt::Display for ConditionResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.claim, self.what)?;
        if self.bound.is_empty() { Ok(()) } else { write!(f, " {}", self.bound) }
    }
}

/// Factor of seeds for comparisons that need more, when many sets are evaluated.
const MANY: u32 = 3;

/// The claims to evaluate.
#[derive(Clone, Debug)]
pub struct Trial<'a> {
    pub claims: &'a [&'static Claim],
    /// Seeds of each case, the same for every set of parameters, so that only the parameters differ.
    pub seeds: u32,
    /// Full transfers, instead of the shorter ones of the testbed.
    pub whole: bool,
}

impl Trial<'_> {
    /// The conditions of the claims with the settings `set`. Shared runs are made once.
    ///
    /// # Errors
    ///
    /// [`Interrupted`] when the observer requested a stop.
    pub fn judge(
        &self,
        set: &[String],
        observer: &dyn Observer,
    ) -> Result<Vec<ConditionResult>, Interrupted> {
        let mut bench = Bench::trying(self.seeds, observer);
        let mut all = Vec::new();
        for claim in self.claims {
            let open = claim.open();
            let of_this = |setting: &&String| {
                let key = setting.split('=').next().unwrap_or_default();
                open.iter().any(|open| open.keys.iter().any(|own| own == key))
            };
            bench.set = set.iter().filter(of_this).cloned().collect();
            if let (Some(testbed), false) = (claim.testbed, self.whole) {
                bench.shorter = testbed.shorter;
                bench.many = MANY;
            }
            let finding = Finding::of(&mut bench, claim.run)?;
            all.extend(finding.conditions.iter().map(|condition| {
                let (quantity, bound) = match condition.bound {
                    Bound::True => (without_numbers(&condition.what), String::new()),
                    bound => (condition.what.clone(), bound.to_string()),
                };
                let value = Some(condition.measured.value).filter(|value| value.is_finite());
                ConditionResult {
                    claim: claim.id.to_owned(),
                    what: quantity,
                    bound,
                    value,
                    holds: condition.holds(),
                }
            }));
        }
        Ok(all)
    }

    /// The conditions under each of `sets`, on all processors; calls `done` for each finished set. `None` where the
    /// observer requested a stop before.
    pub fn judge_all(
        &self,
        sets: &[Vec<String>],
        observer: &dyn Observer,
        done: &(dyn Fn(usize, &[ConditionResult]) + Sync),
    ) -> Vec<Option<Vec<ConditionResult>>> {
        lasthop_sim::runs::spread(sets.len(), |i| {
            let judged = self.judge(&sets[i], observer).ok()?;
            done(i, &judged);
            Some(judged)
        })
    }
}

/// Finds the conditions `of` in `judged`, in that order; `None` for a missing one. Conditions match by claim and by
/// text without numbers, which may be measured ones; equal texts match in order.
pub fn aligned<'a>(
    of: &[ConditionResult],
    judged: &'a [ConditionResult],
) -> Vec<Option<&'a ConditionResult>> {
    let name = |j: &ConditionResult| (j.claim.clone(), without_numbers(&j.what));
    let names: Vec<_> = judged.iter().map(name).collect();
    let wanted_names: Vec<_> = of.iter().map(name).collect();
    let place = |(i, name): (usize, &(String, String))| {
        let before = wanted_names[..i].iter().filter(|other| *other == name).count();
        let alike = names.iter().zip(judged).filter(|(other, _)| *other == name);
        alike.map(|(_, judged)| judged).nth(before)
    };
    wanted_names.iter().enumerate().map(place).collect()
}

/// `text` with a placeholder for each number.
fn without_numbers(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let number = c.is_ascii_digit() && !out.ends_with(|c: char| c.is_ascii_alphanumeric());
        if !number {
            out.push(c);
            continue;
        }
        out.push('…');
        let mut ended = false;
        while let Some(next) = chars.peek().filter(|c| c.is_ascii_digit() || **c == '.') {
            ended = *next == '.';
            chars.next();
        }
        // A full stop.
        if ended {
            out.push('.');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims;

    fn named(id: &str) -> &'static Claim {
        claims().find(|claim| claim.id == id).unwrap()
    }

    #[test]
    fn conditions_are_matched_despite_other_numbers() {
        assert_eq!(without_numbers("3 of 12 periods, 1.5 s. B-F4"), "… of … periods, … s. B-F4");
        let judged = |quantity: &str, holds| ConditionResult {
            claim: "X".into(),
            what: quantity.into(),
            bound: String::new(),
            value: None,
            holds,
        };
        let of = [judged("at 16 KB", true), judged("at 32 KB", true), judged("4 runs", true)];
        let other = [judged("3 runs", false), judged("at 16 KB", false), judged("at 32 KB", true)];
        let holds: Vec<_> = aligned(&of, &other).into_iter().map(|j| j.unwrap().holds).collect();
        assert_eq!(holds, [false, true, false]);
        assert_eq!(aligned(&of, &other[1..])[2], None);
    }

    /// The assumed values give the verdicts of the experiments; another value changes them.
    #[test]
    fn an_experiment_runs_on_the_values_of_its_set() {
        let claims = [named("W-F9")];
        let trial = Trial { claims: &claims, seeds: 1, whole: true };
        let assumed = trial.judge(&[], &()).unwrap();
        assert!(assumed.iter().all(|judged| judged.holds), "{assumed:?}");
        let slope = |set: &[&str]| {
            let set: Vec<String> = set.iter().map(|setting| (*setting).to_owned()).collect();
            let judged = trial.judge(&set, &()).unwrap();
            judged.iter().find(|j| j.what.starts_with("slope")).unwrap().value
        };
        // An open parameter matters; an unknown key is ignored.
        let stamps = ["host.fixed.timestamps=true", "host.mobile.timestamps=true"];
        assert_ne!(slope(&stamps), assumed[1].value);
        assert_eq!(slope(&["path.wavelan.radio.overhead=9ms"]), assumed[1].value);
    }
}
