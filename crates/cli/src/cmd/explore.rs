//! `lasthop explore`: all combinations of fates of the first packets.

use std::sync::atomic::{AtomicU64, Ordering};

use lasthop_explore::{Exploration, Method, Options, Pattern, Run, explore, routers};
use lasthop_proto::link::Fate;
use lasthop_report::model::{Column, Table};
use lasthop_report::number::plural;
use lasthop_report::table::render;
use lasthop_scenario::{Argument, Plan};
use rayon::prelude::*;
use serde::Serialize;

use crate::failure::Failure;
use crate::progress::Progress;
use crate::scenario::Text;
use crate::stop::Stop;
use crate::study_args::Jobs;
use crate::{Outcome, format, output, style};

const EXAMPLES: &str = "\
Examples:
  lasthop explore explore                       one fault, every agent with every sender
  lasthop explore explore --set agent=snoop --faults 2
                                                every pair of faults
  lasthop explore explore --attacks             forged segments behind each packet
  lasthop explore my.toml --fates drop,late --first 60
                                                losses and reordering, among more packets

A scenario names the places of faults: `[[path]] cross = { fates = \"\" }`; every other router
with `cross` is one too. Each run must deliver what was sent, end, and leave nothing behind.
Exit code 1: something does not hold. docs/how-to/explore.md says how to read the table.";

/// Run every combination of losses, copies, delays and damage of the first packets, and check each run
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Scenario file, `-` for stdin, or the name of a built-in scenario
    #[arg(value_name = "FILE|NAME")]
    scenario: String,
    /// Most faults in one run; runs multiply by about 200 with each
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=8))]
    faults: u32,
    /// Faults meet the first so many packets of both directions, counted over all routers
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = clap::value_parser!(u64).range(1..=1000))]
    first: u64,
    /// Which fates, separated by commas [default: all that are not forged]
    #[arg(long, value_name = "FATES", value_delimiter = ',', conflicts_with = "attacks",
          value_parser = [&Fate::FAULTS[..], &Fate::FORGERIES[..]].concat().into_iter().map(|(word, _)| word).collect::<Vec<_>>())]
    fates: Vec<String>,
    /// Forged segments of a third party instead of faults
    #[arg(long)]
    attacks: bool,
    /// Seed of all runs
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Begin every run anew instead of copying a run midway: slower, the same results
    #[arg(long)]
    replay: bool,
    /// Change a value of the scenario; may be given again
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Explore each of these values; may be given again
    #[arg(long, value_name = "KEY=A,B,...")]
    vary: Vec<String>,
    #[command(flatten)]
    jobs: Jobs,
}

/// The answer.
#[derive(Serialize, Debug)]
struct Answer {
    faults: u32,
    first: u64,
    fates: Vec<&'static str>,
    /// Names of the varied keys.
    axes: Vec<String>,
    runs: u64,
    violations: u64,
    complete: bool,
    cells: Vec<Cell>,
}

/// One combination of the axes.
#[derive(Serialize, Debug)]
struct Cell {
    labels: Vec<String>,
    #[serde(flatten)]
    found: Exploration,
    /// The commands that repeat the first violations.
    commands: Vec<String>,
}

/// Runs the command.
pub fn run(args: &Args, json: bool) -> Result<Outcome, Failure> {
    let mut arguments: Vec<Argument> = args.set.iter().cloned().map(Argument::Set).collect();
    arguments.extend(args.vary.iter().cloned().map(Argument::Vary));
    arguments.push(Argument::Set("world=sim".to_owned()));
    let text = Text::load(&args.scenario, &arguments)?;
    let (plan, warnings) = text.plan(&arguments)?;
    // Combinations of a matrix may have no effect on purpose.
    if !json && plan.cells.len() == 1 {
        text.warn(&warnings, &arguments);
    }
    if let Some(cell) = plan.cells.iter().find(|cell| routers(&cell.scenario).is_empty()) {
        return Err(Failure::input(
            format!("{}: no router of `{}` decides about packets", text.origin, cell.scenario.name),
            "add one to the path where packets meet their fates:\n\n    [[path]]\n    name = \"air\"\n    \
             cross = { fates = \"\" }",
        ));
    }
    let all = |fates: &[(&str, Fate)]| fates.iter().map(|(_, fate)| *fate).collect();
    let fates: Vec<Fate> = match args.fates.is_empty() {
        true if args.attacks => all(&Fate::FORGERIES),
        true => all(&Fate::FAULTS),
        false => args.fates.iter().filter_map(|word| Fate::parse(word)).collect(),
    };
    let method = if args.replay { Method::Replay } else { Method::Fork };
    let options = Options { faults: args.faults, first: args.first, fates, method };
    let stop = Stop::listen()?;
    let progress = Progress::new(plan.cells.len() as u64, json);
    let cells = explore_cells(args, &plan, &options, &stop, &progress)?;
    progress.finish();
    let cells: Vec<Cell> = plan
        .cells
        .iter()
        .zip(cells)
        .map(|(cell, found)| {
            let violations = found.first_violations.iter();
            let commands = violations
                .map(|violation| command(args, &plan, &cell.labels, &violation.pattern))
                .collect();
            Cell { labels: cell.labels.clone(), found, commands }
        })
        .collect();
    let answer = Answer {
        faults: args.faults,
        first: args.first,
        fates: options.fates.iter().map(|fate| fate.word()).collect(),
        axes: plan.axes.iter().map(|axis| axis.name.clone()).collect(),
        runs: cells.iter().map(|cell| cell.found.runs).sum(),
        violations: cells.iter().map(|cell| cell.found.violations).sum(),
        complete: cells.iter().all(|cell| cell.found.complete),
        cells,
    };
    if json {
        output::print_json(format::EXPLORE, &answer)?;
    } else {
        output::print(&page(&plan, args, &answer))?;
    }
    Ok(match (answer.complete, answer.violations) {
        (false, _) => Outcome::Interrupted,
        (true, 0) => Outcome::Done,
        (true, _) => Outcome::No,
    })
}

