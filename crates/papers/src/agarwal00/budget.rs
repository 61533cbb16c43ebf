//! What the verdicts owe to the one stated constant, what the work on a segment costs.
//!
//! What a host draws is its base, plus its radio by state, plus a price times its instructions, and none of the three
//! acts upon the run. So another price needs no other run: the two lifetimes of 5 then give another base and another
//! capacity, and every other lifetime follows.

use lasthop_report::model::{Column, Table};
use lasthop_trace::metrics::RunMetrics;

use super::cases::node;
use crate::bench::Runs;
use crate::finding::{Finding, short};

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
        let mean = |what: &dyn Fn(&RunMetrics) -> f64| runs.summary(what).mean;
        let spent = |m: &RunMetrics, what: &dyn Fn(&lasthop_trace::metrics::NodeEnergy) -> f64| {
            node(m, host).map_or(f64::NAN, |n| what(n) / m.end_s)
        };
        let radio = |n: &lasthop_trace::metrics::NodeEnergy| {
            n.spent.doze + n.spent.idle + n.spent.receive + n.spent.transmit
        };
        Draw {
            radio: mean(&|m| spent(m, &radio)),
            work: mean(&|m| spent(m, &|n| n.spent.processing)),
            rate: mean(&|m| spent(m, &|n| (n.sent + n.received) as f64)),
        }
    }
}

/// A host whose work costs `factor` times what is stated, with the base and the capacity that the two lifetimes of 5 give.
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

/// A table of what becomes of `columns` with another cost of a segment; `row` works one out.
pub(super) fn sensitivity(
    finding: &mut Finding,
    budgets: &[Budget; 3],
    columns: &[&str],
    row: impl Fn(&Budget) -> Vec<f64>,
) {
    let mut all = vec![Column::number("cost of a segment, times the stated")];
    all.extend(columns.iter().map(|c| Column::number(*c)));
    let rows = budgets.iter().map(|budget| {
        let cells = row(budget).into_iter().map(short);
        std::iter::once(short(budget.factor)).chain(cells).collect()
    });
    finding.tables.push(Table {
        title: "What this owes to the cost of a segment (base and capacity found anew from the two lifetimes of 5)"
            .to_owned(),
        columns: all,
        rows: rows.collect(),
    });
}
