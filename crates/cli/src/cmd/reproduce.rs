//! `lasthop reproduce`: published results beside measured ones, with a verdict for each.

use std::path::PathBuf;

use crate::Outcome;
use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  lasthop reproduce                       everything
  lasthop reproduce west97                one paper
  lasthop reproduce W-T1 W-T2 --verbose   two of its tables, with all assumptions
  lasthop reproduce --list                what there is

Papers: west97, parsa98, bakshi96, balakrishnan97, agarwal00.
Exit code 1 if a claim does not hold.";

/// Run the papers' experiments and compare with what they published
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Papers or claims; all of them if none is given
    #[arg(value_name = "PAPER|CLAIM")]
    pub what: Vec<String>,
    /// List the claims instead of testing them
    #[arg(long)]
    pub list: bool,
    /// Also print the assumptions, and each measured value
    #[arg(long, short)]
    pub verbose: bool,
    /// Also write the results to this directory
    #[arg(long, short, value_name = "DIR")]
    pub output: Option<PathBuf>,
}

/// Runs the command. The claims live in `lasthop-papers`; this is the one place that calls them.
pub fn run(args: &Args, _json: bool) -> Result<Outcome, Failure> {
    let Args { what: _, list: _, verbose: _, output: _ } = args;
    Err(Failure::not_in_this_build(
        "`lasthop reproduce`",
        "the papers' setups can be run as scenarios: `lasthop list scenarios`",
    ))
}
