//! Visitors of a configuration's keys: to read them from a table of the file, or to list them.

use lasthop_proto::describe::{Fault, Form, Key, Keys, Need, Value, Visitor};

use crate::document::{Node, Value as Written};
use crate::error::{Code, Diagnostic, Error, listed};
use crate::examples;
use crate::files;
use crate::read::{Limits, Reader, Word, not_a_choice, read};

/// A key in the list of a lister.
#[derive(Clone, PartialEq, Debug)]
pub struct Listed {
    /// The key.
    pub key: Key,
    /// Its default, or [`Value::Absent`].
    pub default: Value,
    /// The keys of its table, if it may be one.
    pub inner: Vec<Listed>,
}

/// The keys that `go` visits, each once.
pub fn list<T>(go: impl FnMut(&mut Keys<'_>) -> T) -> Vec<Listed> {
    list_with(None, go)
}

/// The same with a value for one of the keys, on which the defaults of later ones depend.
pub(crate) fn list_with<T>(
    given: Option<(&'static str, &'static str)>,
    mut go: impl FnMut(&mut Keys<'_>) -> T,
) -> Vec<Listed> {
    let mut listing = Listing { found: Vec::new(), given };
    go(&mut Keys::of(&mut listing));
    listing.found
}

/// The names of keys.
pub(crate) fn names(listed: &[Listed]) -> Vec<&'static str> {
    listed.iter().map(|listed| listed.key.name).collect()
}

struct Listing {
    found: Vec<Listed>,
    given: Option<(&'static str, &'static str)>,
}

impl Listing {
    fn add(&mut self, key: &Key, default: Value, inner: Vec<Listed>) {
        if self.found.iter().all(|listed| listed.key.name != key.name) {
            self.found.push(Listed { key: key.clone(), default, inner });
        }
    }
}

impl Visitor for Listing {
    fn key(&mut self, key: &Key, value: &mut Value) {
        let default = if let Need::Required(_) = key.need { Value::Absent } else { value.clone() };
        self.add(key, default, Vec::new());
        if let Some((_, word)) = self.given.filter(|(name, _)| *name == key.name) {
            *value = Value::Word(word);
        }
    }

    fn table(&mut self, key: &Key, value: &mut Value, inner: &mut dyn FnMut(&mut Keys<'_>)) {
        self.add(key, value.clone(), list(inner));
    }

    fn tables(&mut self, key: &Key, inner: &mut dyn FnMut(&mut Keys<'_>)) {
        self.add(key, Value::Absent, list(inner));
    }

    fn has(&self, _: &str) -> bool {
        false
    }

    fn missing(&mut self, _: &str, _: Option<(&str, &str)>) {}

    fn kind(&mut self, _: &str, inner: &mut dyn FnMut(&mut Keys<'_>)) {
        inner(&mut Keys::of(self));
    }

    fn path(&self, key: &str) -> String {
        key.to_owned()
    }

    fn out_of_range(&mut self, _: &str, _: String) {}

    fn refuse(&mut self, _: Fault, _: &str, _: String, _: &str, _: String) {}
}

/// Reads the keys that `go` visits from a table, which must not have others.
pub(crate) fn open(
    node: &Node,
    path: &str,
    mut go: impl FnMut(&mut Keys<'_>),
) -> Result<(), Error> {
    let reader = Reader::open(node, path, &names(&list(&mut go)))?;
    take(&reader, go).map(|_| ())
}

/// Reads the keys that `go` visits from `reader`, which may have others as well; returns the visited keys.
pub(crate) fn take<T>(
    reader: &Reader<'_>,
    go: impl FnOnce(&mut Keys<'_>) -> T,
) -> Result<(T, Vec<&'static str>), Error> {
    let mut reading = Reading { reader, seen: Vec::new(), error: None };
    let value = go(&mut Keys::of(&mut reading));
    match reading.error {
        None => Ok((value, reading.seen.iter().map(|key| key.name).collect())),
        Some(error) => Err(error),
    }
}

struct Reading<'r, 't> {
    reader: &'r Reader<'t>,
    seen: Vec<Key>,
    /// The first fault. After it, no further keys are read.
    error: Option<Error>,
}

impl Reading<'_, '_> {
    /// Notes the first fault.
    fn note<T>(&mut self, result: Result<T, Error>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.error.get_or_insert(error);
                None
            }
        }
    }
}

impl Visitor for Reading<'_, '_> {
    fn key(&mut self, key: &Key, value: &mut Value) {
        self.seen.push(key.clone());
        if self.error.is_none()
            && let Some(Some(found)) = self.note(value_of(self.reader, key, value))
        {
            *value = found;
        }
    }

    fn table(&mut self, key: &Key, value: &mut Value, inner: &mut dyn FnMut(&mut Keys<'_>)) {
        self.seen.push(key.clone());
        let Some(node) = self.reader.node(key.name).filter(|_| self.error.is_none()) else {
            return;
        };
        match &key.form {
            Form::TableOr(other) if node.as_table().is_none() => {
                if let Form::Word(words) = &**other
                    && node.as_str().is_none()
                {
                    let path = self.reader.key(key.name);
                    let error = Diagnostic::new(Code::BadValue, &path, &node.at)
                        .message(format!("`{path}`: this is {}", node.kind()))
                        .label("expected a word or a table")
                        .help(format!("{}; there are {}", key.summary, listed(words)));
                    self.note::<()>(Err(error.into()));
                    return;
                }
                let other = Key { form: (**other).clone(), ..key.clone() };
                if let Some(Some(found)) = self.note(value_of(self.reader, &other, value)) {
                    *value = found;
                }
            }
            _ => {
                let read = open(node, &self.reader.key(key.name), inner);
                self.note(read);
            }
        }
    }

    fn tables(&mut self, key: &Key, inner: &mut dyn FnMut(&mut Keys<'_>)) {
        self.seen.push(key.clone());
        let Some(node) = self.reader.node(key.name).filter(|_| self.error.is_none()) else {
            return;
        };
        let path = self.reader.key(key.name);
        for (i, item) in node.as_array().unwrap_or_default().iter().enumerate() {
            let read = open(item, &format!("{path}.{}", i + 1), &mut *inner);
            self.note(read);
        }
    }

    fn has(&self, key: &str) -> bool {
        self.reader.has(key)
    }

    fn missing(&mut self, key: &str, expected: Option<(&str, &str)>) {
        let seen = self.seen.iter().find(|seen| seen.name == key);
        let form = seen.map_or(("a value", "..."), |seen| form_words(&seen.form));
        let (expected, example) = expected.unwrap_or(form);
        self.note::<()>(Err(self.reader.missing(key, expected, example)));
    }

    fn kind(&mut self, kind: &str, inner: &mut dyn FnMut(&mut Keys<'_>)) {
        let own = names(&list(&mut *inner));
        let before: Vec<&str> = self.seen.iter().map(|key| key.name).collect();
        let belongs = self.reader.belongs(kind, &own, &before);
        self.note(belongs);
        inner(&mut Keys::of(self));
    }

    fn path(&self, key: &str) -> String {
        self.reader.key(key)
    }

    fn out_of_range(&mut self, key: &str, help: String) {
        self.note::<()>(Err(self.reader.out_of_range(key, &help)));
    }

    fn refuse(&mut self, fault: Fault, key: &str, message: String, label: &str, help: String) {
        let code = if fault == Fault::Missing { Code::MissingKey } else { Code::BadValue };
        let error = Diagnostic::new(code, self.reader.key(key), &self.reader.location(key));
        self.note::<()>(Err(error.message(message).label(label).help(help).into()));
    }

    fn refuse_line(&mut self, key: &str, line: usize, message: String, label: &str, help: String) {
        let node = self.reader.node(key);
        let at = node.map_or_else(|| self.reader.location(key), |node| files::line_of(node, line));
        let error = Diagnostic::new(Code::BadValue, self.reader.key(key), &at);
        self.note::<()>(Err(error.message(message).label(label).help(help).into()));
    }
}

/// The keys that `go` visits, with their values in `reader`, without inner tables.
pub(crate) fn values<T>(
    reader: &Reader<'_>,
    go: impl FnOnce(&mut Keys<'_>) -> T,
) -> Vec<(Key, Value)> {
    let reading = Reading { reader, seen: Vec::new(), error: None };
    let mut valued = Valued { reading, found: Vec::new() };
    go(&mut Keys::of(&mut valued));
    valued.found
}

/// Reads values and records them.
struct Valued<'r, 't> {
    reading: Reading<'r, 't>,
    found: Vec<(Key, Value)>,
}

impl Visitor for Valued<'_, '_> {
    fn key(&mut self, key: &Key, value: &mut Value) {
        self.reading.key(key, value);
        if self.found.iter().all(|(other, _)| other.name != key.name) {
            self.found.push((key.clone(), value.clone()));
        }
    }

    fn table(&mut self, key: &Key, value: &mut Value, inner: &mut dyn FnMut(&mut Keys<'_>)) {
        self.reading.table(key, value, inner);
    }

    fn tables(&mut self, key: &Key, inner: &mut dyn FnMut(&mut Keys<'_>)) {
        self.reading.tables(key, inner);
    }

    fn has(&self, key: &str) -> bool {
        self.reading.has(key)
    }

    fn missing(&mut self, key: &str, expected: Option<(&str, &str)>) {
        self.reading.missing(key, expected);
    }

    fn kind(&mut self, _: &str, inner: &mut dyn FnMut(&mut Keys<'_>)) {
        inner(&mut Keys::of(self));
    }

    fn path(&self, key: &str) -> String {
        self.reading.path(key)
    }

    fn out_of_range(&mut self, key: &str, help: String) {
        self.reading.out_of_range(key, help);
    }

    fn refuse(&mut self, fault: Fault, key: &str, message: String, label: &str, help: String) {
        self.reading.refuse(fault, key, message, label, help);
    }

    fn refuse_line(&mut self, key: &str, line: usize, message: String, label: &str, help: String) {
        self.reading.refuse_line(key, line, message, label, help);
    }
}

/// The words after "expected" for a form, and an example as in a file.
fn form_words(form: &Form) -> (&'static str, &'static str) {
    use lasthop_proto::queue::Limit;
    use lasthop_proto::units as u;
    fn of<T: Word>() -> (&'static str, &'static str) {
        (T::EXPECTED, T::EXAMPLE)
    }
    match form {
        Form::Flag => of::<bool>(),
        Form::Count(..) => of::<u64>(),
        Form::Number(..) => of::<f64>(),
        Form::Time(..) => of::<u::Span>(),
        Form::Size(..) => of::<u::Bytes>(),
        Form::Rate => of::<u::Rate>(),
        Form::Probability => of::<u::Probability>(),
        Form::Limit => of::<Limit>(),
        Form::Speed(..) => of::<u::Speed>(),
        Form::Frequency(..) => of::<u::Frequency>(),
        Form::Decibels(..) => of::<u::Decibels>(),
        Form::Power => of::<u::Power>(),
        Form::Energy => of::<u::Energy>(),
        Form::Voltage => of::<u::Voltage>(),
        Form::Or(_, form) | Form::TableOr(form) => form_words(form),
        Form::Word(_) | Form::Words(_) | Form::Text(_) | Form::File(_) | Form::Texts(_) => {
            of::<String>()
        }
        Form::Table | Form::Tables => ("a table", "{ ... }"),
    }
}

/// The value at a key, if it is there.
fn value_of(reader: &Reader<'_>, key: &Key, default: &Value) -> Result<Option<Value>, Error> {
    let Some(node) = reader.node(key.name) else {
        return match key.need {
            Need::Required(example) => {
                Err(reader.missing(key.name, form_words(&key.form).0, example))
            }
            _ => Ok(None),
        };
    };
    by_form(reader, node, key, &key.form, default).map(Some)
}

fn by_form(
    reader: &Reader<'_>,
    node: &Node,
    key: &Key,
    form: &Form,
    default: &Value,
) -> Result<Value, Error> {
    let (name, path) = (key.name, reader.key(key.name));
    fn plain<T: Word>(node: &Node, path: &str, key: &str) -> Result<T, Error> {
        read::<T>(node, path, key)
    }
    let ranged = Ranged { reader, node, key, default };
    Ok(match form {
        Form::Flag => Value::Flag(plain(node, &path, name)?),
        Form::Count(least, most) => Value::Count(ranged.within(*least, *most)?),
        Form::Number(least, most) => Value::Number(ranged.within(*least, *most)?),
        Form::Time(least, most) => Value::Time(ranged.within(*least, *most)?),
        Form::Size(least, most) => Value::Size(ranged.within(*least, *most)?),
        Form::Speed(least, most) => Value::Speed(ranged.within(*least, *most)?),
        Form::Frequency(least, most) => Value::Frequency(ranged.within(*least, *most)?),
        Form::Decibels(least, most) => Value::Decibels(ranged.within(*least, *most)?),
        Form::Rate => Value::Rate(plain(node, &path, name)?),
        Form::Probability if LOSSES.contains(&name) && node.brief().trim().parse() == Ok(1.0) => {
            return Err(all_lost(reader, name));
        }
        Form::Probability => Value::Probability(plain(node, &path, name)?),
        Form::Limit => Value::Limit(plain(node, &path, name)?),
        Form::Voltage => Value::Voltage(plain(node, &path, name)?),
        // The unit decides which quantity it is.
        Form::Power if unit(node).ends_with('a') => Value::Current(plain(node, &path, name)?),
        Form::Power => Value::Power(plain(node, &path, name)?),
        Form::Energy if unit(node).ends_with("ah") => Value::Charge(plain(node, &path, name)?),
        Form::Energy => Value::Energy(plain(node, &path, name)?),
        Form::Text(_) => Value::Text(plain(node, &path, name)?),
        Form::File(_) => match files::content(node) {
            Some((name, text)) => Value::File { name: name.to_owned(), text: text.to_owned() },
            None => {
                let word: String = plain(node, &path, name)?;
                match examples::file(&word) {
                    Some(text) => Value::File { name: word, text: text.to_owned() },
                    None => Value::Text(word),
                }
            }
        },
        Form::Word(words) => Value::Word(word(node, &path, words)?),
        Form::Words(words) => Value::Words(several(reader, node, key, words)?),
        Form::Texts(example) => Value::Texts(texts(node, &path, name, example)?),
        Form::Or(words, form) => match words.iter().find(|word| Some(**word) == node.as_str()) {
            Some(word) => Value::Word(word),
            None => by_form(reader, node, key, form, default).map_err(|mut error| {
                let joint = if error.help.ends_with('?') { " Or" } else { "; or" };
                error.0.help.push_str(&format!("{joint} {}", listed(words)));
                error
            })?,
        },
        Form::TableOr(form) => by_form(reader, node, key, form, default)?,
        Form::Table | Form::Tables => return Ok(default.clone()),
    })
}

/// Keys for which a bare `1` more likely means 1 %, as in `tc`, than every packet.
const LOSSES: [&str; 2] = ["loss", "frame-loss"];

/// The error for a bare `1` at a key of [`LOSSES`].
fn all_lost(reader: &Reader<'_>, name: &str) -> Error {
    let path = reader.key(name);
    Diagnostic::new(Code::OutOfRange, &path, &reader.location(name))
        .message(format!("`{path}`: 1 would lose every packet"))
        .label("1 %, or all?")
        .help(format!(
            "write `{name} = \"1%\"` for one packet in a hundred, or `{name} = \"100%\"` for all"
        ))
        .into()
}

/// A value within limits, with its parts of the error message.
struct Ranged<'a> {
    reader: &'a Reader<'a>,
    node: &'a Node,
    key: &'a Key,
    default: &'a Value,
}

impl Ranged<'_> {
    fn within<T: Word + PartialOrd + Limits>(&self, least: T, most: T) -> Result<T, Error> {
        let name = self.key.name;
        let value: T = read(self.node, &self.reader.key(name), name)?;
        if (least..=most).contains(&value) {
            return Ok(value);
        }
        Err(self.reader.out_of_range(name, &range(self.key, self.default)))
    }
}

/// The range of a key, as text.
fn range(key: &Key, default: &Value) -> String {
    fn span<T: Limits>(least: &T, most: &T) -> String {
        format!("{} to {}", least.in_message(), most.in_message())
    }
    let form = match &key.form {
        Form::Or(_, form) | Form::TableOr(form) => form,
        form => form,
    };
    let range = match form {
        Form::Count(least, most) => span(least, most),
        Form::Number(least, most) => span(least, most),
        Form::Time(least, most) => span(least, most),
        Form::Size(least, most) => span(least, most),
        Form::Speed(least, most) => span(least, most),
        Form::Frequency(least, most) => span(least, most),
        Form::Decibels(least, most) => span(least, most),
        _ => return String::new(),
    };
    let default = match (key.need, default) {
        (Need::Default, Value::Count(value)) => value.in_message(),
        (Need::Default, Value::Number(value)) => value.in_message(),
        (Need::Default, Value::Time(value)) => value.in_message(),
        (Need::Default, Value::Size(value)) => value.in_message(),
        _ => return format!("`{}` may be {range}", key.name),
    };
    format!("`{}` may be {range}; the default is {default}", key.name)
}

/// The unit of a word, in lower case.
fn unit(node: &Node) -> String {
    let word = node.as_str().unwrap_or_default();
    let at = word.rfind(|c: char| !c.is_alphabetic()).map_or(0, |i| i + 1);
    // The number before the unit may end within a character of several bytes.
    word.get(at..).unwrap_or_default().to_ascii_lowercase()
}

fn word(node: &Node, path: &str, words: &[&'static str]) -> Result<&'static str, Error> {
    let found = words.iter().find(|word| Some(**word) == node.as_str());
    found.copied().ok_or_else(|| not_a_choice(node, path, words))
}

/// One of `words`, or a list of several.
fn several(
    reader: &Reader<'_>,
    node: &Node,
    key: &Key,
    words: &[&'static str],
) -> Result<Vec<&'static str>, Error> {
    let items = match &node.value {
        Written::Array(items) => items.as_slice(),
        _ => core::slice::from_ref(node),
    };
    let path = reader.key(key.name);
    if items.is_empty() {
        return Err(Diagnostic::new(Code::BadValue, path, &node.at)
            .message(format!("`{}` is an empty list: {}", key.name, key.summary))
            .label("expected at least one word")
            .help(format!(
                "for example `{} = [\"{}\"]`; leave it out for all of them",
                key.name,
                words.join("\", \"")
            ))
            .into());
    }
    items.iter().map(|item| word(item, &path, words)).collect()
}

fn texts(node: &Node, path: &str, key: &str, example: &str) -> Result<Vec<String>, Error> {
    let items =
        node.as_array().map(|items| items.iter().map(|item| item.as_str().map(str::to_owned)));
    let texts: Option<Vec<String>> = items.and_then(Iterator::collect);
    texts.ok_or_else(|| {
        Diagnostic::new(Code::BadValue, path, &node.at)
            .message(format!("`{path}` is {}", node.kind()))
            .label("expected a list of words in quotes")
            .help(format!("for example `{key} = {example}`"))
            .into()
    })
}
