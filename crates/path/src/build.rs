//! Builds stages from a scenario.

use std::sync::Arc;

use lasthop_proto::event::Interest;
use lasthop_proto::link::Line;
use lasthop_proto::machine::Side;
use lasthop_proto::rng::Stream;
use lasthop_proto::tcp::traffic::Exchange;
use lasthop_proto::tcp::{Host, HostConfig, TcpConfig};
use lasthop_proto::udp::Udp;
use lasthop_proto::units::Time;
use lasthop_proto::wire::FlowKey;
use lasthop_scenario::{HostSide, Scenario, Traffic};

use crate::DISCARD;
use crate::drive::Path;
use crate::end::{Ends, no_ends};
use crate::roam::Roam;
use crate::stage::{Junction, Stage};
use crate::witness::Witness;

/// Kind of a host: a machine of the path, or external.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HostKind {
    /// A machine of the path that opens its transfers itself.
    Ours,
    /// A host outside of lasthop, observed by a witness.
    Outside {
        /// Whether another source reports the events of its TCP as a sender, so that the witness need not infer them.
        reported: bool,
    },
}

impl Path {
    /// The path of `scenario` in the run with `seed`; `kind` has the kind of each host by index.
    pub fn of_scenario(
        scenario: &Scenario,
        seed: u64,
        interest: Interest,
        kind: impl Fn(usize) -> HostKind,
    ) -> Path {
        Path::with_ends(scenario, seed, interest, kind, &no_ends)
    }

    /// The same with `ends` for hosts with other protocol stacks.
    pub fn with_ends(
        scenario: &Scenario,
        seed: u64,
        interest: Interest,
        kind: impl Fn(usize) -> HostKind,
        ends: Ends<'_>,
    ) -> Path {
        let mut stages = Vec::new();
        let mut host_stages = vec![0; scenario.hosts.len()];
        // Equal hosts share one configuration: a thousand copies would not fit into a cache.
        let mut last: Option<Arc<TcpConfig>> = None;
        let mut add_hosts = |stages: &mut Vec<Stage>, side| {
            for (i, host) in scenario.hosts.iter().enumerate().filter(|(_, h)| h.side == side) {
                host_stages[i] = stages.len();
                stages.push(match kind(i) {
                    HostKind::Ours if scenario.speaks_quic(i) => match ends(scenario, i, seed) {
                        Some(end) => Stage::End(end),
                        None => Stage::Junction(Junction::default()),
                    },
                    HostKind::Ours => {
                        let same = last.take().filter(|tcp| **tcp == host.tcp);
                        let tcp = same.unwrap_or_else(|| Arc::new(host.tcp.clone()));
                        last = Some(tcp.clone());
                        Stage::Host(Box::new(our_host(scenario, seed, i, tcp)))
                    }
                    HostKind::Outside { reported } => Stage::Witness(Box::new(Witness::of_host(
                        vec![host.addr],
                        inward(side),
                        reported,
                    ))),
                });
            }
        };
        add_hosts(&mut stages, HostSide::Left);
        let first = stages.len();
        stages.extend(scenario.path.iter().map(|s| Stage::of_path(s, seed)));
        let router = stages.len();
        if let Some(roaming) = &scenario.roaming {
            stages.push(Stage::Junction(Junction::default()));
            for cell in &roaming.cells {
                let (wired, radio) = cell.path.split_at(cell.base);
                stages.extend(wired.iter().map(|s| Stage::of_path(s, seed)));
                stages.push(Stage::Junction(Junction::default()));
                stages.extend(radio.iter().map(|s| Stage::of_path(s, seed)));
            }
        }
        let last = stages.len();
        add_hosts(&mut stages, HostSide::Right);
        let mut access = Vec::new();
        for (host, i) in scenario.hosts.iter().zip(&host_stages) {
            if let Some(line) = &host.access {
                access.push((*i, stages.len()));
                let stream =
                    |part: &str| Stream::new(seed, &format!("host.{}.access.{part}", host.name));
                stages.push(Stage::Line(Line::seeded(line.clone(), stream)));
            }
        }
        let roam = scenario.roaming.as_ref();
        let roam = roam.map(|roaming| Roam::new(scenario, roaming, seed, router, &host_stages));
        let mut path = Path::new(stages, first..last, host_stages, interest);
        roam.into_iter().for_each(|roam| path.set_roam(roam));
        path.set_access(&access);
        path
    }
}

