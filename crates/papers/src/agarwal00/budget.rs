//! What the verdicts owe to the one stated constant, what the work on a segment costs.
//!
//! What a host draws is its base, plus its radio by state, plus a price times its instructions, and none of the three
//! acts upon the run. So another price needs no other run: the two lifetimes of 5 then give another base and another
//! capacity, and every other lifetime follows.

use lasthop_trace::metrics::{NodeEnergy, RunMetrics};

use super::calibration::budgets;
use super::cases::{node, radio_joules};
use crate::table::table;
use crate::{Bench, Finding, Interrupted, Runs, short};

/// How long the battery lasted with nothing to do, in minutes.
pub(super) const IDLE_MIN: f64 = 223.0;
/// How long it lasted while the laptop sent without a pause.
pub(super) const SENDING_MIN: f64 = 110.0;

/// What a host draws beyond its base, in watts, and what it moves, in bytes a second: means over the runs of a case.
#[derive(Clone, Copy, Debug)]
pub(super) struct Draw {
    pub(super) radio: f64,
    pub(super) work: f64,
    pub(super) rate: f64,
}

impl Draw {
    pub(super) fn of(runs: &Runs, host: &str) -> Draw {
        let mean = |spent: fn(&NodeEnergy) -> f64| {
            runs.mean(|m: &RunMetrics| node(m, host).map_or(f64::NAN, |n| spent(n) / m.end_s))
        };
        Draw {
            radio: mean(radio_joules),
            work: mean(|n| n.spent.processing),
            rate: mean(|n| (n.sent + n.received) as f64),
        }
    }
}

/// A host whose work costs `factor` times what is stated, with the base and the capacity that the two lifetimes of 5
/// give.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    pub(super) factor: f64,
    /// In watts.
    pub(super) base: f64,
    /// In joules.
    pub(super) capacity: f64,
}

impl Budget {
    /// From what the host draws idle and sending.
    pub(super) fn solve(idle: Draw, sending: Draw, factor: f64) -> Budget {
        let (at_rest, at_work) =
            (idle.radio + factor * idle.work, sending.radio + factor * sending.work);
        // capacity = IDLE_MIN (base + at_rest) = SENDING_MIN (base + at_work)
        let base = (SENDING_MIN * at_work - IDLE_MIN * at_rest) / (IDLE_MIN - SENDING_MIN);
        Budget { factor, base, capacity: 60.0 * IDLE_MIN * (base + at_rest) }
    }

    fn power(&self, draw: Draw) -> f64 {
        self.base + draw.radio + self.factor * draw.work
    }

    /// Minutes.
    pub(super) fn lifetime(&self, draw: Draw) -> f64 {
        self.capacity / self.power(draw) / 60.0
    }

    pub(super) fn per_joule(&self, draw: Draw) -> f64 {
        draw.rate / self.power(draw)
    }

    /// Millions of bytes.
    pub(super) fn megabytes(&self, draw: Draw) -> f64 {
        self.capacity * self.per_joule(draw) / 1e6
    }
}

/// Half of what is stated, that, and twice.
pub(super) const FACTORS: [f64; 3] = [0.5, 1.0, 2.0];

/// Adds a table of what becomes of columns with another cost of a segment; `row` works one out.
pub(super) fn sensitivity(
    bench: &mut Bench<'_>,
    finding: &mut Finding,
    columns: &str,
    row: impl Fn(&Budget) -> Vec<f64>,
) -> Result<(), Interrupted> {
    let mut rows = table(
        "What this owes to the cost of a segment (base and capacity found anew from the two lifetimes of 5)",
        &format!("cost of a segment, times the stated | {columns}"),
    );
    rows.rows.extend(
        budgets(bench)?
            .iter()
            .map(|budget| core::iter::once(budget.factor).chain(row(budget)).map(short).collect()),
    );
    finding.tables.push(rows);
    Ok(())
}

/// By how many percent `new` is more than `old`.
pub(super) fn more(new: f64, old: f64) -> f64 {
    100.0 * (new / old - 1.0)
}
