//! Measured values of a link over time, from the tables that measuring programs write: rates, delays, losses.
//!
//! Accepted are CSV files with named columns, blank-separated files, wall-clock times, missing values, cells
//! with units, files with one value per line, the text of `ping`, and the traces of CellReplay. A table may
//! have several columns; each becomes a [`Course`]. A round-trip time counts half in each direction. A column
//! of transferred bytes becomes a rate by the time to the next row.
//!
//! The meaning of a table is not always in the file. So all inferences are listed
//! ([`Measured::understood`]), and the caller may give a column or a unit instead.

mod clock;
mod names;

use std::fmt::Write as _;

use super::Wrong;
use super::course::{Course, Level};
use crate::units::{Probability, Rate, Span};
use clock::Stamp;
use names::Quantity;

/// Maximum number of rows of a table.
const MOST: usize = 4_000_000;
/// Minimum ratio of a step to the usual one for a gap.
const GAP: f64 = 5.0;
/// Integers from here on without a unit are nanoseconds, if they are times or delays.
const NANOS: f64 = 1e6;
/// Numbers from 1 to this one without a unit are milliseconds, if they are delays.
const MILLIS_MOST: f64 = 1e4;
/// Nanoseconds of a millisecond.
const MILLIS: f64 = 1e6;

/// Properties of a file that are missing in it, or wrong.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Hints {
    /// The column of the values, by name or number from 1.
    pub column: Option<String>,
    /// The column of the times, likewise.
    pub time: Option<String>,
    /// The unit of the rates.
    pub unit: Option<String>,
    /// The direction, where there are two: true towards the measuring device.
    pub down: Option<bool>,
    /// Time from one row to the next, for a file without times.
    pub step: Option<Span>,
    /// Whether the columns must have names.
    pub named: bool,
    /// The only required values. With two columns, the one without times has them.
    pub role: Option<Role>,
    /// Whether delays are round-trip times.
    pub round_trip: bool,
}

/// The meaning of a column in a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// The rate towards the right, or in both directions.
    Rate,
    /// The rate towards the left, if it differs.
    Back,
    /// The propagation delay of each direction.
    Delay,
    /// The probability of loss.
    Loss,
}

/// Measured values of a link.
#[derive(Clone, PartialEq, Debug)]
pub struct Measured {
    /// The rate towards the measuring device.
    pub rate: Option<Course<Option<Rate>>>,
    /// The rate from the measuring device.
    pub back: Option<Course<Option<Rate>>>,
    /// The delay of each direction.
    pub delays: Option<Course<Span>>,
    /// The loss probability.
    pub losses: Option<Course<Probability>>,
    /// End of the last row, or the period.
    pub end: Span,
    /// The interpretation, one line each.
    pub understood: Vec<String>,
}

fn wrong(line: usize, message: impl Into<String>, help: impl Into<String>) -> Wrong {
    let line = (line > 0).then_some(line);
    Wrong { line, message: message.into(), help: help.into() }
}

/// The separator of cells.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Separator {
    Char(char),
    Blanks,
}

impl Separator {
    /// The separator of a table with this line.
    fn of(line: &str) -> Separator {
        let found = [';', '\t', ','].into_iter().find(|c| line.contains(*c));
        found.map_or(Separator::Blanks, Separator::Char)
    }

    fn name(self) -> &'static str {
        match self {
            Separator::Char(';') => "semicolons",
            Separator::Char('\t') => "tabs",
            Separator::Char(_) => "commas",
            Separator::Blanks => "blanks",
        }
    }

    /// The cells of a line; a quoted cell may contain the separator.
    fn cells(self, line: &str) -> Vec<String> {
        let Separator::Char(separator) = self else {
            return line.split_whitespace().map(str::to_owned).collect();
        };
        let (mut cells, mut cell, mut quoted) = (Vec::new(), String::new(), false);
        for c in line.chars() {
            match c {
                '"' => quoted = !quoted,
                c if c == separator && !quoted => cells.push(core::mem::take(&mut cell)),
                c => cell.push(c),
            }
        }
        cells.push(cell);
        cells.into_iter().map(|cell| cell.trim().to_owned()).collect()
    }
}

/// A number, with a decimal comma where commas do not separate cells.
fn number(cell: &str, separator: Separator) -> Option<f64> {
    let comma = separator != Separator::Char(',') && !cell.contains('.');
    let cell = if comma { cell.replace(',', ".") } else { cell.to_owned() };
    cell.parse().ok().filter(|number: &f64| number.is_finite())
}

/// The cell is a missing value.
fn is_missing(cell: &str) -> bool {
    let words = ["", "-", "--", "na", "n/a", "nan", "null", "none", "?"];
    words.contains(&cell.to_ascii_lowercase().as_str())
}

/// A column of values.
struct Column {
    role: Role,
    index: usize,
    quantity: Quantity,
    /// Factor from a bare number to the unit of the role: bits per second, nanoseconds, or a probability.
    scale: Option<f64>,
    /// Number of values without a unit.
    bare: usize,
    /// Row, value, and whether it is the end of a ramp.
    values: Vec<(u32, f64, bool)>,
}

/// Columns and their meaning.
struct Columns {
    names: Vec<String>,
    /// The column of the times; `None` if the rows have a fixed step.
    time: Option<usize>,
    values: Vec<Column>,
    /// Seconds of the unit of bare times, if the column's name has one.
    tick_s: Option<f64>,
}

/// Reads the value of a key: `role` has its meaning, `step` the time between lines without times.
///
/// # Errors
///
/// The invalid line, and a valid alternative.
pub fn course<T: Level>(text: &str, role: Role, step: Option<Span>) -> Result<Course<T>, Wrong> {
    let hints = Hints { role: Some(role), step, ..Hints::default() };
    let mut table = Rows::read(text, &hints)?;
    table.finish()?;
    table.course(role)?.ok_or_else(|| wrong(0, "no column has these values", HELP))
}

const HELP: &str = "a table has a line for each time: `0.5,12.3` or `0.5 12.3`, with names and units of columns above, such \
                    as `time (s),rate (mbit),delay (ms)`";

impl Measured {
    /// Reads a table.
    ///
    /// # Errors
    ///
    /// The invalid line, and a valid alternative.
    pub fn read(text: &str, hints: &Hints) -> Result<Measured, Wrong> {
        let mut table = Rows::read(text, hints)?;
        table.finish()?;
        let end = table.period_s.unwrap_or(table.end_s);
        Ok(Measured {
            rate: table.course(Role::Rate)?,
            back: table.course(Role::Back)?,
            delays: table.course(Role::Delay)?,
            losses: table.course(Role::Loss)?,
            end: span(end),
            understood: table.understood,
        })
    }

