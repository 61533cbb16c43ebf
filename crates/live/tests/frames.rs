//! Frames that no stage changes leave byte for byte as they arrived.

use crate::common::*;
use lasthop_live::header::{VNET, VnetHeader};
use lasthop_path::Stage;
use lasthop_proto::wire::checksum::{Sum, checksum};

const LEFT: [u8; 6] = [2, 0, 0, 0, 0, 1];
const RIGHT: [u8; 6] = [2, 0, 0, 0, 0, 2];
const ALL: [u8; 6] = [0xff; 6];

fn ethernet(dst: [u8; 6], src: [u8; 6], tags: &[u8], kind: u16, payload: &[u8]) -> Vec<u8> {
    [&dst[..], &src, tags, &kind.to_be_bytes(), payload].concat()
}

#[derive(Clone, Copy)]
struct V4<'a> {
    tos: u8,
    options: &'a [u8],
    fragment: u16,
    dst: [u8; 4],
}

const PLAIN: V4<'static> = V4 { tos: 0, options: &[], fragment: 0x4000, dst: [10, 9, 9, 2] };

fn v4(how: V4<'_>, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let header = 20 + how.options.len();
    let len = (header + payload.len()) as u16;
    let mut ip = vec![0x40 | (header / 4) as u8, how.tos];
    ip.extend(len.to_be_bytes());
    ip.extend([0x12, 0x34]);
    ip.extend(how.fragment.to_be_bytes());
    ip.extend([61, protocol, 0, 0, 10, 9, 9, 1]);
    ip.extend(how.dst);
    ip.extend(how.options);
    let sum = checksum(&ip);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    ip.extend(payload);
    ip
}

fn v6(flow: u32, tos: u8, next: u8, payload: &[u8]) -> Vec<u8> {
    let first = 6 << 28 | u32::from(tos) << 20 | flow;
    let mut ip = first.to_be_bytes().to_vec();
    ip.extend((payload.len() as u16).to_be_bytes());
    ip.extend([next, 61]);
    ip.extend([0xfd, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 1]);
    ip.extend([0xfd, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 2]);
    ip.extend(payload);
    ip
}

fn tcp(options: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut segment = vec![0x30, 0x39, 0, 9, 0, 0, 1, 0, 0, 0, 2, 0];
    segment.extend([((20 + options.len()) / 4 * 16) as u8, 0x18, 0x20, 0, 0, 0, 0, 0]);
    segment.extend(options);
    segment.extend(payload);
    segment
}

/// Completes the transport checksum at `field` behind an IPv4 or IPv6 header without options.
fn sealed(mut ip: Vec<u8>, field: usize) -> Vec<u8> {
    let packet =
        lasthop_proto::wire::parse::view(&ip, lasthop_proto::wire::parse::Mode::WHOLE).unwrap();
    let (header, protocol) =
        if packet.src.is_v4() { (usize::from(ip[0] & 15) * 4, ip[9]) } else { (40, ip[6]) };
    ip[header + field..header + field + 2].fill(0);
    let mut sum = Sum::default();
    sum.pseudo_header(packet.src, packet.dst, protocol, (ip.len() - header) as u32);
    sum.bytes(&ip[header..]);
    ip[header + field..header + field + 2].copy_from_slice(&sum.checksum().to_be_bytes());
    ip
}

fn udp(payload: &[u8]) -> Vec<u8> {
    let len = (8 + payload.len()) as u16;
    [&[0x30, 0x39, 0, 7][..], &len.to_be_bytes(), &[0, 0], payload].concat()
}

/// Every kind of frame, with its name.
fn zoo() -> Vec<(&'static str, Vec<u8>)> {
    let mut zoo = [plain(), wrapped(), to_many(), malformed()].concat();
    for (name, tos) in [("ECN 01", 1), ("ECN 10", 2), ("ECN 11", 3), ("DSCP and ECN", 0xb9)] {
        zoo.push((name, e(0x0800, &sealed(v4(V4 { tos, ..PLAIN }, 6, &tcp(&[], &data())), 16))));
        zoo.push((name, e(0x86dd, &sealed(v6(1, tos, 6, &tcp(&[], &data())), 16))));
    }
    zoo
}

fn data() -> Vec<u8> {
    (0..=255).collect()
}

