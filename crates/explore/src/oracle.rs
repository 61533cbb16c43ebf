//! What must hold in every run.

use lasthop_proto::agent::{AgentConfig, BaseStation as _};
use lasthop_proto::event::{Event, Op, TcpKind, Wants, What};
use lasthop_proto::machine::StageId;
use lasthop_proto::units::Time;
use lasthop_proto::wire::{Flags, FlowKey};
use lasthop_scenario::{Scenario, Stage, StageKind};
use lasthop_sim::{Reason, RunEnd};
use lasthop_trace::Sink;

/// Counts events of one run: wrong data, aborted connections, retransmissions and time-outs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Watch {
    pub corrupted: bool,
    /// A server, or a base station that acts for it, gave up.
    pub abandoned: bool,
    /// The last delivery of data to an application.
    pub delivered_at: Time,
    /// Retransmissions of hosts and of the base station.
    pub retransmissions: u32,
    pub timeouts: u32,
    /// The last time when a packet with data or a SYN was somewhere.
    moved_at: Time,
}

impl Watch {
    /// Data or a SYN was on its way after the last delivery: copies, which may come after the end of their connection.
    pub fn has_strays(&self) -> bool {
        self.moved_at > self.delivered_at
    }
}

impl Sink for Watch {
    fn wants(&self) -> Wants {
        Wants::METRICS
    }
    fn event(&mut self, event: &Event) {
        match &event.what {
            What::Tcp(tcp) | What::Split(tcp) => match tcp.kind {
                TcpKind::Corrupted => self.corrupted = true,
                TcpKind::Aborted => self.abandoned = true,
                TcpKind::Timeout => self.timeouts += 1,
                _ => {}
            },
            What::Packet { op, packet, .. } => {
                if let Op::Originated(cause) = op {
                    let again = cause.is_host_retransmission() || cause.is_local_retransmission();
                    self.retransmissions += u32::from(again);
                }
                if packet.is_data() || packet.segment().is_some_and(|s| s.flags.has(Flags::SYN)) {
                    self.moved_at = event.at;
                }
            }
            _ => {}
        }
    }
    fn delivered(&mut self, at: Time, _: StageId, _: FlowKey, _: u32) {
        self.delivered_at = at;
    }
}

/// # Errors
///
/// The sentence `what`, if it does not hold.
pub fn demand(holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what()) }
}

/// An agent of the scenario splits connections.
pub fn splits(scenario: &Scenario) -> bool {
    let split = |stage: &Stage| matches!(stage.kind, StageKind::Agent(AgentConfig::Split(_)));
    let cells = scenario.roaming.iter().flat_map(|roaming| &roaming.cells);
    scenario.path.iter().chain(cells.flat_map(|cell| &cell.path)).any(split)
}

/// Delivered bytes are the sent bytes, every packet is accounted for, and every transfer ends. `waits`: a client may wait
/// for ever, since its server gave up and the path lost the reset.
///
/// # Errors
///
/// A sentence that describes the fault.
pub fn check(end: &RunEnd, watch: &Watch, split: bool, waits: bool) -> Result<(), String> {
    demand(end.reason != Reason::Stuck, || format!("stuck at {}", end.at))?;
    demand(!watch.corrupted, || "a wrong byte was delivered".into())?;
    for (stage, count) in &end.stages {
        demand(count.is_conserved(), || format!("stage {}: {count:?}", stage.0))?;
    }
    for (i, transfer) in end.transfers.iter().enumerate() {
        let demand = |holds, what| demand(holds, || format!("transfer {i}: {what}: {transfer:?}"));
        let wanted = transfer.wanted.map_or(u64::MAX, |bytes| bytes.0);
        demand(transfer.delivered <= wanted, "more than was sent")?;
        // A base station that splits connections acknowledges data before delivery. Data that it cannot deliver ends
        // with a reset at both ends.
        let ahead = transfer.acknowledged > transfer.delivered;
        demand(split || !ahead, "acknowledged but not delivered")?;
        let waits = waits && transfer.wanted.is_none() && end.reason == Reason::Idle;
        demand(
            !ahead || transfer.aborted || waits || end.reason == Reason::Horizon,
            "acknowledged, not delivered, and no reset told",
        )?;
        if transfer.complete && !(split && ahead) {
            demand(transfer.delivered == wanted, "complete but not delivered")?;
            demand(transfer.acknowledged == wanted, "complete but not acknowledged")?;
        }
        let settled = transfer.complete || transfer.aborted || waits;
        demand(settled || end.reason == Reason::Horizon, "neither complete nor given up")?;
    }
    Ok(())
}

/// Nothing is left when nothing more happens: no packet on the way and, unless packets came after the end of their connection
/// (`stray`), no state of an agent. To an agent such a packet is of a connection that opened elsewhere.
///
/// # Errors
///
/// A sentence that names the rest.
pub fn check_rest(stages: &[lasthop_path::Stage], stray: bool) -> Result<(), String> {
    use lasthop_proto::machine::Machine as _;
    for (i, stage) in stages.iter().enumerate() {
        demand(stage.holds() == 0, || format!("stage {i} still holds packets"))?;
        let state = stage.agent().map_or(0, |agent| agent.state_bytes());
        demand(stray || state == 0, || {
            format!("the agent at stage {i} still has {state} bytes of state")
        })?;
    }
    Ok(())
}
