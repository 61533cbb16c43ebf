//! Section 5: one battery, idle and sending. What the energy model is calibrated with, and with nothing else.

use lasthop_report::model::{Column, Measured, Table};
use lasthop_trace::stats::Summary;

use super::budget::{Budget, Draw, FACTORS, IDLE_MIN, SENDING_MIN};
use super::cases::{Case, FROM_TWO, STOCK, USUAL, kbps, minutes, node, seeds};
use super::{RUN_S, TESTBED};
use crate::bench::{Bench, Interrupted, Runs};
use crate::finding::{Finding, short};
use crate::west97::Experiment;

/// The experiment for the claim `id`.
pub(super) fn experiment(id: &str) -> Option<Experiment> {
    (id == "A-CAL").then_some(run)
}

/// Nobody sends before the run is over.
const IDLE: &[&str] = &["transfer.start=1000000s"];

fn idle() -> Case {
    Case::new(USUAL, &[STOCK]).with(IDLE)
}

fn sending() -> Case {
    Case::new(USUAL, &[STOCK])
}

/// A run long enough for the whole battery.
pub(super) fn whole() -> Case {
    sending().with(FROM_TWO).with(&["horizon=6720s"])
}

/// The runs that others build on: idle, sending, and one sender until its battery is empty.
fn base(bench: &mut Bench<'_>) -> Result<[Runs; 3], Interrupted> {
    let cases = [(whole(), 1), (idle(), 1), (sending(), seeds(bench))];
    let changes: Vec<Vec<&str>> = cases.iter().map(|(case, _)| case.changes()).collect();
    let jobs: Vec<(&[&str], u32)> =
        changes.iter().zip(&cases).map(|(c, (_, n))| (c.as_slice(), *n)).collect();
    let runs = bench.batch(TESTBED, &jobs)?;
    let Ok([whole, idle, sending]) = <[Runs; 3]>::try_from(runs) else {
        unreachable!("as many as were asked for")
    };
    Ok([idle, sending, whole])
}

/// The run that empties the battery.
pub(super) fn whole_run(bench: &mut Bench<'_>) -> Result<Runs, Interrupted> {
    Ok(base(bench)?[2].clone())
}

/// Hosts whose work costs half of what is stated, that, and twice.
pub(super) fn budgets(bench: &mut Bench<'_>) -> Result<[Budget; 3], Interrupted> {
    let [idle, sending, _] = base(bench)?;
    let (idle, sending) = (Draw::of(&idle, "sender"), Draw::of(&sending, "sender"));
    Ok(FACTORS.map(|factor| Budget::solve(idle, sending, factor)))
}

fn run(bench: &mut Bench<'_>) -> Result<Finding, Interrupted> {
    let [idle, sending, whole] = base(bench)?;
    let budgets = budgets(bench)?;
    let mut finding = Finding::new(seeds(bench));
    let (rest, work) = (idle.summary(minutes("sender")), sending.summary(minutes("sender")));
    let entire = whole.summary(minutes("sender"));
    let measured = |label: &str, value: &Summary, unit: &str, published| {
        Measured::new(label, value, unit, published)
    };
    finding.measured.extend([
        measured("lifetime, nothing to do", &rest, "min", Some(IDLE_MIN)),
        measured("lifetime, sending without a pause", &work, "min", Some(SENDING_MIN)),
        measured(
            "the same in one run until the battery is empty",
            &entire,
            "min",
            Some(SENDING_MIN),
        ),
        measured("throughput while sending", &sending.summary(kbps), "kB/s", None),
    ]);
    // The paper gives whole minutes.
    finding.within(
        "lifetime in minutes, nothing to do,",
        rest.mean,
        IDLE_MIN - 0.5,
        IDLE_MIN + 0.5,
    );
    for (what, lifetime) in [("extrapolated", work.mean), ("until it is empty", entire.mean)] {
        let (low, high) = (SENDING_MIN - 0.5, SENDING_MIN + 0.5);
        finding.within(&format!("lifetime in minutes, sending, {what},"), lifetime, low, high);
    }
    let emptied =
        whole.all().iter().all(|run| node(&run.metrics, "sender").is_some_and(|n| n.emptied));
    finding.require(emptied, "the whole run empties the battery");

    let [idle, sending] = [&idle, &sending].map(|runs| Draw::of(runs, "sender"));
    finding.tables.push(Table {
        title: "What the two lifetimes leave open: base and capacity for a segment that costs half or twice".to_owned(),
        columns: vec![
            Column::number("cost of a segment, times the stated"),
            Column::number("base, W"),
            Column::number("capacity, kJ"),
            Column::number("sending: W of the work"),
            Column::number("W of the radio"),
            Column::number("lifetime with nothing to do"),
            Column::number("sending"),
        ],
        rows: budgets
            .iter()
            .map(|budget| {
                let kj = budget.capacity / 1000.0;
                let work = budget.factor * sending.work;
                let [a, b] = [idle, sending].map(|draw| budget.lifetime(draw));
                [budget.factor, budget.base, kj, work, sending.radio, a, b].map(short).to_vec()
            })
            .collect(),
    });
    finding.note(format!(
        "Sending draws {:.2} W for the radio and {:.2} W for the work of the stack beyond the base; idle the radio draws \
         {:.2} W, since a card without power saving listens at its receive current. Runs of {} s, extrapolated at their \
         mean power, and the run until the battery is empty differ by {:.2} %",
        sending.radio,
        sending.work,
        idle.radio,
        short(RUN_S),
        100.0 * (work.mean / entire.mean - 1.0)
    ));
    Ok(finding)
}
