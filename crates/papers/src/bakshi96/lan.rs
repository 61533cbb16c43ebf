//! Figures 10 and 11 (5.2): the local-area network.

use lasthop_report::model::Figure;
use lasthop_trace::metrics::RunMetrics;
use lasthop_trace::stats::Summary;

use super::recovery::{BACKOFFS, given_up, sensitivity};
use super::{CLAIM, LAN, Scheme, bound, sent_again};
use crate::figure::{Axes, line, lines};
use crate::measure::kbps;
use crate::{Bench, Claim, Finding, Interrupted, Runs, short};

/// Mean bad periods in ms (5.2: 400 ms to 1.6 s).
const BAD_MS: [u32; 4] = [400, 800, 1200, 1600];
const SCHEMES: [Scheme; 3] = [Scheme::Basic, Scheme::Ebsn, Scheme::Recovery];

/// The runs over the local-area network with a mean bad period and the settings `more`.
pub(super) fn runs(
    bench: &mut Bench<'_>,
    scheme: Scheme,
    bad_ms: u32,
    more: &[&str],
) -> Result<Runs, Interrupted> {
    let bad = format!("errors.bad={bad_ms}ms");
    bench.runs(LAN, &[&[bad.as_str()], scheme.changes(), more].concat())
}

/// The bound of 5.2 in Mb/s, for a mean bad period in seconds.
fn bound_lan(bad_s: f64) -> f64 {
    bound(2.0, 4.0, bad_s)
}

/// A chart over the mean bad period: a figure of the runs of each scheme, with the bound if there is one.
fn chart(
    all: &[Vec<Runs>],
    title: &str,
    y: &str,
    of: impl Fn(&RunMetrics) -> f64,
    with_bound: bool,
) -> Figure {
    let at = BAD_MS.map(|bad| f64::from(bad) / 1000.0);
    let of_scheme = |(scheme, row): (&Scheme, &Vec<Runs>)| {
        line(scheme.name(), at.into_iter().zip(row.iter().map(|runs| runs.summary(&of))))
    };
    let mut series: Vec<_> = SCHEMES.iter().zip(all).map(of_scheme).collect();
    if with_bound {
        series.push(line("bound of 5.2", at.map(|bad| (bad, Summary::of(&[bound_lan(bad)])))));
    }
    let axes = Axes { x: "mean bad period (s)", y, log_x: false };
    let caption = "4 MB, packets of 1536 bytes; bands are 95 % confidence intervals.";
    lines(title, axes, series, caption)
}

pub(super) const F10: Claim = Claim {
    id: "B-F10",
    place: "5.2, Figures 10 and 11",
    setup: "LAN: 10 Mb/s + 2 Mb/s, 64 KB window, 1536 B, 4 MB, good 4 s, bad 0.4..1.6 s, no fragmentation",
    published: "EBSN up to about 50 % above basic TCP, zero source time-outs, goodput 100 %",
    cost: 60,
    run: Some(f10),
    ..CLAIM
};

/// Figures 10 and 11.
fn f10(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let mbps = |m: &RunMetrics| kbps(m) / 1000.0;
    let mut all: Vec<Vec<Runs>> = Vec::new();
    for scheme in SCHEMES {
        let row = BAD_MS.into_iter().map(|bad| runs(bench, scheme, bad, &[]));
        all.push(row.collect::<Result<_, _>>()?);
    }
    let [basic, ebsn] = [&all[0], &all[1]];
    let gain = |i: usize| 100.0 * (ebsn[i].mean(mbps) / basic[i].mean(mbps) - 1.0);
    for (i, bad) in BAD_MS.into_iter().enumerate() {
        finding.measure(format!("basic TCP, bad {bad} ms"), basic[i].summary(mbps), "Mb/s");
        finding.measure(format!("EBSN, bad {bad} ms"), ebsn[i].summary(mbps), "Mb/s");
        let label = format!("EBSN time-outs, bad {bad} ms");
        finding.compare(label, ebsn[i].timeouts(), "per run", 0.0);
    }
    let best = (0..BAD_MS.len()).max_by(|a, b| gain(*a).total_cmp(&gain(*b))).unwrap_or(0);
    let what = format!("EBSN's largest gain over basic TCP in % (bad {} ms)", BAD_MS[best]);
    finding.within(what, gain(best), 25.0, 80.0);
    for (runs, bad) in ebsn.iter().zip(BAD_MS) {
        let what = format!("EBSN's time-outs per run with bad {bad} ms");
        finding.below(what, runs.timeouts().mean, 0.2);
    }
    if !bench.is_shown() {
        return Ok(());
    }
    let (plain, worst) = (basic[BAD_MS.len() - 1].mean(mbps), &ebsn[BAD_MS.len() - 1]);
    let mut any_backoff: f64 = 0.0;
    for (_, more) in BACKOFFS {
        any_backoff = any_backoff.max(runs(bench, Scheme::Ebsn, 1600, more)?.mean(mbps));
    }
    finding.note(format!(
        "little is left to gain: at 1.6 s basic TCP itself reaches {} % of the bound, and EBSN with the best back-off \
         of the table is {} % above it",
        short(100.0 * plain / bound_lan(1.6)),
        short(100.0 * (any_backoff / plain - 1.0))
    ));
    finding.note(format!(
        "EBSN's time-outs come between two attempts, which lie further apart at times than the time-out lasts (the \
         paper's footnote 1 has this case); with back-offs of at most 0.1 s they nearly vanish, and more packets are \
         given up. As assumed, {} packets a run are given up at 1.6 s, and the source sends {} KB of 4096 again",
        short(given_up(worst).mean),
        short(worst.mean(sent_again))
    ));
    let title = "EBSN with bad periods of 1.6 s by the back-off";
    let table = sensitivity(title, "Mb/s", 1000.0, |more| runs(bench, Scheme::Ebsn, 1600, more))?;
    finding.tables.push(table);
    let title = "Figure 11: sent again by the source, local area";
    finding.figures.extend([
        chart(&all, "Figure 10: local area", "throughput (Mb/s)", mbps, true),
        chart(&all, title, "sent again (KB)", sent_again, false),
    ]);
    Ok(())
}
