//! `lasthop compare` and `lasthop advise` as a user runs them.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn command(dir: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lasthop"));
    command.args(arguments).current_dir(dir).env("NO_COLOR", "1").stdin(Stdio::null());
    command
}

fn run(dir: &Path, arguments: &[&str]) -> Output {
    command(dir, arguments).output().expect("the program starts")
}

fn text(output: &Output) -> String {
    let all = [output.stdout.as_slice(), b"\n-- stderr\n", &output.stderr].concat();
    String::from_utf8_lossy(&all).into_owned()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", text(output)))
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array().expect("a list").iter().filter_map(|row| row["name"].as_str()).collect()
}

#[test]
fn the_points_of_the_own_axis_are_ranked() {
    let dir = tempfile::tempdir().unwrap();
    let output = run(dir.path(), &["compare", "rivals", "-n", "4", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let document = json(&output);
    assert_eq!(document["baseline"], "reno");
    let rows = &document["points"][0]["schemes"];
    assert_eq!(names(rows).len(), 14);
    let ranks: Vec<u64> =
        rows.as_array().unwrap().iter().map(|r| r["rank"].as_u64().unwrap()).collect();
    assert!(ranks.is_sorted(), "{ranks:?}");
    let snoop = rows.as_array().unwrap().iter().find(|row| row["name"] == "snoop").unwrap();
    assert_eq!(snoop["judgement"], "better");
    assert_eq!(snoop["change"], serde_json::json!(["base station"]));
    // The interval has the level of the test for "better".
    assert!(snoop["ratio"]["low"].as_f64().unwrap() > 1.0);
    assert!(snoop["ratio"]["mean"].as_f64().unwrap() > 1.5);
    // The loss rate of the scenario, and the throughput limit of a link with this rate.
    let loss = document["points"][0]["bounds"]["loss"].as_f64().unwrap();
    assert!((loss - 0.0227).abs() < 0.006, "{loss}");
}

#[test]
fn the_baseline_is_described_and_incomplete_runs_are_noted() {
    let dir = tempfile::tempdir().unwrap();
    let shown = text(&run(dir.path(), &["compare", "quickstart", "--schemes", "snoop", "-n", "2"]));
    assert!(shown.contains("compared with as-is (agent=none)"), "{shown}");
    let short = ["compare", "quickstart", "--schemes", "snoop", "-n", "2", "--errors", "0,1%"];
    let shown = text(&run(dir.path(), &[&short[..], &["--set", "horizon=5s"]].concat()));
    let notes: Vec<&str> = shown.lines().filter(|line| line.contains("completed")).collect();
    assert!(
        notes.iter().any(|note| note.contains("as-is at 1%: 0 of 2 runs completed")),
        "{shown}"
    );
}

#[test]
fn chosen_schemes_a_baseline_and_losses() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let arguments = [
        "compare",
        "west97-lan",
        "--schemes",
        "snoop,sack",
        "--baseline",
        "snoop",
        "--errors",
        "0,2%",
        "-n",
        "3",
        "--set",
        "transfer.bytes=200kB",
        "-o",
        out.to_str().unwrap(),
    ];
    let output = run(dir.path(), &arguments);
    let shown = text(&output);
    assert_eq!(output.status.code(), Some(0), "{shown}");
    assert!(shown.contains("scheme \\ loss") && shown.contains("compared with snoop"), "{shown}");
    assert!(shown.contains("Mathis") && shown.contains("link less losses"), "{shown}");
    let document: Value =
        serde_json::from_slice(&fs::read(out.join("comparison.json")).unwrap()).unwrap();
    assert_eq!(document["points"].as_array().unwrap().len(), 2);
    assert_eq!(document["points"][0]["bounds"]["loss"], 0.0);
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("<svg") && page.contains("loss = 2%") && page.contains("PFTK"));
    // Each picture has a table of its numbers.
    for picture in ["ranking-1", "delay-2", "losses"] {
        let csv = fs::read_to_string(out.join(format!("{picture}.csv"))).unwrap();
        assert!(out.join(format!("{picture}.svg")).is_file() && csv.contains("snoop"), "{csv}");
    }
    // Stored runs are not repeated: they give the same answer.
    let again = run(dir.path(), &arguments);
    assert_eq!(again.stdout, output.stdout);
}

