//! The keys of a configuration.

use core::ops::RangeInclusive;

use crate::units::{
    Bytes, Charge, Current, Decibels, Energy, Frequency, Limit, Power, Probability, Rate, Span,
    Speed, Voltage,
};

/// A key and what may stand there.
#[derive(Clone, PartialEq, Debug)]
pub struct Key {
    /// The key.
    pub name: &'static str,
    /// What it means, for manuals and editors.
    pub what: &'static str,
    /// What may stand there.
    pub form: Form,
    /// What holds without it.
    pub need: Need,
}

/// What holds where a key is left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Need {
    /// The value that the key is visited with.
    Default,
    /// Nothing: the key must be there. An example as it would be written.
    Required(&'static str),
    /// Something that is no value of its own, in a few words; empty where the key's meaning says it.
    Else(&'static str),
}

/// What may stand at a key. Ranges are inclusive.
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
    /// One of these words.
    Word(Vec<&'static str>),
    /// One of these words, or a list of several.
    Words(Vec<&'static str>),
    /// Any text, of which an example is given as it would be written.
    Text(&'static str),
    /// A text, or the name of a file beside the scenario that has it; an example as it would be written.
    File(&'static str),
    /// A list of texts.
    Texts(&'static str),
    /// One of these words, or the other form.
    Or(Vec<&'static str>, Box<Form>),
    /// A table of keys.
    Table,
    /// A table of keys, or the other form.
    TableOr(Box<Form>),
    /// A list of tables.
    Tables,
}

/// A value at a key.
#[derive(Clone, PartialEq, Debug)]
#[expect(missing_docs, reason = "each is what its type says")]
pub enum Value {
    /// Nothing.
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
    /// What stands in a file.
    File {
        name: String,
        text: String,
    },
}

/// A number without a fraction.
pub trait Whole: Copy {
    /// As the largest of them.
    fn wide(self) -> u64;
    /// From the largest of them; what does not fit is cut off.
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
    /// The form of a key that may be from `range`.
    fn form(range: RangeInclusive<Self>) -> Form;
    /// As a value.
    fn value(self) -> Value;
    /// From a value.
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
