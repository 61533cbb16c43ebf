//! Numbers in the columns of axes whose labels are amounts of one kind.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use lasthop_scenario::Axis;
use lasthop_study::sweep::amount::numbers;

use super::{UNIT, axis_column, wrong};
use crate::Error;

/// Below this, floating-point numbers hold all integers.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// The axes of tables whose labels are amounts of one kind ([`numbers`]).
pub struct AxisNumbers(Vec<AxisNumber>);

struct AxisNumber {
    column: String,
    unit: &'static str,
    by_label: BTreeMap<String, f64>,
    /// Whether all values are integers that a `f64` holds.
    integers: bool,
}

impl AxisNumber {
    fn field(&self) -> Field {
        let kind = if self.integers { DataType::Int64 } else { DataType::Float64 };
        let unit = [(UNIT.to_owned(), self.unit.to_owned())];
        Field::new(&self.column, kind, true).with_metadata(unit.into_iter().collect())
    }

    fn values(&self, labels: &StringArray) -> ArrayRef {
        let values =
            labels.iter().map(|label| label.and_then(|label| self.by_label.get(label)).copied());
        match self.integers {
            true => Arc::new(values.map(|v| v.map(|v| v as i64)).collect::<Int64Array>()),
            false => Arc::new(values.collect::<Float64Array>()),
        }
    }
}

impl AxisNumbers {
    pub fn of(axes: &[Axis]) -> AxisNumbers {
        let axes = axes.iter().filter_map(|axis| {
            let (unit, values) = numbers(&axis.labels)?;
            let by_label: BTreeMap<String, f64> = axis.labels.iter().cloned().zip(values).collect();
            let integers = by_label.values().all(|v| v.fract() == 0.0 && v.abs() < EXACT);
            Some(AxisNumber { column: axis_column(&axis.name), unit, by_label, integers })
        });
        AxisNumbers(axes.collect())
    }

    /// The schema of a table of `schema` with numbers.
    ///
    /// # Errors
    ///
    /// The table lacks the column of an axis.
    fn schema(&self, schema: &Schema) -> Result<SchemaRef, Error> {
        let mut fields: Vec<Arc<Field>> = schema.fields().iter().cloned().collect();
        for axis in &self.0 {
            let index = schema.index_of(&axis.column).map_err(|error| wrong(&error))?;
            fields[index] = Arc::new(axis.field());
        }
        Ok(Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone())))
    }

    /// The table with numbers; labels of no axis become null.
    ///
    /// # Errors
    ///
    /// The table lacks the column of an axis.
    pub fn apply(&self, table: &RecordBatch) -> Result<RecordBatch, Error> {
        let schema = self.schema(&table.schema())?;
        let mut columns = table.columns().to_vec();
        for axis in &self.0 {
            let index = schema.index_of(&axis.column).map_err(|error| wrong(&error))?;
            columns[index] = axis.values(columns[index].as_string::<i32>());
        }
        RecordBatch::try_new(schema, columns).map_err(|error| wrong(&error))
    }
}
