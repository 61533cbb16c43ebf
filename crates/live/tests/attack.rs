//! Attacks on connections between two kernels that pass a station: a third party on either side knows addresses and ports,
//! and sends what it likes. `crates/proto/tests/agents/attacks.rs` has the same for all agents in virtual time.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use common::flood::{frame_of, mac};
use common::*;
use lasthop_live::header::VNET;
use lasthop_live::owner;
use lasthop_live::sys::packet_socket::Inbox;
use lasthop_path::Stage;
use lasthop_proto::rng::Stream;
use lasthop_proto::wire::parse::parse;
use lasthop_proto::wire::{Body, Flags, FlowKey, Packet, Segment, Seq, Timestamps};
use lasthop_trace::Nothing;

/// Time to live of forged packets: the hosts send with 64.
const FORGED: u8 = 99;

/// How many packets come from each side, at least.
fn packets() -> u32 {
    std::env::var("ATTACK_PACKETS").ok().and_then(|n| n.parse().ok()).unwrap_or(20_000)
}

/// A segment of `flow` with random numbers.
///
/// No SYN without ACK reaches a connection that is not `open`. In SYN-SENT it is a simultaneous open (RFC 9293, 3.5): the
/// client takes its number for the server's, and the server answers the client's next segment with a valid RST. Nothing
/// protects two hosts without a station from that.
fn forged(chance: &mut Stream, flow: FlowKey, open: bool) -> Packet {
    let flags = match chance.below(12) {
        0 => Flags::RST,
        1 => Flags::RST | Flags::ACK,
        2 if open => Flags::SYN,
        3 => Flags::SYN | Flags::ACK,
        4 => Flags::FIN | Flags::ACK,
        _ => Flags::ACK,
    };
    let len = if chance.below(4) == 0 { chance.below(1000) as usize } else { 0 };
    let mut number = || Seq(chance.next_u64() as u32);
    let mut segment = Segment::new(flow.src_port, flow.dst_port, number(), number(), flags);
    segment.window = chance.below(1 << 16) as u16;
    if chance.below(2) == 0 {
        let [value, echo] = [0, 1].map(|_| chance.next_u64() as u32);
        segment.timestamps = Some(Timestamps { value, echo });
    }
    let mut packet = Packet::tcp(flow.src, flow.dst, segment, Body::copy_of(&vec![9; len]));
    packet.ttl = FORGED;
    packet
}

/// Transfers one after the other while both sides are flooded with segments of their connections.
fn spoofed(by: By, stage: fn() -> Stage) {
    let station = station_by(by, Nothing, move || vec![stage()]);
    let stop = Arc::new(AtomicBool::new(false));
    let ends = [mac("fh", "fl"), mac("mh", "mr")];
    let (left, right) = (socket("fh", "fl"), socket("mh", "mr"));
    let watched = socket("bs", "bl");
    let done = stop.clone();
    let legit = std::thread::spawn(move || {
        // Connections as long as the attack lasts, so that each is attacked in each of its states.
        let mut count = 0;
        while !done.load(Ordering::Relaxed) || count < 3 {
            transfer("fh", "mh", "10.9.0.2", 2_000_000);
            transfer("mh", "fh", "10.9.0.1", 500_000);
            count += 1;
        }
        count
    });
    let (mut inbox, mut chance, mut sent) = (Inbox::new(), Stream::new(3, "spoofed"), 0);
    let mut last: Option<(FlowKey, bool)> = None;
    while sent < packets() && !legit.is_finished() {
        inbox.receive(&watched).unwrap();
        let real = inbox.frames().filter_map(|frame| {
            let seen = parse(&frame.get(VNET + 14..)?.into(), 0, false).ok()?;
            let real = seen.ttl != FORGED && seen.src.ip().to_string() == "10.9.0.1";
            let open = !seen.segment()?.flags.has(Flags::SYN);
            real.then(|| Some((seen.flow()?, open)))?
        });
        last = real.last().or(last);
        let Some((flow, open)) = last else {
            pause(1);
            continue;
        };
        let mut batch = |flow, [dst, src]: [[u8; 6]; 2]| -> Vec<Vec<u8>> {
            (0..20).map(|_| frame_of(&forged(&mut chance, flow, open), dst, src)).collect()
        };
        send_all(&left, &batch(flow, [ends[1], ends[0]]));
        send_all(&right, &batch(flow.reversed(), ends));
        sent += 20;
    }
    stop.store(true, Ordering::Relaxed);
    let transfers = legit.join().unwrap();
    println!("{sent} packets from each side, {transfers} transfers each way");
    station.stop();
}

#[test]
fn spoofed_segments_end_no_connection() {
    alone("spoofed_segments_end_no_connection", || {
        wire(Wires::default());
        for stage in [none as fn() -> Stage, snoop, split] {
            spoofed(By::Sockets, stage);
        }
    });
}

#[test]
fn spoofed_segments_end_no_connection_where_the_kernel_forwards() {
    alone_as_root("spoofed_segments_end_no_connection_where_the_kernel_forwards", || {
        wire(Wires::default());
        for stage in [none as fn() -> Stage, snoop] {
            spoofed(By::Kernel, stage);
        }
    });
}

/// Each network namespace has interfaces of its own, and owners of its own.
#[test]
fn an_interface_has_an_owner_in_its_own_namespace_only() {
    alone("an_interface_has_an_owner_in_its_own_namespace_only", || {
        wire(Wires::default());
        let claims = inside("bs", || [1, 2].map(|n| owner::claim(n).unwrap().expect("it is free")));
        assert_eq!(
            inside("bs", || owner::owner(1).unwrap()).map(|o| o.pid),
            Some(std::process::id() as i32)
        );
        assert_eq!(inside("fh", || owner::owner(1).unwrap()), None);
        drop(claims);
        assert_eq!(inside("bs", || owner::owner(1).unwrap()), None);
    });
}
