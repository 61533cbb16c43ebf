//! Conversions of frames to packets and back preserve their content; arbitrary bytes do no harm.

use lasthop_live::frame::{self, Incoming};
use lasthop_live::header::{VNET, VnetHeader};
use lasthop_live::offload;
use lasthop_proto::wire::checksum::checksum;
use lasthop_proto::wire::emit::emit;
use lasthop_proto::wire::parse::{Mode, parse, view};
use lasthop_proto::wire::{
    Addr, Body, Damage, Flags, Packet, PacketId, Parts, Segment, Seq, Timestamps, Transport,
};
use proptest::prelude::*;

fn addresses() -> impl Strategy<Value = (Addr, Addr)> {
    let v6 = |bits: u128| {
        Addr::from(std::net::IpAddr::from(std::net::Ipv6Addr::from_bits(bits | 1 << 127)))
    };
    let v4 = |bits: u32| Addr::from(std::net::IpAddr::from(std::net::Ipv4Addr::from_bits(bits)));
    prop_oneof![
        any::<(u32, u32)>().prop_map(move |(a, b)| (v4(a), v4(b))),
        any::<(u128, u128)>().prop_map(move |(a, b)| (v6(a), v6(b))),
    ]
}

fn packets() -> impl Strategy<Value = Packet> {
    let options =
        prop::sample::select(vec![vec![], vec![99, 2], vec![19, 6, 1, 2, 3, 4], vec![253, 3, 9]]);
    let segment =
        (any::<(u16, u16, u32, u32, u8, u16)>(), prop::option::of(any::<(u32, u32)>()), options);
    let tcp = segment.prop_map(|((from, to, seq, ack, flags, window), stamps, unknown)| {
        let mut segment = Segment::new(from, to, Seq(seq), Seq(ack), Flags(flags.into()));
        segment.window = window;
        segment.timestamps = stamps.map(|(value, echo)| Timestamps { value, echo });
        if !unknown.is_empty() {
            segment.options_mut().unknown = unknown;
        }
        Transport::Tcp(segment)
    });
    // Neither TCP nor a protocol that maintains a link.
    let other = (18u8..40).prop_map(Transport::Other);
    let body = prop::collection::vec(any::<u8>(), 0..1500);
    (addresses(), prop_oneof![tcp, other], body, any::<(u8, u8)>()).prop_map(
        |((src, dst), transport, body, (tos, ttl))| {
            Packet::new(Parts {
                id: PacketId(0),
                src,
                dst,
                transport,
                body: Body::copy_of(&body),
                tos,
                label: 0,
                ttl,
                damage: Damage::None,
                urgent: false,
                piece: 0,
                fragmentable: false,
            })
        },
    )
}

fn link_of(packet: &Packet, tags: usize) -> Vec<u8> {
    let kind: [u8; 2] = if packet.src.is_v4() { [8, 0] } else { [0x86, 0xdd] };
    [&[1; 12][..], &[0x81, 0, 0, 7].repeat(tags), &kind].concat()
}

fn bytes_of(body: &Body) -> Vec<u8> {
    let mut bytes = Vec::new();
    body.copy_into(u32::MAX, &mut bytes);
    bytes
}

/// A frame with this packet, with random differences to the encoding of this program.
fn frames() -> impl Strategy<Value = Vec<u8>> {
    let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4);
    let trailer = prop::collection::vec(any::<u8>(), 0..80);
    (packets(), 0usize..4, changes, trailer, any::<prop::sample::Index>(), any::<bool>(), 0u8..4)
        .prop_map(|(packet, tags, changes, trailer, cut, whole, flags)| {
            let mut frame = vec![0; VNET];
            frame[0] = flags;
            frame.extend(link_of(&packet, tags));
            let _ = emit(&packet, &mut frame);
            frame.extend(trailer);
            for (at, byte) in changes {
                let at = VNET + at.index(frame.len() - VNET);
                frame[at] = byte;
            }
            if !whole {
                frame.truncate(cut.index(frame.len() + 1));
            }
            frame
        })
}

