//! The station's part of the data plane, with a ring and a control page in the test's memory instead of the kernel's.

use std::fs::File;

use lasthop_proto::wire::emit::emit;
use lasthop_proto::wire::parse::{Mode, view};
use lasthop_proto::wire::{Addr, Body, Flags, Packet, Segment, Seq, Transport};

use super::shared::{DIVERTED, PASSED, RECORD};
use super::*;
use crate::frame::Outgoing;
use crate::header::VNET;
use crate::sys::bpf::tests::{Writer, memory};

/// Length of a link header: addresses and type.
const LINK: usize = 14;
/// Length of the headers of IP and TCP without options.
const HEADERS: usize = 40;

fn plane() -> (Plane, Writer) {
    let writer = Writer::new(c"plane", RING);
    let null = || OwnedFd::from(File::open("/dev/null").unwrap());
    let plane = Plane {
        control: SharedControl::new(&memory(c"control", 4096)).unwrap(),
        ring: writer.reader(),
        ring_fd: null(),
        counts: null(),
        code: [null(), null(), null(), null()],
        links: Vec::new(),
        attempt: Attempt(None),
        indices: [0; 2],
        processors: 1,
        done: 0,
        beat: 0,
        marks: VecDeque::new(),
        order: order::Order::new(),
        own: PlaneCounts::default(),
        active: false,
        more: false,
        outdated: false,
        resent: RefCell::default(),
        needs: Needs::Nothing,
        endings: Endings::new(ending::Map::from(null())),
        ends: false,
        lost: 0,
    };
    (plane, writer)
}

/// A packet of the flow with `len` bytes from sequence number `seq`.
fn packet(seq: u32, len: u32) -> Packet {
    let segment = Segment::new(1000, 80, Seq(seq), Seq(7), Flags::ACK);
    let body: Vec<u8> = (seq..seq + len).map(|i| (i % 251) as u8).collect();
    Packet::tcp(Addr::v4(10, 0, 0, 1), Addr::v4(10, 0, 0, 2), segment, Body::copy_of(&body))
}

fn frame(packet: &Packet) -> Vec<u8> {
    let mut frame = [[1; 12].as_slice(), &[8, 0]].concat();
    emit(packet, &mut frame).unwrap();
    frame
}

/// The record of a frame that arrived at `at` from the side with this index.
fn record(frame: &[u8], at: u64, side: u8, act: u8, gso_size: u16) -> Vec<u8> {
    let mut bytes = vec![0; RECORD];
    bytes[..8].copy_from_slice(&at.to_ne_bytes());
    bytes[8..12].copy_from_slice(&(frame.len() as u32).to_ne_bytes());
    bytes[12..16].copy_from_slice(&(frame.len() as u32).to_ne_bytes());
    bytes[16..18].copy_from_slice(&gso_size.to_ne_bytes());
    (bytes[22], bytes[23]) = (side, act);
    bytes.extend_from_slice(frame);
    bytes
}

fn put(writer: &mut Writer, bytes: &[u8]) -> u64 {
    writer.put(bytes, bytes.len() as u32, 0)
}

/// The frame without the space for a virtio header.
fn sent(frame: Option<Outgoing>) -> Option<Vec<u8>> {
    frame.map(|frame| frame.bytes()[VNET..].to_vec())
}

#[test]
fn a_taken_packet_has_its_position_time_and_side() {
    let (mut plane, mut writer) = plane();
    let one = frame(&packet(100, 50));
    let places = [(11, 0, 0), (12, 1, 0), (13, 1, DIVERTED)]
        .map(|(at, side, act)| (put(&mut writer, &record(&one, at, side, act, 0)), at, side, act));
    for (place, at, side, act) in places {
        let taken = plane.take(20).unwrap();
        let side = if side == 0 { Side::Left } else { Side::Right };
        assert_eq!((taken.place, taken.at, taken.side), (place, at, side));
        assert_eq!(taken.forwarded, act != DIVERTED, "{act}");
        let seen = taken.packet.unwrap();
        assert_eq!(seen.transport, packet(100, 50).transport);
        assert_eq!(sent(plane.frame(place)), Some(one.clone()));
        assert_eq!(plane.link_header(place), Some(one[..LINK].to_vec()));
    }
    assert!(plane.take(20).is_none() && plane.active);
    assert!(plane.frame(8).is_none(), "no record begins there");
    assert_eq!(plane.done, 0, "no decision yet");
}

