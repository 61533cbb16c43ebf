//! Segments are limited to the best packet size for the channel (bakshi96 4.1).

use std::net::IpAddr;
use std::sync::Arc;

use lasthop_proto::agent::{Agent, AgentConfig, PacketSizes};
use lasthop_proto::event::{AgentNote, EventKind, Interest};
use lasthop_proto::machine::{Machine, Out, Side};
use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::emit::emit;
use lasthop_proto::wire::parse::parse;
use lasthop_proto::wire::{Addr, Body, Damage, Flags, Packet, Segment, Seq, Timestamps};

fn agent(size: u32) -> Agent {
    let table = vec![(Span::ZERO, size)];
    Agent::new(&AgentConfig::GoodPacketSize(PacketSizes { table, bad_period: Span::ZERO }))
}

fn syn(v4: bool, flags: Flags, mss: Option<u16>) -> Packet {
    let addr = |text: &str| Addr::from(text.parse::<IpAddr>().unwrap());
    let (a, b) = if v4 { ("10.0.0.1", "10.1.0.1") } else { ("fd00::1", "fd00:1::1") };
    let mut segment = Segment::new(1024, 9, Seq(5), Seq(0), flags);
    segment.timestamps = Some(Timestamps { value: 1, echo: 2 });
    segment.options_mut().mss = mss;
    segment.options_mut().window_scale = Some(7);
    segment.options_mut().sack_permitted = true;
    Packet::tcp(addr(a), addr(b), segment, Body::EMPTY)
}

/// The result for `packet` after conversion to bytes and back: it must have a right checksum.
fn pass(agent: &mut Agent, from: Side, packet: Packet) -> (Packet, Option<u16>) {
    let mut out = Out::new(Interest::METRICS);
    agent.on_packet(Time::ZERO, from, packet, &mut out);
    let (side, packet) = out.sends.pop().expect("it is passed on");
    assert!(side == from.other() && out.sends.is_empty());
    let clamped = out.events.pop().map(|event| match event.kind {
        EventKind::Agent { note: AgentNote::SegmentClamped { mss }, .. } => mss,
        other => panic!("{other:?}"),
    });
    let mut bytes = Vec::new();
    emit(&packet, &mut bytes).unwrap();
    let parsed = parse(&Arc::from(bytes), 0, true).unwrap();
    assert_eq!(parsed.damage, Damage::None);
    assert_eq!(parsed.segment(), packet.segment());
    (packet, clamped)
}

#[test]
fn the_mss_of_a_syn_is_lowered_in_both_directions_and_families() {
    for (v4, headers) in [(true, 40), (false, 60)] {
        for (from, flags) in [
            (Side::Left, Flags::SYN),
            (Side::Right, Flags::SYN | Flags::ACK),
            (Side::Right, Flags::SYN),
        ] {
            let packet = syn(v4, flags, Some(1460));
            let (passed, clamped) = pass(&mut agent(576), from, packet.clone());
            assert_eq!(clamped, Some(576 - headers));
            let mut expected = packet.clone();
            if let lasthop_proto::wire::Transport::Tcp(segment) = &mut expected.transport {
                segment.options_mut().mss = Some(576 - headers);
            }
            assert_eq!(passed, expected, "nothing else changes");
            // A small enough value is unchanged.
            let small = syn(v4, flags, Some(200));
            assert_eq!(pass(&mut agent(576), from, small.clone()), (small, None));
        }
    }
}

#[test]
fn a_missing_mss_option_implies_the_default_mss() {
    for (v4, default) in [(true, 536), (false, 1220)] {
        let headers = if v4 { 40 } else { 60 };
        let silent = syn(v4, Flags::SYN, None);
        assert_eq!(
            pass(&mut agent(default + headers), Side::Left, silent.clone()),
            (silent.clone(), None)
        );
        let (packet, clamped) = pass(&mut agent(default + headers - 1), Side::Left, silent);
        assert_eq!(clamped, Some(default as u16 - 1));
        assert_eq!(packet.segment().unwrap().options().mss, clamped);
    }
    // Without room for the option the packet passes unchanged.
    let mut full = syn(true, Flags::SYN, None);
    if let lasthop_proto::wire::Transport::Tcp(segment) = &mut full.transport {
        segment.options_mut().unknown =
            vec![30, 20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert!(segment.header_len() > 56);
    }
    assert_eq!(pass(&mut agent(100), Side::Left, full.clone()), (full, None));
}

#[test]
fn non_syn_and_damaged_segments_pass_unchanged() {
    let data = syn(true, Flags::ACK, Some(1460));
    assert_eq!(pass(&mut agent(576), Side::Left, data.clone()), (data, None));
    let mut out = Out::new(Interest::METRICS);
    let damaged = syn(true, Flags::SYN, Some(1460)).with(|packet| packet.damage = Damage::Tcp);
    agent(576).on_packet(Time::ZERO, Side::Left, damaged.clone(), &mut out);
    assert_eq!(out.sends, [(Side::Right, damaged)]);
    // A size smaller than the headers leaves one byte of payload.
    let (packet, _) = pass(&mut agent(0), Side::Left, syn(true, Flags::SYN, Some(1460)));
    assert_eq!(packet.segment().unwrap().options().mss, Some(1));
}
