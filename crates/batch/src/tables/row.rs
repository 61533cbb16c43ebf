//! The table of runs.

use std::collections::BTreeMap;

use arrow_array::{BooleanArray, Float64Array, RecordBatch, StringArray, UInt64Array};
use lasthop_observe::metrics::{SCALARS, Scalar};
use lasthop_scenario::{Run, RunKey};
use lasthop_sim::runs::RunResult;

use super::{Columns, push_place};
use crate::Error;

/// A row of the table of runs: much smaller than a result.
#[derive(Clone, Debug)]
pub struct Row {
    pub cell: usize,
    pub seed: u64,
    pub key: RunKey,
    reason: String,
    stuck: Option<String>,
    all_complete: bool,
    hops: u64,
    agent_state_bytes: u64,
    end_s: f64,
    events: u64,
    scalars: Vec<Scalar>,
}

impl Row {
    /// The row of a run with its result.
    pub fn new(run: &Run, result: &RunResult) -> Row {
        Row {
            cell: run.cell,
            seed: run.seed,
            key: run.key,
            reason: result.reason.clone(),
            stuck: result.stuck.clone(),
            all_complete: result.metrics.complete(),
            hops: result.hops,
            agent_state_bytes: result.agent_state_bytes,
            end_s: result.metrics.end_s,
            events: result.metrics.events,
            scalars: result.metrics.scalars(),
        }
    }
}

/// A table of rows, each with the labels of its cell.
pub(crate) fn table<'a>(
    axes: &[String],
    rows: impl Iterator<Item = (&'a Row, &'a [String])> + Clone,
    metadata: BTreeMap<String, String>,
) -> Result<RecordBatch, Error> {
    let mut columns = Columns::default();
    let all = || rows.clone().map(|(row, _)| row);
    let count = rows.clone().count();
    let counts = |of: fn(&Row) -> u64| UInt64Array::from_iter_values(all().map(of));
    let places =
        rows.clone().map(|(row, labels)| (row.cell, labels, row.seed, row.key.to_string()));
    push_place(&mut columns, axes, places);
    columns.push("reason", "", StringArray::from_iter_values(all().map(|row| &row.reason)));
    columns.push("stuck", "", all().map(|row| row.stuck.clone()).collect::<StringArray>());
    columns.push(
        "all_complete",
        "",
        all().map(|row| Some(row.all_complete)).collect::<BooleanArray>(),
    );
    columns.push("hops", "1", counts(|row| row.hops));
    columns.push("agent_state_bytes", "B", counts(|row| row.agent_state_bytes));
    columns.push("end_s", "s", Float64Array::from_iter_values(all().map(|row| row.end_s)));
    columns.push("events", "1", counts(|row| row.events));

    let mut values: Vec<Option<Vec<Option<f64>>>> = vec![None; SCALARS.len()];
    for (i, row) in all().enumerate() {
        // The scalars are in the order of the list.
        let mut place = 0;
        for scalar in &row.scalars {
            while SCALARS.get(place).is_some_and(|(name, _)| *name != scalar.name) {
                place += 1;
            }
            if let Some(column) = values.get_mut(place) {
                column.get_or_insert_with(|| vec![None; count])[i] = Some(scalar.value);
            }
        }
    }
    for ((name, unit), column) in SCALARS.into_iter().zip(values) {
        if let Some(column) = column {
            columns.push(name, unit, Float64Array::from(column));
        }
    }
    columns.table(metadata)
}
