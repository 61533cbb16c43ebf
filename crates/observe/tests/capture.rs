//! The reader reads the writer's files and those of other programs, and does not panic on invalid files.

use std::io;

use lasthop_observe::Sink;
use lasthop_observe::capture::{CaptureError, Frame, LinkType, open};
use lasthop_observe::pcapng::{CapturePoint, CaptureSink, Interface, Writer};
use lasthop_proto::event::{Cause, Event, EventKind, Op};
use lasthop_proto::machine::{Side, StageId};
use lasthop_proto::units::Time;
use lasthop_proto::wire::{Addr, Body, Damage, Flags, Packet, PacketId, Segment, Seq};
use proptest::prelude::*;

fn packet(id: u64, seq: u32, len: u32) -> Packet {
    let segment = Segment::new(4000, 80, Seq(seq), Seq(1), Flags::ACK);
    let body = Body::Pattern { stream: 0, len, offset: u64::from(seq) };
    let mut packet = Packet::tcp(Addr::v4(10, 0, 0, 1), Addr::v4(10, 0, 0, 2), segment, body);
    packet.id = PacketId(id);
    packet
}

fn frames(file: &[u8]) -> Vec<Frame<'_>> {
    open(file).unwrap().map(Result::unwrap).collect()
}

fn sample() -> Vec<u8> {
    let mut writer = Writer::new(Vec::new()).unwrap();
    let a = Interface { name: "radio", epoch: 1_700_000_000, ..Interface::default() };
    let a = writer.interface(&a).unwrap();
    let b = writer.interface(&Interface { name: "wire", ..Interface::default() }).unwrap();
    writer.packet(a, Time(123_456_789), Side::Left, &packet(1, 1, 11), u32::MAX, "").unwrap();
    writer.packet(b, Time(u64::MAX / 2), Side::Right, &packet(2, 12, 1000), 5, "why äß").unwrap();
    writer.into_inner()
}

#[test]
fn a_written_capture_is_read_back() {
    let file = sample();
    let frames = frames(&file);
    assert_eq!(frames.len(), 2);
    assert_eq!(frames[0].at, Time(1_700_000_000_123_456_789));
    assert_eq!((frames[0].direction, frames[0].comment), (Some(Side::Left), None));
    assert_eq!((frames[1].direction, frames[1].comment), (Some(Side::Right), Some("why äß")));
    assert_eq!((frames[1].interface, frames[1].number, frames[1].wire_len), (1, 2, 1040));
    assert_eq!(frames[1].bytes.len(), 45);
    let view = frames[1].view(true).unwrap().unwrap();
    assert_eq!((view.body_len, view.captured, view.damage), (1000, 5, Damage::None));
    assert_eq!(open(&file).unwrap().interfaces(), Vec::<String>::new());
    let mut capture = open(&file).unwrap();
    capture.by_ref().for_each(drop);
    assert_eq!(capture.interfaces(), ["radio", "wire"]);
    assert!(!capture.truncated());
}

#[test]
fn every_cut_is_either_clean_or_reported() {
    let file = sample();
    let whole: Vec<Frame<'_>> = frames(&file);
    let mut clean = 0;
    for len in 28..file.len() {
        let mut capture = open(&file[..len]).unwrap();
        let got: Vec<_> = capture.by_ref().map(Result::unwrap).collect();
        assert_eq!(got, whole[..got.len()], "cut at {len}");
        clean += usize::from(!capture.truncated());
    }
    // After the section header, after each of two interfaces, after the first packet.
    assert_eq!(clean, 4);
}

/// A classic capture of one frame: `order` true for big-endian.
fn pcap(big: bool, nanos: bool, link: u32, frame: &[u8], wire_len: u32) -> Vec<u8> {
    let long = |v: u32| if big { v.to_be_bytes() } else { v.to_le_bytes() };
    let short = |v: u16| if big { v.to_be_bytes() } else { v.to_le_bytes() };
    let magic = if nanos { 0xa1b2_3c4d } else { 0xa1b2_c3d4 };
    let mut file = long(magic).to_vec();
    file.extend([short(2), short(4)].concat());
    file.extend([long(0), long(0), long(65_535), long(link)].concat());
    file.extend([long(1_000), long(999_999), long(frame.len() as u32), long(wire_len)].concat());
    file.extend(frame);
    file
}

fn ip() -> Vec<u8> {
    let mut bytes = Vec::new();
    lasthop_proto::wire::emit::emit(&packet(1, 7, 20), &mut bytes).unwrap();
    bytes
}

#[test]
fn classic_captures_of_all_orders_and_clocks() {
    for big in [false, true] {
        for nanos in [false, true] {
            let file = pcap(big, nanos, 101, &ip(), 60);
            let frames = frames(&file);
            let fraction = if nanos { 999_999 } else { 999_999_000 };
            assert_eq!(frames[0].at, Time(1_000_000_000_000 + fraction));
            assert_eq!(frames[0].view(true).unwrap().unwrap().body_len, 20);
        }
    }
}

