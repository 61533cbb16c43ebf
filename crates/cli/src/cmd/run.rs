//! `lasthop run`: a scenario with all its combinations and seeds.

use std::path::{Path, PathBuf};

use lasthop_batch::Provenance;
use lasthop_report::number::plural;
use lasthop_scenario::{Argument, Plan, Warning};
use lasthop_sim::runs::{Results, Setup};

use super::plan;
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::progress::Progress;
use crate::scenario::Text;
use crate::stop::Stop;
use crate::study_args::Jobs;
use crate::sweep::bound::{self, Most};
use crate::sweep::testbed::Order;
use crate::sweep::{self, Job, Measured, Traces, files};
use crate::{demo, format, output, show};

/// The scenario of `lasthop run` without arguments.
const DEMONSTRATION: &str = "quickstart";

/// Run a scenario: every combination of what it varies, with every seed
#[derive(clap::Args, Debug)]
pub struct RunArgs {
    /// Scenario file, `-` for stdin, or the name of a built-in scenario
    #[arg(value_name = "FILE|NAME")]
    pub scenario: Option<String>,
    /// Number of seeds, each one run; overrides `runs` of the file
    #[arg(long, short = 'n', value_name = "N", value_parser = crate::study_args::seeds(1, 1_000_000))]
    pub seeds: Option<u32>,
    /// Where: in the simulator, on real packets between namespaces of this machine, or both side by side
    #[arg(long, value_name = "WORLD")]
    pub world: Option<Worlds>,
    #[command(flatten)]
    pub changes: Changes,
    /// Write results to this directory
    #[arg(long, short, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Which runs are written out in full, with -o
    #[arg(long, value_enum, default_value_t, value_name = "RUNS")]
    pub details: Traces,
    /// How much all of them may have together, without plots; `unlimited` for every event to the end
    #[arg(long, default_value_t = Most::USUAL, value_name = "SIZE")]
    pub details_size: Most,
    #[command(flatten)]
    pub jobs: Jobs,
    /// Only print what would be run
    #[arg(long)]
    pub dry_run: bool,
}

/// Where a scenario is run.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Worlds {
    /// In the simulator.
    Sim,
    /// On real packets, in real time.
    Testbed,
    /// In both, side by side.
    Both,
}

/// `--set` and `--vary`.
#[derive(clap::Args, Debug)]
pub struct Changes {
    /// Change a value of the scenario; may be given again
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Compare several values; may be given again, and every combination is run
    #[arg(long, value_name = "KEY=A,B")]
    pub vary: Vec<String>,
}

impl RunArgs {
    /// Whether a story about the results is printed.
    fn is_demonstration(&self) -> bool {
        self.scenario.is_none() && self.changes.is_empty()
    }
}

impl Changes {
    fn is_empty(&self) -> bool {
        self.set.is_empty() && self.vary.is_empty()
    }

    /// The arguments for the scenario crate. Values are set before axes are expanded, so the relative order
    /// of the two does not matter.
    pub fn arguments(&self) -> Vec<Argument> {
        let set = self.set.iter().cloned().map(Argument::Set);
        set.chain(self.vary.iter().cloned().map(Argument::Vary)).collect()
    }
}

/// Runs the command.
pub fn run(args: &RunArgs, json: bool) -> Result<Outcome, Failure> {
    let mut arguments = args.changes.arguments();
    let text = Text::load(args.scenario.as_deref().unwrap_or(DEMONSTRATION), &arguments)?;
    // Last, so that they override `--set runs=`; clap has checked them already.
    for key in ["runs", "testbed-runs"] {
        arguments.extend(args.seeds.map(|seeds| Argument::Set(format!("{key}={seeds}"))));
    }
    arguments.extend(args.world.map(|world| match world {
        Worlds::Sim => Argument::Set("world=sim".to_owned()),
        Worlds::Testbed => Argument::Set("world=testbed".to_owned()),
        Worlds::Both => Argument::Vary("world=sim,testbed".to_owned()),
    }));
    let (plan, warnings) = text.plan(&arguments)?;
    if args.dry_run {
        print_plan(&plan, &text, &warnings, &arguments, json)?;
        return Ok(Outcome::Done);
    }
    text.warn(&warnings, &arguments);
    if let Some(dir) = &args.output {
        output::prepare(dir)?;
        output::write(&dir.join("scenario.toml"), as_given(&text, args).as_bytes())?;
    }
    let progress = Progress::new(plan.count(), json);
    let job = Job {
        plan: &plan,
        order: order(&text, &arguments),
        traces: args.details,
        most: args.details_size,
        output: args.output.as_deref(),
        jobs: args.jobs.count(),
        brief: !json && args.output.is_none() && !args.is_demonstration(),
        stop: &Stop::listen()?,
        progress: &progress,
    };
    let provenance = Provenance::new(&plan, &text.text, &arguments);
    let result = execute(&job, &provenance, args, json);
    progress.finish();
    result
}

/// The plan for a process of the testbed.
fn order(text: &Text, arguments: &[Argument]) -> Order {
    let mut order = Order { name: text.name.clone(), text: text.text.clone(), ..Order::default() };
    for argument in arguments {
        match argument {
            Argument::Set(set) => order.set.push(set.clone()),
            Argument::Vary(vary) => order.vary.push(vary.clone()),
        }
    }
    order
}