/// A packet for the station's decision that is read late is not forwarded. The agent still processes it, and so it does with a
/// packet that the kernel has forwarded in the meantime.
#[test]
fn a_late_packet_is_processed_and_not_forwarded() {
    let one = frame(&packet(100, 50));
    let (mut plane, mut writer) = plane();
    for (act, age, forwarded) in [
        (DIVERTED, LATE.0, false),
        (DIVERTED, LATE.0 + 1, true),
        (DIVERTED, STALE.0, true),
        (PASSED, 1, true),
        (PASSED, STALE.0, true),
    ] {
        put(&mut writer, &record(&one, 1000, 1, act, 0));
        let taken = plane.take(1000 + age).unwrap();
        assert_eq!((taken.forwarded, taken.last), (forwarded, true), "{act} {age}");
        assert_eq!(taken.diverted, act == DIVERTED, "{act} {age}");
        assert_eq!(plane.done, 0, "the program waits until it is handled");
    }
    assert_eq!((plane.counts().late, plane.counts().stale), (2, 0));
    put(&mut writer, &record(&one, 1000, 1, 2, 0));
    let seen = plane.take(1000).unwrap();
    assert!(seen.forwarded && !seen.last && !seen.diverted, "an ACK with news");
}

/// A record that is read too late is dropped and counted.
#[test]
fn a_stale_record_is_dropped_and_counted_by_kind() {
    let one = frame(&packet(100, 50));
    for act in [0, DIVERTED] {
        let limit = STALE.0;
        let (mut plane, mut writer) = plane();
        put(&mut writer, &record(&one, 1000, 0, act, 0));
        assert!(plane.take(1000 + limit).is_some(), "just in time: {act}");
        assert_eq!(plane.outdated(), None, "{act}");
        put(&mut writer, &record(&one, 1000, 0, act, 0));
        assert!(plane.take(1001 + limit).is_none(), "too late: {act}");
        let forwarded = act != DIVERTED;
        let counts = plane.counts();
        let late = if forwarded { 0 } else { 2 };
        assert_eq!((counts.stale, counts.late), (forwarded.into(), late), "{act}");
        assert_eq!(plane.done, u64::from(!forwarded), "a dropped packet is decided: {act}");
        assert_eq!(plane.control.done.load(SeqCst), plane.done, "{act}");
        let expected = forwarded.then(|| plane.ring.position());
        assert_eq!(plane.outdated(), expected, "{act}");
        assert_eq!(plane.outdated(), None, "reported once: {act}");
    }
}

/// A cached packet is found by the position of its bytes in the ring, also if it is a piece of a super-packet.
#[test]
fn a_cached_packet_is_found_by_its_ring_position() {
    let (mut plane, mut writer) = plane();
    let mut stored = Vec::new();
    // Packets of several lengths, and super-packets, with several marks between them.
    for i in 0..300 {
        let len = 900 + i % 7 * 100;
        let whole = frame(&packet(i * 2000, len));
        let gso_size = if i % 3 == 0 { 400 } else { 0 };
        put(&mut writer, &record(&whole, 1, 0, 0, gso_size));
        let packet = plane.take(1).unwrap().packet.unwrap();
        stored.push((packet, whole));
    }
    assert!(plane.marks.len() > 3, "{:?}", plane.marks);
    for (i, (packet, whole)) in stored.iter().enumerate() {
        assert_eq!(sent(plane.cached(packet)).as_ref(), Some(whole), "packet {i}");
        for piece in packet.cut().filter(|_| packet.pieces() > 1) {
            let Transport::Tcp(segment) = &piece.transport else { panic!("{piece:?}") };
            let from = (segment.seq - Seq(i as u32 * 2000)) as usize;
            let bytes = sent(plane.cached(&piece)).unwrap();
            let body = &whole[LINK + HEADERS + from..][..piece.body.len() as usize];
            assert_eq!(&bytes[LINK + HEADERS..], body, "packet {i} from {from}");
            assert_eq!(bytes[..LINK], whole[..LINK]);
            let seen = view(&bytes[LINK..], Mode { verify: true, wire_len: None }).unwrap();
            assert_eq!(seen.transport, piece.transport, "packet {i} from {from}");
            assert_eq!(seen.damage, lasthop_proto::wire::Damage::None);
        }
    }
    // A packet that is longer than its frame, and one whose bytes are not in the ring.
    let (packet, whole) = &stored[299];
    let long = packet.clone().with(|p| p.body = Body::held(p.body.held_at().unwrap(), 2000));
    assert_eq!(sent(plane.cached(&long)), None, "beyond the frame of {} bytes", whole.len());
    let own = packet.clone().with(|p| p.body = Body::copy_of(b"here"));
    assert_eq!(sent(plane.cached(&own)), None, "its bytes lie elsewhere");
    // Released records are gone, later ones remain.
    let mark = plane.marks[2];
    plane.expire(mark, 7);
    assert_eq!(plane.marks[0], mark);
    assert_eq!((plane.counts().expired_bytes, writer.given_back()), (7, mark));
    for (i, (packet, whole)) in stored.iter().enumerate() {
        let there = packet.body.held_at().unwrap() > mark;
        assert_eq!(sent(plane.cached(packet)), there.then(|| whole.clone()), "packet {i}");
    }
    plane.expire(mark, 5);
    assert_eq!(plane.counts().expired_bytes, 12);
}

