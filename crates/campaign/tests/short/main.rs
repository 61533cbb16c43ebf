//! A short campaign, and tests that the campaign detects faults.

mod net;

use std::path::Path;
use std::process::Command;

use lasthop_campaign::examine::{Bounds, examine};
use lasthop_campaign::text;
use lasthop_campaign::workers::drive;
use lasthop_scenario::parse;

#[test]
fn hostile_scenarios_fulfil_all_run_checks() {
    let bounds = Bounds { events: 5_000, books: true };
    let (mut valid, mut wrong) = (0, Vec::new());
    const CASES: u64 = 60;
    for case in 0..CASES {
        let Some((_, scenario)) = text::case(case) else { continue };
        valid += 1;
        if let Err(message) = examine(&scenario, case, bounds) {
            wrong.push(format!("case {case}: {message}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(valid * 4 > CASES, "only {valid} of {CASES} cases have a valid scenario");
}

#[test]
fn a_case_number_determines_its_scenario() {
    let texts = |from| (from..from + 20).map(|case| text::case(case).map(|(text, _)| text));
    assert!(texts(0).eq(texts(0)));
    assert!(texts(0).ne(texts(20)));
}

/// A worker that runs `script` with the case as `$1`.
fn worker(script: &'static str) -> impl Fn(u64) -> Command {
    move |case| {
        let mut command = Command::new("sh");
        command.args(["-c", script, "sh", &case.to_string()]);
        command
    }
}

#[test]
fn a_worker_that_dies_or_hangs_costs_one_case() {
    let dies = worker(
        "i=$1; while :; do [ $i = 3 ] && kill -9 $$; echo case $i ended 10; i=$((i+1)); done",
    );
    let tally = drive(0, 1, &dies, &|case| case < 6).expect("it starts");
    assert_eq!((tally.ended, tally.events, tally.wrong.len()), (5, 50, 1), "{tally:?}");
    assert!(tally.wrong[0].0 == 3 && tally.wrong[0].1.contains("signal: 9"), "{tally:?}");

    // A second of processor time.
    let hangs = worker(
        "ulimit -t 1; i=$1; while :; do [ $i = 1 ] && while :; do :; done; echo case $i none; i=$((i+1)); done",
    );
    let tally = drive(0, 1, &hangs, &|case| case < 2).expect("it starts");
    assert_eq!((tally.none, tally.wrong.len()), (1, 1), "{tally:?}");
    assert!(tally.wrong[0].0 == 1 && tally.wrong[0].1.contains("signal"), "{tally:?}");

    let faulty = worker("echo case $1 wrong: a byte");
    let tally = drive(7, 1, &faulty, &|case| case < 8).expect("it starts");
    assert_eq!(tally.wrong, [(7, "a byte".to_owned())]);
}

/// Scenarios of fixed faults; the seed is in the first line.
#[test]
fn scenarios_of_fixed_faults_still_pass() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kept");
    let mut files: Vec<_> = std::fs::read_dir(dir).expect("it is there").flatten().collect();
    files.sort_by_key(|file| file.path());
    assert!(!files.is_empty());
    for file in files {
        let text = std::fs::read_to_string(file.path()).expect("it can be read");
        let digits: String = text.chars().skip_while(|c| !c.is_ascii_digit()).collect();
        let seed = digits.split(|c: char| !c.is_ascii_digit()).next().and_then(|n| n.parse().ok());
        let name = file.file_name();
        let (plan, _) = parse(&text, "kept", &[]).unwrap_or_else(|e| panic!("{name:?}: {e}"));
        let bounds = Bounds { events: 50_000, books: true };
        let looked = examine(&plan.cells[0].scenario, seed.expect("a seed"), bounds);
        looked.unwrap_or_else(|wrong| panic!("{name:?}: {wrong}"));
    }
}

#[test]
fn a_malformed_number_is_refused() {
    let program = env!("CARGO_BIN_EXE_lasthop-campaign");
    let output = Command::new(program).args(["show", "soon"]).output().expect("it runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("`soon` is no number"));
}
