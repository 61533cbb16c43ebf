//! The link layers that there are: one line each.

use serde::Serialize;

use super::end::{Above, LinkEnd, MacSignal};
use super::frame::{Frame, Station, Timing};
use super::ll::{Ll, LlConfig};
use super::local_recovery::{LocalRecovery, LocalRecoveryConfig};
use super::plain::Plain;
use super::tulip::{Tulip, TulipConfig};
use crate::rng::Stream;
use crate::units::Time;

/// Which link layer a radio hop has.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case", tag = "protocol")]
pub enum LinkConfig {
    /// None: each packet is sent once.
    #[default]
    None,
    /// Cumulative acknowledgements and timers, no order kept. See [`super::ll`].
    Ll(LlConfig),
    /// Each frame is acknowledged and sent again a bounded number of times (bakshi96 4.2.1).
    LocalRecovery(LocalRecoveryConfig),
    /// TULIP (parsa98).
    Tulip(TulipConfig),
}

/// The link layers.
#[derive(Debug)]
pub enum End {
    /// See [`LinkConfig::None`].
    Plain(Plain),
    /// See [`LinkConfig::Ll`].
    Ll(Box<Ll>),
    /// See [`LinkConfig::LocalRecovery`].
    LocalRecovery(Box<LocalRecovery>),
    /// See [`LinkConfig::Tulip`].
    Tulip(Tulip),
}

impl End {
    /// The end of `config` at `station` of a hop with `stations` of them, whose random draws are those of `stream`.
    pub fn new(
        config: &LinkConfig,
        station: Station,
        stations: u8,
        timing: Timing,
        stream: Stream,
    ) -> End {
        match config {
            LinkConfig::None => End::Plain(Plain::new(station)),
            LinkConfig::Ll(config) => End::Ll(Box::new(Ll::new(config, station, stations))),
            LinkConfig::LocalRecovery(config) => End::LocalRecovery(Box::new(LocalRecovery::new(
                config, station, stations, timing, stream,
            ))),
            LinkConfig::Tulip(config) => End::Tulip(Tulip::new(config, station, stations, timing)),
        }
    }
}

macro_rules! each {
    ($self:ident, $end:ident => $call:expr) => {
        match $self {
            End::Plain($end) => $call,
            End::Ll($end) => $call,
            End::LocalRecovery($end) => $call,
            End::Tulip($end) => $call,
        }
    };
}

impl LinkEnd for End {
    fn on_frame(&mut self, now: Time, frame: Frame, above: &mut dyn Above) {
        each!(self, end => end.on_frame(now, frame, above));
    }

    fn on_mac(&mut self, now: Time, signal: MacSignal, above: &mut dyn Above) {
        each!(self, end => end.on_mac(now, signal, above));
    }

    fn on_wake(&mut self, now: Time, above: &mut dyn Above) {
        each!(self, end => end.on_wake(now, above));
    }

    fn next_wake(&self) -> Option<Time> {
        each!(self, end => end.next_wake())
    }

    fn next_frame(&mut self, now: Time, above: &mut dyn Above) -> Option<Frame> {
        each!(self, end => end.next_frame(now, above))
    }

    fn reply(&mut self, now: Time, to: Station, above: &mut dyn Above) -> Option<Frame> {
        each!(self, end => end.reply(now, to, above))
    }

    fn amend(&mut self, now: Time, frame: &mut Frame) -> bool {
        each!(self, end => end.amend(now, frame))
    }
}
