//! Explicit bad state notifications over a wire: a station notifies a sender with lasthop's TCP, as if on
//! another machine, while the link layer retries.
//!
//! ```text
//! fh: our host 10.9.0.77 on fl --- bs: bl | EBSN | radio | br --- mh: mr 10.9.0.2, the kernel
//! ```

use std::io::Read as _;
use std::net::TcpListener;
use std::sync::mpsc::channel;

use crate::common::*;
use lasthop_live::clock::Clock;
use lasthop_live::endpoint::Pattern;
use lasthop_live::station::{Port, Station};
use lasthop_observe::Sink;
use lasthop_path::{HostKind, Path, Stage};
use lasthop_proto::event::{Cause, Event, EventKind, Interest, Op, TcpKind};
use lasthop_proto::machine::{Side, StageId};
use lasthop_proto::units::{Span, Time};
use lasthop_scenario::{Argument, LivePath, Scenario};

/// Each bad period of the channel is longer than the sender's timeout.
const FILE: &str = r#"
transfer = { from = "fixed", to = "mobile", bytes = "40kB" }
[host.fixed]
preset = "bakshi96"
stack = "lasthop"
ebsn = true
addr = "10.9.0.77"
[host.mobile]
preset = "rfc"
addr = "10.9.0.2"
[[path]]
agent = "none"
[[path]]
radio = { rate = "192kbit", delay = "0.1ms", duplex = "full" }
fragment = "128B"
errors = { model = "two-state", good = "600ms", bad = "800ms", deterministic = true, ber-bad = 1e-1 }
link-layer = "local-recovery"
local-recovery = { backoff = "100ms", backoff-max = "100ms" }
"#;
const BYTES: usize = 40_000;

/// The scenario with this agent.
fn scenario(agent: &str) -> Scenario {
    let set = [Argument::Set(format!("path.1.agent={agent}"))];
    LivePath::of_scenario(FILE, "feedback", &set).unwrap().1
}

/// Counts of the relevant events.
#[derive(Default, Debug)]
struct EventCounts {
    /// Notifications that the station sent.
    sent: u64,
    /// Notifications that the sender accepted, and those that it ignored.
    heeded: u64,
    ignored: u64,
    timeouts: u64,
}

impl Sink for EventCounts {
    fn interest(&self) -> Interest {
        Interest::METRICS
    }

    fn event(&mut self, event: &Event) {
        *match &event.kind {
            EventKind::Packet { op: Op::Originated(Cause::BadStateNotification), .. } => {
                &mut self.sent
            }
            EventKind::Packet {
                op: Op::Dropped(Cause::StaleNotice | Cause::UnheededNotice),
                ..
            } => &mut self.ignored,
            EventKind::Tcp(tcp) if tcp.kind == TcpKind::BadStateNotified => &mut self.heeded,
            EventKind::Tcp(tcp) if tcp.kind == TcpKind::Timeout => &mut self.timeouts,
            _ => return,
        } += 1;
    }
}

/// Ethernet address of an interface.
fn mac(namespace: &str, dev: &str) -> [u8; 6] {
    let text = sh(&format!("ip netns exec {namespace} cat /sys/class/net/{dev}/address"));
    let mut bytes = text.trim().split(':').map(|byte| u8::from_str_radix(byte, 16).unwrap());
    std::array::from_fn(|_| bytes.next().unwrap())
}

/// Sends from lasthop's host in `fh` until all data is acknowledged. Returns the counts of its TCP.
fn send(scenario: &Scenario) -> EventCounts {
    let macs = [mac("fh", "fl"), mac("mh", "mr")];
    let scenario = scenario.clone();
    inside("fh", move || {
        let mut alone = scenario.clone();
        // The radio is at the other station.
        alone.path.truncate(1);
        let kind = |i| if i == 0 { HostKind::Ours } else { HostKind::Outside { reported: false } };
        let path = Path::of_scenario(&alone, 1, Interest::METRICS, kind);
        let last = StageId(path.stages().len() as u16 - 1);
        let index = nix::net::if_::if_nametoindex("fl").unwrap();
        let ports = vec![Port::open("fl", index, last, Side::Right).unwrap()];
        let mut station = Station::new(path, ports, Clock::start()).unwrap();
        for (host, mac) in alone.hosts.iter().zip(macs) {
            station.add_neighbour(host.addr, mac);
        }
        let mut seen = EventCounts::default();
        let horizon = Time::ZERO + Span::secs(300);
        let mut finished = None;
        let on = |station: &mut Station, _: &mut dyn Sink, now| {
            if station.path().unfinished() > 0 {
                assert!(now < horizon, "the transfer does not end");
                return true;
            }
            // The radio may still retry the connection's last segments, for longer than a bad period on a
            // busy machine.
            now < *finished.get_or_insert(now) + Span::secs(4)
        };
        station.run(&mut seen, &mut { on }).unwrap();
        seen
    })
}

/// A transfer over the station with this agent. Returns the station's counts and the sender's.
fn transferred(agent: &str) -> (EventCounts, EventCounts) {
    let scenario = scenario(agent);
    let stages = scenario.path.clone();
    let station = station(EventCounts::default(), move || {
        stages.iter().map(|s| Stage::of_path(s, 1)).collect()
    });
    let (ready_sender, ready) = channel();
    let receiver = within("mh", move || {
        let listener = TcpListener::bind(("10.9.0.2", lasthop_path::DISCARD)).unwrap();
        ready_sender.send(()).unwrap();
        let mut got = Vec::new();
        listener.accept().unwrap().0.read_to_end(&mut got).unwrap();
        got
    });
    ready.recv().unwrap();
    let sender = send(&scenario);
    let mut bytes = Vec::new();
    Pattern { stream: 1 }.fill(0, BYTES, &mut bytes);
    assert!(receiver.join().unwrap() == bytes, "{agent}: other bytes arrived than were sent");
    let (at_station, ended) = station.stop();
    ended.assert_no_loss();
    (at_station, sender)
}

#[test]
fn ebsn_messages_on_the_wire_reduce_sender_timeouts() {
    alone("ebsn_messages_on_the_wire_reduce_sender_timeouts", || {
        wire(Wires::default());
        // An address that the kernel of `fh` does not own, so that it does not answer.
        let address = sh("ip netns exec fh cat /sys/class/net/fl/address");
        let mac = address.trim();
        sh(&format!("ip -n mh neigh add 10.9.0.77 lladdr {mac} dev mr nud permanent"));

        let (station, without) = transferred("none");
        assert_eq!((station.sent, without.heeded), (0, 0), "{station:?} {without:?}");
        assert!(without.timeouts > 0, "{without:?}");
        let (station, with) = transferred("ebsn");
        println!(
            "timeouts {} without notices, {} with {}",
            without.timeouts, with.timeouts, station.sent
        );
        assert!(with.heeded > 0, "{station:?} {with:?}");
        // All sent notifications have crossed the wire.
        assert_eq!(station.sent, with.heeded + with.ignored, "{with:?}");
        assert!(with.timeouts < without.timeouts, "{with:?} {without:?}");
    });
}
