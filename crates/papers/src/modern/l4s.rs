//! RFC 9330 and RFC 9332: waiting times and shares of L4S traffic.

use lasthop_observe::metrics::RunMetrics;
use lasthop_report::number;

use super::{delivered, utilization};
use crate::figure::{WHISKERS, bar, bars, published_bar};
use crate::table::{row, table};
use crate::{Bench, Bound, Finding, Interrupted, Runs};

/// Rate of the line in Mb/s.
const RATE: f64 = 40.0;
/// Long transfers of each kind.
const FLOWS: [u32; 2] = [1, 4];

const LINK: &str = include_str!("l4s.toml");

/// Waits of the small packets `i` in ms: mean and 99th percentile.
fn mean_wait(i: usize) -> impl Fn(&RunMetrics) -> f64 {
    move |m| m.datagrams.get(i).map_or(f64::NAN, |d| d.delay_mean_s * 1e3)
}

fn long_wait(i: usize) -> impl Fn(&RunMetrics) -> f64 {
    move |m| m.datagrams.get(i).map_or(f64::NAN, |d| d.delay_p99_s * 1e3)
}

/// Throughput of a Prague flow by that of a CUBIC flow.
fn balance(flows: u32) -> impl Fn(&RunMetrics) -> f64 {
    move |m| {
        let n = flows as usize;
        let sum = |from: usize| (from..from + n).map(|i| delivered(m, i)).sum::<f64>();
        sum(0) / sum(n)
    }
}

/// Round trips of the long transfers without propagation, in ms.
fn queueing(flows: u32) -> impl Fn(&RunMetrics) -> f64 {
    move |m| {
        let long = &m.flows[..m.flows.len().min(2 * flows as usize)];
        long.iter().map(|flow| flow.srtt.mean_s * 1e3 - 10.0).sum::<f64>() / long.len() as f64
    }
}

pub(super) fn l4s(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let mut rows = table(
        "Waits in ms and utilization in %",
        "<queue | <flows of each kind | mean wait | 99th percentile | utilization",
    );
    let mut groups = Vec::new();
    for flows in FLOWS {
        let text = LINK.replace("count = 1", &format!("count = {flows}"));
        let cubic = "host.l4s.tcp=cubic";
        let sets: [&[&str]; 3] = [
            &[],
            &[cubic, "line.link.discipline-right=pie"],
            &[cubic, "line.link.discipline-right=fq-codel"],
        ];
        let all = bench.each(&text, &sets, bench.seeds)?;
        let [dual, pie, fair] = &all[..] else { continue };
        let used = utilization("line", RATE);
        let case = format!("{flows} and {flows} flows");
        // L4S.
        let [mean, long] = [dual.summary(mean_wait(0)), dual.summary(long_wait(0))];
        finding.compare(format!("{case}, L4S: mean wait"), mean, "ms", 1.0);
        finding.compare(format!("{case}, L4S: 99th percentile"), long, "ms", 2.0);
        finding.below(format!("{case}, L4S: mean wait, ms,"), mean, 1.0);
        finding.below(format!("{case}, L4S: 99th percentile, ms,"), long, 2.0);
        let balance = dual.summary(balance(flows));
        finding.compare(format!("{case}: a Prague flow by a CUBIC flow"), balance, "", 1.0);
        finding.within(format!("{case}: a Prague flow by a CUBIC flow"), balance, 0.5, 2.0);
        let lost = dual.percent_above(fair, &used);
        let quantity = format!("{case}: utilization above that of CUBIC with FQ-CoDel, %,");
        finding.require_bound(quantity, lost, Bound::AtLeast(-2.0));
        // Classic queues. Small packets pass FQ-CoDel by themselves, so round trips count there.
        let of_pie = [pie.summary(mean_wait(1)), pie.summary(long_wait(1))];
        let of_fair = fair.summary(queueing(flows));
        finding.measure(format!("{case}, PIE: mean wait"), of_pie[0], "ms");
        finding.within(format!("{case}, PIE: mean wait, ms,"), of_pie[0], 5.0, 20.0);
        finding.measure(format!("{case}, PIE: 99th percentile"), of_pie[1], "ms");
        finding.within(format!("{case}, PIE: 99th percentile, ms,"), of_pie[1], 20.0, 30.0);
        finding.measure(format!("{case}, FQ-CoDel: mean wait of long transfers"), of_fair, "ms");
        let quantity = format!("{case}, FQ-CoDel: mean wait of long transfers, ms,");
        finding.within(quantity, of_fair, 5.0, 20.0);
        let mut add = |queue: &str, runs: &Runs, mean: String, long: String| {
            let cells = row(&[&queue, &flows, &mean, &long, &runs.summary(&used)]);
            rows.rows.push(cells);
        };
        let text = number::summary;
        add("DualPI2, L4S", dual, text(&mean), text(&long));
        let classic = [dual.summary(mean_wait(1)), dual.summary(long_wait(1))];
        add("DualPI2, classic", dual, text(&classic[0]), text(&classic[1]));
        add("PIE, CUBIC", pie, text(&of_pie[0]), text(&of_pie[1]));
        add("FQ-CoDel, CUBIC", fair, text(&of_fair), "–".to_owned());
        groups.push((format!("L4S, {case}: mean"), vec![bar(mean), published_bar(1.0)]));
        groups.push((format!("L4S, {case}: 99th percentile"), vec![bar(long), published_bar(2.0)]));
    }
    finding.tables.push(rows);
    let series = [("measured", false), ("published bound", true)];
    finding.figures.push(bars(
        "RFC 9330: waits of L4S packets",
        "wait (ms)",
        series,
        groups,
        WHISKERS,
    ));
    Ok(())
}
