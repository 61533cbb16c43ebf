//! World 2: a scenario on real packets, between network namespaces of this machine.
//!
//! The stages are the simulator's, with the same seeds. Hosts with the kernel's TCP are namespaces with real
//! sockets; hosts with lasthop's TCP are machines of the path that send real packets. The events are the
//! simulator's too, so metrics, captures and plots are made the same way.

mod ends;
mod host_report;
mod limits;
mod ours;
mod reports;
mod sockets;

use lasthop_proto::agent::BaseStation;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;

use lasthop_observe::Sink;
use lasthop_observe::layout::Layout;
use lasthop_observe::metrics::Limits;
use lasthop_path::{Ends as Stacks, HostKind, Path, Stage, Witness};
use lasthop_proto::event::Interest;
use lasthop_proto::machine::{Side, StageId};
use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::Addr;
use lasthop_scenario::{Scenario, Stack};
use nix::net::if_::if_nametoindex;
use serde::{Deserialize, Serialize};

use crate::clock::Clock;
use crate::station::{Port, Station};
use crate::testbed::counters::Counters;
use crate::testbed::{self, Error, HostSpec, Net, NetSpec, Preset};
use ends::{Ends, Shared};
use ours::Ours;
use reports::Reports;
use sockets::Machine;

/// Name of the base station's namespace.
const STATION: &str = "station";

/// Interval at which the control block of a kernel sender is sampled.
const SAMPLE: Span = Span::millis(5);

/// Longest delay between an event of a kernel sender and its report, unless a thread waited for a processor.
const SETTLED: Span = Span::millis(20);

/// Time after the last transfer in which packets under way may still arrive.
const LINGER: Span = Span::millis(100);

/// Source ports of transfers with a kernel sender. Each run uses other ports, since those of the last run are
/// in TIME-WAIT.
const PORTS: std::ops::Range<u16> = 20_000..60_000;

/// A testbed that runs a scenario.
pub struct Testbed {
    net: Net,
    next_port: u16,
}

/// Result of a run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RunEnd {
    /// Time of the end, nanoseconds.
    pub at_ns: u64,
    /// Reason: `finished`, `horizon` or `stopped`.
    pub reason: String,
    /// Packets that links and radios carried.
    pub hops: u64,
    /// Largest state that an agent held, in bytes.
    pub agent_state_bytes: u64,
    /// Counters of each host's kernel during the run.
    pub kernel: BTreeMap<String, Counters>,
    /// Limiting factors of the senders, without cross traffic; `None` if no host sent data.
    #[serde(default)]
    pub limits: Option<Limits>,
    /// Incorrect transfers: one line each with the problem.
    pub wrong: Vec<String>,
    /// Frames that the base station lost because it was too slow. Above zero the results are not reliable.
    pub lost_frames: u64,
}

impl Testbed {
    /// Makes the calling process, which must have a single thread, the base station between the hosts of
    /// `scenario`.
    ///
    /// # Errors
    /// If the kernel forbids the namespaces; the error names the obstacle.
    pub fn enter(scenario: &Scenario) -> Result<Testbed, Error> {
        let hosts = scenario.hosts.iter().map(spec).collect::<Result<_, _>>()?;
        let net = Net::enter(&NetSpec { station: STATION.to_owned(), offloads: false, hosts })?;
        Ok(Testbed { net, next_port: PORTS.start })
    }

    /// Stages and data flows of the next run of `scenario`.
    pub fn layout(&self, scenario: &Scenario) -> Layout {
        let mut layout = lasthop_path::layout(scenario);
        let connections = connections(scenario, self.next_port);
        for (flow, connection) in layout.flows.iter_mut().zip(connections) {
            if let Some(port) = connection.port {
                flow.key.src_port = port;
            }
            let transfer = &scenario.transfers[connection.transfer];
            if connection.port.is_some() || has_tcp(scenario, transfer.to) {
                // The kernel negotiates these, so they are measured.
                flow.mss = None;
                flow.split_mss = None;
            }
        }
        layout
    }

