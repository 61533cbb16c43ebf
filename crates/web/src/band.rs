//! Acknowledged bytes over time of several seeds, with the 95 % interval.

use lasthop_observe::Nothing;
use lasthop_observe::stats::Summary;
use lasthop_sim::runs::{layout, record_by};
use serde_json::json;

use crate::envelope::Columns;
use crate::request::{ErrorAnswer, RunRequest};
use crate::run::{MOST_EVENTS, driven};

/// Points of the curve.
const POINTS: usize = 200;

/// Maximum number of runs.
const MOST: u32 = 100;

/// Makes `runs` runs with consecutive seeds from that of `one`.
pub(crate) fn band(one: &RunRequest, runs: u32) -> Result<Vec<u8>, ErrorAnswer> {
    let (scenario, first) = one.scenario()?;
    let runs = runs.clamp(1, MOST);
    let share = MOST_EVENTS / u64::from(runs);
    let mut acked: Vec<Vec<(f64, u64)>> = Vec::new();
    let (mut ends, mut cut) = (Vec::new(), 0_u32);
    let mut scalars: Vec<(&str, &str, Vec<f64>)> = Vec::new();
    for i in 0..u64::from(runs) {
        let recording = record_by(&scenario, first.wrapping_add(i), &mut Nothing, |sink| {
            let (end, was_cut) = driven(&scenario, first.wrapping_add(i), share, sink);
            cut += u32::from(was_cut);
            end
        });
        for scalar in recording.result.metrics.scalars() {
            match scalars.iter_mut().find(|(name, ..)| *name == scalar.name) {
                Some((.., values)) => values.push(scalar.value),
                None => scalars.push((scalar.name, scalar.unit, vec![scalar.value])),
            }
        }
        let series = recording.series.into_iter().next().unwrap_or_default();
        ends.push(series.end_s);
        acked.push(series.acked);
    }
    let end = ends.iter().copied().fold(0.0, f64::max);
    let (mut t, mut mean, mut low, mut high) = (vec![], vec![], vec![], vec![]);
    for i in 0..=POINTS {
        let at = end * i as f64 / POINTS as f64;
        let values: Vec<f64> = acked
            .iter()
            .map(|acked| {
                let until = acked.partition_point(|(t, _)| *t <= at);
                until.checked_sub(1).map_or(0.0, |last| acked[last].1 as f64)
            })
            .collect();
        let summary = Summary::of(&values);
        t.push(at);
        mean.push(summary.mean);
        low.push(summary.low());
        high.push(summary.high());
    }
    let mut columns = Columns::default();
    for (name, numbers) in [("t", &t), ("mean", &mean), ("low", &low), ("high", &high)] {
        columns.numbers(name, numbers);
    }
    let scalars: Vec<_> = scalars
        .iter()
        .filter(|(.., values)| values.len() == runs as usize)
        .map(|(name, unit, values)| {
            let summary = Summary::of(values);
            json!({
                "name": name, "unit": unit,
                "mean": summary.mean, "low": summary.low(), "high": summary.high(),
            })
        })
        .collect();
    let flows = layout(&scenario).flows.len();
    let answer =
        json!({ "runs": runs, "first": first, "cut": cut, "flows": flows, "scalars": scalars });
    Ok(columns.envelope(&answer))
}
