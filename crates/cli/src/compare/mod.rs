//! Schemes against each other: from a comparison's plan to ranks, bounds, words and pictures.

pub mod page;
pub mod show;
mod theory;

use std::num::NonZeroUsize;
use std::path::Path;

use lasthop_lab::ranking::{Standing, standings};
use lasthop_lab::{CellResults, Results, Setup};
use lasthop_scenario::{Comparison, LeftOut, Scheme};
use lasthop_trace::stats::Summary;
use serde::Serialize;

use crate::cmd::plan;
use crate::failure::Failure;
use crate::output;
use crate::progress::Progress;
use crate::stop::Stop;
use crate::sweep::Job;
use crate::sweep::testbed::Order;
pub use theory::Bounds;

/// What was measured.
pub struct Measured {
    /// The runs of each cell.
    pub results: Results,
    /// Whether all of them were made.
    pub complete: bool,
}

/// Everything that a comparison says.
#[derive(Clone, Debug, Serialize)]
pub struct Document {
    /// Version of lasthop that made it.
    pub lasthop: String,
    /// Name of the scenario.
    pub name: String,
    /// The command that makes it again.
    pub command: String,
    /// The path from left to right.
    pub path: String,
    /// What is transferred.
    pub transfers: Vec<String>,
    /// The scheme that the others are compared with.
    pub baseline: String,
    /// Seeds of the runs of each scheme.
    pub seeds: Vec<u64>,
    /// What the errors are varied by, if they are.
    pub axis: Option<String>,
    /// The comparison at each point of that axis; one without an axis.
    pub points: Vec<Place>,
    /// Schemes that do not apply.
    pub left_out: Vec<LeftOut>,
    /// Schemes of which not all runs were made, since somebody interrupted.
    pub unfinished: Vec<String>,
}

/// The comparison at one point of the axis of errors.
#[derive(Clone, Debug, Serialize)]
pub struct Place {
    /// Its label on the axis.
    pub label: Option<String>,
    /// What theory allows.
    pub bounds: Bounds,
    /// The schemes, the best first.
    pub schemes: Vec<Row>,
}

/// One scheme at one point.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// What it is.
    #[serde(flatten)]
    pub scheme: Scheme,
    /// What it sets, as `KEY=VALUE`.
    pub sets: Vec<String>,
    /// Throughput in bytes per second, beside the others.
    #[serde(flatten)]
    pub standing: Standing,
    /// Expirations of the senders' retransmission timers.
    pub timeouts: Summary,
    /// Full packets needed by data packets on the radio.
    pub wireless_goodput: Option<Summary>,
    /// Runs in which every transfer was complete; nothing for transfers without end.
    pub complete: Option<usize>,
}

/// Makes the runs of a comparison.
pub fn measure(
    comparison: &Comparison,
    output: Option<&Path>,
    jobs: Option<NonZeroUsize>,
    quiet: bool,
) -> Result<Measured, Failure> {
    if let Some(dir) = output {
        output::prepare(dir)?;
    }
    measure_with(comparison, output, jobs, quiet, &Stop::listen()?)
}

/// The same for those who listen for Ctrl-C already.
pub fn measure_with(
    comparison: &Comparison,
    output: Option<&Path>,
    jobs: Option<NonZeroUsize>,
    quiet: bool,
    stop: &Stop,
) -> Result<Measured, Failure> {
    let plan = &comparison.plan;
    let processors = || std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let progress = Progress::new(plan.count(), quiet);
    let job = Job {
        plan,
        order: Order::default(),
        output,
        jobs: jobs.map_or_else(processors, NonZeroUsize::get),
        stop,
        progress: &progress,
    };
    let runs = job.measure();
    progress.finish();
    let runs = runs?;
    let complete = runs.iter().all(Option::is_some);
    Ok(Measured { results: Results::new(plan, Setup::default(), runs), complete })
}

/// Puts the schemes in order.
pub fn rank(comparison: &Comparison, results: &Results, command: String) -> Document {
    let points = comparison.points();
    let wanted = |cell: usize| comparison.plan.cells[cell].scenario.runs as usize;
    // Runs are paired by their seeds: a scheme that was interrupted has not the same ones.
    let is_whole = |scheme: &usize| {
        (0..points)
            .all(|i| results.cells[scheme * points + i].runs.len() == wanted(scheme * points + i))
    };
    let (whole, unfinished): (Vec<usize>, Vec<usize>) =
        (0..comparison.schemes.len()).partition(is_whole);
    let places = match whole.iter().position(|scheme| *scheme == comparison.baseline) {
        Some(baseline) => {
            (0..points).map(|i| place(comparison, results, &whole, baseline, i)).collect()
        }
        None => Vec::new(),
    };
    let first = comparison.plan.cells.first();
    Document {
        lasthop: results.lasthop.clone(),
        name: comparison.plan.name.clone(),
        command,
        path: first.map_or(String::new(), |cell| plan::path(&comparison.plan, &cell.scenario)),
        transfers: first.map_or(Vec::new(), |cell| plan::transfers(&cell.scenario)),
        baseline: comparison.schemes[comparison.baseline].name.clone(),
        seeds: first.map_or(Vec::new(), |cell| cell.seeds().collect()),
        axis: comparison.plan.axes.get(1).map(|axis| axis.name.clone()),
        points: places,
        left_out: comparison.left_out.clone(),
        unfinished: unfinished.iter().map(|i| comparison.schemes[*i].name.clone()).collect(),
    }
}

/// The schemes `whole` at point `i` of the axis.
fn place(
    comparison: &Comparison,
    results: &Results,
    whole: &[usize],
    baseline: usize,
    i: usize,
) -> Place {
    let points = comparison.points();
    let cell = |scheme: usize| &results.cells[scheme * points + i];
    let values: Vec<Vec<f64>> = whole.iter().map(|scheme| throughputs(cell(*scheme))).collect();
    let mut rows: Vec<Row> = standings(&values, baseline)
        .into_iter()
        .zip(whole)
        .map(|(standing, scheme)| row(&comparison.schemes[*scheme], standing, cell(*scheme)))
        .collect();
    rows.sort_by(|a, b| {
        let best = b.standing.value.mean.total_cmp(&a.standing.value.mean);
        a.standing.rank.cmp(&b.standing.rank).then(best)
    });
    let at = comparison.baseline * points + i;
    Place {
        label: comparison.plan.cells[at].labels.get(1).cloned(),
        bounds: Bounds::of(&comparison.plan.cells[at].scenario, &results.cells[at].runs),
        schemes: rows,
    }
}

fn throughputs(cell: &CellResults) -> Vec<f64> {
    cell.runs.iter().map(|run| run.metrics.aggregate_throughput).collect()
}

fn row(scheme: &Scheme, standing: Standing, cell: &CellResults) -> Row {
    let endless = cell.runs.iter().flat_map(|run| &run.metrics.flows).any(|f| f.wanted.is_none());
    Row {
        sets: scheme.settings().map(|(key, value)| format!("{key}={value}")).collect(),
        scheme: scheme.clone(),
        standing,
        timeouts: cell.mean("timeouts").unwrap_or_default(),
        wireless_goodput: cell.mean("wireless_goodput"),
        complete: (!endless).then(|| cell.complete()),
    }
}

impl Row {
    /// What must be deployed, in words.
    pub fn deployed(&self) -> String {
        if self.scheme.change.is_empty() { "–".to_owned() } else { self.scheme.change.join(", ") }
    }
}
