//! `lasthop energy`: the lifetime of a battery, its consumers, and the most effective savings.

use lasthop_proto::energy::PRESETS;
use lasthop_sim::runs::Setup;
use lasthop_study::energy::{self, Question};

use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::scenario::Text;
use crate::study_args::{self, StudyArgs};
use crate::{format, show};

/// Say how long batteries last, where their joules go, and which change of TCP would save most
#[derive(clap::Args, Debug)]
#[command(mut_arg("seeds", |seeds| {
    seeds.help("Number of seeds, each one run of each change; overrides `runs` of the file")
}))]
pub struct EnergyArgs {
    /// Hardware of both ends, in place of that in the file (`lasthop list hardware`)
    #[arg(long, value_name = "PRESET", value_parser = study_args::one_of(presets()), hide_possible_values = true)]
    pub hardware: Option<String>,
    /// Whose bytes for a joule the changes are ranked by [default: the sender, if it has a battery]
    #[arg(long, value_name = "HOST")]
    pub host: Option<String>,
    #[command(flatten)]
    pub study: StudyArgs,
}

fn presets() -> impl Iterator<Item = (&'static str, String)> {
    PRESETS.iter().map(|preset| (preset.name, preset.name.to_owned()))
}

/// Runs the command.
pub fn run(args: &EnergyArgs, json: bool) -> Result<Outcome, Failure> {
    let EnergyArgs { hardware, host, study } = args;
    let arguments = study.arguments();
    let text = Text::load(&study.scenario, &arguments)?;
    if !json {
        let whole = energy::without_parts(&arguments);
        text.warn(&text.plan(&whole)?.1, &whole);
    }
    let question = Question::new(text.source(), arguments, hardware.as_deref(), host.as_deref())?;
    let own: [(&str, &[String]); 2] =
        [("--hardware", hardware.as_slice()), ("--host", host.as_slice())];
    let setup = Setup::new(study.command("energy", &own), &question.plan());
    let maker = study.maker(json)?;
    let document =
        energy::answer(&question, &setup, &mut |plan| maker.results(plan, Setup::default()))?;
    let (page, pictures) = (energy::page, energy::pictures);
    let outcome = study.report(
        json,
        format::ENERGY,
        &document,
        "energy.json",
        page,
        pictures,
        show::energy::text,
    )?;
    let helps = document.anything_helps == Some(true);
    Ok(if outcome == Outcome::Done && !helps { Outcome::No } else { outcome })
}
