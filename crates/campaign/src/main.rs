//! The campaign's command: `lasthop-campaign scenarios --count 1000000`, `show CASE`, `shrink CASE`.

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use lasthop_campaign::disk;
use lasthop_campaign::examine::{Bounds, examine};
use lasthop_campaign::kills;
use lasthop_campaign::report::Records;
use lasthop_campaign::stations::{self, Trouble};
use lasthop_campaign::testbeds;
use lasthop_campaign::text;
use lasthop_campaign::tunnels;
use lasthop_campaign::workers::{Tally, drive, progress};
use lasthop_scenario::{Scenario, parse};
use rustix::process::{Resource, Rlimit, setrlimit};

/// Memory limit of a worker, in bytes.
const MEMORY: u64 = 6 << 30;
/// Time limit of a case.
const PATIENCE: Duration = Duration::from_secs(60);
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
  lasthop-campaign shrink CASE                                      a small scenario that is wrong in the same way
  lasthop-campaign kills LASTHOP DIR [--run] [--count N] [--millis N]   sweeps, or runs, that are killed; in DIR
  lasthop-campaign disk LASTHOP DIR [--steps N]                     commands that write, on full disks; in DIR
  lasthop-campaign memory LASTHOP DIR [--steps N]                   commands that write, with little memory; in DIR
  lasthop-campaign clock LASTHOP DIR                                a sweep and a run while the wall clock jumps; in DIR
  lasthop-campaign stations LASTHOP [--plane WORD] [--count N] [--clock] [--memory]
                    stations under load that are killed at any time, on a clock that jumps, with too little memory
  lasthop-campaign tunnels LASTHOP [--count N] [--memory]           ends of a tunnel under load that are killed
  lasthop-campaign testbeds LASTHOP DIR [--count N] [--millis N]    runs on real packets that are killed; in DIR
  lasthop-campaign report RECORDS PAGE                              regenerates the tables of the page

  --record FILE adds the result of a campaign to a file of records";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["scenarios", options @ ..] => scenarios(options),
        ["worker", from, step] => worker(number(from), number(step)),
        ["show", case] => show(number(case)),
        ["try", file, seed @ ..] => attempt(file, seed.first().map_or(1, |seed| number(seed))),
        ["shrink", case] => shrink(number(case)),
        ["kills", program, base, options @ ..] => kill_jobs(program, base, options),
        ["disk", program, base, options @ ..] => fill_disks(program, base, options),
        ["stations", program, options @ ..] => kill_stations(program, options),
        ["memory", program, base, options @ ..] => starve(program, base, options),
        ["clock", program, base] => jump(program, base),
        ["tunnels", program, options @ ..] => inside("tunnels-inside", &[program], options),
        ["tunnels-inside", program, options @ ..] => kill_tunnels(program, options),
        ["testbeds", program, base, options @ ..] => {
            inside("testbeds-inside", &[program, base], options)
        }
        ["testbeds-inside", program, base, options @ ..] => kill_testbeds(program, base, options),
        ["stations-inside", program, plane, count, options @ ..] => {
            stations_inside(program, plane, number(count), options)
        }
        ["report", records, page] => report(records, page),
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

/// Appends `block` to the file of records that `options` name, if any.
fn record(options: &[&str], block: &str) -> Result<(), String> {
    let file = options.iter().position(|word| *word == "--record").and_then(|i| options.get(i + 1));
    let Some(file) = file else { return Ok(()) };
    let opened = std::fs::OpenOptions::new().append(true).create(true).open(file);
    opened.and_then(|mut opened| writeln!(opened, "\n{block}")).map_err(|e| format!("{file}: {e}"))
}

