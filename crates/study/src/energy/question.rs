//! Prepares a scenario for an energy study: adds batteries at the ends that need them.

use lasthop_proto::energy::PRESETS;
use lasthop_scenario::{Argument, Cell, Host, Plan, Scenario};

use crate::{Error, Source};

/// The default battery.
const USUAL: &str = PRESETS[0].name;

/// A scenario ready for an energy study.
#[derive(Clone, Debug)]
pub struct Question<'a> {
    pub source: Source<'a>,
    /// All arguments, batteries included.
    pub arguments: Vec<Argument>,
    pub scenario: Scenario,
    /// The two hosts of the examined transfer.
    pub ends: [usize; 2],
    /// The host whose bytes per joule rank the changes.
    pub host: String,
    /// Hosts with assumed hardware.
    pub assumed: Vec<String>,
}

/// The arguments without those for keys of a battery, since the battery may not be selected yet.
pub fn without_parts(arguments: &[Argument]) -> Vec<Argument> {
    let key = |argument: &Argument| argument.text().split('=').next().unwrap_or("").to_owned();
    arguments.iter().filter(|argument| !key(argument).contains(".battery.")).cloned().collect()
}

impl<'a> Question<'a> {
    /// Prepares the scenario that `arguments` make of `source`. Both ends of its transfer get the preset `hardware`;
    /// without it they are as in the scenario, or of default hardware if no host has a battery. The changes are ranked
    /// by the bytes per joule of `host`; without it, of the sender if it has a battery.
    ///
    /// # Errors
    ///
    /// The scenario or `arguments` are invalid or vary a key. There is no suitable transfer, no radio with a battery,
    /// or no battery at `host`.
    pub fn new(
        source: Source<'a>,
        mut arguments: Vec<Argument>,
        hardware: Option<&str>,
        host: Option<&str>,
    ) -> Result<Question<'a>, Error> {
        let without = without_parts(&arguments);
        let plain = one(&source, &without)?;
        let ends = ends(&plain)?;
        let names = ends.map(|i| plain.hosts[i].name.as_str());
        let mut assumed = Vec::new();
        let none = powered(&plain).next().is_none();
        if let Some(preset) = hardware.or_else(|| none.then_some(USUAL)) {
            for name in on_air(&plain, &source, &without, &names)? {
                // Arguments about the battery apply to the new one.
                arguments.insert(0, battery(&name, preset));
                if hardware.is_none() {
                    assumed.push(name);
                }
            }
        }
        let scenario = one(&source, &arguments)?;
        let host = ranked_by(&scenario, &names, host)?;
        Ok(Question { source, arguments, scenario, ends, host, assumed })
    }

    /// The runs of the unchanged scenario.
    pub fn plan(&self) -> Plan {
        let cell = Cell { labels: Vec::new(), scenario: self.scenario.clone() };
        Plan { name: self.scenario.name.clone(), axes: Vec::new(), cells: vec![cell] }
    }

    /// The scenario with these changes, or the reason why there is none.
    pub(super) fn changed(&self, sets: &[String]) -> Result<Scenario, String> {
        let mut arguments = self.arguments.clone();
        arguments.extend(sets.iter().cloned().map(Argument::Set));
        let Source { text, name, .. } = self.source;
        let (plan, _) =
            lasthop_scenario::parse(text, name, &arguments).map_err(|error| error.to_string())?;
        plan.cells.into_iter().next().map(|cell| cell.scenario).ok_or_else(String::new)
    }
}

fn battery(host: &str, preset: &str) -> Argument {
    Argument::Set(format!("host.{host}.battery={preset}"))
}

/// The hosts that have a battery.
fn powered(scenario: &Scenario) -> impl Iterator<Item = &Host> {
    scenario.hosts.iter().filter(|host| host.battery.is_some())
}

/// The single scenario of the text.
fn one(source: &Source<'_>, arguments: &[Argument]) -> Result<Scenario, Error> {
    let (plan, _) = source.plan(arguments)?;
    let axes: Vec<&str> = plan.axes.iter().map(|axis| axis.name.as_str()).collect();
    let mut cells = plan.cells.into_iter();
    match (cells.next(), cells.next()) {
        (Some(cell), None) => Ok(cell.scenario),
        _ => Err(Error::input(
            format!("the scenario varies {}, but an answer is for one point", axes.join(", ")),
            format!("choose a point, for example `--set {}=VALUE`", axes.first().unwrap_or(&"KEY")),
        )),
    }
}

/// Sender and receiver of the first transfer that is no cross traffic.
fn ends(scenario: &Scenario) -> Result<[usize; 2], Error> {
    let transfer = scenario.transfers.iter().find(|transfer| !transfer.cross);
    transfer.map(|transfer| [transfer.from, transfer.to]).ok_or_else(|| {
        Error::input(
            "every transfer of the scenario is `cross` traffic",
            "the answer is for the ends of a transfer without it: leave out `cross = true` at one",
        )
    })
}

/// The hosts among `names` whose first link is a radio hop.
fn on_air(
    plain: &Scenario,
    source: &Source<'_>,
    arguments: &[Argument],
    names: &[&str; 2],
) -> Result<Vec<String>, Error> {
    let mut tried = arguments.to_vec();
    let bare = |name: &&&str| plain.hosts.iter().any(|h| h.name == **name && h.battery.is_none());
    for name in names.iter().filter(bare) {
        tried.insert(0, battery(name, USUAL));
    }
    let scenario = one(source, &tried)?;
    let layout = lasthop_sim::runs::layout(&scenario);
    let with_radio =
        powered(&scenario).zip(&layout.powered).filter(|(_, info)| info.radio.is_some());
    let found: Vec<&str> = with_radio.map(|(host, _)| host.name.as_str()).collect();
    if !names.iter().any(|name| found.contains(name)) {
        return Err(Error::input(
            "neither end of the transfer is next to a radio hop, so no battery powers a radio",
            "put the `radio` first or last in the path, or give a host behind a wire a battery of its own: \
             `--set host.NAME.battery=sens-800`",
        ));
    }
    Ok(names.iter().filter(|name| found.contains(name)).map(|name| (*name).to_owned()).collect())
}

/// The host that ranks the changes: `host` if it has a battery, else the first of the ends `names` that has one.
fn ranked_by(scenario: &Scenario, names: &[&str; 2], host: Option<&str>) -> Result<String, Error> {
    let all: Vec<&str> = powered(scenario).map(|host| host.name.as_str()).collect();
    match host {
        Some(name) if !all.contains(&name) => Err(Error::input(
            format!("`{name}` is no host with a battery"),
            format!(
                "there are {}; or add one: `--set host.{name}.battery=sens-800`",
                all.join(", ")
            ),
        )),
        Some(name) => Ok(name.to_owned()),
        None => {
            let first = names.iter().find(|name| all.contains(name)).or(all.first());
            Ok(first.map_or(String::new(), |name| (*name).to_owned()))
        }
    }
}
