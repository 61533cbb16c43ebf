//! The pure crates need nothing from their environment, and give the same bytes in WebAssembly as natively.
//!
//! A module for wasm32-unknown-unknown has no clock, no randomness, no files and no threads unless it imports
//! them. This one must import nothing at all.
//!
//! `lasthop-web` is a module of its own, with allocation and entry points that this one has no use for. `make web` refuses it if it
//! imports anything, and `make web-test` holds its digests against those of native runs, in a browser.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use lasthop_checks::{CASES, digest, plan, study_digest};
use wasmi::{Engine, Instance, Linker, Module, Store};

const TARGET: &str = "wasm32-unknown-unknown";

/// Builds the module as the page's is, and says where it is: then the pure crates are compiled once for both.
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

#[test]
fn the_pure_crates_import_nothing_and_run_alike_in_wasm() {
    let bytes = std::fs::read(build()).expect("the module is where cargo says");
    let engine = Engine::default();
    let module = Module::new(&engine, &bytes[..]).expect("the module is valid");
    let imports: Vec<String> =
        module.imports().map(|import| format!("{}.{}", import.module(), import.name())).collect();
    assert!(imports.is_empty(), "the pure crates ask their environment for {imports:?}");

    let mut store = Store::new(&engine, ());
    let instance: Instance =
        Linker::new(&engine).instantiate_and_start(&mut store, &module).expect("it starts");
    let cases = instance.get_typed_func::<(), u32>(&store, "lasthop_cases").expect("exported");
    assert_eq!(cases.call(&mut store, ()).expect("no trap"), CASES);
    let run =
        instance.get_typed_func::<(u32, u64), u64>(&store, "lasthop_digest").expect("exported");
    for case in 0..CASES {
        let seed = u64::from(case) + 1;
        let there = run.call(&mut store, (case, seed)).expect("no trap");
        assert_eq!(there, digest(case, seed), "case {case} with seed {seed} differs in wasm");
    }
    let study = instance.get_typed_func::<(), u64>(&store, "lasthop_study_digest");
    let there = study.expect("exported").call(&mut store, ()).expect("no trap");
    assert_eq!(there, study_digest(), "a study differs in wasm");
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
