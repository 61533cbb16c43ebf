//! Brown and Singh 1997, M-TCP: a window that survives a disconnection.

use lasthop_sim::runs::Recording;

use super::setup::built_in;
use crate::table::{row, table};
use crate::{Bench, Finding, Interrupted};

/// Time of the first disconnection in seconds, and time between disconnections.
const REACH: f64 = 10.0;
/// Payload of a segment in bytes, as in the scenario.
const MSS: f64 = 1000.0;

/// The effect of the first disconnection on the sender.
struct FirstDisconnection {
    /// Congestion window at the disconnection, in segments.
    before: f64,
    /// Minimum of the window until the next disconnection.
    least: f64,
    /// Timeouts until then.
    timeouts: f64,
    /// Duration of the transfer in seconds.
    transfer: f64,
}

fn first_disconnection(recording: &Recording, away: f64) -> Option<FirstDisconnection> {
    let series = recording.series.first()?;
    let next = REACH + away + REACH;
    let within = |at: f64| (REACH..next).contains(&at);
    let windows = || series.windows.iter().map(|w| (w.at_s, f64::from(w.cwnd) / MSS));
    let before = windows().take_while(|(at, _)| *at < REACH).last()?.1;
    let least =
        windows().filter(|(at, _)| within(*at)).map(|(_, cwnd)| cwnd).fold(before, f64::min);
    Some(FirstDisconnection {
        before: before.floor(),
        least: least.floor(),
        timeouts: series.timeouts.iter().filter(|at| within(**at)).count() as f64,
        transfer: recording.result.metrics.end_s,
    })
}

pub(super) fn disconnection(
    bench: &mut Bench<'_>,
    finding: &mut Finding,
) -> Result<(), Interrupted> {
    let mut rows = table(
        "The first disconnection, until the next one; nothing is left to chance, so each is one run",
        "<out of reach s | <agent | window before, segments | least window | timeouts | transfer s",
    );
    for away in [1.0, 2.0, 5.0] {
        let mut transfers = Vec::new();
        for agent in ["none", "split", "m-tcp"] {
            bench.check_interrupt()?;
            let set = [format!("errors.bad={away}s"), format!("agent={agent}")];
            let recording = bench.record(built_in("disconnections"), &set, 1);
            let case = format!("{away} s, {agent}");
            finding
                .require(recording.result.metrics.complete(), format!("{case}: all bytes arrive"));
            let Some(seen) = first_disconnection(&recording, away) else { continue };
            let FirstDisconnection { before, least, timeouts, transfer } = seen;
            rows.rows.push(row(&[
                &away.to_string(),
                &agent,
                &before,
                &least,
                &timeouts,
                &transfer,
            ]));
            finding.measure(format!("{case}, least window"), least, "segments");
            finding.measure(format!("{case}, transfer"), transfer, "s");
            transfers.push(transfer);
            match agent {
                "none" => finding.below(format!("{case}: least window, in segments"), least, 1.5),
                "m-tcp" => {
                    let text =
                        format!("{case}: window of {before} segments, at least {least} after");
                    finding.require(least >= before && before > 1.0, text);
                    finding.below(format!("{case}: timeouts"), timeouts, 1.0);
                }
                _ => {}
            }
        }
        let [none, split, m_tcp] = transfers[..] else { continue };
        finding.below(format!("{away} s: transfer with M-TCP (s)"), m_tcp, none.min(split));
    }
    finding.runs = 1;
    finding.tables.push(rows);
    Ok(())
}
