//! Stored results of explorations, and the commands that repeat their runs.

use std::fs;
use std::process::Command;

use serde_json::Value;

use super::Workdir;

#[test]
fn an_exploration_stores_its_results_and_reads_them() {
    let workdir = Workdir::new();
    let words = ["explore", "explore", "--set", "agent=none", "--set", "host.fixed.tcp=reno"];
    let with = |more: &[&str]| {
        let output = workdir.good(&[&words[..], &["--first", "8", "--json"], more].concat());
        serde_json::from_slice::<Value>(&output.stdout).expect("JSON")
    };
    let plain = with(&[]);
    let stored = with(&["-o", "found.json"]);
    assert_eq!(stored, plain);
    let file = fs::read_to_string(workdir.path("found.json")).expect("it was written");
    let known: Value = serde_json::from_str(&file).expect("JSON");
    assert_eq!(known.as_object().map(|cells| cells.len()), Some(1), "{known}");
    assert_eq!(with(&["-o", "found.json"]), plain);
    // Other options have their own results next to these.
    with(&["-o", "found.json", "--faults", "2"]);
    let file = fs::read_to_string(workdir.path("found.json")).expect("it was written");
    let known: Value = serde_json::from_str(&file).expect("JSON");
    assert_eq!(known.as_object().map(|cells| cells.len()), Some(2), "{known}");
    fs::write(workdir.path("found.json"), "{ no results }").expect("written");
    let refused = workdir.run(&[&words[..], &["-o", "found.json"]].concat());
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("no results of an exploration"));
}

/// Within two seconds there is no time for a lost SYN and its lost repetition.
#[test]
fn the_command_of_a_violation_repeats_its_run() {
    let workdir = Workdir::new();
    let words = ["explore", "explore", "--set", "agent=none", "--set", "host.fixed.tcp=reno"];
    let more = ["--set", "horizon=900ms", "--fates", "drop", "--first", "2", "--json"];
    let output = workdir.run(&[&words[..], &more].concat());
    assert_eq!(output.status.code(), Some(1));
    let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let command = answer["cells"][0]["commands"][0].as_str().expect("a command");
    assert!(command.starts_with("lasthop run explore --set agent=none "), "{command}");
    // The shell reads its quotes.
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(command.replacen("lasthop", env!("CARGO_BIN_EXE_lasthop"), 1));
    let again = shell.arg("--json").current_dir(workdir.path("")).output().expect("a shell");
    let errors = String::from_utf8_lossy(&again.stderr);
    // Within the horizon nothing completes, which `run` reports by 1. Without the fault it does.
    assert_eq!(again.status.code(), Some(1), "{command}: {errors}");
    let without = [&["run"][..], &words[1..], &more[..2], &["--seeds", "1"]].concat();
    workdir.good(&without);
}
