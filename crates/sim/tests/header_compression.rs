//! Header compression where it helps, on a slow return path, and where it hurts, on a line with frame losses.

use std::collections::BTreeMap;

use lasthop_observe::Sink;
use lasthop_proto::event::{Cause, Event, EventKind, Interest, Op};
use lasthop_scenario::example;
use lasthop_sim::run;

use crate::parsed::scenario_and_warnings;

/// Drops by cause, and packets on the return line.
#[derive(Default)]
struct ReturnLine {
    drops: BTreeMap<Cause, u64>,
}

impl ReturnLine {
    fn of(&self, cause: Cause) -> u64 {
        self.drops.get(&cause).copied().unwrap_or(0)
    }
}

impl Sink for ReturnLine {
    fn interest(&self) -> Interest {
        Interest::METRICS
    }
    fn event(&mut self, event: &Event) {
        if let EventKind::Packet { op: Op::Dropped(cause), .. } = event.kind {
            *self.drops.entry(cause).or_default() += 1;
        }
    }
}

/// The scenario `slow-return` with `set` for its return line: throughput in Mb/s, and drops.
fn slow_return(set: &[&str]) -> (f64, ReturnLine) {
    let mut all = vec!["path.return.link.discipline-left=fifo".to_owned()];
    all.extend(set.iter().map(|set| format!("path.return.link.{set}")));
    let text = example("slow-return").unwrap().text;
    let (scenario, warnings) = scenario_and_warnings(text, &all);
    assert_eq!(warnings, []);
    let mut seen = ReturnLine::default();
    let end = run(&scenario, 1, &mut seen);
    (end.transfers[0].acknowledged as f64 * 8.0 / end.at.as_secs_f64() / 1e6, seen)
}

//= balakrishnan97#4.3: ACKs of 6 bytes instead of 40 take the return path out of the way
#[test]
fn short_acks_free_a_transfer() {
    for rate in ["rate-left=28.8kbit", "rate-left=9.6kbit"] {
        let (plain, _) = slow_return(&[rate]);
        let (short, seen) = slow_return(&[rate, "header-compression=vj"]);
        println!("{rate}: {plain:.2} -> {short:.2} {:?}", seen.drops);
        assert!(short > 1.3 * plain, "{rate}: {plain} -> {short}");
        assert_eq!(seen.of(Cause::Desynchronised), 0);
    }
}

/// The cost of a lost frame: later ACKs are lost until an uncompressed header arrives.
#[test]
fn losses_desynchronise_the_ends_and_recovery_limits_it() {
    let loss = ["rate-left=28.8kbit", "frame-loss=1%"];
    let with = |more: &[&str]| slow_return(&[&loss[..], more].concat());
    let (plain, seen) = with(&[]);
    assert!(seen.of(Cause::FrameLost) > 10 && seen.of(Cause::Desynchronised) == 0);
    println!("none: {plain:.2} {:?}", seen.drops);
    let mut figures = Vec::new();
    for word in ["vj", "vj+twice", "vj+feedback"] {
        let how = format!("header-compression={word}");
        for noticed in ["loss-noticed=true", "loss-noticed=false"] {
            let (mbps, seen) = with(&[&how, noticed]);
            println!("{word} {noticed}: {mbps:.2} {:?}", seen.drops);
            figures.push((mbps, seen));
        }
    }
    let of = |i: usize, cause| figures[i].1.of(cause);
    // As in the RFC: whole sequences are dropped, or reach the sender with errors.
    assert!(of(0, Cause::Desynchronised) > of(0, Cause::FrameLost));
    assert!(of(1, Cause::TcpChecksum) > of(1, Cause::FrameLost));
    // Both methods of RFC 2507 lose less, and carry more.
    for i in [2, 4] {
        assert!(figures[i].0 > figures[0].0, "{} {}", figures[i].0, figures[0].0);
        assert!(of(i, Cause::TcpChecksum) == 0);
    }
}
