//! T/TCP (RFC 1644): a request and its answer in one round trip.

use lasthop_observe::metrics::RunMetrics;

use super::setup::built_in;
use crate::table::{row, table};
use crate::{Bench, Finding, Interrupted};

/// Round trip of the built-in scenario in seconds: twice 40 and 100 ms, without transmission times.
const ROUND_TRIP: f64 = 0.28;
/// Air time of a SYN and its answer: 60 bytes each at 128 kb/s, plus half of that for queueing.
const SYNS: f64 = 0.011;

const SCHEMES: [(&str, &[&str]); 3] = [
    ("tcp", &["transfer.persistent=false"]),
    ("t-tcp", &["transfer.persistent=false", "host.mobile.t-tcp=true", "host.server.t-tcp=true"]),
    ("persistent", &["transfer.persistent=true"]),
];

fn median(m: &RunMetrics) -> f64 {
    m.exchanges.first().map_or(f64::NAN, |all| all.time_p50_s)
}

fn packets(m: &RunMetrics) -> f64 {
    m.exchanges.first().map_or(f64::NAN, |all| all.packets as f64 / all.answered as f64)
}

pub(super) fn transaction(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let mut rows = table(
        "What a client waits for an answer, and packets of both ends for each",
        "<losses | <scheme | median s | packets",
    );
    for (losses, errors) in
        [("none", "errors.mean=1GiB"), ("a byte in 32 KiB", "errors.mean=32KiB")]
    {
        let mut medians = Vec::new();
        for (scheme, sets) in SCHEMES {
            let runs = bench.runs(built_in("transactions"), &[sets, &[errors]].concat())?;
            let waits = runs.summary(median);
            rows.rows.push(row(&[&losses, &scheme, &waits, &runs.summary(packets)]));
            finding.measure(format!("losses: {losses}, {scheme}, median"), waits, "s");
            medians.push(waits.mean);
        }
        let [tcp, t_tcp, open] = medians[..] else { continue };
        let quantity = format!("losses: {losses}; what T/TCP saves at the median (s)");
        finding.within(quantity, tcp - t_tcp, ROUND_TRIP, ROUND_TRIP + SYNS);
        let quantity = format!("losses: {losses}; what T/TCP takes beyond an open connection (s)");
        finding.below(quantity, t_tcp - open, SYNS);
    }
    finding.tables.push(rows);
    Ok(())
}
