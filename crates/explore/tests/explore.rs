//! The search itself, and its short form: one fault, every agent with every sender.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

use lasthop_explore::oracle::Watch;
use lasthop_explore::{Exploration, Method, Options, Pattern, Violation, explore};
use lasthop_proto::agent::words;
use lasthop_proto::link::Fate;
use lasthop_proto::tcp::words::TCPS;
use lasthop_proto::units::Time;
use lasthop_scenario::{Argument, Plan, example, parse};
use lasthop_sim::run;

const ALL: [Fate; 5] = [Fate::Dropped, Fate::Duplicated, Fate::Late, Fate::VeryLate, Fate::Damaged];

fn plan(set: &[&str]) -> Plan {
    let text = example("explore").expect("it is built in").text;
    let arguments: Vec<Argument> = set.iter().map(|set| Argument::Set((*set).to_owned())).collect();
    parse(text, "explore", &arguments).unwrap_or_else(|error| panic!("{error}")).0
}

fn options(faults: u32, first: u64) -> Options {
    Options { faults, first, fates: ALL.to_vec(), method: Method::Fork }
}

fn found(plan: &Plan, options: &Options) -> Exploration {
    explore(&plan.cells[0].scenario, 1, options, &|_| true)
}

/// Small transfers, so that every pattern of two faults takes little.
const SMALL: [&str; 3] = ["agent=snoop", "host.fixed.tcp=reno", "transfer.bytes=2kB"];

#[test]
fn copied_runs_and_repeated_ones_end_alike() {
    let plan = plan(&SMALL);
    let forked = options(2, 12);
    let replayed = Options { method: Method::Replay, ..forked.clone() };
    assert_eq!(found(&plan, &forked), found(&plan, &replayed));
}

#[test]
fn every_combination_is_run_once() {
    let runs = AtomicU64::new(0);
    let options = Options { fates: vec![Fate::Duplicated], ..options(3, 6) };
    let plan = plan(&SMALL);
    let found = explore(&plan.cells[0].scenario, 1, &options, &|made| {
        runs.fetch_add(made, Ordering::Relaxed);
        true
    });
    // Copies are no choices of this router, but of the other one: the first six packets are there with every pattern.
    let counts: Vec<u64> = found.levels.iter().map(|level| level.runs).collect();
    assert_eq!(counts, [1, 6, 15, 20]);
    assert_eq!(runs.into_inner() + 1, found.runs);
    assert!(found.complete && found.violations == 0, "{found:?}");
}

#[test]
fn a_search_can_be_stopped_and_says_so() {
    let found = explore(&plan(&SMALL).cells[0].scenario, 1, &options(2, 12), &|_| false);
    assert!(!found.complete && found.levels.len() == 2, "{found:?}");
}

#[test]
fn the_first_violation_has_the_fewest_faults() {
    // Within two seconds there is no time for a lost SYN and its lost repetition.
    let set = [&SMALL[..], &["horizon=2500ms"]].concat();
    let found = found(&plan(&set), &Options { fates: vec![Fate::Dropped], ..options(2, 12) });
    let first = &found.first_violations[0];
    assert_eq!(first.pattern.0.len(), 2, "{first:?}");
    assert!(first.what.contains("not finished within the horizon"), "{first:?}");
}

#[test]
fn a_connection_that_is_given_up_is_a_violation() {
    let set = [&SMALL[..], &["host.fixed.syn-retries=1"]].concat();
    let found = found(&plan(&set), &Options { fates: vec![Fate::Dropped], ..options(2, 4) });
    // Both SYNs or their answers are lost: five of the six pairs among the first four packets.
    let given_up =
        |v: &Violation| v.what == "reset or given up, 0 bytes delivered" && v.pattern.0.len() == 2;
    assert_eq!(found.violations, 5, "{found:?}");
    assert!(found.first_violations.iter().all(given_up), "{found:?}");
}

#[test]
fn no_forged_segment_ends_or_changes_a_connection() {
    let fates = Fate::FORGERIES.iter().map(|(_, fate)| *fate).collect();
    assert_holds(&Options { fates, ..options(1, 40) });
}

#[test]
fn the_keys_of_a_pattern_repeat_its_run() {
    let explored = found(&plan(&SMALL), &options(2, 12));
    let slowest = explored.levels[2].slowest.as_ref().expect("a run");
    let keys = slowest.pattern.settings(&plan(&SMALL).cells[0].scenario);
    let set: Vec<&str> = SMALL.into_iter().chain(keys.iter().map(String::as_str)).collect();
    let mut watch = Watch::default();
    run(&plan(&set).cells[0].scenario, 1, &mut watch);
    assert_eq!((watch.delivered_at - Time::ZERO).as_secs_f64(), slowest.seconds, "{keys:?}");
    assert_eq!(watch.timeouts, slowest.timeouts);
}

#[test]
fn the_built_in_scenario_has_every_agent_and_sender() {
    let plan = plan(&[]);
    let labels =
        |axis: usize| plan.axes[axis].labels.iter().map(String::as_str).collect::<BTreeSet<_>>();
    let missing = |words: Vec<&'static str>, labels: BTreeSet<&str>| {
        words.into_iter().filter(|word| !labels.contains(word)).collect::<Vec<_>>()
    };
    assert_eq!(missing(words().map(|word| word.word).collect(), labels(0)), [""; 0]);
    assert_eq!(missing(TCPS.iter().map(|tcp| tcp.key).collect(), labels(1)), [""; 0]);
}

#[test]
fn no_single_fault_violates_anything() {
    assert_holds(&options(1, 40));
}

/// Explores every agent with every sender.
fn assert_holds(options: &Options) {
    let plan = plan(&[]);
    let mut wrong = Vec::new();
    for cell in &plan.cells {
        let found = explore(&cell.scenario, 1, options, &|_| true);
        for violation in found.first_violations {
            let Pattern(faults) = &violation.pattern;
            wrong.push(format!("{:?}: {faults:?}: {}", cell.labels, violation.what));
        }
    }
    assert!(wrong.is_empty(), "{} violations:\n{}", wrong.len(), wrong.join("\n"));
}
