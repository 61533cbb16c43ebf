//! The keys of a configuration.

use core::fmt;
use core::ops::RangeInclusive;

use crate::units::{
    Bytes, Charge, Current, Decibels, Energy, Frequency, Limit, Power, Probability, Rate, Span,
    Speed, Voltage,
};

/// A key and its possible values.
#[derive(Clone, PartialEq, Debug)]
pub struct Key {
    /// The key.
    pub name: &'static str,
    /// Meaning of the key, for manuals and editors.
    pub summary: &'static str,
    /// Form of the value.
    pub form: Form,
    /// Meaning of a missing key.
    pub need: Need,
}

/// Meaning of a missing key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Need {
    /// The key has its default, the value that it is visited with.
    Default,
    /// The key is required. The text is an example in the notation of a file.
    Required(&'static str),
    /// A special meaning that is not a value, in a few words; empty where the key's description includes it.
    Else(&'static str),
}

/// Form of a key's value. Ranges are inclusive.
#[derive(Clone, PartialEq, Debug)]
pub enum Form {
    /// `true` or `false`.
    Flag,
    /// A number or a quantity from the first to the second, which are values of one kind.
    Range(Value, Value),
    /// A rate.
    Rate,
    /// A probability.
    Probability,
    /// The length of a queue, in packets or bytes.
    Limit,
    /// A power, or a current where a voltage is known.
    Power,
    /// An energy, or a charge where a voltage is known.
    Energy,
    /// A voltage.
    Voltage,
    /// One of these keywords.
    Keyword(Vec<&'static str>),
    /// One of these keywords, or a list of several.
    Keywords(Vec<&'static str>),
    /// Any text; the example is in the notation of a file.
    Text(&'static str),
    /// A text, or the name of a file in the scenario's directory that contains it; the example is in the
    /// notation of a file.
    File(&'static str),
    /// A list of texts.
    Texts(&'static str),
    /// One of these keywords, or the other form.
    Or(Vec<&'static str>, Box<Form>),
    /// A table of keys.
    Table,
    /// A table of keys, or the other form.
    TableOr(Box<Form>),
    /// A list of tables.
    Tables,
}

impl Form {
    /// The form of a key with values in `range`.
    pub fn within<Q: Quantity>(range: RangeInclusive<Q>) -> Form {
        Form::Range(range.start().value(), range.end().value())
    }

    /// The form of a key with values in `range`, or one of `words`.
    pub fn or<Q: Quantity>(words: Vec<&'static str>, range: RangeInclusive<Q>) -> Form {
        Form::Or(words, Box::new(Form::within(range)))
    }
}

/// The value of a key.
#[derive(Clone, PartialEq, PartialOrd, Debug)]
#[expect(missing_docs, reason = "each is what its type says")]
pub enum Value {
    /// No value.
    Absent,
    Flag(bool),
    Count(u64),
    Number(f64),
    Time(Span),
    Size(Bytes),
    Rate(Rate),
    Probability(Probability),
    Limit(Limit),
    Speed(Speed),
    Frequency(Frequency),
    Decibels(Decibels),
    Power(Power),
    Current(Current),
    Energy(Energy),
    Charge(Charge),
    Voltage(Voltage),
    Keyword(&'static str),
    Keywords(Vec<&'static str>),
    Text(String),
    Texts(Vec<String>),
    /// The contents of a file.
    File {
        name: String,
        text: String,
    },
}

/// The notation of a file, without quotes; empty for values that no message or table shows.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Absent | Value::Keywords(_) | Value::Texts(_) | Value::File { .. } => Ok(()),
            Value::Current(_) | Value::Charge(_) | Value::Voltage(_) => Ok(()),
            Value::Flag(flag) => flag.fmt(f),
            Value::Count(count) => count.fmt(f),
            Value::Number(number) => number.fmt(f),
            Value::Time(time) => time.fmt(f),
            Value::Size(size) => size.fmt(f),
            Value::Rate(rate) => rate.fmt(f),
            Value::Probability(p) => p.get().fmt(f),
            Value::Limit(Limit::Packets(packets)) => write!(f, "{packets}p"),
            Value::Limit(Limit::Bytes(bytes)) => bytes.fmt(f),
            Value::Speed(speed) => speed.fmt(f),
            Value::Frequency(frequency) => frequency.fmt(f),
            Value::Decibels(ratio) => ratio.fmt(f),
            Value::Power(power) => power.fmt(f),
            Value::Energy(energy) => energy.fmt(f),
            Value::Keyword(word) => word.fmt(f),
            Value::Text(text) => text.fmt(f),
        }
    }
}

/// A number without a fraction.
pub trait Whole: Copy {
    /// Converts it to the largest type.
    fn wide(self) -> u64;
    /// Converts from the largest type; excess bits are truncated.
    fn narrow(wide: u64) -> Self;
}

macro_rules! whole {
    ($($type:ty)*) => {
        $(impl Whole for $type {
            fn wide(self) -> u64 {
                self as u64
            }
            fn narrow(wide: u64) -> $type {
                <$type>::try_from(wide).unwrap_or(<$type>::MAX)
            }
        })*
    };
}
whole!(u8 u16 u32 u64 usize);

/// A type of one kind of value.
pub trait Quantity: Copy {
    /// Converts it to a value.
    fn value(self) -> Value;
    /// Converts it from a value.
    fn of(value: &Value) -> Option<Self>;
}

macro_rules! quantity {
    ($($type:ident $variant:ident)*) => {
        $(impl Quantity for $type {
            fn value(self) -> Value {
                Value::$variant(self)
            }
            fn of(value: &Value) -> Option<$type> {
                match value {
                    Value::$variant(value) => Some(*value),
                    _ => None,
                }
            }
        })*
    };
}
quantity!(bool Flag u64 Count f64 Number Span Time Bytes Size Speed Speed Frequency Frequency Decibels Decibels);
quantity!(Rate Rate Probability Probability Limit Limit Power Power Current Current Energy Energy Charge Charge);
quantity!(Voltage Voltage);
