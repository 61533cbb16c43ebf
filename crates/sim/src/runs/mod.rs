//! Runs in parallel: from a plan to results.
//!
//! A run is pure and single-threaded. This module distributes runs over threads and returns their results in the order
//! of the seeds, so results do not depend on the number of threads. Without the feature `threads` runs are sequential.

mod results;
mod words;

pub use results::{CellResults, Estimate, Results, Setup};

use std::collections::BTreeMap;

use lasthop_observe::layout::Layout;
use lasthop_observe::metrics::{Limits, Metrics, RunMetrics};
use lasthop_observe::sequence::{Sequence, Series, Watch};
use lasthop_observe::{Nothing, Sink};
use lasthop_proto::units::Time;
use lasthop_scenario::Scenario;
#[cfg(feature = "threads")]
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

#[cfg(not(feature = "quic"))]
pub use crate::no_ends as ends;
#[cfg(feature = "quic")]
pub use crate::quic::end as ends;
pub use crate::{Reason, RunEnd, layout};
use crate::{run_compiled, run_with};

/// The result of a finished run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RunResult {
    pub seed: u64,
    /// Why it ended: `finished`, `horizon`, `idle` or `stuck`.
    pub reason: String,
    /// Stage and time of an endless loop: a fault of lasthop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stuck: Option<String>,
    /// Packets carried by links.
    pub hops: u64,
    /// Largest state of a base-station agent in bytes; zero without an agent.
    pub agent_state_bytes: u64,
    pub metrics: RunMetrics,
    /// Figures of runs on real packets only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub testbed: Option<Testbed>,
}

/// Figures of runs on real packets only.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Testbed {
    /// Counters of each host's kernel during the run, by the kernel's names.
    pub kernel: BTreeMap<String, BTreeMap<String, u64>>,
    /// Transfers with wrong data, one line each.
    pub wrong: Vec<String>,
    /// Frames that the base station lost under overload.
    pub lost_frames: u64,
}

/// Progress and early termination of a batch.
pub trait Observer: Sync {
    /// Makes job number `job`; `None` if it failed. An observer that also writes a trace overrides this.
    fn make(&self, job: usize, scenario: &Scenario, seed: u64) -> Option<RunResult> {
        let _ = job;
        Some(measure(scenario, seed))
    }

    /// Job number `job` has finished with `result`; called from the thread that ran it.
    fn measured(&self, job: usize, result: &RunResult) {
        let _ = (job, result);
    }

    /// True to start no further run.
    fn stop(&self) -> bool {
        false
    }
}

/// No progress, no termination.
impl Observer for () {}

/// Runs `scenario` once with `seed` and measures it.
pub fn measure(scenario: &Scenario, seed: u64) -> RunResult {
    measure_by(Metrics::new, scenario, seed)
}

/// The same with metrics [in brief](Metrics::brief).
pub fn measure_in_brief(scenario: &Scenario, seed: u64) -> RunResult {
    measure_by(Metrics::brief, scenario, seed)
}

fn measure_by(metrics: fn(Layout) -> Metrics, scenario: &Scenario, seed: u64) -> RunResult {
    let layout = layout(scenario);
    let mut metrics = metrics(layout.clone());
    let end = run_compiled(scenario, seed, &ends, &mut metrics);
    result(seed, &end, &layout, metrics.finish(end.at))
}

/// Runs `scenario` once with `seed`, without metrics other than carried and delivered packets.
pub fn run_unmeasured(scenario: &Scenario, seed: u64) -> RunEnd {
    run_compiled(scenario, seed, &ends, &mut Nothing)
}

