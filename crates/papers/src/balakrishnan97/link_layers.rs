//! Section 3.1.1, Figure 2: link layers that know of TCP, and such that do not.

use std::collections::BTreeMap;

use lasthop_proto::event::{Event, Op, Wants, What};
use lasthop_proto::place::Side;
use lasthop_proto::wire::{FlowKey, Packet};
use lasthop_report::model::Measured;
use lasthop_trace::Sink;
use lasthop_trace::stats::Summary;

use super::testbed::{ERRORS, LAN, Protocol, WAN, above, row, rows, show};
use crate::bench::{Bench, Interrupted, scenario};
use crate::finding::{Finding, short};
use crate::west97::Experiment;

/// The experiment for the claim `id`.
pub fn experiment(id: &str) -> Option<Experiment> {
    Some(match id {
        "D-F2-LAN" => lan,
        "D-F2-WAN" => wan,
        _ => return None,
    })
}

const LL: &[&str] = &["agent=snoop", "path.base.dup-acks=pass"];
const LL_SACK: &[&str] = &[
    "agent=snoop-smart",
    "path.base.dup-acks=pass",
    "host.fixed.sack=true",
    "host.mobile.sack=true",
];

/// The four of Figure 2, and two link layers with acknowledgements of their own.
const PROTOCOLS: [Protocol; 6] = [
    Protocol { name: "LL", changes: LL, published: None },
    Protocol { name: "LL-TCP-AWARE", changes: &["agent=snoop"], published: None },
    Protocol { name: "LL-SACK", changes: LL_SACK, published: None },
    Protocol {
        name: "LL-SACK-TCP-AWARE",
        changes: &["agent=snoop-smart", "host.fixed.sack=true", "host.mobile.sack=true"],
        published: Some(1.40),
    },
    Protocol { name: "link-layer ll", changes: &["path.wavelan.link-layer=ll"], published: None },
    Protocol {
        name: "link-layer ll-sack",
        changes: &["path.wavelan.link-layer=ll-sack"],
        published: None,
    },
];
/// How many of them are the paper's.
const PUBLISHED: usize = 4;

/// Which lost segments were sent again, and by whom.
struct Repairs {
    flow: FlowKey,
    /// By the segment's first sequence number, in the order of the first loss: by the base station, by the source.
    lost: BTreeMap<u32, (bool, bool)>,
}

impl Repairs {
    fn sent_again(&mut self, packet: &Packet, by_source: bool) {
        let Some(segment) = packet.segment() else { return };
        let len = packet.body.len();
        // The source may cut its bytes differently.
        let covered = |seq: u32| seq.wrapping_sub(segment.seq.0) < len;
        for (seq, (base, source)) in &mut self.lost {
            if covered(*seq) {
                *(if by_source { &mut *source } else { &mut *base }) = true;
            }
        }
    }
}

impl Sink for Repairs {
    fn wants(&self) -> Wants {
        Wants::METRICS
    }

    fn event(&mut self, event: &Event) {
        let What::Packet { op, side: Side::Right, packet } = &event.what else { return };
        if packet.body.is_empty() || packet.flow() != Some(self.flow) {
            return;
        }
        match op {
            Op::Damaged => {
                if let Some(segment) = packet.segment() {
                    self.lost.entry(segment.seq.0).or_default();
                }
            }
            Op::Repeated(_) => self.sent_again(packet, false),
            Op::Originated(cause) if cause.is_local_retransmission() => {
                self.sent_again(packet, false);
            }
            Op::Originated(cause) if cause.is_host_retransmission() => {
                self.sent_again(packet, true);
            }
            _ => {}
        }
    }
}

/// Of the segments lost over the air, the percentage that base station and source both sent again, in each run.
pub(super) fn repaired_twice(
    bench: &Bench<'_>,
    testbed: &str,
    changes: &[&str],
) -> Result<Summary, Interrupted> {
    let scenario = scenario(testbed, changes);
    let flow = lasthop_lab::layout(&scenario).flows[0].key;
    let mut shares = Vec::new();
    for seed in 1..=u64::from(bench.seeds) {
        if bench.stopped() {
            return Err(Interrupted);
        }
        let mut repairs = Repairs { flow, lost: BTreeMap::new() };
        lasthop_lab::simulate(&scenario, seed, &mut repairs);
        let twice = repairs.lost.values().filter(|(base, source)| *base && *source).count();
        shares.push(100.0 * twice as f64 / repairs.lost.len().max(1) as f64);
    }
    Ok(Summary::of(&shares))
}

/// Figure 2, local network.
fn lan(bench: &mut Bench<'_>) -> Result<Finding, Interrupted> {
    let mut finding = Finding::new(bench.seeds);
    let rows = rows(bench, LAN, &[ERRORS], &PROTOCOLS)?;
    show(&mut finding, "Figure 2, LAN", &rows);
    let (ll, aware) = (row(&rows, "LL"), row(&rows, "LL-TCP-AWARE"));
    for (row, published) in [(ll, 95.5), (aware, 97.6)] {
        let goodput = row.runs.summary(super::testbed::wireless);
        let label = format!("{} wireless goodput", row.name);
        finding.measured.push(Measured::new(label, &goodput, "%", Some(published)));
    }
    for protocol in &PROTOCOLS {
        let changes = [&[ERRORS], protocol.changes].concat();
        let twice = repaired_twice(bench, LAN, &changes)?;
        let published = (protocol.name == "LL").then_some(90.0);
        let label = format!("{}, losses sent again by source and base station", protocol.name);
        finding.measured.push(Measured::new(label, &twice, "%", published));
        if protocol.name == "LL" {
            finding.above("LL's share of losses sent again by both, in %,", twice.mean, 70.0);
        }
    }
    finding.within("LL-TCP-AWARE above LL in %", above(aware, ll), 4.0, 18.0);
    finding.within("LL's wireless goodput in %", ll.wireless(), 94.8, 96.2);
    finding.within("LL-TCP-AWARE's wireless goodput in %", aware.wireless(), 96.9, 98.3);
    let best = row(&rows, "LL-SACK-TCP-AWARE");
    finding.within("LL-SACK-TCP-AWARE in Mb/s", best.mbps(), 1.30, 1.48);
    let others = rows[..PUBLISHED].iter().filter(|row| row.name != best.name);
    let second = others.map(|row| row.mbps()).fold(0.0, f64::max);
    finding.require(
        best.mbps() >= second,
        format!("the next best of the four has {} Mb/s, wanted no more than it", short(second)),
    );
    Ok(finding)
}

/// Figure 2, over the Internet.
fn wan(bench: &mut Bench<'_>) -> Result<Finding, Interrupted> {
    let mut finding = Finding::new(bench.seeds);
    let rows = rows(bench, WAN, &[ERRORS], &PROTOCOLS)?;
    // The figure of the text is of the local network.
    let rows: Vec<_> =
        rows.into_iter().map(|row| super::testbed::Row { published: None, ..row }).collect();
    show(&mut finding, "Figure 2, WAN", &rows);
    let (ll, aware) = (row(&rows, "LL"), row(&rows, "LL-TCP-AWARE"));
    finding.within("LL-TCP-AWARE above LL in %", above(aware, ll), 18.0, 45.0);
    Ok(finding)
}
