//! Channel errors of a radio hop: which model, and in which direction.

use lasthop_proto::channel::ErrorSpec;
use lasthop_proto::units::{Probability, Rate};

use super::transfer::Directions;
use crate::document::Node;
use crate::error::{Code, Diagnostic, Error};
use crate::parts::errors::{KEYS, On, table};
use crate::read::Reader;
use crate::reading::open;

/// Errors towards the right and towards the left.
pub(super) type Pair = (Option<ErrorSpec>, Option<ErrorSpec>);

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
    open(node, &path, |k| read = Some(table(k, key == "errors", rate)))?;
    Ok(read.map(|(spec, on)| {
        let on = match key {
            "errors-data" => On { data: true, ack: false },
            "errors-ack" => On { data: false, ack: true },
            _ => on,
        };
        (spec, on)
    }))
}
