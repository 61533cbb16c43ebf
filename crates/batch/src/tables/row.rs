//! The table of runs.

use std::collections::BTreeMap;

use arrow_array::{BooleanArray, Float64Array, RecordBatch, StringArray, UInt64Array};
use lasthop_lab::RunResult;
use lasthop_scenario::{Run, RunKey};
use lasthop_trace::metrics::{SCALARS, Scalar};

use super::{Columns, push_place};
use crate::Error;

/// What the table of runs has of one: much less than its result.
#[derive(Clone, Debug)]
pub struct Row {
    /// Its cell.
    pub cell: usize,
    /// Its seed.
    pub seed: u64,
    /// Its key.
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
    /// Of a run and its result.
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
pub(crate) fn table(
    axes: &[String],
    rows: &[(Row, &[String])],
    metadata: BTreeMap<String, String>,
) -> Result<RecordBatch, Error> {
    let mut columns = Columns::default();
    let all = || rows.iter().map(|(row, _)| row);
    let counts = |of: fn(&Row) -> u64| UInt64Array::from_iter_values(all().map(of));
    let places =
        rows.iter().map(|(row, labels)| (row.cell, *labels, row.seed, row.key.to_string()));
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
        // They come in the order of the list.
        let mut place = 0;
        for scalar in &row.scalars {
            while SCALARS.get(place).is_some_and(|(name, _)| *name != scalar.name) {
                place += 1;
            }
            if let Some(column) = values.get_mut(place) {
                column.get_or_insert_with(|| vec![None; rows.len()])[i] = Some(scalar.value);
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
