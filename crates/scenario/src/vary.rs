//! Changes from the command line, and the axes of a sweep.

mod file;
mod running;

use crate::address::{Dotted, Route, Step, set};
use crate::argument::{Argument, commas};
use crate::document::{self, Entry, Node, Table, Value};
use crate::error::{Code, Diagnostic, Error, Location, Source, did_you_mean};
use crate::schema;

use file::{axis, from_file};
pub use running::Setting;
pub(crate) use running::{get_path, set_path};

/// Maximum number of cells of a plan in memory.
pub(crate) const MAX_CELLS: usize = 10_000;

/// An axis: the changes of each of its points.
#[derive(Clone, Debug)]
pub(crate) struct AxisSpec {
    pub name: String,
    pub points: Vec<Point>,
    /// The positions that a plain axis sets; empty for a labelled axis, which sets several keys.
    pub routes: Vec<Route>,
}

/// One point of an axis.
#[derive(Clone, Debug)]
pub(crate) struct Point {
    pub label: String,
    changes: Vec<Change>,
}

/// A key and its value.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    key: String,
    pub routes: Vec<Route>,
    node: Node,
}

impl AxisSpec {
    /// Whether its points have labels and may set several keys.
    pub fn is_labelled(&self) -> bool {
        self.routes.is_empty()
    }

    /// Whether its points change only the errors of radios.
    pub fn only_errors(&self) -> bool {
        let of_errors = |step: &Step| match step {
            Step::Key(word, _) => schema::keys("errors").contains(&word.as_str()),
            Step::Index(_) => false,
        };
        let mut routes = self.points.iter().flat_map(|p| &p.changes).flat_map(|c| &c.routes);
        routes.all(|route| route.iter().any(of_errors))
    }

    /// Adapts the axis to a new stage before that with index `at`.
    pub fn insert_stage(&mut self, at: usize) {
        for change in self.points.iter_mut().flat_map(|point| &mut point.changes) {
            for route in &mut change.routes {
                if let [Step::Key(word, _), Step::Index(index), ..] = route.as_mut_slice()
                    && word == "path"
                    && *index >= at
                {
                    *index += 1;
                }
            }
        }
    }
}

impl Point {
    /// The keys that it sets, and their values.
    pub fn settings(&self) -> Vec<(String, Node)> {
        self.changes.iter().map(|change| (change.key.clone(), change.node.clone())).collect()
    }

    /// Applies this point's changes.
    pub fn apply(&self, document: &mut Table) -> Result<(), Error> {
        self.changes.iter().try_for_each(|change| change.apply(document))
    }
}

impl Change {
    pub fn new(document: &Table, key: &Dotted, node: &Node) -> Result<Change, Error> {
        Ok(Change { key: key.text(), routes: key.routes(document)?, node: node.clone() })
    }

    pub fn apply(&self, document: &mut Table) -> Result<(), Error> {
        self.routes.iter().try_for_each(|route| set(document, route, &self.node, &self.key))
    }
}

