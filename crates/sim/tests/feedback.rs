//! Explicit feedback from the base station to the source (bakshi96 4.2), over a whole path.
//!
//! The test simulates the link layer that reports failed attempts: in the bad state the wireless hop is slow, as with
//! many attempts per packet, and reports them at intervals. Without feedback the source times out.

use std::collections::BTreeMap;

use lasthop_observe::Sink as _;
use lasthop_observe::conservation::Conservation;
use lasthop_observe::metrics::{FlowMetrics, Metrics};
use lasthop_path::{HostKind, Outside, Path, Stage};
use lasthop_proto::event::{Cause, Event, EventKind, Interest, Op, TcpKind};
use lasthop_proto::machine::{Side, Signal, StageId};
use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::{FlowKey, Packet, Seq};
use lasthop_scenario::StageKind;
use lasthop_sim::layout;

use crate::parsed::{scenario_and_warnings, scenario_with};

const TEXT: &str = r#"
transfer = { from = "fixed", to = "mobile", bytes = "100KB" }
[host.fixed]
preset = "bakshi96"
[host.mobile]
preset = "bakshi96"
[[path]]
name = "wire"
link = { rate = "56kbit", delay = "50ms" }
[[path]]
agent = "none"
[[path]]
name = "air"
link = { rate = "19.2kbit", delay = "10ms" }
"#;

/// The path, left to right: host, wire, base station, air, host.
const BASE: StageId = StageId(2);
const AIR: usize = 3;

struct World {
    metrics: Metrics,
    books: Conservation,
    /// The sender's flow, initial sequence number, and oldest unacknowledged position.
    flow: Option<(FlowKey, Seq)>,
    una: u64,
    /// Events related to feedback, in order.
    order: Vec<&'static str>,
    dropped: BTreeMap<Cause, u64>,
}

impl Outside for World {
    fn event(&mut self, event: &Event) {
        self.metrics.event(event);
        self.books.event(event);
        match &event.kind {
            EventKind::Packet { op: Op::Originated(cause), packet, .. } => match cause {
                Cause::Control if self.flow.is_none() => {
                    self.flow = packet.flow().zip(packet.segment().map(|s| s.seq));
                }
                Cause::BadStateNotification | Cause::SourceQuench => {
                    assert_eq!(event.stage, BASE);
                    self.order.push("sent");
                }
                _ => {}
            },
            EventKind::Packet { op: Op::Dropped(cause), .. } => {
                *self.dropped.entry(*cause).or_default() += 1;
            }
            EventKind::Tcp(tcp) if self.flow.is_some_and(|(flow, _)| flow == tcp.flow) => {
                self.una = tcp.tcb.snd_una;
                match tcp.kind {
                    TcpKind::BadStateNotified | TcpKind::Quenched => self.order.push("heeded"),
                    TcpKind::Timeout => self.order.push("timeout"),
                    _ => {}
                }
            }
            _ => {}
        }
    }

    fn leave(&mut self, _: Time, stage: StageId, _: Side, packet: Packet) {
        panic!("{packet:?} left at {stage:?}");
    }
}

/// Runs the scenario with `settings`; from 30 s on the air is in a bad state.
fn run(settings: &[&str]) -> (FlowMetrics, World) {
    let scenario = &scenario_with(TEXT, settings);
    let mut path = Path::of_scenario(scenario, 1, Interest::EVERYTHING, |_| HostKind::Ours);
    let mut world = World {
        metrics: Metrics::new(layout(scenario)),
        books: Conservation::default(),
        flow: None,
        una: 0,
        order: Vec::new(),
        dropped: BTreeMap::new(),
    };
    let mut slow = scenario.path[AIR - 1].clone();
    let StageKind::Link(config) = &mut slow.kind else { panic!("the air is a link") };
    config.delay = Span::secs(6);
    let mut bad = false;
    let mut attempt = Time::ZERO + Span::secs(30);
    let mut now = Time::ZERO;
    while path.unfinished() > 0 && now < Time::ZERO + Span::secs(3600) {
        let wake = path.next_wake().expect("the transfer continues");
        if attempt >= wake {
            now = wake;
            path.wake(now, &mut world);
            continue;
        }
        now = attempt;
        attempt = now + Span::millis(300);
        if !bad {
            assert_eq!(path.replace_stage(AIR, Stage::of_path(&slow, 1)), 0);
            bad = true;
        }
        let (flow, first) = world.flow.expect("a connection");
        let seq = first + world.una as u32;
        let failed = Signal::AttemptFailed { flow, seq, len: 576, tries: 1, discarded: false };
        path.call(now, AIR, &mut world, |_, out| out.signal(Side::Left, failed));
    }
    assert_eq!(path.unfinished(), 0, "the transfer ended");
    let held: u64 = path.counts().iter().map(|(_, count)| count.held).sum();
    world.books.check(held).expect("the books balance");
    let metrics = std::mem::replace(&mut world.metrics, Metrics::new(layout(scenario)));
    (metrics.finish(now).flows.remove(0), world)
}

