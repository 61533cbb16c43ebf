//! Properties of every agent, for any packets.

use lasthop_proto::agent::{
    AckpMode, Agent, AgentConfig, BaseStation, DupAcks, NackAgent, Router, SeqCacheAgent,
    SnoopAgent, SnoopConfig, SplitConfig,
};
use lasthop_proto::event::{EventKind, Interest, Op};
use lasthop_proto::machine::{Machine, Out, Side};
use lasthop_proto::tcp::TcpConfig;
use lasthop_proto::units::{Bytes, Span, Time};
use lasthop_proto::wire::{
    Ackp, Addr, Body, Damage, Eln, Flags, Nack, Packet, PacketId, Segment, Seq, Smart, Transport,
};
use proptest::prelude::*;

const FLOWS: usize = 3;
const FLOW_PACKETS: usize = 5;
const CACHE: u64 = 4_000;

fn configs() -> impl Strategy<Value = AgentConfig> {
    let ackp =
        prop_oneof![Just(None), Just(Some(AckpMode::Full)), Just(Some(AckpMode::EveryPacket))];
    // Times of zero are allowed: they must not stop the clock.
    let times = (0u64..3, 0u64..3, 0u64..3);
    let kinds = (ackp, any::<bool>(), any::<bool>(), any::<bool>());
    let snoop = (0u32..3, times, 0u32..5, any::<bool>(), kinds).prop_map(
        |(dupacks, (initial, min, persist), max_retransmits, rtt_fault, kinds)| {
            let (ackp, selective, pass, nack) = kinds;
            let snoop = SnoopConfig {
                dupacks,
                selective,
                dup_acks: if pass { DupAcks::Pass } else { DupAcks::Suppress },
                initial_timeout: Span::millis(initial * 20),
                min_timeout: Span::millis(min * 10),
                persist: Span::millis(persist * 50),
                max_retransmits,
                rtt_fault,
                flow_packets: FLOW_PACKETS,
                flows: FLOWS,
                cache: Bytes(CACHE),
                ..SnoopConfig::west97()
            };
            match nack {
                true => AgentConfig::SnoopNack(NackAgent { snoop }),
                false => AgentConfig::Snoop(SnoopAgent { snoop, ackp }),
            }
        },
    );
    prop_oneof![
        1 => Just(AgentConfig::None(Router)),
        4 => snoop,
        2 => Just(AgentConfig::SeqCache(SeqCacheAgent { flows: FLOWS })),
        4 => splits(),
    ]
}

fn splits() -> impl Strategy<Value = AgentConfig> {
    let presets = prop::sample::select(vec!["freebsd-2.1", "ns", "rfc", "linux"]);
    (presets, any::<bool>(), 1u64..3_000).prop_map(|(preset, selective, buffer)| {
        let tcp = TcpConfig::preset(preset).unwrap();
        let config = SplitConfig {
            buffer: Bytes(buffer),
            flows: FLOWS,
            memory: Bytes(CACHE),
            ..SplitConfig::new(tcp)
        };
        AgentConfig::Split(if selective { config.selective() } else { config })
    })
}