    /// The values as a table that [`Measured::read`] accepts. It begins again at the end.
    pub fn csv(&self) -> String {
        let rate = |rate: Option<Rate>| rate.map_or(0, Rate::bps).to_string();
        let millis = |delay: Span| (delay.0 as f64 / 1e6).to_string();
        let loss = |loss: Probability| loss.get().to_string();
        let columns = [
            self.rate.as_ref().map(|course| cells("rate (bit)", course, rate)),
            self.back.as_ref().map(|course| cells("rate-back (bit)", course, rate)),
            self.delays.as_ref().map(|course| cells("delay (ms)", course, millis)),
            self.losses.as_ref().map(|course| cells("loss", course, loss)),
        ];
        let columns: Vec<(&str, Vec<(Span, String)>)> = columns.into_iter().flatten().collect();
        let mut times: Vec<Span> =
            columns.iter().flat_map(|(_, cells)| cells.iter().map(|(at, _)| *at)).collect();
        times.sort_unstable();
        times.dedup();
        let heads: Vec<&str> = columns.iter().map(|(head, _)| *head).collect();
        let mut text = format!("time (s),{}\n", heads.join(","));
        let mut next = vec![0; columns.len()];
        for at in times {
            let _ = write!(text, "{}", at.as_secs_f64());
            for ((_, cells), next) in columns.iter().zip(&mut next) {
                let cell = cells.get(*next).filter(|(time, _)| *time == at);
                *next += usize::from(cell.is_some());
                let _ = write!(text, ",{}", cell.map_or("", |(_, cell)| cell));
            }
            text.push('\n');
        }
        let _ = writeln!(text, "{},again{}", self.end.as_secs_f64(), ",".repeat(columns.len() - 1));
        text
    }
}

/// The cells of a course.
fn cells<'h, T: Level>(
    head: &'h str,
    course: &Course<T>,
    cell: impl Fn(T) -> String,
) -> (&'h str, Vec<(Span, String)>) {
    let cells = course.points().map(|(at, value, ramp)| {
        let to = if ramp { "to " } else { "" };
        (at, format!("{to}{}", cell(value)))
    });
    (head, cells.collect())
}

/// The closest nanosecond.
fn span(seconds: f64) -> Span {
    Span(libm::round(seconds * 1e9).max(0.0) as u64)
}

/// The rows of a table.
struct Rows {
    columns: Vec<Column>,
    /// Line and time of each row.
    stamps: Vec<(usize, Stamp)>,
    /// Seconds of each row since the first one.
    at: Vec<f64>,
    end_s: f64,
    /// Row whose cell is `again`, and then its time.
    again: Option<usize>,
    period_s: Option<f64>,
    tick_s: Option<f64>,
    time_name: String,
    missing: usize,
    understood: Vec<String>,
}

impl Rows {
    fn read(text: &str, hints: &Hints) -> Result<Rows, Wrong> {
        let text = text.trim_start_matches('\u{feff}');
        let lines = || {
            let lines = text.lines().enumerate().map(|(i, line)| (i + 1, line.trim()));
            lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        };
        let Some((_, first)) = lines().next() else {
            return Err(wrong(0, "there are no lines in it", HELP));
        };
        if let Some(rows) = Rows::of_ping(lines(), hints)? {
            return Ok(rows);
        }
        if let Some(rows) = Rows::of_trains(lines(), hints)? {
            return Ok(rows);
        }
        let separator = Separator::of(first);
        let cells = separator.cells(first);
        let is_number = |cell: &String| {
            number(cell, separator).is_some()
                || clock::parse(cell).is_some()
                || cell.parse::<Span>().is_ok()
        };
        let header = (!cells.iter().any(is_number)).then_some(cells);
        let mut lines = lines().skip(usize::from(header.is_some())).peekable();
        let Some((line, row)) = lines.peek().copied() else {
            return Err(wrong(0, "there are no numbers in it", HELP));
        };
        let row = separator.cells(row);
        let count = header.as_ref().map_or(row.len(), Vec::len);
        let mut understood = vec![match count {
            1 => "columns: one, without times".to_owned(),
            n => format!("columns: {n}, separated by {}", separator.name()),
        }];
        let of_iperf = if header.is_none() { iperf2(&row) } else { None };
        // Where there are sums over streams, the streams themselves do not count.
        let sums = of_iperf.is_some()
            && lines
                .clone()
                .any(|(_, text)| separator.cells(text).get(IPERF_ID).is_some_and(|id| id == "-1"));
        let header = header.or(of_iperf);
        let columns = Columns::of(header, &row, line, hints, &mut understood)?;
        let Columns { names, time, values, tick_s } = columns;
        let time_name = time.map_or(String::new(), |time| names[time].clone());
        let mut rows = Rows {
            columns: values,
            stamps: Vec::new(),
            at: Vec::new(),
            end_s: 0.0,
            again: None,
            period_s: None,
            tick_s,
            time_name,
            missing: 0,
            understood,
        };
        for (line, text) in lines {
            let cells = separator.cells(text);
            if !sums || cells.get(IPERF_ID).is_some_and(|id| id == "-1") {
                rows.row(line, &cells, separator, time, &names, hints)?;
            }
        }
        rows.units_by_size(hints)?;
        if let (None, Some(step), None) = (time, hints.step, rows.again) {
            // Values without times begin again behind the last one.
            let count = rows.stamps.len();
            rows.again = Some(count);
            rows.stamps.push((0, Stamp::Seconds(count as f64 * step.as_secs_f64())));
        }
        Ok(rows)
    }

