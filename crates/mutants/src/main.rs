//! Mutation testing with one build for all mutants.
//!
//! ```text
//! lasthop-mutants [--count 300] [--seed 1[,2...]] [--crates proto,scenario,path,observe,live] [--also sim] [--minutes N]
//!                 [--dir target/mutants]
//! ```
//!
//! cargo-mutants lists the possible changes, but would rebuild for each mutant, which takes minutes. Here each mutant
//! is a branch that is taken if `LASTHOP_MUTANT` has its number. Each test first runs alone without a mutant and
//! records which mutants it reaches. A mutant then runs with those tests only, the quickest first, until one fails.
//! Tests that compare digests run last, and mutants caught only by them are counted separately.

mod clock;
mod list;
mod places;
mod run;
mod tests;
mod tree;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Duration;
use std::{env, fs, io};

use clock::Clock;
use run::{Outcome, at_once};

struct Options {
    count: usize,
    /// Each draws its own sample; all are in one build.
    seeds: Vec<u64>,
    crates: Vec<String>,
    also: Vec<String>,
    minutes: u64,
    dir: PathBuf,
    cargo: Vec<String>,
}

fn options() -> Result<Options, String> {
    let words = |text: &str| text.split(',').filter(|w| !w.is_empty()).map(str::to_owned).collect();
    let mut options = Options {
        count: 300,
        seeds: vec![1],
        crates: words("proto,scenario,path,observe,live"),
        also: Vec::new(),
        minutes: u64::MAX / 60,
        dir: "target/mutants".into(),
        cargo: Vec::new(),
    };
    let mut arguments = env::args().skip(1);
    while let Some(argument) = arguments.next() {
        if argument == "--" {
            options.cargo.extend(arguments.by_ref());
            break;
        }
        let value = arguments.next().ok_or_else(|| format!("{argument} needs a value"))?;
        let parsed = |text: &str| {
            text.parse::<u64>().map_err(|_| format!("{argument}: `{text}` is no number"))
        };
        let number = || parsed(&value);
        match argument.as_str() {
            "--count" => options.count = (number()? as usize).min(tree::MOST),
            "--seed" => options.seeds = value.split(',').map(parsed).collect::<Result<_, _>>()?,
            "--minutes" => options.minutes = number()?,
            "--crates" => options.crates = words(&value),
            "--also" => options.also = words(&value),
            "--dir" => options.dir = value.into(),
            _ => {
                return Err(format!(
                    "unknown: {argument}; see the head of crates/mutants/src/main.rs"
                ));
            }
        }
    }
    Ok(options)
}

