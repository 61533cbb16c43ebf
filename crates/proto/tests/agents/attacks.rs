//! Attacks by a third party that knows addresses and ports. No agent lets it end, stall, or alter a
//! connection, and its packets pass or are dropped.
//!
//! `ATTACK_PACKETS` is the number of packets from each side; `make attack` sets a million.

use lasthop_proto::agent::{AckpMode, Ebsn, Router};
use lasthop_proto::agent::{
    Agent, AgentConfig, MtcpConfig, NackAgent, PacketSizes, Reconstruction, SeqCacheAgent,
    SnoopAgent, SnoopConfig, SplitConfig,
};
use lasthop_proto::event::Interest;
use lasthop_proto::machine::{Machine as _, Out, Side};
use lasthop_proto::rng::Stream;
use lasthop_proto::tcp::host::flow_of;
use lasthop_proto::tcp::{Connection, TcpConfig};
use lasthop_proto::units::{Bytes, Span, Time};
use lasthop_proto::wire::{Body, Flags, FlowKey, Packet, Segment, Seq, Timestamps};
use proptest::prelude::*;

use crate::path::{FIXED, MOBILE, Narrow, Path, Wire};

/// All agents that process TCP, by their keywords.
fn agents() -> Vec<(&'static str, AgentConfig)> {
    let snoop = |snoop: SnoopConfig, ackp| AgentConfig::Snoop(SnoopAgent { snoop, ackp });
    let config = SnoopConfig::daedalus();
    let split =
        SplitConfig { largest: Some(Bytes(4 << 20)), ..SplitConfig::new(TcpConfig::linux()) };
    let mtcp = Some(MtcpConfig { knock: Span::millis(200), channel_signals: false });
    let all = [
        AgentConfig::None(Router),
        snoop(config.clone(), None),
        snoop(config.clone().selective(), None),
        snoop(SnoopConfig::linux().selective(), None),
        snoop(config.clone(), Some(AckpMode::Full)),
        AgentConfig::SnoopNack(NackAgent { snoop: config }),
        AgentConfig::SeqCache(SeqCacheAgent { flows: 100 }),
        AgentConfig::Split(split.clone()),
        AgentConfig::Split(split.clone().selective()),
        AgentConfig::Split(SplitConfig { mtcp, ..split }),
        AgentConfig::Ebsn(Ebsn { spacing: Span::ZERO }),
        AgentConfig::GoodPacketSize(PacketSizes::bakshi96()),
        AgentConfig::AckReconstruction(Reconstruction::default()),
    ];
    all.into_iter().map(|config| (config.word(), config)).collect()
}

fn packets() -> u32 {
    std::env::var("ATTACK_PACKETS").ok().and_then(|n| n.parse().ok()).unwrap_or(8_000)
}

const BYTES: u64 = 3_000_000;

fn path(agent: &AgentConfig, losses: u64, seed: u64) -> Path {
    // 50 Mb/s and some milliseconds.
    let wire = |losses| Wire { byte: Span(160), delay: Span::millis(5), losses };
    let tcp = TcpConfig::linux();
    let mut path = Path::new([&tcp, &tcp], agent, [wire(0), wire(losses)], seed);
    path.hosts[0].open(MOBILE, 9, Time::ZERO, Some(Bytes(BYTES)), 7);
    path
}

/// The flow of the connection, from the side of the host that a packet claims as its source.
fn flow(from: Side) -> FlowKey {
    let flow = flow_of(FIXED, MOBILE, 9, 0);
    if from == Side::Left { flow } else { flow.reversed() }
}

/// A segment that claims the host on this side as its source, with random numbers.
fn random(rng: &mut Stream, from: Side, flags: Flags, len: u32) -> Packet {
    let flow = flow(from);
    let mut number = || Seq(rng.next_u64() as u32);
    let mut segment = Segment::new(flow.src_port, flow.dst_port, number(), number(), flags);
    segment.window = rng.below(1 << 16) as u16;
    if rng.below(2) == 0 {
        let [value, echo] = [0, 1].map(|_| rng.next_u64() as u32);
        segment.timestamps = Some(Timestamps { value, echo });
    }
    Packet::tcp(flow.src, flow.dst, segment, Body::Pattern { stream: 3, len, offset: 0 })
}

/// The attacker's packets: mostly pure ACKs, and everything that opens, ends, or carries data.
fn hostile(rng: &mut Stream, from: Side) -> Packet {
    let flags = match rng.below(16) {
        0 => Flags::RST,
        1 => Flags::RST | Flags::ACK,
        2 => Flags::SYN,
        3 => Flags::SYN | Flags::ACK,
        4 => Flags::FIN | Flags::ACK,
        5 => Flags::SYN | Flags::FIN,
        _ => Flags::ACK,
    };
    let len = if rng.below(4) == 0 { rng.below(1400) as u32 } else { 0 };
    random(rng, from, flags, len)
}

