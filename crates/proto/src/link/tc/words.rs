//! Words of a `tc` command line, parsed with iproute2's rules.
//!
//! Numbers are those of `strtod`, so they may have an exponent. Units are iproute2's: a bare time is in
//! microseconds, a bare rate in bits per second, a bare probability in percent; `bps` are bytes per second,
//! and `k` of a size is 1024.

use crate::units::{Probability, Rate, Span};

/// An error in a line, with a valid line.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
pub struct LineError {
    /// The problem.
    pub message: String,
    /// The remedy.
    pub help: String,
}

pub(super) fn wrong(message: impl Into<String>, help: impl Into<String>) -> LineError {
    LineError { message: message.into(), help: help.into() }
}

/// Limit of times in a line.
const LONGEST: Span = Span::secs(1000);

/// The unread words of a line.
pub(super) struct Words<'t> {
    rest: core::iter::Peekable<core::str::SplitWhitespace<'t>>,
    /// The option whose values are being parsed.
    pub option: &'static str,
    /// Returns an example of an option.
    example: fn(&str) -> &'static str,
}

impl<'t> Words<'t> {
    /// The words after `kind`; all words if it is missing.
    pub fn behind(
        text: &'t str,
        kind: &'static str,
        example: fn(&str) -> &'static str,
    ) -> Words<'t> {
        let mut rest = text.split_whitespace().peekable();
        if text.split_whitespace().any(|word| word == kind) {
            rest.by_ref().find(|word| *word == kind);
        }
        Words { rest, option: kind, example }
    }

    /// The next word, if there is one.
    pub fn next(&mut self) -> Option<&'t str> {
        self.rest.next()
    }

    /// The next word; fails if there is none.
    pub fn word(&mut self) -> Result<&'t str, LineError> {
        let option = self.option;
        self.rest.next().ok_or_else(|| {
            let help = format!("for example `{}`", (self.example)(option));
            wrong(format!("`{option}` has no value"), help)
        })
    }

    /// The next word, if it begins with a digit.
    pub fn number(&mut self) -> Option<&'t str> {
        self.rest.next_if(|word| word.starts_with(|c: char| c.is_ascii_digit()))
    }

    /// The next word, if it begins with a digit or a minus sign.
    pub fn signed(&mut self) -> Option<&'t str> {
        self.rest.next_if(|word| word.starts_with(|c: char| c.is_ascii_digit() || c == '-'))
    }

    /// Consumes the next word if it is a prefix of `word`.
    pub fn begins(&mut self, word: &str) -> bool {
        self.rest.next_if(|next| word.starts_with(next)).is_some()
    }

    /// Parses `word` with `read`.
    pub fn read<T>(&self, word: &str, read: impl Fn(&str) -> Option<T>) -> Result<T, LineError> {
        read(word).ok_or_else(|| {
            let message = format!("`{word}` is no value of `{}`", self.option);
            let with_point = word.replace(',', ".");
            wrong(
                message,
                match with_point != word && read(&with_point).is_some() {
                    true => format!("did you mean `{with_point}`?"),
                    false => format!("for example `{}`", (self.example)(self.option)),
                },
            )
        })
    }

    /// Parses the next word with `read`.
    pub fn value<T>(&mut self, read: impl Fn(&str) -> Option<T>) -> Result<T, LineError> {
        let word = self.word()?;
        self.read(word, read)
    }

    /// A probability, if the next word is a number.
    pub fn maybe_percent(&mut self) -> Result<Option<Probability>, LineError> {
        self.number().map(|word| self.read(word, percent)).transpose()
    }

    /// A percentage of correlation; without one there is none.
    pub fn correlation(&mut self) -> Result<Probability, LineError> {
        Ok(self.maybe_percent()?.unwrap_or_default())
    }

    /// A rate; a share of the interface's speed is rejected, since a link has no interface.
    pub fn rate(&mut self) -> Result<Option<Rate>, LineError> {
        let word = self.word()?;
        if word.contains('%') {
            let message = format!("`{word}`: a share of the interface's speed is not modelled");
            return Err(wrong(message, "write the rate itself, for example `rate 10mbit`"));
        }
        self.read(word, rate)
    }
}

/// Parses a number like `strtod`, without a sign. Returns the rest of the text too.
fn number(word: &str) -> Option<(f64, &str)> {
    let bytes = word.as_bytes();
    let digits = |from: usize| bytes[from..].iter().take_while(|b| b.is_ascii_digit()).count();
    let mut end = digits(0);
    let mut any = end;
    if bytes.get(end) == Some(&b'.') {
        let behind = digits(end + 1);
        any += behind;
        end += 1 + behind;
    }
    if any == 0 {
        return None;
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let power = digits(end + 1 + sign);
        if power > 0 {
            end += 1 + sign + power;
        }
    }
    let (digits, unit) = word.split_at(end);
    let number: f64 = digits.parse().ok()?;
    number.is_finite().then_some((number, unit))
}

/// A number and its unit in lower case.
fn cut(word: &str) -> Option<(f64, String)> {
    number(word).map(|(number, unit)| (number, unit.to_ascii_lowercase()))
}

pub(super) fn percent(word: &str) -> Option<Probability> {
    let (number, unit) = cut(word)?;
    Probability::new(number / 100.0).filter(|_| unit.is_empty() || unit == "%")
}