/// Regenerates the tables of the page from the records.
fn report(records: &str, page: &str) -> Result<bool, String> {
    let read = |file: &str| std::fs::read_to_string(file).map_err(|e| format!("{file}: {e}"));
    let new = Records::read(&read(records)?).map_err(|e| format!("{records}: {e}"))?;
    let new = new.put_into(&read(page)?).map_err(|e| format!("{page}: {e}"))?;
    std::fs::write(page, new).map_err(|e| format!("{page}: {e}"))?;
    Ok(true)
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
        let drive = |i| drive(from + i, workers, PATIENCE, &start, &goes_on);
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
    let (runs, events, none, wrong) = (all.ended, all.events, all.none, all.wrong.len());
    record(
        options,
        &format!(
            "[[scenarios]]\nfrom = {from}\nruns = {runs}\nevents = {events}\nnone = {none}\nwrong = {wrong}"
        ),
    )?;
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
        if say(progress::BEGINS).is_err() {
            return Ok(true);
        }
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

/// Kills sweeps or runs, each within `--millis`.
fn kill_jobs(program: &str, base: &str, options: &[&str]) -> Result<bool, String> {
    let (job, takes) = match options.contains(&"--run") {
        true => (kills::RUN, 250),
        false => (kills::SWEEP, 1_500),
    };
    let takes = Duration::from_millis(option(options, "--millis", takes));
    let count = option(options, "--count", 100);
    let found = kills::kills(Path::new(program), Path::new(base), job, count, takes)
        .map_err(|e| format!("{program}, {base}: {e}"))?;
    report_kills(job.name, (found.kills, found.ended), &found.wrong, options)
}

/// The path of the stations that are killed: an agent with a cache, and a link that holds packets.
const STATION: &str =
    "[[path]]\nagent = \"snoop\"\n[[path]]\nlink = { rate = \"50mbit\", delay = \"2ms\" }\n";

/// Kills stations in separate namespaces.
fn kill_stations(program: &str, options: &[&str]) -> Result<bool, String> {
    let plane = options.iter().position(|word| *word == "--plane").and_then(|i| options.get(i + 1));
    let count = option(options, "--count", 100).to_string();
    let words = [program, plane.unwrap_or(&"auto"), &count];
    inside("stations-inside", &words, options)
}

/// Starts this program again in separate namespaces, with the subcommand `word`, `words` and `options`. The first of
/// `words` is the path of a program.
fn inside(word: &str, words: &[&str], options: &[&str]) -> Result<bool, String> {
    let program = std::fs::canonicalize(words[0]).map_err(|e| format!("{}: {e}", words[0]))?;
    let this = std::env::current_exe().map_err(|e| format!("this program: {e}"))?;
    // Root keeps its rights over BPF programs; other users become root inside only.
    let user = if rustix::process::geteuid().is_root() { "-nmpf" } else { "-rnmpf" };
    let mut command = Command::new("unshare");
    command.args([user, "--mount-proc", "--kill-child"]).arg(this).arg(word);
    command.arg(program).args(&words[1..]).args(options);
    let status = command.status().map_err(|e| format!("unshare (util-linux): {e}"))?;
    match status.code() {
        Some(0) => Ok(true),
        Some(1) => Ok(false),
        _ => Err(format!("in its namespaces: {status}")),
    }
}

/// Prints the faults of a kill campaign, and adds the counts to the records.
fn report_kills(
    of: &str,
    counts: (u64, u64),
    wrong: &[String],
    options: &[&str],
) -> Result<bool, String> {
    for wrong in wrong {
        println!("{wrong}");
    }
    let ((kills, ended), wrong) = (counts, wrong.len());
    println!("{of}: {kills} kills, {ended} ended; {wrong} wrong");
    let of = of.replace('"', "\\\"");
    let block =
        format!("[[kills]]\nof = \"{of}\"\nkills = {kills}\nended = {ended}\nwrong = {wrong}");
    record(options, &block)?;
    Ok(wrong == 0)
}

fn kill_tunnels(program: &str, options: &[&str]) -> Result<bool, String> {
    let starved = options.contains(&"--memory");
    let found = tunnels::kills(Path::new(program), option(options, "--count", 100), starved)
        .map_err(|e| format!("no world for tunnels here: {e}"))?;
    println!("{} transfers through a restarted tunnel", found.transfers);
    let under = if starved { ", with too little memory" } else { "" };
    let of = format!("an end of a tunnel under load{under}");
    report_kills(&of, (found.kills, found.orderly), &found.wrong, options)
}

fn kill_testbeds(program: &str, base: &str, options: &[&str]) -> Result<bool, String> {
    let takes = Duration::from_millis(option(options, "--millis", 5_000));
    let count = option(options, "--count", 100);
    let found = testbeds::kills(Path::new(program), Path::new(base), count, takes)
        .map_err(|e| format!("{program}, {base}: {e}"))?;
    report_kills("a run on real packets", (found.kills, found.ended), &found.wrong, options)
}

/// Runs a sweep and a run with traces while the wall clock jumps.
fn jump(program: &str, base: &str) -> Result<bool, String> {
    let mut holds = true;
    for job in [kills::SWEEP, kills::RUN] {
        let wrong = kills::on_a_clock_that_jumps(Path::new(program), Path::new(base), job)
            .map_err(|e| format!("{program}, {base}: {e}"))?;
        for name in &wrong {
            println!("differs: {name}");
        }
        println!(
            "{}, on a wall clock that jumps: {} files differ",
            job.words.join(" "),
            wrong.len()
        );
        holds &= wrong.is_empty();
    }
    Ok(holds)
}

/// Runs commands with too little memory.
fn starve(program: &str, base: &str, options: &[&str]) -> Result<bool, String> {
    let steps = option(options, "--steps", 12);
    let bench = disk::Bench::new(Path::new(program), Path::new(base))
        .map_err(|e| format!("{program}, {base}: {e}"))?;
    let mut holds = true;
    for writer in disk::WRITERS {
        let found = bench.starve(writer, steps).map_err(|e| e.to_string())?;
        for wrong in &found.wrong {
            println!("{wrong}");
        }
        let (name, wrong) = (writer.name, found.wrong.len());
        let (refused, killed, done) = (found.refused, found.killed, found.done);
        println!(
            "{name}: {refused} refused, {killed} killed before their end, {done} done, from {} KiB on; {wrong} wrong",
            found.least
        );
        let block = format!(
            "[[memory]]\ncommand = \"{name}\"\nrefused = {refused}\nkilled = {killed}\ndone = {done}\nwrong = {wrong}"
        );
        record(options, &block)?;
        holds &= found.wrong.is_empty();
    }
    Ok(holds)
}

fn stations_inside(
    program: &str,
    plane: &str,
    count: u64,
    options: &[&str],
) -> Result<bool, String> {
    let (trouble, under) = match options {
        _ if options.contains(&"--clock") => (Trouble::Clock, ", on a wall clock that jumps"),
        _ if options.contains(&"--memory") => (Trouble::Memory, ", with too little memory"),
        _ => (Trouble::None, ""),
    };
    let found = stations::kills(Path::new(program), plane, STATION, count, trouble)
        .map_err(|e| format!("no world for stations here: {e}"))?;
    for wrong in &found.wrong {
        println!("{wrong}");
    }
    println!(
        "plane {plane}: {} kills, {} in order; {} transfers afterwards; packets flowed past {} and not \
         past {}; {} wrong",
        found.kills,
        found.orderly,
        found.transfers,
        found.flowing,
        found.standing,
        found.wrong.len()
    );
    let (kills, ended, wrong) = (found.kills, found.orderly, found.wrong.len());
    let of = format!("a station under load, `plane = \\\"{plane}\\\"`{under}");
    record(
        options,
        &format!("[[kills]]\nof = \"{of}\"\nkills = {kills}\nended = {ended}\nwrong = {wrong}"),
    )?;
    Ok(found.wrong.is_empty())
}

/// Runs every command that writes on full disks.
fn fill_disks(program: &str, base: &str, options: &[&str]) -> Result<bool, String> {
    let steps = option(options, "--steps", 12);
    let bench = disk::Bench::new(Path::new(program), Path::new(base))
        .map_err(|e| format!("{program}, {base}: {e}"))?;
    let mut holds = true;
    for writer in disk::WRITERS {
        let found = bench.fill(writer, steps).map_err(|e| e.to_string())?;
        for wrong in &found.wrong {
            println!("{wrong}");
        }
        let (name, wrong) = (writer.name, found.wrong.len());
        let (refused, done) = (found.refused, found.done);
        println!("{name}: {refused} refused, {done} done; {wrong} wrong");
        let block = format!(
            "[[disk]]\ncommand = \"{name}\"\nrefused = {refused}\ndone = {done}\nwrong = {wrong}"
        );
        record(options, &block)?;
        holds &= found.wrong.is_empty();
    }
    Ok(holds)
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
