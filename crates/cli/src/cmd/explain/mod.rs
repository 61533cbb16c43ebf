//! `lasthop explain`: the assumptions that determine a claim's verdict.

mod cache;

use std::path::PathBuf;

use lasthop_batch::explain::Question;
use lasthop_papers::Trial;
use lasthop_report::table;
use lasthop_report::wrap::wrap;
use lasthop_sim::runs::Observer;
use lasthop_study::explain::{Explanation, Parameter, page, picture, sections};
use serde::Serialize;

use self::cache::ConditionCache;
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::progress::Progress;
use crate::stop::Stop;
use crate::{format, output, style};

/// The largest number of columns of a paragraph.
const COLUMNS: usize = 80;

/// Default directory of results.
const OUTPUT: &str = "out/explain";

/// Which of the values that a paper leaves open decide its claims
#[derive(clap::Args, Debug)]
pub struct ExplainArgs {
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
    #[arg(long, short = 'n', value_name = "N", value_parser = crate::study_args::seeds(1, 100_000))]
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
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<&'static str>,
    command: &'a str,
    #[serde(flatten)]
    explained: &'a Explanation,
}

/// Stops the trials after Ctrl-C.
struct Watch(Stop);

impl Observer for Watch {
    fn stop(&self) -> bool {
        self.0.requested()
    }
}

/// Runs the command.
pub fn run(args: &ExplainArgs, json: bool) -> Result<Outcome, Failure> {
    let question = question(args)?;
    if args.open {
        return list(&question.parameters(), json);
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
    lasthop_batch::start_threads()?;
    let mut cache = ConditionCache::open(dir.as_deref(), &question.claims)?;
    let explained = question.answer(&mut |trial: &Trial<'_>, sets: &[Vec<String>]| {
        cache.judge_all(trial, sets, &watch, &Progress::of_work(sets.len() as u64, json))
    })?;
    let Some(explained) = explained else {
        return Ok(output::interrupted(dir.as_deref()));
    };
    let command = command(args);
    let document = Document {
        lasthop: lasthop_sim::version::VERSION,
        commit: lasthop_sim::version::COMMIT,
        command: &command,
        explained: &explained,
    };
    if json {
        output::print_json(format::EXPLAIN, &document)?;
    } else {
        output::print(&text(&explained))?;
    }
    if let Some(dir) = &dir {
        let file = dir.join("report.html");
        output::write(&file, page(&explained, &command).as_bytes())?;
        output::write(&dir.join("explain.svg"), picture(&explained).svg().as_bytes())?;
        output::write(
            &dir.join("explain.json"),
            output::json(&format::EXPLAIN.of(&document))?.as_bytes(),
        )?;
        if !json {
            output::print(&format!("report: {}\n", file.display()))?;
        }
    }
    if watch.stop() {
        return Ok(output::interrupted(dir.as_deref()));
    }
    Ok(Outcome::Done)
}

fn question(args: &ExplainArgs) -> Result<Question, Failure> {
    let mut question = Question::new(&args.claims, args.testbed)?;
    question.sets = args.sets as usize;
    question.sample = args.sample;
    question.seeds = args.seeds.unwrap_or(question.seeds);
    question.again = args.again;
    question.fit = args.fit.clone();
    Ok(question)
}

/// Prints the open parameters.
fn list(parameters: &[Parameter], json: bool) -> Result<Outcome, Failure> {
    if json {
        output::print_json(format::EXPLAIN, &serde_json::json!({ "parameters": parameters }))?;
        return Ok(Outcome::Done);
    }
    let line = |p: &Parameter| {
        let Parameter { name, assumed, range, why, .. } = p;
        format!("{}\n  assumed {assumed}, tried {range}\n  {why}\n", style::heading(name))
    };
    output::print(&parameters.iter().map(line).collect::<String>())?;
    Ok(Outcome::Done)
}

/// The command that repeats the question.
fn command(args: &ExplainArgs) -> String {
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
fn text(explained: &Explanation) -> String {
    let mut text = String::new();
    for section in sections(explained) {
        text += &format!("{}\n", style::heading(&section.title));
        for table in &section.tables {
            text += &table::render(table, style::look());
            text.push('\n');
        }
        for paragraph in &section.text {
            text += &format!("{}\n", wrap(paragraph, style::room(COLUMNS)));
        }
        text.push('\n');
    }
    text
}
