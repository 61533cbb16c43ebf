//! A sweep of any size: its cells are built one at a time, on demand.

use crate::address::Dotted;
use crate::argument::Argument;
use crate::document::{self, Node, Table};
use crate::error::{Code, Diagnostic, Error, Location, Source, Warning};
use crate::model::Scenario;
use crate::plan::{self, Cell};
use crate::schemes;
use crate::vary::{self, AxisSpec, Change};

/// Maximum number of cells: tables count them in 32 bits.
const MOST: usize = u32::MAX as usize;

/// All combinations of a scenario. Cells are not stored: each call builds its cell. Cell `i` is the same as in
/// [`crate::Plan::cells`], with the same runs.
#[derive(Debug)]
pub struct Grid {
    document: Table,
    axes: Vec<AxisSpec>,
    points: Option<Points>,
    first: Scenario,
    cells: usize,
}

impl Grid {
    /// Like [`crate::parse`]. `points` is a table as CSV (RFC 4180) that replaces axes. The first line names
    /// keys; each other line has a value for each key, as after `--set KEY=`. If there are axes as well,
    /// every point is combined with all of them.
    ///
    /// # Errors
    ///
    /// As [`crate::parse`], with locations in [`Source::Points`] too; an invalid cell is detected when it is
    /// built.
    pub fn parse(
        text: &str,
        name: &str,
        arguments: &[Argument],
        points: Option<&str>,
    ) -> Result<(Grid, Vec<Warning>), Error> {
        let mut document = document::parse(text)?;
        schemes::take(&mut document)?;
        let mut axes = vary::apply(&mut document, arguments, MOST)?;
        let points = points.map(|text| Points::parse(text, &document)).transpose()?;
        if let Some(points) = &points {
            axes.retain(|axis| !points.columns.iter().any(|key| key.is(&document, axis)));
        }
        let rows = points.as_ref().map_or(1, |points| points.rows.len());
        let cells = axes.iter().try_fold(rows, |cells, axis| cells.checked_mul(axis.points.len()));
        let Some(cells) = cells.filter(|cells| *cells <= MOST) else {
            return Err(wrong(
                0..0,
                format!("there are more than {MOST} cells"),
                "leave out points",
            ));
        };
        let first = document.clone();
        let first = points.as_ref().map_or(Ok(first.clone()), |points| points.set(first, 0))?;
        let (first, _, notes) = plan::cell(&first, name, &axes, 0)?;
        let warnings = notes.into_iter().filter(|note| !note.in_every_cell || cells == 1);
        let warnings = warnings.map(|note| note.warning).collect();
        Ok((Grid { document, axes, points, first, cells }, warnings))
    }

    /// The scenario of the first cell.
    pub fn first(&self) -> &Scenario {
        &self.first
    }

    /// The varied keys: those of points, then the axes.
    pub fn axes(&self) -> Vec<String> {
        let points =
            self.points.iter().flat_map(|points| points.columns.iter().map(|key| key.0.text()));
        points.chain(self.axes.iter().map(|axis| axis.name.clone())).collect()
    }

    /// Number of cells.
    pub fn cells(&self) -> usize {
        self.cells
    }

    /// Number of seeds of each cell.
    pub fn seeds(&self) -> u32 {
        self.first.runs
    }

    /// Number of runs.
    pub fn runs(&self) -> u64 {
        self.cells as u64 * u64::from(self.first.runs)
    }

    /// Builds cell number `index`.
    ///
    /// # Errors
    ///
    /// If it is invalid, or has another number of seeds than the first.
    pub fn cell(&self, index: usize) -> Result<Cell, Error> {
        let combinations: usize = self.axes.iter().map(|axis| axis.points.len()).product();
        let (row, rest) = (index / combinations, index % combinations);
        let mut labels = Vec::new();
        let set;
        let document = match &self.points {
            None => &self.document,
            Some(points) => {
                labels = points.row(row)?.into_iter().map(|(value, _)| value).collect();
                set = points.set(self.document.clone(), row)?;
                &set
            }
        };
        let (scenario, of_axes, _) = plan::cell(document, &self.first.name, &self.axes, rest)?;
        labels.extend(of_axes);
        if scenario.runs != self.first.runs {
            let text = format!(
                "cell {index} has {} seeds and the first {}",
                scenario.runs, self.first.runs
            );
            return Err(wrong(
                0..0,
                text,
                "all cells of a sweep have the same number of seeds: do not vary `runs`",
            ));
        }
        Ok(Cell { labels, scenario })
    }
}