/// Runs the plan, stores the results and prints them.
fn execute(
    job: &Job<'_>,
    provenance: &Provenance,
    args: &RunArgs,
    json: bool,
) -> Result<Outcome, Failure> {
    let plan = job.plan;
    let Measured { results: runs, series } = job.measure()?;
    let finished = runs.iter().flatten().count();
    let results = Results::new(plan, Setup::new(command(args), plan), runs);
    if (finished as u64) < plan.count() {
        return interrupted(job, &results, finished, json);
    }
    if let Some(dir) = job.output {
        let text = output::json(&format::RUN.of(&results))?;
        output::write_results(dir, sweep::RESULTS, &text)?;
        #[cfg(feature = "parquet")]
        lasthop_batch::files::write(
            dir,
            "runs",
            &lasthop_batch::tables::runs(plan, &results, provenance)?,
        )?;
        #[cfg(not(feature = "parquet"))]
        {
            let _ = provenance;
            eprintln!(
                "runs.parquet and runs.csv are left out: this build lacks the feature `parquet`"
            );
        }
        files::remove_former(dir, plan)?;
        if !job.missing_traces()? {
            return interrupted(job, &results, finished, json);
        }
        let page = files::page(dir, &results, series)?;
        output::write(&dir.join(sweep::PAGE), page.as_bytes())?;
    }
    job.progress.finish();
    if json {
        output::print_json(format::RUN, &results)?;
        Failure::if_stuck(results.stuck())?;
        return Ok(outcome(&results));
    }
    let demonstration = args.is_demonstration();
    let mut text = String::new();
    if demonstration {
        text += &demo::story(plan, &results);
    }
    text += &show::sweep::text(&results);
    if demonstration {
        text += &format!("\n{}", demo::moral(&results));
    }
    if let Some(dir) = job.output {
        let traces = match size(&dir.join("trace")) {
            0 => String::new(),
            bytes => {
                let early = match bound::early(&dir.join("trace")) {
                    0 => String::new(),
                    n => format!(
                        "; {n} of them end early at {} in all, --details-size unlimited has them whole",
                        args.details_size
                    ),
                };
                format!(", traces ({:.1} MB; see --details{early})", bytes as f64 / 1e6)
            }
        };
        text += &format!("\nresults{traces} and {} are in {}\n", sweep::PAGE, dir.display());
    }
    output::print(&text)?;
    Failure::if_stuck(results.stuck())?;
    Ok(outcome(&results))
}

/// Whether any run completed its finite transfers.
fn outcome(results: &Results) -> Outcome {
    let none = results.cells.iter().all(|cell| cell.complete() == 0);
    if none && !results.setup.endless { Outcome::No } else { Outcome::Done }
}

/// Total size of the files in a directory, bytes; zero if it does not exist.
fn size(dir: &Path) -> u64 {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let of = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(data) if data.is_dir() => size(&entry.path()),
        Ok(data) => data.len(),
        Err(_) => 0,
    };
    entries.map(of).sum()
}

/// Prints the results up to Ctrl-C, and the command to resume. JSON output has no partial document.
fn interrupted(
    job: &Job<'_>,
    results: &Results,
    finished: usize,
    json: bool,
) -> Result<Outcome, Failure> {
    job.progress.finish();
    if !json && finished > 0 {
        output::print(&show::sweep::text(results))?;
    }
    let of = format!("interrupted after {finished} of {}", plural(job.plan.count(), "run"));
    match job.output {
        Some(dir) => eprintln!(
            "{of}; they are stored in {}: the same command continues from there",
            dir.display()
        ),
        None => eprintln!(
            "{of}; with `-o DIR` they would be stored, and the same command would continue"
        ),
    }
    Ok(Outcome::Interrupted)
}

/// The command that repeats the runs; options for threads and output do not affect results.
fn command(args: &RunArgs) -> String {
    let mut words = vec!["lasthop".to_owned(), "run".to_owned()];
    words.extend(args.scenario.as_deref().map(output::quoted));
    words.extend(args.seeds.map(|seeds| format!("--seeds {seeds}")));
    words.extend(args.world.and_then(|world| {
        Some(format!("--world {}", clap::ValueEnum::to_possible_value(&world)?.get_name()))
    }));
    words.extend(args.changes.set.iter().map(|set| format!("--set {}", output::quoted(set))));
    words.extend(args.changes.vary.iter().map(|vary| format!("--vary {}", output::quoted(vary))));
    words.join(" ")
}

/// The text of the scenario, preceded by the changes of the command line as comments.
fn as_given(text: &Text, args: &RunArgs) -> String {
    let origin = printable(&text.origin);
    format!("# {origin}, run with: {}\n\n{}", printable(&command(args)), text.text)
}

/// On one line, so that a comment ends with it.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn print_plan(
    plan: &Plan,
    text: &Text,
    warnings: &[Warning],
    arguments: &[Argument],
    json: bool,
) -> Result<(), Failure> {
    if json {
        let warnings: Vec<_> = warnings.iter().map(|w| text.json(w, arguments)).collect();
        return output::print_json(format::PLAN, &plan::PlanAnswer::new(plan, warnings));
    }
    text.warn(warnings, arguments);
    output::print(&plan::table(plan))
}
