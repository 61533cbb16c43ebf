//! The registry of link layers, one line each.

use serde::Serialize;

use super::airmail::{Airmail, AirmailConfig};
use super::end::{Above, LinkEnd, MacSignal};
use super::frame::{Frame, Load, Timing};
use super::ll::{Ll, LlConfig};
use super::local_recovery::{LocalRecovery, LocalRecoveryConfig};
use super::plain::Plain;
use super::rlc::{Rlc, RlcConfig};
use super::tulip::{Tulip, TulipConfig};
use super::{airmail, ll, local_recovery, plain, rlc, tulip};
use crate::air::Station;
use crate::describe::Keys;
use crate::rng::Stream;
use crate::units::Time;

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
    /// Cumulative acknowledgements and timers, without order. See [`super::ll`].
    Ll(ll: LlConfig) => Box<Ll> = Box::new(Ll::new(ll, station, stations)), ll::WORDS;
    /// Each frame is acknowledged, with a limited number of retransmissions (bakshi96 4.2.1).
    LocalRecovery(recovery: LocalRecoveryConfig) => Box<LocalRecovery>
        = Box::new(LocalRecovery::new(recovery, station, stations, timing, rng)), local_recovery::WORDS;
    /// TULIP (parsa98).
    Tulip(tulip: TulipConfig) => Box<Tulip>
        = Box::new(Tulip::new(tulip, station, stations, timing)), tulip::WORDS;
    /// AIRMAIL, controlled by the base station. See [`super::airmail`].
    Airmail(airmail: AirmailConfig) => Box<Airmail>
        = Box::new(Airmail::new(airmail, station, stations, timing)), airmail::WORDS;
    /// Radio link control of LTE and NR. See [`super::rlc`].
    Rlc(rlc: RlcConfig) => Box<Rlc> = Box::new(Rlc::new(rlc, station, stations)), rlc::WORDS;
}

impl LinkLayerConfig {
    /// Whether its frames carry whole packets of any length.
    pub fn takes_whole(&self) -> bool {
        matches!(self, LinkLayerConfig::LocalRecovery(config) if config.whole)
    }
}

impl LinkEnd for LinkLayer {
    fn check(&self) {
        each!(self, end => end.check());
    }

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

    fn next_frame_to(&mut self, now: Time, to: Station, above: &mut dyn Above) -> Option<Frame> {
        each!(self, end => end.next_frame_to(now, to, above))
    }

    fn reply(&mut self, now: Time, to: Station, above: &mut dyn Above) -> Option<Frame> {
        each!(self, end => end.reply(now, to, above))
    }

    fn amend(&mut self, now: Time, frame: &mut Frame) -> bool {
        each!(self, end => end.amend(now, frame))
    }

    fn stored_loads(&self, each: &mut dyn FnMut(&Load, bool)) {
        each!(self, end => end.stored_loads(each));
    }
}
