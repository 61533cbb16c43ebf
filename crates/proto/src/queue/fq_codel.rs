//! FQ-CoDel (RFC 8290): a queue per flow, served in turn by bytes, each under [CoDel](super::codel).
//!
//! Flows are distinguished by a hash of addresses, ports and protocol, so two may share a queue; the hash's
//! salt is drawn once per discipline. A flow without recent packets is new: it is served before the old ones
//! until it has sent a `quantum` of bytes. So a ping or the first packets of a transfer overtake other
//! queues. Without room, packets are dropped from the head of the longest queue.
//!
//! `by = "host"` gives a queue to each host instead, so a host does not gain by many connections: the
//! destination of packets to the right, the source of packets to the left.

use std::collections::VecDeque;

use serde::Serialize;

use super::codel::{CodelConfig, ControlLaw, Head, check_ages};
use super::longest::Longest;
use super::{Discipline, FEW, Order, Read, Room, Waiting};
use crate::describe::{Descriptor, Keys, Kind, System};
use crate::machine::{Out, Side};
use crate::rng::Stream;
use crate::units::{Bytes, Time};
use crate::wire::protocol::PROTOCOL_UDP;
use crate::wire::{Addr, Packet, Transport};

pub(super) const WORDS: &[Descriptor<Read>] = &[Descriptor {
    word: "fq-codel",
    system: System::new(
        Kind::Queue,
        "fq-codel",
        "path: discipline = \"fq-codel\"",
        "a queue for each flow, served in turn, new flows first, each under CoDel",
        "RFC 8290",
    )
    .tier(0),
    read: |k, _| Discipline::FqCodel(FqCodelConfig::keys(k)),
}];

/// Unit that gets a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Share {
    /// Each flow.
    Flow,
    /// Each host on the right.
    Host,
}

/// Sharing of a line between flows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct FqCodelConfig {
    /// Control law of each queue.
    pub codel: CodelConfig,
    /// Number of queues.
    pub flows: u32,
    /// Bytes that a queue may send per turn.
    pub quantum: Bytes,
    /// Unit that gets a queue.
    pub by: Share,
}

impl Default for FqCodelConfig {
    //= rfc8290: 1024 queues, a quantum of one packet of Ethernet
    fn default() -> FqCodelConfig {
        let codel = CodelConfig::default();
        FqCodelConfig { codel, flows: 1024, quantum: Bytes(1514), by: Share::Flow }
    }
}

impl FqCodelConfig {
    /// Reads the keys.
    pub fn keys(k: &mut Keys<'_>) -> FqCodelConfig {
        let mut c = FqCodelConfig::default();
        k.table("fq-codel", "options of queues for each flow", |k| {
            c.codel.keys(k);
            k.count("flows", &mut c.flows, 1..=65_536, "the number of queues");
            let doc = "bytes that a queue may send in its turn";
            k.within("quantum", &mut c.quantum, Bytes(64)..=Bytes(1_000_000), doc);
            let shares = [("flow", Share::Flow), ("host", Share::Host)];
            k.word("by", &mut c.by, &shares, "whether each flow or each host has a queue");
        });
        c
    }
}

/// The list that contains a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum List {
    #[default]
    None,
    New,
    Old,
}

/// One queue.
#[derive(Clone, Debug, Default)]
struct Flow {
    waiting: VecDeque<(Time, Waiting)>,
    bytes: u64,
    /// Remaining bytes of this turn.
    credit: i64,
    list: List,
    law: ControlLaw,
}

/// Packets of one queue, with the shared room.
struct One<'a> {
    waiting: &'a mut VecDeque<(Time, Waiting)>,
    bytes: &'a mut u64,
    room: &'a mut Room,
}

impl Head for One<'_> {
    fn take(&mut self) -> Option<(Time, Waiting)> {
        let (came, waiting) = self.waiting.pop_front()?;
        self.room.remove(waiting.bytes);
        *self.bytes -= u64::from(waiting.bytes);
        Some((came, waiting))
    }

    fn bytes(&self) -> u64 {
        *self.bytes
    }
}

/// Queues for each flow.
#[derive(Clone, Debug)]
pub struct FqCodel {
    config: FqCodelConfig,
    /// Initial value of the hash.
    salt: u64,
    /// Allocated up to the highest index in use.
    flows: Vec<Flow>,
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    longest: Longest,
}

