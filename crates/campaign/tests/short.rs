//! The short form of the campaign, and that it notices what goes wrong.

use std::process::Command;
use std::time::Duration;

use lasthop_campaign::examine::{Bounds, examine};
use lasthop_campaign::text;
use lasthop_campaign::workers::drive;

#[test]
fn hostile_scenarios_do_no_harm() {
    let bounds = Bounds { events: 5_000, books: true };
    let (mut valid, mut wrong) = (0, Vec::new());
    const CASES: u64 = 300;
    for case in 0..CASES {
        let Some((_, scenario)) = text::case(case) else { continue };
        valid += 1;
        if let Err(what) = examine(&scenario, case, bounds) {
            wrong.push(format!("case {case}: {what}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(valid * 4 > CASES, "only {valid} of {CASES} cases have a valid scenario");
}

#[test]
fn a_case_is_always_the_same() {
    let texts = |from| (from..from + 20).map(|case| text::case(case).map(|(text, _)| text));
    assert!(texts(0).eq(texts(0)));
    assert!(texts(0).ne(texts(20)));
}

/// A worker that does as `script` says for the case `$1`.
fn worker(script: &'static str) -> impl Fn(u64) -> Command {
    move |case| {
        let mut command = Command::new("sh");
        command.args(["-c", script, "sh", &case.to_string()]);
        command
    }
}

#[test]
fn a_worker_that_dies_or_hangs_costs_one_case() {
    let patience = Duration::from_millis(100);
    let dies = worker(
        "i=$1; while :; do [ $i = 3 ] && kill -9 $$; echo case $i ended 10; i=$((i+1)); done",
    );
    let tally = drive(0, 1, patience, &dies, &|case| case < 6).expect("it starts");
    assert_eq!((tally.ended, tally.events, tally.wrong.len()), (5, 50, 1), "{tally:?}");
    assert!(tally.wrong[0].0 == 3 && tally.wrong[0].1.contains("signal: 9"), "{tally:?}");

    let hangs = worker(
        "i=$1; while :; do echo case $i begins; [ $i = 1 ] && while :; do :; done; echo case $i none; i=$((i+1)); done",
    );
    let tally = drive(0, 1, patience, &hangs, &|case| case < 2).expect("it starts");
    assert_eq!((tally.none, tally.wrong.len()), (1, 1), "{tally:?}");
    assert!(tally.wrong[0].0 == 1 && tally.wrong[0].1.contains("no end"), "{tally:?}");

    let says = worker("echo case $1 wrong: a byte");
    let tally = drive(7, 1, patience, &says, &|case| case < 8).expect("it starts");
    assert_eq!(tally.wrong, [(7, "a byte".to_owned())]);
}
