//! `lasthop report`: results of a sweep as a page.

use std::path::PathBuf;

use lasthop_lab::Results;

use crate::failure::Failure;
use crate::sweep::{self, files};
use crate::{Outcome, output};

const EXAMPLES: &str = "\
Examples:
  lasthop run west97-lan -o results && lasthop report results
  xdg-open results/report.html

Reads results.json and the time-sequence series under trace/; nothing is run again.";

/// Make a self-contained page with tables and plots from the results in a directory
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Directory that `lasthop run -o` wrote
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
}

/// Runs the command.
pub fn run(args: &Args, json: bool) -> Result<Outcome, Failure> {
    let dir = &args.dir;
    let help = "give a directory of results, written by `lasthop run FILE -o DIR`";
    if !dir.is_dir() {
        let what = if dir.exists() { "not a directory" } else { "there is no such directory" };
        let error = std::io::Error::new(std::io::ErrorKind::NotFound, what);
        return Err(Failure::file(dir, error, help));
    }
    let path = dir.join(sweep::RESULTS);
    let text = std::fs::read(&path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Failure::input(
            format!("{} has no {}", dir.display(), sweep::RESULTS),
            "results are written when a sweep is complete: `lasthop run FILE -o DIR` goes on with one",
        ),
        _ => Failure::file(&path, error, help),
    })?;
    let results: Results = serde_json::from_slice(&text).map_err(|error| {
        let help = "this is no result of this version of lasthop; run the scenario again with `-o`";
        Failure::file(&path, error.into(), help)
    })?;
    let target = dir.join(sweep::PAGE);
    output::write(&target, files::page(dir, &results)?.as_bytes())?;
    if json {
        output::print_json(&serde_json::json!({ "page": target }))?;
    } else {
        output::print(&format!("{}\n", target.display()))?;
    }
    Ok(Outcome::Done)
}
