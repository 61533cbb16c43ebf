//! The pure crates need nothing from their environment, and give the same bytes in WebAssembly as natively.
//!
//! A module for wasm32-unknown-unknown has no clock, no randomness, no files and no threads unless it imports
//! them. This one must have no imports.
//!
//! `lasthop-web` is a separate module, with allocation and entry points that are useless here. `make web`
//! rejects it if it has imports, and `make web-test` compares its digests with those of native runs, in a
//! browser.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use lasthop_checks::{CASES, digest, plan, study_digest};
use serde::Deserialize;

use crate::can_run::can_run;

const TARGET: &str = "wasm32-unknown-unknown";

/// Builds the module with the profile of the page's module and returns its path: the pure crates are then
/// compiled once for both.
fn build() -> PathBuf {
    let args = ["build", "--locked", "--profile", "module", "--package", "lasthop-checks", "--lib"];
    let output = Command::new(env!("CARGO"))
        .args(args)
        .args(["--target", TARGET, "--message-format", "json"])
        .stderr(Stdio::inherit())
        .output()
        .expect("cargo can be started again");
    assert!(
        output.status.success(),
        "the pure crates do not build for {TARGET}; if the target is missing: rustup target add {TARGET}"
    );
    let messages = String::from_utf8(output.stdout).expect("cargo speaks UTF-8");
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|message| message["reason"] == "compiler-artifact")
        .flat_map(|message| message["filenames"].as_array().cloned().unwrap_or_default())
        .filter_map(|name| name.as_str().map(PathBuf::from))
        .find(|path| path.ends_with("lasthop_checks.wasm"))
        .expect("cargo names the module it built")
}

/// What `purity.mjs` prints about the module.
#[derive(Deserialize)]
struct Report {
    imports: Vec<String>,
    #[serde(default)]
    cases: Vec<String>,
    #[serde(default)]
    study: String,
}

#[test]
fn the_pure_crates_import_nothing_and_run_alike_in_wasm() {
    let module = build();
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let target = module.ancestors().nth(3).expect("TARGET/wasm32-unknown-unknown/module/FILE");
    // As make calls it: node of the machine, or of a wheel.
    let node = |args: &[&OsStr]| {
        Command::new(format!("{root}/.ci/node"))
            .env("NODE_VENV", target.join("node"))
            .arg("node")
            .args(args)
            .stderr(Stdio::inherit())
            .output()
    };
    let there = node(&["--version".as_ref()]).is_ok_and(|output| output.status.success());
    if !can_run(there, "node") {
        return;
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/purity.mjs");
    let output = node(&[script.as_ref(), module.as_ref()]).expect("it has just been started");
    assert!(output.status.success(), "the module does not run");
    let report: Report =
        serde_json::from_slice(&output.stdout).expect("JSON as purity.mjs writes it");
    assert!(
        report.imports.is_empty(),
        "the pure crates ask their environment for {:?}",
        report.imports
    );
    assert_eq!(report.cases.len(), CASES as usize);
    for (case, there) in (0..CASES).zip(&report.cases) {
        let seed = u64::from(case) + 1;
        assert_eq!(
            *there,
            digest(case, seed).to_string(),
            "case {case} with seed {seed} differs in wasm"
        );
    }
    assert_eq!(report.study, study_digest().to_string(), "a study differs in wasm");
}

#[test]
fn a_run_repeats_and_its_seed_matters() {
    let all = |seed| (0..CASES).map(|case| digest(case, seed)).collect::<Vec<_>>();
    let first = all(1);
    assert_eq!(first, all(1));
    let other = all(2);
    for case in 0..CASES as usize {
        assert_ne!(first[case], other[case], "case {case} does not depend on its seed");
        assert!(!first[..case].contains(&first[case]), "case {case} is like another");
    }
}

#[test]
fn the_cases_meet_every_value_of_every_axis() {
    let plan = plan();
    let cell = |case| &plan.cells[case as usize * 89 % plan.cells.len()];
    for (i, axis) in plan.axes.iter().enumerate() {
        let met: BTreeSet<&String> = (0..CASES).map(|case| &cell(case).labels[i]).collect();
        assert_eq!(met.len(), axis.labels.len(), "{}: only {met:?}", axis.name);
    }
}
