//! Split connections between real hosts: for any losses, writes, late reads and closes, every byte is
//! delivered once and in order, or both ends are reset.

use lasthop_proto::agent::{Agent, AgentConfig, BaseStation, MtcpConfig, Router, SplitConfig};
use lasthop_proto::tcp::state::State;
use lasthop_proto::tcp::{Connection, TcpConfig};
use lasthop_proto::units::{Bytes, Span, Time};
use lasthop_proto::wire::Body;
use proptest::prelude::*;

use crate::path::{MOBILE, Path, Wire};

/// Actions of an application.
#[derive(Clone, Copy, Debug)]
struct Plan {
    /// Bytes to write, in pieces of at most `piece`, real ones or not.
    bytes: u32,
    piece: u32,
    real: bool,
    /// Bytes read in each step.
    appetite: u32,
    /// Step of its reset, if any.
    reset: Option<u32>,
}

/// State of an end's application.
struct App {
    plan: Plan,
    stream: u32,
    written: u32,
    received: Vec<u8>,
    taken: Vec<Body>,
    /// Delivered bytes that are unread.
    unread: u64,
}

/// The byte stream that an end writes.
fn whole(stream: u32, len: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    Body::Pattern { stream, offset: 0, len }.copy_into(len, &mut bytes);
    bytes
}

impl App {
    fn new(plan: Plan, stream: u32) -> App {
        App { plan, stream, written: 0, received: Vec::new(), taken: Vec::new(), unread: 0 }
    }

    fn step(
        &mut self,
        step: u32,
        connection: &mut Connection,
        now: Time,
        out: &mut lasthop_proto::machine::Out,
    ) {
        self.unread += connection.take_delivered(&mut self.taken);
        for body in self.taken.drain(..) {
            body.copy_into(u32::MAX, &mut self.received);
        }
        let bites = self.unread.min(self.plan.appetite.into());
        if bites > 0 {
            self.unread -= bites;
            connection.read(now, bites, out);
        }
        while self.written < self.plan.bytes {
            let len = self.plan.piece.min(self.plan.bytes - self.written);
            let body = Body::Pattern { stream: self.stream, offset: self.written.into(), len };
            let body = if self.plan.real {
                let mut bytes = Vec::new();
                body.copy_into(len, &mut bytes);
                Body::copy_of(&bytes)
            } else {
                body
            };
            let taken = connection.write(now, body, out);
            self.written += taken;
            if taken < len {
                break;
            }
        }
        if self.written == self.plan.bytes {
            connection.close(now, out);
        }
        if self.plan.reset == Some(step) {
            connection.reset(now, out);
        }
    }
}

fn plans() -> impl Strategy<Value = Plan> {
    let bytes = prop_oneof![1 => Just(0u32), 3 => 1u32..5000, 4 => 1u32..120_000];
    let reset = prop_oneof![8 => Just(None), 1 => (1u32..300).prop_map(Some)];
    (bytes, 1u32..6000, any::<bool>(), prop_oneof![Just(900u32), Just(u32::MAX)], reset).prop_map(
        |(bytes, piece, real, appetite, reset)| Plan { bytes, piece, real, appetite, reset },
    )
}

fn presets() -> impl Strategy<Value = TcpConfig> {
    (
        prop::sample::select(vec!["freebsd-2.1", "ns", "rfc", "linux"]),
        prop::option::of(200u32..9000),
    )
        .prop_map(|(name, mss)| {
            let tcp = TcpConfig::preset(name).unwrap();
            TcpConfig { mss: mss.unwrap_or(tcp.mss), ..tcp }
        })
}

