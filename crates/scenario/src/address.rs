//! Dotted keys of `--set`, `--vary` and `[vary]`: `host.fixed.tcp`, `errors.mean` or `agent`.

mod routes;

use crate::document::{Node, Table, Value};
use crate::error::{Code, Diagnostic, Error, Location, did_you_mean, listed};
use crate::schema;
use crate::synonyms::{KEYS, Synonyms, is_loss, meaning, remark, same};

pub(crate) use routes::{find, set};

/// Maximum depth of a key; also bounds the recursion of [`set`].
const MAX_SEGMENTS: usize = 8;

/// A dotted key and its source location.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Dotted {
    pub segments: Vec<(String, Location)>,
}

/// One step into a document.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Step {
    Key(String, Location),
    Index(usize),
}

/// A way from the root of a document to a value.
pub(crate) type Route = Vec<Step>;

impl Dotted {
    /// Splits `text`, which begins at byte `from` of an argument, or of a quoted key.
    pub fn split(text: &str, at: &Location, from: usize) -> Dotted {
        let mut segments = Vec::new();
        let mut begin = 0;
        for part in text.split('.') {
            let lead = part.len() - part.trim_start().len();
            let start = from + begin + lead;
            let span = start..start + part.trim().len();
            segments.push((part.trim().to_owned(), Location { source: at.source, span }));
            begin += part.len() + 1;
        }
        Dotted { segments }
    }

    /// The key as it is written.
    pub fn text(&self) -> String {
        let words: Vec<&str> = self.segments.iter().map(|(word, _)| word.as_str()).collect();
        words.join(".")
    }

    /// The source location from the first segment to the last.
    pub fn location(&self) -> Location {
        let mut place =
            self.segments.first().map_or(Location::file(0..0), |(_, place)| place.clone());
        if let Some((_, last)) = self.segments.last() {
            place.span.end = last.span.end.max(place.span.start);
        }
        place
    }

