//! Changes of a path that runs.

use serde::{Deserialize, Serialize};

use super::{Change, halves};
use crate::address::{Dotted, Route, Step, find};
use crate::document::{self, Node, Table};
use crate::error::{Code, Diagnostic, Error, Location, Source};
use crate::schema;

/// A changed key of a running path, with its old and new value as in a file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setting {
    /// The key.
    pub key: String,
    /// The old value; `None` for the default.
    pub old: Option<String>,
    /// The new value.
    pub new: String,
}

/// Sets keys of the path in a document, in order. No other keys can be changed while it runs.
pub(crate) fn set_path(document: &mut Table, values: &[String]) -> Result<Vec<Setting>, Error> {
    let mut settings = Vec::with_capacity(values.len());
    for (i, text) in values.iter().enumerate() {
        let (key, value, from) = halves(text, i, "agent=snoop")?;
        let node = document::parse_value(value, Source::Argument(i), from);
        let change = Change::new(document, path_only(&key)?, &node)?;
        if change.routes.iter().any(|route| !leads_to_path(route)) {
            return Err(fixed(&key));
        }
        let old = change.routes.first().and_then(|route| find(document, route)).map(Node::brief);
        change.apply(document)?;
        settings.push(Setting { key: change.key, old, new: node.brief() });
    }
    Ok(settings)
}

/// The value of a key of the path, in the notation of a file; `None` for the default.
pub(crate) fn get_path(document: &Table, key: &str) -> Result<Option<String>, Error> {
    let at = Location { source: Source::Argument(0), span: 0..key.len() };
    let key = Dotted::split(key, &at, 0);
    let routes = path_only(&key)?.routes(document)?;
    Ok(routes.first().and_then(|route| find(document, route)).map(Node::brief))
}

fn leads_to_path(route: &Route) -> bool {
    matches!(route.first(), Some(Step::Key(word, _)) if word == "path")
}

/// Keys of a station's file are not keys of a scenario, but have the same messages.
fn path_only(key: &Dotted) -> Result<&Dotted, Error> {
    let first = key.segments.first().map_or("", |(word, _)| word.as_str());
    if first != "path" && schema::keys("station").contains(&first) {
        Err(fixed(key))
    } else {
        Ok(key)
    }
}

fn fixed(key: &Dotted) -> Error {
    Diagnostic::new(Code::BadAxis, key.text(), &key.location())
        .message(format!("`{}` is not part of the path", key.text()))
        .label("fixed while it runs")
        .help(
            "stages can be changed while they run, for example `agent=snoop`, `errors=none` or \
             `radio.rate=1mbit`; for the rest change the file and restart",
        )
        .into()
}
