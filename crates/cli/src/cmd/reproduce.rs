//! `lasthop reproduce`: published results beside measured ones, with a verdict for each.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use lasthop_lab::{Observer, RunResult};
use lasthop_papers::{Bench, Claim, Evaluated, PAPERS, claims, evaluate};
use lasthop_report::html;
use lasthop_report::model::{Again, Page, Section, Verdict};
use lasthop_report::table::{self, Look};

use crate::cpu::ForClaims;
use crate::failure::Failure;
use crate::output;
use crate::progress::Progress;
use crate::stop::Stop;
use crate::{Outcome, style};

const EXAMPLES: &str = "\
Examples:
  lasthop reproduce                       everything that can be run
  lasthop reproduce west97                one paper
  lasthop reproduce W-T1 W-T2 --verbose   two of its tables, with all assumptions
  lasthop reproduce --list                what there is

Papers: west97, parsa98, bakshi96, balakrishnan97, agarwal00.
The report is one HTML page that needs no network. Exit code 1 if a claim does not hold, 130 after Ctrl-C.";

/// Where the report goes if nothing else is said.
const OUTPUT: &str = "out/reproduce";

/// Run the papers' experiments and compare with what they published
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Papers or claims; all that can be run if none is given
    #[arg(value_name = "PAPER|CLAIM")]
    pub what: Vec<String>,
    /// List the claims instead of testing them
    #[arg(long)]
    pub list: bool,
    /// Also print the assumptions, and each measured value
    #[arg(long, short)]
    pub verbose: bool,
    /// Runs per case, each with a seed of its own [default: 20, as in the papers' tables]
    #[arg(long, short = 'n', value_name = "N", default_value_t = 20, hide_default_value = true,
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub seeds: u32,
    /// Write the report to this directory [default: out/reproduce; none with --json]
    #[arg(long, short, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Tell on stderr what each claim took, for the costs of the claims
    #[arg(long, hide = true)]
    pub timings: bool,
}

/// Tells how long something took.
struct Stopwatch(Instant);

#[expect(
    clippy::disallowed_methods,
    reason = "what a claim takes is told; no result depends on it"
)]
impl Stopwatch {
    fn start() -> Stopwatch {
        Stopwatch(Instant::now())
    }

    /// Tenths of a second, begun ones counted.
    fn tenths(&self) -> u128 {
        self.0.elapsed().as_millis().div_ceil(100)
    }
}

/// Shows how far the experiments are and passes on Ctrl-C.
struct Watch {
    stop: Stop,
    progress: Progress,
    /// Runs of the claim at work.
    runs: AtomicU64,
    /// What is at work, for the line of progress.
    at: Mutex<String>,
}

impl Watch {
    /// `claim` is at work, number `number` of `of`.
    fn begin(&self, claim: &Claim, number: usize, of: usize) {
        self.runs.store(0, Relaxed);
        let text = format!("{} ({number} of {of} claims)", claim.id);
        self.progress.show(text.clone());
        *self.at.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }
}

impl Observer for Watch {
    fn measured(&self, _: usize, _: &RunResult) {
        let runs = self.runs.fetch_add(1, Relaxed) + 1;
        let at = self.at.lock().unwrap_or_else(PoisonError::into_inner);
        self.progress.show(format!("{at}, run {runs}"));
    }

    fn stop(&self) -> bool {
        self.stop.requested()
    }
}

