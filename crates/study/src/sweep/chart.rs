//! Plots of results: lines over a numeric axis, bars over few cells, heat maps and ranks of many.

use lasthop_report::number::{MBIT, RATE_UNIT, plural};
use lasthop_report::plot::{
    Bar, BarChart, BarGroup, BarSeries, Curve, Curves, HeatMap, HeatMaps, Pen, Plot, RankValue,
    Ranks,
};
use lasthop_sim::runs::{CellResults, Results};

use super::amount::{Amount, amount};

/// The plotted scalars: title of the vertical axis, name of the scalar, divisor.
fn drawn() -> [(String, &'static str, f64); 2] {
    let throughput = format!("throughput ({})", RATE_UNIT);
    [(throughput, "throughput", MBIT), ("timeouts".to_owned(), "timeouts", 1.0)]
}

/// Maximum number of distinguishable lines.
const MOST_LINES: usize = 6;
/// Maximum number of groups of bars that fit.
const MOST_GROUPS: usize = 16;
/// Maximum number of maps in a figure.
const MOST_MAPS: usize = 24;
/// Maximum number of labels of an axis in a map.
const MOST_LABELS: usize = 40;
/// Number of the highest rows of a ranking, and of the lowest.
const RANKED: usize = 20;

/// The plots of a sweep, each with title and caption; empty if there is nothing to compare.
pub fn charts(results: &Results) -> Vec<(Plot, String, String)> {
    drawn()
        .into_iter()
        .filter(|(_, name, _)| {
            results.cells.iter().any(|cell| cell.mean(name).is_some_and(|s| s.mean > 0.0))
        })
        .filter_map(|(title, name, scale)| {
            let (plot, caption) = chart(results, &title, name, scale)?;
            Some((plot, title, caption))
        })
        .collect()
}

/// Means of the scalar `name` in units of `scale` over the cells, with a caption. Few lines over a numeric axis, or few
/// bars; many cells of two or more axes are heat maps, those of one axis are ranks. `None` for one cell.
pub fn chart(results: &Results, title: &str, name: &str, scale: f64) -> Option<(Plot, String)> {
    if results.cells.len() < 2 {
        return None;
    }
    let of = |cell: &CellResults| cell.mean(name).map(|s| (s.mean / scale, s.ci95 / scale));
    let axis = numeric_axis(results);
    let few = |axis: &NumericAxis| {
        results.cells.len() <= MOST_LINES * results.axes[axis.index].labels.len()
    };
    if let Some(axis) = axis.as_ref().filter(|axis| few(axis)) {
        return Some(lines(results, axis, title, of));
    }
    if axis.is_none()
        && let Some(drawn) = bars(results, title, of)
    {
        return Some(drawn);
    }
    if results.axes.len() > 1 {
        return Some(heat(results, axis.map(|axis| axis.index), title, of));
    }
    let cells: Vec<usize> = (0..results.cells.len()).collect();
    Some((ranking(results, &cells, title, of), "Means over runs.".to_owned()))
}

/// Means of cells of many combinations: the two axes with the most labels are columns and rows, the others select maps.
/// A numeric axis is horizontal.
fn heat(
    results: &Results,
    numeric: Option<usize>,
    title: &str,
    of: impl Fn(&CellResults) -> Option<(f64, f64)>,
) -> (Plot, String) {
    let labels = |axis: usize| &results.axes[axis].labels;
    let most = |without: Option<usize>| {
        let axes = (0..results.axes.len()).filter(|axis| Some(*axis) != without);
        axes.max_by_key(|axis| labels(*axis).len()).unwrap_or(0)
    };
    let columns = numeric.unwrap_or_else(|| most(None));
    let rows = most(Some(columns));
    let shown = |axis: usize| &labels(axis)[..labels(axis).len().min(MOST_LABELS)];
    let index = |axis: usize, cell: &CellResults| {
        shown(axis).iter().position(|label| *label == cell.labels[axis])
    };
    let mut maps: Vec<HeatMap> = Vec::new();
    let mut left_out = 0;
    for cell in &results.cells {
        let axes = results.axes.iter().zip(&cell.labels).enumerate();
        let others = axes.filter(|(axis, _)| *axis != columns && *axis != rows);
        let others: Vec<String> =
            others.map(|(_, (axis, label))| format!("{}={label}", axis.name)).collect();
        let name = others.join(" ");
        let map = maps.iter().position(|map| map.title == name).or_else(|| {
            let values = vec![vec![None; shown(columns).len()]; shown(rows).len()];
            let room = maps.len() < MOST_MAPS;
            room.then(|| maps.push(HeatMap { title: name, values })).map(|()| maps.len() - 1)
        });
        match (map, index(rows, cell), index(columns, cell)) {
            (Some(map), Some(row), Some(column)) => {
                maps[map].values[row][column] = of(cell).map(|(mean, _)| mean);
            }
            _ => left_out += 1,
        }
    }
    let all = plural(results.cells.len() as u64, "cell");
    let note = match left_out {
        0 => format!("Means over runs of all {all}."),
        n => format!("Means over runs; {n} of {all} are left out, which do not fit."),
    };
    let axis = |axis: usize| (results.axes[axis].name.clone(), shown(axis).to_vec());
    let plot = HeatMaps {
        title: results.name.clone(),
        value_label: title.to_owned(),
        rows: axis(rows),
        columns: axis(columns),
        maps,
        named_columns: numeric.is_none(),
        note: note.clone(),
    };
    (plot.plot(), note)
}

/// Cells in the order of their means, with 95 % confidence intervals. Of many cells only the ends.
pub fn ranking(
    results: &Results,
    cells: &[usize],
    title: &str,
    of: impl Fn(&CellResults) -> Option<(f64, f64)>,
) -> Plot {
    let mut rows: Vec<(String, RankValue)> = cells
        .iter()
        .filter_map(|i| {
            let (value, ci) = of(&results.cells[*i])?;
            let name = results.title(&results.cells[*i]);
            let name = if name.is_empty() { results.name.clone() } else { name };
            Some((name, RankValue { value, interval: ((value - ci).max(0.0), value + ci) }))
        })
        .collect();
    rows.sort_by(|a, b| b.1.value.total_cmp(&a.1.value));
    let count = rows.len();
    let mut rows: Vec<_> = rows.into_iter().map(|(name, one)| (name, vec![one])).collect();
    let mut heading = format!("{}: ranking", results.name);
    if count > 2 * RANKED {
        let between = format!("({} between)", plural((count - 2 * RANKED) as u64, "cell"));
        rows.splice(RANKED..count - RANKED, [(between, Vec::new())]);
        heading += &format!(", the {RANKED} highest and the {RANKED} lowest of {count} cells");
    }
    let series = vec!["mean, with its 95 % confidence interval".to_owned()];
    Ranks { title: heading, x_label: title.to_owned(), series, rows }.plot()
}

fn lines(
    results: &Results,
    axis: &NumericAxis,
    title: &str,
    of: impl Fn(&CellResults) -> Option<(f64, f64)>,
) -> (Plot, String) {
    let mut curves: Vec<Curve> = Vec::new();
    for cell in &results.cells {
        let name = others(results, cell, &[axis.index]);
        let x = axis.of(&cell.labels[axis.index]);
        let (Some(x), Some((y, ci))) = (x, of(cell)) else { continue };
        match curves.iter_mut().find(|curve| curve.name == name) {
            Some(curve) => curve.points.push((x, y, ci)),
            None => curves.push(Curve { name, pen: Pen::Band, points: vec![(x, y, ci)] }),
        }
    }
    let caption = "Means over runs; bands are 95 % confidence intervals.".to_owned();
    for curve in &mut curves {
        curve.points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    let chart = Curves {
        title: format!("{}: {title}", results.name),
        x_label: axis.title.clone(),
        y_label: title.to_owned(),
        log_x: axis.log,
        curves,
    };
    (chart.plot(), caption)
}

/// Bars: the last axis side by side, all others as groups. `None` where there are too many.
fn bars(
    results: &Results,
    title: &str,
    of: impl Fn(&CellResults) -> Option<(f64, f64)>,
) -> Option<(Plot, String)> {
    let bar = |cell: &CellResults| of(cell).map(|(value, ci)| Bar { value, ci });
    let last = results.axes.len() - 1;
    let side_by_side = results.axes.len() > 1 && results.axes[last].labels.len() <= MOST_LINES;
    let (series, groups) = if side_by_side {
        let labels = &results.axes[last].labels;
        let group = |cells: &[CellResults]| BarGroup {
            label: others(results, &cells[0], &[last]),
            bars: cells.iter().map(bar).collect(),
        };
        let groups: Vec<_> = results.cells.chunks(labels.len()).map(group).collect();
        (labels.clone(), groups)
    } else {
        let group =
            |cell: &CellResults| BarGroup { label: cell.labels.join(" "), bars: vec![bar(cell)] };
        (vec![mean_of(results)], results.cells.iter().map(group).collect())
    };
    if groups.len() > MOST_GROUPS {
        return None;
    }
    let series = series.into_iter().map(|name| BarSeries { name, published: false }).collect();
    let chart = BarChart {
        title: format!("{}: {title}", results.name),
        y_label: title.to_owned(),
        series,
        groups,
    };
    Some((chart.plot(), "Means over runs; whiskers are 95 % confidence intervals.".to_owned()))
}

/// The meaning of the bars: `mean of 20 runs`.
fn mean_of(results: &Results) -> String {
    let counts = || results.cells.iter().map(|cell| cell.runs.len());
    match (counts().min(), counts().max()) {
        (Some(low), Some(high)) if low == high => format!("mean of {}", plural(low as u64, "run")),
        _ => "mean".to_owned(),
    }
}

/// The labels of a cell except those of some axes, in one line.
fn others(results: &Results, cell: &CellResults, without: &[usize]) -> String {
    let labels = cell.labels.iter().enumerate().filter(|(i, _)| !without.contains(i));
    let labels: Vec<&str> = labels.map(|(_, label)| label.as_str()).collect();
    if labels.is_empty() { results.name.clone() } else { labels.join(" ") }
}

/// An axis whose labels are amounts.
#[derive(Debug, PartialEq)]
struct NumericAxis {
    index: usize,
    title: String,
    /// The unit of the first label, in base units.
    unit: f64,
    log: bool,
}

impl NumericAxis {
    fn of(&self, label: &str) -> Option<f64> {
        amount(label).map(|amount| amount.value * amount.unit / self.unit)
    }
}

/// The axis with the most values among those with amounts of one kind.
fn numeric_axis(results: &Results) -> Option<NumericAxis> {
    let axes = results.axes.iter().enumerate().filter_map(|(index, axis)| {
        let amounts: Option<Vec<Amount>> = axis.labels.iter().map(|label| amount(label)).collect();
        let amounts = amounts.filter(|all| all.len() > 1)?;
        let first = &amounts[0];
        // A bare zero fits every unit.
        if amounts.iter().any(|a| a.kind != first.kind && a.value != 0.0) {
            return None;
        }
        let values: Vec<f64> = amounts.iter().map(|a| a.value * a.unit).collect();
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let unit = if first.name.is_empty() { String::new() } else { format!(" ({})", first.name) };
        let title = format!("{}{unit}", axis.name);
        // Zero has its own position.
        let least = values.iter().copied().filter(|v| *v > 0.0).fold(f64::INFINITY, f64::min);
        let log = low >= 0.0 && high / least >= 8.0;
        Some(NumericAxis { index, title, unit: first.unit, log })
    });
    // The first of those with the most values.
    axes.rev().max_by_key(|axis| results.axes[axis.index].labels.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(labels: &[&str]) -> Option<NumericAxis> {
        let labels = labels.iter().map(|label| (*label).to_owned()).collect();
        let axes = vec![lasthop_scenario::Axis { name: "x".to_owned(), labels }];
        let setup = lasthop_sim::runs::Setup::default();
        let (lasthop, name) = (String::new(), String::new());
        numeric_axis(&Results { lasthop, commit: None, name, setup, axes, cells: Vec::new() })
    }

    #[test]
    fn amounts_differ_from_words() {
        let sizes = axis(&["512KiB", "1MiB", "16MiB"]).unwrap();
        assert_eq!((sizes.title.as_str(), sizes.log), ("x (KiB)", true));
        assert_eq!(sizes.of("1MiB"), Some(1024.0));
        assert_eq!(axis(&["1e-6", "1e-5"]).unwrap().of("1e-5"), Some(1e-5));
        assert_eq!(axis(&["0", "1%", "2%"]).map(|axis| axis.log), None);
        assert_eq!(axis(&["1%", "2%", "0"]).map(|axis| axis.log), Some(false));
        assert_eq!(axis(&["0%", "0.1%", "1%", "5%"]).map(|axis| axis.log), Some(true));
        assert_eq!(axis(&["none", "snoop"]), None);
        assert_eq!(axis(&["1s", "1MiB"]), None);
        assert_eq!(axis(&["1e"]), None);
    }
}
