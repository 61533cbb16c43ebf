//! Additional input of sinks: the stages of the path, and the flows that carry data.
//!
//! The world that runs a scenario builds it once. Flows that it does not name are still measured from their
//! first packet on.

use core::ops::Range;

use lasthop_proto::energy::{Antenna, Hardware};
use lasthop_proto::machine::{Side, StageId};
use lasthop_proto::tcp::traffic::Exchange;
use lasthop_proto::udp::Voice;
use lasthop_proto::wire::{Addr, FlowKey};
use serde::{Deserialize, Serialize};

/// Role of a stage for the counters.
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
    /// A router shared with cross traffic.
    Cross,
    /// The router in front of cells.
    Router,
    /// The base station of a cell.
    Base,
    /// A host's own link to the path.
    Access,
}

impl Role {
    /// Whether packets are transmitted in this role.
    pub fn is_link(self) -> bool {
        matches!(self, Role::Link | Role::Radio)
    }
}

/// One stage of the run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct StageInfo {
    /// Name in the scenario.
    pub name: String,
    /// Its role.
    pub role: Role,
}

/// A flow that will carry data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlowInfo {
    /// The flow in the direction of its data.
    pub key: FlowKey,
    /// The direction of its data along the path.
    pub towards: Side,
    /// Bytes to transfer; `None` sends until the run ends.
    pub bytes: Option<u64>,
    /// Payload of a full segment without TCP options between the two hosts, bytes. `None` means the largest
    /// payload seen; for QUIC that of UDP.
    pub mss: Option<u32>,
    /// As `mss`, on the wired links and on the radio hop, after a base station has split the connection.
    pub split_mss: Option<[u32; 2]>,
    /// Whether it is cross traffic.
    pub cross: bool,
}

/// Hosts whose flows are short transfers unless the layout names them. There are too many for single reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShortInfo {
    /// The sender.
    pub from: Addr,
    /// The receiver.
    pub to: Addr,
    /// Whether they are cross traffic.
    pub cross: bool,
}

/// Clients that send requests to a server. Their connections are reported as one group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExchangeInfo {
    /// The client.
    pub from: Addr,
    /// The server.
    pub to: Addr,
    /// First port of the server.
    pub port: u16,
    /// Whether they are cross traffic.
    pub cross: bool,
}

impl ExchangeInfo {
    /// Whether `flow` carries requests.
    pub fn has_requests_on(&self, flow: &FlowKey) -> bool {
        (flow.src, flow.dst) == (self.from, self.to) && Exchange::is_at(self.port, flow.dst_port)
    }
}

/// Sources of datagrams, which are reported as one group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DatagramInfo {
    /// The sender.
    pub from: Addr,
    /// The receiver.
    pub to: Addr,
    /// Port of the receiver.
    pub port: u16,
    /// Whether they are cross traffic.
    pub cross: bool,
    /// The call of each source, if it is one.
    pub voice: Option<Voice>,
    /// Whether the receiver returns them, so that delays are round-trip times.
    pub probe: bool,
}

/// A battery-powered host.
#[derive(Clone, PartialEq, Debug)]
pub struct PoweredInfo {
    /// Its stage.
    pub host: StageId,
    /// Its address, which identifies its data at the receiver.
    pub addr: Addr,
    /// Its radio hop with its antenna there; `None` for a wired host.
    pub radio: Option<(StageId, Antenna)>,
    /// Its hardware.
    pub hardware: Hardware,
}

/// The path and its flows.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Layout {
    /// Stages by [`StageId`], left to right with hosts; then the access links of hosts.
    pub stages: Vec<StageInfo>,
    /// The stages of each cell, if hosts move: the path branches in front of them.
    pub cells: Vec<Range<usize>>,
    /// Flows in the order of the scenario.
    pub flows: Vec<FlowInfo>,
    /// Pairs of hosts with short transfers.
    pub short: Vec<ShortInfo>,
    /// Clients and servers with exchanges.
    pub exchanges: Vec<ExchangeInfo>,
    /// Sources and receivers of datagrams.
    pub datagrams: Vec<DatagramInfo>,
    /// The battery-powered hosts, in the order of the scenario.
    pub powered: Vec<PoweredInfo>,
}

impl Layout {
    /// The stages that data towards `side` crosses in cell number `cell`, in order. Without cells the only
    /// number is 0.
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

    /// The first transmitting stage towards `side`.
    pub fn first_link(&self, cell: usize, side: Side) -> Option<StageId> {
        self.along(cell, side).find(|(_, stage)| stage.role.is_link()).map(|(id, _)| id)
    }

    /// The last transmitting stage towards `side`.
    pub fn last_link(&self, cell: usize, side: Side) -> Option<StageId> {
        self.along(cell, side).rfind(|(_, stage)| stage.role.is_link()).map(|(id, _)| id)
    }

    /// The first stage towards `side` with this role.
    pub fn first(&self, cell: usize, side: Side, role: Role) -> Option<StageId> {
        self.along(cell, side).find(|(_, stage)| stage.role == role).map(|(id, _)| id)
    }

    /// The name of `stage`; empty for an unknown one.
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
    fn a_flow_name_shows_addresses_and_ports() {
        let v6: std::net::IpAddr = "fd00::7".parse().unwrap();
        let flow = FlowKey { src: Addr::v4(10, 0, 0, 1), dst: v6.into(), src_port: 1, dst_port: 9 };
        assert_eq!(flow_name(&flow), "10.0.0.1:1>[fd00::7]:9");
    }
}
