//! Section 3.2: the meaning of acknowledgements sent by a base station.

use lasthop_observe::Sink;
use lasthop_observe::stats::Summary;
use lasthop_proto::agent;
use lasthop_proto::event::{Event, EventKind, TcpKind};
use lasthop_proto::machine::StageId;
use lasthop_proto::wire::FlowKey;
use lasthop_scenario::Scenario;

use super::split::{BUFFER, PRESET};
use crate::testbed::{SINGLE, WEST97_LAN};
use crate::{Bench, Finding, Interrupted};

/// The base station is killed when the receiver has half of the 2,000,000 bytes. Data acknowledged but not delivered by
/// then is lost.
const HALF: u64 = 1_000_000;

/// A frame that left the base station's queue before the kill may still arrive.
const IN_THE_AIR: f64 = 1500.0;

/// Host settings that some agents need; the others ignore them.
const NEEDS: &[&str] = &[
    "host.fixed.sack=true",
    "host.mobile.sack=true",
    "host.fixed.ackp=rearm",
    "host.fixed.eln=checksum",
    "host.mobile.eln=checksum",
    "host.fixed.ebsn=true",
    "host.fixed.quench=true",
    PRESET,
    BUFFER,
];

/// Acknowledged data compared with delivered data.
struct Promise {
    flow: FlowKey,
    sender: StageId,
    receiver: StageId,
    /// Bytes of the whole transfer.
    bytes: u64,
    acknowledged: u64,
    delivered: u64,
    /// Maximum of acknowledged minus delivered bytes.
    ahead: u64,
    /// Acknowledged minus delivered bytes when the base station was killed.
    lost: Option<u64>,
}

impl Sink for Promise {
    fn event(&mut self, event: &Event) {
        // Both halves of a split connection have the same flow; the stage distinguishes hosts and base station.
        let EventKind::Tcp(tcp) = &event.kind else { return };
        if event.stage == self.sender && tcp.flow == self.flow {
            // SYN and FIN take a sequence number each.
            self.acknowledged = tcp.tcb.snd_una.saturating_sub(1).min(self.bytes);
            self.ahead = self.ahead.max(self.acknowledged.saturating_sub(self.delivered));
        } else if let TcpKind::Delivered { bytes } = tcp.kind
            && event.stage == self.receiver
            && tcp.flow == self.flow.reversed()
        {
            self.delivered += u64::from(bytes);
            if self.delivered >= HALF {
                self.lost.get_or_insert(self.acknowledged.saturating_sub(self.delivered));
            }
        }
    }
}

/// Bytes acknowledged but never delivered when the base station is killed in the middle of the transfer, and the
/// maximum for any other time.
fn killed(scenario: &Scenario, seed: u64) -> (f64, f64) {
    let layout = lasthop_sim::runs::layout(scenario);
    let mut promise = Promise {
        flow: layout.flows[0].key,
        sender: StageId(0),
        receiver: StageId(layout.stages.len() as u16 - 1),
        bytes: layout.flows[0].bytes.unwrap_or(u64::MAX),
        acknowledged: 0,
        delivered: 0,
        ahead: 0,
        lost: None,
    };
    lasthop_sim::runs::simulate(scenario, seed, &mut promise);
    // A transfer that never reached this point shows nothing, and the claim fails.
    (promise.lost.unwrap_or(0) as f64, promise.ahead as f64)
}

/// 3.2: split connections acknowledge data before delivery; TCP-aware agents that keep end-to-end semantics do not.
pub(super) fn acksplit(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let agents = agent::words().map(|agent| (agent.word, format!("agent={}", agent.word)));
    let tulip = ("TULIP", "path.wavelan.link-layer=tulip".to_owned());
    for (agent, changes) in agents.chain([tulip]) {
        let scenario = bench.scenario(WEST97_LAN, &[&[SINGLE, &changes], NEEDS].concat());
        let all = bench.each_seed(bench.seeds, |seed| killed(&scenario, seed))?;
        let (lost, ahead): (Vec<f64>, Vec<f64>) = all.into_iter().unzip();
        let label = format!("{agent}, acknowledged and lost");
        finding.measure(label, Summary::of(&lost), "B");
        if agent.starts_with("split") {
            let least = lost.iter().copied().fold(f64::INFINITY, f64::min);
            finding.above(format!("what {agent} loses at least, in bytes"), least, IN_THE_AIR);
        } else {
            let worst = ahead.iter().copied().fold(0.0, f64::max);
            let quantity = format!("what {agent} acknowledges ahead of its arrival, in bytes");
            finding.within(quantity, worst, 0.0, 0.0);
        }
    }
    finding.note(
        "The same is measured between two kernels when a real station is killed: see docs/explanation/reproduction.md",
    );
    Ok(())
}
