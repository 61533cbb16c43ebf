//! Reads a configuration's keys from a table of the file.

use lasthop_proto::describe::{Fault, Form, Key, Keys, Need, Quantity, Value, Visitor};
use lasthop_proto::units::{Charge, Current};

use crate::document::{Node, Value as Written};
use crate::error::{Code, Diagnostic, Error, listed};
use crate::examples;
use crate::files;
use crate::keys::{list, names};
use crate::read::{Readable, Reader, not_a_choice, read};

/// Reads the keys that `go` visits from a table, which must not have others.
pub(crate) fn open(
    node: &Node,
    path: &str,
    mut go: impl FnMut(&mut Keys<'_>),
) -> Result<(), Error> {
    // The list of all keys is only needed for messages.
    let checked =
        |go: &mut dyn FnMut(&mut Keys<'_>)| Reader::open(node, path, &names(&list(go))).map(|_| ());
    let Some(table) = node.as_table() else { return checked(&mut go) };
    let reader = Reader::any(table, path, node.at.clone());
    let mut reading = Reading::new(&reader);
    go(&mut Keys::of(&mut reading));
    if reading.has_unseen() {
        checked(&mut go)?;
    }
    reading.error.map_or(Ok(()), Err)
}

/// Reads the keys that `go` visits from `reader`, which may have others as well; returns the visited keys.
pub(crate) fn take<T>(
    reader: &Reader<'_>,
    go: impl FnOnce(&mut Keys<'_>) -> T,
) -> Result<(T, Vec<&'static str>), Error> {
    let mut reading = Reading::new(reader);
    let value = go(&mut Keys::of(&mut reading));
    match reading.error {
        None => Ok((value, reading.seen.iter().map(|(key, _)| key.name).collect())),
        Some(error) => Err(error),
    }
}

/// The keys that `go` visits, with their values in `reader`, without inner tables and without checks of kinds.
pub(crate) fn values<T>(
    reader: &Reader<'_>,
    go: impl FnOnce(&mut Keys<'_>) -> T,
) -> Vec<(Key, Value)> {
    let mut reading = Reading { checks_kinds: false, ..Reading::new(reader) };
    go(&mut Keys::of(&mut reading));
    reading.seen
}

struct Reading<'r, 't> {
    reader: &'r Reader<'t>,
    /// Each key with its value; those of tables are absent.
    seen: Vec<(Key, Value)>,
    /// The first fault. After it, no further keys are read.
    error: Option<Error>,
    checks_kinds: bool,
}

impl<'r, 't> Reading<'r, 't> {
    fn new(reader: &'r Reader<'t>) -> Reading<'r, 't> {
        Reading { reader, seen: Vec::new(), error: None, checks_kinds: true }
    }

    fn saw(&mut self, key: &Key, value: Value) {
        if self.seen.iter().all(|(other, _)| other.name != key.name) {
            self.seen.push((key.clone(), value));
        }
    }

    /// Whether the table has a key that was not visited.
    fn has_unseen(&self) -> bool {
        let seen = |key: &str| self.seen.iter().any(|(seen, _)| seen.name == key);
        self.reader.keys().any(|key| !seen(key))
    }

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
        if self.error.is_none()
            && let Some(Some(found)) = self.note(value_of(self.reader, key, value))
        {
            *value = found;
        }
        self.saw(key, value.clone());
    }

    fn table(&mut self, key: &Key, value: &mut Value, inner: &mut dyn FnMut(&mut Keys<'_>)) {
        self.saw(key, Value::Absent);
        let Some(node) = self.reader.node(key.name).filter(|_| self.error.is_none()) else {
            return;
        };
        match &key.form {
            Form::TableOr(other) if node.as_table().is_none() => {
                if let Form::Keyword(words) = &**other
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
        self.saw(key, Value::Absent);
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
        let seen = self.seen.iter().find(|(seen, _)| seen.name == key);
        let form = seen.map_or(("a value", "..."), |(seen, _)| form_words(&seen.form));
        let (expected, example) = expected.unwrap_or(form);
        self.note::<()>(Err(self.reader.missing(key, expected, example)));
    }

    fn kind(&mut self, kind: &str, inner: &mut dyn FnMut(&mut Keys<'_>)) {
        let (fails, before) = (self.error.is_some(), self.seen.len());
        inner(&mut Keys::of(self));
        if self.checks_kinds && !fails && self.has_unseen() {
            let own = names(&list(inner));
            let before: Vec<&str> = self.seen[..before].iter().map(|(key, _)| key.name).collect();
            // A key of another kind is reported before faults of its values.
            if let Err(error) = self.reader.belongs(kind, &own, &before) {
                self.error = Some(error);
            }
        }
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

/// How values of a form are read: the words after "expected", an example as in a file, and the function.
type Notation = (&'static str, &'static str, fn(&Node, &str, &str) -> Result<Value, Error>);

fn notation<T: Readable + Quantity>() -> Notation {
    let value = |node: &Node, path: &str, key: &str| read::<T>(node, path, key).map(T::value);
    (T::EXPECTED, T::EXAMPLE, value)
}

/// The notation of a single value.
fn notation_of(form: &Form) -> Notation {
    use lasthop_proto::units as u;
    match form {
        Form::Flag => notation::<bool>(),
        Form::Range(Value::Count(_), _) => notation::<u64>(),
        Form::Range(Value::Time(_), _) => notation::<u::Span>(),
        Form::Range(Value::Size(_), _) => notation::<u::Bytes>(),
        Form::Range(Value::Speed(_), _) => notation::<u::Speed>(),
        Form::Range(Value::Frequency(_), _) => notation::<u::Frequency>(),
        Form::Range(Value::Decibels(_), _) => notation::<u::Decibels>(),
        Form::Range(..) => notation::<f64>(),
        Form::Rate => notation::<u::Rate>(),
        Form::Probability => notation::<u::Probability>(),
        Form::Limit => notation::<u::Limit>(),
        Form::Power => notation::<u::Power>(),
        Form::Energy => notation::<u::Energy>(),
        Form::Voltage => notation::<u::Voltage>(),
        _ => (String::EXPECTED, String::EXAMPLE, |node, path, key| {
            read(node, path, key).map(Value::Text)
        }),
    }
}

/// The words after "expected" for a form, and an example as in a file.
fn form_words(form: &Form) -> (&'static str, &'static str) {
    match form {
        Form::Or(_, form) | Form::TableOr(form) => form_words(form),
        Form::Table | Form::Tables => ("a table", "{ ... }"),
        form => (notation_of(form).0, notation_of(form).1),
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
    let plain = |(_, _, value): Notation| value(node, &path, name);
    Ok(match form {
        Form::Probability if LOSSES.contains(&name) && node.brief().trim().parse() == Ok(1.0) => {
            return Err(all_lost(reader, name));
        }
        Form::Range(least, most) => {
            let value = plain(notation_of(form))?;
            if !(least..=most).contains(&&value) {
                return Err(reader.out_of_range(name, &range(key, default)));
            }
            value
        }
        // The unit decides which quantity it is.
        Form::Power if unit(node).ends_with('a') => plain(notation::<Current>())?,
        Form::Energy if unit(node).ends_with("ah") => plain(notation::<Charge>())?,
        Form::File(_) => match files::content(node) {
            Some((name, text)) => Value::File { name: name.to_owned(), text: text.to_owned() },
            None => {
                let word: String = read(node, &path, name)?;
                match examples::file(&word) {
                    Some(text) => Value::File { name: word, text: text.to_owned() },
                    None => Value::Text(word),
                }
            }
        },
        Form::Keyword(words) => Value::Keyword(word(node, &path, words)?),
        Form::Keywords(words) => Value::Keywords(several(reader, node, key, words)?),
        Form::Texts(example) => Value::Texts(texts(node, &path, name, example)?),
        Form::Or(words, form) => match words.iter().find(|word| Some(**word) == node.as_str()) {
            Some(word) => Value::Keyword(word),
            None => by_form(reader, node, key, form, default).map_err(|mut error| {
                let joint = if error.help.ends_with('?') { " Or" } else { "; or" };
                error.0.help.push_str(&format!("{joint} {}", listed(words)));
                error
            })?,
        },
        Form::TableOr(form) => by_form(reader, node, key, form, default)?,
        Form::Table | Form::Tables => return Ok(default.clone()),
        _ => plain(notation_of(form))?,
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

/// The range of a key, as text.
fn range(key: &Key, default: &Value) -> String {
    let quoted = |value: &Value| match value {
        Value::Count(_) | Value::Number(_) => value.to_string(),
        _ => format!("`{value}`"),
    };
    let form = match &key.form {
        Form::Or(_, form) | Form::TableOr(form) => form,
        form => form,
    };
    let Form::Range(least, most) = form else { return String::new() };
    let range = format!("`{}` may be {} to {}", key.name, quoted(least), quoted(most));
    match (key.need, default) {
        (Need::Default, Value::Count(_) | Value::Number(_) | Value::Time(_) | Value::Size(_)) => {
            format!("{range}; the default is {}", quoted(default))
        }
        _ => range,
    }
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
