//! The search: by number of faults, and among these in the order of the packets.

use lasthop_proto::link::{CrossTraffic, Fate, Fates};
use lasthop_proto::units::{Span, Time};
use lasthop_scenario::{Scenario, StageKind};
use lasthop_sim::{Reason, Session};
use rayon::prelude::*;
use serde::Serialize;

use crate::oracle::{self, Watch};
use crate::pattern::{Fault, Pattern};

/// How long a run may take until nothing is left: longer than TIME-WAIT, and than agents keep a closed connection.
const PATIENCE: Span = Span::secs(7200);

/// Violations that are kept of one scenario; further ones are counted.
const VIOLATIONS: usize = 20;

/// Faults to combine, and how to run them.
#[derive(Clone, Debug)]
pub struct Options {
    /// Most faults in one run.
    pub faults: u32,
    /// Faults meet the first so many packets, over all routers.
    pub first: u64,
    pub fates: Vec<Fate>,
    pub method: Method,
}

/// How runs with a common beginning are made. The results are the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Method {
    /// The run is copied before each packet; where hosts cannot be copied, as with [`Method::Replay`].
    #[default]
    Fork,
    /// Every run begins anew.
    Replay,
}

/// A run with a pattern.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Run {
    pub pattern: Pattern,
    /// When the last data was delivered.
    pub seconds: f64,
    /// Of hosts and base station.
    pub retransmissions: u32,
    pub timeouts: u32,
}

/// All runs with the same number of faults.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Level {
    pub faults: u32,
    pub runs: u64,
    /// The first of those that took longest.
    pub slowest: Option<Run>,
    /// The first of those with most retransmissions.
    pub most_retransmissions: Option<Run>,
}

/// A run in which something does not hold.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Violation {
    pub pattern: Pattern,
    pub what: String,
}

/// What was found.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Exploration {
    pub runs: u64,
    /// By number of faults.
    pub levels: Vec<Level>,
    /// How many runs violate something.
    pub violations: u64,
    /// The first of them.
    pub first_violations: Vec<Violation>,
    /// Every pattern was run; false if somebody stopped it.
    pub complete: bool,
}

/// The routers of a scenario that decide about packets, by name.
pub fn routers(scenario: &Scenario) -> Vec<String> {
    let decides =
        |kind: &StageKind| matches!(kind, StageKind::Cross(CrossTraffic { fates: Some(_), .. }));
    let path = scenario.path.iter().filter(|stage| decides(&stage.kind));
    path.map(|stage| stage.name.clone()).collect()
}

/// Makes every router of cross traffic decide about packets.
fn with_fates(scenario: &Scenario) -> Scenario {
    let mut scenario = scenario.clone();
    for stage in &mut scenario.path {
        if let StageKind::Cross(cross) = &mut stage.kind {
            cross.fates.get_or_insert_with(|| Box::new(Fates::default()));
        }
    }
    scenario
}

/// Explores `scenario` with `seed`. `done` receives the number of runs that were made; false stops the search.
pub fn explore(
    scenario: &Scenario,
    seed: u64,
    options: &Options,
    done: &(dyn Fn(u64) -> bool + Sync),
) -> Exploration {
    let scenario = with_fates(scenario);
    let split = oracle::splits(&scenario);
    let subject = Subject { scenario: &scenario, seed, split, options };
    let mut found = Exploration { complete: true, ..Exploration::default() };
    found.take(0, vec![subject.finish(&Pattern::default(), subject.begin(&Pattern::default()))]);
    let mut patterns = vec![Pattern::default()];
    for faults in 1..=options.faults {
        // The last level is not run on from.
        let keep = faults < options.faults;
        let mut next = Vec::new();
        // A part of the patterns at a time: what is not kept needs no memory for long.
        for part in patterns.chunks(256) {
            let expanded: Vec<_> = part
                .par_iter()
                .map(|pattern| {
                    let runs = subject.expand(pattern);
                    let goes_on = done(runs.len() as u64);
                    (runs, goes_on)
                })
                .collect();
            for (runs, goes_on) in expanded {
                if keep {
                    next.extend(
                        runs.iter().filter_map(|run| Some(run.as_ref().ok()?.pattern.clone())),
                    );
                }
                found.take(faults, runs);
                found.complete &= goes_on;
            }
            if !found.complete {
                return found;
            }
        }
        patterns = next;
    }
    found
}