#[test]
fn old_versions_have_the_lengths_of_a_record_in_other_orders() {
    let whole = pcap(false, false, 101, &ip(), 90);
    for (major, minor, swapped) in
        [(2, 0, true), (2, 2, true), (543, 0, true), (2, 3, true), (2, 3, false), (2, 4, false)]
    {
        let mut file = whole.clone();
        file[4..8].copy_from_slice(&[major as u8, (major >> 8) as u8, minor, 0]);
        if swapped {
            file[32..40].rotate_left(4);
        }
        let frames = frames(&file);
        assert_eq!((frames[0].bytes.len(), frames[0].wire_len), (60, 90), "{major}.{minor}");
    }
    let mut file = whole;
    file[4] = 1;
    assert_eq!(open(&file).unwrap_err(), CaptureError::Version { major: 1, minor: 4 });
}

#[test]
fn variants_with_longer_headers() {
    let mut file = pcap(false, false, 101, &ip(), 60);
    file[..4].copy_from_slice(&0xa1b2_cd34_u32.to_le_bytes());
    file.splice(40..40, [9; 8]);
    assert_eq!(frames(&file)[0].view(true).unwrap().unwrap().body_len, 20);
    let mut file = pcap(true, true, 101, &ip(), 60);
    file[..4].copy_from_slice(&0x1c00_01ac_u32.to_be_bytes());
    file.splice(24..24, [9; 4]);
    assert_eq!(frames(&file)[0].view(true).unwrap().unwrap().body_len, 20);
}

#[test]
fn all_link_layers() {
    let ethernet = |tags: &[u8]| [&[2; 12][..], tags, &[0x08, 0x00]].concat();
    let mut cooked = vec![0; 14];
    cooked.extend([0x08, 0x00]);
    let mut cooked2 = vec![0x08, 0x00];
    cooked2.extend([0; 18]);
    for (link, head) in [
        (LinkType::RAW, vec![]),
        (LinkType::IPV4, vec![]),
        (LinkType::NULL, vec![2, 0, 0, 0]),
        (LinkType::LOOP, vec![0, 0, 0, 2]),
        (LinkType::ETHERNET, ethernet(&[])),
        (LinkType::ETHERNET, ethernet(&[0x81, 0, 0, 5])),
        (LinkType::ETHERNET, ethernet(&[0x88, 0xa8, 0, 5, 0x81, 0, 0, 6])),
        (LinkType::LINUX_SLL, cooked),
        (LinkType::LINUX_SLL2, cooked2),
        (LinkType::IPOIB, vec![0x08, 0x00, 0, 0]),
        (LinkType::IPOIB, [&[7; 20][..], &[0x08, 0x00, 0, 0]].concat()),
    ] {
        let frame = [&head[..], &ip(), &[0; 3]].concat();
        let file = pcap(false, false, u32::from(link.0), &frame, frame.len() as u32);
        let frames = frames(&file);
        let view = frames[0].view(true).expect("an IP packet").unwrap();
        assert_eq!((view.body_len, view.damage), (20, Damage::None), "{link:?}");
        // Cut within the payload and within each header.
        for keep in 0..frame.len() {
            let file = pcap(true, true, u32::from(link.0), &frame[..keep], frame.len() as u32);
            if let Some(Ok(view)) = open(&file).unwrap().next().unwrap().unwrap().view(true) {
                assert_eq!(view.body_len, 20);
            }
        }
    }
    let arp = pcap(false, false, 1, &[&[2; 12][..], &[0x08, 0x06, 0x45]].concat(), 60);
    assert!(frames(&arp)[0].view(true).is_none());
    let unknown = pcap(false, false, 147, &ip(), 60);
    assert!(frames(&unknown)[0].view(true).is_none());
}

