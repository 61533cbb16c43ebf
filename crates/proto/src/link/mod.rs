//! Links between stages.
//!
//! A world may call late, since a real clock has delays. So a link uses the nominal times of events. A
//! delayed transmission begins when the medium became free, not at the time of the call, and lateness does
//! not accumulate over packets.

pub mod airmail;
pub mod cross;
pub mod end;
pub mod fec;
pub mod frame;
pub mod header_compression;
pub mod in_order;
pub mod layer;
pub mod line;
pub mod ll;
mod ll_peer;
mod ll_sack;
pub mod local_recovery;
pub mod plain;
pub mod radio;
pub mod rlc;
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

pub use crate::fates::{Fate, Fates, Silence};
pub use cross::{Cross, CrossTraffic, Ordinals};
pub use layer::LinkLayerConfig;
pub use line::Line;
pub use radio::Radio;
pub use serial::{Serial, SerialConfig};
pub use varied::{Varied, VariedConfig};

/// A full-duplex line: each direction has a separate transmitter and queue.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LineConfig {
    /// Rate towards the right; `None` is infinite.
    pub rate_right: Option<Rate>,
    /// Rate towards the left; `None` is infinite.
    pub rate_left: Option<Rate>,
    /// Propagation delay.
    pub delay: Span,
    /// Framing bytes per IP packet (14 for Ethernet without checksum).
    pub framing: u32,
    /// Queue in front of each transmitter.
    pub queue: Limit,
    /// Discipline of the queue towards the right.
    #[serde(skip_serializing_if = "Discipline::is_fifo")]
    pub discipline_right: Discipline,
    /// Discipline of the queue towards the left.
    #[serde(skip_serializing_if = "Discipline::is_fifo")]
    pub discipline_left: Discipline,
}

impl LineConfig {
    /// Discipline of the queue towards `side`.
    fn discipline(&self, side: Side) -> Discipline {
        towards(side, self.discipline_left, self.discipline_right)
    }

    /// The idle transmitter towards `side`, with a queue that draws from `stream`.
    fn transmitter<T>(&self, side: Side, stream: impl Fn(&str) -> Stream) -> Transmitter<T> {
        let rate = towards(side, self.rate_left, self.rate_right);
        let rng = || stream(&format!("queue.{}", side.word()));
        let queue = Queue::new(self.queue, self.discipline(side), rng);
        Transmitter::new(queue, rate, Span::ZERO, self.delay)
    }
}

/// A radio channel shared by both directions: one frame at a time.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RadioConfig {
    /// Rate of the medium.
    pub rate: Rate,
    /// Propagation delay.
    pub delay: Span,
    /// Time of each frame in addition to its bits: access, preamble, framing.
    pub overhead: Span,
    /// Whether the two directions share the medium.
    pub half_duplex: bool,
    /// Queue in front of each station's transmitter.
    pub queue: Limit,
    /// Discipline of the queue towards the right.
    #[serde(skip_serializing_if = "Discipline::is_fifo")]
    pub discipline_right: Discipline,
    /// Discipline of the queue towards the left.
    #[serde(skip_serializing_if = "Discipline::is_fifo")]
    pub discipline_left: Discipline,
}

impl RadioConfig {
    /// The empty queue in front of the transmitter towards `side`, with draws from `rng`.
    pub(crate) fn queue(&self, side: Side, rng: impl Fn() -> Stream) -> Queue {
        let discipline = towards(side, self.discipline_left, self.discipline_right);
        Queue::new(self.queue, discipline, rng)
    }

    /// The idle transmitter towards `side`, with a queue that draws from `stream`.
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
