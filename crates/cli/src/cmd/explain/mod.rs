//! `lasthop explain`: what decides a claim.

mod kept;

use std::path::PathBuf;

use lasthop_lab::Observer;
use lasthop_papers::{Claim, Judged, Open, Trial, aligned, all_claims, claims};
use lasthop_report::table;
use lasthop_study::explain::{
    Asked, Explained, Parameter, Tried, answer, design, page, picture, sections,
};
use serde::Serialize;

use self::kept::Kept;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::stop::Stop;
use crate::{Outcome, output, style};

const EXAMPLES: &str = "\
Examples:
  lasthop explain W-T4                  which of the values that its paper leaves open decides it
  lasthop explain W-T1 W-T2 W-T3 W-T4   the conditions of four claims together
  lasthop explain D-F1 --open           what is open, without any run
  lasthop explain W-T4 --testbed --fit W-T1,W-T2
                                        choose values on two claims, judge them on the others

Claims are listed by `lasthop list claims`. docs/explain.md says what is computed and how to read it.
Exit code 130 after Ctrl-C: what is finished is shown and kept, and the same command goes on.";

/// Where results go if nothing else is said.
const OUTPUT: &str = "out/explain";

/// Which of the values that a paper leaves open decide its claims
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Claims of one testbed
    #[arg(value_name = "CLAIM", required = true)]
    pub claims: Vec<String>,
    /// All other claims of the testbed as well
    #[arg(long)]
    pub testbed: bool,
    /// List what is open, and run nothing
    #[arg(long)]
    pub open: bool,
    /// Sets of values to try
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub sets: u32,
    /// Runs per case for each set [default: what the testbed can afford]
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub seeds: Option<u32>,
    /// Runs per case when the best sets are tried again with whole transfers; 0 leaves that out
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub again: u32,
    /// Seed of the sample of sets
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub sample: u64,
    /// Choose sets on these claims or conditions (by number), and judge them on the others [default: random halves]
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub fit: Vec<String>,
    /// Write report, picture and sets to this directory [default: out/explain; none with --json]
    #[arg(long, short, value_name = "DIR")]
    pub output: Option<PathBuf>,
}

/// The answer for programs.
#[derive(Serialize)]
struct Document<'a> {
    lasthop: &'static str,
    command: &'a str,
    #[serde(flatten)]
    explained: &'a Explained,
}

/// Ctrl-C ends the trials.
struct Watch(Stop);

impl Observer for Watch {
    fn stop(&self) -> bool {
        self.0.requested()
    }
}

/// Runs the command.
pub fn run(args: &Args, json: bool) -> Result<Outcome, Failure> {
    let chosen = choose(args)?;
    let open = open(&chosen);
    if args.open {
        return list(&open, json);
    }
    let dir = match (&args.output, json) {
        (Some(dir), _) => Some(dir.clone()),
        (None, false) => Some(PathBuf::from(OUTPUT)),
        (None, true) => None,
    };
    if let Some(dir) = &dir {
        output::prepare(dir)?;
    }
    let watch = Watch(Stop::listen()?);
    let mut kept = Kept::open(dir.as_deref(), &chosen)?;
    let seeds = args.seeds.unwrap_or_else(|| chosen[0].testbed.map_or(3, |testbed| testbed.seeds));
    let trial = Trial { claims: &chosen, seeds, whole: false };
    let design = design(args.sample, open.len(), args.sets as usize);
    let mut sets = vec![Vec::new()];
    sets.extend(design.iter().flatten().map(|places| settings(&open, places)));
    let tried =
        kept.judge_all(&trial, &sets, &watch, &Progress::of_work(sets.len() as u64, json))?;
    let Some(assumed) = tried[0].clone() else {
        return Ok(output::interrupted(dir.as_deref()));
    };
    let asked = asked(&chosen, &open, &design, &sets, &tried, seeds);
    let fit = fit(&args.fit, &assumed)?;
    let mut explained = answer(asked, &fit);
    if args.again > 0 && !watch.stop() {
        let whole = Trial { seeds: args.again, whole: true, ..trial };
        let mut best = vec![Vec::new()];
        best.extend(explained.told().into_iter().map(|i| explained.asked.sets[i].sets.clone()));
        let again =
            kept.judge_all(&whole, &best, &watch, &Progress::of_work(best.len() as u64, json))?;
        if let Some(again) = again.into_iter().collect::<Option<Vec<_>>>() {
            let of =
                |(sets, judged): (&Vec<String>, &Vec<Judged>)| one(&assumed, sets, &[], judged);
            explained.again = best.iter().zip(&again).map(of).collect();
            explained.again_seeds = args.again;
        }
    }
    let command = command(args);
    let document =
        Document { lasthop: env!("CARGO_PKG_VERSION"), command: &command, explained: &explained };
    if json {
        output::print_json(&document)?;
    } else {
        output::print(&text(&explained))?;
    }
    if let Some(dir) = &dir {
        let file = dir.join("report.html");
        output::write(&file, page(&explained, &command).as_bytes())?;
        output::write(&dir.join("explain.svg"), picture(&explained).svg().as_bytes())?;
        output::write(&dir.join("explain.json"), output::json(&document)?.as_bytes())?;
        if !json {
            output::print(&format!("report: {}\n", file.display()))?;
        }
    }
    if watch.stop() {
        return Ok(output::interrupted(dir.as_deref()));
    }
    Ok(Outcome::Done)
}

