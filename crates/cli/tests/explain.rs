//! `lasthop explain` on a quick claim.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn explain(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lasthop"))
        .arg("explain")
        .args(arguments)
        .env("NO_COLOR", "1")
        .output()
        .expect("the program starts")
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// An empty directory for a test.
fn directory(name: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("lasthop-explain-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    dir
}

fn lines(file: &Path) -> Vec<String> {
    std::fs::read_to_string(file).expect("written").lines().map(str::to_owned).collect()
}

#[test]
fn a_sample_gives_the_same_answer_again() {
    let arguments = ["W-F10", "--sets", "40", "--seeds", "1", "--again", "0", "--json"];
    let first = stdout(&explain(&arguments));
    assert_eq!(first, stdout(&explain(&arguments)));
    let answer: serde_json::Value = serde_json::from_str(&first).expect("JSON");
    assert_eq!(answer["sets"].as_array().map(Vec::len), Some(40));
    assert_eq!(answer["conditions"].as_array().map(Vec::len), Some(4));
    let parameters = answer["parameters"].as_array().expect("what is open");
    assert_eq!(answer["ranking"].as_array().map(Vec::len), Some(parameters.len()));
    assert!(parameters.iter().any(|p| p["name"] == "path.verdi.persist"));
    let other = [&arguments[..], &["--sample", "2"]].concat();
    assert_ne!(first, stdout(&explain(&other)));
}

#[test]
fn finished_sets_are_stored_and_resumption_skips_them() {
    let dir = directory("kept");
    let out = dir.to_str().expect("a name");
    let arguments = ["W-F10", "--sets", "30", "--seeds", "1", "--again", "0", "-o", out];
    let first = stdout(&explain(&arguments));
    let file = dir.join("sets.jsonl");
    // The assumptions, and the sets, some of which coincide.
    let stored = lines(&file);
    assert_eq!(stored.len(), 30);
    // As after an interruption in the middle of a line.
    let half = &stored[19][..stored[19].len() / 2];
    std::fs::write(&file, format!("{}\n{half}", stored[..19].join("\n"))).expect("written");
    assert_eq!(first, stdout(&explain(&arguments)));
    let whole = lines(&file);
    assert_eq!(whole.len(), 31, "stored sets are not run again");
    for name in ["report.html", "explain.svg", "explain.json"] {
        assert!(dir.join(name).exists(), "{name}");
    }
    std::fs::remove_dir_all(&dir).expect("removed");
}

#[test]
fn conditions_are_chosen_on_and_judged_by_name_or_number() {
    let arguments = ["W-F9", "W-F10", "--sets", "20", "--seeds", "1", "--again", "0", "--json"];
    let fit = |words: &str| explain(&[&arguments[..], &["--fit", words]].concat());
    let answer: serde_json::Value = serde_json::from_str(&stdout(&fit("W-F9"))).expect("JSON");
    assert_eq!(answer["split"]["fit"], serde_json::json!([0, 1]));
    assert_eq!(answer["split"]["others"], 4);
    let failed = fit("W-T1");
    assert_eq!(failed.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&failed.stderr).contains("names no condition"));
}

#[test]
fn claims_of_other_testbeds_or_without_one_are_refused() {
    for (claims, message) in [
        (&["W-T1", "B-F4"][..], "another testbed"),
        (&["A-CHECKSUM"], "it measures this machine"),
        (&["W-T99"], "no claim"),
    ] {
        let output = explain(claims);
        assert_eq!(output.status.code(), Some(2), "{claims:?}");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(stderr.contains(message), "{stderr}");
    }
    let open = stdout(&explain(&["W-T4", "--open"]));
    assert!(open.contains("path.verdi.rtt-fault") && open.contains("assumed true"), "{open}");
}
