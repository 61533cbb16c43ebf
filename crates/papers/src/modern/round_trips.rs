//! RFC 9438 3.3: how flows with different round trips share a link.

use lasthop_observe::metrics::RunMetrics;

use super::{TOLERANCE, delivered};
use crate::figure::{self, Axes, line, published_line};
use crate::table::{row, table};
use crate::{Bench, Estimate, Finding, Interrupted};

const LINK: &str = include_str!("round_trips.toml");

/// Round trips without queueing in ms.
const NEAR: u32 = 80;
const FAR: [u32; 3] = [80, 160, 320];
const SENDERS: [(&str, &str); 2] = [("CUBIC", "cubic"), ("Reno", "rack")];

fn throughputs(m: &RunMetrics) -> f64 {
    delivered(m, 0) / delivered(m, 1)
}

/// Round trip of the far flow, with queueing, by that of the near flow.
fn trips(m: &RunMetrics) -> f64 {
    match &m.flows[..] {
        [near, far, ..] => far.srtt.mean_s / near.srtt.mean_s,
        _ => f64::NAN,
    }
}

pub(super) fn round_trips(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let cases = SENDERS.iter().flat_map(|(name, tcp)| FAR.map(|far| (*name, *tcp, far)));
    let cases: Vec<(&str, [String; 3], u32)> = cases
        .map(|(name, tcp, far)| {
            let senders = ["near", "far"].map(|host| format!("host.{host}.tcp={tcp}"));
            let [near, other] = senders;
            (name, [near, other, format!("host.far.access.delay={}ms", far / 2 - 10)], far)
        })
        .collect();
    let sets: Vec<&[String]> = cases.iter().map(|(_, set, _)| &set[..]).collect();
    let all = bench.each(LINK, &sets, bench.seeds)?;
    let mut rows = table(
        "Throughput of the flow with a round trip of 80 ms, divided by that of the other",
        "<sender | round trip of the other, ms | ratio of round trips | ratio of throughputs",
    );
    let mut curves = [Vec::new(), Vec::new()];
    let mut of_reno = Vec::new();
    for ((name, _, far), runs) in cases.iter().zip(&all) {
        let (ratio, trips) = (runs.summary(throughputs), runs.summary(trips));
        let linear =
            Estimate::of(&[&runs.each(throughputs), &runs.each(self::trips)], |m| m[0] / m[1]);
        let case = format!("{name}, {NEAR} and {far} ms");
        let published = (*name == "CUBIC").then_some(trips.mean);
        finding.compare(format!("{case}: ratio of throughputs"), ratio, "", published);
        if *name == "CUBIC" {
            let quantity = format!("{case}: ratio of throughputs by ratio of round trips");
            finding.near(quantity, linear, 1.0, TOLERANCE);
        }
        rows.rows.push(row(&[name, far, &trips, &ratio]));
        curves[usize::from(*name != "CUBIC")].push((trips.mean, ratio));
        of_reno.push(runs.clone());
    }
    finding.tables.push(rows);
    // CUBIC's cases come first, then Reno's, each from equal round trips on.
    let (cubic, reno) = of_reno.split_at(FAR.len());
    for (i, far) in FAR.iter().enumerate().skip(1) {
        let above = reno[i].difference(&cubic[i], throughputs);
        let quantity =
            format!("{NEAR} and {far} ms: ratio of throughputs of Reno above that of CUBIC");
        finding.above(quantity, above, 0.0);
    }
    let [cubic, reno] = curves;
    let most = f64::from(FAR[2]) / f64::from(NEAR);
    let ratios = (0..=20).map(|i| 1.0 + (most - 1.0) * f64::from(i) / 20.0);
    let square = ratios.clone().map(|x| (x, x * x));
    let linear = ratios.map(|x| (x, x));
    let series = vec![
        line("CUBIC", cubic),
        line("Reno", reno),
        published_line("published: CUBIC, linear".to_owned(), linear),
        published_line("published: Reno with common losses, square".to_owned(), square),
    ];
    let axes = Axes { x: "ratio of round trips", y: "ratio of throughputs", log_x: false };
    let caption = "Two flows on 20 Mb/s with a queue of 80 ms.";
    finding.figures.push(figure::curves(
        "RFC 9438, 3.3: round trips and shares",
        axes,
        series,
        caption,
    ));
    Ok(())
}
