//! Events of a kernel sender, from tracepoints as root and from TCP_INFO otherwise, compared with the
//! kernel's counters and with the packets on the links.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;

use serde_json::Value;

use crate::can_run::can_run;
use crate::support::{User, World, is_root};

/// Losses of whole windows: there are too few duplicate ACKs, so the timer must expire.
const LOSSY: [&str; 7] = [
    "link.rate=100mbit",
    "radio.rate=20mbit",
    "radio.overhead=50us",
    "agent=none",
    "host.fixed.stack=kernel",
    "host.mobile.stack=kernel",
    r#"errors={ model = "packet-bursts", packets = 4, mean = "48KiB", on = ["data"] }"#,
];

/// `lasthop run` of a lossy transfer with a trace; `preset` is the sender's kernel preset.
fn words<'a>(output: &'a str, bytes: &'a str, preset: &'a str) -> Vec<&'a str> {
    let mut words = vec!["run", "west97-lan", "--world", "testbed", "--seeds", "1", "-o", output];
    for set in LOSSY.iter().copied().chain([bytes, preset]) {
        words.extend(["--set", set]);
    }
    words
}

/// The only run in a directory of results.
fn result(output: &Path) -> Value {
    let text = fs::read(output.join("results.json")).expect("results");
    let mut results: Value = serde_json::from_slice(&text).expect("JSON");
    results["cells"][0]["runs"][0].take()
}

