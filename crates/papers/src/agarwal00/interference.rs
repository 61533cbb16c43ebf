//! Section 5.11: another node sends to the same receiver, continuously or intermittently.

use lasthop_observe::metrics::RunMetrics;

use super::budget::{Draw, sensitivity};
use super::cases::{
    BY_TIME, Case, Changes, RTS, SACK_OFF, STAMPS_OFF, STOCK, USUAL, given_up, kbps, megabytes,
    minutes, retransmissions, run, seeds,
};
use crate::figure::{bar, bars, published_bar};
use crate::table::{row, table};
use crate::{Bench, Estimate, Finding, Interrupted, Runs};

/// "Another node continuously sending data to the receiver": a TCP with unlimited data.
const CONTINUOUS: Changes = &[
    "horizon=300s",
    "transfer=[{ from = 'sender', to = 'receiver', bytes = 'unlimited' }, \
     { from = 'node', to = 'receiver', bytes = 'unlimited', cross = true }]",
];
/// "About 5MB of data every 5 minutes".
const INTERMITTENT: Changes = &[
    "horizon=300s",
    "transfer=[{ from = 'sender', to = 'receiver', bytes = 'unlimited' }, \
     { from = 'node', to = 'receiver', bytes = '5MB', start = '60s', every = '300s', cross = true }]",
];

/// A row of Table 5.1: RTS, SACK, continuous or intermittent interference; minutes and bytes as published.
struct Row {
    rts: bool,
    sack: bool,
    continuous: bool,
    minutes: f64,
    bytes: f64,
}

const fn of(rts: bool, sack: bool, continuous: bool, minutes: f64, bytes: f64) -> Row {
    Row { rts, sack, continuous, minutes, bytes }
}

/// Table 5.1, in its order.
const ROWS: [Row; 8] = [
    of(true, false, true, 128.0, 2_970_847_921.0),
    of(true, true, true, 132.0, 3_058_387_131.0),
    of(false, false, true, 124.0, 3_811_377_004.0),
    of(false, true, true, 117.0, 3_647_866_576.0),
    of(false, false, false, 106.0, 4_183_867_981.0),
    of(false, true, false, 109.0, 4_185_749_921.0),
    of(true, false, false, 111.0, 3_646_355_620.0),
    of(true, true, false, 112.0, 3_631_339_254.0),
];

fn on_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

fn how_often(continuous: bool) -> &'static str {
    if continuous { "continuous" } else { "intermittent" }
}

impl Row {
    fn name(&self) -> String {
        let (rts, sack) = (on_off(self.rts), on_off(self.sack));
        format!("RTS {rts}, SACK {sack}, {}", how_often(self.continuous))
    }

    /// "All the modifications": those of 5.7 at an MTU of 1500, except SACK, which the table varies.
    fn case(&self) -> Case {
        let sack = if self.sack { STOCK } else { SACK_OFF };
        let rts = if self.rts { RTS } else { STOCK };
        let others = if self.continuous { CONTINUOUS } else { INTERMITTENT };
        Case::new(USUAL, &[STAMPS_OFF, BY_TIME, sack, rts, others])
    }
}

/// The cases of Table 5.1.
pub(super) fn cases() -> [Case; ROWS.len()] {
    ROWS.each_ref().map(Row::case)
}

/// Collided frames as a percentage of all frames on the air.
fn collided(m: &RunMetrics) -> f64 {
    100.0 * m.air(|f| f.collided as f64) / m.air(|f| f.frames as f64)
}

/// Goodput of the other node, in kB/s.
fn others(m: &RunMetrics) -> f64 {
    m.flows.iter().filter(|f| f.cross).map(|f| f.delivered as f64).sum::<f64>() / m.end_s / 1000.0
}

