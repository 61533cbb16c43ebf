//! Senders side by side on one path: each has its effect, and its absence is visible.

use lasthop_observe::Sink;
use lasthop_proto::event::{Cause, Event, EventKind, Interest, Op, TcpKind};
use lasthop_sim::run;

use crate::parsed::scenario_and_warnings;

/// The figures of one run's sender.
#[derive(Default, Debug)]
struct SenderFigures {
    timeouts: u64,
    fast: u64,
    /// Retransmissions upon loss notifications.
    by_notification: u64,
    /// Nanoseconds until all was acknowledged; 0 if never.
    took: u64,
    /// Packets with payload that were dropped by a full queue.
    overflows: u64,
}

impl Sink for SenderFigures {
    fn interest(&self) -> Interest {
        Interest::METRICS
    }
    fn event(&mut self, event: &Event) {
        match event.kind {
            EventKind::Tcp(ref tcp) => match tcp.kind {
                TcpKind::Timeout => self.timeouts += 1,
                TcpKind::FastRetransmit => self.fast += 1,
                TcpKind::Complete => self.took = event.at.0,
                _ => {}
            },
            EventKind::Packet { op: Op::Dropped(Cause::QueueFull), .. } => self.overflows += 1,
            EventKind::Packet { op: Op::Originated(Cause::ElnRetransmit), .. } => {
                self.by_notification += 1
            }
            _ => {}
        }
    }
}

/// A wireless LAN as in balakrishnan97 3.1: 2 MB over a radio that damages a packet in forty.
const LAN: &str = r#"
name = "lan"
transfer = { from = "fixed", to = "mobile", bytes = "2MB" }
[host.fixed]
preset = "freebsd-2.1"
mss = 1400
[host.mobile]
preset = "freebsd-2.1"
mss = 1400
smart = true
sack = true
snack = true
eln = "checksum"
[[path]]
link = { rate = "10mbit", delay = "1ms" }
[[path]]
radio = { rate = "2mbit", delay = "1ms", duplex = "half" }
errors = { model = "exponential", mean = "64KiB" }
"#;

/// The sum over five runs.
fn runs(text: &str, set: &[&str]) -> SenderFigures {
    runs_with(text, set, 0)
}

/// The same for a scenario with warnings.
fn runs_with(text: &str, set: &[&str], warned: usize) -> SenderFigures {
    let (scenario, warnings) = scenario_and_warnings(text, set);
    assert_eq!(warnings.len(), warned, "{warnings:?}");
    let mut sum = SenderFigures::default();
    for seed in 1..=5 {
        let mut seen = SenderFigures::default();
        run(&scenario, seed, &mut seen);
        assert!(seen.took > 0, "{set:?}, seed {seed}: not complete");
        sum.timeouts += seen.timeouts;
        sum.fast += seen.fast;
        sum.by_notification += seen.by_notification;
        sum.took += seen.took;
        sum.overflows += seen.overflows;
    }
    sum
}

fn lan(tcp: &str) -> SenderFigures {
    runs(LAN, &[&format!("host.fixed.tcp={tcp}")])
}

//= balakrishnan97#3.1.2: SMART is the best of the end-to-end protocols on a LAN
#[test]
fn smart_avoids_time_outs() {
    let (reno, smart) = (lan("reno"), lan("smart"));
    assert!(smart.timeouts * 3 < reno.timeouts, "{smart:?} against {reno:?}");
    assert!(smart.took * 3 < reno.took * 2, "{smart:?} against {reno:?}");
}

#[test]
fn smart_that_repeats_needs_the_timer_less() {
    let often = ["errors.mean=8KiB", "host.fixed.tcp=smart"];
    let once = runs(LAN, &often);
    let repeats = runs(LAN, &[often[0], often[1], "host.fixed.smart-repeat=true"]);
    assert!(repeats.timeouts * 4 < once.timeouts * 3, "{repeats:?} against {once:?}");
}

