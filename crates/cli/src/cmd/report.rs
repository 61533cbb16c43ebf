//! `lasthop report`: results of a sweep as a page.

use std::path::PathBuf;

use crate::Outcome;
use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  lasthop run west97-lan -o results && lasthop report results
  xdg-open results/report.html";

/// Make a self-contained page with tables and plots from the results in a directory
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Directory that `lasthop run -o` or `lasthop reproduce -o` wrote
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
}

/// Runs the command. Pages are drawn by `lasthop-report`; this is the one place that calls it.
pub fn run(args: &Args, _json: bool) -> Result<Outcome, Failure> {
    if !args.dir.is_dir() {
        let error = std::io::Error::from(std::io::ErrorKind::NotFound);
        let help = "give a directory of results, written by `lasthop run FILE -o DIR`";
        return Err(Failure::file(&args.dir, error, help));
    }
    Err(Failure::not_in_this_build(
        "`lasthop report`",
        "results are JSON files that other programs can read",
    ))
}