    /// Runs `scenario` once with `seed`, with events to `sink`. `stacks` makes the hosts with their own
    /// stacks. Ends when all transfers are complete, at the horizon, or soon after `stop` is raised.
    ///
    /// # Errors
    /// If an interface, a socket or a thread cannot be made.
    pub fn run(
        &mut self,
        scenario: &Scenario,
        seed: u64,
        stacks: Stacks<'_>,
        sink: &mut dyn Sink,
        stop: &AtomicBool,
    ) -> Result<RunEnd, Error> {
        let counted = self.counters(scenario)?;
        let kind = |i: usize| match is_kernel(scenario, i) {
            // Senders of bulk data report their control blocks; other connections are observed from their
            // packets.
            true => HostKind::Outside {
                reported: scenario.transfers.iter().any(|t| t.from == i && t.connections() > 0),
            },
            false => HostKind::Ours,
        };
        let mut path = Path::of_scenario(scenario, seed, sink.interest(), kind);
        let mut ours = Ours::watch(&mut path);
        let ports = ports(&self.net, path.host_stages())?;
        let clock = Clock::start();
        let mut station = Station::new(path, ports, clock)
            .map_err(|error| Error::new(format!("cannot start the base station: {error}"), ""))?;
        for (host, planned) in self.net.hosts().iter().zip(&scenario.hosts) {
            station.add_neighbour(planned.addr, host.mac().0);
        }
        let connections = connections(scenario, self.next_port);
        let used = connections.iter().filter(|connection| connection.port.is_some()).count() as u16;
        let (news_sender, news) = channel();
        let machines = self.machines(scenario, seed, stacks, sink.interest())?;
        let ends = Shared::new(clock, news_sender);
        let ends = Ends::start(&self.net, scenario, ends, news, &connections, machines)?;
        self.next_port = next_port(self.next_port, used);
        let horizon = Time::ZERO + scenario.horizon;
        let mut reports = Reports::default();
        let mut reason = "finished";
        let mut quiet_since = None;
        let outcome = station.run(sink, &mut |station, sink, now| {
            reports.take(&ends);
            reports.forward(now, sink);
            ours.take(station, sink);
            if stop.load(Ordering::Relaxed) {
                reason = "stopped";
                return false;
            }
            if now >= horizon {
                reason = "horizon";
                return false;
            }
            if station.path().unfinished() > 0 || ends.unfinished() > 0 {
                quiet_since = None;
                return true;
            }
            now < *quiet_since.get_or_insert(now) + LINGER
        });
        let at = quiet_since.unwrap_or_else(|| clock.now());
        ends.finish();
        reports.take(&ends);
        reports.forward(Time(u64::MAX), sink);
        let at = reports.end(at);
        outcome.map_err(|error| {
            Error::new(format!("the base station stopped: {error}"), "is an interface gone?")
        })?;
        let mut kernel = BTreeMap::new();
        for (name, before) in counted {
            let now = self.net.counters(&name)?;
            kernel.insert(name, now.since(&before));
        }
        let path = station.path();
        let agents = path.stages().iter().filter_map(|stage| stage.agent());
        Ok(RunEnd {
            at_ns: at.0,
            reason: reason.to_owned(),
            hops: path.hops(),
            agent_state_bytes: agents.map(|a| a.peak_state_bytes() as u64).max().unwrap_or(0),
            kernel,
            limits: reports.limits(scenario, &connections, path, at),
            wrong: if reason == "finished" { reports.wrong(scenario, &ours) } else { Vec::new() },
            lost_frames: station.port_counts().map(|(_, c)| c.overrun + c.refused).sum(),
        })
    }

    /// The hosts with their own stacks, with their sockets.
    fn machines(
        &self,
        scenario: &Scenario,
        seed: u64,
        stacks: Stacks<'_>,
        interest: Interest,
    ) -> Result<Vec<(usize, Machine)>, Error> {
        let hosts = scenario.hosts.iter().enumerate();
        let stacked = hosts.filter_map(|(i, host)| Some((i, host, stacks(scenario, i, seed)?)));
        let bound = stacked.map(|(i, host, end)| {
            let bound =
                self.net.in_host(&host.name, || Machine::bind(scenario, i, end, interest))?;
            let wrong =
                |error| format!("host `{}` cannot have its UDP sockets: {error}", host.name);
            Ok((i, bound.map_err(|error| Error::new(wrong(error), "is one of its ports taken?"))?))
        });
        bound.collect()
    }

    fn counters(&self, scenario: &Scenario) -> Result<Vec<(String, Counters)>, Error> {
        let kernels = (0..scenario.hosts.len()).filter(|i| is_kernel(scenario, *i));
        kernels
            .map(|i| {
                let name = &scenario.hosts[i].name;
                Ok((name.clone(), self.net.counters(name)?))
            })
            .collect()
    }
}

/// The base station's ends of all cables. `stages` has the stage of each host of `net`.
pub(crate) fn ports(net: &Net, stages: &[usize]) -> Result<Vec<Port>, Error> {
    let mut ports = Vec::new();
    for (host, stage) in net.hosts().iter().zip(stages) {
        let Some(interface) = host.station_interface() else { continue };
        let side = match host.spec().side {
            testbed::Side::Left => Side::Left,
            testbed::Side::Right => Side::Right,
        };
        let stage = StageId(*stage as u16);
        let port = if_nametoindex(interface)
            .map_err(std::io::Error::from)
            .and_then(|index| Port::open(interface, index, stage, side));
        ports.push(port.map_err(|error| {
            Error::new(
                format!("cannot open the base station's end of `{interface}`: {error}"),
                "`lasthop doctor` looks for the cause",
            )
        })?);
    }
    Ok(ports)
}

