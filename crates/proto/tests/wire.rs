//! Packets survive the conversion to bytes and back; arbitrary bytes do no harm.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use lasthop_proto::wire::checksum::checksum;
use lasthop_proto::wire::emit::{EmitError, emit, emit_prefix};
use lasthop_proto::wire::opening::{Cookie, Count, Opening};
use lasthop_proto::wire::options::{self, walk};
use lasthop_proto::wire::parse::{Mode, ParseError, parse, view};
use lasthop_proto::wire::protocol::{PROTOCOL_ICMP, PROTOCOL_TCP};
use lasthop_proto::wire::{
    Acc, Ackp, Addr, Body, Damage, EcnCounts, Eln, Flags, Fragment, Nack, Notice, Options, Packet,
    PacketId, Parts, Quote, SackBlocks, Scps, Segment, Seq, Smart, Snack, Timestamps, Transport,
};
use proptest::prelude::*;

fn addresses() -> impl Strategy<Value = (Addr, Addr)> {
    let v6 = |bits: u128| Addr::from(IpAddr::V6(Ipv6Addr::from_bits(bits | 1 << 127)));
    let v4 = |bits: u32| Addr::from(IpAddr::V4(Ipv4Addr::from_bits(bits)));
    prop_oneof![
        any::<(u32, u32)>().prop_map(move |(a, b)| (v4(a), v4(b))),
        any::<(u128, u128)>().prop_map(move |(a, b)| (v6(a), v6(b))),
    ]
}

fn option_sets() -> impl Strategy<Value = Options> {
    let seq = || any::<u32>().prop_map(Seq);
    // Kinds other than those of T/TCP, SCPS-TP, Fast Open and accurate ECN.
    let kinds = prop_oneof![9u8..11, 14u8..20, 22u8..34, 35u8..172, 175u8..250];
    let unknown = (kinds, prop::collection::vec(any::<u8>(), 0..12))
        .prop_map(|(kind, value)| [&[kind, value.len() as u8 + 2][..], &value].concat());
    let ackp = prop::sample::select(vec![Ackp::Permitted, Ackp::Partial]);
    let eln = prop_oneof![
        Just(Eln::Permitted),
        seq().prop_map(Eln::Lost),
        Just(Eln::MarksPermitted),
        Just(Eln::Marked)
    ];
    // Either SACK blocks or missing ranges: a header has no room for four of both.
    let nack = prop_oneof![
        Just(Nack::Permitted),
        (seq(), seq()).prop_map(|(left, right)| {
            let mut missing = SackBlocks::default();
            missing.push(left, right);
            Nack::Missing(missing)
        })
    ];
    let smart = prop_oneof![Just(Smart::Permitted), seq().prop_map(Smart::Caused)];
    let scps = any::<(u8, u8)>().prop_map(|(flags, connection)| Scps { flags, connection });
    let snack = (any::<u16>(), any::<u16>(), prop::collection::vec(any::<u8>(), 0..=34))
        .prop_map(|(offset, size, vector)| Snack::new(offset, size, &vector));
    let ecn = (any::<bool>(), any::<[u32; 3]>(), 0usize..=3)
        .prop_map(|(first, counters, len)| EcnCounts::new(first, counters, len));
    let acc = prop_oneof![
        Just(Acc::Permitted),
        (any::<u16>(), any::<u8>(), seq()).prop_map(|(segments, marks, acked)| Acc::Window {
            segments,
            marks,
            acked
        }),
    ];
    (
        prop::option::of(any::<u16>()),
        prop::option::of(any::<u8>()),
        any::<bool>(),
        prop::collection::vec((seq(), seq()), 0..=4),
        prop::option::of(ackp),
        prop::option::of(eln),
        (prop::option::of(smart), prop::option::of(nack), prop::option::of(acc)),
        (prop::option::of(scps), prop::option::of(snack), prop::option::of(ecn), openings()),
        prop::option::of(unknown),
        prop_oneof![Just(0), any::<u16>()],
    )
        .prop_map(
            |(
                mss,
                window_scale,
                sack_permitted,
                blocks,
                ackp,
                eln,
                (smart, nack, acc),
                (scps, snack, ecn, opening),
                unknown,
                urgent,
            )| {
                let mut sack = SackBlocks::default();
                blocks.into_iter().for_each(|(left, right)| {
                    sack.push(left, right);
                });
                let unknown = unknown.unwrap_or_default();
                Options {
                    mss,
                    window_scale,
                    sack_permitted,
                    sack,
                    ackp,
                    eln,
                    smart,
                    nack,
                    acc,
                    scps,
                    snack,
                    ecn,
                    opening,
                    stamp: None,
                    unknown,
                    urgent,
                    packed: false,
                }
            },
        )
}

