//! Conditions that every run must fulfil.

use lasthop_observe::Sink;
use lasthop_proto::agent::{AgentConfig, BaseStation as _};
use lasthop_proto::event::{Event, EventKind, Interest, Op, TcpKind};
use lasthop_proto::link::Silence;
use lasthop_proto::machine::StageId;
use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::{Flags, FlowKey};
use lasthop_scenario::{Scenario, StageKind};
use lasthop_sim::{Reason, RunEnd};

use crate::pattern::every_stage;

/// Observes the events of one run: wrong data, aborted connections, retransmissions and timeouts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Watch {
    pub corrupted: bool,
    /// Whether a server has aborted a connection, or a base station in its place.
    pub abandoned: bool,
    /// Time of the last delivery of data to an application.
    pub delivered_at: Time,
    /// Retransmissions of hosts and of the base station.
    pub retransmissions: u32,
    pub timeouts: u32,
    /// Time of the last packet event with data or a SYN.
    moved_at: Time,
}

impl Watch {
    /// Whether data or a SYN was in the network after the last delivery. These are copies, which may arrive after the end of
    /// their connection.
    pub fn has_strays(&self) -> bool {
        self.moved_at > self.delivered_at
    }
}

impl Sink for Watch {
    fn interest(&self) -> Interest {
        Interest::METRICS
    }
    fn event(&mut self, event: &Event) {
        match &event.kind {
            EventKind::Tcp(tcp) | EventKind::Split(tcp) => match tcp.kind {
                TcpKind::Corrupted => self.corrupted = true,
                TcpKind::Aborted => self.abandoned = true,
                TcpKind::Timeout => self.timeouts += 1,
                _ => {}
            },
            EventKind::Packet { op, packet, .. } => {
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

/// Checks a condition.
///
/// # Errors
///
/// The sentence `message`, unless the condition `holds`.
pub fn demand(holds: bool, message: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(message()) }
}

/// Whether an agent of the scenario splits connections.
pub fn splits(scenario: &Scenario) -> bool {
    agents(scenario).any(AgentConfig::splits_connections)
}

fn agents(scenario: &Scenario) -> impl Iterator<Item = &AgentConfig> {
    every_stage(scenario).filter_map(|stage| match &stage.kind {
        StageKind::Agent(agent) => Some(agent),
        _ => None,
    })
}

/// Checks that the delivered bytes are the sent ones, that every packet is accounted for, and that every transfer ends.
/// With `waits` a client may wait forever, since its server has aborted and the path has lost the reset. With `silent` a host
/// does not receive the reset of a base station that could not deliver acknowledged data.
///
/// # Errors
///
/// A sentence that describes the violation.
pub fn check(
    end: &RunEnd,
    watch: &Watch,
    split: bool,
    waits: bool,
    silent: bool,
) -> Result<(), String> {
    demand(end.reason != Reason::Stuck, || format!("stuck at {}", end.at))?;
    demand(!watch.corrupted, || "a wrong byte was delivered".into())?;
    for (stage, count) in &end.stages {
        demand(count.is_conserved(), || format!("stage {}: {count:?}", stage.0))?;
    }
    for (i, transfer) in end.transfers.iter().enumerate() {
        let demand =
            |holds, message| demand(holds, || format!("transfer {i}: {message}: {transfer:?}"));
        let size = transfer.wanted.map_or(u64::MAX, |bytes| bytes.0);
        demand(transfer.delivered <= size, "more than was sent")?;
        // A base station that splits connections acknowledges data before delivery. Data that it cannot deliver ends
        // with a reset at both ends.
        let ahead = transfer.acknowledged > transfer.delivered;
        demand(split || !ahead, "acknowledged but not delivered")?;
        let waits = waits && transfer.wanted.is_none() && end.reason == Reason::Idle;
        demand(
            !ahead || transfer.aborted || waits || silent || end.reason == Reason::Horizon,
            "acknowledged, not delivered, and no reset reported",
        )?;
        if transfer.complete && !(split && ahead) {
            demand(transfer.delivered == size, "complete but not delivered")?;
            demand(transfer.acknowledged == size, "complete but not acknowledged")?;
        }
        let settled = transfer.complete || transfer.aborted || waits;
        demand(settled || end.reason == Reason::Horizon, "neither complete nor given up")?;
    }
    Ok(())
}

/// Limit of packets that a run may send into a silence of any length: the packets that were in flight, and
/// retransmissions with growing intervals of both ends and a base station between them. M-TCP begins with short
/// intervals again at each packet of a host that receives none: up to 226 packets in the scenario `explore`. Agents that
/// repeat packets at equal intervals, as published, may send their limit after each timeout of the sender in addition.
const INTO_SILENCE: u64 = 250;

/// Limit of packets of a whole run in which windows stay closed: probes with growing intervals.
const PROBES: u64 = 1000;

/// Checks a run in which a host has fallen silent: few packets are sent into the silence, the state of agents stays
/// small, and the transfer is complete after a silence of at most 30 s.
///
/// # Errors
///
/// A sentence that describes the violation.
pub fn check_silence(
    scenario: &Scenario,
    end: &RunEnd,
    (stages, watch): (&[lasthop_path::Stage], &Watch),
    silence: Silence,
) -> Result<(), String> {
    let lost: u64 = stages.iter().map(lasthop_path::Stage::lost_in_silence).sum();
    let local = agents(scenario).map(AgentConfig::local_retransmissions).max().unwrap_or(0);
    let repeated = u64::from(local) * u64::from(1 + watch.timeouts);
    let limit = INTO_SILENCE + repeated;
    demand(lost <= limit, || format!("{lost} packets were sent into silence, not {limit}"))?;
    let made: u64 = end.stages.iter().map(|(_, count)| count.originated).sum();
    demand(made <= PROBES + repeated, || format!("{made} packets were made"))?;
    let state =
        stages.iter().filter_map(|stage| stage.agent()).map(|agent| agent.peak_state_bytes());
    let state = state.max().unwrap_or(0);
    demand(state <= 1 << 20, || format!("an agent had {state} bytes of state"))?;
    let short = silence.span().is_some_and(|span| span <= Span::secs(30));
    let complete = end.transfers.iter().all(|transfer| transfer.complete);
    demand(!short || complete, || "not complete after a short silence".into())
}

/// Checks that nothing remains after the last event: no packet at any stage, and no state of an agent. With `stray` an agent
/// may have state: packets may have arrived after the end of their connection, and to an agent such a packet belongs to a
/// connection whose opening it has not seen.
///
/// # Errors
///
/// A sentence that names what remains.
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
