//! Dotted keys: what `--set`, `--vary` and `[vary]` mean by `host.fixed.tcp`, `errors.mean` or `agent`.

use crate::document::{Node, Table, Value};
use crate::error::{Code, Diagnostic, Error, Place, listed, meant};
use crate::schema;

/// No key of a scenario is deeper; also bounds the recursion of [`set`].
const MAX_SEGMENTS: usize = 8;

/// A dotted key and where it was written.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Dotted {
    pub segments: Vec<(String, Place)>,
}

/// One step into a document.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Step {
    Key(String, Place),
    Index(usize),
}

/// A way from the root of a document to a value.
pub(crate) type Route = Vec<Step>;

impl Dotted {
    /// Splits `text`, which begins at byte `from` of an argument, or of a quoted key.
    pub fn split(text: &str, at: &Place, from: usize) -> Dotted {
        let mut segments = Vec::new();
        let mut begin = 0;
        for part in text.split('.') {
            let lead = part.len() - part.trim_start().len();
            let start = from + begin + lead;
            let span = start..start + part.trim().len();
            segments.push((part.trim().to_owned(), Place { source: at.source, span }));
            begin += part.len() + 1;
        }
        Dotted { segments }
    }

    /// The key as it is written.
    pub fn text(&self) -> String {
        let words: Vec<&str> = self.segments.iter().map(|(word, _)| word.as_str()).collect();
        words.join(".")
    }

    /// From the first segment to the last.
    pub fn place(&self) -> Place {
        let mut place = self.segments.first().map_or(Place::file(0..0), |(_, place)| place.clone());
        if let Some((_, last)) = self.segments.last() {
            place.span.end = last.span.end.max(place.span.start);
        }
        place
    }

    /// All the places in `document` that the key means; at least one.
    pub fn routes(&self, document: &Table) -> Result<Vec<Route>, Error> {
        let Some(((first, at), rest)) = self.segments.split_first() else {
            return Err(self.trouble(&Place::file(0..0), "the key is empty", "for example `tcp`"));
        };
        if let Some((_, place)) = self.segments.iter().find(|(word, _)| word.is_empty()) {
            let help = "for example `host.fixed.tcp`, `path.2.agent` or `errors.mean`";
            return Err(self.trouble(place, "part of the key is empty", help));
        }
        if let Some((_, place)) = self.segments.get(MAX_SEGMENTS) {
            return Err(self.trouble(place, "the key is too deep", "for example `host.fixed.tcp`"));
        }
        let word = first.as_str();
        match word {
            "name" | "vary" | "schemes" => {
                let help = match word {
                    "schemes" => "write it into the file; `lasthop compare` reads it",
                    "vary" => "write the axis itself: `--vary agent=none,snoop`",
                    _ => "the name belongs to the file; results are told apart by their axes",
                };
                Err(self.trouble(at, &format!("`{word}` cannot be set"), help))
            }
            "transfer" => Ok(transfers(document, at, rest)),
            "host" => self.hosts(document, rest),
            "path" => {
                let Some(((selector, at), rest)) = rest.split_first() else {
                    let help = "say which stage: `path.2`, `path.radio` or `path.NAME`";
                    return Err(self.trouble(at, "`path` alone is the whole path", help));
                };
                let (index, kind) = self.select(document, selector, at)?;
                Ok(vec![within_stage(index, kind, selector == kind, rest)])
            }
            _ if schema::scenario().contains(&word) => Ok(vec![plain(&self.segments)]),
            _ if schema::STAGES.contains(&word) => {
                let (index, kind) = self.only(document, word, at)?;
                Ok(vec![within_stage(index, kind, true, rest)])
            }
            _ if schema::beside("radio").contains(&word) => {
                let (index, kind) = self.only(document, "radio", at)?;
                Ok(vec![within_stage(index, kind, false, &self.segments)])
            }
            _ if schema::beside("agent").contains(&word) => {
                let (index, kind) = self.only(document, "agent", at)?;
                Ok(vec![within_stage(index, kind, false, &self.segments)])
            }
            _ if schema::keys("host").contains(&word) => {
                let hosts = host_names(document);
                if hosts.is_empty() {
                    return Err(self.trouble(
                        at,
                        "the scenario has no hosts",
                        "write `[host.fixed]`",
                    ));
                }
                Ok(hosts
                    .iter()
                    .map(|host| [keys(&["host", host], at), plain(&self.segments)].concat())
                    .collect())
            }
            _ => match stages(document).iter().position(|(name, _)| *name == Some(word)) {
                Some(index) => {
                    Ok(vec![within_stage(index, stages(document)[index].1, false, rest)])
                }
                None => Err(self.unknown(document, word, at)),
            },
        }
    }

