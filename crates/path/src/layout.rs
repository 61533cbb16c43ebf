//! The layout of stages and flows, for readers of events.

use core::ops::Range;

use lasthop_observe::layout::{
    DatagramInfo, ExchangeInfo, FlowInfo, Layout, PoweredInfo, Role, ShortInfo, StageInfo,
};
use lasthop_proto::agent::AgentConfig;
use lasthop_proto::air::Station;
use lasthop_proto::energy::{Antenna, ReportTime};
use lasthop_proto::hop::HopConfig;
use lasthop_proto::link::RadioConfig;
use lasthop_proto::mac::MacConfig;
use lasthop_proto::machine::{Side, StageId};
use lasthop_proto::tcp::TcpConfig;
use lasthop_proto::tcp::connection::agreed_mss;
use lasthop_proto::tcp::host::flow_of;
use lasthop_proto::tcp::traffic::Exchange;
use lasthop_proto::udp::Udp;
use lasthop_proto::units::Span;
use lasthop_scenario::model::RadioStage;
use lasthop_scenario::{HostSide, Scenario, StageKind, Traffic, model};

use crate::DISCARD;

/// The stages from the left hosts to the right ones; with cells, those of the first cell.
fn line(scenario: &Scenario) -> Vec<&model::Stage> {
    scenario.line(0).collect()
}

/// Split connections at base stations: the stage, and its TCP towards the left and the right.
fn ends(scenario: &Scenario) -> impl Iterator<Item = (usize, [&TcpConfig; 2])> {
    scenario.line(0).enumerate().filter_map(|(i, stage)| match &stage.kind {
        StageKind::Agent(AgentConfig::Split(split)) => Some((i, [&split.wired, &split.wireless])),
        _ => None,
    })
}

/// The largest MSS that base stations among these stages allow in SYNs.
fn clamp(scenario: &Scenario, stages: Range<usize>, v4: bool) -> u32 {
    let line = line(scenario);
    let sizes = line[stages].iter().filter_map(|stage| match &stage.kind {
        StageKind::Agent(AgentConfig::GoodPacketSize(sizes)) => Some(sizes.mss(v4).into()),
        _ => None,
    });
    sizes.min().unwrap_or(u32::MAX)
}

/// Payload of a full segment of `transfer` between its hosts without a split connection.
fn mss(scenario: &Scenario, transfer: &model::Transfer) -> u32 {
    agreed(scenario, transfer, 0..scenario.line(0).count(), ends_of(scenario, transfer))
}

/// The MSS of the TCPs at both ends of `stretch`.
fn agreed(
    scenario: &Scenario,
    transfer: &model::Transfer,
    stretch: Range<usize>,
    [left, right]: [&TcpConfig; 2],
) -> u32 {
    let mut left = left.clone();
    left.mss = left.mss.min(clamp(scenario, stretch, scenario.hosts[transfer.from].addr.is_v4()));
    agreed_mss(&left, right)
}

/// The TCPs of the hosts, left and right.
fn ends_of<'a>(scenario: &'a Scenario, transfer: &model::Transfer) -> [&'a TcpConfig; 2] {
    let (from, to) = (&scenario.hosts[transfer.from], &scenario.hosts[transfer.to]);
    match from.side {
        HostSide::Left => [&from.tcp, &to.tcp],
        HostSide::Right => [&to.tcp, &from.tcp],
    }
}

/// Payload of a full segment on the first radio hop of the data, or on the first wired link, if base stations split the
/// connection.
fn split_mss(scenario: &Scenario, transfer: &model::Transfer, radio: bool) -> u32 {
    let here = |stage: &&model::Stage| match stage.kind {
        StageKind::Radio(_) => radio,
        _ if stage.kind.line().is_some() => !radio,
        _ => false,
    };
    let line = line(scenario);
    let link = match scenario.hosts[transfer.from].side {
        HostSide::Left => line.iter().position(here),
        HostSide::Right => line.iter().rposition(here),
    };
    let Some(link) = link else { return mss(scenario, transfer) };
    let [left, right] = ends_of(scenario, transfer);
    let before = ends(scenario).take_while(|(i, _)| *i < link).last();
    let behind = ends(scenario).find(|(i, _)| *i > link);
    let stretch = before.map_or(0, |(i, _)| i)..behind.map_or(line.len(), |(i, _)| i);
    let (left, right) =
        (before.map_or(left, |(_, ends)| ends[1]), behind.map_or(right, |(_, ends)| ends[0]));
    agreed(scenario, transfer, stretch, [left, right])
}

/// The stage of host number `host` of `scenario`.
pub fn host_stage(scenario: &Scenario, host: usize) -> StageId {
    let side = scenario.hosts.get(host).map(|h| h.side);
    let before = scenario.hosts.iter().take(host).filter(|h| Some(h.side) == side).count();
    let left = scenario.hosts.iter().filter(|h| h.side == HostSide::Left).count();
    let cells = scenario.roaming.iter().flat_map(|roaming| &roaming.cells);
    // The router, and the base station of each cell.
    let behind = cells.map(|cell| cell.path.len() + 1).sum::<usize>();
    let behind = behind + usize::from(scenario.roaming.is_some());
    let first = if side == Some(HostSide::Left) { 0 } else { left + scenario.path.len() + behind };
    StageId((first + before) as u16)
}

