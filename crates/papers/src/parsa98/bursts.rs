//! Burst losses and fading: Table 2, Figures 18 and 19 (5.3).

use lasthop_report::model::{Column, Measured, Table};
use lasthop_report::plot::TimeSequence;
use lasthop_trace::metrics::RunMetrics;

use super::TESTBED;
use super::cases::Protocol::{Snoop, SnoopMended, Tulip, Unaided};
use super::cases::{
    Window, case, chart, delay, delay_chart, deviation, figure, find, kbps, mean, run, shown,
    sweeps, table, timeouts,
};
use crate::bench::{Bench, Interrupted};
use crate::finding::Finding;

/// Bursts of so many data packets, one in every 64 KB on average, spread evenly. The handshake of medium access is
/// left alone, or no second packet of a burst would ever be sent (5.3.1).
pub(super) fn bursts(packets: u32) -> String {
    format!(
        r#"errors={{ model = "packet-bursts", packets = {packets}, mean = "64KiB", spacing = "uniform", on = ["data"], only = ["data"] }}"#
    )
}

/// A row of Table 2: throughput in kb/s, delay and its deviation in ms.
type Row = [f64; 3];

/// What was published for bursts of 2, 4 and 6 packets: TULIP, then snoop.
const TABLE: [(u32, Row, Row); 3] = [
    (2, [587.3, 540.0, 56.0], [562.6, 582.0, 60.0]),
    (4, [550.0, 579.0, 74.0], [527.6, 621.0, 84.0]),
    (6, [516.1, 618.0, 98.0], [496.4, 660.0, 114.0]),
];

/// Table 2 and Figure 18: bursts of data packets.
pub fn t2(bench: &mut Bench<'_>) -> Result<Finding, Interrupted> {
    let mut finding = Finding::new(bench.seeds);
    let mut rows = Table {
        title: "Table 2: bursts every 64 KB, window 42 KB (published in brackets)".to_owned(),
        columns: vec![
            Column::number("burst"),
            Column::text("protocol"),
            Column::number("kb/s"),
            Column::number("delay ms"),
            Column::number("deviation ms"),
            Column::number("TCP time-outs"),
        ],
        rows: Vec::new(),
    };
    for (packets, tulip, snoop) in TABLE {
        let mut reached = Vec::new();
        for (protocol, published) in [(Tulip, tulip), (Snoop, snoop)] {
            let runs = run(bench, protocol, Window::Large, &bursts(packets))?;
            let of: [fn(&RunMetrics) -> f64; 3] = [kbps, delay, deviation];
            let got = of.map(|of| runs.summary(of));
            let mut row = vec![packets.to_string(), protocol.name().to_owned()];
            row.extend(got.iter().zip(published).map(|(s, p)| format!("{} ({p})", shown(s))));
            row.push(shown(&runs.summary(timeouts)));
            rows.rows.push(row);
            let name = format!("{}, bursts of {packets}", protocol.name());
            for ((what, unit), (s, p)) in
                [("throughput", "kb/s"), ("delay", "ms"), ("deviation", "ms")]
                    .into_iter()
                    .zip(got.iter().zip(published))
            {
                finding.measured.push(Measured::new(format!("{name}, {what}"), s, unit, Some(p)));
            }
            for (what, i) in [("throughput in kb/s,", 0), ("delay in ms,", 1)] {
                let p = published[i];
                finding.within(&format!("{name}, {what}"), got[i].mean, 0.85 * p, 1.15 * p);
            }
            reached.push(got[0].mean);
        }
        let ahead = 100.0 * (reached[0] / reached[1] - 1.0);
        finding.within(
            &format!("bursts of {packets}: TULIP ahead of snoop in %,"),
            ahead,
            2.0,
            8.0,
        );
    }
    finding.tables.push(rows);
    for (protocol, part) in [(Tulip, "(a)"), (Snoop, "(b)")] {
        if bench.stopped() {
            return Err(Interrupted);
        }
        let changes = case(protocol, Window::Large, &bursts(6));
        let changes: Vec<&str> =
            changes.iter().map(String::as_str).chain(["horizon=10s"]).collect();
        let recording = bench.record(TESTBED, &changes, 1);
        let Some(series) = recording.series.first() else { continue };
        // The first burst and what follows.
        let first = series.lost.first().map_or(0.0, |l| l.at_s);
        let title = format!("Figure 18 {part}: a burst of six packets, {}", protocol.name());
        let part = Some(((first - 0.1).max(0.0), first + 0.5));
        let plot = TimeSequence { title: &title, series, part }.plot();
        finding.figures.push(figure(&plot, &title, "Seed 1, the first burst of the transfer."));
    }
    Ok(finding)
}

