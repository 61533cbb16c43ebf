//! Channel errors of a radio hop: which model, and in which direction.

use lasthop_proto::channel::ErrorModel;
use lasthop_proto::units::{Bytes, Probability, Span};

use super::transfer::Directions;
use crate::document::{Node, Value};
use crate::error::{Code, Diagnostic, Error, listed, meant};
use crate::model::ErrorSpec;
use crate::read::{Reader, not_a_choice};
use crate::schema;

/// Errors towards the right and towards the left.
pub(super) type Pair = (Option<ErrorSpec>, Option<ErrorSpec>);

/// Reads `errors` and its variants beside a radio.
pub(super) fn read(stage: &Reader<'_>, data: Directions) -> Result<Pair, Error> {
    let mut pair: Pair = (None, None);
    // Who filled a direction; a direction has one channel.
    let mut by: [Option<&str>; 2] = [None, None];
    for key in schema::ERRORS {
        let Some(node) = stage.node(key) else { continue };
        let Some((model, on)) = errors(stage, node, key)? else { continue };
        let (right, left) = match key {
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
            let spec = Some(ErrorSpec { model: model.clone() });
            *(if direction == 0 { &mut pair.0 } else { &mut pair.1 }) = spec;
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
fn errors(stage: &Reader<'_>, node: &Node, key: &str) -> Result<Option<(ErrorModel, On)>, Error> {
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
    let all: Vec<&str> = ["model", "on"]
        .into_iter()
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
    Ok(Some((self::model(&open, word)?, on)))
}

/// A key of another model is a slip worth its own words.
fn belongs(node: &Node, path: &str, model: &str, own: &[&str]) -> Result<(), Error> {
    let Some(table) = node.as_table() else { return Ok(()) };
    let foreign = table.entries.iter().find(|entry| {
        !own.contains(&entry.key.as_str()) && entry.key != "model" && entry.key != "on"
    });
    let Some(entry) = foreign else { return Ok(()) };
    Err(Diagnostic::new(Code::UnknownKey, format!("{path}.{}", entry.key), &entry.key_at)
        .message(format!("`{path}`: the model `{model}` has no key `{}`", entry.key))
        .label("belongs to another model")
        .help(format!("`{model}` takes {}; {}", listed(own), meant(&entry.key, own)))
        .into())
}

fn on(reader: &Reader<'_>) -> Result<On, Error> {
    const WORDS: [&str; 2] = ["data", "ack"];
    let Some(node) = reader.node("on") else { return Ok(On { data: true, ack: true }) };
    let items = match &node.value {
        Value::Array(items) => items.as_slice(),
        _ => core::slice::from_ref(node),
    };
    let mut on = On { data: false, ack: false };
    for item in items {
        match item.as_str() {
            Some("data") => on.data = true,
            Some("ack") => on.ack = true,
            _ => return Err(not_a_choice(item, &reader.key("on"), &WORDS)),
        }
    }
    if items.is_empty() {
        return Err(Diagnostic::new(Code::BadValue, reader.key("on"), &node.at)
            .message("`on` is an empty list: the errors hit nothing")
            .label("expected at least one word")
            .help("for example `on = [\"data\", \"ack\"]`; write `errors = \"none\"` for no errors")
            .into());
    }
    Ok(on)
}

fn model(reader: &Reader<'_>, word: &str) -> Result<ErrorModel, Error> {
    let distance = Bytes(1)..=Bytes(1 << 50);
    // A mean has no default: it is the one thing that an experiment is about.
    let mean = || {
        reader.required::<Bytes>("mean")?;
        reader.within("mean", Bytes(65_536), distance.clone())
    };
    Ok(match word {
        "exponential" => ErrorModel::Exponential { mean: mean()? },
        "bit-errors" => ErrorModel::BitErrors { ber: reader.required("ber")? },
        "packet-loss" => ErrorModel::PacketLoss { p: reader.required("p")? },
        "packet-bursts" => {
            reader.required::<u64>("packets")?;
            ErrorModel::PacketBursts {
                packets: reader.within("packets", 1_u64, 1..=1_000_000)? as u32,
                mean: mean()?,
                uniform: reader
                    .choice("spacing", &[("exponential", false), ("uniform", true)])?
                    .unwrap_or(false),
            }
        }
        _ => two_state(reader)?,
    })
}

fn two_state(reader: &Reader<'_>) -> Result<ErrorModel, Error> {
    let bits = ["good-bits", "bad-bits"].iter().find(|key| reader.has(key));
    let time = ["good", "bad", "deterministic"].iter().find(|key| reader.has(key));
    let ber_good = reader.or("ber-good", Probability::ZERO)?;
    let ber_bad: Probability = reader.required("ber-bad")?;
    if let (Some(bits), Some(time)) = (bits, time) {
        return Err(Diagnostic::new(Code::BadValue, reader.key(bits), &reader.place(bits))
            .message(format!("`{bits}` and `{time}` exclude each other"))
            .label("states by bits or by time")
            .help(
                "give `good` and `bad` as times, or `good-bits` and `bad-bits` as numbers of bits",
            )
            .into());
    }
    if bits.is_some() {
        let range = 1..=1_u64 << 50;
        let period = |key| {
            reader.required::<u64>(key)?;
            reader.within(key, 1_u64, range.clone())
        };
        let (good_bits, bad_bits) = (period("good-bits")?, period("bad-bits")?);
        return Ok(ErrorModel::TwoStateBits { good_bits, bad_bits, ber_good, ber_bad });
    }
    let period = |key| {
        reader.required::<Span>(key)?;
        reader.within(key, Span::secs(1), Span::micros(1)..=Span::secs(86_400))
    };
    Ok(ErrorModel::TwoState {
        good: period("good")?,
        bad: period("bad")?,
        ber_good,
        ber_bad,
        deterministic: reader.or::<bool>("deterministic", false)?,
    })
}

impl Error {
    /// The same error with a list of the choices.
    fn with(mut self, words: &[&str]) -> Error {
        self.0.help.push_str(&format!("; there are {}", listed(words)));
        self
    }
}
