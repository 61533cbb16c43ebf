//! Quantities of the radio: speed of the receiver, carrier frequency, decibels.

use core::fmt;
use core::str::FromStr;

use serde::Serialize;

use super::{UnitError, scaled, split};

/// A speed in micrometres per second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub struct Speed(pub u64);

/// A frequency in hertz.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub struct Frequency(pub u64);

/// A ratio of powers in decibels.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug, Serialize)]
pub struct Decibels(f64);

/// Speed of light in metres per second.
const LIGHT: f64 = 299_792_458.0;

impl Speed {
    /// The speed in metres per second.
    pub fn metres_per_second(self) -> f64 {
        self.0 as f64 / 1e6
    }
}

impl Frequency {
    /// Largest Doppler shift in hertz of a receiver with `speed`: `v f / c`.
    pub fn doppler(self, speed: Speed) -> f64 {
        speed.metres_per_second() * self.0 as f64 / LIGHT
    }
}

impl Decibels {
    /// A ratio of one.
    pub const ZERO: Decibels = Decibels(0.0);

    /// `db` decibels; `None` for a non-finite value.
    pub fn new(db: f64) -> Option<Decibels> {
        db.is_finite().then_some(Decibels(db))
    }

    /// The value in decibels.
    pub fn get(self) -> f64 {
        self.0
    }

    /// The ratio: `10^(dB / 10)`.
    pub fn ratio(self) -> f64 {
        libm::pow(10.0, self.0 / 10.0)
    }
}

impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The stored resolution is a micrometre per second, slightly finer than the display.
        let kmh = libm::round(self.0 as f64 * 3.6 / 100.0) / 1e4;
        write!(f, "{kmh}km/h")
    }
}

impl fmt::Display for Frequency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 4] =
            [(1_000_000_000, "GHz"), (1_000_000, "MHz"), (1_000, "kHz"), (1, "Hz")];
        let (scale, unit) =
            UNITS.into_iter().find(|(scale, _)| self.0 >= *scale).unwrap_or((1, "Hz"));
        write!(f, "{}{unit}", self.0 as f64 / scale as f64)
    }
}

impl fmt::Display for Decibels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}dB", self.0)
    }
}

impl FromStr for Speed {
    type Err = UnitError;
    fn from_str(word: &str) -> Result<Speed, UnitError> {
        const EXPECTED: &str = "a speed such as `2km/h` or `1.4m/s`";
        let (number, unit) = split(word, EXPECTED)?;
        let metres = match unit.as_str() {
            "m/s" => number,
            "km/h" | "kmh" => number / 3.6,
            _ => return Err(UnitError::UnknownUnit(word.to_owned(), EXPECTED)),
        };
        scaled(metres, 1_000_000, word, EXPECTED).map(Speed)
    }
}

impl FromStr for Frequency {
    type Err = UnitError;
    fn from_str(word: &str) -> Result<Frequency, UnitError> {
        const EXPECTED: &str = "a frequency such as `2.4GHz` or `900MHz`";
        let (number, unit) = split(word, EXPECTED)?;
        let scale = match unit.as_str() {
            "hz" => 1,
            "khz" => 1_000,
            "mhz" => 1_000_000,
            "ghz" => 1_000_000_000,
            _ => return Err(UnitError::UnknownUnit(word.to_owned(), EXPECTED)),
        };
        scaled(number, scale, word, EXPECTED).map(Frequency)
    }
}

impl FromStr for Decibels {
    type Err = UnitError;
    fn from_str(word: &str) -> Result<Decibels, UnitError> {
        const EXPECTED: &str = "a ratio in decibels such as `10dB` or `-3dB`";
        let text = word.trim();
        // Decibels may be negative, unlike all other quantities.
        let (sign, rest) = text.strip_prefix('-').map_or((1.0, text), |rest| (-1.0, rest));
        let (number, unit) = split(rest, EXPECTED)?;
        if unit != "db" {
            return Err(UnitError::UnknownUnit(word.to_owned(), EXPECTED));
        }
        Decibels::new(sign * number).ok_or_else(|| UnitError::OutOfRange(word.to_owned(), EXPECTED))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn physical_quantities_are_parsed_and_formatted() {
        for (word, want) in [("2km/h", 555_556), ("1.4 m/s", 1_400_000), ("120KMH", 33_333_333)] {
            assert_eq!(word.parse(), Ok(Speed(want)), "{word}");
        }
        assert_eq!("2km/h".parse::<Speed>().unwrap().to_string(), "2km/h");
        assert_eq!("2.4GHz".parse(), Ok(Frequency(2_400_000_000)));
        assert_eq!(Frequency(900_000_000).to_string(), "900MHz");
        assert_eq!("-3dB".parse(), Ok(Decibels(-3.0)));
        assert_eq!(Decibels(10.0).ratio(), 10.0);
        assert_eq!(Decibels(10.0).to_string(), "10dB");
    }

    #[test]
    fn an_invalid_quantity_is_refused_with_an_example() {
        for (word, hint) in [("2mph", "2km/h"), ("fast", "2km/h")] {
            let error = word.parse::<Speed>().unwrap_err().to_string();
            assert!(error.contains(hint), "{error}");
        }
        assert!("10".parse::<Decibels>().unwrap_err().to_string().contains("10dB"));
        assert!("--3dB".parse::<Decibels>().is_err());
        assert!("2.4".parse::<Frequency>().unwrap_err().to_string().contains("2.4GHz"));
    }

    #[test]
    fn walking_speed_shifts_the_carrier_by_a_few_hertz() {
        let walk: Speed = "2km/h".parse().unwrap();
        let shift = Frequency(2_400_000_000).doppler(walk);
        assert!((shift - 4.4475).abs() < 1e-3, "{shift}");
    }
}
