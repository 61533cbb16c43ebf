//! TCP over TULIP, over hops as in parsa98 5 and over a long, fast one.

use lasthop_observe::Sink;
use lasthop_proto::air::FrameKind;
use lasthop_proto::event::{Cause, Event, EventKind, Interest, Op, TcpKind};
use lasthop_scenario::example;
use lasthop_sim::{RunEnd, run};

use crate::parsed::scenario_with;

/// Events of the senders and on the air.
#[derive(Default)]
struct TulipEvents {
    timeouts: u64,
    repeated: u64,
    lost: u64,
    link_acks: u64,
    data: u64,
}

impl Sink for TulipEvents {
    fn interest(&self) -> Interest {
        Interest::METRICS
    }
    fn event(&mut self, event: &Event) {
        match &event.kind {
            EventKind::Tcp(tcp) if tcp.kind == TcpKind::Timeout => self.timeouts += 1,
            EventKind::Packet { op: Op::Repeated(_), .. } => self.repeated += 1,
            EventKind::Packet { op: Op::Dropped(Cause::FrameLost), packet, .. }
                if packet.is_data() =>
            {
                self.lost += 1;
            }
            EventKind::Air(air) if air.kind == FrameKind::LinkAck => self.link_acks += 1,
            EventKind::Air(air) if air.kind == FrameKind::Data => self.data += 1,
            _ => {}
        }
    }
}

fn simulate(text: &str, set: &[&str], seed: u64) -> (RunEnd, TulipEvents) {
    let mut seen = TulipEvents::default();
    let end = run(&scenario_with(text, set), seed, &mut seen);
    (end, seen)
}

/// Payload in bits per second of all transfers.
fn throughput(end: &RunEnd) -> f64 {
    let bytes: u64 = end.transfers.iter().map(|t| t.delivered).sum();
    bytes as f64 * 8.0 / end.at.as_secs_f64()
}

fn lan() -> String {
    let text = example("tulip").unwrap().text;
    text.split("[vary]").next().unwrap().to_owned()
}

//= parsa98#5.1.2: Table 1, no timeouts and no redundant packets at 15e-6
#[test]
fn tcp_does_not_notice_fifteen_errors_in_a_million_bits() {
    for seed in 1..=5 {
        let set = ["link-layer=tulip", "errors.ber=15e-6"];
        let (end, seen) = simulate(&lan(), &set, seed);
        assert!(end.transfers[0].complete);
        assert_eq!((seen.timeouts, seen.lost), (0, 0));
        assert!(seen.repeated > 100, "{}", seen.repeated);
        let (alone, lost) = simulate(&lan(), &["link-layer=none", "errors.ber=15e-6"], seed);
        assert!(lost.timeouts > 50);
        assert!(throughput(&end) > 5.0 * throughput(&alone));
    }
}

#[test]
fn at_no_errors_the_link_layer_costs_little() {
    let (with, seen) = simulate(&lan(), &["link-layer=tulip", "errors=none"], 1);
    let (without, _) = simulate(&lan(), &["link-layer=none", "errors=none"], 1);
    assert_eq!((seen.repeated, seen.timeouts), (0, 0));
    let ratio = throughput(&with) / throughput(&without);
    assert!((0.9..1.1).contains(&ratio), "{ratio}");
}

//= parsa98#3.3.1: two streams share the channel alternately
#[test]
fn transfers_in_both_directions_share_the_channel_evenly() {
    let text = lan().replace(
        "transfer = { from = \"fixed\", to = \"mobile\", bytes = \"2MB\" }",
        "[[transfer]]\nfrom = \"fixed\"\nto = \"mobile\"\nbytes = \"unlimited\"\n[[transfer]]\nfrom = \
         \"mobile\"\nto = \"fixed\"\nbytes = \"unlimited\"",
    );
    let (begin, rest) = text.split_at(text.find("[[transfer]]").unwrap());
    let (transfers, rest) = rest.split_at(rest.find("[host").unwrap());
    let text = format!("{begin}horizon = \"60s\"\n{rest}\n{transfers}");
    let set = ["link-layer=tulip", "errors=none"];
    let (end, seen) = simulate(&text, &set, 1);
    let [right, left] = [0, 1].map(|i| end.transfers[i].delivered as f64);
    assert!((right / left - 1.0).abs() < 0.1, "{right} {left}");
    assert_eq!((seen.repeated, seen.timeouts), (0, 0));
    // Nearly every acknowledgement is sent with data.
    assert!(seen.link_acks * 20 < seen.data, "{} {}", seen.link_acks, seen.data);
    assert!(throughput(&end) > 0.85e6, "{}", throughput(&end));
}

const LONG: &str = r#"
name = "long"
horizon = "6s"
transfer = { from = "fixed", to = "mobile", bytes = "unlimited" }
[host.fixed]
preset = "linux"
tcp = "sack"
send-buffer = "40MB"
[host.mobile]
preset = "linux"
recv-buffer = "40MB"
[[path]]
link = { rate = "10gbit", delay = "10us", queue = "100000p" }
[[path]]
radio = { rate = "1gbit", delay = "10ms", duplex = "full", queue = "20000p" }
errors = { model = "packet-loss", p = "1%" }
link-layer = "tulip"
tulip = { window = 4096, pacing = "full-duplex" }
"#;

#[test]
fn tcp_fills_one_gigabit_over_ten_milliseconds_with_one_percent_loss() {
    let (clean, _) = simulate(LONG, &["errors=none"], 1);
    let (lossy, seen) = simulate(LONG, &[], 1);
    assert_eq!((seen.timeouts, seen.lost), (0, 0));
    let share = throughput(&lossy) / (throughput(&clean) * 0.99);
    assert!(share >= 0.95, "{share}: {} {}", throughput(&lossy), throughput(&clean));
    let (alone, _) = simulate(LONG, &["link-layer=none"], 1);
    assert!(throughput(&alone) < 0.1 * throughput(&lossy), "{}", throughput(&alone));
}
