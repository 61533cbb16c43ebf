//! `lasthop generate`: files for editors, shells and `man`, from the definitions of keys and arguments.

use super::{completions, man, schema};
use crate::failure::Failure;
use crate::outcome::Outcome;

/// Write schemas for editors, completions for shells, or manual pages
#[derive(clap::Args, Debug)]
pub struct GenerateArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand, Debug)]
enum What {
    Schema(schema::SchemaArgs),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
}

/// Runs the command.
pub fn run(args: &GenerateArgs) -> Result<Outcome, Failure> {
    match &args.what {
        What::Schema(args) => schema::run(args),
        What::Completions(args) => completions::run(args),
        What::Man(args) => man::run(args),
    }
}