pub(super) fn time(word: &str) -> Option<Span> {
    let (number, unit) = cut(word)?;
    let nanos = match unit.as_str() {
        "s" | "sec" | "secs" => 1e9,
        "ms" | "msec" | "msecs" => 1e6,
        "" | "us" | "usec" | "usecs" => 1e3,
        "ns" | "nsec" | "nsecs" => 1.0,
        _ => return None,
    };
    let span = Span((number * nanos) as u64);
    (span <= LONGEST).then_some(span)
}

/// A rate; `Some(None)` is 0, which is no limit. Like in iproute2 it is a whole number of bytes per second.
pub(super) fn rate(word: &str) -> Option<Option<Rate>> {
    let (number, unit) = cut(word)?;
    let (prefix, bits) = match unit.strip_suffix("bps") {
        Some(prefix) => (prefix, 8.0),
        None => (unit.strip_suffix("bit").or(unit.is_empty().then_some(""))?, 1.0),
    };
    let scale = match prefix {
        "" => 1.0,
        "k" => 1e3,
        "m" => 1e6,
        "g" => 1e9,
        "t" => 1e12,
        "ki" => 1024.0,
        "mi" => 1024.0 * 1024.0,
        "gi" => 1024.0 * 1024.0 * 1024.0,
        "ti" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    let bytes = (number * bits * scale / 8.0) as u64;
    match bytes {
        0 => Some(None),
        bytes => Rate::from_bps(bytes.checked_mul(8)?).map(Some),
    }
}

/// A size in bytes, which is also iproute2's format of netem's `limit`: `100k` are 102,400 packets.
pub(super) fn size(word: &str) -> Option<u32> {
    const KIB: f64 = 1024.0;
    let (number, unit) = cut(word)?;
    let scale = match unit.as_str() {
        "" | "b" => 1.0,
        "k" | "kb" => KIB,
        "m" | "mb" => KIB * KIB,
        "g" | "gb" => KIB * KIB * KIB,
        "kbit" => KIB / 8.0,
        "mbit" => KIB * KIB / 8.0,
        "gbit" => KIB * KIB * KIB / 8.0,
        _ => return None,
    };
    let size = number * scale;
    (size < 4_294_967_296.0).then_some(size as u32)
}

/// A whole number: decimal, hexadecimal or octal.
pub(super) fn count(word: &str) -> Option<u32> {
    u32::try_from(signed(word)?).ok()
}

/// A whole number with a sign.
pub(super) fn signed(word: &str) -> Option<i64> {
    let (minus, digits) = match word.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, word),
    };
    let number = match digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
        Some(hex) => u32::from_str_radix(hex, 16),
        None if digits.len() > 1 && digits.starts_with('0') => u32::from_str_radix(digits, 8),
        None => digits.parse(),
    };
    let number = i64::from(number.ok().filter(|_| !digits.starts_with(['+', '-']))?);
    Some(if minus { -number } else { number })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_strtod() {
        assert_eq!(number("1e3mbit"), Some((1000.0, "mbit")));
        assert_eq!(number("2.5E-1"), Some((0.25, "")));
        assert_eq!(number("1.e2x"), Some((100.0, "x")));
        assert_eq!(number(".5%"), Some((0.5, "%")));
        assert_eq!(number("3e"), Some((3.0, "e")));
        assert_eq!(number("3e+k"), Some((3.0, "e+k")));
        assert_eq!([number(""), number("."), number("e5"), number("1e999")], [None; 4]);
    }

    /// Values sent to the kernel by iproute2 6.1.
    #[test]
    fn units_are_those_of_iproute2() {
        assert_eq!(
            ["100k", "1000mbit", "0", "1e2", "2kbit"].map(size),
            [Some(102_400), Some(131_072_000), Some(0), Some(100), Some(256)]
        );
        assert_eq!(["4g", "1x", "-1", "1kib"].map(size), [None; 4]);
        let bps = |word| rate(word).map(|rate| rate.map_or(0, Rate::bps));
        let cases = ["1mbit", "1e3kbit", "15", "7", "1tbit", "1kibit", "2KBps", "0.5gbit", "0"];
        let expected =
            [1_000_000, 1_000_000, 8, 0, 1_000_000_000_000, 1024, 16_000, 500_000_000, 0];
        assert_eq!(cases.map(bps), expected.map(Some));
        assert_eq!(["1mb", "fast", "1e400mbit", ""].map(bps), [None; 4]);
        let nanos = |word| time(word).map(|span| span.0);
        let cases = ["20ms", "1500", "0.1ms", "1.5e-3s", "999.9ns", "1e3"];
        assert_eq!(
            cases.map(nanos),
            [20_000_000, 1_500_000, 100_000, 1_500_000, 999, 1_000_000].map(Some)
        );
        assert_eq!(["20m", "1001s", "ms"].map(nanos), [None; 3]);
        assert_eq!(
            ["-20", "0x14", "010", "+3", "", "-", "--1", "1.5"].map(signed),
            [Some(-20), Some(20), Some(8), None, None, None, None, None]
        );
        assert_eq!(percent("1e-1").map(Probability::get), Some(0.001));
        assert_eq!(["101%", "5percent", "x"].map(percent), [None; 3]);
    }
}
