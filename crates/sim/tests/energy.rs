//! Hosts on batteries in whole runs.

use lasthop_observe::Sink;
use lasthop_observe::metrics::{Metrics, NodeEnergy};
use lasthop_proto::energy::{Operation, costs};
use lasthop_proto::event::{Event, EventKind, Interest};
use lasthop_proto::machine::StageId;
use lasthop_sim::{layout, run};

use crate::parsed::{metrics, scenario, scenario_with};

/// Two laptops, one hop of 802.11b (agarwal00 5).
const TEXT: &str = r#"
transfer = { from = "sender", to = "receiver", bytes = "unlimited" }
horizon = "20s"
[host.receiver]
side = "left"
preset = "rfc"
mss = 1460
timestamps = true
battery = "sens-800"
[host.sender]
side = "right"
preset = "rfc"
mss = 1460
timestamps = true
battery = "sens-800"
[[path]]
radio = { rate = "11mbit", delay = "1us", queue = "100p" }
mac = "dcf"
"#;

fn measured(set: &[&str]) -> (Vec<NodeEnergy>, f64) {
    let metrics = metrics(&scenario_with(TEXT, set), 1);
    (metrics.energy, metrics.aggregate_throughput)
}

fn total_time(node: &NodeEnergy) -> f64 {
    node.transmit_s + node.receive_s + node.doze_s + node.idle_s
}

#[test]
fn both_ends_of_a_hop_share_its_air() {
    let (nodes, _) = measured(&[]);
    let [receiver, sender] = nodes.as_slice() else { panic!("two hosts") };
    assert_eq!((receiver.host.as_str(), sender.host.as_str()), ("receiver", "sender"));
    // The other station receives all frames except those sent at the same moment.
    assert!((sender.transmit_s - receiver.receive_s).abs() < 0.05 * sender.transmit_s);
    assert!((receiver.transmit_s - sender.receive_s).abs() < 0.05 * receiver.transmit_s);
    assert!(sender.transmit_s > 2.0 * receiver.transmit_s, "{sender:?}");
    for node in &nodes {
        assert!((total_time(node) - 20.0).abs() < 1e-6, "{node:?}");
        let spent = &node.spent;
        let sum = spent.base + spent.doze + spent.idle + spent.receive + spent.transmit;
        assert!((sum + spent.processing - node.spent_j).abs() < 1e-9 * node.spent_j);
    }
    assert_eq!((sender.sent, sender.received), (receiver.received, receiver.sent));
    assert!(sender.sent > 10_000_000, "{}", sender.sent);
}

#[test]
fn nothing_is_measured_and_nothing_changes_without_a_battery() {
    let with = measured(&[]).1;
    let text = TEXT.replace("battery = \"sens-800\"\n", "");
    let scenario = &scenario(&text);
    let mut metrics = Metrics::new(layout(scenario));
    assert!(!metrics.interest().has(Interest::WORK));
    let end = run(scenario, 1, &mut metrics).at;
    let metrics = metrics.finish(end);
    assert!(metrics.energy.is_empty());
    assert_eq!(metrics.aggregate_throughput, with);
    assert!(metrics.scalars().iter().all(|scalar| scalar.name != "lifetime"));
}

#[test]
fn a_whole_battery_lasts_as_long_as_is_extrapolated() {
    // A small battery, run until it is empty, and a tenth of that run.
    let capacity = "host.*.battery.capacity=2500J";
    let whole = measured(&["horizon=600s", capacity]).0.remove(1);
    let part = measured(&["horizon=20s", capacity]).0.remove(1);
    assert!(whole.emptied && !part.emptied, "{whole:?} {part:?}");
    assert!((whole.spent_j - 2500.0).abs() < 1e-6, "{whole:?}");
    assert!((total_time(&whole) - whole.lifetime_s).abs() < 1e-6);
    let within = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 0.01, "{a} {b}");
    within(part.lifetime_s, whole.lifetime_s);
    within(part.bytes_per_battery, whole.bytes_per_battery);
    within(part.bytes_per_joule, whole.bytes_per_joule);
    assert_eq!(whole.bytes_per_battery, whole.sent as f64);
}

#[test]
fn a_third_station_costs_those_that_receive_it() {
    let alone = measured(&[]).0.remove(1);
    let text = TEXT.replacen(
        "transfer = { from = \"sender\", to = \"receiver\", bytes = \"unlimited\" }",
        "transfer = [{ from = \"sender\", to = \"receiver\", bytes = \"unlimited\" }, \
         { from = \"other\", to = \"receiver\", bytes = \"unlimited\", cross = true }]",
        1,
    ) + "[host.other]\nside = \"right\"\npreset = \"rfc\"\n";
    let scenario = &scenario(&text);
    let layout = layout(scenario);
    let stations: Vec<_> =
        layout.powered.iter().map(|p| p.radio.map(|(_, antenna)| antenna.station.0)).collect();
    assert_eq!(stations, [Some(0), Some(1)]);
    let mut metrics = Metrics::new(layout);
    let end = run(scenario, 1, &mut metrics).at;
    let sender = metrics.finish(end).energy.remove(1);
    assert!(sender.transmit_s < 0.7 * alone.transmit_s, "{sender:?}");
    assert!(sender.receive_s > 2.0 * alone.receive_s, "{sender:?}");
    assert!((total_time(&sender) - 20.0).abs() < 1e-6);
}

#[test]
fn a_host_behind_a_wire_has_no_radio() {
    let text =
        TEXT.replace("[[path]]\nradio", "[[path]]\nlink = { rate = \"10mbit\" }\n[[path]]\nradio");
    let layout = layout(&scenario(&text));
    assert_eq!(layout.powered[0].radio, None);
    assert_eq!(layout.powered[1].radio.map(|(stage, _)| stage), Some(StageId(2)));
}

#[test]
fn a_plain_radio_carries_the_same_with_a_battery_and_without() {
    let plain = TEXT.replace("mac = \"dcf\"\n", "");
    let delivered = |text: &str| metrics(&scenario(text), 1);
    let with = delivered(&plain);
    let without = delivered(&plain.replace("battery = \"sens-800\"\n", ""));
    assert_eq!(with.aggregate_throughput, without.aggregate_throughput);
    // Half duplex: one sends, the other receives, and the air is never idle.
    let sender = &with.energy[1];
    assert!((total_time(sender) - 20.0).abs() < 1e-6, "{sender:?}");
    assert!(sender.idle_s < 0.1 && sender.transmit_s > 15.0, "{sender:?}");
}

/// The work of the sender's full segments.
#[derive(Default)]
struct Sends(Vec<lasthop_proto::energy::Work>);

impl Sink for Sends {
    fn interest(&self) -> Interest {
        Interest::WORK
    }
    fn event(&mut self, event: &Event) {
        if let EventKind::Work(work) = event.kind
            && event.stage == StageId(2)
            && work.count(Operation::Send) == 1
        {
            self.0.push(work);
        }
    }
}

#[test]
fn base_cost_is_that_of_a_full_timestamped_segment() {
    let mut sends = Sends::default();
    run(&scenario_with(TEXT, &["horizon=1s"]), 1, &mut sends);
    let mut full = sends.0.iter().filter(|work| work.count(Operation::CopiedSummedByte) == 1448);
    assert!(full.clone().count() > 300);
    assert!(
        full.clone().all(|w| (w.instructions() - costs::BASE).abs() < 1e-6),
        "{:?}",
        full.next_back()
    );
}
