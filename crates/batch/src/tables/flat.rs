//! Columns from serialized values, so that names of fields need no second list.

use std::collections::BTreeMap;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, StringArray, UInt64Array};
use serde::Serialize;
use serde_json::Value;
use std::sync::Arc;

use super::{Columns, unit_of};
use crate::Error;

/// Rows as columns. Lists are omitted: they are separate tables.
#[derive(Default)]
pub(super) struct Flat {
    rows: usize,
    columns: BTreeMap<String, Vec<Value>>,
}

/// Placeholder for a field that was not serialized, because it is zero or missing.
const ABSENT: Value = Value::Array(Vec::new());

impl Flat {
    /// Appends a row.
    pub fn row(&mut self, of: &impl Serialize) -> Result<(), Error> {
        let value = serde_json::to_value(of)
            .map_err(|error| Error::input(format!("this is no row: {error}"), ""))?;
        self.take("", value);
        self.rows += 1;
        for column in self.columns.values_mut() {
            column.resize(self.rows, ABSENT);
        }
        Ok(())
    }

    fn take(&mut self, name: &str, value: Value) {
        match value {
            Value::Object(entries) => {
                for (key, value) in entries {
                    let name = if name.is_empty() { key } else { format!("{name}.{key}") };
                    self.take(&name, value);
                }
            }
            Value::Array(_) => {}
            value => {
                let column = self.columns.entry(name.to_owned()).or_default();
                column.resize(self.rows, ABSENT);
                column.push(value);
            }
        }
    }

    /// Moves the columns to `to`.
    pub fn push(self, to: &mut Columns) {
        for (name, values) in self.columns {
            // A stage without a radio has no frames; other counts are omitted where they are zero.
            let zero = !name.starts_with("air.");
            let array = array(&values, zero);
            let unit = unit_of(&name, array.data_type());
            to.push_array(name, unit, array);
        }
    }
}

fn array(values: &[Value], zero: bool) -> ArrayRef {
    let absent = |value: &Value| zero && *value == ABSENT;
    let any = |of: fn(&Value) -> bool| values.iter().any(of);
    if any(Value::is_string) {
        Arc::new(values.iter().map(Value::as_str).collect::<StringArray>())
    } else if any(Value::is_boolean) {
        let of = |value: &Value| value.as_bool().or(absent(value).then_some(false));
        Arc::new(values.iter().map(of).collect::<BooleanArray>())
    } else if any(Value::is_u64) && !any(Value::is_f64) {
        let of = |value: &Value| value.as_u64().or(absent(value).then_some(0));
        Arc::new(values.iter().map(of).collect::<UInt64Array>())
    } else {
        Arc::new(values.iter().map(Value::as_f64).collect::<Float64Array>())
    }
}
