//! Links: how packets get from one stage to the next.
//!
//! A world may call late: a real clock wakes when it can. So a link reckons with the times at which things should
//! have happened. A transmission that had to wait begins when the medium became free, not when the wake came, and
//! lateness does not add up from packet to packet.

pub mod airmail;
pub mod cross;
pub mod end;
pub mod fates;
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
pub mod tc;
pub(crate) mod transmitter;
pub mod tulip;
pub mod varied;

use serde::Serialize;

use crate::machine::Side;
use crate::queue::{Discipline, Limit, Queue};
use crate::rng::Stream;
use crate::units::{Rate, Span};
use transmitter::Transmitter;

pub use cross::{Cross, CrossTraffic, Ordinals};
pub use fates::{Fate, Fates};
pub use layer::LinkLayerConfig;
pub use line::Line;
pub use radio::Radio;
pub use serial::{Serial, SerialConfig};
pub use varied::{Varied, VariedConfig};

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

impl LineConfig {
    /// What the queue towards `side` does with its packets.
    fn discipline(&self, side: Side) -> Discipline {
        towards(side, self.discipline_left, self.discipline_right)
    }

    /// The idle transmitter towards `side`, whose queue draws from `stream`.
    fn transmitter<T>(&self, side: Side, stream: impl Fn(&str) -> Stream) -> Transmitter<T> {
        let rate = towards(side, self.rate_left, self.rate_right);
        let chance = || stream(&format!("queue.{}", side.word()));
        let queue = Queue::new(self.queue, self.discipline(side), chance);
        Transmitter::new(queue, rate, Span::ZERO, self.delay)
    }
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

impl RadioConfig {
    /// The empty queue in front of the transmitter towards `side`, which draws from `chance`.
    pub(crate) fn queue(&self, side: Side, chance: impl Fn() -> Stream) -> Queue {
        let discipline = towards(side, self.discipline_left, self.discipline_right);
        Queue::new(self.queue, discipline, chance)
    }

    /// The idle transmitter towards `side`, whose queue draws from `stream`.
    fn transmitter(&self, side: Side, stream: impl Fn(&str) -> Stream) -> Transmitter {
        let queue = self.queue(side, || stream(&format!("queue.{}", side.word())));
        Transmitter::new(queue, Some(self.rate), self.overhead, self.delay)
    }
}

fn towards<T>(side: Side, left: T, right: T) -> T {
    match side {
        Side::Left => left,
        Side::Right => right,
    }
}
