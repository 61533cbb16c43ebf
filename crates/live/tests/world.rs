//! Scenarios on real packets: received data, events, and ends of runs.
#![cfg(target_os = "linux")]

mod support;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use lasthop_live::world::{RunEnd, Testbed};
use lasthop_observe::Sink;
use lasthop_observe::layout::Layout;
use lasthop_observe::metrics::Metrics;
use lasthop_proto::event::{Event, EventKind, Interest, TcpKind};
use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::FlowKey;
use lasthop_scenario::Scenario;

fn main() -> ExitCode {
    macro_rules! tests {
        ($($name:ident),* $(,)?) => { support::main(&[$((stringify!($name), $name as fn())),*]) };
    }
    tests![
        each_transfer_is_received_and_reported_separately,
        a_run_ends_at_its_horizon_or_when_it_is_stopped,
        a_transfer_takes_the_time_from_its_syn_to_its_last_ack,
        a_lasthop_transfer_lasts_from_syn_to_last_ack,
        requests_are_answered_by_kernels_and_by_our_hosts,
    ]
}

fn scenario(text: &str) -> Scenario {
    let (plan, _) = lasthop_scenario::parse(text, "world", &[]).unwrap_or_else(|e| panic!("{e}"));
    plan.cells[0].scenario.clone()
}

/// The events of a run, with the metrics computed from them.
struct RunRecord {
    metrics: Metrics,
    /// Time, stage and kind of each event by connection.
    tcp: BTreeMap<FlowKey, Vec<(Time, u16, TcpKind)>>,
    /// Raised at the first TCP event.
    stop: Option<&'static AtomicBool>,
}

impl RunRecord {
    fn new(layout: Layout) -> RunRecord {
        RunRecord { metrics: Metrics::new(layout), tcp: BTreeMap::new(), stop: None }
    }
}

impl Sink for RunRecord {
    fn interest(&self) -> Interest {
        Interest::METRICS
    }

    fn event(&mut self, event: &Event) {
        if let EventKind::Tcp(tcp) = &event.kind {
            let list = self.tcp.entry(tcp.flow).or_default();
            list.push((event.at, event.stage.0, tcp.kind));
            if let Some(stop) = self.stop {
                stop.store(true, Ordering::Relaxed);
            }
        }
        self.metrics.event(event);
    }
}

/// Several senders and receivers of each kind; the order of the transfers differs from that of the hosts.
const ALL: &str = r#"
    horizon = "300s"
    [host.near]
    preset = "rfc"
    stack = "kernel"
    [host.own]
    preset = "rfc"
    stack = "lasthop"
    [host.quick]
    preset = "rfc"
    stack = "kernel"
    [host.other]
    preset = "rfc"
    stack = "kernel"
    [host.far]
    preset = "rfc"
    stack = "kernel"
    side = "right"
    [host.far-own]
    preset = "rfc"
    stack = "lasthop"
    side = "right"
    [host.far-quick]
    preset = "rfc"
    stack = "kernel"
    side = "right"
    [[transfer]]
    from = "other"
    to = "far"
    bytes = 40000
    count = 2
    [[transfer]]
    from = "own"
    to = "far"
    bytes = 50000
    count = 2
    [[transfer]]
    from = "quick"
    to = "far-quick"
    bytes = 60000
    protocol = "quic"
    count = 2
    [[transfer]]
    from = "near"
    to = "far-own"
    bytes = 70000
    start = "150ms"
    [[transfer]]
    from = "far"
    to = "near"
    bytes = 80000
    [[transfer]]
    from = "far-own"
    to = "own"
    bytes = 90000
    [[path]]
    link = { rate = "50mbit", delay = "1ms", queue = "1000p" }
"#;

/// Bytes of each flow in one run, in the order of the scenario.
const BYTES: [u64; 9] = [40_000, 40_000, 50_000, 50_000, 60_000, 60_000, 70_000, 80_000, 90_000];

