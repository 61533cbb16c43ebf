//! Section 2: the snoop protocol, towards the mobile host (2.2, Figure 1) and from it (2.1).

use lasthop_report::model::{Figure, Measured};
use lasthop_report::plot::LineChart;
use lasthop_trace::stats::Summary;

use super::testbed::{ERRORS, LAN, Protocol, mbps, row, rows, show};
use crate::bench::{Bench, Interrupted, Runs};
use crate::finding::{Finding, short};
use crate::west97::Experiment;

/// The experiment for the claim `id`.
pub fn experiment(id: &str) -> Option<Experiment> {
    Some(match id {
        "D-F1" => f1,
        "D-MOBILE-SENDER" => mobile_sender,
        _ => return None,
    })
}

/// Mean distances of errors in KB: 16 KB to 16 MB.
const DISTANCES: [u32; 11] = [16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384];
/// 128 KB are close to one error in 10^6 bits, where the paper sees the two begin to differ.
const BOUNDARY: u32 = 128;
/// Curves that differ by less show no significant difference.
const NO_DIFFERENCE: f64 = 10.0;

fn at(bench: &mut Bench<'_>, agent: &str, distance: u32) -> Result<Runs, Interrupted> {
    let agent = format!("agent={agent}");
    let errors =
        format!(r#"errors={{ model = "exponential", mean = "{distance}KiB", on = ["data"] }}"#);
    bench.runs(LAN, &[&agent, &errors])
}

/// Figure 1.
fn f1(bench: &mut Bench<'_>) -> Result<Finding, Interrupted> {
    let mut finding = Finding::new(bench.seeds);
    let ideal = bench.runs(LAN, &[])?.summary(mbps);
    finding.measured.push(Measured::new("without losses", &ideal, "Mb/s", Some(1.5)));
    let mut curves: [Vec<(f64, Summary)>; 2] = Default::default();
    for distance in DISTANCES {
        let mut pair = Vec::new();
        for (agent, curve) in ["snoop", "none"].into_iter().zip(&mut curves) {
            let throughput = at(bench, agent, distance)?.summary(mbps);
            let name = if agent == "snoop" { "snoop" } else { "Reno" };
            let label = format!("{name}, one error per {distance} KB");
            finding.measured.push(Measured::new(label, &throughput, "Mb/s", None));
            curve.push((f64::from(distance), throughput));
            pair.push(throughput.mean);
        }
        let times = pair[0] / pair[1];
        if distance < BOUNDARY {
            let what = format!("snoop's throughput over Reno's with one error per {distance} KB");
            finding.within(&what, times, 2.0, 20.0);
        } else if distance > BOUNDARY {
            let what = format!("snoop above Reno in % with one error per {distance} KB");
            let percent = 100.0 * (times - 1.0);
            finding.within(&what, percent, -NO_DIFFERENCE, NO_DIFFERENCE);
        } else {
            finding.note(format!(
                "at one error per {distance} KB, the boundary, snoop has {} times Reno's throughput",
                short(times)
            ));
        }
    }
    let half = r#"errors={ model = "packet-loss", p = "50%", on = ["data"] }"#;
    let snoop = bench.runs(LAN, &["agent=snoop", half])?;
    let reno = bench.runs(LAN, &["agent=none", half])?;
    for (name, runs) in [("snoop", &snoop), ("Reno", &reno)] {
        let label = format!("{name}, every other packet lost");
        finding.measured.push(Measured::new(label, &runs.summary(mbps), "Mb/s", None));
    }
    finding.require(
        snoop.complete() == snoop.all().len(),
        format!(
            "snoop completes {} of {} transfers with every other packet lost, wanted all",
            snoop.complete(),
            snoop.all().len()
        ),
    );
    finding.require(
        reno.complete() == 0,
        format!("Reno completes {} of them, wanted none", reno.complete()),
    );
    let share = 100.0 * reno.summary(mbps).mean / ideal.mean;
    finding.below("Reno in % of the error-free transfer with every other packet lost", share, 1.0);
    let series = ["snoop", "Reno"].into_iter().zip(curves);
    let chart = LineChart {
        title: "Figure 1: throughput by mean distance of errors".to_owned(),
        x_label: "mean distance of errors (KB)".to_owned(),
        y_label: "throughput (Mb/s)".to_owned(),
        log_x: true,
        series: series.map(|(name, points)| crate::bakshi96::line(name, points)).collect(),
    };
    finding.figures.push(Figure {
        svg: chart.plot().inline(),
        title: chart.title.clone(),
        caption: "8 MB to the mobile host; bands are 95 % confidence intervals.".to_owned(),
    });
    Ok(finding)
}

const FROM_MOBILE: &str = "transfer={ from = \"mobile\", to = \"fixed\", bytes = 8388608 }";
const SENDERS: [Protocol; 3] = [
    Protocol { name: "Reno", changes: &[], published: None },
    Protocol { name: "Reno, snoop", changes: &["agent=snoop"], published: None },
    Protocol {
        name: "negative acknowledgements",
        changes: &["agent=snoop-nack", "host.mobile.nack=true"],
        published: None,
    },
];

/// 2.1, west97 2.6: transfers from the mobile host.
fn mobile_sender(bench: &mut Bench<'_>) -> Result<Finding, Interrupted> {
    let mut finding = Finding::new(bench.seeds);
    let rows = rows(bench, LAN, &[FROM_MOBILE, ERRORS], &SENDERS)?;
    show(&mut finding, "From the mobile host", &rows);
    let times = row(&rows, "negative acknowledgements").mbps() / row(&rows, "Reno").mbps();
    finding.require(
        times >= 1.5,
        format!("negative acknowledgements give {times:.2} times Reno's throughput, wanted 1.5"),
    );
    Ok(finding)
}
