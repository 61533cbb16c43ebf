//! From a scenario to machines.

use std::sync::Arc;

use lasthop_proto::agent::Agent;
use lasthop_proto::channel::Channel;
use lasthop_proto::link::{Cross, Line, Radio};
use lasthop_proto::machine::{Machine, Out, Side, Signal, StageId};
use lasthop_proto::rng::Stream;
use lasthop_proto::tcp::{Host, HostConfig};
use lasthop_proto::units::Time;
use lasthop_proto::wire::Packet;
use lasthop_scenario::{ErrorSpec, HostSide, Scenario, Stage, StageKind};

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

/// What stands where: the stage ids that events carry, with their names, from left to right. Left hosts come
/// first, then the path, then the right hosts.
pub fn layout(scenario: &Scenario) -> Vec<(StageId, String)> {
    let hosts = |side| {
        scenario.hosts.iter().filter(move |h| h.side == side).map(|h| h.name.clone())
    };
    hosts(HostSide::Left)
        .chain(scenario.path.iter().map(|s| s.name.clone()))
        .chain(hosts(HostSide::Right))
        .enumerate()
        .map(|(i, name)| (StageId(i as u16), name))
        .collect()
}
