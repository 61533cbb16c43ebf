//! Compares schemes on one scenario, and with theoretical bounds.

mod bounds;
mod page;
mod race;
mod tables;

use lasthop_observe::stats::Summary;
use lasthop_scenario::{Argument, Code, Comparison, Handoffs, SchemeChoice, schemes_of};
use lasthop_sim::runs::{CellResults, Results, RunResult};
use serde::Serialize;

use crate::document::rank_of_looks;
use crate::{Alternative, Document, Error, Ranked, Runner, Source};
pub use bounds::Bounds;
pub use page::{page, pictures, sections};
pub use race::{Race, raced};
pub use tables::{NOTE, matrix, ranking, theory};

/// The options of a comparison.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options<'a> {
    /// Schemes by name, or `all` alone; empty for the scenario's own, or all if it has none.
    pub schemes: &'a [String],
    /// The baseline; `None` for the unchanged scenario.
    pub baseline: Option<&'a str>,
    /// Loss probabilities of data packets that replace the scenario's errors.
    pub errors: &'a [String],
    /// Hand-offs under all schemes.
    pub handoffs: Option<&'a Handoffs>,
}

/// The results of a comparison.
#[derive(Clone, Debug, Serialize)]
pub struct Points {
    /// The axis of errors, if they vary.
    pub axis: Option<String>,
    /// The comparison at each point of that axis; a single one without an axis.
    pub points: Vec<PointRanking>,
}

/// The comparison at one point of the axis of errors.
#[derive(Clone, Debug, Serialize)]
pub struct PointRanking {
    /// Its label on the axis.
    pub label: Option<String>,
    pub bounds: Bounds,
    /// The best first.
    pub schemes: Vec<Row>,
}

/// One scheme at one point, ranked by its throughput in bytes per second.
pub type Row = Ranked<Counts>;

/// Further figures of a scheme.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Counts {
    /// Retransmission timeouts of the senders.
    pub timeouts: Summary,
    /// End-to-end delay of data packets in seconds: means of the runs.
    pub delay: Option<Summary>,
    /// The same as medians of the runs, exact to 12 %. Advice uses medians, because slow start dominates the mean of a
    /// short transfer.
    #[serde(skip)]
    pub delay_p50: Option<Summary>,
    /// Full packets per data packet on the radio.
    pub wireless_goodput: Option<Summary>,
    /// Response time of exchanges in seconds: medians of the runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exchange_time_p50: Option<Summary>,
    /// Response time of exchanges in seconds: 95th percentiles.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exchange_time_p95: Option<Summary>,
    /// Packets per exchange.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exchange_packets: Option<Summary>,
    /// Mean pause of a hand-off in seconds, gap included, if hosts move.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handoff_pause: Option<Summary>,
    /// Runs with all transfers complete; `None` for endless transfers.
    pub complete: Option<usize>,
}

impl PointRanking {
    pub fn scheme(&self, name: &str) -> Option<&Row> {
        self.schemes.iter().find(|row| row.name() == name)
    }
}

/// Lays out a comparison.
///
/// # Errors
///
/// The scenario, `arguments` or `options` is invalid.
pub fn lay_out(
    source: &Source<'_>,
    arguments: &[Argument],
    options: &Options<'_>,
) -> Result<Comparison, Error> {
    let wrong = |error| source.wrong(error, arguments);
    let choice = match options.schemes {
        [] => SchemeChoice::Own,
        [all] if all == "all" => SchemeChoice::All,
        names => SchemeChoice::Named(names.iter().map(|name| name.trim().to_owned()).collect()),
    };
    // An unknown name is an invalid argument, not a fault of the file.
    schemes_of(source.text).map_err(wrong)?;
    let Source { text, name, .. } = source;
    let Options { errors, baseline, handoffs, .. } = *options;
    lasthop_scenario::compare(text, name, arguments, &choice, errors, baseline, handoffs).map_err(
        |error| match error.code {
            Code::NoScheme => {
                let help = format!("{}; `lasthop list schemes` describes them", error.help);
                Error::input(error.message.clone(), help)
            }
            _ => wrong(error),
        },
    )
}

/// Makes the runs and ranks the schemes.
///
/// # Errors
///
/// No scheme applies besides the baseline, or `run` fails.
pub fn answer<E: From<Error>>(
    comparison: &Comparison,
    run: &mut Runner<'_, E>,
) -> Result<Document<Points>, E> {
    applies(comparison)?;
    Ok(ranked(comparison, &run(&comparison.plan)?, 1))
}

