//! The kinds of values: quantities with units, numbers and words.

use core::str::FromStr;

use lasthop_proto::queue::Limit;
use lasthop_proto::units::{
    Bytes, Charge, Current, Decibels, Energy, Frequency, Power, Probability, Rate, Span, Speed,
    UnitError, Voltage, not_a_number,
};

use super::{Readable, Trouble, bad, beyond};
use crate::document::{Node, Value};
use crate::error::Source;

/// The fault of a word that should be a quantity. The message adds the expected form elsewhere.
fn unit_trouble(error: UnitError) -> Trouble {
    match error {
        UnitError::NotANumber(word, _) => bad(not_a_number(&word)),
        UnitError::OutOfRange(word, _) if word.trim().starts_with('-') => {
            beyond(format!("`{word}` is negative"))
        }
        UnitError::OutOfRange(word, _) => beyond(format!("`{word}` is out of range")),
        UnitError::UnknownUnit(word, _)
            if word.ends_with(|c: char| c.is_ascii_digit() || c == '.') =>
        {
            bad(format!("`{word}` has no unit"))
        }
        UnitError::UnknownUnit(word, _) => bad(format!("`{word}` has no known unit")),
        other @ (UnitError::Ambiguous(..) | UnitError::Octets(..)) => bad(other.to_string()),
        other @ (UnitError::Nothing(_) | UnitError::Percentage(_)) => beyond(other.to_string()),
    }
}

/// A quantity is a string; a bare number has no unit and is rejected, unless it is zero.
trait Quantity: FromStr<Err = UnitError> {
    /// As [`Readable::EXPECTED`].
    const EXPECTED: &'static str;
    /// As [`Readable::EXAMPLE`].
    const EXAMPLE: &'static str;
}

impl<T: Quantity> Readable for T {
    const EXPECTED: &'static str = T::EXPECTED;
    const EXAMPLE: &'static str = T::EXAMPLE;
    fn read(node: &Node) -> Result<T, Trouble> {
        match &node.value {
            Value::String(word) => word.parse().map_err(unit_trouble),
            Value::Integer(_, text) | Value::Float(_, text) => text.parse().map_err(unit_trouble),
            _ => Err(bad(format!("this is {}", node.kind()))),
        }
    }
}

impl Quantity for Span {
    const EXPECTED: &'static str = "a time with its unit (s, ms, us or ns)";
    const EXAMPLE: &'static str = "\"20ms\"";
}

impl Quantity for Rate {
    const EXPECTED: &'static str = "a rate with its unit (bit, kbit, mbit or gbit)";
    const EXAMPLE: &'static str = "\"2mbit\"";
}

impl Quantity for Bytes {
    const EXPECTED: &'static str = "a size in bytes or with its unit (KiB, MiB, kB, MB)";
    const EXAMPLE: &'static str = "\"64KiB\"";
}

impl Quantity for Probability {
    const EXPECTED: &'static str = "a probability from 0 to 1 or a percentage";
    const EXAMPLE: &'static str = "\"0.4%\"";
}

impl Quantity for Speed {
    const EXPECTED: &'static str = "a speed with its unit (km/h or m/s)";
    const EXAMPLE: &'static str = "\"2km/h\"";
}

impl Quantity for Frequency {
    const EXPECTED: &'static str = "a frequency with its unit (MHz or GHz)";
    const EXAMPLE: &'static str = "\"2.4GHz\"";
}

impl Quantity for Decibels {
    const EXPECTED: &'static str = "a ratio in decibels";
    const EXAMPLE: &'static str = "\"10dB\"";
}

impl Quantity for Energy {
    const EXPECTED: &'static str = "an energy with its unit (J, kJ, mJ or Wh)";
    const EXAMPLE: &'static str = "\"30Wh\"";
}

impl Quantity for Power {
    const EXPECTED: &'static str =
        "a power with its unit (W or mW), or a current (mA) where there is a `supply`";
    const EXAMPLE: &'static str = "\"0.9W\"";
}

impl Quantity for Voltage {
    const EXPECTED: &'static str = "a voltage with its unit (V or mV)";
    const EXAMPLE: &'static str = "\"5V\"";
}

impl Quantity for Current {
    const EXPECTED: &'static str = "a current with its unit (mA or A)";
    const EXAMPLE: &'static str = "\"180mA\"";
}

