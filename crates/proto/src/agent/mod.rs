//! Base-station agents. Each sits between the wired side and the wireless side of a path.

use serde::Serialize;

use crate::units::{Bytes, Span};

/// Configuration of the snoop agent (balakrishnan97 2; west97 2.6; parsa98 4).
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SnoopConfig {
    /// Duplicate ACKs that cause a local retransmission: 1 (west97) or 2 (parsa98).
    pub dupacks: u32,
    /// Smallest local time-out.
    pub min_timeout: Span,
    /// A flow that is idle for so long with unacknowledged data has its first packet retransmitted.
    pub persist: Span,
    /// Whether local round trips are also measured over retransmitted packets (the fault of parsa98 5.2.2).
    pub rtt_fault: bool,
    /// Packets cached per flow.
    pub flow_packets: usize,
    /// Flows watched at once; the least recently used is forgotten first.
    pub flows: usize,
    /// Bytes cached over all flows.
    pub cache: Bytes,
}

/// When a base station forges partial acknowledgements.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AckpMode {
    /// The algorithm of west97 3.3: delayed-ACK timer, `lastackp`, only to senders that offered the option.
    Full,
    /// The first implementation of west97 4.2: one for every data packet.
    EveryPacket,
}

/// The agent at a base station.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "kebab-case", tag = "agent")]
pub enum AgentConfig {
    /// Packets are only forwarded.
    None,
    /// Local retransmission, with partial acknowledgements or without.
    Snoop {
        /// Caching and retransmission.
        snoop: SnoopConfig,
        /// Partial acknowledgements.
        ackp: Option<AckpMode>,
    },
    /// Sequence numbers only; the sender retransmits on a loss notification (west97 7.0).
    SeqCache {
        /// Flows watched at once.
        flows: usize,
    },
}
