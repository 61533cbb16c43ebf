//! Merges stores into one table: sorted by cell and seed, without duplicate runs. Stores are compared by its digest.
//!
//! Batches are read in the order of their first runs, so memory does not grow with the number of batches.

mod output;

use core::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch, new_null_array};
use arrow_schema::{Field, Schema, SchemaRef};
use arrow_select::interleave::interleave;
use bytes::Bytes;
use lasthop_observe::metrics::SCALARS;
use lasthop_scenario::{Axis, Digest};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use self::output::{Output, digest};
use crate::store::{Store, Version, failed, same_version};
use crate::sweep::{BATCH, BatchInfo, known};
use crate::tables::{AxisNumbers, PROVENANCE, axis_column, wrong};
use crate::{Error, Provenance};

/// Number of rows that are written together.
const CHUNK: usize = 8192;
/// The only machine-dependent column, because memory depends on the size of pointers.
const OF_MACHINE: &str = "agent_state_bytes";

/// The result of a merge.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MergeSummary {
    /// Number of distinct runs.
    pub rows: u64,
    /// Number of runs in the complete sweeps.
    pub of: u64,
    /// Digest of the sorted table without the machine-dependent column: equal runs give equal digests.
    pub digest: String,
    pub sweeps: Vec<Provenance>,
}

impl MergeSummary {
    /// The result as JSON.
    pub fn document(&self) -> serde_json::Value {
        let MergeSummary { rows, of, digest, sweeps } = self;
        serde_json::json!({ "runs": rows, "of": of, "digest": digest, "sweeps": sweeps })
    }
}

/// A batch: the stores that have it, and its metadata.
struct Batch<'a> {
    name: String,
    stores: Vec<&'a dyn Store>,
    about: BatchInfo,
    schema: SchemaRef,
}

/// Maximum number of distinct labels of an axis whose column has numbers; the labels of others stay, which bounds memory.
const MAX_LABELS: usize = 1 << 20;

/// Merges stores. With `out` the table is written there as `runs.parquet`, and with `csv` as `runs.csv`, each
/// atomically. Axes whose labels are amounts of one kind have numbers in Parquet and labels in CSV and in the digest.
///
/// # Errors
///
/// A store has another version or sweeps with other axes, a batch is damaged, equal runs have different results, or the
/// directory cannot be written.
pub fn merge(stores: &[&dyn Store], out: Option<&Path>, csv: bool) -> Result<MergeSummary, Error> {
    let batches = find(stores)?;
    let sweeps = sweeps(stores, &batches)?;
    let schema = union(&batches, &sweeps)?;
    let axes = match (out, sweeps.first()) {
        (Some(_), Some(sweep)) => axes(&batches, &sweep.axes)?,
        _ => Vec::new(),
    };
    let mut output = Output::create(out, csv, &schema, AxisNumbers::of(&axes))?;
    let mut merging =
        Merging { schema, open: Vec::new(), rows: Vec::new(), heap: BinaryHeap::new() };
    let mut waiting = batches.iter().peekable();
    let mut last: Option<((u32, u64), usize, usize)> = None;
    loop {
        // All batches that start before the next row must be open.
        while let Some(batch) =
            waiting.next_if(|batch| merging.next().is_none_or(|at| batch.about.first <= at))
        {
            merging.open(batch)?;
        }
        let Some((at, slot, row)) = merging.pop() else { break };
        match last {
            Some((before, s, r)) if before == at => merging.same((s, r), (slot, row))?,
            _ => merging.rows.push((slot, row)),
        }
        last = Some((at, slot, row));
        if merging.rows.len() >= CHUNK {
            output.take(&merging.chunk()?)?;
            last = merging.forget(last);
        }
    }
    output.take(&merging.chunk()?)?;
    let of = sweeps.iter().map(|sweep| sweep.cells * u64::from(sweep.seeds)).sum();
    let (rows, digest) = output.finish()?;
    Ok(MergeSummary { rows, of, digest, sweeps })
}

