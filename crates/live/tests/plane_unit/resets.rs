//! Resets by the kernel's programs for segments of split connections without a station. The kernel runs a program on a
//! frame without sending it (BPF_PROG_TEST_RUN).

use core::net::{IpAddr, Ipv6Addr};

use lasthop_proto::units::Time;
use lasthop_proto::wire::emit::{emit, emit_partial};
use lasthop_proto::wire::parse::{Mode, view};
use lasthop_proto::wire::{
    Addr, Body, Damage, Flags, FlowKey, Packet, Segment, Seq, Timestamps, Transport,
};

use super::ending::{Entry, VALUE, key};
use super::*;
use crate::can_run::can_run;
use crate::clock::Clock;
use crate::sys::bpf::tests::test_run_into;

/// TC_ACT_SHOT, TC_ACT_REDIRECT.
const DROPPED: u32 = 2;
const REDIRECTED: u32 = 7;

const MACS: [[u8; 6]; 2] = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]];

fn programs() -> Option<Programs> {
    let programs = Programs::load();
    can_run(programs.is_ok(), "CAP_BPF").then(|| programs.unwrap())
}

fn flows() -> [FlowKey; 2] {
    let v6 = |n: u16| Addr::from(IpAddr::V6(Ipv6Addr::new(0xfd00, 7, 0, 0, 0, 0, 0, n)));
    let hosts = [[Addr::v4(10, 0, 0, 1), Addr::v4(10, 0, 0, 2)], [v6(1), v6(2)]];
    hosts.map(|[src, dst]| FlowKey { src, dst, src_port: 4321, dst_port: 80 })
}

/// A segment with timestamps of the end at `from`.
fn segment(flow: FlowKey, from: Side, flags: Flags, len: usize) -> Packet {
    let flow = if from == Side::Left { flow } else { flow.reversed() };
    let mut segment = Segment::new(flow.src_port, flow.dst_port, Seq(5000), Seq(777_000), flags);
    segment.timestamps = Some(Timestamps { value: 9, echo: 8 });
    let mut packet = Packet::tcp(flow.src, flow.dst, segment, Body::copy_of(&vec![7; len]));
    packet.tos = 3;
    packet
}

/// The frame of a packet from `from`, with a VLAN tag if there is one.
fn frame(packet: &Packet, from: Side, tag: &[u8], partial: bool) -> Vec<u8> {
    let kind: &[u8] = if packet.src.is_v4() { &[8, 0] } else { &[0x86, 0xdd] };
    let macs = [MACS[from.other().index()], MACS[from.index()]].concat();
    let mut frame = [&macs, tag, kind].concat();
    match partial {
        true => drop(emit_partial(packet, &mut frame).unwrap()),
        false => drop(emit(packet, &mut frame).unwrap()),
    }
    frame
}

/// An entry of a lost connection with two known ends.
fn lost() -> [u8; VALUE] {
    let mut value = Entry { is_lost: true, ..Entry::default() }.write();
    value[ASKER] = 3;
    value
}

/// Offset of `asker` in `struct ending`.
const ASKER: usize = 64;

/// The base filter answers each segment with an ACK by a reset with the number that its sender expects.
#[test]
fn the_sender_gets_a_reset_from_the_peers_address() {
    let Some(programs) = programs() else { return };
    for flow in flows() {
        programs.endings.insert(&key(flow), &lost()).unwrap();
        for (from, program) in [(Side::Left, 2), (Side::Right, 3)] {
            for (flags, len) in [
                (Flags::ACK, 0),
                (Flags::ACK, 1),
                (Flags::ACK | Flags::PSH, 1399),
                (Flags::ACK | Flags::FIN, 10),
                (Flags::ACK | Flags::SYN, 0),
            ] {
                let packet = segment(flow, from, flags, len);
                for (tag, partial) in [(&[][..], false), (&[], true), (&[0x81, 0, 0, 5], false)] {
                    let came = frame(&packet, from, tag, partial);
                    let (verdict, made) = test_run_into(&programs.code[program], &came).unwrap();
                    let case = format!("{flow:?} {from:?} {flags:?} {len} {tag:?} {partial}");
                    assert_eq!(verdict, REDIRECTED, "{case}");
                    let at = 14 + tag.len();
                    assert_eq!(made[..12], [&came[6..12], &came[..6]].concat(), "{case}");
                    assert_eq!(made[12..at], came[12..at], "{case}");
                    let ip = &made[at..];
                    assert_eq!(ip.len(), if flow.src.is_v4() { 40 } else { 60 }, "{case}");
                    let seen = view(ip, Mode { verify: !partial, wire_len: None }).unwrap();
                    assert_eq!((seen.src, seen.dst), (packet.dst, packet.src), "{case}");
                    assert_eq!((seen.damage, seen.ttl, seen.tos), (Damage::None, 64, 0), "{case}");
                    let Transport::Tcp(reset) = seen.transport else { panic!("{case}") };
                    let request = packet.segment().unwrap();
                    let expected = Segment::new(
                        request.dst_port,
                        request.src_port,
                        request.ack,
                        Seq(0),
                        Flags::RST,
                    );
                    assert_eq!(reset, expected, "{case}");
                    if partial {
                        // The checksum is that of the pseudo-header; the network card completes it.
                        let own = Packet::tcp(seen.src, seen.dst, reset, Body::EMPTY);
                        let mut all = Vec::new();
                        emit_partial(&own, &mut all).unwrap();
                        let at = ip.len() - 4;
                        assert_eq!(ip[at..at + 2], all[at..at + 2], "{case}");
                    }
                }
            }
        }
        let entry = Entry::read(&programs.endings.get(&key(flow)).unwrap());
        assert_eq!(entry.next, [Some(Seq(777_000)); 2], "{flow:?}: both ends have acknowledged");
    }
}