fn each_transfer_is_received_and_reported_separately() {
    let scenario = scenario(ALL);
    let host = |name: &str| scenario.hosts.iter().position(|host| host.name == name).unwrap();
    let mut world = Testbed::enter(&scenario).expect("a testbed; `lasthop doctor` says why not");
    let mut ports = Vec::new();
    for seed in [1, 2] {
        let layout = world.layout(&scenario);
        let flows: Vec<FlowKey> = layout.flows.iter().map(|flow| flow.key).collect();
        assert_eq!(flows.len(), BYTES.len());
        let mut record = RunRecord::new(layout);
        let stop = AtomicBool::new(false);
        let end =
            world.run(&scenario, seed, &lasthop_sim::quic::end, &mut record, &stop).expect("a run");
        assert_eq!((end.reason.as_str(), end.lost_frames), ("finished", 0));
        assert_eq!(end.wrong, [""; 0], "the received data differs from the sent data");
        let measured = record.metrics.finish(Time(end.at_ns));
        for (index, (flow, bytes)) in measured.flows.iter().zip(BYTES).enumerate() {
            let result = (flow.delivered, flow.wanted, flow.complete, flow.aborted);
            assert_eq!(result, (bytes, Some(bytes), true, false), "flow {index}: {}", flow.flow);
        }
        // Events of each sender: from its first SYN to its end, in order of time, at its own stage.
        let transfers = scenario.transfers.iter();
        let senders = transfers.flat_map(|t| vec![t; t.connections() as usize]);
        for (index, (flow, transfer)) in flows.iter().zip(senders).enumerate() {
            let events = &record.tcp[flow];
            let back = events.windows(2).find(|pair| pair[0].0 > pair[1].0);
            assert!(back.is_none(), "flow {index} goes back in time: {back:?}");
            assert!(
                events.iter().all(|(at, ..)| at.0 <= end.at_ns),
                "flow {index} outlives the run"
            );
            let stage = lasthop_path::host_stage(&scenario, transfer.from).0;
            assert!(events.iter().all(|(_, at, _)| *at == stage), "flow {index}: another stage");
            let first = events.first().map(|(at, _, kind)| (*kind, at.since(Time::ZERO)));
            let (kind, began) = first.unwrap();
            assert_eq!(kind, TcpKind::Opening, "flow {index}");
            assert!(began >= transfer.start, "flow {index} began at {began}");
            let has = |kind| events.iter().filter(|(_, _, k)| *k == kind).count();
            assert_eq!([TcpKind::Established, TcpKind::Complete].map(has), [1, 1], "flow {index}");
            let moves = |kind: &TcpKind| matches!(kind, TcpKind::Acked | TcpKind::Sampled);
            let moved = events.iter().filter(|(_, _, kind)| moves(kind)).count();
            let by_kernel = [0, 1, 6, 7].contains(&index);
            assert!(moved > 1 || !by_kernel, "flow {index}: no progress is reported: {events:?}");
            assert_eq!(has(TcpKind::Corrupted), 0, "flow {index}");
        }
        ends_of(&end, &scenario);
        ports.extend([0, 1, 6, 7].map(|index: usize| flows[index].src_port));
        let far = scenario.hosts[host("far")].addr;
        assert_eq!((flows[7].src, flows[7].dst), (far, scenario.hosts[host("near")].addr));
    }
    let distinct: std::collections::BTreeSet<u16> = ports.iter().copied().collect();
    assert_eq!(distinct.len(), 8, "a port is used twice: {ports:?}");
}

/// Checks the results of a run.
fn ends_of(end: &RunEnd, scenario: &Scenario) {
    let kernels: Vec<&str> = end.kernel.keys().map(String::as_str).collect();
    assert_eq!(kernels, ["far", "far-quick", "near", "other", "quick"], "what kernels counted");
    let bytes: u64 =
        scenario.transfers.iter().map(|t| t.bytes.unwrap().0 * u64::from(t.connections())).sum();
    assert!(end.hops > bytes / 1500, "{} packets passed the link", end.hops);
    assert_eq!(end.agent_state_bytes, 0, "there is no agent");
}

fn a_run_ends_at_its_horizon_or_when_it_is_stopped() {
    let begun = scenario(
        r#"
        horizon = "300ms"
        transfer = { from = "a", to = "b", bytes = "10MB" }
        [host.a]
        preset = "rfc"
        stack = "kernel"
        [host.b]
        preset = "rfc"
        stack = "kernel"
        [[path]]
        link = { rate = "1mbit", delay = "1ms" }
        "#,
    );
    let mut world = Testbed::enter(&begun).expect("a testbed; `lasthop doctor` says why not");
    let quiet = AtomicBool::new(false);
    // A busy machine may deliver nothing so early, so the horizon is extended. The whole transfer would take
    // 80 s.
    for times in [1, 4, 16, 64] {
        let scenario = Scenario { horizon: begun.horizon * times, ..begun.clone() };
        let mut record = RunRecord::new(world.layout(&scenario));
        let end = world.run(&scenario, 1, &lasthop_path::no_ends, &mut record, &quiet);
        let end = end.expect("a run");
        assert_eq!((end.reason.as_str(), end.wrong.len()), ("horizon", 0));
        assert!(end.at_ns >= scenario.horizon.0, "it ended at {} ns", end.at_ns);
        let flow = &record.metrics.finish(Time(end.at_ns)).flows[0];
        assert!(!flow.complete, "{flow:?}");
        if flow.delivered > 0 {
            break;
        }
        assert!(times < 64, "{flow:?}");
    }

    // Long enough for the whole transfer: only the flag ends it before.
    let scenario = Scenario { horizon: Span::secs(3600), ..begun };
    static STOP: AtomicBool = AtomicBool::new(false);
    let mut record = RunRecord { stop: Some(&STOP), ..RunRecord::new(world.layout(&scenario)) };
    let end = world.run(&scenario, 1, &lasthop_path::no_ends, &mut record, &STOP).expect("a run");
    assert_eq!((end.reason.as_str(), end.wrong.len()), ("stopped", 0));
    assert!(!record.metrics.finish(Time(end.at_ns)).flows[0].complete, "it was not stopped");
}

