//! Connections as lists of packets, which tests copy, delay and leave out before they are written.

#![allow(dead_code, reason = "each test file uses its part")]

use lasthop_analyze::{Analysis, Connection};
use lasthop_proto::wire::Flags;
use proptest::prelude::*;

use super::common::Script;

pub fn one(analysis: &Analysis) -> &Connection {
    let [connection] = &analysis.connections[..] else { panic!("one connection: {analysis:#?}") };
    connection
}

/// Retransmissions, reordered packets and losses of both directions.
pub fn faults(connection: &Connection) -> [u64; 3] {
    let both = [&connection.to_server, &connection.to_client];
    [
        both.iter().map(|d| d.retransmissions.total()).sum(),
        both.iter().map(|d| d.out_of_order).sum(),
        both.iter().map(|d| d.losses.len() as u64 + d.losses_omitted).sum(),
    ]
}

/// Initial sequence numbers.
pub fn any_numbers() -> impl Strategy<Value = [u32; 2]> {
    // High halves and wraps are as frequent as others.
    let number = prop_oneof![any::<u32>(), (u32::MAX - 40_000)..=u32::MAX, (1u32 << 31)..=u32::MAX];
    [number.clone(), number]
}

/// A packet of a capture that is put into order before it is written.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    pub at: f64,
    pub from: usize,
    pub flags: Flags,
    pub seq: u32,
    pub len: u32,
    pub ack: u32,
    pub ids: Option<[u16; 2]>,
    pub ttl: u8,
}

/// A connection with its handshake, `rtt` milliseconds away, of segments that leave in bursts of four; segment `lost` is
/// lost behind the point of capture and repaired upon duplicate ACKs.
pub fn connection(
    rtt: f64,
    segments: u32,
    lost: Option<u32>,
    ids: Option<[u16; 2]>,
) -> Vec<Packet> {
    let mut all = Vec::new();
    let mut ids = ids;
    let mut send = |at: f64, from: usize, flags, seq, len, ack| {
        all.push(Packet { at, from, flags, seq, len, ack, ids, ttl: 64 });
        if let Some(ids) = &mut ids {
            ids[from] = ids[from].wrapping_add(1);
        }
    };
    send(0.0, 1, Flags::SYN, 0, 0, 0);
    send(rtt, 0, Flags::SYN | Flags::ACK, 0, 0, 1);
    send(rtt + 0.01, 1, Flags::ACK, 1, 0, 1);
    let mut at = rtt + 1.0;
    for first in (0..segments).step_by(4) {
        let mut acked = first;
        for i in first..first + 4 {
            send(at + f64::from(i - first) * 0.012, 1, Flags::ACK, 1 + 1000 * i, 1000, 1);
        }
        for i in first..first + 4 {
            acked += u32::from(lost.is_none_or(|lost| !(first..=i).contains(&lost)));
            let ack = 1 + 1000 * acked;
            send(at + rtt + f64::from(i - first) * 0.012, 0, Flags::ACK, 1, 0, ack);
        }
        at += rtt + 0.06;
        if let Some(lost) = lost.filter(|lost| (first..first + 4).contains(lost)) {
            send(at, 1, Flags::ACK, 1 + 1000 * lost, 1000, 1);
            send(at + rtt, 0, Flags::ACK, 1, 0, 1 + 1000 * (first + 4));
            at += rtt + 0.1;
        }
    }
    all
}

pub fn write_sorted(s: &mut Script, mut packets: Vec<Packet>) {
    packets.sort_by(|a, b| a.at.total_cmp(&b.at));
    for Packet { at, from, flags, seq, len, ack, ids, ttl } in packets {
        (s.ids, s.ttl) = (ids, ttl);
        s.send(at, from, flags, seq, len, ack);
    }
}
