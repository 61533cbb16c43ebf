//! Tables as Parquet and CSV.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};

use super::{ROOM, whole};
use crate::Error;

/// Rows of a group, which are buffered before they are written.
const GROUP: usize = 1 << 16;

/// A table as the bytes of a Parquet file. Equal rows give equal bytes.
///
/// # Errors
///
/// Where it cannot be one.
pub fn parquet(table: &RecordBatch) -> io::Result<Vec<u8>> {
    let level = ZstdLevel::try_new(3).map_err(io::Error::other)?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(level))
        .set_writer_version(WriterVersion::PARQUET_2_0)
        .set_created_by(concat!("lasthop ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_max_row_group_row_count(Some(GROUP))
        // All keys differ.
        .set_column_dictionary_enabled("key".into(), false)
        .build();
    let mut file = ArrowWriter::try_new(Vec::new(), table.schema(), Some(properties))
        .map_err(io::Error::other)?;
    file.write(table).map_err(io::Error::other)?;
    file.into_inner().map_err(io::Error::other)
}

/// Writes the heading of a table as CSV (RFC 4180, lines end in a line feed).
///
/// # Errors
///
/// Those of the writer.
fn csv_heading(schema: &SchemaRef, to: &mut impl Write) -> io::Result<()> {
    let mut line = String::new();
    for (i, field) in schema.fields().iter().enumerate() {
        line.extend((i > 0).then_some(','));
        quoted(field.name(), &mut line);
    }
    writeln!(to, "{line}")
}

/// Writes rows as CSV. Numbers are parsed back to exactly the same values; a missing value is empty.
///
/// # Errors
///
/// Those of the writer, and a table with columns that are neither numbers, truth values nor text.
fn csv_rows(table: &RecordBatch, to: &mut impl Write) -> io::Result<()> {
    let mut line = String::new();
    for row in 0..table.num_rows() {
        line.clear();
        for (i, column) in table.columns().iter().enumerate() {
            line.extend((i > 0).then_some(','));
            if column.is_valid(row) {
                value(column, row, &mut line)?;
            }
        }
        line.push('\n');
        to.write_all(line.as_bytes())?;
    }
    Ok(())
}

fn value(column: &Arc<dyn Array>, row: usize, line: &mut String) -> io::Result<()> {
    use core::fmt::Write as _;
    let written = match column.data_type() {
        DataType::Float64 => write!(line, "{:?}", column.as_primitive::<Float64Type>().value(row)),
        DataType::UInt64 => write!(line, "{}", column.as_primitive::<UInt64Type>().value(row)),
        DataType::UInt32 => write!(line, "{}", column.as_primitive::<UInt32Type>().value(row)),
        DataType::Boolean => write!(line, "{}", column.as_boolean().value(row)),
        DataType::Utf8 => {
            quoted(column.as_string::<i32>().value(row), line);
            Ok(())
        }
        other => return Err(io::Error::other(format!("no text for columns of {other}"))),
    };
    written.map_err(io::Error::other)
}

/// Quotes a field where CSV requires it (RFC 4180 section 2).
fn quoted(field: &str, line: &mut String) {
    if field.contains([',', '"', '\n', '\r']) {
        *line += &format!("\"{}\"", field.replace('"', "\"\""));
    } else {
        *line += field;
    }
}

/// Writes a table as `NAME.parquet` and `NAME.csv` in a directory, each whole or not at all.
///
/// # Errors
///
/// [`Error::File`].
pub fn write(dir: &Path, name: &str, table: &RecordBatch) -> Result<(), Error> {
    let path = dir.join(format!("{name}.parquet"));
    let written = parquet(table).and_then(|bytes| whole(&path, &bytes));
    written.map_err(|error| Error::file(&path, error, ROOM))?;
    let path = dir.join(format!("{name}.csv"));
    let mut bytes = Vec::new();
    let written = csv_heading(&table.schema(), &mut bytes)
        .and_then(|()| csv_rows(table, &mut bytes))
        .and_then(|()| whole(&path, &bytes));
    written.map_err(|error| Error::file(&path, error, ROOM))
}
