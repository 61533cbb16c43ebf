//! Loss notifications on real packets: a base station or a receiver notifies lasthop's sender of losses on
//! the radio.

use serde_json::Value;

use crate::support::{User, World, is_root};

/// Counts of the flow over all runs with one agent.
#[derive(Debug, Default)]
struct Counts {
    timeouts: u64,
    fast_retransmits: u64,
    notifications: u64,
    notified_retransmits: u64,
}

impl Counts {
    fn reductions(&self) -> u64 {
        self.timeouts + self.fast_retransmits
    }
}

/// Runs the scenario `loss-notices` with `agent` on real packets.
fn counts(world: &World, agent: &str) -> Counts {
    let set = format!("agent={agent}");
    let words =
        ["run", "loss-notices", "--world", "testbed", "--seeds", "2", "--json", "--set", &set];
    let results: Value = serde_json::from_str(&world.good(&words)).expect("JSON");
    assert_eq!(results["cells"].as_array().map(Vec::len), Some(1));
    let mut counts = Counts::default();
    for run in results["cells"][0]["runs"].as_array().expect("runs") {
        assert_eq!(run["reason"], "finished", "{run}");
        assert_eq!(run["testbed"]["wrong"], serde_json::json!([]), "{run}");
        let flow = &run["metrics"]["flows"][0];
        assert_eq!(flow["delivered"], 500_000, "{flow}");
        let count = |value: &Value| value.as_u64().unwrap_or(0);
        counts.timeouts += count(&flow["timeouts"]);
        counts.fast_retransmits += count(&flow["fast_retransmits"]);
        counts.notifications += count(&flow["originated_acks"]["loss-notification"]);
        counts.notified_retransmits += count(&flow["originated"]["eln-retransmit"]);
    }
    counts
}

//= west97#7.0: a base station that keeps sequence numbers only
#[test]
fn a_base_station_notifies_the_sender_of_radio_losses() {
    let world = World::new("notified", if is_root() { User::Root } else { User::Unprivileged });
    // In parallel, since the runs mostly wait for timeouts.
    let (none, cache) = std::thread::scope(|scope| {
        let none = scope.spawn(|| counts(&world, "none"));
        let cache = counts(&world, "seq-cache");
        (none.join().expect("counts"), cache)
    });
    let both = format!("none {none:?}, seq-cache {cache:?}");
    // Without an agent there are no notifications; with it, a notification precedes nearly every
    // retransmission.
    assert_eq!((none.notifications, none.notified_retransmits), (0, 0), "{both}");
    assert!(cache.notified_retransmits > 0, "{both}");
    assert!(cache.notified_retransmits <= cache.notifications, "{both}");
    assert!(cache.reductions() * 2 < none.reductions(), "{both}");
}