#[test]
fn a_file_brings_its_own_schemes() {
    let dir = tempfile::tempdir().unwrap();
    let text_of = |line: &str| {
        format!("{}\n[schemes]\n{line}\n", include_str!("../../../scenarios/quickstart.toml"))
    };
    let mine = text_of(
        "helped = { change = [\"base station\"], what = \"mine\", set = { agent = \"snoop\", dupacks = 1 } }",
    );
    fs::write(dir.path().join("mine.toml"), mine).unwrap();
    let document = json(&run(dir.path(), &["compare", "mine.toml", "-n", "3", "--json"]));
    let mut found = names(&document["points"][0]["schemes"]);
    found.sort_unstable();
    assert_eq!(found, ["as-is", "helped"]);
    let ran = run(dir.path(), &["run", "mine.toml", "--dry-run"]);
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran));

    let wrong = text_of("x = { sett = { agent = \"snoop\" } }");
    fs::write(dir.path().join("wrong.toml"), wrong).unwrap();
    let output = run(dir.path(), &["run", "wrong.toml"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output).contains("did you mean `set`?"), "{}", text(&output));
}

#[test]
fn wrong_arguments_are_refused_with_a_remedy() {
    let dir = tempfile::tempdir().unwrap();
    for (arguments, expected) in [
        (&["compare", "rivals", "--schemes", "snop"][..], "did you mean `snoop`?"),
        (&["compare", "rivals", "--baseline", "tahoe"], "cannot be its baseline"),
        (&["compare", "rivals", "--errors", "2"], "probability below 1"),
        (&["compare", "no-such"], "neither a file nor a built-in scenario"),
        (&["advise"], "--rate 20mbit"),
        (&["advise", "--rate", "2mbit", "--loss", "-1%"], "for example 2%"),
        (&["advise", "--rate", "2"], "for example 20mbit"),
        (&["advise", "--rate", "2mbit", "--sender", "windows"], "there is no sender `windows`"),
        (&["advise", "--rate", "2mbit", "--burst", "0"], "from 1 to 1000"),
        (&["advise", "--rate", "2mbit", "--queue", "50"], "for example 50p"),
        (&["advise", "--capture", "no-such.pcap"], "no-such.pcap"),
        (&["advise", "--station", "/no/such.sock"], "control socket"),
    ] {
        let output = run(dir.path(), arguments);
        let shown = text(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {shown}");
        assert!(shown.contains(expected), "{arguments:?}: {shown}");
    }
}

#[test]
fn a_capture_without_tcp_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let header =
        [0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 0, 0, 1, 0, 0, 0];
    fs::write(dir.path().join("empty.pcap"), header).unwrap();
    let output = run(dir.path(), &["advise", "--capture", "empty.pcap"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output).contains("no TCP in it"), "{}", text(&output));
}

fn advice(dir: &Path, arguments: &[&str], code: i32) -> Value {
    let all: Vec<&str> = ["advise", "--json"].iter().chain(arguments).copied().collect();
    let output = run(dir, &all);
    assert_eq!(output.status.code(), Some(code), "{}", text(&output));
    json(&output)
}

fn helps(document: &Value) -> Vec<&str> {
    document["advice"]["helps"].as_array().unwrap().iter().filter_map(Value::as_str).collect()
}

#[test]
fn a_fault_in_a_capture_is_named_with_its_remedy() {
    let capture =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../analyze/tests/data/field/mtu-black-hole.pcap");
    let dir = tempfile::tempdir().unwrap();
    let output = run(dir.path(), &["advise", "--capture", capture]);
    let shown = text(&output);
    assert_eq!(output.status.code(), Some(0), "{shown}");
    for part in ["MTU black hole from segments of 1460 B", "clamp the MSS", "--rate 20mbit"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains("Nothing"), "{shown}");
    // A page without the fault would say that nothing helps. It replaces the files of an answer about the link.
    let page = |more: &[&str]| {
        run(dir.path(), &[&["advise", "--capture", capture, "-o", "out"], more].concat());
        fs::read_to_string(dir.path().join("out/report.html")).unwrap()
    };
    let known = page(&["--rate", "20mbit", "--quick", "-n", "2"]);
    for part in ["to be repaired first", "clamp the MSS", "The capture and the model", "captured"] {
        assert!(known.contains(part), "{part}");
    }
    // The best scheme of the sender alone is named although it cannot be deployed.
    assert!(known.contains("which lasthop only simulates"));
    assert!(!known.contains("your sender already copes"));
    assert!(dir.path().join("out/scenario.toml").is_file());
    let unknown = page(&[]);
    assert!(unknown.contains("clamp the MSS") && unknown.contains("No scheme is simulated"));
    assert!(!dir.path().join("out/scenario.toml").exists());
    let document = advice(dir.path(), &["--capture", capture], 0);
    let fault = &document["faults"][0];
    assert_eq!((&fault["kind"], &fault["decides"]), (&"mtu_black_hole".into(), &true.into()));
    assert!(document["advice"].is_null() && document["link"].is_null());
    // An explicit link is simulated, without the segments missing in the capture.
    let arguments = ["--capture", capture, "--rate", "20mbit", "--quick", "-n", "2"];
    let document = advice(dir.path(), &arguments, 0);
    assert_eq!(document["faults"][0]["kind"], "mtu_black_hole");
    assert_eq!(document["link"]["loss"], 0.0);
}

