//! Tables of measured rates in published formats: CSV files with named columns, blank-separated files, wall-clock
//! times, missing values.
//!
//! The meaning of a table is not always in the file. So all inferences are listed ([`Table::understood`]), and the
//! caller may give a column or a unit instead.

use std::fmt::Write as _;

use super::clock::{self, Stamp};
use super::names::{fits, is_time, unit, unit_of_name};
use crate::Error;

/// Maximum number of rows of a table.
const MOST: usize = 4_000_000;
/// Minimum ratio of a step to the usual one for a gap.
const GAP: f64 = 5.0;

/// Properties of a file that are missing in it, or wrong.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Hints {
    /// The column of the rates, by name or number from 1.
    pub column: Option<String>,
    /// The column of the times, likewise.
    pub time: Option<String>,
    /// The unit of the rates.
    pub unit: Option<String>,
    /// The direction, where there are two: true towards the measuring device.
    pub down: Option<bool>,
}

/// A measured table.
#[derive(Clone, PartialEq, Debug)]
pub struct Table {
    /// Ascending seconds since the first row, and the rate from then on in bits per second.
    pub rates: Vec<(f64, f64)>,
    /// Seconds from the first row to the end of the last.
    pub end_s: f64,
    /// The interpretation, one line each.
    pub understood: Vec<String>,
}

pub(super) fn wrong(message: impl Into<String>, help: impl Into<String>) -> Error {
    Error::Input { message: message.into(), help: help.into() }
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

/// Columns and their meaning.
struct Columns {
    names: Vec<String>,
    time: usize,
    rate: usize,
    bits: f64,
    /// Seconds of the unit of bare times, if the column's name has one.
    tick_s: Option<f64>,
}

impl Columns {
    /// The columns of a table whose first line with numbers is `row`; `header` has their names if there is a header.
    fn of(
        header: Option<(usize, Vec<String>)>,
        row: &[String],
        hints: &Hints,
        understood: &mut Vec<String>,
    ) -> Result<Columns, Error> {
        let line = header.as_ref().map(|(line, _)| *line);
        let names = match header {
            Some((_, names)) => names,
            None => (1..=row.len()).map(|i| format!("column {i}")).collect(),
        };
        let named = line.is_some();
        let at = |line: Option<usize>| line.map_or(String::new(), |line| format!("line {line}: "));
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
                wrong(
                    format!("{}there is no column `{wanted}`", at(line)),
                    format!("the columns are {}", all()),
                )
            })
        };
        let time = match &hints.time {
            Some(wanted) => find(wanted)?,
            None => names.iter().position(|name| is_time(name)).unwrap_or(0),
        };
        let down = hints.down.unwrap_or(true);
        let rate = match &hints.column {
            Some(wanted) => find(wanted)?,
            None => {
                let scores = names.iter().enumerate().filter(|(i, _)| *i != time);
                let best = scores.map(|(i, name)| (fits(name, down), core::cmp::Reverse(i))).max();
                match best {
                    Some((score, core::cmp::Reverse(i))) if score > 0 => i,
                    // With two columns the other one is the rate.
                    _ if names.len() == 2 => 1 - time,
                    _ => {
                        let help = format!("name it: `--column NAME`, of {}", all());
                        return Err(wrong(
                            format!("{}no column is known to hold rates", at(line)),
                            help,
                        ));
                    }
                }
            }
        };
        if rate == time {
            return Err(wrong(
                "times and rates are in the same column",
                "choose another: `--column` and `--time-column`",
            ));
        }
        let name = &names[rate];
        let (bits, word) = match &hints.unit {
            Some(word) => {
                let bits = unit(word).ok_or_else(|| {
                    wrong(
                        format!("`{word}` is no unit of a rate"),
                        "for example `--unit kbit` or `--unit Mbit/s`",
                    )
                })?;
                (bits, format!("{word}, as given"))
            }
            None => match unit_of_name(name) {
                Some((bits, word)) => (bits, word),
                // Columns of the phone application G-NetTrack.
                None if ["DL_bitrate", "UL_bitrate"].contains(&name.as_str()) => {
                    (1e3, "kbit/s, as G-NetTrack writes it".to_owned())
                }
                None if !named => (1e6, "Mbit/s, as tables without names have it".to_owned()),
                None => {
                    let help = "give it: `--unit kbit`, `--unit Mbit/s` or `--unit bytes/s`";
                    return Err(wrong(
                        format!("{}the unit of `{name}` is not known", at(line)),
                        help,
                    ));
                }
            },
        };
        understood.push(format!("rates: `{name}` in {word}"));
        let others: Vec<&str> = names
            .iter()
            .enumerate()
            .filter(|(i, name)| *i != rate && *i != time && fits(name, true) > 0)
            .map(|(_, name)| name.as_str())
            .collect();
        if !others.is_empty() {
            understood
                .push(format!("not used: {} (`--column NAME` takes another)", others.join(", ")));
        }
        let tick_s = clock::unit_of_name(&names[time]);
        Ok(Columns { names, time, rate, bits, tick_s })
    }
}