/// Error rates of the good state, in bits per million.
const GOOD: [f64; 6] = [0.01, 0.1, 1.0, 10.0, 30.0, 100.0];

/// A walker's channel (5.3.2): half of the bits are wrong while it is bad.
pub(super) fn fading(ppm: f64) -> String {
    format!(
        r#"errors={{ model = "two-state", speed = "2km/h", carrier = "2.4GHz", margin = "20dB", ber-good = "{ppm}e-6", ber-bad = 0.5 }}"#
    )
}

/// Figure 19: Markov fading at walking speed.
pub fn f19(bench: &mut Bench<'_>) -> Result<Finding, Interrupted> {
    let mut finding = Finding::new(bench.seeds);
    let sweeps =
        sweeps(bench, &[Tulip, Snoop, SnoopMended, Unaided], Window::Large, &GOOD, fading)?;
    let title = "Figure 19 (a): throughput with fading at 2 km/h";
    let plot = chart(&sweeps, kbps, "throughput, kb/s", true, title);
    finding.figures.push(figure(
        &plot,
        title,
        "The axis has the error rate of the good state. Bands are 95 % confidence intervals.",
    ));
    let title = "Figure 19 (b): packet delay with fading at 2 km/h";
    let plot = delay_chart(&sweeps.iter().collect::<Vec<_>>(), true, title);
    finding.figures.push(figure(&plot, title, "Whiskers are the standard deviation over packets."));
    finding.tables.push(table("Figure 19: error rates of the good state", &sweeps));
    let at = |protocol, rate| find(&sweeps, protocol).and_then(|s| s.at(rate));
    for rate in [0.01, 0.1, 1.0] {
        let ratio = mean(at(Snoop, rate), kbps) / mean(at(Tulip, rate), kbps);
        finding.within(
            &format!("{rate} per million: throughput of snoop over TULIP's"),
            ratio,
            0.9,
            1.1,
        );
    }
    let ratio = |rate| mean(at(Snoop, rate), kbps) / mean(at(Tulip, rate), kbps);
    let (low, high, top) = (ratio(1.0), ratio(30.0), ratio(100.0));
    finding.require(
        high < 0.95 * low && top < high,
        format!(
            "snoop over TULIP falls above 10 per million: {low:.2} at 1, {high:.2} at 30, {top:.2} at 100"
        ),
    );
    let mended = |rate| mean(at(SnoopMended, rate), kbps) / mean(at(Tulip, rate), kbps);
    finding.note(format!(
        "Snoop is the one with the fault, as the figures of experiment 3 call it; the mended one reaches {:.2} of TULIP's \
         throughput at 30 and {:.2} at 100 per million",
        mended(30.0),
        mended(100.0)
    ));
    let unaided = |rate| mean(at(Unaided, rate), kbps);
    finding.within(
        "unaided at 0.1 over unaided at 0.01 per million",
        unaided(0.1) / unaided(0.01),
        0.9,
        1.1,
    );
    finding.below(
        "unaided at 1 over unaided at 0.1 per million",
        unaided(1.0) / unaided(0.1),
        0.95,
    );
    finding.below("unaided at 10 over unaided at 1 per million", unaided(10.0) / unaided(1.0), 0.9);
    for (what, of) in [("delay", delay as fn(&RunMetrics) -> f64), ("deviation", deviation)] {
        let (tulip, snoop) = (mean(at(Tulip, 100.0), of), mean(at(Snoop, 100.0), of));
        finding.below(
            &format!("100 per million: {what} of TULIP over snoop's"),
            tulip / snoop,
            0.8,
        );
        for (name, value) in [("TULIP", tulip), ("snoop", snoop)] {
            finding.measured.push(Measured {
                label: format!("{name} at 100 per million, {what}"),
                mean: value,
                ci: 0.0,
                unit: "ms".to_owned(),
                published: None,
            });
        }
    }
    Ok(finding)
}
