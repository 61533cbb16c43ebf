//! Lists of a configuration's keys.

use lasthop_proto::describe::{Fault, Key, Keys, Need, Value, Visitor};

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

/// A value in the notation of a file; `None` for values without such a notation.
pub fn written(value: &Value) -> Option<String> {
    match value {
        Value::Flag(_) | Value::Count(_) | Value::Number(_) | Value::Probability(_) => {
            Some(value.to_string())
        }
        value => Some(value.to_string())
            .filter(|text| !text.is_empty())
            .map(|text| format!("\"{text}\"")),
    }
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
            *value = Value::Keyword(word);
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
