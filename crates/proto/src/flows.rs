//! Lookup by flow: a hash map with a fixed, portable hash.
//!
//! The standard map's hash has a random seed; this one is the same in every run. Maps are only looked up by
//! key, never iterated, so their order cannot influence results.

use core::hash::{BuildHasherDefault, Hasher};

use crate::wire::{Addr, FlowKey};

/// A map from flows to `V`.
#[expect(clippy::disallowed_types, reason = "the hash is fixed and the map is never iterated")]
pub type FlowMap<V> = std::collections::HashMap<FlowKey, V, BuildHasherDefault<FlowHasher>>;

/// A map from addresses to `V`.
#[expect(clippy::disallowed_types, reason = "the hash is fixed and the map is never iterated")]
pub type AddrMap<V> = std::collections::HashMap<Addr, V, BuildHasherDefault<FlowHasher>>;

/// Multiply-rotate over 64-bit words, finished with a mix so that the low bits depend on every input bit.
#[derive(Clone, Copy, Debug, Default)]
pub struct FlowHasher(u64);

impl FlowHasher {
    fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
}

impl Hasher for FlowHasher {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.add(u64::from(byte));
        }
    }
    fn write_u16(&mut self, n: u16) {
        self.add(u64::from(n));
    }
    fn write_u64(&mut self, n: u64) {
        self.add(n);
    }
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }
}

/// A guess of a connection's number among others; the caller must verify the key of that number. Adversarial
/// keys make only the guesses wrong.
///
/// ```
/// use lasthop_proto::flows::Guesses;
/// use lasthop_proto::wire::{Addr, FlowKey};
/// let (src, dst) = (Addr::v4(10, 0, 0, 1), Addr::v4(10, 0, 0, 2));
/// let keys: Vec<_> = (0..3).map(|n| FlowKey { src, dst, src_port: 1024 + n, dst_port: 9 }).collect();
/// let mut guesses = Guesses::default();
/// assert_eq!(guesses.of(&keys[0]), None);
/// (1..=3).for_each(|n| guesses.added(keys[..n].iter().copied()));
/// assert_eq!([guesses.of(&keys[0]), guesses.of(&keys[2].reversed())], [Some(0), Some(2)]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Guesses {
    /// By [`common_bits`]; of several connections with the same bits the last one noted.
    numbers: Vec<u32>,
}

impl Guesses {
    /// The likely number of a connection, the same for both directions.
    #[inline]
    pub fn of(&self, key: &FlowKey) -> Option<u32> {
        self.numbers.get(self.slot(key)).copied()
    }

    /// Records the number of the connection with this key.
    pub fn note(&mut self, key: &FlowKey, number: u32) {
        let slot = self.slot(key);
        if let Some(place) = self.numbers.get_mut(slot) {
            *place = number;
        }
    }

    /// Records the connection that was added last; `keys` has all keys in the order of their numbers.
    pub fn added(&mut self, keys: impl ExactSizeIterator<Item = FlowKey> + DoubleEndedIterator) {
        let count = keys.len();
        let mut numbered = (0..count as u32).zip(keys);
        if count > self.numbers.len() {
            self.numbers = vec![u32::MAX; count.next_power_of_two()];
            numbered.for_each(|(number, key)| self.note(&key, number));
        } else if let Some((number, key)) = numbered.next_back() {
            self.note(&key, number);
        }
    }

    #[inline]
    fn slot(&self, key: &FlowKey) -> usize {
        common_bits(key) as usize & self.numbers.len().wrapping_sub(1)
    }
}

/// Bits that both directions of a connection share. The low bits differ between connections of two hosts with
/// consecutive ports, so consecutive connections have consecutive slots. The lower port, usually that of a
/// service, distinguishes connections that reuse a port. Not a hash: different connections may have the same
/// bits.
#[inline]
fn common_bits(flow: &FlowKey) -> u32 {
    let [src, dst] = [flow.src, flow.dst].map(|addr| addr.words()[1] as u32);
    let service = u32::from(flow.src_port.min(flow.dst_port)) << 16;
    let ports = u32::from(flow.src_port ^ flow.dst_port);
    (src ^ dst).wrapping_mul(0x9e37_79b1).wrapping_add(service).wrapping_add(ports)
}
