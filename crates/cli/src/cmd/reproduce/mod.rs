//! `lasthop reproduce`: published and measured results, with a verdict for each.

mod page;
mod store;
mod terminal;

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use lasthop_batch::lock;
use lasthop_papers::{Bench, Claim, all_claims, evaluate, works};
use lasthop_report::model::Verdict;
use lasthop_scenario::synonyms::meaning;
use lasthop_sim::runs::{Observer, RunResult};

use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::progress::Progress;
use crate::stop::Stop;
use crate::{format, note, output};
use store::{Origin, Store, StoredClaim};

/// Default directory of the report.
const OUTPUT: &str = "out/reproduce";

/// Run the papers' experiments and compare with what they published
#[derive(clap::Args, Debug)]
pub struct ReproduceArgs {
    /// Papers or claims; all of the papers if none is given
    #[arg(value_name = "PAPER|CLAIM")]
    pub what: Vec<String>,
    /// List the claims instead of testing them
    #[arg(long)]
    pub list: bool,
    /// Exit code 1 if a claim fails
    #[arg(long)]
    pub strict: bool,
    /// Evaluate again the claims that an earlier run stored
    #[arg(long)]
    pub fresh: bool,
    /// Runs per case, each with a seed of its own [default: 20, as in the papers' tables]
    #[arg(long, short = 'n', value_name = "N", default_value_t = 20, hide_default_value = true,
          value_parser = crate::study_args::seeds(1, 100_000))]
    pub seeds: u32,
    /// Seed of the first run of each case: another block of seeds tests whether a verdict depends on chance
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(..=1 << 53))]
    pub seed: u64,
    /// Add to the report in this directory [default: out/reproduce; none with --json]
    #[arg(long, short, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Print the time of each claim on stderr, in the format of crates/papers/src/costs.txt
    #[arg(long, hide = true, requires = "fresh")]
    pub timings: bool,
}

/// Prints elapsed times.
struct Stopwatch(Instant);

#[expect(
    clippy::disallowed_methods,
    reason = "the elapsed time is only printed; no result depends on it"
)]
impl Stopwatch {
    fn start() -> Stopwatch {
        Stopwatch(Instant::now())
    }

    /// Elapsed time, rounded up to tenths of a second.
    fn tenths(&self) -> u128 {
        self.0.elapsed().as_millis().div_ceil(100)
    }
}

/// Shows progress of the experiments and forwards Ctrl-C.
struct Watch {
    stop: Stop,
    progress: Progress,
    /// Finished runs of the present claim.
    runs: AtomicU64,
    /// The present claim, for the line of progress.
    at: Mutex<String>,
    /// Runs in which simulated time stopped.
    stuck: Mutex<Vec<String>>,
}

impl Watch {
    /// Shows `claim` as number `number` of `of`.
    fn begin(&self, claim: &Claim, number: usize, of: usize) {
        self.runs.store(0, Relaxed);
        let text = format!("{} ({number} of {of} claims)", claim.id);
        self.progress.show(text.clone());
        *lock(&self.at) = text;
    }
}

impl Observer for Watch {
    fn measured(&self, _: usize, result: &RunResult) {
        let runs = self.runs.fetch_add(1, Relaxed) + 1;
        let at = lock(&self.at);
        self.progress.show(format!("{at}, run {runs}"));
        if let Some(place) = &result.stuck {
            let (seed, version) = (result.seed, lasthop_sim::version::LINE);
            let line = format!("lasthop reproduce: {at}, seed {seed}, {place}, lasthop {version}");
            lock(&self.stuck).push(line);
        }
    }

    fn stop(&self) -> bool {
        self.stop.requested()
    }
}

/// Runs the command.
pub fn run(args: &ReproduceArgs, json: bool) -> Result<Outcome, Failure> {
    if args.list && args.what.is_empty() {
        list(all_claims(), json)?;
        return Ok(Outcome::Done);
    }
    let chosen = choose(&args.what)?;
    if args.list {
        list(chosen, json)?;
        return Ok(Outcome::Done);
    }
    let default = || (!json).then(|| PathBuf::from(OUTPUT));
    let directory = args.output.clone().or_else(default);
    let store = directory.as_deref().map(Store::open).transpose()?;
    let origin = Origin::new(args.seeds, args.seed);
    lasthop_batch::start_threads()?;
    let done = evaluate_all(args, &chosen, store.as_ref(), &origin, json)?;

    if json {
        let claims: Vec<_> = done.iter().map(|claim| claim.answer(&origin)).collect();
        output::print_json(format::REPRODUCE, &serde_json::json!({ "claims": claims }))?;
    } else {
        if note::is_verbose() {
            terminal::verdicts(&done)?;
            terminal::assumptions(&chosen)?;
        }
        terminal::summary(&done)?;
    }
    if let Some(store) = &store {
        let report = page::write(store, &origin)?;
        if !json {
            terminal::where_else(
                &report,
                note::is_verbose(),
                done.iter().filter(|k| k.found).count(),
            )?;
        }
    }
    if done.len() < chosen.len() {
        return Ok(output::interrupted(directory.as_deref()));
    }
    let failed = done.iter().any(|claim| claim.result.verdict == Verdict::Fails);
    Ok(if failed && args.strict { Outcome::No } else { Outcome::Done })
}