/// Reads a table.
///
/// # Errors
///
/// The invalid line, and a valid alternative.
pub fn read(text: &str, hints: &Hints) -> Result<Table, Error> {
    let text = text.trim_start_matches('\u{feff}');
    let mut lines = text
        .lines()
        .enumerate()
        .map(|(i, line)| (i + 1, line.trim_end()))
        .filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'))
        .peekable();
    let help = "a table has a line for each time: `0.5,12.3` or `0.5 12.3`, with or without names of columns above";
    let Some((_, first)) = lines.peek().copied() else {
        return Err(wrong("there are no lines in it", help));
    };
    let separator = Separator::of(first);
    let cells = separator.cells(first);
    let is_header =
        cells.iter().all(|cell| number(cell, separator).is_none() && clock::parse(cell).is_none());
    let header =
        is_header.then(|| lines.next()).flatten().map(|(line, text)| (line, separator.cells(text)));
    let Some((_, row)) = lines.peek().copied() else {
        return Err(wrong("there are no numbers in it", help));
    };
    let row = separator.cells(row);
    let mut understood = vec![format!(
        "columns: {}, separated by {}",
        header.as_ref().map_or(row.len(), |(_, names)| names.len()),
        separator.name()
    )];
    let columns = Columns::of(header, &row, hints, &mut understood)?;
    let (mut stamps, mut missing): (Vec<(usize, Stamp, f64)>, usize) = (Vec::new(), 0);
    for (line, text) in lines {
        let cells = separator.cells(text);
        let cell = |i: usize| {
            cells.get(i).map(String::as_str).ok_or_else(|| {
                let message =
                    format!("line {line} has {} columns, not {}", cells.len(), columns.names.len());
                wrong(message, "complete the line, or take it out")
            })
        };
        let (time, rate) = (cell(columns.time)?, cell(columns.rate)?);
        if is_missing(rate) {
            missing += 1;
            continue;
        }
        let plain = number(time, separator).map(Stamp::Number);
        let stamp = plain.or_else(|| clock::parse(time)).ok_or_else(|| {
            let name = &columns.names[columns.time];
            wrong(format!("line {line}: `{time}` in `{name}` is no time"), "seconds, Unix time or a date with a time are read; `--time-column NAME` takes another column")
        })?;
        let rate = number(rate, separator).filter(|rate| *rate >= 0.0).ok_or_else(|| {
            let name = &columns.names[columns.rate];
            wrong(
                format!("line {line}: `{rate}` in `{name}` is no rate"),
                "a number, or `-` where nothing was measured; `--column NAME` takes another column",
            )
        })?;
        if stamps.len() == MOST {
            return Err(wrong(
                format!("line {line}: more than {MOST} rows"),
                "cut it by `head -n`",
            ));
        }
        stamps.push((line, stamp, rate * columns.bits));
    }
    let name = &columns.names[columns.time];
    let times = clock::seconds(&stamps, columns.tick_s, name, &mut understood)?;
    finish(&stamps, &times, missing, understood)
}

