//! Values at the end of a route.

use super::Step;
use crate::document::{Node, Table, Value};
use crate::error::{Code, Diagnostic, Error, Location};

/// The value at the end of a route.
pub(crate) fn find<'t>(document: &'t Table, route: &[Step]) -> Option<&'t Node> {
    let (Step::Key(word, _), rest) = route.split_first()? else { return None };
    let mut node = document.get(word)?;
    for step in rest {
        node = match (step, &node.value) {
            (Step::Key(word, _), Value::Table(table)) => table.get(word)?,
            (Step::Index(index), Value::Array(items)) => items.get(*index)?,
            _ => return None,
        };
    }
    Some(node)
}

/// Sets the value at the end of a route, and creates missing tables on the way.
pub(crate) fn set(
    document: &mut Table,
    route: &[Step],
    node: &Node,
    key: &str,
) -> Result<(), Error> {
    let Some((Step::Key(word, at), rest)) = route.split_first() else { return Ok(()) };
    if rest.is_empty() {
        document.put(word, at, node.clone());
        return Ok(());
    }
    if !document.has(word) {
        let table = Node { at: at.clone(), value: Value::Table(Table::default()) };
        document.put(word, at, table);
    }
    match document.get_mut(word) {
        Some(inner) => set_within(inner, rest, node, key, (word, at)),
        None => Ok(()),
    }
}

/// The rest of a route, from a value that `owner` names.
fn set_within(
    inner: &mut Node,
    route: &[Step],
    node: &Node,
    key: &str,
    owner: (&str, &Location),
) -> Result<(), Error> {
    let kind = inner.kind();
    match (route.first(), &mut inner.value) {
        (None, _) => *inner = node.clone(),
        (Some(Step::Index(index)), Value::Array(items)) => {
            if let Some(item) = items.get_mut(*index) {
                set_within(item, &route[1..], node, key, owner)?;
            }
        }
        (Some(_), Value::Table(table)) => set(table, route, node, key)?,
        // A battery given as the name of a preset: the same preset with these keys changed.
        (Some(Step::Key(..)), Value::String(_)) if owner.0 == "battery" => {
            let mut table = Table { inline: true, ..Table::default() };
            table.put("preset", owner.1, inner.clone());
            set(&mut table, route, node, key)?;
            inner.value = Value::Table(table);
        }
        (Some(_), _) => {
            let (word, at) = owner;
            return Err(Diagnostic::new(Code::BadAxis, key, at)
                .message(format!("`{key}`: `{word}` is {kind} here and has no keys"))
                .label("not a table")
                .help(format!("set `{word}` as a whole, for example `{word}={{ ... }}`"))
                .into());
        }
    }
    Ok(())
}