/// A packet of one of a few connections, with numbers that are plausible most of the time.
fn packets() -> impl Strategy<Value = (Side, Packet)> {
    let numbers = prop_oneof![20 => 0u32..20, 1 => any::<u32>()];
    let flags = prop_oneof![
        20 => Just(Flags::ACK),
        2 => Just(Flags::SYN),
        1 => Just(Flags::SYN | Flags::ACK),
        1 => Just(Flags::FIN | Flags::ACK),
        1 => Just(Flags::RST),
        1 => (0u16..512).prop_map(Flags),
    ];
    let damage = prop_oneof![
        10 => Just(Damage::None),
        1 => Just(Damage::Ip),
        1 => Just(Damage::Tcp),
    ];
    let sizes = prop_oneof![3 => Just(0u32), 5 => Just(100), 2 => 1u32..400];
    let reports = prop_oneof![3 => Just(0u32), 1 => 1u32..20];
    let options = (any::<bool>(), reports);
    (any::<bool>(), 0u16..5, numbers, sizes, flags, damage, 0u16..3, options, any::<bool>())
        .prop_map(|(left, port, number, size, flags, damage, window, (options, report), tcp)| {
            let (src, dst) = (Addr::v4(10, 0, 0, 1), Addr::v4(10, 1, 0, 1));
            // Close to the wrap.
            let number = Seq(u32::MAX - 900) + number.wrapping_mul(100);
            let mut segment = Segment::new(port, 9, number, Seq(50), flags);
            segment.window = window * 1000;
            if options {
                segment.options_mut().ackp = Some(Ackp::Permitted);
                segment.options_mut().eln = Some(Eln::Permitted);
                segment.options_mut().nack = Some(Nack::Permitted);
            }
            if report > 0 {
                let start = Seq(u32::MAX - 900) + report * 100;
                segment.options_mut().sack.push(start, start + 150);
                segment.options_mut().smart = Some(Smart::Caused(start));
            }
            let body = Body::Pattern { stream: 0, len: size, offset: 0 };
            let mut packet = Packet::tcp(src, dst, segment, body);
            if !left {
                (packet.src, packet.dst) = (dst, src);
                if let Transport::Tcp(s) = &mut packet.transport {
                    (s.src_port, s.dst_port) = (s.dst_port, s.src_port);
                    (s.seq, s.ack) = (s.ack, s.seq);
                }
            }
            if !tcp && port == 4 {
                packet.transport = Transport::Other(17);
            }
            packet.damage = damage;
            (if left { Side::Left } else { Side::Right }, packet)
        })
}

/// Checks the output, and counts the ends of the packet `id`.
fn ends_of(id: u64, split: bool, out: &mut Out) -> Result<usize, TestCaseError> {
    let mut ends = 0;
    let mut originated = Vec::new();
    for event in out.events.drain(..) {
        match event.kind {
            EventKind::Packet { op: Op::Originated(cause), side, packet } => {
                let to_mobile = cause.is_local_retransmission()
                    || packet.segment().is_some_and(|s| s.options().nack.is_some());
                let towards = if to_mobile { Side::Right } else { Side::Left };
                prop_assert!(split || side == towards, "{:?}", cause);
                originated.push(packet.id);
            }
            EventKind::Packet { op: Op::Dropped(_), packet, .. } => {
                prop_assert_eq!(packet.id, PacketId(id));
                ends += 1;
            }
            EventKind::Agent { .. } => {}
            EventKind::Split(_) if split => {}
            other => prop_assert!(false, "{:?}", other),
        }
    }
    for (_, packet) in out.sends.drain(..) {
        if packet.id == PacketId(id) {
            ends += 1;
        } else {
            prop_assert!(originated.contains(&packet.id), "sent without a reason");
        }
    }
    Ok(ends)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]
    #[test]
    fn packets_are_conserved_time_moves_and_memory_is_bounded(
        config in configs(),
        steps in prop::collection::vec((0u64..40_000, packets()), 1..120),
    ) {
        let mut agent = Agent::new(&config);
        let split = matches!(agent, Agent::Split(_));
        let mut out = Out::new(Interest::EVERYTHING);
        let mut now = Time::ZERO;
        for (n, (gap, (side, mut packet))) in steps.into_iter().enumerate() {
            let then = now + Span::micros(gap);
            while let Some(at) = agent.next_wake().filter(|at| *at <= then) {
                prop_assert!(at >= now, "a deadline in the past");
                now = at;
                out.begin(Default::default(), now);
                agent.on_wake(now, &mut out);
                prop_assert!(agent.next_wake().is_none_or(|next| next > now));
                prop_assert_eq!(ends_of(u64::MAX, split, &mut out)?, 0);
            }
            now = then;
            let id = (1 << 40) + n as u64;
            packet.id = PacketId(id);
            out.begin(Default::default(), now);
            agent.on_packet(now, side, packet, &mut out);
            prop_assert_eq!(ends_of(id, split, &mut out)?, 1);

            prop_assert_eq!(agent.holds(), 0);
            prop_assert!(agent.flows() <= FLOWS);
            prop_assert!(agent.state_bytes() <= agent.peak_state_bytes());
            // A split connection has two complete TCP control blocks.
            let block = match agent {
                Agent::Split(_) => 4096,
                // The state of snoop, and that of the other direction with its holes.
                Agent::SnoopNack(_) => 3072,
                _ => 1024,
            };
            prop_assert!(agent.state_bytes() <= FLOWS * block + CACHE as usize);
            if let Agent::Split(split) = &agent {
                prop_assert!(split.held_bytes() <= CACHE);
            }
            if let Agent::SnoopNack(snoop) = &agent {
                prop_assert!(snoop.cached_bytes() <= CACHE);
            }
            if let Agent::Snoop(snoop) = &agent {
                prop_assert!(snoop.cached_bytes() <= CACHE);
            }
        }
    }
}

