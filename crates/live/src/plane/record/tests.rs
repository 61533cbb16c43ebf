use lasthop_proto::wire::emit::emit;
use lasthop_proto::wire::{Addr, Segment, Seq};

use super::*;

const ACT: u8 = 0;

fn address(v6: bool, last: u8) -> Addr {
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
    Addr::from(match v6 {
        false => IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)),
        true => IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, last.into())),
    })
}

/// A TCP packet with `len` bytes.
fn tcp(v6: bool, seq: u32, flags: Flags, len: usize) -> Packet {
    let segment = Segment::new(1000, 80, Seq(seq), Seq(7), flags);
    let body: Vec<u8> = (0..len).map(|i| i as u8).collect();
    Packet::tcp(address(v6, 1), address(v6, 2), segment, Body::copy_of(&body))
}

/// The frame of `packet`, after space for a virtio header.
fn framed(packet: &Packet) -> Vec<u8> {
    let mut frame = vec![0; VNET];
    frame.extend([1; 12]);
    frame.extend(if packet.src.is_v4() { [8, 0] } else { [0x86, 0xdd] });
    emit(packet, &mut frame).unwrap();
    frame
}

/// The record of a completely captured `frame`.
fn record(frame: &[u8]) -> Record {
    let len = (frame.len() - VNET) as u32;
    Record {
        at: 1,
        len,
        captured: len,
        gso_size: 0,
        vlan: None,
        side: 0,
        act: ACT,
        verified: false,
    }
}

/// Offset of the TCP header.
fn tcp_at(v6: bool) -> usize {
    VNET + 14 + if v6 { 40 } else { 20 }
}

/// Gives the frame the checksum of the pseudo-header alone, to be completed by a network card.
fn set_partial_checksum(frame: &mut [u8], packet: &Packet) {
    let at = tcp_at(!packet.src.is_v4());
    let mut sum = Sum::default();
    sum.pseudo_header(packet.src, packet.dst, PROTOCOL_TCP, (frame.len() - at) as u32);
    frame[at + CHECKSUM..at + CHECKSUM + 2].copy_from_slice(&sum.fold().to_be_bytes());
}

#[test]
fn each_record_field_is_read_from_its_own_offset() {
    let mut bytes = [0; RECORD];
    bytes[..8].copy_from_slice(&0x1112_1314_2122_2324_u64.to_ne_bytes());
    bytes[8..12].copy_from_slice(&0x3132_3334_u32.to_ne_bytes());
    bytes[12..16].copy_from_slice(&0x4142_4344_u32.to_ne_bytes());
    bytes[16..18].copy_from_slice(&0x5152_u16.to_ne_bytes());
    bytes[18..20].copy_from_slice(&0x0607_u16.to_ne_bytes());
    bytes[20..22].copy_from_slice(&[0x88, 0xa8]);
    (bytes[22], bytes[23]) = (1, 3);
    bytes[24] = 1;
    let expected = Record {
        at: if cfg!(target_endian = "little") {
            0x1112_1314_2122_2324
        } else {
            0x2122_2324_1112_1314
        },
        len: 0x3132_3334,
        captured: 0x4142_4344,
        gso_size: 0x5152,
        vlan: Some([0x88, 0xa8, 6, 7]),
        side: 1,
        act: 3,
        verified: true,
    };
    assert_eq!(Record::read(&bytes), Some(expected));
    bytes[20..22].fill(0);
    bytes[24] = 0;
    assert_eq!(Record::read(&bytes), Some(Record { vlan: None, verified: false, ..expected }));
    assert_eq!(Record::read(&bytes[1..]), None, "a record that is cut");
}