/// Spreads rows of equal time, and finds gaps.
fn finish(
    rows: &[(usize, Stamp, f64)],
    times: &[f64],
    missing: usize,
    mut understood: Vec<String>,
) -> Result<Table, Error> {
    if times.len() < 2 {
        return Err(wrong(
            "there are fewer than two rows with a rate",
            "a link needs rates over some time",
        ));
    }
    let mut steps: Vec<f64> =
        times.windows(2).map(|pair| pair[1] - pair[0]).filter(|step| *step > 0.0).collect();
    steps.sort_by(f64::total_cmp);
    let Some(usual) = steps.get(steps.len().saturating_sub(1) / 2).copied() else {
        return Err(wrong(
            "all rows have the same time",
            "`--time-column NAME` takes another column",
        ));
    };
    let mut rates: Vec<(f64, f64)> = Vec::with_capacity(rows.len());
    let (mut i, mut shared) = (0, 0);
    let (mut gaps, mut longest): (usize, (f64, usize)) = (0, (0.0, 0));
    let mut end_s = 0.0;
    while i < times.len() {
        let same = times[i..].iter().take_while(|time| **time <= times[i]).count();
        let next = times.get(i + same).copied().unwrap_or(times[i] + usual);
        let step = next - times[i];
        if step > GAP * usual {
            gaps += 1;
            if step > longest.0 {
                longest = (step, rows[i + same - 1].0);
            }
        }
        shared += same - 1;
        // In a gap, rows have the usual step and the last value continues.
        let each = step.min(usual.max(step / GAP)) / same as f64;
        for k in 0..same {
            rates.push((times[i] - times[0] + each * k as f64, rows[i + k].2));
        }
        end_s = next - times[0];
        i += same;
    }
    if shared > 0 {
        understood.push(format!("repeated times: {shared} rows share the time of another, and are spread up to the next time"));
    }
    let mut text =
        format!("span: {} rows over {end_s:.3} s, mostly {usual:.3} s apart", rates.len());
    if missing > 0 {
        let _ = write!(text, "; {missing} rows without a rate, where the one before holds");
    }
    understood.push(text);
    if gaps > 0 {
        let (length, line) = longest;
        understood.push(format!("gaps: {gaps}, the longest of {length:.3} s behind line {line}, where the last rate holds"));
    }
    Ok(Table { rates, end_s, understood })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> Table {
        read(text, &Hints::default()).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    #[track_caller]
    fn refused(text: &str, hints: &Hints, expected: &[&str]) {
        let Err(Error::Input { message, help }) = read(text, hints) else { panic!("{text}") };
        for expected in expected {
            assert!(
                format!("{message} | {help}").contains(expected),
                "`{expected}` is not in {message} | {help}"
            );
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
        assert_eq!(found.rates, [(0.0, 8e6), (0.5, 4e6), (1.0, 2e6), (3.0, 1e6)]);
        assert_eq!(found.end_s, 4.0);
        let all = found.understood.join("\n");
        for expected in [
            "`DL_bitrate` in kbit/s",
            "not used: UL_bitrate",
            "1 rows share",
            "1 rows without a rate",
            "wall clock",
        ] {
            assert!(all.contains(expected), "{expected}: {all}");
        }
        let up = Hints { down: Some(false), ..Hints::default() };
        assert_eq!(read(text, &up).unwrap().rates[0].1, 500e3);
        let named = Hints {
            column: Some("ul_bitrate".to_owned()),
            unit: Some("bit".to_owned()),
            ..Hints::default()
        };
        assert_eq!(read(text, &named).unwrap().rates[0].1, 500.0);
    }

    #[test]
    fn blanks_semicolons_and_decimal_commas_are_read() {
        let found = table("0.0 31.5\n0.5 33.0\n1.0 20.5\n");
        assert_eq!(found.rates, [(0.0, 31.5e6), (0.5, 33e6), (1.0, 20.5e6)]);
        assert_eq!(found.end_s, 1.5);
        assert!(found.understood.join(" ").contains("Mbit/s, as tables without names have it"));
        let found = table(
            "time_ms;throughput_Mbps\n1700000000000;31,5\n1700000000200;33,0\n1700000000400;1,25\n",
        );
        assert_eq!(
            found.rates.iter().map(|(_, rate)| *rate).collect::<Vec<_>>(),
            [31.5e6, 33e6, 1.25e6]
        );
        assert!((found.rates[1].0 - 0.2).abs() < 1e-6, "{:?}", found.rates);
        let found = table(
            "\u{feff}# a comment\n\"date\",\"note, long\",\"rate (kbit/s)\"\n\"2024-03-04T10:00:00.250Z\",\"a, b\",5\n\"2024-03-04T10:00:01.250Z\",c,7\n",
        );
        assert_eq!(found.rates, [(0.0, 5e3), (1.0, 7e3)]);
    }

    #[test]
    fn gaps_are_named_with_their_line() {
        let mut text = "t,rate_kbps\n".to_owned();
        for i in 0..20 {
            text += &format!("{},{}\n", if i < 10 { i } else { i + 30 }, 100);
        }
        let found = table(&text);
        let all = found.understood.join("\n");
        assert!(all.contains("gaps: 1, the longest of 31.000 s behind line 11"), "{all}");
    }

    #[test]
    fn wrong_tables_are_refused_with_line_and_remedy() {
        let plain = Hints::default();
        refused("t,rate_kbps\n0,5\n1,x\n", &plain, &["line 3", "`x` in `rate_kbps`", "--column"]);
        refused("t,rate_kbps\n0,5\n1,-5\n2,6\n", &plain, &["line 3", "`-5`"]);
        refused(
            "t,rate_kbps\n0,5\nsoon,6\n",
            &plain,
            &["line 3", "`soon` in `t`", "--time-column"],
        );
        refused("t,rate_kbps\n0,5\n1\n", &plain, &["line 3 has 1 columns, not 2"]);
        refused("t,rate_kbps\n5,5\n4,5\n", &plain, &["line 3", "before", "sort"]);
        refused("t,rate\n0,5\n1,6\n", &plain, &["unit of `rate`", "--unit"]);
        refused("t,a,b\n0,5,6\n1,6,7\n", &plain, &["no column", "--column", "t, a, b"]);
        refused("t,rate_kbps\n0,5\n0,6\n", &plain, &["same time"]);
        refused("t,rate_kbps\n0,-\n1,-\n", &plain, &["fewer than two rows"]);
        refused("", &plain, &["no lines"]);
        refused("t,rate_kbps\n", &plain, &["no numbers"]);
        let column = Hints { column: Some("snr".to_owned()), ..Hints::default() };
        refused("t,rate_kbps\n0,5\n1,6\n", &column, &["no column `snr`", "t, rate_kbps"]);
        let unit = Hints { unit: Some("fast".to_owned()), ..Hints::default() };
        refused("t,rate_kbps\n0,5\n1,6\n", &unit, &["`fast` is no unit"]);
    }
}