    /// All positions in `document` to which the key refers; at least one.
    pub fn routes(&self, document: &Table) -> Result<Vec<Route>, Error> {
        let Some(((first, at), rest)) = self.segments.split_first() else {
            return Err(self.trouble(
                &Location::file(0..0),
                "the key is empty",
                "for example `tcp`",
            ));
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
                    _ => "a scenario has one name; results differ by their axes",
                };
                Err(self.trouble(at, &format!("`{word}` cannot be set"), help))
            }
            "transfer" | "visits" => Ok(tables(document, word, at, rest)),
            "host" => self.hosts(document, rest),
            "path" => self.in_path(&Site::path(document), at, rest).map(|route| vec![route]),
            "cell" => self.in_cells(document, at, rest),
            _ if schema::scenario().contains(&word) => Ok(vec![plain(&self.segments)]),
            _ if schema::STAGES.contains(&word) => self.of_kind(document, word, at, (true, rest)),
            _ if schema::stage_keys("radio").contains(&word) => {
                self.of_kind(document, "radio", at, (false, &self.segments))
            }
            _ if schema::stage_keys("agent").contains(&word) => {
                self.of_kind(document, "agent", at, (false, &self.segments))
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
            _ => {
                let named = |site: &Site<'_>| site.named(word).map(|i| site.within(i, false, rest));
                let found = Site::all(document).iter().find_map(named);
                found.map(|route| vec![route]).ok_or_else(|| self.unknown(document, word, at))
            }
        }
    }

    /// The only stage of a kind; if the wired part has none, the only one of each cell.
    fn of_kind(
        &self,
        document: &Table,
        kind: &str,
        at: &Location,
        (by_kind, rest): (bool, &[(String, Location)]),
    ) -> Result<Vec<Route>, Error> {
        let mut sites = Site::all(document);
        let has = |site: &Site<'_>| site.stages.iter().any(|(_, other)| *other == kind);
        if !has(&sites[0]) && sites.iter().any(has) {
            sites.retain(has);
        } else {
            sites.truncate(1);
        }
        let route = |site: &Site<'_>| Ok(site.within(self.only(site, kind, at)?, by_kind, rest));
        sites.iter().map(route).collect()
    }

    /// A key behind `path`.
    fn in_path(
        &self,
        site: &Site<'_>,
        at: &Location,
        rest: &[(String, Location)],
    ) -> Result<Route, Error> {
        let Some(((selector, at), rest)) = rest.split_first() else {
            let help = "say which stage: `path.2`, `path.radio` or `path.NAME`";
            return Err(self.trouble(at, "`path` alone is the whole path", help));
        };
        let index = self.select(site, selector, at)?;
        Ok(site.within(index, selector == site.stages[index].1, rest))
    }

    /// A key behind `cell`: of the cell of this name or number, or of all.
    fn in_cells(
        &self,
        document: &Table,
        at: &Location,
        rest: &[(String, Location)],
    ) -> Result<Vec<Route>, Error> {
        let cells = Site::cells(document);
        let help = "for example `cell.west.path.radio.rate`, or `cell.*.path.radio.rate` for all";
        let [(selector, cell_at), (word, word_at), rest @ ..] = rest else {
            return Err(self.trouble(at, "the key names a cell, but not a key of it", help));
        };
        let number = selector.parse::<usize>().ok().and_then(|n| n.checked_sub(1));
        let chosen: Vec<&Site<'_>> = cells
            .iter()
            .enumerate()
            .filter(|(i, cell)| {
                selector == "*" || cell.cell == Some(selector) || Some(*i) == number
            })
            .map(|(_, cell)| cell)
            .collect();
        if chosen.is_empty() {
            let names: Vec<&str> = cells.iter().filter_map(|cell| cell.cell).collect();
            return Err(Diagnostic::new(Code::UnknownKey, self.text(), cell_at)
                .message(format!("there is no cell `{selector}`"))
                .label("no such cell")
                .help(did_you_mean(selector, &names))
                .into());
        }
        let route = |site: &&Site<'_>| match word.as_str() {
            "path" => self.in_path(site, word_at, rest),
            _ => Err(self.trouble(word_at, &format!("a cell has no key `{word}` to be set"), help)),
        };
        chosen.iter().map(route).collect()
    }

    fn trouble(&self, at: &Location, message: &str, help: &str) -> Error {
        Diagnostic::new(Code::BadAxis, self.text(), at)
            .message(message)
            .label("here")
            .help(help)
            .into()
    }

    fn unknown(&self, document: &Table, word: &str, at: &Location) -> Error {
        // The key of a sysctl is behind its groups: `net.ipv4.tcp_sack`.
        let last = self.segments.last().map_or(word, |(last, _)| last.as_str());
        let meant = if word == "net" { last } else { word };
        let sites = Site::all(document);
        let candidates: Vec<&str> = schema::scenario()
            .iter()
            .copied()
            .filter(|key| !matches!(*key, "name" | "vary" | "schemes"))
            .chain(schema::STAGES.iter().copied())
            .chain(schema::stage_keys("radio").iter().copied())
            .chain(schema::stage_keys("agent").iter().copied())
            .chain(schema::keys("host").iter().copied())
            .chain(sites.iter().flat_map(|site| site.stages.iter().filter_map(|(name, _)| *name)))
            .collect();
        let mut known: Vec<(&str, String)> =
            candidates.into_iter().map(|key| (key, key.to_owned())).collect();
        for site in &sites {
            known.extend(site.inner_keys());
        }
        known.extend(of_transfer());
        let rest = self.text();
        let is_radio = |site: &Site<'_>| site.stages.iter().any(|(_, kind)| *kind == "radio");
        let guess = match find_key(meant, &known, meaning) {
            // A wire has a key of this name, but repairs at the radio do not help there.
            _ if is_loss(meant) && sites.iter().any(is_radio) => {
                "losses of the radio are `errors={ model = \"packet-loss\", p = \"1%\" }`, those of a wire \
                 `link.loss=1%`. "
                    .to_owned()
            }
            _ if host_names(document).contains(&word) => format!("did you mean `host.{rest}`? "),
            _ if word.starts_with("path[") => {
                "stages count from 1, as in `path.1.rate`. ".to_owned()
            }
            found if found.is_empty() => String::new(),
            found => format!("{} ", did_you_mean_key(meant, &found)),
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

    fn hosts(&self, document: &Table, rest: &[(String, Location)]) -> Result<Vec<Route>, Error> {
        let names = host_names(document);
        let Some(((name, at), tail)) = rest.split_first() else {
            let place = self.location();
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
                .help(did_you_mean(name, &names))
                .into());
        }
        Ok(vec![plain(&self.segments)])
    }

    /// The stage of a selector: its position in the path from 1, its name, or its kind if no other stage
    /// has this kind.
    fn select(&self, site: &Site<'_>, selector: &str, at: &Location) -> Result<usize, Error> {
        let stages = &site.stages;
        if let Ok(number) = selector.parse::<usize>() {
            return match number.checked_sub(1).filter(|i| *i < stages.len()) {
                Some(found) => Ok(found),
                None => {
                    let help = format!("stages are counted from 1; this path has {}", stages.len());
                    Err(self.trouble(at, &format!("there is no stage {selector}"), &help))
                }
            };
        }
        if let Some(index) = site.named(selector) {
            return Ok(index);
        }
        if schema::STAGES.contains(&selector) {
            return self.only(site, selector, at);
        }
        let names: Vec<&str> =
            schema::STAGES.iter().copied().chain(stages.iter().filter_map(|s| s.0)).collect();
        let key = find_key(selector, &site.inner_keys(), same);
        let stages = did_you_mean(selector, &names);
        let help = match key.is_empty() {
            true => format!("{stages}; or its position from 1, as in `path.2`"),
            false => did_you_mean_key(selector, &key),
        };
        Err(Diagnostic::new(Code::UnknownKey, self.text(), at)
            .message(format!("there is no stage `{selector}`"))
            .label("no such stage")
            .help(help)
            .into())
    }

    /// The only stage of a kind.
    fn only(&self, site: &Site<'_>, kind: &str, at: &Location) -> Result<usize, Error> {
        let stages = &site.stages;
        let found: Vec<usize> = (0..stages.len()).filter(|i| stages[*i].1 == kind).collect();
        match found.as_slice() {
            [index] => Ok(*index),
            [] => {
                let message =
                    format!("the path has no `{kind}` stage that `{}` could mean", self.text());
                let help = format!("add a `[[path]]` stage with `{kind} = ...` to the file");
                Err(self.trouble(at, &message, &help))
            }
            several => {
                let key = site.key();
                let positions: Vec<String> =
                    several.iter().map(|index| format!("{key}.{}", index + 1)).collect();
                let positions: Vec<&str> = positions.iter().map(String::as_str).collect();
                let message = format!("the path has {} `{kind}` stages", several.len());
                let help = format!("say which one: {}", listed(&positions));
                Err(self.trouble(at, &message, &help))
            }
        }
    }
}