/// Sets the correct checksum of an IPv4 header.
fn seal(ip: &mut [u8]) {
    let header = usize::from(ip[0] & 15) * 4;
    ip[10..12].fill(0);
    let sum = checksum(&ip[..header]);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_untouched_packet_leaves_with_its_original_bytes(frame in frames()) {
        if let Incoming::Packet(packet) = frame::read(&frame) {
            let out = frame::untouched(&packet).expect("the packet is untouched");
            prop_assert_eq!(out.bytes(), &frame[..]);
        }
    }

    #[test]
    fn a_mark_changes_the_ecn_bits_and_nothing_else(mut frame in frames(), fragment in any::<[u8; 4]>()) {
        let Incoming::Packet(packet) = frame::read(&frame) else { return Ok(()) };
        let at = VNET + link_of(&packet, 0).len();
        if packet.src.is_v4() && frame[at - 2..at] == [8, 0] {
            frame[at + 4..at + 8].copy_from_slice(&fragment);
            seal(&mut frame[at..]);
        }
        let Incoming::Packet(mut packet) = frame::read(&frame) else { return Ok(()) };
        let was = packet.damage;
        packet.tos |= 3;
        let out = frame::untouched(&packet).expect("only marked");
        let out = out.bytes();
        prop_assert_eq!(out.len(), frame.len());
        let Incoming::Packet(read) = frame::read(out) else { panic!("a packet") };
        prop_assert_eq!((read.tos, read.damage), (packet.tos, was));
        let changed: Vec<usize> = (0..out.len()).filter(|i| out[*i] != frame[*i]).collect();
        // Bytes of the traffic class and of the IPv4 header checksum.
        let ip = changed.first().copied().unwrap_or(at) - 1;
        let may: &[usize] = if packet.src.is_v4() { &[1, 10, 11] } else { &[1] };
        prop_assert!(changed.iter().all(|i| may.contains(&(i - ip))), "{:?}", changed);
    }

    #[test]
    fn damage_is_written_as_a_wrong_checksum(packet in packets(), ip in any::<bool>(), partial in any::<bool>()) {
        let mut frame = vec![0; VNET];
        frame.extend(link_of(&packet, 0));
        let at = frame.len();
        emit(&packet, &mut frame).unwrap();
        let (v4, tcp) = (packet.src.is_v4(), packet.segment().is_some());
        if partial && tcp {
            // The sum over the pseudo-header is the checksum's difference to zero.
            let start = at + if v4 { 20 } else { 40 };
            let mut sum = lasthop_proto::wire::checksum::Sum::default();
            sum.pseudo_header(packet.src, packet.dst, 6, (frame.len() - start) as u32);
            frame[start + 16..start + 18].copy_from_slice(&sum.fold().to_be_bytes());
            let flags = VnetHeader::NEEDS_CHECKSUM;
            let checksum_start = (start - VNET) as u16;
            VnetHeader { flags, checksum_start, checksum_offset: 16, ..VnetHeader::default() }.write(&mut frame);
        }
        let Incoming::Packet(mut read) = frame::read(&frame) else { panic!("a packet") };
        prop_assert_eq!(read.damage, Damage::None);
        read.damage = if ip { Damage::Ip } else { Damage::Tcp };
        let out = frame::untouched(&read).unwrap();
        let out = out.bytes();
        prop_assert_eq!(VnetHeader::read(out), Some(VnetHeader::default()), "the receiver has to look");
        let seen = view(&out[at..], Mode::WHOLE);
        match (ip && v4, tcp) {
            (true, _) => {
                prop_assert_eq!(seen.unwrap().damage, Damage::Ip);
                // Nothing else is wrong: an incomplete checksum was completed.
                let mut sealed = out[at..].to_vec();
                seal(&mut sealed);
                prop_assert_eq!(view(&sealed, Mode::WHOLE).unwrap().damage, Damage::None);
            }
            (_, true) => prop_assert_eq!(seen.unwrap().damage, Damage::Tcp),
            _ => {
                let changed = out.iter().zip(&frame).filter(|(a, b)| a != b).count();
                prop_assert!((1..=2).contains(&changed), "{}", changed);
            }
        }
    }

    /// A wrong IPv4 header checksum counts as damage of the IP packet, whatever the virtio header says about
    /// TCP's checksum.
    #[test]
    fn a_wrong_header_checksum_is_seen(packet in packets(), flags in 0u8..4, bit in 0u32..16) {
        let mut frame = vec![0; VNET];
        frame[0] = flags;
        frame.extend(link_of(&packet, 0));
        let at = frame.len();
        emit(&packet, &mut frame).unwrap();
        let Incoming::Packet(sound) = frame::read(&frame) else { panic!("a packet") };
        prop_assert_eq!(sound.damage, Damage::None);
        if packet.src.is_v4() {
            frame[at + 10 + bit as usize / 8] ^= 1 << (bit % 8);
            let Incoming::Packet(read) = frame::read(&frame) else { panic!("a packet") };
            prop_assert_eq!(read.damage, Damage::Ip);
        }
    }

    #[test]
    fn a_written_packet_is_read_back_unchanged(packet in packets(), tags in 0usize..3) {
        let out = frame::write(&packet, &link_of(&packet, tags)).unwrap();
        let Incoming::Packet(read) = frame::read(out.bytes()) else { panic!("a packet") };
        prop_assert_eq!(bytes_of(&read.body), bytes_of(&packet.body));
        prop_assert_eq!(read.with(|made| made.body = packet.body.clone()), packet);
    }

    /// A packet has the link-layer header of its frame only while its direction is unchanged.
    #[test]
    fn a_link_header_is_reused_only_in_its_direction(
        packet in packets(),
        tags in 0usize..3,
        (src, dst) in addresses(),
    ) {
        let link = link_of(&packet, tags);
        let out = frame::write(&packet, &link).unwrap();
        let Incoming::Packet(read) = frame::read(out.bytes()) else { panic!("a packet") };
        // A packet without a body does not store its frame.
        let own = matches!(read.body, Body::Bytes { .. }).then_some(&link[..]);
        prop_assert_eq!(frame::own_link_header(&read), own);
        let turned = |src, dst| {
            read.clone().with(|packet| (packet.src, packet.dst) = (src, dst))
        };
        let back = turned(read.dst, read.src);
        prop_assert_eq!(frame::own_link_header(&back), own.filter(|_| read.src == read.dst));
        for other in [turned(src, read.dst), turned(read.src, dst)] {
            let same = (other.src, other.dst) == (read.src, read.dst);
            prop_assert_eq!(frame::own_link_header(&other), own.filter(|_| same));
        }
    }

    #[test]
    fn the_pieces_of_a_frame_are_its_bytes_in_order(packet in packets(), mtu in 100usize..600) {
        let out = frame::write(&packet, &link_of(&packet, 1)).unwrap();
        let Some(pieces) = offload::refit(out.bytes(), mtu) else {
            let plain = packet.segment().is_some_and(|s| {
                !s.flags.any(Flags::SYN | Flags::RST | Flags::URG) && !s.is_signed()
            });
            prop_assert!(!plain || packet.body.is_empty());
            return Ok(());
        };
        let (mut joined, whole) = (Vec::new(), packet.segment().unwrap());
        prop_assert!(!whole.is_signed(), "a signature covers the whole segment");
        let count = pieces.len();
        for (i, piece) in pieces.iter().enumerate() {
            let mut piece = piece.to_vec();
            let vnet = VnetHeader::read(&piece).unwrap();
            offload::complete(&mut piece, vnet);
            prop_assert!(piece.len() - VNET - 18 <= mtu);
            let read = parse(&piece.into(), VNET + 18, true).unwrap();
            prop_assert_eq!(read.damage, Damage::None);
            let segment = read.segment().unwrap();
            prop_assert_eq!(segment.seq, whole.seq + joined.len() as u32);
            prop_assert!(i + 1 == count || !segment.flags.has(Flags::FIN));
            prop_assert_eq!((segment.ack, segment.timestamps), (whole.ack, whole.timestamps));
            joined.extend(bytes_of(&read.body));
        }
        prop_assert_eq!(joined, bytes_of(&packet.body));
    }

    #[test]
    fn an_invalid_virtio_header_yields_a_bounded_output(
        packet in packets(),
        gso_type in prop::sample::select(vec![1u8, 4, 5, 0x81, 3]),
        gso_size in 0u16..600,
        start in 0u16..120,
        offset in prop::sample::select(vec![16u16, 6, 9]),
        change in any::<(prop::sample::Index, u8)>(),
    ) {
        let out = frame::write(&packet, &link_of(&packet, 0)).unwrap();
        let mut frame = out.bytes().to_vec();
        let vnet = VnetHeader {
            flags: VnetHeader::NEEDS_CHECKSUM,
            gso_type,
            header_len: 54,
            gso_size,
            checksum_start: start,
            checksum_offset: offset,
        };
        vnet.write(&mut frame);
        let at = change.0.index(frame.len() - VNET) + VNET;
        frame[at] = change.1;
        let _ = frame::read(&frame);
        let pieces = offload::segments(&frame).unwrap_or_default();
        prop_assert!(pieces.len() <= packet.body.len() as usize + 40);
    }

    #[test]
    fn any_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = (frame::read(&bytes), offload::segments(&bytes), offload::refit(&bytes, 90));
    }
}

