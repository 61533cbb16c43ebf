//! Appenzeller, Keslassy and McKeown 2004: buffers of a link with many flows.

use std::fmt::Write as _;

use super::{quarter, utilization};
use crate::figure::{Axes, curves, line, published_line};
use crate::table::{row, table};
use crate::{Bench, Finding, Interrupted};

/// Rate of the line in Mb/s, and groups of flows with the same round trip.
const RATE: f64 = 155.0;
const GROUPS: u32 = 10;
/// Product of rate and delay in packets.
const PRODUCT: f64 = 1291.0;
/// Multiples of the product divided by the root of the number of flows.
const SHARES: [&str; 3] = ["0.5", "1", "2"];
/// Flows, the buffer in packets and the published utilization by simulation in percent, for each share.
type Row = (u32, [u32; 3], [f64; 3]);

/// Figure 15.
const ROWS: [Row; 3] = [
    (100, [64, 129, 258], [94.7, 99.3, 99.9]),
    (200, [46, 91, 182], [97.0, 99.2, 99.8]),
    (400, [32, 64, 128], [99.2, 99.8, 100.0]),
];

/// `flows` flows in groups with round trips from 55 to 145 ms, 100 ms on average.
fn text(flows: u32) -> String {
    let mut text = "name = \"buffers\"\nhorizon = \"40s\"\n".to_owned();
    for group in 0..GROUPS {
        let count = flows / GROUPS;
        let _ = write!(
            text,
            "[[transfer]]\nfrom = \"host{group}\"\nto = \"client\"\nbytes = \"unlimited\"\ncount = {count}\n"
        );
    }
    for group in 0..GROUPS {
        // Half of the round trip, in steps of 5 ms, without the delay of the line.
        let delay = f64::from(group) * 5.0 + 22.5;
        let _ = write!(
            text,
            "[host.host{group}]\npreset = \"linux\"\nside = \"left\"\ntcp = \"rack\"\naccess = {{ delay = \
             \"{delay}ms\" }}\n"
        );
    }
    text + "[host.client]\npreset = \"linux\"\n\
            [[path]]\nname = \"noise\"\ncross = { jitter = \"100us\" }\n\
            [[path]]\nname = \"line\"\nlink = { rate = \"155mbit\", delay = \"5ms\", queue = \"100p\" }\n"
}

pub(super) fn buffers(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let seeds = quarter(bench);
    finding.runs = seeds;
    let mut rows = table(
        "Utilization in %",
        "flows | buffer, packets | by the rule | measured | published, simulation",
    );
    let mut series = Vec::new();
    let mut given = Vec::new();
    for (flows, packets, published) in ROWS {
        let sets = packets.map(|packets| [format!("line.link.queue={packets}p")]);
        let all = bench.each(&text(flows), &sets, seeds)?;
        let used = utilization("line", RATE);
        let means: Vec<_> = all.iter().map(|runs| runs.summary(&used)).collect();
        for (i, mean) in means.iter().enumerate() {
            let case = format!("{flows} flows, {} packets", packets[i]);
            finding.compare(format!("{case}: utilization"), mean, "%", published[i]);
            let quantity = format!("{case}: utilization, %,");
            finding.within(quantity, mean, published[i] - 2.0, published[i] + 2.0);
            rows.rows.push(row(&[&flows, &packets[i], &SHARES[i], mean, &published[i]]));
        }
        let x = packets.map(|packets| f64::from(packets) / PRODUCT * f64::from(flows).sqrt());
        series.push(line(&format!("{flows} flows"), x.into_iter().zip(means)));
        let points = x.into_iter().zip(published);
        given.push(published_line(format!("published: {flows} flows"), points));
    }
    finding.tables.push(rows);
    series.extend(given);
    let axes = Axes {
        x: "buffer (product of rate and delay, by the root of the flows)",
        y: "utilization (%)",
        log_x: false,
    };
    let caption = "155 Mb/s, round trips of 55 to 145 ms.";
    finding.figures.push(curves("Appenzeller 2004, Figure 15: buffers", axes, series, caption));
    Ok(())
}
