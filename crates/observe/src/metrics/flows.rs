//! All flows of a run, by addresses and ports.

use core::hash::{BuildHasher, BuildHasherDefault};
use std::sync::Arc;

use hashbrown::HashTable;
use lasthop_proto::flows::{FlowHasher, Guesses};
use lasthop_proto::machine::Side;
use lasthop_proto::wire::{FlowKey, Packet, Segment, Transport};

use super::carried::Declared;
use super::flow::Flow;
use super::flow_event::FlowEvent;
use super::flow_pair::FlowPair;
use super::keys::Keys;
use crate::layout::FlowInfo;

/// Number of buffered events at which flows count them.
const WAITING: usize = 256;

/// Number of events that are prefetched together.
const TOGETHER: usize = 16;

/// Flows by number. Both directions of a connection have adjacent numbers, so the peer of `i` is `i ^ 1`.
///
/// Most packets belong to a connection that is in no near cache, and counting code evicts the simulator's
/// code from the cache. So an event only looks up the flow's number; its counting is buffered, in order, and
/// done in batches.
#[derive(Debug, Default)]
pub(super) struct Flows {
    /// The key of the first direction of each connection.
    keys: Keys,
    /// Both directions of each connection.
    connections: Vec<[Flow; 2]>,
    waiting: Vec<FlowEvent>,
    /// Cache of connection indices.
    guesses: Guesses,
    /// Indices of all connections. It stores no keys, since the found connection is read anyway.
    index: HashTable<u32>,
    /// The latest connection, with the key of its first direction: packets come in trains, and the following
    /// events concern the same one.
    last: Option<(FlowKey, u32)>,
    /// Whether delays and other distributions are left out.
    pub(super) brief: bool,
}

impl Flows {
    /// The number of the flow with this key. Inserts a new flow.
    #[inline]
    pub(super) fn id(&mut self, key: FlowKey, towards: Side) -> usize {
        match self.last.and_then(|(own, index)| direction(&own, index, &key)) {
            Some(id) => id,
            None => self.look_up(key, towards),
        }
    }

    #[inline(never)]
    fn look_up(&mut self, key: FlowKey, towards: Side) -> usize {
        let index = self.guesses.of(&key);
        let id = match index.and_then(|index| self.direction(index, &key)) {
            Some(id) => id,
            None => self.find(key, towards),
        };
        let index = (id / 2) as u32;
        self.last = self.keys.get(index).map(|own| (own, index));
        id
    }

    /// The number of the flow with this key, if it exists.
    pub(super) fn known(&self, key: FlowKey) -> Option<usize> {
        let is_it = |index: &u32| self.direction(*index, &key).is_some();
        let index = *self.index.find(hash(connection(key)), is_it)?;
        self.direction(index, &key)
    }

    /// The flow with this number, for constant properties.
    #[inline]
    pub(super) fn flow(&self, id: usize) -> &Flow {
        &self.connections[id / 2][id % 2]
    }

    /// The flow with this number, after all buffered events were counted.
    pub(super) fn settled(&mut self, id: usize) -> &mut Flow {
        self.settle();
        self.unsettled(id)
    }

    /// The flow with this number, for counts that are independent of the order of buffered events.
    pub(super) fn unsettled(&mut self, id: usize) -> &mut Flow {
        &mut self.connections[id / 2][id % 2]
    }

    /// Buffers an event.
    #[inline]
    pub(super) fn note(&mut self, event: FlowEvent) {
        if self.waiting.len() >= WAITING {
            self.settle();
        }
        self.waiting.push(event);
    }

    /// Counts all buffered events.
    #[inline(never)]
    pub(super) fn settle(&mut self) {
        let mut waiting = core::mem::take(&mut self.waiting);
        for some in waiting.chunks(TOGETHER) {
            // A few flows are in a near cache anyway.
            if self.keys.len() > TOGETHER {
                let touch = |event: &FlowEvent| self.flow(event.flow()).touch(event, self.brief);
                core::hint::black_box(some.iter().fold(0, |all, event| all ^ touch(event)));
            }
            let brief = self.brief;
            some.iter().for_each(|event| self.unsettled(event.flow()).take(*event, brief));
        }
        waiting.clear();
        self.waiting = waiting;
    }

