//! CPU time of the kernel's TCP: every case is measured and matches its description. Durations are not
//! tested.
#![cfg(target_os = "linux")]

mod support;

use std::net::TcpStream;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use lasthop_live::sys::ethtool::{Offload, offload};
use lasthop_live::testbed::cpu_bench::{FLIGHT, Laboratory, RECEIVER, SENDER};
use lasthop_observe::cpu_time::{Case, Change, Sample, Wire, cases};
use lasthop_proto::wire::parse::{Mode, View, view};
use lasthop_proto::wire::{Damage, Flags, Transport};
use nix::errno::Errno;
use nix::sys::socket::sockopt::RcvBuf;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, setsockopt, socket,
};

fn main() -> ExitCode {
    macro_rules! tests {
        ($($name:ident),* $(,)?) => { support::main(&[$((stringify!($name), $name as fn())),*]) };
    }
    tests![
        every_case_is_measured,
        each_end_is_charged_for_its_own_work,
        handshake_options_match_the_case,
        each_cable_has_the_offloads_of_its_kind,
        a_stop_flag_or_callback_ends_the_benchmark,
    ]
}

fn enter() -> Laboratory {
    Laboratory::enter()
        .expect("a testbed with threads of the kernel; `lasthop doctor` says why not")
}

fn measure(laboratory: &mut Laboratory, case: Case, bytes: u64) -> Sample {
    laboratory.measure(case, bytes, &AtomicBool::new(false)).expect("measured")
}

fn base(wire: Wire) -> Case {
    Case { mss: 1460, wire, change: Change::Base }
}

fn every_case_is_measured() {
    const BYTES: u64 = 300_000;
    let mut laboratory = enter();
    let cases = cases(&[500, 8960]);
    let mut samples = Vec::new();
    let never = AtomicBool::new(false);
    laboratory
        .run(&cases, BYTES, 2, &never, |sample| {
            samples.push(sample);
            true
        })
        .expect("measured");
    // The second round is reversed.
    let there: Vec<(u32, usize)> = (0..cases.len()).map(|place| (0, place)).collect();
    let back = there.iter().rev().map(|(_, place)| (1, *place));
    let order: Vec<_> = there.iter().copied().chain(back).collect();
    let found: Vec<_> = samples.iter().map(|sample| (sample.round, sample.case)).collect();
    assert_eq!(found, order);
    for sample in &samples {
        let case = cases[sample.case];
        let context = format!("{case:?}: {sample:?}");
        assert_eq!(sample.bytes, BYTES, "{context}");
        let options = if case.change == Change::NoTimestamps { 0 } else { 12 };
        assert_eq!(sample.payload, u32::from(case.mss) - options, "{context}");
        assert!(sample.segments >= BYTES.div_ceil(sample.payload.into()), "{context}");
        assert!(sample.sender.caller_ns > 0 && sample.receiver.caller_ns > 0, "{context}");
        for spent in [sample.sender, sample.receiver] {
            assert_eq!(spent.kernel_ns > 0, case.wire.apart(), "{context}");
        }
        assert!(sample.wall_ns > 0 && sample.acks > 0, "{context}");
        if case.change == Change::NoScaling {
            assert!(sample.window <= 65_535, "{context}");
        }
    }
}

