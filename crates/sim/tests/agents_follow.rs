//! Agent state of a host follows it to the next cell, or is lost.

use lasthop_observe::Sink;
use lasthop_observe::metrics::{Metrics, RunMetrics};
use lasthop_proto::event::{Event, EventKind, Interest};
use lasthop_sim::{Reason, RunEnd, layout, run};

use crate::parsed::scenario_with;

/// The host changes between two cells every second; packets follow it.
const TEXT: &str = r#"
horizon = "120s"
transfer = { from = "fixed", to = "mobile", bytes = "2MB" }
visits = { every = "1s" }
[handoff]
gap = "20ms"
packets = "forward"
[host.fixed]
preset = "rfc"
[host.mobile]
preset = "rfc"
[[path]]
link = { rate = "10mbit", delay = "5ms" }
[[cell]]
name = "west"
[[cell.path]]
agent = "none"
[[cell.path]]
radio = { rate = "2mbit", delay = "1ms", duplex = "full" }
errors = { model = "packet-loss", p = 0.01 }
[[cell]]
name = "east"
[[cell.path]]
agent = "none"
[[cell.path]]
radio = { rate = "2mbit", delay = "1ms", duplex = "full" }
errors = { model = "packet-loss", p = 0.01 }
"#;

#[derive(Default)]
struct Moves(Vec<(u64, bool, u64)>);

impl Sink for Moves {
    fn interest(&self) -> Interest {
        Interest::METRICS
    }
    fn event(&mut self, event: &Event) {
        if let EventKind::State { bytes, arrived, .. } = &event.kind {
            self.0.push((event.at.0 / 1_000_000, *arrived, *bytes));
        }
    }
}

fn go(changes: &[&str], seed: u64) -> (Moves, RunEnd, RunMetrics) {
    go_by(TEXT, changes, seed)
}

fn go_by(text: &str, changes: &[&str], seed: u64) -> (Moves, RunEnd, RunMetrics) {
    let scenario = scenario_with(text, changes);
    let mut sink = (Moves::default(), Metrics::new(layout(&scenario)));
    let end = run(&scenario, seed, &mut sink);
    for (stage, count) in &end.stages {
        assert!(count.is_conserved(), "stage {}: {count:?}", stage.0);
    }
    let metrics = sink.1.finish(end.at);
    assert!(!end.transfers.iter().any(|t| t.delivered > 2_000_000), "{end:?}");
    (sink.0, end, metrics)
}

#[test]
fn a_split_connection_outlives_hand_offs_if_its_state_moves() {
    for agent in ["split", "split-sack", "m-tcp"] {
        for seed in 1..=5 {
            let set = format!("agent={agent}");
            // After hand-offs each second all backed-off timeouts would meet the same gap.
            let (moves, end, metrics) =
                go(&[&set, "handoff.state=move", "visits.every=1700ms"], seed);
            assert_eq!(end.reason, Reason::Finished, "{agent} {seed}: {end:?}");
            assert!(end.transfers.iter().all(|t| t.complete && t.delivered == 2_000_000));
            assert!(moves.0.len() >= 8, "{agent}: {:?}", moves.0);
            let sent: u64 = moves.0.iter().filter(|m| !m.1).map(|m| m.2).sum();
            assert_eq!(metrics.handoffs.unwrap().state_bytes, sent);
        }
    }
}

#[test]
fn without_state_transfer_a_split_loses_acknowledged_data() {
    // It does not return to the agent that still has its state.
    let once = "visits = { list = [{ cell = \"west\", from = \"0s\" }, { cell = \"east\", from = \"1s\" }] }";
    let text = TEXT.replace("visits = { every = \"1s\" }", once);
    let (moves, end, metrics) = go_by(&text, &["agent=split"], 1);
    assert!(moves.0.is_empty());
    assert_eq!(metrics.handoffs.unwrap().state_bytes, 0);
    let [transfer] = end.transfers[..] else { panic!("{end:?}") };
    assert!(transfer.delivered < transfer.acknowledged, "{transfer:?}");
    let (_, end, _) = go_by(&text, &["agent=split", "handoff.state=move"], 1);
    assert!(end.transfers[0].complete, "{end:?}");
}

#[test]
fn an_agent_with_old_state_does_not_block_transfers() {
    // The host returns repeatedly to an agent with the state of its last visit. Data acknowledged by a split connection
    // is delivered then. (With other visits, such as those of 1.9 s, each doubled timeout falls into an absence.)
    let text = TEXT.replace("every = \"1s\"", "every = \"3700ms\"");
    for agent in ["m-tcp", "split", "split-sack"] {
        for seed in 1..=5 {
            let (moves, end, metrics) = go_by(&text, &[&format!("agent={agent}")], seed);
            assert!(moves.0.is_empty());
            assert_eq!(end.reason, Reason::Finished, "{agent} {seed}: {end:?}");
            assert_eq!(metrics.flows[0].delivered, 2_000_000, "{agent} {seed}");
            assert!(metrics.flows[0].complete, "{agent} {seed}");
        }
    }
}

#[test]
fn state_takes_its_time_on_the_wired_network() {
    let slow = [
        "agent=snoop",
        "handoff.state=move",
        "handoff.state-delay=30ms",
        "handoff.state-rate=1mbit",
    ];
    let (moves, end, _) = go(&slow, 1);
    assert_eq!(end.reason, Reason::Finished);
    let pairs = moves.0.chunks_exact(2).filter(|pair| !pair[0].1 && pair[1].1);
    let mut count = 0;
    for pair in pairs {
        let bytes = pair[0].2;
        let took = pair[1].0 - pair[0].0;
        let due = 30 + bytes * 8 / 1000;
        assert!(took.abs_diff(due) <= 1, "{bytes} bytes took {took} ms, not {due}");
        count += 1;
    }
    assert!(count >= 4, "{:?}", moves.0);
}

#[test]
fn agents_of_another_kind_begin_afresh() {
    let kinds = ["cell.west.path.agent.agent=snoop", "cell.east.path.agent.agent=seq-cache"];
    let (moves, end, _) = go(&[kinds[0], kinds[1], "handoff.state=move"], 1);
    assert!(end.transfers[0].delivered > 100_000, "{end:?}");
    assert!(moves.0.iter().all(|m| !m.1), "nothing is taken over: {:?}", moves.0);
}