/// A record yields a packet: its headers, the position of its body in the ring, and its damage.
#[test]
fn a_packet_references_its_body_in_the_ring() {
    for v6 in [false, true] {
        let sent = tcp(v6, 100, Flags::ACK, 50).with(|p| (p.tos, p.ttl) = (0x28, 33));
        let frame = framed(&sent);
        let got = packet(&frame, record(&frame), 4096, &mut Order::new()).unwrap();
        assert_eq!(
            (got.src, got.dst, got.tos, got.ttl),
            (sent.src, sent.dst, 0x28, 33),
            "v6: {v6}"
        );
        assert_eq!(got.transport, sent.transport, "v6: {v6}");
        assert_eq!((got.damage, got.piece, got.body.len()), (Damage::None, 0, 50), "v6: {v6}");
        // After the position: the ring's header, the record, then the frame without the space for a virtio header.
        let headers = (frame.len() - VNET - 50) as u64;
        assert_eq!(got.body.held_at(), Some(4096 + HEADER + RECORD as u64 + headers), "v6: {v6}");

        let empty = framed(&tcp(v6, 100, Flags::ACK, 0));
        let got = packet(&empty, record(&empty), 4096, &mut Order::new()).unwrap();
        assert_eq!((got.body.len(), got.body.held_at()), (0, None), "an ACK has no body; v6: {v6}");
    }
}

#[test]
fn a_packet_is_verified_unless_trusted_or_verified_before() {
    let spoilt = |seq| {
        let mut frame = framed(&tcp(false, seq, Flags::ACK, 50));
        *frame.last_mut().unwrap() ^= 1;
        frame
    };
    let damage = |frame: &[u8], record: Record, order: &mut Order| {
        packet(frame, record, 0, order).map(|packet| packet.damage)
    };
    let frame = spoilt(100);
    let plain = record(&frame);
    let new = &mut Order::new();
    assert_eq!(damage(&frame, plain, new), Some(Damage::Tcp), "a new flow");
    let other = Record { side: 1, ..plain };
    assert_eq!(damage(&frame, other, new), Some(Damage::Tcp), "from the other side");
    let verified = Record { verified: true, ..plain };
    assert_eq!(damage(&frame, verified, new), Some(Damage::None), "verified before");
    let merged = Record { gso_size: 25, ..plain };
    assert_eq!(damage(&frame, merged, new), Some(Damage::None), "a super-packet");

    let order = &mut Order::new();
    let whole = framed(&tcp(false, 50, Flags::ACK, 50));
    assert_eq!(damage(&whole, record(&whole), order), Some(Damage::None), "the flow begins");
    assert_eq!(damage(&frame, plain, order), Some(Damage::None), "a continuation is trusted");
    let frame = spoilt(150);
    let diverted = Record { act: DIVERTED, ..record(&frame) };
    assert_eq!(damage(&frame, diverted, order), Some(Damage::Tcp), "a diverted packet is not");
    let right = Record { side: 1, ..record(&frame) };
    assert_eq!(damage(&frame, right, order), Some(Damage::Tcp), "nor one from the right");

    let mut header = framed(&tcp(false, 200, Flags::ACK, 50));
    header[VNET + 14 + 8] ^= 1;
    assert_eq!(damage(&header, record(&header), order), None, "a damaged header of IP");
}

#[test]
fn a_partial_checksum_is_recognized_by_its_pseudo_header() {
    for v6 in [false, true] {
        let sent = tcp(v6, 100, Flags::ACK, 51);
        let mut frame = framed(&sent);
        let at = VNET + 14;
        let ask = |frame: &[u8], record: Record| {
            let seen = look(frame, at, record, false).unwrap();
            (is_partial(frame, at, &seen), is_unverified(frame, at, record, &seen))
        };
        let plain = record(&frame);
        assert_eq!(ask(&frame, plain), (Some(false), Some(true)), "complete; v6: {v6}");
        assert_eq!(whole(&frame, plain)[..VNET], [0; VNET], "a card has nothing to do; v6: {v6}");
        let cases = [
            (Record { verified: true, ..plain }, "verified"),
            (Record { gso_size: 20, ..plain }, "a super-packet"),
            (Record { len: plain.len + 1, ..plain }, "cut"),
        ];
        for (record, case) in cases {
            let seen = look(&frame, at, plain, false).unwrap();
            assert_eq!(is_unverified(&frame, at, record, &seen), Some(false), "{case}; v6: {v6}");
        }
        set_partial_checksum(&mut frame, &sent);
        assert_eq!(ask(&frame, plain), (Some(true), Some(false)), "left to a card; v6: {v6}");
        assert!(sound(&frame, at, plain).is_some(), "left to a card; v6: {v6}");
        let vnet = VnetHeader::read(&whole(&frame, plain)).unwrap();
        let expected = VnetHeader {
            flags: VnetHeader::NEEDS_CHECKSUM,
            checksum_start: (tcp_at(v6) - VNET) as u16,
            checksum_offset: 16,
            ..VnetHeader::default()
        };
        assert_eq!(vnet, expected, "v6: {v6}");
    }
}

