//! Single figures of stored results, for papers and slides.

use lasthop_observe::metrics::SCALARS;
use lasthop_observe::sequence::{SendKind, Series};
use lasthop_report::number::{KIB, MBIT, RATE_UNIT, plural};
use lasthop_report::plot::{Curve, Curves, Pen, Plot, TimeSequence};
use lasthop_sim::runs::{CellResults, Results};

use super::page::CellSeries;
use super::{chart, heading};

/// Maximum number of distinguishable curves.
const MAX_CURVES: usize = 7;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Every packet of the first run of a cell by time and position in the stream.
    Sequence,
    /// Congestion window over time, first run of each cell.
    Window,
    /// Round trip of each packet sent once, over time, first run of each cell.
    Delay,
    /// Distribution of a scalar over the runs of each cell.
    Cdf,
    /// Mean of a scalar over the cells, with 95 % confidence intervals.
    Sweep,
    /// Cells in the order of the mean of a scalar, with 95 % confidence intervals.
    Ranking,
}

impl Kind {
    /// All kinds with their names on the command line.
    pub const ALL: [(&'static str, Kind); 6] = [
        ("sequence", Kind::Sequence),
        ("window", Kind::Window),
        ("delay", Kind::Delay),
        ("cdf", Kind::Cdf),
        ("sweep", Kind::Sweep),
        ("ranking", Kind::Ranking),
    ];

    pub fn name(self) -> &'static str {
        Kind::ALL.into_iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }

    /// Whether the figure shows a scalar of runs. The others show the course of first runs.
    pub fn has_scalar(self) -> bool {
        matches!(self, Kind::Cdf | Kind::Sweep | Kind::Ranking)
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub kind: Kind,
    /// A name in [`SCALARS`]; unused by figures of one run.
    pub scalar: &'a str,
    /// The title of the only cell; all cells otherwise (of a sequence plot: the first).
    pub cell: Option<&'a str>,
}

/// Reason why the figure cannot be drawn.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NoFigure {
    #[error("no cell is called {wanted:?}; there are: {}", cells.join("; "))]
    Cell { wanted: String, cells: Vec<String> },
    #[error("these results have no {wanted:?}; they have: {}", scalars.join(", "))]
    Scalar { wanted: String, scalars: Vec<String> },
    #[error("the first runs have no recorded time-sequence series")]
    NotRecorded,
    #[error("one cell leaves nothing to compare")]
    Cells,
    #[error("{cells} curves are more than the {MAX_CURVES} that are distinguishable")]
    TooMany { cells: usize },
}

/// Draws a figure of `results`; `recorded` has an entry for each cell.
///
/// # Errors
///
/// The results lack the requested data.
pub fn figure(
    results: &Results,
    recorded: &[CellSeries],
    request: &Request<'_>,
) -> Result<Plot, NoFigure> {
    let cells = chosen(results, request.cell)?;
    if request.kind.has_scalar() {
        known(results, request.scalar)?;
    }
    match request.kind {
        Kind::Sequence => sequence(results, recorded, &cells),
        Kind::Window => {
            over_time(results, recorded, &cells, "congestion window (KiB)", Pen::Steps, window)
        }
        Kind::Delay => {
            over_time(results, recorded, &cells, "round trip (ms)", Pen::Dots, round_trips)
        }
        Kind::Cdf => distribution(results, &cells, request),
        Kind::Sweep => {
            let (label, scale) = label(request.scalar);
            chart::chart(results, &label, request.scalar, scale)
                .map(|(plot, _)| plot)
                .ok_or(NoFigure::Cells)
        }
        Kind::Ranking => {
            let (label, scale) = label(request.scalar);
            let of = |cell: &CellResults| {
                cell.mean(request.scalar).map(|s| (s.mean / scale, s.ci95 / scale))
            };
            Ok(chart::ranking(results, &cells, &label, of))
        }
    }
}

/// The indices of the cells that a figure shows.
fn chosen(results: &Results, cell: Option<&str>) -> Result<Vec<usize>, NoFigure> {
    let Some(wanted) = cell else { return Ok((0..results.cells.len()).collect()) };
    let titles: Vec<String> = results.cells.iter().map(|cell| results.title(cell)).collect();
    match titles.iter().position(|title| title == wanted) {
        Some(index) => Ok(vec![index]),
        None => Err(NoFigure::Cell { wanted: wanted.to_owned(), cells: titles }),
    }
}

fn known(results: &Results, scalar: &str) -> Result<(), NoFigure> {
    let has = |name: &str| results.cells.iter().any(|cell| cell.mean(name).is_some());
    if has(scalar) {
        return Ok(());
    }
    let scalars = SCALARS.iter().map(|kind| kind.name).filter(|name| has(name));
    Err(NoFigure::Scalar {
        wanted: scalar.to_owned(),
        scalars: scalars.map(str::to_owned).collect(),
    })
}

/// Title of the axis of a scalar, and the size of its unit.
fn label(scalar: &str) -> (String, f64) {
    let unit = SCALARS.iter().find(|kind| kind.name == scalar).map_or("1", |kind| kind.unit);
    let name = scalar.replace('_', " ");
    match unit {
        "1" => (name, 1.0),
        "B/s" => (format!("{name} ({})", RATE_UNIT), MBIT),
        unit => (format!("{name} ({unit})"), 1.0),
    }
}

fn title(results: &Results, cell: usize) -> String {
    let title = results.title(&results.cells[cell]);
    if title.is_empty() { results.name.clone() } else { title }
}

