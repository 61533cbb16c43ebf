//! Our modern senders compared with a Linux kernel that lost the same packets.
//!
//! `tests/replay/` holds the orders of a kernel's segments (Linux 6.18, in the testbed), up to six runs for each of 50 loss
//! patterns, because the kernel does not send the same order each time. A pattern counts as equal if ours equals any of
//! them over the first 200 segments; for BBR, which paces, if the time for half of the data is within 5 % of the median.
//! docs/explanation/parity.md has the results.

use lasthop_observe::Sink;
use lasthop_observe::layout::{Layout, Role};
use lasthop_proto::event::{Event, EventKind, Interest, Op, TcpEvent, TcpKind};
use lasthop_proto::units::Time;
use lasthop_proto::wire::Seq;
use lasthop_scenario::Argument;
use lasthop_sim::runs::{layout, simulate};
use serde::Deserialize;

/// Segments that are compared.
const SEGMENTS: usize = 200;

#[derive(Deserialize)]
struct Recording {
    kernel: String,
    /// The scenario, one line per entry.
    scenario: Vec<String>,
    patterns: Vec<Pattern>,
}

/// The runs of a kernel with one pattern of losses.
#[derive(Deserialize)]
struct Pattern {
    /// Lost data packets by their index at the router: `3, 8-10`.
    drop_data: String,
    #[serde(default)]
    drop_acks: String,
    /// The order of segments in each run: `0-65 29 66-130`. Equal orders are listed once.
    orders: Vec<String>,
    /// Seconds until half of the transfer was delivered, in each run.
    #[serde(default)]
    half_s: Vec<f64>,
}

/// The segments of the first flow by their index, and the time until half of them are delivered.
struct Watch {
    layout: Layout,
    /// The first segment: number, length, time of transmission.
    first: Option<(Seq, u32, Time)>,
    segments: Vec<u32>,
    delivered: u64,
    half_s: Option<f64>,
}

impl Sink for Watch {
    fn interest(&self) -> Interest {
        Interest::METRICS
    }

    fn event(&mut self, event: &Event) {
        let stage = self.layout.stages.get(usize::from(event.stage.0));
        if stage.is_none_or(|stage| stage.role != Role::Host) {
            return;
        }
        let flow = self.layout.flows[0].key;
        match &event.kind {
            EventKind::Packet { op: Op::Originated(_), packet, .. }
                if packet.is_data() && packet.flow() == Some(flow) =>
            {
                let segment = packet.segment().unwrap();
                let first = (segment.seq, packet.body.len(), event.at);
                let (base, mss, _) = *self.first.get_or_insert(first);
                self.segments.push(segment.seq.0.wrapping_sub(base.0) / mss);
            }
            EventKind::Tcp(TcpEvent { flow: of, kind: TcpKind::Delivered { bytes }, .. })
                if of.reversed() == flow =>
            {
                let Some((_, mss, start)) = self.first else { return };
                self.delivered += u64::from(*bytes);
                if self.delivered >= u64::from(mss) * 200 {
                    self.half_s.get_or_insert(event.at.since(start).as_secs_f64());
                }
            }
            _ => {}
        }
    }
}

/// Our sender with the losses of `pattern`.
fn ours(word: &str, recording: &Recording, pattern: &Pattern) -> Watch {
    let losses = [("drop-data", &pattern.drop_data), ("drop-acks", &pattern.drop_acks)];
    let losses = losses.into_iter().filter(|(_, numbers)| !numbers.is_empty());
    let losses = losses.map(|(key, numbers)| format!("path.loss.cross.{key}=\"{numbers}\""));
    let set: Vec<Argument> = losses.chain([format!("tcp={word}")]).map(Argument::Set).collect();
    let (plan, _) =
        lasthop_scenario::parse(&recording.scenario.join("\n"), "replay", &set).unwrap();
    let scenario = &plan.cells[0].scenario;
    let (layout, first, segments) = (layout(scenario), None, Vec::new());
    let mut watch = Watch { layout, first, segments, delivered: 0, half_s: None };
    simulate(scenario, 1, &mut watch);
    watch
}

/// Segments in a format with ranges: `0-65 29 66-130`.
fn parse(order: &str) -> Vec<u32> {
    let number = |word: &str| word.parse::<u32>().unwrap();
    let range = |word: &str| {
        let (from, to) = word.split_once('-').unwrap_or((word, word));
        number(from)..=number(to)
    };
    order.split_whitespace().flat_map(range).collect()
}

/// The number of patterns of a recording with which ours is equal.
fn equal(word: &str, recording: &str) -> usize {
    let recording: Recording = serde_json::from_str(recording).unwrap();
    assert_eq!(recording.patterns.len(), 50);
    let is_equal = |pattern: &&Pattern| {
        let watch = ours(word, &recording, pattern);
        if recording.kernel == "linux-bbr" {
            let mut times = pattern.half_s.clone();
            times.sort_by(f64::total_cmp);
            let share = watch.half_s.unwrap() / times[times.len() / 2];
            return (share - 1.0).abs() <= 0.05;
        }
        let cut = |segments: &[u32]| segments[..segments.len().min(SEGMENTS)].to_vec();
        pattern.orders.iter().any(|order| cut(&parse(order)) == cut(&watch.segments))
    };
    let equal = recording.patterns.iter().filter(is_equal).count();
    println!("{word}: {equal} equal");
    equal
}

#[test]
fn reno_matches_the_segment_order_of_linux() {
    assert!(equal("rack", include_str!("replay/linux-reno.json")) >= 44);
}

#[test]
fn bbr_is_as_fast_as_linux() {
    assert!(equal("bbr", include_str!("replay/linux-bbr.json")) >= 41);
}

#[test]
fn cubic_matches_the_segment_order_of_linux() {
    assert!(equal("cubic", include_str!("replay/linux-cubic.json")) >= 40);
}
