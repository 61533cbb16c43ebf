//! From a scenario to machines.

use std::sync::Arc;

use lasthop_proto::agent::Agent;
use lasthop_proto::channel::Channel;
use lasthop_proto::link::{Cross, Line, Radio};
use lasthop_proto::machine::{Machine, Out, Side, Signal};
use lasthop_proto::rng::Stream;
use lasthop_proto::tcp::connection::agreed_mss;
use lasthop_proto::tcp::host::flow_of;
use lasthop_proto::tcp::{Host, HostConfig};
use lasthop_proto::units::Time;
use lasthop_proto::wire::Packet;
use lasthop_scenario::{ErrorSpec, HostSide, Scenario, Stage, StageKind};
use lasthop_trace::layout::{FlowInfo, Layout, Role, StageInfo};

/// Port of the discard service (RFC 863), which the transfers are sent to.
const DISCARD: u16 = 9;

/// A stage of the path. One match instead of a table of function pointers: the compiler sees through it.
pub(crate) enum Mid {
    Line(Line),
    Radio(Radio),
    Agent(Box<Agent>),
    Cross(Cross),
}

macro_rules! each {
    ($self:ident, $m:ident => $call:expr) => {
        match $self {
            Mid::Line($m) => $call,
            Mid::Radio($m) => $call,
            Mid::Agent($m) => $call,
            Mid::Cross($m) => $call,
        }
    };
}

impl Machine for Mid {
    fn on_packet(&mut self, now: Time, from: Side, packet: Packet, out: &mut Out) {
        each!(self, m => m.on_packet(now, from, packet, out));
    }
    fn on_wake(&mut self, now: Time, out: &mut Out) {
        each!(self, m => m.on_wake(now, out));
    }
    fn next_wake(&self) -> Option<Time> {
        each!(self, m => m.next_wake())
    }
    fn on_signal(&mut self, now: Time, from: Side, signal: Signal, out: &mut Out) {
        each!(self, m => m.on_signal(now, from, signal, out));
    }
    fn holds(&self) -> usize {
        each!(self, m => m.holds())
    }
}

impl Mid {
    /// Whether a packet that leaves this stage has made a hop.
    pub(crate) fn is_hop(&self) -> bool {
        matches!(self, Mid::Line(_) | Mid::Radio(_))
    }
}

pub(crate) fn stage(stage: &Stage, seed: u64) -> Mid {
    let stream = |part: &str| Stream::new(seed, &format!("{}.{part}", stage.name));
    let channel = |errors: &Option<ErrorSpec>, part: &str| {
        errors.as_ref().map(|spec| Channel::new(&spec.model, stream(part)))
    };
    match &stage.kind {
        StageKind::Link(config) => Mid::Line(Line::new(config.clone())),
        StageKind::Radio(radio) => Mid::Radio(Radio::new(
            radio.radio.clone(),
            channel(&radio.errors_left, "errors.left"),
            channel(&radio.errors_right, "errors.right"),
        )),
        StageKind::Agent(config) => Mid::Agent(Box::new(Agent::new(config))),
        StageKind::Cross(config) => Mid::Cross(Cross::new(*config, stream("cross"))),
    }
}

/// The hosts of one end, in the order of the scenario, with their transfers scheduled; and for each transfer
/// that starts here the host and its connection's index.
pub(crate) struct End {
    pub(crate) hosts: Vec<Host>,
    /// Scenario index of each host.
    pub(crate) indices: Vec<usize>,
}

pub(crate) fn ends(scenario: &Scenario, seed: u64) -> [End; 2] {
    [HostSide::Left, HostSide::Right].map(|side| {
        let mut end = End { hosts: Vec::new(), indices: Vec::new() };
        for (i, host) in scenario.hosts.iter().enumerate().filter(|(_, h)| h.side == side) {
            let toward = match side {
                HostSide::Left => Side::Right,
                HostSide::Right => Side::Left,
            };
            let config = HostConfig {
                name: host.name.clone(),
                addr: host.addr,
                side: toward,
                tcp: Arc::new(host.tcp.clone()),
            };
            let mut machine = Host::new(config, seed);
            let mut stream = 0;
            for transfer in &scenario.transfers {
                for _ in 0..transfer.count {
                    stream += 1;
                    if transfer.from == i {
                        let to = scenario.hosts[transfer.to].addr;
                        let at = Time::ZERO + transfer.start;
                        machine.open(to, DISCARD, at, transfer.bytes, stream);
                    }
                }
            }
            end.hosts.push(machine);
            end.indices.push(i);
        }
        end
    })
}

/// What stands where: the stages as events number them, left hosts first, then the path, then the right
/// hosts; and the flows that carry data.
pub fn layout(scenario: &Scenario) -> Layout {
    let hosts = |side| {
        let those = scenario.hosts.iter().filter(move |h| h.side == side);
        those.map(|h| StageInfo { name: h.name.clone(), role: Role::Host })
    };
    let path = scenario.path.iter().map(|stage| {
        let role = match stage.kind {
            StageKind::Link(_) => Role::Link,
            StageKind::Radio(_) => Role::Radio,
            StageKind::Agent(_) => Role::Agent,
            StageKind::Cross(_) => Role::Cross,
        };
        StageInfo { name: stage.name.clone(), role }
    });
    let stages = hosts(HostSide::Left).chain(path).chain(hosts(HostSide::Right)).collect();
    let mut opened = vec![0; scenario.hosts.len()];
    let mut flows = Vec::new();
    for transfer in &scenario.transfers {
        for _ in 0..transfer.count {
            let (from, to) = (&scenario.hosts[transfer.from], &scenario.hosts[transfer.to]);
            let nth = &mut opened[transfer.from];
            flows.push(FlowInfo {
                key: flow_of(from.addr, to.addr, DISCARD, *nth),
                towards: match from.side {
                    HostSide::Left => Side::Right,
                    HostSide::Right => Side::Left,
                },
                bytes: transfer.bytes.map(|b| b.0),
                mss: Some(agreed_mss(&from.tcp, &to.tcp)),
            });
            *nth += 1;
        }
    }
    Layout { stages, flows }
}