/// An end that waits for data sends no segments, so it must be reset first. A sending end is reset only after the other
/// end was reached, or has not answered for some time.
#[test]
fn senders_are_reset_after_their_peer_or_a_timeout() {
    let Some(programs) = programs() else { return };
    let [flow, _] = flows();
    let fresh = Entry { next: [Some(Seq(5)); 2], ..Entry::default() };
    let answer = |from: Side, flags, len| {
        let came = frame(&segment(flow, from, flags, len), from, &[], false);
        test_run_into(&programs.code[2 + from.index()], &came).unwrap().0
    };
    let run = |from| answer(from, Flags::ACK, 10);
    for (side, other) in [(Side::Left, Side::Right), (Side::Right, Side::Left)] {
        programs.endings.insert(&key(flow), &fresh.write()).unwrap();
        assert_eq!(answer(side, Flags::ACK, 0), REDIRECTED, "a pure ACK is not repeated");
        assert_eq!(answer(side, Flags::ACK | Flags::FIN, 0), DROPPED, "a FIN is");
        programs.endings.insert(&key(flow), &fresh.write()).unwrap();
        assert_eq!(run(side), DROPPED, "the other end is probed first");
        assert_eq!(answer(side, Flags::ACK, 0), DROPPED, "data of this end will be repeated");
        assert_eq!(run(other), REDIRECTED, "it answers, and is reset");
        assert_eq!(run(side), REDIRECTED);
        // The other end does not answer. The entry is changed to the state one second later.
        programs.endings.insert(&key(flow), &fresh.write()).unwrap();
        assert_eq!(run(side), DROPPED);
        let mut value = programs.endings.get(&key(flow)).unwrap();
        let request_time = u64::from_ne_bytes(value[72..80].try_into().unwrap());
        value[72..80].copy_from_slice(&(request_time - 1_000_000_000).to_ne_bytes());
        programs.endings.insert(&key(flow), &value).unwrap();
        assert_eq!(run(side), REDIRECTED);
        // The numbers of a host without a segment are unknown.
        programs.endings.insert(&key(flow), &Entry::default().write()).unwrap();
        assert_eq!(run(side), REDIRECTED);
    }
}

/// Resets and segments without an ACK get no answer; other flows pass.
#[test]
fn segments_that_get_no_reset_pass_unchanged() {
    let Some(programs) = programs() else { return };
    let [flow, v6] = flows();
    programs.endings.insert(&key(flow), &lost()).unwrap();
    let resumes = FlowKey { src_port: 1, ..flow };
    let entry = Entry { resumes: true, ..Entry::default() };
    programs.endings.insert(&key(resumes), &entry.write()).unwrap();
    let another = FlowKey { src_port: 2, ..flow };
    for (from, program) in [(Side::Left, 2), (Side::Right, 3)] {
        for (flow, flags) in [
            (flow, Flags::RST),
            (flow, Flags::RST | Flags::ACK),
            (flow, Flags::SYN),
            (flow, Flags::FIN),
            (flow, Flags::PSH),
            (resumes, Flags::ACK),
            (another, Flags::ACK),
            (flow.reversed(), Flags::ACK),
            (v6, Flags::ACK),
        ] {
            let packet = segment(flow, from, flags, 100);
            let came = frame(&packet, from, &[], false);
            let (verdict, made) = test_run_into(&programs.code[program], &came).unwrap();
            assert_eq!((verdict, made), (REDIRECTED, came), "{flow:?} {from:?} {flags:?}");
        }
    }
}