/// Evaluates the claims that are not stored, in order, and prints each. Returns fewer after Ctrl-C.
fn evaluate_all(
    args: &ReproduceArgs,
    chosen: &[&Claim],
    store: Option<&Store>,
    origin: &Origin,
    json: bool,
) -> Result<Vec<StoredClaim>, Failure> {
    let mut stored: Vec<Option<StoredClaim>> =
        chosen.iter().map(|claim| store.filter(|_| !args.fresh)?.valid(claim.id, origin)).collect();
    let missing = chosen.iter().zip(&stored).filter(|(_, stored)| stored.is_none());
    let watch = Watch {
        stop: Stop::listen()?,
        progress: Progress::of_work(missing.map(|(claim, _)| claim.cost()).sum(), json),
        runs: AtomicU64::new(0),
        at: Mutex::default(),
        stuck: Mutex::default(),
    };
    let mut bench = Bench::new(args.seeds, &watch);
    bench.first_seed = args.seed;
    let width = chosen.iter().map(|claim| claim.id.len()).max().unwrap_or(0);
    let mut done = Vec::new();
    for (i, claim) in chosen.iter().enumerate() {
        let one = match stored[i].take() {
            Some(one) => one,
            None => {
                watch.begin(claim, i + 1, chosen.len());
                let began = Stopwatch::start();
                let Ok(evaluated) = evaluate(claim, &mut bench) else { break };
                let stuck = lock(&watch.stuck).clone();
                Failure::if_stuck(stuck)?;
                let one = StoredClaim::new(evaluated, origin.clone());
                if let Some(store) = store {
                    store.save(&one)?;
                }
                if args.timings {
                    eprintln!("{} {}", claim.id, began.tenths());
                }
                watch.progress.advance(claim.cost());
                one
            }
        };
        if !json {
            watch.progress.suspend(|| terminal::claim(&one, width, note::is_verbose()))?;
        }
        done.push(one);
    }
    watch.progress.finish();
    Ok(done)
}

/// The claims that `words` name, in the order of the papers.
fn choose(words: &[String]) -> Result<Vec<&'static Claim>, Failure> {
    lasthop_papers::choose(words).map_err(|word| {
        let names: Vec<&str> =
            works().map(|work| work.key).chain(all_claims().map(|claim| claim.id)).collect();
        let near = names.iter().copied().find(|name| name.eq_ignore_ascii_case(word));
        let near = near.or_else(|| meaning(word, &[], &names));
        let guess = near.map_or(String::new(), |near| format!("did you mean `{near}`? "));
        let help = format!("{guess}`lasthop reproduce --list` names them all");
        Failure::input(format!("there is no paper or claim `{word}`"), help)
    })
}

#[derive(serde::Serialize)]
struct Listed {
    id: &'static str,
    paper: &'static str,
    #[serde(rename = "where")]
    place: &'static str,
    /// `experiment`: `lasthop reproduce` can run it.
    status: &'static str,
    setup: &'static str,
    published: &'static str,
    /// Verdict of the last reproduction of all claims; related work is not part of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<Verdict>,
    /// Its conditions that hold, and all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    conditions: Option<[u32; 2]>,
}

/// Prints the claims.
pub fn list(chosen: impl IntoIterator<Item = &'static Claim>, json: bool) -> Result<(), Failure> {
    let record = lasthop_papers::record();
    let rows: Vec<Listed> = chosen
        .into_iter()
        .map(|c| (c, record.claim(c.id)))
        .map(|(c, recorded)| Listed {
            id: c.id,
            paper: c.paper,
            place: &c.text().place,
            status: "experiment",
            setup: &c.text().setup,
            published: &c.text().published,
            verdict: recorded.map(|r| r.verdict),
            conditions: recorded.map(|r| [r.conditions[0], r.conditions.iter().sum()]),
        })
        .collect();
    if json {
        let (lasthop, seeds) = (record.lasthop, record.seeds.count);
        let first_seed = record.seeds.first;
        let recorded = serde_json::json!({
            "lasthop": lasthop, "seeds": seeds, "first_seed": first_seed
        });
        let answer = serde_json::json!({ "claims": rows, "recorded": recorded });
        return output::print_json(format::LIST, &answer);
    }
    let mut text = String::new();
    let mut paper = "";
    for row in &rows {
        if row.paper != paper {
            paper = row.paper;
            let title = works().find(|p| p.key == paper).map_or("", |p| p.title);
            text.push_str(&format!(
                "{}{paper}: {title}\n",
                if text.is_empty() { "" } else { "\n" }
            ));
        }
        let verdict = row.verdict.map_or(row.status, Verdict::word);
        let own = if record.own_seeds(&[row.id]).is_some() { "*" } else { "" };
        let verdict = format!("{verdict}{own}");
        let conditions =
            row.conditions.map_or_else(String::new, |[held, of]| format!("{held}/{of}"));
        text.push_str(&format!("  {:<18} {verdict:<10} {conditions:>6}  {}\n", row.id, row.place));
    }
    if rows.iter().any(|row| row.verdict.is_some()) {
        let ids: Vec<&str> = rows.iter().map(|row| row.id).collect();
        let own = record.own_seeds(&ids).map_or(String::new(), |own| format!(" (* {own})"));
        text.push_str(&format!(
            "\nverdicts and conditions that hold: lasthop {} with {}{own}; `lasthop reproduce` evaluates them again\n",
            record.lasthop, record.seeds
        ));
    }
    output::print(&text)
}
