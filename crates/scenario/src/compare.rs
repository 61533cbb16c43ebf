//! One scenario under several schemes: a plan whose first axis is the scheme.
//!
//! The streams of random draws are named by seed and stage, and no scheme renames a stage. So all schemes meet the same
//! draws: common random numbers, which let their runs be compared pair by pair.

use lasthop_proto::units::Rate;
use serde::Serialize;

use crate::address::{Dotted, set};
use crate::build;
use crate::document::{self, Node, Table, Value};
use crate::error::{Code, Diagnostic, Error, Place, Warning};
use crate::model::{HostSide, Scenario, StageKind};
use crate::plan::{Axis, Cell, Plan};
use crate::schema;
use crate::schemes::{self, DATA_TO_RADIO, Scheme};
use crate::vary::{self, Argument, AxisSpec, Point};

/// The name of the scenario as it is.
pub const AS_IS: &str = "as-is";

/// Which schemes to compare.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Wanted {
    /// The labelled points of the scenario's own axis, else its own `[schemes]`, else all.
    #[default]
    Own,
    /// Every scheme that applies.
    All,
    /// These: schemes, or points of the scenario's own axis.
    Named(Vec<String>),
}

/// A scheme that is not compared, and why.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LeftOut {
    /// Its name.
    pub name: String,
    /// Why.
    pub reason: String,
}

/// What to run for a comparison.
#[derive(Clone, PartialEq, Debug)]
pub struct Comparison {
    /// The runs: the first axis is the scheme, the second, if there is one, the errors.
    pub plan: Plan,
    /// The schemes in the order of the first axis.
    pub schemes: Vec<Scheme>,
    /// The one that the others are compared with, by its place in `schemes`.
    pub baseline: usize,
    /// Schemes that do not apply.
    pub left_out: Vec<LeftOut>,
    /// What the scenario says and probably does not mean.
    pub warnings: Vec<Warning>,
}

/// Lays `text` out for a comparison.
///
/// `errors` are probabilities that a packet with data is lost, which replace the errors of the scenario; without them an
/// axis of the scenario that changes nothing but errors is kept. All its other axes stay at their first points.
/// `baseline` names a scheme of the comparison; without it that is the scenario as it is, or the first point of its axis.
///
/// # Errors
///
/// What is wrong with the scenario itself, or with `errors`; a scheme that does not fit is left out instead. A name
/// that no scheme has is an error as well; [`schemes::schemes_of`] tells those there are.
pub fn compare(
    text: &str,
    name: &str,
    arguments: &[Argument],
    wanted: &Wanted,
    errors: &[String],
    baseline: Option<&str>,
) -> Result<Comparison, Error> {
    let table = schemes::schemes_of(text)?;
    let mut document = document::parse(text)?;
    let own = schemes::take(&mut document)?;
    let mut axes = vary::apply(&mut document, arguments)?;
    if let Some(at) = insert_agent(&mut document) {
        axes.iter_mut().for_each(|axis| axis.insert_stage(at));
    }
    let labelled = axes.iter().position(|axis| axis.is_labelled() && !axis.only_errors());
    let labelled = labelled.map(|i| axes.remove(i));
    let kept = axes.iter().position(AxisSpec::only_errors).filter(|_| errors.is_empty());
    let kept = kept.map(|i| axes.remove(i));
    let first_of = |axis: &AxisSpec, document: &mut Table| {
        axis.points.first().map_or(Ok(()), |point| point.apply(document))
    };
    for axis in &axes {
        first_of(axis, &mut document)?;
    }
    // The points of the labelled axis stand beside each other, not on top of its first one.
    let bare = document.clone();
    if let Some(axis) = &labelled {
        first_of(axis, &mut document)?;
    }
    let losses = match &kept {
        Some(axis) => Losses::Axis(axis),
        None => Losses::Given(given(&document, errors)?),
    };
    let (scenario, notes) = build::scenario(&losses.apply(0, document.clone())?, name)?;
    let warnings =
        notes.into_iter().filter(|note| !note.in_every_cell).map(|note| note.warning).collect();
    let builder =
        Builder { name, base: &document, bare: &bare, losses: &losses, scenario: &scenario };

    let points = labelled.as_ref().map_or(&[][..], |axis| &axis.points);
    let candidates = candidates(wanted, points, &own, &table)?;
    let own_axis = matches!(wanted, Wanted::Own) && !points.is_empty();
    let mut comparison = Comparison {
        plan: Plan {
            name: scenario.name.clone(),
            axes: vec![Axis { name: "scheme".to_owned(), labels: Vec::new() }],
            cells: Vec::new(),
        },
        schemes: Vec::new(),
        baseline: 0,
        left_out: Vec::new(),
        warnings,
    };
    if let Some(axis) = losses.axis() {
        comparison.plan.axes.push(axis);
    }
    if !own_axis {
        let cells = builder.cells(AS_IS, &document)?;
        comparison.add(Scheme::plain(AS_IS, "the scenario as it is"), cells);
    }
    let mut first = None;
    for (scheme, point) in candidates {
        match builder.cells_of(&scheme, point) {
            Ok(cells)
                if first.as_ref().is_some_and(|first: &Scenario| *first == cells[0].scenario)
                    || !own_axis && cells[0].scenario == scenario =>
            {
                let reason = match own_axis {
                    true => "it changes nothing about the first point",
                    false => "the scenario is so already",
                };
                comparison.left_out.push(LeftOut { name: scheme.name, reason: reason.to_owned() });
            }
            Ok(cells) => {
                if own_axis {
                    first.get_or_insert_with(|| cells[0].scenario.clone());
                }
                comparison.add(scheme, cells);
            }
            Err(reason) => comparison.left_out.push(LeftOut { name: scheme.name, reason }),
        }
    }
    if let Some(wanted) = baseline {
        let found = comparison.schemes.iter().position(|scheme| scheme.name == wanted);
        comparison.baseline = found.ok_or_else(|| {
            let names: Vec<&str> = comparison.schemes.iter().map(|s| s.name.as_str()).collect();
            no_scheme(format!("`{wanted}` is not in the comparison and cannot be its baseline"))
                .help(crate::error::meant(wanted, &names))
        })?;
    }
    Ok(comparison)
}

