//! Figures 9, 10, 12 and 13: time-sequence plots and their properties (4.4, 5.1).

use lasthop_observe::stats::{Summary, regression};

use super::setup::WAN;
use crate::figure;
use crate::measure::{KB, count, stall_time, throughput, transfer_time};
use crate::table::Cell;
use crate::testbed::{SINGLE, UNCHANGED, WEST97_LAN as LAN};
use crate::{Bench, Bound, Estimate, Finding, Interrupted, Runs};

/// Adds the time-sequence plot of one run.
fn sequence(
    bench: &Bench<'_>,
    finding: &mut Finding,
    (text, changes, seed): (&str, &[&str], u64),
    title: &str,
    caption: &str,
) {
    let recording = bench.record(text, changes, seed);
    let plot = |series| figure::sequence(title, series, None, caption);
    finding.figures.extend(recording.series.first().map(plot));
}

/// The seed with the `nth` highest throughput, and that throughput.
fn ranked(runs: &Runs, nth: usize) -> (u64, f64) {
    let mut order: Vec<(f64, u64)> =
        runs.all().iter().map(|r| (throughput(&r.metrics), r.seed)).collect();
    order.sort_by(|a, b| b.0.total_cmp(&a.0));
    let (throughput, seed) = order[nth.min(order.len() - 1)];
    (seed, throughput)
}

/// The median seed.
fn typical(runs: &Runs) -> u64 {
    ranked(runs, runs.all().len() / 2).0
}

/// Figure 9: an ideal transfer is a straight line.
pub(super) fn f9(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    finding.runs = 1;
    let ideal = bench.runs(LAN, UNCHANGED)?.throughput();
    let recording = bench.record(LAN, UNCHANGED, bench.first_seed);
    let points = recording.series.first().map(|s| s.sent.iter()).into_iter().flatten();
    let points: Vec<(f64, f64)> = points.map(|sent| (sent.at_s, sent.start as f64)).collect();
    let (r2, slope) = regression(&points).map_or((f64::NAN, f64::NAN), |l| (l.r2, l.slope / KB));
    finding.compare("slope", slope, "KB/s", 200.0);
    finding.measure("R^2", r2, "");
    finding.above("R^2 of sequence against time", r2, 0.999);
    finding.near("slope in KB/s", slope, ideal.mean, 0.05);
    sequence(
        bench,
        finding,
        (LAN, UNCHANGED, bench.first_seed),
        "Figure 9: error-free transfer",
        "Sequence against time at the sender; the slope is the throughput.",
    );
    Ok(())
}

/// Throughput of Figure 10, "unusually good", in KB/s.
const GOOD: f64 = 153.67;
/// Runs of about that throughput.
const AS_GOOD: core::ops::Range<f64> = 140.0..170.0;

/// Stall time over the time lost to errors, compared with an error-free transfer of `ideal_s`.
fn stalled(runs: &Runs, ideal_s: f64) -> Estimate {
    let (stalls, times) = (runs.each(stall_time), runs.each(transfer_time));
    Estimate::of(&[&stalls, &times], |m| m[0] / (m[1] - ideal_s))
}

/// Figure 10: stalls account for nearly all of Reno's loss of throughput.
pub(super) fn f10(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let ideal = bench.runs(LAN, UNCHANGED)?.mean(transfer_time);
    // Rare events need many runs.
    let reno = bench.with_many(|bench| bench.runs(LAN, &[SINGLE]))?;
    let share = stalled(&reno, ideal);
    finding.measure("stall time over time lost", share.scaled(100.0), "%");
    finding.above("stall time over time lost", share, 0.8);
    let throughputs = reno.each(throughput);
    let better = throughputs.iter().filter(|kb| **kb >= GOOD).count();
    let better = Estimate::share(better, throughputs.len());
    finding.measure(format!("runs with at least {GOOD} KB/s"), better, "%");
    finding.require_bound("runs with at least 153.67 KB/s, %,", better.value, Bound::Above(0.0));
    // Of the twenty runs of a table, at most one.
    finding.require_bound("runs with at least 153.67 KB/s, %,", better, Bound::AtMost(5.0));
    let recoveries = reno.each(count(|f| f.fast_retransmits));
    let as_good = throughputs.iter().zip(&recoveries).filter(|(kb, _)| AS_GOOD.contains(*kb));
    let as_good: Vec<f64> = as_good.map(|(_, recoveries)| *recoveries).collect();
    let label = "losses repaired by fast recovery in runs with 140 to 170 KB/s";
    let repaired = match as_good.len() {
        0 => Estimate::from(f64::NAN),
        _ => Estimate::from(Summary::of(&as_good)),
    };
    finding.compare(label, repaired, "per run", 30.0);
    // The published run is one: 30 are counted with a deviation of their square root.
    finding.within(label, repaired, 25.0, 35.0);
    let (best_seed, best) = ranked(&reno, 0);
    finding.compare("throughput of the best run", best, "KB/s", GOOD);
    sequence(
        bench,
        finding,
        (LAN, &[SINGLE], best_seed),
        "Figure 10: Reno, one error per 64 KB, the best of the seeds",
        "Crosses are lost packets.",
    );
    sequence(
        bench,
        finding,
        (LAN, &[SINGLE], typical(&reno)),
        "The same, a typical seed",
        "The median of the seeds by throughput. Flat parts are stalls: the window is too small for three duplicate \
         ACKs, and the sender waits for its timer.",
    );
    Ok(())
}