#[test]
fn without_feedback_the_source_times_out() {
    let (flow, world) = run(&[]);
    assert!(flow.timeouts > 1 && flow.host_retransmissions() > 0);
    assert!(world.order.iter().all(|entry| *entry == "timeout"));
    assert_eq!((flow.bad_state_notices, flow.quenches), (0, 0));
}

//= bakshi96#4.2.3: timeouts at the source are eliminated, and nothing is retransmitted in vain
#[test]
fn with_explicit_notification_the_source_does_not_time_out() {
    let (flow, world) = run(&["agent=ebsn", "host.fixed.ebsn=true"]);
    assert_eq!((flow.timeouts, flow.host_retransmissions(), flow.redundant), (0, 0, 0));
    assert_eq!(world.order.first(), Some(&"sent"));
    let sent = flow.originated_acks.get(Cause::BadStateNotification);
    assert!(flow.bad_state_notices > 10 && sent >= flow.bad_state_notices);
    // A message about data that was acknowledged meanwhile is ignored.
    let stale = world.dropped.get(&Cause::StaleNotice).copied().unwrap_or(0);
    let late = sent - flow.bad_state_notices - stale;
    assert!(late <= 1, "each message is processed, dropped or in flight: {late}");
    // The sender receives a message only after it was sent.
    let mut ahead = 0i32;
    for entry in &world.order {
        ahead += if *entry == "sent" { 1 } else { -1 };
        assert!(ahead >= 0);
    }
    let (slow, _) = run(&[]);
    assert!(flow.transfer_time_s < slow.transfer_time_s);
}

//= bakshi96#4.2.2: a source quench will not be able to prevent timeouts of packets already on the network
#[test]
fn a_source_quench_slows_the_source_but_prevents_no_time_out() {
    let (flow, world) = run(&["agent=source-quench", "host.fixed.quench=true"]);
    assert!(flow.quenches > 10 && flow.timeouts > 0, "{:?}", world.order);
    assert_eq!(flow.bad_state_notices, 0);
    assert!(flow.originated_acks.get(Cause::SourceQuench) >= flow.quenches);
}

#[test]
fn a_source_without_support_is_unaffected_by_feedback() {
    let (without, _) = run(&[]);
    for agent in ["agent=ebsn", "agent=source-quench"] {
        let (flow, world) = run(&[agent]);
        assert_eq!((flow.bad_state_notices, flow.quenches), (0, 0));
        assert!(world.dropped[&Cause::UnheededNotice] > 10);
        assert_eq!(flow.timeouts, without.timeouts);
        assert_eq!(flow.delivered, without.delivered);
    }
}

/// A base station limits the packets of a transfer to the size that suits its channel.
#[test]
fn packets_have_the_good_size_from_the_first_one_on() {
    for (settings, size, mss) in [
        (&["agent=none"][..], 576, 536),
        (&["agent=good-packet-size", "packet-size=128B"][..], 128, 88),
        (&["agent=good-packet-size", "bad-period=3s"][..], 384, 344),
        (
            &[
                "agent=good-packet-size",
                "host.fixed.timestamps=true",
                "host.mobile.timestamps=true",
            ][..],
            512,
            460,
        ),
    ] {
        let (scenario, warnings) = scenario_and_warnings(TEXT, settings);
        // The air of this scenario is a link, which causes a warning next to an agent.
        assert!(warnings.len() <= 1, "{warnings:?}");
        #[derive(Default)]
        struct Largest(u32);
        impl lasthop_observe::Sink for Largest {
            fn interest(&self) -> Interest {
                Interest::METRICS
            }
            fn event(&mut self, event: &Event) {
                if let EventKind::Packet { op: Op::Transmitted, packet, .. } = &event.kind {
                    self.0 = self.0.max(packet.wire_len());
                }
            }
        }
        let mut sinks = (Largest::default(), Metrics::new(layout(&scenario)));
        let end = lasthop_sim::run(&scenario, 1, &mut sinks);
        let flow = sinks.1.finish(end.at).flows.remove(0);
        assert_eq!((sinks.0.0, flow.mss, flow.complete), (size, mss, true), "{settings:?}");
        assert_eq!(flow.wired_goodput, Some(1.0), "{settings:?}");
    }
}
