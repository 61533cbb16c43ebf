//! How the verdicts depend on the assumed cost of the work on a segment.
//!
//! A host's power is its base, its radio by state, and a cost times its instructions. None of the three affects the
//! run, so another cost needs no other run. The two lifetimes of section 5 give another base and another capacity, and
//! all other lifetimes follow.

use lasthop_observe::metrics::{NodeEnergy, RunMetrics};

use super::calibration::budgets;
use super::cases::{node, radio_joules};
use crate::table::table;
use crate::{Bench, Finding, Interrupted, Runs, short};

/// Battery lifetime when idle, in minutes.
pub(super) const IDLE_MIN: f64 = 223.0;
/// Battery lifetime while the laptop sends continuously, in minutes.
pub(super) const SENDING_MIN: f64 = 110.0;

/// A host's power above its base in watts, and its payload in bytes per second: means over the runs of a case.
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

/// A host whose work costs `factor` times the assumed value, with the base and the capacity that follow from the two
/// lifetimes of section 5.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    pub(super) factor: f64,
    /// In watts.
    pub(super) base: f64,
    /// In joules.
    pub(super) capacity: f64,
}

impl Budget {
    /// Solves for base and capacity from the draws of an idle and a sending host.
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

/// Half of the assumed cost, the assumed cost, and twice it.
pub(super) const FACTORS: [f64; 3] = [0.5, 1.0, 2.0];

/// Adds a table of the results at other costs of a segment; `row` computes one.
pub(super) fn sensitivity(
    bench: &mut Bench<'_>,
    finding: &mut Finding,
    columns: &str,
    row: impl Fn(&Budget) -> Vec<f64>,
) -> Result<(), Interrupted> {
    let mut rows = table(
        "Effect of the cost of a segment (base and capacity derived again from the two lifetimes of 5)",
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

/// By how many percent `new` exceeds `old`.
pub(super) fn more(new: f64, old: f64) -> f64 {
    100.0 * (new / old - 1.0)
}