#[test]
fn on_a_clean_link_nothing_helps() {
    let dir = tempfile::tempdir().unwrap();
    let document = advice(dir.path(), &["--rate", "2mbit", "-n", "2"], 1);
    assert!(helps(&document).is_empty());
    assert_eq!(document["advice"]["anything_helps"], false);
    let output = run(dir.path(), &["advise", "--rate", "2mbit", "-n", "2", "--quick"]);
    assert!(text(&output).contains("Nothing: your sender already copes."), "{}", text(&output));
}

#[test]
fn on_a_short_lossy_link_local_schemes_help() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let arguments = [
        "--rate",
        "2mbit",
        "--delay",
        "2ms",
        "--loss",
        "3%",
        "--sender",
        "reno",
        "-n",
        "3",
        "-o",
        out.to_str().unwrap(),
    ];
    let document = advice(dir.path(), &arguments, 0);
    let found = helps(&document);
    // A modern receiver sends one ACK for several segments after a hole, so SMART at the base station learns
    // of fewer segments.
    for name in ["tulip", "ll-sack", "split"] {
        assert!(found.contains(&name), "{name} in {found:?}");
    }
    assert!(!found.contains(&"reno") && !found.contains(&"ack-filter"), "{found:?}");
    // Half and twice the loss and the delay; a tenth and four times the bytes.
    let varied = document["advice"]["sensitivity"].as_array().unwrap();
    let varied: Vec<&str> = varied.iter().filter_map(|other| other["what"].as_str()).collect();
    assert_eq!(varied[4..], ["with 500KB", "with 20MB"], "{varied:?}");
    let bytes = document["advice"]["facts"].as_array().unwrap().iter();
    let bytes = bytes.filter(|fact| fact["what"] == "bytes").collect::<Vec<_>>();
    assert_eq!((&bytes[0]["value"], &bytes[0]["from"]), (&"5MB".into(), &"assumed".into()));
    // The page has the advice and its assumptions, and advice.json is what --json prints.
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    for part in ["What would help", "How to deploy it", "what is assumed", "other losses", "5MB"] {
        assert!(page.contains(part), "{part}");
    }
    let stored: Value =
        serde_json::from_slice(&fs::read(out.join("advice.json")).unwrap()).unwrap();
    // Only the name of the program in commands may differ.
    let members = |of: &Value| of.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!((&stored["advice"], members(&stored)), (&document["advice"], members(&document)));
    // The written files are usable: the scenario, and the files with the fix.
    let again = run(dir.path(), &["run", "out/scenario.toml", "--dry-run"]);
    assert_eq!(again.status.code(), Some(0), "{}", text(&again));
    let remedies = document["remedies"].as_array().unwrap();
    assert!(!remedies.is_empty());
    for remedy in remedies {
        let Some(file) = remedy["file"][0].as_str() else { continue };
        let written = fs::read_to_string(out.join(file)).unwrap();
        assert_eq!(written, remedy["file"][1].as_str().unwrap());
        if file.starts_with("station") {
            lasthop_scenario::parse_station(&written).unwrap_or_else(|e| panic!("{file}: {e}"));
        } else {
            lasthop_scenario::parse_tunnel(&written).unwrap_or_else(|e| panic!("{file}: {e}"));
        }
    }
}

#[test]
fn on_a_slow_return_channel_ack_schemes_help() {
    let dir = tempfile::tempdir().unwrap();
    let arguments = ["--rate", "10mbit", "--rate-back", "19.2kbit", "-n", "6", "--quick"];
    let document = advice(dir.path(), &arguments, 0);
    let found = helps(&document);
    // Early drops keep the queue of ACKs short, and so the RTT: a factor of 1.9. The filter alone does not
    // help a sender that counts segments.
    assert_eq!(found[0], "red+acks-first", "{found:?}");
    assert!(found.contains(&"ack-filter+reconstruction"), "{found:?}");
    assert!(!found.contains(&"snoop") && !found.contains(&"tulip"), "{found:?}");
    // SACK with Reno's window is no improvement over SACK with CUBIC.
    assert!(!found.contains(&"sack"), "{found:?}");
    // The first remedies have files. Those under the control of the routers' owner are among them.
    let routers = [&arguments[..], &["--can", "router,gateway"]].concat();
    let remedies = advice(dir.path(), &routers, 0)["remedies"].clone();
    let remedies = remedies.as_array().unwrap();
    let files: Vec<&str> = remedies.iter().filter_map(|r| r["file"][1].as_str()).collect();
    assert!(files.iter().any(|file| file.contains("discipline-left = \"ack-filter")), "{files:?}");
    assert!(files.iter().any(|file| file.contains("red = { min = 4")), "{files:?}");
    for file in files {
        lasthop_scenario::parse_station(file).unwrap_or_else(|e| panic!("{file}: {e}"));
    }
}

