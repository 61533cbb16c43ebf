//! A trace of a link as text.

use std::fmt::Write as _;

use lasthop_proto::units::{Rate, Span};
use lasthop_report::number::plural;
use lasthop_study::traces::Statistics;
use serde::Serialize;

use crate::braille::Dots;
use crate::style;

const COLUMNS: usize = 64;
/// Characters in front of the picture.
const LABELS: usize = 12;
const ROWS: usize = 8;

/// A trace file and its statistics.
#[derive(Serialize, Debug)]
pub struct TraceSummary {
    pub file: String,
    /// Its statistics.
    #[serde(flatten)]
    pub statistics: Statistics,
    /// Interpretation of a table or a result.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub understood: Vec<String>,
}

/// Numbers and a picture.
pub fn text(summary: &TraceSummary) -> String {
    let TraceSummary { file, statistics: found, understood } = summary;
    let lines = plural(found.opportunities as u64, "line");
    let mut text = format!("{}: {lines} in {}\n", style::heading(file), seconds(found.period_s));
    let window = seconds(found.window_s);
    let rows = [
        ("mean", rate(found.mean_bps)),
        ("least", format!("{} in {window}", rate(found.min_bps))),
        ("most", format!("{} in {window}", rate(found.max_bps))),
        ("longest outage", seconds(found.longest_outage_s)),
    ];
    for (name, value) in rows {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {}  {value}", style::dim(&format!("{name:<14}")));
    }
    if !understood.is_empty() {
        let _ = writeln!(text, "\n{}", style::heading("How it was understood"));
    }
    for line in understood {
        let _ = writeln!(text, "  {line}");
    }
    text + "\n" + &picture(&found.windows_bps, found.period_s)
}

fn rate(bps: f64) -> String {
    // Three digits suffice for a comparison.
    let bps = bps.round() as u64;
    let unit = 10_u64.pow(bps.checked_ilog10().unwrap_or(0).saturating_sub(2));
    let short = (bps + unit / 2) / unit * unit;
    Rate::from_bps(short).map_or("0".to_owned(), |rate| rate.to_string())
}

fn seconds(seconds: f64) -> String {
    Span((seconds * 1e3).round() as u64 * 1_000_000).to_string()
}

/// The rate over time.
fn picture(windows: &[f64], period_s: f64) -> String {
    let highest = windows.iter().copied().fold(1.0, f64::max);
    let columns = style::room(COLUMNS + LABELS) - LABELS;
    let mut dots = Dots::new(columns, ROWS);
    let mut last = None;
    for (i, bps) in windows.iter().enumerate() {
        let [from, to] = [i, i + 1].map(|i| i as f64 / windows.len() as f64);
        let high = bps / highest;
        dots.line((from, last.unwrap_or(high)), (from, high));
        dots.line((from, high), (to, high));
        last = Some(high);
    }
    let mut text = String::new();
    for (i, line) in dots.lines().enumerate() {
        let label = match i {
            0 => rate(highest),
            i if i + 1 == ROWS => "0".to_owned(),
            _ => String::new(),
        };
        let line = line.trim_end_matches('\u{2800}');
        let _ = writeln!(text, "{label:>10} │{}", style::good(line));
    }
    let end = seconds(period_s);
    let _ = writeln!(text, "{:>10} └{}", "", "─".repeat(columns));
    let _ = writeln!(text, "{:>10}  0s{end:>width$}", "", width = columns - 2);
    text
}
