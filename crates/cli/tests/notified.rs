//! Loss notifications on real packets: a base station or a receiver tells lasthop's own sender what the radio has lost.
#![cfg(live)]

mod support;

use serde_json::Value;

use support::{User, World, is_root};

/// Runs the scenario `loss-notices` with `set` on real packets; the figures of its flow for each agent.
fn flows(world: &World, set: &[&str]) -> Vec<Value> {
    let mut words = vec!["run", "loss-notices", "--world", "testbed", "--seeds", "2", "--json"];
    for set in set {
        words.extend(["--set", *set]);
    }
    let results: Value = serde_json::from_str(&world.good(&words)).expect("JSON");
    let cells = results["cells"].as_array().expect("cells").iter();
    cells
        .map(|cell| {
            let runs = cell["runs"].as_array().expect("runs");
            let mut sum = serde_json::Map::new();
            for run in runs {
                assert_eq!(run["reason"], "finished", "{run}");
                assert_eq!(run["testbed"]["wrong"], serde_json::json!([]), "{run}");
                let flow = &run["metrics"]["flows"][0];
                assert_eq!(flow["delivered"], 500_000, "{flow}");
                for (key, count) in [
                    ("timeouts", &flow["timeouts"]),
                    ("fast", &flow["fast_retransmits"]),
                    ("told", &flow["originated_acks"]["loss-notification"]),
                    ("obeyed", &flow["originated"]["eln-retransmit"]),
                ] {
                    let before = sum.get(key).and_then(Value::as_u64).unwrap_or(0);
                    let count = count.as_u64().unwrap_or(0);
                    sum.insert(key.to_owned(), (before + count).into());
                }
            }
            Value::Object(sum)
        })
        .collect()
}

fn count(of: &Value, key: &str) -> u64 {
    of[key].as_u64().expect("a count")
}

//= west97#7.0: a base station that keeps sequence numbers only
#[test]
fn a_base_station_tells_the_sender_what_the_radio_lost() {
    let world = World::new("notified", if is_root() { User::Root } else { User::Nobody });
    let found = flows(&world, &[]);
    let [none, cache] = &found[..] else { panic!("{found:?}") };
    let what = format!("none {none}, seq-cache {cache}");
    // Nobody told anything without it; with it nearly every retransmission was asked for.
    assert_eq!(count(none, "told") + count(none, "obeyed"), 0, "{what}");
    assert!(count(cache, "told") > 0 && count(cache, "obeyed") > 0, "{what}");
    assert!(count(cache, "obeyed") <= count(cache, "told"), "{what}");
    let reductions = |flow: &Value| count(flow, "timeouts") + count(flow, "fast");
    assert!(reductions(cache) * 2 < reductions(none), "{what}");
}