/// Removes `[vary]` from the document, applies the arguments and returns the remaining axes, of at most
/// `most` combinations.
pub(crate) fn apply(
    document: &mut Table,
    arguments: &[Argument],
    most: usize,
) -> Result<Vec<AxisSpec>, Error> {
    let mut vary = document.remove("vary");
    let mut fixed: Vec<Vec<Route>> = Vec::new();
    for (i, argument) in arguments.iter().enumerate() {
        if let Argument::Set(text) = argument {
            let (key, value, from) = halves(text, i, "--set host.fixed.tcp=sack")?;
            if choose(document, vary.as_mut(), &key, &[value])? {
                continue;
            }
            let change = Change::new(
                document,
                &key,
                &document::parse_value(value, Source::Argument(i), from),
            )?;
            change.apply(document)?;
            fixed.push(change.routes);
        }
    }
    let mut chosen = vec![false; arguments.len()];
    for (i, argument) in arguments.iter().enumerate() {
        if let Argument::Vary(text) = argument {
            let (key, values, _) = halves(text, i, VARY_EXAMPLE)?;
            chosen[i] = choose(document, vary.as_mut(), &key, &commas(values))?;
        }
    }
    let mut axes = match &vary {
        Some(entry) => from_file(document, &entry.node)?,
        None => Vec::new(),
    };
    axes.retain(|axis| !fixed.iter().any(|routes| same(routes, &axis.routes)));
    overrule(&mut axes, &fixed.concat());
    for (i, argument) in arguments.iter().enumerate() {
        if let (Argument::Vary(text), false) = (argument, chosen[i]) {
            let axis = from_argument(document, text, i)?;
            axes.retain(|other| other.name != axis.name && !same(&other.routes, &axis.routes));
            overrule(&mut axes, &axis.routes);
            axes.push(axis);
        }
    }
    let cells = axes.iter().try_fold(1_usize, |cells, axis| cells.checked_mul(axis.points.len()));
    if cells.is_none_or(|cells| cells > most) {
        let at = vary.map_or(Location::file(0..0), |entry| entry.key_at);
        return Err(Diagnostic::new(Code::OutOfRange, "vary", &at)
            .message(format!("the axes have more than {most} combinations"))
            .label("all axes together")
            .help("leave out points, or use `lasthop sweep`, which does not hold all of them in memory")
            .into());
    }
    Ok(axes)
}

impl AxisSpec {
    /// Whether one of its points replaces the table that contains this key, so that not every point has
    /// the key.
    pub fn replaces(&self, document: &Table, key: &str) -> bool {
        let at = Location::file(0..0);
        let Ok(routes) = Dotted::split(key, &at, 0).routes(document) else { return true };
        let changed = self.points.iter().flat_map(|point| &point.changes).flat_map(|c| &c.routes);
        changed.into_iter().any(|changed| {
            let part_of = |route: &Route| {
                changed.len() < route.len()
                    && changed.iter().zip(route).all(|(a, b)| word(a) == word(b))
            };
            routes.iter().any(part_of)
        })
    }
}

/// A step, without its location.
fn word(step: &Step) -> String {
    match step {
        Step::Key(word, _) => word.clone(),
        Step::Index(index) => index.to_string(),
    }
}

/// Whether two keys refer to the same values.
pub(crate) fn same(a: &[Route], b: &[Route]) -> bool {
    !a.is_empty()
        && a.len() == b.len()
        && a.iter().zip(b).all(|(a, b)| a.iter().map(word).eq(b.iter().map(word)))
}

/// Removes settings of labelled points that the command line overrides, and axes that become empty.
fn overrule(axes: &mut Vec<AxisSpec>, fixed: &[Route]) {
    let within = |route: &Route| {
        fixed
            .iter()
            .any(|f| f.len() <= route.len() && f.iter().zip(route).all(|(a, b)| word(a) == word(b)))
    };
    let given = |change: &Change| change.routes.iter().all(within);
    axes.retain_mut(|axis| {
        let labelled = axis.routes.is_empty();
        if !labelled || !axis.points.iter().any(|point| point.changes.iter().any(given)) {
            return true;
        }
        axis.points.iter_mut().for_each(|point| point.changes.retain(|change| !given(change)));
        axis.points.iter().any(|point| !point.changes.is_empty())
    });
}

/// Key, value, and where the value begins.
fn halves<'t>(
    text: &'t str,
    index: usize,
    example: &str,
) -> Result<(Dotted, &'t str, usize), Error> {
    let whole = Location { source: Source::Argument(index), span: 0..text.len() };
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() && !value.trim().is_empty() => {
            Ok((Dotted::split(key, &whole, 0), value, key.len() + 1))
        }
        _ => Err(Diagnostic::new(Code::BadAxis, "", &whole)
            .message(format!("`{text}` is not of the form KEY=VALUE"))
            .label("expected KEY=VALUE")
            .help(format!("for example `{example}`"))
            .into()),
    }
}

