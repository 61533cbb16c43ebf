//! The keys of a configuration.

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
    /// A whole number.
    Count(u64, u64),
    /// A number.
    Number(f64, f64),
    /// A time.
    Time(Span, Span),
    /// A size in bytes.
    Size(Bytes, Bytes),
    /// A rate.
    Rate,
    /// A probability.
    Probability,
    /// The length of a queue, in packets or bytes.
    Limit,
    /// A speed.
    Speed(Speed, Speed),
    /// A frequency.
    Frequency(Frequency, Frequency),
    /// A ratio in decibels.
    Decibels(Decibels, Decibels),
    /// A power, or a current where a voltage is known.
    Power,
    /// An energy, or a charge where a voltage is known.
    Energy,
    /// A voltage.
    Voltage,
    /// One of these keywords.
    Word(Vec<&'static str>),
    /// One of these keywords, or a list of several.
    Words(Vec<&'static str>),
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

/// The value of a key.
#[derive(Clone, PartialEq, Debug)]
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
    Word(&'static str),
    Words(Vec<&'static str>),
    Text(String),
    Texts(Vec<String>),
    /// The contents of a file.
    File {
        name: String,
        text: String,
    },
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

/// A quantity that a file gives with its unit.
pub trait Quantity: Copy {
    /// The form of a key with values in `range`.
    fn form(range: RangeInclusive<Self>) -> Form;
    /// Converts it to a value.
    fn value(self) -> Value;
    /// Converts it from a value.
    fn of(value: &Value) -> Option<Self>;
}

macro_rules! quantity {
    ($($type:ident $variant:ident)*) => {
        $(impl Quantity for $type {
            fn form(range: RangeInclusive<$type>) -> Form {
                let (least, most) = range.into_inner();
                Form::$variant(least, most)
            }
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
quantity!(Span Time Bytes Size f64 Number Speed Speed Frequency Frequency Decibels Decibels);