/// Only the answer to a SYN shows that another connection between the same ports was opened.
#[test]
fn a_new_connection_between_the_same_ports_passes() {
    let Some(programs) = programs() else { return };
    let [flow, _] = flows();
    let run = |from: Side, flags, seq, ack| {
        let packet = segment(flow, from, flags, 0).with(|packet| {
            if let Transport::Tcp(segment) = &mut packet.transport {
                (segment.seq, segment.ack) = (Seq(seq), Seq(ack));
            }
        });
        let came = frame(&packet, from, &[], false);
        let program = &programs.code[2 + from.index()];
        let (verdict, made) = test_run_into(program, &came).unwrap();
        assert_eq!(verdict, REDIRECTED);
        made == came
    };
    for opener in [Side::Left, Side::Right] {
        let (there, answer) = (opener.other(), Flags::SYN | Flags::ACK);
        programs.endings.insert(&key(flow), &lost()).unwrap();
        assert!(!run(there, answer, 9, 101), "no SYN came");
        assert!(run(opener, Flags::SYN, 100, 0), "a SYN passes");
        assert!(!run(there, answer, 9, 100), "another number");
        assert!(!run(opener, answer, 9, 101), "by the opener itself");
        assert!(!run(there, Flags::ACK, 9, 101), "a challenge ACK of the old one");
        assert!(programs.endings.get(&key(flow)).is_some());
        assert!(run(there, answer, 9, 101), "the answer passes");
        assert!(programs.endings.get(&key(flow)).is_none(), "the old one is removed");
        assert!(run(opener, Flags::ACK, 101, 10));
    }
}

/// A reset would not have the IP options of the segment that it answers.
#[test]
fn a_segment_with_ip_options_is_dropped() {
    let Some(programs) = programs() else { return };
    let [flow, _] = flows();
    programs.endings.insert(&key(flow), &lost()).unwrap();
    let mut came = frame(&segment(flow, Side::Left, Flags::ACK, 4), Side::Left, &[], false);
    came[14] = 0x46;
    let len = u16::from_be_bytes([came[16], came[17]]) + 4;
    came[16..18].copy_from_slice(&len.to_be_bytes());
    came.splice(34..34, [1; 4]);
    let (verdict, _) = test_run_into(&programs.code[2], &came).unwrap();
    assert_eq!(verdict, DROPPED);
}

/// If the station is silent, the program forwards other connections after a short time. Later it resets the
/// connections that end here.
#[test]
fn split_connections_wait_longer_for_a_silent_station() {
    let Some(programs) = programs() else { return };
    let control = SharedControl::new(programs.map("control")).unwrap();
    control.mode.store(END, Relaxed);
    let [flow, _] = flows();
    let other = FlowKey { src_port: 1, ..flow };
    let now = Clock::start();
    let run = |flow, silent: Span, patience: [Span; 2]| {
        control.alive.store(now.monotonic(Time::ZERO).saturating_sub(silent.0), SeqCst);
        for (to, span) in control.patience.iter().zip(patience) {
            to.store(span.0, SeqCst);
        }
        let packet = segment(flow, Side::Left, Flags::ACK, 10);
        let came = frame(&packet, Side::Left, &[], false);
        let (verdict, made) = test_run_into(&programs.code[0], &came).unwrap();
        (verdict, made != came)
    };
    let state = || {
        let load = |word: &std::sync::atomic::AtomicU64| word.load(SeqCst);
        [load(&control.held[0]), load(&control.passed[0]), load(&control.lost)]
    };
    let (hour, second) = (Span::secs(3600), Span::secs(1));
    programs.endings.insert(&key(flow), &Entry::default().write()).unwrap();
    assert_eq!(run(flow, second, [hour; 2]), (DROPPED, false), "left to the station");
    assert_eq!(run(other, second, [hour; 2]), (DROPPED, false), "left to the station");
    assert_eq!((state(), control.stale.load(SeqCst)), ([2, 0, 0], 0));
    assert_eq!(run(flow, second, [second, hour]), (DROPPED, false), "still left to it");
    assert_eq!((state(), control.stale.load(SeqCst)), ([3, 0, 0], 0));
    assert_eq!(run(other, second, [second, hour]), (REDIRECTED, false), "forwarded");
    assert_eq!((state(), control.stale.load(SeqCst)), ([3, 1, 0], 1));
    assert_eq!(control.mark[0].load(SeqCst), 3);
    // Until the station has processed this.
    assert_eq!(run(other, second, [hour; 2]), (REDIRECTED, false));
    assert_eq!(run(flow, second, [hour; 2]), (DROPPED, false));
    assert_eq!((state(), control.mark[0].load(SeqCst)), ([4, 2, 0], 3));
    assert_eq!(run(flow, second, [second; 2]), (REDIRECTED, true), "its sender is reset");
    assert_eq!(state(), [4, 2, 1]);
    control.stale.store(0, SeqCst);
    assert_eq!(run(flow, second, [hour; 2]), (REDIRECTED, true), "and stays so");
    assert_eq!(run(other, second, [hour; 2]), (DROPPED, false));
    assert_eq!(state(), [5, 2, 1]);
}
