//! Results as a table: a row for each cell.

use lasthop_lab::{CellResults, Results};
use lasthop_report::model::{Column, Table};
use lasthop_report::number;
use lasthop_trace::stats::Summary;

/// Bytes of a KB, in the papers' tables and in ours.
pub const KB: f64 = 1024.0;

/// Heading, name of the scalar, and what it is divided by.
const COLUMNS: [(&str, &str, f64); 6] = [
    ("KB/s", "throughput", KB),
    ("wired goodput", "wired_goodput", 1.0),
    ("radio goodput", "wireless_goodput", 1.0),
    ("timeouts", "timeouts", 1.0),
    ("fast rexmits", "fast_retransmits", 1.0),
    ("stalls", "stalls", 1.0),
];

/// How the table is to be read; stands under it.
pub const NOTE: &str = "Means over runs ± 95 % confidence interval. KB = 1024 B. Goodput: full packets needed \
/ data packets sent.\nTimeouts: expirations of the sender's timer. Stalls: long silences in delivery.";

/// A row for each cell; a column that no cell has a number for is left out.
pub fn table(results: &Results) -> Table {
    let shown: Vec<_> = COLUMNS
        .iter()
        .filter(|(_, name, _)| results.cells.iter().any(|cell| cell.mean(name).is_some()))
        .collect();
    let mut columns: Vec<Column> =
        results.axes.iter().map(|axis| Column::text(axis.name.as_str())).collect();
    columns.push(Column::number("complete"));
    columns.extend(shown.iter().map(|(title, _, _)| Column::number(*title)));
    let rows = results.cells.iter().map(|cell| {
        let mut row = cell.labels.clone();
        row.push(complete(results, cell));
        row.extend(shown.iter().map(|(_, name, scale)| mean(cell, name, *scale)));
        row
    });
    Table { title: String::new(), columns, rows: rows.collect() }
}

/// How many runs completed, of how many; transfers without end have only runs.
fn complete(results: &Results, cell: &CellResults) -> String {
    match cell.runs.len() {
        0 => "not run".to_owned(),
        n if results.setup.endless => format!("{n} runs"),
        n => format!("{} of {n}", cell.complete()),
    }
}

fn mean(cell: &CellResults, name: &str, scale: f64) -> String {
    cell.mean(name).map_or_else(
        || "–".to_owned(),
        |s| number::summary(&Summary { mean: s.mean / scale, ci95: s.ci95 / scale, ..s }),
    )
}

/// What is remarkable about the runs themselves, a line each.
pub fn remarks(results: &Results) -> Vec<String> {
    let mut remarks = Vec::new();
    for cell in &results.cells {
        let title = results.title(cell);
        let at = if title.is_empty() { String::new() } else { format!(" ({title})") };
        let aborted =
            cell.runs.iter().filter(|r| r.metrics.flows.iter().any(|f| f.aborted)).count();
        let incomplete = cell.runs.len() - cell.complete();
        if incomplete > 0 && !results.setup.endless {
            let mut why = String::new();
            if aborted > 0 {
                why = format!(", {aborted} of them because TCP gave up");
            }
            remarks.push(format!(
                "{incomplete} of {} runs did not complete{why}; their means cover what there was{at}",
                cell.runs.len()
            ));
        }
        for run in &cell.runs {
            if run.reason == "stuck" || run.metrics.corrupted > 0 {
                let what = if run.reason == "stuck" {
                    "a machine stood still".to_owned()
                } else {
                    format!("{} bytes were delivered wrong", run.metrics.corrupted)
                };
                remarks.push(format!(
                    "seed {}: {what}: a fault of lasthop, please report it{at}",
                    run.seed
                ));
            }
        }
    }
    remarks
}
