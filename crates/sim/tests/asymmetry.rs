//! A fast forward link with a slow return, as in balakrishnan97 4.3: the effect of queue disciplines.

use std::collections::BTreeMap;

use lasthop_observe::Sink;
use lasthop_proto::event::{Cause, Event, EventKind, Interest, Op};
use lasthop_scenario::example;
use lasthop_sim::{RunEnd, run};

use crate::parsed::scenario_and_warnings;

/// Counts drops by cause.
#[derive(Default)]
struct Drops(BTreeMap<Cause, u64>);

impl Drops {
    fn of(&self, cause: Cause) -> u64 {
        self.0.get(&cause).copied().unwrap_or(0)
    }
}

impl Sink for Drops {
    fn interest(&self) -> Interest {
        Interest::METRICS
    }
    fn event(&mut self, event: &Event) {
        if let EventKind::Packet { op: Op::Dropped(cause), .. } = event.kind {
            *self.0.entry(cause).or_default() += 1;
        }
    }
}

const UPLOAD: &str =
    "[[transfer]]\nfrom = \"home\"\nto = \"server\"\nbytes = \"unlimited\"\nstart = \"5s\"\n";

/// The scenario `slow-return` with `set` and the text `more`, under one discipline.
fn slow_return(discipline: &str, set: &[&str], more: &str) -> (RunEnd, Drops) {
    let text = format!("{}\n{more}", example("slow-return").unwrap().text);
    let discipline = format!("path.return.link.discipline-left={discipline}");
    let (scenario, warnings) = scenario_and_warnings(&text, &[set, &[&discipline]].concat());
    assert_eq!(warnings, []);
    let mut drops = Drops::default();
    let end = run(&scenario, 1, &mut drops);
    (end, drops)
}

/// Throughput of the forward transfer in Mb/s.
fn forward(end: &RunEnd) -> f64 {
    end.transfers[0].acknowledged as f64 * 8.0 / end.at.as_secs_f64() / 1e6
}

//= balakrishnan97#4.3: at 28.8 kb/s the filter doubles the throughput
#[test]
fn the_filter_frees_a_transfer_whose_acks_return_slowly() {
    for rate in ["28.8kbit", "9.6kbit"] {
        let rate = format!("path.return.link.rate-left={rate}");
        let (fifo, dropped) = slow_return("fifo", &[&rate], "");
        // The plain queue drops many ACKs, the filter none.
        assert!(dropped.of(Cause::QueueFull) > 1000, "{:?}", dropped.0);
        assert_eq!(dropped.of(Cause::SupersededAck), 0);
        let (filtered, removed) = slow_return("ack-filter", &[&rate], "");
        assert!(removed.of(Cause::SupersededAck) > 1000, "{:?}", removed.0);
        let (before, after) = (forward(&fifo), forward(&filtered));
        assert!(after > 1.5 * before, "{rate}: {before} -> {after}");
    }
}

#[test]
fn with_a_fast_return_there_is_nothing_to_filter() {
    let fast = ["path.return.link.rate-left=10mbit"];
    let (fifo, _) = slow_return("fifo", &fast, "");
    let (filtered, removed) = slow_return("ack-filter", &fast, "");
    assert_eq!(removed.of(Cause::SupersededAck), 0);
    assert_eq!(forward(&fifo).to_bits(), forward(&filtered).to_bits());
}

/// The warnings on the pages of both systems.
#[test]
fn each_discipline_has_a_cost_during_an_upload() {
    let upload = |end: &RunEnd| end.transfers[1].acknowledged;
    let (alone, _) = slow_return("ack-filter", &[], "");
    // At the tail of a queue of data packets each ACK is removed before it is sent.
    let (filtered, _) = slow_return("ack-filter", &[], UPLOAD);
    assert!(forward(&filtered) < 0.3 * forward(&alone), "{}", forward(&filtered));
    assert!(upload(&filtered) > 0);
    // With priority and filtering ACKs pass, and the upload does not.
    let (first, _) = slow_return("ack-filter+acks-first", &[], UPLOAD);
    assert!(forward(&first) > 0.95 * forward(&alone), "{}", forward(&first));
    assert_eq!(upload(&first), 0);
}