#[test]
fn only_a_changed_ack_without_data_is_rewritten() {
    let (mut plane, mut writer) = plane();
    let ack = packet(100, 0);
    for (sent_before, data) in [(&ack, false), (&packet(100, 60), true)] {
        let came = frame(sent_before);
        let place = put(&mut writer, &record(&came, 1, 1, DIVERTED, 0));
        let seen = plane.take(1).unwrap().packet.unwrap();
        assert_eq!(sent(plane.judged(place, &seen)), Some(came.clone()), "data: {data}");
        let changed = seen.clone().with(|packet| {
            if let Transport::Tcp(segment) = &mut packet.transport {
                segment.ack = Seq(99);
            }
        });
        let expected = if data { came } else { frame(&changed) };
        assert_eq!(sent(plane.judged(place, &changed)), Some(expected), "data: {data}");
    }
}

/// The ring is released in steps, up to the start of a record, and the configured number of bytes remains.
#[test]
fn old_records_are_released_in_steps_beyond_the_limit() {
    let (mut plane, mut writer) = plane();
    let nothing = record(&[0; 60], 1, 0, 0, 0);
    let len = 60_000;
    let (mut places, mut given): (Vec<u64>, _) = (Vec::new(), 0);
    for _ in 0..900 {
        let place = writer.put(&nothing, len, 0);
        assert_eq!(plane.take(1).map(|taken| taken.place), Some(place));
        // A mark at each record that begins at least this far after the last mark.
        if places.last().is_none_or(|last| place - last >= MARK) {
            places.push(place);
        }
        let keep = plane.ring.position().saturating_sub(RETAINED);
        let expected = (keep >= plane.ring.released() + STEP)
            .then(|| places.iter().copied().rfind(|mark| *mark <= keep).unwrap());
        assert_eq!(plane.expires(), expected, "at {place}");
        if let Some(before) = expected {
            plane.expire(before, 0);
            assert_eq!(writer.given_back(), before);
            given += 1;
        }
        let mark = places.last().copied();
        assert_eq!(plane.marks.back().copied(), mark);
    }
    assert!(given > 20, "{given} times");
    assert!(plane.marks.len() as u64 <= (RETAINED + 2 * STEP) / MARK, "{}", plane.marks.len());
}

