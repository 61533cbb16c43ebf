//! Section 5: one battery, idle and sending. Nothing else calibrates the energy model.

use super::budget::{Budget, Draw, FACTORS, IDLE_MIN, SENDING_MIN};
use super::cases::{Case, FROM_TWO, MTUS, STOCK, USUAL, batch, kbps, minutes, node, seeds};
use super::setup::RUN_S;
use crate::table::table;
use crate::{Bench, Finding, Interrupted, Runs, short};

/// Transfers start after the end of the run.
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

/// The runs shared by others: idle, sending, and one sender until its battery is empty.
fn base(bench: &mut Bench<'_>) -> Result<[Runs; 3], Interrupted> {
    let n = seeds(bench);
    // While one run empties the battery, other threads make the baseline of nearly every claim.
    let stock = MTUS.map(|mtu| Case::new(if bench.is_shown() { mtu } else { USUAL }, &[STOCK]));
    let [a, b, c, d] = stock.each_ref().map(|case| (case, n));
    let [whole, idle, sending, ..] =
        batch(bench, [(&whole(), 1), (&idle(), 1), (&sending(), n), a, b, c, d])?;
    Ok([idle, sending, whole])
}

/// The run that empties the battery.
pub(super) fn whole_run(bench: &mut Bench<'_>) -> Result<Runs, Interrupted> {
    base(bench).map(|[_, _, whole]| whole)
}

/// Hosts whose work costs half of the assumed value, that value, and twice it.
pub(super) fn budgets(bench: &mut Bench<'_>) -> Result<[Budget; 3], Interrupted> {
    let [idle, sending, _] = base(bench)?;
    let (idle, sending) = (Draw::of(&idle, "sender"), Draw::of(&sending, "sender"));
    Ok(FACTORS.map(|factor| Budget::solve(idle, sending, factor)))
}

pub(super) fn run(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let [idle, sending, whole] = base(bench)?;
    finding.runs = seeds(bench);
    let life = |runs: &Runs| runs.summary(minutes("sender"));
    let (rest, work, entire) = (life(&idle), life(&sending), life(&whole));
    finding.compare("lifetime, nothing to do", rest, "min", IDLE_MIN);
    finding.compare("lifetime, sending without a pause", work, "min", SENDING_MIN);
    let label = "the same in one run until the battery is empty";
    finding.compare(label, entire, "min", SENDING_MIN);
    finding.measure("throughput while sending", sending.summary(kbps), "kB/s");
    // The paper gives whole minutes.
    for (quantity, life, published) in [
        ("nothing to do,", rest, IDLE_MIN),
        ("sending, extrapolated,", work, SENDING_MIN),
        ("sending, until it is empty,", entire, SENDING_MIN),
    ] {
        let quantity = format!("lifetime in minutes, {quantity}");
        finding.within(quantity, life, published - 0.5, published + 0.5);
    }
    let emptied =
        whole.all().iter().all(|run| node(&run.metrics, "sender").is_some_and(|n| n.emptied));
    finding.require(emptied, "the whole run empties the battery");

    let [idle, sending] = [&idle, &sending].map(|runs| Draw::of(runs, "sender"));
    let mut rows = table(
        "What the two lifetimes leave open: base and capacity for a segment that costs half or twice",
        "cost of a segment, times the stated | base, W | capacity, kJ | sending: W of the work | W of the radio | \
         lifetime with nothing to do | sending",
    );
    rows.rows.extend(budgets(bench)?.map(|budget| {
        let kj = budget.capacity / 1000.0;
        let work = budget.factor * sending.work;
        let [a, b] = [idle, sending].map(|draw| budget.lifetime(draw));
        [budget.factor, budget.base, kj, work, sending.radio, a, b].map(short).to_vec()
    }));
    finding.tables.push(rows);
    finding.note(format!(
        "Sending draws {:.2} W for the radio and {:.2} W for the work of the stack beyond the base; idle the radio \
         draws {:.2} W, since a card without power saving listens at its receive current. Runs of {} s, extrapolated \
         at their mean power, and the run until the battery is empty differ by {:.2} %",
        sending.radio,
        sending.work,
        idle.radio,
        short(RUN_S),
        100.0 * (work.mean / entire.mean - 1.0)
    ));
    Ok(())
}
