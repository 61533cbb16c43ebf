//! The keys of channel errors.

use lasthop_proto::channel::{BitErrors, ErrorModel, ErrorSpec, Kinds, Traffic, words};
use lasthop_proto::describe::{Form, Keys, Need, Value, find};
use lasthop_proto::units::{Probability, Rate};

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

/// The packets that errors damage: data, acknowledgements, or both.
#[derive(Clone, Copy)]
pub(crate) struct On {
    pub data: bool,
    pub ack: bool,
}

impl On {
    /// Whether errors apply to a direction with data, or to one against the data.
    pub fn hits(self, with_data: bool, against_data: bool) -> bool {
        (self.data && with_data) || (self.ack && against_data)
    }
}

/// Visits the keys of a table of errors of a radio of this rate. The model decides which keys are accepted.
pub(crate) fn table(k: &mut Keys<'_>, has_on: bool, rate: Rate) -> (ErrorSpec, On) {
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
