//! Modern senders on whole paths: effects of RACK-TLP, CUBIC and BBR, compared with their predecessors on the same path
//! with the same seeds.

mod bbr3;
mod paused;
mod reordering;

use lasthop_observe::Sink;
use lasthop_proto::event::{Event, EventKind, Op, TcpKind};
use lasthop_proto::tcp::words::{Deployment, TCPS};
use lasthop_proto::units::Time;
use lasthop_sim::{RunEnd, run};

use crate::parsed::scenario_with;

const TEXT: &str = r#"
transfer = { from = "server", to = "client", bytes = "unlimited" }
horizon = "30s"
[host.server]
preset = "linux"
side = "left"
[host.client]
preset = "linux"
[[path]]
name = "core"
cross = { loss = "0%" }
[[path]]
name = "wire"
link = { rate = "20mbit", delay = "10ms", queue = "100p" }
"#;

/// The keywords of all current senders.
fn current_senders() -> impl Iterator<Item = &'static str> {
    let current = TCPS.iter().filter(|word| word.deployment == Deployment::Current);
    current.map(|word| word.key)
}

/// The course of a sender.
#[derive(Default)]
struct Course {
    /// Time in seconds, congestion window in bytes, smoothed round trip in milliseconds; at each ACK of the sender.
    steps: Vec<(f64, u32, f64)>,
    timeouts: u64,
    probes: u64,
    drops: u64,
    recoveries: Vec<f64>,
}

impl Sink for Course {
    fn event(&mut self, event: &Event) {
        self.drops += u64::from(matches!(event.kind, EventKind::Packet { op: Op::Dropped(_), .. }));
        let EventKind::Tcp(tcp) = &event.kind else { return };
        if tcp.flow.dst_port != 9 {
            return;
        }
        let at = (event.at - Time::ZERO).as_secs_f64();
        match tcp.kind {
            TcpKind::Timeout => self.timeouts += 1,
            TcpKind::TailLossProbe => self.probes += 1,
            TcpKind::FastRetransmit => self.recoveries.push(at),
            TcpKind::Acked => {
                self.steps.push((at, tcp.tcb.cwnd, tcp.tcb.srtt.as_secs_f64() * 1e3));
            }
            _ => {}
        }
    }
}

/// One run with `set`, and its throughput in Mb/s.
fn course(seed: u64, set: &[&str]) -> (Course, RunEnd, f64) {
    let mut course = Course::default();
    let end = run(&scenario_with(TEXT, set), seed, &mut course);
    let rate = end.transfers[0].acknowledged as f64 * 8.0 / end.at.as_secs_f64() / 1e6;
    (course, end, rate)
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let all: Vec<f64> = values.collect();
    all.iter().sum::<f64>() / all.len().max(1) as f64
}

/// Between two drops: a decrease to 0.7, then concave, flat and convex growth.
#[test]
fn cubic_on_a_full_queue_is_cubic() {
    let long = ["path.wire.link.delay=50ms", "path.wire.link.queue=200p", "horizon=120s"];
    let (c, _, rate) = course(1, &[&long[..], &["tcp=cubic"]].concat());
    assert!(rate > 18.0, "{rate}");
    assert_eq!(c.timeouts, 0);
    // A whole cycle in steady state.
    let cycle: Vec<f64> = c.recoveries[c.recoveries.len() - 2..].to_vec();
    let window_at = |at: f64| c.steps.iter().take_while(|s| s.0 < at).last().unwrap().1;
    let before = f64::from(window_at(cycle[0]));
    let after = f64::from(window_at(cycle[0] + 0.6));
    assert!((0.68..0.75).contains(&(after / before)), "{before} {after}");
    let growth = |from: f64, to: f64| {
        let at = |x: f64| f64::from(window_at(cycle[0] + 0.6 + x * (cycle[1] - cycle[0] - 0.6)));
        at(to) - at(from)
    };
    let thirds = [growth(0.0, 0.2), growth(0.5, 0.7)];
    assert!(thirds[0] > 2.0 * thirds[1], "{thirds:?}");
}

