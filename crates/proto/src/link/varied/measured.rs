//! Measured values of a link over time, from the tables that measuring programs write: rates, delays, losses.
//!
//! Accepted are CSV files with named columns, blank-separated files, wall-clock times, missing values, cells
//! with units, files with one value per line, the text of `ping`, and the traces of CellReplay. A table may
//! have several columns; each becomes a [`Course`]. A round-trip time counts half in each direction. A column
//! of transferred bytes becomes a rate by the time to the next row.
//!
//! The meaning of a table is not always in the file. So all inferences are listed
//! ([`Measured::understood`]), and the caller may give a column or a unit instead.

mod cells;
mod clock;
mod columns;
mod hints;
mod names;
mod programs;
mod rows;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;

use super::Wrong;
use super::course::{Course, Level};
use crate::units::{Probability, Rate, Span};
use hints::{HELP, span};
use rows::Rows;

pub use hints::{Hints, Role};

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

/// Reads the value of a key: `role` has its meaning, `step` the time between lines without times.
///
/// # Errors
///
/// The invalid line, and a valid alternative.
pub fn course<T: Level>(text: &str, role: Role, step: Option<Span>) -> Result<Course<T>, Wrong> {
    let hints = Hints { role: Some(role), step, ..Hints::default() };
    let mut table = Rows::read(text, &hints)?;
    table.finish()?;
    table.course(role)?.ok_or_else(|| Wrong::at(0, "no column has these values", HELP))
}

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