fn trouble(message: String) -> Diagnostic {
    Diagnostic::new(Code::BadValue, "", &Place::file(0..0)).message(message).label("this scenario")
}

fn no_scheme(message: String) -> Diagnostic {
    Diagnostic::new(Code::NoScheme, "", &Place::file(0..0)).message(message).label("this scenario")
}

type Candidate<'p> = (Scheme, Option<&'p Point>);

/// What is wanted, in order.
fn candidates<'p>(
    wanted: &Wanted,
    points: &'p [Point],
    own: &[Scheme],
    table: &[Scheme],
) -> Result<Vec<Candidate<'p>>, Error> {
    // A point that is named like a scheme is that scheme, put in the file's own keys.
    let of_point = |point: &'p Point| {
        let known = table.iter().find(|scheme| scheme.name == point.label);
        let mut scheme = known.cloned().unwrap_or_else(|| Scheme::plain(&point.label, ""));
        scheme.set = point.settings();
        (scheme, Some(point))
    };
    let plain = |scheme: &Scheme| (scheme.clone(), None);
    match wanted {
        Wanted::Own if !points.is_empty() => Ok(points.iter().map(of_point).collect()),
        Wanted::Own if !own.is_empty() => Ok(own.iter().map(plain).collect()),
        Wanted::Own | Wanted::All => Ok(table.iter().map(plain).collect()),
        Wanted::Named(names) => {
            let mut seen: Vec<&str> = Vec::new();
            let mut found = Vec::new();
            for name in names.iter().filter(|name| name.as_str() != AS_IS) {
                if seen.contains(&name.as_str()) {
                    continue;
                }
                seen.push(name);
                let point = points.iter().find(|point| point.label == *name).map(of_point);
                let scheme = table.iter().find(|scheme| scheme.name == *name).map(plain);
                let Some(one) = point.or(scheme) else {
                    let known: Vec<&str> = table.iter().map(|s| s.name.as_str()).collect();
                    return Err(no_scheme(format!("there is no scheme `{name}`"))
                        .help(crate::error::meant(name, &known))
                        .into());
                };
                found.push(one);
            }
            Ok(found)
        }
    }
}

