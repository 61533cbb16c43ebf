//! `lasthop compare`: any set of schemes on one scenario, under the same channel.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use lasthop_scenario::{Argument, Comparison, Error, Wanted, schemes_of};

use crate::compare::{self, Measured, page, show};
use crate::failure::Failure;
use crate::scenario::Text;
use crate::{Outcome, output};

const EXAMPLES: &str = "\
Examples:
  lasthop compare rivals                               the points of the scenario's own axis
  lasthop compare my.toml                              every scheme that applies
  lasthop compare my.toml --schemes sack,snoop,tulip   these, beside the scenario as it is
  lasthop compare west97-lan --baseline snoop          differences from snoop
  lasthop compare my.toml --errors 0,0.1%,1%,5% -o out a plot of throughput against losses, with what theory allows
  lasthop list schemes                                 what there is, and what each needs deployed

All schemes meet the same channel, seed by seed, so runs are compared in pairs. A scheme is called better
or worse if chance would do the same in fewer than 5 % of such comparisons, all of them together (Holm).
Schemes of one rank are not told apart from its first by these runs. docs/compare.md says what that rests on.";

/// Compare schemes on one scenario: what gains how much, and what must be deployed for it
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Scenario file, `-` for stdin, or the name of a built-in scenario
    #[arg(value_name = "FILE|NAME")]
    pub scenario: String,
    /// Schemes by name, or `all` [default: the scenario's own labelled axis, else its own schemes, else all]
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub schemes: Vec<String>,
    /// What the others are compared with [default: the scenario as it is]
    #[arg(long, value_name = "SCHEME")]
    pub baseline: Option<String>,
    /// Losses of packets with data, in place of the scenario's errors
    #[arg(long, value_name = "P,Q", value_delimiter = ',', value_parser = probability)]
    pub errors: Vec<String>,
    /// Number of seeds, each one run of each scheme; overrides `runs` of the file
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub seeds: Option<u32>,
    /// Change a value of the scenario; may be given again
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Write results and a page to this directory; the same command continues there after Ctrl-C
    #[arg(long, short, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Runs at the same time [default: one for each processor]
    #[arg(long, short, value_name = "N")]
    pub jobs: Option<NonZeroUsize>,
}

fn probability(word: &str) -> Result<String, String> {
    match word.parse::<lasthop_proto::units::Probability>() {
        Ok(p) if p.get() < 1.0 => Ok(word.to_owned()),
        _ => Err("expected a probability below 1, for example 0.01 or 1%".to_owned()),
    }
}

/// Runs the command.
pub fn run(args: &Args, json: bool) -> Result<Outcome, Failure> {
    let text = Text::load(&args.scenario)?;
    let mut arguments: Vec<Argument> = args.set.iter().cloned().map(Argument::Set).collect();
    arguments.extend(args.seeds.map(|seeds| Argument::Set(format!("runs={seeds}"))));
    // Only the simulator gives every scheme the same channel.
    arguments.push(Argument::Set("world=sim".to_owned()));
    let comparison = lay_out(&text, &arguments, args)?;
    if !json {
        for warning in &comparison.warnings {
            eprint!("{}", text.rendered(warning, &arguments));
        }
    }
    if comparison.schemes.len() < 2 {
        let why = comparison.left_out.iter().map(|l| format!("{}: {}", l.name, l.reason));
        let help = why.collect::<Vec<_>>().join("\n        ");
        return Err(Failure::input("there is nothing to compare: no scheme applies", help));
    }
    let Measured { results, complete } =
        compare::measure(&comparison, args.output.as_deref(), args.jobs, json)?;
    let document = compare::rank(&comparison, &results, command(args));
    if let Some(dir) = args.output.as_deref().filter(|_| complete) {
        output::write(&dir.join("comparison.json"), output::json(&document)?.as_bytes())?;
        output::write(&dir.join(crate::sweep::PAGE), page::page(&document).as_bytes())?;
        for (name, svg) in page::pictures(&document) {
            output::write(&dir.join(name), svg.as_bytes())?;
        }
    }
    if json && complete {
        output::print_json(&document)?;
    } else if !json && !document.points.is_empty() {
        let mut shown = show::text(&document);
        if let Some(dir) = args.output.as_deref().filter(|_| complete) {
            shown +=
                &format!("\ncomparison.json and {} are in {}\n", crate::sweep::PAGE, dir.display());
        }
        output::print(&shown)?;
    }
    if complete {
        return Ok(Outcome::Done);
    }
    Ok(output::interrupted(args.output.as_deref()))
}

fn lay_out(text: &Text, arguments: &[Argument], args: &Args) -> Result<Comparison, Failure> {
    let wrong = |Error(diagnostic): Error| text.failure(*diagnostic, arguments);
    let wanted = match args.schemes.as_slice() {
        [] => Wanted::Own,
        [all] if all == "all" => Wanted::All,
        names => Wanted::Named(names.iter().map(|name| name.trim().to_owned()).collect()),
    };
    // A wrong name is a wrong argument, not a fault of the file.
    schemes_of(&text.text).map_err(wrong)?;
    lasthop_scenario::compare(
        &text.text,
        &text.name,
        arguments,
        &wanted,
        &args.errors,
        args.baseline.as_deref(),
    )
    .map_err(|error| match error.code {
        lasthop_scenario::Code::NoScheme => Failure::input(
            error.message.clone(),
            format!("{}; `lasthop list schemes` says what each does", error.help),
        ),
        _ => wrong(error),
    })
}

/// The command that does the same again.
fn command(args: &Args) -> String {
    let mut words =
        vec!["lasthop".to_owned(), "compare".to_owned(), output::quoted(&args.scenario)];
    let mut list = |option: &str, values: &[String]| {
        if !values.is_empty() {
            words.push(format!("{option} {}", output::quoted(values.join(","))));
        }
    };
    list("--schemes", &args.schemes);
    list("--baseline", args.baseline.as_slice());
    list("--errors", &args.errors);
    words.extend(args.seeds.map(|seeds| format!("--seeds {seeds}")));
    words.extend(args.set.iter().map(|set| format!("--set {}", output::quoted(set))));
    words.join(" ")
}
