//! The search itself, and its short form: one fault, every agent with every sender.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

use lasthop_explore::oracle::Watch;
use lasthop_explore::{
    Exploration, Method, OneFate, Options, Violation, deciders, explore, resume,
};
use lasthop_proto::agent::words;
use lasthop_proto::link::{Fate, Silence};
use lasthop_proto::tcp::words::TCPS;
use lasthop_proto::units::Time;
use lasthop_scenario::{Argument, Plan, example, parse};
use lasthop_sim::run;
use rayon::prelude::*;

const ALL: [Fate; 5] = [Fate::Dropped, Fate::Duplicated, Fate::Late, Fate::VeryLate, Fate::Damaged];

fn plan(set: &[&str]) -> Plan {
    let text = example("explore").expect("it is built in").text;
    let arguments: Vec<Argument> = set.iter().map(|set| Argument::Set((*set).to_owned())).collect();
    parse(text, "explore", &arguments).unwrap_or_else(|error| panic!("{error}")).0
}

fn options(faults: u32, first: u64) -> Options {
    Options {
        faults,
        first,
        fates: ALL.to_vec(),
        method: Method::Fork,
        ends: lasthop_sim::quic::end,
    }
}

fn found(plan: &Plan, options: &Options) -> Exploration {
    explore(&plan.cells[0].scenario, 1, options, &|_| true)
}

/// Small transfers, so that every pattern of two faults takes little.
const SMALL: [&str; 3] = ["agent=snoop", "host.fixed.tcp=reno", "transfer.bytes=2kB"];

