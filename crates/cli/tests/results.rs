//! Whole sweeps as a user runs them: what is printed, what is kept, what is continued.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

/// A short transfer with errors: two cells of three runs.
const TINY: &str = "\
name = \"tiny\"
runs = 3
transfer = { from = \"fixed\", to = \"mobile\", bytes = \"50KB\" }
[host.fixed]
[host.mobile]
recv-buffer = \"16KiB\"
[[path]]
link = { rate = \"10mbit\", delay = \"1ms\" }
[[path]]
agent = \"none\"
[[path]]
radio = { rate = \"2mbit\", delay = \"1ms\" }
errors = { model = \"exponential\", mean = \"16KiB\" }
[vary]
agent = [\"none\", \"snoop\"]
";

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        let dir = tempfile::tempdir().expect("a temporary directory");
        fs::write(dir.path().join("tiny.toml"), TINY).expect("written");
        Place(dir)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lasthop"));
        command.args(arguments).current_dir(self.0.path()).env("NO_COLOR", "1");
        command.stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("the program starts")
    }

    fn good(&self, arguments: &[&str]) -> Output {
        let output = self.run(arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {errors}");
        output
    }
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).expect("JSON")
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() { all.extend(files(&path)) } else { all.push(path) }
    }
    all.sort();
    all
}

fn no_temporary_files(dir: &Path) {
    for file in files(dir) {
        assert_ne!(file.extension().and_then(|e| e.to_str()), Some("tmp"), "{}", file.display());
    }
}

#[test]
fn a_table_has_a_row_for_each_cell() {
    let text = text(&Place::new().good(&["run", "tiny.toml"]));
    for word in ["KB/s", "KB = 1024 B", "radio goodput", "none", "snoop", "3 of 3"] {
        assert!(text.contains(word), "{word} is missing in\n{text}");
    }
}

#[test]
fn runs_that_do_not_complete_are_seen() {
    let place = Place::new();
    let text = text(&place.good(&["run", "tiny.toml", "--set", "horizon=100ms"]));
    assert!(text.contains("0 of 3") && text.contains("did not complete"), "{text}");
}

#[test]
fn json_does_not_depend_on_the_number_of_threads() {
    let place = Place::new();
    let one = place.good(&["run", "tiny.toml", "--json", "--jobs", "1"]);
    let two = place.good(&["run", "tiny.toml", "--json", "--jobs", "2"]);
    assert_eq!(one.stdout, two.stdout);
    let value = json(&one.stdout);
    assert_eq!(value["name"], "tiny");
    assert_eq!(value["axes"][0]["labels"], serde_json::json!(["none", "snoop"]));
    assert_eq!(value["cells"][1]["labels"][0], "snoop");
    assert_eq!(value["cells"][1]["runs"].as_array().map(Vec::len), Some(3));
    let throughput = &value["cells"][0]["summary"]["throughput"];
    assert_eq!((throughput["n"].as_u64(), &throughput["unit"]), (Some(3), &"B/s".into()));
    assert!(throughput["mean"].as_f64() > Some(0.0) && throughput["ci95"].is_f64());
}

#[test]
fn a_directory_of_results_is_complete_and_continues() {
    let place = Place::new();
    place.good(&["run", "tiny.toml", "-o", "out"]);
    let out = place.path("out");
    let printed = place.good(&["run", "tiny.toml", "--json"]).stdout;
    let kept = fs::read(out.join("results.json")).expect("results");
    assert_eq!(kept, printed, "results.json is what --json prints");
    assert!(fs::read_to_string(out.join("scenario.toml")).expect("scenario").ends_with(TINY));
    for cell in ["agent=none", "agent=snoop"] {
        for file in ["events.csv", "tcb.csv", "sequence-1.svg", "sequence-1.png", "drops.pcapng"] {
            let path = out.join("trace").join(cell).join(file);
            assert!(path.is_file(), "{}", path.display());
        }
    }
    let captures = files(&out.join("trace/agent=none"));
    let captures = captures.iter().filter(|f| f.extension().is_some_and(|e| e == "pcapng"));
    assert_eq!(captures.count(), 3, "the link, the radio and the drops");
    let page = fs::read_to_string(out.join("report.html")).expect("a page");
    assert!(page.contains("<svg") && !page.contains("http-equiv=\"refresh\""));
    no_temporary_files(&out);

    // A marker in a kept run shows whether it was read; a spoilt one and a missing one are run again.
    let runs = files(&out.join("runs"));
    assert_eq!(runs.len(), 6);
    let mut marked = json(&fs::read(&runs[0]).expect("a run"));
    marked["hops"] = 987_654_321.into();
    fs::write(&runs[0], marked.to_string()).expect("written");
    fs::write(&runs[1], "{ half").expect("written");
    fs::remove_file(&runs[2]).expect("removed");
    place.good(&["run", "tiny.toml", "-o", "out"]);
    let again = fs::read_to_string(out.join("results.json")).expect("results");
    assert!(again.contains("987654321"), "a kept run is read");
    fs::remove_file(&runs[0]).expect("removed");
    place.good(&["run", "tiny.toml", "-o", "out"]);
    assert_eq!(fs::read(out.join("results.json")).expect("results"), kept);
}

#[test]
fn the_page_is_rebuilt_from_files() {
    let place = Place::new();
    place.good(&["run", "tiny.toml", "-o", "out"]);
    let page = place.path("out/report.html");
    let first = fs::read(&page).expect("a page");
    fs::remove_file(&page).expect("removed");
    fs::remove_dir_all(place.path("out/runs")).expect("removed");
    place.good(&["report", "out"]);
    assert_eq!(fs::read(&page).expect("a page"), first);
}

#[test]
fn wrong_directories_are_refused() {
    let place = Place::new();
    fs::create_dir(place.path("empty")).expect("made");
    for arguments in [
        &["run", "tiny.toml", "-o", "tiny.toml"][..],
        &["report", "nowhere"],
        &["report", "empty"],
        &["report", "tiny.toml"],
        &["analyze", "tiny.toml"],
    ] {
        let output = place.run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(!output.stderr.is_empty() && output.stdout.is_empty(), "{arguments:?}");
    }
}

#[test]
fn the_demonstration_draws() {
    let text = text(&Place::new().good(&["run"]));
    let braille = |c: char| ('\u{2801}'..='\u{28ff}').contains(&c);
    assert!(text.chars().any(braille), "{text}");
    assert!(text.contains("lasthop run west97-lan -o out"));
    // The table is as wide as it needs where nobody looks; everything else fits a terminal.
    let wide = |line: &&str| line.chars().count() > 84;
    assert!(text.lines().filter(wide).all(|line| line.contains(" of ") || line.contains("KB/s")));
}

#[test]
fn our_own_captures_are_understood() {
    let place = Place::new();
    place.good(&["run", "tiny.toml", "-o", "out"]);
    let captures = files(&place.path("out/trace/agent=none"));
    let captures: Vec<&str> = captures
        .iter()
        .filter(|f| f.extension().is_some_and(|e| e == "pcapng") && !f.ends_with("drops.pcapng"))
        .filter_map(|f| f.to_str())
        .collect();
    let output = place.good(&["analyze", captures[0], "-o", "seen"]);
    assert!(text(&output).contains("verdict"), "{}", text(&output));
    for file in ["analysis.json", "report.html", "connection-0-to-server.svg"] {
        assert!(place.path("seen").join(file).is_file(), "{file}");
    }
    let value = json(&place.good(&["analyze", captures[0], "--json"]).stdout);
    let direction = &value["captures"][0]["connections"][0]["to_server"];
    assert_eq!(direction["unique_bytes"], 50_000);
}

#[cfg(unix)]
#[test]
fn an_interrupted_sweep_continues() {
    let place = Place::new();
    let long = ["run", "tiny.toml", "--seeds", "200000", "--jobs", "1", "-o", "out"];
    let mut child = place
        .command(&long)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let runs = place.path("out/runs");
    while !runs.is_dir() || files(&runs).len() < 5 {
        assert!(child.try_wait().expect("its state").is_none(), "it ended before its time");
        std::thread::yield_now();
    }
    interrupt(&child);
    let output = child.wait_with_output().expect("it ends");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{errors}");
    assert!(errors.contains("the same command goes on"), "{errors}");
    assert!(text(&output).contains("not run"), "cells without a run say so");
    no_temporary_files(&place.path("out"));
    assert!(!place.path("out/results.json").exists());

    // The first seeds are kept: a shorter sweep of the same scenario reads them.
    let first = files(&runs);
    let times = || -> Vec<_> {
        first.iter().map(|f| fs::metadata(f).and_then(|m| m.modified()).expect("a time")).collect()
    };
    let before = times();
    place.good(&["run", "tiny.toml", "-o", "out"]);
    assert_eq!(times(), before, "kept runs are not written again");
    let results = json(&fs::read(place.path("out/results.json")).expect("results"));
    let fresh = json(&place.good(&["run", "tiny.toml", "--json"]).stdout);
    assert_eq!(results, fresh);
}

/// Ctrl-C for one process.
#[cfg(unix)]
fn interrupt(child: &Child) {
    let status = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(status.expect("kill runs").success());
}

/// No scenario is known that does it, so the kept result of a run is made to say so.
#[test]
fn a_run_in_which_time_stood_still_is_reported_with_an_exit_code_of_its_own() {
    let place = Place::new();
    let arguments = ["run", "tiny.toml", "-o", "out"];
    place.good(&arguments);
    let kept = fs::read_dir(place.path("out/runs")).expect("kept").next().expect("one");
    let kept = kept.expect("one").path();
    let mut run: Value = serde_json::from_slice(&fs::read(&kept).expect("read")).expect("JSON");
    run["stuck"] = "stage 5 (mobile) at 2.5s".into();
    fs::write(&kept, run.to_string()).expect("written");
    let output = place.run(&arguments);
    assert_eq!(output.status.code(), Some(70));
    let (out, errors) = (text(&output), String::from_utf8_lossy(&output.stderr).into_owned());
    assert!(
        out.contains("time stood still at stage 5 (mobile) at 2.5s: a fault of lasthop"),
        "{out}"
    );
    let agent = if errors.contains("snoop") { "snoop" } else { "none" };
    let line = format!(
        "scenario tiny (agent={agent}), seed {}, stage 5 (mobile) at 2.5s, lasthop {}",
        run["seed"],
        env!("CARGO_PKG_VERSION")
    );
    assert!(errors.contains(&line), "{errors}");
}
