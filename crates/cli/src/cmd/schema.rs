//! `lasthop generate schema`: JSON Schema of the files, for editors.

use clap::ValueEnum;
use lasthop_scenario::{File, json_schema};

use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::output;

/// Print the JSON Schema of a file, for editors that complete and check while one types, or of a JSON answer
#[derive(clap::Args, Debug)]
pub struct SchemaArgs {
    /// Which file
    #[arg(default_value = "scenario")]
    file: FileKind,
    /// The answer of this command with --json, instead of a file
    #[arg(long, value_name = "COMMAND", value_enum, conflicts_with = "file")]
    answer: Option<JsonOutput>,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum JsonOutput {
    /// `lasthop run`
    Run,
    /// `lasthop advise`
    Advise,
    /// `lasthop analyze`
    Analyze,
    /// `lasthop battery`
    Battery,
    /// `lasthop list`
    List,
    /// `lasthop doctor`
    Doctor,
}

impl JsonOutput {
    /// Its schema. tests/schemas.rs generates the schemas from answers of the program, and validates other
    /// answers.
    fn schema(self) -> &'static str {
        match self {
            JsonOutput::Run => include_str!("schema/run.json"),
            JsonOutput::Advise => include_str!("schema/advise.json"),
            JsonOutput::Analyze => include_str!("schema/analyze.json"),
            JsonOutput::Battery => include_str!("schema/battery.json"),
            JsonOutput::List => include_str!("schema/list.json"),
            JsonOutput::Doctor => include_str!("schema/doctor.json"),
        }
    }
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum FileKind {
    /// A scenario
    Scenario,
    /// The file of a station
    Station,
    /// The file of a tunnel
    Tunnel,
}

/// Runs the command.
pub fn run(args: &SchemaArgs) -> Result<Outcome, Failure> {
    if let Some(answer) = args.answer {
        output::exact(answer.schema())?;
        return Ok(Outcome::Done);
    }
    output::exact(&output::json(&json_schema(match args.file {
        FileKind::Scenario => File::Scenario,
        FileKind::Station => File::Station,
        FileKind::Tunnel => File::Tunnel,
    }))?)?;
    Ok(Outcome::Done)
}