/// All batches in the order of their first runs. Batches with equal names are copies of one batch.
fn find<'a>(stores: &[&'a dyn Store]) -> Result<Vec<Batch<'a>>, Error> {
    let mut all: BTreeMap<String, Batch<'a>> = BTreeMap::new();
    for &store in stores {
        same_version(store, false)?;
        let names = store.list().map_err(|error| failed(store, "", error))?;
        for name in names.into_iter().filter(|name| name.ends_with(".parquet")) {
            if let Some(batch) = all.get_mut(&name) {
                batch.stores.push(store);
                continue;
            }
            let builder = reader(store, &name)?;
            let about = builder
                .schema()
                .metadata()
                .get(BATCH)
                .and_then(|text| serde_json::from_str(text).ok());
            let Some(about): Option<BatchInfo> = about else {
                return Err(damaged(store, &name, "it is no batch"));
            };
            if about.version != Version::ours() {
                let text = format!(
                    "the batch {name} is of {}, and this is {}",
                    about.version,
                    Version::ours()
                );
                return Err(Error::input(
                    text + ": versions do not mix",
                    "take another store, or that version",
                ));
            }
            let schema = builder.schema().clone();
            all.insert(name.clone(), Batch { name, stores: vec![store], about, schema });
        }
    }
    let mut all: Vec<_> = all.into_values().collect();
    all.sort_by(|a, b| (a.about.first, &a.name).cmp(&(b.about.first, &b.name)));
    Ok(all)
}

/// The axes with all labels in the batches, except axes of too many labels.
fn axes(batches: &[Batch<'_>], names: &[String]) -> Result<Vec<Axis>, Error> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let columns: Vec<String> = names.iter().map(|name| axis_column(name)).collect();
    let mut labels = vec![BTreeSet::new(); names.len()];
    for batch in batches {
        let (store, name) = (batch.stores[0], &*batch.name);
        let builder = reader(store, name)?;
        // By index: in names, a point would separate the levels of a nested column.
        let schema = builder.parquet_schema();
        let is_axis = |i: &usize| columns.iter().any(|name| name == schema.column(*i).name());
        let columns_of_axes =
            ProjectionMask::leaves(schema, (0..schema.num_columns()).filter(is_axis));
        let tables = builder.with_projection(columns_of_axes).build();
        for table in tables.map_err(|error| damaged(store, name, error))? {
            let table = table.map_err(|error| damaged(store, name, error))?;
            for (column, labels) in columns.iter().zip(&mut labels) {
                let found = table.column_by_name(column).and_then(|c| c.as_string_opt::<i32>());
                let found = found.ok_or_else(|| damaged(store, name, "it lacks an axis"))?;
                for label in found.iter().flatten() {
                    if labels.len() <= MAX_LABELS && !labels.contains(label) {
                        labels.insert(label.to_owned());
                    }
                }
            }
        }
    }
    let all = names.iter().zip(labels).filter(|(_, labels)| labels.len() <= MAX_LABELS);
    let axis = |(name, labels): (&String, BTreeSet<String>)| Axis {
        name: name.clone(),
        labels: labels.into_iter().collect(),
    };
    Ok(all.map(axis).collect())
}

fn damaged(store: &dyn Store, name: &str, why: impl core::fmt::Display) -> Error {
    Error::input(
        format!("the batch {name} in {} is damaged: {why}", store.title()),
        "remove it, and `lasthop sweep` makes it again",
    )
}

fn reader(store: &dyn Store, name: &str) -> Result<ParquetRecordBatchReaderBuilder<Bytes>, Error> {
    let bytes = store.get(name).map_err(|error| failed(store, name, error))?.unwrap_or_default();
    ParquetRecordBatchReaderBuilder::try_new(bytes.into())
        .map_err(|error| damaged(store, name, error))
}

fn read(store: &dyn Store, name: &str) -> Result<RecordBatch, Error> {
    let bytes = store.get(name).map_err(|error| failed(store, name, error))?.unwrap_or_default();
    table(bytes).map_err(|error| damaged(store, name, error))
}

/// The table in the bytes of a Parquet file, limited to the length of a batch.
fn table(bytes: Vec<u8>) -> Result<RecordBatch, Box<dyn core::error::Error>> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(bytes))?;
    let schema = builder.schema().clone();
    let rows = builder.metadata().file_metadata().num_rows().max(1) as usize;
    let mut all = builder.with_batch_size(rows).build()?;
    let first = all.next().transpose()?.unwrap_or_else(|| RecordBatch::new_empty(schema));
    match all.next() {
        None => Ok(first),
        Some(_) => Err("it is longer than a batch".into()),
    }
}

/// Fails if the stored batch differs from the new one.
pub(crate) fn alike(name: &str, store: &str, there: &[u8], made: &[u8]) -> Result<(), Error> {
    let table = |bytes: &[u8]| {
        table(bytes.to_vec()).map_err(|error| {
            let help = "remove it, and `lasthop sweep` makes it again";
            Error::input(format!("the batch {name} in {store} is damaged: {error}"), help)
        })
    };
    if there == made {
        return Ok(());
    }
    let (a, b) = (table(there)?, table(made)?);
    if digest(Digest::default(), &a) == digest(Digest::default(), &b)
        && a.num_rows() == b.num_rows()
    {
        return Ok(());
    }
    Err(differ(format!("the batch {name} in {store} has other results than were found just now")))
}