impl Comparison {
    fn add(&mut self, scheme: Scheme, cells: Vec<Cell>) {
        self.plan.axes[0].labels.push(scheme.name.clone());
        self.plan.cells.extend(cells);
        self.schemes.push(scheme);
    }

    /// How many points the axis of errors has; one where there is none.
    pub fn points(&self) -> usize {
        self.plan.axes.get(1).map_or(1, |axis| axis.labels.len())
    }
}

/// The losses under which the schemes are compared.
enum Losses<'a> {
    Axis(&'a AxisSpec),
    Given(Vec<(String, Vec<(Vec<crate::address::Step>, Node)>)>),
}

impl Losses<'_> {
    fn count(&self) -> usize {
        match self {
            Losses::Axis(axis) => axis.points.len(),
            Losses::Given(points) => points.len().max(1),
        }
    }

    fn axis(&self) -> Option<Axis> {
        match self {
            Losses::Axis(axis) => Some(Axis {
                name: axis.name.clone(),
                labels: axis.points.iter().map(|point| point.label.clone()).collect(),
            }),
            Losses::Given(points) if points.is_empty() => None,
            Losses::Given(points) => Some(Axis {
                name: "loss".to_owned(),
                labels: points.iter().map(|(label, _)| label.clone()).collect(),
            }),
        }
    }

    fn label(&self, i: usize) -> Option<String> {
        self.axis().and_then(|axis| axis.labels.get(i).cloned())
    }

    fn apply(&self, i: usize, mut document: Table) -> Result<Table, Error> {
        match self {
            Losses::Axis(axis) => axis.points[i].apply(&mut document)?,
            Losses::Given(points) => {
                for (route, node) in points.get(i).map_or(&[][..], |(_, changes)| changes) {
                    set(&mut document, route, node, "errors")?;
                }
            }
        }
        Ok(document)
    }
}

/// `errors` as changes of the last radio, or of the only router that others use too.
fn given(
    document: &Table,
    errors: &[String],
) -> Result<Vec<(String, Vec<(Vec<crate::address::Step>, Node)>)>, Error> {
    let place = |kind: &str| stages(document).iter().rposition(|stage| stage.has(kind));
    let mut points = Vec::with_capacity(errors.len());
    for word in errors {
        let node = |text: &str| {
            let mut node = document::parse_value(text, 0, 0);
            node.forget_places();
            node
        };
        let zero = word.trim_end_matches('%').parse() == Ok(0.0_f64);
        let changes: Vec<(String, Node)> = match (place("radio"), place("cross")) {
            (Some(at), _) => {
                let model =
                    format!("{{ model = \"packet-loss\", p = \"{word}\", on = [\"data\"] }}");
                let model = if zero { "none".to_owned() } else { model };
                // What the file says of single directions would be added to it.
                let stage = stages(document)[at];
                let sides = schema::ERRORS.iter().filter(|key| **key != "errors" && stage.has(key));
                let sides = sides.map(|key| (format!("path.{}.{key}", at + 1), node("none")));
                sides.chain([(format!("path.{}.errors", at + 1), node(&model))]).collect()
            }
            (None, Some(at)) => {
                vec![(format!("path.{}.cross.loss", at + 1), node(&format!("\"{word}\"")))]
            }
            (None, None) => {
                return Err(trouble("the path has neither a radio nor a router that could lose packets".to_owned())
                    .help("add a `[[path]]` stage with `radio = { ... }` to the file, or leave the losses out")
                    .into());
            }
        };
        let mut routed = Vec::new();
        for (key, node) in changes {
            let key = Dotted::split(&key, &Place::file(0..0), 0);
            routed.extend(key.routes(document)?.into_iter().map(|route| (route, node.clone())));
        }
        points.push((word.clone(), routed));
    }
    Ok(points)
}

fn stages(document: &Table) -> Vec<&Table> {
    let items = document.get("path").and_then(Node::as_array).unwrap_or_default();
    // A stage that is no table is somebody else's error; here it is a stage of no kind.
    static NOTHING: Table = Table { entries: Vec::new(), inline: false };
    items.iter().map(|item| item.as_table().unwrap_or(&NOTHING)).collect()
}