/// A key in the first line of the table, with one value in each row.
#[derive(Debug)]
struct ColumnKey(Dotted);

impl ColumnKey {
    /// Whether `axis` varies the values of this key.
    fn is(&self, document: &Table, axis: &AxisSpec) -> bool {
        self.0.routes(document).is_ok_and(|routes| vary::same(&routes, &axis.routes))
    }
}

/// A table of points: each row sets the keys of its columns.
#[derive(Debug)]
struct Points {
    text: String,
    columns: Vec<ColumnKey>,
    /// Byte range of each row in the text.
    rows: Vec<(usize, usize)>,
}

impl Points {
    fn parse(text: &str, document: &Table) -> Result<Points, Error> {
        let mut lines = lines(text);
        let Some((from, to)) = lines.next() else {
            return Err(wrong(0..0, "the table of points is empty".into(), EXAMPLE));
        };
        let whole = Location { source: Source::Points, span: 0..0 };
        let columns = fields(text, from, to)?;
        let columns: Vec<ColumnKey> =
            columns.iter().map(|(key, at)| ColumnKey(Dotted::split(key, &whole, *at))).collect();
        for ColumnKey(key) in &columns {
            key.routes(document)?;
        }
        let rows: Vec<(usize, usize)> = lines.collect();
        let points = Points { text: text.to_owned(), columns, rows };
        for row in 0..points.rows.len() {
            points.row(row)?;
        }
        if points.rows.is_empty() {
            return Err(wrong(0..text.len(), "the table of points has no rows".into(), EXAMPLE));
        }
        Ok(points)
    }

    /// The values of a row, and their locations.
    fn row(&self, row: usize) -> Result<Vec<(String, usize)>, Error> {
        let (from, to) = self.rows[row];
        let fields = fields(&self.text, from, to)?;
        if fields.len() != self.columns.len() {
            let (has, wanted) = (fields.len(), self.columns.len());
            return Err(wrong(
                from..to,
                format!("this row has {has} values and the heading {wanted}"),
                EXAMPLE,
            ));
        }
        if let Some((_, at)) = fields.iter().find(|(value, _)| value.trim().is_empty()) {
            return Err(wrong(*at..*at, "a value is missing".into(), EXAMPLE));
        }
        Ok(fields)
    }

    /// The document after the changes of a row.
    fn set(&self, mut document: Table, row: usize) -> Result<Table, Error> {
        for (ColumnKey(key), (value, at)) in self.columns.iter().zip(self.row(row)?) {
            let node: Node = document::parse_value(&value, Source::Points, at);
            Change::new(&document, key, &node)?.apply(&mut document)?;
        }
        Ok(document)
    }
}

const EXAMPLE: &str = "a table of points is CSV: a line of keys, then a line of values for each cell, \
                       for example\n\n    errors.mean,agent\n    16KiB,none\n    64KiB,snoop";

fn wrong(span: core::ops::Range<usize>, message: String, help: &str) -> Error {
    let at = Location { source: Source::Points, span };
    Diagnostic::new(Code::BadAxis, "", &at).message(message).label("here").help(help).into()
}

/// Lines that are not empty; a quoted field must end on its line.
fn lines(text: &str) -> impl Iterator<Item = (usize, usize)> {
    let mut from = 0;
    let all = text.split_inclusive('\n').map(move |line| {
        let begin = from;
        from += line.len();
        (begin, begin + line.trim_end_matches(['\n', '\r']).len())
    });
    all.filter(|(from, to)| to > from)
}

/// The fields of a line, without quotes, and the position of each.
fn fields(text: &str, from: usize, to: usize) -> Result<Vec<(String, usize)>, Error> {
    let mut fields = Vec::new();
    let (mut field, mut begin, mut quoted) = (String::new(), from, false);
    let mut chars = text[from..to].char_indices().peekable();
    while let Some((i, c)) = chars.next() {
        match c {
            '"' if quoted && chars.peek().is_some_and(|(_, c)| *c == '"') => {
                field.push('"');
                chars.next();
            }
            '"' if quoted || field.is_empty() => {
                begin += usize::from(!quoted);
                quoted = !quoted;
            }
            ',' if !quoted => {
                fields.push((core::mem::take(&mut field), begin));
                begin = from + i + 1;
            }
            c => field.push(c),
        }
    }
    if quoted {
        return Err(wrong(begin..to, "a quote is not closed".into(), EXAMPLE));
    }
    fields.push((field, begin));
    Ok(fields)
}