/// A list of stages in the document: the path, or that of a cell.
struct Site<'t> {
    /// The number of the cell, from 0.
    number: Option<usize>,
    /// Its name.
    cell: Option<&'t str>,
    /// Given name and kind of every stage; the kind of an invalid stage is "".
    stages: Vec<(Option<&'t str>, &'static str)>,
}

impl<'t> Site<'t> {
    fn of(number: Option<usize>, table: &'t Table) -> Site<'t> {
        let items = table.items("path");
        let stages = items.iter().map(|item| {
            let table = item.as_table();
            let name = table.and_then(|table| table.get("name")).and_then(Node::as_str);
            let kind = schema::STAGES
                .iter()
                .copied()
                .find(|kind| table.is_some_and(|table| table.has(kind)));
            (name, kind.unwrap_or(""))
        });
        let cell = number.and_then(|_| table.get("name")).and_then(Node::as_str);
        Site { number, cell, stages: stages.collect() }
    }

    fn path(document: &'t Table) -> Site<'t> {
        Site::of(None, document)
    }

    fn cells(document: &'t Table) -> Vec<Site<'t>> {
        let cells = document.items("cell");
        let tables = cells.iter().enumerate().filter_map(|(i, cell)| Some((i, cell.as_table()?)));
        tables.map(|(i, cell)| Site::of(Some(i), cell)).collect()
    }

    /// The path first, then the cells.
    fn all(document: &'t Table) -> Vec<Site<'t>> {
        core::iter::once(Site::path(document)).chain(Site::cells(document)).collect()
    }

    fn named(&self, name: &str) -> Option<usize> {
        self.stages.iter().position(|(given, _)| *given == Some(name))
    }

    /// Its dotted key.
    fn key(&self) -> String {
        self.number.map_or("path".to_owned(), |i| format!("cell.{}.path", i + 1))
    }

    /// The keys in the braces of its stages, with the dotted keys that lead to them.
    fn inner_keys(&self) -> Vec<(&'static str, String)> {
        let mut all = Vec::new();
        for (i, (_, kind)) in
            self.stages.iter().enumerate().filter(|(_, stage)| !stage.1.is_empty())
        {
            let is_only = self.stages.iter().filter(|(_, other)| other == kind).count() == 1;
            let stage = match (is_only, self.number) {
                (true, None) => (*kind).to_owned(),
                (true, Some(_)) => format!("{}.{kind}", self.key()),
                (false, _) => format!("{}.{}", self.key(), i + 1),
            };
            let keys = schema::inner_keys(kind).iter();
            all.extend(keys.map(|key| (*key, format!("{stage}.{key}"))));
        }
        all
    }

    /// A key within a stage. `path.radio.rate` means the `rate` in `radio = { ... }`, and `path.radio.errors`
    /// the `errors` next to it: no key is in both tables.
    fn within(&self, index: usize, by_kind: bool, rest: &[(String, Location)]) -> Route {
        let at = rest.first().map_or(Location::file(0..0), |(_, at)| at.clone());
        let mut route = Vec::new();
        if let Some(cell) = self.number {
            route.extend([Step::Key("cell".to_owned(), at.clone()), Step::Index(cell)]);
        }
        route.extend([Step::Key("path".to_owned(), at.clone()), Step::Index(index)]);
        let kind = self.stages[index].1;
        let is_stage_key = |word: &str| {
            word == "name"
                || schema::STAGES.contains(&word)
                || schema::stage_keys("radio").contains(&word)
                || schema::stage_keys("agent").contains(&word)
        };
        let inside = match rest.first() {
            None => by_kind,
            Some((word, _)) => kind != "agent" && !kind.is_empty() && !is_stage_key(word),
        };
        if inside {
            route.push(Step::Key(kind.to_owned(), at));
        }
        route.extend(plain(rest));
        route
    }
}

/// The keys of a transfer, with their dotted keys.
fn of_transfer() -> Vec<(&'static str, String)> {
    schema::keys("transfer").iter().map(|key| (*key, format!("transfer.{key}"))).collect()
}

/// The comparison of a word with keys.
type Like = for<'a> fn(&str, &Synonyms, &[&'a str]) -> Option<&'a str>;

/// The dotted keys that `word` may mean, at most three.
fn find_key(word: &str, known: &[(&str, String)], like: Like) -> Vec<String> {
    let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
    let Some(near) = like(word, KEYS, &names) else { return Vec::new() };
    let dotted = known.iter().filter(|(name, _)| *name == near).map(|(_, dotted)| dotted.clone());
    dotted.take(3).collect()
}

/// The suggestion of these keys for a word.
fn did_you_mean_key(word: &str, keys: &[String]) -> String {
    let quoted: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
    let name = keys[0].rsplit('.').next().unwrap_or_default();
    let remark = remark(word, name).map(|text| format!(" ({text})")).unwrap_or_default();
    format!("did you mean {}?{remark}", quoted.join(" or "))
}

fn keys(words: &[&str], at: &Location) -> Route {
    words.iter().map(|word| Step::Key((*word).to_owned(), at.clone())).collect()
}

fn plain(segments: &[(String, Location)]) -> Route {
    segments.iter().map(|(word, at)| Step::Key(word.clone(), at.clone())).collect()
}

fn host_names(document: &Table) -> Vec<&str> {
    let hosts = document.get("host").and_then(Node::as_table);
    hosts
        .map(|table| table.entries.iter().map(|entry| entry.key.as_str()).collect())
        .unwrap_or_default()
}

/// A key of the transfer, or of the visits: of all such tables, unless the key has a number.
fn tables(document: &Table, word: &str, at: &Location, rest: &[(String, Location)]) -> Vec<Route> {
    let root = Step::Key(word.to_owned(), at.clone());
    let count = match document.get(word).map(|node| &node.value) {
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