/// The last radio and the agent of its base station.
fn last_hop(document: &Table) -> Option<(usize, Option<usize>)> {
    let stages = stages(document);
    let radio = stages.iter().rposition(|stage| stage.has("radio"))?;
    let before = stages[..radio].iter().rposition(|stage| stage.has("radio")).map_or(0, |i| i + 1);
    let agent = (before..radio).rev().find(|i| stages[*i].has("agent"));
    Some((radio, agent))
}

/// Gives the last radio a base station with an agent that does nothing, if it has none; says where.
fn insert_agent(document: &mut Table) -> Option<usize> {
    let (radio, agent) = last_hop(document)?;
    if agent.is_some() {
        return None;
    }
    let at = Place::file(0..0);
    let mut stage = Table::default();
    let none = Node { at: at.clone(), value: Value::String("none".to_owned()) };
    stage.put("agent", &at, none);
    if let Some(Value::Array(items)) = document.get_mut("path").map(|node| &mut node.value) {
        items.insert(radio, Node { at, value: Value::Table(stage) });
    }
    Some(radio)
}

/// Builds the cells of schemes.
struct Builder<'a> {
    name: &'a str,
    /// The scenario as it is.
    base: &'a Table,
    /// The same without the first point of its labelled axis.
    bare: &'a Table,
    losses: &'a Losses<'a>,
    /// The scenario as it is at the first loss.
    scenario: &'a Scenario,
}

