//! The keys of one table as a sequence of calls, and the visitors that receive the calls.

use core::ops::RangeInclusive;

use super::key::{Form, Key, Need, Quantity, Value, Whole};
use crate::units::{Bytes, Limit, Probability, Rate};

/// A visitor of the keys of a configuration.
///
/// A reader stores the values of its file. A lister changes nothing and records each key. After a fault a
/// visitor changes nothing more, so that a configuration's function need not stop.
pub trait Visitor {
    /// A key whose default is `value`.
    fn key(&mut self, key: &Key, value: &mut Value);

    /// A key with a table; `inner` visits the table's keys. A table of another form (see [`Form::TableOr`])
    /// is stored in `value`. `inner` is called once if there is a table, and by a lister.
    fn table(&mut self, key: &Key, value: &mut Value, inner: &mut dyn FnMut(&mut Keys<'_>));

    /// A key with a list of tables; `inner` is called for each of them.
    fn tables(&mut self, key: &Key, inner: &mut dyn FnMut(&mut Keys<'_>));

    /// Whether the file has the key; false in a lister.
    fn has(&self, key: &str) -> bool;

    /// Reports that a key that was visited before is required because of the values of others. `expected`
    /// replaces the description of its form.
    fn missing(&mut self, key: &str, expected: Option<(&str, &str)>);

    /// Restricts a table of several kinds to the one called `kind`: keys that only other kinds have are
    /// invalid.
    fn kind(&mut self, kind: &str, inner: &mut dyn FnMut(&mut Keys<'_>));

    /// The full path of the key, for messages.
    fn path(&self, key: &str) -> String;

    /// Reports that the value at `key` is out of range; `help` has the valid range.
    fn out_of_range(&mut self, key: &str, help: String);

    /// Rejects the value at `key`.
    fn refuse(&mut self, fault: Fault, key: &str, message: String, label: &str, help: String);

    /// Rejects a line, counted from one, of the file at `key`. By default, it rejects the whole value.
    fn refuse_line(&mut self, key: &str, line: usize, message: String, label: &str, help: String) {
        let _ = line;
        self.refuse(Fault::Value, key, message, label, help);
    }
}

/// Kind of fault at a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The value is invalid.
    Value,
    /// Something else that the value requires is missing.
    Missing,
}

/// The keys of one table, visited one by one. Each method takes the key, a slot with its default value, the
/// valid values, and the meaning.
pub struct Keys<'v>(&'v mut dyn Visitor);

impl core::fmt::Debug for Keys<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Keys")
    }
}

type Words<'w, T> = &'w [(&'static str, T)];

fn words<T>(table: Words<'_, T>) -> Vec<&'static str> {
    table.iter().map(|(word, _)| *word).collect()
}

fn named<T: Clone>(table: Words<'_, T>, word: &str) -> Option<T> {
    table.iter().find(|(name, _)| *name == word).map(|(_, value)| value.clone())
}

impl<'v> Keys<'v> {
    /// Wraps `visitor`.
    pub fn of(visitor: &'v mut dyn Visitor) -> Keys<'v> {
        Keys(visitor)
    }

    /// Visits a key whose default is the value in `slot`.
    fn set<Q: Quantity>(&mut self, key: &'static str, slot: &mut Q, form: Form, doc: &'static str) {
        let value = self.value(key, form, Need::Default, slot.value(), doc);
        *slot = Q::of(&value).unwrap_or(*slot);
    }

    /// Visits an optional key; a missing one has a special meaning.
    fn optional<Q: Quantity>(
        &mut self,
        key: &'static str,
        slot: &mut Option<Q>,
        form: Form,
        doc: &'static str,
    ) {
        let default = slot.map_or(Value::Absent, Quantity::value);
        let value = self.value(key, form, Need::Else(""), default, doc);
        *slot = Q::of(&value).or(*slot);
    }

    /// Visits a flag: `true` or `false`.
    pub fn flag(&mut self, key: &'static str, slot: &mut bool, doc: &'static str) {
        self.set(key, slot, Form::Flag, doc);
    }

    /// Visits a whole number.
    pub fn count<N: Whole>(
        &mut self,
        key: &'static str,
        slot: &mut N,
        range: RangeInclusive<u64>,
        doc: &'static str,
    ) {
        let mut count = slot.wide();
        self.within(key, &mut count, range, doc);
        *slot = N::narrow(count);
    }

    /// Visits an optional whole number; a missing one has a special meaning.
    pub fn maybe_count<N: Whole>(
        &mut self,
        key: &'static str,
        slot: &mut Option<N>,
        range: RangeInclusive<u64>,
        doc: &'static str,
    ) {
        let mut count = slot.map(Whole::wide);
        self.maybe(key, &mut count, range, doc);
        *slot = count.map(N::narrow);
    }

    /// Visits a quantity within limits.
    pub fn within<Q: Quantity>(
        &mut self,
        key: &'static str,
        slot: &mut Q,
        range: RangeInclusive<Q>,
        doc: &'static str,
    ) {
        self.set(key, slot, Form::within(range), doc);
    }

    /// Visits an optional quantity; a missing one has a special meaning.
    pub fn maybe<Q: Quantity>(
        &mut self,
        key: &'static str,
        slot: &mut Option<Q>,
        range: RangeInclusive<Q>,
        doc: &'static str,
    ) {
        self.optional(key, slot, Form::within(range), doc);
    }

    /// Visits a required quantity. A lister uses `example`.
    pub fn needed<Q: Quantity>(
        &mut self,
        key: &'static str,
        example: (Q, &'static str),
        range: RangeInclusive<Q>,
        doc: &'static str,
    ) -> Q {
        let (usual, text) = example;
        let value = self.value(key, Form::within(range), Need::Required(text), usual.value(), doc);
        Q::of(&value).unwrap_or(usual)
    }

    /// Visits a size that is stored in 32 bits.
    pub fn bytes(
        &mut self,
        key: &'static str,
        slot: &mut u32,
        range: RangeInclusive<u64>,
        doc: &'static str,
    ) {
        let mut size = Bytes(u64::from(*slot));
        self.within(key, &mut size, Bytes(*range.start())..=Bytes(*range.end()), doc);
        *slot = u32::narrow(size.0);
    }

    /// Visits a probability.
    pub fn probability(&mut self, key: &'static str, slot: &mut Probability, doc: &'static str) {
        self.set(key, slot, Form::Probability, doc);
    }

    /// Visits a required probability.
    pub fn needed_probability(
        &mut self,
        key: &'static str,
        example: &'static str,
        doc: &'static str,
    ) -> Probability {
        let need = Need::Required(example);
        let value = self.value(key, Form::Probability, need, Probability::ZERO.value(), doc);
        Probability::of(&value).unwrap_or(Probability::ZERO)
    }

    /// Visits an optional rate.
    pub fn maybe_rate(&mut self, key: &'static str, slot: &mut Option<Rate>, doc: &'static str) {
        self.optional(key, slot, Form::Rate, doc);
    }

    /// Visits the length of a queue.
    pub fn limit(&mut self, key: &'static str, slot: &mut Limit, doc: &'static str) {
        self.set(key, slot, Form::Limit, doc);
    }

    /// Visits one of several keywords, each with its meaning. A default that is not among them is not listed.
    pub fn word<T: Clone + PartialEq>(
        &mut self,
        key: &'static str,
        slot: &mut T,
        table: Words<'_, T>,
        doc: &'static str,
    ) {
        let default = table.iter().find(|(_, value)| value == slot);
        let (need, default) = match default {
            Some((word, _)) => (Need::Default, Value::Keyword(word)),
            None => (Need::Else(""), Value::Absent),
        };
        let value = self.value(key, Form::Keyword(words(table)), need, default, doc);
        if let Value::Keyword(word) = value
            && let Some(value) = named(table, word)
        {
            *slot = value;
        }
    }

    /// Visits an optional keyword.
    pub fn maybe_word<T: Clone>(
        &mut self,
        key: &'static str,
        table: Words<'_, T>,
        doc: &'static str,
    ) -> Option<T> {
        let form = Form::Keyword(words(table));
        match self.value(key, form, Need::Else(""), Value::Absent, doc) {
            Value::Keyword(word) => named(table, word),
            _ => None,
        }
    }

    /// Visits a value of any form; a missing key has the default.
    pub fn value(
        &mut self,
        key: &'static str,
        form: Form,
        need: Need,
        default: Value,
        doc: &'static str,
    ) -> Value {
        let mut value = default;
        self.0.key(&Key { name: key, summary: doc, form, need }, &mut value);
        value
    }

    /// Visits a table of keys.
    pub fn table(
        &mut self,
        key: &'static str,
        doc: &'static str,
        mut inner: impl FnMut(&mut Keys<'_>),
    ) {
        let key = Key { name: key, summary: doc, form: Form::Table, need: Need::Else("") };
        self.0.table(&key, &mut Value::Absent, &mut inner);
    }

    /// Visits a table of keys or a value of another form, and returns that value.
    pub fn table_or(
        &mut self,
        key: &'static str,
        form: Form,
        doc: &'static str,
        mut inner: impl FnMut(&mut Keys<'_>),
    ) -> Value {
        let form = Form::TableOr(Box::new(form));
        let mut value = Value::Absent;
        let key = Key { name: key, summary: doc, form, need: Need::Else("") };
        self.0.table(&key, &mut value, &mut inner);
        value
    }

    /// Visits a list of tables.
    pub fn tables(
        &mut self,
        key: &'static str,
        doc: &'static str,
        mut inner: impl FnMut(&mut Keys<'_>),
    ) {
        let key = Key { name: key, summary: doc, form: Form::Tables, need: Need::Else("") };
        self.0.tables(&key, &mut inner);
    }

    /// The value of a key that was visited before and is required because of the values of others; `listed`
    /// in a lister.
    pub fn demand<T>(&mut self, key: &str, value: Option<T>, listed: T) -> T {
        if value.is_none() {
            self.0.missing(key, None);
        }
        value.unwrap_or(listed)
    }

    /// Reports a missing key: its expected form, and an example in the notation of a file.
    pub fn missing(&mut self, key: &str, expected: &str, example: &str) {
        self.0.missing(key, Some((expected, example)));
    }

    /// Restricts a table of several kinds to the one called `kind`; keys of the others are invalid.
    pub fn kind(&mut self, kind: &str, mut inner: impl FnMut(&mut Keys<'_>)) {
        self.0.kind(kind, &mut inner);
    }

    /// Whether the file has the key.
    pub fn has(&self, key: &str) -> bool {
        self.0.has(key)
    }

    /// The first of `keys` that the file has.
    pub fn first<'k>(&self, keys: &[&'k str]) -> Option<&'k str> {
        keys.iter().copied().find(|key| self.has(key))
    }

    /// The full path of the key, for messages.
    pub fn path(&self, key: &str) -> String {
        self.0.path(key)
    }

    /// Reports that the value at `key` is out of range.
    pub fn out_of_range(&mut self, key: &str, help: impl Into<String>) {
        self.0.out_of_range(key, help.into());
    }

    /// Rejects the value at `key`.
    pub fn refuse(
        &mut self,
        key: &str,
        message: impl Into<String>,
        label: &str,
        help: impl Into<String>,
    ) {
        self.0.refuse(Fault::Value, key, message.into(), label, help.into());
    }

    /// Rejects a line, counted from one, of the file at `key`.
    pub fn refuse_line(
        &mut self,
        key: &str,
        line: usize,
        message: impl Into<String>,
        label: &str,
        help: impl Into<String>,
    ) {
        self.0.refuse_line(key, line, message.into(), label, help.into());
    }

    /// Reports that the value at `key` requires something else.
    pub fn lacks(
        &mut self,
        key: &str,
        message: impl Into<String>,
        label: &str,
        help: impl Into<String>,
    ) {
        self.0.refuse(Fault::Missing, key, message.into(), label, help.into());
    }
}