fn each_end_is_charged_for_its_own_work() {
    const BYTES: u64 = 4_000_000;
    let mut laboratory = enter();
    let mut softirqs = |wire| {
        let sample = measure(&mut laboratory, base(wire), BYTES);
        (sample.softirqs as f64 / sample.segments as f64, sample)
    };
    // If threads receive packets, interrupts do not, so no other process is charged. Unrelated traffic of
    // this machine may appear now and then.
    for wire in [Wire::Plain, Wire::Offloads] {
        let mut tries = (0..200).map(|_| softirqs(wire));
        let quiet = tries.find(|(rate, _)| *rate < 0.02);
        let (rate, sample) = quiet.unwrap_or_else(|| softirqs(wire));
        assert!(rate < 0.02, "{wire:?}: {sample:?}");
        assert!(sample.receiver.kernel_ns > 0 && sample.sender.kernel_ns > 0);
    }
    let (rate, sample) = softirqs(Wire::PlainTogether);
    assert!(rate > 0.1, "{sample:?}");
    // One ACK per segment, except for segments that arrive while the reader holds the socket: they are
    // merged.
    let quick = Case { change: Change::QuickAcks, ..base(Wire::Plain) };
    let (few, many): (Vec<_>, Vec<_>) = (0..5)
        .map(|_| {
            let few = measure(&mut laboratory, base(Wire::Plain), BYTES);
            (few, measure(&mut laboratory, quick, BYTES))
        })
        .unzip();
    let acks = |samples: &[Sample]| samples.iter().map(|sample| sample.acks).sum::<u64>();
    assert!(acks(&many) > acks(&few), "{} {}", acks(&many), acks(&few));
}

/// Captures at all interfaces of the receiver.
fn tap(laboratory: &Laboratory) -> OwnedFd {
    laboratory
        .net()
        .in_host(RECEIVER, || {
            let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
            let tap = socket(AddressFamily::Packet, SockType::Raw, flags, SockProtocol::EthAll)
                .expect("a packet socket");
            setsockopt(&tap, RcvBuf, &(4 << 20)).expect("a larger buffer");
            tap
        })
        .expect("the host can be entered")
}

/// The packets that arrived since the last call and belong to the newest connection, each with its length. The last ACK
/// of the connection before may arrive late.
fn of_connection(tap: &OwnedFd) -> Vec<(View, usize)> {
    let ports = |packet: &View| match &packet.transport {
        Transport::Tcp(segment) => Some([segment.src_port, segment.dst_port]),
        _ => None,
    };
    let mut packets = new_packets(tap);
    let newest = packets.iter().rev().find_map(|(packet, _)| match &packet.transport {
        Transport::Tcp(segment) if segment.flags.any(Flags::SYN) => ports(packet),
        _ => None,
    });
    let [from, to] = newest.expect("a SYN");
    packets.retain(|(packet, _)| [Some([from, to]), Some([to, from])].contains(&ports(packet)));
    packets
}

/// All TCP packets since the last call, each with its length.
fn new_packets(tap: &OwnedFd) -> Vec<(View, usize)> {
    let mut room = vec![0; 1 << 17];
    let mut packets = Vec::new();
    loop {
        match recv(tap.as_raw_fd(), &mut room, MsgFlags::empty()) {
            Ok(length) => {
                let mode = Mode { verify: true, wire_len: None };
                let Ok(packet) = view(&room[14..length], mode) else { continue };
                if matches!(packet.transport, Transport::Tcp(_)) {
                    packets.push((packet, length - 14));
                }
            }
            Err(Errno::EAGAIN) => return packets,
            Err(error) => panic!("{error}"),
        }
    }
}

fn handshake_options_match_the_case() {
    let mut laboratory = enter();
    let tap = tap(&laboratory);
    for change in Change::ALL {
        new_packets(&tap);
        measure(&mut laboratory, Case { mss: 1000, wire: Wire::Plain, change }, 20_000);
        let packets = of_connection(&tap);
        let mut handshake = packets.iter().filter_map(|(packet, _)| match &packet.transport {
            Transport::Tcp(segment) if segment.flags.any(Flags::SYN) => Some(segment),
            _ => None,
        });
        for segment_name in ["SYN", "SYN ACK"] {
            let segment =
                handshake.next().unwrap_or_else(|| panic!("{change:?}: no {segment_name}"));
            let options = segment.options();
            let found = (
                segment.timestamps.is_some(),
                options.sack_permitted,
                options.window_scale.is_some(),
            );
            let expected = (
                change != Change::NoTimestamps,
                change != Change::NoSack,
                change != Change::NoScaling,
            );
            assert_eq!(found, expected, "{change:?}: {segment_name}");
            if segment_name == "SYN" {
                assert_eq!(options.mss, Some(1000));
            }
        }
        assert!(handshake.next().is_none(), "{change:?}");
        // Timestamps are in every segment or in none.
        let stamped = packets.iter().filter(|(packet, _)| match &packet.transport {
            Transport::Tcp(segment) => segment.timestamps.is_some(),
            _ => false,
        });
        let expected = if change == Change::NoTimestamps { 0 } else { packets.len() };
        assert_eq!(stamped.count(), expected, "{change:?}");
    }
}

