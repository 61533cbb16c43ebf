//! A comparison in two stages: a few runs of every scheme, then more runs of those near the top.

use lasthop_observe::stats::Summary;
use lasthop_scenario::{Comparison, Plan};
use lasthop_sim::runs::{CellResults, Results};

use super::{Points, applies, ranked};
use crate::{Document, Error, Runner};

/// The share of the schemes in the second stage is one in this many.
const PART: usize = 4;
/// Minimum number of schemes in the second stage, without the baseline.
const FEWEST: usize = 4;
/// Minimum number of runs of a scheme.
const FEW: u32 = 4;
/// Maximum number of runs of a scheme.
const MANY: u32 = 60;
/// Number of analyses: a scheme is judged after the first or the second stage.
const LOOKS: u32 = 2;

/// The number of runs of each scheme.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Race {
    /// Runs of every scheme.
    pub few: u32,
    /// Schemes in the second stage, without the baseline.
    pub near: usize,
    /// Runs of these and of the baseline.
    pub many: u32,
}

impl Race {
    /// The race with the same total number of runs as `runs` of each scheme.
    pub fn of(schemes: usize, runs: u32) -> Race {
        let few = runs.div_ceil(2).max(FEW).min(runs);
        let near = schemes.div_ceil(PART).max(FEWEST).min(schemes.saturating_sub(1));
        let left = u64::from(runs - few) * schemes as u64;
        let more = left / (near as u64 + 1);
        let many = (u64::from(few) + more).clamp(runs.into(), MANY.max(runs).into());
        Race { few, near, many: many as u32 }
    }
}

/// Compares at one point: makes `race.few` runs of all schemes, then more runs of those with the best means.
///
/// Each scheme is judged once, by all of its runs. Some of these runs also select the schemes of the second stage, so a
/// judgement comes from one of two analyses, each with half of the level. By Bonferroni's inequality the probability of
/// any false difference is below 5 % for every selection rule.
///
/// # Errors
///
/// No scheme applies besides the baseline, or `run` fails.
pub fn raced<E: From<Error>>(
    comparison: &Comparison,
    race: Race,
    run: &mut Runner<'_, E>,
) -> Result<Document<Points>, E> {
    applies(comparison)?;
    let mut all = comparison.clone();
    all.plan.cells.iter_mut().for_each(|cell| cell.scenario.runs = race.few);
    let first = run(&all.plan)?;
    let whole = |cell: &CellResults| cell.runs.len() == race.few as usize;
    if race.many <= race.few || !first.cells.iter().all(whole) {
        return Ok(ranked(&all, &first, 1));
    }
    let chosen = near(&first, comparison.baseline, race.near);
    let mut plan = Plan { cells: Vec::new(), ..all.plan.clone() };
    plan.axes.iter_mut().take(1).for_each(|axis| axis.labels.clear());
    for i in &chosen {
        let mut cell = all.plan.cells[*i].clone();
        cell.scenario.first_seed += u64::from(race.few);
        cell.scenario.runs = race.many - race.few;
        plan.axes
            .iter_mut()
            .take(1)
            .for_each(|axis| axis.labels.extend(cell.labels.first().cloned()));
        plan.cells.push(cell);
        all.plan.cells[*i].scenario.runs = race.many;
    }
    let more = run(&plan)?;
    let runs = first.cells.iter().enumerate().flat_map(|(i, cell)| {
        let further =
            chosen.iter().position(|other| *other == i).map(|place| &more.cells[place].runs);
        let missing = all.plan.cells[i].scenario.runs as usize;
        let made = cell.runs.iter().chain(further.into_iter().flatten()).cloned().map(Some);
        made.chain(std::iter::repeat(None)).take(missing)
    });
    let results = Results::new(&all.plan, first.setup.clone(), runs.collect());
    Ok(Document { fewer: Some(race.few), ..ranked(&all, &results, LOOKS) })
}

/// Indices of the baseline and of the schemes with the best means, in the order of the plan.
fn near(results: &Results, baseline: usize, near: usize) -> Vec<usize> {
    let mean = |cell: &CellResults| {
        let values = cell.runs.iter().map(|run| run.metrics.aggregate_throughput);
        Summary::of(&values.collect::<Vec<f64>>()).mean
    };
    let means: Vec<f64> = results.cells.iter().map(mean).collect();
    let mut order: Vec<usize> = (0..means.len()).filter(|i| *i != baseline).collect();
    order.sort_by(|a, b| means[*b].total_cmp(&means[*a]));
    order.truncate(near);
    order.push(baseline);
    order.sort_unstable();
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_race_takes_no_more_runs_than_all_together_would() {
        for schemes in [2, 3, 5, 12, 45, 200] {
            for runs in [2, 3, 4, 10, 13, 40] {
                let race = Race::of(schemes, runs);
                let all = race.few as usize * schemes;
                let more = (race.many - race.few) as usize * (race.near + 1);
                assert!(race.few <= runs && race.many >= runs, "{schemes} {runs} {race:?}");
                // With few schemes a race saves no runs: the smallest second stage may need one more run of each.
                assert!(
                    all + more <= schemes * runs as usize + schemes,
                    "{schemes} {runs} {race:?}"
                );
            }
        }
        assert_eq!(Race::of(45, 10), Race { few: 5, near: 12, many: 22 });
    }
}
