//! Transfers in both worlds: each counter of recovery has one meaning.

use std::fs;

use serde_json::Value;

use crate::support::{User, World};

/// A transfer of 200 kB over 60 ms, and changes of its path: a lost segment in the middle, 0.7 s in which the link stores all
/// packets, and half a second in which it loses the SYN, or the answer to it.
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
    let world = World::new("counted", User::Unprivileged);
    let stored = r#", outages = "0.2s-0.9s, 200s again", outage-packets = "keep""#;
    let syn = r#", outages = "0s-0.5s, 200s again", outage-packets = "drop""#;
    let answer = r#", outages = "0.02s-0.5s, 200s again", outage-packets = "drop""#;
    let cases = [
        ("", "20", [0, 1, 1, 0, 1]),
        (stored, "9999", [1, 0, 0, 1, 1]),
        (syn, "9999", [1, 0, 0, 0, 1]),
        (answer, "9999", [1, 0, 0, 0, 1]),
    ];
    for (outage, lost, expected) in cases {
        let file = world.runtime().join("counted.toml");
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
            // The first SYN is no retransmission.
            let repeated_syns = flow["originated"]["control"].as_u64().unwrap_or(0) - 1;
            let counters = ["timeouts", "fast_retransmits", "recoveries", "undone"].map(count);
            [&counters[..], &[repeats + repeated_syns]].concat()
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
