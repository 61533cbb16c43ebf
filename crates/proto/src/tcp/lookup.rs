//! Lookup of the connection of a segment: a hash over addresses and ports, with a cache of one entry.
//!
//! Packets of a bulk transfer, and packet trains, nearly always belong to the connection of the previous
//! packet (agarwal00 3.2). Four comparisons then find it, for any number of connections.

use crate::energy::Operation;
use crate::flows::FlowMap;
use crate::wire::FlowKey;

/// Finds connections by their flow.
///
/// ```
/// use lasthop_proto::tcp::lookup::Lookup;
/// use lasthop_proto::wire::{Addr, FlowKey};
/// let flow = |port| FlowKey { src: Addr::v4(10, 0, 0, 1), dst: Addr::v4(10, 0, 0, 2), src_port: port, dst_port: 9 };
/// let mut lookup = Lookup::default();
/// (0..3).for_each(|i| lookup.insert(flow(i as u16), i));
/// assert_eq!([lookup.find(flow(2)), lookup.find(flow(2)), lookup.find(flow(7))], [Some(2), Some(2), None]);
/// assert_eq!((lookup.cached(), lookup.hashed()), (1, 2));
/// ```
#[derive(Clone, Debug)]
pub struct Lookup {
    by_flow: FlowMap<u32>,
    /// Result of the last lookup.
    last: Option<(FlowKey, u32)>,
    /// Whether `last` is used.
    caching: bool,
    cached: u64,
    hashed: u64,
    how: Option<Operation>,
}

impl Default for Lookup {
    fn default() -> Lookup {
        Lookup::new(true)
    }
}

impl Lookup {
    /// Creates an empty lookup. Without `caching` every lookup uses the hash, to measure its cost.
    pub fn new(caching: bool) -> Lookup {
        let by_flow = FlowMap::default();
        Lookup { by_flow, last: None, caching, cached: 0, hashed: 0, how: None }
    }

    /// Assigns `flow` to connection `index`.
    pub fn insert(&mut self, flow: FlowKey, index: u32) {
        self.by_flow.insert(flow, index);
        self.last = None;
    }

    /// The connection of `flow`.
    #[inline]
    pub fn find(&mut self, flow: FlowKey) -> Option<u32> {
        self.find_cached(flow).or_else(|| self.find_hashed(flow))
    }

    /// Like [`Lookup::find`] by the cache alone; a miss is not counted.
    #[inline]
    pub(super) fn find_cached(&mut self, flow: FlowKey) -> Option<u32> {
        let (last, index) = self.last?;
        if last != flow || !self.caching {
            return None;
        }
        self.cached += 1;
        self.how = Some(Operation::LookupCached);
        Some(index)
    }

    #[inline(never)]
    pub(super) fn find_hashed(&mut self, flow: FlowKey) -> Option<u32> {
        let index = self.peek(flow);
        self.hashed += 1;
        self.how = Some(Operation::LookupHashed);
        self.last = index.map(|index| (flow, index)).or(self.last);
        index
    }

    /// Counts a lookup by the hash that was avoided because its result `index` is known.
    #[inline]
    pub(super) fn spared(&mut self, flow: FlowKey, index: u32) {
        self.hashed += 1;
        self.how = Some(Operation::LookupHashed);
        self.last = Some((flow, index));
    }

    /// Like [`Lookup::find`] for an observer: without counting and caching.
    pub fn peek(&self, flow: FlowKey) -> Option<u32> {
        self.by_flow.get(&flow).copied()
    }

    /// Lookups that the cache answered.
    pub fn cached(&self) -> u64 {
        self.cached
    }

    /// Lookups that used the hash.
    pub fn hashed(&self) -> u64 {
        self.hashed
    }

    /// Takes the kind of the last lookup, if there was one since the last call.
    pub(super) fn take_how(&mut self) -> Option<Operation> {
        self.how.take()
    }
}

#[cfg(test)]
mod tests {
    use super::super::host::flow_of;
    use crate::flows::Guesses;
    use crate::wire::{Addr, FlowKey};

    /// Guesses of hosts and metrics. There are more connections than ports: the next ones use the next port
    /// of the service.
    #[test]
    fn connections_of_two_hosts_are_guessed_right() {
        let (from, to) = (Addr::v4(10, 0, 0, 1), Addr::v4(10, 0, 0, 2));
        let keys: Vec<FlowKey> = (0..100_000).map(|n| flow_of(from, to, 9, n)).collect();
        let mut guesses = Guesses::default();
        (1..=keys.len()).for_each(|count| guesses.added(keys[..count].iter().copied()));
        let right = |(number, key): &(u32, &FlowKey)| {
            guesses.of(key) == Some(*number) && guesses.of(&key.reversed()) == Some(*number)
        };
        assert_eq!((0..).zip(&keys).filter(right).count(), keys.len());
    }

    #[test]
    fn of_connections_alike_the_last_is_guessed() {
        let key = flow_of(Addr::v4(10, 0, 0, 1), Addr::v4(10, 0, 0, 2), 9, 7);
        let mut guesses = Guesses::default();
        (1..=5).for_each(|count| guesses.added(vec![key; count].into_iter()));
        assert_eq!(guesses.of(&key), Some(4));
        guesses.note(&key, 2);
        assert_eq!(guesses.of(&key), Some(2));
    }
}
