//! The bench of the experiments: each case runs once, however many claims use it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use lasthop_observe::Nothing;
use lasthop_observe::metrics::RunMetrics;
use lasthop_observe::stats::Summary;
use lasthop_scenario::{Argument, Scenario, parse};
use lasthop_sim::runs::{Observer, Recording, RunResult, measure, measure_all, record};

use crate::Estimate;
use crate::measure::{throughput, timeouts};
use crate::open::fitting;

/// The observer requested a stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("stopped before all runs were done")]
pub struct Interrupted;

/// The runs of one case, in the order of their seeds.
#[derive(Clone, Debug)]
pub struct Runs {
    /// At least the requested number; others may have requested more seeds of the same case.
    made: Arc<Vec<RunResult>>,
    count: usize,
}

impl Runs {
    pub fn all(&self) -> &[RunResult] {
        &self.made[..self.count]
    }

    /// A figure of each run.
    pub fn each(&self, of: impl Fn(&RunMetrics) -> f64) -> Vec<f64> {
        self.all().iter().map(|run| of(&run.metrics)).collect()
    }

    /// Mean, deviation and interval of a figure.
    pub fn summary(&self, of: impl Fn(&RunMetrics) -> f64) -> Summary {
        Summary::of(&self.each(of))
    }

    /// Mean of a figure.
    pub fn mean(&self, of: impl Fn(&RunMetrics) -> f64) -> f64 {
        self.summary(of).mean
    }

    /// The ratio of the means of a figure in these and in `other` runs.
    pub fn ratio(&self, other: &Runs, of: impl Fn(&RunMetrics) -> f64) -> Estimate {
        Estimate::ratio(&self.each(&of), &other.each(&of))
    }

    /// By how many percent the mean of a figure exceeds that of `other`.
    pub fn percent_above(&self, other: &Runs, of: impl Fn(&RunMetrics) -> f64) -> Estimate {
        Estimate::percent_above(&self.each(&of), &other.each(&of))
    }

    /// The difference of the means of a figure in these and in `other` runs.
    pub fn difference(&self, other: &Runs, of: impl Fn(&RunMetrics) -> f64) -> Estimate {
        Estimate::difference(&self.each(&of), &other.each(&of))
    }

    /// The standard deviation of a figure over the runs.
    pub fn deviation(&self, of: impl Fn(&RunMetrics) -> f64) -> Estimate {
        let each = self.each(of);
        let n = each.len() as f64;
        let squares: Vec<f64> = each.iter().map(|x| x * x).collect();
        let freedom = n / (n - 1.0).max(1.0);
        Estimate::of(&[&each, &squares], |m| ((m[1] - m[0] * m[0]).max(0.0) * freedom).sqrt())
    }

    /// Throughput of all flows together in KB/s.
    pub fn throughput(&self) -> Summary {
        self.summary(throughput)
    }

    /// Retransmission timeouts of the senders per run.
    pub fn timeouts(&self) -> Summary {
        self.summary(timeouts)
    }

    /// The runs whose connections were established: a handshake that is given up has no transfer.
    pub fn opened(&self) -> Runs {
        let opened =
            |run: &&RunResult| run.metrics.flows.iter().all(|f| !f.aborted || f.delivered > 0);
        let made: Vec<RunResult> = self.all().iter().filter(opened).cloned().collect();
        Runs { count: made.len(), made: Arc::new(made) }
    }

    /// The number of runs with complete transfers.
    pub fn complete(&self) -> usize {
        self.all().iter().filter(|run| run.metrics.complete()).count()
    }
}

pub struct Bench<'a> {
    /// Seeds per case.
    pub seeds: u32,
    /// The first of them.
    pub first_seed: u64,
    /// Factor of seeds for comparisons that `seeds` cannot decide.
    pub many: u32,
    /// Settings that shorten the runs.
    pub shorter: &'static [&'static str],
    /// Settings of the testbeds that replace assumptions, as in `--set`; an experiment's own changes come later.
    pub set: Vec<String>,
    /// Explores parameters, so that only conditions matter.
    trying: bool,
    observer: &'a dyn Observer,
    /// The finished runs of each case, from its first seed on.
    done: BTreeMap<String, Arc<Vec<RunResult>>>,
}