fn result(seed: u64, end: &RunEnd, layout: &Layout, mut metrics: RunMetrics) -> RunResult {
    metrics.limits = end.limits.map(|crate::Limits(parts)| {
        let [application, send_buffer, receive_window, congestion_window, pacing] =
            parts.map(|part| f64::from(part) / 1e6);
        let pacing = Some(pacing);
        Limits { application, send_buffer, receive_window, congestion_window, pacing }
    });
    let reason = match end.reason {
        Reason::Finished => "finished",
        Reason::Horizon => "horizon",
        Reason::Idle => "idle",
        Reason::Stuck => "stuck",
    };
    RunResult {
        seed,
        reason: reason.to_owned(),
        stuck: end.stuck.map(|stage| {
            let name = layout.stages.get(usize::from(stage.0)).map_or("?", |info| &info.name);
            format!("stage {} ({name}) at {}", stage.0, end.at)
        }),
        hops: end.hops,
        agent_state_bytes: end.agent_state.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0),
        metrics,
        testbed: None,
    }
}

/// Runs jobs, each a scenario with a seed, on all threads of the current pool. Results are in the order of the jobs;
/// `None` for a job that failed, or was not started because the observer requested a stop.
pub fn measure_all(jobs: &[(&Scenario, u64)], observer: &dyn Observer) -> Vec<Option<RunResult>> {
    #[cfg(feature = "threads")]
    let jobs = jobs.par_iter();
    #[cfg(not(feature = "threads"))]
    let jobs = jobs.iter();
    jobs.enumerate()
        .map(|(job, (scenario, seed))| {
            if observer.stop() {
                return None;
            }
            let result = observer.make(job, scenario, *seed)?;
            observer.measured(job, &result);
            Some(result)
        })
        .collect()
}

/// The results of `each` for the numbers below `count`, in order, on all threads of the current pool.
pub fn spread<T: Send>(count: usize, each: impl Fn(usize) -> T + Sync + Send) -> Vec<T> {
    #[cfg(feature = "threads")]
    let jobs = (0..count).into_par_iter();
    #[cfg(not(feature = "threads"))]
    let jobs = 0..count;
    jobs.map(each).collect()
}

/// Maximum number of flows with a time-sequence series.
const DRAWN: usize = 8;

/// A run with the series for its plots.
#[derive(Debug)]
pub struct Recording {
    /// The same as without the recording.
    pub result: RunResult,
    pub end: Time,
    /// Of the first flows of the scenario.
    pub series: Vec<Series>,
}

/// Runs `scenario` once with `seed` for its time-sequence series, and passes every event to `also`. Memory does not
/// grow with the length of the run, except in `also`.
pub fn record(scenario: &Scenario, seed: u64, also: &mut dyn Sink) -> Recording {
    record_by(scenario, seed, also, |sink| run_with(scenario, seed, &ends, sink))
}

/// The same where `run` makes the run, or a part of it, and passes every event to the given sink.
pub fn record_by(
    scenario: &Scenario,
    seed: u64,
    also: &mut dyn Sink,
    run: impl FnOnce(&mut dyn Sink) -> RunEnd,
) -> Recording {
    let layout = layout(scenario);
    let mut sinks = (also, Metrics::new(layout.clone()));
    let mut ended = None;
    let series = watched(&layout, &mut sinks, |sink| ended.insert(run(sink)).at);
    let Some(end) = ended else { unreachable!("the run was made") };
    Recording { result: result(seed, &end, &layout, sinks.1.finish(end.at)), end: end.at, series }
}

/// Runs `scenario` in the simulator and passes every event to `sink`. Returns the end time.
pub fn simulate(scenario: &Scenario, seed: u64, sink: &mut dyn Sink) -> Time {
    run_with(scenario, seed, &ends, sink).at
}

/// The time-sequence series of the first flows of `layout` in a run of any world. `run` passes every event to the given
/// sink, which includes `also`, and returns the end time.
pub fn watched(
    layout: &Layout,
    also: &mut dyn Sink,
    run: impl FnOnce(&mut dyn Sink) -> Time,
) -> Vec<Series> {
    let flows = layout.flows.iter().take(DRAWN);
    let series: Vec<Sequence> =
        flows.map(|flow| Sequence::new(flow.key, Watch::EndPoints).in_cells(layout)).collect();
    let mut sinks = (also, series);
    let end = run(&mut sinks);
    sinks.1.into_iter().map(|s| s.finish(end)).collect()
}
