//! Claims under other values of what their papers leave open.

use core::fmt;

use lasthop_lab::Observer;
use serde::{Deserialize, Serialize};

use crate::{Bench, Bound, Claim, Finding, Interrupted};

/// A condition of a claim, judged.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Judged {
    /// The claim.
    pub claim: String,
    /// What was measured.
    pub what: String,
    /// What it must be.
    pub bound: String,
    /// The measured value, if it is a number.
    pub value: Option<f64>,
    /// Whether the condition holds.
    pub holds: bool,
}

impl fmt::Display for Judged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.claim, self.what)?;
        if self.bound.is_empty() { Ok(()) } else { write!(f, " {}", self.bound) }
    }
}

/// How many times as many seeds the comparisons have that need more, when many sets are tried.
const MANY: u32 = 3;

/// Claims that are to be judged.
#[derive(Clone, Debug)]
pub struct Trial<'a> {
    /// Them.
    pub claims: &'a [&'static Claim],
    /// Seeds of each case. They are the same for every set of parameters, so that sets differ by nothing else.
    pub seeds: u32,
    /// Whether transfers are as long as the experiments have them, and not as short as the testbed allows.
    pub whole: bool,
}

impl Trial<'_> {
    /// The conditions of the claims with `set` in place of what is assumed. Runs that claims share are made once.
    ///
    /// # Errors
    ///
    /// [`Interrupted`] when the observer said stop.
    pub fn judge(
        &self,
        set: &[String],
        observer: &dyn Observer,
    ) -> Result<Vec<Judged>, Interrupted> {
        let mut bench = Bench::trying(self.seeds, observer);
        let mut all = Vec::new();
        for claim in self.claims {
            let Some(run) = claim.run else { continue };
            let open = claim.open();
            let of_this = |setting: &&String| {
                let key = setting.split('=').next().unwrap_or_default();
                open.iter().any(|open| open.parts().len() > 1 && open.keys.contains(&key))
            };
            bench.set = set.iter().filter(of_this).cloned().collect();
            if let (Some(testbed), false) = (claim.testbed, self.whole) {
                bench.shorter = testbed.shorter;
                bench.many = MANY;
            }
            let mut finding = Finding::new(self.seeds);
            run(&mut bench, &mut finding)?;
            all.extend(finding.conditions.iter().map(|condition| {
                let (what, bound) = match condition.bound {
                    Bound::True => (without_numbers(&condition.what), String::new()),
                    bound => (condition.what.clone(), bound.to_string()),
                };
                let value = Some(condition.value).filter(|value| value.is_finite());
                Judged { claim: claim.id.to_owned(), what, bound, value, holds: condition.holds() }
            }));
        }
        Ok(all)
    }

    /// The conditions under each of `sets`, on all processors; `done` is told of each when it is finished. `None` where
    /// the observer said stop before.
    pub fn judge_all(
        &self,
        sets: &[Vec<String>],
        observer: &dyn Observer,
        done: &(dyn Fn(usize, &[Judged]) + Sync),
    ) -> Vec<Option<Vec<Judged>>> {
        lasthop_lab::spread(sets.len(), |i| {
            let judged = self.judge(&sets[i], observer).ok()?;
            done(i, &judged);
            Some(judged)
        })
    }
}

/// Those of `judged` that are the conditions `of`, in that order; `None` where one is not among them. Conditions are
/// known by claims and words without numbers, which may be measured ones, and by their order where these are alike.
pub fn aligned<'a>(of: &[Judged], judged: &'a [Judged]) -> Vec<Option<&'a Judged>> {
    let name = |j: &Judged| (j.claim.clone(), without_numbers(&j.what));
    let names: Vec<_> = judged.iter().map(name).collect();
    let wanted: Vec<_> = of.iter().map(name).collect();
    let place = |(i, name): (usize, &(String, String))| {
        let before = wanted[..i].iter().filter(|other| *other == name).count();
        let alike = names.iter().zip(judged).filter(|(other, _)| *other == name);
        alike.map(|(_, judged)| judged).nth(before)
    };
    wanted.iter().enumerate().map(place).collect()
}

/// `text` with a sign in place of each number.
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
        // The point of a sentence.
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
    fn conditions_are_known_again_whatever_was_measured() {
        assert_eq!(without_numbers("3 of 12 periods, 1.5 s. B-F4"), "… of … periods, … s. B-F4");
        let judged = |what: &str, holds| Judged {
            claim: "X".into(),
            what: what.into(),
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

    /// What is assumed gives the verdicts of the experiments; another value changes what it should.
    #[test]
    fn a_set_is_what_the_experiments_run_on() {
        let claims = [named("W-F9")];
        let trial = Trial { claims: &claims, seeds: 1, whole: true };
        let assumed = trial.judge(&[], &()).unwrap();
        assert!(assumed.iter().all(|judged| judged.holds), "{assumed:?}");
        let slope = |set: &str| {
            let judged = trial.judge(&[set.to_owned()], &()).unwrap();
            judged.iter().find(|j| j.what.starts_with("slope")).unwrap().value
        };
        // What is open counts; a key that is not (it is fitted) is left alone.
        assert_ne!(slope("host.fixed.send-buffer=2KiB"), assumed[1].value);
        assert_eq!(slope("path.wavelan.radio.overhead=9ms"), assumed[1].value);
    }
}
