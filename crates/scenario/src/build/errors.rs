//! Channel errors of a radio hop: which model, and in which direction.

mod model;

use lasthop_proto::channel::{Kinds, Traffic};
use lasthop_proto::units::Rate;

use super::transfer::Directions;
use crate::document::{Node, Value};
use crate::error::{Code, Diagnostic, Error, listed, meant};
use crate::model::ErrorSpec;
use crate::read::{Reader, not_a_choice};
use crate::schema;

/// Errors towards the right and towards the left.
pub(super) type Pair = (Option<ErrorSpec>, Option<ErrorSpec>);

/// Reads `errors` and its variants beside a radio of this rate.
pub(super) fn read(stage: &Reader<'_>, data: Directions, rate: Rate) -> Result<Pair, Error> {
    let mut pair: Pair = (None, None);
    // Who filled a direction; a direction has one channel.
    let mut by: [Option<&str>; 2] = [None, None];
    for key in schema::ERRORS {
        let Some(node) = stage.node(key) else { continue };
        let Some((spec, on)) = errors(stage, node, key, rate)? else { continue };
        let (right, left) = match *key {
            "errors-right" => (true, false),
            "errors-left" => (false, true),
            _ => (on.hits(data.right, data.left), on.hits(data.left, data.right)),
        };
        for (direction, hit) in [right, left].into_iter().enumerate() {
            if !hit {
                continue;
            }
            if let Some(other) = by[direction] {
                return Err(clash(stage, key, other, data));
            }
            by[direction] = Some(key);
            *(if direction == 0 { &mut pair.0 } else { &mut pair.1 }) = Some(spec.clone());
        }
    }
    Ok(pair)
}

/// What errors hit: packets that carry data, packets that acknowledge, or both.
#[derive(Clone, Copy)]
struct On {
    data: bool,
    ack: bool,
}

impl On {
    /// Whether a direction is hit that data flows in, or that data flows against.
    fn hits(self, with_data: bool, against_data: bool) -> bool {
        (self.data && with_data) || (self.ack && against_data)
    }
}

fn clash(stage: &Reader<'_>, key: &str, other: &str, data: Directions) -> Error {
    let both = data.right && data.left;
    Diagnostic::new(Code::BadPath, stage.key(key), &stage.place(key))
        .message(format!("`{key}` and `{other}` set the errors of the same direction"))
        .label("already set")
        .help(if both {
            "data flows both ways here, so each direction carries data and ACKs; write `errors-right` \
             and `errors-left`"
        } else {
            "write `errors` for one model in both directions, or `errors-data` and `errors-ack`"
        })
        .into()
}

/// One table of errors; `None` if it says that there are none.
fn errors(
    stage: &Reader<'_>,
    node: &Node,
    key: &str,
    rate: Rate,
) -> Result<Option<(ErrorSpec, On)>, Error> {
    let path = stage.key(key);
    if node.as_str() == Some("none") {
        return Ok(None);
    }
    if node.as_table().is_none() {
        return Err(Diagnostic::new(Code::BadValue, path.as_str(), &node.at)
            .message(format!("`{path}` is {}, not a table", node.kind()))
            .label("expected a table or \"none\"")
            .help("for example `errors = { model = \"exponential\", mean = \"64KiB\" }`")
            .into());
    }
    let names = schema::words(&schema::ERROR_MODELS);
    // The model decides which keys there may be, so it is read before them.
    let all: Vec<&str> = schema::ERROR_OPTIONS
        .iter()
        .copied()
        .chain(schema::ERROR_MODELS.iter().flat_map(|(_, keys)| keys.iter().copied()))
        .collect();
    let open = Reader::open(node, &path, &all)?;
    let Some(model) = open.node("model") else {
        return Err(open.missing("model", "a channel model", "\"exponential\"").with(&names));
    };
    let Some((word, own)) =
        schema::ERROR_MODELS.iter().find(|(name, _)| Some(*name) == model.as_str())
    else {
        return Err(not_a_choice(model, &open.key("model"), &names));
    };
    belongs(node, &path, word, own)?;
    let on = on(&open)?;
    // `errors-data` and the like say it in their name.
    if key != "errors" && open.has("on") {
        return Err(Diagnostic::new(Code::BadPath, open.key("on"), &open.place("on"))
            .message(format!("`on` has no place in `{key}`"))
            .label("the key says it already")
            .help("`on` belongs to `errors`; leave it out here")
            .into());
    }
    let on = match key {
        "errors-data" => On { data: true, ack: false },
        "errors-ack" => On { data: false, ack: true },
        _ => on,
    };
    let spec = ErrorSpec { only: only(&open)?, ..model::read(&open, word, rate)? };
    Ok(Some((spec, on)))
}

/// A key of another model is a slip worth its own words.
fn belongs(node: &Node, path: &str, model: &str, own: &[&str]) -> Result<(), Error> {
    let Some(table) = node.as_table() else { return Ok(()) };
    let foreign = table.entries.iter().find(|entry| {
        !own.contains(&entry.key.as_str()) && !schema::ERROR_OPTIONS.contains(&entry.key.as_str())
    });
    let Some(entry) = foreign else { return Ok(()) };
    Err(Diagnostic::new(Code::UnknownKey, format!("{path}.{}", entry.key), &entry.key_at)
        .message(format!("`{path}`: the model `{model}` has no key `{}`", entry.key))
        .label("belongs to another model")
        .help(format!("`{model}` takes {}; {}", listed(own), meant(&entry.key, own)))
        .into())
}

fn on(reader: &Reader<'_>) -> Result<On, Error> {
    let Some(found) = words_of(reader, "on", &["data", "ack"])? else {
        return Ok(On { data: true, ack: true });
    };
    Ok(On { data: found.contains(&"data"), ack: found.contains(&"ack") })
}

/// The kinds of frames that errors concern; every frame unless the file says otherwise.
fn only(reader: &Reader<'_>) -> Result<Kinds, Error> {
    let words = Traffic::ALL.map(Traffic::name);
    let Some(found) = words_of(reader, "only", &words)? else { return Ok(Kinds::ALL) };
    Ok(Traffic::ALL.into_iter().filter(|kind| found.contains(&kind.name())).collect())
}

/// One of `words`, or a list of several.
fn words_of<'w>(
    reader: &Reader<'_>,
    key: &str,
    words: &[&'w str],
) -> Result<Option<Vec<&'w str>>, Error> {
    let Some(node) = reader.node(key) else { return Ok(None) };
    let items = match &node.value {
        Value::Array(items) => items.as_slice(),
        _ => core::slice::from_ref(node),
    };
    if items.is_empty() {
        return Err(Diagnostic::new(Code::BadValue, reader.key(key), &node.at)
            .message(format!("`{key}` is an empty list: the errors hit nothing"))
            .label("expected at least one word")
            .help(format!(
                "for example `{key} = [\"data\", \"ack\"]`; write `errors = \"none\"` for no errors"
            ))
            .into());
    }
    let found = items.iter().map(|item| {
        let word = words.iter().find(|word| Some(**word) == item.as_str());
        word.copied().ok_or_else(|| not_a_choice(item, &reader.key(key), words))
    });
    found.collect::<Result<Vec<_>, _>>().map(Some)
}

impl Error {
    /// The same error with a list of the choices.
    fn with(mut self, words: &[&str]) -> Error {
        self.0.help.push_str(&format!("; there are {}", listed(words)));
        self
    }
}
