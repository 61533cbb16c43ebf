//! All flows of a run, found by their addresses and ports.

use core::hash::{BuildHasher, BuildHasherDefault};

use hashbrown::HashTable;
use lasthop_proto::flows::FlowHasher;
use lasthop_proto::machine::Side;
use lasthop_proto::wire::{FlowKey, Packet, Transport};

use super::flow::Flow;
use crate::layout::FlowInfo;

/// Flows in pairs: both directions of a connection stand side by side, so that the peer of index `i` is
/// `i ^ 1`.
#[derive(Debug, Default)]
pub(super) struct Flows {
    /// The first of the two. It has no keys: the flow that is found is looked at anyway.
    index: HashTable<u32>,
    pub(super) all: Vec<Flow>,
    /// The connection asked for last, in both directions: packets of one flow come in trains, and
    /// deliveries at the other end between them.
    last: Option<[(FlowKey, u32); 2]>,
}

impl Flows {
    /// The flow with this key, made if it is new.
    #[inline]
    pub(super) fn id(&mut self, key: FlowKey, towards: Side) -> usize {
        if let Some(pair) = &self.last {
            for (last, id) in pair {
                if *last == key {
                    return *id as usize;
                }
            }
        }
        self.find(key, towards)
    }

    /// The flow with this key, if there is one.
    pub(super) fn known(&self, key: FlowKey) -> Option<usize> {
        let connection = connection(key);
        let back = key.reversed();
        let is_it = |first: &u32| [key, back].contains(&self.all[*first as usize].key);
        let first = *self.index.find(hash(connection), is_it)? as usize;
        Some(first + usize::from(self.all[first].key != key))
    }

    #[inline(never)]
    fn find(&mut self, key: FlowKey, towards: Side) -> usize {
        let id = self.known(key).unwrap_or_else(|| self.add(key, towards));
        self.last = Some([(key, id as u32), (key.reversed(), id as u32 ^ 1)]);
        id
    }

    #[cold]
    fn add(&mut self, key: FlowKey, towards: Side) -> usize {
        let id = self.all.len();
        self.all.push(Flow::new(key, towards));
        self.all.push(Flow::new(key.reversed(), towards.other()));
        let hash_of = |first: &u32| hash(connection(self.all[*first as usize].key));
        self.index.insert_unique(hash(connection(key)), id as u32, hash_of);
        id
    }

    /// Makes the flow that `info` declares.
    pub(super) fn declare(&mut self, info: &FlowInfo) {
        let id = self.id(info.key, info.towards);
        self.all[id].declare(info);
    }

    /// The flow of a packet, if it is TCP, or UDP on which a transfer was declared; a message to a source counts among the
    /// packets that travel to it.
    #[inline]
    pub(super) fn of_packet(&mut self, packet: &Packet, towards: Side) -> Option<usize> {
        match packet.flow() {
            Some(key) => Some(self.id(key, towards)),
            None => self.of_other(packet, towards),
        }
    }

    /// The same of what is not TCP.
    #[cold]
    fn of_other(&mut self, packet: &Packet, towards: Side) -> Option<usize> {
        match packet.transport {
            Transport::Icmp(_) => Some(self.id(packet.quote()?.1.flow.reversed(), towards)),
            Transport::Other(_) => self.known(packet.datagram_flow()?),
            _ => None,
        }
    }
}

/// The same name for both directions of a connection.
fn connection(key: FlowKey) -> FlowKey {
    let back = key.reversed();
    if (back.src, back.src_port) < (key.src, key.src_port) { back } else { key }
}

fn hash(key: FlowKey) -> u64 {
    BuildHasherDefault::<FlowHasher>::default().hash_one(key)
}