/// Found by the fuzz target `frame`: a super-packet whose TCP header has a length of eight bytes.
#[test]
fn a_super_packet_with_half_a_header_is_malformed() {
    let mut segment = Segment::new(1, 9, Seq(1), Seq(1), Flags::ACK);
    segment.window = 7;
    let packet = Packet::tcp(
        Addr::v4(10, 0, 0, 1),
        Addr::v4(10, 1, 0, 1),
        segment,
        Body::copy_of(&[1; 300]),
    );
    let mut frame = frame::write(&packet, &link_of(&packet, 0)).unwrap().bytes().to_vec();
    let vnet = VnetHeader {
        flags: VnetHeader::NEEDS_CHECKSUM,
        gso_type: 1,
        header_len: 42,
        gso_size: 50,
        checksum_start: 34,
        checksum_offset: 16,
    };
    vnet.write(&mut frame);
    frame[VNET + 34 + 12] = 0x20;
    assert!(matches!(frame::read(&frame), Incoming::Malformed));
    // The transport header lies within the IP header.
    frame[VNET + 34 + 12] = 0x50;
    VnetHeader { checksum_start: 20, ..vnet }.write(&mut frame);
    assert!(matches!(frame::read(&frame), Incoming::Malformed));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    /// A network card would split the written super-packet into the original packets, and `read_whole`
    /// restores it.
    #[test]
    fn a_super_packet_splits_into_its_original_packets(
        mut packet in packets(),
        (len, piece, tags) in (2u32..60_000, 100u16..9000, 0usize..3),
    ) {
        prop_assume!(matches!(packet.transport, Transport::Tcp(_)));
        prop_assume!(len > u32::from(piece));
        let mut body = Vec::new();
        Body::Pattern { stream: 7, offset: 0, len }.copy_into(len, &mut body);
        packet.body = Body::copy_of(&body);
        packet.piece = piece;
        let written = frame::write(&packet, &link_of(&packet, tags)).expect("it fits");
        let Incoming::Packet(read) = frame::read_whole(written.bytes()) else { panic!("a packet") };
        prop_assert_eq!(&read.transport, &packet.transport);
        prop_assert_eq!((read.piece, bytes_of(&read.body)), (piece, body));
        let Incoming::Packets(got) = frame::read(written.bytes()) else { panic!("several") };
        let want: Vec<Packet> = packet.cut().collect();
        prop_assert_eq!(got.len(), want.len());
        for (got, want) in got.iter().zip(&want) {
            prop_assert_eq!(&got.transport, &want.transport);
            prop_assert_eq!((got.src, got.dst, got.tos, got.ttl), (want.src, want.dst, want.tos, want.ttl));
            prop_assert_eq!(bytes_of(&got.body), bytes_of(&want.body));
        }
        for mut bytes in offload::segments(written.bytes()).expect("several").iter().map(|b| b.to_vec()) {
            let vnet = VnetHeader::read(&bytes).expect("it has one");
            offload::complete(&mut bytes, vnet);
            let seen = view(&bytes[VNET + 14 + 4 * tags..], Mode { verify: true, wire_len: None });
            prop_assert_eq!(seen.expect("a packet").damage, Damage::None);
        }
    }
}
