//! Counts the instructions of fixed runs and compares them with the recorded numbers.
//!
//! Callgrind counts, so the numbers do not depend on the load or speed of the machine. They depend on the compiler and the profile,
//! so the record names both. With another compiler this program prints the numbers, and that they are not comparable.
//!
//! ```text
//! make costs                # compare
//! make costs RECORD=1       # record the numbers of this compiler
//! make costs CACHES=1       # also print cache misses, and with 10,000 flows
//! ```

use std::fmt::Write as _;
use std::hint::black_box;
use std::process::{Command, ExitCode};

use lasthop_scenario::{Scenario, parse};
use lasthop_sim::runs::{measure, measure_in_brief, run_unmeasured};

/// The record: a line with the compiler, then a line for each run.
const RECORD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/costs/record.txt");
/// Largest accepted difference from the record.
const TOLERANCE: f64 = 0.01;
/// Additional runs for cache misses.
const LARGE: [Case; 3] = [
    ("10000-flows", || flows(10_000, 0, "1s"), 1, Depth::None),
    ("10000-flows-brief", || flows(10_000, 0, "1s"), 1, Depth::Brief),
    ("10000-flows-metrics", || flows(10_000, 0, "1s"), 1, Depth::Full),
];

/// The simulated caches: L1 of instructions, and L2 of data in the place of L1.
const CACHES: [&str; 4] =
    ["--cache-sim=yes", "--I1=32768,8,64", "--D1=524288,8,64", "--LL=33554432,16,64"];

/// The counted function, as callgrind knows it.
const COUNTED: &str = "--toggle-collect=lasthop_costs::counted";

/// The metrics of a run.
#[derive(Clone, Copy)]
enum Depth {
    None,
    /// As `lasthop run` prints them.
    Brief,
    Full,
}

