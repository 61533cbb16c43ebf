//! The rows of a table: reading, times, and conversion to courses.

use std::fmt::Write as _;

use super::super::Wrong;
use super::super::course::{Course, Level};
use super::cells::{Separator, interval, is_missing, number, stamp, with_unit};
use super::clock::{self, Stamp};
use super::columns::{Column, Columns};
use super::hints::{HELP, Hints, MILLIS, MOST, Role, span};
use super::names::{self, IPERF_ID, Quantity, iperf2};
use crate::units::Span;

/// Minimum ratio of a step to the usual one for a gap.
const GAP: f64 = 5.0;
/// Integers from here on without a unit are nanoseconds, if they are times or delays.
const NANOS: f64 = 1e6;
/// Numbers from 1 to this one without a unit are milliseconds, if they are delays.
const MILLIS_MOST: f64 = 1e4;

/// The rows of a table.
pub(super) struct Rows {
    pub columns: Vec<Column>,
    /// Line and time of each row.
    pub stamps: Vec<(usize, Stamp)>,
    /// Seconds of each row since the first one.
    pub at: Vec<f64>,
    pub end_s: f64,
    /// Row whose cell is `again`, and then its time.
    pub again: Option<usize>,
    pub period_s: Option<f64>,
    pub tick_s: Option<f64>,
    pub time_name: String,
    pub missing: usize,
    pub understood: Vec<String>,
}

impl Rows {
    pub fn read(text: &str, hints: &Hints) -> Result<Rows, Wrong> {
        let text = text.trim_start_matches('\u{feff}');
        let lines = || {
            let lines = text.lines().enumerate().map(|(i, line)| (i + 1, line.trim()));
            lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        };
        let Some((_, first)) = lines().next() else {
            return Err(Wrong::at(0, "there are no lines in it", HELP));
        };
        if first.starts_with('{') {
            let help = "`lasthop trace convert FILE --to csv -o FILE.csv` converts results of iperf3, and \
                        docs/reference/json-traces.py those of irtt, AlphaRTC and Rattan";
            return Err(Wrong::at(0, "it is JSON, and a table is needed", help));
        }
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
            return Err(Wrong::at(0, "there are no numbers in it", HELP));
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
                Wrong::at(line, message, "complete the line, or remove it")
            })
        };
        if self.again.is_some() {
            return Err(Wrong::at(line, "it comes after `again`", "`again` is the last line"));
        }
        let row = self.stamps.len();
        let stamp = match time {
            None => Stamp::Seconds(row as f64 * hints.step.unwrap_or_default().as_secs_f64()),
            Some(time) => stamp(cell(time)?, separator).ok_or_else(|| {
                let (text, name) = (cells[time].as_str(), &names[time]);
                Wrong::at(line, format!("`{text}` in `{name}` is no time"), "seconds, times with a unit, Unix time or a date with a time are accepted; `--time-column NAME` of `lasthop trace convert` selects another column")
            })?,
        };
        // The last interval of a report is the whole test.
        let whole = |time: usize| interval(&cells[time]).is_some_and(|(from, _)| from == 0.0);
        if row > 0 && time.is_some_and(whole) {
            return Ok(());
        }
        if row == MOST {
            return Err(Wrong::at(line, format!("more than {MOST} rows"), "cut it by `head -n`"));
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
                        return Err(Wrong::at(line, message, "write the unit into the name of the column, for example `rate (mbit)` or `delay (ms)`, or give it by `--unit kbit` to `lasthop trace convert`; `--quantity` names delays, round trips and losses"));
                    }
                },
                _ => with_unit(column.role, text).map_err(|error| {
                    let name = &names[column.index];
                    let message = match error {
                        Some(error) => error,
                        None => format!("`{text}` in `{name}` is no {}", column.role.noun()),
                    };
                    Wrong::at(line, message, "a number, or `-` where nothing was measured; `--column NAME` of `lasthop trace convert` selects another column")
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
            return Err(Wrong::at(0, message, help));
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
    pub fn finish(&mut self) -> Result<(), Wrong> {
        let again = self.again;
        let times =
            clock::seconds(&self.stamps, self.tick_s, &self.time_name, &mut self.understood)?;
        let rows = again.unwrap_or(times.len());
        if rows == 0 || rows < 2 && again.is_none() {
            return Err(Wrong::at(
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
            return Err(Wrong::at(0, "all rows have the same time", help));
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
                let named = names::is_counter(&column.name) && !falls;
                let grown = values.len() >= 5 && grows + 1 == values.len();
                let counter =
                    named || grown || values.len() >= 8 && !falls && 2 * grows > values.len();
                let counter = counter && values.len() > 1;
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
                    return Err(Wrong::at(line, message, "write 0 to 1, or percentages up to 100"));
                }
            }
            Quantity::Rate | Quantity::Delay => {}
        }
        Ok(())
    }

    /// The course of a column. The first value holds from the beginning.
    pub fn course<T: Level>(&self, role: Role) -> Result<Option<Course<T>>, Wrong> {
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