fn segment() -> Vec<u8> {
    sealed(v4(PLAIN, 6, &tcp(&[], &data())), 16)
}

fn arp() -> Vec<u8> {
    [&[0, 1, 8, 0, 6, 4, 0, 1][..], &LEFT, &[10, 9, 9, 1], &[0; 6], &[10, 9, 9, 2]].concat()
}

/// A frame to the right host.
fn e(kind: u16, payload: &[u8]) -> Vec<u8> {
    ethernet(RIGHT, LEFT, &[], kind, payload)
}

fn tagged(tags: &[u8], payload: &[u8]) -> Vec<u8> {
    ethernet(RIGHT, LEFT, tags, 0x0800, payload)
}

/// Frames of other protocols, and ordinary segments.
fn plain() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("ARP", ethernet(ALL, LEFT, &[], 0x0806, &arp())),
        (
            "neighbour solicitation",
            e(0x86dd, &sealed(v6(0, 0, 58, &[&[135, 0, 0, 0][..], &[0; 20]].concat()), 2)),
        ),
        (
            "listener report",
            e(0x86dd, &v6(0, 0, 0, &[58, 0, 5, 2, 0, 0, 1, 0, 143, 0, 9, 9, 0, 0, 0, 0])),
        ),
        (
            "group membership",
            e(
                0x0800,
                &v4(V4 { options: &[148, 4, 0, 0], ..PLAIN }, 2, &[0x16, 0, 1, 2, 224, 0, 0, 9]),
            ),
        ),
        ("echo v4", e(0x0800, &v4(PLAIN, 1, &[8, 0, 0x12, 0x34, 0, 1, 0, 1, 9, 9]))),
        ("echo v6", e(0x86dd, &sealed(v6(0, 0, 58, &[128, 0, 0, 0, 0, 1, 0, 1, 9]), 2))),
        ("UDP", e(0x0800, &sealed(v4(PLAIN, 17, &udp(&data())), 6))),
        ("UDP without a checksum", e(0x0800, &v4(PLAIN, 17, &udp(&data())))),
        ("UDP v6", e(0x86dd, &sealed(v6(0, 0, 17, &udp(&data())), 6))),
        ("TCP", e(0x0800, &segment())),
        ("a full frame", e(0x0800, &sealed(v4(PLAIN, 6, &tcp(&[], &[7; 1500 - 40])), 16))),
        ("TCP without data", e(0x0800, &sealed(v4(PLAIN, 6, &tcp(&[], &[])), 16))),
        (
            "TCP with padding",
            e(
                0x0800,
                &[&sealed(v4(PLAIN, 6, &tcp(&[], &[])), 16)[..], &[1, 2, 3, 4, 5, 6]].concat(),
            ),
        ),
        ("TCP with a long trailer", e(0x0800, &[&segment()[..], &[9; 300]].concat())),
        ("TCP with a wrong checksum", e(0x0800, &v4(PLAIN, 6, &tcp(&[], &data())))),
        (
            "unknown options in another order",
            e(
                0x0800,
                &sealed(
                    v4(
                        PLAIN,
                        6,
                        &tcp(
                            &[1, 19, 3, 7, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 1, 1, 99, 2, 0, 5],
                            &data(),
                        ),
                    ),
                    16,
                ),
            ),
        ),
        ("impossible options", e(0x0800, &sealed(v4(PLAIN, 6, &tcp(&[8, 1, 5, 99], &data())), 16))),
    ]
}

