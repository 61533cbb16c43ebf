//! Mutants of the source: a sample of them, all in one build, and which of them no test notices.
//!
//! ```text
//! lasthop-mutants [--count 300] [--seed 1] [--crates proto,scenario,path,trace,live] [--also sim] [--minutes N]
//!                 [--dir target/mutants]
//! ```
//!
//! cargo-mutants says what can be changed. It would build everything anew for each mutant, which takes minutes; here each
//! is a branch that is taken where `LASTHOP_MUTANT` has its number. Tests run once without a mutant, and note which mutants
//! they come by; a mutant is then tried with those test programs alone, the quickest first, until one fails.

mod list;
mod places;
mod run;
mod tree;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs, io};

use run::{Clock, Outcome};

/// What was asked for.
struct Options {
    count: usize,
    seed: u64,
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
        seed: 1,
        crates: words("proto,scenario,path,trace,live"),
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
        let number =
            || value.parse::<u64>().map_err(|_| format!("{argument}: `{value}` is no number"));
        match argument.as_str() {
            "--count" => options.count = (number()? as usize).min(tree::MOST),
            "--seed" => options.seed = number()?,
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
    let all = list::all(&root, &crates)?;
    let total = all.len();
    let mutants = list::sample(all, options.count, options.seed);
    eprintln!("{} of {total} mutants, seed {}", mutants.len(), options.seed);

    let sample = mutants.iter().map(|m| format!("{}\t{}\n", m.number, m.name));
    fs::write(dir.join("sample.txt"), sample.collect::<String>())?;

    let copy = dir.join("tree");
    tree::copy(&root, &copy, &mutants)?;
    let cargo = tree::Cargo { target: dir.join("build"), arguments: options.cargo.clone() };
    let (unplaced, refused) = tree::plant(&root, &copy, &mutants, &cargo)?;
    let packages: Vec<String> =
        options.crates.iter().chain(&options.also).map(|name| format!("lasthop-{name}")).collect();
    let programs = cargo.programs(&copy, &packages)?;
    eprintln!("{} s: {} programs with tests are built", clock.seconds(), programs.len());

    let baselines = run::baselines(&programs, &dir)?;
    let mut outcomes: Vec<(&places::Mutant, Outcome)> = Vec::new();
    let results = dir.join("outcomes.txt");
    let known = fs::read_to_string(&results).unwrap_or_default();
    // Crate by crate, as they were named: tests of real packets take longest and come last.
    let mut order: Vec<&places::Mutant> = mutants.iter().collect();
    order.sort_by_key(|m| packages.iter().position(|package| *package == m.package));
    for mutant in order {
        // What was found before holds as long as it was this very place.
        if let Some(outcome) = known.lines().find_map(|line| Outcome::of_line(line, &mutant.name)) {
            outcomes.push((mutant, outcome));
            continue;
        }
        if clock.seconds() / 60 >= options.minutes {
            break;
        }
        let outcome = if unplaced.contains(&mutant.number) {
            Outcome::Unplaced
        } else if refused.contains(&mutant.number) {
            Outcome::NoProgram
        } else {
            run::try_one(mutant, &baselines)?
        };
        eprintln!("{} s: {} {outcome}: {}", clock.seconds(), mutant.number, mutant.name);
        outcomes.push((mutant, outcome));
        fs::write(&results, listing(&outcomes))?;
    }
    print!("{}", table(&outcomes, &options.crates, total));
    println!("\nEach of them: {}", show(&results));
    Ok(())
}

fn show(path: &Path) -> String {
    path.display().to_string()
}

fn listing(outcomes: &[(&places::Mutant, Outcome)]) -> String {
    let line = |(mutant, outcome): &(&places::Mutant, Outcome)| {
        format!("{}\t{outcome}\t{}\t{}\n", mutant.number, mutant.genre(), mutant.name)
    };
    outcomes.iter().map(line).collect()
}

/// How many were caught and missed, by crate.
fn table(outcomes: &[(&places::Mutant, Outcome)], crates: &[String], total: usize) -> String {
    let mut text = format!("\n{} tried of {total}\n\n", outcomes.len());
    text += "| crate | tried | caught | missed | of these no test comes by | no program | in constants |\n";
    text += "|---|---|---|---|---|---|---|\n";
    for name in crates.iter().map(String::as_str).chain([""]) {
        let package = format!("lasthop-{name}");
        let own = || outcomes.iter().filter(|(m, _)| name.is_empty() || m.package == package);
        let count = |is: fn(&Outcome) -> bool| own().filter(|(_, outcome)| is(outcome)).count();
        let caught = count(|o| matches!(o, Outcome::Caught(_)));
        let unreached = count(|o| matches!(o, Outcome::Unreached));
        let missed = unreached + count(|o| matches!(o, Outcome::Missed));
        let refused = count(|o| matches!(o, Outcome::NoProgram));
        let unplaced = count(|o| matches!(o, Outcome::Unplaced));
        let name = if name.is_empty() { "all" } else { name };
        let tried = own().count();
        text += &format!(
            "| {name} | {tried} | {caught} | {missed} | {unreached} | {refused} | {unplaced} |\n"
        );
    }
    text
}
