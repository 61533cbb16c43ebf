//! Tables for the terminal.

use comfy_table::{CellAlignment, ContentArrangement, Table as Grid, presets};
use lasthop_observe::metrics::RunMetrics;
use lasthop_observe::stats::Summary;

use crate::model::{ClaimResult, Column, Table};
use crate::number::{MBIT, RATE_UNIT, short, summary};
use crate::wrap::{columns, wrap};

/// Width of the frame in columns: of the left border, and of border and blanks of each cell.
const FRAME: (usize, usize) = (1, 3);
/// Minimum width of a text column, unless the table does not fit otherwise.
const LEAST: usize = 16;

/// The medium of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Look {
    /// A terminal with this many columns: with borders and wrapped text, or as records below each other if columns do
    /// not fit.
    Terminal(u16),
    /// A pipe or a file: aligned columns without borders, never wrapped.
    Plain,
}

/// `table` as text, below its title if it has one.
pub fn render(table: &Table, look: Look) -> String {
    let printable_table = PrintableTable::of(table);
    let body = match look {
        Look::Plain => printable_table.grid(None),
        Look::Terminal(width) => {
            let widths = |whole| printable_table.widths(width.into(), whole);
            match widths(true).or_else(|| widths(false)) {
                Some(widths) => printable_table.grid(Some(&widths)),
                None => printable_table.records(width.into()),
            }
        }
    };
    match (table.title.is_empty(), look) {
        (true, _) => body,
        (_, Look::Plain) => format!("{}\n{body}", printable(&table.title)),
        (_, Look::Terminal(width)) => {
            format!("{}\n{body}", wrap(&printable(&table.title), width.into()))
        }
    }
}

/// `table` without borders if it fits, else as [`render`].
pub fn render_lean(table: &Table, look: Look) -> String {
    let plain = render(table, Look::Plain);
    match look {
        Look::Terminal(width) if plain.lines().any(|line| columns(line) > width.into()) => {
            render(table, look)
        }
        _ => plain,
    }
}

/// A table without control characters.
struct PrintableTable {
    titles: Vec<String>,
    rows: Vec<Vec<String>>,
    numeric: Vec<bool>,
}

impl PrintableTable {
    fn of(table: &Table) -> PrintableTable {
        let row = |row: &Vec<String>| row.iter().map(|cell| printable(cell)).collect();
        PrintableTable {
            titles: table.columns.iter().map(|column| printable(&column.title)).collect(),
            rows: table.rows.iter().map(row).collect(),
            numeric: table.columns.iter().map(|column| column.numeric).collect(),
        }
    }

    /// The widths with which all columns fit into `room` without breaking words. With `whole`, numbers are not
    /// separated from their intervals, and text columns have at least [`LEAST`] columns.
    fn widths(&self, room: usize, whole: bool) -> Option<Vec<usize>> {
        let longest = |text: &str| text.split(' ').map(columns).max().unwrap_or(0);
        let column = |i: usize| self.rows.iter().filter_map(move |row| row.get(i));
        let most = |i: usize| column(i).map(|cell| columns(cell)).max().unwrap_or(0);
        let least: Vec<usize> = (0..self.titles.len())
            .map(|i| {
                let word = column(i).map(|cell| longest(cell)).max().unwrap_or(0);
                let cell = match (whole, self.numeric[i]) {
                    (true, true) => most(i),
                    (true, false) => word.max(most(i).min(LEAST)),
                    (false, _) => word,
                };
                cell.max(longest(&self.titles[i]))
            })
            .collect();
        let mut widths: Vec<usize> =
            (0..self.titles.len()).map(|i| most(i).max(columns(&self.titles[i]))).collect();
        let all = |widths: &[usize]| FRAME.0 + widths.iter().map(|w| w + FRAME.1).sum::<usize>();
        if all(&least) > room {
            return None;
        }
        // The column with the largest reserve is narrowed until all fit.
        while all(&widths) > room {
            let spare = |i: &usize| widths[*i] - least[*i];
            let i = (0..widths.len()).max_by_key(spare)?;
            widths[i] -= 1;
        }
        Some(widths)
    }

    /// Columns side by side: with borders and wrapped to `widths`, or plain.
    fn grid(&self, widths: Option<&[usize]>) -> String {
        let mut grid = Grid::new();
        grid.set_content_arrangement(ContentArrangement::Disabled);
        grid.load_style(if widths.is_some() {
            presets::UTF8_FULL_CONDENSED
        } else {
            presets::NOTHING
        });
        let cells = |row: &[String]| -> Vec<String> {
            let cell = |(i, text): (usize, &String)| match widths.and_then(|widths| widths.get(i)) {
                Some(width) => below(text, *width),
                None => text.clone(),
            };
            row.iter().enumerate().map(cell).collect()
        };
        grid.set_header(cells(&self.titles));
        for row in &self.rows {
            grid.add_row(cells(row));
        }
        for (i, numeric) in self.numeric.iter().enumerate() {
            if let (true, Some(place)) = (numeric, grid.column_mut(i)) {
                place.set_cell_alignment(CellAlignment::Right);
            }
        }
        grid.trim_fmt()
    }

    /// A block for each row, with a line for each cell that is not empty.
    fn records(&self, room: usize) -> String {
        let block = |row: &Vec<String>| -> String {
            let cells = self.titles.iter().zip(row).filter(|(_, cell)| !cell.trim().is_empty());
            let line = |(title, cell): (&String, &String)| match title.is_empty() {
                true => wrap(cell, room) + "\n",
                false => wrap(&format!("{title}: {cell}"), room) + "\n",
            };
            cells.map(line).collect()
        };
        let blocks: Vec<String> = self.rows.iter().map(block).collect();
        blocks.join("\n").trim_end().to_owned()
    }
}

