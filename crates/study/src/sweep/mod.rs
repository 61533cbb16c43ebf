//! Results of a sweep: a table with a row for each cell, plots, and a page.

pub mod amount;
mod chart;
mod events;
mod explanation;
mod page;
pub mod side_by_side;
pub mod single;

use lasthop_observe::stats::Summary;
use lasthop_report::model::{Column, Table};
use lasthop_report::number::{self, MBIT, RATE_UNIT, plural};
use lasthop_sim::runs::{CellResults, Results, RunResult};

pub use explanation::explanations;
pub use page::{CellSeries, heading, page};

/// Heading, short heading, name of the scalar, divisor.
type ScalarColumn = (&'static str, &'static str, &'static str, f64);

/// The columns after those of the axes.
const COLUMNS: [ScalarColumn; 22] = [
    (RATE_UNIT, RATE_UNIT, "throughput", MBIT),
    ("wired goodput", "wired gp", "wired_goodput", 1.0),
    ("wireless goodput", "wireless gp", "wireless_goodput", 1.0),
    ("timeouts", "timeouts", "timeouts", 1.0),
    ("fast rexmits", "fast rx", "fast_retransmits", 1.0),
    ("stalls", "stalls", "stalls", 1.0),
    ("short, mean s", "short s", "short_time_mean", 1.0),
    ("short, 95 % s", "95 % s", "short_time_p95", 1.0),
    ("hand-off pause s", "pause s", "handoff_pause_mean", 1.0),
    ("exchange, median s", "median", "exchange_time_p50", 1.0),
    ("exchange, 95 % s", "95 %", "exchange_time_p95", 1.0),
    ("packets each", "packets", "exchange_packets", 1.0),
    ("page, median s", "page s", "page_load_p50", 1.0),
    ("page, 95 % s", "95 %", "page_load_p95", 1.0),
    ("video Mbit/s", "Mbit/s", "video_bitrate", 1e6),
    ("rebuffering s", "rebuf s", "video_rebuffer_time", 1.0),
    ("switches", "switches", "video_switches", 1.0),
    ("datagrams lost %", "lost %", "datagram_loss", 0.01),
    ("datagrams, mean ms", "mean ms", "datagram_delay_mean", 0.001),
    ("call, MOS", "MOS", "call_mos", 1.0),
    ("rise under load ms", "rise ms", "load_rise", 0.001),
    ("cross Mbit/s", "cross", "cross_throughput", MBIT),
];

/// The space for a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Room {
    /// Every mean with its interval.
    Wide,
    /// Only the throughput with its interval; short headings.
    Narrow,
}

/// The explanation below the table.
pub const fn note() -> &'static str {
    "Means over runs ± 95 % confidence interval.\n\
     Goodput (gp): full packets needed / data packets sent. Timeouts: expirations of\n\
     the sender's timer. Stalls: long silences in delivery."
}

/// A row for each cell; a column without numbers is left out.
pub fn table(results: &Results, room: Room) -> Table {
    let wide = room == Room::Wide;
    let shown: Vec<ScalarColumn> = COLUMNS
        .into_iter()
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
    Table::new(columns, rows)
}

/// Completed runs and total; only the total for endless transfers.
fn complete(results: &Results, cell: &CellResults) -> String {
    match cell.runs.len() {
        0 => "not run".to_owned(),
        n if results.setup.endless => plural(n as u64, "run"),
        n => format!("{} of {n}", cell.complete()),
    }
}

fn mean(cell: &CellResults, name: &str, scale: f64, interval: bool) -> String {
    let shown = |s: Summary| {
        let s = s.in_units_of(scale);
        number::summary(&Summary { ci95: if interval { s.ci95 } else { 0.0 }, ..s })
    };
    cell.mean(name).map_or_else(|| "–".to_owned(), shown)
}

/// Maximum number of cells that are named one by one with the same remark.
const MOST_NAMED: usize = 3;

/// Remarks about the runs themselves, one per line. A remark on many cells is one line.
pub fn remarks(results: &Results) -> Vec<String> {
    let mut remarks: Vec<(String, Vec<String>)> = Vec::new();
    for cell in &results.cells {
        for text in remarks_on(results, cell) {
            let title = results.title(cell);
            match remarks.iter_mut().find(|(known, _)| *known == text) {
                Some((_, titles)) => titles.push(title),
                None => remarks.push((text, vec![title])),
            }
        }
    }
    let lines = remarks.into_iter().flat_map(|(text, titles)| match titles.len() {
        count if count > MOST_NAMED => {
            let named = titles[..MOST_NAMED].join("; ");
            vec![format!("{text} (in {count} cells: {named}; and others)")]
        }
        _ => {
            let at = |title: String| match title.as_str() {
                "" => text.clone(),
                title => format!("{text} ({title})"),
            };
            titles.into_iter().map(at).collect()
        }
    });
    lines.collect()
}

fn remarks_on(results: &Results, cell: &CellResults) -> Vec<String> {
    let mut remarks = Vec::new();
    let aborted = cell.runs.iter().filter(|r| r.metrics.flows.iter().any(|f| f.aborted)).count();
    let incomplete = cell.runs.len() - cell.complete();
    if incomplete > 0 && !results.setup.endless {
        let why = match aborted {
            0 => String::new(),
            n => format!(", {n} of them because TCP gave up"),
        };
        remarks.push(format!(
            "{incomplete} of {} did not complete{why}; their means cover the delivered part",
            plural(cell.runs.len() as u64, "run")
        ));
    }
    remarks.extend(buffers(cell));
    for run in &cell.runs {
        let faults = faults(run).into_iter();
        remarks.extend(faults.map(|fault| format!("seed {}: {fault}", run.seed)));
    }
    remarks
}

/// A remark if senders waited for buffers most of the time: the results of the cell are not about the path.
fn buffers(cell: &CellResults) -> Option<String> {
    let share = |name: &str| cell.mean(name).map_or(0.0, |summary| summary.mean);
    let [sends, receives] = ["limited_send_buffer", "limited_receive_window"].map(share);
    let key = if sends > receives { "send-buffer" } else { "recv-buffer" };
    let waited = sends + receives > 0.5;
    waited.then(|| {
        format!(
            "buffers limited senders most of the time; a larger `{key}` would show more of the path"
        )
    })
}

/// Faults of a run other than those of TCP.
fn faults(run: &RunResult) -> Vec<String> {
    let mut faults = Vec::new();
    let ours = match (&run.stuck, run.metrics.corrupted) {
        (Some(place), _) => Some(format!("time stood still at {place}")),
        (None, 0) => None,
        (None, bytes) => Some(format!("delivered wrong: {}", plural(bytes, "byte"))),
    };
    faults.extend(ours.map(|fault| format!("{fault}: a fault of lasthop, please report it")));
    let Some(testbed) = &run.testbed else { return faults };
    faults.extend(testbed.wrong.iter().cloned());
    if testbed.lost_frames > 0 {
        faults.push(format!(
            "the base station lost {} because it was too slow; the run has little meaning",
            plural(testbed.lost_frames, "frame")
        ));
    }
    faults
}