/// Runs the command.
pub fn run(args: &Args, json: bool) -> Result<Outcome, Failure> {
    let chosen = choose(&args.what)?;
    if args.list {
        list(&chosen, json)?;
        return Ok(Outcome::Done);
    }
    // Without a choice, what cannot be run is left out; a claim that was asked for is answered.
    let chosen: Vec<&Claim> =
        chosen.into_iter().filter(|c| !args.what.is_empty() || c.run.is_some()).collect();
    let directory = match (&args.output, json) {
        (Some(dir), _) => Some(dir.clone()),
        (None, false) => Some(PathBuf::from(OUTPUT)),
        (None, true) => None,
    };
    if let Some(dir) = &directory {
        output::prepare(dir)?;
    }
    let total: u64 = chosen.iter().map(|claim| claim.cost).sum();
    let watch = Watch {
        stop: Stop::listen()?,
        progress: Progress::of_work(total, json),
        runs: AtomicU64::new(0),
        at: Mutex::default(),
    };
    let live = ForClaims {
        stop: &|| watch.stop.requested(),
        show: &|done, of| {
            let at = watch.at.lock().unwrap_or_else(PoisonError::into_inner);
            watch.progress.show(format!("{at}, transfer {done} of {of}"));
        },
    };
    let mut bench = Bench::new(args.seeds, &watch);
    bench.live = Some(&live);
    let mut evaluated = Vec::new();
    let mut interrupted = false;
    for (i, claim) in chosen.iter().enumerate() {
        watch.begin(claim, i + 1, chosen.len());
        let began = Stopwatch::start();
        let Ok(one) = evaluate(claim, &mut bench) else {
            interrupted = true;
            break;
        };
        if !json {
            show(&one, args.verbose)?;
        }
        evaluated.push(one);
        if args.timings {
            eprintln!("    (\"{}\", {}),", claim.id, began.tenths());
        }
        watch.progress.advance(claim.cost);
    }
    watch.progress.finish();

    let results: Vec<_> = evaluated.iter().map(|e| e.result.clone()).collect();
    if json {
        output::print_json(&results)?;
    } else {
        let look = look();
        // The reasons stand above in full; here the first sentence reminds of them.
        let brief: Vec<_> = results
            .iter()
            .map(|r| {
                let reason = r.reason.split(". ").next().unwrap_or_default().to_owned();
                lasthop_report::model::ClaimResult { reason, ..r.clone() }
            })
            .collect();
        output::print(&table::render(&table::verdicts(&brief), look))?;
        if args.verbose {
            assumptions(&chosen)?;
        }
    }
    if let Some(dir) = &directory {
        let file = dir.join("report.html");
        output::write(&file, html::render(&page(args, &chosen, &evaluated)).as_bytes())?;
        output::write(&dir.join("claims.json"), output::json(&results)?.as_bytes())?;
        if !json {
            output::print(&format!("\nreport: {}\n", file.display()))?;
        }
    }
    if interrupted {
        eprintln!(
            "stopped: {} of {} claims are evaluated; name the others to go on: lasthop reproduce {}",
            evaluated.len(),
            chosen.len(),
            chosen[evaluated.len()..].iter().map(|c| c.id).collect::<Vec<_>>().join(" ")
        );
        return Ok(Outcome::Interrupted);
    }
    let failed = results.iter().any(|r| r.verdict == Verdict::Fails);
    Ok(if failed { Outcome::No } else { Outcome::Done })
}

/// The claims that `what` names, in the order of the papers.
fn choose(what: &[String]) -> Result<Vec<&'static Claim>, Failure> {
    for word in what {
        let known = PAPERS.iter().any(|p| p.key == word) || claims().any(|c| c.id == word);
        if !known {
            return Err(Failure::input(
                format!("there is no paper or claim `{word}`"),
                "`lasthop reproduce --list` names them all",
            ));
        }
    }
    let named = |c: &&Claim| what.is_empty() || what.iter().any(|w| w == c.paper || w == c.id);
    Ok(claims().filter(named).collect())
}

fn look() -> Look {
    if std::io::stdout().is_terminal() {
        Look::Terminal(console::Term::stdout().size().1)
    } else {
        Look::Plain
    }
}

#[derive(serde::Serialize)]
struct Listed {
    id: &'static str,
    paper: &'static str,
    #[serde(rename = "where")]
    place: &'static str,
    /// `experiment`: `lasthop reproduce` can run it; `planned`: not yet.
    status: &'static str,
    setup: &'static str,
    published: &'static str,
}

