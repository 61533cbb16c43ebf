//! Tables of one recorded run.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt64Array};
use lasthop_observe::csv::{EventCsv, TcbCsv};
use lasthop_observe::sequence::Series;
use lasthop_scenario::Cell;
use lasthop_sim::runs::{Recording, record};

use super::{Columns, unit};
use crate::{Error, Provenance};

/// Columns of [`series`]. `what` is `sent`, `acked`, `lost`, `timeout`, `window`, `stall`, `bad` or `cell`;
/// inapplicable columns are null. `kind` is the cause of a transmission, `end` is one past the last byte; for `acked`,
/// `end` is the first unacknowledged byte.
pub const SERIES_COLUMNS: [&str; 10] =
    ["flow", "what", "at_s", "to_s", "start", "end", "kind", "cwnd", "ssthresh", "cell"];

/// A run with all its events.
#[derive(Debug)]
pub struct RecordedRun {
    /// The same results as without recording, and the series for plots.
    pub recording: Recording,
    pub series: RecordBatch,
    pub events: RecordBatch,
    /// The control block at each event of a TCP endpoint; columns: [`lasthop_observe::csv::TCB_COLUMNS`].
    pub tcb: RecordBatch,
}

/// Makes and records one run of a cell: about 100 bytes of memory per event.
///
/// # Errors
///
/// The tables exceed memory limits.
pub fn recorded(cell: &Cell, seed: u64, provenance: &Provenance) -> Result<RecordedRun, Error> {
    let layout = lasthop_sim::runs::layout(&cell.scenario);
    let (events, tcb) = (Text::default(), Text::default());
    let mut sinks = (EventCsv::new(&layout, events), TcbCsv::new(tcb));
    let recording = record(&cell.scenario, seed, &mut sinks);
    let mut metadata = super::metadata(provenance);
    metadata.insert("seed".to_owned(), seed.to_string());
    metadata
        .insert("cell".to_owned(), serde_json::to_string(&cell.labels).expect("labels are JSON"));
    let table = |text: io::Result<Text>| {
        let text = text.map_err(|error| Error::input(error.to_string(), ""))?;
        text.table(metadata.clone())
    };
    let (events, tcb) = (table(sinks.0.finish())?, table(sinks.1.finish())?);
    let series = series(&recording.series, metadata.clone())?;
    Ok(RecordedRun { recording, series, events, tcb })
}

/// Time-sequence series as one table, in the order of flows, then of kinds.
///
/// # Errors
///
/// The table exceeds memory limits.
pub fn series(all: &[Series], metadata: BTreeMap<String, String>) -> Result<RecordBatch, Error> {
    let mut points = Vec::new();
    for series in all {
        let at = |what, at_s| Point { flow: &series.flow, what, at_s, ..Point::default() };
        points.extend(series.sent.iter().map(|sent| {
            Point {
                bytes: (Some(sent.start), Some(sent.end)),
                kind: serde_json::to_value(sent.kind)
                    .ok()
                    .and_then(|kind| kind.as_str().map(str::to_owned)),
                ..at("sent", sent.at_s)
            }
        }));
        points.extend(
            series
                .acked
                .iter()
                .map(|(at_s, end)| Point { bytes: (None, Some(*end)), ..at("acked", *at_s) }),
        );
        points.extend(series.lost.iter().map(|lost| Point {
            bytes: (Some(lost.start), Some(lost.end)),
            ..at("lost", lost.at_s)
        }));
        points.extend(series.timeouts.iter().map(|at_s| at("timeout", *at_s)));
        points.extend(series.windows.iter().map(|window| Point {
            window: Some((window.cwnd, window.ssthresh)),
            ..at("window", window.at_s)
        }));
        points.extend(
            series.stalls.iter().map(|s| Point { to_s: Some(s.to_s), ..at("stall", s.from_s) }),
        );
        points
            .extend(series.bad.iter().map(|b| Point { to_s: Some(b.to_s), ..at("bad", b.from_s) }));
        points.extend(series.cells.iter().map(|stay| Point {
            to_s: Some(stay.to_s),
            cell: Some(&stay.cell),
            ..at("cell", stay.from_s)
        }));
    }
    let mut columns = Columns::default();
    let all = || points.iter();
    let number = |of: fn(&Point<'_>) -> Option<u64>| {
        Arc::new(all().map(of).collect::<UInt64Array>()) as ArrayRef
    };
    let arrays: [ArrayRef; 10] = [
        Arc::new(StringArray::from_iter_values(all().map(|p| p.flow))),
        Arc::new(StringArray::from_iter_values(all().map(|p| p.what))),
        Arc::new(Float64Array::from_iter_values(all().map(|p| p.at_s))),
        Arc::new(all().map(|p| p.to_s).collect::<Float64Array>()),
        number(|p| p.bytes.0),
        number(|p| p.bytes.1),
        Arc::new(all().map(|p| p.kind.as_deref()).collect::<StringArray>()),
        number(|p| p.window.map(|(cwnd, _)| cwnd.into())),
        number(|p| p.window.map(|(_, ssthresh)| ssthresh.into())),
        Arc::new(all().map(|p| p.cell).collect::<StringArray>()),
    ];
    for (name, array) in SERIES_COLUMNS.into_iter().zip(arrays) {
        columns.push_array(name, super::unit_of(name, array.data_type()), array);
    }
    columns.table(metadata)
}