/// The words of a cell in lines of `width` columns.
fn below(text: &str, width: usize) -> String {
    let (mut lines, mut column) = (String::new(), 0);
    if columns(text) <= width {
        return text.to_owned();
    }
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let wide = columns(word);
        if column > 0 && column + 1 + wide > width {
            lines.push('\n');
            column = 0;
        } else if column > 0 {
            lines.push(' ');
            column += 1;
        }
        lines += word;
        column += wide;
    }
    lines
}

/// Text without control characters, so that a name from a file cannot control the terminal.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// The scalars of `runs` averaged, in the order of [`RunMetrics::scalars`]: name, unit, summary. If some runs lack
/// a scalar, its mean is over the other runs.
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

/// Maximum number of cases side by side. More are listed below each other, with the numbers of [`CORE`] only.
const SIDE_BY_SIDE: usize = 4;

/// The most important numbers.
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

/// Means with intervals for each case of a sweep: `cases` are names and runs. A few cases are printed side by side with
/// all numbers, more cases below each other with the most important ones.
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
        let (unit, scale) = match unit {
            "1" => ("", 1.0),
            "B/s" => (RATE_UNIT, MBIT),
            unit => (unit, 1.0),
        };
        let mut row = vec![words(name), unit.to_owned()];
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

/// The name of a scalar with blanks.
fn words(name: &str) -> String {
    name.replace('_', " ")
}

/// Swaps rows and columns.
fn turned(table: Table) -> Table {
    let core: Vec<_> = table
        .rows
        .into_iter()
        .filter(|row| CORE.iter().any(|name| words(name) == row[0]))
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

/// Published and measured values, a row for each figure of `claim`.
pub fn claim_figures(claim: &ClaimResult) -> Table {
    let columns =
        Column::list("<figure | published | measured (95 %) | <unit | measured / published");
    let row = |m: &crate::model::MeasuredFigure| {
        let ratio = m.published.filter(|p| *p != 0.0).map(|p| m.mean.value / p);
        vec![
            m.label.clone(),
            m.published.map_or_else(|| "–".to_owned(), short),
            m.mean.to_string(),
            m.unit.clone(),
            ratio.map_or_else(|| "–".to_owned(), |r| format!("{r:.2}")),
        ]
    };
    Table { title: String::new(), columns, rows: claim.measured.iter().map(row).collect() }
}

/// The conditions of a claim, each with the measured and the required value.
pub fn claim_conditions(claim: &ClaimResult) -> Table {
    let mut columns: Vec<Column> = ["condition", "wanted", "verdict"].map(Column::text).into();
    columns.insert(1, Column::number("measured (95 %)"));
    let row = |c: &crate::model::ConditionFigure| {
        // For a condition without a number, its sentence is shown.
        let measured = match c.wanted.as_str() {
            "true" => String::new(),
            _ => c.measured.to_string(),
        };
        let wanted = if c.wanted == "true" { String::new() } else { c.wanted.clone() };
        vec![c.what.clone(), measured, wanted, c.verdict.word().to_owned()]
    };
    Table { title: String::new(), columns, rows: claim.conditions.iter().map(row).collect() }
}

/// A row with the verdict of each claim.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn schemes() -> Table {
        let columns = Column::list("<scheme | KB/s | <to be changed");
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        let rows = [
            row(["snoop-smart", "12\u{2009}218 ± 11", "base station, receiver"]),
            row(["as-is", "103 ± 29", ""]),
        ];
        Table::new(columns, rows)
    }

    #[test]
    fn a_wide_terminal_has_each_row_on_one_line() {
        let text = render(&schemes(), Look::Terminal(80));
        assert!(
            text.contains("│ snoop-smart ┆ 12\u{2009}218 ± 11 ┆ base station, receiver │"),
            "{text}"
        );
        assert!(text.contains("│ as-is       ┆    103 ± 29 ┆                        │"), "{text}");
    }

    #[test]
    fn on_narrow_terminals_text_wraps_before_numbers_split() {
        let text = render(&schemes(), Look::Terminal(50));
        assert!(text.contains("┆ 12\u{2009}218 ± 11 ┆ base station, │"), "{text}");
        let text = render(&schemes(), Look::Terminal(40));
        assert!(text.contains("12\u{2009}218 ± ┆ base"), "{text}");
        for width in 30..80 {
            let text = render(&schemes(), Look::Terminal(width));
            assert!(text.lines().all(|line| columns(line) <= width.into()), "{width}\n{text}");
            for word in ["snoop-smart", "12\u{2009}218", "receiver", "changed"] {
                assert!(text.contains(word), "{word} at {width}\n{text}");
            }
        }
    }

    #[test]
    fn a_table_too_wide_is_printed_as_records() {
        let text = render(&schemes(), Look::Terminal(25));
        let expected = "scheme: snoop-smart\nKB/s: 12\u{2009}218 ± 11\nto be changed: base\n  station, receiver\n\n\
                      scheme: as-is\nKB/s: 103 ± 29";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_lean_table_has_no_lines_where_it_fits() {
        let plain = render(&schemes(), Look::Plain);
        assert_eq!(render_lean(&schemes(), Look::Terminal(80)), plain);
        assert_eq!(render_lean(&schemes(), Look::Plain), plain);
        assert!(render_lean(&schemes(), Look::Terminal(45)).contains('│'));
    }
}
