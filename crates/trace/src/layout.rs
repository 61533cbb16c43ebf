//! What a sink must know of the path beside the events: which stage is what, and which flows carry data.
//!
//! The world that runs a scenario builds this once. Flows that it does not name are still measured; they are
//! found by their first packet.

use core::ops::Range;

use lasthop_proto::energy::{Antenna, Hardware};
use lasthop_proto::machine::{Side, StageId};
use lasthop_proto::tcp::traffic::Exchange;
use lasthop_proto::udp::Voice;
use lasthop_proto::wire::{Addr, FlowKey};
use serde::{Deserialize, Serialize};

/// What a stage is, as far as counting goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// One or more TCP end points.
    Host,
    /// A wired line.
    Link,
    /// A base-station agent.
    Agent,
    /// A radio hop.
    Radio,
    /// A router shared with other traffic.
    Cross,
    /// The router before cells.
    Router,
    /// The base station of a cell.
    Base,
    /// A host's own link to the path.
    Access,
}

impl Role {
    /// Whether packets are transmitted here.
    pub fn is_link(self) -> bool {
        matches!(self, Role::Link | Role::Radio)
    }
}

/// One stage of the run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct StageInfo {
    /// Name in the scenario.
    pub name: String,
    /// What it is.
    pub role: Role,
}

/// One flow that will carry data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlowInfo {
    /// The flow in the direction of its data.
    pub key: FlowKey,
    /// The direction of its data along the path.
    pub towards: Side,
    /// Bytes to transfer; `None` sends until the run ends.
    pub bytes: Option<u64>,
    /// Payload of a full segment in bytes, TCP options taken off, between the two hosts; `None` takes the largest
    /// payload seen, of QUIC that of UDP.
    pub mss: Option<u32>,
    /// The same on the wired links and on the radio hop, once a base station has split the connection.
    pub split_mss: Option<[u32; 2]>,
    /// Whether it is other people's traffic.
    pub cross: bool,
}

/// Between these, flows that the layout does not name are short transfers: too many to be told one by one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShortInfo {
    /// The sender.
    pub from: Addr,
    /// The receiver.
    pub to: Addr,
    /// Whether they are other people's traffic.
    pub cross: bool,
}

/// Clients that ask a server. Their connections are told together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExchangeInfo {
    /// Who asks.
    pub from: Addr,
    /// Who answers.
    pub to: Addr,
    /// The first port of the server.
    pub port: u16,
    /// Whether they are other people's traffic.
    pub cross: bool,
}

impl ExchangeInfo {
    /// Whether requests travel on this flow.
    pub fn asks_on(&self, flow: &FlowKey) -> bool {
        (flow.src, flow.dst) == (self.from, self.to) && Exchange::is_at(self.port, flow.dst_port)
    }
}

/// Sources of datagrams, which are told together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DatagramInfo {
    /// Who sends.
    pub from: Addr,
    /// Who receives.
    pub to: Addr,
    /// The port of the receiver.
    pub port: u16,
    /// Whether they are other people's traffic.
    pub cross: bool,
    /// The call that each source is, if it is one.
    pub voice: Option<Voice>,
    /// Whether they come back, so that the times are those to and fro.
    pub probe: bool,
}

/// A host that runs on a battery.
#[derive(Clone, PartialEq, Debug)]
pub struct PoweredInfo {
    /// Its stage.
    pub host: StageId,
    /// Its address: what it sends is known by it where it is delivered.
    pub addr: Addr,
    /// The radio hop that it hangs on, and its radio there; `None` if its link is a wire.
    pub radio: Option<(StageId, Antenna)>,
    /// What it is made of.
    pub hardware: Hardware,
}