    fn row(
        &mut self,
        line: usize,
        cells: &[String],
        separator: Separator,
        time: Option<usize>,
        names: &[String],
        hints: &Hints,
    ) -> Result<(), Wrong> {
        let cell = |i: usize| {
            cells.get(i).map(String::as_str).ok_or_else(|| {
                let message = format!("it has {} columns, not {}", cells.len(), names.len());
                wrong(line, message, "complete the line, or remove it")
            })
        };
        if self.again.is_some() {
            return Err(wrong(line, "it comes after `again`", "`again` is the last line"));
        }
        let row = self.stamps.len();
        let stamp = match time {
            None => Stamp::Seconds(row as f64 * hints.step.unwrap_or_default().as_secs_f64()),
            Some(time) => stamp(cell(time)?, separator).ok_or_else(|| {
                let (text, name) = (cells[time].as_str(), &names[time]);
                wrong(line, format!("`{text}` in `{name}` is no time"), "seconds, times with a unit, Unix time or a date with a time are accepted; `--time-column NAME` of `lasthop trace convert` selects another column")
            })?,
        };
        // The last interval of a report is the whole test.
        let whole = |time: usize| interval(&cells[time]).is_some_and(|(from, _)| from == 0.0);
        if row > 0 && time.is_some_and(whole) {
            return Ok(());
        }
        if row == MOST {
            return Err(wrong(line, format!("more than {MOST} rows"), "cut it by `head -n`"));
        }
        let mut missing = false;
        for column in &mut self.columns {
            let text = cell(column.index)?;
            if text == "again" {
                self.again = Some(row);
                continue;
            }
            if is_missing(text) {
                missing = true;
                continue;
            }
            let (ramp, text) = match text.strip_prefix("to ") {
                Some(text) => (true, text.trim()),
                None => (false, text),
            };
            let value = match number(text, separator) {
                Some(number) if number >= 0.0 => match column.scale {
                    Some(scale) => number * scale,
                    None if matches!(column.role, Role::Loss | Role::Delay) => {
                        column.bare += 1;
                        number
                    }
                    None => {
                        let message = format!("`{text}` in `{}` has no unit", names[column.index]);
                        return Err(wrong(line, message, "write the unit into the name of the column, for example `rate (mbit)` or `delay (ms)`, or give it by `--unit kbit` to `lasthop trace convert`; `--quantity` names delays, round trips and losses"));
                    }
                },
                _ => with_unit(column.role, text).map_err(|error| {
                    let name = &names[column.index];
                    let message = match error {
                        Some(error) => error,
                        None => format!("`{text}` in `{name}` is no {}", column.role.noun()),
                    };
                    wrong(line, message, "a number, or `-` where nothing was measured; `--column NAME` of `lasthop trace convert` selects another column")
                })?,
            };
            column.values.push((row as u32, value, ramp));
        }
        if missing && self.again.is_none() {
            self.missing += 1;
        }
        self.stamps.push((line, stamp));
        Ok(())
    }

    /// The unit of delays without one, by their size.
    fn units_by_size(&mut self, hints: &Hints) -> Result<(), Wrong> {
        let delays = |column: &&mut Column| column.role == Role::Delay && column.scale.is_none();
        let Some(column) = self.columns.iter_mut().find(delays) else { return Ok(()) };
        if column.bare == 0 || column.values.is_empty() {
            return Ok(());
        }
        let mut sizes: Vec<f64> = column.values.iter().map(|(_, value, _)| *value).collect();
        sizes.sort_by(f64::total_cmp);
        let median = sizes[sizes.len() / 2];
        let whole = sizes.iter().all(|value| value.fract() == 0.0);
        let scale = match median {
            _ if column.bare < column.values.len() => None,
            1.0..MILLIS_MOST => Some((MILLIS, "milliseconds")),
            NANOS.. if whole => Some((1.0, "nanoseconds")),
            _ => None,
        };
        let Some((scale, word)) = scale else {
            let message =
                format!("the unit of the delays is not known, half of them are below {median}");
            let help = "write it into the name of the column, for example `rtt_ms` or `delay (us)`";
            return Err(wrong(0, message, help));
        };
        column.values.iter_mut().for_each(|(_, value, _)| *value *= scale);
        self.understood.push(format!("delays: without a unit, by their size in {word}"));
        if word == "nanoseconds" && hints.time.is_none() && self.tick_s.is_none() {
            let bare = |(_, stamp): &(usize, Stamp)| match stamp {
                Stamp::Number(at) => Some(*at),
                _ => None,
            };
            let times: Vec<f64> = self.stamps.iter().filter_map(bare).collect();
            let steps = times.windows(2).map(|pair| pair[1] - pair[0]);
            if steps.filter(|step| *step > 0.0).all(|step| step >= NANOS && step.fract() == 0.0) {
                self.tick_s = Some(1e-9);
            }
        }
        Ok(())
    }

    /// Computes the times: spreads rows of equal time, and finds gaps.
    fn finish(&mut self) -> Result<(), Wrong> {
        let again = self.again;
        let times =
            clock::seconds(&self.stamps, self.tick_s, &self.time_name, &mut self.understood)?;
        let rows = again.unwrap_or(times.len());
        if rows == 0 || rows < 2 && again.is_none() {
            return Err(wrong(
                0,
                "there are fewer than two rows with values",
                "a link needs values over some time; a last line such as `10s,again` sets the end",
            ));
        }
        self.period_s = again.map(|again| times[again]);
        let mut steps: Vec<f64> =
            times.windows(2).map(|pair| pair[1] - pair[0]).filter(|step| *step > 0.0).collect();
        steps.sort_by(f64::total_cmp);
        let Some(usual) = steps.get(steps.len().saturating_sub(1) / 2).copied() else {
            let help = "`--time-column NAME` of `lasthop trace convert` selects another column";
            return Err(wrong(0, "all rows have the same time", help));
        };
        let (mut i, mut shared) = (0, 0);
        let (mut gaps, mut longest): (usize, (f64, usize)) = (0, (0.0, 0));
        while i < rows {
            let same = times[i..rows].iter().take_while(|time| **time <= times[i]).count();
            let next = times.get(i + same).copied().unwrap_or(times[i] + usual);
            let step = next - times[i];
            if step > GAP * usual && again.is_none() {
                gaps += 1;
                if step > longest.0 {
                    longest = (step, self.stamps[i + same - 1].0);
                }
            }
            shared += same - 1;
            // In a gap, rows have the usual step and the last value continues.
            let each = step.min(usual.max(step / GAP)) / same as f64;
            self.at.extend((0..same).map(|k| times[i] + each * k as f64));
            self.end_s = next;
            i += same;
        }
        if shared > 0 {
            self.understood.push(format!("repeated times: {shared} rows share the time of another, and are spread up to the next time"));
        }
        let mut text =
            format!("span: {rows} rows over {:.3} s, mostly {usual:.3} s apart", self.end_s);
        if self.missing > 0 {
            let _ =
                write!(text, "; {} rows without a value, where the one before holds", self.missing);
        }
        self.understood.push(text);
        if gaps > 0 {
            let (length, line) = longest;
            self.understood.push(format!(
                "gaps: {gaps}, the longest of {length:.3} s behind line {line}, where the last value holds"
            ));
        }
        (0..self.columns.len()).try_for_each(|i| self.convert(i))
    }

