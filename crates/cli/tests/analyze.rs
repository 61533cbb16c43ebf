//! `lasthop analyze` on files: compression, selected connections, and written files.

#[cfg(live)]
use std::path::Path;
use std::process::{Command, Output};

const CAPTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../analyze/tests/data/real.pcap");

fn analyze(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lasthop"))
        .arg("analyze")
        .args(arguments)
        .env("NO_COLOR", "1")
        .output()
        .expect("the program starts")
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn json(output: &Output) -> serde_json::Value {
    serde_json::from_str(&stdout(output)).expect("JSON")
}

fn lines(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    text.lines().map(str::to_owned).collect()
}

#[test]
fn a_compressed_capture_has_the_same_answer() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("capture.pcap.zst");
    let packed = zstd::bulk::compress(&std::fs::read(CAPTURE).unwrap(), 3).unwrap();
    std::fs::write(&path, packed).unwrap();
    let [mut plain, mut packed] =
        [CAPTURE, path.to_str().unwrap()].map(|file| json(&analyze(&[file, "--json"])));
    for value in [&mut plain, &mut packed] {
        value["captures"][0]["file"].take();
    }
    assert_eq!(plain, packed);
}

#[test]
fn json_has_samples_over_time_only_on_request() {
    let direction = |arguments: &[&str]| {
        json(&analyze(arguments))["captures"][0]["connections"][0]["to_server"].take()
    };
    assert!(direction(&[CAPTURE, "--json"])["over_time"].is_null());
    let with = direction(&[CAPTURE, "--json", "--over-time"]);
    let samples = with["over_time"]["round_trips"]["kept"].as_array().unwrap().len() as u64;
    assert!(samples >= with["rtt"]["samples"].as_u64().unwrap());
}

#[test]
fn connections_are_chosen_by_number_address_and_port() {
    let text = stdout(&analyze(&[CAPTURE, "--connection", "0"]));
    assert!(text.contains("\nround trip") || text.contains("round trip"), "{text}");
    let none = analyze(&[CAPTURE, "--port", "1"]);
    assert_eq!(none.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&none.stderr).contains("none of 1 connections"));
    assert_eq!(analyze(&[CAPTURE, "--address", "192.0.2.1"]).status.code(), Some(2));
    assert_eq!(analyze(&[CAPTURE, "--address", "nowhere"]).status.code(), Some(2));
}

#[test]
fn every_plot_has_a_csv_file_with_its_numbers() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().to_str().unwrap();
    stdout(&analyze(&[CAPTURE, "-o", out]));
    let of = |name: &str| lines(&dir.path().join(name));
    let sum = |rows: &[String], column: usize| -> u64 {
        let cell = |row: &String| row.split(',').nth(column).unwrap().parse::<u64>().unwrap();
        rows.iter().skip(1).map(cell).sum()
    };
    assert_eq!(sum(&of("connection-0-to-server-throughput.csv"), 3), 1_000_000);
    let sequence = of("connection-0-to-server.csv");
    assert_eq!(sequence[0], "time_s,kind,byte,length");
    // 24 losses, each retransmitted once (tests/data/make.py of the analysis).
    assert_eq!(sequence.iter().filter(|row| row.contains(",retransmission,")).count(), 24);
    assert!(of("connection-0-to-server-over-time.csv").len() > 700);
    let connections = of("connections.csv");
    assert_eq!(connections.len(), 3, "a row for each direction");
    assert!(connections[1].contains(",1000000,24,"), "{connections:?}");
    for name in ["connection-0-to-server", "connection-0-to-server-over-time"] {
        for end in ["svg", "png"] {
            assert!(dir.path().join(format!("{name}.{end}")).exists(), "{name}.{end}");
        }
    }
}

#[test]
fn two_captures_show_the_losses_between_them() {
    let dir = tempfile::tempdir().unwrap();
    let runs = dir.path().join("runs");
    // A queue of five packets before the radio overflows.
    let changes = ["agent=none", "errors=none", "radio.queue=5p", "host.laptop.recv-buffer=63KiB"];
    let run = Command::new(env!("CARGO_BIN_EXE_lasthop"))
        .args(["run", "quickstart", "--seeds", "1"])
        .args(changes.iter().flat_map(|change| ["--set", change]))
        .arg("-o")
        .arg(&runs)
        .output()
        .expect("the program starts");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let trace = runs.join("trace/run");
    let events = lines(&trace.join("events.csv"));
    let dropped = events.iter().filter(|row| row.contains(",dropped,queue-full,")).count();
    assert!(dropped > 10, "{dropped}");
    let [link, radio] = ["link.pcapng", "radio.pcapng"].map(|name| trace.join(name));
    let files = [link.to_str().unwrap(), radio.to_str().unwrap()];
    let found = json(&analyze(&[files[0], files[1], "--json"]));
    let crossings = found["matched"][0]["crossings"].as_array().unwrap();
    let lost: Vec<_> = crossings.iter().map(|c| c["lost"].as_u64().unwrap()).collect();
    assert_eq!(lost, [dropped as u64, 0]);
    let text = stdout(&analyze(&[files[0], files[1]]));
    assert!(text.contains("if the least delays of both directions are equal"), "{text}");
}

