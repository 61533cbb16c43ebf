//! Two or more results of sweeps in the same plots.

use lasthop_observe::sequence::Series;
use lasthop_report::html;
use lasthop_report::model::{Again, Figure, Page, Section};
use lasthop_report::number::{KIB, plural};
use lasthop_report::plot::{Curve, Panel, Panels, Pen, TimeSequence};
use lasthop_scenario::Axis;
use lasthop_sim::runs::{CellResults, Results, Setup};

use super::{CellSeries, Room, chart, note, remarks, table};
use crate::tables::{facts, seeds};

/// The additional last axis that distinguishes the results.
const AXIS: &str = "results";
/// Maximum number of cells drawn over time.
const MOST_CELLS: usize = 8;

/// Results with a name, and the time-sequence series of the first run of each cell.
#[derive(Clone, Debug)]
pub struct NamedResults {
    /// Unique.
    pub name: String,
    pub results: Results,
    /// An entry per cell.
    pub recorded: Vec<CellSeries>,
}

/// Reason why results cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incomparable(pub String);

impl std::fmt::Display for Incomparable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Incomparable {}

/// The page that compares `all`: tables and charts with all results, and overlaid acknowledged bytes over time of the
/// first run of each cell.
///
/// # Errors
///
/// The results vary different axes, or have no combination in common.
pub fn page(all: &[NamedResults]) -> Result<String, Incomparable> {
    let joined = joined(all)?;
    let charts = chart::charts(&joined).into_iter();
    let text = std::iter::once(note().replace('\n', " ")).chain(remarks(&joined));
    let mut sections = vec![Section {
        title: "Results".to_owned(),
        text: text.collect(),
        tables: vec![table(&joined, Room::Wide)],
        figures: charts.map(|(plot, title, caption)| Figure::new(&plot, title, caption)).collect(),
        ..Section::default()
    }];
    sections.extend(over_time(all, &joined));
    let mut facts = facts(&joined.setup.path, &joined.setup.transfers);
    facts.extend(all.iter().map(|one| (one.name.clone(), subtitle(&one.results))));
    let runs = all.iter().flat_map(|one| &one.results.cells).flat_map(|cell| &cell.runs);
    Ok(html::render(&Page {
        title: joined.name.clone(),
        subtitle: format!("{} drawn together", plural(all.len() as u64, "result")),
        facts,
        sections,
        assumptions: Vec::new(),
        again: Again {
            commands: all.iter().map(|one| one.results.setup.command.clone()).collect(),
            seeds: seeds(runs.map(|run| run.seed)),
            version: joined.version(),
        },
    }))
}

fn subtitle(results: &Results) -> String {
    let runs: usize = results.cells.iter().map(|cell| cell.runs.len()).sum();
    format!("{}, {} by lasthop {}", results.name, plural(runs as u64, "run"), results.lasthop)
}

/// One document of all results with an additional axis: the combinations that all of them have.
fn joined(all: &[NamedResults]) -> Result<Results, Incomparable> {
    let first = all.first().ok_or_else(|| Incomparable("no results".to_owned()))?;
    let varied = |results: &Results| {
        let names: Vec<&str> = results.axes.iter().map(|axis| axis.name.as_str()).collect();
        if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
    };
    let wanted = varied(&first.results);
    for other in &all[1..] {
        let found = varied(&other.results);
        if found != wanted {
            let (a, b) = (&first.name, &other.name);
            return Err(Incomparable(format!("{a} varies {wanted}, and {b} varies {found}")));
        }
    }
    let in_all = |axis: usize, label: &String| {
        all.iter().all(|one| one.results.axes[axis].labels.contains(label))
    };
    let mut axes: Vec<Axis> = first.results.axes.clone();
    for (i, axis) in axes.iter_mut().enumerate() {
        axis.labels.retain(|label| in_all(i, label));
        if axis.labels.is_empty() {
            return Err(Incomparable(format!(
                "the results have no value of {} in common",
                axis.name
            )));
        }
    }
    let mut cells: Vec<CellResults> = Vec::new();
    for cell in &first.results.cells {
        for one in all {
            let same = one.results.cells.iter().find(|other| other.labels == cell.labels);
            // Each result has all combinations of its values, so a missing combination has a value that not all results
            // have.
            let is_common =
                axes.iter().zip(&cell.labels).all(|(axis, label)| axis.labels.contains(label));
            cells.extend(same.filter(|_| is_common).map(|cell| {
                let mut cell = cell.clone();
                cell.labels.push(one.name.clone());
                cell
            }));
        }
    }
    axes.push(Axis {
        name: AXIS.to_owned(),
        labels: all.iter().map(|one| one.name.clone()).collect(),
    });
    let mut names: Vec<&str> = all.iter().map(|one| one.results.name.as_str()).collect();
    names.dedup();
    let path = |results: &Results| results.setup.path.clone();
    let same_path = all.iter().all(|one| path(&one.results) == path(&first.results));
    Ok(Results {
        lasthop: first.results.lasthop.clone(),
        commit: first.results.commit.clone(),
        name: names.join(" and "),
        setup: Setup {
            path: if same_path {
                path(&first.results)
            } else {
                "differs, see the commands".to_owned()
            },
            ..first.results.setup.clone()
        },
        axes,
        cells,
    })
}

