//! Explicit feedback to sources (bakshi96 4.2), with a simulated link layer.

use lasthop_proto::agent::{
    Agent, AgentConfig, BaseStation, Ebsn, Router, SeqCacheAgent, SourceQuench,
};
use lasthop_proto::event::{AgentNote, Cause, EventKind, Interest, Op};
use lasthop_proto::machine::{Machine, Out, Side, Signal};
use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::{
    Addr, Body, Damage, Flags, FlowKey, Notice, Packet, Quote, Segment, Seq,
};

const EBSN: AgentConfig = AgentConfig::Ebsn(Ebsn { spacing: Span::ZERO });
const QUENCH: AgentConfig = AgentConfig::SourceQuench(SourceQuench { spacing: Span::ZERO });

fn flow(port: u16) -> FlowKey {
    let (src, dst) = (Addr::v4(10, 0, 0, 1), Addr::v4(10, 1, 0, 1));
    FlowKey { src, dst, src_port: port, dst_port: 9 }
}

fn failed(port: u16, seq: u32, tries: u32) -> Signal {
    let discarded = tries == 13;
    Signal::AttemptFailed { flow: flow(port), seq: Seq(seq), len: 576, tries, discarded }
}

/// The agent's response to `signal` from the right at `ms`.
fn respond(agent: &mut Agent, ms: u64, signal: Signal) -> Out {
    let now = Time(ms * 1_000_000);
    let mut out = Out::new(Interest::METRICS);
    out.begin(Default::default(), now);
    agent.on_signal(now, Side::Right, signal, &mut out);
    out
}

#[test]
fn each_failed_attempt_notifies_the_source() {
    for (config, notice, cause) in [
        (EBSN, Notice::BadState, Cause::BadStateNotification),
        (QUENCH, Notice::SourceQuench, Cause::SourceQuench),
    ] {
        let mut agent = Agent::new(&config);
        // Two connections alternating, up to the last attempt: the agent stores no state of them.
        for tries in 1..=13 {
            for port in [1024, 1025] {
                let seq = u32::from(port) * 7;
                let mut out = respond(&mut agent, 1, failed(port, seq, tries));
                assert!(
                    out.signals.is_empty(),
                    "the source is notified once, not by each base station"
                );
                let (side, packet) = out.sends.pop().expect("a message");
                assert_eq!(side, Side::Left);
                let quote = Quote { flow: flow(port), seq: Seq(seq), len: 576 };
                assert_eq!(packet.quote(), Some((notice, quote)));
                assert_eq!((packet.dst, packet.src), (flow(port).src, flow(port).dst));
                let [event] = &out.events[..] else { panic!("{:?}", out.events) };
                assert_eq!(
                    event.kind,
                    EventKind::Packet { op: Op::Originated(cause), side: Side::Left, packet }
                );
                assert_eq!(out.take_tally().originated, 1);
            }
        }
        assert_eq!((agent.flows(), agent.state_bytes(), agent.peak_state_bytes()), (0, 0, 0));
        assert_eq!(agent.next_wake(), None);
    }
}

#[test]
fn the_rate_limit_withholds_notices_and_reports_it() {
    for config in [
        AgentConfig::Ebsn(Ebsn { spacing: Span::millis(100) }),
        AgentConfig::SourceQuench(SourceQuench { spacing: Span::millis(100) }),
    ] {
        let mut agent = Agent::new(&config);
        let mut sent = Vec::new();
        for ms in [0, 1, 99, 100, 150, 199, 200, 1000] {
            let out = respond(&mut agent, ms, failed(1024, 1, 1));
            match &out.events[0].kind {
                EventKind::Agent { flow: f, note: AgentNote::NoticeWithheld } => {
                    assert_eq!(*f, flow(1024));
                    assert!(out.sends.is_empty());
                }
                _ => sent.push(ms),
            }
        }
        assert_eq!(sent, [0, 100, 200, 1000]);
    }
}

#[test]
fn other_signals_pass_and_so_do_packets() {
    let mut agent = Agent::new(&EBSN);
    let out = respond(&mut agent, 0, Signal::ChannelGood(false));
    assert_eq!(out.signals, [(Side::Left, Signal::ChannelGood(false))]);
    assert!(out.sends.is_empty() && out.events.is_empty());
    // A failure on the wired side is not one of the wireless link.
    let mut out = Out::new(Interest::METRICS);
    agent.on_signal(Time::ZERO, Side::Left, failed(1024, 1, 1), &mut out);
    assert_eq!((out.signals.len(), out.signals[0].0, out.sends.len()), (1, Side::Right, 0));

    let FlowKey { src, dst, .. } = flow(1024);
    let data = Packet::tcp(
        src,
        dst,
        Segment::new(1024, 9, Seq(1), Seq(1), Flags::ACK),
        Body::Pattern { stream: 1, len: 536, offset: 0 },
    );
    let notice = Packet::notice(Notice::BadState, &Quote::of(&data).unwrap());
    for (from, packet) in [(Side::Left, data.clone()), (Side::Right, notice)] {
        let mut out = Out::new(Interest::METRICS);
        agent.on_packet(Time::ZERO, from, packet.clone(), &mut out);
        assert_eq!(out.sends, [(from.other(), packet)]);
    }
    let mut out = Out::new(Interest::METRICS);
    agent.on_packet(
        Time::ZERO,
        Side::Left,
        data.with(|packet| packet.damage = Damage::Ip),
        &mut out,
    );
    assert!(out.sends.is_empty() && out.take_tally().discarded == 1);
}

#[test]
fn every_other_agent_passes_signals_on() {
    let others = [
        AgentConfig::None(Router),
        AgentConfig::SeqCache(SeqCacheAgent { flows: 1 }),
        AgentConfig::GoodPacketSize(lasthop_proto::agent::PacketSizes::bakshi96()),
    ];
    for config in others {
        let out = respond(&mut Agent::new(&config), 0, failed(1024, 1, 1));
        assert_eq!(out.signals, [(Side::Left, failed(1024, 1, 1))], "{config:?}");
    }
}
