//! Results as one self-contained page: tables, charts, and time-sequence plots of the first runs.

use std::path::Path;

use lasthop_lab::Results;
use lasthop_report::html;
use lasthop_report::model::{Again, Figure, Page, Section};
use lasthop_report::plot::TimeSequence;
use lasthop_report::table::run_summary;
use lasthop_trace::metrics::RunMetrics;

use super::{chart, files, table};
use crate::failure::Failure;

/// More time-sequence plots than this make a page heavy; the others are files beside it.
const MOST_SEQUENCES: usize = 24;
/// Connections of one run that are drawn on the page.
const CONNECTIONS: usize = 2;
/// Cells that stand side by side in the table of all numbers.
const SIDE_BY_SIDE: usize = 6;

/// The page about `results`, with the traces that are in `dir`.
pub fn page(dir: &Path, results: &Results) -> Result<String, Failure> {
    let mut sections = vec![Section {
        title: "Results".to_owned(),
        text: std::iter::once(table::NOTE.replace('\n', " "))
            .chain(table::remarks(results))
            .collect(),
        tables: vec![table::table(results, table::Room::Wide)],
        figures: chart::charts(results)
            .into_iter()
            .map(|(plot, title, caption)| Figure {
                svg: plot.inline(),
                title: title.to_owned(),
                caption,
            })
            .collect(),
        ..Section::default()
    }];
    let sequences = sequences(dir, results)?;
    sections.extend((!sequences.figures.is_empty()).then_some(sequences));
    sections.push(numbers(results));

    let setup = &results.setup;
    let mut facts = vec![("Path".to_owned(), setup.path.clone())];
    facts.extend(setup.transfers.iter().map(|line| ("Transfer".to_owned(), line.clone())));
    facts.extend(
        results.axes.iter().map(|axis| (format!("Varied: {}", axis.name), axis.labels.join(", "))),
    );
    Ok(html::render(&Page {
        title: results.name.clone(),
        subtitle: subtitle(results),
        facts,
        sections,
        assumptions: Vec::new(),
        again: Again {
            commands: vec![setup.command.clone()],
            seeds: seeds(results),
            version: results.lasthop.clone(),
        },
    }))
}

fn subtitle(results: &Results) -> String {
    let runs: usize = results.cells.iter().map(|cell| cell.runs.len()).sum();
    let plural = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    match results.cells.len() {
        1 => format!("{}, simulated", plural(runs, "run")),
        cells => format!("{} in {}, simulated", plural(runs, "run"), plural(cells, "cell")),
    }
}

fn seeds(results: &Results) -> String {
    let seeds = || results.cells.iter().flat_map(|cell| &cell.runs).map(|run| run.seed);
    match (seeds().min(), seeds().max()) {
        (Some(first), Some(last)) if first < last => format!("{first}..{last}"),
        (Some(only), _) => only.to_string(),
        _ => String::new(),
    }
}

fn sequences(dir: &Path, results: &Results) -> Result<Section, Failure> {
    let mut figures = Vec::new();
    let mut left_out = 0;
    let titles = results.cells.iter().map(|cell| results.title(cell));
    for (folder, cell) in files::folders(dir, titles).iter().zip(&results.cells) {
        let series = files::read_series(folder)?;
        let title = results.title(cell);
        let title = if title.is_empty() { results.name.as_str() } else { &title };
        let seed = cell.runs.first().map_or(0, |run| run.seed);
        for (i, one) in series.iter().enumerate() {
            if i >= CONNECTIONS || figures.len() >= MOST_SEQUENCES {
                left_out += 1;
                continue;
            }
            let heading = files::heading(&format!("{title}, seed {seed}"), i + 1, series.len());
            let plot = TimeSequence { title: &heading, series: one, part: None }.plot();
            let place = folder.strip_prefix(dir).unwrap_or(folder).display();
            figures.push(Figure {
                svg: plot.inline(),
                title: String::new(),
                caption: format!("{}; files in {place}", one.flow),
            });
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
    Ok(Section { title: "Time-sequence plots".to_owned(), text, figures, ..Section::default() })
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
