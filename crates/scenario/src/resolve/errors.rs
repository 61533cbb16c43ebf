//! Channel errors of a radio hop: which model, and in which direction.

use lasthop_proto::channel::{BitErrors, ErrorModel, ErrorSpec, Kinds, Traffic, words};
use lasthop_proto::describe::{Form, Keys, Need, Value, find};
use lasthop_proto::units::{Probability, Rate};

use super::transfer::Directions;
use crate::document::Node;
use crate::error::{Code, Diagnostic, Error};
use crate::keys;
use crate::read::Reader;

/// Errors towards the right and towards the left.
pub(super) type Pair = (Option<ErrorSpec>, Option<ErrorSpec>);

/// The keys of errors next to a radio, each with its direction and packets.
pub(crate) const KEYS: [(&str, &str); 5] = [
    ("errors", "errors of both directions, or of those that `on` selects"),
    ("errors-data", "errors of the direction that data travels in"),
    ("errors-ack", "errors of the direction that ACKs travel in"),
    ("errors-right", "errors towards the right"),
    ("errors-left", "errors towards the left"),
];

/// Visits the keys of errors of all directions.
pub(crate) fn all(k: &mut Keys<'_>) {
    for (key, description) in KEYS {
        let none = Form::Keyword(vec!["none"]);
        k.table_or(key, none, description, |k| {
            let _ = table(k, key == "errors", any_rate());
        });
    }
}

/// Any rate, where keys are listed.
pub(crate) fn any_rate() -> Rate {
    "1mbit".parse().unwrap_or_else(|_| unreachable!("a rate"))
}

/// Reads `errors` and its variants next to a radio of this rate.
pub(super) fn read(stage: &Reader<'_>, data: Directions, rate: Rate) -> Result<Pair, Error> {
    let mut pair: Pair = (None, None);
    // Key that set a direction; a direction has one channel.
    let mut by: [Option<&str>; 2] = [None, None];
    for (key, _) in KEYS {
        let Some(node) = stage.node(key) else { continue };
        let Some((spec, on)) = errors(stage, node, key, rate)? else { continue };
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
            *(if direction == 0 { &mut pair.0 } else { &mut pair.1 }) = Some(spec.clone());
        }
    }
    Ok(pair)
}

/// The packets that errors damage: data, acknowledgements, or both.
#[derive(Clone, Copy)]
struct On {
    data: bool,
    ack: bool,
}

impl On {
    /// Whether errors apply to a direction with data, or to one against the data.
    fn hits(self, with_data: bool, against_data: bool) -> bool {
        (self.data && with_data) || (self.ack && against_data)
    }
}

fn clash(stage: &Reader<'_>, key: &str, other: &str, data: Directions) -> Error {
    let both = data.right && data.left;
    Diagnostic::new(Code::BadPath, stage.key(key), &stage.location(key))
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

/// One table of errors; `None` for `"none"`.
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
    let Some(given) = node.as_table() else {
        let help = match node.brief().parse::<Probability>() {
            Ok(_) => format!(
                "a loss of packets is `{key} = {{ model = \"packet-loss\", p = \"{}\" }}`",
                node.brief()
            ),
            Err(_) => {
                "for example `errors = { model = \"exponential\", mean = \"64KiB\" }`".to_owned()
            }
        };
        return Err(Diagnostic::new(Code::BadValue, path.as_str(), &node.at)
            .message(format!("`{path}` is {}, not a table", node.kind()))
            .label("expected a table or \"none\"")
            .help(help)
            .into());
    };
    // The names of `errors-data` and others contain it.
    if let Some(on) = given.get("on").filter(|_| key != "errors") {
        return Err(Diagnostic::new(Code::BadPath, format!("{path}.on"), &on.at)
            .message(format!("`on` is not a key of `{key}`"))
            .label("`on` follows from the key")
            .help("`on` belongs to `errors`; leave it out here")
            .into());
    }
    let mut read = None;
    keys::open(node, &path, |k| read = Some(table(k, key == "errors", rate)))?;
    Ok(read.map(|(spec, on)| {
        let on = match key {
            "errors-data" => On { data: true, ack: false },
            "errors-ack" => On { data: false, ack: true },
            _ => on,
        };
        (spec, on)
    }))
}

/// Visits the keys of a table of errors of a radio of this rate. The model decides which keys are accepted.
fn table(k: &mut Keys<'_>, has_on: bool, rate: Rate) -> (ErrorSpec, On) {
    let registry: Vec<_> = words().collect();
    let names: Vec<_> = registry.iter().map(|model| model.word).collect();
    let need = Need::Required("\"exponential\"");
    let model = k.value("model", Form::Keyword(names), need, Value::Absent, "the channel model");
    let mut on = On { data: true, ack: true };
    let mut only = Kinds::ALL;
    let mut several = |key, words: &[&'static str], description| {
        let form = Form::Keywords(words.to_vec());
        match k.value(key, form, Need::Else("all"), Value::Absent, description) {
            Value::Keywords(found) => Some(found),
            _ => None,
        }
    };
    if has_on {
        let description =
            "packets that the errors hit: those of directions that carry data, ACKs, or both";
        if let Some(found) = several("on", &["data", "ack"], description) {
            on = On { data: found.contains(&"data"), ack: found.contains(&"ack") };
        }
    }
    let description =
        "kinds of frames that the errors affect; others are neither damaged nor counted";
    if let Some(found) = several("only", &Traffic::ALL.map(Traffic::name), description) {
        only = Traffic::ALL.into_iter().filter(|kind| found.contains(&kind.name())).collect();
    }
    let word = if let Value::Keyword(word) = model { word } else { "" };
    let mut spec: ErrorSpec = ErrorModel::BitErrors(BitErrors { ber: Probability::ZERO }).into();
    match find(&registry, word) {
        Some(model) => k.kind(&format!("the model `{word}`"), |k| spec = (model.read)(k, rate)),
        // The keys of all models are listed where none is chosen.
        None => {
            for model in &registry {
                let _ = (model.read)(k, rate);
            }
        }
    }
    spec.only = only;
    (spec, on)
}
