//! Results as Arrow tables. Columns are called as in the JSON, their units are in the field's metadata (`unit`), and
//! where the numbers are from in the schema's (`lasthop`, a [`Provenance`] as JSON).
//!
//! | table | a row is | columns |
//! |---|---|---|
//! | [`runs`] | a run | [`RUN_COLUMNS`], with the axes behind `cell`, then the scalars that any run has |
//! | [`flows`], [`stages`] | a flow, a stage in one direction | `cell`, axes, `seed`, `key`, all numbers by name; `a.b` is `b` in `a` |
//! | [`recorded::series`] | a point of a time-sequence plot | [`recorded::SERIES_COLUMNS`] |
//! | [`events`](recorded::RecordedRun::events) | an event | those of [`lasthop_observe::csv::EVENT_COLUMNS`] |
//!
//! An axis that is called like one of the first columns has `axis.` before its name.

mod flat;
mod numbers;
pub mod recorded;
pub(crate) mod row;

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, StringArray, UInt32Array, UInt64Array};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use lasthop_scenario::{Plan, Run};
use lasthop_sim::runs::{Results, RunResult};
use serde::Serialize;

pub use numbers::AxisNumbers;
pub use row::Row;

use crate::{Error, Provenance};

/// The metadata key of a column's unit.
pub const UNIT: &str = "unit";
/// The metadata key of the schema with the [`Provenance`].
pub const PROVENANCE: &str = "lasthop";
/// The first columns of a table of runs; axes follow `cell`. `all_complete` is true if every transfer was complete (the
/// scalar `complete` counts them), `stuck` has the stage of an endless loop.
pub const RUN_COLUMNS: [&str; 10] = [
    "cell",
    "seed",
    "key",
    "reason",
    "stuck",
    "all_complete",
    "hops",
    "agent_state_bytes",
    "end_s",
    "events",
];

/// The columns of a table under construction.
#[derive(Default)]
pub(crate) struct Columns {
    fields: Vec<Field>,
    arrays: Vec<ArrayRef>,
}

impl Columns {
    /// Appends a column; an empty unit means no unit.
    pub fn push(&mut self, name: impl Into<String>, unit: &str, array: impl Array + 'static) {
        self.push_array(name, unit, Arc::new(array));
    }

    pub fn push_array(&mut self, name: impl Into<String>, unit: &str, array: ArrayRef) {
        let field = Field::new(name, array.data_type().clone(), true);
        let unit = (!unit.is_empty()).then(|| (UNIT.to_owned(), unit.to_owned()));
        self.fields.push(field.with_metadata(unit.into_iter().collect()));
        self.arrays.push(array);
    }

    pub fn table(self, metadata: BTreeMap<String, String>) -> Result<RecordBatch, Error> {
        let schema = Schema::new_with_metadata(self.fields, metadata.into_iter().collect());
        RecordBatch::try_new(Arc::new(schema), self.arrays).map_err(|error| wrong(&error))
    }
}

/// An error that cannot happen to a table made here.
pub(crate) fn wrong(error: &ArrowError) -> Error {
    Error::input(format!("this is no table: {error}"), "")
}

/// The schema's metadata.
pub(crate) fn metadata(provenance: &Provenance) -> BTreeMap<String, String> {
    let text = serde_json::to_string(provenance).expect("a provenance is JSON");
    BTreeMap::from([(PROVENANCE.to_owned(), text)])
}

/// The column of an axis.
pub(crate) fn axis_column(axis: &str) -> String {
    let taken = RUN_COLUMNS.contains(&axis)
        || lasthop_observe::metrics::SCALARS.iter().any(|kind| kind.name == axis);
    if taken { format!("axis.{axis}") } else { axis.to_owned() }
}

