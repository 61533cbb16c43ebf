//! Caceres and Iftode 1995: pauses of TCP after a handoff.

use lasthop_observe::metrics::RunMetrics;

use super::setup::built_in;
use crate::measure::{mbps, timeouts};
use crate::table::{row, table};
use crate::{Bench, Finding, Interrupted};

/// Times without a cell, in seconds and in the file's format.
const GAPS: [(f64, &str); 4] = [(0.0, "0s"), (0.1, "100ms"), (0.5, "500ms"), (1.0, "1s")];
/// A tick of the sender's clock in seconds.
const TICK: f64 = 0.5;

fn pause(m: &RunMetrics) -> f64 {
    m.handoffs.map_or(f64::NAN, |handoffs| handoffs.pause_mean_s)
}

pub(super) fn hand_off(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let mut rows = table(
        "Two WaveLAN cells, seven hand-offs in 64 s",
        "gap s | pause s | Mbit/s | timeouts | pause with fast retransmission s | Mbit/s | timeouts",
    );
    let mut without = Vec::new();
    for (gap, word) in GAPS {
        let gap_is = format!("handoff.gap={word}");
        let mut with =
            |fast: &str| bench.runs(built_in("handoff-wavelan"), &[gap_is.as_str(), fast]);
        let plain = with("fast-rtx-handoff=false")?;
        let fast = with("fast-rtx-handoff=true")?;
        let [plain_pause, fast_pause] = [&plain, &fast].map(|runs| runs.summary(pause));
        rows.rows.push(row(&[
            &gap,
            &plain_pause,
            &plain.summary(mbps),
            &plain.summary(timeouts),
            &fast_pause,
            &fast.summary(mbps),
            &fast.summary(timeouts),
        ]));
        finding.measure(format!("gap {word}, pause"), plain_pause, "s");
        finding.measure(format!("gap {word}, pause with fast retransmission"), fast_pause, "s");
        finding.judge(
            format!("gap {word}, pause"),
            plain_pause.mean,
            crate::Bound::AtLeast(0.8),
            format!("a gap of {word} pauses TCP for {:.2} s, wanted 0.8 or more", plain_pause.mean),
        );
        // The gap itself is unavoidable; the authors could reduce the pause that TCP adds.
        finding.below(
            format!("gap {word}, pause beyond the gap with fast retransmission (s)"),
            fast_pause.mean - gap,
            0.2,
        );
        without.push(plain_pause.mean);
    }
    finding.tables.push(rows);
    // The timer ends the pause, wherever the gap is within its period.
    finding.below(
        "difference of the pauses without it at gaps of 0 and 500 ms (s, a tick is 0.5)",
        (without[2] - without[0]).abs(),
        TICK,
    );
    Ok(())
}