#[test]
fn big_endian_sections_and_other_resolutions() {
    let long = |v: u32| v.to_be_bytes();
    let block = |kind: u32, body: &[u8]| {
        let len = long(body.len() as u32 + 12);
        [&long(kind)[..], &len, body, &len].concat()
    };
    let section = block(0x0a0d_0d0a, &[&long(0x1a2b_3c4d)[..], &[0, 1, 0, 0], &[0xff; 8]].concat());
    let tsresol = [0, 9, 0, 1, 0x80 | 20, 0, 0, 0, 0, 14, 0, 8, 0, 0, 0, 0, 0, 0, 0, 100];
    let interface = block(1, &[&[0, 101, 0, 0][..], &long(0), &tsresol, &[0; 4]].concat());
    let ip = ip();
    let body = [&long(0)[..], &long(0), &long(3 << 19), &long(60), &long(60), &ip].concat();
    let packet = block(6, &body);
    let simple = block(3, &[&long(60)[..], &ip].concat());
    let unknown = block(77, &[1, 2, 3, 4]);
    // A second section begins anew with its interfaces.
    let file =
        [&section[..], &interface, &unknown, &packet, &section, &interface, &simple].concat();
    let got = frames(&file);
    assert_eq!(got.len(), 2);
    assert_eq!(got[0].at, Time(101_500_000_000));
    // A simple packet has no time: it gets that of the packet before.
    assert_eq!((got[1].at, got[1].interface), (got[0].at, 1));

    let orphan = [&section[..], &packet].concat();
    let error = open(&orphan).unwrap().next().unwrap().unwrap_err();
    assert_eq!(error, CaptureError::Interface { offset: section.len(), interface: 0, known: 0 });

    let mut torn = file.clone();
    let at = section.len() + interface.len() - 1;
    torn[at] ^= 4;
    assert!(matches!(
        open(&torn).unwrap().next().unwrap(),
        Err(CaptureError::Length { record: "block", .. })
    ));
}

#[test]
fn unsupported_capture_formats_are_named() {
    assert_eq!(open(&[]).unwrap_err(), CaptureError::Empty);
    for (first, hint) in [
        (&[0x1f, 0x8b, 8, 0][..], "gzip"),
        (&[0x28, 0xb5, 0x2f, 0xfd], "zstd"),
        (&[0x04, 0x22, 0x4d, 0x18], "lz4 -d"),
        (b"\xfd7zXZ\0", "xz -d"),
        (b"BZh9", "bzip2 -d"),
        (b"snoop\0\0\0", "snoop capture, convert it: editcap -F pcap"),
        (b"GMBU\0\x02", "Network Monitor capture, convert it: editcap -F pcap"),
        (b"TRSNIFF data    \x1a", "Sniffer capture, convert it: editcap -F pcap"),
    ] {
        let error = open(first).unwrap_err().to_string();
        assert!(error.contains(hint), "{error}");
    }
    // One ERF record of Ethernet, which has no magic number.
    let erf = [&[0, 0, 0, 0, 0, 0, 0, 0x60, 2, 4, 0, 80, 0, 0, 0, 62][..], &[0; 64]].concat();
    let error = open(&erf).unwrap_err().to_string();
    assert!(error.contains("ERF capture, convert it: editcap -F pcap"), "{error}");
    let mut other = erf;
    other[7] = 0;
    assert!(!open(&other).unwrap_err().to_string().contains("ERF"));
    assert!(matches!(open(b"GET / HTTP"), Err(CaptureError::NotACapture { .. })));
    let mut huge = pcap(false, false, 101, &ip(), 60);
    huge[32..36].copy_from_slice(&u32::MAX.to_le_bytes());
    let error = open(&huge).unwrap().next().unwrap().unwrap_err();
    assert!(matches!(error, CaptureError::Length { offset: 24, record: "packet", .. }));
}

fn event(at: u64, stage: u16, op: Op, packet: &Packet) -> Event {
    let kind = EventKind::Packet { op, side: Side::Right, packet: packet.clone() };
    Event { at: Time(at), stage: StageId(stage), kind }
}

#[test]
fn a_run_is_captured_at_each_link() {
    let place = |stage, name: &str, is_link| CapturePoint {
        stage: StageId(stage),
        name: name.into(),
        is_link,
    };
    let places = [place(0, "fixed", false), place(1, "line", true), place(3, "radio", true)];
    let mut opened = Vec::new();
    let mut sink = CaptureSink::new(&places, 0, |place| {
        opened.push(place.map(|place| place.name.clone()));
        io::Result::Ok(Vec::new())
    })
    .unwrap();
    let plain = packet(1, 1, 1000);
    let again = packet(2, 1, 1000);
    let damaged = again.clone().with(|packet| packet.damage = Damage::Tcp);
    let full = packet(3, 2001, 1000);
    for event in [
        event(1, 1, Op::Transmitted, &plain),
        event(2, 3, Op::Transmitted, &plain),
        event(3, 0, Op::Originated(Cause::TimeoutRetransmit), &again),
        event(4, 1, Op::Transmitted, &again),
        event(5, 3, Op::Transmitted, &again),
        event(6, 3, Op::Transmitted, &packet(4, 1001, 1000)),
        event(7, 3, Op::Damaged, &damaged),
        event(8, 3, Op::Dropped(Cause::QueueFull), &full),
        event(8, 3, Op::Damaged, &packet(5, 3001, 1000).with(|packet| packet.damage = Damage::Ip)),
        event(
            9,
            3,
            Op::Transmitted,
            &packet(5, 3001, 1000).with(|packet| packet.damage = Damage::Ip),
        ),
        event(9, 0, Op::Dropped(Cause::TcpChecksum), &damaged),
        event(9, 7, Op::Transmitted, &plain),
    ] {
        sink.event(&event);
    }
    let captures = sink.finish().unwrap();
    assert_eq!(opened, [Some("line".into()), Some("radio".into()), None]);
    assert_eq!(captures.links[0].0, StageId(1));
    assert_eq!(comments(&captures.links[0].1), ["", "timeout-retransmit"]);
    assert_eq!(
        comments(&captures.links[1].1),
        ["", "timeout-retransmit; damaged: tcp-checksum", "", "damaged: ip-checksum"]
    );
    assert_eq!(
        comments(&captures.drops),
        ["dropped: queue-full", "dropped: tcp-checksum; sent as timeout-retransmit"]
    );
    let stats = captures.stats;
    assert_eq!((stats.packets, stats.elsewhere, stats.lost_damage), (8, 1, 0));
    let last = frames(&captures.links[1].1)[3];
    assert_eq!(last.view(true).unwrap().unwrap().damage, Damage::Ip);
}