impl FqCodel {
    /// Empty queues; `rng` draws the hash's initial value.
    pub fn new(config: FqCodelConfig, mut rng: Stream) -> FqCodel {
        let salt = rng.next_u64();
        let (new, old) = (VecDeque::new(), VecDeque::new());
        FqCodel { config, salt, flows: Vec::new(), new, old, longest: Longest::default() }
    }

    /// Index of the queue of `packet`.
    fn queue_of(&self, side: Side, packet: &Packet) -> usize {
        let mut hash = self.salt;
        match self.config.by {
            Share::Host => {
                mix_address(&mut hash, if side == Side::Right { packet.dst } else { packet.src });
            }
            Share::Flow => {
                mix_address(&mut hash, packet.src);
                mix_address(&mut hash, packet.dst);
                mix(&mut hash, ports(packet));
            }
        }
        (hash % u64::from(self.config.flows)) as usize
    }

    /// Drops the oldest packet of the longest queue.
    //= rfc8290: a packet is dropped from the head of the queue with the largest byte count
    fn make_room(&mut self, side: Side, room: &mut Room, out: &mut Out) {
        let Some(i) = self.longest.of(self.flows.len(), |i| self.flows[i].bytes) else { return };
        let Flow { waiting, bytes, .. } = &mut self.flows[i];
        if let Some((_, oldest)) = (One { waiting, bytes, room }).take() {
            oldest.overflow(side, out);
        }
        self.longest.set(i, self.flows[i].bytes);
    }
}

/// Protocol and ports, if there are any.
fn ports(packet: &Packet) -> u64 {
    match &packet.transport {
        Transport::Tcp(segment) => {
            6 | u64::from(segment.src_port) << 16 | u64::from(segment.dst_port) << 32
        }
        Transport::Icmp(_) => 1,
        Transport::Fragment(fragment) => u64::from(fragment.protocol),
        Transport::Other(PROTOCOL_UDP) => {
            let ports = (0..4).map_while(|i| packet.body.byte(i));
            ports.fold(u64::from(PROTOCOL_UDP), |sum, byte| sum << 8 | u64::from(byte))
        }
        Transport::Other(protocol) => u64::from(*protocol),
    }
}

fn mix_address(hash: &mut u64, address: Addr) {
    for part in address.words() {
        mix(hash, part);
    }
}

/// The finaliser of SplitMix64: every bit of `value` affects every bit of the hash.
fn mix(hash: &mut u64, value: u64) {
    let mut z = (*hash ^ value).wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    *hash = z ^ (z >> 31);
}

impl Order for FqCodel {
    fn check(&self, room: &Room) {
        debug_assert!(self.flows.len() <= self.config.flows as usize, "limit of queues");
        debug_assert!(
            room.is_empty() || !self.new.is_empty() || !self.old.is_empty(),
            "packets without a turn"
        );
        for (list, turn) in [(List::New, &self.new), (List::Old, &self.old)] {
            for flow in turn.iter().take(FEW).map(|i| &self.flows[*i]) {
                debug_assert_eq!(flow.list, list, "a queue is in one list");
                debug_assert!(flow.credit <= self.config.quantum.0 as i64, "credit of a turn");
                debug_assert_eq!(flow.waiting.is_empty(), flow.bytes == 0, "bytes of a queue");
                debug_assert!(flow.bytes <= room.bytes(), "a queue is a part of all bytes");
                check_ages(&flow.waiting);
                flow.law.check();
            }
        }
        if cfg!(debug_assertions) && self.new.len() + self.old.len() <= FEW {
            let turns = self.new.iter().chain(&self.old).map(|i| &self.flows[*i]);
            let (packets, bytes) =
                turns.fold((0, 0), |(n, bytes), flow| (n + flow.waiting.len(), bytes + flow.bytes));
            debug_assert_eq!(packets, room.len(), "packets of all queues");
            debug_assert_eq!(bytes, room.bytes(), "bytes of all queues");
        }
    }