fn is_done(path: &Path) -> bool {
    path.hosts[0].connections().first().is_some_and(Connection::is_complete)
}

/// Whether the receiver's end was reset, and the number of bytes delivered to it.
fn received(path: &Path) -> Option<(bool, u64)> {
    let connection = path.hosts[1].connection(flow(Side::Right))?;
    Some((connection.is_aborted(), connection.delivered()))
}

/// Completes the transfer and compares every byte with the sender's.
fn finish(path: &mut Path, word: &str, seconds: u64) {
    let until = path.now + Span::secs(seconds);
    while !(is_done(path) && received(path) == Some((false, BYTES))) && path.now < until {
        path.run_until(path.now + Span::millis(100));
    }
    let states = path.hosts.each_ref().map(|host| {
        let first = host.connections().first();
        first.map(|c| (c.state(), c.is_aborted(), c.acknowledged(), c.delivered()))
    });
    assert!(is_done(path), "{word}: {states:?} after {seconds} s");
    assert!(!path.corrupted, "{word}");
    assert_eq!(received(path), Some((false, BYTES)), "{word}");
}

#[test]
fn random_numbers_from_both_sides_harm_no_connection() {
    for (word, agent) in agents() {
        let (mut sent, total) = (0, packets());
        let mut rng = Stream::new(5, word);
        // Transfers in sequence, so that each packet meets an active one: it takes about half a second.
        for seed in 11.. {
            let mut path = path(&agent, 4, seed);
            // A SYN that claims the far end as its source would open both ends at once, with or without a
            // base station.
            while received(&path).is_none_or(|(_, bytes)| bytes == 0) {
                path.run_until(path.now + Span::millis(10));
            }
            let mut at = path.now;
            while sent < total && !is_done(&path) {
                at += Span::micros(40);
                path.run_until(at);
                for from in [Side::Left, Side::Right] {
                    let packet = hostile(&mut rng, from);
                    path.inject(from, packet);
                }
                sent += 1;
            }
            finish(&mut path, word, 60);
            if sent == total {
                break;
            }
        }
    }
}

/// Three ACKs with random sequence numbers that acknowledge eight segments which the receiver does not have.
#[test]
fn forged_acks_ahead_of_the_receiver_are_not_believed() {
    for (word, agent) in agents() {
        for seed in 0..8 {
            let mut path = path(&agent, 20, seed);
            let mut rng = Stream::new(seed, word);
            for at in [150, 160, 200, 300] {
                path.run_until(Time::ZERO + Span::millis(at));
                for _ in 0..3 {
                    // The handshake may have lost a segment.
                    let Some(real) = path.last[1].clone() else { continue };
                    let mut forged = random(&mut rng, Side::Right, Flags::ACK, 0);
                    let seen = real.segment().expect("TCP").clone();
                    if let lasthop_proto::wire::Transport::Tcp(segment) = &mut forged.transport {
                        segment.ack = seen.ack + 8 * 1448;
                        segment.window = seen.window;
                    }
                    path.inject(Side::Right, forged);
                }
            }
            finish(&mut path, word, 60);
        }
    }
}

/// A base station started in mid-connection: a SYN of a third party diverts no packet.
#[test]
fn a_forged_syn_does_not_divert_a_connection_that_passes_unsplit() {
    for (word, agent) in agents() {
        let mut path = path(&AgentConfig::None(Router), 4, 3);
        let mut rng = Stream::new(9, word);
        path.run_until(Time::ZERO + Span::millis(100));
        path.agent = Agent::new(&agent);
        for at in [100, 150, 200, 250] {
            path.run_until(Time::ZERO + Span::millis(at));
            for from in [Side::Left, Side::Right] {
                for flags in [Flags::SYN, Flags::SYN | Flags::ACK] {
                    let packet = random(&mut rng, from, flags, 0);
                    path.inject(from, packet);
                }
            }
        }
        finish(&mut path, word, 60);
    }
}

