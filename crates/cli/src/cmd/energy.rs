//! `lasthop energy`: how long a battery lasts, where its joules go, and what would save most.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use lasthop_proto::energy::{PRESETS, Preset};
use lasthop_scenario::{Argument, Scenario};

use crate::energy::{How, Question, answer, show, write};
use crate::failure::Failure;
use crate::scenario::Text;
use crate::stop::Stop;
use crate::{Outcome, output};

const EXAMPLES: &str = "\
Examples:
  lasthop energy my.toml                    batteries of the file, or a usual laptop at both ends
  lasthop energy my.toml --hardware esp32   both ends are made of this
  lasthop energy my.toml --host receiver    by the bytes for a joule of the receiver
  lasthop energy my.toml --set host.sender.battery.base=3W
                                            a battery of your own
  lasthop energy my.toml -n 10 -o out       with a page, pictures and all numbers
  lasthop list hardware                     presets, and where their figures come from

It runs the scenario as it is and with one change at a time, all with the same random draws,
and in the end with all changes together that help. Exit code 1: nothing would help.
docs/energy.md says what the model rests on.";

/// Say how long batteries last, where their joules go, and which change of TCP would save most
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Scenario file, `-` for stdin, or the name of a built-in scenario
    #[arg(value_name = "FILE|NAME")]
    pub scenario: String,
    /// What both ends are made of, whatever the file says (`lasthop list hardware`)
    #[arg(long, value_name = "PRESET", value_parser = hardware)]
    pub hardware: Option<String>,
    /// Whose bytes for a joule the changes are ranked by [default: the sender, if it has a battery]
    #[arg(long, value_name = "HOST")]
    pub host: Option<String>,
    /// Number of seeds, each one run of each change; overrides `runs` of the file
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub seeds: Option<u32>,
    /// Change a value of the scenario; may be given again
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Write results and a page to this directory; the same command continues there after Ctrl-C
    #[arg(long, short, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Runs at the same time [default: one for each processor]
    #[arg(long, short, value_name = "N")]
    pub jobs: Option<NonZeroUsize>,
}

fn hardware(word: &str) -> Result<String, String> {
    match Preset::find(word) {
        Some(_) => Ok(word.to_owned()),
        None => {
            let names: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
            Err(format!("expected one of {}", names.join(", ")))
        }
    }
}

/// Runs the command.
pub fn run(args: &Args, json: bool) -> Result<Outcome, Failure> {
    let text = Text::load(&args.scenario)?;
    let question = question(args, &text, json)?;
    if let Some(dir) = &args.output {
        output::prepare(dir)?;
    }
    let stop = Stop::listen()?;
    let how = How { output: args.output.as_deref(), jobs: args.jobs, quiet: json, stop: &stop };
    let (document, complete) = answer(&question, &how)?;
    if let Some(dir) = args.output.as_deref().filter(|_| complete) {
        write(dir, &document)?;
    }
    if json && complete {
        output::print_json(&document)?;
    } else if !json && !document.hosts.is_empty() {
        let mut shown = show::text(&document);
        if let Some(dir) = args.output.as_deref().filter(|_| complete) {
            shown +=
                &format!("\nenergy.json and {} are in {}\n", crate::sweep::PAGE, dir.display());
        }
        output::print(&shown)?;
    }
    if complete {
        return Ok(if document.anything_helps { Outcome::Done } else { Outcome::No });
    }
    Ok(output::interrupted(args.output.as_deref()))
}