/// Existing features need no change: the receiver of the link has SACK.
#[test]
fn advice_for_modern_senders_lists_only_missing_features() {
    let dir = tempfile::tempdir().unwrap();
    let arguments = ["--rate", "20mbit", "--delay", "10ms", "--loss", "1%", "-n", "6", "--quick"];
    let document = advice(dir.path(), &arguments, 0);
    let rows = document["advice"]["comparison"]["points"][0]["schemes"].as_array().unwrap();
    let change = |name: &str| {
        rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("{name}"))["change"]
            .clone()
    };
    assert_eq!(change("bbr"), serde_json::json!(["sender"]));
    assert_eq!(change("snoop-smart"), serde_json::json!(["base station"]));
    assert_eq!(change("seq-cache"), serde_json::json!(["base station", "sender", "receiver"]));
    assert!(helps(&document).contains(&"bbr"));
    // With BBR at the sender no other remedy is needed.
    let bbr = advice(dir.path(), &[&arguments[..], &["--sender", "bbr"]].concat(), 1);
    assert!(bbr["advice"]["share_of_capacity"].as_f64().unwrap() > 0.8);
}

/// The estimate from a capture of a known link equals that link.
#[test]
fn the_link_is_estimated_from_a_capture() {
    let dir = tempfile::tempdir().unwrap();
    let made = run(
        dir.path(),
        &[
            "run",
            "variants",
            "--set",
            "tcp=sack",
            "--set",
            "agent=none",
            "--set",
            "transfer.bytes=6MB",
            "--set",
            "host.mobile.recv-buffer=64KiB",
            "--seeds",
            "1",
            "-o",
            "out",
        ],
    );
    assert_eq!(made.status.code(), Some(0), "{}", text(&made));
    let mut captures = Vec::new();
    let mut folders = vec![dir.path().join("out/trace")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            match path.extension().and_then(|e| e.to_str()) {
                _ if path.is_dir() => folders.push(path),
                Some("pcapng") => captures.push(path),
                _ => {}
            }
        }
    }
    let wired = captures
        .iter()
        .find(|path| path.file_stem().is_some_and(|stem| stem == "link"))
        .unwrap_or_else(|| panic!("{captures:?}"));
    let arguments = ["--capture", wired.to_str().unwrap(), "-n", "2", "--quick"];
    let output = run(dir.path(), &[&["advise", "--json"][..], &arguments].concat());
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", text(&output));
    let document = json(&output);
    let link = &document["link"];
    // 2 Mb/s, partly unused after losses; one loss in fifty packets; about 11 ms plus the radio's one-way
    // delay.
    let rate = link["rate"].as_f64().unwrap();
    assert!((1.0e6..2.4e6).contains(&rate), "{rate}");
    let loss = link["loss"].as_f64().unwrap();
    assert!((0.013..0.027).contains(&loss), "{loss}");
    let burst = link["burst"].as_f64().unwrap();
    assert!((1.0..1.4).contains(&burst), "{burst}");
    let fact = |name: &str| {
        let facts = document["advice"]["facts"].as_array().unwrap();
        facts.iter().find(|fact| fact["what"] == name).unwrap()["from"].clone()
    };
    assert_eq!((fact("loss"), fact("duplex")), ("estimated".into(), "assumed".into()));
    // The capture's sender is the one of the model, which reaches about the captured rate.
    let comparison = &document["advice"]["beside"];
    let ratio = comparison["ratio"].as_f64().unwrap();
    assert_eq!(comparison["agrees"], ((ratio - 1.0).abs() <= 0.15), "{comparison}");
    assert!((0.7..1.4).contains(&ratio), "{comparison}");
    // Explicit values have precedence.
    let given = [&["advise", "--json", "--loss", "0", "--rate", "9mbit"][..], &arguments].concat();
    let document = json(&run(dir.path(), &given));
    assert_eq!(document["link"]["rate"], 9_000_000);
    assert_eq!(document["link"]["loss"], 0.0);
}

