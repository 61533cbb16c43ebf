//! Quantities of a battery: capacity and consumption.

use core::fmt;
use core::ops::{Add, Mul};
use core::str::FromStr;

use serde::Serialize;

use super::{Span, UnitError, split};

/// An amount of energy in joules; never negative, always finite.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug, Default, Serialize)]
pub struct Energy(f64);

/// A power in watts; never negative, always finite.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug, Default, Serialize)]
pub struct Power(f64);

impl Energy {
    /// Zero energy.
    pub const ZERO: Energy = Energy(0.0);

    /// `joules` joules; `None` for a negative or non-finite value.
    pub const fn joules(joules: f64) -> Option<Energy> {
        if joules >= 0.0 && joules.is_finite() { Some(Energy(joules)) } else { None }
    }

    /// The energy in joules.
    pub const fn get(self) -> f64 {
        self.0
    }

    /// The energy in watt-hours.
    pub fn watt_hours(self) -> f64 {
        self.0 / 3600.0
    }
}

impl Power {
    /// Zero power.
    pub const ZERO: Power = Power(0.0);

    /// `watts` watts; `None` for a negative or non-finite value.
    pub const fn watts(watts: f64) -> Option<Power> {
        if watts >= 0.0 && watts.is_finite() { Some(Power(watts)) } else { None }
    }

    /// The power in watts.
    pub const fn get(self) -> f64 {
        self.0
    }
}

/// A voltage in volts; never negative, always finite.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug)]
pub struct Voltage(f64);

/// A current in amperes; never negative, always finite.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug)]
pub struct Current(f64);

/// A charge in ampere-hours; never negative, always finite.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug)]
pub struct Charge(f64);

impl Voltage {
    /// The voltage in volts.
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl Mul<Current> for Voltage {
    type Output = Power;
    fn mul(self, current: Current) -> Power {
        Power((self.0 * current.0).min(f64::MAX))
    }
}

impl Mul<Charge> for Voltage {
    type Output = Energy;
    fn mul(self, charge: Charge) -> Energy {
        Energy((self.0 * charge.0 * 3600.0).min(f64::MAX))
    }
}

impl Mul<Span> for Power {
    type Output = Energy;
    fn mul(self, time: Span) -> Energy {
        Energy(self.0 * time.as_secs_f64())
    }
}

impl Add for Energy {
    type Output = Energy;
    fn add(self, other: Energy) -> Energy {
        Energy(self.0 + other.0)
    }
}

impl Add for Power {
    type Output = Power;
    fn add(self, other: Power) -> Power {
        Power(self.0 + other.0)
    }
}

impl fmt::Display for Energy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}J", self.0)
    }
}

impl fmt::Display for Power {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}W", self.0)
    }
}

/// Implements parsing: an example for messages, and the factors of the units in lower case.
macro_rules! parsed {
    ($($Of:ident: $expected:literal, $units:expr;)*) => {$(
        impl FromStr for $Of {
            type Err = UnitError;
            fn from_str(word: &str) -> Result<$Of, UnitError> {
                amount(word, $expected, $units).map($Of)
            }
        }
    )*};
}

parsed! {
    Energy: "an energy such as `30Wh` or `56kJ`",
        &[("nj", 1e-9), ("uj", 1e-6), ("mj", 1e-3), ("j", 1.0), ("kj", 1e3), ("mwh", 3.6), ("wh", 3600.0)];
    Power: "a power such as `0.9W` or `50mW`", &[("uw", 1e-6), ("mw", 1e-3), ("w", 1.0)];
    Voltage: "a voltage such as `5V`", &[("mv", 1e-3), ("v", 1.0)];
    Current: "a current such as `180mA`", &[("ua", 1e-6), ("ma", 1e-3), ("a", 1.0)];
    Charge: "a charge such as `2.8Ah`", &[("mah", 1e-3), ("ah", 1.0)];
}

/// The number in `word` in the unit with the factor 1. Zero needs no unit.
fn amount(word: &str, expected: &'static str, units: &[(&str, f64)]) -> Result<f64, UnitError> {
    let (number, unit) = split(word, expected)?;
    match units.iter().find(|(name, _)| *name == unit) {
        Some((_, factor)) if (number * factor).is_finite() => Ok(number * factor),
        Some(_) => Err(UnitError::OutOfRange(word.to_owned(), expected)),
        None if unit.is_empty() && number == 0.0 => Ok(0.0),
        None => Err(UnitError::UnknownUnit(word.to_owned(), expected)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read() {
        assert_eq!("1.5Wh".parse::<Energy>().unwrap().get(), 5400.0);
        assert_eq!("900mW".parse::<Power>().unwrap().get(), 0.9);
        assert_eq!("0".parse::<Power>().unwrap().get(), 0.0);
        for wrong in ["-1J", "3", "2mAh", "inf J", "J", "1e5J"] {
            assert!(wrong.parse::<Energy>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn power_over_time_is_energy() {
        let energy = Power::watts(2.0).unwrap() * Span::millis(1500);
        assert_eq!(energy.get(), 3.0);
        assert_eq!(energy.to_string(), "3J");
        let (supply, current) =
            ("5V".parse::<Voltage>().unwrap(), "180mA".parse::<Current>().unwrap());
        assert!(((supply * current).get() - 0.9).abs() < 1e-12);
        assert_eq!((supply * "2Ah".parse::<Charge>().unwrap()).watt_hours(), 10.0);
    }
}
