//! A replay as text.

use lasthop_report::model::{Column, Table};
use lasthop_report::number::plural;
use lasthop_study::replay::{Comparison, Criterion, Order, Pattern, SentSegment};
use serde::Serialize;

use super::notes::{note, table};
use crate::style;

/// Legend of the table.
const NOTE: &str = "\
time: ours over the kernel's until half of the segments have been delivered.
equal: segments that both send in the same order before the first difference.
Then what each sends there: the segment (the first one is 0), why, and after how
many milliseconds.";

/// Result of a replay.
#[derive(Serialize, Debug)]
pub struct ReplayAnswer {
    /// The kernel's congestion control.
    pub kernel: String,
    /// The kernel's release.
    pub release: String,
    /// The name of lasthop's sender.
    pub ours: &'static str,
    /// Number of compared segments.
    pub segments: u32,
    /// Number of patterns without differences.
    pub equal: usize,
    /// Number of patterns of the command line.
    pub asked: usize,
    /// Runs left out because the base station was too slow.
    pub spoiled: usize,
    /// The result of each pattern.
    pub patterns: Vec<Comparison>,
}

impl ReplayAnswer {
    /// Adds one pattern.
    pub fn add(&mut self, pattern: &Pattern, kernel: &[Order], ours: &Order) {
        let kernel = (Criterion::of(&self.kernel), kernel);
        let compared = Comparison::new(pattern, kernel, ours, self.segments as usize);
        self.equal += usize::from(compared.is_equal());
        self.patterns.push(compared);
    }
}

/// The whole answer for a terminal.
pub fn text(answer: &ReplayAnswer) -> String {
    let rows = answer.patterns.iter().map(row);
    let columns = Column::list("<lost | time | equal | <the kernel | <ours");
    let over = match Criterion::of(&answer.kernel) {
        Criterion::Order => format!("over the first {}", plural(answer.segments.into(), "segment")),
        Criterion::Rate => format!("in time within {:.0} %", Criterion::TOLERANCE * 100.0),
    };
    let mut text = format!(
        "{} (Linux {}) compared with {}: {} of {} {over}\n\n{}\n\n{}\n",
        style::heading(&answer.kernel),
        answer.release,
        answer.ours,
        format_args!("equal in {}", answer.equal),
        plural(answer.patterns.len() as u64, "pattern"),
        table(&Table::new(columns, rows)),
        style::dim(&style::paragraph(NOTE)),
    );
    if answer.spoiled > 0 {
        let runs = plural(answer.spoiled as u64, "run");
        text += &note(&format!("{runs} left out: the machine was too busy to carry all frames"));
    }
    if answer.patterns.len() < answer.asked {
        text += &note(&format!("{} of {} patterns", answer.patterns.len(), answer.asked));
    }
    text
}

fn row(compared: &Comparison) -> Vec<String> {
    let equal = match compared.equal == compared.of {
        true => "all".to_owned(),
        false => compared.equal.to_string(),
    };
    let time = compared.time.map_or(String::new(), |time| format!("{time:.2}"));
    vec![lost(&compared.pattern), time, equal, sent(&compared.kernel), sent(&compared.ours)]
}

/// Lost packets, such as `3,8-10 ack 5`.
fn lost(pattern: &Pattern) -> String {
    let data = pattern.drop_data.replace(' ', "");
    match pattern.drop_acks.replace(' ', "") {
        acks if acks.is_empty() => data,
        acks => format!("{data} ack {acks}").trim().to_owned(),
    }
}

/// A sent segment, such as `29 again 81`.
fn sent(sent: &Option<SentSegment>) -> String {
    let Some(SentSegment { segment, cause, at_s }) = sent else { return String::new() };
    let why = match cause.as_str() {
        "data" => "new",
        "fast-retransmit" => "fast",
        "timeout-retransmit" => "timeout",
        "tail-loss-probe" => "probe",
        other => other,
    };
    let at = at_s.map_or(String::new(), |at| format!("{:.0}", at * 1000.0));
    format!("{segment} {why} {at}").trim().to_owned()
}