/// Prints the claims.
pub fn list(chosen: &[&'static Claim], json: bool) -> Result<(), Failure> {
    let rows: Vec<Listed> = chosen
        .iter()
        .map(|c| Listed {
            id: c.id,
            paper: c.paper,
            place: c.place,
            status: if c.run.is_some() { "experiment" } else { "planned" },
            setup: c.setup,
            published: c.published,
        })
        .collect();
    if json {
        return output::print_json(&rows);
    }
    let mut text = String::new();
    let mut paper = "";
    for row in &rows {
        if row.paper != paper {
            paper = row.paper;
            let title = PAPERS.iter().find(|p| p.key == paper).map_or("", |p| p.title);
            text.push_str(&format!(
                "{}{paper}: {title}\n",
                if text.is_empty() { "" } else { "\n" }
            ));
        }
        text.push_str(&format!("  {:<18} {:<10}  {}\n", row.id, row.status, row.place));
    }
    output::print(&text)
}

/// One claim on the terminal.
fn show(one: &Evaluated, verbose: bool) -> Result<(), Failure> {
    let r = &one.result;
    let verdict = match r.verdict {
        Verdict::Holds => style::good("holds"),
        Verdict::Fails => style::bad("fails"),
        Verdict::NotRun => style::dim("not run"),
    };
    let mut text = format!("{}  {verdict}  ({})\n", style::heading(&r.id), r.place);
    let look = look();
    if let Some(finding) = &one.finding {
        for t in &finding.tables {
            text.push_str(&table::render(t, look));
            text.push('\n');
        }
        if verbose || finding.tables.is_empty() {
            text.push_str(&table::render(&table::claim_figures(r), look));
            text.push('\n');
        }
    }
    text.push_str(&format!("{}\n\n", r.reason));
    output::print(&text)
}

fn assumptions(chosen: &[&Claim]) -> Result<(), Failure> {
    for paper in PAPERS.iter().filter(|p| chosen.iter().any(|c| c.paper == p.key)) {
        if paper.assumed.is_empty() {
            continue;
        }
        let mut text = format!("\nWhat {} leaves open, and what is assumed:\n", paper.key);
        for (what, why) in paper.assumed {
            text.push_str(&format!("- {what}\n  {why}\n"));
        }
        output::print(&text)?;
    }
    Ok(())
}

/// Where the claims were measured.
fn world(chosen: &[&Claim]) -> String {
    let timed: Vec<&str> =
        chosen.iter().filter(|claim| claim.of_this_machine).map(|claim| claim.id).collect();
    let simulated = "sim: deterministic simulator";
    match timed.len() {
        0 => simulated.to_owned(),
        n if n == chosen.len() => "this machine".to_owned(),
        _ => format!("{simulated}; this machine for {}", timed.join(", ")),
    }
}

fn page(args: &Args, chosen: &[&Claim], evaluated: &[Evaluated]) -> Page {
    let papers: Vec<_> =
        PAPERS.iter().filter(|p| chosen.iter().any(|c| c.paper == p.key)).collect();
    let title = match papers.as_slice() {
        [one] => format!("{}: published and measured", one.key),
        _ => "Published and measured".to_owned(),
    };
    let sections = evaluated
        .iter()
        .map(|one| {
            let finding = one.finding.clone().unwrap_or_default();
            Section {
                title: String::new(),
                text: Vec::new(),
                claim: Some(one.result.clone()),
                tables: finding.tables,
                figures: finding.figures,
            }
        })
        .collect();
    let what =
        if args.what.is_empty() { String::new() } else { format!(" {}", args.what.join(" ")) };
    Page {
        title,
        subtitle: papers.iter().map(|p| p.title).collect::<Vec<_>>().join("; "),
        facts: vec![
            ("runs per case".to_owned(), args.seeds.to_string()),
            ("world".to_owned(), world(chosen)),
        ],
        sections,
        assumptions: papers.iter().flat_map(|p| p.assumptions()).collect(),
        again: Again {
            commands: vec![format!("lasthop reproduce{what} --seeds {}", args.seeds)],
            seeds: format!("1..{}", args.seeds),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        },
    }
}
