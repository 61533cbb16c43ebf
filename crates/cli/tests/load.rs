//! `lasthop load`, `send -R`, `send -u` and `advise --measured` against a receiver over loopback.
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;

fn lasthop(dir: &Path, words: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lasthop"));
    command.args(words.split_whitespace()).current_dir(dir).env("NO_COLOR", "1");
    command.env("XDG_STATE_HOME", dir).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn run(dir: &Path, words: &str) -> Output {
    lasthop(dir, words).output().expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A receiver, which is stopped when dropped.
struct Receiver {
    child: Child,
    address: String,
}

impl Receiver {
    fn new(dir: &Path, words: &str) -> Receiver {
        let words = format!("discard --listen 127.0.0.1:0 --quiet {words}");
        let mut child = lasthop(dir, &words).spawn().expect("the program starts");
        let mut errors = BufReader::new(child.stderr.take().expect("a pipe"));
        let mut line = String::new();
        errors.read_line(&mut line).expect("a line");
        // Nothing else is printed there.
        child.stderr = Some(errors.into_inner());
        let address = line.trim().strip_prefix("listening on ").expect("an address").to_owned();
        Receiver { child, address }
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let _ = kill(Pid::from_raw(self.child.id().cast_signed()), Signal::SIGINT);
        let _ = self.child.wait();
    }
}

fn directory() -> TempDir {
    tempfile::tempdir().expect("a directory")
}

fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn a_measurement_as_json_figure_and_advice() {
    let dir = directory();
    let receiver = Receiver::new(dir.path(), "");
    let words = format!("load {} --seconds 1 --streams 2 -o out --json", receiver.address);
    let answer = json(&run(dir.path(), &words));
    assert_eq!((&answer["format"], &answer["format_version"]), (&"lasthop-load".into(), &1.into()));
    let phases = answer["phases"].as_array().expect("phases");
    let names: Vec<&str> = phases.iter().filter_map(|phase| phase["phase"].as_str()).collect();
    assert_eq!(names, ["idle", "up", "down", "both"]);
    assert_eq!(answer["complete"], true);
    for phase in phases {
        assert!(phase["probes"]["sent"].as_u64() > Some(0), "{phase}");
    }
    for (phase, direction) in [(1, "up"), (2, "down")] {
        let transfer = &phases[phase][direction];
        assert_eq!(transfer["streams"].as_array().map(Vec::len), Some(2));
        assert!(transfer["goodput"].as_f64() > Some(0.0), "{transfer}");
    }
    let svg = fs::read_to_string(dir.path().join("out/load.svg")).expect("a figure");
    assert!(svg.starts_with("<svg") && svg.contains("round trip (ms)"));
    let stored = fs::read(dir.path().join("out/load.json")).expect("the answer");
    let stored: Value = serde_json::from_slice(&stored).expect("JSON");
    assert_eq!(stored, answer);
    // Loopback is faster than the links of advice: a rate replaces the measured one.
    let words = "advise --measured out/load.json --rate 2mbit --rate-back 2mbit --queue 20p --seeds 2 --quick --json";
    let output = run(dir.path(), words);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", text(&output.stderr));
    let advice: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let facts = advice["advice"]["facts"].as_array().expect("facts");
    let delay = facts.iter().find(|fact| fact["what"] == "wired-delay").expect("a delay");
    assert_eq!(delay["from"], "estimated");
}

#[test]
fn a_table_for_readers() {
    let dir = directory();
    let receiver = Receiver::new(dir.path(), "");
    let words = format!("load {} --seconds 1 --down --plot load.svg", receiver.address);
    let output = run(dir.path(), &words);
    let shown = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    for part in ["idle", "down", "RPM", "grade", "each stream (Mbit/s)", "docs/how-to/load.md"] {
        assert!(shown.contains(part), "no `{part}` in\n{shown}");
    }
    assert!(!shown.contains("both"), "{shown}");
    assert!(dir.path().join("load.svg").exists());
}

#[test]
fn ctrl_c_prints_the_finished_part() {
    let dir = directory();
    let receiver = Receiver::new(dir.path(), "");
    let words = format!("load {} --seconds 60 --json", receiver.address);
    let child = lasthop(dir.path(), &words).spawn().expect("the program starts");
    // The handler is installed before the connection, which /proc lists.
    let port: u16 =
        receiver.address.rsplit(':').next().and_then(|p| p.parse().ok()).expect("a port");
    let established = || {
        let all = fs::read_to_string("/proc/net/tcp").expect("connections");
        all.lines().any(|line| {
            let mut words = line.split_whitespace().skip(2);
            words.next().is_some_and(|peer| peer.ends_with(&format!(":{port:04X}")))
                && words.next() == Some("01")
        })
    };
    while !established() {
        std::thread::yield_now();
    }
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).expect("a signal");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    let answer: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", text(&output.stderr)));
    assert_eq!(answer["complete"], false);
    assert!(answer["phases"].as_array().is_some_and(|phases| phases.len() <= 1), "{answer}");
}

#[test]
fn the_receiver_sends_and_counts_datagrams() {
    let dir = directory();
    let receiver = Receiver::new(dir.path(), "--udp");
    let to = &receiver.address;
    let answer =
        json(&run(dir.path(), &format!("send {to} -R --bytes 300KB --interval 1s --json")));
    let transfer = &answer["transfers"][0];
    assert_eq!((&transfer["reverse"], &transfer["bytes"]), (&true.into(), &300_000.into()));
    assert!(transfer["wrong"].is_null() && transfer["end"]["how"] == "closed", "{transfer}");
    let intervals = answer["intervals"].as_array().expect("intervals");
    let bytes: u64 = intervals.iter().filter_map(|one| one["bytes"].as_u64()).sum();
    assert_eq!(bytes, 300_000);
    let words = format!("send {to} -u --rate 1mbit --length 500 --time 500ms --json");
    let udp = &json(&run(dir.path(), &words))["udp"];
    let number = |key: &str| udp[key].as_u64().expect("a number");
    assert_eq!(number("sent"), number("received") + number("lost"), "{udp}");
    assert_eq!(number("length"), 500);
    let udp = &json(&run(dir.path(), &format!("{words} -R")))["udp"];
    let number = |key: &str| udp[key].as_u64().expect("a number");
    assert_eq!(number("sent"), number("received") + number("lost"), "{udp}");
    assert_eq!(udp["reverse"], true);
}

#[test]
fn errors_include_a_remedy() {
    let dir = directory();
    let plain = Receiver::new(dir.path(), "--plain");
    let usual = Receiver::new(dir.path(), "");
    for (words, part) in [
        (format!("load {}", plain.address), "--plain"),
        (format!("send {} -R", plain.address), "--plain"),
        (format!("send {} -u", usual.address), "--udp"),
        (format!("send {} -u -R", usual.address), "--udp"),
        (format!("load {} --congestion carrier", usual.address), "available: "),
        ("send -R".to_owned(), "HOST[:PORT] is missing"),
    ] {
        let output = run(dir.path(), &words);
        let errors = text(&output.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(output.status.code(), Some(2), "{words}: {errors}");
        assert!(errors.contains(part), "{words}: no `{part}` in {errors}");
        assert!(output.stdout.is_empty(), "{words}");
    }
}