/// Frames with additional headers, fragments, and tags.
fn wrapped() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("TCP v6 with a flow label", e(0x86dd, &sealed(v6(0xabcde, 0, 6, &tcp(&[], &data())), 16))),
        (
            "TCP behind destination options",
            e(0x86dd, &v6(3, 0, 60, &[&[6, 0, 1, 4, 0, 0, 0, 0][..], &tcp(&[], &data())].concat())),
        ),
        (
            "UDP behind a hop-by-hop header",
            e(0x86dd, &v6(3, 0, 0, &[&[17, 0, 1, 4, 0, 0, 0, 0][..], &udp(&data())].concat())),
        ),
        (
            "IPv4 options",
            e(
                0x0800,
                &sealed(
                    v4(V4 { options: &[7, 7, 4, 0, 0, 0, 0, 0], ..PLAIN }, 6, &tcp(&[], &data())),
                    16,
                ),
            ),
        ),
        (
            "the first fragment",
            e(0x0800, &v4(V4 { fragment: 0x2000, ..PLAIN }, 6, &tcp(&[], &[1; 60]))),
        ),
        ("a later fragment", e(0x0800, &v4(V4 { fragment: 10, ..PLAIN }, 6, &data()))),
        (
            "a fragment of eight bytes",
            e(0x0800, &v4(V4 { fragment: 0x2001, ..PLAIN }, 17, &[5; 8])),
        ),
        (
            "a fragment v6",
            e(0x86dd, &v6(0, 0, 44, &[&[17, 0, 0, 1, 1, 2, 3, 4][..], &udp(&data())].concat())),
        ),
        ("tag", tagged(&[0x81, 0, 0x20, 7], &segment())),
        ("priority tag", tagged(&[0x81, 0, 0xe0, 0], &segment())),
        ("service tag", tagged(&[0x88, 0xa8, 0, 9], &segment())),
        ("two tags", tagged(&[0x88, 0xa8, 0, 9, 0x81, 0, 0, 7], &segment())),
        ("the same tag twice", tagged(&[0x81, 0, 0, 9, 0x81, 0, 0, 7], &segment())),
        ("three tags", tagged(&[0x88, 0xa8, 0, 9, 0x81, 0, 0, 7, 0x81, 0, 0, 8], &segment())),
        ("a tag and UDP", tagged(&[0x81, 0, 0, 7], &sealed(v4(PLAIN, 17, &udp(&data())), 6))),
        ("a tag and ARP", ethernet(ALL, LEFT, &[0x81, 0, 0, 7], 0x0806, &arp())),
    ]
}

/// Frames to more than one host.
fn to_many() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        (
            "broadcast",
            ethernet(
                ALL,
                LEFT,
                &[],
                0x0800,
                &sealed(v4(V4 { dst: [255; 4], ..PLAIN }, 17, &udp(&data())), 6),
            ),
        ),
        (
            "directed broadcast",
            ethernet(
                ALL,
                LEFT,
                &[],
                0x0800,
                &sealed(v4(V4 { dst: [10, 9, 9, 255], ..PLAIN }, 17, &udp(&data())), 6),
            ),
        ),
        (
            "multicast",
            ethernet(
                [1, 0, 0x5e, 0, 0, 9],
                LEFT,
                &[],
                0x0800,
                &sealed(v4(V4 { dst: [224, 0, 0, 9], ..PLAIN }, 17, &udp(&data())), 6),
            ),
        ),
    ]
}

/// Malformed frames, and frames of unknown types.
fn malformed() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("unknown type", e(0x88b5, &data())),
        ("a length instead of a type", e(38, &data()[..38])),
        ("nothing behind the addresses", e(0x88b5, &[])),
        ("IPv4 of one byte", e(0x0800, &[0x45])),
        ("a wrong version", e(0x0800, &[0x95; 60])),
        ("a header length of 4", e(0x0800, &[0x41; 60])),
        ("a total length beyond the frame", e(0x0800, &segment()[..segment().len() - 50])),
        ("a TCP header cut short", e(0x0800, &v4(PLAIN, 6, &tcp(&[], &[])[..13]))),
        (
            "options beyond the segment",
            e(
                0x0800,
                &v4(PLAIN, 6, &[&tcp(&[], &[])[..12], &[0xf0, 0x10, 0, 0, 0, 0, 0, 0]].concat()),
            ),
        ),
        ("IPv6 whose length lies", e(0x86dd, &v6(0, 0, 6, &tcp(&[], &data()))[..80])),
    ]
}