/// Both fill the path; Reno and CUBIC also fill the queue of 60 ms. BBR leaves it empty except for its probing.
#[test]
fn bbr_fills_the_path_and_not_the_queue() {
    let of = |tcp: &str| {
        let (c, _, rate) = course(1, &[&format!("tcp={tcp}"), "path.wire.link.queue=500p"]);
        let late = c.steps.iter().filter(|s| s.0 > 5.0).map(|s| s.2);
        (rate, mean(late))
    };
    let (bbr, cubic) = (of("bbr"), of("cubic"));
    assert!(bbr.0 > 18.0 && cubic.0 > 18.0, "{bbr:?} {cubic:?}");
    assert!(bbr.1 < 45.0 && cubic.1 > 90.0, "{bbr:?} {cubic:?}");
}

/// Every ten seconds four segments in flight for a fifth of a second.
#[test]
fn bbr_measures_the_round_trip_every_ten_seconds() {
    let (c, _, _) = course(1, &["tcp=bbr"]);
    let low: Vec<f64> =
        c.steps.iter().filter(|s| s.0 > 1.0 && s.1 <= 4 * 1448).map(|s| s.0).collect();
    let mut begins: Vec<f64> = Vec::new();
    for at in low {
        if begins.last().is_none_or(|last| at - last > 5.0) {
            begins.push(at);
        }
    }
    assert!((2..=3).contains(&begins.len()), "{begins:?}");
    assert!((begins[1] - begins[0] - 10.2).abs() < 0.5, "{begins:?}");
}

/// BBR ignores single losses, CUBIC responds to them.
#[test]
fn bbr_does_not_mind_random_loss() {
    let lossy = "path.core.cross.loss=1%";
    let of = |tcp: &str| mean((1..=5).map(|seed| course(seed, &[lossy, tcp]).2));
    let (bbr, cubic, rack) = (of("tcp=bbr"), of("tcp=cubic"), of("tcp=rack"));
    assert!(bbr > 16.0, "{bbr}");
    assert!(cubic < 0.5 * bbr && rack < 0.5 * bbr, "{bbr} {cubic} {rack}");
}

/// Without timestamps a receiver measures the round trip by the time in which a window is filled. Linux 6.18 takes 4.73 s
/// for 10 MB through 100 Mb/s with 1 ms and 20 Mb/s with 40 ms, without timestamps, and 4.77 s with them.
#[test]
fn the_receive_window_grows_without_timestamps() {
    let path = ["path.wire.link.delay=40ms", "path.wire.link.queue=5000p", "tcp=cubic"];
    let of = |timestamps: &str| {
        let hosts = ["server", "client"].map(|host| format!("host.{host}.timestamps={timestamps}"));
        course(1, &[&path[..], &hosts.each_ref().map(String::as_str)].concat()).2
    };
    let (with, without) = (of("true"), of("false"));
    assert!(with > 18.0 && without > 0.99 * with, "{with} {without}");
}

/// Equal path, seeds and window growth with RFC 6675's SACK and with RACK.
#[test]
fn rack_avoids_the_time_outs_of_lost_retransmissions_and_tails() {
    let set = ["path.core.cross.loss=5%", "transfer.bytes=200KB", "growth=rfc5681"];
    let timeouts = |tcp: &str| -> u64 {
        (1..=40).map(|seed| course(seed, &[&set[..], &[tcp]].concat()).0.timeouts).sum()
    };
    let (sack, rack) = (timeouts("tcp=sack"), timeouts("tcp=rack"));
    let probes: u64 =
        (1..=40).map(|seed| course(seed, &[&set[..], &["tcp=rack"]].concat()).0.probes).sum();
    assert!(sack > 3 * rack && probes > 0, "sack {sack}, rack {rack}, probes {probes}");
}
