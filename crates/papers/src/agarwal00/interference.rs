//! Section 5.11: another node sends to the same receiver, without a pause or now and then.

use lasthop_proto::event::Cause;
use lasthop_report::model::{Column, Measured, Table};
use lasthop_report::plot::{Bar, BarChart, BarGroup, BarSeries};
use lasthop_trace::metrics::RunMetrics;
use lasthop_trace::stats::Summary;

use super::budget::{Draw, sensitivity};
use super::calibration::budgets;
use super::cases::{
    BY_TIME, Case, Changes, RTS, SACK_OFF, STAMPS_OFF, STOCK, USUAL, kbps, megabytes, minutes,
    retransmissions, run, seeds, shown,
};
use crate::bakshi96::figure;
use crate::bench::{Bench, Interrupted, Runs};
use crate::finding::{Finding, short};
use crate::west97::Experiment;

/// The experiment for the claim `id`.
pub(super) fn experiment(id: &str) -> Option<Experiment> {
    (id == "A-T5.1").then_some(table_5_1)
}

/// "Another node continuously sending data to the receiver": a TCP that sends whenever it may.
const CONTINUOUS: Changes = &[
    "horizon=300s",
    r#"transfer=[{ from = "sender", to = "receiver", bytes = "unlimited" }, { from = "node", to = "receiver", bytes = "unlimited", cross = true }]"#,
];
/// "About 5MB of data every 5 minutes".
const INTERMITTENT: Changes = &[
    "horizon=300s",
    r#"transfer=[{ from = "sender", to = "receiver", bytes = "unlimited" }, { from = "node", to = "receiver", bytes = "5MB", start = "60s", every = "300s", cross = true }]"#,
];

/// A row: RTS, SACK, who else sends; minutes and bytes as published.
struct Row {
    name: &'static str,
    rts: bool,
    sack: bool,
    continuous: bool,
    minutes: f64,
    bytes: f64,
}

const fn row(
    name: &'static str,
    (rts, sack, continuous): (bool, bool, bool),
    minutes: f64,
    bytes: f64,
) -> Row {
    Row { name, rts, sack, continuous, minutes, bytes }
}

/// Table 5.1, in its order.
const ROWS: [Row; 8] = [
    row("RTS on, SACK off, continuous", (true, false, true), 128.0, 2_970_847_921.0),
    row("RTS on, SACK on, continuous", (true, true, true), 132.0, 3_058_387_131.0),
    row("RTS off, SACK off, continuous", (false, false, true), 124.0, 3_811_377_004.0),
    row("RTS off, SACK on, continuous", (false, true, true), 117.0, 3_647_866_576.0),
    row("RTS off, SACK off, intermittent", (false, false, false), 106.0, 4_183_867_981.0),
    row("RTS off, SACK on, intermittent", (false, true, false), 109.0, 4_185_749_921.0),
    row("RTS on, SACK off, intermittent", (true, false, false), 111.0, 3_646_355_620.0),
    row("RTS on, SACK on, intermittent", (true, true, false), 112.0, 3_631_339_254.0),
];

impl Row {
    /// "All the modifications": but for SACK, which the table varies, those of 5.7 at an MTU of 1500.
    fn case(&self) -> Case {
        let sack = if self.sack { STOCK } else { SACK_OFF };
        let rts = if self.rts { RTS } else { STOCK };
        let others = if self.continuous { CONTINUOUS } else { INTERMITTENT };
        Case::new(USUAL, &[STAMPS_OFF, BY_TIME, sack, rts, others])
    }
}

/// Frames that met another, of all frames on the air, in percent.
fn collided(m: &RunMetrics) -> f64 {
    100.0 * m.air(|f| f.collided as f64) / m.air(|f| f.frames as f64)
}

/// Packets that medium access gave up, for a full battery of the sender.
fn given_up(m: &RunMetrics) -> f64 {
    let dropped: u64 = m.stages.iter().map(|s| s.dropped.get(Cause::RetryLimit)).sum();
    dropped as f64 * 60.0 * minutes("sender")(m) / m.end_s
}

/// What the other node gets through, in kB/s.
fn others(m: &RunMetrics) -> f64 {
    m.flows.iter().filter(|f| f.cross).map(|f| f.delivered as f64).sum::<f64>() / m.end_s / 1000.0
}

