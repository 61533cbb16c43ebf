//! Results of a search.

use core::fmt;

use lasthop_proto::link::Fate;
use serde::{Deserialize, Serialize};

use crate::pattern::Pattern;

/// Limit of stored violations per scenario; further ones are only counted.
const VIOLATIONS: usize = 20;

/// Results of a run with the faults of `pattern`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Run {
    pub pattern: Pattern,
    /// Time of the last delivery of data.
    pub seconds: f64,
    /// Expected maximum of `seconds`, by the rule of [`crate::Options`].
    #[serde(skip_serializing, default)]
    pub bound: f64,
    /// Retransmissions of the hosts and of the base station.
    pub retransmissions: u32,
    pub timeouts: u32,
}

/// All runs with the same number of faults.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Level {
    pub faults: u32,
    pub runs: u64,
    /// The first of the runs with the longest time.
    pub slowest: Option<Run>,
    /// The first of the runs with the most retransmissions.
    pub most_retransmissions: Option<Run>,
    /// Number of runs that took longer than their bound.
    pub over_bound: u64,
    /// The first of the runs that exceeded their bound by the most.
    pub furthest_over_bound: Option<Costly>,
}

/// A run that took longer than its bound.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Costly {
    pub run: Run,
    pub bound_seconds: f64,
}

/// All runs with a single fault, which has this fate.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct OneFate {
    #[serde(with = "word")]
    pub fate: Fate,
    pub runs: u64,
    pub violations: u64,
    /// Number of runs whose retransmissions or timeouts differ from those of the run without faults.
    pub repeated: u64,
    /// Time of the slowest run minus that of the run without faults.
    pub slower_seconds: f64,
}

impl OneFate {
    /// The sum over several searches; the maximum of `slower_seconds`.
    pub fn over(found: &[&Exploration], fate: Fate) -> OneFate {
        let (runs, violations, repeated, slower_seconds) = (0, 0, 0, 0.0_f64);
        let mut sum = OneFate { fate, runs, violations, repeated, slower_seconds };
        for one in found.iter().flat_map(|found| &found.fates).filter(|one| one.fate == fate) {
            sum.runs += one.runs;
            sum.violations += one.violations;
            sum.repeated += one.repeated;
            sum.slower_seconds = sum.slower_seconds.max(one.slower_seconds);
        }
        sum
    }
}

impl fmt::Display for OneFate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.runs)?;
        if self.violations > 0 {
            write!(f, ", {} broken", self.violations)?;
        }
        if self.repeated > 0 {
            write!(f, ", {} retransmit", self.repeated)?;
        }
        match self.slower_seconds * 1000.0 {
            late if late >= 0.05 => write!(f, ", +{late:.1} ms"),
            _ => Ok(()),
        }
    }
}

/// A run that violates a condition of [`crate::oracle`]; `what` says which.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Violation {
    pub pattern: Pattern,
    pub what: String,
}

/// Results of a search.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Exploration {
    pub runs: u64,
    /// Indexed by the number of faults.
    pub levels: Vec<Level>,
    /// Runs with a single fault, by fate.
    pub fates: Vec<OneFate>,
    /// Number of runs with a violation.
    pub violations: u64,
    /// The first of them.
    pub first_violations: Vec<Violation>,
    /// Whether every pattern was run; false if the search was stopped.
    pub complete: bool,
    /// Number of patterns of the last but one level whose extensions by one fault are all counted.
    pub expanded: u64,
}

/// Serializes a fate as its word.
mod word {
    use lasthop_proto::link::Fate;
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    pub fn serialize<S: Serializer>(fate: &Fate, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(fate.word())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Fate, D::Error> {
        let word = String::deserialize(from)?;
        Fate::parse(&word).ok_or_else(|| D::Error::custom(format!("no fate `{word}`")))
    }
}

impl Exploration {
    /// The run without faults.
    fn plain(&self) -> Option<&Run> {
        self.levels.first()?.slowest.as_ref()
    }

    pub(crate) fn take(&mut self, faults: u32, runs: Vec<Result<Run, Violation>>) {
        self.runs += runs.len() as u64;
        if self.levels.last().is_none_or(|level| level.faults < faults) {
            self.levels.push(Level {
                faults,
                runs: 0,
                slowest: None,
                most_retransmissions: None,
                over_bound: 0,
                furthest_over_bound: None,
            });
            self.expanded = 0;
        }
        for run in runs {
            if faults == 1 {
                self.count_fate(&run);
            }
            let Some(level) = self.levels.last_mut() else { return };
            level.runs += 1;
            match run {
                Ok(run) => level.take(run),
                Err(violation) => {
                    self.violations += 1;
                    if self.first_violations.len() < VIOLATIONS {
                        self.first_violations.push(violation);
                    }
                }
            }
        }
    }

    fn count_fate(&mut self, run: &Result<Run, Violation>) {
        let (Ok(Run { pattern, .. }) | Err(Violation { pattern, .. })) = run;
        let Some(fault) = pattern.0.first() else { return };
        let plain = self.plain().map(|run| (run.seconds, run.retransmissions, run.timeouts));
        let (runs, violations, repeated, slower_seconds) = (0, 0, 0, 0.0);
        let fate = fault.fate;
        if self.fates.iter().all(|known| known.fate != fate) {
            self.fates.push(OneFate { fate, runs, violations, repeated, slower_seconds });
        }
        let Some(one) = self.fates.iter_mut().find(|known| known.fate == fate) else { return };
        one.runs += 1;
        match (run, plain) {
            (Err(_), _) => one.violations += 1,
            (Ok(run), Some(plain)) => {
                let same = (run.retransmissions, run.timeouts) == (plain.1, plain.2);
                one.repeated += u64::from(!same);
                one.slower_seconds = one.slower_seconds.max(run.seconds - plain.0);
            }
            _ => {}
        }
    }
}

impl Level {
    fn take(&mut self, run: Run) {
        let excess = run.seconds - run.bound;
        if excess > 0.0 {
            self.over_bound += 1;
            let most = self.furthest_over_bound.as_ref();
            if most.is_none_or(|most| excess > most.run.seconds - most.bound_seconds) {
                let costly = Costly { run: run.clone(), bound_seconds: run.bound };
                self.furthest_over_bound = Some(costly);
            }
        }
        if self.slowest.as_ref().is_none_or(|slowest| run.seconds > slowest.seconds) {
            self.slowest = Some(run.clone());
        }
        let most = self.most_retransmissions.as_ref();
        if most.is_none_or(|most| run.retransmissions > most.retransmissions) {
            self.most_retransmissions = Some(run);
        }
    }
}
