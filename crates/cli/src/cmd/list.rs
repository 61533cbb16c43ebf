//! `lasthop list`: scenarios, systems, presets and others.

use std::fmt::Write as _;

use clap::ValueEnum;
use lasthop_papers::systems::{self, Kind, Status};
use lasthop_scenario::{Family, examples};
use serde::Serialize;

use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::{format, output, style};

/// List systems, claims, scenarios, schemes, presets or hardware
#[derive(clap::Args, Debug)]
pub struct ListArgs {
    /// What to list
    what: Topic,
    /// Print the text of this built-in scenario instead
    #[arg(long, value_name = "NAME")]
    show: Option<String>,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Topic {
    /// Every system of the papers, and whether it runs
    Systems,
    /// Every published result that `lasthop reproduce` tests
    Claims,
    /// Built-in scenarios
    Scenarios,
    /// Schemes for `lasthop compare`, and what must be deployed for each
    Schemes,
    /// TCP presets: lasthop's own, and those of the kernel's TCP in a testbed
    Presets,
    /// What runs on batteries, for `battery` in a scenario and `lasthop energy`
    Hardware,
}

/// Runs the command.
pub fn run(args: &ListArgs, json: bool) -> Result<Outcome, Failure> {
    if let Some(name) = &args.show {
        return show(args.what, name, json);
    }
    match args.what {
        Topic::Systems if json => {
            output::print_json(format::LIST, &serde_json::json!({ "systems": systems::systems() }))?
        }
        Topic::Systems => output::print(&table())?,
        Topic::Scenarios if json => {
            output::print_json(format::LIST, &serde_json::json!({ "scenarios": scenarios() }))?
        }
        Topic::Scenarios => {
            let rows = scenarios();
            output::print(&output::two_columns(
                rows.iter().map(|row| (row.name, row.what.as_str())),
            ))?;
        }
        Topic::Schemes if json => output::print_json(
            format::LIST,
            &serde_json::json!({ "schemes": lasthop_scenario::schemes() }),
        )?,
        Topic::Schemes => output::print(&schemes())?,
        Topic::Presets => super::presets::list(json)?,
        Topic::Hardware => super::hardware::list(json)?,
        Topic::Claims => super::reproduce::list(lasthop_papers::all_claims(), json)?,
    }
    Ok(Outcome::Done)
}

fn show(what: Topic, name: &str, json: bool) -> Result<Outcome, Failure> {
    if what != Topic::Scenarios {
        return Err(Failure::input(
            "`--show` needs `scenarios`",
            "for example `lasthop list scenarios --show west97-lan`",
        ));
    }
    let Some(example) = lasthop_scenario::example(name) else {
        let help = match lasthop_scenario::nearest_example(name) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "`lasthop list scenarios` names them".to_owned(),
        };
        return Err(Failure::input(format!("there is no built-in scenario `{name}`"), help));
    };
    if json {
        let value = serde_json::json!({ "name": example.name, "text": example.text });
        output::print_json(format::LIST, &serde_json::json!({ "scenario": value }))?;
    } else {
        output::exact(example.text)?;
    }
    Ok(Outcome::Done)
}

#[derive(Serialize)]
struct ScenarioRow {
    name: &'static str,
    what: String,
}

fn scenarios() -> Vec<ScenarioRow> {
    examples()
        .iter()
        .map(|example| ScenarioRow { name: example.name, what: example.summary() })
        .collect()
}

/// Schemes by family.
fn schemes() -> String {
    let all = lasthop_scenario::schemes();
    let width = all.iter().map(|scheme| scheme.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for family in all.chunk_by(|a, b| a.family == b.family) {
        let gap = if text.is_empty() { "" } else { "\n" };
        let title = match family[0].family {
            Family::Plain => "other",
            Family::EndToEnd => "in the hosts",
            Family::LinkLayer => "on the link",
            Family::Split => "connections split at the base station",
            Family::TcpAware => "a base station that looks into TCP",
            Family::ReturnPath => "on the way of the ACKs",
        };
        let _ = writeln!(text, "{gap}{}", style::heading(title));
        for scheme in family {
            let _ = writeln!(text, "  {:<width$}  {}", scheme.name, scheme.what);
            let sets: Vec<String> =
                scheme.settings().map(|(key, value)| format!("{key}={value}")).collect();
            let line =
                format!("to be changed: {}; sets {}", scheme.change.join(", "), sets.join(" "));
            let _ = writeln!(text, "  {:<width$}  {}", "", style::dim(&line));
        }
    }
    text
}

fn table() -> String {
    let all = systems::systems();
    let width = all.iter().map(|system| system.key.len()).max().unwrap_or(0);
    let mut text = String::new();
    let mut kind = None;
    for system in &all {
        if kind != Some(system.kind) {
            kind = Some(system.kind);
            let gap = if text.is_empty() { "" } else { "\n" };
            let _ = writeln!(text, "{gap}{}", style::heading(title(system.kind)));
        }
        let (key, description, selector) = (system.key, system.summary, system.selector());
        let _ = writeln!(text, "  {key:<width$}  {}  {description}", status(system.status));
        if !selector.is_empty() {
            let _ = writeln!(text, "  {:<width$}           {}", "", style::dim(&selector));
        }
    }
    let published = all.iter().filter(|system| system.tier > 0);
    let runs = published.clone().filter(|system| system.status != Status::Planned).count();
    let (of, more) = (published.count(), all.iter().filter(|system| system.tier == 0).count());
    let _ = writeln!(text, "\n{runs} of the {of} of the papers run, and {more} others");
    text
}

fn title(kind: Kind) -> &'static str {
    match kind {
        Kind::Sender => "TCP senders",
        Kind::Receiver => "TCP receivers",
        Kind::Agent => "agents of a base station",
        Kind::Link => "link layers",
        Kind::Mac => "medium access",
        Kind::Queue => "queues",
        Kind::Channel => "channels",
        Kind::Tool => "tools",
    }
}

/// Padded to seven columns without counting colours.
fn status(status: Status) -> String {
    match status {
        Status::Implemented => style::good("runs   "),
        Status::Planned => style::dim("planned"),
    }
}
