//! Properties of every sender, with every preset.

use lasthop_observe::Sink;
use lasthop_proto::agent::AgentConfig;
use lasthop_proto::event::{Event, EventKind, Interest, Op, Tcb, TcpKind};
use lasthop_proto::tcp::words::{Keyword, TCPS};
use lasthop_proto::tcp::{Congestion, TcpConfig, Variant};
use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::Addr;
use lasthop_scenario::{Scenario, StageKind};
use lasthop_sim::run;

use crate::parsed::scenario_with;

/// Senders with time-based loss detection, for which one report suffices.
fn by_time() -> impl Iterator<Item = &'static Keyword> {
    TCPS.iter().filter(|word| {
        let mut config = TcpConfig::linux();
        (word.apply)(&mut config);
        config.variant == Variant::Rack
    })
}

/// Timeouts, and the time when all transfers were over.
#[derive(Default, Debug, PartialEq, Eq)]
struct Outcome {
    timeouts: u64,
    complete: u64,
}

impl Sink for Outcome {
    fn interest(&self) -> Interest {
        Interest::METRICS
    }
    fn event(&mut self, event: &Event) {
        let kind = match event.kind {
            EventKind::Tcp(ref tcp) | EventKind::Split(ref tcp) => tcp.kind,
            _ => return,
        };
        match kind {
            TcpKind::Timeout => self.timeouts += 1,
            TcpKind::Complete => self.complete = event.at.0,
            _ => {}
        }
    }
}

fn outcome(scenario: &Scenario) -> Outcome {
    let mut outcome = Outcome::default();
    run(scenario, 1, &mut outcome);
    outcome
}

/// A short transfer with one lost segment.
const SHORT: &str = r#"
name = "short"
transfer = { from = "server", to = "client", bytes = "2KB" }
[host.server]
preset = "linux"
[host.client]
preset = "linux"
side = "right"
[[path]]
link = { rate = "100mbit", delay = "50ms" }
[[path]]
name = "loss"
cross = { drop-data = "1" }
[[path]]
name = "base"
agent = "none"
[[path]]
link = { rate = "100mbit", delay = "1ms" }
"#;

/// The last segment but one is lost, so that only the segment with the FIN shows the loss: at a host, and at a base
/// station that receives for it.
#[test]
fn a_loss_before_the_fin_segment_causes_no_timeout() {
    for word in by_time() {
        for segments in 2..=5 {
            for agent in ["none", "split"] {
                let set = [
                    format!("host.server.tcp={}", word.key),
                    format!("transfer.bytes={}", (segments - 1) * 1448 + 500),
                    format!("loss.cross.drop-data={}", segments - 1),
                    format!("base.agent={agent}"),
                ];
                let seen = outcome(&scenario_with(SHORT, &set));
                assert!(seen.complete > 0 && seen.timeouts == 0, "{set:?}: {seen:?}");
            }
        }
    }
}

/// Data from the mobile host, with two segments lost on the air.
const UPLOAD: &str = r#"
name = "upload"
transfer = { from = "mobile", to = "fixed", bytes = "20kB" }
[host.fixed]
preset = "linux"
side = "left"
[host.mobile]
preset = "linux"
nack = true
[[path]]
link = { rate = "10mbit", delay = "20ms" }
[[path]]
name = "base"
agent = "snoop"
[[path]]
name = "loss"
cross = { drop-data = "1" }
[[path]]
radio = { rate = "2mbit", delay = "2ms" }
"#;

/// With such senders `snoop-nack` is equivalent to `snoop`.
#[test]
fn negative_acknowledgements_change_nothing_for_senders_that_do_not_act_on_them() {
    for word in by_time() {
        for first in 1..=12 {
            for second in first + 1..=13 {
                let set = |agent: &str| {
                    [
                        format!("host.mobile.tcp={}", word.key),
                        format!("loss.cross.drop-data=\"{first},{second}\""),
                        format!("base.agent={agent}"),
                    ]
                };
                let plain = scenario_with(UPLOAD, &set("snoop"));
                let nack = scenario_with(UPLOAD, &set("snoop-nack"));
                let differ = |s: &Scenario| {
                    s.path.iter().any(|stage| {
                        matches!(stage.kind, StageKind::Agent(AgentConfig::SnoopNack(_)))
                    })
                };
                assert!(differ(&nack) && !differ(&plain));
                assert_eq!(outcome(&plain), outcome(&nack), "{}: {first} and {second}", word.key);
            }
        }
    }
}

