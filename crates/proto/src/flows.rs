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

/// Bits that both directions of a connection have in common. The low ones differ between connections of two hosts that number
/// their ports in a row: whoever looks by them finds connections in a row too. No hash: others may have the same.
#[inline]
pub fn common_bits(flow: &FlowKey) -> u32 {
    let [src, dst] = [flow.src, flow.dst].map(|addr| addr.words()[1] as u32);
    let ports = u32::from(flow.src_port ^ flow.dst_port);
    (src ^ dst).wrapping_mul(0x9e37_79b1).wrapping_add(ports)
}