/// Appends cell, axes and seed of each row.
pub(crate) fn push_place<'a>(
    columns: &mut Columns,
    axes: &[String],
    rows: impl Iterator<Item = (usize, &'a [String], u64, String)> + Clone,
) {
    let cells = rows.clone().map(|(cell, ..)| u32::try_from(cell).unwrap_or(u32::MAX));
    columns.push("cell", "", UInt32Array::from_iter_values(cells));
    for (i, axis) in axes.iter().enumerate() {
        let labels = rows.clone().map(|(_, labels, ..)| labels.get(i).cloned());
        columns.push(axis_column(axis), "", labels.collect::<StringArray>());
    }
    columns.push(
        "seed",
        "",
        UInt64Array::from_iter_values(rows.clone().map(|(_, _, seed, _)| seed)),
    );
    columns.push("key", "", StringArray::from_iter_values(rows.map(|(.., key)| key)));
}

/// The runs of `results` with their keys, in the order of the plan.
fn keyed<'a>(
    plan: &'a Plan,
    results: &'a Results,
) -> impl Iterator<Item = (Run, &'a [String], &'a RunResult)> {
    let mut runs = plan.runs();
    results
        .cells
        .iter()
        .enumerate()
        .flat_map(|(i, cell)| cell.runs.iter().map(move |run| (i, run)))
        .filter_map(move |(cell, result)| {
            let run = runs.find(|run| run.cell == cell && run.seed == result.seed)?;
            Some((run, plan.cells[cell].labels.as_slice(), result))
        })
}

/// The table of runs.
///
/// # Errors
///
/// Two axes have the same name.
pub fn runs(plan: &Plan, results: &Results, provenance: &Provenance) -> Result<RecordBatch, Error> {
    let rows: Vec<(Row, &[String])> = keyed(plan, results)
        .map(|(run, labels, result)| (Row::new(&run, result), labels))
        .collect();
    row::table(
        &provenance.axes,
        rows.iter().map(|(row, labels)| (row, *labels)),
        metadata(provenance),
    )
}

/// The table of flows: one row for each flow of each run, in the order of [`runs`].
///
/// # Errors
///
/// As [`runs`].
pub fn flows(
    plan: &Plan,
    results: &Results,
    provenance: &Provenance,
) -> Result<RecordBatch, Error> {
    parts(plan, results, provenance, |run| &run.metrics.flows)
}

/// The table of stages: one row for each stage and direction of each run, in the order of [`runs`].
///
/// # Errors
///
/// As [`runs`].
pub fn stages(
    plan: &Plan,
    results: &Results,
    provenance: &Provenance,
) -> Result<RecordBatch, Error> {
    parts(plan, results, provenance, |run| &run.metrics.stages)
}

fn parts<T: Serialize>(
    plan: &Plan,
    results: &Results,
    provenance: &Provenance,
    of: impl Fn(&RunResult) -> &Vec<T>,
) -> Result<RecordBatch, Error> {
    let mut flat = flat::Flat::default();
    let mut places = Vec::new();
    for (run, labels, result) in keyed(plan, results) {
        let key = run.key.to_string();
        for part in of(result) {
            flat.row(part)?;
            places.push((run.cell, labels, run.seed, key.clone()));
        }
    }
    let mut columns = Columns::default();
    push_place(&mut columns, &provenance.axes, places.iter().cloned());
    flat.push(&mut columns);
    columns.table(metadata(provenance))
}

/// The unit of a number, by its name in the JSON.
fn unit(name: &str) -> &'static str {
    let last = name.rsplit('.').next().unwrap_or(name);
    match last {
        "throughput" => "B/s",
        "delivered" | "wanted" | "bytes" | "data_bytes" | "mss" | "agent_state_bytes"
        | "length" | "payload" => "B",
        "cwnd" | "ssthresh" | "start" | "end" => "B",
        _ if last.ends_with("_s") => "s",
        _ => "1",
    }
}

/// The unit of a column of `kind`: text and Booleans have none.
fn unit_of(name: &str, kind: &DataType) -> &'static str {
    if matches!(kind, DataType::Utf8 | DataType::Boolean) { "" } else { unit(name) }
}