    fn enqueue(&mut self, now: Time, side: Side, waiting: Waiting, room: &mut Room, out: &mut Out) {
        let bytes = waiting.bytes;
        while !room.admits(bytes) && !room.is_empty() {
            self.make_room(side, room, out);
        }
        if !room.admits(bytes) {
            return waiting.overflow(side, out);
        }
        let i = self.queue_of(side, &waiting.packet);
        if i >= self.flows.len() {
            self.flows.resize_with(i + 1, Flow::default);
        }
        room.add(bytes);
        let flow = &mut self.flows[i];
        flow.bytes += u64::from(bytes);
        flow.waiting.push_back((now, waiting));
        self.longest.set(i, flow.bytes);
        if flow.list == List::None {
            flow.list = List::New;
            flow.credit = self.config.quantum.0 as i64;
            self.new.push_back(i);
        }
    }

    //= rfc8290: dequeue
    fn dequeue(&mut self, at: Time, side: Side, room: &mut Room, out: &mut Out) -> Option<Waiting> {
        loop {
            let i = *self.new.front().or_else(|| self.old.front())?;
            let flow = &mut self.flows[i];
            let list = if flow.list == List::New { &mut self.new } else { &mut self.old };
            if flow.credit <= 0 {
                flow.credit += self.config.quantum.0 as i64;
                flow.list = List::Old;
                list.pop_front();
                self.old.push_back(i);
                continue;
            }
            let Flow { waiting, bytes, law, .. } = flow;
            let mut one = One { waiting, bytes, room: &mut *room };
            let next = law.next(&self.config.codel, at, side, &mut one, out);
            self.longest.set(i, flow.bytes);
            let Some(next) = next else {
                list.pop_front();
                // An empty new queue waits a turn among the old ones, so that it does not become new
                // immediately.
                if flow.list == List::New && !self.old.is_empty() {
                    flow.list = List::Old;
                    self.old.push_back(i);
                } else {
                    flow.list = List::None;
                }
                continue;
            };
            flow.credit -= i64::from(next.bytes);
            return Some(next);
        }
    }

    fn judges_leaving(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Body, Damage, Flags, PacketId, Parts, Segment, Seq};

    /// Distinguishing fields of flows: each bit of each port, and the protocol.
    #[test]
    fn flows_differ_by_each_port_bit_and_the_protocol() {
        let end = Addr::v4(10, 0, 0, 1);
        let tcp = |from, to| {
            let segment = Segment::new(from, to, Seq(0), Seq(0), Flags::ACK);
            Packet::tcp(end, end, segment, Body::EMPTY)
        };
        let other = |protocol, bytes: &[u8]| {
            Packet::new(Parts {
                id: PacketId(0),
                src: end,
                dst: end,
                transport: Transport::Other(protocol),
                body: Body::copy_of(bytes),
                tos: 0,
                label: 0,
                ttl: 64,
                damage: Damage::None,
                urgent: false,
                piece: 0,
                fragmentable: false,
            })
        };
        let udp = |from: u16, to: u16| {
            let bytes = [from.to_be_bytes(), to.to_be_bytes()].concat();
            other(PROTOCOL_UDP, &[&bytes[..], &[0, 9, 0, 0]].concat())
        };
        for (base_from, base_to) in [(0, 0), (0xa5a5, 0x5a5a)] {
            let mut seen = vec![ports(&tcp(base_from, base_to)), ports(&udp(base_from, base_to))];
            for bit in 0..16 {
                let (from, to) = (base_from ^ 1 << bit, base_to ^ 1 << bit);
                seen.extend([ports(&tcp(from, base_to)), ports(&tcp(base_from, to))]);
                seen.extend([ports(&udp(from, base_to)), ports(&udp(base_from, to))]);
            }
            let count = seen.len();
            seen.sort_unstable();
            seen.dedup();
            assert_eq!(
                seen.len(),
                count,
                "ports that differ from {base_from} and {base_to} in one bit are equal"
            );
        }
        let same =
            |packet: Packet, payload: &[u8]| ports(&packet) == ports(&other(PROTOCOL_UDP, payload));
        assert!(
            same(udp(1, 2), &[0, 1, 0, 2, 0, 50, 1, 1, 7]),
            "only the first four bytes are ports"
        );
        assert!(!same(udp(1, 2), &[0, 1]), "a datagram that is cut");
        assert_eq!([50, 51].map(|protocol| ports(&other(protocol, &[1; 8]))), [50, 51]);
    }
}
