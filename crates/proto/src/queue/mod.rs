//! Queues in front of a link.

use serde::Serialize;

use crate::units::Bytes;

/// How much a drop-tail queue holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Limit {
    /// So many packets, the one in transmission not counted.
    Packets(u32),
    /// So many bytes, the packet in transmission not counted.
    Bytes(Bytes),
}