fn sequence(results: &Results, recorded: &[CellSeries], cells: &[usize]) -> Result<Plot, NoFigure> {
    let first = cells.iter().find_map(|i| Some((*i, recorded.get(*i)?.series.first()?)));
    let (cell, series) = first.ok_or(NoFigure::NotRecorded)?;
    let seed = results.cells[cell].runs.first().map_or(0, |run| run.seed);
    let heading =
        heading(&format!("{}, seed {seed}", title(results, cell)), 1, recorded[cell].series.len());
    Ok(TimeSequence { title: &heading, series, part: None }.plot())
}

/// A curve for the first connection of each cell.
fn over_time(
    results: &Results,
    recorded: &[CellSeries],
    cells: &[usize],
    y_label: &str,
    pen: Pen,
    points: impl Fn(&Series) -> Vec<(f64, f64)>,
) -> Result<Plot, NoFigure> {
    let curve = |i: &usize| {
        let points = points(recorded.get(*i)?.series.first()?);
        let points: Vec<_> = points.into_iter().map(|(x, y)| (x, y, 0.0)).collect();
        (!points.is_empty()).then(|| Curve { name: title(results, *i), pen, points })
    };
    let curves: Vec<Curve> = cells.iter().filter_map(curve).collect();
    if curves.is_empty() {
        return Err(NoFigure::NotRecorded);
    }
    curves_of(
        format!("{}: the first run of each cell", results.name),
        "time (s)".to_owned(),
        y_label.to_owned(),
        curves,
    )
}

fn curves_of(
    title: String,
    x_label: String,
    y_label: String,
    curves: Vec<Curve>,
) -> Result<Plot, NoFigure> {
    distinguishable(&curves)?;
    Ok(Curves { title, x_label, y_label, log_x: false, curves }.plot())
}

fn distinguishable(curves: &[Curve]) -> Result<(), NoFigure> {
    if curves.len() > MAX_CURVES {
        return Err(NoFigure::TooMany { cells: curves.len() });
    }
    Ok(())
}

fn window(series: &Series) -> Vec<(f64, f64)> {
    series.windows.iter().map(|window| (window.at_s, f64::from(window.cwnd) / KIB)).collect()
}

/// Departure time and round trip in milliseconds of packets that were sent once (Karn's rule), until an ACK covers them.
fn round_trips(series: &Series) -> Vec<(f64, f64)> {
    let again = series.sent.iter().filter(|sent| sent.kind != SendKind::First);
    let mut again: Vec<(u64, u64)> = again.map(|sent| (sent.start, sent.end)).collect();
    again.sort_unstable();
    // Retransmissions have the boundaries of segments: the last one that begins before the end of the packet decides.
    let repeated = |start: u64, end: u64| {
        let before = again.partition_point(|(from, _)| *from < end);
        before.checked_sub(1).is_some_and(|last| again[last].1 > start)
    };
    let mut acked = series.acked.iter().peekable();
    let mut points = Vec::new();
    for sent in series.sent.iter().filter(|sent| sent.kind == SendKind::First) {
        while acked.next_if(|(at, to)| *to < sent.end || *at < sent.at_s).is_some() {}
        let Some((at, _)) = acked.peek() else { break };
        if !repeated(sent.start, sent.end) {
            points.push((sent.at_s, 1000.0 * (at - sent.at_s)));
        }
    }
    points
}

/// The scalar of each run, in ascending order.
fn values(cell: &CellResults, scalar: &str) -> Vec<f64> {
    let of_run = |run: &lasthop_sim::runs::RunResult| {
        run.metrics.scalars().into_iter().find(|one| one.name == scalar).map(|one| one.value)
    };
    let mut values: Vec<f64> =
        cell.runs.iter().filter_map(of_run).filter(|value| value.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    values
}

fn distribution(
    results: &Results,
    cells: &[usize],
    request: &Request<'_>,
) -> Result<Plot, NoFigure> {
    let (x_label, scale) = label(request.scalar);
    let curve = |i: &usize| {
        let values = values(&results.cells[*i], request.scalar);
        let runs = values.len();
        let first = values.first().map(|value| (value / scale, 0.0, 0.0));
        let steps = values.iter().enumerate();
        let steps = steps.map(|(n, value)| (value / scale, (n + 1) as f64 / runs as f64, 0.0));
        let points: Vec<_> = first.into_iter().chain(steps).collect();
        let name = format!("{} ({})", title(results, *i), plural(runs as u64, "run"));
        (runs > 0).then_some(Curve { name, pen: Pen::Steps, points })
    };
    let curves: Vec<Curve> = cells.iter().filter_map(curve).collect();
    distinguishable(&curves)?;
    let title = format!("{}: distribution over runs", results.name);
    let y_label = "share of runs".to_owned();
    Ok(Curves { title, x_label, y_label, log_x: false, curves }.plot_up_to(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_observe::sequence::SentPacket;

    fn sent(at_s: f64, start: u64, kind: SendKind) -> SentPacket {
        SentPacket { at_s, start, end: start + 10, kind }
    }

    #[test]
    fn round_trips_leave_out_repeated_packets() {
        let series = Series {
            sent: vec![
                sent(0.0, 0, SendKind::First),
                sent(0.1, 10, SendKind::First),
                sent(0.2, 20, SendKind::First),
                sent(0.5, 10, SendKind::Fast),
                sent(0.6, 30, SendKind::First),
            ],
            acked: vec![(0.05, 10), (0.56, 30), (0.7, 40)],
            ..Series::default()
        };
        let points = round_trips(&series);
        let times: Vec<u64> =
            points.iter().map(|(at, ms)| (at * 1000.0 + ms).round() as u64).collect();
        assert_eq!(times, [50, 560, 700]);
        assert_eq!(points.len(), 3);
        assert!((points[1].0 - 0.2).abs() < 1e-9);
    }
}