/// The path and its flows.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Layout {
    /// Stages by [`StageId`], left to right, hosts included; behind them the hosts' own links to the path.
    pub stages: Vec<StageInfo>,
    /// The stages of each cell, if hosts move: the path branches before them.
    pub cells: Vec<Range<usize>>,
    /// Flows in the order of the scenario.
    pub flows: Vec<FlowInfo>,
    /// Between whom short transfers are made.
    pub short: Vec<ShortInfo>,
    /// Who asks whom.
    pub exchanges: Vec<ExchangeInfo>,
    /// Who sends datagrams to whom.
    pub datagrams: Vec<DatagramInfo>,
    /// The hosts that run on batteries, in the order of the scenario.
    pub powered: Vec<PoweredInfo>,
}

impl Layout {
    /// The stages that data towards `side` crosses in cell number `cell`, in the order it crosses them. Without cells
    /// there is one way, number 0.
    pub fn along(
        &self,
        cell: usize,
        side: Side,
    ) -> impl DoubleEndedIterator<Item = (StageId, &StageInfo)> {
        let count = self.stages.len();
        let own = self.cells.get(cell).cloned().unwrap_or(0..0);
        let all = match (self.cells.first(), self.cells.last()) {
            (Some(first), Some(last)) => first.start..last.end,
            _ => 0..0,
        };
        (0..count)
            .map(move |i| if side == Side::Right { i } else { count - 1 - i })
            .filter(move |i| own.contains(i) || !all.contains(i))
            .map(|i| (StageId(i as u16), &self.stages[i]))
    }

    /// The first stage towards `side` that transmits.
    pub fn first_link(&self, cell: usize, side: Side) -> Option<StageId> {
        self.along(cell, side).find(|(_, stage)| stage.role.is_link()).map(|(id, _)| id)
    }

    /// The last stage towards `side` that transmits.
    pub fn last_link(&self, cell: usize, side: Side) -> Option<StageId> {
        self.along(cell, side).rfind(|(_, stage)| stage.role.is_link()).map(|(id, _)| id)
    }

    /// The first stage towards `side` that is a `role`.
    pub fn first(&self, cell: usize, side: Side, role: Role) -> Option<StageId> {
        self.along(cell, side).find(|(_, stage)| stage.role == role).map(|(id, _)| id)
    }

    /// The name of `stage`; empty when the layout does not know it.
    pub fn name(&self, stage: StageId) -> &str {
        self.stages.get(usize::from(stage.0)).map_or("", |info| &info.name)
    }
}

/// A flow as one word without commas, for tables and files: `10.0.0.1:1024>10.0.1.1:9`.
pub fn flow_name(flow: &FlowKey) -> String {
    let end = |addr: Addr, port: u16| std::net::SocketAddr::new(addr.ip(), port).to_string();
    format!("{}>{}", end(flow.src, flow.src_port), end(flow.dst, flow.dst_port))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout() -> Layout {
        let roles =
            [Role::Host, Role::Link, Role::Agent, Role::Radio, Role::Host].into_iter().enumerate();
        let stages = roles.map(|(i, role)| StageInfo { name: format!("s{i}"), role }).collect();
        Layout { stages, ..Layout::default() }
    }

    #[test]
    fn links_are_found_in_the_direction_of_travel() {
        let layout = layout();
        assert_eq!(layout.first_link(0, Side::Right), Some(StageId(1)));
        assert_eq!(layout.last_link(0, Side::Right), Some(StageId(3)));
        assert_eq!(layout.first_link(0, Side::Left), Some(StageId(3)));
        assert_eq!(layout.first(0, Side::Left, Role::Link), Some(StageId(1)));
        assert_eq!(layout.name(StageId(3)), "s3");
        assert_eq!(layout.name(StageId(9)), "");
    }

    #[test]
    fn a_flow_has_one_name() {
        let v6: std::net::IpAddr = "fd00::7".parse().unwrap();
        let flow = FlowKey { src: Addr::v4(10, 0, 0, 1), dst: v6.into(), src_port: 1, dst_port: 9 };
        assert_eq!(flow_name(&flow), "10.0.0.1:1>[fd00::7]:9");
    }
}
