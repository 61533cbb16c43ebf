//! Results as one self-contained page: tables, charts, and time-sequence plots of the first runs.

use lasthop_observe::metrics::RunMetrics;
use lasthop_observe::sequence::Series;
use lasthop_observe::stats::Summary;
use lasthop_report::html;
use lasthop_report::model::{Again, Column, Events, Figure, Page, Section, Table};
use lasthop_report::number::{self, KIB, MBIT, RATE_UNIT, plural};
use lasthop_report::plot::{Curve, Curves, Pen, TimeSequence};
use lasthop_report::table::run_summary;
use lasthop_sim::runs::{CellResults, Results};

use super::explanation::MAX_CELLS as MAX_EXPLAINED;
use super::{Room, chart, events, explanations, note, remarks, table};
use crate::tables::{facts, seeds};

/// Maximum number of time-sequence plots on the page; the others are separate files.
const MOST_SEQUENCES: usize = 24;
/// Maximum number of distinguishable curves.
const MOST_CURVES: usize = 7;
/// Number of cells at each end of the table of the highest and the lowest.
const EXTREMES: usize = 10;
/// Maximum number of connections of one run on the page.
const CONNECTIONS: usize = 2;
/// Maximum number of cells side by side in the table of all numbers.
const SIDE_BY_SIDE: usize = 6;

/// The time-sequence series of the first run of a cell, and the folder with their files.
#[derive(Clone, Debug)]
pub struct CellSeries {
    /// The folder, relative to the page.
    pub folder: String,
    /// One for each recorded connection.
    pub series: Vec<Series>,
}

/// The page of `results`; `recorded` has an entry for each cell.
pub fn page(results: &Results, recorded: &[CellSeries]) -> String {
    let charts = chart::charts(results).into_iter();
    let mut text = vec![note().replace('\n', " ")];
    text.extend(explanations(results).into_iter().map(|(title, text)| match title.as_str() {
        "" => text,
        title => format!("{title}: {text}"),
    }));
    text.extend(remarks(results));
    let sequences = sequences(results, recorded);
    let all = table(results, Room::Wide);
    let (tables, rest) = match extremes(results) {
        Some(ends) => (vec![ends], Some(all)),
        None => (vec![all], None),
    };
    let mut sections = vec![Section {
        title: "Results".to_owned(),
        text,
        events: listed_events(results, recorded, &sequences),
        tables,
        figures: charts.map(|(plot, title, caption)| Figure::new(&plot, title, caption)).collect(),
        ..Section::default()
    }];
    sections.extend((!sequences.figures.is_empty()).then_some(sequences));
    let rest = rest.map(|all| Section {
        title: "All cells".to_owned(),
        tables: vec![all],
        ..Section::default()
    });
    sections.extend(rest);
    sections.push(numbers(results));

    let setup = &results.setup;
    let mut facts = facts(&setup.path, &setup.transfers);
    facts.extend(
        results.axes.iter().map(|axis| (format!("Varied: {}", axis.name), axis.labels.join(", "))),
    );
    let runs = results.cells.iter().flat_map(|cell| &cell.runs);
    html::render(&Page {
        title: results.name.clone(),
        subtitle: subtitle(results),
        facts,
        sections,
        assumptions: Vec::new(),
        again: Again {
            commands: vec![setup.command.clone()],
            seeds: seeds(runs.map(|run| run.seed)),
            version: results.version(),
        },
    })
}

/// Of many cells those with the highest and the lowest throughput; `None` where the table of all cells is short.
fn extremes(results: &Results) -> Option<Table> {
    if results.cells.len() <= 4 * EXTREMES {
        return None;
    }
    let mean = |cell: &CellResults| cell.mean("throughput").filter(|s| s.mean.is_finite());
    let mut cells: Vec<_> =
        results.cells.iter().filter_map(|cell| Some((cell, mean(cell)?))).collect();
    cells.sort_by(|a, b| b.1.mean.total_cmp(&a.1.mean));
    let count = cells.len();
    let row = |(place, (cell, mean)): (usize, &(&CellResults, Summary))| {
        let summary = number::summary(&mean.in_units_of(MBIT));
        let place = format!("{} of {count}", place + 1);
        [vec![place], cell.labels.clone(), vec![summary]].concat()
    };
    let ends = cells.iter().enumerate().filter(|(i, _)| *i < EXTREMES || *i + EXTREMES >= count);
    let axes = results.axes.iter().map(|axis| Column::text(axis.name.as_str()));
    let columns = [Column::text("place")].into_iter().chain(axes);
    let table = Table::new(columns.chain([Column::number(RATE_UNIT)]), ends.map(row));
    Some(table.titled(format!(
        "The {EXTREMES} cells with the highest throughput, and the {EXTREMES} with the lowest"
    )))
}

fn subtitle(results: &Results) -> String {
    let runs: usize = results.cells.iter().map(|cell| cell.runs.len()).sum();
    let runs = plural(runs as u64, "run");
    let world = world(results);
    match results.cells.len() {
        1 => format!("{runs}, {world}"),
        cells => format!("{runs} in {}, {world}", plural(cells as u64, "cell")),
    }
}