/// Losses and delays of cross traffic (Figure 12).
const CONGESTED: [&str; 2] = ["cross.loss=0.44%", "cross.jitter=67ms"];

/// The same share of losses in bursts, by the mean number of packets in one.
const BURSTS: [(&str, &str); 3] = [
    ("2", r#"internet.link.loss={ p = "0.221%", r = "50%" }"#),
    ("3", r#"internet.link.loss={ p = "0.147%", r = "33.3%" }"#),
    ("4", r#"internet.link.loss={ p = "0.110%", r = "25%" }"#),
];

/// Figure 12: congestion alone, over the WAN.
pub(super) fn f12(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let ideal = bench.runs(WAN, UNCHANGED)?.throughput();
    let runs = bench.runs(WAN, &CONGESTED)?;
    let throughput = runs.throughput();
    finding.compare("without losses", ideal, "KB/s", 61.0);
    finding.compare("throughput", throughput, "KB/s", 31.0);
    finding.measure("timeouts", runs.timeouts(), "per run");
    finding.near("throughput in KB/s", throughput, 31.0, 0.15);
    // "Mainly due to stalls": they are more than half of the time lost.
    let ideal_s = bench.runs(WAN, UNCHANGED)?.mean(transfer_time);
    let share = stalled(&runs, ideal_s);
    finding.measure("stall time over time lost", share.scaled(100.0), "%");
    finding.above("stall time over time lost", share, 0.5);
    for (mean, losses) in BURSTS {
        let changes = ["internet.link.impaired=left", losses, CONGESTED[1]];
        let bursts = bench.runs(WAN, &changes)?;
        finding.note(format!(
            "with losses in bursts of {mean} packets on average: {} KB/s, {} timeouts, stalls take {} % of the time lost",
            bursts.throughput().cell(),
            bursts.timeouts().cell(),
            stalled(&bursts, ideal_s).scaled(100.0).cell(),
        ));
    }
    sequence(
        bench,
        finding,
        (WAN, &CONGESTED, typical(&runs)),
        "Figure 12: WAN, congestion only",
        "A typical seed; crosses are packets that the gateway dropped.",
    );
    Ok(())
}

/// Figure 13: congestion and wireless errors, over the WAN.
pub(super) fn f13(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let congested = bench.runs(WAN, &CONGESTED)?;
    let changes = [&CONGESTED[..], &[SINGLE]].concat();
    let runs = bench.runs(WAN, &changes)?;
    let percent = runs.ratio(&congested, throughput).scaled(100.0);
    finding.compare("throughput", runs.throughput(), "KB/s", 14.3);
    finding.measure("timeouts", runs.timeouts(), "per run");
    let label = "of the throughput without wireless errors";
    let published = 100.0 * 14.3 / 31.0;
    finding.compare(label, percent, "%", published);
    finding.near("percent of W-F12's throughput", percent, published, 0.15);
    finding.near("throughput in KB/s", runs.throughput(), 14.3, 0.15);
    let ideal_s = bench.runs(WAN, UNCHANGED)?.mean(transfer_time);
    let share = stalled(&runs, ideal_s);
    finding.measure("stall time over time lost", share.scaled(100.0), "%");
    finding.above("stall time over time lost", share, 0.5);
    sequence(
        bench,
        finding,
        (WAN, &changes, typical(&runs)),
        "Figure 13: WAN, congestion and wireless errors",
        "A typical seed.",
    );
    Ok(())
}

/// 5.1: the windows that fill LAN and WAN. Nothing is random.
pub(super) fn windows(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    finding.runs = 1;
    let mut share = |text: &str, host: &str, bytes: u32| {
        let window = format!("host.{host}.recv-buffer={bytes}");
        let ideal = bench.alike(text, UNCHANGED)?.throughput();
        let limited = bench.alike(text, &[window.as_str()])?.throughput();
        Ok(100.0 * limited.mean / ideal.mean)
    };
    let two = share(LAN, "mobile", 2 * 1460)?;
    let (small, large) = (share(WAN, "fixed", 4096)?, share(WAN, "fixed", 8192)?);
    finding.measure("LAN, window of two packets", two, "% of the usual window's throughput");
    finding.measure("WAN, window of 4 KB", small, "% of the usual window's throughput");
    finding.measure("WAN, window of 8 KB", large, "% of the usual window's throughput");
    finding.require_bound("LAN, two packets, % of ideal,", two, Bound::AtLeast(95.0));
    finding.require_bound("WAN, 8 KB, % of ideal,", large, Bound::AtLeast(95.0));
    finding.below("WAN, 4 KB, % of ideal,", small, 95.0);
    Ok(())
}
