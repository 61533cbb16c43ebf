//! Simultaneous transfers in both directions over one half-duplex link (3.3.1, Figure 1).

use lasthop_observe::metrics::RunMetrics;

use super::cases::Protocol::{self, Tulip, TulipPlain, Unaided};
use super::setup::TESTBED;
use crate::measure::flow_kbps;
use crate::table::{row, table};
use crate::{Bench, Estimate, Finding, Interrupted};

/// Duration in seconds; no transfer ends earlier, so both directions are always busy.
const SECONDS: &str = "horizon=100s";
const THERE_AND_BACK: &str = "transfer=[{ from = 'fixed', to = 'mobile', bytes = '100MB' }, \
                              { from = 'mobile', to = 'fixed', bytes = '100MB' }]";

/// The settings of a case.
pub(super) fn changes(protocol: Protocol) -> Vec<&'static str> {
    [protocol.changes(), &[THERE_AND_BACK, SECONDS, "host.fixed.recv-buffer=42kB"]].concat()
}

/// RTS frames of all stations.
fn rts(m: &RunMetrics) -> f64 {
    m.stages.iter().filter_map(|s| s.air.as_ref()).map(|a| a.rts.frames as f64).sum()
}

/// By how many percent the slower direction is behind.
fn apart(m: &RunMetrics) -> f64 {
    let (there, back) = (flow_kbps(m, 0), flow_kbps(m, 1));
    100.0 * (there - back).abs() / there.max(back)
}

/// 3.3.1: with TRANS and WAIT the directions alternate, instead of colliding RTS frames.
pub(super) fn run(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let mut rows = table(
        "Both directions at once, no errors",
        "<protocol | there kb/s | back kb/s | sum kb/s | RTS sent | frames that collided",
    );
    let mut means = Vec::new();
    let mut sums = Vec::new();
    for protocol in [Tulip, TulipPlain, Unaided] {
        let runs = bench.runs(TESTBED, &changes(protocol))?;
        let there = runs.summary(|m| flow_kbps(m, 0));
        let back = runs.summary(|m| flow_kbps(m, 1));
        let sum = runs.summary(|m| flow_kbps(m, 0) + flow_kbps(m, 1));
        let collided = runs.summary(|m| m.air(|c| c.collided as f64));
        let name = protocol.name();
        finding.measure(format!("{name}, both directions"), sum, "kb/s");
        finding.measure(format!("{name}, frames that collided"), collided, "per run");
        rows.rows.push(row(&[&name, &there, &back, &sum, &runs.summary(rts), &collided]));
        if protocol == Tulip {
            finding.measure("TULIP, the directions apart", runs.summary(apart), "%");
        }
        sums.push(runs.each(|m| flow_kbps(m, 0) + flow_kbps(m, 1)));
        means.push((sum.mean, collided.mean));
    }
    let (with, without) = (means[0], means[2]);
    // Nothing is lost, so runs with equal seeds differ by the draws of medium access only.
    let gain = Estimate::ratio(&sums[0], &sums[2]);
    finding.measure("sum with TULIP over the sum without a link layer", gain, "");
    finding.above("sum with TULIP over the sum without a link layer", gain, 1.0);
    finding.note(format!(
        "Two stations that hear each other hardly ever collide: {:.0} frames in 100 s without a link layer, {:.0} \
         with TULIP. What TULIP gains here are the handshakes of the ACKs that go with its answers",
        without.1, with.1
    ));
    finding.tables.push(rows);
    Ok(())
}
