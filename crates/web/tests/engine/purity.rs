//! The engine needs nothing from its environment, and gives the same bytes in WebAssembly as natively.
//!
//! A module for wasm32-unknown-unknown has no clock, no randomness, no files and no threads unless it imports them. The module of
//! the page has no imports, and contains all pure crates.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use lasthop_web::{answer, envelope};
use serde_json::{Value, json};

use crate::can_run::can_run;
use crate::{ask, text};

const TARGET: &str = "wasm32-unknown-unknown";

const PRESETS: [&str; 4] = ["freebsd-2.1", "rfc", "ns", "linux"];
const SENDERS: [&str; 4] = ["tahoe", "reno", "newreno", "sack"];
const AGENTS: [&str; 9] = [
    "none",
    "snoop",
    "snoop+ackp",
    "seq-cache",
    "split",
    "split-sack",
    "ebsn",
    "source-quench",
    "good-packet-size",
];
const ERRORS: [&str; 6] = [
    r#"{ model = "exponential", mean = "16KiB" }"#,
    r#"{ model = "bit-errors", ber = 5e-6 }"#,
    r#"{ model = "packet-bursts", packets = 4, mean = "16KiB" }"#,
    r#"{ model = "two-state", good = "300ms", bad = "40ms", ber-good = 1e-6, ber-bad = 1e-3 }"#,
    r#"{ model = "two-state", good-bits = 500000, bad-bits = 20000, ber-good = 1e-6, ber-bad = 1e-3 }"#,
    r#"{ model = "packet-loss", p = "3%" }"#,
];

/// Runs with each preset under each sender, and with each agent and each model of errors at least once.
fn runs() -> impl Iterator<Item = Value> {
    (0..PRESETS.len() * SENDERS.len()).map(|i| {
        let set = [
            format!("host.fixed.preset={}", PRESETS[i % PRESETS.len()]),
            format!("host.fixed.tcp={}", SENDERS[i / PRESETS.len()]),
            format!("agent={}", AGENTS[i % AGENTS.len()]),
            format!("errors={}", ERRORS[i % ERRORS.len()]),
        ];
        json!({ "ask": "run", "text": include_str!("purity.toml"), "seed": i + 1, "set": set })
    })
}

/// All questions: the runs, several runs with their mean, and the analysis of a capture.
fn questions() -> Vec<Vec<u8>> {
    let band = json!({ "ask": "band", "text": text("rivals"), "scheme": "snoop", "seed": 1, "runs": 3, "set": ["transfer.bytes=50kB"] });
    let file = json!({ "ask": "file", "text": text("quickstart"), "seed": 1, "form": "pcapng" });
    let capture = ask(&file, &[]).1;
    let plain = runs().chain([band]).map(|json| envelope::question(&json, &[]));
    let last = envelope::question(&json!({ "ask": "capture", "name": "link.pcapng" }), &capture);
    plain.chain([last]).collect()
}

/// Builds the module with the profile of the page, so that it is compiled once for both, and returns its path.
fn build() -> PathBuf {
    let output = Command::new(env!("CARGO"))
        .args(["build", "--locked", "--profile", "module", "--package", "lasthop-web", "--lib"])
        .args(["--target", TARGET, "--message-format", "json"])
        .stderr(Stdio::inherit())
        .output()
        .expect("cargo can be started again");
    assert!(
        output.status.success(),
        "the pure crates do not build for {TARGET}; if the target is missing: rustup target add {TARGET}"
    );
    let messages = String::from_utf8(output.stdout).expect("cargo prints UTF-8");
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["reason"] == "compiler-artifact")
        .flat_map(|message| message["filenames"].as_array().cloned().unwrap_or_default())
        .filter_map(|name| name.as_str().map(PathBuf::from))
        .find(|path| path.ends_with("lasthop_web.wasm"))
        .expect("cargo prints the path of the module")
}

/// Node of the machine or of a wheel, as make calls it.
fn node(module: &Path) -> Command {
    let target = module.ancestors().nth(3).expect("TARGET/wasm32-unknown-unknown/module/FILE");
    let mut command = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../.ci/node"));
    command.env("NODE_VENV", target.join("node")).arg("node").stderr(Stdio::inherit());
    command
}

/// The answers of the module. Each question and answer is a length of four bytes, and the bytes.
fn answers(module: &Path, questions: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/engine/purity.mjs");
    let mut child = node(module)
        .args([script.as_ref() as &OsStr, module.as_ref()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("node can be started again");
    let mut input = child.stdin.take().expect("a pipe");
    for question in questions {
        input.write_all(&(question.len() as u32).to_le_bytes()).expect("node reads");
        input.write_all(question).expect("node reads");
    }
    drop(input);
    let output = child.wait_with_output().expect("node ends");
    assert!(output.status.success(), "the module has imports, or does not run");
    let mut rest = output.stdout.as_slice();
    let mut all = Vec::new();
    while let Some((len, after)) = rest.split_first_chunk() {
        let (answer, after) = after.split_at(u32::from_le_bytes(*len) as usize);
        all.push(answer.to_vec());
        rest = after;
    }
    all
}

#[test]
fn the_module_imports_nothing_and_answers_as_the_native_engine() {
    let module = build();
    let there = node(&module).arg("--version").output().is_ok_and(|out| out.status.success());
    if !can_run(there, "node") {
        return;
    }
    let questions = questions();
    let found = answers(&module, &questions);
    assert_eq!(found.len(), questions.len());
    let mut different = BTreeSet::new();
    for (i, (question, found)) in questions.iter().zip(&found).enumerate() {
        let native = answer(question);
        assert!(!native.windows(8).any(|it| it == br#""error":"#), "question {i} is wrong");
        assert!(*found == native, "question {i} has another answer in WebAssembly");
        different.insert(native);
    }
    assert_eq!(different.len(), questions.len(), "each question has its own answer");
}
