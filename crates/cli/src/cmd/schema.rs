//! `lasthop schema`: JSON Schema of the files, for editors.

use clap::ValueEnum;
use lasthop_scenario::{File, json_schema};

use crate::failure::Failure;
use crate::{Outcome, output};

const EXAMPLES: &str = "\
Examples:
  lasthop schema > scenario.schema.json           for scenarios
  lasthop schema station > station.schema.json    for the file of a station

An editor with Taplo (Even Better TOML) completes and checks a file that begins with
  #:schema ./scenario.schema.json";

/// Print the JSON Schema of a file, for editors that complete and check while one types
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Which file
    #[arg(default_value = "scenario")]
    file: What,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum What {
    /// A scenario
    Scenario,
    /// The file of a station
    Station,
    /// The file of a tunnel
    Tunnel,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<Outcome, Failure> {
    output::print_json(&json_schema(match args.file {
        What::Scenario => File::Scenario,
        What::Station => File::Station,
        What::Tunnel => File::Tunnel,
    }))?;
    Ok(Outcome::Done)
}
