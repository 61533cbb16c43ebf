//! Hosts that fall silent: the base station's packets and memory stay bounded, for every sender.

use lasthop_proto::agent::{AgentConfig, BaseStation as _, Router, SplitConfig};
use lasthop_proto::machine::Side;
use lasthop_proto::rng::Stream;
use lasthop_proto::tcp::TcpConfig;
use lasthop_proto::tcp::words::TCPS;
use lasthop_proto::units::{Bytes, Span, Time};
use lasthop_proto::wire::{Body, CE, ECT, Flags, Packet, Transport};

use crate::path::{MOBILE, Path, Wire};

/// Wires of the fixed and of the mobile host.
const WIRED: usize = 0;
const AIR: usize = 1;

/// A split connection as stations configure it: lost full segments may be too large for the path.
fn station(apply: impl Fn(&mut TcpConfig)) -> SplitConfig {
    let mut tcp = TcpConfig::linux();
    apply(&mut tcp);
    let largest = Some(Bytes(4 << 20));
    SplitConfig { largest, suspects_size: true, ..SplitConfig::new(tcp) }
}

/// Packets towards a mobile host that is silent from `silent` on, until `until`. The fixed host writes `first` bytes at
/// the start, and `then` bytes at the time of the silence.
fn packets(agent: &AgentConfig, bulk: bool, (first, then): (u32, u32), silent: Time) -> u64 {
    let wire = Wire { byte: Span(80), delay: Span::millis(5), losses: 0 };
    let tcp = TcpConfig::linux();
    let mut path = Path::new([&tcp, &tcp], agent, [wire, wire], 1);
    if bulk {
        path.in_bulk();
    }
    path.hosts[0].connect(MOBILE, 80, Time::ZERO, 8 << 20);
    path.hosts[1].serve(1 << 20);
    path.run_until(Time::ZERO + Span::millis(100));
    let mut offset = 0;
    let mut write = |path: &mut Path, len| {
        let body = Body::Pattern { stream: 1, offset, len };
        let taken = path.act(0, 0, |connection, now, out| connection.write(now, body, out));
        offset += u64::from(taken);
    };
    write(&mut path, first);
    path.run_until(silent);
    path.silence(AIR, true);
    write(&mut path, then);
    let before = path.carried[AIR][Side::Right.index()];
    let state = path.agent.peak_state_bytes();
    path.run_until(silent + Span::secs(120));
    assert!(path.agent.peak_state_bytes() <= state.max(9 << 20), "memory stays flat");
    path.carried[AIR][Side::Right.index()] - before
}

/// A host that is silent right after the handshake, after some data, and in mid-download: at most the packets of a host
/// behind a bridge, and a window that the base station had buffered.
#[test]
fn few_packets_are_sent_to_a_silent_host() {
    let at = |millis| Time::ZERO + Span::millis(millis);
    let cases = [((0, 1448), at(200)), ((0, 300_000), at(200)), ((6_000_000, 0), at(500))];
    for (writes, silent) in cases {
        let bridge = packets(&AgentConfig::None(Router), false, writes, silent);
        assert!((5..3000).contains(&bridge), "{bridge}");
        for word in TCPS {
            for bulk in [false, true] {
                let agent = AgentConfig::Split(station(word.apply));
                let split = packets(&agent, bulk, writes, silent);
                assert!(split <= 2 * bridge + 50, "{} {writes:?}: {split}, {bridge}", word.key);
            }
        }
    }
}

/// A connection over a station with `config` whose ends have exchanged 1000 bytes each.
fn connected(config: SplitConfig, tcp: &TcpConfig) -> Path {
    let wire = Wire { byte: Span(80), delay: Span::millis(5), losses: 0 };
    let mut path = Path::new([tcp, tcp], &AgentConfig::Split(config), [wire, wire], 1);
    path.hosts[0].connect(MOBILE, 80, Time::ZERO, 1 << 20);
    path.hosts[1].serve(1 << 20);
    path.run_until(Time::ZERO + Span::millis(100));
    for i in 0..2 {
        path.act(i, 0, |connection, now, out| {
            connection.write(now, Body::Pattern { stream: 1, len: 1000, offset: 0 }, out)
        });
    }
    path.run_until(Time::ZERO + Span::secs(1));
    path
}

/// A keep-alive after the last packet that arrived from `from`, with `len` bytes.
fn keep_alive(path: &Path, from: Side, len: u32) -> Packet {
    let last = path.last[from.index()].clone().expect("a packet");
    let sent = last.segment().map(|s| s.seq + s.seq_len(last.body.len())).expect("a segment");
    last.with(|packet| {
        if let Transport::Tcp(segment) = &mut packet.transport {
            (segment.seq, segment.flags) = (sent + u32::MAX, Flags::ACK);
        }
        packet.body = Body::Pattern { stream: 0, len, offset: 0 };
    })
}