fn each_cable_has_the_offloads_of_its_kind() {
    let mut laboratory = enter();
    let on = |wire: Wire| -> Vec<bool> {
        let (sender, receiver) = laboratory.interfaces(wire).expect("a cable");
        let of = |host, interface: &str| {
            let all = || Offload::ALL.map(|one| offload(interface, one).expect("it says"));
            laboratory.net().in_host(host, all).expect("the host can be entered").to_vec()
        };
        let found = of(SENDER, sender);
        assert_eq!(found, of(RECEIVER, receiver), "{wire:?}");
        found
    };
    // Receive checksums, transmit checksums, GSO, TSO, GRO. The first cable has GRO only to enable NAPI.
    assert_eq!(on(Wire::Plain), [false, false, false, false, true]);
    assert_eq!(on(Wire::Offloads), [true, true, true, false, true]);
    assert_eq!(on(Wire::PlainTogether), [false; 5]);
    assert_eq!(on(Wire::Whole), [true, true, true, true, false]);

    let tap = tap(&laboratory);
    for wire in Wire::ALL {
        new_packets(&tap);
        let sample = measure(&mut laboratory, base(wire), 200_000);
        let packets = of_connection(&tap);
        let data: Vec<_> = packets.iter().filter(|(packet, _)| packet.body_len > 0).collect();
        let bytes: u64 = data.iter().map(|(packet, _)| u64::from(packet.body_len)).sum();
        let longest = data.iter().map(|(_, length)| *length).max().unwrap_or(0);
        let complete = packets.iter().all(|(packet, _)| packet.damage == Damage::None);
        match wire {
            // One packet per segment, with a valid checksum.
            Wire::Plain | Wire::PlainTogether => {
                assert_eq!(longest, 1500, "{wire:?}");
                assert!(complete, "{wire:?}");
                if sample.retransmitted == 0 {
                    assert_eq!(bytes, 200_000, "{wire:?}");
                    // Each of four system calls may end with a short segment.
                    let full = 200_000_usize.div_ceil(1448);
                    assert!((full..full + 4).contains(&data.len()), "{wire:?}: {}", data.len());
                }
            }
            // Segments are merged before they reach TCP, and their checksums are not computed.
            Wire::Offloads | Wire::Whole => {
                assert!(longest > 9000, "{wire:?}: {longest}");
                assert!(data.len() < 100, "{wire:?}: {}", data.len());
                assert!(!complete, "{wire:?}");
            }
        }
    }
    // Limit of packets in a veth's queue.
    const { assert!(FLIGHT < 256) }
}

fn a_stop_flag_or_callback_ends_the_benchmark() {
    let mut laboratory = enter();
    let stop = AtomicBool::new(false);
    let mut calls = 0;
    let cases = cases(&[1460]);
    laboratory
        .run(&cases, 20_000, 100, &stop, |_| {
            calls += 1;
            stop.store(calls == 3, Ordering::Relaxed);
            true
        })
        .expect("it ends well");
    assert_eq!(calls, 3);
    stop.store(false, Ordering::Relaxed);
    laboratory.run(&cases, 20_000, 100, &stop, |_| false).expect("the callback stops it");
    // The hosts still exist, and no connection remains.
    let refused = laboratory.net().in_host(SENDER, || TcpStream::connect("10.9.0.2:1"));
    assert!(refused.expect("the host can be entered").is_err());
}