fn openings() -> impl Strategy<Value = Opening> {
    let counts = prop::option::of((any::<bool>(), 1u32..));
    let cookie = prop::option::of(prop::collection::vec(any::<u8>(), 0..=16));
    let openings = (counts, prop::option::of(1u32..), cookie, any::<bool>());
    openings.prop_map(|(count, echo, cookie, experiment)| {
        let cookie = cookie.and_then(|bytes| Cookie::new(&bytes));
        let count = count.map(|(new, n)| if new { Count::New(n) } else { Count::Cc(n) });
        Opening { count, echo, cookie, experiment: experiment && cookie.is_some() }
    })
}

fn segments() -> impl Strategy<Value = Segment> {
    (
        any::<(u16, u16, u32, u32, u16, u16)>(),
        prop::option::of(any::<(u32, u32)>()),
        prop::option::of(option_sets()),
    )
        .prop_map(|((from, to, seq, ack, flags, window), timestamps, options)| {
            let mut segment = Segment::new(from, to, Seq(seq), Seq(ack), Flags(flags & 0x1ff));
            segment.window = window;
            segment.timestamps = timestamps.map(|(value, echo)| Timestamps { value, echo });
            if let Some(options) = options {
                *segment.options_mut() = options;
            }
            segment
        })
}

fn bodies() -> impl Strategy<Value = Body> {
    prop_oneof![
        Just(Body::EMPTY),
        (any::<u32>(), 1u32..3000, 0u64..1 << 40).prop_map(|(stream, len, offset)| Body::Pattern {
            stream,
            len,
            offset
        }),
        prop::collection::vec(any::<u8>(), 1..2000).prop_map(|bytes| Body::copy_of(&bytes)),
    ]
}

fn packets() -> impl Strategy<Value = Packet> {
    let damage = prop::sample::select(vec![Damage::None, Damage::Ip, Damage::Tcp]);
    let transport = prop_oneof![
        9 => segments().prop_map(Transport::Tcp),
        1 => (7u8..=255).prop_map(Transport::Other),
    ];
    (addresses(), transport, bodies(), any::<(u8, u8, u64)>(), damage).prop_map(
        |((src, dst), transport, body, (tos, ttl, id), damage)| {
            Packet::new(Parts {
                id: PacketId(id),
                src,
                dst,
                transport,
                body,
                tos,
                label: 0,
                ttl,
                damage,
                urgent: false,
                piece: 0,
                fragmentable: false,
            })
        },
    )
}

fn content(body: &Body) -> Vec<u8> {
    (0..body.len()).filter_map(|i| body.byte(i)).collect()
}

fn bytes_of(packet: &Packet) -> Arc<[u8]> {
    let mut out = Vec::new();
    assert_eq!(emit(packet, &mut out), Ok(out.len()));
    out.into()
}

