//! Finding what belongs to a flow: a hash map with a fixed, portable hash.
//!
//! The standard map's hash is seeded at random; this one is the same in every run. Maps are only looked up
//! by key, never iterated, so that no order of theirs can leak into results.

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
