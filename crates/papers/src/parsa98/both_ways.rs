//! Transfers in both directions at once over one half-duplex link (3.3.1, Figure 1).

use lasthop_report::model::{Column, Measured, Table};
use lasthop_trace::metrics::RunMetrics;

use super::TESTBED;
use super::cases::Protocol::{self, Tulip, TulipPlain, Unaided};
use super::cases::shown;
use crate::bench::{Bench, Interrupted, Runs};
use crate::finding::Finding;

/// How long both sources send, in seconds: neither transfer ends before, so that both directions are always busy.
const SECONDS: &str = "horizon=100s";
const THERE_AND_BACK: &str = r#"transfer=[{ from = "fixed", to = "mobile", bytes = "100MB" }, { from = "mobile", to = "fixed", bytes = "100MB" }]"#;

/// The changes that make a case of the testbed.
pub(super) fn changes(protocol: Protocol) -> Vec<&'static str> {
    let mut changes = protocol.changes().to_vec();
    changes.extend([THERE_AND_BACK, SECONDS, "host.fixed.recv-buffer=42kB"]);
    changes
}

fn both(bench: &mut Bench<'_>, protocol: Protocol) -> Result<Runs, Interrupted> {
    bench.runs(TESTBED, &changes(protocol))
}

/// Throughput of the flow `i` in kb/s.
fn flow(m: &RunMetrics, i: usize) -> f64 {
    m.flows.get(i).map_or(f64::NAN, |f| f.delivered as f64 * 8.0 / 1000.0 / m.end_s)
}

/// 3.3.1: TRANS and WAIT let both directions take turns instead of letting their RTS collide.
pub fn run(bench: &mut Bench<'_>) -> Result<Finding, Interrupted> {
    let mut finding = Finding::new(bench.seeds);
    let mut table = Table {
        title: "Both directions at once, no errors".to_owned(),
        columns: vec![
            Column::text("protocol"),
            Column::number("there kb/s"),
            Column::number("back kb/s"),
            Column::number("sum kb/s"),
            Column::number("RTS sent"),
            Column::number("frames that collided"),
        ],
        rows: Vec::new(),
    };
    let mut sums = Vec::new();
    let mut collisions = Vec::new();
    for protocol in [Tulip, TulipPlain, Unaided] {
        let runs = both(bench, protocol)?;
        let there = runs.summary(|m| flow(m, 0));
        let back = runs.summary(|m| flow(m, 1));
        let sum = runs.summary(|m| flow(m, 0) + flow(m, 1));
        let collided = runs.summary(|m| m.air(|c| c.collided as f64));
        let rts = runs.summary(|m| {
            m.stages.iter().filter_map(|s| s.air.as_ref()).map(|a| a.rts.frames as f64).sum()
        });
        let name = protocol.name();
        finding.measured.extend([
            Measured::new(format!("{name}, both directions"), &sum, "kb/s", None),
            Measured::new(format!("{name}, frames that collided"), &collided, "per run", None),
        ]);
        table.rows.push(vec![
            name.to_owned(),
            shown(&there),
            shown(&back),
            shown(&sum),
            shown(&rts),
            shown(&collided),
        ]);
        if protocol != TulipPlain {
            collisions.push(collided.mean);
        }
        if protocol == Tulip {
            let apart = runs.summary(|m| {
                let (there, back) = (flow(m, 0), flow(m, 1));
                100.0 * (there - back).abs() / there.max(back)
            });
            finding.within("TULIP, the directions apart in %,", apart.mean, 0.0, 10.0);
        }
        sums.push(sum.mean);
    }
    finding.above("sum with TULIP over the sum without a link layer", sums[0] / sums[2], 1.1);
    let (with, without) = (collisions[0], collisions[1]);
    finding.note(format!(
        "Two stations that hear each other hardly ever collide: {without:.0} frames in 100 s without a link layer, {with:.0} \
         with TULIP. What TULIP gains here are the handshakes of the ACKs that go with its answers"
    ));
    finding.tables.push(table);
    Ok(finding)
}
