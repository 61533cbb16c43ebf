//! Conditions that every run must fulfil.

use lasthop_observe::Sink;
use lasthop_proto::agent::{AgentConfig, BaseStation as _, Router};
use lasthop_proto::event::{Event, EventKind, Interest, Op, TcpKind};
use lasthop_proto::link::Silence;
use lasthop_proto::machine::StageId;
use lasthop_proto::tcp::GivingUp;
use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::{Flags, FlowKey};
use lasthop_scenario::{Scenario, StageKind};
use lasthop_sim::{Reason, RunEnd, TransferEnd};

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
    /// Whether an end has closed its connection.
    closed: bool,
    /// Time of the last packet event with data or a SYN, or with a FIN after an end has closed.
    moved_at: Time,
}

impl Watch {
    /// Whether data or a SYN was in the network after the last delivery, or a FIN after an end has closed. These are copies, which
    /// may arrive after the end of their connection.
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
                TcpKind::Closed => self.closed = true,
                _ => {}
            },
            EventKind::Packet { op, packet, .. } => {
                if let Op::Originated(cause) = op {
                    let again = cause.is_host_retransmission() || cause.is_local_retransmission();
                    self.retransmissions += u32::from(again);
                }
                let flags = packet.segment().map_or(Flags::default(), |segment| segment.flags);
                let stray = flags.has(Flags::SYN) || self.closed && flags.has(Flags::FIN);
                if packet.is_data() || stray {
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

/// Packets and end of a run without agents, as the reference for the run with agents.
#[derive(Clone, Copy, Debug)]
pub struct Silenced {
    /// Packets that were sent into the silence.
    pub lost: u64,
    /// Packets that hosts and base stations made.
    pub made: u64,
    /// Whether every transfer was complete.
    pub complete: bool,
    /// Whether the run ended before its horizon.
    pub ended: bool,
}

impl Silenced {
    /// Counts the packets of a run, and records how it ended.
    pub fn of(end: &RunEnd, stages: &[lasthop_path::Stage]) -> Silenced {
        Silenced {
            lost: stages.iter().map(lasthop_path::Stage::lost_in_silence).sum(),
            made: end.stages.iter().map(|(_, count)| count.originated).sum(),
            complete: end.transfers.iter().all(|transfer| transfer.complete),
            ended: end.reason != Reason::Horizon,
        }
    }
}

/// Packets that each end of a connection may send before its intervals have grown to a minute.
const BEGINNING: u64 = 64;

/// The agents of the scenario, except plain routers.
pub fn stations(scenario: &Scenario) -> impl Iterator<Item = &AgentConfig> {
    agents(scenario).filter(|agent| !matches!(agent, AgentConfig::None(_)))
}

/// The same scenario with a plain router in place of each agent; `None` if it has no other agents.
pub fn bridged(scenario: &Scenario) -> Option<Scenario> {
    stations(scenario).next()?;
    let mut bridge = scenario.clone();
    let cells = bridge.roaming.iter_mut().flat_map(|roaming| &mut roaming.cells);
    for stage in bridge.path.iter_mut().chain(cells.flat_map(|cell| &mut cell.path)) {
        if let StageKind::Agent(agent) = &mut stage.kind {
            *agent = AgentConfig::None(Router);
        }
    }
    Some(bridge)
}

/// Checks a run in which a host has fallen silent against `bridge`, the same run without agents. Packets are at most twice the
/// bridge's, since a split connection has two senders, and those that an agent repeats by its own timer, each with its ACK. In
/// addition each end of a connection may send one a minute, the maximum interval of retransmissions and window probes
/// (RFC 6298, 2.5), and hosts alone or without a limit of window probes one in 5 s, the minimum interval of 4.4BSD's.
/// The state of agents stays small. Transfers are complete if the bridge's are, and the run ends if the bridge's does.
///
/// # Errors
///
/// A sentence that describes the violation.
pub fn check_silence(
    scenario: &Scenario,
    end: &RunEnd,
    stages: &[lasthop_path::Stage],
    mut silences: impl Iterator<Item = Silence>,
    bridge: Silenced,
) -> Result<(), String> {
    let seen = Silenced::of(end, stages);
    let split = splits(scenario);
    let patient = scenario.hosts.iter().any(|host| host.tcp.giving_up == GivingUp::Count);
    let repeats = stations(scenario).map(AgentConfig::repeats).max();
    let interval = if patient || repeats.is_none() { Span::secs(5) } else { Span::secs(60) };
    let repeats = u64::from(repeats.unwrap_or(0)) * (1 + bridge.lost);
    let ends = if split { 4 } else { 2 } * end.transfers.len() as u64;
    let alone = ends * (BEGINNING + (end.at - Time::ZERO).0 / interval.0);
    let counts = [("sent into silence", seen.lost, bridge.lost), ("made", seen.made, bridge.made)];
    for (what, count, of_bridge) in counts {
        let most = 2 * (of_bridge + repeats) + alone;
        demand(count <= most, || {
            format!("{count} packets were {what}, at most {most} expected, by a bridge {of_bridge}")
        })?;
    }
    let state =
        stages.iter().filter_map(|stage| stage.agent()).map(|agent| agent.peak_state_bytes());
    let state = state.max().unwrap_or(0);
    demand(state <= 1 << 20, || format!("an agent had {state} bytes of state"))?;
    // A window that stays closed delays a FIN without end, also after the last data. A station that splits connections has
    // packet sizes of its own, and limits handshakes to 75 s.
    let own = silences.any(|silence| match silence {
        Silence::Closed => true,
        Silence::Narrow => split,
        _ => false,
    });
    let alike = !patient && !own;
    let unopened =
        |transfer: &TransferEnd| split && transfer.delivered + transfer.acknowledged == 0;
    let complete = seen.complete || end.transfers.iter().any(unopened);
    demand(complete || !bridge.complete || !alike, || "not complete after a silence".into())?;
    demand(seen.ended || !bridge.ended || !alike, || "does not end, unlike a bridge".into())
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
