//! Section 5.10: retransmissions of TCP after successful retransmissions of 802.11.

use lasthop_observe::metrics::RunMetrics;
use lasthop_report::number;

use super::calibration::whole_run;
use super::cases::{
    Case, STOCK, USUAL, expirations, given_up, packets, retransmissions, run, seeds,
};
use crate::measure::kbps;
use crate::table::{row, table};
use crate::{Bench, Finding, Interrupted, short};

/// Channels other than that of the testbed.
const CHANNELS: [(&str, &str); 6] = [
    ("1e-5 of the bits", r#"errors={ model = "bit-errors", ber = 1e-5 }"#),
    ("1.5e-5 of the bits", r#"errors={ model = "bit-errors", ber = 1.5e-5 }"#),
    ("2e-5 of the bits", r#"errors={ model = "bit-errors", ber = 2e-5 }"#),
    ("3e-5 of the bits", r#"errors={ model = "bit-errors", ber = 3e-5 }"#),
    (
        "nothing for 30 ms, each minute",
        r#"errors={ model = "two-state", good = "60s", bad = "30ms", ber-bad = 0.01 }"#,
    ),
    (
        "nothing for 100 ms, each minute",
        r#"errors={ model = "two-state", good = "60s", bad = "100ms", ber-bad = 0.01 }"#,
    ),
];

/// Bytes and minutes of Table 5.1, intermittent interference without RTS, SACK on and off, as kB/s.
const PUBLISHED_RATES: [f64; 2] =
    [4_185_749_921.0 / 109.0 / 60.0 / 1e3, 4_183_867_981.0 / 106.0 / 60.0 / 1e3];

/// Payload delivered in kB/s.
fn rate(m: &RunMetrics) -> f64 {
    kbps(m) / 8.0
}

/// Damaged frames as a percentage of all frames on the air.
fn damaged(m: &RunMetrics) -> f64 {
    100.0 * m.air(|f| f.damaged as f64) / m.air(|f| f.frames as f64)
}

pub(super) fn errors(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    finding.runs = seeds(bench);
    let whole = whole_run(bench)?;
    let (again, sent) = (whole.summary(retransmissions), whole.summary(packets));
    finding.compare("retransmitted by TCP during one battery", again, "packets", 50.0);
    finding.measure("data packets during one battery", sent, "packets");
    finding.measure("frames that the channel damaged", whole.summary(damaged), "%");
    finding.measure("packets that 802.11 gave up", whole.summary(given_up), "packets");
    finding.near("packets retransmitted by TCP during one battery", again, 50.0, 0.15);
    let case = |(_, errors)| Case::new(USUAL, &[STOCK]).with(&["horizon=300s", errors]);
    let runs = run(bench, &CHANNELS.map(case))?;
    let mut rows = table(
        "What another channel would give, for a full battery at an MTU of 1500",
        "<what the channel takes | kB/s | % of frames damaged | packets given up by 802.11 | retransmitted by TCP | \
         timeouts of TCP",
    );
    let mut within = Vec::new();
    for ((name, _), runs) in CHANNELS.iter().zip(&runs) {
        let count = runs.summary(retransmissions);
        if (5.0..=500.0).contains(&count.mean) {
            within.push(format!("{name} ({})", number::summary(&count)));
        }
        let (damaged, given_up) = (runs.summary(damaged), runs.summary(given_up));
        let expired = runs.summary(expirations);
        rows.rows.push(row(&[name, &runs.summary(rate), &damaged, &given_up, &count, &expired]));
    }
    finding.tables.push(rows);
    let [low, high] = PUBLISHED_RATES;
    finding.note(format!(
        "the paper's own figures exclude errors that come one by one: its sender brings {low:.0} to {high:.0} kB/s \
         across \
         (Table 5.1, intermittent interference without RTS), here {:.0} without errors and {:.0} with 2 bits in \
         100,000, \
         which would give its 50; and 10 m gave what 1 inch gave (5.8). What is left are rare moments in which nothing \
         gets through",
        whole.mean(rate),
        runs[2].mean(rate)
    ));
    finding.note(format!(
        "In one battery {} data packets are sent and the channel damages {} % of the frames; 802.11 sends those again, \
         up to seven times, and gives up {}; TCP's timer expires {} times. Between 5 and 500 there would be with: {}",
        short(sent.mean),
        short(whole.mean(damaged)),
        short(whole.mean(given_up)),
        short(whole.mean(expirations)),
        if within.is_empty() { "none of the channels tried".to_owned() } else { within.join("; ") }
    ));
    Ok(())
}
