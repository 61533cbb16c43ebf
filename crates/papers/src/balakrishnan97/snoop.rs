//! Section 2: the snoop protocol, towards the mobile host (2.2, Figure 1) and from it (2.1).

use lasthop_observe::stats::Summary;

use super::testbed::{LAN, Protocol, Rows};
use crate::figure::{self, Axes, line, published_line};
use crate::measure::mbps;
use crate::table::Cell;
use crate::testbed::{SINGLE as ERRORS, UNCHANGED};
use crate::{Bench, Bound, Estimate, Finding, Interrupted, Runs};

/// Mean distances of errors in KB: 16 KB to 16 MB.
const DISTANCES: [u32; 11] = [16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384];
/// 128 KB are close to one error in 10^6 bits, where the paper sees a difference begin.
const BOUNDARY: u32 = 128;
/// Curves with a smaller difference show no significant difference.
const NO_DIFFERENCE: f64 = 10.0;

/// The runs of snoop and of Reno with these errors.
fn both(bench: &mut Bench<'_>, errors: &str) -> Result<[(&'static str, Runs); 2], Interrupted> {
    let snoop = bench.runs(LAN, &["agent=snoop", errors])?;
    Ok([("snoop", snoop), ("Reno", bench.runs(LAN, &["agent=none", errors])?)])
}

/// Figure 1.
pub(super) fn f1(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let ideal = bench.runs(LAN, UNCHANGED)?.summary(mbps);
    finding.compare("without losses", ideal, "Mb/s", 1.5);
    finding.near("throughput without losses in Mb/s", ideal, 1.5, 0.05);
    let mut curves: [Vec<(f64, Summary)>; 2] = Default::default();
    for distance in DISTANCES {
        let errors =
            format!(r#"errors={{ model = "exponential", mean = "{distance}KiB", on = ["data"] }}"#);
        let at = format!("one error per {distance} KB");
        let both = both(bench, &errors)?;
        for ((name, runs), curve) in both.iter().zip(&mut curves) {
            let throughput = runs.summary(mbps);
            finding.measure(format!("{name}, {at}"), throughput, "Mb/s");
            curve.push((f64::from(distance), throughput));
        }
        let [(_, snoop), (_, reno)] = &both;
        if distance < BOUNDARY {
            let quantity = format!("snoop's throughput over Reno's with {at}");
            finding.within(quantity, snoop.ratio(reno, mbps), 2.0, 20.0);
        } else if distance > BOUNDARY {
            let quantity = format!("snoop above Reno with {at}");
            finding.equal(quantity, snoop.percent_above(reno, mbps), NO_DIFFERENCE);
        } else {
            let times = snoop.ratio(reno, mbps).cell();
            finding
                .note(format!("at {at}, the boundary, snoop has {times} times Reno's throughput"));
        }
    }
    every_other_packet(bench, finding, ideal.mean)?;
    let x = "mean distance of errors (KB, logarithmic)";
    let axes = Axes { x, y: "throughput (Mb/s)", log_x: true };
    let series = ["snoop", "Reno"].into_iter().zip(curves.clone());
    let edges = [DISTANCES[0], DISTANCES[DISTANCES.len() - 1]];
    let given = edges.map(|distance| (f64::from(distance), 1.5));
    let lossy = |times: f64| {
        let above = curves[1].iter().filter(|(x, _)| *x < f64::from(BOUNDARY));
        let points: Vec<_> = above.map(|(x, reno)| (*x, times * reno.mean)).collect();
        published_line(format!("published: from {times} x Reno"), points)
    };
    let published =
        [published_line("published: 1.5 Mb/s without losses".to_owned(), given), lossy(2.0)];
    finding.figures.push(figure::curves(
        "Figure 1: throughput by mean distance of errors",
        axes,
        series.map(|(name, points)| line(name, points)).chain(published).collect(),
        "8 MB to the mobile host; bands are 95 % confidence intervals.",
    ));
    Ok(())
}

/// Snoop completes when every other packet is lost, Reno does not.
fn every_other_packet(
    bench: &mut Bench<'_>,
    finding: &mut Finding,
    ideal: f64,
) -> Result<(), Interrupted> {
    let half = r#"errors={ model = "packet-loss", p = "50%", on = ["data"] }"#;
    // Whether a transfer ever completes depends on its length.
    let shorter = core::mem::take(&mut bench.shorter);
    let both = both(bench, half)?;
    bench.shorter = shorter;
    for (name, runs) in &both {
        let label = format!("{name}, every other packet lost");
        finding.measure(label, runs.summary(mbps), "Mb/s");
    }
    // Without a handshake there is no transfer.
    let [snoop, reno] = both.map(|(_, runs)| runs.opened());
    let (complete, all) = (snoop.complete(), snoop.all().len());
    let text =
        format!("snoop completes {complete} of {all} transfers with every other packet lost");
    let (quantity, share) =
        ("transfers of snoop complete, %,", 100.0 * complete as f64 / all as f64);
    finding.judge(quantity, share, Bound::AtLeast(100.0), format!("{text}, wanted all"));
    let complete = reno.complete();
    let text = format!("Reno completes {complete} of them, wanted none");
    finding.judge("transfers of Reno complete", complete as f64, Bound::AtMost(0.0), text);
    let share = Estimate::from(reno.summary(mbps)).scaled(100.0 / ideal);
    finding.below("Reno in % of the error-free transfer with every other packet lost", share, 1.0);
    Ok(())
}

const FROM_MOBILE: &str = r#"transfer={ from = "mobile", to = "fixed", bytes = 8388608 }"#;
const SENDERS: [Protocol; 3] = [
    ("Reno", &[]),
    ("Reno, snoop", &["agent=snoop"]),
    ("negative acknowledgements", &["agent=snoop-nack", "host.mobile.nack=true"]),
];

/// 2.1, west97 2.6: transfers from the mobile host.
pub(super) fn mobile_sender(
    bench: &mut Bench<'_>,
    finding: &mut Finding,
) -> Result<(), Interrupted> {
    let rows = Rows::run(bench, LAN, &[FROM_MOBILE, ERRORS], &SENDERS, &[])?;
    rows.show(finding, "From the mobile host");
    let times = rows.times("negative acknowledgements", "Reno");
    finding.require_bound("negative acknowledgements over Reno", times, Bound::AtLeast(1.5));
    Ok(())
}