/// The forged SYN arrives first, or before the answer of the far end.
#[test]
fn a_forged_syn_delays_a_handshake_and_does_not_stop_it() {
    for (word, agent) in agents() {
        // With the far end as its source it would open both ends at once, with or without a base station.
        for (before, from) in [(true, Side::Left), (false, Side::Left)] {
            let mut path = Path::new(
                [&TcpConfig::linux(), &TcpConfig::linux()],
                &agent,
                [Wire { byte: Span(160), delay: Span::millis(5), losses: 0 }; 2],
                4,
            );
            let mut rng = Stream::new(1, word);
            let forged = random(&mut rng, from, Flags::SYN, 0);
            path.run_until(Time::ZERO + Span::millis(1));
            if before {
                path.inject(from, forged.clone());
            }
            let now = path.now;
            path.hosts[0].open(MOBILE, 9, now, Some(Bytes(BYTES)), 7);
            path.run_until(now + Span::millis(7));
            if !before {
                path.inject(from, forged);
            }
            finish(&mut path, &format!("{word} {before} {from:?}"), 60);
        }
    }
}

/// The link after the base station, or the one before it, has a smaller MTU than the hosts assume.
#[test]
fn a_narrow_link_is_found_by_messages_and_without() {
    let split = SplitConfig {
        largest: Some(Bytes(4 << 20)),
        suspects_size: true,
        ..SplitConfig::new(TcpConfig::linux())
    };
    for agent in [split.clone(), split.clone().selective()] {
        let agent = AgentConfig::Split(agent);
        for (mtu, reports, within) in [
            (1300, Some(1300), 2_000),
            (1300, Some(0), 3_000),
            (1300, None, 4_000),
            (600, None, 9_000),
            // Below the minimum of 552 bytes: routers fragment, as with Linux.
            (500, Some(500), 3_000),
            (500, Some(0), 3_000),
            (68, Some(68), 3_000),
        ] {
            let mut path = path(&agent, 0, 2);
            path.narrow = Some(Narrow { wire: 1, mtu, reports });
            finish(&mut path, &format!("{mtu} {reports:?}"), 60);
            let took = path.now.since(Time::ZERO);
            assert!(took < Span::millis(within), "{mtu} {reports:?}: {took:?}");
        }
    }
}

/// Reports that quote no sequence number in flight are ignored, and a valid one cannot make segments tiny.
#[test]
fn a_forged_report_does_not_shrink_segments_without_end() {
    let agent = AgentConfig::Split(SplitConfig::new(TcpConfig::linux()));
    let mut path = path(&agent, 0, 2);
    let mut rng = Stream::new(2, "reports");
    path.run_until(Time::ZERO + Span::millis(100));
    for _ in 0..packets() {
        let packet = random(&mut rng, Side::Left, Flags::ACK, 1400);
        let report = crate::path::too_big(&packet, rng.below(1500) as u16);
        path.inject(Side::Right, report);
    }
    finish(&mut path, "forged reports", 60);
}

/// A possible packet with a signature.
fn signed() -> impl Strategy<Value = (Side, Packet)> {
    let flags = prop::sample::select(vec![
        Flags::SYN,
        Flags::SYN | Flags::ACK,
        Flags::ACK,
        Flags::ACK,
        Flags::ACK | Flags::FIN,
    ]);
    let numbers = (0u32..20, 0u32..20, prop::sample::select(vec![0u32, 0, 1000]));
    (any::<bool>(), flags, numbers, any::<bool>(), any::<bool>()).prop_map(
        |(left, flags, (seq, ack, len), ao, sack)| {
            let from = if left { Side::Left } else { Side::Right };
            let flow = flow(from);
            let (seq, ack) = (Seq(1000 * seq), Seq(1000 * ack));
            let mut segment = Segment::new(flow.src_port, flow.dst_port, seq, ack, flags);
            segment.window = 20_000;
            let options = segment.options_mut();
            let (kind, len_of) = if ao { (29, 16) } else { (19, 18) };
            options.unknown = [&[kind, len_of][..], &vec![7; usize::from(len_of) - 2]].concat();
            if sack && !flags.has(Flags::SYN) {
                options.sack.push(ack + 1000, ack + 2000);
            }
            let body = Body::Pattern { stream: 1, len, offset: 0 };
            (from, Packet::tcp(flow.src, flow.dst, segment, body))
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// RFC 2385 and RFC 5925: any change invalidates a signed segment, and only its sender can create one.
    #[test]
    fn signed_segments_pass_unchanged_and_nothing_is_made_of_them(
        all in prop::collection::vec(signed(), 1..60),
    ) {
        for (word, config) in agents() {
            let mut agent = Agent::new(&config);
            let mut out = Out::new(Interest::METRICS);
            let mut now = Time::ZERO;
            for (from, packet) in &all {
                now += Span::millis(30);
                while let Some(wake) = agent.next_wake().filter(|wake| *wake <= now) {
                    agent.on_wake(wake, &mut out);
                }
                agent.on_packet(now, *from, packet.clone(), &mut out);
                let sent = core::mem::take(&mut out.sends);
                prop_assert_eq!(&sent, &vec![(from.other(), packet.clone())], "{}", word);
            }
        }
    }
}