/// The sender of the data, segment by segment.
#[derive(Default, Debug)]
struct Sender {
    addr: Option<Addr>,
    /// Transmission time of each of its data segments.
    sent: Vec<Time>,
    /// The congestion window after the last event, and the maximum in flight after any.
    cwnd: u32,
    flight: u64,
    mss: u32,
    /// Windows before fast retransmits, and the resulting ssthresh.
    halved: Vec<(u32, u32)>,
}

impl Sink for Sender {
    fn event(&mut self, event: &Event) {
        match event.kind {
            EventKind::Tcp(ref tcp) if Some(tcp.flow.src) == self.addr => {
                let Tcb { cwnd, ssthresh, snd_una, snd_max, .. } = tcp.tcb;
                if tcp.kind == TcpKind::FastRetransmit {
                    self.halved.push((self.cwnd, ssthresh));
                }
                self.cwnd = cwnd;
                self.flight = self.flight.max(snd_max - snd_una);
            }
            EventKind::Packet { op: Op::Originated(_), ref packet, .. }
                if Some(packet.src) == self.addr && !packet.body.is_empty() =>
            {
                self.sent.push(event.at);
                self.mss = self.mss.max(packet.body.len());
            }
            _ => {}
        }
    }
}

fn server(text: &str, set: &[String]) -> Sender {
    server_of(text, set, 1)
}

fn server_of(text: &str, set: &[String], seed: u64) -> Sender {
    let scenario = scenario_with(text, set);
    let host = scenario.hosts.iter().find(|host| host.name == "server").expect("a server");
    let mut seen = Sender { addr: Some(host.addr), ..Sender::default() };
    run(&scenario, seed, &mut seen);
    seen
}

/// Bytes of a response: all of them may be in flight at once.
const RESPONSE: u32 = 20_000;

/// A server whose application writes 20 kB every 200 ms, over a path with 100 times that rate.
const LIMITED: &str = r#"
name = "limited"
horizon = "12s"
transfer = { from = "client", to = "server", request = "300B", response = "20kB", every = "200ms", persistent = true, stop = "10s" }
[host.server]
preset = "rfc"
side = "left"
send-buffer = "4MB"
window-scale = true
timestamps = true
[host.client]
preset = "rfc"
sack = true
smart = true
snack = true
window-scale = true
timestamps = true
recv-buffer = "4MB"
[[path]]
link = { rate = "100mbit", delay = "20ms", queue = "1000p" }
"#;

//= rfc7661: the window does not grow beyond twice what is in flight
#[test]
fn a_window_that_is_not_used_does_not_grow() {
    for word in TCPS {
        for preset in ["rfc", "linux"] {
            for pacing in [false, true] {
                let set = [
                    format!("host.server.preset={preset}"),
                    format!("host.server.tcp={}", word.key),
                    format!("host.server.pacing={pacing}"),
                ];
                let seen = server(LIMITED, &set);
                // A model-based sender sets its window by measurement, with an initial gain of 2.9.
                let gain = if matches!(word.key, "bbr" | "bbr3") { 4 } else { 2 };
                let most = gain * RESPONSE.max(seen.flight as u32) + 4 * seen.mss;
                assert!(seen.sent.len() > 500, "{set:?}: {} segments", seen.sent.len());
                assert!(seen.cwnd <= most, "{set:?}: {} of {}", seen.cwnd, seen.flight);
                // The key decides, except for model-based senders.
                let off = server(
                    LIMITED,
                    &[&set[..], &["host.server.window-validation=false".into()]].concat(),
                );
                let models = matches!(word.key, "bbr" | "bbr3" | "tcp-int" | "vegas" | "scps-tp");
                let models = models || preset == "linux"; // There an unused window comes down as well.
                assert!(models || off.cwnd > 2 * most, "{set:?}: {} without it", off.cwnd);
            }
        }
    }
}

/// Responses of 3 MB with 20 s of silence between them.
const SILENT: &str = r#"
name = "silent"
horizon = "100s"
transfer = { from = "client", to = "server", request = "300B", response = "3MB", think = "20s", persistent = true, exchanges = 3 }
[host.server]
preset = "rfc"
side = "left"
send-buffer = "8MB"
[host.client]
preset = "linux"
smart = true
snack = true
recv-buffer = "8MB"
[[path]]
link = { rate = "100mbit", delay = "20ms", queue = "1000p" }
"#;