/// A row of the series.
#[derive(Default)]
struct Point<'a> {
    flow: &'a str,
    what: &'static str,
    at_s: f64,
    to_s: Option<f64>,
    bytes: (Option<u64>, Option<u64>),
    kind: Option<String>,
    window: Option<(u32, u32)>,
    cell: Option<&'a str>,
}

/// Rows written as CSV by [`lasthop_observe::csv`] and parsed again, so that columns are defined once.
#[derive(Default)]
struct Text {
    names: Vec<String>,
    columns: Vec<Column>,
    /// Bytes after the last complete line.
    rest: Vec<u8>,
}

/// The concatenated values of a column.
#[derive(Default)]
struct Column {
    text: String,
    ends: Vec<usize>,
}

impl Write for Text {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.rest.extend_from_slice(bytes);
        let Some(end) = self.rest.iter().rposition(|byte| *byte == b'\n') else {
            return Ok(bytes.len());
        };
        let rest = self.rest.split_off(end + 1);
        let lines = String::from_utf8(core::mem::replace(&mut self.rest, rest))
            .map_err(io::Error::other)?;
        for line in lines.lines() {
            if self.names.is_empty() {
                self.names = line.split(',').map(str::to_owned).collect();
                self.columns.resize_with(self.names.len(), Column::default);
                continue;
            }
            let mut fields = Fields(line);
            for column in &mut self.columns {
                fields.next_into(&mut column.text);
                column.ends.push(column.text.len());
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Fields of a line (RFC 4180); no field contains a line feed.
struct Fields<'a>(&'a str);

impl Fields<'_> {
    fn next_into(&mut self, to: &mut String) {
        if let Some(mut quoted) = self.0.strip_prefix('"') {
            while let Some((part, rest)) = quoted.split_once('"') {
                *to += part;
                match rest.strip_prefix('"') {
                    Some(rest) => {
                        to.push('"');
                        quoted = rest;
                    }
                    None => {
                        self.0 = rest.strip_prefix(',').unwrap_or(rest);
                        return;
                    }
                }
            }
        }
        let (field, rest) = self.0.split_once(',').unwrap_or((self.0, ""));
        *to += field;
        self.0 = rest;
    }
}

/// Text columns of events and control blocks.
const TEXT: [&str; 8] = ["stage", "event", "cause", "side", "flow", "flags", "damage", "kind"];

impl Text {
    fn table(self, metadata: BTreeMap<String, String>) -> Result<RecordBatch, Error> {
        let mut columns = Columns::default();
        for (name, column) in self.names.into_iter().zip(self.columns) {
            let starts = core::iter::once(0).chain(column.ends.iter().copied());
            let all = starts.zip(&column.ends).map(|(from, to)| &column.text[from..*to]);
            let all = all.map(|value| (!value.is_empty()).then_some(value));
            if TEXT.contains(&name.as_str()) {
                columns.push(name, "", all.collect::<StringArray>());
            } else if name.ends_with("_s") {
                columns.push(name, "s", all.map(|v| v?.parse().ok()).collect::<Float64Array>());
            } else {
                let unit = unit(&name);
                columns.push(name, unit, all.map(|v| v?.parse().ok()).collect::<UInt64Array>());
            }
        }
        columns.table(metadata)
    }
}
