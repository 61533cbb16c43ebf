//! Links: how packets get from one stage to the next.
//!
//! A world may call late: a real clock wakes when it can. So a link reckons with the times at which things should
//! have happened. A transmission that had to wait begins when the medium became free, not when the wake came, and
//! lateness does not add up from packet to packet.

pub mod cross;
pub mod end;
pub mod fec;
pub mod frame;
pub mod header_compression;
pub mod layer;
pub mod line;
pub mod ll;
mod ll_peer;
mod ll_sack;
pub mod local_recovery;
pub mod plain;
pub mod radio;
pub mod serial;
pub mod tulip;

use std::collections::VecDeque;

use serde::Serialize;

use crate::queue::{Discipline, Limit};
use crate::units::{Rate, Span, Time};
use crate::wire::Packet;

pub use cross::{Cross, CrossTraffic};
pub use layer::LinkLayerConfig;
pub use line::Line;
pub use radio::Radio;
pub use serial::{Serial, SerialConfig};

/// Packets under way in one direction, each with the time at which it comes out. Order is kept.
pub type Pipe = VecDeque<(Time, Packet)>;

/// A full-duplex line: each direction has its own transmitter and queue.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LineConfig {
    /// Rate towards the right; `None` is infinitely fast.
    pub rate_right: Option<Rate>,
    /// Rate towards the left.
    pub rate_left: Option<Rate>,
    /// Propagation delay.
    pub delay: Span,
    /// Framing bytes added to each IP packet (14 for Ethernet without checksum).
    pub framing: u32,
    /// Queue in front of each transmitter.
    pub queue: Limit,
    /// What the queue towards the right does with its packets.
    #[serde(skip_serializing_if = "Discipline::is_fifo")]
    pub discipline_right: Discipline,
    /// What the queue towards the left does with its packets.
    #[serde(skip_serializing_if = "Discipline::is_fifo")]
    pub discipline_left: Discipline,
}

/// A radio channel that both directions share: one frame at a time.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RadioConfig {
    /// Rate of the medium.
    pub rate: Rate,
    /// Propagation delay.
    pub delay: Span,
    /// Time that each frame takes beside its bits: access, preamble, framing.
    pub overhead: Span,
    /// Whether the two directions share the medium; otherwise each has its own.
    pub half_duplex: bool,
    /// Queue in front of each station's transmitter.
    pub queue: Limit,
    /// What the queue towards the right does with its packets.
    #[serde(skip_serializing_if = "Discipline::is_fifo")]
    pub discipline_right: Discipline,
    /// What the queue towards the left does with its packets.
    #[serde(skip_serializing_if = "Discipline::is_fifo")]
    pub discipline_left: Discipline,
}