impl Builder<'_> {
    fn cells(&self, label: &str, document: &Table) -> Result<Vec<Cell>, Error> {
        (0..self.losses.count())
            .map(|i| {
                let document = self.losses.apply(i, document.clone())?;
                let (scenario, _) = build::scenario(&document, self.name)?;
                let labels =
                    std::iter::once(label.to_owned()).chain(self.losses.label(i)).collect();
                Ok(Cell { labels, scenario })
            })
            .collect()
    }

    /// The cells of a scheme, or why it does not apply.
    fn cells_of(&self, scheme: &Scheme, point: Option<&Point>) -> Result<Vec<Cell>, String> {
        let document = match point {
            Some(point) => {
                let mut document = self.bare.clone();
                point.apply(&mut document).map_err(|error| error.message.clone())?;
                document
            }
            None => self.changed(scheme)?,
        };
        self.cells(&scheme.name, &document).map_err(|error| error.message.clone())
    }

    fn changed(&self, scheme: &Scheme) -> Result<Table, String> {
        let from_left = |host: usize| self.scenario.hosts[host].side == HostSide::Left;
        if scheme.needs.iter().any(|need| need == DATA_TO_RADIO)
            && !self.scenario.transfers.iter().any(|transfer| from_left(transfer.from))
        {
            return Err(
                "it helps data that travels towards the radio, and there is none".to_owned()
            );
        }
        let mut document = self.base.clone();
        for (key, node) in &scheme.set {
            for (key, node) in self.resolved(key, node)? {
                let dotted = Dotted::split(&key, &Place::file(0..0), 0);
                let routes = dotted.routes(&document).map_err(|error| error.message.clone())?;
                for route in routes {
                    set(&mut document, &route, &node, &key)
                        .map_err(|error| error.message.clone())?;
                }
            }
        }
        Ok(document)
    }

    /// The keys of this scenario that a scheme's key means.
    fn resolved(&self, key: &str, node: &Node) -> Result<Vec<(String, Node)>, String> {
        let (first, rest) = key.split_once('.').unwrap_or((key, ""));
        let hosts = |of: fn(&crate::model::Transfer) -> usize| {
            let mut hosts: Vec<usize> = self.scenario.transfers.iter().map(of).collect();
            hosts.sort_unstable();
            hosts.dedup();
            let name = |i: &usize| &self.scenario.hosts[*i].name;
            Ok(hosts.iter().map(|i| (format!("host.{}.{rest}", name(i)), node.clone())).collect())
        };
        let no_radio = || "the path has no radio".to_owned();
        match first {
            "sender" => hosts(|transfer| transfer.from),
            "receiver" => hosts(|transfer| transfer.to),
            "agent" => {
                self.at(last_hop(self.base).and_then(|(_, agent)| agent), key, node, no_radio)
            }
            _ if schema::AGENT_OPTIONS.contains(&first) => {
                self.at(last_hop(self.base).and_then(|(_, agent)| agent), key, node, no_radio)
            }
            _ if schema::HOP.contains(&first) || schema::ERRORS.contains(&first) => {
                let at = last_hop(self.base).map(|(radio, _)| radio);
                match (at, self.computed(at, first, node)) {
                    (Some(_), None) => Ok(Vec::new()),
                    (_, node) => {
                        self.at(at, key, node.as_ref().unwrap_or(&Node::nothing()), no_radio)
                    }
                }
            }
            "return" => self.on_the_way_back(rest, node),
            _ => Ok(vec![(key.to_owned(), node.clone())]),
        }
    }

    fn at(
        &self,
        stage: Option<usize>,
        key: &str,
        node: &Node,
        missing: impl Fn() -> String,
    ) -> Result<Vec<(String, Node)>, String> {
        let stage = stage.ok_or_else(missing)?;
        Ok(vec![(format!("path.{}.{key}", stage + 1), node.clone())])
    }

    /// A value of `$window>N` or `$pacing` for this radio; `None` where the default or the file's own value is right.
    fn computed(&self, radio: Option<usize>, key: &str, node: &Node) -> Option<Node> {
        let Some(word) = node.as_str().and_then(|word| word.strip_prefix('$')) else {
            return Some(node.clone());
        };
        let StageKind::Radio(radio_stage) = &self.scenario.path.get(radio?)?.kind else {
            return None;
        };
        if stages(self.base)[radio?].has(key) {
            return None;
        }
        let value = match word.split_once('>') {
            Some((_, floor)) => {
                // Two round trips of packets of a usual size, so that one loss does not empty the hop.
                let bytes = 2.0
                    * 2.0
                    * radio_stage.radio.delay.as_secs_f64()
                    * radio_stage.radio.rate.bps() as f64
                    / 8.0;
                let packets = (bytes / 1500.0).ceil() as i64 + 8;
                let packets = packets.min(1024);
                let needed = floor.parse().is_ok_and(|floor: i64| packets > floor);
                needed.then(|| Value::Integer(Some(packets), packets.to_string()))?
            }
            None if radio_stage.radio.half_duplex => return None,
            None => Value::String("full-duplex".to_owned()),
        };
        Some(Node { at: Place::file(0..0), value })
    }

    /// A key of the slowest stage that ACKs wait at.
    fn on_the_way_back(&self, key: &str, node: &Node) -> Result<Vec<(String, Node)>, String> {
        let data_right = self
            .scenario
            .transfers
            .first()
            .is_none_or(|transfer| self.scenario.hosts[transfer.from].side == HostSide::Left);
        let of_line = |line: &lasthop_proto::link::LineConfig| {
            if data_right { line.rate_left } else { line.rate_right }
        };
        let rates = self.scenario.path.iter().enumerate().filter_map(|(i, stage)| {
            let rate: Option<Rate> = match &stage.kind {
                StageKind::Link(line) => of_line(line),
                StageKind::Serial(serial) => of_line(&serial.line),
                StageKind::Radio(radio) => Some(radio.radio.rate),
                _ => None,
            };
            Some((rate?, i))
        });
        let Some((_, at)) = rates.min() else {
            return Err("no stage on the way of the ACKs has a rate".to_owned());
        };
        let stage = stages(self.base)[at];
        let kind = if stage.has("radio") { "radio" } else { "link" };
        if key == "header-compression" && kind == "radio" {
            return Err(
                "the slowest stage on the way of the ACKs is a radio, which compresses no headers"
                    .to_owned(),
            );
        }
        let both = |key: &str| {
            stage.get(kind).and_then(Node::as_table).is_some_and(|table| table.has(key))
        };
        let key = match key {
            "discipline" if !both("discipline") => {
                format!("discipline-{}", if data_right { "left" } else { "right" })
            }
            key => key.to_owned(),
        };
        Ok(vec![(format!("path.{}.{kind}.{key}", at + 1), node.clone())])
    }
}

impl Node {
    fn nothing() -> Node {
        Node { at: Place::file(0..0), value: Value::Bool(false) }
    }
}
