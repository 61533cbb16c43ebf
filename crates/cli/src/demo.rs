//! The demonstration: `lasthop run` without a scenario. It prints the link, the result, and a picture.

use std::fmt::Write as _;

use lasthop_observe::Nothing;
use lasthop_observe::sequence::Series;
use lasthop_report::number::{KIB, in_mbit, plural};
use lasthop_scenario::Plan;
use lasthop_sim::runs::{CellResults, Recording, Results};

use crate::braille::Dots;
use crate::style;

/// Columns of a picture without the axis.
const COLUMNS: usize = 66;
/// Columns next to it: labels, and the end of the last number below.
const LABELS: usize = 13;
const ROWS: usize = 8;

const LINK: &str = "\
A server sends 2 MB to a laptop: a wire of 10 Mb/s to a base station, then a radio
of 2 Mb/s that damages a packet about every 64 KiB. TCP takes each loss for
congestion: it sends less, or waits in silence for its timer.
";

/// Text above the table of numbers.
pub fn story(plan: &Plan, results: &Results) -> String {
    let mut text = format!("{}\n\n", style::paragraph(LINK.trim_end()));
    let Some(seed) = typical_seed(results) else { return text };
    let recorded: Vec<Recording> = plan
        .cells
        .iter()
        .map(|cell| lasthop_sim::runs::record(&cell.scenario, seed, &mut Nothing))
        .collect();
    let longest = recorded.iter().map(end).fold(0.0, f64::max);
    for (cell, recording) in results.cells.iter().zip(&recorded) {
        let Some(series) = recording.series.first() else { continue };
        let who = match cell.labels.first().map(String::as_str) {
            Some("none") => "TCP Reno, a base station that only forwards".to_owned(),
            Some("snoop") => "TCP Reno, a base station with snoop".to_owned(),
            _ => results.title(cell),
        };
        let _ = writeln!(text, "{}", style::heading(&who));
        text += &picture(series, longest);
        let _ = writeln!(text, "{}\n", style::dim(&summary(recording)));
    }
    let runs = results.cells.first().map_or(0, |cell| cell.runs.len() as u64);
    text + &style::paragraph(&format!(
        "Both pictures are of seed {seed}: of {}, the nearest to the medians.",
        plural(runs, "seed")
    )) + "\n\n"
}

/// The seed whose runs are nearest to the median throughput of each cell.
fn typical_seed(results: &Results) -> Option<u64> {
    let rates = |cell: &CellResults| -> Vec<f64> {
        cell.runs.iter().map(|run| run.metrics.aggregate_throughput).collect()
    };
    let cells: Vec<Vec<f64>> = results.cells.iter().map(rates).collect();
    let median = |rates: &Vec<f64>| {
        let mut sorted = rates.clone();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied().unwrap_or_default()
    };
    let medians: Vec<f64> = cells.iter().map(median).collect();
    let distance = |i: usize| -> f64 {
        let of = |(rates, median): (&Vec<f64>, &f64)| Some((rates.get(i)? / median - 1.0).abs());
        cells.iter().zip(&medians).filter_map(of).sum()
    };
    let runs = &results.cells.first()?.runs;
    let nearest = (0..runs.len()).min_by(|a, b| distance(*a).total_cmp(&distance(*b)))?;
    Some(runs[nearest].seed)
}

/// Text below the table.
pub fn moral(results: &Results) -> String {
    let rate = |cell: &CellResults| cell.mean("throughput").map(|s| s.mean);
    let mut text = String::new();
    if let [plain, helped] = results.cells.as_slice()
        && let (Some(plain), Some(helped)) = (rate(plain), rate(helped))
        && plain > 0.0
    {
        let moral = format!(
            "snoop caches the packets that it forwards, retransmits lost ones over the radio at\n\
             once, and hides the duplicate ACKs from the server. Same TCP, {:.1} times as fast.",
            helped / plain
        );
        let _ = writeln!(text, "{}\n", style::paragraph(&moral));
    }
    text + "Next:\n  \
     lasthop run west97-lan -o out     a published testbed; traces, plots, a page\n  \
     lasthop reproduce west97          that paper's results and ours\n  \
     lasthop list scenarios            more scenarios to start from\n"
}

fn end(recording: &Recording) -> f64 {
    recording.series.first().map_or(0.0, |series| series.end_s)
}

fn summary(recording: &Recording) -> String {
    let metrics = &recording.result.metrics;
    let sum = |of: fn(&lasthop_observe::metrics::FlowMetrics) -> u64| metrics.sum(of);
    let mut text = format!(
        "  {:.1} s, {}, {} lost, {}",
        end(recording),
        in_mbit(metrics.aggregate_throughput),
        plural(lost(recording), "packet"),
        plural(sum(|f| f.timeouts), "timeout"),
    );
    let local = sum(|f| f.local_retransmissions());
    if local > 0 {
        let _ = write!(text, ", {local} resent locally");
    }
    let stalled: f64 = metrics.flows.iter().map(|f| f.stall_time_s).sum();
    if stalled > 0.0 {
        let _ = write!(text, ", {stalled:.1} s of silence");
    }
    text
}

fn lost(recording: &Recording) -> u64 {
    recording.series.iter().map(|series| series.lost.len() as u64).sum()
}

/// Plot of acknowledged bytes over time, with a line of marks for timeouts below.
fn picture(series: &Series, longest: f64) -> String {
    let highest = series.acked.iter().map(|(_, to)| *to).max().unwrap_or(0).max(1) as f64;
    let place = |at: f64, to: u64| (at / longest, to as f64 / highest);
    let columns = style::room(COLUMNS + LABELS) - LABELS;
    let mut dots = Dots::new(columns, ROWS);
    let mut last = (0.0, 0.0);
    for &(at, to) in &series.acked {
        let (x, y) = place(at, to);
        // A step function like the ACKs.
        dots.line(last, (x, last.1));
        dots.line((x, last.1), (x, y));
        last = (x, y);
    }
    let mut marks = vec![' '; columns];
    for at in &series.timeouts {
        marks[dots.column((at / longest).clamp(0.0, 1.0))] = '×';
    }
    let mut text = String::new();
    for (i, line) in dots.lines().enumerate() {
        let label = match i {
            0 => format!("{:.0} KiB", highest / KIB),
            i if i + 1 == ROWS => "0".to_owned(),
            _ => String::new(),
        };
        let blank = line.trim_end_matches('\u{2800}');
        let _ = writeln!(text, "{label:>8} │{}", style::good(blank));
    }
    let mut axis: Vec<char> = vec!['─'; columns];
    let seconds = longest as usize;
    let mut words = vec![' '; columns + 8];
    // Labels are at least five columns apart.
    let step = (seconds / 6).max(5 * seconds / columns.max(1) + 1);
    for second in (0..=seconds).step_by(step) {
        let column = dots.column(second as f64 / longest);
        axis[column] = if second == 0 { '─' } else { '┴' };
        let word = if second == 0 { "0 s".to_owned() } else { second.to_string() };
        for (i, c) in word.chars().enumerate() {
            words[column + i] = c;
        }
    }
    let marks: String = marks.into_iter().collect();
    if marks.contains('×') {
        let _ = writeln!(text, "{:>8} │{}", "timer", style::bad(marks.trim_end()));
    }
    let axis: String = axis.into_iter().collect();
    let words: String = words.into_iter().collect();
    let _ = writeln!(text, "{:>8} └{axis}\n{:>8}  {}", "", "", words.trim_end());
    text
}
