//! A short campaign, and tests that the campaign detects faults.

#[path = "../../../checks/shared/can_run.rs"]
mod can_run;
mod net;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use can_run::can_run;
use lasthop_campaign::disk::{Bench, WRITERS};
use lasthop_campaign::examine::{Bounds, examine};
use lasthop_campaign::report::Records;
use lasthop_campaign::text;
use lasthop_campaign::workers::drive;
use lasthop_scenario::parse;

#[test]
fn hostile_scenarios_fulfil_all_run_checks() {
    let bounds = Bounds { events: 5_000, books: true };
    let (mut valid, mut wrong) = (0, Vec::new());
    const CASES: u64 = 120;
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
    let patience = Duration::from_secs(300);
    let dies = worker(
        "i=$1; while :; do [ $i = 3 ] && kill -9 $$; echo case $i ended 10; i=$((i+1)); done",
    );
    let tally = drive(0, 1, patience, &dies, &|case| case < 6).expect("it starts");
    assert_eq!((tally.ended, tally.events, tally.wrong.len()), (5, 50, 1), "{tally:?}");
    assert!(tally.wrong[0].0 == 3 && tally.wrong[0].1.contains("signal: 9"), "{tally:?}");

    let hangs = worker(
        "i=$1; while :; do echo case $i begins; [ $i = 1 ] && while :; do :; done; echo case $i none; i=$((i+1)); done",
    );
    // Of processor time; a start on a busy machine has 20 times as much.
    let brief = Duration::from_secs(2);
    let tally = drive(0, 1, brief, &hangs, &|case| case < 2).expect("it starts");
    assert_eq!((tally.none, tally.wrong.len()), (1, 1), "{tally:?}");
    assert!(tally.wrong[0].0 == 1 && tally.wrong[0].1.contains("no end"), "{tally:?}");

    let faulty = worker("echo case $1 wrong: a byte");
    let tally = drive(7, 1, patience, &faulty, &|case| case < 8).expect("it starts");
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

/// The page contains the tables of the records; invalid records are refused.
#[test]
fn the_reliability_page_matches_the_records() {
    let read = |file: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
        std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    };
    let records = Records::read(&read("records.toml")).unwrap_or_else(|e| panic!("{e}"));
    let page = read("../../docs/explanation/reliability.md");
    let new = records.put_into(&page).unwrap_or_else(|e| panic!("{e}"));
    assert!(
        new == page,
        "docs/explanation/reliability.md is out of date: run `lasthop-campaign report crates/campaign/records.toml \
         docs/explanation/reliability.md`"
    );
    assert!(Records::read("[[kills]]\nof = \"a sweep\"\nkills = 1\n").is_err());
    assert!(records.put_into("a page without tables").is_err());
}

#[test]
fn a_malformed_number_is_refused() {
    let program = env!("CARGO_BIN_EXE_lasthop-campaign");
    let output = Command::new(program).args(["show", "soon"]).output().expect("it runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("`soon` is no number"));
}

#[test]
fn records_of_one_fuzz_target_are_summed() {
    let block = "[[fuzz]]\ntarget = \"packet\"\nexecutions = 1234567\nprocessor = 10\nwrong = 1\n";
    let by_the_clock = block.replace("processor = 10", "seconds = 10");
    let records = Records::read(&(block.repeat(2) + &by_the_clock)).expect("they are right");
    let tables = records.tables();
    let (_, fuzz) = tables.iter().find(|(name, _)| *name == "fuzz").expect("it is there");
    assert!(fuzz.ends_with("| `packet` | 3,703,701 | 3 |\n"), "{fuzz}");
}

/// A program that handles a full disk in one command only.
const CARELESS: &str = r#"#!/bin/sh
case $1 in
run) mkdir -p "$4" && echo capture > "$4/link.pcapng" ;;
generate) mkdir -p "$3"; head -c 40000 /dev/zero > "$3/page.1" 2>/dev/null; exit 0 ;;
link) mkdir -p "${3%/*}" && echo key > "$3" || { rm -f "$3"; echo "error: $3" >&2; exit 2; } ;;
esac
"#;

#[test]
#[cfg(target_os = "linux")]
fn a_file_that_a_full_disk_cuts_short_is_noticed() {
    use std::os::unix::fs::PermissionsExt as _;
    let there = Command::new("unshare").args(["-rm", "true"]).status().is_ok_and(|s| s.success());
    if !can_run(there, "namespaces of its own (unshare -rm)") {
        return;
    }
    let base = std::env::temp_dir().join(format!("lasthop-disk-{}", std::process::id()));
    std::fs::create_dir_all(&base).expect("a directory");
    let program = base.join("careless");
    std::fs::write(&program, CARELESS).expect("it is written");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("its mode");
    let bench = Bench::new(&program, &base.join("work")).unwrap_or_else(|e| panic!("{e}"));
    let fill = |name: &str| {
        let writer = WRITERS.iter().find(|writer| writer.name == name).expect("it is a writer");
        bench.fill(writer, 4).unwrap_or_else(|e| panic!("{e}"))
    };
    let (careless, careful) = (fill("generate man"), fill("link --keygen"));
    let cut = careless.wrong.iter().filter(|message| message.contains("other content")).count();
    // On disks of a quarter, a half and three quarters of the needed size.
    assert!(cut >= 3 && careless.wrong.len() > cut, "{careless:?}");
    assert!(careful.wrong.is_empty() && careful.refused > 0 && careful.done > 0, "{careful:?}");
    std::fs::remove_dir_all(&base).expect("it goes");
}
