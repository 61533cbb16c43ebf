//! The link layers that there are: one line each.

use serde::Serialize;

use super::end::{Above, LinkEnd, MacSignal};
use super::frame::{Frame, Timing};
use super::ll::{Ll, LlConfig};
use super::local_recovery::{LocalRecovery, LocalRecoveryConfig};
use super::plain::Plain;
use super::tulip::{Tulip, TulipConfig};
use crate::air::Station;
use crate::rng::Stream;
use crate::units::Time;

/// Which link layer a radio hop has.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case", tag = "protocol")]
pub enum LinkLayerConfig {
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
pub enum LinkLayer {
    /// See [`LinkLayerConfig::None`].
    Plain(Plain),
    /// See [`LinkLayerConfig::Ll`].
    Ll(Box<Ll>),
    /// See [`LinkLayerConfig::LocalRecovery`].
    LocalRecovery(Box<LocalRecovery>),
    /// See [`LinkLayerConfig::Tulip`].
    Tulip(Tulip),
}

impl LinkLayer {
    /// The end of `config` at `station` of a hop with `stations` of them, whose random draws are those of `stream`.
    pub fn new(
        config: &LinkLayerConfig,
        station: Station,
        stations: u8,
        timing: Timing,
        stream: Stream,
    ) -> LinkLayer {
        match config {
            LinkLayerConfig::None => LinkLayer::Plain(Plain::new(station)),
            LinkLayerConfig::Ll(config) => {
                LinkLayer::Ll(Box::new(Ll::new(config, station, stations)))
            }
            LinkLayerConfig::LocalRecovery(config) => LinkLayer::LocalRecovery(Box::new(
                LocalRecovery::new(config, station, stations, timing, stream),
            )),
            LinkLayerConfig::Tulip(config) => {
                LinkLayer::Tulip(Tulip::new(config, station, stations, timing))
            }
        }
    }
}

macro_rules! each {
    ($self:ident, $end:ident => $call:expr) => {
        match $self {
            LinkLayer::Plain($end) => $call,
            LinkLayer::Ll($end) => $call,
            LinkLayer::LocalRecovery($end) => $call,
            LinkLayer::Tulip($end) => $call,
        }
    };
}

impl LinkEnd for LinkLayer {
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