/// The places of a line behind a host.
fn short_path() -> [CapturePoint; 2] {
    [(0, "fixed", false), (1, "line", true)].map(|(stage, name, is_link)| CapturePoint {
        stage: StageId(stage),
        name: name.into(),
        is_link,
    })
}

fn comments(file: &[u8]) -> Vec<&str> {
    frames(file).iter().map(|frame| frame.comment.unwrap_or("")).collect()
}

/// A channel may know of damage before the link begins to send.
#[test]
fn early_damage_is_attached_to_the_next_transmission() {
    let mut sink = CaptureSink::new(&short_path(), 0, |_| io::Result::Ok(Vec::new())).unwrap();
    let (early, never) = (packet(1, 1, 1000), packet(2, 1001, 1000));
    let harmed = |packet: &Packet| packet.clone().with(|packet| packet.damage = Damage::Tcp);
    for event in [
        event(1, 1, Op::Damaged, &harmed(&early)),
        event(1, 1, Op::Damaged, &harmed(&never)),
        event(2, 1, Op::Transmitted, &early),
        // The announcement was for one transmission.
        event(3, 1, Op::Transmitted, &early),
    ] {
        sink.event(&event);
    }
    let captures = sink.finish().unwrap();
    assert_eq!(comments(&captures.links[0].1), ["damaged: tcp-checksum", ""]);
    let stats = captures.stats;
    assert_eq!((stats.packets, stats.lost_damage), (2, 1), "one announced packet never came");
}

/// Packets that a splitting base station consumes, and copies that are discarded after a handoff, are no losses.
#[test]
fn consumed_packets_are_not_listed_as_drops() {
    let mut sink = CaptureSink::new(&short_path(), 0, |_| io::Result::Ok(Vec::new())).unwrap();
    for (id, cause) in [Cause::SplitTaken, Cause::HandoffStale, Cause::QueueFull].iter().enumerate()
    {
        let packet = packet(id as u64, 1 + 1000 * id as u32, 1000);
        sink.event(&event(1, 1, Op::Dropped(*cause), &packet));
    }
    let captures = sink.finish().unwrap();
    assert_eq!(comments(&captures.drops), ["dropped: queue-full"]);
    assert_eq!(captures.stats.packets, 1);
}

/// A section of pcapng with an impossible length, in a file of its own and behind a pcap file.
#[test]
fn a_section_of_impossible_length_is_an_error() {
    let section =
        [&[0x0a, 0x0d, 0x0d, 0x0a][..], &[0xff; 4], &[0x4d, 0x3c, 0x2b, 0x1a], &[0; 16]].concat();
    for file in [section.clone(), [pcap(true, true, 1, &[], 0), section].concat()] {
        let errors = open(&file).map(|capture| capture.take(2).filter(Result::is_err).count());
        assert!(matches!(errors, Err(_) | Ok(1)), "{errors:?}");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_to_an_end(
        bytes in prop::collection::vec(any::<u8>(), 0..400),
        start in 0usize..4,
    ) {
        let head = match start {
            0 => sample()[..28].to_vec(),
            1 => sample(),
            2 => pcap(true, true, 1, &[], 0),
            _ => Vec::new(),
        };
        let file = [head, bytes].concat();
        if let Ok(capture) = open(&file) {
            for frame in capture.flatten() {
                let _ = frame.view(true);
            }
        }
    }

    #[test]
    fn changed_bytes_do_no_harm(changes in prop::collection::vec((any::<usize>(), any::<u8>()), 1..8)) {
        let mut file = sample();
        for (at, byte) in changes {
            let at = at % file.len();
            file[at] = byte;
        }
        if let Ok(capture) = open(&file) {
            for frame in capture.flatten() {
                let _ = frame.view(true);
            }
        }
    }
}