/// A keep-alive reaches the other end, and is answered only if that end answers. So a vanished peer is found.
#[test]
fn keep_alives_act_end_to_end() {
    for (from, len) in [(Side::Left, 0), (Side::Left, 1), (Side::Right, 0), (Side::Right, 1)] {
        let (near, far) = match from {
            Side::Left => (WIRED, AIR),
            Side::Right => (AIR, WIRED),
        };
        let tcp = TcpConfig::linux();
        let mut path = connected(station(|_| {}), &tcp);
        let counts = |path: &Path| {
            [path.carried[far][from.other().index()], path.carried[near][from.index()]]
        };
        let probe = keep_alive(&path, from, len);
        for alive in [true, false] {
            path.silence(far, !alive);
            let before = counts(&path);
            path.inject(from, probe.clone());
            path.run_until(path.now + Span::secs(5));
            let [probes, answers] = counts(&path);
            let got = [probes - before[0], answers - before[1]];
            assert_eq!(got, [1, u64::from(alive)], "{from:?} {len} {alive}");
        }
    }
}

/// The base station uses the class of the hosts' packets, and the ECN that they agree on.
#[test]
fn the_class_of_packets_and_their_ecn_bits_are_those_of_the_hosts() {
    for ecn in [false, true] {
        let tcp = TcpConfig { ecn, ..TcpConfig::linux() };
        let mut path = connected(station(|_| {}), &tcp);
        for from in Side::BOTH {
            let mut probe = keep_alive(&path, from, 0);
            (probe.tos, probe.label) = (0xb8 | ECT, 7);
            path.inject(from, probe);
            path.run_until(path.now + Span::secs(1));
            let i = if from == Side::Left { 0 } else { 1 };
            path.act(i, 0, |connection, now, out| {
                connection.write(now, Body::Pattern { stream: 1, len: 100, offset: 1000 }, out)
            });
            path.run_until(path.now + Span::secs(1));
        }
        // The hosts' own packets have class 0, which the base station follows.
        let sent = path.sent_by_agent.iter();
        let classes: Vec<_> =
            sent.clone().map(|(side, tos, label)| (*side, tos & !CE, *label)).collect();
        for side in Side::BOTH {
            assert!(
                classes.contains(&(side, 0xb8, 7)) && classes.contains(&(side, 0, 0)),
                "{classes:?}"
            );
        }
        assert_eq!(sent.clone().any(|(_, tos, _)| tos & CE == ECT), ecn);
    }
}

/// The mobile host closes the connections that the fixed host has closed.
fn close_finished(path: &mut Path) {
    for server in 0..path.hosts[1].connections().len() {
        if path.hosts[1].connections()[server].peer_has_closed() {
            path.act(1, server, |connection, now, out| connection.close(now, out));
        }
    }
}

/// Packets over the air, by quarters of a day in which 1,000 connections open, send, and close. Meanwhile the mobile host falls
/// silent again and again, also until the next one. Also the number of connections that are left an hour later, and the memory.
fn day(agent: &AgentConfig) -> ([u64; 4], usize, usize) {
    const CONNECTIONS: usize = 1000;
    let wire = Wire { byte: Span(80), delay: Span::millis(5), losses: 2 };
    let tcp = TcpConfig::linux();
    let mut path = Path::new([&tcp, &tcp], agent, [wire, wire], 1);
    path.hosts[1].serve(1 << 20);
    let mut draws = Stream::new(1, "day");
    let mut draw = |most: u64| draws.below(most);
    let mut quarters = [0; 4];
    for n in 0..CONNECTIONS {
        let before = path.carried[AIR].iter().sum::<u64>();
        let begin = path.now;
        path.hosts[0].connect(MOBILE, 80, path.now, 1 << 20);
        path.run_until(path.now + Span::millis(draw(1000)));
        path.act(0, n, |connection, now, out| {
            let len = 1 + draw(30_000) as u32;
            connection.write(now, Body::Pattern { stream: 1, offset: 0, len }, out);
        });
        path.run_until(path.now + Span::millis(draw(1000)));
        if draw(3) == 0 {
            path.silence(AIR, true);
        }
        // A connection lasts for a while, and closes even if the other host is silent.
        if let Some(old) = n.checked_sub(4) {
            path.act(0, old, |connection, now, out| connection.close(now, out));
        }
        path.run_until(path.now + Span::millis(draw(80_000)));
        if draw(6) != 0 {
            path.silence(AIR, false);
        }
        close_finished(&mut path);
        path.run_until(begin + Span::millis(86_400));
        quarters[n * 4 / CONNECTIONS] += path.carried[AIR].iter().sum::<u64>() - before;
    }
    let most = path.agent.peak_state_bytes();
    for n in CONNECTIONS - 4..CONNECTIONS {
        path.act(0, n, |connection, now, out| connection.close(now, out));
    }
    path.silence(AIR, false);
    for _ in 0..2 {
        path.run_until(path.now + Span::secs(1800));
        close_finished(&mut path);
    }
    path.run_until(path.now + Span::secs(60));
    (quarters, path.agent.endings(), most)
}

#[test]
fn a_day_of_hosts_that_fall_silent_leaves_nothing_behind() {
    let (bridge, _, _) = day(&AgentConfig::None(Router));
    let (split, left, memory) = day(&AgentConfig::Split(station(|_| {})));
    println!("packets in quarters: {split:?}, bridge {bridge:?}; {left} left, {memory} bytes");
    assert_eq!(left, 0);
    assert!(memory <= 9 << 20, "{memory}");
    for (split, bridge) in split.into_iter().zip(bridge) {
        assert!(
            split <= bridge + bridge / 4,
            "{split} packets in a quarter, {bridge} with a bridge"
        );
    }
}