impl Exploration {
    fn take(&mut self, faults: u32, runs: Vec<Result<Run, Violation>>) {
        self.runs += runs.len() as u64;
        if self.levels.last().is_none_or(|level| level.faults < faults) {
            self.levels.push(Level { faults, runs: 0, slowest: None, most_retransmissions: None });
        }
        let Some(level) = self.levels.last_mut() else { return };
        level.runs += runs.len() as u64;
        for run in runs {
            match run {
                Ok(run) => {
                    if level.slowest.as_ref().is_none_or(|slowest| run.seconds > slowest.seconds) {
                        level.slowest = Some(run.clone());
                    }
                    let most = level.most_retransmissions.as_ref();
                    if most.is_none_or(|most| run.retransmissions > most.retransmissions) {
                        level.most_retransmissions = Some(run);
                    }
                }
                Err(violation) => {
                    self.violations += 1;
                    if self.first_violations.len() < VIOLATIONS {
                        self.first_violations.push(violation);
                    }
                }
            }
        }
    }
}

/// What all runs have in common.
struct Subject<'a> {
    scenario: &'a Scenario,
    seed: u64,
    split: bool,
    options: &'a Options,
}

type Begun<'a> = (Session<&'a Scenario>, Watch);

impl<'a> Subject<'a> {
    fn begin(&self, pattern: &Pattern) -> Begun<'a> {
        let watch = Watch::default();
        let mut session = Session::new(self.scenario, self.seed, &watch);
        for fault in &pattern.0 {
            session.set_fate(fault.router, fault.place, fault.fate);
        }
        (session, watch)
    }

    /// Every pattern that adds one fault behind the last one of `pattern`.
    fn expand(&self, pattern: &Pattern) -> Vec<Result<Run, Violation>> {
        let last = pattern.0.last().map(|fault| (fault.router, fault.place));
        let mut behind = last.is_none();
        let mut runs = Vec::new();
        let (mut session, mut watch) = self.begin(pattern);
        for _ in 0..self.options.first {
            let Some((router, place)) = session.run_to_choice(&mut watch) else { break };
            if behind {
                for fate in &self.options.fates {
                    let pattern = pattern.with(Fault { router, place, fate: *fate });
                    let begun = match self.options.method {
                        Method::Fork => session.fork().map(|mut copy| {
                            copy.set_fate(router, place, *fate);
                            (copy, watch)
                        }),
                        Method::Replay => None,
                    };
                    runs.push(self.finish(&pattern, begun.unwrap_or_else(|| self.begin(&pattern))));
                }
            }
            behind |= last == Some((router, place));
        }
        runs
    }

    /// Runs to the end, and checks.
    fn finish(&self, pattern: &Pattern, begun: Begun<'_>) -> Result<Run, Violation> {
        let (mut session, mut watch) = begun;
        session.run_until(Time::NEVER, &mut watch);
        let end = session.end();
        let Watch { delivered_at, retransmissions, timeouts, .. } = watch;
        let checked = oracle::check(&end, &watch, self.split, false)
            .and_then(|()| {
                let bytes: u64 = end.transfers.iter().map(|transfer| transfer.delivered).sum();
                oracle::demand(end.reason != Reason::Horizon, || {
                    format!("not finished within the horizon, {bytes} bytes delivered")
                })?;
                oracle::demand(end.transfers.iter().all(|transfer| transfer.complete), || {
                    format!("reset or given up, {bytes} bytes delivered")
                })
            })
            .and_then(|()| {
                oracle::demand(session.settle(PATIENCE, &mut watch), || {
                    "something still happens two hours after the end".into()
                })
            })
            .and_then(|()| {
                let late = pattern.0.iter().any(|fault| fault.fate == Fate::VeryLate);
                oracle::check_rest(
                    session.stages(),
                    (watch.has_stray_data() || late) && !self.split,
                )
            });
        match checked {
            Ok(()) => Ok(Run {
                pattern: pattern.clone(),
                seconds: (delivered_at - Time::ZERO).as_secs_f64(),
                retransmissions,
                timeouts,
            }),
            Err(what) => Err(Violation { pattern: pattern.clone(), what }),
        }
    }
}
