//! Section 3.1.1, Figure 2: link layers with and without knowledge of TCP.

use std::collections::BTreeMap;

use lasthop_observe::Sink;
use lasthop_observe::stats::Summary;
use lasthop_proto::event::{Event, EventKind, Interest, Op};
use lasthop_proto::side::Side;
use lasthop_proto::wire::{FlowKey, Packet};

use super::testbed::{LAN, Protocol, Rows, WAN};
use crate::measure::wireless;
use crate::testbed::SINGLE as ERRORS;
use crate::{Bench, Bound, Finding, Interrupted};

const LL: &[&str] = &["agent=snoop", "path.base.dup-acks=pass"];
const LL_SACK: &[&str] = &[
    "agent=snoop-smart",
    "path.base.dup-acks=pass",
    "host.fixed.sack=true",
    "host.mobile.sack=true",
];

const AWARE: &[&str] = &["agent=snoop-smart", "host.fixed.sack=true", "host.mobile.sack=true"];

/// The four of Figure 2, and two link layers with their own acknowledgements.
const PROTOCOLS: [Protocol; 6] = [
    ("LL", LL),
    ("LL-TCP-AWARE", &["agent=snoop"]),
    ("LL-SACK", LL_SACK),
    ("LL-SACK-TCP-AWARE", AWARE),
    ("link-layer ll", &["path.wavelan.link-layer=ll"]),
    ("link-layer ll-sack", &["path.wavelan.link-layer=ll-sack"]),
];
/// The number of the paper's protocols among them.
const PUBLISHED: usize = 4;

/// Retransmissions of lost segments, by sender.
struct Repairs {
    flow: FlowKey,
    /// By first sequence number, in order of the first loss: retransmitted by the base station, by the source.
    lost: BTreeMap<u32, (bool, bool)>,
}

impl Repairs {
    fn sent_again(&mut self, packet: &Packet, by_source: bool) {
        let Some(segment) = packet.segment() else { return };
        let len = packet.body.len();
        // The source may segment its bytes differently.
        let covered = |seq: u32| seq.wrapping_sub(segment.seq.0) < len;
        for (seq, (base, source)) in &mut self.lost {
            if covered(*seq) {
                *(if by_source { &mut *source } else { &mut *base }) = true;
            }
        }
    }
}

impl Sink for Repairs {
    fn interest(&self) -> Interest {
        Interest::METRICS
    }

    fn event(&mut self, event: &Event) {
        let EventKind::Packet { op, side: Side::Right, packet } = &event.kind else { return };
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

/// Percentage of the segments lost over the air that both base station and source retransmitted, in each run.
fn repaired_twice(
    bench: &Bench<'_>,
    testbed: &str,
    changes: &[&str],
) -> Result<Summary, Interrupted> {
    let scenario = bench.scenario(testbed, changes);
    let flow = lasthop_sim::runs::layout(&scenario).flows[0].key;
    let shares = bench.each_seed(bench.seeds, |seed| {
        let mut repairs = Repairs { flow, lost: BTreeMap::new() };
        lasthop_sim::runs::simulate(&scenario, seed, &mut repairs);
        let twice = repairs.lost.values().filter(|(base, source)| *base && *source).count();
        100.0 * twice as f64 / repairs.lost.len().max(1) as f64
    });
    Ok(Summary::of(&shares?))
}

/// Figure 2, local network.
pub(super) fn lan(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    const BEST: &str = "LL-SACK-TCP-AWARE";
    let protocols = if bench.is_shown() { &PROTOCOLS[..] } else { &PROTOCOLS[..PUBLISHED] };
    let rows = Rows::run(bench, LAN, &[ERRORS], protocols, &[(BEST, 1.40)])?;
    rows.show_with(finding, "Figure 2, LAN", &[("LL", 95.5), ("LL-TCP-AWARE", 97.6)]);
    let goodput = |name| rows.get(name).runs.summary(wireless);
    let (ll, aware) = (goodput("LL"), goodput("LL-TCP-AWARE"));
    finding.compare("LL wireless goodput", ll, "%", 95.5);
    finding.compare("LL-TCP-AWARE wireless goodput", aware, "%", 97.6);
    for (name, changes) in PROTOCOLS {
        if name != "LL" && !bench.is_shown() {
            continue;
        }
        let twice = repaired_twice(bench, LAN, &[&[ERRORS], changes].concat())?;
        let published = (name == "LL").then_some(90.0);
        let label = format!("{name}, losses retransmitted by source and base station");
        finding.compare(label, twice, "%", published);
        if name == "LL" {
            // "About 90 %".
            finding.within("LL's share of losses retransmitted by both, in %,", twice, 80.0, 100.0);
        }
    }
    finding.within("LL-TCP-AWARE above LL in %", rows.above("LL-TCP-AWARE", "LL"), 8.5, 11.5);
    finding.within("LL's wireless goodput in %", ll, 94.8, 96.2);
    finding.within("LL-TCP-AWARE's wireless goodput in %", aware, 96.9, 98.3);
    finding.within("LL-SACK-TCP-AWARE in Mb/s", rows.mbps(BEST), 1.30, 1.48);
    let ahead = rows.ahead(BEST, &["LL", "LL-TCP-AWARE", "LL-SACK"]);
    finding.require_bound(
        "LL-SACK-TCP-AWARE less the next best, Mb/s,",
        ahead,
        Bound::AtLeast(0.0),
    );
    Ok(())
}

/// Figure 2, over the Internet.
pub(super) fn wan(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let protocols = if bench.is_shown() { &PROTOCOLS[..] } else { &PROTOCOLS[..PUBLISHED] };
    let rows = Rows::run(bench, WAN, &[ERRORS], protocols, &[])?;
    rows.show(finding, "Figure 2, WAN");
    finding.within("LL-TCP-AWARE above LL in %", rows.above("LL-TCP-AWARE", "LL"), 25.5, 34.5);
    Ok(())
}
