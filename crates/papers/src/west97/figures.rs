//! Figures 9, 10, 12 and 13: time-sequence plots and what they show (4.4, 5.1).

use lasthop_report::model::{Figure, Measured};
use lasthop_report::plot::Plot;
use lasthop_report::plot::TimeSequence;
use lasthop_trace::stats::regression;

use super::{LAN, SINGLE, WAN, with};
use crate::bench::{Bench, Interrupted, KB, Runs};
use crate::finding::Finding;

/// A plot with words around it.
pub(super) fn figure(plot: &Plot, title: &str, caption: &str) -> Figure {
    Figure { svg: plot.inline(), title: title.to_owned(), caption: caption.to_owned() }
}

/// The time-sequence plot of one run.
fn sequence(
    bench: &Bench<'_>,
    text: &str,
    changes: &[&str],
    seed: u64,
    title: &str,
    caption: &str,
) -> Option<Figure> {
    let recording = bench.record(text, changes, seed);
    let series = recording.series.first()?;
    let plot = TimeSequence { title, series, part: None }.plot();
    Some(figure(&plot, title, caption))
}

/// The seed whose throughput is the `nth` best.
fn ranked(runs: &Runs, nth: usize) -> (u64, f64) {
    let mut order: Vec<(f64, u64)> =
        runs.all().iter().map(|r| (crate::bench::throughput(&r.metrics), r.seed)).collect();
    order.sort_by(|a, b| b.0.total_cmp(&a.0));
    let (throughput, seed) = order[nth.min(order.len() - 1)];
    (seed, throughput)
}

/// Figure 9: an ideal transfer is a straight line.
pub fn f9(bench: &mut Bench<'_>) -> Result<Finding, Interrupted> {
    let mut finding = Finding::new(1);
    let ideal = bench.runs(LAN, &[])?.throughput();
    let recording = bench.record(LAN, &[], 1);
    let points: Vec<(f64, f64)> = recording
        .series
        .first()
        .map(|s| s.sent.iter().map(|sent| (sent.at_s, sent.start as f64)).collect())
        .unwrap_or_default();
    let line = regression(&points);
    let (r2, slope) = line.map_or((f64::NAN, f64::NAN), |l| (l.r2, l.slope / KB));
    let single = |label: &str, mean: f64, unit: &str, published| Measured {
        label: label.to_owned(),
        mean,
        ci: 0.0,
        unit: unit.to_owned(),
        published,
    };
    finding.measured.push(single("slope", slope, "KB/s", Some(200.0)));
    finding.measured.push(single("R^2", r2, "", None));
    finding.above("R^2 of sequence against time", r2, 0.999);
    finding.within("slope in KB/s", slope, ideal.mean * 0.95, ideal.mean * 1.05);
    finding.figures.extend(sequence(
        bench,
        LAN,
        &[],
        1,
        "Figure 9: error-free transfer",
        "Sequence against time at the sender; the slope is the throughput.",
    ));
    Ok(finding)
}