/// Table 5.1.
pub(super) fn table_5_1(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    finding.runs = seeds(bench);
    let runs = run(bench, &cases())?;
    let title = "Table 5.1: interfering traffic, measured and published";
    let mut rows = table(
        title,
        "<case | minutes | published | MB | published | kB/s | the other node's kB/s | % of frames collided | \
         packets given up by 802.11 | retransmitted by TCP",
    );
    let mut groups = Vec::new();
    for (of, runs) in ROWS.iter().zip(&runs) {
        let (life, bytes) = (runs.summary(minutes("sender")), runs.summary(megabytes("sender")));
        let (name, published) = (of.name(), of.bytes / 1e6);
        finding.compare(format!("{name}: minutes"), life, "min", of.minutes);
        finding.compare(format!("{name}: sent"), bytes, "MB", published);
        let times = Estimate::from(bytes).scaled(1.0 / published);
        finding.within(format!("{name}: bytes over those published"), times, 0.85, 1.15);
        let times = Estimate::from(life).scaled(1.0 / of.minutes);
        finding.within(format!("{name}: minutes over those published"), times, 0.85, 1.15);
        rows.rows.push(row(&[
            &name,
            &life,
            &of.minutes,
            &bytes,
            &published,
            &runs.summary(kbps),
            &runs.summary(others),
            &runs.summary(collided),
            &runs.summary(given_up),
            &runs.summary(retransmissions),
        ]));
        groups.push((name, vec![bar(bytes), published_bar(published)]));
    }
    finding.tables.push(rows);
    let series = [("measured", false), ("published", true)];
    let caption = "Grey bars are published.";
    finding.figures.push(bars(title, "megabytes per battery", series, groups, caption));
    compare(finding, &runs);
    let draws = runs.each_ref().map(|runs| Draw::of(runs, "sender"));
    let columns = ROWS.each_ref().map(|row| format!("MB: {}", row.name())).join(" | ");
    sensitivity(bench, finding, &columns, |budget| draws.map(|d| budget.megabytes(d)).to_vec())?;
    note(finding, &runs);
    Ok(())
}

/// Effects of continuous interference and of RTS on minutes and bytes.
fn compare(finding: &mut Finding, runs: &[Runs]) {
    let nothing = Vec::new();
    let find = |rts, sack, continuous| {
        ROWS.iter().position(|r| (r.rts, r.sack, r.continuous) == (rts, sack, continuous))
    };
    let mut order = |quantity: String, more: Option<usize>, less: Option<usize>, in_life: bool| {
        let each = |i: Option<usize>| match (i.map(|i| &runs[i]), in_life) {
            (Some(runs), true) => runs.each(minutes("sender")),
            (Some(runs), false) => runs.each(megabytes("sender")),
            (None, _) => nothing.clone(),
        };
        // Two options on the SYN make a difference of 0.000004 %, which no table could show.
        finding.above(quantity, Estimate::percent_above(&each(more), &each(less)), 0.1);
    };
    for (rts, sack) in [(true, false), (true, true), (false, false), (false, true)] {
        let (all, some) = (find(rts, sack, true), find(rts, sack, false));
        let which = format!("RTS {}, SACK {}", on_off(rts), on_off(sack));
        order(format!("{which}: life longer with continuous interference, %,"), all, some, true);
        order(format!("{which}: more bytes with intermittent interference, %,"), some, all, false);
    }
    for (sack, continuous) in [(false, true), (true, true), (false, false), (true, false)] {
        let (with, without) = (find(true, sack, continuous), find(false, sack, continuous));
        let which = format!("SACK {}, {}", on_off(sack), how_often(continuous));
        order(format!("{which}: more bytes without RTS, %,"), without, with, false);
    }
    // "A significant difference between SACK on and off" without RTS, with continuous traffic.
    let (on, off) = (find(false, true, true), find(false, false, true));
    order("RTS off, continuous: more bytes with SACK off, %,".to_owned(), off, on, false);
}

fn note(finding: &mut Finding, runs: &[Runs]) {
    let share = |runs: &Runs| {
        let (own, other) = (runs.mean(kbps), runs.mean(others));
        100.0 * own / (own + other)
    };
    let shares: Vec<String> = ROWS
        .iter()
        .zip(runs)
        .filter(|(row, _)| row.continuous)
        .map(|(row, runs)| format!("{}: {:.0} %", row.name(), share(runs)))
        .collect();
    finding.note(format!(
        "Next to a node that always sends, the sender gets this share of what the receiver gets: {}",
        shares.join("; ")
    ));
    let lost: f64 = runs.iter().map(|runs| runs.mean(retransmissions)).sum();
    if lost == 0.0 {
        finding.note(
            "No packet was lost in any row: collisions cost 802.11 an attempt each and never all seven, so SACK on and \
             off are the same but for two options on the SYN",
        );
    }
}