/// The claims that are asked for, all on one testbed.
fn choose(args: &Args) -> Result<Vec<&'static Claim>, Failure> {
    let mut testbed = None;
    for word in &args.claims {
        let Some(claim) = all_claims().find(|claim| claim.id == word) else {
            let help = "`lasthop list claims` names them all";
            return Err(Failure::input(format!("there is no claim `{word}`"), help));
        };
        let Some(this) = claim.testbed.map(|testbed| testbed.key) else {
            let with: Vec<&str> = claims().filter(|c| c.testbed.is_some()).map(|c| c.id).collect();
            return Err(Failure::input(
                format!("what is open about the testbed of {word} is not described"),
                format!("it is for {}", with.join(", ")),
            ));
        };
        if testbed.is_some_and(|other| other != this) {
            let help = "a set of values is tried on one testbed";
            return Err(Failure::input(
                format!("{word} has another testbed than {}", args.claims[0]),
                help,
            ));
        }
        testbed = Some(this);
    }
    let named = |claim: &&Claim| args.claims.iter().any(|word| word == claim.id);
    let same = |claim: &&Claim| args.testbed && claim.testbed.map(|t| t.key) == testbed;
    Ok(claims().filter(|claim| named(claim) || same(claim)).collect())
}

/// What is open about any of the claims.
fn open(chosen: &[&'static Claim]) -> Vec<Open> {
    let mut all: Vec<Open> = Vec::new();
    for open in chosen.iter().flat_map(|claim| claim.open()) {
        if open.parts().len() > 1 && all.iter().all(|other| other.name() != open.name()) {
            all.push(open);
        }
    }
    all
}

/// Prints what is open.
fn list(open: &[Open], json: bool) -> Result<Outcome, Failure> {
    let parameters: Vec<Parameter> = open.iter().map(parameter).collect();
    if json {
        output::print_json(&parameters)?;
        return Ok(Outcome::Done);
    }
    let line = |p: &Parameter| {
        let Parameter { name, assumed, range, why, .. } = p;
        format!("{}\n  assumed {assumed}, tried {range}\n  {why}\n", style::heading(name))
    };
    output::print(&parameters.iter().map(line).collect::<String>())?;
    Ok(Outcome::Done)
}

fn parameter(open: &Open) -> Parameter {
    Parameter {
        name: open.name().to_owned(),
        assumed: open.assumed.to_owned(),
        range: open.range(),
        parts: open.parts(),
        why: open.why.to_owned(),
    }
}

/// What is set at these places.
fn settings(open: &[Open], places: &[f64]) -> Vec<String> {
    open.iter().zip(places).flat_map(|(open, place)| open.settings(*place)).collect()
}

/// A set that was tried, in the order of the conditions `of`. One that it does not come to is not met.
fn one(of: &[Judged], sets: &[String], places: &[f64], judged: &[Judged]) -> Tried {
    let aligned = aligned(of, judged);
    Tried {
        sets: sets.to_vec(),
        places: places.to_vec(),
        holds: aligned.iter().map(|judged| judged.is_some_and(|judged| judged.holds)).collect(),
        values: aligned.iter().map(|judged| judged.and_then(|judged| judged.value)).collect(),
    }
}

/// What was tried: what is assumed, then the sets of the design, as far as they are finished.
fn asked(
    chosen: &[&'static Claim],
    open: &[Open],
    design: &[Vec<Vec<f64>>],
    settings: &[Vec<String>],
    tried: &[Option<Vec<Judged>>],
    seeds: u32,
) -> Asked {
    let assumed = tried[0].as_deref().unwrap_or_default();
    let mut rest = settings.iter().zip(tried).skip(1);
    let (mut sets, mut blocks) = (Vec::new(), Vec::new());
    for block in design {
        let finished = block.iter().zip(rest.by_ref()).filter_map(|(places, (settings, tried))| {
            Some(one(assumed, settings, places, tried.as_deref()?))
        });
        let before = sets.len();
        sets.extend(finished);
        match sets.len() - before {
            whole if whole == block.len() => blocks.push(whole),
            part => blocks.extend(core::iter::repeat_n(1, part)),
        }
    }
    Asked {
        claims: chosen.iter().map(|claim| claim.id.to_owned()).collect(),
        parameters: open.iter().map(parameter).collect(),
        conditions: assumed.iter().map(ToString::to_string).collect(),
        seeds,
        assumed: one(assumed, &[], &[], assumed),
        sets,
        blocks,
    }
}

/// The places of the conditions that `--fit` names.
fn fit(words: &[String], conditions: &[Judged]) -> Result<Vec<usize>, Failure> {
    let mut all = Vec::new();
    for word in words {
        let number = word.parse().ok().filter(|n| (1..=conditions.len()).contains(n));
        let of_claim = |i: &usize| conditions[*i].claim == *word || number == Some(i + 1);
        let found: Vec<usize> = (0..conditions.len()).filter(of_claim).collect();
        if found.is_empty() {
            let help = format!("a claim that was asked for, or 1 to {}", conditions.len());
            return Err(Failure::input(format!("`--fit {word}` names no condition"), help));
        }
        all.extend(found);
    }
    all.sort_unstable();
    all.dedup();
    Ok(all)
}

/// The command that gives the same answer.
fn command(args: &Args) -> String {
    let mut text = format!("lasthop explain {}", args.claims.join(" "));
    if args.testbed {
        text += " --testbed";
    }
    text += &format!(" --sets {} --sample {}", args.sets, args.sample);
    if let Some(seeds) = args.seeds {
        text += &format!(" --seeds {seeds}");
    }
    if !args.fit.is_empty() {
        text += &format!(" --fit {}", args.fit.join(","));
    }
    text
}

/// The answer for a terminal.
fn text(explained: &Explained) -> String {
    let mut text = String::new();
    for section in sections(explained) {
        text += &format!("{}\n", style::heading(&section.title));
        for table in &section.tables {
            text += &table::render(table, style::look());
            text.push('\n');
        }
        for paragraph in &section.text {
            text += &wrapped(paragraph);
        }
        text.push('\n');
    }
    text
}

/// A paragraph in lines of at most 80 columns.
fn wrapped(paragraph: &str) -> String {
    let mut text = String::new();
    let mut width = 0;
    for word in paragraph.split_whitespace() {
        let length = word.chars().count();
        if width > 0 && width + 1 + length > 80 {
            text.push('\n');
            width = 0;
        } else if width > 0 {
            text.push(' ');
            width += 1;
        }
        text += word;
        width += length;
    }
    text + "\n"
}