impl<'a> Bench<'a> {
    /// A bench that runs each case with `seeds` seeds.
    pub fn new(seeds: u32, observer: &'a dyn Observer) -> Bench<'a> {
        Bench {
            seeds,
            first_seed: 1,
            many: 10,
            shorter: &[],
            set: Vec::new(),
            trying: false,
            observer,
            done: BTreeMap::new(),
        }
    }

    /// A bench for explored parameters. Runs are sequential: sets of parameters run in parallel.
    pub fn trying(seeds: u32, observer: &'a dyn Observer) -> Bench<'a> {
        Bench { trying: true, ..Bench::new(seeds, observer) }
    }

    /// Runs `of` with `many` times as many seeds.
    pub fn with_many<T>(&mut self, of: impl FnOnce(&mut Bench<'a>) -> T) -> T {
        self.with_times(self.many, of)
    }

    /// Runs `of` with `times` as many seeds, at most `many`.
    pub fn with_times<T>(&mut self, times: u32, of: impl FnOnce(&mut Bench<'a>) -> T) -> T {
        let usual = self.seeds;
        self.seeds = times.min(self.many) * usual;
        let result = of(self);
        self.seeds = usual;
        result
    }

    /// Tables, plots and notes are used. If not, runs that decide no condition can be omitted.
    pub fn is_shown(&self) -> bool {
        !self.trying
    }

    /// The value set for `key`, if there is one.
    pub fn setting(&self, key: &str) -> Option<&str> {
        self.set.iter().rev().find_map(|setting| setting.strip_prefix(key)?.strip_prefix('='))
    }

    /// The testbed `text` with `changes`.
    pub fn scenario<S: AsRef<str>>(&self, text: &str, changes: &[S]) -> Scenario {
        let set = self.set.iter().filter_map(|setting| fitting(text, setting));
        let own = changes.iter().map(AsRef::as_ref);
        let shorter = self.shorter.iter().copied();
        scenario(text, &set.chain(own).chain(shorter).collect::<Vec<_>>())
    }

    /// The runs of the testbed `text` with `changes` (as in `--set`).
    ///
    /// # Errors
    ///
    /// [`Interrupted`] when the observer requested a stop.
    pub fn runs<S: AsRef<str>>(&mut self, text: &str, changes: &[S]) -> Result<Runs, Interrupted> {
        let mut all = self.batch(text, &[(changes, self.seeds)])?;
        Ok(all.swap_remove(0))
    }

    /// The runs of several cases of the testbed `text`, each with its changes and its number of seeds. They run in
    /// parallel, so that long runs leave no thread idle.
    ///
    /// # Errors
    ///
    /// [`Interrupted`] when the observer requested a stop.
    pub fn batch<S: AsRef<str>>(
        &mut self,
        text: &str,
        cases: &[(&[S], u32)],
    ) -> Result<Vec<Runs>, Interrupted> {
        let scenarios: Vec<(String, Scenario, usize)> = cases
            .iter()
            .map(|(changes, seeds)| {
                let scenario = self.scenario(text, changes);
                // The key of the first seed identifies the scenario.
                let key = lasthop_scenario::plan::RunKey::of(&scenario, scenario.first_seed);
                (key.to_string(), scenario, *seeds as usize)
            })
            .collect();
        let mut new: BTreeMap<&String, (&Scenario, usize)> = BTreeMap::new();
        for (key, scenario, seeds) in &scenarios {
            if self.made(key) < *seeds {
                let (_, most) = new.entry(key).or_insert((scenario, *seeds));
                *most = (*most).max(*seeds);
            }
        }
        let jobs: Vec<(&Scenario, u64)> = new
            .iter()
            .flat_map(|(key, (scenario, seeds))| {
                let missing = self.made(key) as u64..*seeds as u64;
                missing.map(|i| (*scenario, self.first_seed + i))
            })
            .collect();
        let results: Option<Vec<RunResult>> = if self.is_shown() {
            measure_all(&jobs, self.observer).into_iter().collect()
        } else {
            let go_on = jobs.iter().take_while(|_| !self.observer.stop());
            let all: Vec<_> = go_on.map(|(scenario, seed)| measure(scenario, *seed)).collect();
            Some(all).filter(|all| all.len() == jobs.len())
        };
        let mut results = results.ok_or(Interrupted)?.into_iter();
        for (key, (_, seeds)) in new {
            let made = Arc::make_mut(self.done.entry(key.clone()).or_default());
            made.extend(results.by_ref().take(seeds - made.len()));
        }
        let runs = scenarios.iter().filter_map(|(key, _, seeds)| {
            Some(Runs { made: Arc::clone(self.done.get(key)?), count: *seeds })
        });
        Ok(runs.collect())
    }

    /// The runs of several cases, each with its changes, with `seeds` seeds each.
    ///
    /// # Errors
    ///
    /// [`Interrupted`] when the observer requested a stop.
    pub fn each<S: AsRef<str>, C: AsRef<[S]>>(
        &mut self,
        text: &str,
        cases: &[C],
        seeds: u32,
    ) -> Result<Vec<Runs>, Interrupted> {
        let cases: Vec<(&[S], u32)> = cases.iter().map(|case| (case.as_ref(), seeds)).collect();
        self.batch(text, &cases)
    }

    /// The number of finished runs of a case.
    fn made(&self, key: &str) -> usize {
        self.done.get(key).map_or(0, |made| made.len())
    }

    /// The run of a deterministic case.
    ///
    /// # Errors
    ///
    /// [`Interrupted`] when the observer requested a stop.
    pub fn alike<S: AsRef<str>>(&mut self, text: &str, changes: &[S]) -> Result<Runs, Interrupted> {
        let one = self.batch(text, &[(changes, 1)])?.swap_remove(0);
        let again = |i: u64| {
            one.all().iter().map(move |run| RunResult { seed: run.seed + i, ..run.clone() })
        };
        let made: Vec<RunResult> = (0..u64::from(self.seeds)).flat_map(again).collect();
        Ok(Runs { count: made.len(), made: Arc::new(made) })
    }

    /// Checks for a stop, for experiments that make their runs themselves.
    ///
    /// # Errors
    ///
    /// [`Interrupted`] when the observer requested a stop.
    pub fn check_interrupt(&self) -> Result<(), Interrupted> {
        if self.observer.stop() { Err(Interrupted) } else { Ok(()) }
    }

    /// `seeds` seeds, from the first one on.
    pub fn seeds_of(&self, seeds: u32) -> Range<u64> {
        self.first_seed..self.first_seed + u64::from(seeds)
    }

    /// Calls `run` for each of `seeds` seeds.
    ///
    /// # Errors
    ///
    /// [`Interrupted`] when the observer requested a stop.
    pub fn each_seed<T>(
        &self,
        seeds: u32,
        mut run: impl FnMut(u64) -> T,
    ) -> Result<Vec<T>, Interrupted> {
        self.seeds_of(seeds).map(|seed| self.check_interrupt().map(|()| run(seed))).collect()
    }

    /// One run with its time-sequence series.
    pub fn record<S: AsRef<str>>(&self, text: &str, changes: &[S], seed: u64) -> Recording {
        record(&self.scenario(text, changes), seed, &mut Nothing)
    }
}

/// The testbed `text` with `changes`.
///
/// # Panics
///
/// If the text is no scenario: the testbeds are part of this crate, and a test parses each.
pub fn scenario<S: AsRef<str>>(text: &str, changes: &[S]) -> Scenario {
    let set = |change: &S| Argument::Set(change.as_ref().to_owned());
    let arguments: Vec<Argument> = changes.iter().map(set).collect();
    match parse(text, "experiment", &arguments) {
        Ok((mut plan, _)) => plan.cells.swap_remove(0).scenario,
        Err(error) => unreachable!("an experiment's own scenario: {error} ({arguments:?})"),
    }
}