#[test]
fn forked_and_replayed_runs_have_equal_results() {
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
fn a_stopped_search_is_reported_as_incomplete() {
    let found = explore(&plan(&SMALL).cells[0].scenario, 1, &options(2, 12), &|_| false);
    assert!(!found.complete && found.levels.len() == 2, "{found:?}");
}

#[test]
fn a_search_that_was_stopped_continues_to_the_same_end() {
    let plan = plan(&SMALL);
    let (scenario, options) = (&plan.cells[0].scenario, options(3, 8));
    let whole = explore(scenario, 1, &options, &|_| true);
    let mut found = Exploration::default();
    let mut stops = 0;
    while !found.complete {
        // Through JSON, as results are stored.
        let stored = serde_json::to_string(&found).expect("JSON");
        let begun = serde_json::from_str(&stored).expect("what was written");
        found = resume(scenario, 1, &options, begun, &|made| made == 0);
        stops += 1;
        assert!(stops < 100, "{found:?}");
    }
    assert!(stops > 4, "{stops}");
    let written = |found: &Exploration| serde_json::to_string(found).expect("JSON");
    assert_eq!(written(&found), written(&whole));
}

/// A radio whose channel is scripted, with pieces and link ACKs.
const AIR: [&str; 4] = ["agent=none", "tcp=cubic", "layer=local-recovery, pieces", "direction=up"];

fn matrix(name: &str, set: &[&str]) -> Plan {
    let path = format!("{}/matrix/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let arguments: Vec<Argument> = set.iter().map(|set| Argument::Set((*set).to_owned())).collect();
    parse(&text, name, &arguments).unwrap_or_else(|error| panic!("{error}")).0
}

#[test]
fn link_layer_frame_fates_agree_between_fork_and_replay() {
    let plan = matrix("links", &AIR);
    assert_eq!(deciders(&plan.cells[0].scenario), ["wired", "air"]);
    let forked = options(2, 14);
    let found = found(&plan, &forked);
    let replayed = Options { method: Method::Replay, ..forked };
    assert_eq!(explore(&plan.cells[0].scenario, 1, &replayed, &|_| true), found);
    let faults: Vec<_> = found.levels.iter().filter_map(|level| level.slowest.as_ref()).collect();
    let slowest = faults.last().expect("a run");
    let keys = slowest.pattern.settings(&plan.cells[0].scenario);
    let set: Vec<&str> = AIR.into_iter().chain(keys.iter().map(String::as_str)).collect();
    let mut watch = Watch::default();
    run(&matrix("links", &set).cells[0].scenario, 1, &mut watch);
    assert_eq!((watch.delivered_at - Time::ZERO).as_secs_f64(), slowest.seconds, "{keys:?}");
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

/// Found by two faults: M-TCP's base station closed towards its host before it had acknowledged the last byte, which the other
/// end acknowledged later.
#[test]
fn a_base_station_closes_after_the_last_acknowledgement() {
    for wired in ["9 drop", "9 very-late", "9 damage", "19 drop", "19 very-late", "19 damage"] {
        let wired = format!("wired.cross.fates={wired}");
        let set = ["base=m-tcp, state", "handoff.packets=forward", "direction=up"];
        let set = [&set[..], &["tcp=reno", &wired, "westair.cross.fates=12 late"]].concat();
        let end = run(&matrix("cells", &set).cells[0].scenario, 1, &mut Watch::default());
        assert!(end.transfers[0].complete, "{wired}: {end:?}");
    }
}

/// Found by three faults: the old base station's own acknowledgement was forwarded to the next one, which took it for an
/// acknowledgement of the far end and forgot the data.
#[test]
fn a_base_station_ignores_acks_of_its_predecessor() {
    for air in ["4 late, 5 drop", "4 late, 6 drop", "4 duplicate, 5 drop"] {
        let air = format!("westair.cross.fates={air}");
        let set = ["base=split, state", "handoff.packets=forward", "direction=up", "tcp=reno"];
        let set = [&set[..], &["wired.cross.fates=4 drop", &air]].concat();
        let end = run(&matrix("cells", &set).cells[0].scenario, 1, &mut Watch::default());
        assert!(end.transfers[0].complete, "{air}: {end:?}");
    }
}

/// Found by three faults: a late copy of the SYN-ACK ended the record of an open connection, and a later retransmission began
/// another one that nothing ended.
#[test]
fn three_faults_around_the_handshake_violate_nothing() {
    let fates = vec![Fate::Dropped, Fate::Duplicated, Fate::Late];
    for agent in words() {
        let plan = plan(&[&format!("agent={}", agent.word), "host.fixed.tcp=tahoe"]);
        let found = found(&plan, &Options { fates: fates.clone(), ..options(3, 8) });
        assert_eq!(found.first_violations, [], "{}", agent.word);
    }
}

/// A cell of the page's table, whatever the number of senders.
fn harm(one: &OneFate) -> String {
    let share = |runs: u64| (100 * runs).div_ceil(one.runs.max(1));
    let late = one.slower_seconds * 1000.0;
    let parts = [
        (one.violations > 0).then(|| format!("{} broken", one.violations)),
        (one.repeated > 0).then(|| format!("{} % retransmit", share(one.repeated))),
        (late >= 0.05).then(|| format!("+{late:.1} ms")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() { "no effect".to_owned() } else { parts.join(", ") }
}

/// Also the table of the page: a row for each agent, over all senders.
#[test]
fn no_forged_segment_ends_or_changes_a_connection() {
    let plan = plan(&[]);
    let fates: Vec<Fate> = Fate::FORGERIES.iter().map(|(_, fate)| *fate).collect();
    let found = all(&plan, &Options { fates: fates.clone(), ..options(1, 40) });
    assert_holds(&plan, &found);
    let words: Vec<&str> = Fate::FORGERIES.iter().map(|(word, _)| *word).collect();
    let mut table = format!("| agents | {} |\n|{}\n", words.join(" | "), "---|".repeat(8));
    // Agents with equal results share a row.
    let mut rows: Vec<(String, Vec<String>)> = Vec::new();
    for agent in &plan.axes[0].labels {
        let here = plan.cells.iter().zip(&found).filter(|(cell, _)| cell.labels[0] == *agent);
        let here: Vec<&Exploration> = here.map(|(_, found)| found).collect();
        let cells = fates.iter().map(|fate| format!(" {} |", harm(&OneFate::over(&here, *fate))));
        let (cells, agent) = (cells.collect::<String>(), format!("`{agent}`"));
        match rows.iter_mut().find(|(row, _)| *row == cells) {
            Some((_, agents)) => agents.push(agent),
            None => rows.push((cells, vec![agent])),
        }
    }
    for (cells, agents) in rows {
        table += &format!("| {} |{cells}\n", agents.join(", "));
    }
    let page =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/explanation/reliability-exploration.md");
    let text = std::fs::read_to_string(page).expect("the page");
    let (begin, end) = ("<!-- table: survival -->\n\n", "\n<!-- end -->");
    let (before, rest) = text.split_once(begin).expect("the table's place");
    let (shown, after) = rest.split_once(end).expect("the table's end");
    if std::env::var_os("LASTHOP_WRITE_MANUAL").is_some() {
        let text = format!("{before}{begin}{table}{end}{after}");
        std::fs::write(page, text).expect("the page is written");
    } else {
        assert_eq!(shown, table, "LASTHOP_WRITE_MANUAL=1 writes it");
    }
}

/// A host that falls silent, or closes its window, or a path whose MTU shrinks, from each of the first packets on: for
/// every agent, and for every sender of split connections.
#[test]
fn few_packets_are_sent_into_silence() {
    let fates = Fate::SILENCES.iter().map(|(_, fate)| *fate).collect();
    let options = Options { fates, ..options(1, 30) };
    let agents = plan(&["host.fixed.tcp=rack"]);
    assert_holds(&agents, &all(&agents, &options));
    for tcp in TCPS.iter().filter(|tcp| tcp.key != "tcp-int") {
        let tcp = format!("split-tcp={}", tcp.key);
        let split = plan(&["agent=split", "host.fixed.tcp=rack", &tcp]);
        assert_holds(&split, &all(&split, &options));
    }
}

/// A handshake that a silence of half a minute interrupts, with a hand-off in between.
#[test]
fn a_moved_handshake_outlives_a_silence() {
    let fates = vec![Fate::Silent(Silence::HalfMinute)];
    for agent in ["split", "m-tcp"] {
        let plan = matrix("cells", &[&format!("base={agent}, state")]);
        assert_holds(&plan, &all(&plan, &Options { fates: fates.clone(), ..options(1, 8) }));
    }
}

#[test]
fn the_settings_of_a_pattern_reproduce_its_run() {
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
    let plan = plan(&[]);
    assert_holds(&plan, &all(&plan, &options(1, 40)));
}

/// Each file in `matrix` with at most one fault.
#[test]
fn no_single_fault_violates_anything_in_the_matrix() {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/matrix");
    let mut names: Vec<String> = std::fs::read_dir(dir)
        .expect("the matrix")
        .map(|entry| entry.expect("an entry").path())
        .map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned())
        .collect();
    names.sort();
    assert!(names.len() > 8, "{names:?}");
    let wrong = |name: &String| {
        let plan = matrix(name, &[]);
        violations(&plan, &all(&plan, &options(1, 40)))
    };
    let wrong: Vec<String> = names.iter().flat_map(wrong).collect();
    assert!(wrong.is_empty(), "{} violations:\n{}", wrong.len(), wrong.join("\n"));
}

/// Explores every cell.
fn all(plan: &Plan, options: &Options) -> Vec<Exploration> {
    let cells = plan.cells.par_iter();
    cells.map(|cell| explore(&cell.scenario, 1, options, &|_| true)).collect()
}

fn assert_holds(plan: &Plan, found: &[Exploration]) {
    let wrong = violations(plan, found);
    assert!(wrong.is_empty(), "{} violations:\n{}", wrong.len(), wrong.join("\n"));
}

fn violations(plan: &Plan, found: &[Exploration]) -> Vec<String> {
    let mut wrong = Vec::new();
    for (cell, found) in plan.cells.iter().zip(found) {
        assert!(found.complete && found.runs > 1, "{:?}: {found:?}", cell.labels);
        for violation in &found.first_violations {
            let keys = violation.pattern.settings(&cell.scenario);
            wrong.push(format!("{} {:?}: {keys:?}: {}", plan.name, cell.labels, violation.what));
        }
    }
    wrong
}
