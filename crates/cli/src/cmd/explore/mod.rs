//! `lasthop explore`: all combinations of fates of the first packets.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lasthop_batch::Work;
use lasthop_explore::{Exploration, Method, Options, Pattern, deciders, resume};
use lasthop_proto::link::Fate;
use lasthop_report::number::plural;
use lasthop_scenario::{Argument, Plan};
use rayon::prelude::*;
use serde::Serialize;

use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::progress::Progress;
use crate::scenario::Text;
use crate::stop::Stop;
use crate::study_args::Jobs;
use crate::{format, output};
use page::page;
use store::Store;

mod page;
mod store;

/// Run every combination of losses, copies, delays and damage of the first packets, and check each run
#[derive(clap::Args, Debug)]
pub struct ExploreArgs {
    /// Scenario file, `-` for stdin, or the name of a built-in scenario
    #[arg(value_name = "FILE|NAME")]
    scenario: String,
    /// Most faults in one run; runs multiply by about 200 with each
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=8))]
    faults: u32,
    /// Faults meet the first so many packets of both directions, counted over all routers and channels
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = clap::value_parser!(u64).range(1..=1000))]
    first: u64,
    /// Which fates, separated by commas [default: all faults of single packets]
    #[arg(long, value_name = "FATES", value_delimiter = ',', conflicts_with_all = ["attacks", "silences"],
          value_parser = Fate::named().map(|(word, _)| word).collect::<Vec<_>>())]
    fates: Vec<String>,
    /// Forged segments of a third party instead of faults
    #[arg(long, conflicts_with = "silences")]
    attacks: bool,
    /// Silence of a host from a packet on, closed windows, and a smaller MTU, instead of faults
    #[arg(long)]
    silences: bool,
    /// Seed of all runs
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Store results in this file, and continue with those that it has
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Begin every run anew instead of copying a run midway: slower, the same results
    #[arg(long)]
    replay: bool,
    /// Change a value of the scenario; may be given again
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Explore each of these values; may be given again
    #[arg(long, value_name = "KEY=A,B")]
    vary: Vec<String>,
    #[command(flatten)]
    jobs: Jobs,
}

/// The answer.
#[derive(Serialize, Debug)]
struct Results {
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
pub fn run(args: &ExploreArgs, json: bool) -> Result<Outcome, Failure> {
    let mut arguments: Vec<Argument> = args.set.iter().cloned().map(Argument::Set).collect();
    arguments.extend(args.vary.iter().cloned().map(Argument::Vary));
    arguments.push(Argument::Set("world=sim".to_owned()));
    let text = Text::load(&args.scenario, &arguments)?;
    let (plan, warnings) = text.plan(&arguments)?;
    // Combinations of a matrix may have no effect on purpose.
    if !json && plan.cells.len() == 1 {
        text.warn(&warnings, &arguments);
    }
    if let Some(cell) = plan.cells.iter().find(|cell| deciders(&cell.scenario).is_empty()) {
        return Err(Failure::input(
            format!(
                "{}: no router or radio of `{}` decides about packets",
                text.origin, cell.scenario.name
            ),
            "add one to the path where packets meet their fates:\n\n    [[path]]\n    name = \"air\"\n    \
             cross = { fates = \"\" }",
        ));
    }
    let all = |fates: &[(&str, Fate)]| fates.iter().map(|(_, fate)| *fate).collect();
    let fates: Vec<Fate> = match args.fates.is_empty() {
        true if args.attacks => all(&Fate::FORGERIES),
        true if args.silences => all(&Fate::SILENCES),
        true => all(&Fate::FAULTS),
        false => args.fates.iter().filter_map(|word| Fate::parse(word)).collect(),
    };
    let method = if args.replay { Method::Replay } else { Method::Fork };
    let ends = lasthop_sim::runs::ends;
    let options = Options { faults: args.faults, first: args.first, fates, method, ends };
    let store = Store::open(args.output.as_deref(), args.seed, &options)?;
    let stop = Stop::listen()?;
    let progress = Progress::new(plan.cells.len() as u64, json);
    let (cells, made, took) =
        timed(|| explore_cells(args, &plan, &options, &stop, &progress, &store))?;
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
    let answer = Results {
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
        let speed = page::speed(made, took, Work::new(args.jobs.count()).threads(usize::MAX));
        output::print(&page(&plan, args, &answer, &speed))?;
    }
    Ok(match (answer.complete, answer.violations) {
        (false, _) => Outcome::Interrupted,
        (true, 0) => Outcome::Done,
        (true, _) => Outcome::No,
    })
}

/// What `explore` found, its number of runs, and how long it took.
#[expect(clippy::disallowed_methods, reason = "the speed of a search is shown to its user")]
fn timed(
    explore: impl FnOnce() -> Result<(Vec<Exploration>, u64), Failure>,
) -> Result<(Vec<Exploration>, u64, Duration), Failure> {
    let begun = Instant::now();
    let (cells, made) = explore()?;
    Ok((cells, made, begun.elapsed()))
}

/// The results of each cell, and the number of runs of this call.
fn explore_cells(
    args: &ExploreArgs,
    plan: &Plan,
    options: &Options,
    stop: &Stop,
    progress: &Progress,
    store: &Store,
) -> Result<(Vec<Exploration>, u64), Failure> {
    let pool = Work::new(args.jobs.count()).pool(usize::MAX)?;
    let runs = AtomicU64::new(0);
    let done = |made: u64| {
        let all = runs.fetch_add(made, Ordering::Relaxed) + made;
        progress.show(plural(all, "run"));
        !stop.requested()
    };
    let explore_cell = |cell: &lasthop_scenario::Cell| {
        let begun = store.begun(&cell.scenario);
        if stop.requested() {
            return Ok(begun);
        }
        let found = resume(&cell.scenario, args.seed, options, begun, &done);
        store.put(&cell.scenario, &found)?;
        progress.step(&plural(runs.load(Ordering::Relaxed), "run"));
        Ok(found)
    };
    let found: Result<Vec<Exploration>, Failure> =
        pool.install(|| plan.cells.par_iter().map(explore_cell).collect());
    Ok((found?, runs.into_inner()))
}

/// The command that repeats one run of a cell.
fn command(args: &ExploreArgs, plan: &Plan, labels: &[String], pattern: &Pattern) -> String {
    let mut words = vec![format!("lasthop run {}", output::quoted(&args.scenario))];
    let mut set: Vec<String> = args.set.clone();
    let axes = plan.axes.iter().zip(labels);
    set.extend(axes.map(|(axis, label)| format!("{}={label}", axis.name)));
    if let Some(cell) = plan.cells.iter().find(|cell| cell.labels == labels) {
        set.extend(pattern.settings(&cell.scenario));
    }
    set.push(format!("seed={}", args.seed));
    // `--set` of an axis leaves it with one label.
    let mut known = BTreeSet::new();
    set.retain(|set| known.insert(set.clone()));
    words.extend(set.iter().map(|set| format!("--set {}", output::quoted(set))));
    words.push("--seeds 1".to_owned());
    words.join(" ")
}
