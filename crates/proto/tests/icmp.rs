//! Messages to sources survive the conversion to bytes; similar messages stay opaque and do no harm.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use lasthop_proto::wire::emit::{emit, emit_prefix};
use lasthop_proto::wire::parse::{Mode, parse, view};
use lasthop_proto::wire::{
    Addr, Body, Damage, Flags, FlowKey, Notice, Packet, PacketId, Quote, Segment, Seq, Transport,
};
use proptest::prelude::*;

fn quotes() -> impl Strategy<Value = Quote> {
    let v6 = |bits: u128| Addr::from(IpAddr::V6(Ipv6Addr::from_bits(bits | 1 << 127)));
    let v4 = |bits: u32| Addr::from(IpAddr::V4(Ipv4Addr::from_bits(bits)));
    let addresses = prop_oneof![
        any::<(u32, u32)>().prop_map(move |(a, b)| (v4(a), v4(b))),
        any::<(u128, u128)>().prop_map(move |(a, b)| (v6(a), v6(b))),
    ];
    (addresses, any::<(u16, u16, u32)>(), 60u32..=0xffff).prop_map(
        |((src, dst), (src_port, dst_port, seq), len)| {
            let flow = FlowKey { src, dst, src_port, dst_port };
            Quote { flow, seq: Seq(seq), len }
        },
    )
}

fn notices() -> impl Strategy<Value = (Notice, Quote)> {
    (prop::sample::select(Notice::ALL.to_vec()), quotes())
}

fn bytes_of(packet: &Packet) -> Arc<[u8]> {
    let mut out = Vec::new();
    assert_eq!(emit(packet, &mut out), Ok(out.len()));
    out.into()
}

fn example(v4: bool) -> Packet {
    let addr = |text: &str| Addr::from(text.parse::<IpAddr>().unwrap());
    let (src, dst) = if v4 { ("10.0.0.1", "10.1.0.1") } else { ("fd00::1", "fd00:1::1") };
    let flow = FlowKey { src: addr(src), dst: addr(dst), src_port: 1024, dst_port: 9 };
    Packet::notice(Notice::BadState, &Quote { flow, seq: Seq(0x0102_0304), len: 532 })
}

/// The bytes by hand, from RFC 792 and RFC 791.
#[test]
fn a_notification_on_the_wire() {
    let bytes = bytes_of(&example(true));
    assert_eq!(bytes.len(), 20 + 8 + 28);
    assert_eq!(bytes[9], 1, "ICMP");
    assert_eq!(bytes[12..20], [10, 1, 0, 1, 10, 0, 0, 1], "to the source");
    assert_eq!((bytes[20], bytes[21], &bytes[24..28]), (253, 0, &[0; 4][..]));
    let quote = &bytes[28..];
    assert_eq!((quote[0], &quote[2..4], quote[9]), (0x45, &[2, 0x14][..], 6));
    assert_eq!(quote[12..20], [10, 0, 0, 1, 10, 1, 0, 1]);
    assert_eq!(quote[20..], [4, 0, 0, 9, 1, 2, 3, 4]);
    assert_eq!(lasthop_proto::wire::checksum::checksum(&bytes[20..]), 0);
    assert_eq!(lasthop_proto::wire::checksum::checksum(&quote[..20]), 0);

    let bytes = bytes_of(&example(false));
    assert_eq!((bytes.len(), bytes[6], bytes[40], bytes[41]), (40 + 8 + 48, 58, 100, 0));
}