#[test]
fn marks_spare_the_window() {
    let (reno, eln) = (lan("reno"), lan("eln"));
    assert!(eln.by_notification > 0 && reno.by_notification == 0);
    assert!(eln.took < reno.took, "{eln:?} against {reno:?}");
    // Without a receiver that marks, it has no effect.
    let deaf = "host.mobile.eln=off";
    let (_, warnings) = scenario_and_warnings(LAN, &["host.fixed.tcp=eln", deaf]);
    assert_eq!(warnings.len(), 1, "{warnings:?}");
}

//= balakrishnan97#3.1.2: the benefits of E2E-ELN-RXMT are more pronounced when the socket buffer is smaller
#[test]
fn the_first_mark_helps_small_windows_most() {
    let gain = |buffer: &str| {
        let buffers = ["host.fixed.send-buffer", "host.mobile.recv-buffer"]
            .map(|key| format!("{key}={buffer}"));
        let took = |tcp: &str| {
            runs(LAN, &[&buffers[0], &buffers[1], &format!("host.fixed.tcp={tcp}")]).took as f64
        };
        took("eln") / took("eln-rxmt")
    };
    let (small, large) = (gain("8KiB"), gain("32KiB"));
    assert!(small > 1.1 && small > large, "{small} with 8 KiB, {large} with 32 KiB");
}

/// A router that loses so much that windows are too small for three duplicate ACKs.
const NARROW: &str = r#"
name = "narrow"
transfer = { from = "server", to = "client", bytes = "500kB" }
[host.server]
preset = "rfc"
mss = 1000
[host.client]
preset = "rfc"
mss = 1000
delayed-ack = "off"
[[path]]
link = { rate = "1mbit", delay = "20ms" }
[[path]]
cross = { loss = "10%" }
"#;

//= balakrishnan97#5.1: right-edge recovery replaces timeouts where duplicate ACKs are too few
#[test]
fn right_edge_recovery_supplies_missing_duplicate_acks() {
    let (reno, edge) =
        ["reno", "right-edge"].map(|tcp| runs(NARROW, &[&format!("host.server.tcp={tcp}")])).into();
    assert!(edge.timeouts * 5 < reno.timeouts * 4, "{edge:?} against {reno:?}");
    assert!(edge.fast > reno.fast && edge.took < reno.took, "{edge:?} against {reno:?}");
}

/// A bottleneck with a queue that Reno fills.
const BOTTLENECK: &str = r#"
name = "bottleneck"
transfer = { from = "server", to = "client", bytes = "2MB" }
[host.server]
preset = "rfc"
mss = 1000
send-buffer = "64kB"
[host.client]
preset = "rfc"
mss = 1000
[[path]]
link = { rate = "10mbit", delay = "1ms" }
[[path]]
link = { rate = "1mbit", delay = "50ms", queue = "20p" }
"#;

#[test]
fn vegas_maintains_a_short_queue_and_a_busy_link() {
    let (reno, vegas) =
        ["reno", "vegas"].map(|tcp| runs(BOTTLENECK, &[&format!("host.server.tcp={tcp}")])).into();
    assert!(reno.overflows > 0, "{reno:?}");
    assert!(vegas.overflows * 4 < reno.overflows, "{vegas:?} against {reno:?}");
    assert!(vegas.took < reno.took, "{vegas:?} against {reno:?}");
}

#[test]
fn snacks_replace_timeouts_and_corruption_spares_the_window() {
    let often = "errors.mean=16KiB";
    let word = "host.fixed.tcp=scps-tp";
    let without = runs_with(LAN, &[often, word, "host.mobile.snack=false"], 1);
    let congestion = runs(LAN, &[often, word]);
    let corruption = runs(LAN, &[often, word, "host.fixed.loss-cause=corruption"]);
    assert!(congestion.timeouts * 3 < without.timeouts, "{congestion:?} against {without:?}");
    assert!(congestion.took * 3 < without.took * 2, "{congestion:?} against {without:?}");
    assert!(corruption.took * 10 < congestion.took * 9, "{corruption:?} against {congestion:?}");
}
