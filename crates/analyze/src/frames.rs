//! Facts about the frames of a capture: steps of its clock, and repeated frames of 802.11.

use core::cmp::Reverse;
use std::collections::BTreeMap;

use lasthop_observe::capture::{Frame, WifiHeader};
use lasthop_proto::units::{Span, Time};

use crate::reading::{Analysis, WifiStation};

/// Minimum step back of a clock that was set. Queues of an interface and taps change the order of packets by less.
const STEP: Span = Span::millis(500);

/// Maximum number of 802.11 transmitters, and of interfaces with separate clocks.
const STATIONS: usize = 4096;
const INTERFACES: usize = 64;

/// The clock of one interface.
#[derive(Clone, Copy, Debug, Default)]
struct Clock {
    latest: Time,
    /// Sum of the steps back.
    back: Span,
}

/// Frames of a transmitter, and the sum of the known data rates in units of 100 kbit/s.
#[derive(Clone, Copy, Debug, Default)]
struct Station {
    frames: u64,
    retries: u64,
    rates: u64,
    rated: u64,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Frames {
    clocks: Vec<Clock>,
    steps: u64,
    stations: BTreeMap<[u8; 6], Station>,
}

impl Frames {
    /// The time of a frame, without steps of the clock.
    #[inline]
    pub(crate) fn at(&mut self, frame: &Frame<'_>) -> Time {
        let index = frame.interface as usize;
        if index >= self.clocks.len() {
            if index >= INTERFACES {
                return frame.at;
            }
            self.clocks.resize(index + 1, Clock::default());
        }
        let clock = &mut self.clocks[index];
        let at = frame.at + clock.back;
        if at < clock.latest && clock.latest.since(at) >= STEP {
            clock.back = clock.back + clock.latest.since(at);
            self.steps += 1;
            return clock.latest;
        }
        clock.latest = clock.latest.max(at);
        at
    }

    /// The next file may be older: each file has a clock.
    pub(crate) fn next_file(&mut self) {
        self.clocks.iter_mut().for_each(|clock| clock.latest = Time::ZERO);
    }

    /// Counts a frame with TCP.
    pub(crate) fn wifi(&mut self, header: WifiHeader) {
        if self.stations.len() < STATIONS || self.stations.contains_key(&header.transmitter) {
            let station = self.stations.entry(header.transmitter).or_default();
            station.frames += 1;
            station.retries += u64::from(header.retry);
            station.rated += u64::from(header.rate.is_some());
            station.rates += u64::from(header.rate.unwrap_or(0));
        }
    }

    /// Writes the facts into `analysis`.
    pub(crate) fn report(self, analysis: &mut Analysis) {
        analysis.clock_steps = self.steps;
        analysis.clock_back = self.clocks.iter().map(|clock| clock.back.as_secs_f64()).sum();
        let station = |(address, station): ([u8; 6], Station)| {
            let address = address.map(|byte| format!("{byte:02x}")).join(":");
            let Station { frames, retries, rates, rated } = station;
            let rate = (rated > 0).then(|| rates as f64 * 1e5 / rated as f64);
            WifiStation { address, frames, retries, rate }
        };
        analysis.wifi = self.stations.into_iter().map(station).collect();
        analysis.wifi.sort_by_key(|station| Reverse(station.frames));
    }
}
