//! Hosts that move between the cells of a testbed: Linux at both ends, both base stations and their agents in the testbed's
//! process, and every byte compared.
#![cfg(target_os = "linux")]

mod support;

use std::thread;

use serde_json::Value;

use support::{User, World, is_root};

/// 600 KB at 2 Mb/s, and one hand-off in the midst of them.
const ONCE: [&str; 3] = [
    "transfer.bytes=600kB",
    "horizon=30s",
    r#"visits={ list = [{ cell = "west", from = "0s" }, { cell = "east", from = "1200ms" }] }"#,
];

fn user() -> User {
    if is_root() { User::Root } else { User::Nobody }
}

/// The runs of `handoff-agents` on real packets with these values set and varied.
fn runs(world: &World, set: &[&str], vary: &[&str]) -> Vec<(String, Value)> {
    let mut words = vec!["run", "handoff-agents", "--world", "testbed", "--seeds", "1", "--json"];
    ONCE.iter().chain(set).for_each(|set| words.extend(["--set", *set]));
    vary.iter().for_each(|vary| words.extend(["--vary", *vary]));
    let output = world.run(&words);
    // 1 where nothing came across.
    assert!(matches!(output.status.code(), Some(0 | 1)), "{words:?}: {output:?}");
    let results: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let cells = results["cells"].as_array().expect("cells");
    cells.iter().map(|cell| (cell["labels"].to_string(), cell["runs"][0].clone())).collect()
}

fn delivered(run: &Value) -> u64 {
    run["metrics"]["flows"][0]["delivered"].as_u64().expect("a count")
}

/// All bytes arrived as they were sent, over a hand-off at least.
fn survived(all: &[(String, Value)]) {
    for (labels, run) in all {
        assert_eq!(run["reason"], "finished", "{labels}");
        assert_eq!(run["testbed"]["wrong"], serde_json::json!([]), "{labels}");
        assert_eq!(delivered(run), 600_000, "{labels}");
        let handoffs = run["metrics"]["handoffs"]["count"].as_u64();
        assert!(handoffs >= Some(1), "{labels}: {}", run["metrics"]["handoffs"]);
    }
}

/// Whether state moved in each run.
fn moved(all: &[(String, Value)]) -> Vec<bool> {
    let bytes = all.iter().map(|(_, run)| run["metrics"]["handoffs"]["state_bytes"].as_u64());
    bytes.map(|bytes| bytes > Some(0)).collect()
}

#[test]
fn a_linux_host_keeps_its_connection_whatever_becomes_of_packets() {
    let world = World::new("hand-offs-packets", user());
    thread::scope(|scope| {
        for announced in ["true", "false"] {
            let world = &world;
            scope.spawn(move || {
                let set = format!("handoff.announced={announced}");
                let set =
                    ["agent=none", "handoff.state=lose", "handoff.reroute=50ms", set.as_str()];
                let all = runs(world, &set, &["handoff.packets=drop,keep,forward,multicast"]);
                assert_eq!(all.len(), 4);
                survived(&all);
            });
        }
    });
}

#[test]
fn agents_go_on_with_the_state_that_follows_a_linux_host() {
    let world = World::new("hand-offs-state", user());
    thread::scope(|scope| {
        for agents in ["snoop,snoop-smart", "m-tcp", "split,split-sack"] {
            let world = &world;
            scope.spawn(move || {
                let agents = format!("agent={agents}");
                let all = runs(world, &["handoff.state=move"], &[&agents]);
                survived(&all);
                assert!(moved(&all).iter().all(|moved| *moved), "{agents}");
            });
        }
    });
}

#[test]
fn without_it_soft_state_is_learnt_again_and_a_split_connection_breaks() {
    let world = World::new("hand-offs-lost", user());
    thread::scope(|scope| {
        let soft =
            scope.spawn(|| runs(&world, &["handoff.state=lose"], &["agent=snoop,seq-cache,m-tcp"]));
        // Nothing comes after the hand-off: these runs last until their horizon.
        let brief = &["handoff.state=lose", "horizon=8s"];
        let hard = scope.spawn(|| runs(&world, brief, &["agent=split,split-sack"]));
        let (soft, hard) = (soft.join().expect("runs"), hard.join().expect("runs"));
        survived(&soft);
        assert_eq!(moved(&soft), [false; 3]);
        for (labels, run) in &hard {
            // What the first base station has acknowledged and not delivered is nowhere else.
            assert_eq!(run["reason"], "horizon", "{labels}");
            assert!((100_000..600_000).contains(&delivered(run)), "{labels}: {}", delivered(run));
        }
    });
}

#[test]
fn a_linux_sender_retransmits_at_once_when_our_host_tells_of_the_hand_off() {
    let world = World::new("hand-offs-fast", user());
    let set =
        ["agent=none", "handoff.state=lose", "handoff.gap=600ms", "host.mobile.stack=lasthop"];
    // The radio may not take what is retransmitted: then the timer has it again.
    let set = [&set[..], &["host.fixed.kernel=linux-1997", "errors=none"]].concat();
    let all = runs(&world, &set, &["host.mobile.fast-rtx-handoff=false,true"]);
    survived(&all);
    let pause =
        |i: usize| all[i].1["metrics"]["handoffs"]["pause_mean_s"].as_f64().expect("a pause");
    // The timer of 1997 has a second at least; without it are the gap and some round trips left.
    assert!(pause(1) + 0.2 < pause(0), "{} {}", pause(0), pause(1));
}