/// The direction of the path from a host at this end.
fn inward(side: HostSide) -> Side {
    match side {
        HostSide::Left => Side::Right,
        HostSide::Right => Side::Left,
    }
}

/// Host `i` with its transfers scheduled.
fn our_host(scenario: &Scenario, seed: u64, i: usize, tcp: Arc<TcpConfig>) -> Host {
    let host = &scenario.hosts[i];
    let config =
        HostConfig { name: host.name.clone(), addr: host.addr, side: inward(host.side), tcp };
    let mut machine = Host::new(config, seed);
    let mut stream = 0;
    for (nth, transfer) in scenario.transfers.iter().enumerate() {
        for n in 0..transfer.connections() {
            stream += 1;
            if transfer.from != i {
                continue;
            }
            let to = scenario.hosts[transfer.to].addr;
            let at = Time::ZERO + transfer.start;
            let connection = machine.open(to, DISCARD, at, transfer.bytes, stream);
            if let Traffic::OnOff(periods) = transfer.traffic {
                let rng = Stream::new(seed, &format!("on-off.{nth}.{n}"));
                machine.switch(connection, at, periods, rng);
            }
            if let Some(stop) = transfer.stop {
                machine.stop_at(connection, Time::ZERO + stop);
            }
        }
    }
    // Short transfers open their connections later, after the fixed ones.
    for (nth, transfer) in scenario.transfers.iter().enumerate().filter(|(_, t)| t.from == i) {
        let Traffic::Web(web) = transfer.traffic else { continue };
        for n in 0..web.sessions {
            let to = scenario.hosts[transfer.to].addr;
            let (start, stop) =
                (Time::ZERO + transfer.start, transfer.stop.map(|stop| Time::ZERO + stop));
            let rng = Stream::new(seed, &format!("web.{nth}.{n}"));
            machine.browse(to, DISCARD, start, stop, web, rng);
        }
    }
    exchanges(scenario, seed, i, &mut machine);
    datagrams(scenario, seed, i, &mut machine);
    machine
}

/// The datagram sources of host `i`. Receivers of each table have their own port.
fn datagrams(scenario: &Scenario, seed: u64, i: usize, machine: &mut Host) {
    for (nth, (transfer, udp)) in scenario.datagrams().enumerate() {
        if transfer.to == i && udp.probe.is_some() {
            machine.echo(Udp::port(nth));
        }
        if transfer.from != i {
            continue;
        }
        let to = scenario.hosts[transfer.to].addr;
        let times = [transfer.start, transfer.stop.unwrap_or(scenario.horizon)];
        for n in 0..transfer.count {
            let rng = ["intervals", "sizes"]
                .map(|part| Stream::new(seed, &format!("udp.{nth}.{n}.{part}")));
            machine.send_datagrams(to, Udp::port(nth), times.map(|at| Time::ZERO + at), udp, rng);
        }
    }
}

/// The clients and servers of host `i`. Those of each table have their own port.
fn exchanges(scenario: &Scenario, seed: u64, i: usize, machine: &mut Host) {
    for (nth, transfer) in scenario.exchanges().enumerate() {
        let port = Exchange::port(nth);
        if let Some(answers) = transfer.traffic.answers().filter(|_| transfer.to == i) {
            machine.answer(scenario.hosts[transfer.from].addr, port, answers);
        }
        if transfer.from != i {
            continue;
        }
        let [src, dst] = [transfer.from, transfer.to].map(|host| scenario.hosts[host].addr);
        let times = (Time::ZERO + transfer.start, transfer.stop.map(|stop| Time::ZERO + stop));
        for n in 0..transfer.count {
            let client = FlowKey { src, dst, src_port: n as u16, dst_port: port };
            match transfer.traffic {
                Traffic::Exchange(exchange) => {
                    machine.request(dst, port, times.0, times.1, exchange);
                }
                Traffic::Page(page) => {
                    let rng = Stream::new(seed, &format!("page.{nth}.{n}"));
                    machine.load(client, times, page, rng);
                }
                Traffic::Video(video) => machine.play(client, times, video),
                _ => {}
            }
        }
    }
}
