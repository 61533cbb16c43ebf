//! Quantities with their units in the type: a time, size or rate is never a bare number.
//!
//! Notation follows `tc`: `2mbit`, `20ms`, `64KiB`. A rate of `mbps` is rejected, because `tc` reads it as
//! megabytes while most people mean megabits.

mod due;
mod electric;
mod limit;
mod physical;

use core::fmt;
use core::ops::{Add, AddAssign, Div, Mul, Sub};
use core::str::FromStr;

use serde::{Deserialize, Serialize};

pub use due::Due;
pub use electric::{Charge, Current, Energy, Power, Voltage};
pub use limit::Limit;
pub use physical::{Decibels, Frequency, Speed};

/// A point in time: nanoseconds since the run began.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Time(pub u64);

/// A duration in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Span(pub u64);

/// A number of bytes.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize,
)]
pub struct Bytes(pub u64);

/// A data rate in bits per second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Rate(u64);

/// A probability, always within 0..=1.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug, Default, Serialize, Deserialize)]
pub struct Probability(f64);

const NANOS: u64 = 1_000_000_000;

impl Time {
    /// The beginning of a run.
    pub const ZERO: Time = Time(0);
    /// Later than every event of a run.
    pub const NEVER: Time = Time(u64::MAX);

    /// This time, or `None` for [`Time::NEVER`].
    #[inline]
    pub fn or_none(self) -> Option<Time> {
        (self != Time::NEVER).then_some(self)
    }

    /// Seconds since the run began.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / NANOS as f64
    }

    /// The time passed since `earlier`; zero if `earlier` is later.
    pub fn since(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// Zero duration.
    pub const ZERO: Span = Span(0);

    /// A duration of `n` seconds.
    pub const fn secs(n: u64) -> Span {
        Span(n * NANOS)
    }

    /// A duration of `n` milliseconds.
    pub const fn millis(n: u64) -> Span {
        Span(n * 1_000_000)
    }

    /// A duration of `n` microseconds.
    pub const fn micros(n: u64) -> Span {
        Span(n * 1_000)
    }

    /// The duration in seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / NANOS as f64
    }

    /// The nearest duration to `secs` seconds; negative and non-finite values become zero.
    pub fn from_secs_f64(secs: f64) -> Span {
        if secs.is_finite() && secs > 0.0 { Span((secs * NANOS as f64) as u64) } else { Span(0) }
    }

    /// The duration less `other`, but not below zero.
    pub fn saturating_sub(self, other: Span) -> Span {
        Span(self.0.saturating_sub(other.0))
    }
}

impl Add<Span> for Time {
    type Output = Time;
    fn add(self, s: Span) -> Time {
        Time(self.0.saturating_add(s.0))
    }
}

impl AddAssign<Span> for Time {
    fn add_assign(&mut self, s: Span) {
        *self = *self + s;
    }
}

impl Sub<Time> for Time {
    type Output = Span;
    /// Panics in debug builds when the result would be negative.
    fn sub(self, other: Time) -> Span {
        Span(self.0 - other.0)
    }
}

impl Add for Span {
    type Output = Span;
    fn add(self, s: Span) -> Span {
        Span(self.0.saturating_add(s.0))
    }
}

impl Mul<u64> for Span {
    type Output = Span;
    fn mul(self, k: u64) -> Span {
        Span(self.0.saturating_mul(k))
    }
}

impl Div<u64> for Span {
    type Output = Span;
    fn div(self, k: u64) -> Span {
        Span(self.0 / k)
    }
}

impl Rate {
    /// A rate of `n` bits per second; `None` for zero.
    pub const fn from_bps(n: u64) -> Option<Rate> {
        if n == 0 { None } else { Some(Rate(n)) }
    }

    /// Bits per second.
    pub const fn bps(self) -> u64 {
        self.0
    }

