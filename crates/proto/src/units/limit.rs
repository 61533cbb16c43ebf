//! Capacity of a queue, in packets or in bytes.

use serde::Serialize;

use super::Bytes;

/// Capacity of a queue.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Limit {
    /// Number of packets, without the one in transmission.
    Packets(u32),
    /// Number of bytes, without the packet in transmission.
    Bytes(Bytes),
}

impl Limit {
    /// Whether a queue of `packets` packets with `bytes` bytes in total has room for another one of `more`
    /// bytes.
    pub fn admits(self, packets: usize, bytes: u64, more: u32) -> bool {
        match self {
            Limit::Packets(limit) => packets < limit as usize,
            Limit::Bytes(limit) => bytes + u64::from(more) <= limit.0,
        }
    }
}
