//! Figures 10 and 11 (5.2): the local-area network.

use lasthop_report::model::Figure;

use super::averages::Averaging;
use super::setup::{LAN, RT_MAX, Scheme, bound, sent_again};
use crate::figure::{Axes, curves, line, published_line};
use crate::{Bench, Estimate, Finding, Interrupted, Runs, short};

/// Mean bad periods in ms (5.2: 400 ms to 1.6 s).
pub(super) const BAD_MS: [u32; 4] = [400, 800, 1200, 1600];
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
    of: impl Fn(&Runs) -> Estimate,
    with_bound: bool,
) -> Figure {
    let at = BAD_MS.map(|bad| f64::from(bad) / 1000.0);
    let of_scheme = |(scheme, row): (&Scheme, &Vec<Runs>)| {
        line(scheme.name(), at.into_iter().zip(row.iter().map(&of)))
    };
    let mut series: Vec<_> = SCHEMES.iter().zip(all).map(of_scheme).collect();
    let mut caption =
        "4 MB, packets of 1536 bytes; bands are 95 % confidence intervals.".to_owned();
    if with_bound {
        series.push(line("bound of 5.2", at.map(|bad| (bad, bound_lan(bad)))));
        // "About 50 %" for some of the periods: drawn above basic TCP at each.
        let half = at.into_iter().zip(all[0].iter().map(|runs| 1.5 * of(runs).value));
        series.push(published_line("published: basic TCP + 50 %".to_owned(), half));
        caption += " Rings are 50 % above basic TCP, which the paper has for some periods.";
    }
    let axes = Axes { x: "mean bad period (s)", y, log_x: false };
    curves(title, axes, series, &caption)
}

/// Figures 10 and 11.
pub(super) fn f10(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let averaging = Averaging::of(bench);
    let rate = |runs: &Runs| averaging.rate(runs).scaled(0.001);
    let schemes = if bench.is_shown() { &SCHEMES[..] } else { &SCHEMES[..2] };
    let mut all: Vec<Vec<Runs>> = Vec::new();
    for scheme in schemes {
        let row = BAD_MS.into_iter().map(|bad| runs(bench, *scheme, bad, &[]));
        all.push(row.collect::<Result<_, _>>()?);
    }
    let [basic, ebsn] = [&all[0], &all[1]];
    let gain =
        |i: usize| averaging.estimate(&[&ebsn[i], &basic[i]], |m| 100.0 * (m[0] / m[1] - 1.0));
    for (i, bad) in BAD_MS.into_iter().enumerate() {
        finding.measure(format!("basic TCP, bad {bad} ms"), rate(&basic[i]), "Mb/s");
        finding.measure(format!("EBSN, bad {bad} ms"), rate(&ebsn[i]), "Mb/s");
        let label = format!("EBSN timeouts, bad {bad} ms");
        finding.compare(label, ebsn[i].timeouts(), "per run", 0.0);
    }
    let by_value = |a: &usize, b: &usize| gain(*a).value.total_cmp(&gain(*b).value);
    let best = (0..BAD_MS.len()).max_by(by_value).unwrap_or(0);
    let quantity = format!("EBSN's largest gain over basic TCP in % (bad {} ms)", BAD_MS[best]);
    finding.compare("largest gain over basic TCP", gain(best), "%", 50.0);
    finding.near(quantity, gain(best), 50.0, 0.15);
    for (i, bad) in BAD_MS.into_iter().enumerate() {
        finding.above(format!("bad {bad} ms: EBSN above basic TCP in %"), gain(i), 0.0);
        let quantity = format!("EBSN's timeouts per run with bad {bad} ms");
        finding.below(quantity, ebsn[i].timeouts(), 0.2);
        // Goodput of 100 % as printed, without a digit after the point.
        let goodput = ebsn[i].summary(|m| 100.0 * 4096.0 / (4096.0 + sent_again(m)));
        let quantity = format!("EBSN's goodput with bad {bad} ms in %");
        finding.require_bound(quantity, goodput, crate::Bound::AtLeast(99.5));
    }
    if !bench.is_shown() {
        return Ok(());
    }
    let last = BAD_MS.len() - 1;
    finding.note(format!(
        "at 1.6 s basic TCP itself reaches {} % of the bound",
        short(100.0 * rate(&basic[last]).value / bound_lan(1.6))
    ));
    let limits = ["local-recovery.backoff=50ms", "local-recovery.backoff-max=800ms"];
    for (reading, more) in
        [("the times of the wide area, 50 to 800 ms", &limits[..]), ("RT_max = 13", &[RT_MAX])]
    {
        let other = runs(bench, Scheme::Ebsn, 1600, more)?;
        let over = averaging.estimate(&[&other, &basic[last]], |m| 100.0 * (m[0] / m[1] - 1.0));
        finding.note(format!(
            "with {reading} EBSN is {} % above basic TCP at 1.6 s and has {} timeouts a run",
            short(over.value),
            short(other.timeouts().mean)
        ));
    }
    let title = "Figure 11: retransmitted by the source, local area";
    finding.figures.extend([
        chart(&all, "Figure 10: local area", "throughput (Mb/s)", rate, true),
        chart(&all, title, "retransmitted (KB)", |runs| runs.summary(sent_again).into(), false),
    ]);
    Ok(())
}