proptest! {
    #[test]
    fn a_packet_survives_encoding_and_parsing(packet in packets()) {
        let mut bytes = vec![0xee; 3]; // `emit` appends, and what it appends may begin anywhere
        match emit(&packet, &mut bytes) {
            Ok(len) => prop_assert_eq!(len + 3, bytes.len()),
            Err(EmitError::Options(options::WriteError::TooLong { .. })) => {
                prop_assert_eq!(bytes.len(), 3);
                return Ok(());
            }
            Err(error) => return Err(TestCaseError::fail(error.to_string())),
        }
        let parsed = parse(&bytes.into(), 3, true).unwrap();
        prop_assert_eq!((parsed.src, parsed.dst), (packet.src, packet.dst));
        prop_assert_eq!((parsed.tos, parsed.ttl), (packet.tos, packet.ttl));
        match (parsed.segment(), packet.segment()) {
            (Some(got), Some(sent)) => {
                let (a, b) = (got.options(), sent.options());
                // Only SACK blocks at the end may be missing, when there was no room.
                prop_assert!(b.sack.as_slice().starts_with(a.sack.as_slice()));
                if sent.header_len() <= 60 {
                    prop_assert_eq!(a, b);
                    prop_assert_eq!(got.header_len(), sent.header_len());
                    prop_assert_eq!(parsed.wire_len(), packet.wire_len());
                }
                prop_assert_eq!(got.timestamps, sent.timestamps);
                let mut got = got.clone();
                *got.options_mut() = b.clone();
                let mut sent = sent.clone();
                sent.options_mut();
                prop_assert_eq!(got, sent);
                let expected = match packet.damage {
                    Damage::Ip if !packet.src.is_v4() => Damage::Tcp,
                    damage => damage,
                };
                prop_assert_eq!(parsed.damage, expected);
                prop_assert_eq!(content(&parsed.body), content(&packet.body));
            }
            (None, None) => prop_assert_eq!(&parsed.transport, &packet.transport),
            _ => prop_assert!(false, "the transport changed"),
        }
    }

    #[test]
    fn any_bytes_are_parsed_or_refused(
        mut bytes in prop::collection::vec(any::<u8>(), 0..200),
        first in prop::sample::select(vec![0x45u8, 0x46, 0x4f, 0x60, 0x40, 0x00]),
        fix in any::<bool>(),
        wire in prop::option::of(0usize..70_000),
        at in 0usize..210,
    ) {
        if fix && bytes.len() > 20 {
            // Similar to a packet, so that the inner parsers are reached.
            bytes[0] = first;
            let len = (bytes.len() as u16).to_be_bytes();
            if first >> 4 == 4 {
                bytes[2..4].copy_from_slice(&len);
                bytes[6..8].fill(0);
                bytes[9] = 6;
            } else {
                bytes[6] = 6;
            }
        }
        let seen = view(&bytes, Mode { verify: true, wire_len: wire });
        if let Ok(seen) = seen {
            prop_assert!(seen.body_at + seen.captured as usize <= bytes.len());
            prop_assert!(wire.is_some() || seen.captured == seen.body_len);
        }
        let frame: Arc<[u8]> = bytes.into();
        if let Ok(packet) = parse(&frame, at, true) {
            prop_assert_eq!(content(&packet.body).len(), packet.body.len() as usize);
        }
        let _ = parse(&frame, 0, false);
    }

    /// A parsed and emitted packet is equivalent to the original, fragments and notices included.
    #[test]
    fn emitting_any_parsed_packet_preserves_it(
        mut bytes in prop::collection::vec(any::<u8>(), 28..120),
        protocol in prop::sample::select(vec![1u8, 6, 17, 58]),
        place in prop::sample::select(vec![0u16, 0x4000, 0x2000, 0x0001, 0x2100]),
        notice in any::<bool>(),
    ) {
        let len = bytes.len() as u16;
        bytes[0] = 0x45;
        bytes[2..4].copy_from_slice(&len.to_be_bytes());
        bytes[6..8].copy_from_slice(&place.to_be_bytes());
        bytes[9] = protocol;
        if notice {
            let quoted = bytes_of(&Packet::notice(Notice::BadState, &Quote::of(&sample()).unwrap()));
            bytes.splice(20.., quoted[20..].iter().copied());
            bytes[2..4].copy_from_slice(&(quoted.len() as u16).to_be_bytes());
        }
        let Ok(packet) = parse(&bytes.into(), 0, true) else { return Ok(()) };
        let mut again = Vec::new();
        if emit(&packet, &mut again).is_ok() {
            let reparsed = parse(&again.into(), 0, true).expect("what is emitted can be parsed");
            prop_assert_eq!(reparsed.segment(), packet.segment());
            prop_assert_eq!(reparsed.quote(), packet.quote());
            if matches!(packet.transport, Transport::Fragment(_)) {
                prop_assert_eq!(&reparsed.transport, &packet.transport);
            }
        }
    }

    #[test]
    fn parsing_and_emitting_again_changes_nothing(packet in packets()) {
        let mut bytes = Vec::new();
        prop_assume!(emit(&packet, &mut bytes).is_ok());
        let first = parse(&bytes.into(), 0, true).unwrap();
        let again = parse(&bytes_of(&first), 0, true).unwrap();
        prop_assert_eq!(first.segment(), again.segment());
        prop_assert_eq!(content(&first.body), content(&again.body));
    }

    #[test]
    fn any_options_of_a_header_survive(
        bytes in prop::collection::vec(prop_oneof![any::<u8>(), 0u8..12], 0..=options::MAX_LEN),
    ) {
        let total: usize = walk(&bytes).filter_map(Result::ok).map(|o| o.bytes.len()).sum();
        prop_assert!(total <= bytes.len());
        let read = options::read(&bytes);
        let written = options::write(read.timestamps, &read.options.clone().unwrap_or_default());
        let again = options::read(written.expect("they came in one header").as_slice());
        prop_assert_eq!(again.timestamps, read.timestamps);
        prop_assert_eq!(again.options.unwrap_or_default(), read.options.unwrap_or_default());
        prop_assert_eq!(again.error, None);
    }

    #[test]
    fn a_truncated_packet_reports_its_full_length(packet in packets(), snap in 0u32..100) {
        let mut bytes = Vec::new();
        let Ok(prefix) = emit_prefix(&packet, snap, &mut bytes) else { return Ok(()) };
        prop_assert_eq!(prefix.captured as usize, bytes.len());
        let mode = Mode { verify: false, wire_len: Some(prefix.original as usize) };
        let seen = view(&bytes, mode).unwrap();
        prop_assert_eq!(seen.body_len, packet.body.len());
        prop_assert_eq!(seen.captured, packet.body.len().min(snap));
    }
}