/// When the mobile host moves to another base station.
fn moves() -> impl Strategy<Value = Vec<u32>> {
    prop_oneof![
        1 => Just(Vec::new()),
        2 => prop::collection::vec(1u32..60, 1..8),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(250))]
    #[test]
    fn every_byte_is_delivered_once_and_in_order_or_both_ends_are_reset(
        plans in [plans(), plans()],
        tcp in [presets(), presets()],
        station in presets(),
        (buffer, growth, selective, opener) in (
            prop_oneof![Just(700u64), Just(5_000), Just(1 << 16)],
            prop_oneof![2 => Just(None), 1 => Just(Some(6u64)), 1 => Just(Some(60))],
            any::<bool>(),
            0usize..2,
        ),
        (bulk, moves, mtcp) in (any::<bool>(), moves(), any::<bool>()),
        (losses, seed) in ([0u64..80, 0u64..120], any::<u64>()),
    ) {
        // Two of six times the buffer are there from the start, and one may be added.
        let memory = Bytes(buffer * growth.unwrap_or(2));
        let largest = growth.map(|_| Bytes(10 * buffer));
        let config =
            SplitConfig { buffer: Bytes(buffer), largest, memory, flows: 2, ..SplitConfig::new(station) };
        let config = if selective { config.selective() } else { config };
        let knock = Span::millis(200);
        let mtcp = mtcp.then_some(MtcpConfig { knock, channel_signals: false });
        let config = AgentConfig::Split(SplitConfig { mtcp, ..config });
        let wire = |losses, delay| Wire { byte: Span::micros(2), delay: Span::millis(delay), losses };
        let wires = [wire(losses[0], 3), wire(losses[1], 8)];
        let mut path = Path::new([&tcp[0], &tcp[1]], &config, wires, seed);
        if bulk {
            path.in_bulk();
        }
        let answerer = 1 - opener;
        let to = if opener == 0 { MOBILE } else { crate::path::FIXED };
        path.hosts[opener].connect(to, 9, Time::ZERO, 30_000);
        path.hosts[answerer].serve(20_000);
        let mut apps = [App::new(plans[0], 7), App::new(plans[1], 8)];
        let resets = plans.iter().filter(|plan| plan.reset.is_some()).count();
        let mut at = Time::ZERO;
        for step in 0..200_000 {
            // In long steps at the end, where only timers run.
            at += if step < 500 { Span::millis(10) } else { Span::millis(500) };
            path.run_until(at);
            for _ in moves.iter().filter(|at| **at == step) {
                path.hand_over(&config);
            }
            for (i, app) in apps.iter_mut().enumerate() {
                if !path.hosts[i].connections().is_empty() {
                    path.act(i, 0, |connection, now, out| app.step(step, connection, now, out));
                }
            }
            for i in (0..2).filter(|i| mtcp.is_some() && plans[1 - i].reset.is_none()) {
                // Acknowledged data has arrived; a host that resets discards its data.
                let [this, other] = [i, 1 - i].map(|i| path.hosts[i].connections().first());
                let acknowledged = this.map_or(0, Connection::acknowledged);
                prop_assert!(acknowledged <= other.map_or(0, Connection::delivered), "host {}", i);
            }
            let over = |i: usize| {
                path.hosts[i].connections().first().is_some_and(|c: &Connection| c.is_over())
            };
            if (over(0) && over(1)) || path.hosts[answerer].connections().is_empty() && over(opener) {
                break;
            }
        }
        prop_assert!(!path.corrupted);
        let aborted = |i: usize| {
            path.hosts[i].connections().first().is_none_or(Connection::is_aborted)
        };
        for i in 0..2 {
            let sent = whole(apps[1 - i].stream, apps[1 - i].plan.bytes);
            let got = &apps[i].received;
            prop_assert!(sent.starts_with(got), "host {} got {} bytes, not those sent", i, got.len());
            if !aborted(i) && !aborted(1 - i) {
                prop_assert_eq!(got.len(), sent.len(), "host {}", i);
            }
            if aborted(i) {
                // The other end was reset as well. A single reset may be lost, or outside the window after a
                // loss. As without a base station, the other end is then reset at its next transmission, or
                // never if it has no data.
                let other = path.hosts[1 - i].connections().first();
                let silent = |c: &Connection| {
                    let tcb = c.control_block();
                    path.lost > 0 && tcb.snd_una == tcb.snd_max
                };
                // A SYN repeated after the reset has opened another connection, which no application reads.
                let reopened = path.hosts[i].connections().len() > 1;
                let fine = reopened || other.is_none_or(|c| c.is_over() || silent(c));
                prop_assert!(fine, "host {} is left in {:?}", 1 - i, other.map(Connection::state));
            }
        }
        let Agent::Split(agent) = &path.agent else { unreachable!() };
        prop_assert!(agent.peak_state_bytes() as u64 <= memory.0.min(2 * 20 * buffer) + 2 * 8192);
        // The base station retains no state, unless an end does.
        if !path.hosts.iter().flat_map(|host| host.connections()).all(Connection::is_over) {
            return Ok(());
        }
        path.run_until(at + Span::secs(100_000));
        let Agent::Split(agent) = &path.agent else { unreachable!() };
        // Two single resets may both be lost: then no packet is in flight, and the connection remains until
        // its memory is needed.
        if resets < 2 || agent.flows() == 0 {
            prop_assert_eq!((agent.flows(), agent.held_bytes()), (0, 0));
        }
    }
}

