//! Section 5.10: what TCP sends again although 802.11 has done so already.

use lasthop_proto::event::Cause;
use lasthop_report::model::{Column, Measured, Table};
use lasthop_trace::metrics::RunMetrics;

use super::calibration::whole_run;
use super::cases::{Case, STOCK, USUAL, node, packets, retransmissions, run, seeds, shown};
use crate::bench::{Bench, Interrupted};
use crate::finding::{Finding, short};
use crate::west97::Experiment;

/// The experiment for the claim `id`.
pub(super) fn experiment(id: &str) -> Option<Experiment> {
    (id == "A-ERRORS").then_some(errors)
}

/// Other channels than that of the testbed: what would it take?
const CHANNELS: [(&str, &str); 8] = [
    ("1e-6 of the bits", r#"errors={ model = "bit-errors", ber = 1e-6 }"#),
    ("1e-5 of the bits", r#"errors={ model = "bit-errors", ber = 1e-5 }"#),
    ("1.5e-5 of the bits", r#"errors={ model = "bit-errors", ber = 1.5e-5 }"#),
    ("2e-5 of the bits", r#"errors={ model = "bit-errors", ber = 2e-5 }"#),
    ("3e-5 of the bits", r#"errors={ model = "bit-errors", ber = 3e-5 }"#),
    (
        "nothing for 10 ms, each minute",
        r#"errors={ model = "two-state", good = "60s", bad = "10ms", ber-bad = 0.01 }"#,
    ),
    (
        "nothing for 30 ms, each minute",
        r#"errors={ model = "two-state", good = "60s", bad = "30ms", ber-bad = 0.01 }"#,
    ),
    (
        "nothing for 100 ms, each minute",
        r#"errors={ model = "two-state", good = "60s", bad = "100ms", ber-bad = 0.01 }"#,
    ),
];

/// Frames that the channel damaged, of all frames on the air, in percent.
fn damaged(m: &RunMetrics) -> f64 {
    100.0 * m.air(|f| f.damaged as f64) / m.air(|f| f.frames as f64)
}

/// Packets that medium access gave up, for a full battery of the sender.
fn given_up(m: &RunMetrics) -> f64 {
    let dropped: u64 = m.stages.iter().map(|s| s.dropped.get(Cause::RetryLimit)).sum();
    dropped as f64 * node(m, "sender").map_or(f64::NAN, |n| n.lifetime_s) / m.end_s
}

/// Time-outs of the sender, for a full battery.
fn timeouts(m: &RunMetrics) -> f64 {
    let all = m.sum(|f| f.timeouts) as f64;
    all * node(m, "sender").map_or(f64::NAN, |n| n.lifetime_s) / m.end_s
}

fn errors(bench: &mut Bench<'_>) -> Result<Finding, Interrupted> {
    let mut finding = Finding::new(seeds(bench));
    let whole = whole_run(bench)?;
    let again = whole.summary(retransmissions);
    let sent = whole.summary(packets);
    finding.measured.extend([
        Measured::new("sent again by TCP during one battery", &again, "packets", Some(50.0)),
        Measured::new("data packets during one battery", &sent, "packets", None),
        Measured::new("frames that the channel damaged", &whole.summary(damaged), "%", None),
        Measured::new("packets that 802.11 gave up", &whole.summary(given_up), "packets", None),
    ]);
    finding.within("packets sent again by TCP during one battery", again.mean, 5.0, 500.0);
    let cases: Vec<Case> = CHANNELS
        .iter()
        .map(|(_, errors)| Case::new(USUAL, &[STOCK]).with(&["horizon=300s", errors]))
        .collect();
    let runs = run(bench, &cases)?;
    let mut rows = Vec::new();
    let mut within = Vec::new();
    for ((name, _), runs) in CHANNELS.iter().zip(&runs) {
        let count = runs.summary(retransmissions);
        if (5.0..=500.0).contains(&count.mean) {
            within.push(format!("{name} ({})", shown(&count)));
        }
        rows.push(vec![
            (*name).to_owned(),
            shown(&runs.summary(damaged)),
            shown(&runs.summary(given_up)),
            shown(&count),
            shown(&runs.summary(timeouts)),
        ]);
    }
    finding.tables.push(Table {
        title: "What another channel would give, for a full battery at an MTU of 1500".to_owned(),
        columns: vec![
            Column::text("what the channel takes"),
            Column::number("% of frames damaged"),
            Column::number("packets given up by 802.11"),
            Column::number("sent again by TCP"),
            Column::number("time-outs of TCP"),
        ],
        rows,
    });
    finding.note(format!(
        "In one battery {} data packets are sent and the channel damages {} % of the frames; 802.11 sends those again, up \
         to seven times, and gives up {}. Between 5 and 500 there would be with: {}",
        short(sent.mean),
        short(whole.summary(damaged).mean),
        short(whole.summary(given_up).mean),
        if within.is_empty() { "none of the channels tried".to_owned() } else { within.join("; ") }
    ));
    Ok(finding)
}
