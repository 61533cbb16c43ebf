//! Addresses and ports of connections, in so few bytes that those of many connections stay in a near cache.

use lasthop_proto::flows::FlowMap;
use lasthop_proto::wire::{Addr, FlowKey};

/// The key of the first direction of each connection, by number. Connections of the same hosts share the addresses.
#[derive(Debug, Default)]
pub(super) struct Keys {
    /// Source port, destination port, and index of the addresses.
    connections: Vec<(u16, u16, u32)>,
    /// Source and destination address.
    hosts: Vec<(Addr, Addr)>,
    /// Index of the addresses, by a key without ports.
    by_hosts: FlowMap<u32>,
}

impl Keys {
    /// Number of connections.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.connections.len()
    }

    pub(super) fn reserve(&mut self, count: usize) {
        self.connections.reserve_exact(count);
    }

    /// The key of connection `index`, if it exists.
    #[inline]
    pub(super) fn get(&self, index: u32) -> Option<FlowKey> {
        self.connections.get(index as usize).map(|own| self.key(*own))
    }

    pub(super) fn push(&mut self, key: FlowKey) {
        let hosts = FlowKey { src_port: 0, dst_port: 0, ..key };
        let index = *self.by_hosts.entry(hosts).or_insert_with(|| {
            self.hosts.push((key.src, key.dst));
            self.hosts.len() as u32 - 1
        });
        self.connections.push((key.src_port, key.dst_port, index));
    }

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = FlowKey> + DoubleEndedIterator {
        self.connections.iter().map(|own| self.key(*own))
    }

    #[inline]
    fn key(&self, (src_port, dst_port, hosts): (u16, u16, u32)) -> FlowKey {
        let (src, dst) = self.hosts[hosts as usize];
        FlowKey { src, dst, src_port, dst_port }
    }
}
