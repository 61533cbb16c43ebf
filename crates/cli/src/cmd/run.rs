//! `lasthop run`: a scenario, all its combinations, all its seeds.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use lasthop_scenario::{Argument, Plan, Warning};

use super::plan;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::scenario::Text;
use crate::stop::Stop;
use crate::{Outcome, output};

/// What runs when no scenario is named.
const DEMONSTRATION: &str = "quickstart";

const EXAMPLES: &str = "\
Examples:
  lasthop run                                              a demonstration of about a second
  lasthop run west97-lan                                   a built-in scenario
  lasthop run my.toml --seeds 100 -o results               more runs, and keep them
  lasthop run my.toml --set host.fixed.tcp=sack            change a value
  lasthop run my.toml --vary agent=none,snoop              compare
  lasthop run my.toml --vary errors.mean=16KiB,64KiB --dry-run

Keys are dotted as in the file: host.NAME.KEY, path.NUMBER.KEY, path.NAME.KEY. Short forms: KEY of a
host for all hosts (tcp, mss), agent, errors.KEY, link.KEY and radio.KEY where there is only one.
A sweep with -o that was interrupted continues where it stopped.";

/// Run a scenario: every combination of what it varies, with every seed
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Scenario file, `-` for stdin, or the name of a built-in scenario
    #[arg(value_name = "FILE|NAME")]
    pub scenario: Option<String>,
    /// Number of seeds, each one run; overrides `runs` of the file
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub seeds: Option<u32>,
    #[command(flatten)]
    pub changes: Changes,
    /// Write results to this directory
    #[arg(long, short, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Runs at the same time [default: one for each processor]
    #[arg(long, short, value_name = "N")]
    pub jobs: Option<NonZeroUsize>,
    /// Only print what would be run
    #[arg(long)]
    pub dry_run: bool,
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

impl Changes {
    /// As the scenario crate takes them. Values are set before axes are laid out, so their order among
    /// each other does not matter.
    fn arguments(&self) -> Vec<Argument> {
        let set = self.set.iter().cloned().map(Argument::Set);
        set.chain(self.vary.iter().cloned().map(Argument::Vary)).collect()
    }
}

/// Everything that the runs need, resolved.
#[derive(Debug)]
#[expect(dead_code, reason = "read once the simulator is wired in, in `execute`")]
pub struct Job<'a> {
    /// What to run: `plan.runs()`.
    pub plan: &'a Plan,
    /// Where results go; it exists and can be written to. Write with `output::AtomicFile`, named by the
    /// run's key, and skip runs whose file is there.
    pub output: Option<&'a Path>,
    /// Threads.
    pub jobs: usize,
    /// Print JSON.
    pub json: bool,
    /// Whether this is the demonstration, which also draws a picture.
    pub demonstration: bool,
    /// Asked between two runs.
    pub stop: &'a Stop,
    /// Told after each run.
    pub progress: &'a Progress,
}

/// Runs the command.
pub fn run(args: &Args, json: bool) -> Result<Outcome, Failure> {
    let demonstration = args.scenario.is_none();
    let text = Text::load(args.scenario.as_deref().unwrap_or(DEMONSTRATION))?;
    let mut arguments = args.changes.arguments();
    // Last, so that it also wins over `--set runs=`; clap has checked it already.
    arguments.extend(args.seeds.map(|seeds| Argument::Set(format!("runs={seeds}"))));
    let (plan, warnings) = text.plan(&arguments)?;
    if args.dry_run {
        print_plan(&plan, &text, &warnings, &arguments, json)?;
        return Ok(Outcome::Done);
    }
    for warning in &warnings {
        eprint!("{}", text.rendered(warning, &arguments));
    }
    if let Some(dir) = &args.output {
        output::prepare(dir)?;
    }
    let processors = || std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let progress = Progress::new(plan.count(), json);
    let result = execute(&Job {
        plan: &plan,
        output: args.output.as_deref(),
        jobs: args.jobs.map_or_else(processors, NonZeroUsize::get),
        json,
        demonstration,
        stop: &Stop::listen()?,
        progress: &progress,
    });
    progress.finish();
    result
}

/// Runs the plan and shows the results: the one place that calls simulator, metrics and report.
fn execute(_job: &Job<'_>) -> Result<Outcome, Failure> {
    Err(Failure::not_in_this_build(
        "the simulator",
        "`lasthop run FILE --dry-run` checks a scenario and prints what would be run",
    ))
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
        return output::print_json(&plan::Shown::new(plan, warnings));
    }
    for warning in warnings {
        eprint!("{}", text.rendered(warning, arguments));
    }
    output::print(&plan::table(plan))
}