    fn trouble(&self, at: &Place, message: &str, help: &str) -> Error {
        Diagnostic::new(Code::BadAxis, self.text(), at)
            .message(message)
            .label("here")
            .help(help)
            .into()
    }

    fn unknown(&self, document: &Table, word: &str, at: &Place) -> Error {
        let stages = stages(document);
        let candidates: Vec<&str> = schema::scenario()
            .iter()
            .copied()
            .filter(|key| !matches!(*key, "name" | "vary" | "schemes"))
            .chain(schema::STAGES.iter().copied())
            .chain(schema::beside("radio").iter().copied())
            .chain(schema::beside("agent").iter().copied())
            .chain(schema::keys("host").iter().copied())
            .chain(stages.iter().filter_map(|(name, _)| *name))
            .collect();
        let guess = match crate::error::nearest(word, &candidates) {
            Some(near) => format!("did you mean `{near}`? "),
            None => String::new(),
        };
        Diagnostic::new(Code::UnknownKey, self.text(), at)
            .message(format!("no key of this scenario begins with `{word}`"))
            .label("unknown key")
            .help(format!(
                "{guess}Keys are dotted, for example `host.fixed.tcp`, `path.2.agent`, `errors.mean`, \
                 or `tcp` for all hosts"
            ))
            .into()
    }

    fn hosts(&self, document: &Table, rest: &[(String, Place)]) -> Result<Vec<Route>, Error> {
        let names = host_names(document);
        let Some(((name, at), tail)) = rest.split_first() else {
            let place = self.place();
            let help = "say which host, or `*` for all: `host.*.tcp`";
            return Err(self.trouble(&place, "`host` alone is all hosts", help));
        };
        if name == "*" && !names.is_empty() {
            return Ok(names
                .iter()
                .map(|host| [keys(&["host", host], at), plain(tail)].concat())
                .collect());
        }
        if !names.contains(&name.as_str()) {
            return Err(Diagnostic::new(Code::UnknownKey, self.text(), at)
                .message(format!("there is no host `{name}`"))
                .label("no such host")
                .help(meant(name, &names))
                .into());
        }
        Ok(vec![plain(&self.segments)])
    }

    /// The stage that a selector means: its place in the path from 1, its name, or its kind if it is the
    /// only one of it.
    fn select(
        &self,
        document: &Table,
        selector: &str,
        at: &Place,
    ) -> Result<(usize, &'static str), Error> {
        let stages = stages(document);
        if let Ok(number) = selector.parse::<usize>() {
            return match number.checked_sub(1).and_then(|i| stages.get(i).map(|s| (i, s.1))) {
                Some(found) => Ok(found),
                None => {
                    let help = format!("stages are counted from 1; this path has {}", stages.len());
                    Err(self.trouble(at, &format!("there is no stage {selector}"), &help))
                }
            };
        }
        if let Some(index) = stages.iter().position(|(name, _)| *name == Some(selector)) {
            return Ok((index, stages[index].1));
        }
        if schema::STAGES.contains(&selector) {
            return self.only(document, selector, at);
        }
        let names: Vec<&str> =
            schema::STAGES.iter().copied().chain(stages.iter().filter_map(|s| s.0)).collect();
        Err(Diagnostic::new(Code::UnknownKey, self.text(), at)
            .message(format!("there is no stage `{selector}`"))
            .label("no such stage")
            .help(format!("{}; or its position from 1, as in `path.2`", meant(selector, &names)))
            .into())
    }

