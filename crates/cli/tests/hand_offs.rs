//! Hosts that move between the cells of a testbed: Linux hosts, both base stations with their agents in one
//! process, and a comparison of every byte.

use std::thread;

use serde_json::Value;

use crate::support::{User, World, is_root};

/// Longer runs hang.
const HORIZON: &str = "horizon=300s";

/// Factors for the time of the first hand-off and the length of the run, for a machine that is too busy.
const LATER: [u64; 4] = [1, 2, 4, 8];

fn user() -> User {
    if is_root() { User::Root } else { User::Unprivileged }
}

/// Runs of `handoff-agents` on real packets with these values set and varied: 600 KB at 2 Mb/s with one
/// hand-off in the middle, or `times` as many bytes with a hand-off `times` as late.
fn runs_of(times: u64, world: &World, set: &[&str], vary: &[&str]) -> Vec<(String, Value)> {
    let mut words = vec!["run", "handoff-agents", "--world", "testbed", "--seeds", "1", "--json"];
    let bytes = format!("transfer.bytes={}kB", 600 * times);
    let visits = format!(
        r#"visits={{ list = [{{ cell = "west", from = "0s" }}, {{ cell = "east", from = "{}ms" }}] }}"#,
        1200 * times
    );
    for set in [bytes.as_str(), &visits, HORIZON].iter().chain(set) {
        words.extend(["--set", set]);
    }
    vary.iter().for_each(|vary| words.extend(["--vary", *vary]));
    let output = world.run(&words);
    // 1 if no transfer completed.
    assert!(matches!(output.status.code(), Some(0 | 1)), "{words:?}: {output:?}");
    let results: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let cells = results["cells"].as_array().expect("cells");
    cells.iter().map(|cell| (cell["labels"].to_string(), cell["runs"][0].clone())).collect()
}

/// Whether the host moved during the connection in each run. On a busy machine the hand-off may precede it.
fn host_moved(all: &[(String, Value)]) -> bool {
    all.iter().all(|(_, run)| run["metrics"]["handoffs"]["count"].as_u64() > Some(0))
}

/// Runs in which the host moved.
fn runs(world: &World, set: &[&str], vary: &[&str]) -> Vec<(String, Value)> {
    let all = LATER.iter().map(|times| runs_of(*times, world, set, vary));
    all.into_iter().find(|all| host_moved(all)).expect("a hand-off during the connection")
}

fn delivered(run: &Value) -> u64 {
    run["metrics"]["flows"][0]["delivered"].as_u64().expect("a count")
}

/// Asserts that all bytes arrived unchanged.
fn survived(all: &[(String, Value)]) {
    for (labels, run) in all {
        assert_eq!(run["reason"], "finished", "{labels}");
        assert_eq!(run["testbed"]["wrong"], serde_json::json!([]), "{labels}");
        let flow = &run["metrics"]["flows"][0];
        assert!(delivered(run) >= 600_000 && flow["complete"] == true, "{labels}: {flow}");
    }
}

/// Whether state moved in each run.
fn moved(all: &[(String, Value)]) -> Vec<bool> {
    let bytes = all.iter().map(|(_, run)| run["metrics"]["handoffs"]["state_bytes"].as_u64());
    bytes.map(|bytes| bytes > Some(0)).collect()
}

#[test]
fn a_linux_connection_survives_all_handoff_packet_policies() {
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
fn agents_resume_with_state_moved_with_a_linux_host() {
    let world = World::new("hand-offs-state", user());
    thread::scope(|scope| {
        for agents in ["snoop,snoop-smart", "m-tcp", "split,split-sack"] {
            let world = &world;
            scope.spawn(move || {
                let agents = format!("agent={agents}");
                // State exists once the connection has begun.
                let have_moved = LATER.iter().any(|times| {
                    let all = runs_of(*times, world, &["handoff.state=move"], &[&agents]);
                    survived(&all);
                    host_moved(&all) && moved(&all).iter().all(|moved| *moved)
                });
                assert!(have_moved, "{agents}");
            });
        }
    });
}

#[test]
fn without_state_transfer_only_a_split_connection_breaks() {
    let world = World::new("hand-offs-lost", user());
    thread::scope(|scope| {
        let soft =
            scope.spawn(|| runs(&world, &["handoff.state=lose"], &["agent=snoop,seq-cache,m-tcp"]));
        for agent in ["split", "split-sack"] {
            let world = &world;
            scope.spawn(move || {
                // Data that the first base station has acknowledged but not delivered is lost. Nothing
                // arrives after the hand-off, and the run lasts until its horizon.
                let breaks = LATER.iter().any(|times| {
                    let set = ["handoff.state=lose", &format!("horizon={}s", 8 * times)];
                    let all = runs_of(*times, world, &set, &[&format!("agent={agent}")]);
                    let run = &all[0].1;
                    run["reason"] == "horizon" && (1..600_000 * times).contains(&delivered(run))
                });
                assert!(breaks, "{agent}");
            });
        }
        let soft = soft.join().expect("runs");
        survived(&soft);
        assert_eq!(moved(&soft), [false; 3]);
    });
}

#[test]
fn a_handoff_notice_makes_a_linux_sender_retransmit_early() {
    let world = World::new("hand-offs-fast", user());
    let set =
        ["agent=none", "handoff.state=lose", "handoff.gap=300ms", "host.mobile.stack=lasthop"];
    // The radio may drop the retransmission; then the timer sends it again.
    let set = [&set[..], &["host.fixed.kernel=linux-1997", "errors=none"]].concat();
    // The RTO of 1997 is at least a second. Without it the pause consists of the gap, some round trips, and
    // delays of a busy machine.
    let is_shorter = LATER.iter().any(|times| {
        let all = runs_of(*times, &world, &set, &["host.mobile.fast-rtx-handoff=false,true"]);
        survived(&all);
        if !host_moved(&all) {
            return false;
        }
        let handoffs = |i: usize| &all[i].1["metrics"]["handoffs"];
        let pause = |i: usize| handoffs(i)["pause_mean_s"].as_f64().expect("a pause");
        let timeouts = |i: usize| all[i].1["metrics"]["flows"][0]["timeouts"].as_u64();
        println!("pauses {} {}, timeouts {:?} {:?}", pause(0), pause(1), timeouts(0), timeouts(1));
        assert!(pause(0) > 1.0 && timeouts(0) > Some(0), "the timer has a second");
        pause(1) < pause(0) && timeouts(1) < timeouts(0)
    });
    assert!(is_shorter);
}
