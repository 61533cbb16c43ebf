//! The cells of a line: separators, numbers, units, missing values.

use super::super::course::Level;
use super::clock::{self, Stamp};
use super::hints::Role;
use crate::units::{Probability, Rate, Span};

/// The separator of cells.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Separator {
    Char(char),
    Blanks,
}

impl Separator {
    /// The separator of a table with this line.
    pub fn of(line: &str) -> Separator {
        let found = [';', '\t', ','].into_iter().find(|c| line.contains(*c));
        found.map_or(Separator::Blanks, Separator::Char)
    }

    pub fn name(self) -> &'static str {
        match self {
            Separator::Char(';') => "semicolons",
            Separator::Char('\t') => "tabs",
            Separator::Char(_) => "commas",
            Separator::Blanks => "blanks",
        }
    }

    /// The cells of a line; a quoted cell may contain the separator.
    pub fn cells(self, line: &str) -> Vec<String> {
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
pub(super) fn number(cell: &str, separator: Separator) -> Option<f64> {
    let comma = separator != Separator::Char(',') && !cell.contains('.');
    let cell = if comma { cell.replace(',', ".") } else { cell.to_owned() };
    cell.parse().ok().filter(|number: &f64| number.is_finite())
}

/// The cell is a missing value.
pub(super) fn is_missing(cell: &str) -> bool {
    let words = ["", "-", "--", "na", "n/a", "nan", "null", "none", "?"];
    words.contains(&cell.to_ascii_lowercase().as_str())
}

/// A time in a cell: a number, a time with its unit, an interval, or the wall clock.
pub(super) fn stamp(cell: &str, separator: Separator) -> Option<Stamp> {
    let date = clock::parse(cell).filter(|stamp| matches!(stamp, Stamp::Date(_)));
    date.or_else(|| number(cell, separator).map(Stamp::Number))
        .or_else(|| Some(Stamp::Seconds(cell.parse::<Span>().ok()?.as_secs_f64())))
        .or_else(|| interval(cell).map(|(from, _)| Stamp::Seconds(from)))
        .or_else(|| clock::parse(cell))
}

/// Seconds of an interval such as `0.0-1.0`.
pub(super) fn interval(cell: &str) -> Option<(f64, f64)> {
    let (from, to) = cell.split_once('-')?;
    let (from, to) = (from.trim().parse::<f64>().ok()?, to.trim().parse::<f64>().ok()?);
    (from >= 0.0 && to > from).then_some((from, to))
}

/// A cell with a unit, in the unit of its role. The error has the reason, if there is a specific one.
pub(super) fn with_unit(role: Role, text: &str) -> Result<f64, Option<String>> {
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