/// Sends all frames to both sides through a station with this stage, and checks that all arrive unchanged.
fn all_arrive(stage: fn() -> Stage, frames: &[(&'static str, Vec<u8>)]) {
    let (left, right) = (socket("fh", "fl"), socket("mh", "mr"));
    let station = quiet(stage);
    let plain: Vec<Vec<u8>> = frames.iter().map(|(_, frame)| frame.clone()).collect();
    let mut copies = 0;
    for (from, to) in [(&left, &right), (&right, &left)] {
        send_plain(from, &plain);
        let mut got: Vec<Vec<u8>> =
            receive(to, frames.len()).into_iter().map(|frame| frame[VNET..].to_vec()).collect();
        for (name, frame) in frames {
            let found = got.iter().position(|other| other == frame);
            let found = found.unwrap_or_else(|| panic!("{name} is lost or changed: {frame:02x?}"));
            got.remove(found);
        }
        let unknown = got.iter().find(|frame| !plain.contains(frame));
        assert!(unknown.is_none(), "this was not sent: {unknown:02x?}");
        copies += got.len() as u64;
    }
    let ended = station.stop().1;
    // The kernel forwards on its own when a busy machine delays the station, which has a copy of each frame.
    let by_itself = ended.plane.map_or(0, |plane| plane.by_itself);
    assert!(copies <= by_itself, "{copies} frames arrived twice, {by_itself} by the kernel");
    ended.assert_no_loss();
}

fn quiet_hosts() {
    // The hosts' own kernels must not answer.
    for (host, dev) in [("fh", "fl"), ("mh", "mr")] {
        sh(&format!("ip -n {host} addr flush dev {dev}; ip -n {host} link set dev {dev} arp off"));
    }
}

#[test]
fn every_kind_of_frame_passes_unchanged() {
    alone("every_kind_of_frame_passes_unchanged", || {
        wire(Wires::default());
        quiet_hosts();
        for stage in [none, snoop, link] {
            all_arrive(stage, &zoo());
        }
    });
}

#[test]
fn jumbo_frames_pass_unchanged() {
    alone("jumbo_frames_pass_unchanged", || {
        wire(Wires { mtu: 9000, ..Wires::default() });
        quiet_hosts();
        let full = vec![7; 9000 - 40];
        let segment = sealed(v4(PLAIN, 6, &tcp(&[], &full)), 16);
        let frames = [
            ("jumbo", ethernet(RIGHT, LEFT, &[], 0x0800, &segment)),
            ("jumbo with a tag", ethernet(RIGHT, LEFT, &[0x81, 0, 0, 7], 0x0800, &segment)),
            (
                "jumbo UDP",
                ethernet(RIGHT, LEFT, &[], 0x0800, &sealed(v4(PLAIN, 17, &udp(&full)), 6)),
            ),
        ];
        for stage in [none, snoop, link] {
            all_arrive(stage, &frames);
        }
    });
}

#[test]
fn a_wrong_header_checksum_is_dropped_with_a_cause() {
    alone("a_wrong_header_checksum_is_dropped_with_a_cause", || {
        wire(Wires::default());
        quiet_hosts();
        let (left, right) = (socket("fh", "fl"), socket("mh", "mr"));
        let station = station(crate::record::Record::default(), || vec![snoop()]);
        let mut ip = sealed(v4(PLAIN, 6, &tcp(&[], &[1, 2, 3])), 16);
        ip[10] ^= 1;
        let good = ethernet(RIGHT, LEFT, &[], 0x88b5, &[1; 50]);
        send_plain(&left, &[ethernet(RIGHT, LEFT, &[], 0x0800, &ip), good.clone()]);
        let got = receive(&right, 1);
        assert_eq!(got[0][VNET..], good);
        let (record, _) = station.stop();
        use lasthop_proto::event::{Cause, EventKind, Op};
        let is_drop = |kind: &EventKind| {
            matches!(kind, EventKind::Packet { op: Op::Dropped(Cause::IpChecksum), .. })
        };
        assert_eq!(record.events().filter(|event| is_drop(&event.kind)).count(), 1);
    });
}

/// A super-packet in the form of a host's kernel.
fn super_packet(mut ip: Vec<u8>, tags: &[u8], gso_type: u8, gso_size: u16) -> Vec<u8> {
    let kind = if ip[0] >> 4 == 4 { 0x0800 } else { 0x86dd };
    let header = if kind == 0x0800 { usize::from(ip[0] & 15) * 4 } else { 40 };
    let udp = gso_type == 5;
    let start = 14 + tags.len() + header;
    let field = header + if udp { 6 } else { 16 };
    let seen =
        lasthop_proto::wire::parse::view(&ip, lasthop_proto::wire::parse::Mode::WHOLE).unwrap();
    let mut sum = Sum::default();
    sum.pseudo_header(seen.src, seen.dst, if udp { 17 } else { 6 }, (ip.len() - header) as u32);
    ip[field..field + 2].copy_from_slice(&sum.fold().to_be_bytes());
    let mut frame = vec![0; VNET];
    VnetHeader {
        flags: VnetHeader::NEEDS_CHECKSUM,
        gso_type,
        header_len: (start + if udp { 8 } else { usize::from(ip[header + 12] >> 4) * 4 }) as u16,
        gso_size,
        checksum_start: start as u16,
        checksum_offset: if udp { 6 } else { 16 },
    }
    .write(&mut frame);
    frame.extend(ethernet(RIGHT, LEFT, tags, kind, &ip));
    frame
}

#[test]
fn super_packets_pass_whole_or_match_kernel_segmentation() {
    alone("super_packets_pass_whole_or_match_kernel_segmentation", || {
        wire(Wires { offload: true, ..Wires::default() });
        quiet_hosts();
        let data: Vec<u8> = (0..20_000u32).map(|i| ((i * 7) >> 3) as u8).collect();
        let options = V4 { options: &[7, 7, 4, 0, 0, 0, 0, 0], tos: 2, ..PLAIN };
        let stamps = [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2];
        let cases = [
            super_packet(v4(PLAIN, 6, &tcp(&stamps, &data)), &[], 1, 1448),
            super_packet(v4(options, 6, &tcp(&[], &data)), &[], 1, 1000),
            super_packet(v4(PLAIN, 6, &tcp(&[], &data)), &[0x81, 0, 0, 7], 1, 1460),
            super_packet(v6(0xabcde, 1, 6, &tcp(&stamps, &data)), &[], 4, 1400),
            super_packet(v4(PLAIN, 17, &udp(&data)), &[], 5, 1200),
            super_packet(v6(0x12345, 0, 17, &udp(&data)), &[], 5, 1200),
        ];
        let (left, right) = (socket("fh", "fl"), socket("mh", "mr"));
        let whole = quiet(none);
        send_all(&left, &cases);
        let got = receive(&right, cases.len());
        assert_eq!(got.len(), cases.len());
        for (sent, got) in cases.iter().zip(&got) {
            assert_eq!(sent[VNET..], got[VNET..], "whole");
            assert_eq!((sent[0], sent[1], &sent[4..10]), (got[0], got[1], &got[4..10]));
        }
        whole.stop().1.assert_no_loss();
        for stage in [snoop, link] {
            for case in &cases {
                // The kernel's own segmentation, at an end that cannot segment.
                let kernel = split_by_kernel(case);
                let station = quiet(stage);
                send_all(&left, core::slice::from_ref(case));
                let mut got = receive(&right, kernel.len());
                got.iter_mut().for_each(|frame| complete(frame));
                assert_eq!(got.len(), kernel.len());
                for (ours, theirs) in got.iter().zip(&kernel) {
                    assert_eq!(ours[VNET..], theirs[VNET..]);
                }
                station.stop().1.assert_no_loss();
            }
        }
    });
}

/// Completes an incomplete checksum.
fn complete(frame: &mut [u8]) {
    let vnet = VnetHeader::read(frame).unwrap();
    if vnet.needs_checksum() {
        lasthop_live::offload::complete(frame, vnet);
        VnetHeader::default().write(frame);
    }
}

/// Frames of an ideal network card: the kernel's own segmentation between two ends without offloads.
fn split_by_kernel(frame: &[u8]) -> Vec<Vec<u8>> {
    sh("ip netns del ref 2>/dev/null || true; ip netns add ref
        ip netns exec ref sysctl -qw net.ipv6.conf.default.disable_ipv6=1
        ip -n ref link add name ra type veth peer name rb
        ip netns exec ref ethtool -K ra tso off gso off tx off tx-udp-segmentation off
        ip netns exec ref ethtool -K rb gro off
        ip -n ref link set dev ra arp off; ip -n ref link set dev rb arp off
        ip -n ref link set dev ra up; ip -n ref link set dev rb up");
    wait_up(&[("ref", "ra"), ("ref", "rb")]);
    let (a, b) = (socket("ref", "ra"), socket("ref", "rb"));
    send_all(&a, &[frame]);
    let vnet = VnetHeader::read(frame).unwrap();
    let data = frame.len() - VNET - usize::from(vnet.header_len);
    let pieces = data.div_ceil(vnet.gso_size.into());
    let mut got = receive(&b, pieces);
    got.iter_mut().for_each(|frame| complete(frame));
    assert!(got.len() == pieces && pieces > 1, "{} of {pieces}, type {}", got.len(), frame[1]);
    got
}

#[test]
fn frames_beyond_the_mtu_are_segmented_or_counted() {
    alone("frames_beyond_the_mtu_are_segmented_or_counted", || {
        wire(Wires { mtu: 9000, ..Wires::default() });
        sh("ip -n bs link set dev br mtu 1500; ip -n mh link set dev mr mtu 1500");
        quiet_hosts();
        let (left, right) = (socket("fh", "fl"), socket("mh", "mr"));
        let data: Vec<u8> = (0..8000u32).map(|i| ((i * 7) >> 3) as u8).collect();
        for stage in [none, snoop, link] {
            let station = quiet(stage);
            let long =
                ethernet(RIGHT, LEFT, &[], 0x0800, &sealed(v4(PLAIN, 6, &tcp(&[], &data)), 16));
            let datagram =
                ethernet(RIGHT, LEFT, &[], 0x0800, &sealed(v4(PLAIN, 17, &udp(&data)), 6));
            let after = ethernet(RIGHT, LEFT, &[], 0x0800, &sealed(v4(PLAIN, 17, &udp(&[1])), 6));
            send_plain(&left, &[long, datagram, after.clone()]);
            let got = receive(&right, 7);
            assert_eq!(got.len(), 7, "six pieces, and the frame after");
            assert_eq!(got[6][VNET..], after);
            let mut joined = Vec::new();
            for mut frame in got.into_iter().take(6) {
                complete(&mut frame);
                let ip = &frame[VNET + 14..];
                let seen = lasthop_proto::wire::parse::parse(&ip.into(), 0, true).unwrap();
                assert_eq!(seen.damage, lasthop_proto::wire::Damage::None);
                assert_eq!(seen.segment().unwrap().seq.0, 0x100 + joined.len() as u32);
                seen.body.copy_into(u32::MAX, &mut joined);
            }
            assert_eq!(joined, data);
            let port = station.stop().1.port("br");
            assert_eq!((port.refitted, port.refused, port.refused_long), (1, 1, 1));
        }
    });
}

#[test]
fn frame_processing_matches_the_stored_figures() {
    let bare =
        |(name, bytes): (&str, Vec<u8>)| (name.to_owned(), [&[0; VNET][..], &bytes].concat());
    let mut all: Vec<(String, Vec<u8>)> = zoo().into_iter().map(bare).collect();
    let payload: Vec<u8> = (0..700).map(|i| i as u8).collect();
    let tag = [0x81, 0, 0, 7];
    let options = [1, 1, 8, 10, 0, 0, 0, 9, 0, 0, 0, 5];
    for (name, ip, kind, size) in [
        ("v4", v4(PLAIN, 6, &tcp(&options, &payload)), 1, 300),
        ("v4 with CWR", v4(PLAIN, 6, &tcp(&[], &payload)), 0x81, 100),
        ("v6", v6(7, 2, 6, &tcp(&options, &payload)), 4, 256),
        ("UDP", v4(PLAIN, 17, &udp(&payload)), 5, 350),
        ("UDP v6", v6(7, 2, 17, &udp(&payload)), 5, 699),
        ("v4 of one piece", v4(PLAIN, 6, &tcp(&[], &payload)), 1, 700),
    ] {
        all.push((format!("super-packet {name}"), super_packet(ip.clone(), &[], kind, size)));
        all.push((format!("super-packet {name} with a tag"), super_packet(ip, &tag, kind, size)));
    }
    // The ports of the kernel's tunnels.
    for port in [4789_u16, 8472, 6081, 53] {
        let mut datagram = udp(&payload);
        datagram[2..4].copy_from_slice(&port.to_be_bytes());
        all.push((
            format!("super-packet to port {port}"),
            super_packet(v4(PLAIN, 17, &datagram), &[], 5, 200),
        ));
    }
    crate::frames_net::net(&all);
}