    /// Converts amounts to rates, and percentages to probabilities.
    fn convert(&mut self, i: usize) -> Result<(), Wrong> {
        let (at, end_s) = (&self.at, self.end_s);
        let column = &mut self.columns[i];
        match column.quantity {
            Quantity::Amount => {
                let values = &column.values;
                let grows = values.windows(2).filter(|pair| pair[1].1 > pair[0].1).count();
                let falls = values.windows(2).any(|pair| pair[1].1 < pair[0].1);
                let counter = values.len() >= 8 && !falls && 2 * grows > values.len();
                let until = |k: usize| match values.get(k + 1) {
                    Some((row, ..)) => at[*row as usize],
                    None => end_s,
                };
                let rates: Vec<f64> = (0..values.len())
                    .map(|k| {
                        let (row, value, _) = values[k];
                        let span = until(k) - at[row as usize];
                        let amount = match (counter, values.get(k + 1)) {
                            (false, _) => value,
                            (true, Some((_, next, _))) => next - value,
                            // The last row ends the counting.
                            (true, None) => value - values[k - 1].1,
                        };
                        if span > 0.0 { amount / span } else { 0.0 }
                    })
                    .collect();
                column.values.iter_mut().zip(rates).for_each(|(value, rate)| value.1 = rate);
                let kind = if counter { "a counter" } else { "the amount of each row" };
                self.understood.push(format!(
                    "rates: by the time to the next row, since the column is {kind}"
                ));
            }
            Quantity::RoundTrip => column.values.iter_mut().for_each(|value| value.1 /= 2.0),
            Quantity::Loss => {
                let percent = column.scale.is_none() && column.values.iter().any(|v| v.1 > 1.0);
                if percent {
                    column.values.iter_mut().for_each(|value| value.1 /= 100.0);
                    self.understood.push("losses: above 1, so they are percentages".to_owned());
                }
                if let Some((row, value, _)) = column.values.iter().find(|value| value.1 > 1.0) {
                    let line = self.stamps[*row as usize].0;
                    let message = format!("{value} is no probability");
                    return Err(wrong(line, message, "write 0 to 1, or percentages up to 100"));
                }
            }
            Quantity::Rate | Quantity::Delay => {}
        }
        Ok(())
    }

    /// The course of a column. The first value holds from the beginning.
    fn course<T: Level>(&self, role: Role) -> Result<Option<Course<T>>, Wrong> {
        let Some(column) = self.columns.iter().find(|column| column.role == role) else {
            return Ok(None);
        };
        let Some((first, ..)) = column.values.first() else { return Ok(None) };
        let points = column.values.iter().map(|(row, value, ramp)| {
            let at = if row == first { 0.0 } else { self.at[*row as usize] };
            let value = if role == Role::Loss { *value } else { libm::round(*value) };
            (span(at), T::of(value), *ramp)
        });
        let period = self.period_s.map(span);
        Course::ramps(points, period).map(Some)
    }
}

impl Role {
    /// Its values in messages.
    fn noun(self) -> &'static str {
        match self {
            Role::Rate | Role::Back => "rate",
            Role::Delay => "delay",
            Role::Loss => "probability of loss",
        }
    }
}

/// A time in a cell: a number, a time with its unit, an interval, or the wall clock.
fn stamp(cell: &str, separator: Separator) -> Option<Stamp> {
    let date = clock::parse(cell).filter(|stamp| matches!(stamp, Stamp::Date(_)));
    date.or_else(|| number(cell, separator).map(Stamp::Number))
        .or_else(|| Some(Stamp::Seconds(cell.parse::<Span>().ok()?.as_secs_f64())))
        .or_else(|| interval(cell).map(|(from, _)| Stamp::Seconds(from)))
        .or_else(|| clock::parse(cell))
}

/// Seconds of an interval such as `0.0-1.0`.
fn interval(cell: &str) -> Option<(f64, f64)> {
    let (from, to) = cell.split_once('-')?;
    let (from, to) = (from.trim().parse::<f64>().ok()?, to.trim().parse::<f64>().ok()?);
    (from >= 0.0 && to > from).then_some((from, to))
}

/// A cell with a unit, in the unit of its role. The error has the reason, if there is a specific one.
fn with_unit(role: Role, text: &str) -> Result<f64, Option<String>> {
    use crate::units::UnitError;
    match role {
        Role::Rate | Role::Back => match <Option<Rate>>::read(text) {
            Ok(rate) => Ok(rate.number()),
            Err(message) => Err(match text.parse::<Rate>() {
                Err(UnitError::Ambiguous(..) | UnitError::Octets(..)) => Some(message),
                _ => None,
            }),
        },
        Role::Delay => Span::read(text).map(Level::number).map_err(|_| None),
        Role::Loss => Probability::read(text).map(Level::number).map_err(|_| None),
    }
}

/// Index of the stream in a row of iperf 2.
const IPERF_ID: usize = 5;

/// The names of the columns of `iperf -y C` (iperf 2), whose first row is `row`.
fn iperf2(row: &[String]) -> Option<Vec<String>> {
    const NAMES: [&str; 9] = [
        "timestamp",
        "source",
        "source port",
        "destination",
        "destination port",
        "id",
        "interval",
        "transferred bytes",
        "bits_per_second",
    ];
    let is_date = row.first()?.len() >= 14 && clock::parse(row.first()?).is_some();
    let others = (10..=row.len()).map(|i| format!("column {i}"));
    (is_date && row.len() >= NAMES.len() && interval(&row[6]).is_some())
        .then(|| NAMES.into_iter().map(str::to_owned).chain(others).collect())
}