/// The scenario with batteries at the ends that need them.
fn question<'a>(args: &Args, text: &'a Text, json: bool) -> Result<Question<'a>, Failure> {
    let mut arguments: Vec<Argument> = args.set.iter().cloned().map(Argument::Set).collect();
    arguments.extend(args.seeds.map(|seeds| Argument::Set(format!("runs={seeds}"))));
    // Runs of the same seed meet the same channel in the simulator alone.
    arguments.push(Argument::Set("world=sim".to_owned()));
    // A part of a battery needs one to be a part of, which may still have to be chosen.
    let whole = |argument: &&Argument| {
        !argument.text().split('=').next().unwrap_or("").contains(".battery.")
    };
    let without: Vec<Argument> = arguments.iter().filter(whole).cloned().collect();
    let plain = one(text, &without, !json)?;
    let ends = ends(&plain)?;
    let names = ends.map(|i| plain.hosts[i].name.clone());
    let mut assumed = Vec::new();
    let none = plain.hosts.iter().all(|host| host.battery.is_none());
    let preset = args.hardware.as_deref().or_else(|| none.then_some(PRESETS[0].name));
    if let Some(preset) = preset {
        let on_air = on_air(&plain, text, &without, &names)?;
        if on_air.is_empty() {
            return Err(Failure::input(
                "neither end of the transfer hangs on a radio hop, so that no battery has a radio to feed",
                "put the `radio` first or last in the path, or give a host behind a wire a battery of its own: \
                 `--set host.NAME.battery=sens-800`",
            ));
        }
        for name in on_air {
            // What the command line says about the battery holds for the new one.
            arguments.insert(0, Argument::Set(format!("host.{name}.battery={preset}")));
            if args.hardware.is_none() {
                assumed.push(name);
            }
        }
    }
    let scenario = one(text, &arguments, false)?;
    let powered = |name: &&String| {
        scenario.hosts.iter().any(|host| host.name == **name && host.battery.is_some())
    };
    let host = match &args.host {
        Some(name) if powered(&name) => name.clone(),
        Some(name) => {
            let all = scenario.hosts.iter().filter(|host| host.battery.is_some());
            let all: Vec<&str> = all.map(|host| host.name.as_str()).collect();
            return Err(Failure::input(
                format!("`{name}` is no host with a battery"),
                format!(
                    "there are {}; or add one: `--set host.{name}.battery=sens-800`",
                    all.join(", ")
                ),
            ));
        }
        None => match names.iter().find(powered) {
            Some(name) => name.clone(),
            None => scenario
                .hosts
                .iter()
                .find(|host| host.battery.is_some())
                .map(|host| host.name.clone())
                .unwrap_or_default(),
        },
    };
    Ok(Question {
        text,
        arguments,
        name: scenario.name.clone(),
        scenario,
        ends,
        host,
        assumed,
        command: command(args),
    })
}

/// The one scenario of the file.
fn one(text: &Text, arguments: &[Argument], warn: bool) -> Result<Scenario, Failure> {
    let (plan, warnings) = text.plan(arguments)?;
    if warn {
        for warning in &warnings {
            eprint!("{}", text.rendered(warning, arguments));
        }
    }
    let axes: Vec<&str> = plan.axes.iter().map(|axis| axis.name.as_str()).collect();
    let mut cells = plan.cells.into_iter();
    match (cells.next(), cells.next()) {
        (Some(cell), None) => Ok(cell.scenario),
        _ => Err(Failure::input(
            format!("the scenario varies {}, and one question is asked at a time", axes.join(", ")),
            format!("choose a point, for example `--set {}=VALUE`", axes.first().unwrap_or(&"KEY")),
        )),
    }
}

/// Sender and receiver of the first transfer that is not other people's.
fn ends(scenario: &Scenario) -> Result<[usize; 2], Failure> {
    let transfer = scenario.transfers.iter().find(|transfer| !transfer.cross);
    transfer.map(|transfer| [transfer.from, transfer.to]).ok_or_else(|| {
        Failure::input(
            "every transfer of the scenario is `cross` traffic",
            "energy is told for the ends of a transfer that is not: leave out `cross = true` at one",
        )
    })
}

/// Those of the hosts `names` whose first link is a radio hop.
fn on_air(
    plain: &Scenario,
    text: &Text,
    arguments: &[Argument],
    names: &[String; 2],
) -> Result<Vec<String>, Failure> {
    let mut tried = arguments.to_vec();
    for name in names
        .iter()
        .filter(|name| plain.hosts.iter().any(|host| host.name == **name && host.battery.is_none()))
    {
        tried.insert(0, Argument::Set(format!("host.{name}.battery={}", PRESETS[0].name)));
    }
    let scenario = one(text, &tried, false)?;
    let layout = lasthop_lab::layout(&scenario);
    let hosts = scenario.hosts.iter().filter(|host| host.battery.is_some());
    let with_radio = hosts.zip(&layout.powered).filter(|(_, info)| info.radio.is_some());
    let found: Vec<String> = with_radio.map(|(host, _)| host.name.clone()).collect();
    Ok(names.iter().filter(|name| found.contains(name)).cloned().collect())
}

/// The command that does the same again.
fn command(args: &Args) -> String {
    let mut words = vec!["lasthop".to_owned(), "energy".to_owned(), output::quoted(&args.scenario)];
    words.extend(args.hardware.iter().map(|hardware| format!("--hardware {hardware}")));
    words.extend(args.host.iter().map(|host| format!("--host {}", output::quoted(host))));
    words.extend(args.seeds.map(|seeds| format!("--seeds {seeds}")));
    words.extend(args.set.iter().map(|set| format!("--set {}", output::quoted(set))));
    words.join(" ")
}
