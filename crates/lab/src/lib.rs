//! Many runs at once: the step from a plan to numbers.
//!
//! A run is pure and single-threaded; here runs are spread over threads and their results put back into the
//! order of the seeds, so that the number of threads cannot be seen in any result. Without the feature
//! `threads` they are made one after the other, and this crate is as pure as the simulator. The feature `quic` brings hosts
//! that speak QUIC, which are not.

mod results;
mod words;

pub use results::{CellResults, Estimate, Results, Setup};

use std::collections::BTreeMap;

use lasthop_proto::units::Time;
#[cfg(feature = "quic")]
pub use lasthop_quic::end as ends;
use lasthop_scenario::Scenario;
#[cfg(not(feature = "quic"))]
pub use lasthop_sim::no_ends as ends;
use lasthop_sim::run_with;
pub use lasthop_sim::{Reason, RunEnd, layout};
use lasthop_trace::layout::Layout;
use lasthop_trace::metrics::{Limits, Metrics, RunMetrics};
use lasthop_trace::sequence::{Sequence, Series, Watch};
use lasthop_trace::{Nothing, Sink};
#[cfg(feature = "threads")]
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// What a finished run is known by.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RunResult {
    /// Its seed.
    pub seed: u64,
    /// Why it ended: `finished`, `horizon`, `idle` or `stuck`.
    pub reason: String,
    /// At which stage time stood still, and when, if it did: a fault of lasthop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stuck: Option<String>,
    /// Packets carried by links.
    pub hops: u64,
    /// Largest state that a base-station agent held, in bytes; zero without an agent.
    pub agent_state_bytes: u64,
    /// Everything measured.
    pub metrics: RunMetrics,
    /// What only a run on real packets tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub testbed: Option<Testbed>,
}

/// What only a run on real packets tells.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Testbed {
    /// What the kernel of each host counted during the run, under the kernel's own names.
    pub kernel: BTreeMap<String, BTreeMap<String, u64>>,
    /// Transfers that did not arrive as they were sent, a line each.
    pub wrong: Vec<String>,
    /// Frames that the base station lost because it could not keep up.
    pub lost_frames: u64,
    /// Where time-outs, recoveries and windows of senders in the kernel are known from: `tracepoints`, each at its own
    /// time, or `tcp-info`, differences between answers some milliseconds apart. `None` without such senders.
    #[serde(default)]
    pub tcp_events: Option<String>,
    /// Why it is not `tracepoints`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp_events_why: Option<String>,
    /// Events of those senders that could not be read in time.
    #[serde(default)]
    pub lost_tcp_events: u64,
}

/// Who wants to know how far a batch is, and may end it early.
pub trait Observer: Sync {
    /// Job number `job` has finished with `result`; called from the thread that ran it.
    fn measured(&self, job: usize, result: &RunResult) {
        let _ = (job, result);
    }

    /// Whether to begin no further run.
    fn stop(&self) -> bool {
        false
    }
}

/// Nobody watches.
impl Observer for () {}

/// Runs `scenario` once with `seed` and measures it.
pub fn measure(scenario: &Scenario, seed: u64) -> RunResult {
    let layout = layout(scenario);
    let mut metrics = Metrics::new(layout.clone());
    let end = run_with(scenario, seed, &ends, &mut metrics);
    result(seed, &end, &layout, metrics.finish(end.at))
}

/// Runs `scenario` once with `seed` and measures nothing but what was carried and what arrived.
pub fn run_unmeasured(scenario: &Scenario, seed: u64) -> RunEnd {
    run_with(scenario, seed, &ends, &mut Nothing)
}

fn result(seed: u64, end: &RunEnd, layout: &Layout, mut metrics: RunMetrics) -> RunResult {
    metrics.limits = end.limits.map(|lasthop_sim::Limits(parts)| {
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

/// Runs jobs, each a scenario with a seed, on all threads of the current pool. Results come in the order of
/// the jobs; a job that was not begun because the observer said stop is `None`.
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
            let result = measure(scenario, *seed);
            observer.measured(job, &result);
            Some(result)
        })
        .collect()
}

/// What `each` gives for the numbers below `count`, in their order, on all threads of the current pool.
pub fn spread<T: Send>(count: usize, each: impl Fn(usize) -> T + Sync + Send) -> Vec<T> {
    #[cfg(feature = "threads")]
    let jobs = (0..count).into_par_iter();
    #[cfg(not(feature = "threads"))]
    let jobs = 0..count;
    jobs.map(each).collect()
}

/// More flows than this nobody looks at one by one.
const DRAWN: usize = 8;

/// A run with what plots are drawn from.
#[derive(Debug)]
pub struct Recording {
    /// What was measured, exactly as without the recording.
    pub result: RunResult,
    /// When the run ended.
    pub end: Time,
    /// The time-sequence series of the first flows of the scenario.
    pub series: Vec<Series>,
}

/// Runs `scenario` once with `seed` for its time-sequence series, and hands every event to `also` on the way:
/// nothing grows with the length of the run but what `also` keeps.
pub fn record<S: Sink>(scenario: &Scenario, seed: u64, also: &mut S) -> Recording {
    record_by(scenario, seed, also, |mut sink| run_with(scenario, seed, &ends, &mut sink))
}

/// The same where `run` makes the run, or as much of it as it likes: it hands every event to the sink that it is given.
pub fn record_by<S: Sink>(
    scenario: &Scenario,
    seed: u64,
    also: &mut S,
    run: impl FnOnce(&mut dyn Sink) -> RunEnd,
) -> Recording {
    let layout = layout(scenario);
    let mut sinks = (also, Metrics::new(layout.clone()));
    let mut ended = None;
    let series = watched(&layout, &mut sinks, |sink| ended.insert(run(sink)).at);
    let Some(end) = ended else { unreachable!("the run was made") };
    Recording { result: result(seed, &end, &layout, sinks.1.finish(end.at)), end: end.at, series }
}

/// Runs `scenario` in the simulator, hands every event to `sink`, and says when the run ended.
pub fn simulate(scenario: &Scenario, seed: u64, mut sink: &mut dyn Sink) -> Time {
    run_with(scenario, seed, &ends, &mut sink).at
}

/// The time-sequence series of the first flows of `layout` in a run, in whatever world. `run` hands every event
/// to the sink that it is given, `also` among its readers, and says when the run ended.
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