/// The stages in the order of events: left hosts, path, right hosts; and the flows with data.
pub fn layout(scenario: &Scenario) -> Layout {
    let hosts = |side| {
        let those = scenario.hosts.iter().filter(move |h| h.side == side);
        those.map(|h| StageInfo { name: h.name.clone(), role: Role::Host })
    };
    let mut stages: Vec<StageInfo> = hosts(HostSide::Left).collect();
    stages.extend(scenario.path.iter().map(info));
    let mut cells = Vec::new();
    if let Some(roaming) = &scenario.roaming {
        stages.push(StageInfo { name: "router".to_owned(), role: Role::Router });
        for cell in &roaming.cells {
            let (wired, radio) = cell.path.split_at(cell.base);
            let start = stages.len();
            stages.extend(wired.iter().map(info));
            stages.push(StageInfo { name: cell.name.clone(), role: Role::Base });
            stages.extend(radio.iter().map(info));
            cells.push(start..stages.len());
        }
    }
    stages.extend(hosts(HostSide::Right));
    stages.extend(
        scenario
            .hosts
            .iter()
            .filter(|host| host.access.is_some())
            .map(|host| StageInfo { name: format!("{}-access", host.name), role: Role::Access }),
    );
    let mut opened = vec![0; scenario.hosts.len()];
    let splits = ends(scenario).next().is_some();
    let mut flows = Vec::new();
    for transfer in &scenario.transfers {
        for _ in 0..transfer.connections() {
            let (from, to) = (&scenario.hosts[transfer.from], &scenario.hosts[transfer.to]);
            let nth = &mut opened[transfer.from];
            let by_tcp = transfer.quic.is_none();
            flows.push(FlowInfo {
                key: flow_of(from.addr, to.addr, DISCARD, *nth),
                towards: match from.side {
                    HostSide::Left => Side::Right,
                    HostSide::Right => Side::Left,
                },
                bytes: transfer.bytes.map(|b| b.0),
                mss: by_tcp.then(|| mss(scenario, transfer)),
                split_mss: (splits && by_tcp)
                    .then(|| [false, true].map(|radio| split_mss(scenario, transfer, radio))),
                cross: transfer.cross,
            });
            *nth += 1;
        }
    }
    let short = scenario.transfers.iter().filter_map(|transfer| {
        let ends = [transfer.from, transfer.to].map(|i| scenario.hosts[i].addr);
        matches!(transfer.traffic, Traffic::Web(_)).then_some(ShortInfo {
            from: ends[0],
            to: ends[1],
            cross: transfer.cross,
        })
    });
    let exchanges = scenario.exchanges().enumerate().map(|(nth, transfer)| ExchangeInfo {
        from: scenario.hosts[transfer.from].addr,
        to: scenario.hosts[transfer.to].addr,
        port: Exchange::port(nth),
        cross: transfer.cross,
    });
    let datagrams = scenario.datagrams().enumerate().map(|(nth, (transfer, udp))| DatagramInfo {
        from: scenario.hosts[transfer.from].addr,
        to: scenario.hosts[transfer.to].addr,
        port: Udp::port(nth),
        cross: transfer.cross,
        voice: udp.voice,
        probe: udp.probe.is_some(),
    });
    let powered = scenario.hosts.iter().enumerate().filter_map(|(i, host)| {
        Some(PoweredInfo {
            host: host_stage(scenario, i),
            addr: host.addr,
            radio: antenna(scenario, host),
            hardware: host.battery.clone()?,
        })
    });
    Layout {
        stages,
        cells,
        flows,
        short: short.collect(),
        exchanges: exchanges.collect(),
        datagrams: datagrams.collect(),
        powered: powered.collect(),
    }
}

fn info(stage: &model::Stage) -> StageInfo {
    let role = match stage.kind {
        StageKind::Link(_)
        | StageKind::Serial(_)
        | StageKind::Varied(_)
        | StageKind::Netem(_)
        | StageKind::Tbf(_)
        | StageKind::Police(_) => Role::Link,
        StageKind::Radio(_) => Role::Radio,
        StageKind::Agent(_) => Role::Agent,
        StageKind::Cross(_) => Role::Cross,
    };
    StageInfo { name: stage.name.clone(), role }
}

/// The radio hop next to `host`, as the first link on its side, with its station there.
fn antenna(scenario: &Scenario, host: &model::Host) -> Option<(StageId, Antenna)> {
    let is_link = |stage: &model::Stage| stage.kind.is_link();
    let i = match host.side {
        HostSide::Left => scenario.path.iter().position(is_link)?,
        HostSide::Right => scenario.path.iter().rposition(is_link)?,
    };
    let StageKind::Radio(RadioStage { radio, hop: Some(hop), .. }) = &scenario.path[i].kind else {
        return None;
    };
    let station = match host.side {
        HostSide::Left => Station::BASE,
        HostSide::Right => {
            Station(1 + hop.mobiles.iter().position(|m| *m == host.addr).unwrap_or(0) as u8)
        }
    };
    let reported = match hop.mac {
        MacConfig::Ideal => ReportTime::AtStart,
        _ => ReportTime::AtEnd { longest: longest(radio, hop) },
    };
    let left = scenario.hosts.iter().filter(|h| h.side == HostSide::Left).count();
    Some((StageId((left + i) as u16), Antenna { station, delay: radio.delay, reported }))
}

/// Upper bound of the air time of a frame.
fn longest(radio: &RadioConfig, hop: &HopConfig) -> Span {
    /// The longest packet, with additions by link layers and medium access.
    const BYTES: u32 = 66_000;
    /// Preambles, and frames of medium access at their own rate.
    const FIXED: Span = Span::millis(10);
    FIXED + radio.overhead + radio.rate.transmit(hop.coding.on_air(BYTES).into())
}
