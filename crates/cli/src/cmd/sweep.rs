//! `lasthop sweep`: sweeps too large for one call or one machine.

use std::path::{Path, PathBuf};

use lasthop_batch::store::Store;
use lasthop_batch::sweep::{Batches, Shard, sweep};
use lasthop_batch::{Done, Provenance, Work};
use lasthop_report::number::plural;
use lasthop_scenario::{Argument, Grid};

use crate::cmd::run::Changes;
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::progress::Progress;
use crate::scenario::{Text, read};
use crate::stop::Stop;
use crate::study_args::Jobs;
use crate::{format, output};

/// Make a sweep of any size, in batches that many machines may share
#[derive(clap::Args, Debug)]
pub struct SweepArgs {
    /// Scenario file, `-` for stdin, or the name of a built-in scenario
    #[arg(value_name = "FILE|NAME")]
    pub scenario: String,
    /// Directory of the batches; made if it is not there
    #[arg(long, value_name = "DIR")]
    pub store: PathBuf,
    /// Only every Nth batch, beginning with the Kth
    #[arg(long, value_name = "K/N", default_value = "1/1")]
    pub shard: Shard,
    /// Number of seeds, each one run of each cell; overrides `runs` of the file
    #[arg(long, short = 'n', value_name = "N", value_parser = crate::study_args::seeds(1, 1_000_000))]
    pub seeds: Option<u32>,
    #[command(flatten)]
    pub changes: Changes,
    /// A table of sets: CSV with a line of keys, then a line of values for each cell
    #[arg(long, value_name = "FILE")]
    pub points: Option<PathBuf>,
    #[command(flatten)]
    pub jobs: Jobs,
}

/// Runs `lasthop sweep`.
pub fn run(args: &SweepArgs, json: bool) -> Result<Outcome, Failure> {
    let mut arguments = args.changes.arguments();
    let text = Text::load(&args.scenario, &arguments)?;
    arguments.extend(args.seeds.map(|seeds| Argument::Set(format!("runs={seeds}"))));
    let points = args.points.as_deref().map(points).transpose()?;
    let points = points.as_deref();
    let located = args.points.as_deref().zip(points);
    let wrong = |error: lasthop_scenario::Error| text.wrong(error, &arguments, located);
    let (grid, warnings) =
        Grid::parse(&text.text, &text.name, &arguments, points).map_err(wrong)?;
    if !json {
        text.warn(&warnings, &arguments);
    }
    let provenance = Provenance::of_grid(&grid, &text.text, &arguments, points);
    let failed = |error: lasthop_batch::Error| match error {
        lasthop_batch::Error::Scenario(error) => text.wrong(error, &arguments, located),
        error => error.into(),
    };
    let batches = Batches::new(&grid, provenance).map_err(failed)?;
    let store = Store::create(&args.store).map_err(failed)?;
    let stop = Stop::listen()?;
    let progress = Progress::of_runs(grid.runs(), json);
    let (stopped, step) = (|| stop.requested(), |done: Done| progress.at(done.runs, done.of));
    let work = Work { jobs: args.jobs.count(), stop: &stopped, progress: &step };
    let swept = sweep(&batches, &store, args.shard, &work);
    progress.finish();
    let swept = swept.map_err(failed)?;
    if json {
        output::print_json(format::SWEEP, &swept.document())?;
    } else {
        let left = swept.batches - swept.found - swept.made;
        let mut text = format!(
            "{}: {} of {} batches were there, {} made ({})",
            store.title(),
            swept.found,
            swept.batches,
            swept.made,
            plural(swept.runs, "run")
        );
        if left > 0 {
            text += &format!(", {left} left: the same command continues");
        }
        output::print(&(text + "\n"))?;
    }
    Ok(if swept.is_complete() { Outcome::Done } else { Outcome::Interrupted })
}

/// A table of points.
fn points(path: &Path) -> Result<String, Failure> {
    let help = "a table of points is a CSV file";
    let mut file = std::fs::File::open(path).map_err(|error| Failure::file(path, error, help))?;
    read(&mut file, path, help)
}