#[test]
fn a_file_crosses_hosts_and_base_station_in_both_directions() {
    let wire = Wire { byte: Span::micros(1), delay: Span::millis(2), losses: 20 };
    let config = AgentConfig::Split(SplitConfig::new(TcpConfig::linux()));
    let tcp = TcpConfig::linux();
    let mut path = Path::new([&tcp, &tcp], &config, [wire, wire], 3);
    path.hosts[0].connect(MOBILE, 80, Time::ZERO, 100_000);
    path.hosts[1].serve(100_000);
    let file =
        Plan { bytes: 1_000_000, piece: 65_536, real: true, appetite: u32::MAX, reset: None };
    let mut apps = [App::new(file, 1), App::new(Plan { piece: 777, ..file }, 2)];
    let mut at = Time::ZERO;
    for step in 0..20_000 {
        at += Span::millis(10);
        path.run_until(at);
        for (i, app) in apps.iter_mut().enumerate() {
            if !path.hosts[i].connections().is_empty() {
                path.act(i, 0, |connection, now, out| app.step(step, connection, now, out));
            }
        }
    }
    let states = [0, 1].map(|i| path.hosts[i].connections()[0].state());
    assert!(states.iter().all(|state| matches!(state, State::Closed | State::TimeWait)));
    for i in 0..2 {
        assert!(apps[i].received == whole(apps[1 - i].stream, 1_000_000), "host {i}");
        assert!(path.hosts[i].connections()[0].is_complete());
    }
}

/// A file transfer during which the base station must release its connections.
fn leaving(go: impl FnOnce(&mut Path)) -> (Path, [App; 2]) {
    let wire = Wire { byte: Span::micros(1), delay: Span::millis(2), losses: 0 };
    let config = AgentConfig::Split(SplitConfig::new(TcpConfig::linux()));
    let tcp = TcpConfig::linux();
    let mut path = Path::new([&tcp, &tcp], &config, [wire, wire], 3);
    path.hosts[0].connect(MOBILE, 80, Time::ZERO, 100_000);
    path.hosts[1].serve(100_000);
    let file = Plan { bytes: 500_000, piece: 65_536, real: true, appetite: u32::MAX, reset: None };
    let mut apps = [App::new(file, 1), App::new(file, 2)];
    let mut go = Some(go);
    for step in 0..1000 {
        path.run_until(Time::ZERO + Span::millis(10) * u64::from(step));
        for (i, app) in apps.iter_mut().enumerate() {
            if !path.hosts[i].connections().is_empty() {
                path.act(i, 0, |connection, now, out| app.step(step, connection, now, out));
            }
        }
        if apps[1].received.len() > 100_000
            && let Some(go) = go.take()
        {
            go(&mut path);
        }
    }
    assert!(go.is_none(), "it was gone before");
    (path, apps)
}