/// Rows of a table of the trace, as lists of columns.
fn rows(output: &Path, name: &str) -> Vec<Vec<String>> {
    let cell = fs::read_dir(output.join("trace")).expect("a trace").next().expect("a cell");
    let file = cell.expect("read").path().join(name);
    let text = fs::read_to_string(&file).expect("a table");
    text.lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

fn number(text: &str) -> f64 {
    text.parse().expect("a number")
}

/// A path that the program's user may write to.
fn place(world: &World, name: &str) -> PathBuf {
    world.runtime().join(name)
}

fn complete(run: &Value) {
    assert_eq!(run["reason"], "finished", "{run}");
    assert_eq!(run["testbed"]["wrong"], serde_json::json!([]), "{run}");
}

fn timeouts(run: &Value) -> u64 {
    run["testbed"]["kernel"]["fixed"]["TcpExtTCPTimeouts"].as_u64().expect("a counter")
}

/// Asserts that the window fell at a timeout: windows before it, and from it to the next one. A block may be newer than
/// its event, and the second of two successive timeouts need not lower the window.
fn lowered(before: &[f64], since: &[f64]) {
    const TWO_SEGMENTS: f64 = 2.0 * 1460.0;
    let high = before.iter().copied().fold(0.0, f64::max);
    let low = since.iter().copied().fold(f64::INFINITY, f64::min);
    assert!(low < high || high <= TWO_SEGMENTS, "{before:?}, then {since:?}");
}

/// Checks every timeout of the trace: it matches one of the kernel's, precedes its own retransmission, and
/// lowers the window.
fn compare(output: &Path) -> u64 {
    let run = result(output);
    complete(&run);
    let testbed = &run["testbed"];
    assert_eq!(testbed["tcp_events"], "tracepoints", "{testbed}");
    assert_eq!(testbed["lost_tcp_events"], 0, "{testbed}");
    let expected = timeouts(&run);
    let flow = &run["metrics"]["flows"][0];
    assert_eq!(flow["timeouts"], expected, "{flow}");
    let recoveries: u64 = ["TcpExtTCPRenoRecovery", "TcpExtTCPSackRecovery"]
        .iter()
        .map(|name| testbed["kernel"]["fixed"][name].as_u64().expect("a counter"))
        .sum();
    assert_eq!(flow["fast_retransmits"], recoveries, "{flow}");

    // Time and position of retransmissions at the far end of the first link. The first byte is 1.
    let mut seen = BTreeSet::new();
    let mut again = Vec::new();
    let mut first = None;
    for row in rows(output, "events.csv") {
        let data = row[6].starts_with("10.0.0.1:") && row[11] != "0";
        if row[1] == "ethernet" && row[2] == "transmitted" && data {
            let seq: u32 = row[7].parse().expect("a number");
            let position = seq.wrapping_sub(*first.get_or_insert(seq)) + 1;
            if !seen.insert(position) {
                again.push((number(&row[0]), f64::from(position)));
            }
        }
    }
    println!("the first byte has the sequence number {first:?}");
    let mut found = 0;
    // Congestion windows since the last timeout, and before it.
    let (mut since, mut before) = (Vec::new(), Vec::<f64>::new());
    let mut last = 0.0;
    for row in rows(output, "tcb.csv") {
        if !row[1].starts_with("10.0.0.1:") {
            continue;
        }
        let (at, una, nxt) = (number(&row[0]), number(&row[3]), number(&row[4]));
        // A block may be newer than its event, since a busy machine reads it late. So the next row may show
        // an older block.
        assert!(at >= last && una <= nxt, "{row:?} after {last}");
        last = at;
        if row[2] == "timeout" {
            found += 1;
            // The kernel records the event after the transmission, and a busy one may be interrupted in between. A
            // quarter of the next timeout is at most half the time since the timer began.
            let begun = at - number(&row[12]) / 4.0;
            let came_of_it = |(seen, from): &(f64, f64)| *seen >= begun && *from <= una;
            let retransmission = again.iter().position(came_of_it);
            again.remove(retransmission.unwrap_or_else(|| panic!("{row:?}: none of {again:?}")));
            lowered(&before, &since);
            before = std::mem::take(&mut since);
        }
        since.push(number(&row[7]));
    }
    lowered(&before, &since);
    assert_eq!(found, expected, "rows of timeouts");
    expected
}

#[test]
fn every_traced_timeout_precedes_its_own_retransmission() {
    if !can_run(is_root(), "root") {
        return falls_back(User::Unprivileged);
    }
    let world = World::new("tracepoints", User::Root);
    // In parallel, since the runs mostly wait for timeouts.
    let presets = ["linux-1997", "linux-reno"].map(|preset| (preset, place(&world, preset)));
    thread::scope(|scope| {
        for (preset, output) in &presets {
            let world = &world;
            scope.spawn(move || {
                let preset = format!("host.fixed.kernel={preset}");
                let output = output.to_str().expect("text");
                world.good(&words(output, "transfer.bytes=300kB", &preset));
            });
        }
    });
    let all: u64 = presets.iter().map(|(_, output)| compare(output)).sum();
    assert!(all > 0, "no timeout has put it to the test");
}

#[test]
fn traces_of_two_concurrent_testbeds_do_not_mix() {
    if !can_run(is_root(), "root") {
        return falls_back(User::Unprivileged);
    }
    // The same names, addresses and ports at the same time, but different losses.
    let world = World::new("tracepoints-two", User::Root);
    let outputs = ["one", "other"].map(|name| place(&world, name));
    thread::scope(|scope| {
        for (output, bytes) in outputs.iter().zip(["transfer.bytes=300kB", "transfer.bytes=400kB"])
        {
            let world = &world;
            scope.spawn(move || {
                let output = output.to_str().expect("text");
                world.good(&words(output, bytes, "host.fixed.kernel=linux-reno"));
            });
        }
    });
    for (output, bytes) in outputs.iter().zip([300_000.0, 400_000.0]) {
        compare(output);
        let rows = rows(output, "tcb.csv");
        let sent = rows.iter().filter(|row| row[1].starts_with("10.0.0.1:"));
        // The FIN counts too.
        assert_eq!(sent.map(|row| number(&row[3])).fold(0.0, f64::max), bytes + 2.0);
    }
}

#[test]
fn without_root_tcp_info_is_polled() {
    falls_back(User::Unprivileged);
}

fn falls_back(user: User) {
    let world = World::new("tracepoints-none", user);
    let output = place(&world, "out");
    let text = output.to_str().expect("text");
    world.good(&words(text, "transfer.bytes=200kB", "host.fixed.kernel=linux-reno"));
    let run = result(&output);
    complete(&run);
    assert_eq!(run["testbed"]["tcp_events"], "tcp-info");
    assert_ne!(run["testbed"]["tcp_events_why"], Value::Null);
    assert_eq!(run["metrics"]["flows"][0]["timeouts"], timeouts(&run));
}

/// Trace buffers of lasthop on this machine, by process number. One program mounts tracefs for that.
fn buffers() -> Vec<String> {
    let script = "test -d /sys/kernel/tracing/instances || mount -t tracefs tracefs /sys/kernel/tracing; \
                  ls /sys/kernel/tracing/instances";
    let mut command = std::process::Command::new("unshare");
    let output = command.args(["--mount", "sh", "-c", script]).output().expect("started");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("text");
    let names = text.lines().filter_map(|name| name.strip_prefix("lasthop-")?.split('-').next());
    names.map(str::to_owned).collect()
}

#[test]
fn buffers_of_a_killed_run_are_removed() {
    if !can_run(is_root(), "root") {
        return falls_back(User::Unprivileged);
    }
    let world = World::new("tracepoints-killed", User::Root);
    let output = place(&world, "out");
    let text = output.to_str().expect("text");
    let mut run = world
        .command(&words(text, "transfer.bytes=200MB", "host.fixed.kernel=linux-reno"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("started");
    // The process with the testbed is a child of the started one.
    let children = format!("/proc/{0}/task/{0}/children", run.id());
    let child = loop {
        assert!(run.try_wait().expect("asked").is_none(), "the run has ended");
        let children: Vec<String> = fs::read_to_string(&children)
            .unwrap_or_default()
            .split_whitespace()
            .map(str::to_owned)
            .collect();
        if let Some(child) = children.into_iter().find(|child| buffers().contains(child)) {
            break child;
        }
    };
    let killed =
        std::process::Command::new("sh").args(["-c", &format!("kill -9 {child}")]).status();
    assert!(killed.expect("run").success());
    run.wait().expect("ended");
    world.good(&["testbed", "clean"]);
    assert!(!buffers().contains(&child));
}

/// A transfer of 200 kB over 60 ms, and changes of its path: a lost segment in the middle, and 0.7 s in which the link
/// stores all packets.
const COUNTED: &str = r#"
name = "counted"
horizon = "60s"
transfer = { from = "server", to = "client", bytes = "200kB" }
[host.server]
side = "left"
[host.client]
side = "right"
[[path]]
link = { rate = "10mbit", delay = "30ms", queue = "100p" OUTAGE }
[[path]]
cross = { drop-data = "LOST" }
"#;

/// Each counter of recovery has one meaning: the simulator, the testbed and the kernel's own counters agree.
#[test]
fn both_worlds_and_the_kernel_count_alike() {
    if !can_run(is_root(), "root") {
        return falls_back(User::Unprivileged);
    }
    let world = World::new("tracepoints-counted", User::Root);
    let stored = r#", outages = "0.2s-0.9s, 200s again", outage-packets = "keep""#;
    for (outage, lost, expected) in [("", "20", [0, 1, 1, 0, 1]), (stored, "9999", [1, 0, 0, 1, 1])]
    {
        let file = place(&world, "counted.toml");
        let text = COUNTED.replace("OUTAGE", outage).replace("LOST", lost);
        fs::write(&file, text).expect("written");
        let run = |world_name: &str| {
            let file = file.to_str().expect("text");
            let mut all = world.json(&["run", file, "--world", world_name, "--seeds", "1"]);
            all["cells"][0]["runs"][0].take()
        };
        let of_flow = |run: &Value| {
            let flow = &run["metrics"]["flows"][0];
            let count = |name: &str| flow[name].as_u64().unwrap_or(0);
            let repeats: u64 = ["fast-retransmit", "timeout-retransmit", "tail-loss-probe"]
                .iter()
                .map(|cause| flow["originated"][cause].as_u64().unwrap_or(0))
                .sum();
            let counters = ["timeouts", "fast_retransmits", "recoveries", "undone"].map(count);
            [&counters[..], &[repeats]].concat()
        };
        let simulated = run("sim");
        assert_eq!(of_flow(&simulated), expected, "{simulated}");
        // On a busy machine a connection may open after the outage has begun, or wait longer than its timers. The counts
        // agree in each run, and are the expected ones if nothing disturbs it.
        let is_undisturbed = (0..10).any(|_| {
            let real = run("testbed");
            let host = &real["testbed"]["kernel"]["server"];
            let count = |name: &str| host[name].as_u64().unwrap_or(0);
            let kernel =
                |names: &[&str]| names.iter().map(|name| count(&format!("TcpExt{name}"))).sum();
            let recoveries: u64 = kernel(&["TCPSackRecovery", "TCPRenoRecovery"]);
            let undos = ["TCPFullUndo", "TCPPartialUndo", "TCPDSACKUndo", "TCPLossUndo"];
            let timeouts = kernel(&["TCPTimeouts"]);
            let counted =
                [timeouts, recoveries, recoveries, kernel(&undos), count("TcpRetransSegs")];
            assert_eq!(of_flow(&real), counted, "{real}");
            counted == expected
        });
        assert!(is_undisturbed, "{expected:?}");
    }
}
