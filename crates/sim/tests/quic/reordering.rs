//! Reordered and unsolicited packets between two hosts without a path.

use std::collections::BTreeMap;

use crate::common::lossy;
use lasthop_path::End;
use lasthop_proto::event::{Event, EventKind, Interest, TcpKind};
use lasthop_proto::machine::{Machine, Out, Side};
use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::{Body, Packet, Transport};
use lasthop_sim::quic::QuicHost;

/// Two hosts, 10 ms apart.
struct Net {
    hosts: [QuicHost; 2],
    /// Packets in flight, by time and order of arrival.
    air: BTreeMap<(Time, u64), (usize, Packet)>,
    sent: u64,
    now: Time,
    events: Vec<Event>,
}

impl Net {
    fn new(bytes: &str) -> Net {
        let scenario = lossy(0.0, "", &format!("bytes = \"{bytes}\""));
        let hosts = [0, 1].map(|i| QuicHost::new(&scenario, i, 1));
        Net { hosts, air: BTreeMap::new(), sent: 0, now: Time::ZERO, events: Vec::new() }
    }

    /// Collects the output of host `i`; `late` is the extra delay of a packet by number.
    fn take(&mut self, i: usize, mut out: Out, late: &impl Fn(u64) -> Span) {
        for (_, packet) in out.sends.drain(..) {
            self.sent += 1;
            let at = self.now + Span::millis(10) + late(self.sent);
            self.air.insert((at, self.sent), (1 - i, packet));
        }
        self.events.append(&mut out.events);
    }

    fn run(&mut self, late: impl Fn(u64) -> Span) {
        while self.hosts[0].unfinished() > 0 && self.now < Time::ZERO + Span::secs(600) {
            let arrival = self.air.keys().next().copied();
            let wake =
                [0, 1].into_iter().filter_map(|i| Some((self.hosts[i].next_wake()?, i))).min();
            let mut out = Out::new(Interest::EVERYTHING);
            match (arrival, wake) {
                (Some(key), wake) if wake.is_none_or(|(at, _)| key.0 <= at) => {
                    self.now = key.0;
                    let Some((i, packet)) = self.air.remove(&key) else { return };
                    let from = if i == 0 { Side::Right } else { Side::Left };
                    self.hosts[i].on_packet(self.now, from, packet, &mut out);
                    self.take(i, out, &late);
                }
                (_, Some((at, i))) => {
                    self.now = self.now.max(at);
                    self.hosts[i].on_wake(self.now, &mut out);
                    self.take(i, out, &late);
                }
                (_, None) => return,
            }
        }
    }

    fn count(&self, kind: TcpKind) -> usize {
        self.events
            .iter()
            .filter(|e| matches!(&e.kind, EventKind::Tcp(tcp) if tcp.kind == kind))
            .count()
    }

    fn delivered(&self) -> u64 {
        self.hosts[1].delivered(self.hosts[0].opened()[0].flow.reversed())
    }
}

#[test]
fn packets_that_overtake_each_other_arrive_in_order() {
    let mut straight = Net::new("3MB");
    straight.run(|_| Span::ZERO);
    assert_eq!((straight.delivered(), straight.count(TcpKind::FastRetransmit)), (3_000_000, 0));
    let mut mixed = Net::new("3MB");
    mixed.run(|n| if n.is_multiple_of(90) { Span::millis(12) } else { Span::ZERO });
    assert_eq!((mixed.delivered(), mixed.count(TcpKind::Corrupted)), (3_000_000, 0));
    assert_eq!((mixed.count(TcpKind::Complete), mixed.count(TcpKind::Aborted)), (1, 0));
    // Late packets counted as lost.
    assert!(mixed.count(TcpKind::FastRetransmit) > 0 && mixed.now > straight.now);
}

#[test]
fn invalid_packets_do_not_disturb_a_transfer() {
    let mut net = Net::new("50kB");
    net.run(|_| Span::ZERO);
    let mut seen: Vec<Packet> = Vec::new();
    for event in &net.events {
        if let EventKind::Packet { packet, .. } = &event.kind {
            seen.push(packet.clone());
        }
    }
    assert!(seen.len() > 50);
    // All packets, truncated, corrupted in one byte, or repeated, reach a host without state.
    let mut other = Net::new("50kB");
    for (i, packet) in seen.into_iter().enumerate() {
        let Body::Bytes { frame, .. } = &packet.body else { panic!("bytes") };
        let mut bytes = frame.to_vec();
        match i % 3 {
            0 => bytes.truncate(i * 7 % bytes.len()),
            1 => {
                let at = i * 13 % bytes.len();
                bytes[at] ^= 0x55;
            }
            _ => {}
        }
        let packet = packet.with(|packet| packet.body = Body::copy_of(&bytes));
        for other_kind in
            [packet.clone(), packet.with(|packet| packet.transport = Transport::Other(47))]
        {
            let mut out = Out::new(Interest::EVERYTHING);
            other.hosts[1].on_packet(Time::ZERO, Side::Left, other_kind, &mut out);
            assert!(out.sends.len() <= 20);
        }
    }
    // Its own transfer completes all the same.
    other.run(|_| Span::ZERO);
    assert_eq!(other.delivered(), 50_000);
}
