//! The table of runs.

use std::collections::BTreeMap;

use arrow_array::{BooleanArray, Float64Array, RecordBatch, StringArray, UInt64Array};
use lasthop_observe::metrics::{SCALARS, ScalarKind};
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
    /// In the order of [`SCALARS`].
    scalars: Vec<Option<f64>>,
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
            scalars: SCALARS.iter().map(|kind| (kind.of)(&result.metrics)).collect(),
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

    for (place, ScalarKind { name, unit, .. }) in SCALARS.into_iter().enumerate() {
        let column = all().map(|row| row.scalars[place]);
        if column.clone().any(|value| value.is_some()) {
            columns.push(name, unit, column.collect::<Float64Array>());
        }
    }
    columns.table(metadata)
}
