//! The axes of a file.

use super::{AxisSpec, Change, Point};
use crate::address::Dotted;
use crate::document::{Node, Table, Value};
use crate::error::{Code, Diagnostic, Error, Location};

/// The axes of `[vary]`; a dotted key may be written with or without quotes.
pub(super) fn from_file(document: &Table, vary: &Node) -> Result<Vec<AxisSpec>, Error> {
    let Some(table) = vary.as_table() else {
        return Err(Diagnostic::new(Code::BadAxis, "vary", &vary.at)
            .message(format!("`vary` is {}, not a table of axes", vary.kind()))
            .label("expected a table")
            .help("begin it once, by `[vary]` in single brackets; each line below it is an axis")
            .into());
    };
    let mut axes = Vec::new();
    collect(document, table, &Dotted { segments: Vec::new() }, &mut axes)?;
    Ok(axes)
}

fn collect(
    document: &Table,
    table: &Table,
    prefix: &Dotted,
    axes: &mut Vec<AxisSpec>,
) -> Result<(), Error> {
    for entry in &table.entries {
        let key = extended(prefix, &entry.key, &entry.key_at);
        match &entry.node.value {
            Value::Table(inner) => collect(document, inner, &key, axes)?,
            Value::Array(items) if !items.is_empty() => axes.push(axis(document, &key, items)?),
            Value::Array(_) => {
                return Err(not_an_axis(&key.text(), &entry.node, "an empty list"));
            }
            _ => return Err(not_an_axis(&key.text(), &entry.node, "not a list of values")),
        }
    }
    Ok(())
}

fn not_an_axis(key: &str, node: &Node, label: &str) -> Error {
    Diagnostic::new(Code::BadAxis, format!("vary.{key}"), &node.at)
        .message(format!("`{key}` under `[vary]` is {label}"))
        .label("expected a list of values")
        .help("an axis is a key and the values it takes: `agent = [\"none\", \"snoop\"]`")
        .into()
}

/// `prefix` and one more key of the file, which may itself be dotted if it was quoted.
fn extended(prefix: &Dotted, key: &str, at: &Location) -> Dotted {
    let quoted = at.span.len() == key.len() + 2;
    let mut dotted = Dotted::split(key, at, at.span.start + usize::from(quoted));
    if !quoted && at.span.len() != key.len() {
        // In a key with escapes, segments have no location of their own, so the location is that of the key.
        dotted.segments.iter_mut().for_each(|(_, place)| *place = at.clone());
    }
    Dotted { segments: [prefix.segments.clone(), dotted.segments].concat() }
}

pub(super) fn axis(document: &Table, key: &Dotted, items: &[Node]) -> Result<AxisSpec, Error> {
    let labelled = |node: &Node| node.as_table().is_some_and(|table| table.has("label"));
    let (points, routes) = if items.iter().any(labelled) {
        let points = items
            .iter()
            .map(|item| labelled_point(document, key, item))
            .collect::<Result<Vec<_>, _>>()?;
        (points, Vec::new())
    } else {
        let routes = key.routes(document)?;
        let point = |item: &Node| Point {
            label: item.brief(),
            changes: vec![Change { key: key.text(), routes: routes.clone(), node: item.clone() }],
        };
        (items.iter().map(point).collect(), routes)
    };
    for (i, point) in points.iter().enumerate() {
        if points[..i].iter().any(|other: &Point| other.label == point.label) {
            return Err(Diagnostic::new(Code::BadAxis, key.text(), &items[i].at)
                .message(format!("`{}` takes the value `{}` twice", key.text(), point.label))
                .label("again")
                .help("each point of an axis differs from the others; for repetitions raise `runs`")
                .into());
        }
    }
    Ok(AxisSpec { name: key.text(), points, routes })
}

/// A point that sets several keys at once: `{ label = "slow", link.delay = "50ms", host.mobile.mss = 512 }`.
fn labelled_point(document: &Table, key: &Dotted, item: &Node) -> Result<Point, Error> {
    let label = item.as_table().and_then(|table| table.get("label")).and_then(Node::as_str);
    let (Some(table), Some(label)) = (item.as_table(), label) else {
        return Err(Diagnostic::new(Code::BadAxis, key.text(), &item.at)
            .message(format!("a point of the axis `{}` has no label", key.text()))
            .label("expected a table with a label")
            .help("where one point has a label, all have: `{ label = \"slow\", link.delay = \"50ms\" }`")
            .into());
    };
    let mut changes = Vec::new();
    let prefix = Dotted { segments: Vec::new() };
    gather(document, table, &prefix, &mut changes)?;
    Ok(Point { label: label.to_owned(), changes })
}

/// A table in braces is a value. A table from a dotted key contains further keys.
fn gather(
    document: &Table,
    table: &Table,
    prefix: &Dotted,
    changes: &mut Vec<Change>,
) -> Result<(), Error> {
    for entry in &table.entries {
        if prefix.segments.is_empty() && entry.key == "label" {
            continue;
        }
        let key = extended(prefix, &entry.key, &entry.key_at);
        match &entry.node.value {
            Value::Table(inner) if !inner.inline => gather(document, inner, &key, changes)?,
            _ => changes.push(Change::new(document, &key, &entry.node)?),
        }
    }
    Ok(())
}
