//! The fate of packets when a host moves between cells.

use std::collections::BTreeMap;

use lasthop_observe::Sink;
use lasthop_observe::metrics::{Metrics, RunMetrics};
use lasthop_proto::event::{Cause, Event, EventKind, Interest, Op, TcpKind};
use lasthop_proto::machine::StageId;
use lasthop_proto::units::Time;
use lasthop_sim::{Reason, RunEnd, layout, run};

use crate::parsed::{metrics, scenario_with};

/// Two cells, each on a separate line, and one handoff at 2 s during a transfer.
const TEXT: &str = r#"
horizon = "6s"
transfer = { from = "fixed", to = "mobile", bytes = "unlimited" }
visits = { list = [{ cell = "west", from = "0s" }, { cell = "east", from = "2s" }] }
handoff = { gap = "50ms", reroute = "100ms" }
[host.fixed]
preset = "rfc"
tcp = "newreno"
[host.mobile]
preset = "rfc"
[[path]]
link = { rate = "10mbit", delay = "5ms" }
[[cell]]
name = "west"
[[cell.path]]
link = { rate = "10mbit", delay = "10ms" }
[[cell.path]]
radio = { rate = "2mbit", delay = "1ms", duplex = "full" }
[[cell]]
name = "east"
[[cell.path]]
link = { rate = "10mbit", delay = "20ms" }
[[cell.path]]
radio = { rate = "2mbit", delay = "1ms", duplex = "full" }
"#;

/// Packet events by the name of the stage.
#[derive(Default)]
struct PacketEvents {
    names: Vec<String>,
    counts: BTreeMap<(String, &'static str), u64>,
    moves: Vec<(u64, String, bool)>,
    /// Times of deliveries to the mobile host.
    delivered: Vec<Time>,
}

impl Sink for PacketEvents {
    fn interest(&self) -> Interest {
        Interest::METRICS
    }
    fn event(&mut self, event: &Event) {
        let StageId(stage) = event.stage;
        let name = self.names[usize::from(stage)].clone();
        match &event.kind {
            EventKind::Packet { op: Op::Redirected(cause) | Op::Dropped(cause), .. }
            | EventKind::Packet { op: Op::Originated(cause @ Cause::HandoffCopy), .. } => {
                *self.counts.entry((name, cause.name())).or_default() += 1;
            }
            EventKind::Handoff { arrived, .. } => {
                self.moves.push((event.at.0 / 1_000_000, name, *arrived));
            }
            EventKind::Tcp(tcp) if matches!(tcp.kind, TcpKind::Delivered { .. }) => {
                self.delivered.push(event.at);
            }
            _ => {}
        }
    }
}

impl PacketEvents {
    fn count(&self, stage: &str, cause: &'static str) -> u64 {
        self.counts.get(&(stage.to_owned(), cause)).copied().unwrap_or(0)
    }