    /// All flows, in the order of their numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = FlowPair<'_>> {
        self.keys.iter().zip(&self.connections).flat_map(|(key, ways)| both(key, ways))
    }

    /// Applies `f` to all flows, in the order of their numbers. Frees each connection before the next one,
    /// since its result needs as much memory.
    pub(super) fn map_flows<T>(self, f: impl Fn(FlowPair<'_>) -> Option<T>) -> Vec<T> {
        let connections = self.keys.iter().zip(self.connections);
        connections.flat_map(|(key, ways)| both(key, &ways).map(&f)).flatten().collect()
    }

    /// The number of the flow with this key, if it belongs to the connection at `index`.
    #[inline]
    fn direction(&self, index: u32, key: &FlowKey) -> Option<usize> {
        direction(&self.keys.get(index)?, index, key)
    }

    #[cold]
    fn find(&mut self, key: FlowKey, towards: Side) -> usize {
        let id = self.known(key).unwrap_or_else(|| self.add(key, towards));
        self.guesses.note(&key, (id / 2) as u32);
        id
    }

    #[cold]
    fn add(&mut self, key: FlowKey, towards: Side) -> usize {
        let index = self.keys.len();
        self.keys.push(key);
        self.connections.push([towards, towards.other()].map(Flow::new));
        let key_of = |index: &u32| self.keys.get(*index).expect("an index of a connection");
        let hash_of = |index: &u32| hash(connection(key_of(index)));
        self.index.insert_unique(hash(connection(key)), index as u32, hash_of);
        self.guesses.added(self.keys.iter());
        2 * index
    }

    /// Inserts the flows of the layout. All connections of a transfer share one description.
    pub(super) fn declare(&mut self, infos: Vec<FlowInfo>) {
        self.keys.reserve(infos.len());
        self.connections.reserve_exact(infos.len());
        let mut last = Arc::<Declared>::default();
        for info in infos {
            let declared = Declared::of(&info);
            if *last != declared {
                last = Arc::new(declared);
            }
            let id = self.id(info.key, info.towards);
            self.unsettled(id).declare(last.clone());
        }
    }

    /// The number of a packet's flow, if it is TCP, or UDP of a declared transfer. A message to a source
    /// counts among the packets that travel to it.
    #[inline]
    pub(super) fn of_packet(&mut self, packet: &Packet, towards: Side) -> Option<usize> {
        // Mostly the first direction, which needs no new key.
        match (packet.segment(), self.last) {
            (Some(segment), Some((own, index))) if is_of(packet, segment, &own) => {
                Some(2 * index as usize)
            }
            _ => self.look_up_packet(packet, towards),
        }
    }

    #[inline(never)]
    fn look_up_packet(&mut self, packet: &Packet, towards: Side) -> Option<usize> {
        match packet.flow() {
            Some(key) => Some(self.look_up(key, towards)),
            None => self.of_other(packet, towards),
        }
    }

    /// Like `of_packet`, for packets other than TCP.
    #[cold]
    fn of_other(&mut self, packet: &Packet, towards: Side) -> Option<usize> {
        match packet.transport {
            Transport::Icmp(_) => Some(self.id(packet.quote()?.1.flow.reversed(), towards)),
            Transport::Other(_) => self.known(packet.datagram_flow()?),
            _ => None,
        }
    }
}

/// Both directions of a connection, each with the other.
fn both(key: FlowKey, [first, second]: &[Flow; 2]) -> [FlowPair<'_>; 2] {
    [
        FlowPair { key, flow: first, acks: second },
        FlowPair { key: key.reversed(), flow: second, acks: first },
    ]
}

