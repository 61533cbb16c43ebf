//! Tables for the terminal.

use comfy_table::{CellAlignment, ContentArrangement, Table as Grid, presets};
use lasthop_trace::metrics::RunMetrics;
use lasthop_trace::stats::Summary;

use crate::model::{ClaimResult, Column, Table};
use crate::number::{short, summary};

/// Where a table will be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Look {
    /// A terminal of so many columns: lines around, text wrapped to fit.
    Terminal(u16),
    /// A pipe or a file: aligned columns without lines, never wrapped.
    Plain,
}

/// `table` as text; its title stands above when there is one.
pub fn render(table: &Table, look: Look) -> String {
    let mut grid = Grid::new();
    match look {
        Look::Terminal(width) => {
            grid.load_style(presets::UTF8_FULL_CONDENSED)
                .set_content_arrangement(ContentArrangement::Dynamic)
                .set_width(width.max(40));
        }
        Look::Plain => {
            grid.load_style(presets::NOTHING);
        }
    }
    grid.set_header(table.columns.iter().map(|c| printable(&c.title)));
    for row in &table.rows {
        grid.add_row(row.iter().map(|cell| printable(cell)));
    }
    for (i, column) in table.columns.iter().enumerate() {
        if let (true, Some(place)) = (column.numeric, grid.column_mut(i)) {
            place.set_cell_alignment(CellAlignment::Right);
        }
    }
    let body = grid.trim_fmt();
    if table.title.is_empty() { body } else { format!("{}\n{body}", printable(&table.title)) }
}

/// Text without control characters: a name from a file must not command the terminal.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// The scalars of `runs` averaged, in the order of [`RunMetrics::scalars`]: name, unit, summary. A number
/// that some runs lack is averaged over those that have it.
pub fn averages(runs: &[RunMetrics]) -> Vec<(&'static str, &'static str, Summary)> {
    let scalars: Vec<_> = runs.iter().map(RunMetrics::scalars).collect();
    let mut names: Vec<(&str, &str)> = Vec::new();
    for s in scalars.iter().flatten() {
        if !names.contains(&(s.name, s.unit)) {
            names.push((s.name, s.unit));
        }
    }
    let of = |name| -> Vec<f64> {
        scalars.iter().flatten().filter(|s| s.name == name).map(|s| s.value).collect()
    };
    names.into_iter().map(|(name, unit)| (name, unit, Summary::of(&of(name)))).collect()
}

/// More cases than this stand below each other, with the numbers of [`CORE`] only.
const SIDE_BY_SIDE: usize = 4;

/// What one looks at first.
const CORE: [&str; 17] = [
    "throughput",
    "transfer_time",
    "wired_goodput",
    "wireless_goodput",
    "timeouts",
    "stall_time",
    "jain_index",
    "short_time_mean",
    "short_time_p95",
    "handoff_pause_mean",
    "exchange_time_p50",
    "exchange_time_p95",
    "exchange_packets",
    "page_load_p50",
    "page_load_p95",
    "video_bitrate",
    "video_rebuffer_time",
];

/// Means with intervals for each case of a sweep: `cases` are name and runs. A few cases stand side by side
/// with all numbers; many stand below each other with those one looks at first.
pub fn run_summary(title: &str, cases: &[(String, &[RunMetrics])]) -> Table {
    let mut columns = vec![Column::text(""), Column::text("unit")];
    columns.extend(
        cases.iter().map(|(name, runs)| Column::number(format!("{name} (n={})", runs.len()))),
    );
    let averaged: Vec<_> = cases.iter().map(|(_, runs)| averages(runs)).collect();
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut names: Vec<(&str, &str)> = Vec::new();
    for (name, unit, _) in averaged.iter().flatten() {
        if !names.contains(&(*name, *unit)) {
            names.push((*name, *unit));
        }
    }
    for (name, unit) in names {
        // People compare rates in KiB/s, as west97's tables do under the name KB/s.
        let (unit, scale) = match unit {
            "1" => ("", 1.0),
            "B/s" => ("KiB/s", 1024.0),
            unit => (unit, 1.0),
        };
        let mut row = vec![name.replace('_', " "), unit.to_owned()];
        for case in &averaged {
            let found = case.iter().find(|(n, _, _)| *n == name);
            let scaled = |s: &Summary| {
                summary(&Summary { mean: s.mean / scale, ci95: s.ci95 / scale, ..*s })
            };
            row.push(found.map_or_else(|| "–".to_owned(), |(_, _, s)| scaled(s)));
        }
        rows.push(row);
    }
    let table = Table { title: title.to_owned(), columns, rows };
    if cases.len() > SIDE_BY_SIDE { turned(table) } else { table }
}

/// A row for each case instead of a column.
fn turned(table: Table) -> Table {
    let core: Vec<_> = table
        .rows
        .into_iter()
        .filter(|row| CORE.contains(&row[0].replace(' ', "_").as_str()))
        .collect();
    let heading = |row: &Vec<String>| {
        let unit = if row[1].is_empty() { String::new() } else { format!(" ({})", row[1]) };
        Column::number(format!("{}{unit}", row[0]))
    };
    let columns = std::iter::once(Column::text("")).chain(core.iter().map(heading)).collect();
    let case = |(i, column): (usize, &Column)| {
        let numbers = core.iter().map(|row| row[i].clone());
        std::iter::once(column.title.clone()).chain(numbers).collect()
    };
    let rows = table.columns.iter().enumerate().skip(2).map(case).collect();
    Table { title: table.title, columns, rows }
}

/// Published beside measured, a row for each figure of `claim`.
pub fn claim_figures(claim: &ClaimResult) -> Table {
    let columns = vec![
        Column::text("figure"),
        Column::number("published"),
        Column::number("measured (95 %)"),
        Column::text("unit"),
        Column::number("measured / published"),
    ];
    let row = |m: &crate::model::Measured| {
        let ratio = m.published.filter(|p| *p != 0.0).map(|p| m.mean / p);
        vec![
            m.label.clone(),
            m.published.map_or_else(|| "–".to_owned(), short),
            crate::number::with_interval(m.mean, m.ci),
            m.unit.clone(),
            ratio.map_or_else(|| "–".to_owned(), |r| format!("{r:.2}")),
        ]
    };
    Table { title: String::new(), columns, rows: claim.measured.iter().map(row).collect() }
}

/// All claims with their verdicts, a row each.
pub fn verdicts(claims: &[ClaimResult]) -> Table {
    let columns = ["claim", "where", "verdict", "reason"].map(Column::text);
    let mut columns: Vec<Column> = columns.into();
    columns.insert(2, Column::number("runs"));
    let row = |c: &ClaimResult| {
        vec![
            c.id.clone(),
            format!("{} {}", c.paper, c.place),
            c.runs.to_string(),
            c.verdict.word().to_owned(),
            c.reason.clone(),
        ]
    };
    Table { title: String::new(), columns, rows: claims.iter().map(row).collect() }
}