impl Columns {
    /// The columns of a table whose first line with numbers is `row`; `header` has their names if there is a
    /// header.
    fn of(
        header: Option<Vec<String>>,
        row: &[String],
        line: usize,
        hints: &Hints,
        understood: &mut Vec<String>,
    ) -> Result<Columns, Wrong> {
        let named = header.is_some();
        if hints.named && !named {
            return Err(wrong(line, "its columns have no names", HELP));
        }
        let names =
            header.unwrap_or_else(|| (1..=row.len()).map(|i| format!("column {i}")).collect());
        let all = || names.join(", ");
        let find = |wanted: &str| {
            let by_name = names.iter().position(|name| name.eq_ignore_ascii_case(wanted));
            let by_number = || {
                wanted
                    .parse()
                    .ok()
                    .and_then(|n: usize| n.checked_sub(1))
                    .filter(|i| *i < names.len())
            };
            by_name.or_else(by_number).ok_or_else(|| {
                let message = format!("there is no column `{wanted}`");
                wrong(0, message, format!("the columns are {}", all()))
            })
        };
        let time = match &hints.time {
            Some(wanted) => Some(find(wanted)?),
            None if hints.step.is_some() => None,
            None if names.iter().any(|name| name == "interval") => {
                names.iter().position(|name| name == "interval")
            }
            None => match names.iter().position(|name| named && names::is_time(name)) {
                Some(time) => Some(time),
                None if names.len() > 1 && !names::is_count(&names[0]) => Some(0),
                None => {
                    let help = "the time from one line to the next is needed: `delays-step = \"10ms\"` next to \
                                `delays`, or `--step 10ms` of `lasthop trace convert`";
                    return Err(wrong(line, "the lines have values, but no times", help));
                }
            },
        };
        let mut columns = Columns {
            tick_s: time.and_then(|time| clock::unit_of_name(&names[time])),
            names: names.clone(),
            time,
            values: Vec::new(),
        };
        let quantity = |i: usize| if named { names::quantity(&names[i]) } else { None };
        let count = names.len();
        let others = move || (0..count).filter(move |i| Some(*i) != time);
        if let Some(wanted) = &hints.column {
            let i = find(wanted)?;
            let role = hints.role.unwrap_or(match quantity(i) {
                Some(Quantity::Delay | Quantity::RoundTrip) => Role::Delay,
                Some(Quantity::Loss) => Role::Loss,
                _ => Role::Rate,
            });
            columns.add(role, i, quantity(i), hints, understood)?;
        } else {
            let wants = |role| hints.role.is_none_or(|wanted| wanted == role);
            let down = hints.down.unwrap_or(true);
            let best = |quantity: Quantity, down: bool| {
                let fits = others().filter(|i| names::quantity(&names[*i]) == Some(quantity));
                let score = |i: usize| match names::direction(&names[i]) {
                    Some(towards) if towards == down => 3,
                    Some(_) => 1,
                    None => 2,
                };
                fits.max_by_key(|i| (score(*i), core::cmp::Reverse(*i))).filter(|_| named)
            };
            // With two columns the other one has the values, whatever its name.
            let only = || {
                let mut others = others();
                match (others.next(), others.next()) {
                    (Some(one), None) => Some(one),
                    _ => None,
                }
            };
            if wants(Role::Rate) {
                let unknown = || only().filter(|i| hints.role.is_some() || quantity(*i).is_none());
                let rate = best(Quantity::Rate, down).or_else(|| best(Quantity::Amount, down));
                if let Some(i) = rate.or_else(unknown) {
                    columns.add(Role::Rate, i, quantity(i), hints, understood)?;
                }
            }
            let back = |i: &usize| names::direction(&names[*i]) == Some(false);
            let taken = columns.values.first().map(|column| column.index);
            if hints.role.is_none()
                && hints.down.is_none()
                && let Some(i) =
                    best(Quantity::Rate, false).filter(back).filter(|i| Some(*i) != taken)
            {
                columns.add(Role::Back, i, quantity(i), hints, understood)?;
            }
            if wants(Role::Delay) {
                let only = || only().filter(|_| hints.role.is_some());
                let delay = best(Quantity::Delay, down).or_else(|| best(Quantity::RoundTrip, down));
                if let Some(i) = delay.or_else(only) {
                    columns.add(Role::Delay, i, quantity(i), hints, understood)?;
                }
            }
            if wants(Role::Loss) {
                let only = || only().filter(|_| hints.role.is_some());
                if let Some(i) = best(Quantity::Loss, down).or_else(only) {
                    columns.add(Role::Loss, i, quantity(i), hints, understood)?;
                }
            }
        }
        if columns.values.is_empty() {
            let noun = hints.role.map_or("rates", |role| match role {
                Role::Rate | Role::Back => "rates",
                Role::Delay => "delays",
                Role::Loss => "losses",
            });
            let message = format!("no column is known to hold {noun}");
            let help = format!("name it: `--column NAME` of `lasthop trace convert`, of {}", all());
            return Err(wrong(line.saturating_sub(1), message, help));
        }
        if columns.values.iter().any(|column| Some(column.index) == time) {
            let help = "choose another: `--column` and `--time-column` of `lasthop trace convert`";
            return Err(wrong(0, "times and values are in the same column", help));
        }
        let used = |i: &usize| columns.values.iter().any(|column| column.index == *i);
        let unused: Vec<&str> = others()
            .filter(|i| !used(i) && quantity(*i).is_some())
            .map(|i| names[i].as_str())
            .collect();
        if !unused.is_empty() {
            understood
                .push(format!("not used: {} (`--column NAME` takes another)", unused.join(", ")));
        }
        Ok(columns)
    }

    /// Adds the column at `index` with its unit.
    fn add(
        &mut self,
        role: Role,
        index: usize,
        quantity: Option<Quantity>,
        hints: &Hints,
        understood: &mut Vec<String>,
    ) -> Result<(), Wrong> {
        let name = &self.names[index];
        let (scale, word) = match role {
            Role::Rate | Role::Back => match (&hints.unit, quantity) {
                (Some(word), _) => {
                    let bits = names::unit(word).ok_or_else(|| {
                        let message = format!("`{word}` is no unit of a rate");
                        wrong(0, message, "for example `--unit kbit` or `--unit Mbit/s`")
                    })?;
                    (Some(bits), format!("{word}, as given"))
                }
                (None, Some(Quantity::Amount)) => {
                    (names::amount(name), "bits of each row".to_owned())
                }
                _ => self.rate_unit(name),
            },
            Role::Delay => match names::nanos(name) {
                Some(nanos) => (Some(nanos), format!("{} ns", nanos)),
                None => (None, "the unit of their cells".to_owned()),
            },
            Role::Loss => {
                let small = name.to_ascii_lowercase();
                let percent = ["%", "percent", "pct"].iter().any(|word| small.contains(word));
                let word = if percent { "percent" } else { "shares" };
                (percent.then_some(0.01), word.to_owned())
            }
        };
        let round_trip = (hints.round_trip && role == Role::Delay).then_some(Quantity::RoundTrip);
        let quantity = round_trip.or(quantity).unwrap_or(match role {
            Role::Rate | Role::Back => Quantity::Rate,
            Role::Delay => Quantity::Delay,
            Role::Loss => Quantity::Loss,
        });
        let noun = match (role, quantity) {
            (Role::Rate, _) => "rates",
            (Role::Back, _) => "rates back",
            (_, Quantity::RoundTrip) => "delays: half of the round-trip times",
            (Role::Delay, _) => "delays",
            (Role::Loss, _) => "losses",
        };
        let colon = if noun.contains(':') { "" } else { ":" };
        understood.push(format!("{noun}{colon} `{name}` in {word}"));
        self.values.push(Column { role, index, quantity, scale, bare: 0, values: Vec::new() });
        Ok(())
    }

