//! The columns of a table and their meaning.

use super::super::Wrong;
use super::cells::{Separator, stamp};
use super::clock;
use super::hints::{HELP, Hints, Role};
use super::names::{self, Quantity};

/// A column of values.
pub(super) struct Column {
    pub role: Role,
    pub index: usize,
    pub name: String,
    pub quantity: Quantity,
    /// Factor from a bare number to the unit of the role: bits per second, nanoseconds, or a probability.
    pub scale: Option<f64>,
    /// Number of values without a unit.
    pub bare: usize,
    /// Row, value, and whether it is the end of a ramp.
    pub values: Vec<(u32, f64, bool)>,
}

/// Columns and their meaning.
pub(super) struct Columns {
    pub names: Vec<String>,
    /// The column of the times; `None` if the rows have a fixed step.
    pub time: Option<usize>,
    pub values: Vec<Column>,
    /// Seconds of the unit of bare times, if the column's name has one.
    pub tick_s: Option<f64>,
}

impl Columns {
    /// The columns of a table whose first line with numbers is `row`; `header` has their names if there is a
    /// header.
    pub fn of(
        header: Option<Vec<String>>,
        row: &[String],
        line: usize,
        hints: &Hints,
        understood: &mut Vec<String>,
    ) -> Result<Columns, Wrong> {
        let named = header.is_some();
        if hints.named && !named {
            return Err(Wrong::at(line, "its columns have no names", HELP));
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
                Wrong::at(0, message, format!("the columns are {}", all()))
            })
        };
        // Cells have no separator in them, so that a comma is a decimal one.
        let is_stamp = |cell: &str| stamp(cell, Separator::Blanks).is_some();
        let time = match &hints.time {
            Some(wanted) => Some(find(wanted)?),
            None if hints.step.is_some() => None,
            None if names.iter().any(|name| name == "interval") => {
                names.iter().position(|name| name == "interval")
            }
            None => match names.iter().position(|name| named && names::is_time(name)) {
                Some(time) => Some(time),
                None if names.len() > 1 && !names::is_count(&names[0]) && is_stamp(&row[0]) => {
                    Some(0)
                }
                None => {
                    let help = "the time from one line to the next is needed: `delays-step = \"10ms\"` next to \
                                `delays`, or `--step 10ms` of `lasthop trace convert`";
                    return Err(Wrong::at(line, "the lines have values, but no times", help));
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
            return Err(Wrong::at(line.saturating_sub(1), message, help));
        }
        if columns.values.iter().any(|column| Some(column.index) == time) {
            let help = "choose another: `--column` and `--time-column` of `lasthop trace convert`";
            return Err(Wrong::at(0, "times and values are in the same column", help));
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
        // A unit of time is that of the delays.
        let unit_of_delays = hints.unit.as_deref().and_then(names::nanos);
        let unit_of_rates = hints.unit.clone().filter(|_| unit_of_delays.is_none());
        let (scale, word) = match role {
            Role::Rate | Role::Back => match (&unit_of_rates, quantity) {
                (Some(word), _) => {
                    let bits = names::unit(word).ok_or_else(|| {
                        let message = format!("`{word}` is no unit of a rate");
                        Wrong::at(0, message, "for example `--unit kbit` or `--unit Mbit/s`")
                    })?;
                    (Some(bits), format!("{word}, as given"))
                }
                (None, Some(Quantity::Amount)) => {
                    (names::amount(name), "bits of each row".to_owned())
                }
                _ => self.rate_unit(name),
            },
            Role::Delay => match unit_of_delays.or_else(|| names::nanos(name)) {
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
        let (name, values) = (name.clone(), Vec::new());
        self.values.push(Column { role, index, name, quantity, scale, bare: 0, values });
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