    /// Transmission time of `bytes` at this rate, rounded up to a nanosecond.
    pub fn transmit(self, bytes: u64) -> Span {
        // The common case fits 64 bits: 2^64 ns / 8e9 is over two gigabytes.
        match bytes.checked_mul(8 * NANOS) {
            Some(bits) => Span(bits.div_ceil(self.0)),
            None => {
                let exact = (u128::from(bytes) * 8 * u128::from(NANOS)).div_ceil(self.0.into());
                Span(u64::try_from(exact).unwrap_or(u64::MAX))
            }
        }
    }
}

impl Probability {
    /// Zero probability.
    pub const ZERO: Probability = Probability(0.0);
    /// Certainty.
    pub const ONE: Probability = Probability(1.0);

    /// `p` if it lies within 0..=1.
    pub fn new(p: f64) -> Option<Probability> {
        (0.0..=1.0).contains(&p).then_some(Probability(p))
    }

    /// The probability that is nearest to `p`; zero if `p` is no number.
    pub const fn nearest(p: f64) -> Probability {
        Probability(if p > 0.0 { p.min(1.0) } else { 0.0 })
    }

    /// The probability of the opposite.
    pub const fn opposite(self) -> Probability {
        Probability(1.0 - self.0)
    }

    /// The probability as a number.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}s", self.0 / NANOS, self.0 % NANOS)
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 4] = [(NANOS, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns")];
        let (scale, unit) =
            UNITS.into_iter().find(|(scale, _)| self.0 >= *scale).unwrap_or((NANOS, "s"));
        write!(f, "{}{unit}", self.0 as f64 / scale as f64)
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 4] =
            [(NANOS, "gbit"), (1_000_000, "mbit"), (1_000, "kbit"), (1, "bit")];
        let (scale, unit) =
            UNITS.into_iter().find(|(scale, _)| self.0 >= *scale).unwrap_or((1, "bit"));
        write!(f, "{}{unit}", self.0 as f64 / scale as f64)
    }
}

impl fmt::Debug for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
        match UNITS.into_iter().find(|(scale, _)| self.0 >= *scale && self.0.is_multiple_of(*scale))
        {
            Some((scale, unit)) => write!(f, "{}{unit}", self.0 / scale),
            None => write!(f, "{}B", self.0),
        }
    }
}

/// Why a text is not a quantity; the message includes a valid example.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// The text before the unit is not a number.
    #[error("{not}; expected {1}", not = not_a_number(.0))]
    NotANumber(String, &'static str),
    /// The number is negative, not finite, or too large.
    #[error("`{0}` is out of range; expected {1}")]
    OutOfRange(String, &'static str),
    /// The unit is missing or unknown.
    #[error("`{0}` has no known unit; expected {1}")]
    UnknownUnit(String, &'static str),
    /// A unit with two different meanings.
    #[error(
        "`{0}` is ambiguous: tc reads `{1}` as bytes per second; write `{2}` for bits per second"
    )]
    Ambiguous(String, String, String),
    /// A rate of zero.
    #[error("`{0}` is out of range; a rate is at least `1bit`")]
    Nothing(String),
    /// Bytes per second where bits per second are expected.
    #[error("`{0}` means bytes per second; write `{1}`")]
    Octets(String, String),
    /// More than 1 without a percent sign.
    #[error("`{0}` is out of range: a probability is at most 1; write `{0}%` for {0} in a hundred")]
    Percentage(String),
}

/// Message for a text without a number; `11.49.59` begins with one but is none.
pub fn not_a_number(word: &str) -> String {
    match word.trim_start().starts_with(|c: char| c.is_ascii_digit()) {
        true => format!("`{word}` is not one number with a unit"),
        false => format!("`{word}` does not begin with a number"),
    }
}

fn split(word: &str, expected: &'static str) -> Result<(f64, String), UnitError> {
    let (number, unit) = cut(word, expected)?;
    Ok((number, unit.to_ascii_lowercase()))
}