/// Simulator or testbed.
fn world(results: &Results) -> &'static str {
    let runs = || results.cells.iter().flat_map(|cell| &cell.runs);
    match (runs().any(|run| run.testbed.is_some()), runs().all(|run| run.testbed.is_some())) {
        (true, true) => "on real packets",
        (true, false) => "some simulated, some on real packets",
        (false, _) => "simulated",
    }
}

/// The title of the plot of connection `n` of `of`.
pub fn heading(title: &str, n: usize, of: usize) -> String {
    if of > 1 { format!("{title}, connection {n}") } else { title.to_owned() }
}

/// Acknowledged bytes over time of the first run of each cell in one plot; `None` for one cell, or too many.
fn overlay(results: &Results, recorded: &[CellSeries]) -> Option<Figure> {
    let cells = recorded.iter().zip(&results.cells);
    let curve = |(recorded, cell): (&CellSeries, &CellResults)| {
        let acked = recorded.series.first()?.acked.iter();
        let points = acked.map(|(at, bytes)| (*at, *bytes as f64 / KIB, 0.0)).collect();
        Some(Curve { name: results.title(cell), pen: Pen::Line, points })
    };
    let curves: Vec<Curve> = cells.filter_map(curve).collect();
    if !(2..=MOST_CURVES).contains(&curves.len()) {
        return None;
    }
    let title = format!("{}: the first run of each cell", results.name);
    let (x_label, y_label) = ("time (s)".to_owned(), "acknowledged (KiB)".to_owned());
    let plot = Curves { title, x_label, y_label, log_x: false, curves }.plot();
    let caption =
        "What the first connection had acknowledged; numbers in the folders of the cells.";
    Some(Figure::new(&plot, "", caption))
}

fn sequences(results: &Results, recorded: &[CellSeries]) -> Section {
    let mut figures: Vec<Figure> = overlay(results, recorded).into_iter().collect();
    let ends = recorded.iter().flat_map(|one| &one.series).map(|series| series.end_s);
    let longest = ends.fold(0.0, f64::max);
    let mut left_out = 0;
    for (cell_index, (CellSeries { folder, series }, cell)) in
        recorded.iter().zip(&results.cells).enumerate()
    {
        let title = results.title(cell);
        let title = if title.is_empty() { results.name.as_str() } else { &title };
        let seed = cell.runs.first().map_or(0, |run| run.seed);
        for (i, one) in series.iter().enumerate() {
            if i >= CONNECTIONS || figures.len() >= MOST_SEQUENCES {
                left_out += 1;
                continue;
            }
            let heading = heading(&format!("{title}, seed {seed}"), i + 1, series.len());
            // The curves share one time axis.
            let series = &Series { end_s: longest, ..one.clone() };
            let plot = TimeSequence { title: &heading, series, part: None }.plot();
            let figure = Figure::new(&plot, "", format!("{}; files in {folder}", one.flow));
            figures.push(Figure { anchor: anchor(cell_index, i), ..figure });
        }
    }
    let mut text = vec![
        "The first run of each cell: every packet by the time it was sent and its place in the stream. \
         A straight line is a transfer without trouble; shaded parts are stalls."
            .to_owned(),
    ];
    if left_out > 0 {
        text.push(format!("{left_out} more are in the folder trace."));
    }
    Section { title: "Time-sequence plots".to_owned(), text, figures, ..Section::default() }
}

/// The name on the page of the plot of a connection in the first run of a cell.
fn anchor(cell: usize, connection: usize) -> String {
    format!("sequence-{}-{}", cell + 1, connection + 1)
}

/// Stalls and timeouts of the first connection of each cell, as links to its plot; none where cells have no explanation.
fn listed_events(results: &Results, recorded: &[CellSeries], sequences: &Section) -> Vec<Events> {
    if results.cells.len() > MAX_EXPLAINED {
        return Vec::new();
    }
    let cells = recorded.iter().zip(&results.cells).enumerate();
    let of = |(index, (recorded, cell)): (usize, (&CellSeries, &CellResults))| {
        let anchor = anchor(index, 0);
        sequences.figures.iter().find(|figure| figure.anchor == anchor)?;
        let links = events::links(recorded.series.first()?, &anchor);
        let seed = cell.runs.first()?.seed;
        let lead = match results.title(cell).as_str() {
            "" => format!("In the picture of seed {seed}"),
            title => format!("{title}, in the picture of seed {seed}"),
        };
        (!links.is_empty()).then_some(Events { lead, links })
    };
    cells.filter_map(of).collect()
}

fn numbers(results: &Results) -> Section {
    let cases: Vec<(String, Vec<RunMetrics>)> = results
        .cells
        .iter()
        .map(|cell| {
            let title = cell.labels.join(" ");
            let title = if title.is_empty() { results.name.clone() } else { title };
            (title, cell.runs.iter().map(|run| run.metrics.clone()).collect())
        })
        .collect();
    let tables = cases
        .chunks(SIDE_BY_SIDE)
        .map(|part| {
            let part: Vec<_> =
                part.iter().map(|(name, runs)| (name.clone(), runs.as_slice())).collect();
            run_summary("", &part)
        })
        .collect();
    Section { title: "All numbers".to_owned(), tables, ..Section::default() }
}
