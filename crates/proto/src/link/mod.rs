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
pub mod line;
pub mod ll;
mod ll_peer;
mod ll_sack;
pub mod load;
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

use crate::air::Station;
use crate::describe::Keys;
use crate::machine::Side;
use crate::queue::{Discipline, Limit, Queue};
use crate::rng::Stream;
use crate::units::{Rate, Span, Time};
use airmail::{Airmail, AirmailConfig};
use end::{Above, LinkEnd, MacSignal};
use frame::{Frame, Load, Timing};
use ll::{Ll, LlConfig};
use local_recovery::{LocalRecovery, LocalRecoveryConfig};
use plain::Plain;
use rlc::{Rlc, RlcConfig};
use transmitter::Transmitter;
use tulip::{Tulip, TulipConfig};

pub use crate::fates::{Fate, Fates, Silence};
pub use cross::{Cross, CrossTraffic, Ordinals};
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

/// Reads the keys of a link layer whose frames carry fragments of at most this many bytes.
pub type Read = fn(&mut Keys<'_>, Option<u32>) -> LinkLayerConfig;

family! {
    $ each;

    /// The link layer of a radio hop.
    #[derive(Clone, PartialEq, Debug, Default, Serialize)]
    #[serde(rename_all = "kebab-case", tag = "protocol")]
    config LinkLayerConfig;

    /// A link layer's end at one station.
    #[derive(Clone, Debug)]
    pub machine LinkLayer(station: Station, stations: u8, timing: Timing, rng: Stream);

    /// Descriptors of the link layers, in the order of the manual.
    words Read;

    /// No link layer: each packet is sent once.
    #[default]
    None => Plain = Plain::new(station), plain::WORDS;
    /// Cumulative acknowledgements and timers, without order. See [`ll`].
    Ll(ll: LlConfig) => Box<Ll> = Box::new(Ll::new(ll, station, stations)), ll::WORDS;
    /// Each frame is acknowledged, with a limited number of retransmissions (bakshi96 4.2.1).
    LocalRecovery(recovery: LocalRecoveryConfig) => Box<LocalRecovery>
        = Box::new(LocalRecovery::new(recovery, station, stations, timing, rng)), local_recovery::WORDS;
    /// TULIP (parsa98).
    Tulip(tulip: TulipConfig) => Box<Tulip>
        = Box::new(Tulip::new(tulip, station, stations, timing)), tulip::WORDS;
    /// AIRMAIL, controlled by the base station. See [`airmail`].
    Airmail(airmail: AirmailConfig) => Box<Airmail>
        = Box::new(Airmail::new(airmail, station, stations, timing)), airmail::WORDS;
    /// Radio link control of LTE and NR. See [`rlc`].
    Rlc(rlc: RlcConfig) => Box<Rlc> = Box::new(Rlc::new(rlc, station, stations)), rlc::WORDS;
}

impl LinkLayerConfig {
    /// Whether its frames carry whole packets of any length.
    pub fn takes_whole(&self) -> bool {
        matches!(self, LinkLayerConfig::LocalRecovery(config) if config.whole)
    }
}

impl LinkEnd for LinkLayer {
    forward! { [each]
        fn check(&self);
        fn on_frame(&mut self, now: Time, frame: Frame, above: &mut dyn Above);
        fn on_mac(&mut self, now: Time, signal: MacSignal, above: &mut dyn Above);
        fn on_wake(&mut self, now: Time, above: &mut dyn Above);
        fn next_wake(&self) -> Option<Time>;
        fn next_frame(&mut self, now: Time, above: &mut dyn Above) -> Option<Frame>;
        fn next_frame_to(&mut self, now: Time, to: Station, above: &mut dyn Above) -> Option<Frame>;
        fn reply(&mut self, now: Time, to: Station, above: &mut dyn Above) -> Option<Frame>;
        fn amend(&mut self, now: Time, frame: &mut Frame) -> bool;
        fn stored_loads(&self, each: &mut dyn FnMut(&Load, bool));
    }
}
