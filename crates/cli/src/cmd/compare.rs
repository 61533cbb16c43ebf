//! `lasthop compare`: any set of schemes on one scenario, under the same channel.

use lasthop_scenario::Handoffs;
use lasthop_sim::runs::Setup;
use lasthop_study::compare;

use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::scenario::Text;
use crate::study_args::StudyArgs;
use crate::{format, show};

/// Compare schemes on one scenario: what gains how much, and what must be deployed for it
#[derive(clap::Args, Debug)]
pub struct CompareArgs {
    /// Schemes by name, or `all` [default: the scenario's own labelled axis, else its own schemes, else all]
    #[arg(long, value_name = "SCHEMES", value_delimiter = ',')]
    pub schemes: Vec<String>,
    /// What the others are compared with [default: the scenario as it is]
    #[arg(long, value_name = "SCHEME")]
    pub baseline: Option<String>,
    /// Losses of packets with data, in place of the scenario's errors
    #[arg(long, value_name = "P,Q", value_delimiter = ',', value_parser = probability)]
    pub errors: Vec<String>,
    /// Hand-offs under every scheme: `every` or `dwell`, and keys of `[handoff]`, for example every=15s,gap=80ms
    #[arg(long, value_name = "KEY=VALUE,...")]
    pub handoff: Option<Handoffs>,
    #[command(flatten)]
    pub study: StudyArgs,
}

fn probability(word: &str) -> Result<String, String> {
    match word.parse::<lasthop_proto::units::Probability>() {
        Ok(p) if p.get() < 1.0 => Ok(word.to_owned()),
        _ => Err("expected a probability below 1, for example 0.01 or 1%".to_owned()),
    }
}

/// Runs the command.
pub fn run(args: &CompareArgs, json: bool) -> Result<Outcome, Failure> {
    let CompareArgs { schemes, baseline, errors, handoff, study } = args;
    let arguments = study.arguments();
    let text = Text::load(&study.scenario, &arguments)?;
    let (baseline_name, handoffs) = (baseline.as_deref(), handoff.as_ref());
    let compared = compare::Options { schemes, errors, baseline: baseline_name, handoffs };
    let comparison = compare::lay_out(&text.source(), &arguments, &compared)?;
    if !json {
        text.warn(&comparison.warnings, &arguments);
    }
    let moves = handoff.as_ref().map(Handoffs::to_string);
    let own: [(&str, &[String]); 4] = [
        ("--schemes", schemes),
        ("--baseline", baseline.as_slice()),
        ("--errors", errors),
        ("--handoff", moves.as_slice()),
    ];
    let command = study.command("compare", &own);
    let maker = study.maker(json)?;
    let document = compare::answer(&comparison, &mut |plan| {
        maker.results(plan, Setup::new(command.clone(), plan))
    })?;
    study.report(
        json,
        format::COMPARE,
        &document,
        "comparison.json",
        compare::page,
        compare::pictures,
        show::compare::text,
    )
}
