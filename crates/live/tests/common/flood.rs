//! Packets of attackers: forged connections and garbage.

use lasthop_live::header::VNET;
use lasthop_live::sys::packet_socket::{BATCH, PacketSocket};
use lasthop_proto::rng::Stream;
use lasthop_proto::wire::checksum::checksum;
use lasthop_proto::wire::emit::emit;
use lasthop_proto::wire::{Addr, Body, Flags, Packet, Segment, Seq};

use super::{send_all, sh};

/// Link-layer address of an interface.
pub fn mac(namespace: &str, dev: &str) -> [u8; 6] {
    let text = sh(&format!("ip -n {namespace} -o link show dev {dev}"));
    let mut words = text.split_whitespace().skip_while(|word| *word != "link/ether");
    let word = words.nth(1).unwrap();
    let bytes: Vec<u8> =
        word.split(':').map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();
    bytes.try_into().unwrap()
}

/// A frame with this packet, for a packet socket.
pub fn frame_of(packet: &Packet, dst: [u8; 6], src: [u8; 6]) -> Vec<u8> {
    let mut frame = vec![0; VNET];
    frame.extend([&dst[..], &src, &[8, 0]].concat());
    emit(packet, &mut frame).unwrap();
    frame
}

/// Sends `count` frames in batches; `make` writes each.
pub fn flood(socket: &PacketSocket, count: u32, mut make: impl FnMut(u32, &mut Vec<u8>)) {
    let mut batch: Vec<Vec<u8>> = vec![Vec::new(); BATCH];
    let mut i = 0;
    while i < count {
        for frame in &mut batch {
            make(i, frame);
            i += 1;
        }
        send_all(socket, &batch);
    }
}

fn server() -> Addr {
    Addr::v4(10, 9, 0, 2)
}

/// SYNs to the mobile host from random addresses and ports; `ends` are the link-layer addresses, destination
/// first.
pub fn spoofed_connections(ends: [[u8; 6]; 2], seed: u64) -> impl FnMut(u32, &mut Vec<u8>) {
    let mut rng = Stream::new(seed, "flood");
    let segment = Segment::new(1, 9, Seq(0), Seq(0), Flags::SYN);
    let packet = Packet::tcp(Addr::v4(11, 0, 0, 0), server(), segment, Body::EMPTY);
    let mut syn = frame_of(&packet, ends[0], ends[1]);
    let (addr_at, port_at) = (VNET + 14 + 12, VNET + 14 + 20);
    move |_, frame| {
        // Both checksums are wrong, but the virtio header claims that they are valid.
        syn[0] = 2;
        let x = rng.below(1 << 40).to_be_bytes();
        syn[addr_at + 1..addr_at + 4].copy_from_slice(&x[3..6]);
        syn[port_at..port_at + 2].copy_from_slice(&x[6..8]);
        let ip = VNET + 14;
        syn[ip + 10..ip + 12].fill(0);
        let sum = checksum(&syn[ip..ip + 20]);
        syn[ip + 10..ip + 12].copy_from_slice(&sum.to_be_bytes());
        frame.clone_from(&syn);
    }
}

/// Data segments with `len` bytes of payload, `each` packets per flow, with a trailer of `trailer` bytes.
pub fn spoofed_data(
    ends: [[u8; 6]; 2],
    len: u32,
    each: u32,
    trailer: usize,
) -> impl FnMut(u32, &mut Vec<u8>) {
    let body = Body::copy_of(&vec![7; len as usize]);
    move |i, frame| {
        let [_, b, c, d] = (i / each).to_be_bytes();
        let segment = Segment::new(2, 9, Seq(i.wrapping_mul(len)), Seq(1), Flags::ACK);
        let from = Addr::v4(12 + (trailer > 0) as u8, b, c, d);
        *frame = frame_of(&Packet::tcp(from, server(), segment, body.clone()), ends[0], ends[1]);
        frame.resize(frame.len() + trailer, 0);
    }
}

/// Truncated packets with a few random changes in headers, lengths, options and tags.
pub fn garbage(ends: [[u8; 6]; 2]) -> impl FnMut(u32, &mut Vec<u8>) {
    let mut rng = Stream::new(7, "garbage");
    let mut segment = Segment::new(1, 9, Seq(5), Seq(6), Flags::ACK);
    segment.options_mut().unknown = [253u8, 2].repeat(20);
    let packet = Packet::tcp(Addr::v4(10, 9, 0, 7), server(), segment, Body::copy_of(&[1; 100]));
    let bomb = frame_of(&packet, ends[0], ends[1]);
    move |i, frame| {
        frame.clone_from(&bomb);
        frame.truncate(VNET + 14 + i as usize % (bomb.len() - VNET - 13));
        for _ in 0..i % 4 {
            let at = VNET + 12 + rng.below((frame.len() - VNET - 12) as u64) as usize;
            frame[at] = rng.below(256) as u8;
        }
    }
}