impl Quantity for Charge {
    const EXPECTED: &'static str = "a charge with its unit (Ah or mAh)";
    const EXAMPLE: &'static str = "\"2.8Ah\"";
}

impl Readable for bool {
    const EXPECTED: &'static str = "true or false";
    const EXAMPLE: &'static str = "true";
    fn read(node: &Node) -> Result<bool, Trouble> {
        match &node.value {
            Value::Bool(value) => Ok(*value),
            Value::String(word) if matches!(word.as_str(), "true" | "false") => {
                Err(bad(format!("\"{word}\" is a string; leave out the quotes")))
            }
            Value::String(word) => Err(bad(format!("`{word}` is neither true nor false"))),
            _ => Err(bad(format!("this is {}", node.kind()))),
        }
    }
    fn corrected(word: &str) -> Option<String> {
        match word.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" | "1" => Some("true".to_owned()),
            "false" | "no" | "off" | "0" => Some("false".to_owned()),
            _ => None,
        }
    }
}

impl Readable for u64 {
    const EXPECTED: &'static str = "a whole number";
    const EXAMPLE: &'static str = "20";
    fn read(node: &Node) -> Result<u64, Trouble> {
        match &node.value {
            Value::Integer(Some(value), text) => {
                u64::try_from(*value).map_err(|_| beyond(format!("{text} is negative")))
            }
            Value::Integer(None, text) => Err(beyond(format!("{text} is too large"))),
            Value::String(word) if word.parse::<u64>().is_ok() => {
                Err(bad(format!("\"{word}\" is a string; leave out the quotes")))
            }
            Value::String(word) | Value::Float(_, word) => {
                Err(bad(format!("`{word}` is not a whole number")))
            }
            _ => Err(bad(format!("this is {}", node.kind()))),
        }
    }
}

impl Readable for f64 {
    const EXPECTED: &'static str = "a number";
    const EXAMPLE: &'static str = "1.5";
    fn read(node: &Node) -> Result<f64, Trouble> {
        match &node.value {
            Value::Float(value, _) => Ok(*value),
            Value::Integer(Some(value), _) => Ok(*value as f64),
            Value::Integer(None, text) => Err(beyond(format!("{text} is too large"))),
            Value::String(word) => {
                Err(bad(format!("\"{word}\" is a string; leave out the quotes")))
            }
            _ => Err(bad(format!("this is {}", node.kind()))),
        }
    }
}

impl Readable for String {
    const EXPECTED: &'static str = "a word in quotes";
    const EXAMPLE: &'static str = "\"fixed\"";
    fn read(node: &Node) -> Result<String, Trouble> {
        match &node.value {
            Value::String(word) => Ok(word.clone()),
            // The value of `--set KEY=` has no quotes: `drop-data=31`.
            Value::Integer(_, text) | Value::Float(_, text) if node.at.source != Source::File => {
                Ok(text.clone())
            }
            _ => Err(bad(format!("this is {}", node.kind()))),
        }
    }
}

impl Readable for Limit {
    const EXPECTED: &'static str = "a queue length in packets (p) or bytes (KiB)";
    const EXAMPLE: &'static str = "\"50p\"` or `queue = \"64KiB\"";
    fn read(node: &Node) -> Result<Limit, Trouble> {
        let Value::String(word) = &node.value else {
            return Err(bad(match &node.value {
                Value::Integer(_, text) if text.starts_with('-') => {
                    return Err(beyond(format!("{text} is negative")));
                }
                Value::Integer(_, text) => format!("{text} could be packets or bytes"),
                Value::Float(_, text) => format!("`{text}` is no length of a queue"),
                _ => format!("this is {}", node.kind()),
            }));
        };
        let word = word.trim();
        match word.strip_suffix('p') {
            Some(packets) => match packets.trim().parse() {
                Ok(packets) => Ok(Limit::Packets(packets)),
                Err(_) if packets.starts_with('-') => Err(beyond(format!("`{word}` is negative"))),
                Err(_) => Err(bad(format!("`{word}` is not a number of packets"))),
            },
            None if word.ends_with(|c: char| c.is_ascii_digit()) => {
                Err(bad(format!("`{word}` could be packets or bytes")))
            }
            None => word.parse().map(Limit::Bytes).map_err(unit_trouble),
        }
    }
}
