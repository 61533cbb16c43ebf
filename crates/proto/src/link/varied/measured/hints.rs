//! Properties of a table that its file does not have, and the limits of tables.

use crate::units::Span;

/// Maximum number of rows of a table.
pub(super) const MOST: usize = 4_000_000;
/// Nanoseconds of a millisecond.
pub(super) const MILLIS: f64 = 1e6;

pub(super) const HELP: &str = "a table has a line for each time: `0.5,12.3` or `0.5 12.3`, with names and units of columns above, such \
                    as `time (s),rate (mbit),delay (ms)`";

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

impl Role {
    /// Its values in messages.
    pub(super) fn noun(self) -> &'static str {
        match self {
            Role::Rate | Role::Back => "rate",
            Role::Delay => "delay",
            Role::Loss => "probability of loss",
        }
    }
}

/// The closest nanosecond.
pub(super) fn span(seconds: f64) -> Span {
    Span(libm::round(seconds * 1e9).max(0.0) as u64)
}