impl Sender {
    /// The maximum number of segments sent within `span` after 10 s of silence.
    fn after_silence(&self, span: Span) -> usize {
        let begins = (1..self.sent.len())
            .filter(|i| self.sent[*i].since(self.sent[*i - 1]) > Span::secs(10));
        let counts = begins
            .map(|i| self.sent[i..].iter().take_while(|at| at.since(self.sent[i]) < span).count());
        let counts: Vec<usize> = counts.collect();
        assert_eq!(counts.len(), 2, "two answers follow silence");
        counts.into_iter().max().unwrap_or(0)
    }
}

/// Segments sent before the first ACK after silence: by preset, and by key.
#[test]
fn each_sender_restarts_after_silence_from_the_window_of_its_rule() {
    let rules = [
        ("linux", "", 10),
        ("rfc", "", 3),
        ("freebsd-2.1", "", 1),
        ("rfc", "one-segment", 1),
        ("linux", "initial-window", 10),
        ("ns", "one-segment", 1),
    ];
    for word in TCPS {
        for (preset, rule, most) in rules {
            let mut set = vec![
                format!("host.server.preset={preset}"),
                format!("host.server.tcp={}", word.key),
                "host.server.send-buffer=8MB".to_owned(),
                "host.server.window-scale=true".to_owned(),
                "host.server.timestamps=true".to_owned(),
            ];
            if !rule.is_empty() {
                set.push(format!("host.server.slow-start-after-idle={rule}"));
            }
            let seen = server(SILENT, &set);
            if matches!(word.key, "bbr" | "bbr3") {
                // A model-based sender keeps its window and paces, with an initial gain of 2.9: 100 Mb/s are 12,500
                // bytes in a millisecond. Bursts of Linux are that long, and the second follows after half of it.
                let burst = seen.after_silence(Span::millis(1)) as u32 * seen.mss;
                let most = 36_250 * if preset == "linux" { 2 } else { 1 } + 10 * seen.mss;
                assert!(burst <= most, "{set:?}: {burst} bytes in a millisecond");
                continue;
            }
            let burst = seen.after_silence(Span::millis(30));
            assert!((1..=most).contains(&burst), "{set:?}: {burst} segments, not {most}");
            set.push("host.server.slow-start-after-idle=off".to_owned());
            let off = server(SILENT, &set).after_silence(Span::millis(30));
            // TCP-INT restarts by its own rule.
            assert!(word.key == "tcp-int" || off > most + 10, "{set:?}: {off} segments without it");
        }
    }
}

/// Few losses, and much reordering.
const REORDERED: &str = r#"
name = "reordered"
horizon = "60s"
transfer = { from = "server", to = "client", bytes = "6MB" }
[host.server]
preset = "rfc"
side = "left"
send-buffer = "4MB"
[host.client]
preset = "rfc"
sack = true
smart = true
snack = true
window-scale = true
timestamps = true
dsack = true
recv-buffer = "4MB"
[[path]]
link = { rate = "20mbit", delay = "20ms", queue = "1000p", jitter = "4ms", loss = "0.3%", impaired = "right" }
"#;

//= rfc5681#section-3.2: half of what is in flight, without what duplicate ACKs have let go
#[test]
fn a_loss_halves_the_window_despite_reordering() {
    for word in TCPS {
        let mut config = TcpConfig::rfc();
        (word.apply)(&mut config);
        // Window after a loss in hundredths; 4/5 is for losses without a queue. Other growths do not reduce it by a
        // constant part.
        let part = match config.congestion {
            Congestion::Reno | Congestion::Htcp | Congestion::Hybla | Congestion::Prague => 50,
            Congestion::Cubic => 70,
            Congestion::Veno => 80,
            _ => continue,
        };
        let set = [format!("host.server.tcp={}", word.key)];
        for seed in 1..=10 {
            let seen = server_of(REORDERED, &set, seed);
            // Later losses may find more in flight than the window after the first.
            let (cwnd, ssthresh) = *seen.halved.first().expect("a loss is detected");
            let most = (cwnd / 100 * part + seen.mss).max(2 * seen.mss);
            assert!(ssthresh <= most, "{set:?}, seed {seed}: {ssthresh} of {cwnd} bytes");
        }
    }
}