/// Table 5.1.
fn table_5_1(bench: &mut Bench<'_>) -> Result<Finding, Interrupted> {
    let mut finding = Finding::new(seeds(bench));
    let cases: Vec<Case> = ROWS.iter().map(Row::case).collect();
    let runs = run(bench, &cases)?;
    let mut rows = Vec::new();
    let mut groups = Vec::new();
    let mut measured: Vec<(Summary, Summary)> = Vec::new();
    for (row, runs) in ROWS.iter().zip(&runs) {
        let (life, bytes) = (runs.summary(minutes("sender")), runs.summary(megabytes("sender")));
        let off = 100.0 * (bytes.mean * 1e6 / row.bytes - 1.0);
        finding.measured.push(Measured::new(
            format!("{}: minutes", row.name),
            &life,
            "min",
            Some(row.minutes),
        ));
        finding.measured.push(Measured::new(
            format!("{}: sent", row.name),
            &bytes,
            "MB",
            Some(row.bytes / 1e6),
        ));
        finding.within(
            &format!("{}: bytes beside those published in %", row.name),
            off,
            -35.0,
            35.0,
        );
        rows.push(vec![
            row.name.to_owned(),
            shown(&life),
            short(row.minutes),
            shown(&bytes),
            short(row.bytes / 1e6),
            shown(&runs.summary(kbps)),
            shown(&runs.summary(others)),
            shown(&runs.summary(collided)),
            shown(&runs.summary(given_up)),
            shown(&runs.summary(retransmissions)),
        ]);
        groups.push(BarGroup {
            label: row.name.to_owned(),
            bars: vec![
                Some(Bar { value: bytes.mean, ci: bytes.ci95 }),
                Some(Bar { value: row.bytes / 1e6, ci: 0.0 }),
            ],
        });
        measured.push((life, bytes));
    }
    let find = |rts, sack, continuous| {
        let at = ROWS.iter().position(|r| (r.rts, r.sack, r.continuous) == (rts, sack, continuous));
        at.map_or((f64::NAN, f64::NAN), |i| (measured[i].0.mean, measured[i].1.mean))
    };
    let word = |on| if on { "on" } else { "off" };
    for (rts, sack) in [(true, false), (true, true), (false, false), (false, true)] {
        let (all, some) = (find(rts, sack, true), find(rts, sack, false));
        let which = format!("RTS {}, SACK {}", word(rts), word(sack));
        finding.require(
            all.0 > some.0,
            format!(
                "{which}: life is longer with continuous interference ({} min against {})",
                short(all.0),
                short(some.0)
            ),
        );
        finding.require(
            all.1 < some.1,
            format!(
                "{which}: fewer bytes with continuous interference ({} MB against {})",
                short(all.1),
                short(some.1)
            ),
        );
    }
    for (sack, continuous) in [(false, true), (true, true), (false, false), (true, false)] {
        let (with, without) = (find(true, sack, continuous).1, find(false, sack, continuous).1);
        let kind = if continuous { "continuous" } else { "intermittent" };
        finding.require(
            with < without,
            format!(
                "SACK {}, {kind}: RTS lowers bytes ({} MB against {})",
                word(sack),
                short(with),
                short(without)
            ),
        );
    }
    let title = "Table 5.1: interfering traffic, measured beside published";
    finding.tables.push(Table {
        title: title.to_owned(),
        columns: vec![
            Column::text("case"),
            Column::number("minutes"),
            Column::number("published"),
            Column::number("MB"),
            Column::number("published"),
            Column::number("kB/s"),
            Column::number("the other node's kB/s"),
            Column::number("% of frames collided"),
            Column::number("packets given up by 802.11"),
            Column::number("sent again by TCP"),
        ],
        rows,
    });
    let series = |name: &str, published| BarSeries { name: name.to_owned(), published };
    let bars = BarChart {
        title: title.to_owned(),
        y_label: "megabytes per battery".to_owned(),
        series: vec![series("measured", false), series("published", true)],
        groups,
    };
    finding.figures.push(figure(&bars.plot(), title, "Published values stand behind in grey."));
    let draws: Vec<Draw> = runs.iter().map(|runs| Draw::of(runs, "sender")).collect();
    let budgets = budgets(bench)?;
    let columns: Vec<String> = ROWS.iter().map(|r| format!("MB: {}", r.name)).collect();
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    sensitivity(&mut finding, &budgets, &columns, |budget| {
        draws.iter().map(|d| budget.megabytes(*d)).collect()
    });
    note(&mut finding, &runs);
    Ok(finding)
}

fn note(finding: &mut Finding, runs: &[Runs]) {
    let share = |runs: &Runs| {
        let (own, other) = (runs.summary(kbps).mean, runs.summary(others).mean);
        100.0 * own / (own + other)
    };
    let shares: Vec<String> = ROWS
        .iter()
        .zip(runs)
        .filter(|(row, _)| row.continuous)
        .map(|(row, runs)| format!("{}: {:.0} %", row.name, share(runs)))
        .collect();
    finding.note(format!(
        "Beside a node that always sends, the sender gets this share of what the receiver gets: {}",
        shares.join("; ")
    ));
}
