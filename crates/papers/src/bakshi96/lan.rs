//! Figures 10 and 11 (5.2): the local-area network.

use lasthop_report::model::Measured;
use lasthop_report::plot::LineChart;
use lasthop_trace::stats::Summary;

use super::recovery::{BACKOFFS, given_up, sensitivity};
use super::{LAN, Scheme, bound, figure, kbps, line, sent_again};
use crate::bench::{Bench, Interrupted, Runs};
use crate::finding::{Finding, short};

/// Mean bad periods in ms (5.2: 400 ms to 1.6 s).
const BAD_MS: [u32; 4] = [400, 800, 1200, 1600];

/// The runs over the local-area network with a mean bad period, and `more` set.
pub(super) fn runs(
    bench: &mut Bench<'_>,
    scheme: Scheme,
    bad_ms: u32,
    more: &[&str],
) -> Result<Runs, Interrupted> {
    let bad = format!("errors.bad={bad_ms}ms");
    bench.runs(LAN, &[&[bad.as_str()], scheme.changes(), more].concat())
}

/// Throughput in Mb/s.
fn mbps(m: &lasthop_trace::metrics::RunMetrics) -> f64 {
    kbps(m) / 1000.0
}

/// Figures 10 and 11.
pub fn f10(bench: &mut Bench<'_>) -> Result<Finding, Interrupted> {
    let mut finding = Finding::new(bench.seeds);
    let schemes = [Scheme::Basic, Scheme::Ebsn, Scheme::Recovery];
    let mut all: Vec<Vec<Runs>> = Vec::new();
    for scheme in schemes {
        let mut row = Vec::new();
        for bad in BAD_MS {
            row.push(runs(bench, scheme, bad, &[])?);
        }
        all.push(row);
    }
    let gain =
        |i: usize| 100.0 * (all[1][i].summary(mbps).mean / all[0][i].summary(mbps).mean - 1.0);
    for (i, bad) in BAD_MS.into_iter().enumerate() {
        for (scheme, row) in schemes.iter().zip(&all).take(2) {
            let label = format!("{}, bad {bad} ms", scheme.name());
            finding.measured.push(Measured::new(label, &row[i].summary(mbps), "Mb/s", None));
        }
        finding.measured.push(Measured::new(
            format!("EBSN time-outs, bad {bad} ms"),
            &all[1][i].timeouts(),
            "per run",
            Some(0.0),
        ));
    }
    let best = (0..BAD_MS.len()).max_by(|a, b| gain(*a).total_cmp(&gain(*b))).unwrap_or(0);
    finding.within(
        &format!("EBSN's largest gain over basic TCP in % (bad {} ms)", BAD_MS[best]),
        gain(best),
        25.0,
        80.0,
    );
    for (i, bad) in BAD_MS.into_iter().enumerate() {
        let timeouts = all[1][i].timeouts().mean;
        finding.below(&format!("EBSN's time-outs per run with bad {bad} ms"), timeouts, 0.2);
    }
    let worst = BAD_MS.len() - 1;
    let basic = all[0][worst].summary(mbps).mean;
    let mut any_backoff: f64 = 0.0;
    for (_, more) in BACKOFFS {
        any_backoff = any_backoff.max(runs(bench, Scheme::Ebsn, 1600, more)?.summary(mbps).mean);
    }
    finding.note(format!(
        "little is left to gain: at 1.6 s basic TCP itself reaches {} % of the bound, and EBSN with the best back-off of \
         the table is {} % above it",
        short(100.0 * basic / bound(2.0, 4.0, 1.6)),
        short(100.0 * (any_backoff / basic - 1.0))
    ));
    finding.note(format!(
        "EBSN's time-outs come between two attempts, which lie further apart at times than the time-out lasts (the \
         paper's footnote 1 has this case); with back-offs of at most 0.1 s they nearly vanish, and more packets are \
         given up. As assumed, {} packets a run are given up at 1.6 s, and the source sends {} KB of 4096 again",
        short(given_up(&all[1][worst]).mean),
        short(all[1][worst].summary(sent_again).mean)
    ));
    finding.tables.push(sensitivity(
        "EBSN with bad periods of 1.6 s by the back-off",
        "Mb/s",
        1000.0,
        |more| runs(bench, Scheme::Ebsn, 1600, more),
    )?);
    let chart = |title: &str, y_label: &str, of: &dyn Fn(&Runs) -> Summary, with_bound: bool| {
        let at = |i: usize| f64::from(BAD_MS[i]) / 1000.0;
        let mut series: Vec<_> = schemes
            .iter()
            .zip(&all)
            .map(|(scheme, row)| {
                line(scheme.name(), row.iter().enumerate().map(|(i, runs)| (at(i), of(runs))))
            })
            .collect();
        if with_bound {
            let bounds = (0..BAD_MS.len()).map(|i| (at(i), Summary::of(&[bound(2.0, 4.0, at(i))])));
            series.push(line("bound of 5.2", bounds));
        }
        let chart = LineChart {
            title: title.to_owned(),
            x_label: "mean bad period (s)".to_owned(),
            y_label: y_label.to_owned(),
            log_x: false,
            series,
        };
        figure(
            &chart.plot(),
            title,
            "4 MB, packets of 1536 bytes; bands are 95 % confidence intervals.",
        )
    };
    let throughput = |runs: &Runs| runs.summary(mbps);
    let again = |runs: &Runs| runs.summary(sent_again);
    let figures = [
        chart("Figure 10: local area", "throughput (Mb/s)", &throughput, true),
        chart("Figure 11: sent again by the source, local area", "sent again (KB)", &again, false),
    ];
    finding.figures.extend(figures);
    Ok(finding)
}
