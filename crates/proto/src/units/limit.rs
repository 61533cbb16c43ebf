//! How much a queue holds, in packets or in bytes.

use serde::Serialize;

use super::Bytes;

/// How much a queue holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Limit {
    /// So many packets, the one in transmission not counted.
    Packets(u32),
    /// So many bytes, the packet in transmission not counted.
    Bytes(Bytes),
}

impl Limit {
    /// Whether a queue that holds `packets` of together `bytes` has room for one more of `more` bytes.
    pub fn admits(self, packets: usize, bytes: u64, more: u32) -> bool {
        match self {
            Limit::Packets(limit) => packets < limit as usize,
            Limit::Bytes(limit) => bytes + u64::from(more) <= limit.0,
        }
    }
}