/// Splits a text into its number and its unit.
fn cut<'w>(word: &'w str, expected: &'static str) -> Result<(f64, &'w str), UnitError> {
    let word = word.trim();
    let end = word
        .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+' | '_')))
        // `1e-6` is a number, `1kbit` is not an exponent.
        .unwrap_or(word.len());
    let digits = word[..end].replace('_', "");
    let number: f64 =
        digits.parse().map_err(|_| UnitError::NotANumber(word.to_owned(), expected))?;
    if !number.is_finite() || number < 0.0 {
        return Err(UnitError::OutOfRange(word.to_owned(), expected));
    }
    Ok((number, word[end..].trim()))
}

fn scaled(number: f64, scale: u64, word: &str, expected: &'static str) -> Result<u64, UnitError> {
    let value = libm::round(number * scale as f64);
    if value < u64::MAX as f64 {
        Ok(value as u64)
    } else {
        Err(UnitError::OutOfRange(word.to_owned(), expected))
    }
}

impl FromStr for Span {
    type Err = UnitError;
    fn from_str(word: &str) -> Result<Span, UnitError> {
        const EXPECTED: &str = "a time such as `20ms`, `1.5s` or `50us`";
        let (number, unit) = split(word, EXPECTED)?;
        let scale = match unit.as_str() {
            "s" | "sec" | "secs" => NANOS,
            "ms" | "msec" | "msecs" => 1_000_000,
            "us" | "usec" | "usecs" => 1_000,
            "ns" => 1,
            "" if number == 0.0 => 1,
            _ => return Err(UnitError::UnknownUnit(word.to_owned(), EXPECTED)),
        };
        scaled(number, scale, word, EXPECTED).map(Span)
    }
}

impl FromStr for Bytes {
    type Err = UnitError;
    fn from_str(word: &str) -> Result<Bytes, UnitError> {
        const EXPECTED: &str = "a size such as `1460`, `64KiB` or `2MB`";
        let (number, unit) = split(word, EXPECTED)?;
        let scale = match unit.as_str() {
            "" | "b" => 1,
            "kb" => 1_000,
            "mb" => 1_000_000,
            "gb" => NANOS,
            "kib" => 1 << 10,
            "mib" => 1 << 20,
            "gib" => 1 << 30,
            _ => return Err(UnitError::UnknownUnit(word.to_owned(), EXPECTED)),
        };
        scaled(number, scale, word, EXPECTED).map(Bytes)
    }
}

impl FromStr for Rate {
    type Err = UnitError;
    fn from_str(word: &str) -> Result<Rate, UnitError> {
        const EXPECTED: &str = "a rate such as `2mbit`, `28.8kbit` or `1gbit`";
        let (number, written) = cut(word, EXPECTED)?;
        let unit = written.to_ascii_lowercase();
        let scale = match per_second(written).unwrap_or(unit.as_str()) {
            "bit" => 1,
            "kbit" => 1_000,
            "mbit" => 1_000_000,
            "gbit" => NANOS,
            "bps" | "kbps" | "mbps" | "gbps" => {
                let bits = unit.replace("bps", "bit");
                let meant = format!("{number}{bits}");
                return Err(UnitError::Ambiguous(word.to_owned(), unit, meant));
            }
            "b/s" | "kb/s" | "mb/s" | "gb/s" => {
                let meant = format!("{}{}", number * 8.0, unit.replace("b/s", "bit"));
                return Err(UnitError::Octets(word.to_owned(), meant));
            }
            _ => return Err(UnitError::UnknownUnit(word.to_owned(), EXPECTED)),
        };
        let bps = scaled(number, scale, word, EXPECTED)?;
        Rate::from_bps(bps).ok_or_else(|| UnitError::Nothing(word.to_owned()))
    }
}