    /// The longest time without a delivery that began within a second of the handoff, in milliseconds.
    fn pause(&self) -> u64 {
        let near = |at: &Time| (1_500_000_000..3_000_000_000).contains(&at.0);
        let pairs = self.delivered.windows(2).filter(|pair| near(&pair[0]));
        pairs.map(|pair| (pair[1].0 - pair[0].0) / 1_000_000).max().expect("deliveries")
    }
}

fn see(changes: &[&str]) -> (PacketEvents, RunEnd, RunMetrics) {
    let scenario = scenario_with(TEXT, changes);
    let layout = layout(&scenario);
    let names = layout.stages.iter().map(|stage| stage.name.clone()).collect();
    let mut sink = (PacketEvents { names, ..PacketEvents::default() }, Metrics::new(layout));
    let end = run(&scenario, 1, &mut sink);
    assert_eq!(end.reason, Reason::Horizon);
    for (stage, count) in &end.stages {
        assert!(count.is_conserved(), "stage {}: {count:?}", stage.0);
    }
    let metrics = sink.1.finish(end.at);
    (sink.0, end, metrics)
}

#[test]
fn a_host_moves_as_its_visits_specify() {
    let (seen, _, metrics) = see(&[]);
    let expected = [(0, "west", true), (2000, "west", false), (2050, "east", true)];
    assert_eq!(seen.moves, expected.map(|(at, cell, arrived)| (at, cell.to_owned(), arrived)));
    let visits: Vec<_> =
        metrics.visits.iter().map(|v| (v.cell.as_str(), v.from_s, v.to_s)).collect();
    assert_eq!(visits, [("west", 0.0, 2.0), ("east", 2.05, 6.0)]);
    assert_eq!(metrics.visits[0].host, "10.1.0.1");
}

#[test]
fn packets_that_are_dropped_were_for_a_host_that_had_left() {
    let (seen, _, metrics) = see(&[]);
    assert!(seen.count("west", "left-cell") > 5, "{:?}", seen.counts);
    assert_eq!(seen.count("west", "handoff-forwarded") + seen.count("west", "handoff-kept"), 0);
    assert_eq!(seen.count("east", "left-cell"), 0);
    // Packets that it sent while it was in no cell.
    assert!(seen.count("mobile", "no-cell") <= 1);
    // Data continues in the other cell.
    let radio = |name| metrics.stages.iter().find(|stage| stage.name == name).unwrap();
    assert!(radio("east-radio").data_packets > 100 && radio("west-radio").data_packets > 100);
}

#[test]
fn forwarding_saves_packets_routed_to_the_old_cell() {
    let announced = ["handoff.announced=true", "handoff.reroute=500ms"];
    let with = |policy: &str| {
        let packets = format!("handoff.packets={policy}");
        see(&[announced[0], announced[1], &packets])
    };
    let ((drop, ..), (forward, ..)) = (with("drop"), with("forward"));
    assert!(drop.count("west", "left-cell") > 10, "{:?}", drop.counts);
    assert_eq!(forward.count("west", "left-cell"), 0, "{:?}", forward.counts);
    assert!(forward.count("west", "handoff-forwarded") > 10, "{:?}", forward.counts);
    // Packets that arrive before the host are buffered for it.
    assert!(forward.count("east", "handoff-kept") > 0, "{:?}", forward.counts);
    assert!(forward.pause() < 200 && drop.pause() > 2 * forward.pause(), "{}", drop.pause());
}

#[test]
fn buffered_packets_are_sent_when_the_host_is_back() {
    let away = "visits.list=[{ cell = \"west\", from = \"0s\", until = \"2s\" }, { cell = \"west\", from = \"2.5s\" }]";
    let with = |policy: &str| {
        let packets = format!("handoff.packets={policy}");
        see(&["handoff.announced=true", away, &packets])
    };
    let ((keep, ..), (drop, ..)) = (with("keep"), with("drop"));
    assert!(keep.count("west", "handoff-kept") > 10, "{:?}", keep.counts);
    assert_eq!(keep.count("west", "left-cell") + keep.count("west", "handoff-full"), 0);
    // The host receives missed packets as soon as it is back, not after a timeout.
    let first =
        |seen: &PacketEvents| seen.delivered.iter().find(|at| at.0 > 2_100_000_000).unwrap().0;
    assert!(first(&keep) < 2_520_000_000 && first(&drop) > 2_600_000_000, "{}", first(&drop));
    // Without room for all, the oldest are dropped.
    let (few, ..) =
        see(&["handoff.announced=true", "handoff.packets=keep", away, "handoff.buffer=3"]);
    assert!(few.count("west", "handoff-full") > 5, "{:?}", few.counts);
}

#[test]
fn buffered_packets_stay_until_the_end_of_the_run() {
    let changes = ["handoff.announced=true", "handoff.packets=keep", "handoff.reroute=1s"];
    let (_, end, metrics) = see(&changes);
    let held: u64 = end.stages.iter().map(|(_, count)| count.held).sum();
    let buffered: u64 = metrics.stages.iter().map(|s| s.redirected.get(Cause::HandoffKept)).sum();
    assert!(buffered > 0 && held >= buffered.min(50), "{held} of {buffered}");
}

#[test]
fn copies_wait_for_the_host_ahead_of_time() {
    let (seen, _, metrics) = see(&["handoff.packets=multicast", "handoff.buffer=20"]);
    assert!(seen.count("router", "handoff-copy") > 100, "{:?}", seen.counts);
    assert!(seen.count("east", "handoff-kept") > 100, "{:?}", seen.counts);
    assert!(seen.count("east", "handoff-stale") > 50, "{:?}", seen.counts);
    let (drop, _, without) = see(&[]);
    assert!(seen.pause() * 2 < drop.pause(), "{} and {}", seen.pause(), drop.pause());
    let timeouts = |m: &RunMetrics| m.flows[0].timeouts;
    assert!(timeouts(&metrics) <= timeouts(&without));
}

#[test]
fn with_an_overlap_nothing_is_lost() {
    let (seen, ..) = see(&["handoff.gap=0s", "handoff.overlap=400ms"]);
    assert!(seen.counts.keys().all(|(_, cause)| *cause == "queue-full"), "{:?}", seen.counts);
    assert!(seen.pause() < 100, "{}", seen.pause());
    let expected = [(0, "west", true), (2000, "east", true), (2400, "west", false)];
    assert_eq!(seen.moves, expected.map(|(at, cell, arrived)| (at, cell.to_owned(), arrived)));
}

#[test]
fn packets_overtake_each_other_only_by_a_hand_off() {
    // The new path is shorter than that of forwarded packets.
    let changes = [
        "handoff.announced=true",
        "handoff.packets=forward",
        "handoff.gap=0s",
        "cell.east.path.link.delay=0s",
        "handoff.reroute=20ms",
    ];
    let (seen, ..) = see(&changes);
    assert!(seen.count("west", "handoff-forwarded") > 0, "{:?}", seen.counts);
    let reordered = |changes: &[&str]| see(changes).2.flows[0].dupacks;
    assert!(reordered(&changes) > 0, "the receiver saw no gap");
}

#[test]
fn signals_of_a_cell_stay_in_it() {
    // Both cells have agents that notify the source of failed attempts.
    let text = TEXT.replace(
        "[[cell.path]]\nradio",
        "[[cell.path]]\nagent = \"ebsn\"\n[[cell.path]]\nlink-layer = \"local-recovery\"\nradio",
    );
    let bad = "errors = { model = \"packet-loss\", p = 0.3 }\n";
    let at = text.find("radio").unwrap();
    let text = format!("{}{bad}{}", &text[..at], &text[at..]).replace("2s\" }]", "40s\" }]");
    let run = metrics(&scenario_with(&text, &["ebsn=true"]), 1);
    let notices = |name: &str| {
        let stages = run.stages.iter().filter(|stage| stage.name == name);
        stages.map(|s| s.originated.get(Cause::BadStateNotification)).sum::<u64>()
    };
    // The host is always in the west, whose radio is bad.
    assert!(notices("west-agent") > 10);
    assert_eq!(notices("east-agent"), 0);
}