/// The number of the flow with this key, if it belongs to connection `index`, whose first direction is `own`.
#[inline]
fn direction(own: &FlowKey, index: u32, key: &FlowKey) -> Option<usize> {
    let first = 2 * index as usize;
    // The ports first, since most keys differ there.
    let ports = (key.src_port, key.dst_port);
    if (own.src_port, own.dst_port) == ports && own == key {
        Some(first)
    } else if (own.dst_port, own.src_port) == ports && own.reversed() == *key {
        Some(first + 1)
    } else {
        None
    }
}

/// Whether a packet belongs to this flow.
#[inline]
fn is_of(packet: &Packet, segment: &Segment, key: &FlowKey) -> bool {
    (segment.src_port, segment.dst_port) == (key.src_port, key.dst_port)
        && (packet.src, packet.dst) == (key.src, key.dst)
}

/// A common key for both directions of a connection.
fn connection(key: FlowKey) -> FlowKey {
    let back = key.reversed();
    if (back.src, back.src_port) < (key.src, key.src_port) { back } else { key }
}

fn hash(key: FlowKey) -> u64 {
    BuildHasherDefault::<FlowHasher>::default().hash_one(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_proto::event::Cause;
    use lasthop_proto::wire::{Addr, Body, Flags, Seq};

    fn packet(host: u8, port: u16) -> Packet {
        let segment = Segment::new(port, 80, Seq(1), Seq(1), Flags::ACK);
        Packet::tcp(Addr::v4(10, 0, 0, host), Addr::v4(10, 1, 0, 1), segment, Body::EMPTY)
    }

    fn key(host: u8, port: u16) -> FlowKey {
        packet(host, port).flow().unwrap()
    }

    /// In any order of look-ups, and for two connections that differ only in a host.
    #[test]
    fn both_directions_of_a_connection_have_numbers_side_by_side() {
        let mut flows = Flows::default();
        let all: Vec<(u8, u16)> =
            (1..4).flat_map(|host| (1..9).map(move |port| (host, port))).collect();
        assert_eq!(flows.known(key(1, 1)), None);
        for (i, &(host, port)) in all.iter().enumerate() {
            assert_eq!(flows.id(key(host, port), Side::Right), 2 * i);
        }
        for step in [1, 5, 7, 23] {
            for i in (0..all.len()).map(|i| i * step % all.len()) {
                let (host, port) = all[i];
                let (there, back) = (key(host, port), key(host, port).reversed());
                assert_eq!(flows.of_packet(&packet(host, port), Side::Right), Some(2 * i));
                assert_eq!(
                    flows.last.map(|(_, index)| index as usize),
                    Some(i),
                    "the next packet is mostly of the same one"
                );
                assert_eq!(flows.id(back, Side::Left), 2 * i + 1);
                assert_eq!(flows.id(there, Side::Right), 2 * i);
                assert_eq!((flows.known(there), flows.known(back)), (Some(2 * i), Some(2 * i + 1)));
            }
        }
        let keys: Vec<FlowKey> = flows.iter().map(|pair| pair.key).collect();
        assert_eq!(keys.len(), 2 * all.len());
        assert_eq!(keys[..2], [key(1, 1), key(1, 1).reversed()]);
    }

    #[test]
    fn queued_flow_events_are_counted_once_when_settled() {
        let mut flows = Flows::default();
        let id = flows.id(key(1, 1000), Side::Right);
        let dropped =
            |flow: &Flow| flow.episodes.as_ref().map_or(0, |own| own.dropped.get(Cause::QueueFull));
        for _ in 0..WAITING + 3 {
            flows.note(FlowEvent::Dropped { cause: Cause::QueueFull, flow: id as u32 });
        }
        assert_eq!(dropped(flows.flow(id)), WAITING as u64, "no more than that waits");
        assert_eq!(dropped(flows.settled(id)), WAITING as u64 + 3);
        assert_eq!(dropped(flows.settled(id)), WAITING as u64 + 3, "once");
    }
}
