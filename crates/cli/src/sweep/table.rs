//! Results as a table: a row for each cell.

use lasthop_lab::{CellResults, Results};
use lasthop_report::model::{Column, Table};
use lasthop_report::number;
use lasthop_report::table::{Look, render};
use lasthop_trace::stats::Summary;

/// Bytes of a KB, in the papers' tables and in ours.
pub const KB: f64 = 1024.0;

/// Heading, the same where there is little room, name of the scalar, and what it is divided by.
const COLUMNS: [(&str, &str, &str, f64); 9] = [
    ("KB/s", "KB/s", "throughput", KB),
    ("wired goodput", "wired gp", "wired_goodput", 1.0),
    ("radio goodput", "radio gp", "wireless_goodput", 1.0),
    ("timeouts", "timeouts", "timeouts", 1.0),
    ("fast rexmits", "fast rx", "fast_retransmits", 1.0),
    ("stalls", "stalls", "stalls", 1.0),
    ("short, mean s", "short s", "short_time_mean", 1.0),
    ("short, 95 % s", "95 % s", "short_time_p95", 1.0),
    ("cross KB/s", "cross", "cross_throughput", KB),
];

/// How much room there is for a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Room {
    /// Every mean with its interval.
    Wide,
    /// Only the throughput with its interval; short headings.
    Narrow,
}

/// The table for stdout: as wide as the terminal allows.
pub fn shown(results: &Results) -> String {
    let look = crate::style::look();
    let Look::Terminal(columns) = look else {
        return render(&table(results, Room::Wide), Look::Plain);
    };
    let fits = |text: &String| text.lines().all(|line| line.chars().count() <= columns.into());
    [Room::Wide, Room::Narrow]
        .iter()
        .map(|room| render(&table(results, *room), Look::Plain))
        .find(fits)
        .unwrap_or_else(|| render(&table(results, Room::Narrow), look))
}

/// How the table is to be read; stands under it.
pub const NOTE: &str = "\
Means over runs ± 95 % confidence interval. KB = 1024 B.
Goodput (gp): full packets needed / data packets sent. Timeouts: expirations of
the sender's timer. Stalls: long silences in delivery.";

/// A row for each cell; a column that no cell has a number for is left out.
pub fn table(results: &Results, room: Room) -> Table {
    let wide = room == Room::Wide;
    let shown: Vec<_> = COLUMNS
        .iter()
        .filter(|(_, _, name, _)| results.cells.iter().any(|cell| cell.mean(name).is_some()))
        .collect();
    let mut columns: Vec<Column> =
        results.axes.iter().map(|axis| Column::text(axis.name.as_str())).collect();
    columns.push(Column::number(if wide { "complete" } else { "done" }));
    columns.extend(
        shown.iter().map(|(title, short, ..)| Column::number(if wide { *title } else { *short })),
    );
    let rows = results.cells.iter().map(|cell| {
        let mut row = cell.labels.clone();
        let complete = complete(results, cell);
        row.push(if wide { complete } else { complete.replace(" of ", "/") });
        row.extend(
            shown
                .iter()
                .enumerate()
                .map(|(i, (_, _, name, scale))| mean(cell, name, *scale, wide || i == 0)),
        );
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

fn mean(cell: &CellResults, name: &str, scale: f64, interval: bool) -> String {
    let ci95 = |s: &Summary| if interval { s.ci95 / scale } else { 0.0 };
    cell.mean(name).map_or_else(
        || "–".to_owned(),
        |s| number::summary(&Summary { mean: s.mean / scale, ci95: ci95(&s), ..s }),
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
            if let Some(testbed) = &run.testbed {
                let wrong = testbed.wrong.iter();
                remarks.extend(wrong.map(|wrong| format!("seed {}: {wrong}{at}", run.seed)));
                if testbed.lost_frames > 0 {
                    remarks.push(format!(
                        "seed {}: the base station lost {} frames because it could not keep up; \
                         the run says little{at}",
                        run.seed, testbed.lost_frames
                    ));
                }
                if testbed.lost_tcp_events > 0 {
                    remarks.push(format!(
                        "seed {}: {} events of the kernel's TCP could not be read in time; time-outs and recoveries \
                         may be missing{at}",
                        run.seed, testbed.lost_tcp_events
                    ));
                }
            }
        }
    }
    remarks
}