fn sample() -> Packet {
    let mut segment = Segment::new(5001, 80, Seq(1), Seq(2), Flags::ACK);
    segment.timestamps = Some(Timestamps { value: 1, echo: 2 });
    Packet::tcp(Addr::v4(10, 0, 0, 1), Addr::v4(10, 0, 0, 2), segment, Body::copy_of(b"hello"))
}

#[test]
fn damage_is_found_where_it_was_done() {
    for v6 in [false, true] {
        for damage in [Damage::None, Damage::Ip, Damage::Tcp] {
            let mut packet = sample().with(|packet| packet.damage = damage);
            if v6 {
                packet.src = "fd00::1".parse::<IpAddr>().unwrap().into();
                packet.dst = "fd00::2".parse::<IpAddr>().unwrap().into();
            }
            let bytes = bytes_of(&packet);
            let expected = if v6 && damage == Damage::Ip { Damage::Tcp } else { damage };
            assert_eq!(parse(&bytes, 0, true).unwrap().damage, expected);
            assert_eq!(parse(&bytes, 0, false).unwrap().damage, Damage::None);
        }
    }
}

#[test]
fn every_flipped_bit_is_noticed() {
    let bytes = bytes_of(&sample());
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.to_vec();
        flipped[bit / 8] ^= 1 << (bit % 8);
        match parse(&flipped.into(), 0, true) {
            // A version of 6 is an IPv6 packet of another protocol, without a checksum to detect the change.
            Ok(packet) if packet.segment().is_none() => {
                assert!(bit < 8 || packet.damage == Damage::Ip)
            }
            Ok(packet) => assert_ne!(packet.damage, Damage::None, "bit {bit}"),
            Err(_) => continue,
        }
    }
}

#[test]
fn the_data_offset_is_checked() {
    let bytes = bytes_of(&sample());
    let with_offset = |words: u8| {
        let mut changed = bytes.to_vec();
        changed[32] = words << 4;
        parse(&changed.into(), 0, false)
    };
    assert_eq!(with_offset(4), Err(ParseError::HeaderLength { header: "TCP", len: 16 }));
    assert!(with_offset(5).unwrap().segment().unwrap().timestamps.is_none());
    assert_eq!(with_offset(5).unwrap().body.len(), 17, "what are not options is payload");
    assert!(with_offset(8).is_ok());
    assert!(matches!(with_offset(15), Err(ParseError::Length { .. })));
}

