//! RFC 8985: losses that RACK-TLP detects more efficiently than three duplicate ACKs.

use lasthop_observe::metrics::RunMetrics;

use crate::figure::{WHISKERS, bar, bars};
use crate::measure::{count, mbps, timeouts};
use crate::table::{row, table};
use crate::{Bench, Finding, Interrupted};

/// Exchanges with answers of four segments.
const SHORT: &str = include_str!("rack_short.toml");
/// A transfer without end.
const BULK: &str = include_str!("rack_bulk.toml");

fn exchange_timeouts(m: &RunMetrics) -> f64 {
    m.exchanges.first().map_or(f64::NAN, |exchanges| exchanges.timeouts as f64)
}

/// 99th percentile of the time of an exchange in ms.
fn slow_exchange(m: &RunMetrics) -> f64 {
    m.exchanges.first().map_or(f64::NAN, |exchanges| exchanges.time_p99_s * 1e3)
}

/// A measured quantity and its value in a run.
type Quantity = (&'static str, fn(&RunMetrics) -> f64, bool);

fn redundant(m: &RunMetrics) -> f64 {
    count(|flow| flow.redundant)(m)
}

/// Cases: name, scenario, changes, and the quantities, each with whether RACK-TLP should have more of it.
const CASES: [(&str, &str, &[&str], &[Quantity]); 3] = [
    (
        "flights of four segments",
        SHORT,
        &["losses.cross.loss=2%"],
        &[
            ("timeouts of 500 exchanges", exchange_timeouts, false),
            ("99th percentile of an exchange, ms", slow_exchange, false),
        ],
    ),
    (
        "lost retransmissions",
        BULK,
        &["losses.cross.loss=5%"],
        &[("timeouts in 60 s", timeouts, false), ("throughput, Mb/s", mbps, true)],
    ),
    (
        "reordering",
        BULK,
        &["line.link.jitter=5ms", "line.link.delay=30ms", "line.link.impaired=right"],
        &[
            ("segments retransmitted spuriously", redundant, false),
            ("throughput, Mb/s", mbps, true),
        ],
    ),
];

pub(super) fn rack(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let mut rows =
        table("Two ways to detect losses", "<case | <figure | three duplicate ACKs | RACK-TLP");
    let mut groups = Vec::new();
    for (name, text, changes, quantities) in CASES {
        let sets = ["host.server.tcp=sack", "host.server.tcp=rack"].map(|tcp| {
            let mut set = vec![tcp];
            set.extend(changes);
            set
        });
        let both = bench.each(text, &sets, bench.seeds)?;
        for (quantity, of, more) in quantities {
            let [old, new] = [both[0].summary(of), both[1].summary(of)];
            finding.measure(format!("{name}: {quantity}, three duplicate ACKs"), old, "");
            finding.measure(format!("{name}: {quantity}, RACK-TLP"), new, "");
            let gain = both[1].difference(&both[0], of).scaled(if *more { 1.0 } else { -1.0 });
            let order = if *more { "more" } else { "less" };
            finding.above(format!("{name}: {quantity}, {order} with RACK-TLP"), gain, 0.0);
            rows.rows.push(row(&[&name, quantity, &old, &new]));
            if *more || *quantity == "timeouts of 500 exchanges" {
                groups.push((format!("{name}: {quantity}"), vec![bar(old), bar(new)]));
            }
        }
    }
    finding.tables.push(rows);
    let series = [("three duplicate ACKs", false), ("RACK-TLP", false)];
    finding.figures.push(bars(
        "RFC 8985: detection of losses",
        "see the names of the groups",
        series,
        groups,
        WHISKERS,
    ));
    Ok(())
}