/// The `tc` unit of an SI unit: `Mbit/s`, `Mb/s`. The letter for bytes is a capital one.
fn per_second(unit: &str) -> Option<&'static str> {
    let prefix = unit.strip_suffix("/s").and_then(|unit| {
        let name = unit.strip_suffix('s').unwrap_or(unit);
        name.strip_suffix("bit")
            .or_else(|| name.strip_suffix("Bit"))
            .or_else(|| unit.strip_suffix('b'))
    })?;
    match prefix {
        "" => Some("bit"),
        "k" | "K" => Some("kbit"),
        "M" | "m" => Some("mbit"),
        "G" | "g" => Some("gbit"),
        _ => None,
    }
}

impl FromStr for Probability {
    type Err = UnitError;
    fn from_str(word: &str) -> Result<Probability, UnitError> {
        const EXPECTED: &str = "a probability such as `1%`, `0.01` or `3.9e-6`";
        let text = word.trim();
        let (digits, scale) = match text.strip_suffix('%') {
            Some(rest) => (rest.trim(), 100.0),
            None => (text, 1.0),
        };
        let number: f64 =
            digits.parse().map_err(|_| UnitError::NotANumber(word.to_owned(), EXPECTED))?;
        Probability::new(number / scale).ok_or_else(|| {
            match scale == 1.0 && number <= 100.0 && number > 1.0 {
                true => UnitError::Percentage(digits.to_owned()),
                false => UnitError::OutOfRange(word.to_owned(), EXPECTED),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_follow_tc() {
        assert_eq!("2mbit".parse(), Ok(Rate(2_000_000)));
        assert_eq!("28.8kbit".parse(), Ok(Rate(28_800)));
        assert_eq!("0.2ms".parse(), Ok(Span::micros(200)));
        assert_eq!("64KiB".parse(), Ok(Bytes(65_536)));
        assert_eq!("2_000_000".parse(), Ok(Bytes(2_000_000)));
        assert_eq!("1%".parse::<Probability>().map(Probability::get), Ok(0.01));
    }

    #[test]
    fn rates_of_si_are_understood() {
        let rates =
            ["10 Mbit/s", "10Mb/s", "10mbit/s", "10 MBit/s", "10Mbits/s"].map(str::parse::<Rate>);
        assert_eq!(rates, [const { Ok(Rate(10_000_000)) }; 5]);
        assert_eq!("9.6 kb/s".parse(), Ok(Rate(9_600)));
        let error = |word: &str| word.parse::<Rate>().unwrap_err().to_string();
        assert_eq!(error("10MB/s"), "`10MB/s` means bytes per second; write `80mbit`");
        assert_eq!(error("0mbit"), "`0mbit` is out of range; a rate is at least `1bit`");
        assert!(
            ["10M", "10Mb", "10 T/s", "10/s"]
                .iter()
                .all(|word| error(word).contains("no known unit"))
        );
        let error = "5".parse::<Probability>().unwrap_err().to_string();
        assert!(error.contains("write `5%`"), "{error}");
        assert!(!"500".parse::<Probability>().unwrap_err().to_string().contains("500%"));
    }

    #[test]
    fn an_ambiguous_rate_is_refused_with_the_remedy() {
        let error = "2mbps".parse::<Rate>().unwrap_err().to_string();
        assert!(error.contains("2mbit"), "{error}");
    }

    #[test]
    fn nonsense_is_refused() {
        assert!("-1mbit".parse::<Rate>().is_err());
        assert!("0mbit".parse::<Rate>().is_err());
        assert!("ms".parse::<Span>().is_err());
        assert!("5".parse::<Span>().is_err());
        assert!("101%".parse::<Probability>().is_err());
        assert!("NaN".parse::<Probability>().is_err());
        assert!("99999999999999999999gbit".parse::<Rate>().is_err());
    }

    #[test]
    fn transmission_rounds_up_and_does_not_overflow() {
        assert_eq!(Rate(2_000_000).transmit(1500), Span::millis(6));
        assert_eq!(Rate(3).transmit(1), Span(2_666_666_667));
        assert_eq!(Rate(u64::MAX).transmit(u64::MAX), Span(8_000_000_000));
    }
}