fn main() -> ExitCode {
    let done = options().map_err(io::Error::other).and_then(|options| campaign(&options));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn campaign(options: &Options) -> io::Result<()> {
    let clock = Clock::start();
    let root = env::current_dir()?;
    fs::create_dir_all(&options.dir)?;
    let dir = fs::canonicalize(&options.dir)?;
    let crates: Vec<&str> = options.crates.iter().map(String::as_str).collect();
    let mut all = list::all(&root, &crates)?;
    let total = all.len();
    let mut mutants: Vec<places::Mutant> = Vec::new();
    let mut samples = Vec::new();
    for seed in &options.seeds {
        let first = mutants.len();
        let count = options.count.min(tree::MOST - first);
        // Later samples exclude earlier ones.
        mutants.extend(list::sample(&mut all, count, *seed));
        samples.push((*seed, first as u32 + 1..=mutants.len() as u32));
        eprintln!("{} of {total} mutants, seed {seed}", mutants.len() - first);
    }
    for (mutant, number) in mutants.iter_mut().zip(1..) {
        mutant.number = number;
    }

    let sample = mutants.iter().map(|m| format!("{}\t{}\n", m.number, m.name));
    fs::write(dir.join("sample.txt"), sample.collect::<String>())?;

    let copy = dir.join("tree");
    tree::copy(&root, &copy, &mutants)?;
    let cargo = tree::Cargo { target: dir.join("build"), arguments: options.cargo.clone() };
    let (unplaced, refused) = tree::plant(&root, &copy, &mutants, &cargo)?;
    let package = |name: &String| match name.as_str() {
        "cli" => "lasthop".to_owned(),
        name => format!("lasthop-{name}"),
    };
    let own: Vec<String> = options.crates.iter().map(package).collect();
    let packages: Vec<String> =
        own.iter().cloned().chain(options.also.iter().map(package)).collect();
    let programs = cargo.programs(&copy, &packages)?;
    eprintln!("{} s: {} programs with tests are built", clock.seconds(), programs.len());

    let (tests, same) = tests::all(&programs, &own, &dir)?;
    let sum: Duration = tests.iter().map(|test| test.took).sum();
    eprintln!("{} s: {} tests come by, {} s", clock.seconds(), tests.len(), sum.as_secs());
    let results = dir.join("outcomes.txt");
    let known = fs::read_to_string(&results).unwrap_or_default();
    let outcomes: Mutex<BTreeMap<u32, (&places::Mutant, Outcome)>> = Mutex::default();
    at_once(&mutants, |mutant| {
        // A stored result is valid for the same mutant at the same position; a missed one also requires the same tests.
        let before = known.lines().find_map(|line| Outcome::of_line(line, &mutant.name));
        let outcome = match before.filter(|outcome| same || !outcome.is_missed()) {
            Some(outcome) => outcome,
            None if clock.seconds() / 60 >= options.minutes => return Ok(()),
            None if unplaced.contains(&mutant.number) => Outcome::Unplaced,
            None if refused.contains(&mutant.number) => Outcome::NoProgram,
            None => {
                let outcome = run::try_one(mutant, &tests)?;
                eprintln!("{} s: {} {outcome}: {}", clock.seconds(), mutant.number, mutant.name);
                outcome
            }
        };
        let mut outcomes = outcomes.lock().map_err(|_| io::Error::other("a thread panicked"))?;
        outcomes.insert(mutant.number, (mutant, outcome));
        fs::write(&results, listing(outcomes.values()))
    })?;
    let outcomes = outcomes.into_inner().map_err(|_| io::Error::other("a thread panicked"))?;
    let outcomes: Vec<_> = outcomes.into_values().collect();
    for (seed, numbers) in samples {
        let own: Vec<_> = outcomes.iter().filter(|(m, _)| numbers.contains(&m.number)).collect();
        let tried = own.len();
        println!("\nSeed {seed}: {tried} tried of {total}\n\n{}", table(&own, &options.crates));
    }
    println!("Each of them: {}", show(&results));
    Ok(())
}

fn show(path: &Path) -> String {
    path.display().to_string()
}

fn listing<'a>(outcomes: impl Iterator<Item = &'a (&'a places::Mutant, Outcome)>) -> String {
    let line = |(mutant, outcome): &(&places::Mutant, Outcome)| {
        format!("{}\t{outcome}\t{}\t{}\n", mutant.number, mutant.genre(), mutant.name)
    };
    outcomes.map(line).collect()
}

/// Numbers of caught and missed mutants, by crate.
fn table(outcomes: &[&(&places::Mutant, Outcome)], crates: &[String]) -> String {
    let mut text = "| crate | tried | no program, or in a constant | caught | of these by a digest alone | missed | \
                    of these no test comes by |\n|---|---|---|---|---|---|---|\n"
        .to_owned();
    for name in crates.iter().map(String::as_str).chain([""]) {
        let package = format!("lasthop-{name}");
        let own = || outcomes.iter().filter(|(m, _)| name.is_empty() || m.package == package);
        let count = |is: fn(&Outcome) -> bool| own().filter(|(_, outcome)| is(outcome)).count();
        let digest = count(|o| matches!(o, Outcome::Digest(_)));
        let caught = digest + count(|o| matches!(o, Outcome::Caught(_)));
        let missed = count(Outcome::is_missed);
        let unreached = count(|o| matches!(o, Outcome::Unreached));
        let none = count(|o| matches!(o, Outcome::NoProgram | Outcome::Unplaced));
        let name = if name.is_empty() { "all" } else { name };
        let tried = own().count();
        text += &format!(
            "| {name} | {tried} | {none} | {caught} | {digest} | {missed} | {unreached} |\n"
        );
    }
    text
}
