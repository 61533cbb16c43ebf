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
use wasmi::{Engine, Instance, Linker, Module, Store, WasmParams, WasmResults};

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

    // The interpreter takes fifty times as long as the processor: each core gets its share of the cases.
    let workers = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
    std::thread::scope(|scope| {
        for worker in 0..workers {
            let module = &module;
            scope.spawn(move || {
                let mut there = Interpreted::new(module);
                assert_eq!(there.call::<(), u32>("lasthop_cases", ()), CASES);
                for case in (worker..CASES).step_by(workers as usize) {
                    let seed = u64::from(case) + 1;
                    let digest_there: u64 = there.call("lasthop_digest", (case, seed));
                    assert_eq!(
                        digest_there,
                        digest(case, seed),
                        "case {case} with seed {seed} differs in wasm"
                    );
                }
                if worker == workers - 1 {
                    let digest_there: u64 = there.call("lasthop_study_digest", ());
                    assert_eq!(digest_there, study_digest(), "a study differs in wasm");
                }
            });
        }
    });
}

/// The module, with a memory of its own.
struct Interpreted {
    store: Store<()>,
    instance: Instance,
}

impl Interpreted {
    fn new(module: &Module) -> Interpreted {
        let mut store = Store::new(module.engine(), ());
        let instance = Linker::new(module.engine())
            .instantiate_and_start(&mut store, module)
            .expect("it starts");
        Interpreted { store, instance }
    }

    fn call<P: WasmParams, R: WasmResults>(&mut self, name: &str, params: P) -> R {
        let function = self.instance.get_typed_func::<P, R>(&self.store, name).expect("exported");
        function.call(&mut self.store, params).expect("no trap")
    }
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
