//! From a scenario to machines.

use std::sync::Arc;

use lasthop_proto::agent::{Agent, AgentConfig};
use lasthop_proto::channel::Channel;
use lasthop_proto::link::{Cross, Line, Radio};
use lasthop_proto::machine::{Machine, Out, Side, Signal};
use lasthop_proto::rng::Stream;
use lasthop_proto::tcp::connection::agreed_mss;
use lasthop_proto::tcp::host::flow_of;
use lasthop_proto::tcp::{Host, HostConfig, TcpConfig};
use lasthop_proto::units::Time;
use lasthop_proto::wire::{Addr, Packet};
use lasthop_scenario::{ErrorSpec, HostSide, Scenario, StageKind, model};
use lasthop_trace::layout::{FlowInfo, Layout, Role, StageInfo};

/// Port of the discard service (RFC 863), which the transfers are sent to.
const DISCARD: u16 = 9;

/// A stage of the run. One match instead of a table of function pointers: the compiler sees through it.
pub(crate) enum Stage {
    Host(Box<Host>),
    Line(Line),
    Radio(Radio),
    Agent(Box<Agent>),
    Cross(Cross),
}

macro_rules! each {
    ($self:ident, $m:ident => $call:expr) => {
        match $self {
            Stage::Host($m) => $call,
            Stage::Line($m) => $call,
            Stage::Radio($m) => $call,
            Stage::Agent($m) => $call,
            Stage::Cross($m) => $call,
        }
    };
}

impl Machine for Stage {
    #[inline]
    fn on_packet(&mut self, now: Time, from: Side, packet: Packet, out: &mut Out) {
        each!(self, m => m.on_packet(now, from, packet, out));
    }
    #[inline]
    fn on_wake(&mut self, now: Time, out: &mut Out) {
        each!(self, m => m.on_wake(now, out));
    }
    #[inline]
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

impl Stage {
    pub(crate) fn host(&self) -> Option<&Host> {
        match self {
            Stage::Host(host) => Some(host),
            _ => None,
        }
    }

    #[inline]
    pub(crate) fn is_host(&self, addr: Addr) -> bool {
        self.host().is_some_and(|host| host.addr() == addr)
    }

    #[inline]
    pub(crate) fn unfinished(&self) -> usize {
        self.host().map_or(0, Host::unfinished)
    }

    fn of_path(stage: &model::Stage, seed: u64) -> Stage {
        let stream = |part: &str| Stream::new(seed, &format!("{}.{part}", stage.name));
        let channel = |errors: &Option<ErrorSpec>, part: &str| {
            errors.as_ref().map(|spec| Channel::new(&spec.model, stream(part)))
        };
        match &stage.kind {
            StageKind::Link(config) => Stage::Line(Line::new(config.clone())),
            StageKind::Radio(radio) => Stage::Radio(Radio::new(
                radio.radio.clone(),
                channel(&radio.errors_left, "errors.left"),
                channel(&radio.errors_right, "errors.right"),
            )),
            StageKind::Agent(config) => Stage::Agent(Box::new(Agent::new(config))),
            StageKind::Cross(config) => Stage::Cross(Cross::new(*config, stream("cross"))),
        }
    }
}

/// All stages of a run: left hosts, the path, right hosts.
pub(crate) struct Built {
    pub(crate) stages: Vec<Stage>,
    /// Index of the first path stage, and of the first right host.
    pub(crate) first: usize,
    pub(crate) last: usize,
    /// The stage of each host of the scenario.
    pub(crate) host_stages: Vec<usize>,
}

impl Built {
    pub(crate) fn new(scenario: &Scenario, seed: u64) -> Built {
        let mut built = Built {
            stages: Vec::new(),
            first: 0,
            last: 0,
            host_stages: vec![0; scenario.hosts.len()],
        };
        built.add_hosts(scenario, seed, HostSide::Left);
        built.first = built.stages.len();
        built.stages.extend(scenario.path.iter().map(|s| Stage::of_path(s, seed)));
        built.last = built.stages.len();
        built.add_hosts(scenario, seed, HostSide::Right);
        built
    }

    /// Adds the hosts of one end with their transfers scheduled.
    fn add_hosts(&mut self, scenario: &Scenario, seed: u64, side: HostSide) {
        for (i, host) in scenario.hosts.iter().enumerate().filter(|(_, h)| h.side == side) {
            let config = HostConfig {
                name: host.name.clone(),
                addr: host.addr,
                side: match side {
                    HostSide::Left => Side::Right,
                    HostSide::Right => Side::Left,
                },
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
            self.host_stages[i] = self.stages.len();
            self.stages.push(Stage::Host(Box::new(machine)));
        }
    }
}

/// Where base stations split connections: the stage, and their TCP towards the left and towards the right.
fn ends(scenario: &Scenario) -> impl Iterator<Item = (usize, [&TcpConfig; 2])> {
    scenario.path.iter().enumerate().filter_map(|(i, stage)| match &stage.kind {
        StageKind::Agent(AgentConfig::Split(split)) => Some((i, [&split.wired, &split.wireless])),
        _ => None,
    })
}

/// What a full segment carries on the first radio hop that the data crosses, or on the first wired link: what
/// the TCPs on both sides of it agree on.
fn mss(scenario: &Scenario, transfer: &model::Transfer, radio: bool) -> u32 {
    let (from, to) = (&scenario.hosts[transfer.from], &scenario.hosts[transfer.to]);
    let (left, right) = match from.side {
        HostSide::Left => (&from.tcp, &to.tcp),
        HostSide::Right => (&to.tcp, &from.tcp),
    };
    let here = |stage: &model::Stage| match stage.kind {
        StageKind::Radio(_) => radio,
        StageKind::Link(_) => !radio,
        _ => false,
    };
    let link = match from.side {
        HostSide::Left => scenario.path.iter().position(here),
        HostSide::Right => scenario.path.iter().rposition(here),
    };
    let Some(link) = link else { return agreed_mss(left, right) };
    let before = ends(scenario).take_while(|(i, _)| *i < link).last();
    let behind = ends(scenario).find(|(i, _)| *i > link);
    agreed_mss(before.map_or(left, |(_, ends)| ends[1]), behind.map_or(right, |(_, ends)| ends[0]))
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
    let splits = ends(scenario).next().is_some();
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
                mss: Some(mss(scenario, transfer, false)),
                wireless_mss: splits.then(|| mss(scenario, transfer, true)),
            });
            *nth += 1;
        }
    }
    Layout { stages, flows }
}
