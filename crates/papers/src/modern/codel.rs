//! Nichols and Jacobson 2013: utilization and waiting times under CoDel.

use lasthop_observe::metrics::RunMetrics;
use lasthop_report::number;

use super::{TOLERANCE, quarter, utilization};
use crate::figure::{Axes, curves, line};
use crate::table::{row, table};
use crate::{Bench, Bound, Estimate, Finding, Interrupted};

const LINK: &str = include_str!("codel.toml");

const NO_QUEUE: &str = include_str!("no_queue.toml");

/// Rate of the line in Mb/s.
const RATE: f64 = 10.0;
const SENDERS: [(&str, &str); 3] =
    [("Reno", "rack"), ("CUBIC", "cubic"), ("Westwood+", "westwood")];
/// Round trips in ms of which 5 ms are 5 to 10 %.
const TRIPS: [u32; 2] = [50, 100];
/// Targets in ms, and round trips in ms for them.
const TARGETS: [u32; 5] = [1, 2, 5, 10, 20];
const WIDE: [u32; 3] = [30, 100, 300];

/// Median delay of the small packets in ms.
fn waits(m: &RunMetrics) -> f64 {
    m.datagrams.first().map_or(f64::NAN, |probe| probe.delay_p50_s * 1e3)
}

fn used(m: &RunMetrics) -> f64 {
    utilization("line", RATE)(m)
}

fn far(trip: u32) -> String {
    format!("host.server.access.delay={}us", 500 * trip)
}

pub(super) fn codel(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let seeds = quarter(bench);
    finding.runs = seeds;
    let none = Estimate::from(bench.alike(NO_QUEUE, &[] as &[&str])?.mean(used));
    finding.compare("Reno without a queue: utilization", none, "%", 75.0);
    finding.near("Reno without a queue: utilization, %,", none, 75.0, 0.05);
    // With a standing queue of 5 ms.
    let mut rows = table("Utilization in % with CoDel, target 5 ms", "<sender | 50 ms | 100 ms");
    for (name, tcp) in SENDERS {
        let sets = TRIPS.map(|trip| [format!("host.server.tcp={tcp}"), far(trip)]);
        let all = bench.each(LINK, &sets, seeds)?;
        let all = [&all[0], &all[1]].map(|runs| runs.summary(used));
        for (trip, of) in TRIPS.iter().zip(all) {
            finding.compare(format!("{name}, {trip} ms: utilization"), of, "%", 100.0);
            let quantity = format!("{name}, {trip} ms: utilization, %,");
            finding.require_bound(quantity, of, Bound::AtLeast(95.0));
        }
        rows.rows.push(row(&[&name, &all[0], &all[1]]));
    }
    finding.tables.push(rows);
    by_target(bench, finding)?;
    by_flows(bench, finding)
}

/// Utilization with each target, of one Reno flow.
fn by_target(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let seeds = quarter(bench);
    let mut rows = table(
        "Utilization in % of one Reno flow by target",
        "<round trip | 1 ms | 2 ms | 5 ms | 10 ms | 20 ms",
    );
    let mut suffers = Vec::new();
    let mut series = Vec::new();
    for trip in WIDE {
        let target = |ms: u32| format!("line.link.codel.target={ms}ms");
        let sets = TARGETS.map(|ms| ["host.server.tcp=rack".to_owned(), far(trip), target(ms)]);
        let all = bench.each(LINK, &sets, seeds)?;
        let means: Vec<_> = all.iter().map(|runs| runs.summary(used)).collect();
        let mut cells = vec![format!("{trip} ms")];
        cells.extend(means.iter().map(number::summary));
        rows.rows.push(cells);
        let [least, _, five, _, most] = &all[..] else { continue };
        suffers.push(five.difference(least, used));
        let gain = most.difference(five, used);
        let quantity = format!("{trip} ms: utilization with 20 ms above that with 5 ms, points,");
        finding.require_bound(quantity, gain, Bound::AtMost(5.0));
        let points = TARGETS.iter().map(|ms| f64::from(*ms)).zip(means);
        series.push(line(&format!("round trip of {trip} ms"), points));
    }
    finding.tables.push(rows);
    // In some cases: in at least one.
    let most = suffers.into_iter().max_by(|a, b| a.low().total_cmp(&b.low()));
    if let Some(most) = most {
        finding.above("largest loss of utilization with 1 ms instead of 5 ms, points,", most, 0.0);
    }
    let axes = Axes { x: "target (ms)", y: "utilization (%)", log_x: true };
    let caption = "One Reno flow on 10 Mb/s. Published: no gain above 5 ms.";
    finding.figures.push(curves("CoDel 2013, 3.3: the target", axes, series, caption));
    Ok(())
}

/// Waiting times by the number of flows, next to a queue without management.
fn by_flows(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let seeds = quarter(bench);
    let mut rows = table(
        "Median waits in ms with CUBIC and round trips of 100 ms",
        "flows | CoDel | published | FIFO of 1000 packets",
    );
    for flows in [2_u32, 4, 8] {
        let text = LINK.replace("count = 1", &format!("count = {flows}"));
        let sets = ["codel", "fifo"].map(|queue| {
            [
                "host.server.tcp=cubic".to_owned(),
                far(100),
                format!("line.link.discipline-right={queue}"),
            ]
        });
        let all = bench.each(&text, &sets, seeds)?;
        let [managed, fifo] = [&all[0], &all[1]].map(|runs| runs.summary(waits));
        finding.compare(format!("{flows} flows: median wait"), managed, "ms", 5.0);
        finding.near(format!("{flows} flows: median wait, ms,"), managed, 5.0, TOLERANCE);
        rows.rows.push(row(&[&flows, &managed, &5.0, &fifo]));
    }
    finding.tables.push(rows);
    Ok(())
}