#[test]
fn a_super_packet_gets_a_virtio_segmentation_header() {
    let cases = [
        (false, Flags::ACK, VnetHeader::TCPV4),
        (true, Flags::ACK, VnetHeader::TCPV6),
        (false, Flags::ACK | Flags::CWR, VnetHeader::TCPV4 | VnetHeader::ECN),
    ];
    for (v6, flags, gso_type) in cases {
        for vlan in [None, Some([0x81, 0, 0, 7])] {
            let sent = tcp(v6, 100, flags, 300);
            let mut frame = framed(&sent);
            set_partial_checksum(&mut frame, &sent);
            let record = Record { gso_size: 100, vlan, ..record(&frame) };
            let out = whole(&frame, record);
            let tag = vlan.map_or(0, |_| 4);
            let start = (tcp_at(v6) - VNET) as u16 + tag;
            let expected = VnetHeader {
                flags: VnetHeader::NEEDS_CHECKSUM,
                gso_type,
                header_len: start + 20,
                gso_size: 100,
                checksum_start: start,
                checksum_offset: 16,
            };
            assert_eq!(
                VnetHeader::read(&out),
                Some(expected),
                "v6: {v6}, {flags:?}, tag: {vlan:?}"
            );
            let bare = [
                &frame[VNET..VNET + 12],
                vlan.as_ref().map_or(&[], |t| &t[..]),
                &frame[VNET + 12..],
            ];
            assert_eq!(out[VNET..], bare.concat(), "the tag follows the addresses");
        }
    }
}

#[test]
fn only_whole_packets_that_are_sound_are_sent_again() {
    let sent = tcp(false, 100, Flags::ACK, 50);
    let mut frame = framed(&sent);
    let plain = record(&frame);
    assert!(sound(&frame, VNET + 14, plain).is_some(), "as it was sent");
    *frame.last_mut().unwrap() ^= 1;
    assert!(sound(&frame, VNET + 14, plain).is_none(), "damaged");
    let believed = Record { verified: true, ..plain };
    assert!(sound(&frame, VNET + 14, believed).is_some(), "verified before");
    // The length of a packet with captured headers only is that on the wire.
    let cut = Record { captured: plain.len - 20, ..plain };
    let seen = look(&frame[..frame.len() - 20], VNET + 14, cut, false).unwrap();
    assert_eq!(seen.body_len, 50);
    // The station ignores other protocols than TCP.
    let other = sent.with(|packet| packet.transport = Transport::Other(50));
    let frame = framed(&other);
    assert!(look(&frame, VNET + 14, record(&frame), false).is_none(), "ESP");
}

#[test]
fn a_vlan_tag_is_inserted_after_complete_addresses() {
    let plain = record(&[0; VNET + 60]);
    let tag = Record { vlan: Some([0x81, 0, 1, 2]), ..plain };
    let head: Vec<u8> = (0..14).collect();
    assert_eq!(tagged(&head, plain), head);
    let expected = [&head[..12], &[0x81, 0, 1, 2], &head[12..]].concat();
    assert_eq!(tagged(&head, tag), expected);
    assert_eq!(tagged(&head[..12], tag), expected[..16], "just the addresses");
    assert_eq!(tagged(&head[..11], tag), head[..11], "less");
}

#[test]
fn the_captured_length_bounds_the_frame_of_a_record() {
    let bytes: Vec<u8> = (0..100).collect();
    let plain = Record { captured: 40, ..record(&[0; VNET + 40]) };
    assert_eq!(frame_of(&bytes, plain), Some(&bytes[RECORD - VNET..RECORD + 40]));
    assert_eq!(frame_of(&bytes, Record { captured: 68, ..plain }).map(<[u8]>::len), Some(78));
    assert_eq!(frame_of(&bytes, Record { captured: 69, ..plain }), None, "more than there is");
}