/// 20 KB take three round trips of 80 ms: the SYN, a window of ten segments, and the rest. A measurement from
/// the arrival of the SYN, or to the last delivery, would lack half a round trip.
fn takes_three_round_trips(stack: &str) {
    let scenario = scenario(&format!(
        "transfer = {{ from = \"a\", to = \"b\", bytes = \"20KB\" }}\n[host.a]\nside = \"left\"\nstack = \"{stack}\"\n\
         [host.b]\n[[path]]\nlink = {{ rate = \"100mbit\", delay = \"40ms\" }}\n"
    ));
    let mut world = Testbed::enter(&scenario).expect("a testbed; `lasthop doctor` says why not");
    let mut record = RunRecord::new(world.layout(&scenario));
    let quiet = AtomicBool::new(false);
    let end = world.run(&scenario, 1, &lasthop_path::no_ends, &mut record, &quiet).expect("a run");
    assert_eq!((end.reason.as_str(), end.wrong.len()), ("finished", 0));
    let flow = &record.metrics.finish(Time(end.at_ns)).flows[0];
    assert!(flow.complete && flow.transfer_time_s >= 0.24, "{flow:?}");
    let limits = end.limits.expect("data was sent");
    let host = limits.application + limits.send_buffer + limits.pacing.unwrap_or(0.0);
    let sum = host + limits.receive_window + limits.congestion_window;
    assert!((sum - 1.0).abs() < 1e-6, "{limits:?}");
    assert_eq!(limits.pacing.is_some(), stack == "lasthop", "the kernel does not count it");
}

fn a_transfer_takes_the_time_from_its_syn_to_its_last_ack() {
    takes_three_round_trips("kernel");
}

fn a_lasthop_transfer_lasts_from_syn_to_last_ack() {
    takes_three_round_trips("lasthop");
}

/// Clients and servers of both kinds: on one connection, on one per exchange, and with requests that do not
/// wait for responses.
fn requests_are_answered_by_kernels_and_by_our_hosts() {
    // Number of requests, and of the connections for them.
    const KINDS: [(&str, u64, u64); 4] = [
        ("exchanges = 5\npersistent = true", 5, 1),
        ("exchanges = 5\nthink = \"20ms\"\ncount = 2", 10, 10),
        ("exchanges = 6\nevery = \"10ms\"\npersistent = true", 6, 1),
        ("exchanges = 6\nevery = \"10ms\"", 6, 6),
    ];
    let mut text = "horizon = \"60s\"\n".to_owned();
    for (host, side) in [("client", "left"), ("server", "right")] {
        for stack in ["kernel", "lasthop"] {
            text += &format!("[host.{stack}-{host}]\nside = \"{side}\"\nstack = \"{stack}\"\n");
        }
    }
    let pairs = [["kernel", "kernel"], ["kernel", "lasthop"], ["lasthop", "kernel"]];
    for [client, server] in pairs {
        for (rest, ..) in KINDS {
            text += &format!(
                "[[transfer]]\nfrom = \"{client}-client\"\nto = \"{server}-server\"\n\
                 request = \"300B\"\nresponse = \"50kB\"\n{rest}\n"
            );
        }
    }
    text += "[[path]]\nlink = { rate = \"200mbit\", delay = \"10ms\", queue = \"5000p\" }\n";
    let scenario = scenario(&text);
    let mut world = Testbed::enter(&scenario).expect("a testbed; `lasthop doctor` says why not");
    let mut record = RunRecord::new(world.layout(&scenario));
    let quiet = AtomicBool::new(false);
    let end = world.run(&scenario, 1, &lasthop_path::no_ends, &mut record, &quiet).expect("a run");
    assert_eq!((end.reason.as_str(), end.lost_frames), ("finished", 0));
    let measured = record.metrics.finish(Time(end.at_ns));
    assert_eq!(measured.exchanges.len(), pairs.len() * KINDS.len());
    let expected = pairs.iter().flat_map(|pair| KINDS.map(|kind| (pair, kind)));
    for (one, (pair, (rest, requests, connections))) in measured.exchanges.iter().zip(expected) {
        assert_eq!((one.asked, one.answered), (requests, requests), "{pair:?} {rest}: {one:?}");
        assert_eq!(one.connections, connections, "{pair:?} {rest}: {one:?}");
        assert_eq!(one.delivered, requests * 50_000, "{pair:?} {rest}: {one:?}");
        assert_eq!(one.aborted, 0, "{pair:?} {rest}: {one:?}");
        // At least one round trip.
        assert!(one.time_p50_s >= 0.02, "{pair:?} {rest}: {one:?}");
    }
}