    /// The unit of a rate by the name of its column; `None` if its cells must have one.
    fn rate_unit(&self, name: &str) -> (Option<f64>, String) {
        let has = |other: &str| self.names.iter().any(|name| name.eq_ignore_ascii_case(other));
        match names::unit_of_name(name) {
            Some((bits, word)) => (Some(bits), word),
            // Columns of the phone application G-NetTrack.
            None if ["DL_bitrate", "UL_bitrate"].contains(&name) => {
                (Some(1e3), "kbit/s, as G-NetTrack writes it".to_owned())
            }
            None if has("ping") && has("download") && has("server id") => {
                (Some(1.0), "bit/s, as speedtest-cli writes it".to_owned())
            }
            None if has("download bytes") => {
                (Some(8.0), "bytes/s, as Ookla's speedtest writes it".to_owned())
            }
            None => (None, "the unit of their cells".to_owned()),
        }
    }
}

impl Rows {
    /// Rows of delays with times.
    fn of_delays(stamps: Vec<(usize, Stamp)>, values: Vec<(u32, f64, bool)>, text: String) -> Rows {
        let quantity = Quantity::RoundTrip;
        let column =
            Column { role: Role::Delay, index: 0, quantity, scale: Some(1.0), bare: 0, values };
        Rows {
            columns: vec![column],
            stamps,
            at: Vec::new(),
            end_s: 0.0,
            again: None,
            period_s: None,
            tick_s: None,
            time_name: "time".to_owned(),
            missing: 0,
            understood: vec![text],
        }
    }

    /// The output of `ping`: its round-trip times, and its times with `-D`.
    fn of_ping<'t>(
        lines: impl Iterator<Item = (usize, &'t str)> + Clone,
        hints: &Hints,
    ) -> Result<Option<Rows>, Wrong> {
        let answer = |line: &str| line.contains("time=") || line.contains("time<");
        let head = |(_, line): (usize, &str)| {
            answer(line) && (line.contains("icmp_seq") || line.to_lowercase().contains("ttl="))
        };
        if hints.role.is_some_and(|role| role != Role::Delay) || !lines.clone().take(20).any(head) {
            return Ok(None);
        }
        let step = hints.step.unwrap_or(Span::secs(1));
        let (mut stamps, mut values, mut clocked) = (Vec::new(), Vec::new(), true);
        for (line, text) in lines.filter(|(_, text)| answer(text) && !text.contains("DUP!")) {
            let fail = || wrong(line, format!("`{text}` is no answer of ping"), "remove the line");
            let until =
                |text: &'t str, end: fn(char) -> bool| text.split(end).next().unwrap_or_default();
            let rest = text.split_once("time=").or(text.split_once("time<")).ok_or_else(fail)?.1;
            let digits = until(rest, |c| !(c.is_ascii_digit() || c == '.'));
            let unit = until(rest[digits.len()..].trim_start(), |c| !c.is_ascii_alphabetic());
            let unit = if unit.is_empty() { "ms" } else { unit };
            let rtt: Span = format!("{digits}{unit}").parse().map_err(|_| fail())?;
            let at = text.strip_prefix('[').and_then(|rest| rest.split_once(']'));
            let at = at.and_then(|(at, _)| at.parse().ok()).map(Stamp::Number);
            let seq = text.split_once("icmp_seq=").or(text.split_once("icmp_seq:"));
            let seq = seq.and_then(|(_, rest)| until(rest, |c| !c.is_ascii_digit()).parse().ok());
            clocked &= at.is_some();
            let seq: u64 = seq.unwrap_or(stamps.len() as u64);
            let counted = Stamp::Seconds(seq as f64 * step.as_secs_f64());
            if stamps.len() == MOST {
                return Err(wrong(line, format!("more than {MOST} rows"), "cut it by `head -n`"));
            }
            values.push((stamps.len() as u32, rtt.0 as f64, false));
            stamps.push((line, at.unwrap_or(counted)));
        }
        let times = match clocked {
            true => "its times".to_owned(),
            false => format!("{step} from one to the next (`--step` sets another time)"),
        };
        let text = format!("ping: half of the round-trip times are delays, with {times}");
        Ok(Some(Rows::of_delays(stamps, values, text)))
    }