#[test]
fn the_plane_writes_its_needs_to_the_control_page() {
    let (mut plane, _writer) = plane();
    plane.control.held[0].store(40, SeqCst);
    plane.control.held[1].store(2, SeqCst);
    plane.done = 5;
    let cases = [
        (Needs::Nothing, FORWARD, 0, 5),
        (Needs::Heads, JUDGE, 1, 5),
        (Needs::Duplicates, JUDGE, 0, 5),
        (Needs::Everything, HOLD, 0, 42),
    ];
    for (needs, mode, heads, done) in cases {
        plane.control.stale.store(1, SeqCst);
        assert!(plane.is_stale(), "{needs:?}");
        let beat = plane.control.beat.load(SeqCst);
        plane.set_needs(needs);
        let control = &plane.control;
        let modes = (control.mode.load(SeqCst), control.heads.load(SeqCst));
        assert_eq!(modes, (mode, heads), "{needs:?}");
        assert_eq!(control.done.load(SeqCst), done, "{needs:?}");
        assert!(control.beat.load(SeqCst) > beat, "it gets on: {needs:?}");
        assert!(!plane.is_stale(), "{needs:?}");
        assert_eq!(plane.needs(), needs);
    }
    assert_eq!(plane.held_mark(), 42);
    assert_eq!([Side::Left, Side::Right].map(|side| plane.held_from(side)), [40, 2]);
    plane.caught_up(30);
    assert_eq!(plane.control.done.load(SeqCst), 30);
    plane.control.stale.store(1, SeqCst);
    plane.resume();
    assert_eq!((plane.control.done.load(SeqCst), plane.is_stale()), (42, false));
    plane.handled();
    assert_eq!(plane.control.done.load(SeqCst), 6, "one more is decided");
    plane.set_limit(Span(77));
    assert_eq!(plane.control.limit.load(SeqCst), 77);
    let beat = plane.control.beat.load(SeqCst);
    plane.report_alive(9);
    assert_eq!(plane.control.beat.load(SeqCst), beat + 1);
    plane.missed(3, 4);
    let counts = plane.counts();
    assert_eq!((counts.late, counts.stale), (3, 4));
    plane.control.seen_at.store(1000, SeqCst);
    assert_eq!([900, 1000, 1007].map(|now| plane.away(now)), [0, 0, 7].map(Span));
}

/// The station sleeps only if nothing waits for it, and polls the ring at short intervals while data flows.
#[test]
fn the_station_sleeps_only_without_pending_work() {
    let long = EpollTimeout::from(50_u16);
    let glance = EpollTimeout::from(GLANCE_MS);
    let sleeping = |plane: &Plane| plane.control.sleeping.load(SeqCst);
    for needs in [Needs::Nothing, Needs::Everything] {
        let (mut plane, _writer) = plane();
        plane.set_needs(needs);
        plane.more = true;
        assert_eq!(plane.doze(long), long, "the packet sockets are waited for: {needs:?}");
    }
    let (mut plane, mut writer) = plane();
    plane.set_needs(Needs::Heads);
    assert_eq!((plane.doze(long), sleeping(&plane)), (long, WAKE_ANY), "nothing is there");
    plane.awake();
    assert_eq!(sleeping(&plane), AWAKE);
    plane.has_more();
    assert_eq!(plane.doze(long), EpollTimeout::ZERO, "more was left in the ring");
    assert_eq!(plane.doze(long), long, "and then no more");

    let one = frame(&packet(100, 50));
    put(&mut writer, &record(&one, 1, 0, 0, 0));
    assert_eq!((plane.doze(long), sleeping(&plane)), (EpollTimeout::ZERO, AWAKE), "unread");
    plane.take(1).unwrap();
    put(&mut writer, &record(&one, 1, 0, 0, 0));
    assert_eq!((plane.doze(long), sleeping(&plane)), (glance, WAKE_URGENT), "data flows");
    plane.take(1).unwrap();
    let short = EpollTimeout::from(1_u16);
    assert_eq!(plane.doze(short), short, "it is to wake sooner than for a glance");

    for (announced, revoked, done, sleeps) in
        [(3, 0, 3, true), (3, 0, 2, false), (5, 2, 3, true), (5, 1, 3, false)]
    {
        plane.control.announced.store(announced, SeqCst);
        plane.control.revoked.store(revoked, SeqCst);
        plane.done = done;
        let expected = if sleeps { long } else { EpollTimeout::ZERO };
        assert_eq!(plane.doze(long), expected, "{announced} less {revoked}, {done} of them done");
    }
}

#[test]
fn a_successful_attempt_removes_no_filter() {
    let (mut plane, _writer) = plane();
    plane.attempt.0 = Some([1, 2]);
    plane.stays();
    assert_eq!(plane.attempt.0, None);
}