#[test]
fn connections_in_progress_finish_after_agent_replacement() {
    let (mut path, apps) = leaving(|path| {
        assert_eq!(path.agent.endings(), 1);
        path.agent.drain(Agent::new(&AgentConfig::None(Router))).expect("one is under way");
        assert!(path.agent.successor().is_none());
        // A connection opened now passes unsplit.
        path.hosts[0].connect(MOBILE, 81, path.now, 1000);
    });
    for i in 0..2 {
        assert!(apps[i].received == whole(apps[1 - i].stream, 500_000), "host {i}");
    }
    assert_eq!(path.agent.endings(), 0);
    assert!(matches!(path.agent.successor(), Some(Agent::None(_))));
    assert_eq!(path.hosts[0].connections()[1].state(), State::Established);
    let unsplit = path.hosts[1].connections().len();
    assert_eq!(unsplit, 2);
}

#[test]
fn a_reset_of_all_connections_reaches_both_ends() {
    let (path, _) = leaving(|path| path.reset_endings());
    assert_eq!(path.agent.endings(), 0);
    for host in &path.hosts {
        assert!(host.connections()[0].is_aborted());
    }
}

/// The fixed host has all its data, and the mobile host received more from it directly: the base station's
/// number is old.
#[test]
fn a_reset_reaches_ends_that_bypassed_the_base_station() {
    let wire = Wire { byte: Span(10), delay: Span::millis(2), losses: 0 };
    let tcp = TcpConfig { timestamps: false, ..TcpConfig::linux() };
    let agent = AgentConfig::Split(SplitConfig::new(tcp.clone()));
    let mut path = Path::new([&tcp, &tcp], &agent, [wire, wire], 3);
    path.hosts[0].connect(MOBILE, 80, Time::ZERO, 1 << 20);
    path.hosts[1].serve(1 << 20);
    let at = |millis| Time::ZERO + Span::millis(millis);
    let write = |path: &mut Path, offset| {
        path.act(0, 0, |connection, now, out| {
            connection.write(now, Body::Pattern { stream: 1, len: 1000, offset }, out)
        });
    };
    path.run_until(at(100));
    write(&mut path, 0);
    path.run_until(at(200));
    let station = core::mem::replace(&mut path.agent, Agent::new(&AgentConfig::None(Router)));
    write(&mut path, 1000);
    path.run_until(at(300));
    assert_eq!(path.hosts[1].connections()[0].delivered(), 2000);
    path.agent = station;
    path.reset_endings();
    path.run_until(at(400));
    for (i, host) in path.hosts.iter().enumerate() {
        assert!(host.connections()[0].is_aborted(), "host {i}");
    }
}

/// The same bytes arrive in fewer packets from the base station.
#[test]
fn in_bulk_the_base_station_sends_super_packets() {
    let wire = Wire { byte: Span(10), delay: Span::millis(2), losses: 0 };
    let tcp = TcpConfig::linux();
    let split = SplitConfig { largest: Some(Bytes(4 << 20)), ..SplitConfig::new(tcp.clone()) };
    let mut path = Path::new([&tcp, &tcp], &AgentConfig::Split(split), [wire, wire], 3);
    path.in_bulk();
    path.hosts[0].connect(MOBILE, 80, Time::ZERO, 1 << 20);
    path.hosts[1].serve(1 << 20);
    let bytes = 3_000_000;
    let file = Plan { bytes, piece: 65_536, real: true, appetite: u32::MAX, reset: None };
    let mut apps = [App::new(file, 1), App::new(Plan { bytes: 0, ..file }, 2)];
    for step in 0..300 {
        path.run_until(Time::ZERO + Span::millis(10) * u64::from(step));
        for (i, app) in apps.iter_mut().enumerate() {
            if !path.hosts[i].connections().is_empty() {
                path.act(i, 0, |connection, now, out| app.step(step, connection, now, out));
            }
        }
    }
    assert!(apps[1].received == whole(1, bytes));
    assert!(path.supers > 0);
}