#[test]
fn padding_of_short_ethernet_frames_is_not_payload() {
    let packet = sample().with(|packet| packet.body = Body::EMPTY);
    let mut bytes = bytes_of(&packet).to_vec();
    bytes.extend([0xaa; 6]);
    let parsed = parse(&bytes.into(), 0, true).unwrap();
    assert_eq!((parsed.body.len(), parsed.damage), (0, Damage::None));
}

#[test]
fn ip_options_are_stepped_over() {
    let mut bytes = bytes_of(&sample()).to_vec();
    bytes.splice(20..20, [1, 1, 1, 0]);
    bytes[0] = 0x46;
    bytes[3] += 4;
    let parsed = parse(&bytes.into(), 0, false).unwrap();
    assert_eq!(content(&parsed.body), b"hello");
}

#[test]
fn fragments_and_extension_headers_are_not_tcp() {
    let mut fragment = bytes_of(&sample()).to_vec();
    fragment[6] = 0x20;
    let parsed = parse(&fragment.into(), 0, false).unwrap();
    let fragment = Fragment { protocol: 6, id: 0, place: 0x2000 };
    assert_eq!(parsed.transport, Transport::Fragment(fragment));
    assert_eq!(parsed.body.len(), 37);
    let unreadable = parsed.with(|packet| packet.transport = Transport::Other(6));
    assert_eq!(emit(&unreadable, &mut Vec::new()), Err(EmitError::Unreadable));

    let mut extended = vec![0x60, 0, 0, 0, 0, 28, 0, 64];
    extended.extend([0; 32]);
    extended.extend([6, 0, 1, 4, 0, 0, 0, 0]);
    extended.extend([0; 20]);
    let parsed = parse(&extended.into(), 0, true).unwrap();
    assert_eq!(parsed.transport, Transport::Other(0));
    assert_eq!(parsed.body.len(), 28);
}

#[test]
fn a_fragment_is_emitted_as_the_fragment_it_is() {
    // A later fragment, of any protocol, with the bytes of a source quench that quotes a segment.
    let quote = Quote::of(&sample()).unwrap();
    let notice = bytes_of(&Packet::notice(Notice::SourceQuench, &quote));
    for protocol in [PROTOCOL_ICMP, PROTOCOL_TCP, 17] {
        for place in [0x0001u16, 0x2001, 0x2000, 0xa005] {
            let mut bytes = notice.to_vec();
            bytes[4..6].copy_from_slice(&[0x12, 0x34]);
            bytes[6..8].copy_from_slice(&place.to_be_bytes());
            bytes[9] = protocol;
            bytes[10..12].fill(0);
            let sum = checksum(&bytes[..20]);
            bytes[10..12].copy_from_slice(&sum.to_be_bytes());
            let parsed = parse(&bytes.clone().into(), 0, true).unwrap();
            assert_eq!((parsed.segment(), parsed.quote()), (None, None));
            let mut again = Vec::new();
            assert_eq!(emit(&parsed, &mut again), Ok(bytes.len()), "{protocol} at {place:#x}");
            assert_eq!(again, bytes);
        }
    }
}

#[test]
fn lengths_that_cannot_be_are_refused() {
    let bytes = bytes_of(&sample());
    assert_eq!(parse(&Vec::new().into(), 0, true), Err(ParseError::Empty));
    assert_eq!(parse(&bytes, bytes.len() + 9, true), Err(ParseError::Empty));
    for len in 1..bytes.len() {
        assert!(parse(&bytes[..len].into(), 0, true).is_err(), "{len} bytes are not the packet");
    }
    let mut long = sample();
    long.body = Body::Pattern { stream: 0, len: 65_535, offset: 0 };
    assert!(matches!(emit(&long, &mut Vec::new()), Err(EmitError::TooLong { .. })));
    let mixed = sample().with(|packet| packet.dst = "fd00::1".parse::<IpAddr>().unwrap().into());
    assert_eq!(emit(&mixed, &mut Vec::new()), Err(EmitError::MixedFamilies));
}