const VARY_EXAMPLE: &str = "--vary agent=none,snoop";

/// Retains only the points with these labels of the file's labelled axis `key`. False if the file has no such
/// axis, or if the name of the axis is itself a key. Names of stages do not count as keys, because a stage
/// has no keyword as a value.
fn choose(
    document: &Table,
    vary: Option<&mut Entry>,
    key: &Dotted,
    labels: &[&str],
) -> Result<bool, Error> {
    let is_stage = |route: &Route| matches!(route.last(), Some(Step::Index(_)));
    let is_word = |label: &&str| !label.trim_start().starts_with('{');
    if let Ok(routes) = key.routes(document)
        && !(routes.iter().all(is_stage) && labels.iter().all(is_word))
    {
        return Ok(false);
    }
    let name = key.text();
    let table = vary.and_then(|entry| entry.node.as_table_mut());
    let Some(Value::Array(points)) =
        table.and_then(|table| table.get_mut(&name)).map(|node| &mut node.value)
    else {
        return Ok(false);
    };
    let label = |point: &Node| Some(point.as_table()?.get("label")?.as_str()?.to_owned());
    let known: Vec<String> = points.iter().filter_map(label).collect();
    if known.len() < points.len() {
        return Ok(false);
    }
    let bare = |word: &str| word.trim().trim_matches(['"', '\'']).to_owned();
    let wanted: Vec<String> = labels.iter().map(|word| bare(word)).collect();
    if let Some(other) = wanted.iter().find(|word| !known.contains(word)) {
        let names: Vec<&str> = known.iter().map(String::as_str).collect();
        return Err(Diagnostic::new(Code::BadAxis, &name, &key.location())
            .message(format!("the axis `{name}` has no point `{other}`"))
            .label("a labelled axis of the file")
            .help(did_you_mean(other, &names))
            .into());
    }
    points.retain(|point| label(point).is_some_and(|label| wanted.contains(&label)));
    Ok(true)
}

fn from_argument(document: &Table, text: &str, index: usize) -> Result<AxisSpec, Error> {
    let (key, values, from) = halves(text, index, VARY_EXAMPLE)?;
    if let Some(words) = bracketed(values) {
        let place = Location { source: Source::Argument(index), span: from..from + values.len() };
        return Err(Diagnostic::new(Code::BadAxis, key.text(), &place)
            .message(format!("the values of `{}` are in brackets", key.text()))
            .label("a list of bare words")
            .help(format!("leave the brackets out: `--vary {}={}`", key.text(), words.trim()))
            .into());
    }
    let mut nodes = Vec::new();
    let mut begin = 0;
    for part in commas(values) {
        let at = from + begin;
        begin += part.len() + 1;
        if part.trim().is_empty() {
            let place = Location { source: Source::Argument(index), span: at..at + part.len() };
            return Err(Diagnostic::new(Code::BadAxis, key.text(), &place)
                .message(format!("`{text}` has an empty value"))
                .label("nothing here")
                .help("values are separated by single commas: `--vary agent=none,snoop`")
                .into());
        }
        nodes.push(document::parse_value(part, Source::Argument(index), at));
    }
    axis(document, &key, &nodes)
}

/// The inner part of a list in brackets that is not TOML, such as `[reno,cubic]`. A list in TOML is one value.
fn bracketed(values: &str) -> Option<&str> {
    let inner = values.trim().strip_prefix('[')?.strip_suffix(']')?;
    let is_word = document::parse_value(values.trim(), Source::File, 0).as_array().is_none();
    (is_word && !inner.contains(['[', ']'])).then_some(inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_bare_words_is_not_a_value() {
        assert_eq!(bracketed("[reno,cubic]"), Some("reno,cubic"));
        assert_eq!(["[\"a\", \"b\"]", "[1, 2]", "a,b", "[a],[b]"].map(bracketed), [None; 4]);
    }
}