    /// The only stage of a kind.
    fn only(
        &self,
        document: &Table,
        kind: &str,
        at: &Place,
    ) -> Result<(usize, &'static str), Error> {
        let stages = stages(document);
        let found: Vec<usize> = (0..stages.len()).filter(|i| stages[*i].1 == kind).collect();
        match found.as_slice() {
            [index] => Ok((*index, stages[*index].1)),
            [] => {
                let message =
                    format!("the path has no `{kind}` stage that `{}` could mean", self.text());
                let help = format!("add a `[[path]]` stage with `{kind} = ...` to the file");
                Err(self.trouble(at, &message, &help))
            }
            several => {
                let positions: Vec<String> =
                    several.iter().map(|index| format!("path.{}", index + 1)).collect();
                let positions: Vec<&str> = positions.iter().map(String::as_str).collect();
                let message = format!("the path has {} `{kind}` stages", several.len());
                let help = format!("say which one: {}", listed(&positions));
                Err(self.trouble(at, &message, &help))
            }
        }
    }
}

fn keys(words: &[&str], at: &Place) -> Route {
    words.iter().map(|word| Step::Key((*word).to_owned(), at.clone())).collect()
}

fn plain(segments: &[(String, Place)]) -> Route {
    segments.iter().map(|(word, at)| Step::Key(word.clone(), at.clone())).collect()
}

fn host_names(document: &Table) -> Vec<&str> {
    let hosts = document.get("host").and_then(Node::as_table);
    hosts
        .map(|table| table.entries.iter().map(|entry| entry.key.as_str()).collect())
        .unwrap_or_default()
}

/// Given name and kind of every stage; a stage that is none has the kind "".
fn stages(document: &Table) -> Vec<(Option<&str>, &'static str)> {
    let items = document.get("path").and_then(Node::as_array).unwrap_or_default();
    items
        .iter()
        .map(|item| {
            let table = item.as_table();
            let name = table.and_then(|table| table.get("name")).and_then(Node::as_str);
            let kind = schema::STAGES
                .iter()
                .copied()
                .find(|kind| table.is_some_and(|table| table.has(kind)));
            (name, kind.unwrap_or(""))
        })
        .collect()
}

/// A key within a stage. `path.radio.rate` means the `rate` in `radio = { ... }`, and `path.radio.errors`
/// the `errors` beside it: no key is in both places.
fn within_stage(index: usize, kind: &str, by_kind: bool, rest: &[(String, Place)]) -> Route {
    let at = rest.first().map_or(Place::file(0..0), |(_, at)| at.clone());
    let mut route = vec![Step::Key("path".to_owned(), at.clone()), Step::Index(index)];
    let beside = |word: &str| {
        word == "name"
            || schema::STAGES.contains(&word)
            || schema::beside("radio").contains(&word)
            || schema::beside("agent").contains(&word)
    };
    let inside = match rest.first() {
        None => by_kind,
        Some((word, _)) => kind != "agent" && !kind.is_empty() && !beside(word),
    };
    if inside {
        route.push(Step::Key(kind.to_owned(), at));
    }
    route.extend(plain(rest));
    route
}

/// A key of the transfer: of all transfers, unless the key has a number.
fn transfers(document: &Table, at: &Place, rest: &[(String, Place)]) -> Vec<Route> {
    let root = Step::Key("transfer".to_owned(), at.clone());
    let count = match document.get("transfer").map(|node| &node.value) {
        Some(Value::Array(items)) if !rest.is_empty() => items.len(),
        _ => return vec![[vec![root], plain(rest)].concat()],
    };
    let number = rest.first().and_then(|(word, _)| word.parse::<usize>().ok());
    match number.and_then(|n| n.checked_sub(1)).filter(|i| *i < count) {
        Some(i) => vec![[vec![root, Step::Index(i)], plain(&rest[1..])].concat()],
        None => {
            (0..count).map(|i| [vec![root.clone(), Step::Index(i)], plain(rest)].concat()).collect()
        }
    }
}

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

/// Sets the value at the end of a route, making tables on the way where there is nothing yet.
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
    owner: (&str, &Place),
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
        // A battery that is a preset's word: the same preset, and what is set about it.
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
