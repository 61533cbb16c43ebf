//! Sweeps with a store: shards, points, resumption, and stores of earlier versions.

use std::fs;
use std::path::{Path, PathBuf};
#[cfg(unix)]
use std::process::Stdio;

use super::{Workdir, files, json, stored_lines, text};
#[cfg(unix)]
use super::{interrupt, no_temporary_files};

/// Options of a sweep with batches of ten runs: a batch is at most 375 MB, and less with these errors.
const LARGE: [&str; 8] = [
    "--set",
    "transfer.bytes=1GB",
    "--set",
    "horizon=300ms",
    "--set",
    "link.rate=10gbit",
    "--set",
    "radio.rate=10gbit",
];

fn sweep<'a>(store: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["sweep", "tiny.toml", "--store", store, "--json"][..], &LARGE[..], more].concat()
}

/// The names and bytes of all batches.
fn batches(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let all =
        files(dir).into_iter().filter(|file| file.extension().is_some_and(|e| e == "parquet"));
    let relative = |file: &Path| file.strip_prefix(dir).expect("it is below").to_owned();
    all.map(|file| (relative(&file), fs::read(&file).expect("read"))).collect()
}

#[test]
fn shards_of_a_sweep_have_the_files_of_the_whole() {
    let workdir = Workdir::new();
    let swept = json(&workdir.good(&sweep("whole", &["-n", "30"])).stdout);
    assert_eq!(
        swept,
        serde_json::json!({
            "format": "lasthop-sweep", "format_version": 1,
            "batches": 6, "found": 0, "made": 6, "runs": 60, "complete": true,
        })
    );
    for shard in ["2/3", "3/3", "1/3"] {
        workdir.good(&sweep("parts", &["-n", "30", "--shard", shard]));
    }
    assert_eq!(batches(&workdir.path("parts")), batches(&workdir.path("whole")));
    let more = json(&workdir.good(&sweep("whole", &["-n", "31"])).stdout);
    assert!(more["made"].as_u64() > Some(0), "more seeds: {more}");
    let other = workdir.run(&["sweep", "tiny.toml", "--store", "whole", "-n", "30"]);
    let errors = String::from_utf8_lossy(&other.stderr);
    assert!(errors.contains("other values of `--set`"), "{errors}");
}

#[test]
fn points_are_cells() {
    let workdir = Workdir::new();
    fs::write(workdir.path("points.csv"), "errors.mean,agent\n16KiB,snoop\n64KiB,none\n").unwrap();
    workdir.good(&["sweep", "tiny.toml", "--store", "s", "--points", "points.csv"]);
    assert!(!batches(&workdir.path("s")).is_empty());
    fs::write(workdir.path("points.csv"), "errors.mean\n16KiB\n16 furlongs\n").unwrap();
    let output = workdir.run(&["sweep", "tiny.toml", "--store", "s", "--points", "points.csv"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("furlongs"), "{errors}");
}

#[test]
fn invalid_sweeps_and_stores_are_refused() {
    let workdir = Workdir::new();
    for (arguments, expected) in [
        (&["sweep", "tiny.toml", "--store", "s", "--shard", "4/3"][..], "K/N"),
        (&["sweep", "tiny.toml"], "--store"),
        (&["sweep", "tiny.toml", "--store", "tiny.toml"], "tiny.toml"),
        (&["sweep", "nothing.toml", "--store", "s"], "nothing.toml"),
        (&["sweep", "tiny.toml", "--store", "s", "--set", "world=testbed"], "simulator"),
    ] {
        let output = workdir.run(arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {errors}");
        assert!(errors.contains(expected) && output.stdout.is_empty(), "{arguments:?}: {errors}");
    }
    workdir.good(&["sweep", "tiny.toml", "--store", "s"]);
    fs::write(workdir.path("s/lasthop-store.json"), r#"{"lasthop":"0.0.9","results":7}"#).unwrap();
    let output = workdir.run(&["sweep", "tiny.toml", "--store", "s"]);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(errors.contains("lasthop 0.0.9 (results 7)"), "{errors}");
}

#[cfg(unix)]
#[test]
fn an_interrupted_sweep_of_a_store_continues() {
    let workdir = Workdir::new();
    let arguments = sweep("store", &["-n", "400", "--jobs", "1"]);
    let there = || match workdir.path("store").is_dir() {
        true => batches(&workdir.path("store")).len(),
        false => 0,
    };
    let mut child =
        workdir.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while there() < 3 {
        assert!(child.try_wait().expect("its state").is_none(), "it ended before its time");
        std::thread::yield_now();
    }
    interrupt(&child);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
    let result = json(&output.stdout);
    assert_eq!((&result["complete"], result["batches"].as_u64()), (&false.into(), Some(80)));
    let there = there();
    assert!((3..80).contains(&there));
    let rest = json(&workdir.good(&sweep("store", &["-n", "400"])).stdout);
    assert_eq!(rest["found"].as_u64(), Some(there as u64));
    workdir.good(&sweep("fresh", &["-n", "400"]));
    assert_eq!(batches(&workdir.path("store")), batches(&workdir.path("fresh")));
    no_temporary_files(&workdir.path("store"));
}

fn copied(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for file in files(from) {
        let workdir = to.join(file.strip_prefix(from).expect("it is below"));
        fs::create_dir_all(workdir.parent().expect("it has one")).expect("a directory");
        fs::copy(&file, workdir).expect("copied");
    }
}

/// Results and a store written by 0.2.1 (`tests/data/kept`, by `run kept.toml -o results` and
/// `sweep kept.toml --store store --seeds 4`). A change of the format must still read these. If results
/// change too, replace them, add the old ones to the refusals below, and mention it in CHANGELOG.
#[test]
fn old_version_results_are_read_or_refused_with_reason() {
    let workdir = Workdir::new();
    copied(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/kept"), &workdir.path("kept"));
    workdir.good(&["report", "kept/results"]);
    let before = stored_lines(&workdir.path("kept/results"));
    assert_eq!(before.len(), 2);
    workdir.good(&["run", "kept/results/scenario.toml", "-o", "kept/results"]);
    assert_eq!(stored_lines(&workdir.path("kept/results")), before, "no run is made again");
    // A sweep continues from it.
    let printed =
        text(&workdir.good(&["sweep", "kept/kept.toml", "--store", "kept/store", "-n", "4"]));
    assert!(printed.contains("1 of 1 batches were there, 0 made"), "{printed}");

    let mark = workdir.path("kept/store/lasthop-store.json");
    fs::write(&mark, "{\"lasthop\":\"0.2.0\",\"results\":1}").expect("written");
    let output = workdir.run(&["sweep", "kept/kept.toml", "--store", "kept/store", "-n", "4"]);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("0.2.0") && errors.contains("versions do not mix"), "{errors}");
}
