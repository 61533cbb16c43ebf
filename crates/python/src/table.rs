//! Tables by the Arrow PyCapsule interface.

use std::collections::BTreeMap;

use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, RecordBatch, RecordBatchIterator};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, DataType};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDict, PyIterator, PyList};

use crate::error;

/// An Arrow table. Documented in `lasthop.Table`.
#[pyclass(frozen, module = "lasthop._lasthop")]
pub struct Table(pub RecordBatch);

#[pymethods]
impl Table {
    /// The Arrow PyCapsule interface. Other schemas are not supported; the caller casts.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let batches = RecordBatchIterator::new([Ok(self.0.clone())], self.0.schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// Names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.0.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// The unit of each column that has one; `1` for shares and counts.
    #[getter]
    fn units(&self) -> BTreeMap<String, String> {
        let schema = self.0.schema();
        let unit = |field: &arrow_schema::FieldRef| {
            Some((field.name().clone(), field.metadata().get(lasthop_batch::tables::UNIT)?.clone()))
        };
        schema.fields().iter().filter_map(unit).collect()
    }

    /// The metadata of the schema.
    #[getter]
    fn metadata(&self) -> BTreeMap<String, String> {
        self.0.schema().metadata().clone().into_iter().collect()
    }

    /// The rows as a `pandas.DataFrame`.
    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("pandas")?.call_method1("DataFrame", (slf,))
    }

    fn __repr__(&self) -> String {
        let units = self.units();
        let named = |name: String| match units.get(&name).map(String::as_str) {
            None | Some("1") => name,
            Some(unit) => format!("{name} ({unit})"),
        };
        let columns: Vec<String> = self.columns().into_iter().map(named).collect();
        format!("<Table of {} rows: {}>", self.0.num_rows(), columns.join(", "))
    }

    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    /// The rows, each as a dict.
    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        let names = self.columns();
        let columns: PyResult<Vec<_>> =
            self.0.columns().iter().map(|column| list(py, column)).collect();
        let columns = columns?;
        let rows = PyList::empty(py);
        for i in 0..self.0.num_rows() {
            let row = PyDict::new(py);
            for (name, column) in names.iter().zip(&columns) {
                row.set_item(name, column.get_item(i)?)?;
            }
            rows.append(row)?;
        }
        rows.try_iter()
    }

    /// For pickle: the table as an Arrow stream.
    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let module = py.import("lasthop._lasthop")?;
        Ok((module.getattr("read_table")?, (PyBytes::new(py, &write(&self.0)?),)))
    }

    /// A column as a list; missing values are None.
    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        let column = self.0.column_by_name(name);
        list(py, column.ok_or_else(|| PyKeyError::new_err(name.to_owned()))?)
    }
}

/// A table from the bytes of an Arrow stream.
#[pyfunction]
pub fn read_table(bytes: &[u8]) -> PyResult<Table> {
    let read = || {
        let mut reader = StreamReader::try_new(bytes, None)?;
        let empty = RecordBatch::new_empty(reader.schema());
        reader.next().transpose().map(|batch| Table(batch.unwrap_or(empty)))
    };
    read().map_err(|error: ArrowError| error::value(format!("this is no table: {error}")))
}

/// The number that a label of an axis is in the tables, and its unit.
#[pyfunction]
pub fn amount(label: String) -> Option<(f64, &'static str)> {
    let (unit, values) = lasthop_study::sweep::amount::numbers(&[label])?;
    Some((*values.first()?, unit))
}

/// A table as an Arrow stream.
fn write(table: &RecordBatch) -> PyResult<Vec<u8>> {
    let write = || {
        let mut writer = StreamWriter::try_new(Vec::new(), &table.schema())?;
        writer.write(table)?;
        writer.into_inner()
    };
    write()
        .map_err(|error: ArrowError| error::value(format!("this table cannot be written: {error}")))
}

fn list<'py>(py: Python<'py>, column: &dyn Array) -> PyResult<Bound<'py, PyList>> {
    match column.data_type() {
        DataType::Utf8 => PyList::new(py, column.as_string::<i32>().iter().collect::<Vec<_>>()),
        DataType::Boolean => PyList::new(py, column.as_boolean().iter().collect::<Vec<_>>()),
        DataType::UInt32 => {
            PyList::new(py, column.as_primitive::<UInt32Type>().iter().collect::<Vec<_>>())
        }
        DataType::UInt64 => {
            PyList::new(py, column.as_primitive::<UInt64Type>().iter().collect::<Vec<_>>())
        }
        DataType::Int64 => {
            PyList::new(py, column.as_primitive::<Int64Type>().iter().collect::<Vec<_>>())
        }
        DataType::Float64 => {
            PyList::new(py, column.as_primitive::<Float64Type>().iter().collect::<Vec<_>>())
        }
        other => Err(error::value(format!("a column of {other} is not read here"))),
    }
}
