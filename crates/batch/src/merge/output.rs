//! The table that a merge writes, and its digest.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, SchemaRef};
use lasthop_scenario::Digest;

use super::OF_MACHINE;
use crate::Error;
use crate::files::{AtomicFile, Parquet, ROOM, csv_heading, csv_rows};
use crate::tables::AxisNumbers;

/// The destination of the table.
pub(super) struct Output {
    rows: u64,
    numbers: AxisNumbers,
    digest: Digest,
    parquet: Option<Parquet<AtomicFile>>,
    csv: Option<AtomicFile>,
    dir: PathBuf,
}

impl Output {
    pub(super) fn create(
        out: Option<&Path>,
        csv: bool,
        schema: &SchemaRef,
        numbers: AxisNumbers,
    ) -> Result<Output, Error> {
        let dir = out.map(Path::to_owned).unwrap_or_default();
        let failed = |error: io::Error| Error::file(&dir, error, ROOM);
        let (mut parquet, mut text) = (None, None);
        if out.is_some() {
            std::fs::create_dir_all(&dir).map_err(failed)?;
            let file = AtomicFile::create(&dir.join("runs.parquet")).map_err(failed)?;
            parquet = Some(Parquet::new(numbers.schema(schema)?, file).map_err(failed)?);
            if csv {
                let mut file = AtomicFile::create(&dir.join("runs.csv")).map_err(failed)?;
                csv_heading(schema, &mut file).map_err(failed)?;
                text = Some(file);
            }
        }
        let names = schema.fields().iter().map(|field| field.name().as_str());
        let digest = names.fold(Digest::default(), |digest, name| digest.bytes(name.as_bytes()));
        Ok(Output { rows: 0, numbers, digest, parquet, csv: text, dir })
    }

    pub(super) fn take(&mut self, table: &RecordBatch) -> Result<(), Error> {
        self.rows += table.num_rows() as u64;
        self.digest = digest(self.digest, table);
        let written = match &mut self.parquet {
            Some(file) => file.write(&self.numbers.apply(table)?),
            None => Ok(()),
        };
        let written =
            written.and_then(|()| self.csv.as_mut().map_or(Ok(()), |file| csv_rows(table, file)));
        written.map_err(|error| Error::file(&self.dir, error, ROOM))
    }

    pub(super) fn finish(self) -> Result<(u64, String), Error> {
        let written = self.parquet.map_or(Ok(()), |file| file.finish()?.commit());
        let written = written.and_then(|()| {
            self.csv.map_or(Ok(()), |mut file| {
                file.flush()?;
                file.commit()
            })
        });
        written.map_err(|error| Error::file(&self.dir, error, ROOM))?;
        Ok((self.rows, self.digest.to_string()))
    }
}

/// Adds rows to a digest: all values by row, without the machine-dependent column.
pub(super) fn digest(mut digest: Digest, table: &RecordBatch) -> Digest {
    let schema = table.schema();
    let columns =
        schema.fields().iter().zip(table.columns()).filter(|(field, _)| field.name() != OF_MACHINE);
    let columns: Vec<&ArrayRef> = columns.map(|(_, column)| column).collect();
    for row in 0..table.num_rows() {
        for column in &columns {
            if column.is_null(row) {
                digest = digest.bytes(&[0]);
                continue;
            }
            digest = match column.data_type() {
                DataType::Float64 => digest.bytes(
                    &column.as_primitive::<Float64Type>().value(row).to_bits().to_be_bytes(),
                ),
                DataType::UInt64 => {
                    digest.bytes(&column.as_primitive::<UInt64Type>().value(row).to_be_bytes())
                }
                DataType::UInt32 => {
                    digest.bytes(&column.as_primitive::<UInt32Type>().value(row).to_be_bytes())
                }
                DataType::Boolean => digest.bytes(&[1 + u8::from(column.as_boolean().value(row))]),
                DataType::Utf8 => {
                    digest.bytes(column.as_string::<i32>().value(row).as_bytes()).bytes(&[1])
                }
                _ => digest.bytes(&[2]),
            };
        }
    }
    digest
}