/// A run: its name, the scenario, the number of seeds, and its metrics.
type Case = (&'static str, fn() -> String, u64, Depth);

const CASES: [Case; 11] = [
    ("1-flow", || flows(1, 2_000_000, "10s"), 1, Depth::None),
    ("1-flow-brief", || flows(1, 2_000_000, "10s"), 1, Depth::Brief),
    ("1-flow-metrics", || flows(1, 2_000_000, "10s"), 1, Depth::Full),
    ("10-flows", || flows(10, 0, "200ms"), 1, Depth::None),
    ("10-flows-brief", || flows(10, 0, "200ms"), 1, Depth::Brief),
    ("10-flows-metrics", || flows(10, 0, "200ms"), 1, Depth::Full),
    ("1000-flows", || flows(1000, 0, "200ms"), 1, Depth::None),
    ("1000-flows-brief", || flows(1000, 0, "200ms"), 1, Depth::Brief),
    ("1000-flows-metrics", || flows(1000, 0, "200ms"), 1, Depth::Full),
    ("snoop-metrics", snoop, 3, Depth::Full),
    ("dcf-metrics", dcf, 1, Depth::Full),
];

/// `count` transfers over two links; zero `bytes` is without end.
fn flows(count: u32, bytes: u64, horizon: &str) -> String {
    let bytes = if bytes == 0 { "\"unlimited\"".to_owned() } else { bytes.to_string() };
    format!(
        r#"
runs = 1
horizon = "{horizon}"
transfer = {{ from = "left", to = "right", count = {count}, bytes = {bytes} }}
[host.left]
preset = "rfc"
[host.right]
preset = "rfc"
[[path]]
link = {{ rate = "10gbit", delay = "5ms", queue = "20000p" }}
[[path]]
link = {{ rate = "1gbit", delay = "1ms", queue = "20000p" }}
"#
    )
}

/// A transfer over a radio with errors, with snoop at the base station (west97).
fn snoop() -> String {
    r#"
runs = 1
transfer = { from = "fixed", to = "mobile", bytes = "1MB" }
[host.fixed]
preset = "freebsd-2.1"
[host.mobile]
preset = "freebsd-2.1"
[[path]]
link = { rate = "10mbit", delay = "0.2ms" }
[[path]]
agent = "snoop"
[[path]]
radio = { rate = "2mbit", delay = "1ms", overhead = "0.7ms", queue = "50p" }
errors = { model = "exponential", mean = "64KiB" }
"#
    .to_owned()
}

/// Three hosts that contend for an 802.11 channel.
fn dcf() -> String {
    r#"
runs = 1
horizon = "2s"
host.server = { preset = "rfc" }
host.phone1 = { preset = "rfc" }
host.phone2 = { preset = "rfc" }
host.phone3 = { preset = "rfc" }
[[transfer]]
from = "server"
to = "phone1"
bytes = "unlimited"
[[transfer]]
from = "server"
to = "phone2"
bytes = "unlimited"
[[transfer]]
from = "phone3"
to = "server"
bytes = "unlimited"
[[path]]
link = { rate = "10mbit", delay = "5ms" }
[[path]]
radio = { rate = "2mbit", delay = "1us" }
mac = "dcf"
"#
    .to_owned()
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().collect();
    let answer = match &args[..] {
        [_, mark, name, ..] if mark == "count" => run(name),
        _ if args.iter().any(|arg| arg == "caches") => misses(),
        _ => compare(args.iter().any(|arg| arg == "record")),
    };
    match answer {
        Ok(within) if within => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

/// Makes the runs of one case.
fn run(name: &str) -> Result<bool, String> {
    let (_, text, seeds, depth) = CASES
        .iter()
        .chain(&LARGE)
        .find(|case| case.0 == name)
        .ok_or_else(|| format!("no case {name}"))?;
    let (plan, _) = parse(&text(), name, &[]).map_err(|error| error.to_string())?;
    let scenario = &plan.cells[0].scenario;
    let hops: u64 = (1..=*seeds).map(|seed| counted(scenario, seed, *depth)).sum();
    println!("{hops} hops");
    Ok(true)
}

/// One run; returns its hops. Only its instructions are counted.
#[inline(never)]
fn counted(scenario: &Scenario, seed: u64, depth: Depth) -> u64 {
    match depth {
        Depth::None => black_box(run_unmeasured(scenario, seed)).hops,
        Depth::Brief => black_box(measure_in_brief(scenario, seed)).hops,
        Depth::Full => black_box(measure(scenario, seed)).hops,
    }
}

/// Compares the numbers of all cases with the record, or writes the record.
fn compare(record: bool) -> Result<bool, String> {
    let compiler = compiler()?;
    let recorded = if record { String::new() } else { read(RECORD)? };
    let same = recorded.lines().next() == Some(&compiler);
    let (mut within, mut lines) = (true, format!("{compiler}\n"));
    println!(
        "{:<22} {:>12} {:>12} {:>8}  {:>9}",
        "run", "instructions", "recorded", "change", "per hop"
    );
    for (name, ..) in CASES {
        let (counts, hops) = count(name, &[])?;
        let instructions = counts[0];
        let known = recorded.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        let change = known.map(|known: u64| instructions as f64 / known as f64 - 1.0);
        let text = change.map_or("-".to_owned(), |change| format!("{:+.2} %", 100.0 * change));
        let known = known.map_or("-".to_owned(), |known| known.to_string());
        println!(
            "{name:<22} {instructions:>12} {known:>12} {text:>8}  {:>9}",
            instructions / hops.max(1)
        );
        within &= change.is_some_and(|change| change.abs() <= TOLERANCE);
        writeln!(lines, "{name} {instructions}").map_err(|error| error.to_string())?;
    }
    if record {
        std::fs::write(RECORD, lines).map_err(|error| format!("{RECORD}: {error}"))?;
        return Ok(true);
    }
    if !same {
        let other = recorded.lines().next().unwrap_or_default();
        println!("not comparable: the record is of {other}, and this is {compiler}");
        return Ok(true);
    }
    if !within {
        println!(
            "a number differs by more than {} %: find the cause, or record the numbers with `make costs RECORD=1` and \
             state the reason in the commit",
            100.0 * TOLERANCE
        );
    }
    Ok(within)
}

fn read(file: &str) -> Result<String, String> {
    std::fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))
}

/// Version and host of the compiler.
fn compiler() -> Result<String, String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(&rustc).arg("-vV").output();
    let output = output.map_err(|error| format!("{}: {error}", rustc.display()))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let field = |name| text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("?");
    Ok(format!(
        "rustc {} with LLVM {} for {}",
        field("release: "),
        field("LLVM version: "),
        field("host: ")
    ))
}

/// Prints instructions and cache misses per hop.
fn misses() -> Result<bool, String> {
    println!(
        "{:<22} {:>12} {:>10} {:>10} {:>10}",
        "per hop", "instructions", "L1i", "L2 data", "last level"
    );
    for (name, ..) in CASES.iter().chain(&LARGE) {
        let (counts, hops) = count(name, &CACHES)?;
        let each = |indices: &[usize]| {
            let sum: u64 = indices.iter().filter_map(|i| counts.get(*i)).sum();
            sum as f64 / hops.max(1) as f64
        };
        println!(
            "{name:<22} {:>12.0} {:>10.2} {:>10.2} {:>10.2}",
            each(&[0]),
            each(&[3]),
            each(&[4, 5]),
            each(&[6, 7, 8])
        );
    }
    Ok(true)
}

/// Callgrind's counts for one case, of which the first one is instructions, and its hops.
fn count(name: &str, options: &[&str]) -> Result<(Vec<u64>, u64), String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", COUNTED])
        .args(options)
        .arg(program)
        .args(["count", name])
        .output()
        .map_err(|error| format!("valgrind, which counts instructions, cannot be run: {error}"))?;
    let (text, report) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let counts = report.lines().find_map(|line| line.split("Collected : ").nth(1));
    let counts: Vec<u64> =
        counts.unwrap_or_default().split_whitespace().filter_map(|n| n.parse().ok()).collect();
    match text.split_whitespace().next().and_then(|hops| hops.parse().ok()) {
        Some(hops) if counts.iter().any(|n| *n > 0) => Ok((counts, hops)),
        _ => Err(format!("valgrind did not count {name}:\n{report}")),
    }
}