/// Fails if the baseline is the only scheme.
fn applies(comparison: &Comparison) -> Result<(), Error> {
    if comparison.schemes.len() < 2 {
        let why = comparison.left_out.iter().map(|l| format!("{}: {}", l.name, l.reason));
        let help = why.collect::<Vec<_>>().join("\n        ");
        return Err(Error::input("there is nothing to compare: no scheme applies", help));
    }
    Ok(())
}

/// Ranks the schemes; `looks` is the number of interim analyses that decided which of them get more runs.
fn ranked(comparison: &Comparison, results: &Results, looks: u32) -> Document<Points> {
    let points = comparison.points();
    let whole_cell =
        |i: usize| results.cells[i].runs.len() == comparison.plan.cells[i].scenario.runs as usize;
    // Runs are paired by seed; an interrupted scheme lacks some.
    let (whole, unfinished): (Vec<usize>, Vec<usize>) = (0..comparison.schemes.len())
        .partition(|scheme| (0..points).all(|i| whole_cell(scheme * points + i)));
    let baseline = whole.iter().position(|scheme| *scheme == comparison.baseline);
    let places = baseline.map_or(Vec::new(), |baseline| {
        (0..points).map(|i| rank_point(comparison, results, (&whole, looks), baseline, i)).collect()
    });
    let name = |scheme: usize| comparison.schemes[scheme].name.clone();
    let cells = comparison.plan.cells.get(comparison.baseline * points);
    let seeds = cells.map_or(Vec::new(), |cell| cell.seeds().collect());
    let points =
        Points { axis: comparison.plan.axes.get(1).map(|axis| axis.name.clone()), points: places };
    Document {
        baseline: Some(name(comparison.baseline)),
        left_out: comparison.left_out.clone(),
        unfinished: unfinished.into_iter().map(name).collect(),
        ..Document::new(&comparison.plan.name, &results.setup, seeds, points)
    }
}

/// Ranks the schemes `whole` at point `i` of the axis; `baseline` is an index into them.
fn rank_point(
    comparison: &Comparison,
    results: &Results,
    (whole, looks): (&[usize], u32),
    baseline: usize,
    i: usize,
) -> PointRanking {
    let points = comparison.points();
    let cells: Vec<&CellResults> =
        whole.iter().map(|scheme| &results.cells[scheme * points + i]).collect();
    let throughputs: Vec<Vec<f64>> = cells
        .iter()
        .map(|cell| cell.runs.iter().map(|run| run.metrics.aggregate_throughput).collect())
        .collect();
    let alternatives =
        whole.iter().map(|scheme| Alternative::from(&comparison.schemes[*scheme])).collect();
    let at = comparison.baseline * points + i;
    PointRanking {
        label: comparison.plan.cells[at].labels.get(1).cloned(),
        bounds: Bounds::of(&comparison.plan.cells[at].scenario, &results.cells[at].runs),
        schemes: rank_of_looks(alternatives, &throughputs, baseline, looks, |place| {
            counts(cells[place])
        }),
    }
}

/// Median delay of data packets, over the flows of each run.
fn median_delay(cell: &CellResults) -> Option<Summary> {
    let of_run = |run: &RunResult| {
        let flows = run.metrics.flows.iter().filter(|flow| flow.delay.packets > 0);
        let medians: Vec<f64> = flows.map(|flow| flow.delay.p50_s).collect();
        (!medians.is_empty()).then(|| Summary::of(&medians).mean)
    };
    let runs: Vec<f64> = cell.runs.iter().filter_map(of_run).collect();
    (!runs.is_empty()).then(|| Summary::of(&runs))
}

fn counts(cell: &CellResults) -> Counts {
    let endless = cell.runs.iter().flat_map(|run| &run.metrics.flows).any(|f| f.wanted.is_none());
    Counts {
        timeouts: cell.mean("timeouts").unwrap_or_default(),
        delay: cell.mean("delay_mean"),
        delay_p50: median_delay(cell),
        wireless_goodput: cell.mean("wireless_goodput"),
        exchange_time_p50: cell.mean("exchange_time_p50"),
        exchange_time_p95: cell.mean("exchange_time_p95"),
        exchange_packets: cell.mean("exchange_packets"),
        handoff_pause: cell.mean("handoff_pause_mean"),
        complete: (!endless).then(|| cell.complete()),
    }
}