/// A capture in front of a channel with bit errors, with a receive window of 16 KiB. The losses are the
/// channel's. But the RTT is longest when the window is used up, which looks like a full queue.
#[test]
fn a_receive_window_limit_does_not_hide_link_losses() {
    let dir = tempfile::tempdir().unwrap();
    let made = ["run", "quickstart", "--seeds", "1", "--set", "agent=none", "-o", "out"];
    assert!(run(dir.path(), &made).status.success());
    let mut found: Vec<_> = fs::read_dir(dir.path().join("out/trace")).unwrap().collect();
    let folder = found.pop().unwrap().unwrap().path();
    let capture = folder.join("link.pcapng");
    let arguments =
        ["--capture", capture.to_str().unwrap(), "--rate", "2mbit", "-n", "5", "--quick"];
    let output =
        run(dir.path(), &[&["advise", "--json", "--can", "sender"][..], &arguments].concat());
    let document = json(&output);
    let (link, advice) = (&document["link"], &document["advice"]);
    assert_eq!(link["window"], 16_384);
    assert_eq!(link["queue"], "50p");
    // One error in 64 KiB: one in 44 packets of 1500 bytes.
    let loss = link["loss"].as_f64().unwrap();
    assert!((0.019..0.025).contains(&loss), "{loss}");
    // The sender's part: 5 ms, and the transmission of a first packet at 10 Mb/s.
    let notes = advice["notes"].to_string();
    assert!(notes.contains("not made at the sender: 6.2 ms"), "{notes}");
    // The ratio was 59 % without these, without an explanation.
    let comparison = &advice["beside"];
    let ratio = comparison["ratio"].as_f64().unwrap();
    assert!((0.8..1.4).contains(&ratio), "{comparison}");
    if comparison["agrees"] == false {
        let why = comparison["why"].to_string();
        assert!(why.contains("one transfer differs from the next by"), "{why}");
    }
}

/// After Ctrl-C, the finished runs are stored, and the same command resumes.
#[cfg(unix)]
#[test]
fn an_interrupted_comparison_stores_finished_runs() {
    use std::io::Read as _;
    let dir = tempfile::tempdir().unwrap();
    let arguments =
        ["compare", "rivals", "--schemes", "sack,snoop", "-n", "400", "-j", "1", "-o", "out"];
    let mut child = command(dir.path(), &arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let runs = dir.path().join("out/runs.jsonl");
    let stored_runs = || fs::read_to_string(&runs).map_or(0, |text| text.lines().count());
    while stored_runs() < 3 {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it could be interrupted");
        std::thread::yield_now();
    }
    let pid = nix::unistd::Pid::from_raw(child.id() as i32);
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).unwrap();
    let mut errors = String::new();
    child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{errors}");
    assert!(errors.contains("continues from there"), "{errors}");
    assert!(stored_runs() >= 3 && !dir.path().join("out/comparison.json").exists());
}

/// Assumptions can be set, only the selected parties change, and schemes that detect damage need damaged
/// packets.
#[test]
fn assumptions_and_parties_are_chosen() {
    let dir = tempfile::tempdir().unwrap();
    let link = ["--rate", "5mbit", "--delay", "10ms", "--loss", "2%", "-n", "3"];
    let with = |more: &[&str], code| advice(dir.path(), &[&link[..], more].concat(), code);
    let sender = with(&["--quick", "--can", "sender", "--duplex", "half"], 0);
    let rows = &sender["advice"]["comparison"]["points"][0]["schemes"];
    assert!(names(rows).contains(&"bbr") && names(rows).contains(&"connections-4"), "{rows}");
    for row in rows.as_array().unwrap() {
        let change = row["change"].as_array().unwrap();
        assert!(change.iter().all(|who| who == "sender"), "{row}");
    }
    assert_eq!(sender["link"]["duplex"], "half");
    let left_out = &sender["advice"]["comparison"]["left_out"];
    assert!(names(left_out).contains(&"eln"), "{left_out}");
    let damage = with(&["--losses", "damage", "--can", "link,base-station", "--bytes", "1MB"], 0);
    let rows = &damage["advice"]["comparison"]["points"][0]["schemes"];
    assert!(names(rows).contains(&"split") && !names(rows).contains(&"bbr"), "{rows}");
    // The varied assumptions and the number of runs are reported.
    let flips = &damage["advice"]["flips"];
    assert!(flips["runs"].as_u64().unwrap() > 50, "{flips}");
    let reported =
        flips["found"].as_array().unwrap().len() + flips["firm"].as_array().unwrap().len();
    assert!(reported >= 6, "{flips}");
}