fn explore_cells(
    args: &Args,
    plan: &Plan,
    options: &Options,
    stop: &Stop,
    progress: &Progress,
) -> Result<Vec<Exploration>, Failure> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(args.jobs.count()).build();
    let pool = pool.map_err(|error| Failure::input(format!("no threads: {error}"), ""))?;
    let runs = AtomicU64::new(0);
    let done = |made: u64| {
        let all = runs.fetch_add(made, Ordering::Relaxed) + made;
        progress.show(plural(all, "run"));
        !stop.requested()
    };
    Ok(pool.install(|| {
        let cells = plan.cells.par_iter();
        cells
            .map(|cell| {
                if stop.requested() {
                    return Exploration::default();
                }
                let found = explore(&cell.scenario, args.seed, options, &done);
                progress.step(&plural(runs.load(Ordering::Relaxed), "run"));
                found
            })
            .collect()
    }))
}

/// The command that repeats one run of a cell.
fn command(args: &Args, plan: &Plan, labels: &[String], pattern: &Pattern) -> String {
    let mut words = vec![format!("lasthop run {}", output::quoted(&args.scenario))];
    let mut set: Vec<String> = args.set.clone();
    let axes = plan.axes.iter().zip(labels);
    set.extend(axes.map(|(axis, label)| format!("{}={label}", axis.name)));
    if let Some(cell) = plan.cells.iter().find(|cell| cell.labels == labels) {
        set.extend(pattern.settings(&cell.scenario));
    }
    words.extend(set.iter().map(|set| format!("--set {}", output::quoted(set))));
    words.push(format!("--seed {} --seeds 1", args.seed));
    words.join(" ")
}

/// The whole answer for a terminal.
fn page(plan: &Plan, args: &Args, answer: &Answer) -> String {
    let axes = answer.axes.iter().map(Column::text);
    let columns = axes.chain([Column::number("runs"), Column::number("violations")]);
    let levels = (0..=args.faults).map(|faults| Column::number(plural(faults.into(), "fault")));
    let columns = columns.chain(levels).chain([Column::number("again")]);
    let rows = answer.cells.iter().map(|cell| {
        let mut row = cell.labels.clone();
        row.push(cell.found.runs.to_string());
        row.push(cell.found.violations.to_string());
        for faults in 0..=args.faults {
            let level = cell.found.levels.iter().find(|level| level.faults == faults);
            let slowest = level.and_then(|level| level.slowest.as_ref());
            row.push(slowest.map_or(String::new(), |run: &Run| format!("{:.2} s", run.seconds)));
        }
        let most = cell.found.levels.iter().filter_map(|level| level.most_retransmissions.as_ref());
        row.push(most.map(|run| run.retransmissions).max().unwrap_or(0).to_string());
        row
    });
    let mut text = format!(
        "{}: {}, {}\n\n{}\n\n{}\n",
        style::heading(&plan.name),
        plural(answer.runs, "run"),
        plural(answer.violations, "violation"),
        render(&Table::new(columns, rows), style::look()),
        style::dim(&style::paragraph(NOTE)),
    );
    for cell in &answer.cells {
        for (violation, command) in cell.found.first_violations.iter().zip(&cell.commands) {
            text += &format!("\n{} {}\n  {command}\n", style::bad("violated:"), violation.what);
        }
    }
    if !answer.complete {
        text += "\nnot finished: these are the runs until it was stopped\n";
    }
    text
}

const NOTE: &str = "\
Under each number of faults: the time until the last data is delivered, in the slowest run.
again: retransmissions of hosts and base station in the run with most of them.";
