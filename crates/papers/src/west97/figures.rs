//! Figures 9, 10, 12 and 13: time-sequence plots and their properties (4.4, 5.1).

use lasthop_trace::stats::regression;

use super::{CLAIM, WAN};
use crate::figure;
use crate::measure::{KB, count, stall_time, throughput, transfer_time};
use crate::testbed::{SINGLE, UNCHANGED, WEST97_LAN as LAN};
use crate::{Bench, Claim, Finding, Interrupted, Runs};

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

pub(super) const F9: Claim = Claim {
    id: "W-F9",
    place: "4.4, Figure 9",
    setup: "2,000,000 B fixed->mobile, 10 Mb/s Ethernet + 2 Mb/s WaveLAN, no errors, Reno",
    published: "time-sequence plot is a straight line, slope = throughput, about 200 KB/s",
    run: Some(f9),
    ..CLAIM
};

/// Figure 9: an ideal transfer is a straight line.
fn f9(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    finding.runs = 1;
    let ideal = bench.runs(LAN, UNCHANGED)?.throughput();
    let recording = bench.record(LAN, UNCHANGED, 1);
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
        (LAN, UNCHANGED, 1),
        "Figure 9: error-free transfer",
        "Sequence against time at the sender; the slope is the throughput.",
    );
    Ok(())
}

pub(super) const F10: Claim = Claim {
    id: "W-F10",
    place: "5.1, Figure 10",
    setup: "as W-F9 with one byte error per 64 KB (exponential gaps), Reno",
    published: "153.67 KB/s in one unusually good run; about 30 losses repaired by fast recovery; the \
            stalls (flat parts) account for almost the whole difference to the ideal transfer",
    run: Some(f10),
    ..CLAIM
};

/// Figure 10: stalls account for nearly all of Reno's loss of throughput.
fn f10(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let ideal = bench.runs(LAN, UNCHANGED)?;
    let reno = bench.runs(LAN, &[SINGLE])?;
    let ideal_time = ideal.each(transfer_time).iter().sum::<f64>() / f64::from(bench.seeds);
    let lost: f64 = reno.each(transfer_time).iter().map(|t| t - ideal_time).sum();
    let share = reno.each(stall_time).iter().sum::<f64>() / lost;
    let (best_seed, best) = ranked(&reno, 0);
    finding.measure("stall time over time lost", 100.0 * share, "%");
    let recoveries = reno.summary(count(|f| f.recoveries));
    finding.compare("losses repaired by fast recovery", recoveries, "per run", 30.0);
    finding.compare("throughput of the best seed", best, "KB/s", 153.67);
    finding.above("stall time over time lost", share, 0.8);
    finding.within("the best seed in KB/s", best, 140.0, 170.0);
    sequence(
        bench,
        finding,
        (LAN, &[SINGLE], best_seed),
        "Figure 10: Reno, one error per 64 KB, the best of the seeds",
        "Flat parts are stalls: the window is too small for three duplicate ACKs, and the sender waits for \
         its timer.",
    );
    sequence(
        bench,
        finding,
        (LAN, &[SINGLE], typical(&reno)),
        "The same, a typical seed",
        "The median of the seeds by throughput.",
    );
    Ok(())
}

/// Losses and delays of cross traffic (Figure 12).
const CONGESTED: [&str; 2] = ["cross.loss=0.44%", "cross.jitter=67ms"];

pub(super) const F12: Claim = Claim {
    id: "W-F12",
    place: "5.1, Figure 12",
    setup: "mobile->fixed WAN, 512 B segments, RTT 67 ms, ideal 61 KB/s, no wireless errors, congestion \
            losses from competing traffic (17 of ~3,900 packets)",
    published: "63 s, 31.0 KB/s",
    cost: 4,
    run: Some(f12),
    ..CLAIM
};

/// Figure 12: congestion alone, over the WAN.
fn f12(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let ideal = bench.runs(WAN, UNCHANGED)?.throughput();
    let runs = bench.runs(WAN, &CONGESTED)?;
    let throughput = runs.throughput();
    finding.compare("without losses", ideal, "KB/s", 61.0);
    finding.compare("throughput", throughput, "KB/s", 31.0);
    finding.measure("time-outs", runs.timeouts(), "per run");
    finding.within("throughput in KB/s", throughput.mean, 25.0, 40.0);
    sequence(
        bench,
        finding,
        (WAN, &CONGESTED, typical(&runs)),
        "Figure 12: WAN, congestion only",
        "A typical seed; crosses are packets that the gateway dropped.",
    );
    Ok(())
}

pub(super) const F13: Claim = Claim {
    id: "W-F13",
    place: "5.1, Figure 13",
    setup: "as W-F12 plus one error per 64 KB on the wireless link (54 losses, 1.38 %)",
    published: "137 s, 14.3 KB/s: about half of W-F12",
    cost: 2,
    run: Some(f13),
    ..CLAIM
};

/// Figure 13: congestion and wireless errors, over the WAN.
fn f13(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let congested = bench.runs(WAN, &CONGESTED)?.throughput();
    let changes = [&CONGESTED[..], &[SINGLE]].concat();
    let runs = bench.runs(WAN, &changes)?;
    let throughput = runs.throughput();
    let percent = 100.0 * throughput.mean / congested.mean;
    finding.compare("throughput", throughput, "KB/s", 14.3);
    finding.measure("time-outs", runs.timeouts(), "per run");
    let label = "of the throughput without wireless errors";
    finding.compare(label, percent, "%", 100.0 * 14.3 / 31.0);
    finding.within("percent of W-F12's throughput", percent, 35.0, 65.0);
    sequence(
        bench,
        finding,
        (WAN, &changes, typical(&runs)),
        "Figure 13: WAN, congestion and wireless errors",
        "A typical seed.",
    );
    Ok(())
}