#[test]
fn a_silent_peer_is_not_prodded_for_ever() {
    for ackp in [None, Some(AckpMode::Full)] {
        let snoop = SnoopConfig { max_retransmits: 7, ..SnoopConfig::west97() };
        let mut agent = Agent::new(&AgentConfig::Snoop(SnoopAgent { snoop, ackp }));
        let mut out = Out::new(Interest::EVERYTHING);
        let segment = Segment::new(1, 2, Seq(9), Seq(0), Flags::ACK);
        let body = Body::Pattern { stream: 0, len: 100, offset: 0 };
        let packet = Packet::tcp(Addr::v4(1, 1, 1, 1), Addr::v4(2, 2, 2, 2), segment, body);
        agent.on_packet(Time::ZERO, Side::Left, packet, &mut out);
        let mut wakes = 0;
        while let Some(at) = agent.next_wake() {
            agent.on_wake(at, &mut out);
            wakes += 1;
        }
        assert_eq!(wakes, 7);
    }
}

#[test]
fn sequence_numbers_take_a_tenth_of_the_memory_of_packets() {
    // A window of 16 KiB in flight, as in west97.
    let peak = |config: AgentConfig| {
        let mut agent = Agent::new(&config);
        let mut out = Out::new(Interest::NOTHING);
        let (src, dst) = (Addr::v4(1, 1, 1, 1), Addr::v4(2, 2, 2, 2));
        let mut syn = Segment::new(1, 2, Seq(0), Seq(0), Flags::SYN);
        syn.options_mut().eln = Some(Eln::Permitted);
        agent.on_packet(Time::ZERO, Side::Left, Packet::tcp(src, dst, syn, Body::EMPTY), &mut out);
        for n in 0..11 {
            let segment = Segment::new(1, 2, Seq(1 + 1460 * n), Seq(1), Flags::ACK);
            let body = Body::Pattern { stream: 0, len: 1460, offset: 0 };
            agent.on_packet(Time::ZERO, Side::Left, Packet::tcp(src, dst, segment, body), &mut out);
        }
        let mut ack = Segment::new(2, 1, Seq(1), Seq(1 + 1460 * 11), Flags::ACK);
        ack.window = 1000;
        agent.on_packet(Time::ZERO, Side::Right, Packet::tcp(dst, src, ack, Body::EMPTY), &mut out);
        assert_eq!(agent.flows(), 1);
        assert!(agent.state_bytes() < 1000, "{}", agent.state_bytes());
        agent.peak_state_bytes()
    };
    let snoop = peak(AgentConfig::Snoop(SnoopAgent { snoop: SnoopConfig::west97(), ackp: None }));
    let seq_cache = peak(AgentConfig::SeqCache(SeqCacheAgent { flows: 4 }));
    assert!(snoop >= 10 * seq_cache, "{snoop} {seq_cache}");
}