/// The error for equal runs with different results.
fn differ(subject: String) -> Error {
    Error::input(
        format!("{subject}: equal keys, different results"),
        "one of them was made by a broken machine or another program: make these runs again on two machines, and remove \
         the wrong batch",
    )
}

/// The sweeps of these batches.
fn sweeps(stores: &[&dyn Store], batches: &[Batch<'_>]) -> Result<Vec<Provenance>, Error> {
    let ids: BTreeSet<&str> = batches.iter().map(|batch| batch.about.sweep.as_str()).collect();
    let mut all: Vec<Provenance> = Vec::new();
    for id in ids {
        let name = format!("sweep-{id}.json");
        let found = stores.iter().find_map(|&store| match store.get(&name) {
            Ok(None) => None,
            Ok(Some(bytes)) => Some(Ok(bytes)),
            Err(error) => Some(Err(failed(store, &name, error))),
        });
        let help =
            "it says what was run, and is written before the first batch: copy the whole store";
        let bytes = found.unwrap_or_else(|| {
            Err(Error::input(format!("{name} is in none of the stores"), help))
        })?;
        let sweep: Provenance = serde_json::from_slice(&bytes)
            .map_err(|error| Error::input(format!("{name} cannot be read: {error}"), help))?;
        known(&sweep)?;
        if let Some(first) = all.first().filter(|first| first.axes != sweep.axes) {
            let text = format!(
                "one sweep varies {}, another {}",
                first.axes.join(", "),
                sweep.axes.join(", ")
            );
            return Err(Error::input(text, "merge sweeps of the same axes"));
        }
        all.push(sweep);
    }
    Ok(all)
}

/// The columns of all batches: the scalars that any run has, in order.
fn union(batches: &[Batch<'_>], sweeps: &[Provenance]) -> Result<SchemaRef, Error> {
    let is_scalar = |field: &Arc<Field>| SCALARS.iter().any(|(name, _)| name == field.name());
    let Some(first) = batches.first() else {
        return Err(Error::input(
            "the store has no batches",
            "`lasthop sweep FILE --store DIR` makes them",
        ));
    };
    let mut fields: Vec<Arc<Field>> =
        first.schema.fields().iter().filter(|f| !is_scalar(f)).cloned().collect();
    for (name, _) in SCALARS {
        let field = batches
            .iter()
            .find_map(|batch| batch.schema.fields().find(name).map(|(_, field)| field.clone()));
        fields.extend(field);
    }
    let text = |value: &[Provenance]| serde_json::to_string(value).unwrap_or_default();
    let mut metadata = BTreeMap::new();
    if let [sweep, others @ ..] = sweeps {
        metadata.extend(crate::tables::metadata(sweep));
        if !others.is_empty() {
            metadata.insert(format!("{PROVENANCE}.others"), text(others));
        }
    }
    Ok(Arc::new(Schema::new_with_metadata(fields, metadata.into_iter().collect())))
}

/// Cell and seed: the position of a run in the table.
type At = (u32, u64);

/// Overlapping batches whose rows are merged.
struct Merging<'a> {
    schema: SchemaRef,
    /// Names and rows of open batches.
    open: Vec<(&'a str, RecordBatch)>,
    /// The rows of the next chunk: batch and row.
    rows: Vec<(usize, usize)>,
    heap: BinaryHeap<Reverse<(At, usize, usize)>>,
}

impl<'a> Merging<'a> {
    fn open(&mut self, batch: &'a Batch<'a>) -> Result<(), Error> {
        let mut table = read(batch.stores[0], &batch.name)?;
        for &store in &batch.stores[1..] {
            let other = read(store, &batch.name)?;
            if digest(Digest::default(), &other) != digest(Digest::default(), &table) {
                let (a, b) = (batch.stores[0].title(), store.title());
                return Err(differ(format!("the batch {} in {a} is not that in {b}", batch.name)));
            }
        }
        let column = |field: &Arc<Field>| {
            let found = table.column_by_name(field.name()).cloned();
            found.unwrap_or_else(|| new_null_array(field.data_type(), table.num_rows()))
        };
        let columns = self.schema.fields().iter().map(column).collect();
        table =
            RecordBatch::try_new(self.schema.clone(), columns).map_err(|error| wrong(&error))?;
        let slot = self.open.len();
        self.open.push((&batch.name, table));
        self.push(slot, 0);
        Ok(())
    }

    fn push(&mut self, slot: usize, row: usize) {
        let table = &self.open[slot].1;
        let (cells, seeds) = (table.column_by_name("cell"), table.column_by_name("seed"));
        let (Some(cells), Some(seeds)) = (cells, seeds) else { return };
        if row < table.num_rows() {
            let at = (
                cells.as_primitive::<UInt32Type>().value(row),
                seeds.as_primitive::<UInt64Type>().value(row),
            );
            self.heap.push(Reverse((at, slot, row)));
        }
    }

    fn next(&self) -> Option<At> {
        self.heap.peek().map(|Reverse((at, ..))| *at)
    }

    fn pop(&mut self) -> Option<(At, usize, usize)> {
        let Reverse((at, slot, row)) = self.heap.pop()?;
        self.push(slot, row + 1);
        Some((at, slot, row))
    }

    /// Two rows at one position must be equal.
    fn same(&self, a: (usize, usize), b: (usize, usize)) -> Result<(), Error> {
        let (first, second) = (&self.open[a.0], &self.open[b.0]);
        for (i, field) in
            self.schema.fields().iter().enumerate().filter(|(_, field)| field.name() != OF_MACHINE)
        {
            let one = first.1.column(i).slice(a.1, 1);
            let other = second.1.column(i).slice(b.1, 1);
            if one.to_data() != other.to_data() {
                let key = |table: &RecordBatch, row| {
                    let keys = table
                        .column_by_name("key")
                        .map(|keys| keys.as_string::<i32>().value(row).to_owned());
                    keys.unwrap_or_default()
                };
                let (here, there) = (key(&first.1, a.1), key(&second.1, b.1));
                let at = self.at(a);
                if here != there {
                    let text = format!(
                        "cell {}, seed {} is run {here} in {} and run {there} in {}",
                        at.0, at.1, first.0, second.0
                    );
                    return Err(Error::input(
                        text,
                        "these are two sweeps: merge each of them alone",
                    ));
                }
                let column = field.name();
                return Err(differ(format!(
                    "cell {}, seed {}, run {here}: `{column}` in {} is not that in {}",
                    at.0, at.1, first.0, second.0
                )));
            }
        }
        Ok(())
    }

    fn at(&self, (slot, row): (usize, usize)) -> At {
        let table = &self.open[slot].1;
        let cell =
            table.column_by_name("cell").map_or(0, |c| c.as_primitive::<UInt32Type>().value(row));
        let seed =
            table.column_by_name("seed").map_or(0, |c| c.as_primitive::<UInt64Type>().value(row));
        (cell, seed)
    }

    /// The collected rows as a table.
    fn chunk(&mut self) -> Result<RecordBatch, Error> {
        let rows = core::mem::take(&mut self.rows);
        if rows.is_empty() {
            return Ok(RecordBatch::new_empty(self.schema.clone()));
        }
        let column = |i: usize| -> Result<ArrayRef, Error> {
            let arrays: Vec<&dyn Array> =
                self.open.iter().map(|(_, table)| table.column(i).as_ref()).collect();
            interleave(&arrays, &rows).map_err(|error| wrong(&error))
        };
        let columns =
            (0..self.schema.fields().len()).map(column).collect::<Result<Vec<_>, Error>>()?;
        RecordBatch::try_new(self.schema.clone(), columns).map_err(|error| wrong(&error))
    }

    /// Closes batches without remaining rows, except that of the last row.
    fn forget(&mut self, last: Option<(At, usize, usize)>) -> Option<(At, usize, usize)> {
        let used: BTreeSet<usize> = self
            .heap
            .iter()
            .map(|Reverse((_, slot, _))| *slot)
            .chain(last.map(|(_, slot, _)| slot))
            .collect();
        let place: BTreeMap<usize, usize> =
            used.iter().copied().enumerate().map(|(new, old)| (old, new)).collect();
        let old = core::mem::take(&mut self.open);
        self.open = old
            .into_iter()
            .enumerate()
            .filter(|(i, _)| used.contains(i))
            .map(|(_, open)| open)
            .collect();
        let heap = core::mem::take(&mut self.heap);
        self.heap = heap
            .into_iter()
            .map(|Reverse((at, slot, row))| Reverse((at, place[&slot], row)))
            .collect();
        last.map(|(at, slot, row)| (at, place[&slot], row))
    }
}