    /// The trains of CellReplay for a lightly loaded link: a time, the delay of a first packet, and the
    /// opportunities after it, in milliseconds. Delays between two lines are interpolated.
    fn of_trains<'t>(
        lines: impl Iterator<Item = (usize, &'t str)> + Clone,
        hints: &Hints,
    ) -> Result<Option<Rows>, Wrong> {
        if hints.role.is_some_and(|role| role != Role::Delay) || hints.column.is_some() {
            return Ok(None);
        }
        let is_train = |text: &str| {
            let mut last = 0;
            let mut cells = text.split(' ').map(|cell| cell.parse::<u32>());
            cells.by_ref().take(2).all(|cell| cell.is_ok())
                && cells.all(|cell| cell.is_ok_and(|at| core::mem::replace(&mut last, at) <= at))
        };
        let long = |(_, text): (usize, &str)| text.split(' ').count() > 3;
        if !lines.clone().take(20).all(|(_, text)| is_train(text)) || !lines.clone().any(long) {
            return Ok(None);
        }
        let (mut stamps, mut values) = (Vec::new(), Vec::new());
        for (line, text) in lines {
            let help = "a line has a time, a delay and opportunities in milliseconds";
            let mut cells = text.split(' ').map(|cell| cell.parse::<u32>().ok()).fuse();
            let (Some(Some(at)), Some(Some(delay))) = (cells.next(), cells.next()) else {
                return Err(wrong(line, format!("`{text}` is no train"), help));
            };
            if stamps.len() == MOST {
                return Err(wrong(line, format!("more than {MOST} rows"), "cut it by `head -n`"));
            }
            values.push((stamps.len() as u32, f64::from(delay) * MILLIS, !stamps.is_empty()));
            stamps.push((line, Stamp::Seconds(f64::from(at) / 1e3)));
        }
        let text = "CellReplay: delays of the first packets of trains".to_owned();
        let mut rows = Rows::of_delays(stamps, values, text);
        rows.columns[0].quantity = Quantity::Delay;
        // The last line only ends the period.
        if let Some((_, Stamp::Seconds(end))) = rows.stamps.last_mut()
            && *end > 0.0
        {
            let period = *end;
            *end -= 1e-6;
            rows.again = Some(rows.stamps.len());
            rows.stamps.push((0, Stamp::Seconds(period)));
        }
        Ok(Some(rows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Time;

    fn table(text: &str) -> Measured {
        Measured::read(text, &Hints::default()).unwrap_or_else(|error| panic!("{error:?}: {text}"))
    }

    /// Times in milliseconds, and rates in kbit/s.
    fn rates(found: &Measured) -> Vec<(u64, u64)> {
        let rate = found.rate.as_ref().expect("rates");
        rate.points()
            .map(|(at, rate, _)| (at.0 / 1_000_000, rate.map_or(0, Rate::bps) / 1000))
            .collect()
    }

    /// Times and delays in milliseconds.
    fn delays(found: &Measured) -> Vec<(u64, f64)> {
        let delays = found.delays.as_ref().expect("delays");
        delays.points().map(|(at, delay, _)| (at.0 / 1_000_000, delay.0 as f64 / 1e6)).collect()
    }

    #[track_caller]
    fn refused(text: &str, hints: &Hints, line: Option<usize>, expected: &[&str]) {
        let Err(error) = Measured::read(text, hints) else { panic!("{text}") };
        assert_eq!(error.line, line, "{error:?}");
        for expected in expected {
            let text = format!("{} | {}", error.message, error.help);
            assert!(text.contains(expected), "`{expected}` is not in {text}");
        }
    }

    /// A phone application: named columns, wall-clock times, repeated seconds, `-` for missing values.
    #[test]
    fn a_drive_test_is_read() {
        let text = "Timestamp,Longitude,Speed,RSRP,DL_bitrate,UL_bitrate,State\n\
                    2024.03.04_23.59.58,0,41,-94,8000,500,D\n\
                    2024.03.04_23.59.58,0,41,-94,4000,500,D\n\
                    2024.03.04_23.59.59,0,41,-94,2000,600,D\n\
                    2024.03.05_00.00.00,0,42,-,-,600,D\n\
                    2024.03.05_00.00.01,0,42,-90,1000,700,D\n";
        let found = table(text);
        assert_eq!(rates(&found), [(0, 8000), (500, 4000), (1000, 2000), (3000, 1000)]);
        assert_eq!(found.end, Span::secs(4));
        let all = found.understood.join("\n");
        for expected in
            ["`DL_bitrate` in kbit/s", "rates back: `UL_bitrate`", "1 rows share", "wall clock"]
        {
            assert!(all.contains(expected), "{expected}: {all}");
        }
        let up = Hints { down: Some(false), ..Hints::default() };
        assert_eq!(rates(&Measured::read(text, &up).unwrap())[0].1, 500);
        let (column, unit) = (Some("ul_bitrate".to_owned()), Some("bit".to_owned()));
        let named = Hints { column, unit, ..Hints::default() };
        let found = Measured::read(text, &named).unwrap();
        assert_eq!(found.rate.unwrap().at(Time::ZERO), Rate::from_bps(500));
    }

    #[test]
    fn blanks_semicolons_and_decimal_commas_are_read() {
        // Without names and units the values may be rates, delays or losses.
        let text = "0.0 31.5\n0.5 33.0\n1.0 20.5\n";
        let refused = Measured::read(text, &Hints::default()).unwrap_err();
        assert!(refused.help.contains("--unit") && refused.help.contains("--quantity"));
        let role = Some(Role::Delay);
        let of = |round_trip| {
            let hints = Hints { role, round_trip, ..Hints::default() };
            Measured::read(text, &hints).unwrap().delays.unwrap().at(Time::ZERO)
        };
        assert_eq!((of(false), of(true)), (Span::micros(31_500), Span::micros(15_750)));
        let mbit = Hints { unit: Some("mbit".to_owned()), ..Hints::default() };
        let found = Measured::read(text, &mbit).unwrap();
        assert_eq!(rates(&found), [(0, 31_500), (500, 33_000), (1000, 20_500)]);
        assert_eq!(found.end, Span::millis(1500));
        let found = table(
            "time_ms;throughput_Mbps\n1700000000000;31,5\n1700000000200;33,0\n1700000000400;1,25\n",
        );
        assert_eq!(rates(&found), [(0, 31_500), (200, 33_000), (400, 1250)]);
        let found = table(
            "\u{feff}# a comment\n\"date\",\"note, long\",\"rate (kbit/s)\"\n\"2024-03-04T10:00:00.250Z\",\"a, b\",5\n\"2024-03-04T10:00:01.250Z\",c,7\n",
        );
        assert_eq!(rates(&found), [(0, 5), (1000, 7)]);
    }

    #[test]
    fn cells_with_units_ramps_and_a_period_are_read() {
        let found = table("time (s),rate (kbit)\n100.5,0\n# none\n101,2500\n102,again\n");
        assert_eq!((rates(&found), found.end), (vec![(0, 0), (500, 2500)], Span::millis(1500)));
        let found = table("0s,1mbit\n2s,to 3mbit\n");
        let rate = found.rate.unwrap();
        assert_eq!(rate.at(Time(1_000_000_000)), Rate::from_bps(2_000_000));
        assert_eq!(rate.period(), None);
    }

    #[test]
    fn bytes_of_each_row_become_rates() {
        for text in [
            "time_s,rx_bytes\n0.0,25000\n0.1,25000\n0.2,25000\n",
            "time_s,transfer_MBytes\n0,0.25\n1,0.25\n",
            "time_s,rx_bytes,throughput_mbps\n0.0,1,2\n0.1,2,2\n",
        ] {
            assert_eq!(rates(&table(text))[0].1, 2000, "{text}");
        }
        let counter: String =
            (0..10).map(|i| format!("{i},{}\n", 1_000_000 + i * 250_000)).collect();
        let found = table(&format!("time_s,rx_bytes\n{counter}"));
        assert!(rates(&found).iter().all(|(_, kbit)| *kbit == 2000), "{found:?}");
        assert!(found.understood.join(" ").contains("a counter"), "{found:?}");
    }

    #[test]
    fn reports_of_iperf_2_are_read() {
        let row = |id: i32, from: u32, to: u32, bits: u64| {
            let bytes = bits / 8 * u64::from(to - from);
            format!(
                "20240527112328,10.0.0.2,5001,10.0.0.1,5001,{id},{from}.0-{to}.0,{bytes},{bits}\n"
            )
        };
        let one = row(3, 0, 1, 8_000_000) + &row(3, 1, 2, 4_000_000) + &row(3, 0, 2, 6_000_000);
        assert_eq!(rates(&table(&one)), [(0, 8000), (1000, 4000)]);
        let two = [(3, 2), (4, 3), (-1, 5)].map(|(id, mbit)| row(id, 0, 1, mbit * 1_000_000));
        let more = [(3, 1), (4, 1), (-1, 2)].map(|(id, mbit)| row(id, 1, 2, mbit * 1_000_000));
        let all = two.concat() + &more.concat();
        assert_eq!(rates(&table(&all)), [(0, 5000), (1000, 2000)]);
        // Dates of 14 digits are no milliseconds.
        let found = table("time,kbps\n20240527235959,5\n20240528000001,7\n");
        assert_eq!(rates(&found), [(0, 5), (2000, 7)]);
    }

    #[test]
    fn round_trip_times_count_half() {
        let found =
            table("time,rtt_ms,operator\n2024-05-27T10:54:55.8,45,a\n2024-05-27T10:54:56.3,61,a\n");
        assert_eq!(delays(&found), [(0, 22.5), (500, 30.5)]);
        assert!(found.rate.is_none());
        let text = "PING 1.1.1.1 (1.1.1.1) 56(84) bytes of data.\n\
                    [1716810000.0] 64 bytes from 1.1.1.1: icmp_seq=1 ttl=57 time=27.3 ms\n\
                    [1716810000.2] 64 bytes from 1.1.1.1: icmp_seq=2 ttl=57 time=41 ms\n";
        assert_eq!(delays(&table(text)), [(0, 13.65), (200, 20.5)]);
        let plain = "64 bytes from h: icmp_seq=1 ttl=57 time=20 ms\n64 bytes from h: icmp_seq=3 ttl=57 time=30 ms\n";
        assert_eq!(delays(&table(plain)), [(0, 10.0), (2000, 15.0)]);
    }

    #[test]
    fn one_value_per_line_needs_a_step() {
        let step = Some(Span::millis(10));
        let course: Course<Span> = course("12\n14\n7\n", Role::Delay, step).unwrap();
        let at = |ms: u64| course.at(Time(ms * 1_000_000)).0 / 1_000_000;
        assert_eq!([at(0), at(10), at(29), at(30), at(45)], [12, 14, 7, 12, 14]);
        let error = super::course::<Span>("12\n14\n", Role::Delay, None).unwrap_err();
        assert!(error.help.contains("delays-step"), "{error:?}");
        let hints = Hints { step, unit: Some("kbit".to_owned()), ..Hints::default() };
        assert_eq!(rates(&Measured::read("100\n200\n", &hints).unwrap()), [(0, 100), (10, 200)]);
    }

    #[test]
    fn delays_without_a_unit_have_that_of_their_size() {
        let delay =
            |text: &str| course::<Span>(text, Role::Delay, None).map(|c| c.at(Time(200_000_000)));
        assert_eq!(delay("0,40000000\n100000000,80000000\n").unwrap(), Span::millis(80));
        assert_eq!(delay("0,40\n0.1,80\n").unwrap(), Span::millis(80));
        assert!(delay("0,0.04\n0.1,0.08\n").unwrap_err().message.contains("not known"));
    }

    #[test]
    fn trains_of_cellreplay_have_delays() {
        let text = "0 30 0 1 1 2 4\n500 32 0 0 1 3\n1000 31 0 1 2\n";
        let course: Course<Span> = course(text, Role::Delay, None).unwrap();
        let at = |ms: u64| course.at(Time(ms * 1_000_000)).0 / 1_000_000;
        assert_eq!([at(0), at(250), at(500), at(1000)], [30, 31, 32, 30]);
    }

    #[test]
    fn several_columns_are_one_measurement_and_come_back() {
        let text = "time (s),rate (mbit),rate-back (mbit),delay (ms),loss (%)\n0,10,2,20,0\n1,12,,25,1\n3,again,,,\n";
        let found = table(text);
        assert_eq!(rates(&found), [(0, 10_000), (1000, 12_000)]);
        assert_eq!(found.back.as_ref().unwrap().at(Time(2_000_000_000)), Rate::from_bps(2_000_000));
        assert_eq!(delays(&found), [(0, 20.0), (1000, 25.0)]);
        assert_eq!(found.losses.as_ref().unwrap().at(Time(1_000_000_000)).get(), 0.01);
        let again = table(&found.csv());
        assert_eq!(
            Measured { understood: Vec::new(), ..again },
            Measured { understood: Vec::new(), ..found }
        );
    }

    #[test]
    fn gaps_are_named_with_their_line() {
        let mut text = "t,rate_kbps\n".to_owned();
        for i in 0..20 {
            text += &format!("{},{}\n", if i < 10 { i } else { i + 30 }, 100);
        }
        let all = table(&text).understood.join("\n");
        assert!(all.contains("gaps: 1, the longest of 31.000 s behind line 11"), "{all}");
    }

    #[test]
    fn wrong_tables_are_refused_with_line_and_remedy() {
        let plain = Hints::default();
        refused("t,rate_kbps\n0,5\n1,x\n", &plain, Some(3), &["`x` in `rate_kbps`", "--column"]);
        refused("t,rate_kbps\n0,5\n1,-5\n2,6\n", &plain, Some(3), &["`-5`"]);
        refused("t,rate_kbps\n0,5\nsoon,6\n", &plain, Some(3), &["`soon` in `t`", "--time-column"]);
        refused("t,rate_kbps\n0,5\n1\n", &plain, Some(3), &["has 1 columns, not 2"]);
        refused("t,rate_kbps\n5,5\n4,5\n", &plain, Some(3), &["before", "sort"]);
        refused("t,rate\n0,5\n1,6\n", &plain, Some(2), &["`5` in `rate` has no unit", "--unit"]);
        refused("t,a,b\n0,5,6\n1,6,7\n", &plain, Some(1), &["no column", "--column", "t, a, b"]);
        refused("t,rate_kbps\n0,5\n0,6\n", &plain, None, &["same time"]);
        refused("t,rate_kbps\n", &plain, None, &["no numbers"]);
        refused("", &plain, None, &["no lines"]);
        refused("0s,1mbit\n1s,2mbps\n", &plain, Some(2), &["2mbit"]);
        refused("0s,1mbit\n3s,1mbit\n2s,1mbit\n", &plain, Some(3), &["before"]);
        refused("t,loss\n0,5\n1,200\n", &plain, Some(3), &["no probability"]);
        let column = Hints { column: Some("snr".to_owned()), ..Hints::default() };
        refused("t,rate_kbps\n0,5\n1,6\n", &column, None, &["no column `snr`", "t, rate_kbps"]);
        let unit = Hints { unit: Some("fast".to_owned()), ..Hints::default() };
        refused("t,rate_kbps\n0,5\n1,6\n", &unit, None, &["`fast` is no unit"]);
    }
}