/// A capture of `frames` of raw IP or of another link type.
fn pcap(link: u32, frames: &[Vec<u8>]) -> Vec<u8> {
    let words = [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, link];
    let mut file: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
    for frame in frames {
        let len = frame.len() as u32;
        file.extend([1, 2, len, len].into_iter().flat_map(u32::to_le_bytes));
        file.extend(frame);
    }
    file
}

/// An IPv4 packet with twenty bytes of payload.
fn ipv4(protocol: u8) -> Vec<u8> {
    let head = [0x45, 0, 0, 40, 0, 1, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    [&head[..], &[0; 12], &[0x50, 0x10, 0, 9, 0, 0, 0, 0]].concat()
}

#[test]
fn the_standard_input_is_read_as_a_file_is() {
    let read = |command: &str, with: &[&str]| {
        let mut child = Command::new(env!("CARGO_BIN_EXE_lasthop"));
        child.arg(command).args(with).arg("-").args(["--json"]);
        child.stdin(std::fs::File::open(CAPTURE).unwrap()).output().unwrap()
    };
    let mut piped = json(&read("analyze", &[]));
    assert_eq!(piped["captures"][0]["file"].take(), "standard input");
    let mut named = json(&analyze(&[CAPTURE, "--json"]));
    named["captures"][0]["file"].take();
    assert_eq!(piped, named);
    let advice =
        |out: Output| (out.status.code(), String::from_utf8_lossy(&out.stdout).into_owned());
    let mut by_name = Command::new(env!("CARGO_BIN_EXE_lasthop"));
    let by_name = by_name.args(["advise", "--capture", CAPTURE, "--json"]).output().unwrap();
    let (code, answer) = advice(read("advise", &["--capture"]));
    assert!(code < Some(2) && !answer.is_empty(), "{code:?}");
    assert_eq!(code, by_name.status.code());
    let both = analyze(&["-", CAPTURE]);
    assert_eq!(both.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&both.stderr).contains("read only once"));
}

#[test]
fn unread_packets_are_reported_and_alone_are_a_failure() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, link: u32, protocols: &[u8]| {
        let path = dir.path().join(name);
        let frames: Vec<_> = protocols.iter().map(|protocol| ipv4(*protocol)).collect();
        std::fs::write(&path, pcap(link, &frames)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let mixed = file("mixed.pcap", 101, &[6, 50, 50, 17]);
    let text = stdout(&analyze(&[&mixed]));
    assert!(text.contains("4 packets, 1 of them TCP"), "{text}");
    assert!(text.contains("2 packets not read: 2 ESP"), "{text}");
    assert!(text.contains("1 packet of other protocols: 1 UDP"), "{text}");
    let value = json(&analyze(&[&mixed, "--json"]));
    let capture = &value["captures"][0];
    assert_eq!(capture["unread"], serde_json::json!([{ "reason": "esp", "packets": 2 }]));
    assert_eq!(capture["other"], serde_json::json!([{ "protocol": "UDP", "packets": 1 }]));

    let unknown = file("unknown.pcap", 147, &[6, 6]);
    for arguments in [&[&unknown[..]][..], &[&unknown, "--json"]] {
        let out = analyze(arguments);
        assert_eq!(out.status.code(), Some(2));
        let error = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(error.contains("2 packets not read: 2 unknown link type 147"), "{error}");
        assert!(String::from_utf8_lossy(&out.stdout).contains("147"));
    }
    let mut advise = Command::new(env!("CARGO_BIN_EXE_lasthop"));
    let out = advise.args(["advise", "--capture", &unknown]).output().unwrap();
    assert_eq!(out.status.code(), Some(2));
    let error = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(error.contains("no TCP could be read in it; 2 packets not read"), "{error}");

    // A capture of other protocols hides no TCP.
    let other = file("other.pcap", 101, &[17, 1]);
    assert!(analyze(&[&other]).status.success());
}
