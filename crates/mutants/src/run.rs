//! Runs test programs: once as they are, then with each mutant.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, io, thread};

use crate::places::Mutant;
use crate::tree::Program;

/// What became of a mutant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// A test of this program failed, or did not end.
    Caught(String),
    /// All tests that come by passed.
    Missed,
    /// No test comes by.
    Unreached,
    /// The compiler refuses it.
    NoProgram,
    /// It stands where no branch can: in a constant.
    Unplaced,
}

impl Outcome {
    /// The outcome that `line` of a list tells of the mutant `name`.
    pub fn of_line(line: &str, name: &str) -> Option<Outcome> {
        let mut fields = line.split('\t');
        let (_, told, _) = (fields.next()?, fields.next()?, fields.next()?);
        let all = [Outcome::Missed, Outcome::Unreached, Outcome::NoProgram, Outcome::Unplaced];
        if fields.next()? != name {
            return None;
        }
        let caught = told.strip_prefix("caught by ").map(|by| Outcome::Caught(by.to_owned()));
        caught.or_else(|| all.into_iter().find(|outcome| outcome.to_string() == told))
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Caught(by) => write!(f, "caught by {by}"),
            Outcome::Missed => f.write_str("MISSED"),
            Outcome::Unreached => f.write_str("MISSED, no test comes by"),
            Outcome::NoProgram => f.write_str("no program"),
            Outcome::Unplaced => f.write_str("in a constant"),
        }
    }
}

/// How long it has been.
#[derive(Clone, Copy, Debug)]
pub struct Clock(Instant);

impl Clock {
    /// Starts it.
    #[expect(clippy::disallowed_methods, reason = "what bounds a campaign is time on the wall")]
    pub fn start() -> Clock {
        Clock(Instant::now())
    }

    /// Time since then.
    #[expect(clippy::disallowed_methods, reason = "what bounds a campaign is time on the wall")]
    pub fn elapsed(self) -> Duration {
        self.0.elapsed()
    }

    /// The same in seconds.
    pub fn seconds(self) -> u64 {
        self.elapsed().as_secs()
    }
}

/// A program as it ran without a mutant.
#[derive(Debug)]
pub struct Baseline {
    program: Program,
    took: Duration,
    /// The mutants that it comes by.
    seen: BTreeSet<u32>,
}

/// Runs all programs without a mutant. One whose tests fail by themselves tells nothing and is left out. What was found
/// stands in a file of `dir`, so that a campaign that is begun again need not ask again.
pub fn baselines(programs: &[Program], dir: &Path) -> io::Result<Vec<Baseline>> {
    let known_file = dir.join("baselines.txt");
    let mut known = fs::read_to_string(&known_file).unwrap_or_default();
    let mut baselines = Vec::new();
    for program in programs {
        let key =
            format!("{} {:?}", program.path.display(), fs::metadata(&program.path)?.modified()?);
        let noted = known.lines().find_map(|line| noted(line.strip_prefix(&*key)?));
        let (passed, took, seen) = match noted {
            Some(noted) => noted,
            None => {
                let (passed, took, seen) = run_alone(program, dir)?;
                let list: Vec<String> = seen.iter().map(u32::to_string).collect();
                let ms = took.as_millis();
                known += &format!("{key}\t{passed}\t{ms}\t{}\n", list.join(","));
                fs::write(&known_file, &known)?;
                (passed, took, seen)
            }
        };
        let name = &program.name;
        eprintln!("{name}: {:.1} s, comes by {} mutants", took.as_secs_f64(), seen.len());
        if !passed {
            eprintln!("{name} fails without a mutant, and is left out");
        } else if !seen.is_empty() {
            baselines.push(Baseline { program: program.clone(), took, seen });
        }
    }
    baselines.sort_by_key(|baseline| baseline.took);
    Ok(baselines)
}

/// What is noted of a program: whether it passed, how long it took, what it came by.
type Noted = (bool, Duration, BTreeSet<u32>);

fn noted(line: &str) -> Option<Noted> {
    let mut fields = line.split('\t').skip(1);
    let passed = fields.next()? == "true";
    let took = Duration::from_millis(fields.next()?.parse().ok()?);
    let seen = fields.next()?.split(',').filter_map(|n| n.parse().ok()).collect();
    Some((passed, took, seen))
}

fn run_alone(program: &Program, dir: &Path) -> io::Result<Noted> {
    let notes = dir.join("seen");
    let _ = fs::remove_file(&notes);
    let clock = Clock::start();
    let mut command = command(program);
    command.env("LASTHOP_MUTANTS_SEEN", &notes);
    let passed = passes(&mut command, Duration::from_secs(1200))?;
    let seen = fs::read_to_string(&notes).unwrap_or_default();
    Ok((passed, clock.elapsed(), seen.lines().filter_map(|line| line.parse().ok()).collect()))
}

/// How long tests of another package than the mutant's may take to be asked.
const CHEAP: Duration = Duration::from_secs(3);

/// Tries a mutant with the tests that come by: first those of its own package, then those of others that are quick.
pub fn try_one(mutant: &Mutant, baselines: &[Baseline]) -> io::Result<Outcome> {
    let comes_by = |b: &&Baseline| b.seen.contains(&mutant.number);
    let is_asked = |b: &&Baseline| b.program.package == mutant.package || b.took <= CHEAP;
    let mut order: Vec<&Baseline> = baselines.iter().filter(comes_by).filter(is_asked).collect();
    order.sort_by_key(|b| b.program.package != mutant.package);
    for Baseline { program, took, .. } in &order {
        let mut command = command(program);
        command.env("LASTHOP_MUTANT", mutant.number.to_string());
        let limit = Duration::from_secs(20) + *took * 4;
        // Tests of real packets may fail by chance on a busy machine: they have to fail twice.
        let chances = if program.package == "lasthop-live" { 2 } else { 1 };
        let mut failures = 0;
        while failures < chances && !passes(&mut command, limit)? {
            failures += 1;
        }
        if failures == chances {
            return Ok(Outcome::Caught(program.name.clone()));
        }
    }
    let is_reached = baselines.iter().any(|b| b.seen.contains(&mutant.number));
    Ok(if !is_reached { Outcome::Unreached } else { Outcome::Missed })
}

fn command(program: &Program) -> Command {
    let mut command = Command::new(&program.path);
    command
        .current_dir(&program.dir)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // Not a shrunk example for each mutant: that it fails is enough.
    command.env("PROPTEST_MAX_SHRINK_ITERS", "0").env("PROPTEST_FAILURE_PERSISTENCE", "off");
    command
}

/// Whether the program ends with success within `limit`.
#[expect(
    clippy::disallowed_methods,
    reason = "the standard library cannot wait for a child for so long and no longer"
)]
fn passes(command: &mut Command, limit: Duration) -> io::Result<bool> {
    let clock = Clock::start();
    let mut child: Child = command.spawn()?;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.success());
        }
        if clock.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            return Ok(false);
        }
        thread::sleep(Duration::from_millis(10));
    }
}