/// Figure 10: stalls account for nearly all that Reno loses.
pub fn f10(bench: &mut Bench<'_>) -> Result<Finding, Interrupted> {
    let mut finding = Finding::new(bench.seeds);
    let ideal = bench.runs(LAN, &[])?;
    let reno = bench.runs(LAN, &[SINGLE])?;
    let time = |runs: &Runs| runs.each(|m| m.flows.iter().map(|f| f.transfer_time_s).sum());
    let stalled = reno.each(|m| m.flows.iter().map(|f| f.stall_time_s).sum());
    let ideal_time = time(&ideal).iter().sum::<f64>() / f64::from(bench.seeds);
    let lost: Vec<f64> = time(&reno).iter().map(|t| t - ideal_time).collect();
    let share = stalled.iter().sum::<f64>() / lost.iter().sum::<f64>();
    let recoveries = reno.summary(|m| m.sum(|f| f.recoveries) as f64);
    let (best_seed, best) = ranked(&reno, 0);
    finding.measured.push(Measured {
        label: "stall time over time lost".to_owned(),
        mean: 100.0 * share,
        ci: 0.0,
        unit: "%".to_owned(),
        published: None,
    });
    finding.measured.push(Measured::new(
        "losses repaired by fast recovery",
        &recoveries,
        "per run",
        Some(30.0),
    ));
    finding.measured.push(Measured {
        label: "throughput of the best seed".to_owned(),
        mean: best,
        ci: 0.0,
        unit: "KB/s".to_owned(),
        published: Some(153.67),
    });
    finding.above("stall time over time lost", share, 0.8);
    finding.within("the best seed in KB/s", best, 140.0, 170.0);
    finding.figures.extend(sequence(
        bench,
        LAN,
        &[SINGLE],
        best_seed,
        "Figure 10: Reno, one error per 64 KB, the best of the seeds",
        "Flat parts are stalls: the window is too small for three duplicate ACKs, and the sender waits for \
         its timer.",
    ));
    let (typical, _) = ranked(&reno, reno.all().len() / 2);
    finding.figures.extend(sequence(
        bench,
        LAN,
        &[SINGLE],
        typical,
        "The same, a typical seed",
        "The median of the seeds by throughput.",
    ));
    Ok(finding)
}

/// Losses and delays that other people's traffic causes (Figure 12).
const CONGESTED: [&str; 2] = ["cross.loss=0.44%", "cross.jitter=67ms"];

/// Figure 12: congestion alone, over the WAN.
pub fn f12(bench: &mut Bench<'_>) -> Result<Finding, Interrupted> {
    let mut finding = Finding::new(bench.seeds);
    let ideal = bench.runs(WAN, &[])?.throughput();
    let runs = bench.runs(WAN, &CONGESTED)?;
    let throughput = runs.throughput();
    finding.measured.push(Measured::new("without losses", &ideal, "KB/s", Some(61.0)));
    finding.measured.push(Measured::new("throughput", &throughput, "KB/s", Some(31.0)));
    finding.measured.push(Measured::new("timer expirations", &runs.timeouts(), "per run", None));
    finding.within("throughput in KB/s", throughput.mean, 25.0, 40.0);
    let (seed, _) = ranked(&runs, runs.all().len() / 2);
    finding.figures.extend(sequence(
        bench,
        WAN,
        &CONGESTED,
        seed,
        "Figure 12: WAN, congestion only",
        "A typical seed; crosses are packets that the gateway dropped.",
    ));
    Ok(finding)
}

/// Figure 13: congestion and wireless errors, over the WAN.
pub fn f13(bench: &mut Bench<'_>) -> Result<Finding, Interrupted> {
    let mut finding = Finding::new(bench.seeds);
    let congested = bench.runs(WAN, &CONGESTED)?.throughput();
    let changes = with(&CONGESTED, &[SINGLE]);
    let runs = bench.runs(WAN, &changes)?;
    let throughput = runs.throughput();
    let percent = 100.0 * throughput.mean / congested.mean;
    finding.measured.push(Measured::new("throughput", &throughput, "KB/s", Some(14.3)));
    finding.measured.push(Measured::new("timer expirations", &runs.timeouts(), "per run", None));
    finding.measured.push(Measured {
        label: "of the throughput without wireless errors".to_owned(),
        mean: percent,
        ci: 0.0,
        unit: "%".to_owned(),
        published: Some(100.0 * 14.3 / 31.0),
    });
    finding.within("percent of W-F12's throughput", percent, 35.0, 65.0);
    let (seed, _) = ranked(&runs, runs.all().len() / 2);
    finding.figures.extend(sequence(
        bench,
        WAN,
        &changes,
        seed,
        "Figure 13: WAN, congestion and wireless errors",
        "A typical seed.",
    ));
    Ok(finding)
}