/// The first runs of a cell, overlaid and individually.
fn over_time(all: &[NamedResults], joined: &Results) -> Option<Section> {
    let mut figures: Vec<Figure> = Vec::new();
    let mut left_out = 0;
    for (group, cells) in joined.cells.chunks(all.len()).enumerate() {
        let labels = &cells[0].labels[..cells[0].labels.len() - 1];
        let of = |one: &NamedResults| -> Option<Series> {
            let place = one.results.cells.iter().position(|cell| cell.labels == labels)?;
            one.recorded.get(place)?.series.first().cloned()
        };
        let series: Vec<(&str, Series)> =
            all.iter().filter_map(|one| Some((one.name.as_str(), of(one)?))).collect();
        if series.len() < 2 {
            continue;
        }
        if group >= MOST_CELLS {
            left_out += 1;
            continue;
        }
        let pairs = joined.axes.iter().zip(labels);
        let pairs: Vec<String> =
            pairs.map(|(axis, label)| format!("{}={label}", axis.name)).collect();
        let title = pairs.join(" ");
        let title = if title.is_empty() { joined.name.clone() } else { title };
        let end_s = series.iter().map(|(_, series)| series.end_s).fold(0.0, f64::max);
        let words = "What the first connection of each had acknowledged, and its window.";
        let mut of_group = vec![Figure::new(&overlay(&title, &series, end_s), "", words)];
        for (name, series) in &series {
            let heading = format!("{title}, {name}");
            let shown = Series { end_s, ..series.clone() };
            let plot = TimeSequence { title: &heading, series: &shown, part: None }.plot();
            of_group.push(Figure::new(&plot, "", series.flow.clone()));
        }
        for one in &mut of_group {
            one.group = group.to_string();
        }
        figures.extend(of_group);
    }
    let mut text = vec![
        "The first run of each cell; pictures of one cell have one time axis and one cursor."
            .to_owned(),
    ];
    if left_out > 0 {
        text.push(format!("{} more are not drawn.", plural(left_out, "cell")));
    }
    (!figures.is_empty()).then(|| Section {
        title: "Over time".to_owned(),
        text,
        figures,
        ..Section::default()
    })
}

fn overlay(title: &str, all: &[(&str, Series)], end_s: f64) -> lasthop_report::plot::Plot {
    let curves = |of: fn(&Series) -> Vec<(f64, f64, f64)>| -> Vec<Curve> {
        let curve = |(name, series): &(&str, Series)| Curve {
            name: (*name).to_owned(),
            pen: Pen::Steps,
            points: of(series),
        };
        all.iter().map(curve).filter(|curve| !curve.points.is_empty()).collect()
    };
    let acked = curves(|s| s.acked.iter().map(|(at, to)| (*at, *to as f64 / KIB, 0.0)).collect());
    let windows =
        curves(|s| s.windows.iter().map(|w| (w.at_s, f64::from(w.cwnd) / KIB, 0.0)).collect());
    let panels = [("acknowledged (KiB)", acked), ("cwnd (KiB)", windows)];
    let panels = panels.into_iter().filter(|(_, curves)| !curves.is_empty());
    Panels {
        title: title.to_owned(),
        end_s,
        panels: panels.map(|(y, curves)| Panel { y_label: y.to_owned(), curves }).collect(),
    }
    .plot()
}
