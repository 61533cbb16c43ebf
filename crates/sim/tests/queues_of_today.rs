//! Delay-based queue disciplines: effects on a transfer and its neighbours, and times of their events.

use std::collections::BTreeSet;

use lasthop_observe::Sink;
use lasthop_observe::metrics::RunMetrics;
use lasthop_proto::event::{Cause, Event, EventKind, Op};
use lasthop_proto::machine::Side;
use lasthop_proto::units::{Span, Time};
use lasthop_sim::run;

use crate::parsed::{metrics, scenario, scenario_and_warnings};

/// Eight transfers and a small exchange every 100 ms over 10 Mb/s with a queue of 200 packets; 40 ms there and back.
fn text(discipline: &str) -> String {
    let bulk =
        "[[transfer]]\nfrom = \"server\"\nto = \"home\"\nbytes = \"unlimited\"\nstop = \"20s\"\n"
            .repeat(8);
    format!(
        "horizon = \"20s\"\n{bulk}
        [[transfer]]
        from = \"home\"
        to = \"server\"
        request = \"100B\"
        response = \"100B\"
        every = \"100ms\"
        stop = \"20s\"
        [host.server]
        side = \"left\"
        preset = \"linux\"
        [host.home]
        preset = \"linux\"
        [[path]]
        link = {{ rate = \"10mbit\", delay = \"20ms\", queue = \"200p\", discipline-right = \"{discipline}\" }}
        "
    )
}

fn measured(discipline: &str) -> RunMetrics {
    let (scenario, warnings) = scenario_and_warnings::<&str>(&text(discipline), &[]);
    assert_eq!(warnings, []);
    metrics(&scenario, 1)
}

fn value(metrics: &RunMetrics, name: &str) -> f64 {
    metrics.scalars().iter().find(|scalar| scalar.name == name).unwrap().value
}

#[test]
fn an_exchange_among_eight_transfers_waits_only_in_fifo() {
    let of = |discipline: &str| {
        let metrics = measured(discipline);
        (value(&metrics, "exchange_time_p50"), value(&metrics, "throughput"))
    };
    let (plain, full) = of("fifo");
    // Each exchange is a connection: two round trips of 40 ms, in a plain queue of 200 packets 240 ms more each.
    assert!(plain > 0.3, "{plain}");
    for (discipline, most, share) in
        [("fq-codel", 0.085, 0.95), ("codel", 0.15, 0.85), ("pie", 0.15, 0.85)]
    {
        let (time, throughput) = of(discipline);
        assert!(time < most, "{discipline}: {time} s");
        assert!(throughput > share * full, "{discipline}: {throughput} of {full}");
    }
}

/// Times of early drops, and of the first bits of packets that crossed the link towards the right.
#[derive(Default)]
struct Times {
    drops: Vec<Time>,
    begun: BTreeSet<Time>,
}

impl Sink for Times {
    fn event(&mut self, event: &Event) {
        match &event.kind {
            EventKind::Packet { op: Op::Dropped(Cause::EarlyDrop), .. } => {
                self.drops.push(event.at)
            }
            EventKind::Packet { op: Op::Transmitted, side: Side::Right, packet } => {
                // At 10 Mb/s, and after the delay of the line.
                let crossing = Span(800 * u64::from(packet.wire_len())) + Span::millis(20);
                self.begun.insert(Time(event.at.0 - crossing.0));
            }
            _ => {}
        }
    }
}

#[test]
fn codel_reports_drops_when_the_next_packet_is_sent() {
    let mut times = Times::default();
    run(&scenario(&text("codel")), 1, &mut times);
    assert!(times.drops.len() > 100, "{}", times.drops.len());
    let end = Time::ZERO + Span::secs(19);
    let off = times.drops.iter().filter(|at| **at < end && !times.begun.contains(at));
    assert_eq!(off.count(), 0, "drops without a packet that is sent at once");
}