proptest! {
    #[test]
    fn a_notice_survives_encoding_and_parsing(
        (notice, quote) in notices(),
        (tos, ttl, id) in any::<(u8, u8, u64)>(),
        more in prop::collection::vec(any::<u8>(), 0..600),
        damage in prop::sample::select(vec![Damage::None, Damage::Ip, Damage::Tcp]),
    ) {
        let mut packet = Packet::notice(notice, &quote);
        (packet.tos, packet.ttl, packet.id, packet.damage) = (tos, ttl, PacketId(id), damage);
        prop_assert_eq!((packet.src, packet.dst), (quote.flow.dst, quote.flow.src));
        prop_assert_eq!(packet.quote(), Some((notice, quote)));
        // Some routers quote more of the datagram (RFC 1812 section 4.3.2.3).
        let mut body = Vec::new();
        packet.body.copy_into(u32::MAX, &mut body);
        body.extend(more);
        packet.body = Body::copy_of(&body);
        let bytes = bytes_of(&packet);
        let parsed = parse(&bytes, 0, true).unwrap();
        let v6_damage = if damage == Damage::Ip { Damage::Tcp } else { damage };
        let damage = if quote.flow.src.is_v4() { damage } else { v6_damage };
        prop_assert_eq!(parsed.damage, damage);
        prop_assert_eq!(&parsed.transport, &Transport::Icmp(notice));
        prop_assert_eq!(parsed.quote(), Some((notice, quote)));
        prop_assert_eq!((parsed.src, parsed.dst, parsed.tos, parsed.ttl), (packet.src, packet.dst, tos, ttl));
        let mut got = Vec::new();
        parsed.body.copy_into(u32::MAX, &mut got);
        prop_assert_eq!(got, body);
        prop_assert_eq!(parsed.wire_len() as usize, bytes.len());
    }

    #[test]
    fn captures_include_the_whole_notice((notice, quote) in notices(), snap in 0u32..100) {
        let packet = Packet::notice(notice, &quote);
        let mut bytes = Vec::new();
        let prefix = emit_prefix(&packet, snap, &mut bytes).unwrap();
        prop_assert_eq!((prefix.captured, prefix.original), (packet.wire_len(), packet.wire_len()));
        let seen = view(&bytes, Mode { verify: true, wire_len: Some(bytes.len()) }).unwrap();
        prop_assert_eq!((seen.transport, seen.damage), (Transport::Icmp(notice), Damage::None));
    }

    /// Any byte of it may have any value, and it may be truncated anywhere.
    #[test]
    fn a_hostile_notice_is_opaque_or_right(
        (notice, quote) in notices(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in any::<prop::sample::Index>(),
        shorten in any::<bool>(),
    ) {
        let mut bytes = bytes_of(&Packet::notice(notice, &quote)).to_vec();
        let ip = if quote.flow.src.is_v4() { 20 } else { 40 };
        for (at, value) in changes {
            let at = ip + at.index(bytes.len() - ip);
            bytes[at] = value;
        }
        if shorten {
            // The length in the IP header matches.
            bytes.truncate(ip + cut.index(bytes.len() - ip));
            let len = bytes.len() as u16;
            let (at, len) = if ip == 20 { (2, len) } else { (4, len - 40) };
            bytes[at..at + 2].copy_from_slice(&len.to_be_bytes());
        }
        let frame: Arc<[u8]> = bytes.into();
        let packet = parse(&frame, 0, false).unwrap();
        match packet.transport {
            Transport::Icmp(_) => {
                let (_, quote) = packet.quote().expect("each notice has a quote");
                prop_assert!(quote.len >= 40);
                prop_assert_eq!(quote.flow.src.is_v4(), packet.src.is_v4());
                let again = parse(&bytes_of(&packet), 0, true).unwrap();
                prop_assert_eq!((again.damage, again.quote()), (Damage::None, packet.quote()));
            }
            Transport::Other(protocol) => {
                prop_assert!([1, 58].contains(&protocol));
                prop_assert_eq!(packet.body.len() as usize, frame.len() - ip);
            }
            Transport::Tcp(_) | Transport::Fragment(_) => {
                prop_assert!(false, "ICMP is no TCP, and the IP header is intact")
            }
        }
    }

    #[test]
    fn any_bytes_are_a_quote_or_none(mut bytes in prop::collection::vec(any::<u8>(), 0..80), v4 in any::<bool>()) {
        if let Some(first) = bytes.first_mut() {
            *first = if v4 { 0x40 | *first & 0x0f } else { 0x60 };
        }
        if let Some(protocol) = bytes.get_mut(if v4 { 9 } else { 6 }) {
            *protocol = 6;
        }
        if let Some(quote) = Quote::read(&bytes) {
            // It can be quoted again, with the same meaning.
            let mut body = Vec::new();
            quote.body().copy_into(u32::MAX, &mut body);
            let again = Quote::read(&body).unwrap();
            prop_assert_eq!((again.flow, again.seq), (quote.flow, quote.seq));
        }
    }
}

#[test]
fn messages_similar_to_notices_stay_opaque() {
    let change = |v4: bool, at: usize, value: u8| {
        let mut bytes = bytes_of(&example(v4)).to_vec();
        bytes[at] = value;
        parse(&bytes.into(), 0, false).unwrap().transport.clone()
    };
    for (at, value, why) in [
        (20, 3, "destination unreachable"),
        (20, 8, "an echo request"),
        (20, 254, "the other experiment"),
        (21, 1, "another code"),
        (27, 1, "something in the unused bytes"),
        (28, 0x65, "a quote of IPv6"),
        (28, 0x44, "a quoted header that is too short"),
        (28, 0x46, "a quoted header that leaves no room for the sequence number"),
        (35, 1, "not the first fragment"),
        (37, 17, "UDP"),
        (30, 0, "a datagram too short for TCP"),
    ] {
        assert_eq!(change(true, at, value), Transport::Other(1), "{why}");
    }
    for (at, value, why) in [(40, 128, "an echo request"), (54, 17, "UDP"), (48, 0x45, "IPv4")] {
        assert_eq!(change(false, at, value), Transport::Other(58), "{why}");
    }
    assert_eq!(change(true, 20, 4), Transport::Icmp(Notice::SourceQuench));
    assert_eq!(change(false, 40, 101), Transport::Icmp(Notice::SourceQuench));
}

#[test]
fn the_longest_datagram_is_quoted_with_its_length() {
    let Some((_, quote)) = example(false).quote() else { panic!("a quote") };
    for len in [60, 0xffff, 40 + 65_495, 40 + 65_496, 40 + 0xffff] {
        let mut bytes = Vec::new();
        Quote { len, ..quote }.body().copy_into(u32::MAX, &mut bytes);
        assert_eq!(Quote::read(&bytes), Some(Quote { len, ..quote }));
    }
}

#[test]
fn a_packet_is_quoted_as_it_is() {
    let (src, dst) = (Addr::v4(10, 0, 0, 1), Addr::v4(10, 1, 0, 1));
    let segment = Segment::new(1024, 9, Seq(77), Seq(1), Flags::ACK);
    let packet = Packet::tcp(src, dst, segment, Body::Pattern { stream: 1, len: 536, offset: 0 });
    let quote = Quote::of(&packet).unwrap();
    assert_eq!((Some(quote.flow), quote.seq, quote.len), (packet.flow(), Seq(77), 576));
    assert_eq!(Quote::of(&Packet::notice(Notice::BadState, &quote)), None);
}
