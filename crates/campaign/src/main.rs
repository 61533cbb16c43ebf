//! The campaign's command: `lasthop-campaign scenarios --count 1000000`, `show CASE`, `shrink CASE`.

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use lasthop_campaign::examine::{Bounds, examine};
use lasthop_campaign::text;
use lasthop_campaign::workers::{Tally, drive, progress};
use lasthop_scenario::{Scenario, parse};
use rustix::process::{Resource, Rlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};

/// Memory limit of a worker, in bytes.
const MEMORY: u64 = 6 << 30;
/// Processor time of a case, in seconds.
const PATIENCE: u64 = 60;
const BOUNDS: Bounds = Bounds { events: 50_000, books: true };

/// The limits of a case. Nearly all faults show early, and most of the time went into the few endless cases, so only
/// one case in sixteen runs long.
fn bounds(case: u64) -> Bounds {
    if case.is_multiple_of(16) { BOUNDS } else { Bounds { events: 5_000, ..BOUNDS } }
}

const USAGE: &str = "usage:
  lasthop-campaign scenarios [--from N] [--count N] [--minutes N] [--workers N]   hostile scenarios
  lasthop-campaign show CASE                                        the scenario of a case
  lasthop-campaign try FILE [SEED]                                  what is wrong with the scenario of a file
  lasthop-campaign shrink CASE                                      a small scenario that is wrong in the same way";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["scenarios", options @ ..] => scenarios(options),
        ["worker", from, step] => worker(number(from), number(step)),
        ["show", case] => show(number(case)),
        ["try", file, seed @ ..] => attempt(file, seed.first().map_or(1, |seed| number(seed))),
        ["shrink", case] => shrink(number(case)),
        _ => Err(USAGE.to_owned()),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

/// The number that an argument must be.
fn number(word: &str) -> u64 {
    word.parse().unwrap_or_else(|_| {
        eprintln!("`{word}` is no number\n{USAGE}");
        std::process::exit(2)
    })
}

fn option(options: &[&str], name: &str, default: u64) -> u64 {
    let value = options.iter().position(|word| *word == name).and_then(|i| options.get(i + 1));
    value.map_or(default, |word| number(word))
}

/// Examines a scenario; a panic counts as a fault.
fn examine_caught(scenario: &Scenario, seed: u64) -> Result<u64, String> {
    let run = AssertUnwindSafe(|| examine(scenario, seed, bounds(seed)));
    match catch_unwind(run) {
        Ok(looked) => looked.map(|looked| looked.events),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let message = text.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()));
            Err(format!("panicked: {}", message.unwrap_or_default().replace('\n', " ")))
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a campaign is bounded by time")]
fn scenarios(options: &[&str]) -> Result<bool, String> {
    let from = option(options, "--from", 0);
    let count = option(options, "--count", 1_000);
    let begun = Instant::now();
    let end = Duration::from_secs(60 * option(options, "--minutes", 1_000_000));
    let program = std::env::current_exe().map_err(|e| format!("this program: {e}"))?;
    let all = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
    let workers = option(options, "--workers", all).max(1);
    let goes_on = |case: u64| case < from + count && begun.elapsed() < end;
    let start = |case: u64| {
        let mut command = Command::new(&program);
        command.args(["worker", &case.to_string(), &workers.to_string()]);
        command
    };
    let tallies: Vec<std::io::Result<Tally>> = std::thread::scope(|scope| {
        let drive = |i| drive(from + i, workers, &start, &goes_on);
        let threads: Vec<_> = (0..workers).map(|i| scope.spawn(move || drive(i))).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|_| Err(std::io::Error::other("a driver panicked")))
        };
        threads.into_iter().map(join).collect()
    });
    let mut all = Tally::default();
    for tally in tallies {
        all.add(tally.map_err(|e| format!("no worker: {e}"))?);
    }
    all.wrong.sort();
    for (case, message) in &all.wrong {
        println!("case {case}: {message}");
    }
    println!(
        "{} runs, {} events, {} s; {} cases without a valid scenario; {} wrong",
        all.ended,
        all.events,
        begun.elapsed().as_secs(),
        all.none,
        all.wrong.len()
    );
    Ok(all.wrong.is_empty())
}

fn worker(from: u64, step: u64) -> Result<bool, String> {
    let memory = Rlimit { current: Some(MEMORY), maximum: Some(MEMORY) };
    setrlimit(Resource::As, memory).map_err(|e| format!("no limit of memory: {e}"))?;
    std::panic::set_hook(Box::new(|_| {}));
    let mut out = std::io::stdout();
    let mut case = from;
    loop {
        // A write fails when the reader has exited.
        let mut say = |line: &str| writeln!(out, "case {case} {line}").and_then(|()| out.flush());
        let used = clock_gettime(ClockId::ProcessCPUTime).tv_sec as u64;
        let time = Rlimit { current: Some(used + PATIENCE), maximum: None };
        setrlimit(Resource::Cpu, time).map_err(|e| format!("no limit of time: {e}"))?;
        let made = catch_unwind(|| text::case(case));
        let report = match made {
            Err(_) => format!("{} panicked where the scenario is read", progress::WRONG),
            Ok(None) => progress::NONE.to_owned(),
            Ok(Some((_, scenario))) => match examine_caught(&scenario, case) {
                Ok(events) => format!("{} {events}", progress::ENDED),
                Err(message) => format!("{} {message}", progress::WRONG),
            },
        };
        if say(&report).is_err() {
            return Ok(true);
        }
        case += step;
    }
}

fn show(case: u64) -> Result<bool, String> {
    let (text, _) = text::case(case).ok_or("no valid scenario")?;
    print!("{text}");
    Ok(true)
}

fn attempt(file: &str, seed: u64) -> Result<bool, String> {
    let text = std::fs::read_to_string(file).map_err(|e| format!("{file}: {e}"))?;
    let (plan, _) = parse(&text, "hostile", &[]).map_err(|e| format!("{file}: {e}"))?;
    let scenario = &plan.cells[0].scenario;
    match examine(scenario, seed, BOUNDS) {
        Ok(looked) => println!("{looked:?}"),
        Err(message) => {
            println!("wrong: {message}");
            return Ok(false);
        }
    }
    Ok(true)
}

/// The text of a fault without its figures, which differ between runs of the same fault.
fn kind(text: &str) -> String {
    text.chars().filter(|c| !c.is_ascii_digit()).take(40).collect()
}

fn shrink(case: u64) -> Result<bool, String> {
    let (text, scenario) = text::case(case).ok_or("no valid scenario")?;
    std::panic::set_hook(Box::new(|_| {}));
    let Err(wrong) = examine_caught(&scenario, case) else {
        return Err("nothing is wrong with it".into());
    };
    let mut lines: Vec<&str> = text.lines().collect();
    let mut size = lines.len() / 2;
    while size > 0 {
        let mut at = 0;
        while at + size <= lines.len() {
            let fewer: Vec<&str> = [&lines[..at], &lines[at + size..]].concat();
            let parsed = parse(&fewer.join("\n"), "hostile", &[]);
            let same = parsed.is_ok_and(|(plan, _)| {
                let scenario = plan.cells.into_iter().next().map(|cell| cell.scenario);
                let found = scenario.map(|scenario| examine_caught(&scenario, case));
                matches!(found, Some(Err(message)) if kind(&message) == kind(&wrong))
            });
            if same {
                lines = fewer;
            } else {
                at += size;
            }
        }
        size /= 2;
    }
    println!("# seed {case}: {wrong}\n{}", lines.join("\n"));
    Ok(false)
}