/// A station with the path of `scenario` between the hosts of a network, all with kernels.
///
/// # Errors
/// If an interface cannot be opened.
pub fn standing(net: &Net, scenario: &Scenario) -> Result<Station, Error> {
    let mut stages = Vec::new();
    let mut places = vec![0; net.hosts().len()];
    let mut add = |stages: &mut Vec<Stage>, side, inward| {
        for (host, place) in net.hosts().iter().zip(&mut places) {
            if host.spec().side == side {
                *place = stages.len();
                let spec = host.spec();
                let v4 = spec.v4.map(|v4| Addr::from(IpAddr::V4(v4)));
                let v6 = spec.v6.map(|v6| Addr::from(IpAddr::V6(v6)));
                let addrs = v4.into_iter().chain(v6).collect();
                let witness = Witness::of_host(addrs, inward, false);
                stages.push(Stage::Witness(Box::new(witness)));
            }
        }
    };
    add(&mut stages, testbed::Side::Left, Side::Right);
    let first = stages.len();
    stages.extend(scenario.path.iter().map(|stage| Stage::of_path(stage, scenario.first_seed)));
    let last = stages.len();
    add(&mut stages, testbed::Side::Right, Side::Left);
    let ports = ports(net, &places)?;
    let path = Path::new(stages, first..last, places, Interest::METRICS);
    Station::new(path, ports, Clock::start())
        .map_err(|error| Error::new(format!("cannot start the base station: {error}"), ""))
}

fn is_kernel(scenario: &Scenario, host: usize) -> bool {
    matches!(scenario.hosts[host].stack, Stack::Kernel { .. })
}

/// A connection of a scenario.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Connection {
    /// Index of its transfer.
    transfer: usize,
    /// Source port, if the kernel's TCP sends it.
    port: Option<u16>,
}

/// All connections in the order of the scenario. Those of the kernel's TCP have ports from `first` on.
fn connections(scenario: &Scenario, first: u16) -> Vec<Connection> {
    let mut ports = first..;
    let mut all = Vec::new();
    for (transfer, planned) in scenario.transfers.iter().enumerate() {
        let kernel = has_tcp(scenario, planned.from);
        let one = |_| Connection { transfer, port: kernel.then(|| ports.next()).flatten() };
        all.extend((0..planned.connections()).map(one));
    }
    all
}

/// First port of the next run, after one with `used` ports from `first` on. Leaves room for as many ports
/// again.
fn next_port(first: u16, used: u16) -> u16 {
    if first + 2 * used < PORTS.end { first + used } else { PORTS.start }
}

/// Whether the kernel's TCP makes the transfers of a host.
fn has_tcp(scenario: &Scenario, host: usize) -> bool {
    is_kernel(scenario, host) && !scenario.speaks_quic(host)
}

/// Specification of a testbed host for a host of the scenario.
fn spec(host: &lasthop_scenario::Host) -> Result<HostSpec, Error> {
    let spec = HostSpec::new(&host.name, host.side.into(), host.addr.ip());
    match &host.stack {
        Stack::Lasthop => Ok(spec.without_kernel()),
        Stack::Kernel { preset, settings } => match Preset::named(preset) {
            Some(preset) => Ok(settings.iter().fold(spec.preset(preset), HostSpec::setting)),
            None => Err(Error::new(
                format!("host `{}`: no kernel can be set up as `{preset}`", host.name),
                "`lasthop list presets` names those that can",
            )),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
        [host.a]
        stack = "kernel"
        [host.b]
        stack = "lasthop"
        [host.c]
        stack = "kernel"
        side = "right"
        [[transfer]]
        from = "a"
        to = "c"
        bytes = "10kB"
        count = 3
        [[transfer]]
        from = "b"
        to = "c"
        bytes = "10kB"
        count = 2
        [[transfer]]
        from = "c"
        to = "a"
        bytes = "10kB"
        [[path]]
        link = { rate = "10mbit", delay = "1ms" }
    "#;

    #[test]
    fn each_connection_that_the_kernel_sends_has_a_port_of_its_own() {
        let (plan, _) = lasthop_scenario::parse(TEXT, "ports", &[]).unwrap();
        let scenario = &plan.cells[0].scenario;
        let all = connections(scenario, 30_000);
        let assigned: Vec<_> = all.iter().map(|c| (c.transfer, c.port)).collect();
        let port = |n: u16| Some(30_000 + n);
        assert_eq!(
            assigned,
            [(0, port(0)), (0, port(1)), (0, port(2)), (1, None), (1, None), (2, port(3))]
        );
    }

    /// Ports are reused once the next run does not fit into the rest of the range.
    #[test]
    fn a_run_takes_other_ports_than_the_one_before() {
        for (first, used, next) in [
            (20_000, 1, 20_001),
            (20_000, 0, 20_000),
            (20_100, 50, 20_150),
            (59_990, 4, 59_994),
            (59_990, 5, 20_000),
            (59_999, 0, 59_999),
            (59_999, 1, 20_000),
        ] {
            assert_eq!(next_port(first, used), next, "{used} from {first} on");
        }
    }
}
